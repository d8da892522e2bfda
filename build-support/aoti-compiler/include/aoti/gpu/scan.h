// Running reductions along rows, a block for each: threads run through neighbouring elements, and what is before them is
// handed on through warps and from warp to warp (Blelloch 1990). The order is the same in every run.
#pragma once

#include "../scan.h"
#include "simt.h"

AOTI_NAMESPACE_BEGIN

// Neighbouring elements that a thread has at a time.
constexpr int kScanned = 4;

// load(i, states) and store(i, states) for kScanned elements of a row from i on, in which states are merged with all before
// them. What lies behind the end of the row is merged only with what lies behind it too.
template <int Threads, class State, class Load, class Merge, class Store>
AOTI_INLINE void scan_row(i64 length, const Load &load, const Merge &merge, const Store &store) {
  constexpr int warps = (Threads + kWarp - 1) / kWarp;
  static_assert(warps <= kWarp, "the lanes of a warp have the sums of all");
  alignas(16) AOTI_SHARED char memory[2 * warps * sizeof(State)];
  const int lane = thread_index() % kWarp, warp = thread_index() / kWarp;
  const auto merged_with_lanes_before = [&](State own) {
    for (int distance = 1; distance < kWarp; distance *= 2) {
      const State other = shuffle(own, lane >= distance ? lane - distance : lane);
      if (lane >= distance) own = merge(other, own);
    }
    return own;
  };
  State before{};
  for (i64 tile = 0, turn = 0; tile < length; tile += Threads * kScanned, ++turn) {
    // Two sets of sums by turns, so that one barrier is enough.
    State *slots = (State *)memory + (turn % 2) * warps;
    const i64 first = tile + thread_index() * kScanned;
    State own[kScanned];
    load(first, own);
    AOTI_UNROLL_TIMES(4)
    for (int k = 1; k < kScanned; ++k) own[k] = merge(own[k - 1], own[k]);
    const State all = merged_with_lanes_before(own[kScanned - 1]);
    State preceding = shuffle(all, lane > 0 ? lane - 1 : lane);
    if (lane == kWarp - 1) slots[warp] = all;
    barrier();
    const State of_warps = merged_with_lanes_before(lane < warps ? slots[lane] : State{});
    const State earlier_warps = shuffle(of_warps, warp > 0 ? warp - 1 : 0), whole = shuffle(of_warps, warps - 1);
    // What is before the tile, then the warps before, then the lanes before.
    if (warp > 0) preceding = lane > 0 ? merge(earlier_warps, preceding) : earlier_warps;
    const bool has_preceding = thread_index() > 0;
    if (tile > 0) preceding = has_preceding ? merge(before, preceding) : before;
    before = tile > 0 ? merge(before, whole) : whole;
    if (has_preceding || tile > 0) {
      AOTI_UNROLL_TIMES(4)
      for (int k = 0; k < kScanned; ++k) own[k] = merge(preceding, own[k]);
    }
    store(first, own);
  }
  barrier();
}

// Elements from `i` on, by one access where they lie side by side.
template <class T> struct alignas(kScanned * sizeof(T)) Neighbours {
  T elements[kScanned];
};
template <class T> AOTI_INLINE bool are_neighbours(const T *p, i64 i, i64 length, i64 inner) {
  return inner == 1 && i + kScanned <= length && u64(p + i) % sizeof(Neighbours<T>) == 0;
}
template <class T> AOTI_INLINE Neighbours<T> read_some(const T *p, i64 i, i64 length, i64 inner) {
  if (are_neighbours(p, i, length, inner)) return *(const Neighbours<T> *)(p + i);
  Neighbours<T> own{};
  AOTI_UNROLL_TIMES(4)
  for (int k = 0; k < kScanned; ++k)
    if (i + k < length) own.elements[k] = p[(i + k) * inner];
  return own;
}
template <class T> AOTI_INLINE void write_some(T *p, i64 i, i64 length, i64 inner, const Neighbours<T> &own) {
  if (are_neighbours(p, i, length, inner)) {
    *(Neighbours<T> *)(p + i) = own;
    return;
  }
  AOTI_UNROLL_TIMES(4)
  for (int k = 0; k < kScanned; ++k)
    if (i + k < length) p[(i + k) * inner] = own.elements[k];
}

template <int Threads, class Op, class T>
AOTI_INLINE void scan_rows(const T *in, T *out, i64 outer, i64 length, i64 inner) {
  using State = computed<T>;
  AOTI_UNROLL_TIMES(1)
  for (i64 u = block_index(); u < outer * inner; u += block_count()) {
    const i64 base = u / inner * length * inner + u % inner;
    scan_row<Threads, State>(
        length,
        [&](i64 i, State(&own)[kScanned]) {
          const Neighbours<T> some = read_some(in + base, i, length, inner);
          AOTI_UNROLL_TIMES(4)
          for (int k = 0; k < kScanned; ++k) own[k] = read(some.elements + k);
        },
        [&](State a, State b) { return Op::next(Vec<State, 1>{a}, Vec<State, 1>{b}).v; },
        [&](i64 i, const State(&own)[kScanned]) {
          Neighbours<T> some;
          AOTI_UNROLL_TIMES(4)
          for (int k = 0; k < kScanned; ++k) write(some.elements + k, own[k]);
          write_some(out + base, i, length, inner, some);
        });
  }
}

// The extreme so far, and the last place that has it.
template <class T> struct Extremum {
  T best;
  i64 at;
};
template <int Threads, class Op, class T>
AOTI_INLINE void scan_extreme_rows(const T *in, T *out, i64 *index, i64 outer, i64 length, i64 inner) {
  using State = Extremum<computed<T>>;
  AOTI_UNROLL_TIMES(1)
  for (i64 u = block_index(); u < outer * inner; u += block_count()) {
    const i64 base = u / inner * length * inner + u % inner;
    scan_row<Threads, State>(
        length,
        [&](i64 i, State(&own)[kScanned]) {
          const Neighbours<T> some = read_some(in + base, i, length, inner);
          AOTI_UNROLL_TIMES(4)
          for (int k = 0; k < kScanned; ++k) own[k] = {read(some.elements + k), i + k};
        },
        [&](State a, State b) {
          using Best = Vec<computed<T>, 1>;
          return lane(Op::replaces(Best{b.best}, Best{a.best}), 0) ? b : a;
        },
        [&](i64 i, const State(&own)[kScanned]) {
          Neighbours<T> some;
          Neighbours<i64> places;
          AOTI_UNROLL_TIMES(4)
          for (int k = 0; k < kScanned; ++k) write(some.elements + k, own[k].best), places.elements[k] = own[k].at;
          write_some(out + base, i, length, inner, some);
          write_some(index + base, i, length, inner, places);
        });
  }
}

AOTI_NAMESPACE_END
