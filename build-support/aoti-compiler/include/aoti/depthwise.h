// Depthwise convolution in f32: one input channel per group, any number of output channels per group. It is bound by
// loads, not multiply-adds, so each output channel is done alone, in blocks whose padded planes (see conv.h) fit in L1.
// Weights are as the model has them: [OC][taps], not packed. Sums are chains over the taps in order.
#pragma once

#include "conv.h"

AOTI_NAMESPACE_BEGIN
namespace detail {

// Floats of the padded planes, and of the sums, that are worked on at a time; and the most channels among them.
constexpr i64 kDepthwiseFloats = 4096;
constexpr i64 kDepthwiseChannels = 16;
// Beyond them vectors are read and written, but never used.
constexpr i64 kDepthwiseSlack = 8 * kLanes;

// tile[q] = sum over taps of weights[tap] * planes[q + offset], for q in [0, size) rounded up to vectors.
AOTI_NOINLINE AOTI_CONTRACT void depthwise_kernel(i64 taps, const i64 *offsets, const f32 *weights, const f32 *planes,
                                                  i64 size, f32 *tile) {
  AOTI_CONTRACT_BODY
  i64 q = 0;
  for (; q < size - 3 * kLanes; q += 4 * kLanes) {
    TileVector sum[4];
    AOTI_UNROLL for (int v = 0; v < 4; ++v) sum[v] = TileVector{};
    for (i64 t = 0; t < taps; ++t) {
      const f32 *from = planes + q + offsets[t];
      AOTI_UNROLL for (int v = 0; v < 4; ++v) sum[v] += load_tile_vector(from + v * kLanes) * weights[t];
    }
    AOTI_UNROLL for (int v = 0; v < 4; ++v) store_tile_vector(tile + q + v * kLanes, sum[v]);
  }
  for (; q < size; q += kLanes) {
    TileVector sum = {};
    for (i64 t = 0; t < taps; ++t) sum += load_tile_vector(planes + q + offsets[t]) * weights[t];
    store_tile_vector(tile + q, sum);
  }
}

// As depthwise_kernel, for Size x Size taps of vertical stride and dilation 1: four output rows at a time, so that a row
// of input is loaded once for all the rows it reaches; there must be four. `columns` are the offsets of the first row of taps.
template <int Size>
AOTI_NOINLINE AOTI_CONTRACT void depthwise_rows(const i64 *columns, const f32 *weights, const f32 *planes, i64 pitch,
                                                i64 rows, i64 width, f32 *tile) {
  AOTI_CONTRACT_BODY
  for (i64 h = 0; h < rows; h += 4) {
    // The last four rows may overlap rows that are done already.
    i64 top = min_i64(h, rows - 4);
    for (i64 c = 0; c < width; c += kLanes) {
      const f32 *from = planes + top * pitch + c;
      TileVector sum[4];
      AOTI_UNROLL for (int r = 0; r < 4; ++r) sum[r] = TileVector{};
      AOTI_UNROLL for (int i = 0; i < Size + 3; ++i) AOTI_UNROLL for (int k = 0; k < Size; ++k) {
        TileVector x = load_tile_vector(from + i * pitch + columns[k]);
        AOTI_UNROLL for (int r = 0; r < 4; ++r) if (i >= r && i < r + Size) sum[r] += x * weights[(i - r) * Size + k];
      }
      AOTI_UNROLL for (int r = 0; r < 4; ++r) store_tile_vector(tile + (top + r) * pitch + c, sum[r]);
    }
  }
}

// One output pixel, for kernels so spread out that the planes of a single pixel exceed the buffer.
AOTI_NOINLINE AOTI_CONTRACT f32 depthwise_pixel(const ConvShape &s, const f32 *weights, const f32 *x) {
  AOTI_CONTRACT_BODY
  f32 sum = 0;
  for (i64 d = 0; d < s.kernel[0]; ++d)
    for (i64 h = 0; h < s.kernel[1]; ++h)
      for (i64 w = 0; w < s.kernel[2]; ++w, ++weights) {
        i64 id = d * s.dilation[0] - s.padding[0], ih = h * s.dilation[1] - s.padding[1];
        i64 iw = w * s.dilation[2] - s.padding[2];
        bool inside = id >= 0 && id < s.in[0] && ih >= 0 && ih < s.in[1] && iw >= 0 && iw < s.in[2];
        sum += *weights * (inside ? x[(id * s.in[1] + ih) * s.in[2] + iw] : 0.0f);
      }
  return sum;
}

// The block of output sizes whose planes fit the buffer.
AOTI_INLINE void depthwise_block(const ConvShape &s, i64 *size) {
  ConvShape block = s;
  block.out[0] = 1;
  for (int d = 1; d < 3; ++d)
    while (conv_plan(block).channel > kDepthwiseFloats && block.out[d] > 1) block.out[d] = ceil_div(block.out[d], 2);
  for (int d = 0; d < 3; ++d) size[d] = block.out[d];
}

// A block's geometry, kept from one block to the next: most have the same size.
struct DepthwiseBlock {
  ConvShape shape; // with the block's output sizes, and its padding moved to the block's origin
  ConvPlan plan;
  i64 offsets[kMaxTaps];
  bool fits;
  int rows_of;     // 3 or 5 where depthwise_rows applies, else 0
  i64 tile_stride; // floats of a channel's tile
};
AOTI_INLINE void depthwise_move(const ConvShape &s, const i64 *at, const i64 *size, DepthwiseBlock &b) {
  bool same = true;
  for (int d = 0; d < 3; ++d) {
    i64 out = min_i64(size[d], s.out[d] - at[d]);
    same = same && out == b.shape.out[d];
    b.shape.out[d] = out;
    b.shape.padding[d] = s.padding[d] - at[d] * s.stride[d];
  }
  if (same) return;
  b.plan = conv_plan(b.shape);
  b.fits = b.plan.channel <= kDepthwiseFloats && b.plan.taps <= kMaxTaps;
  if (!b.fits) return;
  conv_tap_offsets(b.shape, b.plan, b.offsets);
  i64 size_of = s.kernel[2];
  bool square = s.kernel[0] == 1 && s.kernel[1] == size_of && s.stride[1] == 1 && s.dilation[1] == 1;
  b.rows_of = square && b.shape.out[1] >= 4 && (size_of == 3 || size_of == 5) ? int(size_of) : 0;
  b.tile_stride = round_up(b.plan.pixels, kLanes) + kLanes;
}

// Sums of one block of `count` channels, the inputs of which are at x[i]; returns where they are, `stride` apart, output
// rows back to back: in `tile`, or in `planes`, which are done with by then. Each step is done for all channels before
// the next, since vectors that were just stored in other pieces cannot be loaded at once.
AOTI_NOINLINE const f32 *depthwise_tile(const DepthwiseBlock &b, int count, const f32 *weights, const f32 *const *x,
                                        f32 *planes, f32 *tile, i64 *stride) {
  const ConvShape &s = b.shape;
  const ConvPlan &p = b.plan;
  *stride = b.tile_stride;
  if (!b.fits) {
    tile[0] = depthwise_pixel(s, weights, x[0]);
    return tile;
  }
  for (int i = 0; i < count; ++i) conv_pad_channel(s, p, x[i], planes + i * p.channel);
  for (int i = 0; i < count; ++i) {
    const f32 *w = weights + i * p.taps, *from = planes + i * p.channel;
    f32 *to = tile + i * b.tile_stride;
    if (b.rows_of == 3)
      depthwise_rows<3>(b.offsets, w, from, p.plane[2], s.out[1], s.out[2], to);
    else if (b.rows_of == 5)
      depthwise_rows<5>(b.offsets, w, from, p.plane[2], s.out[1], s.out[2], to);
    else
      depthwise_kernel(p.taps, b.offsets, w, from, p.pixels, to);
  }
  if (p.plane[2] == s.out[2]) return tile;
  // Rows move by whole vectors: what is written past a row's end is overwritten by the next.
  *stride = s.out[1] * s.out[2];
  for (int i = 0; i < count; ++i)
    for (i64 h = 0; h < s.out[1]; ++h)
      for (i64 c = 0; c < s.out[2]; c += kLanes)
        store_tile_vector(planes + i * *stride + h * s.out[2] + c,
                          load_tile_vector(tile + i * b.tile_stride + h * p.plane[2] + c));
  return planes;
}

} // namespace detail

// Work units of `conv_depthwise`: output channels of the batch.
AOTI_INLINE i64 conv_depthwise_units(const ConvShape &s) { return s.batch * s.out_channels; }

// Units [u0, u1) of a convolution with one input channel per group. Needs no scratch; uses about 50 KiB of stack. The
// epilogue is called as by `conv`.
template <class Epilogue>
AOTI_INLINE void conv_depthwise(const ConvShape &s, i64 u0, i64 u1, const f32 *x, const f32 *weights,
                                Epilogue epilogue) {
  using namespace detail;
  if (u0 >= u1) return;
  alignas(64) f32 planes[kDepthwiseFloats + kDepthwiseSlack], tile[kDepthwiseFloats + kDepthwiseSlack];
  i64 size[3], taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  depthwise_block(s, size);
  if (taps > kMaxTaps) size[1] = size[2] = 1;
  DepthwiseBlock block;
  block.shape = s, block.shape.out[2] = -1;
  i64 per_group = s.out_channels / s.groups;
  for (i64 u = u0, count; u < u1; u += count) {
    i64 image = u / s.out_channels, channel = u % s.out_channels, origin[3] = {};
    // Small planes are done several channels at a time.
    depthwise_move(s, origin, size, block);
    bool whole_plane = s.out[0] == 1 && size[1] == s.out[1] && size[2] == s.out[2] && block.fits;
    count = whole_plane ? kDepthwiseFloats / max_i64(max_i64(block.plan.channel, block.tile_stride), 1) : 1;
    count = max_i64(min_i64(min_i64(count, kDepthwiseChannels), min_i64(u1 - u, s.out_channels - channel)), 1);
    const f32 *from[kDepthwiseChannels];
    for (i64 i = 0; i < count; ++i)
      from[i] = x + (image * s.groups + (channel + i) / per_group) * s.in[0] * s.in[1] * s.in[2];
    for (i64 od = 0; od < s.out[0]; ++od)
      for (i64 oh = 0; oh < s.out[1]; oh += size[1])
        for (i64 ow = 0; ow < s.out[2]; ow += size[2]) {
          i64 at[3] = {od, oh, ow}, stride;
          depthwise_move(s, at, size, block);
          const f32 *block_sums =
              depthwise_tile(block, int(count), weights + channel * taps, from, planes, tile, &stride);
          // Blocks of whole rows are one run of pixels.
          bool whole = size[2] == s.out[2];
          i64 rows = whole ? 1 : block.shape.out[1], run = block.shape.out[2];
          if (whole) run *= block.shape.out[1];
          for (i64 i = 0; i < count * rows; ++i) {
            i64 c = rows == 1 ? i : 0, r = rows == 1 ? 0 : i;
            i64 pixel = (od * s.out[1] + oh + r) * s.out[2] + ow;
            for_each_vector(block_sums + c * stride + r * run, run, [&](i64 v, auto lanes, auto sums)
                                __attribute__((always_inline)) {
                                  epilogue(image, channel + c, pixel + v, lanes, sums);
                                });
          }
        }
  }
}

AOTI_NAMESPACE_END
