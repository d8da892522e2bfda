// Copies from device memory to shared memory that no thread waits for, 16 bytes at a time: sm_80 and later.
#pragma once

#include "device.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

struct alignas(16) SixteenBytes {
  u32 words[4];
} __attribute__((may_alias));

#if AOTI_NVIDIA && __CUDA_ARCH__ >= 800
#define AOTI_COPIES 1

// 16 bytes from device memory to shared memory, the first `bytes` of them, zero behind; what was asked for before `commit`
// is one group, and `wait_for_copies<N>` waits for all but the last N groups.
AOTI_INLINE void copy_ahead(u32 to, const void *from, int bytes) {
  __asm__ volatile("{ .reg .u64 t; cvta.to.global.u64 t, %1; cp.async.cg.shared.global [%0], [t], 16, %2; }" ::"r"(to), "l"(from),
                   "r"(bytes)
                   : "memory");
}
AOTI_INLINE void copy_ahead(u32 to, const void *from) {
  __asm__ volatile("{ .reg .u64 t; cvta.to.global.u64 t, %1; cp.async.cg.shared.global [%0], [t], 16; }" ::"r"(to), "l"(from)
                   : "memory");
}
// A word, or so many bytes of one and zeros.
AOTI_INLINE void copy_word_ahead(u32 to, const void *from, int bytes) {
  __asm__ volatile("{ .reg .u64 t; cvta.to.global.u64 t, %1; cp.async.ca.shared.global [%0], [t], 4, %2; }" ::"r"(to), "l"(from),
                   "r"(bytes)
                   : "memory");
}
AOTI_INLINE void commit_copies() { __asm__ volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> AOTI_INLINE void wait_for_copies() { __asm__ volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
#endif

} // namespace detail

AOTI_NAMESPACE_END
