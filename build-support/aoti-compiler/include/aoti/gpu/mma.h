// Instructions of NVIDIA's matrix units: products of halves with sums in f32 by a warp (sm_80 and later), and by a warpgroup
// of 128 threads with both operands in shared memory (sm_90a). Elsewhere there is the descriptor of an operand alone.
//
// Operands in shared memory are rows of 128 bytes, of which piece c of 16 bytes lies at c ^ (row % 8): the layout that
// NVIDIA calls 128-byte swizzling, in which neither loads nor stores meet in a bank.
#pragma once

#include "copies.h"

AOTI_NAMESPACE_BEGIN

// Elements of f32 that may be rounded to TF32.
struct Tf32 {
  f32 value;
};

namespace detail {

// An operand of a warpgroup in shared memory: rows of 128 bytes, eight of which are a group. `apart`: bytes between blocks of 64
// along the outer axis, where rows run along it. The instructions take eighteen bits of an address; what is above them is the
// number of the block in its cluster, and would run into `apart`.
struct WarpgroupOperand {
  u32 low;

  AOTI_INLINE WarpgroupOperand(u32 address, u32 apart) : low((address & 0x3ffffu) >> 4 | apart >> 4 << 16) {}
  // The same so many bytes on.
  AOTI_INLINE u64 at(u32 bytes) const { return u64(low + (bytes >> 4)) | u64(1024 >> 4 | 1 << 30) << 32; }
};

} // namespace detail

#if AOTI_NVIDIA
namespace detail {

// Four matrices of 8 by 8 halves, each of eight rows whose addresses eight threads give.
template <bool Turned> AOTI_INLINE void load_matrices(u32 *r, u32 address) {
  if constexpr (Turned)
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address)
                     : "memory");
  else
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address)
                     : "memory");
}
// The sums, or the products, of two pairs of halves.
template <class T> AOTI_INLINE u32 add_pairs(u32 a, u32 b) {
  u32 both;
  if constexpr (is_same<T, bf16>)
    __asm__("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(both) : "r"(a), "r"(0x3f803f80), "r"(b));
  else
    __asm__("add.f16x2 %0, %1, %2;" : "=r"(both) : "r"(a), "r"(b));
  return both;
}
template <class T> AOTI_INLINE u32 multiply_pairs(u32 a, u32 b) {
  u32 both;
  if constexpr (is_same<T, bf16>)
    __asm__("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(both) : "r"(a), "r"(b), "r"(0x80008000));
  else
    __asm__("mul.f16x2 %0, %1, %2;" : "=r"(both) : "r"(a), "r"(b));
  return both;
}
// c += a b for a of 16 by 16, b of 16 by 8.
template <class T> AOTI_INLINE void multiply(f32 *c, const u32 *a, const u32 *b) {
  if constexpr (is_same<T, bf16>)
    __asm__("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    __asm__("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#if AOTI_WARPGROUPS
// What threads wrote to shared memory is seen by the matrix units, behind the next barrier.
AOTI_INLINE void show_to_units() { __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
AOTI_INLINE void warpgroup_begin() { __asm__ volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
AOTI_INLINE void warpgroup_commit() { __asm__ volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> AOTI_INLINE void warpgroup_wait() { __asm__ volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// Sums that a wait is for are read behind it.
template <int N> AOTI_INLINE void settle(f32 (&sums)[N]) {
  AOTI_UNROLL_TIMES(128)
  for (int i = 0; i < N; ++i) __asm__ volatile("" : "+f"(sums[i])::"memory");
}
// The number of this warpgroup, which the compiler knows to be one for all threads of a warp.
AOTI_INLINE u32 warpgroup_index() { return shuffle_word(u32(thread_index() / 128), 0); }
// d += a b for a of 64 by 16 and b of 16 by twice as many columns as a thread has sums, or by 8 where they are TF32; d = a b where
// it is `Fresh`. NAMES are the operands %0... that the sums are; OPERANDS, those behind them, are a in registers or in shared
// memory, b, and which of those in shared memory are turned, as only halves can be. Of TF32 the units ignore the bits that are not.
#define AOTI_WARPGROUP_MULTIPLY(DEPTH, TYPE, COLUMNS, NAMES, OPERANDS, ADDS, TURNED, ...)                                \
  __asm__ volatile("{ .reg .pred p; setp.ne.u32 p, " ADDS ", 0; wgmma.mma_async.sync.aligned.m64n" COLUMNS DEPTH ".f32." \
                   TYPE "." TYPE " {" NAMES "}, " OPERANDS ", p, 1, 1" TURNED "; }"                                      \
                   : __VA_ARGS__)
#define AOTI_EIGHT_SUMS(I) \
  "+f"(d[I]), "+f"(d[I + 1]), "+f"(d[I + 2]), "+f"(d[I + 3]), "+f"(d[I + 4]), "+f"(d[I + 5]), "+f"(d[I + 6]), "+f"(d[I + 7])
#define AOTI_32_SUMS(I) AOTI_EIGHT_SUMS(I), AOTI_EIGHT_SUMS(I + 8), AOTI_EIGHT_SUMS(I + 16), AOTI_EIGHT_SUMS(I + 24)
#define AOTI_64_SUMS(I) AOTI_32_SUMS(I), AOTI_32_SUMS(I + 32)
#define AOTI_96_SUMS(I) AOTI_64_SUMS(I), AOTI_32_SUMS(I + 64)
#define AOTI_128_SUMS(I) AOTI_64_SUMS(I), AOTI_64_SUMS(I + 64)
#define AOTI_32_NAMES \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define AOTI_64_NAMES \
  AOTI_32_NAMES ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define AOTI_96_NAMES \
  AOTI_64_NAMES ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define AOTI_128_NAMES \
  AOTI_96_NAMES ", " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define AOTI_FROM_SHARED : "l"(a), "l"(b), "n"(int(!Fresh)), "n"(int(TurnedA)), "n"(int(TurnedB))
#define AOTI_FROM_REGISTERS : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(int(!Fresh)), "n"(int(TurnedB))
// All dtypes of one instruction.
#define AOTI_WARPGROUP_MULTIPLY_ALL(COLUMNS, SUMS, OPERANDS, ADDS, TURNED, FROM)                                     \
  if constexpr (is_same<T, bf16>)                                                                                     \
    AOTI_WARPGROUP_MULTIPLY("k16", "bf16", COLUMNS, AOTI_##SUMS##_NAMES, OPERANDS, ADDS, ", " TURNED,                 \
                            AOTI_##SUMS##_SUMS(0) FROM);                                                              \
  else if constexpr (is_same<T, Tf32>)                                                                                \
    AOTI_WARPGROUP_MULTIPLY("k8", "tf32", COLUMNS, AOTI_##SUMS##_NAMES, OPERANDS, ADDS, "", AOTI_##SUMS##_SUMS(0) FROM); \
  else                                                                                                                \
    AOTI_WARPGROUP_MULTIPLY("k16", "f16", COLUMNS, AOTI_##SUMS##_NAMES, OPERANDS, ADDS, ", " TURNED, AOTI_##SUMS##_SUMS(0) FROM)
template <class T, bool Fresh, bool TurnedA, bool TurnedB> AOTI_INLINE void warpgroup_multiply(f32 (&d)[32], u64 a, u64 b) {
  AOTI_WARPGROUP_MULTIPLY_ALL("64", 32, "%32, %33", "%34", "%35, %36", AOTI_FROM_SHARED);
}
template <class T, bool Fresh, bool TurnedA, bool TurnedB> AOTI_INLINE void warpgroup_multiply(f32 (&d)[64], u64 a, u64 b) {
  AOTI_WARPGROUP_MULTIPLY_ALL("128", 64, "%64, %65", "%66", "%67, %68", AOTI_FROM_SHARED);
}
template <class T, bool Fresh, bool TurnedA, bool TurnedB> AOTI_INLINE void warpgroup_multiply(f32 (&d)[128], u64 a, u64 b) {
  AOTI_WARPGROUP_MULTIPLY_ALL("256", 128, "%128, %129", "%130", "%131, %132", AOTI_FROM_SHARED);
}
// The same with a in registers, as load_matrices() leaves it: a row and the one eight below it, a quarter of the depth.
template <class T, bool Fresh, bool TurnedB> AOTI_INLINE void warpgroup_multiply(f32 (&d)[32], const u32 (&a)[4], u64 b) {
  AOTI_WARPGROUP_MULTIPLY_ALL("64", 32, "{%32, %33, %34, %35}, %36", "%37", "%38", AOTI_FROM_REGISTERS);
}
template <class T, bool Fresh, bool TurnedB> AOTI_INLINE void warpgroup_multiply(f32 (&d)[64], const u32 (&a)[4], u64 b) {
  AOTI_WARPGROUP_MULTIPLY_ALL("128", 64, "{%64, %65, %66, %67}, %68", "%69", "%70", AOTI_FROM_REGISTERS);
}
template <class T, bool Fresh, bool TurnedB> AOTI_INLINE void warpgroup_multiply(f32 (&d)[96], const u32 (&a)[4], u64 b) {
  AOTI_WARPGROUP_MULTIPLY_ALL("192", 96, "{%96, %97, %98, %99}, %100", "%101", "%102", AOTI_FROM_REGISTERS);
}
template <class T, bool Fresh, bool TurnedB> AOTI_INLINE void warpgroup_multiply(f32 (&d)[128], const u32 (&a)[4], u64 b) {
  AOTI_WARPGROUP_MULTIPLY_ALL("256", 128, "{%128, %129, %130, %131}, %132", "%133", "%134", AOTI_FROM_REGISTERS);
}
#undef AOTI_WARPGROUP_MULTIPLY_ALL
#undef AOTI_WARPGROUP_MULTIPLY
#undef AOTI_FROM_SHARED
#undef AOTI_FROM_REGISTERS
#undef AOTI_EIGHT_SUMS
#undef AOTI_32_SUMS
#undef AOTI_64_SUMS
#undef AOTI_96_SUMS
#undef AOTI_128_SUMS
#undef AOTI_32_NAMES
#undef AOTI_64_NAMES
#undef AOTI_96_NAMES
#undef AOTI_128_NAMES
#endif

} // namespace detail
#endif

AOTI_NAMESPACE_END
