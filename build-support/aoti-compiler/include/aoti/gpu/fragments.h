// Instructions of AMD's matrix units: a wavefront multiplies fragments of 16 rows and of 16 columns, with sums in f32. MFMA of
// gfx9 (wavefronts of 64; f16, bf16 and f32) and WMMA of gfx11 and of gfx12 (of 32; f16 and bf16). Elsewhere there is nothing here.
//
// Which lane has which element is data (`FragmentLayout`), which templates and the emulation read. Sources: "Matrix Arithmetic
// Instructions" of AMD's "Instinct MI300 ISA" (MFMA), "Wave Matrix Multiply Accumulate" of the "RDNA3 ISA" and of the "RDNA4
// ISA" (WMMA), and AMD's amd_matrix_instruction_calculator.
#pragma once

#include "copies.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// The instruction D += A B. Lane l has row l % 16 of A and column l % 16 of B, of both the same few depths: those from
// l / 16 % groups times their number on. Where there are fewer groups than sixteens of lanes, the others repeat them. Of D lane l
// has column l % 16 and as its e-th sum row e * next + l / 16 * apart.
struct FragmentLayout {
  int lanes, groups, sums, next, apart;
  // Pieces of 16 bytes of an operand that a lane multiplies at a time, by one instruction or several.
  int pieces;

  AOTI_CONSTEXPR int group(int lane) const { return lane / kSide % groups; }
  AOTI_CONSTEXPR int row(int lane, int e) const { return e * next + lane / kSide * apart; }
  // Rows and columns of a fragment.
  static constexpr int kSide = 16;
};
constexpr FragmentLayout kMfmaLayout = {64, 4, 4, 1, 4, 1};
constexpr FragmentLayout kWmmaLayout = {32, 1, 8, 2, 1, 2};
constexpr FragmentLayout kWmma12Layout = {32, 2, 8, 1, 8, 1};

#if AOTI_UNITS == AOTI_MFMA || AOTI_UNITS == AOTI_WMMA || AOTI_UNITS == AOTI_WMMA12
#define AOTI_FRAGMENTS 1
#if AOTI_UNITS == AOTI_MFMA
constexpr FragmentLayout kFragment = kMfmaLayout;
#elif AOTI_UNITS == AOTI_WMMA
constexpr FragmentLayout kFragment = kWmmaLayout;
#else
constexpr FragmentLayout kFragment = kWmma12Layout;
#endif
static_assert(kFragment.lanes == kWarp);
// Whether there is an instruction for numbers of a type.
template <class T>
constexpr bool kHasFragments = is_same<T, f16> || is_same<T, bf16> || (is_same<T, f32> && AOTI_UNITS == AOTI_MFMA);
// Bytes of an operand that a lane has for one instruction.
template <class T> constexpr int kStepBytes = AOTI_UNITS != AOTI_MFMA ? 16 * kFragment.pieces : sizeof(T) == 4 ? 4 : 8;

#if defined(AOTI_EMULATED)
} // namespace detail

AOTI_NAMESPACE_END
#include "emulate_fragments.h"
AOTI_NAMESPACE_BEGIN

namespace detail {
template <class T> FragmentSums multiply_once(const char *a, const char *b, const FragmentSums &c) {
  return multiply_as<T, kStepBytes<T>>(kFragment, a, b, c);
}
#else
typedef f32 FragmentSums __attribute__((ext_vector_type(kFragment.sums)));
template <class T, class V> AOTI_INLINE V fragment_of(const char *from) {
  V own;
  static_assert(sizeof own == kStepBytes<T>);
  __builtin_memcpy(&own, from, sizeof own);
  return own;
}

#if AOTI_UNITS == AOTI_MFMA
typedef _Float16 FragmentHalves __attribute__((ext_vector_type(4)));
typedef short FragmentWords __attribute__((ext_vector_type(4)));
template <class T> AOTI_INLINE FragmentSums multiply_once(const char *a, const char *b, FragmentSums c) {
  if constexpr (is_same<T, f32>) {
    return __builtin_amdgcn_mfma_f32_16x16x4f32(fragment_of<T, f32>(a), fragment_of<T, f32>(b), c, 0, 0, 0);
  } else if constexpr (is_same<T, f16>) {
    return __builtin_amdgcn_mfma_f32_16x16x16f16(fragment_of<T, FragmentHalves>(a), fragment_of<T, FragmentHalves>(b), c, 0, 0, 0);
  } else {
    const FragmentWords left = fragment_of<T, FragmentWords>(a), right = fragment_of<T, FragmentWords>(b);
#if defined(__gfx908__)
    // Half as deep: the order of the depths makes no difference.
    c = __builtin_amdgcn_mfma_f32_16x16x8bf16(left.xy, right.xy, c, 0, 0, 0);
    return __builtin_amdgcn_mfma_f32_16x16x8bf16(left.zw, right.zw, c, 0, 0, 0);
#else
    return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(left, right, c, 0, 0, 0);
#endif
  }
}
#else
typedef _Float16 FragmentHalves __attribute__((ext_vector_type(8 * kFragment.pieces)));
typedef short FragmentWords __attribute__((ext_vector_type(8 * kFragment.pieces)));
#if AOTI_UNITS == AOTI_WMMA
#define AOTI_WMMA_BUILTIN(TYPE) __builtin_amdgcn_wmma_f32_16x16x16_##TYPE##_w32
#else
#define AOTI_WMMA_BUILTIN(TYPE) __builtin_amdgcn_wmma_f32_16x16x16_##TYPE##_w32_gfx12
#endif
template <class T> AOTI_INLINE FragmentSums multiply_once(const char *a, const char *b, FragmentSums c) {
  if constexpr (is_same<T, f16>)
    return AOTI_WMMA_BUILTIN(f16)(fragment_of<T, FragmentHalves>(a), fragment_of<T, FragmentHalves>(b), c);
  else
    return AOTI_WMMA_BUILTIN(bf16)(fragment_of<T, FragmentWords>(a), fragment_of<T, FragmentWords>(b), c);
}
#undef AOTI_WMMA_BUILTIN
#endif

#endif

// The same number, which compilers take for another: what is computed of it in a loop is not kept in registers around it.
AOTI_INLINE int anew(int x) {
#if !defined(AOTI_EMULATED)
  __asm__ volatile("" : "+v"(x));
#endif
  return x;
}

// What a lane has of an operand at a time.
struct FragmentPieces {
  SixteenBytes at[kFragment.pieces];
};

// sums += a b. Operands change places, so that a lane's sums are of one row, which is that of `a`, and of those columns of b that
// `FragmentLayout::row` says. Depths are multiplied in an order of their own, the same of both operands.
template <class T> AOTI_INLINE void multiply_fragments(FragmentSums &sums, const FragmentPieces &a, const FragmentPieces &b) {
  AOTI_UNROLL_TIMES(4)
  for (int i = 0; i < int(sizeof a); i += kStepBytes<T>) sums = multiply_once<T>((const char *)&b + i, (const char *)&a + i, sums);
}
#else
#define AOTI_FRAGMENTS 0
template <class T> constexpr bool kHasFragments = false;
#endif

} // namespace detail

AOTI_NAMESPACE_END
