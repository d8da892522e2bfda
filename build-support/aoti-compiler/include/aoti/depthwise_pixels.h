// Depthwise convolution of f32 or of bytes whose channels are last: one output channel for each input channel, vectors over
// channels. Bytes are widened where they are read; sums of so few of them are numbers that floats hold. The input is read where it lies. At a border, a table says for the pixels of a tile and each tap where the input
// pixel is, or that it is zero; it is made once for all channels.
//
// Packed weights are [ceil(C / kPanel)][taps][kPanel]. Sums are chains over the taps in order.
#pragma once

#include "memory.h"
#include "pixels.h"

AOTI_NAMESPACE_BEGIN

// Taps that `conv_depthwise_pixels` takes at most.
constexpr i64 kDepthwiseTaps = 256;

namespace detail {

// Output pixels of a tile, and channels that a table serves.
constexpr int kDepthwisePixels = AOTI_AVX512 || AOTI_AARCH64 ? 8 : 4;
constexpr i64 kDepthwiseZeros = 1024;

// Columns that the windows of a tile have at most where each is loaded once.
constexpr int kDepthwiseColumns = (kDepthwisePixels - 1) * 2 + 7;
// Rows of such windows.
constexpr i64 kDepthwiseRows = kDepthwiseTaps / 3;

// The taps of an output row that are inside the input there.
struct DepthwiseTaps {
  i64 count;
  i64 weight[kDepthwiseTaps]; // floats from the first weight
  i64 row[kDepthwiseTaps];    // pixels from the image's first to the first of the row that the tap reads
  i64 column[kDepthwiseTaps]; // pixels from where the window begins in that row
};
// Where each tap reads the pixels of a tile.
template <class T> struct DepthwiseTable {
  const T *from[kDepthwiseTaps][kDepthwisePixels];
};

AOTI_NOINLINE void depthwise_taps(const ConvShape &s, i64 d, i64 h, DepthwiseTaps &t) {
  t.count = 0;
  i64 tap = 0;
  for (i64 kd = 0; kd < s.kernel[0]; ++kd)
    for (i64 kh = 0; kh < s.kernel[1]; ++kh) {
      const i64 id = d * s.stride[0] + kd * s.dilation[0] - s.padding[0];
      const i64 ih = h * s.stride[1] + kh * s.dilation[1] - s.padding[1];
      const bool inside = u64(id) < u64(s.in[0]) && u64(ih) < u64(s.in[1]);
      for (i64 kw = 0; kw < s.kernel[2]; ++kw, ++tap) {
        t.weight[t.count] = tap * kPanel;
        t.row[t.count] = (id * s.in[1] + ih) * s.in[2];
        t.column[t.count] = kw * s.dilation[2];
        t.count += inside;
      }
    }
}

// Pixels [w, w + kDepthwisePixels) of an output row; those past its end read zeros.
template <class T>
AOTI_NOINLINE void depthwise_table(const ConvShape &s, const DepthwiseTaps &t, i64 w, const T *x, const T *zeros,
                                   DepthwiseTable<T> &table) {
  const i64 start = w * s.stride[2] - s.padding[2], pixels = min_i64(s.out[2] - w, kDepthwisePixels);
  for (i64 k = 0; k < t.count; ++k)
    for (i64 i = 0; i < kDepthwisePixels; ++i) {
      const i64 at = start + t.column[k] + i * s.stride[2];
      table.from[k][i] = i < pixels && u64(at) < u64(s.in[2]) ? x + (t.row[k] + at) * s.in_channels : zeros;
    }
}

// Elements of the input as sums count them, and sums as results are.
template <class L> AOTI_INLINE TileVector depthwise_load(L lanes, const f32 *p) { return (TileVector)load_raw(lanes, p).v; }
template <class L> AOTI_INLINE TileVector depthwise_load(L lanes, const u8 *p) {
  return (TileVector)convert<f32>(load_raw(lanes, p)).v;
}
template <class T> using DepthwiseResult = conditional<is_same<T, u8>, i32, f32>;

// sums[pixel][lane] = sum over taps, where from(tap, pixel) is read.
template <class L, class From>
AOTI_INLINE void depthwise_sums(L lanes, const DepthwiseTaps &t, const f32 *weights, f32 *sums, const From &from) {
  TileVector sum[kDepthwisePixels];
  AOTI_UNROLL for (int i = 0; i < kDepthwisePixels; ++i) sum[i] = TileVector{};
  for (i64 k = 0; k < t.count; ++k) {
    const TileVector weight = load_tile_vector(weights + t.weight[k]);
    AOTI_UNROLL for (int i = 0; i < kDepthwisePixels; ++i) sum[i] += depthwise_load(lanes, from(k, i)) * weight;
  }
  AOTI_UNROLL for (int i = 0; i < kDepthwisePixels; ++i) store_tile_vector(sums + i * kLanes, sum[i]);
}
// A tile at a border, in channels from `channel` on.
template <class T>
AOTI_NOINLINE AOTI_CONTRACT void depthwise_border(i64 channels, const DepthwiseTaps &t, const DepthwiseTable<T> &table,
                                                  i64 channel, const f32 *weights, f32 *sums) {
  AOTI_CONTRACT_BODY
  const auto from = [&](i64 k, int i) AOTI_LAMBDA { return table.from[k][i] + channel; };
  if (channels >= kLanes)
    depthwise_sums(Full<kLanes>{}, t, weights, sums, from);
  else
    depthwise_sums(Tail<kLanes>{int(channels)}, t, weights, sums, from);
}
// A tile whose pixels are `step` elements apart, the first of each tap at `offsets` from x.
template <class T>
AOTI_NOINLINE AOTI_CONTRACT void depthwise_interior(i64 channels, const DepthwiseTaps &t, const i64 *offsets, const T *x,
                                                    i64 step, const f32 *weights, f32 *sums) {
  AOTI_CONTRACT_BODY
  const auto from = [&](i64 k, int i) AOTI_LAMBDA { return x + offsets[k] + i * step; };
  if (channels >= kLanes)
    depthwise_sums(Full<kLanes>{}, t, weights, sums, from);
  else
    depthwise_sums(Tail<kLanes>{int(channels)}, t, weights, sums, from);
}

// Where the columns of a tile's windows are, in each row of the kernel; `columns` of a row.
struct DepthwiseRows {
  i64 rows;
  i64 weight[kDepthwiseRows];     // floats from the first weight
  i64 pixel[kDepthwiseRows];      // from the image's first to the first of the row
};
template <class T> struct DepthwiseWindows : DepthwiseRows {
  const T *from[kDepthwiseRows][kDepthwiseColumns];
};

// The kernel's rows that are inside the input for output row h of slice d.
AOTI_NOINLINE void depthwise_window_rows(const ConvShape &s, i64 d, i64 h, DepthwiseRows &t) {
  t.rows = 0;
  for (i64 kd = 0; kd < s.kernel[0]; ++kd)
    for (i64 kh = 0; kh < s.kernel[1]; ++kh) {
      const i64 id = d * s.stride[0] + kd * s.dilation[0] - s.padding[0];
      const i64 ih = h * s.stride[1] + kh * s.dilation[1] - s.padding[1];
      t.weight[t.rows] = (kd * s.kernel[1] + kh) * s.kernel[2] * kPanel;
      t.pixel[t.rows] = (id * s.in[1] + ih) * s.in[2];
      t.rows += u64(id) < u64(s.in[0]) && u64(ih) < u64(s.in[1]);
    }
}
// Whether the input's last row is among them.
AOTI_INLINE bool depthwise_ends(const ConvShape &s, const DepthwiseRows &t) {
  return t.rows > 0 && t.pixel[t.rows - 1] + s.in[2] == s.in[0] * s.in[1] * s.in[2];
}
// The columns from `start` on, `count` of them, of an image whose channels are at x; those beside it are zeros.
template <class T>
AOTI_NOINLINE void depthwise_window_columns(const ConvShape &s, i64 start, i64 count, const T *x, const T *zeros,
                                            DepthwiseWindows<T> &t) {
  const i64 first = min_i64(max_i64(-start, 0), count), last = max_i64(min_i64(s.in[2] - start, count), first);
  for (i64 r = 0; r < t.rows; ++r) {
    const T *const row = x + (t.pixel[r] + start) * s.in_channels;
    for (i64 j = 0; j < first; ++j) t.from[r][j] = zeros;
    for (i64 j = first; j < last; ++j) t.from[r][j] = row + j * s.in_channels;
    for (i64 j = last; j < count; ++j) t.from[r][j] = zeros;
  }
}

// sums[pixel][lane] of windows of Taps columns, pixels Stride columns apart: an element that several pixels of the tile read is
// loaded once.
template <class T, int Taps, int Stride>
AOTI_NOINLINE AOTI_CONTRACT void depthwise_windows(const DepthwiseWindows<T> &t, i64 channel, const f32 *weights, f32 *sums) {
  AOTI_CONTRACT_BODY
  TileVector sum[kDepthwisePixels];
  AOTI_UNROLL for (int i = 0; i < kDepthwisePixels; ++i) sum[i] = TileVector{};
  for (i64 r = 0; r < t.rows; ++r) {
    TileVector weight[Taps];
    AOTI_UNROLL for (int k = 0; k < Taps; ++k) weight[k] = load_tile_vector(weights + t.weight[r] + k * kPanel);
    AOTI_UNROLL for (int j = 0; j < (kDepthwisePixels - 1) * Stride + Taps; ++j) {
      const TileVector x = depthwise_load(Full<kLanes>{}, t.from[r][j] + channel);
      AOTI_UNROLL for (int i = 0; i < kDepthwisePixels; ++i)
        if (j >= i * Stride && j < i * Stride + Taps) sum[i] += x * weight[j - i * Stride];
    }
  }
  AOTI_UNROLL for (int i = 0; i < kDepthwisePixels; ++i) store_tile_vector(sums + i * kLanes, sum[i]);
}

template <class T> using DepthwiseKernel = void (*)(const DepthwiseWindows<T> &, i64, const f32 *, f32 *);
// The kernel for windows of these columns, if there is one.
template <class T> AOTI_INLINE DepthwiseKernel<T> depthwise_kernel_of(const ConvShape &s) {
  const i64 taps = s.kernel[2], stride = s.stride[2];
  if (s.dilation[2] != 1) return nullptr;
  if (taps == 3) return stride == 1 ? depthwise_windows<T, 3, 1> : stride == 2 ? depthwise_windows<T, 3, 2> : nullptr;
  if (taps == 5) return stride == 1 ? depthwise_windows<T, 5, 1> : stride == 2 ? depthwise_windows<T, 5, 2> : nullptr;
  return taps == 7 && stride == 1 ? depthwise_windows<T, 7, 1> : nullptr;
}

} // namespace detail

// Work units of `conv_depthwise_pixels`: rows of output pixels.
AOTI_INLINE i64 conv_depthwise_pixels_units(const ConvShape &s) { return s.batch * s.out[0] * s.out[1]; }

// Units [u0, u1) of a convolution with as many groups as input and output channels; uses about 30 KiB of stack. The
// epilogue is called as by `conv_pixels`.
template <class T, class Epilogue>
AOTI_INLINE void conv_depthwise_pixels(const ConvShape &s, i64 u0, i64 u1, const T *x, const f32 *weights,
                                       Epilogue epilogue) {
  using namespace detail;
  const i64 channels = s.out_channels, panel = s.kernel[0] * s.kernel[1] * s.kernel[2] * kPanel;
  const i64 image_elements = s.in[0] * s.in[1] * s.in[2] * channels;
  alignas(64) f32 sums[kDepthwisePixels * kLanes];
  alignas(64) T zeros[kDepthwiseZeros + kLanes] = {};
  DepthwiseTaps taps;
  DepthwiseTable<T> table;
  DepthwiseWindows<T> windows;
  i64 offsets[kDepthwiseTaps];
  const DepthwiseKernel<T> of_windows = channels >= kLanes ? depthwise_kernel_of<T>(s) : nullptr;
  const i64 step = s.stride[2] * channels, reach = (kDepthwisePixels - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2];
  for (i64 u = u0; u < u1; ++u) {
    const i64 h = u % s.out[1], d = u / s.out[1] % s.out[0], image = u / (s.out[1] * s.out[0]);
    if (of_windows) depthwise_window_rows(s, d, h, windows);
    // Vectors of the last channels reach into the next pixel, so that those of the last row go by masks.
    const bool whole = of_windows && (channels % kLanes == 0 || image < s.batch - 1 || !depthwise_ends(s, windows));
    if (!whole) depthwise_taps(s, d, h, taps);
    for (i64 k = 0; !whole && k < taps.count; ++k) offsets[k] = (taps.row[k] + taps.column[k]) * channels;
    for (i64 w = 0; w < s.out[2]; w += kDepthwisePixels) {
      const i64 pixels = min_i64(s.out[2] - w, kDepthwisePixels), first = (d * s.out[1] + h) * s.out[2] + w;
      const i64 start = w * s.stride[2] - s.padding[2];
      const bool interior = start >= 0 && start + reach < s.in[2];
      for (i64 block = 0; block < channels; block += kDepthwiseZeros) {
        const T *from = x + (image * image_elements + block);
        if (of_windows) depthwise_window_columns(s, start, reach + 1, from, zeros, windows);
        if (!whole && !interior) depthwise_table(s, taps, w, from, zeros, table);
        const i64 last = min_i64(channels, block + kDepthwiseZeros);
        for (i64 c = block; c < last; c += kLanes) {
          const f32 *w_of = weights + c / kPanel * panel + c % kPanel;
          if (of_windows && (whole || last - c >= kLanes))
            of_windows(windows, c - block, w_of, sums);
          else if (interior)
            depthwise_interior(last - c, taps, offsets, from + start * channels + (c - block), step, w_of, sums);
          else
            depthwise_border(last - c, taps, table, c - block, w_of, sums);
          const i64 count = min_i64(last - c, kLanes);
          for (i64 i = 0; i < pixels; ++i)
            for_each_vector(sums + i * kLanes, count, [&](i64, auto lanes, auto of_lanes) __attribute__((always_inline)) {
              epilogue(image, c, first + i, lanes, convert<DepthwiseResult<T>>(of_lanes));
            });
        }
      }
    }
  }
}

AOTI_NAMESPACE_END
