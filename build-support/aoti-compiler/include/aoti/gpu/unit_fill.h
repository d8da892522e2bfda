// Operands of matrix units on their way from device memory to shared memory: pieces in a ring, which lie there as the
// instructions of mma.h want them; and where a tile of results is kept.
#pragma once

#include "mma.h"
#include "operands.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// Pieces in the ring.
constexpr int kRing = 4;
// Floats between rows of results, beside the columns.
constexpr int kResultPad = 8;
// Depth of a piece: 128 bytes, or more where slices of a block share the depth of a small tile.
template <class T, int Rows, int Columns, int Threads>
constexpr int kUnitDepth = (sizeof(T) == 4 && Rows + Columns <= 64 ? Threads : 128) / int(sizeof(T));

template <class Source> constexpr bool is_strided = false;
template <class T, class I, bool ByDepth> constexpr bool is_strided<Strided<T, I, ByDepth>> = true;

#if AOTI_UNITS == AOTI_MMA

// Pieces of an operand, Outers by Depth, from device memory into the ring, 16 bytes of a thread at a time. In the ring they are
// blocks of rows of 128 bytes, which are of one outer position each, or of one depth where the outer axis is contiguous.
template <int Outers, int Threads, int Depth, class Source, class I> struct UnitFill {
  using T = typename Source::Element;
  static constexpr bool kByOuter = Source::order == Order::kOuter, kStrided = is_strided<Source>;
  static constexpr int kDepth = Depth, kOuters = Outers, kLanes = 16 / int(sizeof(T)), kRow = 8 * kLanes;
  static constexpr int kBytes = Outers * Depth * int(sizeof(T)), kOwn = kBytes / 16 / Threads;
  // Sixteen bytes side by side along the contiguous axis; outer positions or depths between those of a thread.
  static constexpr int kAcross = kByOuter ? 8 : Depth / kLanes, kApart = Threads / kAcross;
  // Pieces along the depth are of an outer position each.
  static constexpr int kPositions = Source::order == Order::kDepth && !kStrided ? kOwn : 1;
  static_assert(kOwn * 16 * Threads == kBytes && kApart % 8 == 0 && Depth % kRow == 0 && (!kByOuter || Depth % kApart == 0));
  static_assert(Source::order != Order::kLane || Threads % Outers == 0);
  I outer0, outers;
  typename Source::Position positions[kPositions];
  // Of a strided operand: the next address of this thread, and the bytes to its other ones in a piece, and in the next piece.
  const char *next;
  i64 apart, ahead;
  u32 to;

  // Bytes from the beginning of the piece to the sixteen that an element is among.
  static AOTI_INLINE u32 offset(int outer, int depth) {
    if constexpr (kByOuter)
      return u32(outer / kRow * (Depth * 128) + depth * 128 + (outer % kRow / kLanes ^ depth % 8) * 16);
    else
      return u32(depth / kRow * (Outers * 128) + outer * 128 + (depth % kRow / kLanes ^ outer % 8) * 16);
  }
  static AOTI_INLINE void place(int number, int *outer, int *depth) {
    if constexpr (Source::order == Order::kDepth)
      *outer = number / kAcross, *depth = number % kAcross * kLanes;
    else if constexpr (kByOuter)
      *outer = number / (8 * Depth) * kRow + number % 8 * kLanes, *depth = number / 8 % Depth;
    else
      *outer = number % Outers, *depth = number / Outers * kLanes;
  }
  // Outer positions [first, end), from a piece of the depth on.
  AOTI_INLINE void start(const Source &source, I first, I end, int piece) {
    outer0 = first, outers = end;
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < kPositions; ++i) {
      int outer, depth;
      place(thread_index() + i * Threads, &outer, &depth);
      positions[i] = source.position(I(first + outer), end);
    }
    if constexpr (kStrided) {
      int outer, depth;
      place(thread_index(), &outer, &depth);
      next = (const char *)source.element(I(first + outer), I(depth));
      apart = i64(kByOuter ? source.depth_stride : source.outer_stride) * (kApart * int(sizeof(T)));
      ahead = (kByOuter ? i64(source.depth_stride) : i64(1)) * (Depth * int(sizeof(T)));
      next += ahead * piece;
      to = offset(outer, depth);
    }
  }
  // Copies that no thread waits for.
  AOTI_INLINE void copy(const Source &source, u32 piece, I depth0, I depths) {
    if constexpr (kStrided)
      copy_steps(source, piece, depth0, depths);
    else if constexpr (Source::kCopied)
      copy_found(source, piece, depth0, depths);
  }
  AOTI_INLINE void copy_found(const Source &source, u32 piece, I depth0, I depths) {
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < kOwn; ++i) {
      int outer, depth;
      place(thread_index() + i * Threads, &outer, &depth);
      const T *from = source.template find<Depth>(positions[i], depth0, depth, depths);
      copy_ahead(piece + offset(outer, depth), from ? from : source.pointer, from ? 16 : 0);
    }
  }
  AOTI_INLINE void copy_steps(const Source &source, u32 piece, I depth0, I depths) {
    const bool whole = outer0 + Outers <= outers && depth0 + Depth <= depths;
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < kOwn; ++i) {
      // Rows of a thread lie kApart apart, and those of the next block of the outer axis behind them.
      const int rows = kByOuter ? i * kApart % Depth : i * kApart, block = kByOuter ? i * kApart / Depth : 0;
      const char *from = next + apart * (rows / kApart) + block * 128;
      const u32 at = piece + to + u32(rows * 128 + block * (Depth * 128));
      if (whole) {
        copy_ahead(at, from);
      } else {
        int outer, depth;
        place(thread_index() + i * Threads, &outer, &depth);
        const I o = outers - outer0 - outer, d = depths - depth0 - depth;
        const I left = o > 0 && d > 0 ? (kByOuter ? o : d) : I(0);
        const int bytes = left >= kLanes ? 16 : int(left) * int(sizeof(T));
        copy_ahead(at, bytes ? (const void *)from : (const void *)source.pointer, bytes);
      }
    }
    next += ahead;
  }
  // Of a strided operand of halves, whose lines of the contiguous axis begin at multiples of a word: neighbours by neighbouring
  // threads.
  AOTI_INLINE void copy_words(const Source &source, u32 piece, I depth0, I depths) {
    constexpr int N = 4 / int(sizeof(T)), line = (kByOuter ? Outers : Depth) / N, lines = Threads / line;
    static_assert(lines * line == Threads);
    // Words of a thread are so many lines apart, at one place in each.
    const int near = thread_index() % line * N, far = thread_index() / line;
    const I left = (kByOuter ? outers - outer0 : depths - depth0) - near, left_lines = (kByOuter ? depths - depth0 : outers - outer0) - far;
    const int bytes = left >= N ? 4 : left > 0 ? int(left) * int(sizeof(T)) : 0;
    const T *const from = source.element(I(outer0 + (kByOuter ? near : far)), I(depth0 + (kByOuter ? far : near)));
    const i64 own_apart = i64(kByOuter ? source.depth_stride : source.outer_stride) * lines;
    AOTI_UNROLL_TIMES(32)
    for (int i = 0; i < kOwn * 4; ++i) {
      const int own = far + i * lines, count = i * lines < left_lines ? bytes : 0;
      const u32 at = piece + (kByOuter ? offset(near, own) : offset(own, near)) + u32(near % kLanes * int(sizeof(T)));
      copy_word_ahead(at, count ? from + own_apart * i : source.pointer, count);
    }
  }
  // Brings a piece that is no sixteen aligned bytes of a thread.
  template <class Entries>
  AOTI_INLINE void bring(const Source &source, char *piece, const Entries &table, int number_of, I depth0, I depths) {
    if constexpr (kStrided && sizeof(T) == 2)
      if (source.template is_aligned<4 / int(sizeof(T))>()) return copy_words(source, shared_address(piece), depth0, depths);
    read(source, piece, table, number_of, depth0, depths);
  }
  // By way of registers, whatever the operand is.
  template <class Entries>
  AOTI_INLINE void read(const Source &source, char *piece, const Entries &table, int number_of, I depth0, I depths) {
    // Several pieces are on their way before the first is stored: nothing tells the compiler that it may change their order.
    constexpr int kTogether = kOwn < 4 ? kOwn : 4;
    AOTI_UNROLL_TIMES(4)
    for (int first = 0; first < kOwn; first += kTogether) {
      Chunk<T, kLanes> chunks[kTogether];
      AOTI_UNROLL_TIMES(4)
      for (int i = 0; i < kTogether; ++i) {
        int outer, depth;
        place(thread_index() + (first + i) * Threads, &outer, &depth);
        const auto own = source.template read<kLanes, false>(positions[kPositions == 1 ? 0 : first + i], table.at(number_of, depth),
                                                             I(outer0 + outer), outers, I(depth0 + depth), depths);
        __builtin_memcpy(&chunks[i], &own, sizeof own);
      }
      AOTI_UNROLL_TIMES(4)
      for (int i = 0; i < kTogether; ++i) {
        int outer, depth;
        place(thread_index() + (first + i) * Threads, &outer, &depth);
        *(Chunk<T, kLanes> *)(piece + offset(outer, depth)) = chunks[i];
      }
    }
  }
};

// Two neighbours of a tile of results.
template <int Columns> AOTI_INLINE void store_pair(f32 *results, int row, int column, const f32 *sums) {
  Chunk<f32, 2> pair = {{sums[0], sums[1]}};
  *(Chunk<f32, 2> *)(results + row * (Columns + kResultPad) + column) = pair;
}

#endif

} // namespace detail

AOTI_NAMESPACE_END
