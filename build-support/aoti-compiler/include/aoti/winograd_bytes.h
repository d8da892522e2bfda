// As `winograd.h`, of bytes: unsigned ones times signed weights, exactly, on processors that have no instruction for words of bytes
// (`bytes.h`); others take words tap by tap, as `pixels.h` does. The former multiply numbers of 16 bits, which have room for points:
// of a tile's pixels up to 4 * 255, and of weights up to 9 * 128, as G is taken twice, {2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}, so
// that all points are integers. A pixel is a quarter of what leaves A^T m A; that it fits 32 bits bounds the number of channels, and
// sums on the way may wrap around.
//
// Neighbouring channels are a *pair*. Weights at their points are [point][ceil(OC / kPanel)][IC / 2][kPanel] pairs, channels past OC
// zero. `expand.h` makes them, or has words in their place, when a model is created; a head says which (`WordForm`).
#pragma once

#include "winograd.h"

AOTI_NAMESPACE_BEGIN
namespace detail {

// Tiles of a work unit at most, and rows and vectors of a register tile.
constexpr i64 kWinogradByteTiles = 54;
constexpr int kPairRows = 6, kPairVectors = 2;

// Numbers of 16 bits from a tile's channels to the next tile's. Tiles a page apart would share a cache set.
AOTI_INLINE i64 winograd_byte_pitch(i64 channels) {
  const i64 pitch = round_up(channels, 32);
  return pitch % 128 == 0 ? pitch + 32 : pitch;
}

AOTI_INLINE WinogradPlan winograd_byte_plan(const ConvShape &s) {
  WinogradPlan p = winograd_plan(s);
  p.pitch = winograd_byte_pitch(s.in_channels);
  return p;
}

// Tiles of a work unit: about as many in all of them, in whole register tiles.
AOTI_INLINE i64 winograd_byte_tiles(const WinogradPlan &p) {
  const i64 units = max_i64(ceil_div(p.tiles, kWinogradByteTiles), 1);
  return max_i64(round_up(ceil_div(p.tiles, units), kPairRows), kPairRows);
}

// Sums of `count` pairs for Rows rows, `step` pairs apart: sums[row][kPixelColumns].
template <int Rows>
AOTI_NOINLINE void pair_kernel(i64 count, const i32 *x, i64 step, const i32 *weights, i32 *sums) {
  WordVector sum[Rows][kPairVectors];
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < kPairVectors; ++v) sum[r][v] = WordVector{};
  for (i64 k = 0; k < count; ++k, weights += kPanel) {
    WordHalves w[kPairVectors];
    AOTI_UNROLL for (int v = 0; v < kPairVectors; ++v) w[v] = (WordHalves)load_tile_vector(weights + v * kLanes);
    AOTI_UNROLL for (int r = 0; r < Rows; ++r) {
      const WordHalves pair = (WordHalves)word_everywhere(x[r * step + k]);
      AOTI_UNROLL for (int v = 0; v < kPairVectors; ++v) sum[r][v] += signed_pair_products(pair, w[v]);
    }
  }
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < kPairVectors; ++v)
      store_tile_vector(sums + r * kPixelColumns + v * kLanes, sum[r][v]);
}

AOTI_NOINLINE void pair_tile(i64 rows, i64 count, const i32 *x, i64 step, const i32 *weights, i32 *sums) {
  switch (rows) {
  case 1: return pair_kernel<1>(count, x, step, weights, sums);
  case 2: return pair_kernel<2>(count, x, step, weights, sums);
  case 3: return pair_kernel<3>(count, x, step, weights, sums);
  case 4: return pair_kernel<4>(count, x, step, weights, sums);
  case 5: return pair_kernel<5>(count, x, step, weights, sums);
  default: return pair_kernel<kPairRows>(count, x, step, weights, sums);
  }
}

// Sums over the input channels at every point: sums[point][tile][kPixelColumns], of `width` output channels. The weights of some
// columns stay in the nearest cache while tiles go past.
AOTI_NOINLINE void winograd_byte_products(const ConvShape &s, const WinogradPlan &p, i64 tiles, i64 count, const i16 *points,
                                          const i32 *weights, i64 width, i32 *sums) {
  const i64 pairs = s.in_channels / 2, step = p.pitch / 2;
  const i64 panel = pairs * kPanel, of_point = ceil_div(s.out_channels, kPanel) * panel;
  for (i64 point = 0; point < kWinogradPoints; ++point, weights += of_point) {
    const i32 *from = (const i32 *)(points + point * tiles * p.pitch);
    i32 *to = sums + point * tiles * kPixelColumns;
    for (i64 c = 0; c < width; c += kPairVectors * kLanes) {
      const i32 *w = weights + c / kPanel * panel + c % kPanel;
      for (i64 at = 0; at < count; at += kPairRows)
        pair_tile(min_i64(count - at, kPairRows), pairs, from + at * step, step, w, to + at * kPixelColumns + c);
    }
  }
}

} // namespace detail

// Scratch of one `conv_winograd_bytes` call.
AOTI_INLINE i64 conv_winograd_bytes_scratch_bytes(const ConvShape &s) {
  using namespace detail;
  const i64 pitch = winograd_byte_pitch(s.in_channels);
  return kWinogradPoints * kWinogradByteTiles * (2 * pitch + 4 * kPixelColumns) + round_up(s.in_channels, 64);
}

// The sizes in words.
AOTI_INLINE ConvShape shape_in_words(const ConvShape &s) {
  ConvShape words = s;
  words.in_channels = s.in_channels / 4;
  return words;
}

// Work units: blocks of tiles by groups of output channels, or those of words.
AOTI_INLINE i64 conv_winograd_bytes_units(const ConvShape &s, const i32 *weights) {
  if (*weights == detail::kWordsThemselves) return conv_pixels_units(shape_in_words(s), ChannelOrder::Last);
  const detail::WinogradPlan p = detail::winograd_byte_plan(s);
  return ceil_div(p.tiles, detail::winograd_byte_tiles(p)) * p.groups;
}

// Units [u0, u1) of a convolution of images without groups, strides, dilations or padding, of 3 x 3 taps, with channels last, a
// multiple of four, of which no page is full. `scratch`: 64-byte aligned, one per concurrent call. The epilogue is called as by
// `conv_pixels`, and Shape is what is known of words.
template <class Shape = PixelShape<>, class Epilogue>
AOTI_INLINE void conv_winograd_bytes(const ConvShape &s, i64 u0, i64 u1, const u8 *x, const i32 *weights, void *scratch,
                                     Epilogue epilogue) {
  using namespace detail;
  if (*weights == kWordsThemselves)
    return conv_pixels<ConvOnce::Larger, Shape>(shape_in_words(s), ChannelOrder::Last, u0, u1, (const i32 *)x,
                                                weights + kFormHead, nullptr, epilogue);
  weights += kFormHead;
  const WinogradPlan p = winograd_byte_plan(s);
  const i64 tiles = winograd_byte_tiles(p), pairs = s.in_channels / 2;
  const WinogradSource<u8> from{x, s.in[1], s.in[2], s.in_channels, 0, 0};
  i32 *const sums = (i32 *)scratch;
  i16 *const points = (i16 *)(sums + kWinogradPoints * tiles * kPixelColumns);
  u8 *const beside = (u8 *)(points + kWinogradPoints * tiles * p.pitch);
  if (u0 < u1) __builtin_memset(beside, 0, size_t(s.in_channels));
  for (i64 u = u0, filled = -1; u < u1; ++u) {
    const i64 first = u / p.groups * tiles, count = min_i64(p.tiles - first, tiles);
    const i64 channel = u % p.groups * kPixelColumns, width = min_i64(s.out_channels - channel, kPixelColumns);
    // Neighbouring units have the tiles in common.
    if (filled != first)
      winograd_inputs<WordHalves>(s.in_channels, p, from, first, count, beside, points, tiles), filled = first;
    winograd_byte_products(s, p, tiles, count, points, weights + channel * pairs, width, sums);
    for (i64 t = 0; t < count;) {
      const i64 of_row = min_i64(count - t, p.columns - (first + t) % p.columns);
      winograd_tiles_out(s, p, first + t, of_row, channel, width, sums + t * kPixelColumns, tiles * kPixelColumns, epilogue);
      t += of_row;
    }
  }
}

AOTI_NAMESPACE_END
