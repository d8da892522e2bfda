// Convolution of f32 images whose channels are last by kernels of 3 x 3 taps with stride 1, in 16 products where taps one by
// one take 36: Winograd's minimal filtering F(2x2, 3x3), as Lavin and Gray use it ("Fast Algorithms for Convolutional Neural
// Networks"). Results leave only through the caller's epilogue.
//
// Output pixels are computed in *tiles* of 2 x 2, each from 4 x 4 input pixels d: B^T d B is 16 numbers for each channel, its
// *points*. At each point, all tiles are the rows of one matrix product with the weights of that point, and A^T m A of the
// 16 results of a tile is its four output pixels. Transforms are sums and differences only, so sums are about as exact as
// tap by tap, and an element that is not finite reaches just the outputs whose windows it lies in.
//
// Packed weights are [point][ceil(OC / kPanel)][IC][kPanel], channels past OC zero; `codegen/pack.rs` writes them. Tiles lie
// alike in every image, so that results depend neither on the batch nor on the split.
#pragma once

#include "pixels.h"

AOTI_NAMESPACE_BEGIN
namespace detail {

// Tiles of a work unit: whole register tiles of rows.
constexpr i64 kWinogradTiles = 28;
constexpr i64 kWinogradPoints = 16;

// What follows from a shape.
struct WinogradPlan {
  i64 rows, columns, tiles;  // of an image, and of the batch
  i64 groups;                // of output channels
  i64 pitch;                 // floats from a tile's channels to the next tile's
};

// Tiles a page apart would share a cache set.
AOTI_INLINE i64 winograd_pitch(i64 channels) {
  const i64 pitch = round_up(channels, 16);
  return pitch % 256 == 0 ? pitch + 16 : pitch;
}

AOTI_INLINE WinogradPlan winograd_plan(const ConvShape &s) {
  const i64 rows = ceil_div(s.out[1], 2), columns = ceil_div(s.out[2], 2);
  return {rows, columns, s.batch * rows * columns, ceil_div(s.out_channels, kPixelColumns), winograd_pitch(s.in_channels)};
}

AOTI_INLINE void fetch(const f32 *p, TileVector &to) { to = load_tile_vector(p); }
AOTI_INLINE void fetch(const f32 *p, f32 &to) { to = *p; }
AOTI_INLINE void put(f32 *p, TileVector v) { store_tile_vector(p, v); }
AOTI_INLINE void put(f32 *p, f32 v) { *p = v; }

// The points of channels from `c` on of one tile, `step` floats apart.
template <class T> AOTI_INLINE void winograd_points(const f32 *const *from, i64 c, f32 *to, i64 step) {
  T d[4][4];
  AOTI_UNROLL for (int j = 0; j < 4; ++j) {
    T a, b, e, f;
    fetch(from[j] + c, a), fetch(from[4 + j] + c, b), fetch(from[8 + j] + c, e), fetch(from[12 + j] + c, f);
    d[0][j] = a - e, d[1][j] = b + e, d[2][j] = e - b, d[3][j] = b - f;
  }
  AOTI_UNROLL for (int i = 0; i < 4; ++i) {
    f32 *row = to + 4 * i * step;
    put(row, d[i][0] - d[i][2]), put(row + step, d[i][1] + d[i][2]);
    put(row + 2 * step, d[i][2] - d[i][1]), put(row + 3 * step, d[i][1] - d[i][3]);
  }
}

// All channels of one tile, whose 16 pixels are at `from`.
AOTI_NOINLINE void winograd_tile(const f32 *const *from, i64 channels, f32 *to, i64 step) {
  i64 c = 0;
  for (; c + kLanes <= channels; c += kLanes) winograd_points<TileVector>(from, c, to + c, step);
  for (; c < channels; ++c) winograd_points<f32>(from, c, to + c, step);
}

// Tiles [first, first + count): points[point][tile][channel]. Pixels beside the image are `zeros`.
AOTI_NOINLINE void winograd_inputs(const ConvShape &s, const WinogradPlan &p, i64 first, i64 count, const f32 *x,
                                   const f32 *zeros, f32 *points) {
  for (i64 t = 0; t < count; ++t) {
    const i64 row = (first + t) / p.columns, column = (first + t) % p.columns;
    const i64 h = row % p.rows * 2 - s.padding[1], w = column * 2 - s.padding[2];
    const f32 *image = x + row / p.rows * s.in[1] * s.in[2] * s.in_channels, *from[kWinogradPoints];
    for (i64 i = 0; i < 4; ++i)
      for (i64 j = 0; j < 4; ++j) {
        const bool inside = u64(h + i) < u64(s.in[1]) && u64(w + j) < u64(s.in[2]);
        from[4 * i + j] = inside ? image + ((h + i) * s.in[2] + w + j) * s.in_channels : zeros;
      }
    winograd_tile(from, s.in_channels, points + t * p.pitch, kWinogradTiles * p.pitch);
  }
}

// Sums over the input channels at every point: sums[point][tile][kPixelColumns], of `width` output channels.
AOTI_NOINLINE void winograd_products(const ConvShape &s, const WinogradPlan &p, i64 count, const f32 *points,
                                     const f32 *weights, i64 width, f32 *sums) {
  PixelPlan one;
  one.runs = 1, one.run = s.in_channels, one.step = p.pitch, one.offsets[0] = 0;
  const i64 panel = s.in_channels * kPanel, of_point = ceil_div(s.out_channels, kPanel) * panel;
  for (i64 point = 0; point < kWinogradPoints; ++point, weights += of_point)
    for (i64 at = 0; at < count;) {
      const int rows = pixel_rows(count - at);
      const f32 *from = points + (point * kWinogradTiles + at) * p.pitch;
      f32 *to = sums + (point * kWinogradTiles + at) * kPixelColumns;
      for (i64 c = 0; c < width;) {
        const f32 *w = weights + c / kPanel * panel + c % kPanel;
        c += pixel_tile(one, rows, ceil_div(width - c, kLanes), from, w, panel, to + c) * kLanes;
      }
      at += rows;
    }
}

// The four pixels of a tile from its sums, whose points are `step` floats apart: pixels[pixel][kPixelColumns].
AOTI_NOINLINE void winograd_pixels(const f32 *sums, i64 step, i64 width, f32 *pixels) {
  for (i64 c = 0; c < width; c += kLanes) {
    TileVector even[4], odd[4];
    AOTI_UNROLL for (int j = 0; j < 4; ++j) {
      const f32 *at = sums + j * step + c;
      const TileVector a = load_tile_vector(at), b = load_tile_vector(at + 4 * step);
      const TileVector e = load_tile_vector(at + 8 * step), f = load_tile_vector(at + 12 * step);
      even[j] = a + b + e, odd[j] = b - e - f;
    }
    store_tile_vector(pixels + c, even[0] + even[1] + even[2]);
    store_tile_vector(pixels + kPixelColumns + c, even[1] - even[2] - even[3]);
    store_tile_vector(pixels + 2 * kPixelColumns + c, odd[0] + odd[1] + odd[2]);
    store_tile_vector(pixels + 3 * kPixelColumns + c, odd[1] - odd[2] - odd[3]);
  }
}

} // namespace detail

// Scratch of one `conv_winograd` call.
AOTI_INLINE i64 conv_winograd_scratch_bytes(const ConvShape &s) {
  using namespace detail;
  const i64 pitch = winograd_pitch(s.in_channels);
  return (kWinogradPoints * kWinogradTiles * (pitch + kPixelColumns) + pitch) * 4;
}

// Work units: blocks of tiles by groups of output channels.
AOTI_INLINE i64 conv_winograd_units(const ConvShape &s) {
  const detail::WinogradPlan p = detail::winograd_plan(s);
  return ceil_div(p.tiles, detail::kWinogradTiles) * p.groups;
}

// Units [u0, u1) of a convolution of images without groups, strides or dilations, of 3 x 3 taps. `scratch`: 64-byte aligned,
// one per concurrent call. The epilogue is called as by `conv_pixels`.
template <class Epilogue>
AOTI_INLINE void conv_winograd(const ConvShape &s, i64 u0, i64 u1, const f32 *x, const f32 *weights, void *scratch,
                               Epilogue &&epilogue) {
  using namespace detail;
  const WinogradPlan p = winograd_plan(s);
  f32 *const points = (f32 *)scratch, *const sums = points + kWinogradPoints * kWinogradTiles * p.pitch;
  f32 *const zeros = sums + kWinogradPoints * kWinogradTiles * kPixelColumns;
  alignas(64) f32 pixels[4 * kPixelColumns];
  if (u0 < u1) zero_floats(zeros, s.in_channels);
  for (i64 u = u0, filled = -1; u < u1; ++u) {
    const i64 first = u / p.groups * kWinogradTiles, count = min_i64(p.tiles - first, kWinogradTiles);
    const i64 channel = u % p.groups * kPixelColumns, width = min_i64(s.out_channels - channel, kPixelColumns);
    // Neighbouring units have the tiles in common.
    if (filled != first) winograd_inputs(s, p, first, count, x, zeros, points), filled = first;
    winograd_products(s, p, count, points, weights + channel * s.in_channels, width, sums);
    for (i64 t = 0; t < count; ++t) {
      winograd_pixels(sums + t * kPixelColumns, kWinogradTiles * kPixelColumns, width, pixels);
      const i64 row = (first + t) / p.columns, column = (first + t) % p.columns;
      for (i64 i = 0; i < 4; ++i) {
        const i64 h = row % p.rows * 2 + i / 2, w = column * 2 + i % 2;
        if (h < s.out[1] && w < s.out[2])
          for_each_vector(pixels + i * kPixelColumns, width, [&](i64 c, auto lanes, auto of_lanes)
                              __attribute__((always_inline)) {
            epilogue(row / p.rows, channel + c, h * s.out[2] + w, lanes, of_lanes);
          });
      }
    }
  }
}

AOTI_NAMESPACE_END
