// What threads of different blocks do to one word, and what a warp agrees on: on GPUs of either vendor, or emulated.
#pragma once

#include "device.h"

AOTI_NAMESPACE_BEGIN

#if defined(AOTI_EMULATED)
// Threads of an emulated block take turns only where they wait; what a warp agrees on is in emulate.h.
template <class W> W atomic_read(const W *p) { return *p; }
template <class W> W atomic_add(W *p, W x) {
  const W old = *p;
  *p = old + x;
  return old;
}
template <class W> void atomic_max(W *p, W x) {
  if (x > *p) *p = x;
}
template <class W> W atomic_exchange(W *p, W x) {
  const W old = *p;
  *p = x;
  return old;
}
template <class W> bool atomic_replace(W *p, W &expected, W x) {
  const W old = *p;
  if (old == expected) *p = x;
  const bool replaced = old == expected;
  expected = old;
  return replaced;
}
inline int count_bits(u64 x) { return __builtin_popcountll(x); }
#elif defined(__NVCC__)
template <class W> AOTI_INLINE W atomic_read(const W *p) { return *(const volatile W *)p; }
AOTI_INLINE u32 atomic_add(u32 *p, u32 x) { return atomicAdd(p, x); }
AOTI_INLINE u64 atomic_add(u64 *p, u64 x) { return atomicAdd((unsigned long long *)p, (unsigned long long)x); }
AOTI_INLINE void atomic_max(u32 *p, u32 x) { atomicMax(p, x); }
AOTI_INLINE void atomic_max(u64 *p, u64 x) { atomicMax((unsigned long long *)p, (unsigned long long)x); }
AOTI_INLINE u32 atomic_exchange(u32 *p, u32 x) { return atomicExch(p, x); }
AOTI_INLINE bool atomic_replace(u32 *p, u32 &expected, u32 x) {
  const u32 old = atomicCAS(p, expected, x);
  const bool replaced = old == expected;
  expected = old;
  return replaced;
}
AOTI_INLINE bool atomic_replace(u64 *p, u64 &expected, u64 x) {
  const u64 old = atomicCAS((unsigned long long *)p, (unsigned long long)expected, (unsigned long long)x);
  const bool replaced = old == expected;
  expected = old;
  return replaced;
}
AOTI_INLINE u32 ballot(bool x) { return __ballot_sync(0xffffffffu, x); }
AOTI_INLINE int count_bits(u64 x) { return __popcll(x); }
#else
template <class W> AOTI_INLINE W atomic_read(const W *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
template <class W> AOTI_INLINE W atomic_add(W *p, W x) { return __atomic_fetch_add(p, x, __ATOMIC_RELAXED); }
template <class W> AOTI_INLINE W atomic_exchange(W *p, W x) { return __atomic_exchange_n(p, x, __ATOMIC_RELAXED); }
template <class W> AOTI_INLINE bool atomic_replace(W *p, W &expected, W x) {
  return __atomic_compare_exchange_n(p, &expected, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
template <class W> AOTI_INLINE void atomic_max(W *p, W x) {
  W old = atomic_read(p);
  while (old < x && !atomic_replace(p, old, x)) {
  }
}
AOTI_INLINE int count_bits(u64 x) { return __builtin_popcountll(x); }
#if AOTI_NVIDIA
AOTI_INLINE u32 ballot(bool x) {
  u32 all;
  __asm__ volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(all) : "r"(u32(x)));
  return all;
}
#else
// A comparison (33 is "differs") whose result is that of all lanes.
AOTI_INLINE u64 ballot(bool x) { return __builtin_amdgcn_uicmp(u32(x), 0u, 33); }
#endif
#endif

// Lanes of the warp whose x is this lane's; every lane must ask. Of x only the low bits count.
template <int Bits> AOTI_INLINE u64 lanes_like(u32 x) {
  auto same = ballot(true);
  AOTI_UNROLL_TIMES(9)
  for (int bit = 0; bit < Bits; ++bit) {
    const bool set = x >> bit & 1;
    const auto those = ballot(set);
    same &= set ? those : ~those;
  }
  return same;
}

AOTI_NAMESPACE_END
