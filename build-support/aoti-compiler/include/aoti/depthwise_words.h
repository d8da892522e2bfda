// Depthwise convolution of bytes whose channels are last, by products of words (`bytes.h`): the three taps of a kernel row read
// neighbouring pixels, and what these have of one channel, with the pixel behind them, is a word. Two output pixels that are
// neighbours read the same word, by weights of which one's are moved by a byte. Without the instruction for words, for kernels of other
// sizes and for few channels, `depthwise_pixels.h` takes no longer.
#pragma once

#include "depthwise_pixels.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// Words of weights that are made at a time.
constexpr i64 kDepthwiseWords = 6144;
// Output pixels of a tile where registers hold its sums.
constexpr int kWordPixels = AOTI_AVX512 || AOTI_AARCH64 ? 4 : 2;

// How windows of three columns, Stride columns apart, share words.
template <int Stride> struct SharedWords {
  // Output pixels that read the same word, and words of a tile, which begin with every second column.
  static constexpr int group = Stride == 1 ? 2 : 1, words = kWordPixels / group;
  static constexpr int columns = 2 * words + 2;
  static_assert(group * Stride == 2, "words begin with pairs of columns");
  static_assert(kWordPixels * Stride + columns <= kDepthwiseColumns, "tables hold the columns of two tiles");
};

// How a tile reads channels: a vector of one pixel's, or half a vector of this one's and of one `kWordPixels` output pixels on.
enum class TileChannels { All, Half };
AOTI_CONSTEXPR i64 tile_width(TileChannels channels) {
  return channels == TileChannels::All ? AOTI_VECTOR_BYTES : AOTI_VECTOR_BYTES / 2;
}
// Half vectors are read even where fewer channels are left.
constexpr i64 kDepthwiseStep = tile_width(TileChannels::Half);
AOTI_INLINE TileChannels tile_channels(i64 left) {
  return left > kDepthwiseStep ? TileChannels::All : TileChannels::Half;
}

#if AOTI_WORD_PRODUCTS
// The weights of a tile's channels from `first` on as words, [row][pixel of a group][AOTI_VECTOR_BYTES], as tiles read channels.
AOTI_NOINLINE void depthwise_word_weights(const f32 *weights, i64 rows, int group, i64 first, TileChannels channels, i32 *to) {
  const i64 panel = rows * 3 * kPanel, width = tile_width(channels);
  for (i64 r = 0; r < rows; ++r)
    for (int i = 0; i < group; ++i)
      for (i64 at = 0; at < AOTI_VECTOR_BYTES; at += kLanes, to += kLanes) {
        const i64 c = first + at % width;
        WordVector all{};
        for (int tap = 0; tap < 3; ++tap) {
          const auto weight = load_sums<kLanes>(weights + c / kPanel * panel + (r * 3 + tap) * kPanel + c % kPanel);
          all |= (WordVector)(convert<i32>(weight).v & 255) << 8 * (i + tap);
        }
        store_tile_vector(to, all);
      }
}

typedef u8 PixelBytes __attribute__((vector_size(AOTI_VECTOR_BYTES)));
typedef u16 PixelPairs __attribute__((vector_size(AOTI_VECTOR_BYTES)));
typedef i32 HalfOfPixel __attribute__((vector_size(AOTI_VECTOR_BYTES / 2)));

// Elements of the lower or upper half of each 16 bytes of a and b, in turn.
template <int OfPart, bool Upper, class V, int... I> AOTI_INLINE V interleaved(V a, V b, Indices<I...>) {
  constexpr int all = int(sizeof...(I)), first = Upper ? OfPart / 2 : 0;
  return shuffled<(I / OfPart * OfPart + first + I % OfPart / 2 + (I % 2 ? all : 0))...>(a, b);
}
// Four channels each are moved to where two steps of that take their words from.
template <int... I> AOTI_INLINE WordVector spread_channels(WordVector a, Indices<I...>) {
  constexpr int parts = int(sizeof...(I)) / 4;
  return shuffled<(I % 4 * parts + I / 4)...>(a, a);
}
template <int... I> AOTI_INLINE WordVector both_halves(const u8 *low, const u8 *high, Indices<I...>) {
  typedef i32 Unaligned __attribute__((vector_size(AOTI_VECTOR_BYTES / 2), aligned(1), may_alias));
  const HalfOfPixel a = *(const Unaligned *)low, b = *(const Unaligned *)high;
#if AOTI_GCC_X86 && AOTI_AVX2
  return (WordVector)gcc::join_halves(a, b);
#else
  return shuffled<I...>(a, b);
#endif
}

// Where a tile reads its columns of a kernel row, `channel` channels further on.
template <TileChannels Channels, int Stride> struct TileColumns {
  const u8 *const *from;
  i64 channel;

  AOTI_INLINE PixelBytes column(int j) const {
    WordVector all;
    if constexpr (Channels == TileChannels::All)
      all = load_tile_vector((const i32 *)(from[j] + channel));
    else
      all = both_halves(from[j] + channel, from[j + kWordPixels * Stride] + channel, indices<kLanes>{});
    const PixelBytes own = (PixelBytes)spread_channels(all, indices<kLanes>{});
#if defined(__aarch64__)
    // The instruction takes signed numbers: these are less by 128.
    return own ^ 0x80;
#else
    return own;
#endif
  }
};

// Two neighbouring columns, the channels of both in turn.
struct ColumnPair {
  PixelPairs part[2];

  AOTI_INLINE void set(PixelBytes a, PixelBytes b) {
    part[0] = (PixelPairs)interleaved<16, false>(a, b, indices<AOTI_VECTOR_BYTES>{});
    part[1] = (PixelPairs)interleaved<16, true>(a, b, indices<AOTI_VECTOR_BYTES>{});
  }
  // The words of this and the next pair, of a quarter of the channels.
  template <int Quarter> AOTI_INLINE WordVector words(const ColumnPair &next) const {
    return (WordVector)interleaved<8, Quarter % 2 != 0>(part[Quarter / 2], next.part[Quarter / 2], indices<AOTI_VECTOR_BYTES / 2>{});
  }
};

// Sums of a tile, a vector of words for each quarter of its channels.
using WordTile = WordVector[kWordPixels][4];

// Adds a kernel row's words of two pairs to the sums of the pixels that read these.
template <int Group>
AOTI_INLINE AOTI_USES_WORDS void add_pair_words(const ColumnPair &first, const ColumnPair &second, const i32 *weights,
                                                WordVector (*sums)[4]) {
  const WordVector words[4] = {first.words<0>(second), first.words<1>(second), first.words<2>(second), first.words<3>(second)};
  AOTI_UNROLL for (int i = 0; i < Group; ++i) AOTI_UNROLL for (int v = 0; v < 4; ++v) sums[i][v] =
      add_words(sums[i][v], words[v], load_tile_vector(weights + i * AOTI_VECTOR_BYTES + v * kLanes));
}

// sums[pixel][channel] of a tile in channels from `channel` on, by their words of all kernel rows. The tile's first column is number
// `column` of the windows.
template <TileChannels Channels, int Stride>
AOTI_NOINLINE AOTI_USES_WORDS void depthwise_word_tile(const DepthwiseWindows<u8> &t, i64 column, i64 channel, const i32 *weights,
                                                       i32 *sums) {
  using Shared = SharedWords<Stride>;
  WordTile sum;
  AOTI_UNROLL for (int i = 0; i < kWordPixels; ++i) AOTI_UNROLL for (int v = 0; v < 4; ++v) sum[i][v] = WordVector{};
  for (i64 r = 0; r < t.rows; ++r) {
    const i32 *own = weights + t.weight[r] / (3 * kPanel) * (Shared::group * AOTI_VECTOR_BYTES);
    const TileColumns<Channels, Stride> columns{t.from[r] + column, channel};
    ColumnPair pairs[Shared::words + 1];
    AOTI_UNROLL for (int j = 0; j <= Shared::words; ++j) pairs[j].set(columns.column(2 * j), columns.column(2 * j + 1));
    AOTI_UNROLL for (int g = 0; g < Shared::words; ++g)
      add_pair_words<Shared::group>(pairs[g], pairs[g + 1], own, sum + g * Shared::group);
#if defined(__aarch64__)
    // 128 times the weights, of which all pixels have the same.
    AOTI_UNROLL for (int v = 0; v < 4; ++v) {
      const WordVector more = add_words(WordVector{}, word_everywhere(i32(0x80808080)), load_tile_vector(own + v * kLanes));
      AOTI_UNROLL for (int i = 0; i < kWordPixels; ++i) sum[i][v] -= more;
    }
#endif
  }
  AOTI_UNROLL for (int i = 0; i < kWordPixels; ++i) AOTI_UNROLL for (int v = 0; v < 4; ++v)
      store_tile_vector(sums + i * AOTI_VECTOR_BYTES + v * kLanes, sum[i][v]);
}

using DepthwiseWordTile = void (*)(const DepthwiseWindows<u8> &, i64, i64, const i32 *, i32 *);
template <int Stride> AOTI_INLINE DepthwiseWordTile depthwise_word_tile_of(TileChannels channels) {
  return channels == TileChannels::All ? depthwise_word_tile<TileChannels::All, Stride> : depthwise_word_tile<TileChannels::Half, Stride>;
}
// Whether words are faster here.
AOTI_INLINE bool are_depthwise_words(const ConvShape &s) {
  const i64 rows = s.kernel[0] * s.kernel[1];
  return s.kernel[2] == 3 && s.dilation[2] == 1 && (s.stride[2] == 1 || s.stride[2] == 2) && 2 * rows * AOTI_VECTOR_BYTES <= kDepthwiseWords &&
         s.out_channels > kDepthwiseStep / 2 && has_word_products();
}

// Hands over pixels [begin, end) of a tile's: of half vectors, those behind the tile's are in the other half.
template <class Sink>
AOTI_INLINE void depthwise_word_results(const i32 *sums, i64 begin, i64 end, TileChannels of, i64 channels, const Sink &sink) {
  for (i64 i = begin; i < end; ++i) {
    const i64 at = i % kWordPixels * AOTI_VECTOR_BYTES + (of == TileChannels::Half ? i / kWordPixels * kDepthwiseStep : 0);
    for_each_vector(sums + at, channels, [&](i64 c, auto lanes, auto own) __attribute__((always_inline)) { sink(i, c, lanes, own); });
  }
}
#endif

} // namespace detail

// Work units of `conv_depthwise_words`: rows of output pixels.
AOTI_INLINE i64 conv_depthwise_words_units(const ConvShape &s) { return conv_depthwise_pixels_units(s); }

// As `conv_depthwise_pixels`, of bytes by weights that are integers of one byte; uses about 40 KiB of stack.
template <class Epilogue>
AOTI_INLINE void conv_depthwise_words(const ConvShape &s, i64 u0, i64 u1, const u8 *x, const f32 *weights, Epilogue epilogue) {
  const auto by_pixels = [&](i64 from, i64 to) __attribute__((noinline)) { conv_depthwise_pixels(s, from, to, x, weights, epilogue); };
#if AOTI_WORD_PRODUCTS
  using namespace detail;
  if (!are_depthwise_words(s)) return by_pixels(u0, u1);
  const bool every = s.stride[2] == 1;
  const int group = every ? SharedWords<1>::group : SharedWords<2>::group;
  const i64 rows = s.kernel[0] * s.kernel[1], all = s.out_channels, words_of_tile = rows * group * AOTI_VECTOR_BYTES;
  const i64 most = min_i64(kDepthwiseWords / words_of_tile * AOTI_VECTOR_BYTES, kDepthwiseZeros);
  const i64 step = kWordPixels * s.stride[2], columns = step + (every ? SharedWords<1>::columns : SharedWords<2>::columns);
  alignas(64) i32 sums[kWordPixels * AOTI_VECTOR_BYTES], words[kDepthwiseWords];
  alignas(64) u8 zeros[kDepthwiseZeros + AOTI_VECTOR_BYTES] = {};
  DepthwiseWindows<u8> windows;
  for (i64 block = 0; block < all; block += most) {
    const i64 count = min_i64(all - block, most);
    const auto words_at = [&](i64 c) AOTI_LAMBDA { return words + c / AOTI_VECTOR_BYTES * words_of_tile; };
    for (i64 c = 0; c < count; c += AOTI_VECTOR_BYTES)
      depthwise_word_weights(weights, rows, group, block + c, tile_channels(count - c), words_at(c));
    for (i64 u = u0; u < u1; ++u) {
      const i64 h = u % s.out[1], d = u / s.out[1] % s.out[0], image = u / (s.out[1] * s.out[0]);
      depthwise_window_rows(s, d, h, windows);
      // Vectors of the last channels reach into the next pixel, which the last one does not have.
      if (all % kDepthwiseStep != 0 && image == s.batch - 1 && depthwise_ends(s, windows)) {
        if (block == 0) by_pixels(u, u + 1);
        continue;
      }
      for (i64 w = 0; w < s.out[2]; w += 2 * kWordPixels) {
        const i64 pixels = min_i64(s.out[2] - w, 2 * kWordPixels), first = (d * s.out[1] + h) * s.out[2] + w;
        const u8 *from = x + (image * s.in[0] * s.in[1] * s.in[2] * all + block);
        depthwise_window_columns(s, w * s.stride[2] - s.padding[2], columns, from, zeros, windows);
        for (i64 c = 0; c < count; c += AOTI_VECTOR_BYTES) {
          const TileChannels of = tile_channels(count - c);
          const DepthwiseWordTile tile = every ? depthwise_word_tile_of<1>(of) : depthwise_word_tile_of<2>(of);
          const i64 taken = min_i64(count - c, AOTI_VECTOR_BYTES), most_pixels = of == TileChannels::All ? kWordPixels : 2 * kWordPixels;
          for (i64 i = 0; i < pixels; i += most_pixels) {
            tile(windows, i * s.stride[2], c, words_at(c), sums);
            const auto sink = [&](i64 at, i64 lane, auto lanes, auto own) __attribute__((always_inline)) {
              epilogue(image, block + c + lane, first + i + at, lanes, own);
            };
            depthwise_word_results(sums, 0, min_i64(pixels - i, most_pixels), of, taken, sink);
          }
        }
      }
    }
  }
#else
  by_pixels(u0, u1);
#endif
}

AOTI_NAMESPACE_END
