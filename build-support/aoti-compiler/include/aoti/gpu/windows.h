// Convolutions of few channels a group: one, as of depthwise convolutions, or some. There is too little to multiply for matrices: what
// counts is that every element comes from memory once, and many at a time. A thread has neighbouring outputs of a row, whose windows
// overlap, with what they read in registers.
//
// Channels last: a thread has neighbouring channels, which it reads at once, and the cache keeps what several rows read. Channels
// first: a block copies a tile of a few planes to shared memory, with zeros around them. Weights are as the graph has them,
// [channels][channels of a group][taps]; blocks keep theirs in shared memory as sums are held.
//
// Sums are in an order that depends on sizes alone: the result is the same in every run.
#pragma once

#include "contract.h"

AOTI_NAMESPACE_BEGIN

// Input and output channels of a group, taps along each axis; stride and dilation along the last two.
template <int Own, int Each, int Deep, int High, int Wide, int StrideY, int StrideX, int DilationY, int DilationX> struct Window {
  static constexpr int kOwn = Own, kEach = Each, kDeep = Deep, kHigh = High, kWide = Wide, kTaps = Deep * High * Wide;
  static constexpr int kStrideY = StrideY, kStrideX = StrideX, kDilationY = DilationY, kDilationX = DilationX;
};

namespace detail {

// Taps of a row whose elements are in registers at a time.
constexpr int kRowTaps = 8;
// Neighbouring outputs of a thread where channels are first.
constexpr int kRun = 4;

// What the threads of a block copy, so many at once that none waits for each by itself: put(number, get(number)).
template <int Threads, int Count, class Get, class Put> AOTI_INLINE void copy_by_turns(const Get &get, const Put &put) {
  constexpr int kAtOnce = 8;
  using T = decltype(get(0));
  AOTI_UNROLL_TIMES(1)
  for (int first = thread_index(); first < Count; first += Threads * kAtOnce) {
    T own[kAtOnce];
    AOTI_UNROLL_TIMES(8)
    for (int u = 0; u < kAtOnce; ++u) own[u] = first + u * Threads < Count ? get(first + u * Threads) : T{};
    AOTI_UNROLL_TIMES(8)
    for (int u = 0; u < kAtOnce; ++u)
      if (first + u * Threads < Count) put(first + u * Threads, own[u]);
  }
}

// Elements that so many outputs of a row read for so many taps.
template <class W> AOTI_CONSTEXPR int span_of(int outputs, int taps) { return (outputs - 1) * W::kStrideX + (taps - 1) * W::kDilationX + 1; }

// Whether some output reads it.
template <class W> AOTI_CONSTEXPR bool is_read(int column, int outputs, int taps) {
  if (W::kDilationX == 1 && W::kStrideX <= taps) return true;
  for (int i = 0; i < outputs; ++i) {
    const int reach = column - i * W::kStrideX;
    if (reach >= 0 && reach % W::kDilationX == 0 && reach / W::kDilationX < taps) return true;
  }
  return false;
}

// A few taps of a row for outputs of V channels from `channel` on: `line` is pixel 0 of the row and its first channel, `column` the
// pixel of the first output's first tap.
template <class W, int Taps, int V, int Outputs, int Pitch, class U, class T, class I>
AOTI_INLINE void add_pixels(U (*sums)[V], const T *line, I columns, I channels, I channel, i32 column, const U *weights) {
  // Channels that one load brings, and how many loads a group needs.
  constexpr bool kSame = W::kOwn == 1 && W::kEach > 1;
  constexpr int kLoads = W::kOwn > V ? W::kOwn / V : 1, kProducts = W::kOwn > V ? V : W::kOwn, kSpan = span_of<W>(Outputs, Taps);
  AOTI_UNROLL_TIMES(1)
  for (int q = 0; q < kLoads; ++q) {
    U window[kSpan][V];
    const I first = (W::kOwn > V ? channel / W::kOwn * W::kOwn : channel) + q * V;
    AOTI_UNROLL_TIMES(64)
    for (int c = 0; c < kSpan; ++c) {
      if (!is_read<W>(c, Outputs, Taps)) continue;
      Piece<T, V> piece = {};
      if (u32(column + c) < u32(columns)) {
        const T *pixel = line + I(column + c) * channels;
        if constexpr (kSame) {
          AOTI_UNROLL_TIMES(8)
          for (int j = 0; j < V; ++j) piece.at[j] = pixel[(channel + j) / W::kEach];
        } else
          piece = read_whole<T, V>(pixel + first);
      }
      unpack<T, V>(piece, window[c]);
    }
    AOTI_UNROLL_TIMES(8)
    for (int k = 0; k < Taps; ++k) {
      AOTI_UNROLL_TIMES(8)
      for (int p = 0; p < kProducts; ++p) {
        const Piece<U, V> weight = read_whole<U, V>(weights + (k * W::kOwn + q * V + p) * Pitch);
        AOTI_UNROLL_TIMES(8)
        for (int i = 0; i < Outputs; ++i) {
          AOTI_UNROLL_TIMES(8)
          for (int j = 0; j < V; ++j) {
            const int from = W::kOwn == 1 ? j : W::kOwn > V ? p : j / W::kOwn * W::kOwn + p;
            sums[i][j] = multiply_add(window[i * W::kStrideX + k * W::kDilationX][from], weight.at[j], sums[i][j]);
          }
        }
      }
    }
  }
}

// All taps of a row, a few at a time.
template <class W, int V, int Outputs, int Pitch, class U, class T, class I>
AOTI_INLINE void add_row_of_pixels(U (*sums)[V], const T *line, I columns, I channels, I channel, i32 column, const U *weights) {
  constexpr int kWhole = W::kWide / kRowTaps, kRest = W::kWide % kRowTaps;
  if constexpr (kWhole > 0) {
    AOTI_UNROLL_TIMES(1)
    for (int part = 0; part < kWhole; ++part)
      add_pixels<W, kRowTaps, V, Outputs, Pitch>(sums, line, columns, channels, channel, i32(column + part * kRowTaps * W::kDilationX),
                                                 weights + part * kRowTaps * W::kOwn * Pitch);
  }
  if constexpr (kRest > 0)
    add_pixels<W, kRest, V, Outputs, Pitch>(sums, line, columns, channels, channel, i32(column + kWhole * kRowTaps * W::kDilationX),
                                            weights + kWhole * kRowTaps * W::kOwn * Pitch);
}

// The same for outputs of one channel, of a row in shared memory in which the first output's first tap is behind `Shift` elements.
template <class W, int Taps, int Shift, int Rows, int Channels, class U>
AOTI_INLINE void add_elements(U (*sums)[Rows][kRun], const U *row, int r, const U *weights, int pitch) {
  constexpr int kSpan = Shift + span_of<W>(kRun, Taps);
  U window[(kSpan + 3) / 4 * 4];
  if constexpr (W::kDilationX <= 2) {
    AOTI_UNROLL_TIMES(64)
    for (int c = 0; c < kSpan; c += 4) {
      const Piece<U, 4> piece = read_whole<U, 4>(row + c);
      AOTI_UNROLL_TIMES(4)
      for (int e = 0; e < 4; ++e) window[c + e] = piece.at[e];
    }
  } else {
    AOTI_UNROLL_TIMES(512)
    for (int c = Shift; c < kSpan; ++c)
      if (is_read<W>(c - Shift, kRun, Taps)) window[c] = row[c];
  }
  AOTI_UNROLL_TIMES(4)
  for (int a = 0; a < Rows; ++a) {
    // The row of taps that meets it, if one does.
    const int reach = r - a * W::kStrideY;
    if (reach < 0 || reach % W::kDilationY != 0 || reach / W::kDilationY >= W::kHigh) continue;
    const U *own = weights + reach / W::kDilationY * round_up(W::kWide, 4);
    AOTI_UNROLL_TIMES(4)
    for (int o = 0; o < Channels; ++o) {
      U weight[(Taps + 3) / 4 * 4];
      AOTI_UNROLL_TIMES(2)
      for (int k = 0; k < Taps; k += 4) {
        const Piece<U, 4> piece = read_whole<U, 4>(own + o * pitch + k);
        AOTI_UNROLL_TIMES(4)
        for (int e = 0; e < 4; ++e) weight[k + e] = piece.at[e];
      }
      AOTI_UNROLL_TIMES(8)
      for (int k = 0; k < Taps; ++k) {
        AOTI_UNROLL_TIMES(4)
        for (int i = 0; i < kRun; ++i)
          sums[o][a][i] = multiply_add(window[Shift + i * W::kStrideX + k * W::kDilationX], weight[k], sums[o][a][i]);
      }
    }
  }
}

template <class W, int Shift, int Rows, int Channels, class U>
AOTI_INLINE void add_row_of_elements(U (*sums)[Rows][kRun], const U *row, int r, const U *weights, int pitch) {
  constexpr int kWhole = W::kWide / kRowTaps, kRest = W::kWide % kRowTaps;
  if constexpr (kWhole > 0) {
    AOTI_UNROLL_TIMES(1)
    for (int part = 0; part < kWhole; ++part)
      add_elements<W, kRowTaps, Shift, Rows, Channels>(sums, row + part * kRowTaps * W::kDilationX, r, weights + part * kRowTaps, pitch);
  }
  if constexpr (kRest > 0)
    add_elements<W, kRest, Shift, Rows, Channels>(sums, row + kWhole * kRowTaps * W::kDilationX, r, weights + kWhole * kRowTaps, pitch);
}

// A few numbers to where such begin.
template <class U, int N> AOTI_INLINE void write_whole(U *p, const Piece<U, N> &piece) {
  constexpr int step = 16 / int(sizeof(U)) < N ? 16 / int(sizeof(U)) : N;
  AOTI_UNROLL_TIMES(4)
  for (int i = 0; i < N; i += step) {
    Chunk<U, step> chunk;
    __builtin_memcpy(&chunk, piece.at + i, sizeof chunk);
    *(Chunk<U, step> *)(p + i) = chunk;
  }
}

// A tile of a few planes in shared memory, with what lies around them: [plane][tap along the first axis][row][column]. Rows begin `Shift`
// elements before the first output's first tap, where that is a multiple of 4 in the input's rows.
template <class W, class U, int Planes, int Rows, int Columns, int Shift> struct PlaneTile {
  static constexpr int kHigh = (Rows - 1) * W::kStrideY + (W::kHigh - 1) * W::kDilationY + 1;
  static constexpr int kRuns = (Columns + kRun - 1) / kRun;
  static constexpr int kPitch = ((kRuns - 1) * kRun * W::kStrideX + Shift + span_of<W>(kRun, W::kWide) + 3) / 4 * 4;
  static constexpr int kLines = Planes * W::kDeep * kHigh;
  static constexpr int kElements = kLines * kPitch;

  // From planes first on, of as many as there are; tap 0 of the tile's first output is at `start`.
  template <int Threads, int Load, class T, class I>
  static AOTI_INLINE void fill(U *tile, const T *x, const ConvSizes<I> &s, I first, I planes, const i32 *start) {
    constexpr int kLoads = (kPitch + Load - 1) / Load + 1, kCount = kLines * kLoads, kAtOnce = 4;
    // Loads are aligned, so that each lies inside a row or outside.
    const i32 begin = start[2] - Shift, aligned = begin - ((begin % Load) + Load) % Load;
    AOTI_UNROLL_TIMES(1)
    for (int base = thread_index(); base < kCount; base += Threads * kAtOnce) {
      Piece<T, Load> pieces[kAtOnce];
      AOTI_UNROLL_TIMES(4)
      for (int u = 0; u < kAtOnce; ++u) {
        const int number = base + u * Threads, line = number / kLoads;
        const i32 column = aligned + number % kLoads * Load, y = start[1] + line % kHigh;
        const i32 z = start[0] + line / kHigh % W::kDeep * i32(s.dilation[0]);
        const I plane = first + line / (kHigh * W::kDeep);
        pieces[u] = {};
        if (number < kCount && plane < planes && u32(z) < u32(s.in[0]) && u32(y) < u32(s.in[1]) && u32(column) < u32(s.in[2]))
          pieces[u] = read_whole<T, Load>(x + (((plane * s.in[0] + z) * s.in[1] + y) * s.in[2] + column));
      }
      AOTI_UNROLL_TIMES(4)
      for (int u = 0; u < kAtOnce; ++u) {
        const int number = base + u * Threads, line = number / kLoads;
        const i32 at = aligned + number % kLoads * Load - begin;
        if (number >= kCount) continue;
        constexpr int kStore = Load < 4 ? 1 : 4;
        AOTI_UNROLL_TIMES(8)
        for (int e = 0; e < Load; e += kStore) {
          Piece<U, kStore> own;
          AOTI_UNROLL_TIMES(4)
          for (int i = 0; i < kStore; ++i) own.at[i] = widen<U>(pieces[u].at[e + i]);
          if (u32(at + e) < u32(kPitch)) write_whole(tile + line * kPitch + at + e, own);
        }
      }
    }
  }
};

} // namespace detail

// Channels last: V channels and `Outputs` pixels of a row for each thread, Lanes threads side by side, `Again` times. Where the result's
// channels are not last (!Side), sums are given one by one. Calls epilogue(image, channel, pixel, lanes, sums).
template <class Sum, class W, int V, int Lanes, int Outputs, int Again, int Threads, bool Side, class T, class I, class Epilogue>
AOTI_INLINE void convolve_pixels(const T *x, const T *w, const ConvSizes<I> &s, const Epilogue &epilogue) {
  using namespace detail;
  using U = typename Wrapping<Sum>::type;
  constexpr int kSide = Lanes * V, kPitch = kSide + 4, kStrips = Threads / Lanes;
  // Channels of a block side by side for each tap; rows are apart so that copies meet different banks.
  alignas(16) AOTI_SHARED U weights[W::kTaps * W::kOwn * kPitch];
  const I across = ceil_div(s.out_channels, I(kSide)), runs = ceil_div(s.out[2], I(Outputs));
  const I strips = s.batch * s.out[0] * s.out[1] * runs, groups = ceil_div(strips, I(kStrips * Again));
  const int lane = thread_index() % Lanes;
  AOTI_UNROLL_TIMES(1)
  for (I unit = block_index(); unit < across * groups; unit += block_count()) {
    const I side = unit % across * kSide, channel = side + lane * V;
    barrier();
    constexpr int kChannel = W::kOwn * W::kTaps;
    const T *from = w + side * kChannel;
    const i32 inside = i32(min_i64(s.out_channels - side, kSide)) * kChannel;
    copy_by_turns<Threads, kSide * kChannel>([&](int i) { return i < inside ? from[i] : T{}; }, [&](int i, T own) {
      weights[(i % W::kTaps * W::kOwn + i / W::kTaps % W::kOwn) * kPitch + i / kChannel] = widen<U>(own);
    });
    barrier();
    AOTI_UNROLL_TIMES(1)
    for (int again = 0; again < Again; ++again) {
      const I strip = (unit / across * Again + again) * kStrips + thread_index() / Lanes;
      if (thread_index() >= kStrips * Lanes || strip >= strips || channel >= s.out_channels) break;
      const I column = strip % runs * Outputs, row = strip / runs % s.out[1], slice = strip / runs / s.out[1] % s.out[0];
      const I image = strip / runs / s.out[1] / s.out[0];
      const i32 start = i32(column * W::kStrideX - s.padding[2]);
      U sums[Outputs][V] = {};
      AOTI_UNROLL_TIMES(1)
      for (int a = 0; a < W::kDeep; ++a) {
        const i32 z = i32(slice * s.stride[0] - s.padding[0] + a * s.dilation[0]);
        if (u32(z) >= u32(s.in[0])) continue;
        AOTI_UNROLL_TIMES(1)
        for (int b = 0; b < W::kHigh; ++b) {
          const i32 y = i32(row * W::kStrideY - s.padding[1] + b * W::kDilationY);
          if (u32(y) >= u32(s.in[1])) continue;
          const T *line = x + ((image * s.in[0] + z) * s.in[1] + y) * s.in[2] * s.in_channels;
          const U *taps = weights + (a * W::kHigh + b) * W::kWide * W::kOwn * kPitch + lane * V;
          add_row_of_pixels<W, V, Outputs, kPitch>(sums, line, s.in[2], s.in_channels, channel, start, taps);
        }
      }
      const I pixel = (slice * s.out[1] + row) * s.out[2] + column;
      AOTI_UNROLL_TIMES(8)
      for (int i = 0; i < Outputs; ++i) {
        // A loop that may end is no loop that is known, and keeps sums in memory.
        if (column + i < s.out[2]) {
          if constexpr (Side) {
            Vec<Sum, V> lanes;
            __builtin_memcpy(&lanes, sums[i], sizeof lanes);
            epilogue(image, channel, I(pixel + i), Full<V>{}, lanes);
          } else {
            AOTI_UNROLL_TIMES(8)
            for (int j = 0; j < V; ++j)
              epilogue(image, I(channel + j), I(pixel + i), Full<1>{}, Vec<Sum, 1>{Sum(sums[i][j])});
          }
        }
      }
    }
  }
}

// Channels first: tiles of Rows by Columns outputs of `Groups` groups for a block; a thread has a run of `Own` rows and some channels
// of a group. Rows of the input are multiples of `Load`, those of the output of `Lanes`, which the epilogue gets at a time.
template <class Sum, class W, int Groups, int Rows, int Columns, int Own, int Channels, int Shift, int Load, int Lanes, int Threads,
          class T, class I, class Epilogue>
AOTI_INLINE void convolve_planes(const T *x, const T *w, const ConvSizes<I> &s, const Epilogue &epilogue) {
  using namespace detail;
  using U = typename Wrapping<Sum>::type;
  // Rows of taps are padded, so that they are read four at a time.
  constexpr int kWide = (W::kWide + 3) / 4 * 4, kPlane = W::kDeep * W::kHigh * kWide, kPitch = W::kOwn * kPlane;
  constexpr int kDown = (Rows + Own - 1) / Own, kParts = W::kEach / Channels, kRuns = (Columns + kRun - 1) / kRun;
  constexpr int kItems = Groups * kParts * kDown * kRuns;
  using Tile = PlaneTile<W, U, Groups * W::kOwn, kDown * Own, Columns, Shift>;
  alignas(16) AOTI_SHARED U tile[Tile::kElements];
  alignas(16) AOTI_SHARED U weights[Groups * W::kEach * kPitch];
  const I across = ceil_div(s.out[2], I(Columns)), down = ceil_div(s.out[1], I(Rows)), all = s.batch * s.groups;
  const I units = across * down * s.out[0] * ceil_div(all, I(Groups));
  AOTI_UNROLL_TIMES(1)
  for (I unit = block_index(); unit < units; unit += block_count()) {
    const I column0 = unit % across * Columns, row0 = unit / across % down * Rows, slice = unit / across / down % s.out[0];
    const I first = unit / across / down / s.out[0] * Groups;
    const i32 start[3] = {i32(slice * s.stride[0] - s.padding[0]), i32(row0 * W::kStrideY - s.padding[1]),
                          i32(column0 * W::kStrideX - s.padding[2])};
    barrier();
    Tile::template fill<Threads, Load>(tile, x, s, I(first * W::kOwn), I(all * W::kOwn), start);
    constexpr int kGroup = W::kEach * W::kOwn * W::kTaps;
    copy_by_turns<Threads, Groups * kGroup>([&](int i) { return w[(first + i / kGroup) % s.groups * kGroup + i % kGroup]; },
                                            [&](int i, T own) { weights[i / W::kWide * kWide + i % W::kWide] = widen<U>(own); });
    barrier();
    AOTI_UNROLL_TIMES(1)
    for (int item = thread_index(); item < kItems; item += Threads) {
      const int run = item % kRuns * kRun, row = item / kRuns % kDown * Own;
      const int part = item / (kRuns * kDown) % kParts, group = item / (kRuns * kDown * kParts);
      if (first + group >= all || row0 + row >= s.out[1] || column0 + run >= s.out[2]) continue;
      U sums[Channels][Own][kRun] = {};
      const U *taps = weights + (group * W::kEach + part * Channels) * kPitch;
      AOTI_UNROLL_TIMES(1)
      for (int plane = 0; plane < W::kOwn * W::kDeep; ++plane) {
        const U *from = tile + ((group * W::kOwn * W::kDeep + plane) * Tile::kHigh + row * W::kStrideY) * Tile::kPitch + run * W::kStrideX;
        constexpr int kReach = (Own - 1) * W::kStrideY + (W::kHigh - 1) * W::kDilationY + 1;
        AOTI_UNROLL_TIMES(4)
        for (int r = 0; r < kReach; ++r)
          add_row_of_elements<W, Shift, Own, Channels>(sums, from + r * Tile::kPitch, r, taps + plane * W::kHigh * kWide, kPitch);
      }
      const I image = (first + group) / s.groups, channel0 = (first + group) % s.groups * W::kEach + part * Channels;
      AOTI_UNROLL_TIMES(4)
      for (int o = 0; o < Channels; ++o) {
        AOTI_UNROLL_TIMES(4)
        for (int a = 0; a < Own; ++a) {
          const I y = row0 + row + a, pixel = (slice * s.out[1] + y) * s.out[2] + column0 + run;
          if (row + a >= Rows || y >= s.out[1]) continue;
          AOTI_UNROLL_TIMES(4)
          for (int i = 0; i < kRun; i += Lanes) {
            // A loop that ends early is not unrolled by every compiler.
            if (run + i >= Columns || column0 + run + i >= s.out[2]) continue;
            Vec<Sum, Lanes> lanes;
            __builtin_memcpy(&lanes, sums[o][a] + i, sizeof lanes);
            epilogue(image, I(channel0 + o), I(pixel + i), Full<Lanes>{}, lanes);
          }
        }
      }
    }
  }
}

AOTI_NAMESPACE_END
