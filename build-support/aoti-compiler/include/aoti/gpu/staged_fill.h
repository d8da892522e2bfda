// Operands of matrix units by way of registers: a piece of a tile is read from device memory while the one before it is
// multiplied, and stored to shared memory behind that. For units that have no copies of their own (AMD's); neighbours along the
// depth lie side by side there, whatever lies side by side in memory.
#pragma once

#include "fragments.h"
#include "operands.h"
#include "unit_fill.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// Bytes of results that are in shared memory at a time, at most.
constexpr int kResultBytes = 40 * 1024;
// Rows of a tile of results that are there together.
template <int Columns> constexpr int result_rows(int rows) {
  return rows * (Columns + kResultPad) * 4 <= kResultBytes ? rows : result_rows<Columns>(rows / 2);
}

#if AOTI_FRAGMENTS

// Sixteen bytes as one value: compilers keep an array of these in registers.
typedef u32 SixteenValue __attribute__((vector_size(16), may_alias));

// A piece of an operand, Outers by Depth: blocks of rows of 128 bytes, each of an outer position. Where sixteen bytes lie in a row
// depends on the last bits of its number and on those before: eight lanes that read neighbouring rows find eight of the banks, and so
// do those that store rows eight apart, as they do where memory runs along the outer axis.
template <int Outers, int Threads, int Depth, class Source, class I> struct StagedFill {
  using T = typename Source::Element;
  static constexpr bool kTurned = Source::order == Order::kOuter, kStrided = is_strided<Source>;
  static constexpr int kDepth = Depth, kLanes = 16 / int(sizeof(T)), kRow = 8 * kLanes;
  static constexpr int kBytes = Outers * Depth * int(sizeof(T)), kOwn = kBytes / 16 / Threads;
  // Of what is turned, a thread has neighbouring depths of a few outer positions.
  static constexpr int kRun = kTurned ? (kOwn < kLanes ? kOwn : kLanes) : 1;
  static constexpr int kAcross = kTurned ? Outers / kLanes : Depth / kLanes;
  // Pieces along the depth are of an outer position each.
  static constexpr int kPositions = Source::order == Order::kDepth && !kStrided ? kOwn : 1;
  static_assert(kOwn > 0 && kOwn * 16 * Threads == kBytes && Depth % kRow == 0 && Threads % kAcross == 0 && kOwn % kRun == 0);
  static_assert(Source::order != Order::kLane || Threads % Outers == 0);
  I outer0, outers;
  typename Source::Position positions[kPositions];
  // Where the rows begin that a thread reads, of a strided operand, and what it has read; whether it has.
  I begins[kStrided && !kTurned ? kOwn : 1];
  SixteenValue own[kOwn];
  bool has;

  // Bytes from the beginning of the piece to the sixteen that an element is among.
  static AOTI_INLINE int offset(int outer, int depth) {
    return depth / kRow * (Outers * 128) + outer * 128 + (depth % kRow / kLanes ^ (outer ^ outer / 8) % 8) * 16;
  }
  // Of the sixteen bytes with this number of a thread, which is anew() where a loop goes on for long.
  static AOTI_INLINE void place(int thread, int i, int *outer, int *depth) {
    const int number = thread + i / kRun * Threads;
    if constexpr (Source::order == Order::kDepth)
      *outer = number / kAcross, *depth = number % kAcross * kLanes;
    else if constexpr (kTurned)
      *outer = number % kAcross * kLanes, *depth = number / kAcross * kRun + i % kRun;
    else
      *outer = number % Outers, *depth = number / Outers * kLanes;
  }
  // Outer positions [first, end).
  AOTI_INLINE void start(const Source &source, I first, I end) {
    outer0 = first, outers = end;
    const int thread = anew(thread_index());
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < kPositions; ++i) {
      int outer, depth;
      place(thread, i, &outer, &depth);
      positions[i] = source.position(I(first + outer), end);
    }
    if constexpr (kStrided) {
      AOTI_UNROLL_TIMES(16)
      for (int i = 0; i < (kTurned ? 1 : kOwn); ++i) {
        int outer, depth;
        place(thread, i, &outer, &depth);
        // Behind the last, the last once more: nobody reads its sums.
        const I last = kTurned ? end - kLanes : end - 1, row = first + outer;
        begins[i] = (row < last ? row : last) * source.outer_stride;
      }
    }
  }
  // Whether the next piece is in registers while the present one is multiplied: what has to be looked up element by element would
  // take a register for each.
  template <bool Aligned> static constexpr bool kStaged = Aligned && Source::kCopied;
  // The sixteen bytes of a thread with this number, of the piece whose depths begin at depth0. `Aligned`: so the source says.
  template <bool Aligned, class Entries>
  AOTI_INLINE SixteenValue read(int thread, int i, const Source &source, const Entries &table, int piece, I depth0, I depths) const {
    int outer, depth;
    place(thread, i, &outer, &depth);
    if constexpr (Aligned && Source::order == Order::kDepth && !kStrided) {
      const T *from = source.template find<Depth>(positions[i], depth0, depth, depths);
      return from ? *(const SixteenValue *)from : SixteenValue{};
    } else {
      const auto found = source.template read<kLanes, Aligned>(positions[kPositions == 1 ? 0 : i], table.at(piece, depth),
                                                               I(outer0 + outer), outers, I(depth0 + depth), depths);
      SixteenValue value;
      __builtin_memcpy(&value, &found, sizeof value);
      return value;
    }
  }
  // Asks for a piece that is stored later, unless it ends in the middle of what one thread reads.
  template <bool Aligned, class Entries>
  AOTI_INLINE void fetch(const Source &source, const Entries &table, int piece, I depth0, I depths) {
    if constexpr (kStaged<Aligned>) {
      if constexpr (kStrided) {
        has = depth0 + Depth <= depths && (!kTurned || outer0 + Outers <= outers || outers % kLanes == 0);
        if (has) fetch_whole(source, depth0);
      } else {
        const int thread = anew(thread_index());
        AOTI_UNROLL_TIMES(16)
        for (int i = 0; i < kOwn; ++i) own[i] = read<Aligned>(thread, i, source, table, piece, depth0, depths);
      }
    }
  }
  // With nothing to ask between the loads, so that all are on their way together.
  AOTI_INLINE void fetch_whole(const Source &source, I depth0) {
    int outer, depth;
    place(anew(thread_index()), 0, &outer, &depth);
    const T *const from = source.pointer + (depth0 + depth) * source.depth_stride;
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < kOwn; ++i) {
      const int depths = kTurned ? i / kRun * (Threads / kAcross * kRun) + i % kRun : 0;
      own[i] = *(const SixteenValue *)(from + (begins[kTurned ? 0 : i] + source.depth_stride * depths));
    }
  }
  // Stores what was asked for, or what is read now.
  template <bool Aligned, class Entries>
  AOTI_INLINE void store(char *to, const Source &source, const Entries &table, int piece, I depth0, I depths) const {
    const int thread = anew(thread_index());
    if (kStaged<Aligned> && (!kStrided || has)) {
      AOTI_UNROLL_TIMES(16)
      for (int i = 0; i < kOwn; i += kRun) store_run(to, thread, i, own + i);
    } else {
      AOTI_UNROLL_TIMES(1)
      for (int i = 0; i < kOwn; i += kRun) {
        SixteenValue run[kRun];
        AOTI_UNROLL_TIMES(8)
        for (int d = 0; d < kRun; ++d) run[d] = read<Aligned>(thread, i + d, source, table, piece, depth0, depths);
        store_run(to, thread, i, run);
      }
    }
  }
  static AOTI_INLINE void store_run(char *to, int thread, int i, const SixteenValue *run) {
    int outer, depth;
    place(thread, i, &outer, &depth);
    if constexpr (kTurned) {
      Chunk<T, kLanes> rows[kRun];
      __builtin_memcpy(rows, run, sizeof rows);
      AOTI_UNROLL_TIMES(8)
      for (int o = 0; o < kLanes; ++o) {
        Chunk<T, kRun> turned;
        AOTI_UNROLL_TIMES(8)
        for (int d = 0; d < kRun; ++d) turned.lanes[d] = rows[d].lanes[o];
        *(Chunk<T, kRun> *)(to + offset(outer + o, depth) + depth % kLanes * int(sizeof(T))) = turned;
      }
    } else {
      *(SixteenValue *)(to + offset(outer, depth)) = *run;
    }
  }
};

#endif

} // namespace detail

AOTI_NAMESPACE_END
