// Contractions for every element type: matrix product, convolution and transposed convolution by rows of sums.
// The inner loop is always row[i] += x[i] * w over a short row that stays in L1, so it is vector code for any type;
// nothing is blocked for registers, that is for gemm.h and conv.h. Sums are in order of k, then kernel taps.
//
// Integer sums wrap around. `Sum` is f32 for f32, f16 and bf16; f64 for f64; i32 or i64 for integers (a result narrower
// than the sum is its low bits). Epilogues get Vec<Sum, W> with Full<W> or Tail<W>.
#pragma once

#include "conv.h"
#include "gemm.h"
#include "transposed.h"

AOTI_NAMESPACE_BEGIN
namespace detail {

// Signed overflow is undefined, unsigned is not.
template <class Sum, bool Float = is_float<Sum>> struct Wrapping {
  using type = Sum;
};
template <class Sum> struct Wrapping<Sum, false> {
  using type = unsigned_of<Sum>;
};
template <class Sum> using wrapping = typename Wrapping<Sum>::type;

constexpr i64 kRow = 256;

// row[i] += x[i * stride] * w for i in [0, n).
template <class Sum, class T>
AOTI_NOINLINE AOTI_VECTORIZE void add_scaled(i64 n, Sum *__restrict row, const T *__restrict x, i64 stride, Sum w) {
  using U = wrapping<Sum>;
  U *to = (U *)row;
  U scale = U(w);
  if (stride == 1)
    for (i64 i = 0; i < n; ++i) to[i] += U(widen<Sum>(x[i])) * scale;
  else
    for (i64 i = 0; i < n; ++i) to[i] += U(widen<Sum>(x[i * stride])) * scale;
}

template <int W, class Sum, class Sink> AOTI_INLINE void for_each_sum(const Sum *row, i64 width, Sink &&sink) {
  for (i64 c = 0; c < width; c += W) {
    Vec<Sum, W> sums;
    __builtin_memcpy(&sums, row + c, sizeof sums);
    if (c + W <= width)
      sink(c, Full<W>{}, sums);
    else
      sink(c, Tail<W>{int(width - c)}, sums);
  }
}

} // namespace detail

// Rows [m0, m1) of A * B, any strides. epilogue(row, column, lanes, sums), then row_epilogue(first, last).
template <class Sum, int W, class TA, class TB, class Epilogue, class RowEpilogue = NoRowEpilogue>
AOTI_INLINE void gemm_any(i64 m0, i64 m1, i64 n, i64 k, Matrix<TA> a, Matrix<TB> b, Epilogue epilogue,
                          const RowEpilogue &row_epilogue = {}) {
  alignas(64) Sum sums[detail::kRow + W];
  for (i64 c0 = 0; c0 < n; c0 += detail::kRow)
    for (i64 r = m0; r < m1; ++r) {
      i64 width = min_i64(n - c0, detail::kRow);
      __builtin_memset(sums, 0, sizeof sums);
      for (i64 i = 0; i < k; ++i)
        detail::add_scaled(width, sums, b.data + i * b.row_stride + c0 * b.col_stride, b.col_stride,
                           widen<Sum>(a.data[r * a.row_stride + i * a.col_stride]));
      detail::for_each_sum<W>(sums, width, [&](i64 c, auto lanes, auto v) { epilogue(r, c0 + c, lanes, v); });
    }
  row_epilogue(m0, m1);
}

// Work units of `conv_any` and `conv_transposed_any`: output rows of every channel of the batch.
AOTI_INLINE i64 conv_any_units(const ConvShape &s) { return s.batch * s.out_channels * s.out[0] * s.out[1]; }

namespace detail {

struct ConvRow {
  i64 image, channel, group, d, h;
};
AOTI_INLINE ConvRow conv_row(const ConvShape &s, i64 unit) {
  i64 h = unit % s.out[1], rest = unit / s.out[1];
  i64 d = rest % s.out[0];
  rest /= s.out[0];
  i64 channel = rest % s.out_channels;
  return {rest / s.out_channels, channel, channel / (s.out_channels / s.groups), d, h};
}

// Adds channel `x` of the input to output pixels [w0, w0 + width) of a row.
template <class Sum, class T>
AOTI_NOINLINE void conv_row_channel(const ConvShape &s, const ConvRow &row, i64 w0, i64 width, const T *x,
                                    const T *weights, Sum *sums) {
  for (i64 kd = 0; kd < s.kernel[0]; ++kd) {
    i64 id = row.d * s.stride[0] + kd * s.dilation[0] - s.padding[0];
    if (id < 0 || id >= s.in[0]) continue;
    for (i64 kh = 0; kh < s.kernel[1]; ++kh) {
      i64 ih = row.h * s.stride[1] + kh * s.dilation[1] - s.padding[1];
      if (ih < 0 || ih >= s.in[1]) continue;
      const T *from = x + (id * s.in[1] + ih) * s.in[2];
      const T *w = weights + (kd * s.kernel[1] + kh) * s.kernel[2];
      for (i64 kw = 0; kw < s.kernel[2]; ++kw) {
        i64 shift = w0 * s.stride[2] + kw * s.dilation[2] - s.padding[2];
        Inside in = conv_inside(s.in[2], width, s.stride[2], shift);
        if (in.first < in.last)
          add_scaled(in.last - in.first, sums + in.first, from + in.first * s.stride[2] + shift, s.stride[2],
                     widen<Sum>(w[kw]));
      }
    }
  }
}

} // namespace detail

// Units [u0, u1) of a convolution of any type; weights [OC][IC / groups][taps]. The epilogue is called as by `conv`.
template <class Sum, int W, class T, class Epilogue>
AOTI_INLINE void conv_any(const ConvShape &s, i64 u0, i64 u1, const T *x, const T *weights, Epilogue epilogue) {
  alignas(64) Sum sums[detail::kRow + W];
  i64 taps = s.kernel[0] * s.kernel[1] * s.kernel[2], ic = s.in_channels / s.groups;
  for (i64 u = u0; u < u1; ++u) {
    detail::ConvRow row = detail::conv_row(s, u);
    for (i64 w0 = 0; w0 < s.out[2]; w0 += detail::kRow) {
      i64 width = min_i64(s.out[2] - w0, detail::kRow);
      __builtin_memset(sums, 0, sizeof sums);
      for (i64 c = 0; c < ic; ++c)
        detail::conv_row_channel(s, row, w0, width,
                                 x + (row.image * s.in_channels + row.group * ic + c) * s.in[0] * s.in[1] * s.in[2],
                                 weights + (row.channel * ic + c) * taps, sums);
      i64 pixel = (row.d * s.out[1] + row.h) * s.out[2] + w0;
      detail::for_each_sum<W>(sums, width, [&](i64 c, auto lanes, auto v) {
        epilogue(row.image, row.channel, pixel + c, lanes, v);
      });
    }
  }
}

namespace detail {

// Adds channel `x` to a chunk of an output row.
template <class Sum, class T>
AOTI_NOINLINE void transposed_row_channel(const ConvShape &s, const ConvRow &row, const TransposedChunk &chunk,
                                          const T *x, const T *weights, Sum *sums) {
  for (i64 kd = 0; kd < s.kernel[0]; ++kd) {
    i64 id = transposed_index(s, 0, row.d, kd);
    if (id < 0) continue;
    for (i64 kh = 0; kh < s.kernel[1]; ++kh) {
      i64 ih = transposed_index(s, 1, row.h, kh);
      if (ih < 0) continue;
      const T *from = x + (id * s.in[1] + ih) * s.in[2];
      const T *w = weights + (kd * s.kernel[1] + kh) * s.kernel[2];
      for (i64 kw = 0; kw < s.kernel[2]; ++kw) {
        TransposedRun run = transposed_run(s, chunk, kw);
        if (run.count > 0)
          add_scaled(run.count, sums + run.phase * chunk.pitch + run.first, from + run.from, 1,
                       widen<Sum>(w[kw]));
      }
    }
  }
}

} // namespace detail

// Units [u0, u1) of a transposed convolution: `in` and `out` are its own input and output sizes, weights
// [IC][OC / groups][taps] as the model has them. The epilogue is called as by `conv`.
template <class Sum, int W, class T, class Epilogue>
AOTI_INLINE void conv_transposed_any(const ConvShape &s, i64 u0, i64 u1, const T *x, const T *weights,
                                 Epilogue epilogue) {
  using namespace detail;
  i64 taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  i64 ic = s.in_channels / s.groups, oc = s.out_channels / s.groups;
  // With a stride beyond the row buffer every chunk is one output pixel of each phase.
  i64 pitch = max_i64(kRow / s.stride[2], 1), phases = min_i64(s.stride[2], kRow);
  alignas(64) Sum sums[kRow + W], pixels[kRow + W];
  for (i64 u = u0; u < u1; ++u) {
    ConvRow row = conv_row(s, u);
    for (i64 w0 = 0; w0 < s.out[2]; w0 += pitch * phases) {
      i64 width = min_i64(s.out[2] - w0, pitch * phases);
      __builtin_memset(sums, 0, sizeof sums);
      for (i64 c = 0; c < ic; ++c) {
        i64 channel = row.group * ic + c;
        transposed_row_channel(s, row, TransposedChunk{w0, width, pitch, phases},
                               x + (row.image * s.in_channels + channel) * s.in[0] * s.in[1] * s.in[2],
                               weights + (channel * oc + row.channel % oc) * taps, sums);
      }
      for (i64 phase = 0; phase < min_i64(phases, width); ++phase)
        for (i64 i = phase, j = phase * pitch; i < width; i += phases) pixels[i] = sums[j++];
      i64 pixel = (row.d * s.out[1] + row.h) * s.out[2] + w0;
      for_each_sum<W>(pixels, width, [&](i64 c, auto lanes, auto v) {
        epilogue(row.image, row.channel, pixel + c, lanes, v);
      });
    }
  }
}

AOTI_NAMESPACE_END
