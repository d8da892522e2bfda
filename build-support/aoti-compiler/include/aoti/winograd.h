// Convolution of f32 images by kernels of 3 x 3 taps with stride 1, in 16 products where taps one by
// one take 36: Winograd's minimal filtering F(2x2, 3x3), as Lavin and Gray use it ("Fast Algorithms for Convolutional Neural
// Networks"). Results leave only through the caller's epilogue.
//
// Output pixels are computed in *tiles* of 2 x 2, each from 4 x 4 input pixels d: B^T d B is 16 numbers for each channel, its
// *points*. At each point, all tiles are the rows of one matrix product with the weights of that point, and A^T m A of the
// 16 results of a tile is its four output pixels. Transforms are sums and differences only, so sums are about as exact as
// tap by tap, and an element that is not finite reaches just the outputs whose windows it lies in.
//
// An input with channels first is read from the padded copy with channels last that `conv_pixels_pad` makes.
//
// Packed weights are [point][ceil(OC / kPanel)][IC][kPanel], channels past OC zero; `expand.h` makes them. Tiles lie
// alike in every image, so that results depend neither on the batch nor on the split.
#pragma once

#include "pixels.h"

AOTI_NAMESPACE_BEGIN
namespace detail {

// Tiles of a work unit: whole register tiles of rows.
constexpr i64 kWinogradTiles = 28;
constexpr i64 kWinogradPoints = 16;
// Floats of a row of their pixels, and of the pixels of all channels of a unit, which vectors read past the end of.
constexpr i64 kWinogradRow = 2 * kWinogradTiles + 8;
constexpr i64 kWinogradPlanes = 2 * kPixelColumns * kWinogradRow + 64;

// What follows from a shape.
struct WinogradPlan {
  i64 rows, columns, tiles;  // of an image, and of the batch
  i64 groups;                // of output channels
  i64 pitch;                 // floats from a tile's channels to the next tile's
};

// Pixels of images with channels last, and how far before the first one tiles begin.
template <class T> struct WinogradSource {
  const T *data;
  i64 height, width, pitch, above, before;
};

AOTI_INLINE WinogradSource<f32> winograd_source(const ConvShape &s, ChannelOrder order, const f32 *x, const void *copy) {
  if (order == ChannelOrder::Last) return {x, s.in[1], s.in[2], s.in_channels, s.padding[1], s.padding[2]};
  return {(const f32 *)copy, padded_size(s, 1), padded_size(s, 2), pixel_pitch(s), 0, 0};
}

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
// Of bytes, whose points have 16 bits.
AOTI_INLINE void fetch(const u8 *p, WordHalves &to) {
  typedef u8 Bytes __attribute__((vector_size(AOTI_VECTOR_BYTES / 2)));
  Bytes bytes;
  __builtin_memcpy(&bytes, p, sizeof bytes);
  to = __builtin_convertvector(bytes, WordHalves);
}
AOTI_INLINE void fetch(const u8 *p, i16 &to) { to = *p; }
AOTI_INLINE void put(i16 *p, WordHalves v) {
  typedef i16 Unaligned __attribute__((vector_size(AOTI_VECTOR_BYTES), aligned(2), may_alias));
  *(Unaligned *)p = v;
}
AOTI_INLINE void put(i16 *p, i16 v) { *p = v; }

// The points of channels from `c` on of one tile, `step` numbers apart. V: a vector of points, or one.
template <class V, class T, class P> AOTI_INLINE void winograd_points(const T *const *from, i64 c, P *to, i64 step) {
  V d[4][4];
  AOTI_UNROLL for (int j = 0; j < 4; ++j) {
    V a, b, e, f;
    fetch(from[j] + c, a), fetch(from[4 + j] + c, b), fetch(from[8 + j] + c, e), fetch(from[12 + j] + c, f);
    d[0][j] = V(a - e), d[1][j] = V(b + e), d[2][j] = V(e - b), d[3][j] = V(b - f);
  }
  AOTI_UNROLL for (int i = 0; i < 4; ++i) {
    P *row = to + 4 * i * step;
    put(row, V(d[i][0] - d[i][2])), put(row + step, V(d[i][1] + d[i][2]));
    put(row + 2 * step, V(d[i][2] - d[i][1])), put(row + 3 * step, V(d[i][1] - d[i][3]));
  }
}

// All channels of one tile, whose 16 pixels are at `from`.
template <class V, class T, class P>
AOTI_NOINLINE void winograd_tile(const T *const *from, i64 channels, P *to, i64 step) {
  constexpr i64 lanes = sizeof(V) / sizeof(P);
  i64 c = 0;
  for (; c + lanes <= channels; c += lanes) winograd_points<V>(from, c, to + c, step);
  for (; c < channels; ++c) winograd_points<P>(from, c, to + c, step);
}

// Tiles [first, first + count): points[point][tile][channel], where a point has room for `tiles`. Pixels beside the image are
// `zeros`.
template <class V, class T, class P>
AOTI_NOINLINE void winograd_inputs(i64 channels, const WinogradPlan &p, const WinogradSource<T> &x, i64 first, i64 count,
                                   const T *zeros, P *points, i64 tiles) {
  for (i64 t = 0; t < count; ++t) {
    const i64 row = (first + t) / p.columns, column = (first + t) % p.columns;
    const i64 h = row % p.rows * 2 - x.above, w = column * 2 - x.before;
    const T *image = x.data + row / p.rows * x.height * x.width * x.pitch, *from[kWinogradPoints];
    for (i64 i = 0; i < 4; ++i)
      for (i64 j = 0; j < 4; ++j) {
        const bool inside = u64(h + i) < u64(x.height) && u64(w + j) < u64(x.width);
        from[4 * i + j] = inside ? image + ((h + i) * x.width + w + j) * x.pitch : zeros;
      }
    winograd_tile<V>(from, channels, points + t * p.pitch, tiles * p.pitch);
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
        c += pixel_tile<AnyPixelTiles>(one, rows, width - c, from, w, panel, to + c) * kLanes;
      }
      at += rows;
    }
}

// A pixel of a tile, as it leaves: weights that are integers are four times as large at their points.
AOTI_INLINE TileVector winograd_pixel(TileVector v) { return v; }
AOTI_INLINE TileVectorOf<i32> winograd_pixel(TileVectorOf<i32> v) { return v >> 2; }

// The four pixels of a tile from its sums, whose points are `step` numbers apart: two rows of pixels[pixel][kPixelColumns].
template <class S> AOTI_NOINLINE void winograd_pixels(const S *sums, i64 step, i64 width, S *first, S *second) {
  using Vector = TileVectorOf<S>;
  for (i64 c = 0; c < width; c += kLanes) {
    Vector even[4], odd[4];
    AOTI_UNROLL for (int j = 0; j < 4; ++j) {
      const S *at = sums + j * step + c;
      const Vector a = load_tile_vector(at), b = load_tile_vector(at + 4 * step);
      const Vector e = load_tile_vector(at + 8 * step), f = load_tile_vector(at + 12 * step);
      even[j] = a + b + e, odd[j] = b - e - f;
    }
    store_tile_vector(first + c, winograd_pixel(even[0] + even[1] + even[2]));
    store_tile_vector(first + kPixelColumns + c, winograd_pixel(even[1] - even[2] - even[3]));
    store_tile_vector(second + c, winograd_pixel(odd[0] + odd[1] + odd[2]));
    store_tile_vector(second + kPixelColumns + c, winograd_pixel(odd[1] - odd[2] - odd[3]));
  }
}

// The pixels of `count` tiles side by side, channels first: planes[channel][row][kWinogradRow].
AOTI_NOINLINE void winograd_planes(const f32 *sums, i64 step, i64 count, i64 width, f32 *planes) {
  // Two rows of four pixels, of which the last two are not written where tiles are odd in number, and not read.
  alignas(64) f32 pixels[8 * kPixelColumns] = {};
  for (i64 t = 0; t < count; t += 2) {
    for (i64 k = 0; k < min_i64(count - t, 2); ++k) {
      f32 *first = pixels + 2 * k * kPixelColumns;
      winograd_pixels(sums + (t + k) * kPixelColumns, step, width, first, first + 4 * kPixelColumns);
    }
    for (i64 i = 0; i < 2; ++i)
      for (i64 c = 0; c < width; c += 4)
        transpose_4x4(pixels + 4 * i * kPixelColumns + c, kPixelColumns, planes + (2 * c + i) * kWinogradRow + 2 * t,
                      2 * kWinogradRow);
  }
}

// Tiles [first, first + count) of one row of tiles, channels last. Points of their sums are `step` numbers apart.
template <class S, class Epilogue>
AOTI_INLINE void winograd_tiles_out(const ConvShape &s, const WinogradPlan &p, i64 first, i64 count, i64 channel, i64 width,
                                    const S *sums, i64 step, Epilogue epilogue) {
  alignas(64) S pixels[4 * kPixelColumns];
  const i64 row = first / p.columns, column = first % p.columns;
  for (i64 t = 0; t < count; ++t) {
    winograd_pixels(sums + t * kPixelColumns, step, width, pixels, pixels + 2 * kPixelColumns);
    for (i64 i = 0; i < 4; ++i) {
      const i64 h = row % p.rows * 2 + i / 2, w = (column + t) * 2 + i % 2;
      if (h < s.out[1] && w < s.out[2])
        for_each_vector(pixels + i * kPixelColumns, width, [&](i64 c, auto lanes, auto of_lanes)
                            __attribute__((always_inline)) {
          epilogue(row / p.rows, channel + c, h * s.out[2] + w, lanes, of_lanes);
        });
    }
  }
}

// The same with channels first: lanes are consecutive pixels of one channel.
template <class Epilogue>
AOTI_INLINE void winograd_planes_out(const ConvShape &s, const WinogradPlan &p, i64 first, i64 count, i64 channel, i64 width,
                                     const f32 *sums, f32 *planes, Epilogue epilogue) {
  const i64 row = first / p.columns, w = first % p.columns * 2;
  winograd_planes(sums, kWinogradTiles * kPixelColumns, count, width, planes);
  for (i64 i = 0; i < 2 * width; ++i) {
    const i64 h = row % p.rows * 2 + i % 2;
    if (h < s.out[1])
      for_each_vector(planes + i * kWinogradRow, min_i64(2 * count, s.out[2] - w), [&](i64 pixel, auto lanes, auto of_lanes)
                          __attribute__((always_inline)) {
        epilogue(row / p.rows, channel + i / 2, h * s.out[2] + w + pixel, lanes, of_lanes);
      });
  }
}

} // namespace detail

// Scratch of one `conv_winograd` call.
AOTI_INLINE i64 conv_winograd_scratch_bytes(const ConvShape &s) {
  using namespace detail;
  const i64 pitch = winograd_pitch(s.in_channels);
  return (kWinogradPoints * kWinogradTiles * (pitch + kPixelColumns) + kWinogradPlanes + pitch) * 4;
}

// Work units: blocks of tiles by groups of output channels.
AOTI_INLINE i64 conv_winograd_units(const ConvShape &s) {
  const detail::WinogradPlan p = detail::winograd_plan(s);
  return ceil_div(p.tiles, detail::kWinogradTiles) * p.groups;
}

// Units [u0, u1) of a convolution of images without groups, strides or dilations, of 3 x 3 taps. `copy`: what
// `conv_pixels_pad` made where channels are first, else unused. `scratch`: 64-byte aligned, one per concurrent call. The
// epilogue is called as by `conv_pixels`, or where output channels are first (To), as by `conv`.
template <ChannelOrder To, class Epilogue>
AOTI_INLINE void conv_winograd(const ConvShape &s, ChannelOrder order, i64 u0, i64 u1, const f32 *x,
                               const f32 *weights, const void *copy, void *scratch, Epilogue epilogue) {
  using namespace detail;
  const WinogradPlan p = winograd_plan(s);
  const WinogradSource<f32> from = winograd_source(s, order, x, copy);
  f32 *const points = (f32 *)scratch, *const sums = points + kWinogradPoints * kWinogradTiles * p.pitch;
  f32 *const planes = sums + kWinogradPoints * kWinogradTiles * kPixelColumns, *const zeros = planes + kWinogradPlanes;
  if (u0 < u1) zero_floats(zeros, s.in_channels);
  for (i64 u = u0, filled = -1; u < u1; ++u) {
    const i64 first = u / p.groups * kWinogradTiles, count = min_i64(p.tiles - first, kWinogradTiles);
    const i64 channel = u % p.groups * kPixelColumns, width = min_i64(s.out_channels - channel, kPixelColumns);
    // Neighbouring units have the tiles in common.
    if (filled != first)
      winograd_inputs<TileVector>(s.in_channels, p, from, first, count, zeros, points, kWinogradTiles), filled = first;
    winograd_products(s, p, count, points, weights + channel * s.in_channels, width, sums);
    for (i64 t = 0; t < count;) {
      const i64 of_row = min_i64(count - t, p.columns - (first + t) % p.columns);
      const f32 *from_tile = sums + t * kPixelColumns;
      if constexpr (To == ChannelOrder::Last)
        winograd_tiles_out(s, p, first + t, of_row, channel, width, from_tile, kWinogradTiles * kPixelColumns, epilogue);
      else
        winograd_planes_out(s, p, first + t, of_row, channel, width, from_tile, planes, epilogue);
      t += of_row;
    }
  }
}

AOTI_NAMESPACE_END
