// The threads of a GPU, under nvcc, hipcc, clang alone, or emulated on a processor: indices, barriers, shuffles, atomics.
// Needs no vendor's header or device library under clang: everything is a builtin of the compiler.
// Knows nothing of tensors.
#pragma once

#include "../base.h"

// A kernel of at most so many threads a block, one whose registers are to suffice for so many blocks of a multiprocessor, one whose
// blocks run so many at a time where they can (cluster.h), one whose blocks have some threads more where those have a role of their own (roles.h), one of both kinds, the address space of a block, and unrolling. Dynamic shared memory begins at a multiple of 1024 bytes, because matrix units swizzle what
// they read by its address.
#if defined(AOTI_EMULATED)
#define AOTI_WARPGROUPS 0
#define AOTI_KERNEL(THREADS) extern "C" void
#define AOTI_RESIDENT_KERNEL(THREADS, BLOCKS) AOTI_KERNEL(THREADS)
#define AOTI_CLUSTER_KERNEL(THREADS, BLOCKS) AOTI_KERNEL(THREADS)
#define AOTI_CLUSTERS 0
#define AOTI_ROLES_KERNEL(THREADS, COPIERS) AOTI_KERNEL(THREADS)
#define AOTI_ROLES_CLUSTER_KERNEL(THREADS, COPIERS, BLOCKS) AOTI_KERNEL(THREADS)
#define AOTI_KERNEL_END(NAME) AOTI_EMULATED_KERNEL(NAME)
#define AOTI_SHARED static
#define AOTI_DYNAMIC_SHARED(NAME) char *const NAME = aoti::emulated::dynamic_shared()
#else
// AMD's compiler takes a block to be as large as may be, and gives its threads few registers, unless it is told in its own word.
#if defined(__HIP__)
#define AOTI_KERNEL(THREADS) extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, THREADS))) void
#define AOTI_RESIDENT_KERNEL(THREADS, BLOCKS) AOTI_KERNEL(THREADS)
#else
#define AOTI_RESIDENT_KERNEL(THREADS, BLOCKS) \
  extern "C" __attribute__((global)) __attribute__((launch_bounds(THREADS, BLOCKS))) void
#define AOTI_KERNEL(THREADS) extern "C" __attribute__((global)) __attribute__((launch_bounds(THREADS))) void
#endif
// clang has no word for clusters.
#if defined(__NVCC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define AOTI_CLUSTERS 1
#define AOTI_CLUSTER_KERNEL(THREADS, BLOCKS) \
  extern "C" __attribute__((global)) __attribute__((launch_bounds(THREADS))) __attribute__((cluster_dims(BLOCKS, 1, 1))) void
#else
#define AOTI_CLUSTERS 0
#define AOTI_CLUSTER_KERNEL(THREADS, BLOCKS) AOTI_KERNEL(THREADS)
#endif
// Instructions of a warpgroup of 128 threads: sm_90a. clang knows them where it was told a version of PTX that has them.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && (!defined(__clang__) || defined(__NVCC__))
#define AOTI_WARPGROUPS 1
// The compiler moves registers from one role to another only where it is told that a multiprocessor has one block.
#define AOTI_ROLES_KERNEL(THREADS, COPIERS) \
  extern "C" __attribute__((global)) __attribute__((launch_bounds(THREADS + COPIERS, 1))) void
#define AOTI_ROLES_CLUSTER_KERNEL(THREADS, COPIERS, BLOCKS)                                        \
  extern "C" __attribute__((global)) __attribute__((launch_bounds(THREADS + COPIERS, 1)))          \
  __attribute__((cluster_dims(BLOCKS, 1, 1))) void
#else
#define AOTI_WARPGROUPS 0
#define AOTI_ROLES_KERNEL(THREADS, COPIERS) AOTI_KERNEL(THREADS)
#define AOTI_ROLES_CLUSTER_KERNEL(THREADS, COPIERS, BLOCKS) AOTI_CLUSTER_KERNEL(THREADS, BLOCKS)
#endif
#define AOTI_KERNEL_END(NAME)
#define AOTI_SHARED static __attribute__((shared))
#define AOTI_DYNAMIC_SHARED(NAME) extern __attribute__((shared)) __attribute__((aligned(1024))) char NAME[]
#endif
// Unrolling is said of every loop whose number of turns a compiler can bound, above all of those over blocks: by default some
// versions write out the largest number of turns, and take minutes over it.
#define AOTI_PRAGMA(TEXT) _Pragma(#TEXT)
#if defined(AOTI_EMULATED)
#define AOTI_UNROLL_TIMES(N)
#else
#define AOTI_UNROLL_TIMES(N) AOTI_PRAGMA(unroll N)
#endif

// The instructions of matrix units that there are templates for, one of which is AOTI_UNITS; 0 where there are none that are used. Of a
// warp, with copies that no thread waits for (mma.h), or of AMD's wavefronts (fragments.h).
#define AOTI_MMA 1
#define AOTI_MFMA 2
#define AOTI_WMMA 3
#define AOTI_WMMA12 4

#if defined(AOTI_EMULATED)
#include "emulate.h"
#else

AOTI_NAMESPACE_BEGIN

#if defined(__NVCC__) || (defined(__CUDA__) && !defined(__HIP__))
#define AOTI_NVIDIA 1
#define AOTI_UNITS AOTI_MMA
constexpr int kWarp = 32;
#else
#define AOTI_NVIDIA 0
#if defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__)
#define AOTI_UNITS AOTI_MFMA
#elif defined(__GFX11__)
#define AOTI_UNITS AOTI_WMMA
#elif defined(__GFX12__) && !defined(__gfx1250__)
#define AOTI_UNITS AOTI_WMMA12
#else
#define AOTI_UNITS 0
#endif
#if defined(__AMDGCN_WAVEFRONT_SIZE)
constexpr int kWarp = __AMDGCN_WAVEFRONT_SIZE;
#elif defined(__GFX9__)
constexpr int kWarp = 64;
#else
constexpr int kWarp = 32;
#endif
#endif

#if defined(__NVCC__)
AOTI_INLINE int thread_index() { return int(threadIdx.x); }
AOTI_INLINE int block_index() { return int(blockIdx.x); }
AOTI_INLINE int block_count() { return int(gridDim.x); }
AOTI_INLINE int block_size() { return int(blockDim.x); }
AOTI_INLINE void barrier() { __syncthreads(); }
AOTI_INLINE void warp_barrier() { __syncwarp(); }
AOTI_INLINE u32 shuffle_xor_word(u32 x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
AOTI_INLINE u32 shuffle_word(u32 x, int from) { return __shfl_sync(0xffffffffu, x, from); }
// Whether there was a zero.
AOTI_INLINE bool exchange_if_zero(int *p, int x) { return atomicCAS(p, 0, x) == 0; }
AOTI_INLINE void fence() { __threadfence(); }
#elif AOTI_NVIDIA
AOTI_INLINE int thread_index() { return __nvvm_read_ptx_sreg_tid_x(); }
AOTI_INLINE int block_index() { return __nvvm_read_ptx_sreg_ctaid_x(); }
AOTI_INLINE int block_count() { return __nvvm_read_ptx_sreg_nctaid_x(); }
AOTI_INLINE int block_size() { return __nvvm_read_ptx_sreg_ntid_x(); }
AOTI_INLINE void barrier() { __syncthreads(); }
// As assembly: clang has its builtins only where it was told a version of PTX.
AOTI_INLINE void warp_barrier() { __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
AOTI_INLINE u32 shuffle_xor_word(u32 x, int mask) {
  u32 y;
  __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(y) : "r"(x), "r"(mask));
  return y;
}
AOTI_INLINE u32 shuffle_word(u32 x, int from) {
  u32 y;
  __asm__ volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(y) : "r"(x), "r"(from));
  return y;
}
AOTI_INLINE bool exchange_if_zero(int *p, int x) {
  int none = 0;
  return __atomic_compare_exchange_n(p, &none, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
AOTI_INLINE void fence() { __nvvm_membar_gl(); }
#else
// The number of blocks is among the hidden arguments of a kernel, of version 5 of AMD's code objects: the first word.
AOTI_INLINE int thread_index() { return __builtin_amdgcn_workitem_id_x(); }
AOTI_INLINE int block_index() { return __builtin_amdgcn_workgroup_id_x(); }
AOTI_INLINE int block_count() { return *(const __attribute__((address_space(4))) int *)__builtin_amdgcn_implicitarg_ptr(); }
AOTI_INLINE int block_size() { return __builtin_amdgcn_workgroup_size_x(); }
AOTI_INLINE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
AOTI_INLINE void warp_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
AOTI_INLINE u32 shuffle_word(u32 x, int from) { return __builtin_amdgcn_ds_bpermute(from * 4, int(x)); }
AOTI_INLINE u32 shuffle_xor_word(u32 x, int mask) {
  int lane = __builtin_amdgcn_mbcnt_hi(-1, __builtin_amdgcn_mbcnt_lo(-1, 0));
  return shuffle_word(x, (kWarp == 64 ? lane : lane & 31) ^ mask);
}
AOTI_INLINE bool exchange_if_zero(int *p, int x) {
  int none = 0;
  return __atomic_compare_exchange_n(p, &none, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
AOTI_INLINE void fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
#endif

// 2^x and 1 / x by the units for functions, with 22 bits; results smaller than normal numbers are zero.
#define AOTI_FUNCTION_UNITS 1
namespace detail {
#if AOTI_NVIDIA
AOTI_INLINE f32 unit_exp2(f32 x) {
  f32 y;
  __asm__("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
AOTI_INLINE f32 unit_reciprocal(f32 x) {
  f32 y;
  __asm__("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Where something lies in the shared memory of its block, as instructions of that memory have it.
AOTI_INLINE u32 shared_address(const void *p) {
  u32 address;
  __asm__("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(address) : "l"(p));
  return address;
}
#else
#if __has_builtin(__builtin_amdgcn_exp2f)
AOTI_INLINE f32 unit_exp2(f32 x) { return __builtin_amdgcn_exp2f(x); }
#else
AOTI_INLINE f32 unit_exp2(f32 x) { return __builtin_exp2f(x); }
#endif
AOTI_INLINE f32 unit_reciprocal(f32 x) { return __builtin_amdgcn_rcpf(x); }
#endif
} // namespace detail

AOTI_NAMESPACE_END
#endif

AOTI_NAMESPACE_BEGIN

// Any value, word by word.
template <class T, class Word> AOTI_INLINE T by_words(T x, const Word &word) {
  constexpr int words = (sizeof(T) + 3) / 4;
  u32 raw[words] = {};
  __builtin_memcpy(raw, &x, sizeof(T));
  AOTI_UNROLL_TIMES(8)
  for (int i = 0; i < words; ++i) raw[i] = word(raw[i]);
  __builtin_memcpy(&x, raw, sizeof(T));
  return x;
}
// Any value from the thread whose number in the warp differs by `mask`.
template <class T> AOTI_INLINE T shuffle_xor(T x, int mask) {
  return by_words(x, [&](u32 w) { return shuffle_xor_word(w, mask); });
}
// Any value from the thread of this number in the warp.
template <class T> AOTI_INLINE T shuffle(T x, int from) {
  return by_words(x, [&](u32 w) { return shuffle_word(w, from); });
}

AOTI_NAMESPACE_END
