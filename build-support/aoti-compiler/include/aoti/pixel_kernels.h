// The register tiles of `conv_pixels`: sums of some output pixels by some vectors of output channels, of floats or words.
#pragma once

#include "bytes.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// A word of a tile whose words are split (`split_words`).
enum WordHalf : i32 {};
#if AOTI_WORD_PRODUCTS
// A word of a tile whose words are multiplied by the instruction for them.
enum WholeWord : i32 {};
#endif

// Output channels of a work unit, and the most output pixels.
constexpr int kPixelColumns = 2 * kPanel;
constexpr i64 kPixelsOfUnit = 112;
#if AOTI_AVX512
constexpr int kPixelRows = 14, kPartRows = 7;
#elif AOTI_AVX2 || AOTI_AARCH64
constexpr int kPixelRows = 6, kPartRows = 6;
#else
constexpr int kPixelRows = 4, kPartRows = 4;
#endif
// Words from the halves at even places to those at odd ones.
constexpr i64 kOddHalves = kPixelRows * kSplitWords;

// Vectors of channels that tiles of the most pixels have, those of two pixels, and those of one.
#if AOTI_AARCH64
constexpr int kTileVectors = 4, kPixelVectors = 8, kOnePixelVectors = 8;
#elif AOTI_AVX2 && !AOTI_AVX512
constexpr int kTileVectors = 2, kPixelVectors = 4, kOnePixelVectors = 8;
#else
constexpr int kTileVectors = 2, kPixelVectors = 4, kOnePixelVectors = 4;
#endif

// One chain for Rows pixels by Vectors vectors of channels: tile[row][kPixelColumns] is its sum, or is added to. `runs`
// runs of `run` floats each.
template <int Rows, int Vectors>
AOTI_NOINLINE AOTI_CONTRACT void pixel_kernel(const i64 *offsets, i64 runs, i64 run, const f32 *x, i64 step, const f32 *weights,
                                              i64 panel, bool add, f32 *tile) {
  AOTI_CONTRACT_BODY
  constexpr int of_panel = kPanel / kLanes;
  TileVector sum[Rows][Vectors];
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < Vectors; ++v) sum[r][v] = TileVector{};
  for (i64 i = 0; i < runs; ++i) {
    const f32 *a = x + offsets[i];
    for (i64 k = 0; k < run; ++k) {
      TileVector w[Vectors];
      AOTI_UNROLL for (int v = 0; v < Vectors; ++v) w[v] =
          load_tile_vector(weights + v / of_panel * panel + v % of_panel * kLanes);
      if constexpr (Rows > 1)
        AOTI_UNROLL for (int v = 0; v < Vectors; ++v)
            ask_for(weights + kRowsAhead * kPanel + v / of_panel * panel + v % of_panel * kLanes);
      AOTI_UNROLL for (int r = 0; r < Rows; ++r) {
        f32 value = a[r * step];
        AOTI_UNROLL for (int v = 0; v < Vectors; ++v) sum[r][v] += w[v] * value;
      }
      ++a;
      weights += kPanel;
    }
  }
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < Vectors; ++v) {
    f32 *to = tile + r * kPixelColumns + v * kLanes;
    store_tile_vector(to, add ? load_tile_vector(to) + sum[r][v] : sum[r][v]);
  }
}

// Of words: sums that are done.
template <int Rows, int Vectors, class Sums> AOTI_INLINE void store_word_pixels(const Sums &sums, bool add, i32 *tile) {
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < Vectors; ++v) {
    i32 *to = tile + r * kPixelColumns + v * kLanes;
    store_tile_vector(to, add ? load_tile_vector(to) + sums.total(r, v) : sums.total(r, v));
  }
}

// The same for words that are split, in one run: `x` has the halves at even places, those at odd ones are `kOddHalves` further
// on.
template <int Rows, int Vectors>
AOTI_NOINLINE void pixel_kernel(const i64 *, i64, i64 run, const WordHalf *x, i64 step, const WordHalf *weights, i64 panel,
                                bool add, WordHalf *tile) {
  constexpr int of_panel = kPanel / kLanes;
  HalfSums<Rows, Vectors> sums;
  sums.add(run, (const i32 *)x, (const i32 *)x + kOddHalves, step, [=](i64 i, int v) AOTI_LAMBDA {
    return (const i32 *)weights + i * kPanel + v / of_panel * panel + v % of_panel * kLanes;
  });
  store_word_pixels<Rows, Vectors>(sums, add, (i32 *)tile);
}

#if AOTI_WORD_PRODUCTS
// The same for words as they are.
template <int Rows, int Vectors>
AOTI_NOINLINE AOTI_USES_WORDS void pixel_kernel(const i64 *offsets, i64 runs, i64 run, const WholeWord *x, i64 step,
                                                const WholeWord *of, i64 panel, bool add, WholeWord *tile) {
  constexpr int of_panel = kPanel / kLanes;
  const i32 *weights = (const i32 *)of;
  WordSums<Rows, Vectors> sums;
  for (i64 i = 0; i < runs; ++i) {
    const i32 *a = (const i32 *)x + offsets[i];
    for (i64 k = 0; k < run; ++k) {
      WordVector w[Vectors];
      AOTI_UNROLL for (int v = 0; v < Vectors; ++v) {
        const i32 *from = weights + v / of_panel * panel + v % of_panel * kLanes;
        w[v] = load_tile_vector(from);
        if constexpr (Rows > 1) ask_for(from + kRowsAhead * kPanel);
      }
      sums.add(a, step, w);
      ++a;
      weights += kPanel;
    }
  }
  store_word_pixels<Rows, Vectors>(sums, add, (i32 *)tile);
}
#endif

#if AOTI_AVX512
// The same for half a vector of channels, behind a whole one or alone: many processors multiply twice as many halves in the
// same time. A single pixel takes as long as one sum does, and is left to whole vectors.
template <int Rows, bool Behind>
AOTI_NOINLINE AOTI_CONTRACT void half_pixel_kernel(const i64 *offsets, i64 runs, i64 run, const f32 *x, i64 step,
                                                   const f32 *weights, bool add, f32 *tile) {
  AOTI_CONTRACT_BODY
  typedef f32 Half __attribute__((vector_size(AOTI_VECTOR_BYTES / 2)));
  typedef f32 Unaligned __attribute__((vector_size(AOTI_VECTOR_BYTES / 2), aligned(4), may_alias));
  constexpr int whole = Behind ? kLanes : 0;
  TileVector sum[Rows];
  Half half[Rows];
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) sum[r] = TileVector{}, half[r] = Half{};
  for (i64 i = 0; i < runs; ++i) {
    const f32 *a = x + offsets[i];
    for (i64 k = 0; k < run; ++k) {
      const TileVector w = Behind ? load_tile_vector(weights) : TileVector{};
      const Half w_half = *(const Unaligned *)(weights + whole);
      if constexpr (Behind) ask_for(weights + kRowsAhead * kPanel);
      AOTI_UNROLL for (int r = 0; r < Rows; ++r) {
        const f32 value = a[r * step];
        if constexpr (Behind) sum[r] += w * value;
        half[r] += w_half * value;
      }
      ++a;
      weights += kPanel;
    }
  }
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) {
    f32 *to = tile + r * kPixelColumns;
    if constexpr (Behind) store_tile_vector(to, add ? load_tile_vector(to) + sum[r] : sum[r]);
    Unaligned *to_half = (Unaligned *)(to + whole);
    *to_half = add ? *to_half + half[r] : half[r];
  }
}
// Of words, half a vector takes as long as a whole one.
template <int Rows, bool Behind, class S>
AOTI_INLINE void half_pixel_kernel(const i64 *offsets, i64 runs, i64 run, const S *x, i64 step, const S *weights, bool add,
                                   S *tile) {
  pixel_kernel<Rows, Behind ? 2 : 1>(offsets, runs, run, x, step, weights, 0, add, tile);
}
#endif

} // namespace detail

AOTI_NAMESPACE_END
