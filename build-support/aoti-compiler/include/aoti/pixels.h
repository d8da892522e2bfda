// Convolution of f32 tensors, or of words of four channels of one byte each, whose channels are last,
// [image][depth][height][width][channel]: vectors run over output channels, rows over output pixels. Results leave only through
// the caller's epilogue.
//
// There is no im2col. The pixels of an output row are as far apart in the input as the stride says, and what a kernel row
// reads of one of them lies side by side: a *run*. So a tile is a matrix product whose left operand is read in place, run
// by run. Where there is padding, or the input has its channels first, `conv_pixels_pad` makes a padded copy with channels
// last; everything else is read where it lies.
//
// Packed weights are, for each group of OC output and IC input channels, [ceil(OC / kPanel)][taps][IC][kPanel], channels past
// OC zero; `runplan/pack.rs` writes them. Each
// output is a sum of chains of at most kChain fused multiply-adds over taps and channels, whatever the split.
#pragma once

#include "conv.h"
#include "interleave.h"
#include "pixel_kernels.h"

AOTI_NAMESPACE_BEGIN

// What is known of a convolution when it is compiled: output channels of a group and output pixels of a line (`length` of its
// plan), 0 where that is open, and whether it may have groups. What it cannot need is not in the library. Any number of channels
// with the same rest behind whole groups of them stands for all of these.
template <i64 Channels = 0, i64 Line = 0, bool Groups = true> struct PixelShape {
  static constexpr i64 channels = Channels, line = Line;
  static constexpr bool groups = Groups;
};

// Where the channels of an input are.
enum class ChannelOrder { First, Last };

namespace detail {

// What units of work need tiles for. *Wide* ones have as many vectors as tiles of two pixels do, or several times as many.
// *Narrow* ones have tiles of several vectors and of a single one, of the last of which half may be enough.
enum PixelKinds { kWide = 1, kNarrow = 2, kSeveral = 4, kSingle = 8, kHalfBehind = 16, kHalfAlone = 32, kAllPixelKinds = 63 };

// Of a unit of so many output channels.
AOTI_CONSTEXPR int kinds_of_unit(i64 channels) {
  const i64 vectors = ceil_div(channels, i64(kLanes));
  const bool half = AOTI_AVX512 && channels <= vectors * kLanes - kLanes / 2, odd = vectors % kTileVectors != 0;
  const int last = half ? (odd ? kHalfAlone : kHalfBehind) : odd ? kSingle : 0;
  if (vectors % kPixelVectors == 0) return kWide | last;
  return kNarrow | last | (vectors - (half && !odd ? kTileVectors : 0) >= kTileVectors ? kSeveral : 0);
}
// Of the units for so many output channels of a group; 0 is any number.
AOTI_CONSTEXPR int kinds_of_group(i64 channels) {
  const i64 rest = channels % kPixelColumns;
  if (channels == 0) return kAllPixelKinds;
  return (channels >= kPixelColumns ? kWide : 0) | (rest > 0 ? kinds_of_unit(rest) : 0);
}

// Pixels of each tile of a line that is known: as many as make all tiles alike. 0 for any line.
AOTI_CONSTEXPR int even_rows(i64 line) {
  return line > 0 ? int(ceil_div(line, ceil_div(line, i64(kPixelRows)))) : 0;
}

// The tiles for units of some kinds: of narrow ones, all have so many pixels, or any number if that is 0.
template <int Kinds, int Rows> struct PixelTiles {
  static constexpr int rows = Rows;
  static constexpr bool has(int kind) { return (Kinds & kind) != 0; }
  static constexpr bool any = Rows == 0 && has(kNarrow), even = Rows > 0;
};
using AnyPixelTiles = PixelTiles<kAllPixelKinds, 0>;
template <i64 Channels, i64 Line>
using TilesOf = PixelTiles<kinds_of_group(Channels), (kinds_of_group(Channels) & kNarrow) != 0 ? even_rows(Line) : 0>;

// What follows from a shape.
struct PixelPlan {
  bool in_place;                // the input is read where it lies
  i64 size[3], pitch;           // pixels of an image that is read, and floats from one to the next
  i64 runs, run;                // of a sum, and floats of each
  i64 lines, length, step;      // output pixels that are equally far apart: lines, pixels of each, floats between them
  i64 count[3], stride[3];      // of lines: images, slices and rows, and floats between them
  i64 pixels;                   // output pixels of an image
  i64 own_in, own_out;          // channels of a group of the convolution
  i64 pieces, groups;           // work units: pieces of all lines by groups of channels, of which each of those has some
  i64 pieces_of_line;
  i64 offsets[kMaxTaps];        // of each run from its pixel
};

// Floats from a pixel of the padded copy to the next. Pixels a page apart would share a cache set.
constexpr i64 kPixelSlack = 16;
AOTI_INLINE i64 pixel_pitch(const ConvShape &s) {
  return s.stride[2] * s.in_channels % 1024 == 0 ? s.in_channels + kPixelSlack : s.in_channels;
}

AOTI_INLINE bool pixels_in_place(const ConvShape &s, ChannelOrder order) {
  bool in_place = order == ChannelOrder::Last && pixel_pitch(s) == s.in_channels;
  for (int d = 0; d < 3; ++d)
    in_place = in_place && s.padding[d] == 0 && (s.out[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] < s.in[d];
  return in_place;
}

// Pixels that some tap reads, along dimension d of the padded copy.
AOTI_INLINE i64 padded_size(const ConvShape &s, int d) {
  return max_i64((s.out[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1, 0);
}

AOTI_NOINLINE void pixel_plan(const ConvShape &s, ChannelOrder order, PixelPlan &p) {
  p.in_place = pixels_in_place(s, order);
  p.pitch = p.in_place ? s.in_channels : pixel_pitch(s);
  for (int d = 0; d < 3; ++d) p.size[d] = p.in_place ? s.in[d] : padded_size(s, d);
  // Taps of a kernel row are one run where nothing lies between them.
  p.own_in = s.in_channels / s.groups, p.own_out = s.out_channels / s.groups;
  const bool whole_rows = (s.dilation[2] == 1 || s.kernel[2] == 1) && p.pitch == p.own_in;
  const i64 of_row = whole_rows ? 1 : s.kernel[2];
  p.run = whole_rows ? s.kernel[2] * p.own_in : p.own_in;
  p.runs = 0;
  for (i64 d = 0; d < s.kernel[0]; ++d)
    for (i64 h = 0; h < s.kernel[1]; ++h)
      for (i64 w = 0; w < of_row; ++w)
        p.offsets[p.runs++] =
            ((d * s.dilation[0] * p.size[1] + h * s.dilation[1]) * p.size[2] + w * s.dilation[2]) * p.pitch;
  const i64 row = p.size[2] * p.pitch, slice = p.size[1] * row;
  p.length = s.out[2], p.step = s.stride[2] * p.pitch;
  p.count[0] = s.batch, p.count[1] = s.out[0], p.count[2] = s.out[1];
  p.stride[0] = p.size[0] * slice, p.stride[1] = s.stride[0] * slice, p.stride[2] = s.stride[1] * row;
  // Rows, slices and images whose pixels follow on from each other are one line.
  for (int d = 2; d >= 0; --d) {
    if (p.count[d] == 1) continue;
    if (p.length == 1) p.step = p.stride[d];
    if (p.length * p.step != p.stride[d]) break;
    p.length *= p.count[d], p.count[d] = 1;
  }
  p.lines = p.count[0] * p.count[1] * p.count[2];
  p.pixels = s.out[0] * s.out[1] * s.out[2];
  p.pieces_of_line = ceil_div(p.length, kPixelsOfUnit);
  p.pieces = p.lines * p.pieces_of_line;
  p.groups = s.groups * ceil_div(p.own_out, kPixelColumns);
}

// The next tile: pixels, of which the first `again` have been computed before.
struct PixelTile {
  int rows, again;
};

// Pixels of the next tile, where `left` are left. Few sizes, as each is code in every library; rows of 7 pixels are common.
AOTI_INLINE int pixel_rows(i64 left) {
#if AOTI_AVX512
  if (left >= 7 && left < kPixelRows) return 7;
#endif
  return left >= kPixelRows ? kPixelRows : left >= 2 ? 2 : 1;
}

// The same where channels leave vectors over that tiles of two pixels do not have: few pixels of one vector are too few
// independent chains, and are computed together with some of the `before` that lie before them.
template <int Rows> AOTI_INLINE PixelTile narrow_tile(i64 left, i64 before) {
  constexpr int most = Rows > 0 ? Rows : kPixelRows, part = Rows > 0 ? Rows : kPartRows;
  for (int rows = most; rows >= part; rows -= part) {
    if (left >= rows) return {rows, 0};
    // A single pixel takes no longer than a whole part does, and is less work.
    if (left > 1 && left > rows - part && before + left >= rows) return {rows, int(rows - left)};
  }
  return {Rows > 0 ? 1 : pixel_rows(left), 0};
}

// One chain of a tile of `rows` pixels by at most `vectors` vectors, of the last of which half may be enough; returns how many
// it did.
template <class Tiles, class S>
AOTI_NOINLINE int pixel_chain(int rows, i64 vectors, bool half, const i64 *offsets, i64 runs, i64 run, const S *x, i64 step,
                              const S *weights, i64 panel, bool add, S *tile) {
  (void)half; // which has a kernel of its own at some levels
  constexpr bool wide = Tiles::has(kWide), any = Tiles::any, even = Tiles::even, several = Tiles::has(kSeveral);
#define AOTI_PIXELS(NEEDED, ROWS, VECTORS)                                                 \
  if constexpr (NEEDED)                                                                    \
    if (rows == ROWS && vectors >= VECTORS) {                                              \
      pixel_kernel<ROWS, VECTORS>(offsets, runs, run, x, step, weights, panel, add, tile); \
      return VECTORS;                                                                      \
    }
// One vector of so many pixels, or of several times as many.
#define AOTI_PIXELS_IN_PARTS(NEEDED, PART)                                                                            \
  if constexpr (NEEDED)                                                                                               \
    if (rows % PART == 0) {                                                                                           \
      for (int r = 0; r < rows; r += PART)                                                                            \
        pixel_kernel<PART, 1>(offsets, runs, run, x + r * step, step, weights, panel, add, tile + r * kPixelColumns); \
      return 1;                                                                                                       \
    }
#if AOTI_AVX512
#define AOTI_HALF_PIXELS(NEEDED, ROWS, VECTORS)                                               \
  if constexpr (NEEDED)                                                                       \
    if (half && rows == ROWS && vectors == VECTORS) {                                         \
      half_pixel_kernel<ROWS, VECTORS == 2>(offsets, runs, run, x, step, weights, add, tile); \
      return VECTORS;                                                                         \
    }
  constexpr bool behind = Tiles::has(kHalfBehind), alone = Tiles::has(kHalfAlone), halves = behind || alone;
  AOTI_HALF_PIXELS((wide || any) && behind, 14, 2) AOTI_HALF_PIXELS(any && halves, 14, 1) AOTI_HALF_PIXELS(any && halves, 7, 1)
  AOTI_HALF_PIXELS(Tiles::rows > 1 && behind, Tiles::rows, 2) AOTI_HALF_PIXELS(Tiles::rows > 1 && alone, Tiles::rows, 1)
#undef AOTI_HALF_PIXELS
  AOTI_PIXELS(wide, kPartRows, kPixelVectors)
#endif
  AOTI_PIXELS(wide || (any && several), kPixelRows, kTileVectors)
  AOTI_PIXELS(wide, 2, kPixelVectors) AOTI_PIXELS(wide, 1, kOnePixelVectors)
  AOTI_PIXELS(even && several, Tiles::rows, kTileVectors) AOTI_PIXELS(even && Tiles::has(kSingle), Tiles::rows, 1)
  AOTI_PIXELS_IN_PARTS(any, kPartRows) AOTI_PIXELS_IN_PARTS(true, 1)
#undef AOTI_PIXELS
#undef AOTI_PIXELS_IN_PARTS
  return 0;
}

// All chains of a tile; returns the vectors that it did. `k` floats of each panel are one sum's.
template <class Tiles, class S>
AOTI_INLINE int pixel_tile(const PixelPlan &p, int rows, i64 channels, const S *x, const S *weights, i64 panel, S *tile) {
  const i64 part = min_i64(p.run, kChain), parts = ceil_div(p.run, max_i64(part, 1));
  // Short runs are joined to one chain; long ones are several.
  const i64 together = parts > 1 ? 1 : max_i64(kChain / max_i64(p.run, 1), 1);
  const i64 vectors = ceil_div(channels, kLanes);
  const bool half = channels - (vectors - 1) * kLanes <= kLanes / 2;
  const int done = pixel_chain<Tiles>(rows, vectors, half, p.offsets, min_i64(together, p.runs), part, x, p.step, weights, panel,
                                      false, tile);
  for (i64 i = 0; i < p.runs; i += together)
    for (i64 k = i == 0 ? part : 0; k < p.run; k += part)
      pixel_chain<Tiles>(rows, done, half && done == vectors, p.offsets + i, min_i64(together, p.runs - i),
                         min_i64(part, p.run - k), x + k, p.step, weights + (i * p.run + k) * kPanel, panel, true, tile);
  return done;
}

// A tile of `rows` pixels by `columns` channels, of which `weights` has the first.
template <class Tiles, class S>
AOTI_INLINE void pixel_columns(const PixelPlan &p, int rows, i64 columns, const S *x, const S *weights, i64 panel, S *tile) {
  for (i64 c = 0; c < columns;)
    c += kLanes * pixel_tile<Tiles>(p, rows, columns - c, x, weights + c / kPanel * panel + c % kPanel, panel, tile + c);
}
// The same for words without the instruction for them. They are split once for all channels; runs are joined.
template <class Tiles>
AOTI_NOINLINE void split_pixel_columns(const PixelPlan &p, int rows, i64 columns, const i32 *x, const i32 *weights, i64 panel,
                                       i32 *tile) {
  alignas(64) i32 halves[2][kPixelRows][kSplitWords];
  static_assert(sizeof halves[0] == kOddHalves * sizeof(i32), "as far apart as the kernels think");
  i64 run = 0, word = 0;
  for (bool is_first = true; is_first || run < p.runs; is_first = false) {
    i64 count = 0;
    while (run < p.runs && count < kSplitWords) {
      const i64 taken = min_i64(p.run - word, kSplitWords - count);
      split_words(x + p.offsets[run] + word, p.step, 1, rows, taken, halves[0][0] + count, halves[1][0] + count);
      count += taken, word += taken;
      if (word == p.run) ++run, word = 0;
    }
    for (i64 c = 0; c < columns;) {
      const i64 vectors = ceil_div(columns - c, kLanes);
      const bool half = columns - c - (vectors - 1) * kLanes <= kLanes / 2;
      c += kLanes * pixel_chain<Tiles>(rows, vectors, half, p.offsets, 1, count, (const WordHalf *)halves, kSplitWords,
                                       (const WordHalf *)(weights + c / kPanel * panel + c % kPanel), panel, !is_first,
                                       (WordHalf *)tile + c);
    }
    weights += count * kPanel;
  }
}
template <class Tiles>
AOTI_INLINE void pixel_columns(const PixelPlan &p, int rows, i64 columns, const i32 *x, const i32 *weights, i64 panel, i32 *tile) {
#if AOTI_WORD_PRODUCTS
  if (has_word_products())
    return pixel_columns<Tiles>(p, rows, columns, (const WholeWord *)x, (const WholeWord *)weights, panel, (WholeWord *)tile);
#endif
  split_pixel_columns<Tiles>(p, rows, columns, x, weights, panel, tile);
}

// Pixels of a tile in whole blocks of a transposition.
constexpr int kTurnedRows = int(round_up(kPixelRows, 4));
static_assert(kPanel % 4 == 0, "channels are whole blocks too");

// Hands the sums of a tile to the epilogue, from `channel` on, and from `pixel` on, that of the first row that is new.
template <ChannelOrder Results, class S, class Epilogue>
AOTI_INLINE void pixel_results(const PixelPlan &p, const S *tile, PixelTile of, i64 columns, i64 image, i64 channel, i64 pixel,
                               Epilogue &&epilogue) {
  if constexpr (Results == ChannelOrder::Last) {
    for (int r = of.again; r < of.rows; ++r) {
      for_each_vector(tile + r * kPixelColumns, columns, [&](i64 c, auto lanes, auto sums) __attribute__((always_inline)) {
        epilogue(image, channel + c, pixel, lanes, sums);
      });
      if (++pixel == p.pixels) pixel = 0, ++image;
    }
  } else {
    // Where channels are planes, a pixel's elements are far apart, often in lines of one set: each line is written once for all
    // pixels of the tile.
    alignas(64) S turned[kPixelColumns * kTurnedRows + kLanes];
    for (i64 c = 0; c < columns; c += 4)
      for (int r = 0; r < of.rows; r += 4)
        transpose_block(tile + r * kPixelColumns + c, kPixelColumns, turned + c * kTurnedRows + r, kTurnedRows);
    for (i64 r = of.again; r < of.rows;) {
      const i64 count = min_i64(of.rows - r, p.pixels - pixel);
      for (i64 c = 0; c < columns; ++c)
        for_each_vector(turned + c * kTurnedRows + r, count, [&](i64 i, auto lanes, auto sums) __attribute__((always_inline)) {
          epilogue(image, channel + c, pixel + i, lanes, sums);
        });
      r += count, pixel = 0, ++image;
    }
  }
}

// One row of pixels of the padded copy.
template <ChannelOrder Order, bool Three>
AOTI_INLINE void pad_pixel_row(const ConvShape &s, const PixelPlan &p, const f32 *x, f32 *to) {
  const Inside inside = conv_inside(s.in[2], p.size[2], 1, -s.padding[2]);
  const i64 channels = s.in_channels, plane = s.in[0] * s.in[1] * s.in[2], count = inside.last - inside.first;
  zero_floats(to, inside.first * p.pitch);
  f32 *at = to + inside.first * p.pitch;
  const i64 first = inside.first + inside.shift;
  if constexpr (Three)
    interleave_three(x + first, plane, p.pitch, count, at);
  else if constexpr (Order == ChannelOrder::First)
    interleave_channels(x + first, plane, channels, p.pitch, count, at);
  else {
    // All pixels at once where nothing is between them.
    const i64 pixels = p.pitch == channels ? count : 1;
    for (i64 w = 0; w < count; w += pixels) copy_floats(at + w * p.pitch, x + (first + w) * channels, pixels * channels);
  }
  zero_floats(to + inside.last * p.pitch, (p.size[2] - inside.last) * p.pitch);
}

template <ChannelOrder Order, bool Three>
AOTI_NOINLINE void pad_pixels(const ConvShape &s, i64 u0, i64 u1, const f32 *x, f32 *copy) {
  PixelPlan p;
  pixel_plan(s, Order, p);
  const i64 row = p.size[2] * p.pitch, pixel = Order == ChannelOrder::Last ? s.in_channels : 1;
  for (i64 u = u0; u < u1; ++u) {
    const i64 h = u % p.size[1] - s.padding[1], d = u / p.size[1] % p.size[0] - s.padding[0];
    const i64 image = u / (p.size[1] * p.size[0]);
    f32 *to = copy + u * row;
    if (h < 0 || h >= s.in[1] || d < 0 || d >= s.in[0])
      zero_floats(to, row);
    else
      pad_pixel_row<Order, Three>(
          s, p, x + image * s.in_channels * s.in[0] * s.in[1] * s.in[2] + (d * s.in[1] + h) * s.in[2] * pixel, to);
  }
}

} // namespace detail

// Bytes of the padded copy that `conv_pixels_pad` makes, 0 if the convolution reads its input in place.
AOTI_INLINE i64 conv_pixels_scratch_bytes(const ConvShape &s, ChannelOrder order) {
  if (detail::pixels_in_place(s, order)) return 0;
  i64 pixels = s.batch;
  for (int d = 0; d < 3; ++d) pixels *= detail::padded_size(s, d);
  return round_up(pixels * detail::pixel_pitch(s) * 4, 64);
}

// Work units of `conv_pixels_pad`: rows of the padded copy. None if the convolution reads its input in place.
AOTI_INLINE i64 conv_pixels_pad_units(const ConvShape &s, ChannelOrder order) {
  if (detail::pixels_in_place(s, order)) return 0;
  return s.batch * detail::padded_size(s, 0) * detail::padded_size(s, 1);
}
// Units [u0, u1) of the padded copy; all of them must be done before `conv_pixels`. InChannels: 3 if the input has so many,
// first, else 0.
template <ChannelOrder Order, i64 InChannels = 0, class S>
AOTI_INLINE void conv_pixels_pad(const ConvShape &s, i64 u0, i64 u1, const S *x, void *scratch) {
  constexpr bool three = Order == ChannelOrder::First && InChannels == 3;
  // Words are copied as floats are.
  if (u0 < u1) detail::pad_pixels<Order, three>(s, u0, u1, (const f32 *)x, (f32 *)scratch);
}

// Work units of `conv_pixels`: pieces of lines of pixels by groups of channels.
AOTI_INLINE i64 conv_pixels_units(const ConvShape &s, ChannelOrder order) {
  detail::PixelPlan p;
  detail::pixel_plan(s, order, p);
  return p.pieces * p.groups;
}

// Units [u0, u1) of a convolution; at most detail::kMaxTaps taps. `scratch` holds the padded copy (unused,
// may be null, where the input is read in place). The epilogue is called once per vector of results: epilogue(image,
// channel, pixel, lanes, sums), channel and pixel those of lane 0; lanes are consecutive channels of one pixel, or consecutive
// pixels of one channel where Results says that channels are first.
template <ConvOnce Once = ConvOnce::Larger, class Shape = PixelShape<>, ChannelOrder Results = ChannelOrder::Last, class S,
          class Epilogue>
AOTI_INLINE void conv_pixels(const ConvShape &s, ChannelOrder order, i64 u0, i64 u1, const S *x, const S *weights,
                             const void *scratch, Epilogue epilogue) {
  using namespace detail;
  using Tiles = TilesOf<Shape::channels, Shape::line>;
  if (u0 >= u1) return;
  PixelPlan p;
  pixel_plan(s, order, p);
  const S *from = p.in_place ? x : (const S *)scratch;
  const i64 panel = p.runs * p.run * kPanel;
  const bool weights_outside = Once == ConvOnce::Larger
                                   ? p.runs * p.run * s.out_channels > p.stride[0]
                                   : Once == ConvOnce::Weights;
  alignas(64) S tile[kTurnedRows * kPixelColumns];
  for (i64 u = u0; u < u1; ++u) {
    const i64 group = weights_outside ? u / p.pieces : u % p.groups;
    const i64 piece = weights_outside ? u % p.pieces : u / p.groups;
    const i64 parts = Shape::groups ? p.groups / s.groups : p.groups;
    const i64 own = Shape::groups ? group / parts : 0, first = (group - own * parts) * kPixelColumns;
    const i64 line = piece / p.pieces_of_line, begin = piece % p.pieces_of_line * kPixelsOfUnit;
    const i64 end = min_i64(begin + kPixelsOfUnit, p.length);
    const i64 last = min_i64(first + kPixelColumns, p.own_out);
    const S *own_weights = weights + own * ceil_div(p.own_out, kPanel) * panel;
    const S *of_line = from + own * p.own_in + line / (p.count[1] * p.count[2]) * p.stride[0] +
                         line / p.count[2] % p.count[1] * p.stride[1] + line % p.count[2] * p.stride[2];
    i64 image = (line * p.length + begin) / p.pixels, pixel = (line * p.length + begin) % p.pixels;
    for (i64 at = begin; at < end;) {
      const bool narrow = !Tiles::has(kWide) || ceil_div(last - first, kLanes) % kPixelVectors != 0;
      const PixelTile next = narrow ? narrow_tile<Tiles::rows>(end - at, at) : PixelTile{pixel_rows(end - at), 0};
      const S *from_pixel = of_line + (at - next.again) * p.step;
      const S *w = own_weights + first / kPanel * panel;
      pixel_columns<Tiles>(p, next.rows, last - first, from_pixel, w, panel, tile);
      pixel_results<Results>(p, tile, next, last - first, image, own * p.own_out + first, pixel, epilogue);
      at += next.rows - next.again, pixel += next.rows - next.again;
      for (; pixel >= p.pixels; pixel -= p.pixels) ++image;
    }
  }
}

AOTI_NAMESPACE_END
