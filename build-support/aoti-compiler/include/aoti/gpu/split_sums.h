// Sums of products of f32 on NVIDIA's matrix units, which multiply TF32 with 11 bits of precision: a number is the sum of two such,
// and three of the four products of their parts are added (Ootomo and Yokota, "Recovering single precision accuracy from Tensor
// Cores", 2022). What is left out is less than 2^-21 of a product. The units round sums towards zero: they add up eight products
// at a time, which are added to the others by ordinary instructions.
//
// Where numbers may be rounded to TF32, the product of their first parts is all.
#pragma once

#include "unit_fill.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

#if AOTI_UNITS == AOTI_MMA

#if AOTI_NVIDIA
// d = a b + c for a of 16 by 8, b of 8 by 8, TF32.
AOTI_INLINE void multiply_tf32(f32 (&d)[4], const u32 *a, const u32 *b, const f32 (&c)[4]) {
  __asm__("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
          : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
AOTI_INLINE u32 rounded_to_tf32(f32 x) {
  u32 rounded;
  __asm__("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return rounded;
}
AOTI_INLINE u32 load_word(u32 address) {
  u32 word;
  __asm__ volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}
#endif
// The parts of a few numbers: rounded to 11 bits, and what is left. The units ignore the bits below.
template <int N> AOTI_INLINE void split(const u32 (&x)[N], u32 (&high)[N], u32 (&low)[N]) {
  AOTI_UNROLL_TIMES(4)
  for (int i = 0; i < N; ++i) {
    high[i] = (x[i] + 0x1000u) & 0xffffe000u;
    f32 whole, part;
    __builtin_memcpy(&whole, &x[i], 4);
    __builtin_memcpy(&part, &high[i], 4);
    part = whole - part;
    __builtin_memcpy(&low[i], &part, 4);
  }
}
template <int N> AOTI_INLINE void round_to_tf32(u32 (&x)[N]) {
  AOTI_UNROLL_TIMES(4)
  for (int i = 0; i < N; ++i) {
    f32 whole;
    __builtin_memcpy(&whole, &x[i], 4);
    x[i] = rounded_to_tf32(whole);
  }
}

// The sums of one thread: warps lie two by two, or two by four in a large tile; in a small one slices of them share the depth.
template <bool Rounded, int Rows, int Columns, int Threads, class FillA, class FillB> struct SplitSums {
  static constexpr int kWarpsDown = 2, kWarpsAcross = Columns >= 128 ? 4 : 2;
  static constexpr int kWarps = kWarpsDown * kWarpsAcross, kSlices = Threads / 32 / kWarps;
  static constexpr int kWarpRows = Rows / kWarpsDown, kWarpColumns = Columns / kWarpsAcross;
  static constexpr int kDown = kWarpRows / 16, kAcross = kWarpColumns / 8, kOwnDepth = FillA::kDepth / kSlices;
  static_assert(kSlices * kWarps * 32 == Threads && kAcross % 2 == 0 && kOwnDepth % 8 == 0);
  f32 sums[kDown][kAcross][4];

  static AOTI_INLINE int warp() { return thread_index() / 32 % kWarps; }
  static AOTI_INLINE int slice() { return thread_index() / 32 / kWarps; }
  static AOTI_INLINE int row0() { return warp() % kWarpsDown * kWarpRows; }
  static AOTI_INLINE int column0() { return warp() / kWarpsDown * kWarpColumns; }
  AOTI_INLINE void clear() {
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < kDown; ++i)
      AOTI_UNROLL_TIMES(8)
      for (int j = 0; j < kAcross; ++j)
        AOTI_UNROLL_TIMES(4)
        for (int e = 0; e < 4; ++e) sums[i][j][e] = 0.0f;
  }
  // The bytes of one element.
  template <class Fill> static AOTI_INLINE u32 element(u32 piece, int outer, int depth) {
    return piece + Fill::offset(outer, depth) + u32((Fill::kByOuter ? outer : depth) % 4 * 4);
  }
  // Rows of 16 and depths of 8, as the units want them of the left operand.
  static AOTI_INLINE void load_left(u32 (&x)[4], u32 piece, int row, int depth) {
    const int lane = thread_index() % 32;
    if constexpr (FillA::kByOuter) {
      AOTI_UNROLL_TIMES(4)
      for (int e = 0; e < 4; ++e)
        x[e] = load_word(element<FillA>(piece, row + e % 2 * 8 + lane / 4, depth + e / 2 * 4 + lane % 4));
    } else {
      load_matrices<false>(x, piece + FillA::offset(row + lane % 16, depth + lane / 16 * 4));
    }
  }
  // Columns of 16 and depths of 8: of the first eight columns, then of the others.
  static AOTI_INLINE void load_right(u32 (&x)[4], u32 piece, int column, int depth) {
    const int lane = thread_index() % 32;
    if constexpr (FillB::kByOuter) {
      AOTI_UNROLL_TIMES(4)
      for (int e = 0; e < 4; ++e)
        x[e] = load_word(element<FillB>(piece, column + e / 2 * 8 + lane / 4, depth + e % 2 * 4 + lane % 4));
    } else {
      load_matrices<false>(x, piece + FillB::offset(column + lane / 16 * 8 + lane % 8, depth + lane / 8 % 2 * 4));
    }
  }
  AOTI_INLINE void multiply_piece(u32 a, u32 b) {
    if constexpr (Rounded)
      multiply_rounded(a, b);
    else
      multiply_split(a, b);
  }
  AOTI_INLINE void multiply_rounded(u32 a, u32 b) {
    AOTI_UNROLL_TIMES(4)
    for (int step = 0; step < kOwnDepth; step += 8) {
      const int d = slice() * kOwnDepth + step;
      u32 left[kDown][4];
      AOTI_UNROLL_TIMES(8)
      for (int i = 0; i < kDown; ++i) {
        load_left(left[i], a, row0() + i * 16, d);
        round_to_tf32(left[i]);
      }
      AOTI_UNROLL_TIMES(4)
      for (int j = 0; j < kAcross; j += 2) {
        u32 right[4];
        load_right(right, b, column0() + j * 8, d);
        round_to_tf32(right);
        AOTI_UNROLL_TIMES(8)
        for (int i = 0; i < kDown; ++i)
          AOTI_UNROLL_TIMES(2)
          for (int h = 0; h < 2; ++h) multiply_tf32(sums[i][j + h], left[i], right + h * 2, sums[i][j + h]);
      }
    }
  }
  AOTI_INLINE void multiply_split(u32 a, u32 b) {
    AOTI_UNROLL_TIMES(4)
    for (int step = 0; step < kOwnDepth; step += 8) {
      const int d = slice() * kOwnDepth + step;
      u32 high[kDown][4], low[kDown][4];
      AOTI_UNROLL_TIMES(8)
      for (int i = 0; i < kDown; ++i) {
        u32 x[4];
        load_left(x, a, row0() + i * 16, d);
        split(x, high[i], low[i]);
      }
      AOTI_UNROLL_TIMES(4)
      for (int j = 0; j < kAcross; j += 2) {
        u32 x[4], right_high[4], right_low[4];
        load_right(x, b, column0() + j * 8, d);
        split(x, right_high, right_low);
        AOTI_UNROLL_TIMES(8)
        for (int i = 0; i < kDown; ++i)
          AOTI_UNROLL_TIMES(2)
          for (int h = 0; h < 2; ++h) {
            f32 eight[4];
            multiply_tf32(eight, low[i], right_high + h * 2, {0.0f, 0.0f, 0.0f, 0.0f});
            multiply_tf32(eight, high[i], right_low + h * 2, eight);
            multiply_tf32(eight, high[i], right_high + h * 2, eight);
            AOTI_UNROLL_TIMES(4)
            for (int e = 0; e < 4; ++e) sums[i][j + h][e] += eight[e];
          }
      }
    }
  }
  AOTI_INLINE void finish() {}
  // Slices add their sums to those of the ones before, in turn.
  template <int> AOTI_INLINE void store(f32 *results, int) const {
    const int lane = thread_index() % 32;
    AOTI_UNROLL_TIMES(1)
    for (int turn = 0; turn < kSlices; ++turn) {
      if (turn > 0) barrier();
      if (turn != slice()) continue;
      AOTI_UNROLL_TIMES(8)
      for (int i = 0; i < kDown; ++i)
        AOTI_UNROLL_TIMES(8)
        for (int j = 0; j < kAcross; ++j)
          AOTI_UNROLL_TIMES(2)
          for (int h = 0; h < 2; ++h) {
            const int row = row0() + i * 16 + h * 8 + lane / 4, column = column0() + j * 8 + lane % 4 * 2;
            f32 pair[2] = {sums[i][j][h * 2], sums[i][j][h * 2 + 1]};
            if (turn > 0) {
              const f32 *const before = results + row * (Columns + kResultPad) + column;
              pair[0] += before[0], pair[1] += before[1];
            }
            store_pair<Columns>(results, row, column, pair);
          }
    }
  }
};

#endif

// Infinities have no parts, and neither has what rounds to one: sums that are not finite are added up again, without units.
template <int Lanes, class I, class A, class B>
AOTI_INLINE void correct_split_sums(I row, I column, I m, I n, I k, const A &a, const B &b, f32 *sums) {
  bool is_finite = true;
  AOTI_UNROLL_TIMES(4)
  for (int i = 0; i < Lanes; ++i) is_finite = is_finite && __builtin_fabsf(sums[i]) <= 3.402823466e38f;
  if (is_finite || row >= m) return;
  const auto from_a = a.position(row, m);
  AOTI_UNROLL_TIMES(1)
  for (int i = 0; i < Lanes && column + i < n; ++i) {
    const auto from_b = b.position(I(column + i), n);
    f32 sum = 0.0f;
    AOTI_UNROLL_TIMES(1)
    for (I d = 0; d < k; ++d) sum = scalar_fma(a.one(from_a, d), b.one(from_b, d), sum);
    sums[i] = sum;
  }
}

} // namespace detail

AOTI_NAMESPACE_END
