// Makes the forms of weights that take more memory than what they are made of: libraries and files of weights hold the
// smaller form, and a model makes the larger one when it is created. Knows nothing of models, nor who reads a form.
#pragma once

#include "bytes.h"
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

AOTI_NAMESPACE_BEGIN

// One of them, and where it is made.
struct Expansion {
  int64_t from, to; // bytes into the weights, and into what is made
  void (*make)(const f32 *from, f32 *to, const int64_t *sizes);
  int64_t sizes[4]; // those of the function
};

constexpr i64 kWinogradTaps = 9;
constexpr i64 kWinogradWeights = 16;

// For kConvRows channels from w[tap][kConvRows]: G w G^T, rounded once, to[point][kPanel]. G is {1, 0, 0}, {1/2, 1/2, 1/2},
// {1/2, -1/2, 1/2}, {0, 0, 1}.
AOTI_NOINLINE AOTI_VECTORIZE void winograd_weights(const f32 *__restrict w, f32 *__restrict to) {
  f64 columns[4][3][kConvRows];
  for (i64 k = 0; k < 3; ++k)
    for (i64 r = 0; r < kConvRows; ++r) {
      const f64 a = w[k * kConvRows + r], b = w[(3 + k) * kConvRows + r], c = w[(6 + k) * kConvRows + r];
      columns[0][k][r] = a, columns[1][k][r] = (a + c + b) * 0.5;
      columns[2][k][r] = (a + c - b) * 0.5, columns[3][k][r] = c;
    }
  for (i64 i = 0; i < 4; ++i, to += 4 * kPanel)
    for (i64 r = 0; r < kConvRows; ++r) {
      const f64 a = columns[i][0][r], b = columns[i][1][r], c = columns[i][2][r];
      to[r] = f32(a), to[kPanel + r] = f32((a + c + b) * 0.5);
      to[2 * kPanel + r] = f32((a + c - b) * 0.5), to[3 * kPanel + r] = f32(c);
    }
}

// Weights of 3 x 3 taps in the form of `pack_conv`, [ceil(channels / kConvRows)][in_channels * 9][kConvRows], for
// `conv_winograd`: [point][ceil(channels / kPanel)][in_channels][kPanel]. `sizes`: channels, in_channels.
AOTI_NOINLINE void expand_winograd(const f32 *from, f32 *to, const int64_t *sizes) {
  const i64 channels = sizes[0], in_channels = sizes[1], taps = kWinogradTaps * kConvRows;
  const i64 of_point = ceil_div(channels, kPanel) * in_channels * kPanel;
  for (i64 panel = 0; panel < channels; panel += kPanel) {
    // The points are far apart, often by a power of two: each is written a row at a time.
    f32 points[kWinogradWeights * kPanel] = {};
    for (i64 k = 0; k < in_channels; ++k, to += kPanel) {
      for (i64 at = 0; at < min_i64(channels - panel, kPanel); at += kConvRows)
        winograd_weights(from + ((panel + at) / kConvRows * in_channels + k) * taps, points + at);
      for (i64 point = 0; point < kWinogradWeights; ++point)
        memcpy(to + point * of_point, points + point * kPanel, kPanel * sizeof(f32));
    }
  }
}

// Weights of 3 x 3 taps at the points of `conv_winograd_bytes`: [point][ceil(channels / kPanel)][in_channels / 2][kPanel] pairs of
// 16 bits. 2 G w (2 G)^T is integers.
AOTI_NOINLINE AOTI_VECTORIZE void word_points(const int8_t *w, i16 *to, i64 panels, i64 words) {
  constexpr i64 row = 4 * kPanel;
  for (i64 panel = 0; panel < panels; ++panel, w += kWinogradTaps * words * row)
    for (i64 word = 0; word < words; ++word) {
      i16 columns[4][3][row], points[4][row];
      for (i64 k = 0; k < 3; ++k)
        for (i64 r = 0; r < row; ++r) {
          const int8_t *tap = w + (k * words + word) * row + r;
          const i16 a = tap[0], b = tap[3 * words * row], c = tap[6 * words * row];
          columns[0][k][r] = i16(2 * a), columns[1][k][r] = i16(a + b + c);
          columns[2][k][r] = i16(a - b + c), columns[3][k][r] = i16(2 * c);
        }
      for (i64 i = 0; i < 4; ++i) {
        for (i64 r = 0; r < row; ++r) {
          const i16 a = columns[i][0][r], b = columns[i][1][r], c = columns[i][2][r];
          points[0][r] = i16(2 * a), points[1][r] = i16(a + b + c);
          points[2][r] = i16(a - b + c), points[3][r] = i16(2 * c);
        }
        for (i64 j = 0; j < 4; ++j) {
          // The two pairs of each word are neighbouring rows.
          i16 *pairs = to + (((4 * i + j) * panels + panel) * words + word) * row;
          for (i64 column = 0; column < kPanel; ++column) {
            memcpy(pairs + 2 * column, points[j] + 4 * column, 2 * sizeof(i16));
            memcpy(pairs + row / 2 + 2 * column, points[j] + 4 * column + 2, 2 * sizeof(i16));
          }
        }
      }
    }
}

// Weights of 3 x 3 taps in the form of `pack_tap_words`, [ceil(channels / kPanel)][tap][in_channels / 4][kPanel] words, for
// `conv_winograd_bytes`: behind a head they themselves, where this machine has an instruction for them, else at their points. `sizes`:
// channels, in_channels.
AOTI_NOINLINE void expand_winograd_bytes(const f32 *from, f32 *to, const int64_t *sizes) {
  const i64 panels = ceil_div(sizes[0], kPanel), words = sizes[1] / 4;
  using namespace detail;
  const WordForm form = may_multiply_words() ? kWordsThemselves : kWordPoints;
  memset(to, 0, kFormHead * sizeof(f32));
  memcpy(to, &form, sizeof form);
  if (form == kWordPoints)
    word_points((const int8_t *)from, (i16 *)(to + kFormHead), panels, words);
  else
    memcpy(to + kFormHead, from, size_t(panels * kWinogradTaps * words * kPanel) * sizeof(f32));
}

// Weights [channels][taps][in_channels] for `conv_pixels`, in the form of `pack_tap_panels`. `sizes`: groups, channels,
// in_channels of a group, taps.
AOTI_NOINLINE void expand_panels(const f32 *from, f32 *to, const int64_t *sizes) {
  const i64 own = sizes[1] / sizes[0], rows = sizes[2] * sizes[3];
  for (i64 group = 0; group < sizes[0]; ++group, from += own * rows)
    for (i64 panel = 0; panel < own; panel += kPanel)
      for (i64 row = 0; row < rows; ++row)
        for (i64 channel = panel; channel < panel + kPanel; ++channel)
          *to++ = channel < own ? from[channel * rows + row] : 0;
}

// Asks for large pages: whole ones inside the memory, which is touched for the first time. The system has fewer to hand out,
// and kernels that read all of their weights in each run look up fewer addresses.
AOTI_INLINE void advise_large_pages(char *memory, i64 bytes) {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t page = 1 << 21;
  const uintptr_t first = (uintptr_t(memory) + page - 1) / page * page;
  const uintptr_t end = (uintptr_t(memory) + uintptr_t(bytes)) / page * page;
  if (first < end) madvise((void *)first, size_t(end - first), MADV_HUGEPAGE);
#else
  (void)memory, (void)bytes;
#endif
}

// All that a model makes: `bytes` of them.
template <const Expansion *All, int32_t Count> void expand(const char *weights, char *to, int64_t bytes) {
  advise_large_pages(to, bytes);
  for (int32_t i = 0; i < Count; ++i)
    All[i].make((const f32 *)(weights + All[i].from), (f32 *)(to + All[i].to), All[i].sizes);
}

AOTI_NAMESPACE_END
