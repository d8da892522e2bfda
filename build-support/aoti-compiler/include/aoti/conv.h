// Convolution of f32 NC[D]HW tensors with vectors running over output pixels and rows over output channels. Results
// leave only through the caller's epilogue.
//
// There is no im2col. `conv_pad` copies the input once into zero-padded planes, split by stride phase: plane (a,b,c)
// holds the pixels whose padded coordinates are (a,b,c) modulo the strides. In that form output pixels are numbered by
// q = (od * PH + oh) * PW + ow over the planes' own pitch, and every kernel tap is one fixed offset from q: vectors of
// consecutive q are consecutive loads for any stride, padding and dilation. Sums at the few q that are no output pixel
// are dropped before the epilogue. A 1x1 convolution of stride 1 without padding reads the input in place.
//
// Packed weights are [groups][ceil(OC/groups / kConvRows)][K][kConvRows], K = IC/groups * taps, rows past OC zero;
// `runplan/pack.rs` writes them. Each output is a sum of chains of about kChain fused multiply-adds over
// k, whatever the split.
#pragma once

#include "tile.h"

AOTI_NAMESPACE_BEGIN

// Sizes are depth, height, width; a 2-D convolution has depth 1, a 1-D one also height 1.
struct ConvShape {
  i64 batch, in_channels, out_channels, groups;
  i64 in[3], kernel[3], stride[3], dilation[3], padding[3], out[3];
};

// What a convolution passes over once, the other in blocks that stay in cache: by itself, what is larger.
enum class ConvOnce { Larger, Weights, Pixels };

namespace detail {

#if AOTI_AVX512
constexpr int kConvVectors = 2, kConvKernelRows = 8;
#elif AOTI_AVX2
constexpr int kConvVectors = 3, kConvKernelRows = 4;
#elif AOTI_AARCH64
constexpr int kConvVectors = 3, kConvKernelRows = 8;
#else
constexpr int kConvVectors = 2, kConvKernelRows = 4;
#endif
// Output pixels of a block.
constexpr int kConvPixels = kConvVectors * kLanes;
// Taps whose offsets fit the table on the stack.
constexpr int kMaxTaps = 1024;

// What follows from a shape.
struct ConvPlan {
  i64 ic, oc;          // channels per group
  i64 taps, k;         // taps of a kernel, and length of a sum
  bool in_place;       // the input is its own single plane
  i64 phases[3];       // phases that some tap uses
  i64 plane[3];        // size of a phase plane
  i64 channel;         // floats of all planes of a channel
  i64 pixels;          // range of q
  i64 blocks;          // pixel blocks
  i64 rows;            // kConvRows blocks
  bool compact;        // every q is an output pixel
};

AOTI_INLINE i64 gcd(i64 a, i64 b) {
  while (b != 0) {
    i64 r = a % b;
    a = b, b = r;
  }
  return a;
}

AOTI_NOINLINE ConvPlan conv_plan(const ConvShape &s) {
  ConvPlan p{};
  p.ic = s.in_channels / max_i64(s.groups, 1), p.oc = s.out_channels / max_i64(s.groups, 1);
  p.taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  p.k = p.ic * p.taps;
  p.in_place = p.taps == 1;
  p.channel = 1;
  bool empty = false;
  for (int d = 0; d < 3; ++d) {
    p.in_place = p.in_place && s.stride[d] == 1 && s.padding[d] == 0 && s.out[d] == s.in[d];
    p.phases[d] = min_i64(s.kernel[d], s.stride[d] / gcd(s.stride[d], s.dilation[d]));
    p.plane[d] = s.out[d] + (s.kernel[d] - 1) * s.dilation[d] / s.stride[d];
    p.channel *= p.phases[d] * p.plane[d];
    empty = empty || s.out[d] <= 0;
  }
  // Channels a page apart would share a cache set.
  if (!p.in_place && p.channel % 512 < 16 && p.channel >= 512) p.channel = round_up(p.channel, 512) + 16;
  p.pixels = empty ? 0 : ((s.out[0] - 1) * p.plane[1] + s.out[1] - 1) * p.plane[2] + s.out[2];
  p.blocks = ceil_div(p.pixels, kConvPixels);
  p.rows = ceil_div(p.oc, kConvRows);
  p.compact = p.plane[2] == s.out[2] && (p.plane[1] == s.out[1] || s.out[0] == 1);
  return p;
}

// Offset of each tap from q within the planes of a channel.
AOTI_INLINE void conv_tap_offsets(const ConvShape &s, const ConvPlan &p, i64 *offsets) {
  i64 plane = p.plane[0] * p.plane[1] * p.plane[2];
  i64 n = 0;
  for (i64 kd = 0; kd < s.kernel[0]; ++kd)
    for (i64 kh = 0; kh < s.kernel[1]; ++kh)
      for (i64 kw = 0; kw < s.kernel[2]; ++kw) {
        i64 phase = ((kd % p.phases[0]) * p.phases[1] + kh % p.phases[1]) * p.phases[2] + kw % p.phases[2];
        i64 d = kd * s.dilation[0] / s.stride[0], h = kh * s.dilation[1] / s.stride[1];
        i64 w = kw * s.dilation[2] / s.stride[2];
        offsets[n++] = phase * plane + (d * p.plane[1] + h) * p.plane[2] + w;
      }
}

// Plane coordinates [first, last) lie inside the input; coordinate j is input index j * stride + shift.
struct Inside {
  i64 first, last, shift;
};
AOTI_INLINE Inside conv_inside(i64 size, i64 plane, i64 stride, i64 shift) {
  i64 first = max_i64(-shift, 0), last = max_i64(size - shift, 0);
  if (stride != 1) first = ceil_div(first, stride), last = ceil_div(last, stride);
  first = min_i64(first, plane);
  return {first, max_i64(first, min_i64(last, plane)), shift};
}

// One phase plane slice of the input slice x[height][width].
AOTI_INLINE void conv_pad_slice(const ConvShape &s, const ConvPlan &p, const f32 *x, f32 *to, Inside h, Inside w) {
  i64 pitch = p.plane[2], inside = w.last - w.first;
  zero_floats(to, h.first * pitch);
  to += h.first * pitch;
  const f32 *row = x + (h.first * s.stride[1] + h.shift) * s.in[2] + w.first * s.stride[2] + w.shift;
  for (i64 j = h.first; j < h.last; ++j, to += pitch, row += s.stride[1] * s.in[2]) {
    zero_floats(to, w.first);
    if (s.stride[2] == 1)
      copy_floats(to + w.first, row, inside);
    else if (s.stride[2] == 2)
      copy_every_second(to + w.first, row, inside);
    else
      for (i64 i = 0; i < inside; ++i) to[w.first + i] = row[i * s.stride[2]];
    zero_floats(to + w.last, pitch - w.last);
  }
  zero_floats(to, (p.plane[1] - h.last) * pitch);
}

// The first input index of phase `i` of dimension `d`.
AOTI_INLINE Inside conv_phase(const ConvShape &s, const ConvPlan &p, int d, i64 i) {
  i64 phase = i == 0 ? 0 : i * s.dilation[d] % s.stride[d];
  return conv_inside(s.in[d], p.plane[d], s.stride[d], phase - s.padding[d]);
}

AOTI_NOINLINE void conv_pad_channel(const ConvShape &s, const ConvPlan &p, const f32 *x, f32 *to) {
  i64 slice = p.plane[1] * p.plane[2];
  for (i64 a = 0; a < p.phases[0]; ++a) {
    Inside d = conv_phase(s, p, 0, a);
    for (i64 b = 0; b < p.phases[1]; ++b) {
      Inside h = conv_phase(s, p, 1, b);
      for (i64 c = 0; c < p.phases[2]; ++c) {
        Inside w = conv_phase(s, p, 2, c);
        for (i64 j = 0; j < p.plane[0]; ++j, to += slice) {
          if (j < d.first || j >= d.last)
            zero_floats(to, slice);
          else
            conv_pad_slice(s, p, x + (j * s.stride[0] + d.shift) * s.in[1] * s.in[2], to, h, w);
        }
      }
    }
  }
}

// tile[Rows][kConvPixels] = sum over k of weights[k][row] * x[tap of k][pixel].
template <int Rows, int Vectors>
AOTI_NOINLINE AOTI_CONTRACT void conv_kernel(i64 k_count, i64 taps, const i64 *offsets, i64 step, const f32 *weights,
                                             const f32 *x, f32 *tile) {
  AOTI_CONTRACT_BODY
  TileVector sum[Rows][Vectors];
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < Vectors; ++v) sum[r][v] = TileVector{};
  while (k_count > 0) {
    i64 n = min_i64(k_count, taps);
    for (i64 t = 0; t < n; ++t) {
      const f32 *from = x + offsets[t];
      TileVector pixels[Vectors];
      AOTI_UNROLL for (int v = 0; v < Vectors; ++v) pixels[v] = load_tile_vector(from + v * kLanes);
      AOTI_UNROLL for (int r = 0; r < Rows; ++r) {
        f32 w = weights[r];
        AOTI_UNROLL for (int v = 0; v < Vectors; ++v) sum[r][v] += pixels[v] * w;
      }
      weights += kConvRows;
    }
    k_count -= n;
    x += step;
  }
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < Vectors; ++v)
      store_tile_vector(tile + r * kConvPixels + v * kLanes, sum[r][v]);
}

// A table of taps, repeated over as many channels as fit, so that kernels of one tap loop over it too.
struct ConvTaps {
  i64 offsets[kMaxTaps];
  i64 count, channels;
};
AOTI_NOINLINE void conv_taps(const ConvShape &s, const ConvPlan &p, ConvTaps &taps) {
  conv_tap_offsets(s, p, taps.offsets);
  taps.channels = max_i64(min_i64(128 / max_i64(p.taps, 1), p.ic), 1);
  taps.count = taps.channels * p.taps;
  for (i64 i = p.taps; i < taps.count; ++i) taps.offsets[i] = taps.offsets[i - p.taps] + p.channel;
}

// One chain of `rows` channels by one block of pixels.
AOTI_NOINLINE void conv_chain(const ConvTaps &taps, i64 step, int rows, i64 pixels, i64 k, const f32 *weights,
                              const f32 *x, f32 *tile) {
#if AOTI_AVX512
  if (rows <= 4) return conv_kernel<4, 2>(k, taps.count, taps.offsets, step, weights, x, tile);
  if (pixels <= kLanes) return conv_kernel<8, 1>(k, taps.count, taps.offsets, step, weights, x, tile);
#endif
  (void)pixels;
  for (int r = 0; r < rows; r += kConvKernelRows)
    conv_kernel<kConvKernelRows, kConvVectors>(k, taps.count, taps.offsets, step, weights + r, x, tile + r * kConvPixels);
}

// `rows` channels by one block of pixels, chain by chain: each is as many whole tables of taps as make about kChain.
AOTI_INLINE void conv_tile(const ConvPlan &p, const ConvTaps &taps, int rows, i64 pixels, i64 k, const f32 *weights,
                           const f32 *x, f32 *tile) {
  i64 step = taps.channels * p.channel, tables = max_i64(kChain / max_i64(taps.count, 1), 1);
  i64 length = tables * taps.count;
  conv_chain(taps, step, rows, pixels, min_i64(k, length), weights, x, tile);
  for (i64 i = length; i < k; i += length) {
    alignas(64) f32 chain[kConvRows * kConvPixels];
    x += tables * step;
    conv_chain(taps, step, rows, pixels, min_i64(k - i, length), weights + i * kConvRows, x, chain);
    add_chain(tile, chain, rows, pixels, kConvPixels);
  }
}

// Channels whose last block of pixels would be read past the end of the input go through a copy.
AOTI_NOINLINE void conv_tile_at_end(const ConvPlan &p, const ConvTaps &taps, int rows, i64 pixels, const f32 *weights,
                                    const f32 *x, f32 *tile) {
  i64 unsafe = min_i64(p.k, ceil_div(kConvPixels, max_i64(p.channel, 1)));
  f32 copy[kConvPixels * kConvPixels];
  ConvTaps one;
  for (i64 i = 0; i < unsafe; ++i) {
    one.offsets[i] = i * kConvPixels;
    for (i64 j = 0; j < kConvPixels; ++j)
      copy[i * kConvPixels + j] = j < pixels ? x[(p.k - unsafe + i) * p.channel + j] : 0;
  }
  one.count = one.channels = unsafe;
  conv_tile(p, taps, rows, pixels, p.k - unsafe, weights, x, tile);
  alignas(64) f32 chain[kConvRows * kConvPixels];
  conv_chain(one, 0, rows, pixels, unsafe, weights + (p.k - unsafe) * kConvRows, copy, chain);
  add_chain(tile, chain, rows, pixels, kConvPixels);
}

// The runs of output pixels among the q of one block: tile columns [from, from + size), all consecutive pixels from
// `pixel` on.
struct ConvRuns {
  i64 pixel, total;
  int count;
  struct {
    int from, size;
  } run[kConvPixels > 64 ? kConvPixels : 64];
};
AOTI_NOINLINE void conv_runs(const ConvShape &s, const ConvPlan &p, i64 q, i64 size, ConvRuns &runs) {
  runs.count = 0, runs.total = 0, runs.pixel = 0;
  i64 row = q / p.plane[2], w = q % p.plane[2];
  i64 d = row / p.plane[1], h = row % p.plane[1];
  for (i64 c = 0; c < size;) {
    i64 n = min_i64(size - c, p.plane[2] - w);
    i64 valid = min_i64(n, s.out[2] - w);
    if (h < s.out[1] && valid > 0) {
      if (runs.total == 0) runs.pixel = (d * s.out[1] + h) * s.out[2] + w;
      runs.run[runs.count++] = {int(c), int(valid)};
      runs.total += valid;
    }
    c += n, w = 0;
    if (++h == p.plane[1]) h = 0, ++d;
  }
}

// Copies the runs of each tile row to the front of the same row of `to`, by whole vectors: what is written past a run's
// end is overwritten by what follows. Both have room for one more vector.
AOTI_NOINLINE void conv_compact(const ConvRuns &runs, int rows, const f32 *tile, f32 *to) {
  for (int r = 0; r < rows; ++r, tile += kConvPixels, to += kConvPixels) {
    f32 *at = to;
    for (int i = 0; i < runs.count; ++i) {
      for (int c = 0; c < runs.run[i].size; c += kLanes)
        store_tile_vector(at + c, load_tile_vector(tile + runs.run[i].from + c));
      at += runs.run[i].size;
    }
  }
}

// Where a unit lies.
struct ConvCursor {
  i64 image, group, row, block;
  bool weights_outside;
};
AOTI_INLINE ConvCursor conv_cursor(const ConvShape &s, const ConvPlan &p, ConvOnce once, i64 unit) {
  ConvCursor c{};
  c.weights_outside = once == ConvOnce::Larger ? p.oc * p.taps > p.channel : once == ConvOnce::Weights;
  i64 image = unit / (p.rows * p.blocks), rest = unit % (p.rows * p.blocks);
  c.row = c.weights_outside ? rest / p.blocks : rest % p.rows;
  c.block = c.weights_outside ? rest % p.blocks : rest / p.rows;
  c.image = image / s.groups, c.group = image % s.groups;
  return c;
}
AOTI_INLINE void conv_next(const ConvShape &s, const ConvPlan &p, ConvCursor &c) {
  i64 &inner = c.weights_outside ? c.block : c.row, &outer = c.weights_outside ? c.row : c.block;
  if (++inner < (c.weights_outside ? p.blocks : p.rows)) return;
  inner = 0;
  if (++outer < (c.weights_outside ? p.rows : p.blocks)) return;
  outer = 0;
  if (++c.group == s.groups) c.group = 0, ++c.image;
}

} // namespace detail

// Bytes of the padded copy that `conv_pad` makes, 0 if the convolution reads its input in place. Shared by all threads.
AOTI_INLINE i64 conv_scratch_bytes(const ConvShape &s) {
  detail::ConvPlan p = detail::conv_plan(s);
  return p.in_place ? 0 : round_up((s.batch * s.in_channels * p.channel + 64) * 4, 64);
}

// Work units of `conv_pad`: channels of the batch. None if the convolution reads its input in place.
AOTI_INLINE i64 conv_pad_units(const ConvShape &s) {
  return detail::conv_plan(s).in_place ? 0 : s.batch * s.in_channels;
}
// Units [u0, u1) of the padded copy; all of them must be done before `conv`.
AOTI_NOINLINE void conv_pad(const ConvShape &s, i64 u0, i64 u1, const f32 *x, void *scratch) {
  detail::ConvPlan p = detail::conv_plan(s);
  for (i64 u = u0; u < u1; ++u)
    detail::conv_pad_channel(s, p, x + u * s.in[0] * s.in[1] * s.in[2], (f32 *)scratch + u * p.channel);
}

// Work units of `conv`: blocks of kConvRows channels by a block of pixels.
AOTI_INLINE i64 conv_units(const ConvShape &s) {
  detail::ConvPlan p = detail::conv_plan(s);
  return s.batch * s.groups * p.rows * p.blocks;
}

// Units [u0, u1) of the convolution; at most detail::kMaxTaps taps. `scratch` holds the padded input (unused, may be
// null, when the input is read in place). The epilogue is called once per vector of results:
// epilogue(image, channel, pixel, lanes, sums), pixel = (od * OH + oh) * OW + ow of lane 0; lanes are consecutive pixels.
template <ConvOnce Once = ConvOnce::Larger, class Epilogue>
AOTI_INLINE void conv(const ConvShape &s, i64 u0, i64 u1, const f32 *x, const f32 *weights, const void *scratch,
                      Epilogue epilogue) {
  using namespace detail;
  if (u0 >= u1) return;
  ConvPlan p = conv_plan(s);
  ConvTaps taps;
  conv_taps(s, p, taps);
  const f32 *planes = p.in_place ? x : (const f32 *)scratch;
  alignas(64) f32 tile[kConvRows * kConvPixels + kLanes], compact[kConvRows * kConvPixels + kLanes];
  const f32 *sums_of_block = p.compact ? tile : compact;
  ConvRuns runs;
  i64 runs_of = -1;
  ConvCursor at = conv_cursor(s, p, Once, u0);
  for (i64 u = u0; u < u1; ++u, conv_next(s, p, at)) {
    i64 image = at.image, group = at.group, row = at.row, q = at.block * kConvPixels;
    i64 size = min_i64(p.pixels - q, kConvPixels);
    int rows = int(min_i64(p.oc - row * kConvRows, kConvRows));
    const f32 *from = planes + (image * s.in_channels + group * p.ic) * p.channel + q;
    const f32 *w = weights + (group * p.rows + row) * p.k * kConvRows;
    if (p.in_place && size < kConvPixels)
      conv_tile_at_end(p, taps, rows, size, w, from, tile);
    else
      conv_tile(p, taps, rows, size, p.k, w, from, tile);
    if (p.compact) {
      runs.pixel = q, runs.total = size;
    } else {
      if (runs_of != q) conv_runs(s, p, q, size, runs);
      runs_of = q;
      conv_compact(runs, rows, tile, compact);
    }
    for (int r = 0; r < rows; ++r)
      for_each_vector(sums_of_block + r * kConvPixels, runs.total, [&](i64 c, auto lanes, auto sums)
                          __attribute__((always_inline)) {
                            epilogue(image, group * p.oc + row * kConvRows + r, runs.pixel + c, lanes, sums);
                          });
  }
}

AOTI_NAMESPACE_END
