// What the contraction kernels of one CPU level share: register block sizes, unaligned vector access, and the walk over
// a finished tile that hands its vectors to an epilogue. Knows nothing of what a tile holds or where results go.
//
// Micro-kernels are ordinary functions that write a tile of sums to a small buffer, still in L1 when the epilogue reads
// it: one micro-kernel serves every layer of a translation unit, and only the short epilogue walk is compiled per layer.
#pragma once

#include "base.h"
#include "lanes.h"

// Complete unrolling of loops over registers.
#if defined(__clang__)
#define AOTI_UNROLL _Pragma("clang loop unroll(full)")
#define AOTI_CONTRACT
#define AOTI_CONTRACT_BODY _Pragma("clang fp contract(fast)")
#else
#define AOTI_UNROLL _Pragma("GCC unroll 64")
// Products feed sums through one fused instruction whatever -ffp-contract says: that is the kernels' documented sum.
#if defined(__aarch64__)
// Blocks use 28 of the 32 registers. Scheduling before registers are given out loads the factors of all rows first, and
// sums then go through memory in every step.
#define AOTI_CONTRACT __attribute__((optimize("fp-contract=fast", "no-schedule-insns")))
#else
#define AOTI_CONTRACT __attribute__((optimize("fp-contract=fast")))
#endif
#define AOTI_CONTRACT_BODY
#endif

// Functions whose plain loops of run-time length should become vector code, which gcc's -O2 leaves alone.
#if defined(__clang__)
#define AOTI_VECTORIZE
#else
#define AOTI_VECTORIZE __attribute__((optimize("O3")))
#endif

AOTI_NAMESPACE_BEGIN

// Bytes of a row of a packed panel of B. One blob of weights serves every CPU level, so this is the same for all of them; and
// so register blocks count the same vectors, whatever the element type.
constexpr int kPanelBytes = 128;
// Its columns, of numbers of a type and of floats.
template <class S> constexpr int kPanelOf = kPanelBytes / int(sizeof(S));
constexpr int kPanel = kPanelOf<f32>;
// Output channels of a packed panel of convolution weights; the same for all levels, as above.
constexpr int kConvRows = 8;
// Numbers of a type, and floats, of a vector register.
template <class S> constexpr int kLanesOf = AOTI_VECTOR_BYTES / int(sizeof(S));
constexpr int kLanes = AOTI_LANES;
// Products in one chain of multiply-adds. A longer sum is the sum of its chains, in order: rounding errors grow with the
// length of a chain and the number of chains, not with their product (Higham, "The Accuracy of Floating Point Summation").
constexpr i64 kChain = 1024;

// The types that products are added up in, each with its vectors.
template <class S> struct TileTypes;
template <> struct TileTypes<f32> {
  typedef f32 Vector __attribute__((vector_size(AOTI_VECTOR_BYTES)));
  typedef f32 Unaligned __attribute__((vector_size(AOTI_VECTOR_BYTES), aligned(4), may_alias));
  typedef f32 Block __attribute__((vector_size(16), aligned(4), may_alias));
};
template <> struct TileTypes<f64> {
  typedef f64 Vector __attribute__((vector_size(AOTI_VECTOR_BYTES)));
  typedef f64 Unaligned __attribute__((vector_size(AOTI_VECTOR_BYTES), aligned(8), may_alias));
  typedef f64 Block __attribute__((vector_size(16), aligned(8), may_alias));
};
// Of words: four numbers of one byte each (`bytes.h`).
template <> struct TileTypes<i32> {
  typedef i32 Vector __attribute__((vector_size(AOTI_VECTOR_BYTES)));
  typedef i32 Unaligned __attribute__((vector_size(AOTI_VECTOR_BYTES), aligned(1), may_alias));
};
template <class S> using TileVectorOf = typename TileTypes<S>::Vector;
using TileVector = TileVectorOf<f32>;
// The one for products of elements of a type.
template <class T> using TileSum = conditional<is_same<T, f64> || is_same<T, i32>, T, f32>;

template <class S> AOTI_INLINE TileVectorOf<S> load_tile_vector(const S *p) {
  return *(const typename TileTypes<S>::Unaligned *)p;
}
template <class S> AOTI_INLINE void store_tile_vector(S *p, TileVectorOf<S> v) {
  *(typename TileTypes<S>::Unaligned *)p = v;
}
// Rows of a panel that are asked for before they are needed: weights come from far away once in each run, and tiles of many
// rows read them more slowly than a processor thinks worth going ahead for.
constexpr i64 kRowsAhead = 64;
AOTI_INLINE void ask_for(const void *p) { __builtin_prefetch(p, 0, 3); }
// tile[r][c] += chain[r][c] for `width` columns, rounded up to vectors, of rows of `pitch` numbers.
template <class S> AOTI_INLINE void add_chain(S *tile, const S *chain, int rows, i64 width, i64 pitch) {
  for (int r = 0; r < rows; ++r, tile += pitch, chain += pitch)
    for (i64 c = 0; c < width; c += kLanesOf<S>)
      store_tile_vector(tile + c, load_tile_vector(tile + c) + load_tile_vector(chain + c));
}

using FourFloats = TileTypes<f32>::Block;

// Four rows of four, transposed.
AOTI_INLINE void transpose_4x4(const f32 *from, i64 from_stride, f32 *to, i64 to_stride) {
  using Four = FourFloats;
  Four a = *(const Four *)from, b = *(const Four *)(from + from_stride);
  Four c = *(const Four *)(from + 2 * from_stride), d = *(const Four *)(from + 3 * from_stride);
  Four ab_lo = shuffled<0, 4, 1, 5>(a, b), ab_hi = shuffled<2, 6, 3, 7>(a, b);
  Four cd_lo = shuffled<0, 4, 1, 5>(c, d), cd_hi = shuffled<2, 6, 3, 7>(c, d);
  *(Four *)to = shuffled<0, 1, 4, 5>(ab_lo, cd_lo);
  *(Four *)(to + to_stride) = shuffled<2, 3, 6, 7>(ab_lo, cd_lo);
  *(Four *)(to + 2 * to_stride) = shuffled<0, 1, 4, 5>(ab_hi, cd_hi);
  *(Four *)(to + 3 * to_stride) = shuffled<2, 3, 6, 7>(ab_hi, cd_hi);
}

// Rows and columns of a block that is transposed in registers of 16 bytes.
template <class S> constexpr int kBlock = 16 / int(sizeof(S));
AOTI_INLINE void transpose_block(const f32 *from, i64 from_stride, f32 *to, i64 to_stride) {
  transpose_4x4(from, from_stride, to, to_stride);
}
AOTI_INLINE void transpose_block(const i32 *from, i64 from_stride, i32 *to, i64 to_stride) {
  transpose_4x4((const f32 *)from, from_stride, (f32 *)to, to_stride);
}
AOTI_INLINE void transpose_block(const f64 *from, i64 from_stride, f64 *to, i64 to_stride) {
  using Two = TileTypes<f64>::Block;
  Two a = *(const Two *)from, b = *(const Two *)(from + from_stride);
  *(Two *)to = shuffled<0, 2>(a, b);
  *(Two *)(to + to_stride) = shuffled<1, 3>(a, b);
}

// memcpy and memset for rows that are often shorter than a call costs. Nothing outside the n floats is touched.
AOTI_INLINE void copy_floats(f32 *to, const f32 *from, i64 n) {
  i64 i = 0;
  if (n >= kLanes) {
    for (; i + kLanes <= n; i += kLanes) store_tile_vector(to + i, load_tile_vector(from + i));
    if (i < n) store_tile_vector(to + n - kLanes, load_tile_vector(from + n - kLanes));
  } else if (n >= 4) {
    for (; i + 4 <= n; i += 4) *(FourFloats *)(to + i) = *(const FourFloats *)(from + i);
    if (i < n) *(FourFloats *)(to + n - 4) = *(const FourFloats *)(from + n - 4);
  } else {
    if (n > 0) to[0] = from[0];
    if (n > 1) to[1] = from[1];
    if (n > 2) to[2] = from[2];
  }
}
AOTI_NOINLINE void zero_floats(f32 *to, i64 n) {
  i64 i = 0;
  for (; i + kLanes <= n; i += kLanes) store_tile_vector(to + i, TileVector{});
  for (; i + 4 <= n; i += 4) *(FourFloats *)(to + i) = FourFloats{};
  if (n - i > 0) to[i] = 0;
  if (n - i > 1) to[i + 1] = 0;
  if (n - i > 2) to[i + 2] = 0;
}
// Every second float, n of them.
template <int... I> AOTI_INLINE TileVector even_lanes(Indices<I...>, const f32 *from) {
  return shuffled<(2 * I)...>(load_tile_vector(from), load_tile_vector(from + kLanes));
}
AOTI_INLINE void copy_every_second(f32 *to, const f32 *from, i64 n) {
  i64 i = 0;
  // A vector reads one float more than it needs, which must not be the one past the end.
  for (; i + kLanes < n; i += kLanes) store_tile_vector(to + i, even_lanes(indices<kLanes>{}, from + 2 * i));
  for (; i + 4 < n; i += 4) {
    FourFloats a = *(const FourFloats *)(from + 2 * i), b = *(const FourFloats *)(from + 2 * i + 4);
    *(FourFloats *)(to + i) = shuffled<0, 2, 4, 6>(a, b);
  }
  for (; i < n; ++i) to[i] = from[2 * i];
}


// An element widened to the type that sums are kept in.
template <class Sum, class T> AOTI_INLINE Sum widen(T x) {
  if constexpr (is_narrow<T>)
    return Sum(to_f32(x));
  else
    return Sum(x);
}

// W sums of a row.
template <int W, class S> AOTI_INLINE Vec<S, W> load_sums(const S *row) {
  if constexpr (W > kLanesOf<S>)
    return {load_sums<W / 2>(row), load_sums<W / 2>(row + W / 2)};
  else
    return {load_tile_vector(row)};
}
// Calls `sink(column, lanes, sums)` for the first `width` columns of one tile row, as many at a time as a vector has floats.
template <class S, class Sink> AOTI_INLINE void for_each_vector(const S *row, i64 width, Sink &&sink) {
  i64 c = 0;
  for (; c + kLanes <= width; c += kLanes) sink(c, Full<kLanes>{}, load_sums<kLanes>(row + c));
  if (c < width) sink(c, Tail<kLanes>{int(width - c)}, load_sums<kLanes>(row + c));
}

AOTI_NAMESPACE_END
