// Convolution of f32 with few channels a group, whose channels are last: vectors run over output channels of several groups, or
// over a part of one. What is known when it is compiled (`GroupShape`) decides about registers: a tile is a run of pixels of an
// output row by one vector, an element that several of its pixels read is loaded once, and where groups are smaller than vectors
// a shuffle gives each lane the input channel of its group. The input is read where it lies; a tile at a border has a table of
// where the columns of its windows are, or that they are zero, which is made once for a block of channels.
//
// Packed weights are [ceil(C / kPanel)][input channel of a group][tap][kPanel]. Sums are chains over the rows of a window, the
// channels and the columns, in this order.
#pragma once

#include "memory.h"
#include "pixels.h"

AOTI_NAMESPACE_BEGIN

// Rows of a window, and taps of a row, that `conv_group_pixels` takes at most; and steps from a window to the next.
constexpr i64 kGroupRows = 11;
constexpr i64 kGroupTaps = 11;
constexpr i64 kGroupStride = 2;

namespace detail {

// Pixels of a tile at most, and input channels that are multiplied together where registers are many.
#if AOTI_AVX512 || AOTI_AARCH64
constexpr int kGroupPixels = 14, kGroupTogether = 2;
#elif AOTI_AVX2
constexpr int kGroupPixels = 8, kGroupTogether = 1;
#else
constexpr int kGroupPixels = 4, kGroupTogether = 1;
#endif
constexpr int kGroupColumns = (kGroupPixels - 1) * int(kGroupStride) + int(kGroupTaps);
// Floats of weights that stay near while tiles of a row go past, and channels of a block at most.
constexpr i64 kGroupWeights = 6144, kGroupBlock = 1024;

// As many pixels as make all tiles of a row alike; of rows of any length a number that divides most.
AOTI_CONSTEXPR int group_pixels(i64 width) {
  const i64 most = kGroupPixels;
  return int(width > 0 ? ceil_div(width, ceil_div(width, most)) : most > 8 ? 8 : most);
}

} // namespace detail

// Input and output channels of a group, taps of a row of a window and the step from one to the next, pixels of an output row (0 where
// that is open), and whether the channels are whole vectors at any level.
template <int In, int Out, int Taps, int Stride, i64 Width, bool Whole> struct GroupShape {
  static constexpr int in = In, out = Out, taps = Taps, stride = Stride, pixels = detail::group_pixels(Width);
  static constexpr bool whole = Whole;
};

namespace detail {

// Lanes of groups that are wider than a vector read one input channel.
template <class Shape> constexpr bool kReadsOne = Shape::out >= kLanes && Shape::out > 1;
template <class Shape>
constexpr int kGroupAtOnce = Shape::in % kGroupTogether == 0 && Shape::taps <= 7 ? kGroupTogether : 1;

// The rows of a window that are inside the input.
struct GroupRows {
  i64 count;
  i64 weight[kGroupRows]; // floats from a channel's first weight
  i64 offset[kGroupRows]; // floats from the image's first to the first of the row
};
// Where the columns of a tile's windows are.
struct GroupColumns {
  const f32 *from[kGroupRows][kGroupColumns];
};

AOTI_NOINLINE void group_rows(const ConvShape &s, i64 d, i64 h, GroupRows &t) {
  t.count = 0;
  for (i64 kd = 0; kd < s.kernel[0]; ++kd)
    for (i64 kh = 0; kh < s.kernel[1]; ++kh) {
      const i64 id = d * s.stride[0] + kd * s.dilation[0] - s.padding[0];
      const i64 ih = h * s.stride[1] + kh * s.dilation[1] - s.padding[1];
      if (u64(id) >= u64(s.in[0]) || u64(ih) >= u64(s.in[1])) continue;
      t.weight[t.count] = (kd * s.kernel[1] + kh) * s.kernel[2] * kPanel;
      t.offset[t.count++] = (id * s.in[1] + ih) * s.in[2] * s.in_channels;
    }
}
// The columns from `start` on, `count` of them, of an image; those beside it are zeros.
AOTI_NOINLINE void group_columns(const ConvShape &s, const GroupRows &rows, i64 start, i64 count, const f32 *x, const f32 *zeros,
                                 GroupColumns &t) {
  const i64 first = min_i64(max_i64(-start, 0), count), last = max_i64(min_i64(s.in[2] - start, count), first);
  for (i64 r = 0; r < rows.count; ++r) {
    const f32 *const row = x + rows.offset[r] + start * s.in_channels;
    for (i64 j = 0; j < first; ++j) t.from[r][j] = zeros;
    for (i64 j = first; j < last; ++j) t.from[r][j] = row + j * s.in_channels;
    for (i64 j = last; j < count; ++j) t.from[r][j] = zeros;
  }
}

// The columns of a tile one after the other: equally far apart, or as a table says.
struct GroupSteps {
  const f32 *x;
  const i64 *offset;
  i64 step;
  struct Row {
    const f32 *at;
    i64 step;
    AOTI_INLINE const f32 *next() {
      const f32 *own = at;
      at += step;
      return own;
    }
  };
  AOTI_INLINE Row row(i64 r) const { return {x + offset[r], step}; }
};
struct GroupTable {
  const GroupColumns &table;
  i64 channel;
  struct Row {
    const f32 *const *at;
    i64 channel;
    AOTI_INLINE const f32 *next() { return *at++ + channel; }
  };
  AOTI_INLINE Row row(i64 r) const { return {table.from[r], channel}; }
};

template <int In, int Out, int K, int... I> AOTI_INLINE TileVector spread_groups(TileVector x, Indices<I...>) {
  return shuffled<(I / Out * In + K)...>(x, x);
}
// What the lanes of a vector read at `p`, of which `count` floats are theirs: channel `k` of their groups, which is known to be K
// where groups are smaller than vectors.
template <class Shape, bool Whole, int K> AOTI_INLINE TileVector group_element(const f32 *p, i64 k, int count) {
  (void)k, (void)count;
  if constexpr (kReadsOne<Shape>) {
    return p[k] - TileVector{};
  } else {
    TileVector x;
    if constexpr (Whole)
      x = load_tile_vector(p);
    else
      x = (TileVector)load_raw(Tail<kLanes>{count}, p).v;
    if constexpr (Shape::out == 1)
      return x;
    else
      return spread_groups<Shape::in, Shape::out, K>(x, indices<kLanes>{});
  }
}

// Adds what some input channels from `k` on give in a row of windows.
template <class Shape, bool Whole, int K, class Row>
AOTI_INLINE void group_terms(Row row, i64 k, int count, const f32 *weights, i64 of_channel, TileVector (&sum)[Shape::pixels]) {
  AOTI_CONTRACT_BODY
  constexpr int taps = Shape::taps, stride = Shape::stride, pixels = Shape::pixels, together = kGroupAtOnce<Shape>;
  TileVector weight[together][taps], x[together];
  AOTI_UNROLL for (int c = 0; c < together; ++c) AOTI_UNROLL for (int t = 0; t < taps; ++t) weight[c][t] =
      load_tile_vector(weights + (k + c) * of_channel + t * kPanel);
  AOTI_UNROLL for (int j = 0; j < (pixels - 1) * stride + taps; ++j) {
    const f32 *p = row.next();
    x[0] = group_element<Shape, Whole, K>(p, k, count);
    if constexpr (together > 1) x[together - 1] = group_element<Shape, Whole, K + together - 1>(p, k + together - 1, count);
    AOTI_UNROLL for (int c = 0; c < together; ++c) AOTI_UNROLL for (int i = 0; i < pixels; ++i)
      if (j >= i * stride && j < i * stride + taps) sum[i] += x[c] * weight[c][j - i * stride];
  }
}
template <class Shape, bool Whole, class Row, int... I>
AOTI_INLINE void group_channels(Row row, int count, const f32 *weights, i64 of_channel, TileVector (&sum)[Shape::pixels],
                                Indices<I...>) {
  constexpr int together = kGroupAtOnce<Shape>;
  (group_terms<Shape, Whole, I * together>(row, I * together, count, weights, of_channel, sum), ...);
}

// sums[pixel][lane] of a tile whose columns are where `from` says.
template <class Shape, bool Whole, class From>
AOTI_NOINLINE AOTI_CONTRACT void group_tile(const GroupRows &rows, From from, int count, const f32 *weights, i64 of_channel,
                                            f32 *sums) {
  AOTI_CONTRACT_BODY
  constexpr int together = kGroupAtOnce<Shape>;
  TileVector sum[Shape::pixels];
  AOTI_UNROLL for (int i = 0; i < Shape::pixels; ++i) sum[i] = TileVector{};
  for (i64 r = 0; r < rows.count; ++r) {
    const f32 *const own = weights + rows.weight[r];
    if constexpr (kReadsOne<Shape>)
      for (i64 k = 0; k < Shape::in; k += together)
        group_terms<Shape, Whole, 0>(from.row(r), k, count, own, of_channel, sum);
    else
      group_channels<Shape, Whole>(from.row(r), count, own, of_channel, sum, indices<Shape::in / together>{});
  }
  AOTI_UNROLL for (int i = 0; i < Shape::pixels; ++i) store_tile_vector(sums + i * kLanes, sum[i]);
}
template <class Shape, class From>
AOTI_INLINE void group_tile(const GroupRows &rows, From from, i64 channels, const f32 *weights, i64 of_channel, f32 *sums) {
  // Of groups with more output than input channels, a vector has fewer of these than lanes.
  constexpr int read = Shape::in == Shape::out ? kLanes : kLanes / Shape::out * Shape::in;
  constexpr bool whole = kReadsOne<Shape> || read == kLanes;
  if constexpr (whole && (Shape::whole || kReadsOne<Shape>)) {
    group_tile<Shape, true>(rows, from, kLanes, weights, of_channel, sums);
  } else {
    if constexpr (whole)
      if (channels >= kLanes) return group_tile<Shape, true>(rows, from, kLanes, weights, of_channel, sums);
    group_tile<Shape, false>(rows, from, int(min_i64(channels, kLanes)) / Shape::out * Shape::in, weights, of_channel, sums);
  }
}

// Output channels of a block.
template <class Shape> AOTI_INLINE i64 group_block(const ConvShape &s) {
  const i64 of_vector = Shape::in * s.kernel[0] * s.kernel[1] * s.kernel[2] * kLanes;
  return min_i64(round_up(max_i64(kGroupWeights / of_vector, 1) * kLanes, 16), kGroupBlock);
}

} // namespace detail

// Work units of `conv_group_pixels`: rows of output pixels by blocks of channels.
template <class Shape> AOTI_INLINE i64 conv_group_pixels_units(const ConvShape &s) {
  return s.batch * ceil_div(s.out_channels, detail::group_block<Shape>(s)) * s.out[0] * s.out[1];
}

// Units [u0, u1) of a convolution. The epilogue is called as by `conv_pixels`.
template <class Shape, class Epilogue>
AOTI_INLINE void conv_group_pixels(const ConvShape &s, i64 u0, i64 u1, const f32 *x, const f32 *weights, Epilogue epilogue) {
  using namespace detail;
  constexpr int pixels = Shape::pixels, reach = (pixels - 1) * Shape::stride + Shape::taps - 1;
  const i64 of_channel = s.kernel[0] * s.kernel[1] * s.kernel[2] * kPanel, panel = Shape::in * of_channel;
  const i64 image_floats = s.in[0] * s.in[1] * s.in[2] * s.in_channels;
  const i64 block = group_block<Shape>(s), blocks = ceil_div(s.out_channels, block), of_image = s.out[0] * s.out[1];
  alignas(64) f32 sums[pixels * kLanes];
  alignas(64) f32 zeros[kGroupBlock + kLanes] = {};
  GroupRows rows;
  GroupColumns columns;
  for (i64 u = u0; u < u1; ++u) {
    const i64 h = u % s.out[1], d = u % of_image / s.out[1], image = u / (of_image * blocks);
    const i64 begin = u / of_image % blocks * block, end = min_i64(begin + block, s.out_channels);
    const f32 *const from = x + image * image_floats + begin / Shape::out * Shape::in;
    group_rows(s, d, h, rows);
    for (i64 w = 0; w < s.out[2]; w += pixels) {
      const i64 count = min_i64(s.out[2] - w, pixels), first = (d * s.out[1] + h) * s.out[2] + w;
      const i64 start = w * Shape::stride - s.padding[2];
      const bool interior = start >= 0 && start + reach < s.in[2];
      if (!interior) group_columns(s, rows, start, reach + 1, from, zeros, columns);
      for (i64 c = begin; c < end; c += kLanes) {
        const f32 *const own = weights + c / kPanel * panel + c % kPanel;
        const i64 channel = (c - begin) / Shape::out * Shape::in, channels = min_i64(end - c, kLanes);
        if (interior)
          group_tile<Shape>(rows, GroupSteps{from + start * s.in_channels + channel, rows.offset, s.in_channels}, channels, own,
                            of_channel, sums);
        else
          group_tile<Shape>(rows, GroupTable{columns, channel}, channels, own, of_channel, sums);
        for (i64 i = 0; i < count; ++i)
          for_each_vector(sums + i * kLanes, channels, [&](i64, auto lanes, auto of_lanes) __attribute__((always_inline)) {
            epilogue(image, c, first + i, lanes, of_lanes);
          });
      }
    }
  }
}

AOTI_NAMESPACE_END
