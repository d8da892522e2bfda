// Rewrites weights into the panels that the contraction kernels read, at run time: the twin of the compiler's `pack.rs`,
// whose results it gives bit for bit. Knows nothing of models; callers vouch that matrices lie inside their tensors.
#pragma once

#include "run.h"
#include "tile.h"

AOTI_NAMESPACE_BEGIN

AOTI_INLINE f64 widened(f64 x) { return x; }
AOTI_INLINE f32 widened(f32 x) { return x; }
AOTI_INLINE f32 widened(i8 x) { return f32(x); }
AOTI_INLINE f32 widened(f16 x) { return to_f32(x); }
AOTI_INLINE f32 widened(bf16 x) { return to_f32(x); }

// Elements that are worth a hand-over to another thread.
constexpr i64 kPackGrain = 1 << 16;

// `rows` x `columns` numbers, given by value(row, column), as panels of `Width` rows each: [panel][column][row], rows
// past the last zero. `group` tells several such matrices apart, which lie one after the other.
template <i64 Width, class S, class Value>
AOTI_INLINE void pack_panels(const Run &run, i64 groups, i64 rows, i64 columns, S *packed, const Value &value) {
  const i64 panels = ceil_div(rows, Width);
  parallel(run, groups * panels, grain(run, kPackGrain, columns * Width), [&](i64 begin, i64 end, i64) {
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 group = unit / panels, first = unit % panels * Width;
      const i64 count = min_i64(rows - first, Width);
      S *out = packed + unit * columns * Width;
      for (i64 column = 0; column < columns; ++column, out += Width) {
        for (i64 row = 0; row < count; ++row) out[row] = value(group, first + row, column);
        for (i64 row = count; row < Width; ++row) out[row] = 0;
      }
    }
  });
}

// B of `A[m, k] * B[k, n]`, element (row, column) at row * row_stride + column * col_stride, for `gemm_packed`.
template <class T, class S>
AOTI_NOINLINE void pack_product(const Run &run, const T *b, i64 row_stride, i64 col_stride, i64 k, i64 n, S *packed) {
  pack_panels<kPanelOf<S>>(run, 1, n, k, packed, [=](i64, i64 column, i64 row) {
    return widened(b[row * row_stride + column * col_stride]);
  });
}

// The same where elements keep their narrow type, of as many bytes as U.
template <class U>
AOTI_NOINLINE void pack_narrow(const Run &run, const void *b, i64 row_stride, i64 col_stride, i64 k, i64 n, U *packed) {
  const U *from = (const U *)b;
  pack_panels<kPanel>(run, 1, n, k, packed, [=](i64, i64 column, i64 row) {
    return from[row * row_stride + column * col_stride];
  });
}

// A word of four numbers of one byte, of which each is the lowest of an element's.
template <class At> AOTI_INLINE i32 word_of(const At &at) {
  u32 word = 0;
  for (int i = 0; i < 4; ++i) word |= u32(*at(i)) << 8 * i;
  return i32(word);
}

// B for `gemm_packed` in words; strides count bytes.
AOTI_NOINLINE void pack_product_words(const Run &run, const u8 *b, i64 row_stride, i64 col_stride, i64 k, i64 n, i32 *packed) {
  pack_panels<kPanel>(run, 1, n, k / 4, packed, [=](i64, i64 column, i64 row) {
    return word_of([&](int i) { return b + (4 * row + i) * row_stride + column * col_stride; });
  });
}

// Convolution weights for `conv_pixels` in words, elements of `size` bytes.
AOTI_NOINLINE void pack_tap_words(const Run &run, const u8 *w, i64 size, i64 groups, i64 channels, i64 in_channels, i64 taps,
                                  i32 *packed) {
  const i64 own = channels / groups;
  pack_panels<kPanel>(run, groups, own, in_channels * taps / 4, packed, [=](i64 group, i64 channel, i64 row) {
    return word_of([&](int i) {
      const i64 at = 4 * row + i;
      return w + (((group * own + channel) * in_channels + at % in_channels) * taps + at / in_channels) * size;
    });
  });
}

// Convolution weights [channels][in_channels][taps] for `conv_pixels`.
template <class T>
AOTI_NOINLINE void pack_tap_panels(const Run &run, const T *w, i64 groups, i64 channels, i64 in_channels, i64 taps,
                                   f32 *packed) {
  const i64 own = channels / groups;
  pack_panels<kPanel>(run, groups, own, in_channels * taps, packed, [=](i64 group, i64 channel, i64 at) {
    return widened(w[((group * own + channel) * in_channels + at % in_channels) * taps + at / in_channels]);
  });
}

// Convolution weights [channels][k] for `conv`.
template <class T>
AOTI_NOINLINE void pack_conv(const Run &run, const T *w, i64 groups, i64 channels, i64 k, f32 *packed) {
  const i64 own = channels / groups;
  pack_panels<kConvRows>(run, groups, own, k, packed,
                         [=](i64 group, i64 row, i64 column) { return widened(w[(group * own + row) * k + column]); });
}

// Transposed convolution weights [in_channels][rows] for `conv_transposed_products`.
template <class T>
AOTI_NOINLINE void pack_conv_transposed(const Run &run, const T *w, i64 groups, i64 in_channels, i64 rows,
                                        f32 *packed) {
  const i64 k = in_channels / groups;
  pack_panels<kConvRows>(run, groups, rows, k, packed,
                         [=](i64 group, i64 row, i64 column) { return widened(w[(group * k + column) * rows + row]); });
}

// Weights [channels][in_channels][taps] as [channels][taps][in_channels].
template <class T>
AOTI_NOINLINE void pack_by_tap(const Run &run, const T *w, i64 channels, i64 in_channels, i64 taps, T *packed) {
  const i64 row = in_channels * taps;
  parallel(run, channels, grain(run, kPackGrain, row), [&](i64 begin, i64 end, i64) {
    for (i64 at = begin * row; at < end * row; at += row)
      for (i64 tap = 0; tap < taps; ++tap)
        for (i64 channel = 0; channel < in_channels; ++channel) packed[at + tap * in_channels + channel] = w[at + channel * taps + tap];
  });
}

AOTI_NAMESPACE_END
