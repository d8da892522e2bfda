// Running reductions along rows, a block for each: threads run through neighbouring elements, and what is before them is
// handed on through warps and from warp to warp (Blelloch 1990). The order is the same in every run.
#pragma once

#include "../rows.h"
#include "simt.h"

AOTI_NAMESPACE_BEGIN

// Neighbouring elements that a thread has at a time.
constexpr int kScanned = 4;

// store(i, state) for each element of a row, in which states from load(i) are merged with all before them. What lies behind
// the end of the row is merged only with what lies behind it too.
template <int Threads, class State, class Load, class Merge, class Store>
AOTI_INLINE void scan_row(i64 length, const Load &load, const Merge &merge, const Store &store) {
  constexpr int warps = (Threads + kWarp - 1) / kWarp;
  alignas(16) AOTI_SHARED char memory[2 * warps * sizeof(State)];
  const int lane = thread_index() % kWarp, warp = thread_index() / kWarp;
  State before{};
  for (i64 tile = 0, turn = 0; tile < length; tile += Threads * kScanned, ++turn) {
    // Two sets of sums by turns, so that one barrier is enough.
    State *slots = (State *)memory + (turn % 2) * warps;
    const i64 first = tile + thread_index() * kScanned;
    State own[kScanned];
    AOTI_UNROLL_TIMES(4)
    for (int k = 0; k < kScanned; ++k) own[k] = first + k < length ? load(first + k) : State{};
    AOTI_UNROLL_TIMES(4)
    for (int k = 1; k < kScanned; ++k) own[k] = merge(own[k - 1], own[k]);
    State all = own[kScanned - 1];
    for (int distance = 1; distance < kWarp; distance *= 2) {
      const State other = shuffle(all, lane >= distance ? lane - distance : lane);
      if (lane >= distance) all = merge(other, all);
    }
    State preceding = shuffle(all, lane > 0 ? lane - 1 : lane);
    if (lane == kWarp - 1) slots[warp] = all;
    barrier();
    bool has_preceding = lane > 0;
    State earlier = before;
    bool has_earlier = tile > 0;
    for (int w = 0; w < warps; ++w) {
      if (w == warp && has_earlier) {
        preceding = has_preceding ? merge(earlier, preceding) : earlier;
        has_preceding = true;
      }
      earlier = has_earlier ? merge(earlier, slots[w]) : slots[w];
      has_earlier = true;
    }
    before = earlier;
    AOTI_UNROLL_TIMES(4)
    for (int k = 0; k < kScanned; ++k)
      if (first + k < length) store(first + k, has_preceding ? merge(preceding, own[k]) : own[k]);
  }
  barrier();
}

template <int Threads, class Op, class T>
AOTI_INLINE void scan_rows(const T *in, T *out, i64 outer, i64 length, i64 inner) {
  using State = computed<T>;
  for (i64 u = block_index(); u < outer * inner; u += block_count()) {
    const i64 base = u / inner * length * inner + u % inner;
    scan_row<Threads, State>(
        length, [&](i64 i) { return Op::first(read(in + base + i * inner)); },
        [&](State a, State b) { return Op::next(a, b); }, [&](i64 i, State x) { write(out + base + i * inner, x); });
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
  for (i64 u = block_index(); u < outer * inner; u += block_count()) {
    const i64 base = u / inner * length * inner + u % inner;
    scan_row<Threads, State>(
        length, [&](i64 i) { return State{read(in + base + i * inner), i}; },
        [&](State a, State b) { return Op::replaces(b.best, a.best) ? b : a; },
        [&](i64 i, State x) {
          write(out + base + i * inner, x.best);
          index[base + i * inner] = x.at;
        });
  }
}

AOTI_NAMESPACE_END
