// Transposed convolution in f32, in two steps. `conv_transposed_products` multiplies: for every input pixel and every
// (output channel, tap), the sum over input channels, a 1x1 convolution on conv.h's kernels. `conv_transposed_gather`
// adds: every output pixel collects the taps that reach it, at most one product each, in order of the taps.
//
// Packed weights are conv.h's for OC * taps output channels: the model's [IC][OC / groups][taps] weight, per group
// transposed to [OC / groups * taps][IC / groups]; `runplan/pack.rs` writes them. Vectors run over pixels of equal stride
// phase, which are consecutive in the products.
#pragma once

#include "conv.h"
#include "memory.h"

AOTI_NAMESPACE_BEGIN
namespace detail {

// Output pixels of a row that are worked on at a time.
constexpr i64 kTransposedRow = 1024;

// The 1x1 convolution of the first step.
AOTI_INLINE ConvShape transposed_products(const ConvShape &s) {
  ConvShape c{s.batch, s.in_channels, s.out_channels * s.kernel[0] * s.kernel[1] * s.kernel[2], s.groups,
              {}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {}};
  for (int d = 0; d < 3; ++d) c.in[d] = c.out[d] = s.in[d];
  return c;
}

// to[i] += from[i] for i in [0, n).
AOTI_INLINE void add_floats(f32 *to, const f32 *from, i64 n) {
  i64 i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store_tile_vector(to + i, load_tile_vector(to + i) + load_tile_vector(from + i));
  for (; i < n; ++i) to[i] += from[i];
}

// Which input index, if any, reaches output index `o` through tap `k`: o + padding = i * stride + k * dilation.
AOTI_INLINE i64 transposed_index(const ConvShape &s, int d, i64 o, i64 k) {
  i64 reach = o + s.padding[d] - k * s.dilation[d];
  if (reach < 0 || reach % s.stride[d] != 0) return -1;
  i64 i = reach / s.stride[d];
  return i < s.in[d] ? i : -1;
}

// Output pixels [w0, w0 + width) as they are kept: pixel w0 + j * stride + phase at [phase * pitch + j].
struct TransposedChunk {
  i64 w0, width, pitch, phases;
};
// Input pixels [from, from + count) reach pixels [first, first + count) of `phase` through horizontal tap `k`.
struct TransposedRun {
  i64 phase, first, from, count;
};
AOTI_INLINE TransposedRun transposed_run(const ConvShape &s, const TransposedChunk &c, i64 k) {
  i64 stride = s.stride[2], reach = k * s.dilation[2] - s.padding[2] - c.w0;
  i64 phase = (reach % stride + stride) % stride, shift = (phase - reach) / stride;
  i64 first = max_i64(0, -shift), last = min_i64(ceil_div(c.width - phase, stride), s.in[2] - shift);
  return {phase, first, first + shift, phase < c.width ? last - first : 0};
}

// Sums of a chunk of output row (d, h), from the products of one output channel, back to back in `pixels`.
AOTI_NOINLINE void transposed_chunk(const ConvShape &s, const TransposedChunk &c, i64 d, i64 h, const f32 *products,
                                    f32 *sums, f32 *pixels) {
  zero_floats(sums, min_i64(c.phases * c.pitch, kTransposedRow));
  i64 plane = s.in[0] * s.in[1] * s.in[2];
  for (i64 kw = 0; kw < s.kernel[2]; ++kw) {
    TransposedRun run = transposed_run(s, c, kw);
    if (run.count <= 0) continue;
    for (i64 kd = 0; kd < s.kernel[0]; ++kd) {
      i64 id = transposed_index(s, 0, d, kd);
      if (id < 0) continue;
      for (i64 kh = 0; kh < s.kernel[1]; ++kh) {
        i64 ih = transposed_index(s, 1, h, kh);
        if (ih < 0) continue;
        const f32 *from = products + ((kd * s.kernel[1] + kh) * s.kernel[2] + kw) * plane;
        add_floats(sums + run.phase * c.pitch + run.first, from + (id * s.in[1] + ih) * s.in[2] + run.from, run.count);
      }
    }
  }
  for (i64 phase = 0; phase < min_i64(c.phases, c.width); ++phase)
    for (i64 i = phase, j = phase * c.pitch; i < c.width; i += c.phases) pixels[i] = sums[j++];
}

} // namespace detail

// Bytes of the products of the first step, shared by all threads. `in` and `out` of the shape are the transposed
// convolution's own input and output sizes.
AOTI_INLINE i64 conv_transposed_scratch_bytes(const ConvShape &s) {
  ConvShape c = detail::transposed_products(s);
  return round_up(c.batch * c.out_channels * c.out[0] * c.out[1] * c.out[2] * 4, 64);
}

AOTI_INLINE i64 conv_transposed_product_units(const ConvShape &s) { return conv_units(detail::transposed_products(s)); }
// Units [u0, u1) of the first step; all of them must be done before the second.
AOTI_NOINLINE void conv_transposed_products(const ConvShape &s, i64 u0, i64 u1, const f32 *x, const f32 *weights,
                                            void *scratch) {
  ConvShape c = detail::transposed_products(s);
  f32 *products = (f32 *)scratch;
  i64 plane = c.out[0] * c.out[1] * c.out[2];
  conv(c, u0, u1, x, weights, nullptr,
       [&](i64 image, i64 channel, i64 pixel, auto lanes, auto sums) __attribute__((always_inline)) {
         store(lanes, products + (image * c.out_channels + channel) * plane + pixel, sums);
       });
}

// Work units of the second step: output rows of every channel of the batch.
AOTI_INLINE i64 conv_transposed_units(const ConvShape &s) {
  return s.batch * s.out_channels * s.out[0] * s.out[1];
}
// Units [u0, u1) of the second step. The epilogue is called as by `conv`.
template <class Epilogue>
AOTI_INLINE void conv_transposed_gather(const ConvShape &s, i64 u0, i64 u1, const void *scratch, Epilogue epilogue) {
  using namespace detail;
  i64 products = s.kernel[0] * s.kernel[1] * s.kernel[2] * s.in[0] * s.in[1] * s.in[2];
  // With a stride beyond the row buffer a chunk has one output pixel of each phase.
  i64 pitch = max_i64(kTransposedRow / s.stride[2], 1), phases = min_i64(s.stride[2], kTransposedRow);
  alignas(64) f32 sums[kTransposedRow + kLanes], pixels[kTransposedRow + kLanes];
  for (i64 u = u0; u < u1; ++u) {
    i64 h = u % s.out[1], d = u / s.out[1] % s.out[0], channel = u / (s.out[1] * s.out[0]);
    const f32 *from = (const f32 *)scratch + channel * products;
    for (i64 w0 = 0; w0 < s.out[2]; w0 += pitch * phases) {
      i64 width = min_i64(s.out[2] - w0, pitch * phases);
      TransposedChunk chunk{w0, width, min_i64(pitch, ceil_div(width, phases)), phases};
      transposed_chunk(s, chunk, d, h, from, sums, pixels);
      i64 pixel = (d * s.out[1] + h) * s.out[2] + w0;
      for_each_vector(pixels, width, [&](i64 c, auto lanes, auto v) __attribute__((always_inline)) {
        epilogue(channel / s.out_channels, channel % s.out_channels, pixel + c, lanes, v);
      });
    }
  }
}

AOTI_NAMESPACE_END
