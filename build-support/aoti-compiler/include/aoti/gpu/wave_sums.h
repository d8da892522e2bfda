// The sums of a tile on AMD's matrix units: each wavefront of a block has fragments of rows and columns (fragments.h), which it reads
// from pieces of the operands in shared memory (staged_fill.h).
#pragma once

#include "staged_fill.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

#if AOTI_FRAGMENTS

// Wavefronts lie two, or one, below each other and as many side by side as have columns; those that are left are slices, which share
// the depth of a piece.
template <class T, int Rows, int Columns, int Threads, class FillA, class FillB> struct WaveSums {
  static constexpr int kSide = FragmentLayout::kSide, kWaves = Threads / kWarp;
  static constexpr int kWavesDown = kWaves > 1 && Rows > kSide ? 2 : 1;
  static constexpr int kMostAcross = kWaves / kWavesDown;
  static constexpr int kWavesAcross = kMostAcross * kSide <= Columns ? kMostAcross : Columns / kSide;
  static constexpr int kSlices = kMostAcross / kWavesAcross;
  static constexpr int kWaveRows = Rows / kWavesDown, kWaveColumns = Columns / kWavesAcross;
  static constexpr int kDown = kWaveRows / kSide, kAcross = kWaveColumns / kSide;
  // Elements along the depth that a wavefront multiplies at a time.
  static constexpr int kStep = kFragment.groups * kFragment.pieces * FillA::kLanes;
  static_assert(kSlices * kWavesAcross * kWavesDown * kWarp == Threads && FillA::kDepth % (kStep * kSlices) == 0);
  static_assert(kDown * kSide * kWavesDown == Rows && kAcross * kSide * kWavesAcross == Columns);
  FragmentSums sums[kDown][kAcross];

  static AOTI_INLINE int wave() { return thread_index() / kWarp; }
  static AOTI_INLINE int lane() { return thread_index() % kWarp; }
  static AOTI_INLINE int slice() { return wave() / (kWavesDown * kWavesAcross); }
  static AOTI_INLINE int row0() { return wave() % kWavesDown * kWaveRows; }
  static AOTI_INLINE int column0() { return wave() / kWavesDown % kWavesAcross * kWaveColumns; }
  AOTI_INLINE void clear() {
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < kDown; ++i)
      AOTI_UNROLL_TIMES(8)
      for (int j = 0; j < kAcross; ++j)
        AOTI_UNROLL_TIMES(8)
        for (int e = 0; e < kFragment.sums; ++e) sums[i][j][e] = 0.0f;
  }
  // The fragment of sixteen outer positions that a lane has a part of.
  template <class Fill> static AOTI_INLINE FragmentPieces load(const char *piece, int lane, int outer, int depth) {
    FragmentPieces own;
    AOTI_UNROLL_TIMES(2)
    for (int i = 0; i < kFragment.pieces; ++i) {
      const int at = depth + (kFragment.group(lane) * kFragment.pieces + i) * Fill::kLanes;
      own.at[i] = *(const SixteenBytes *)(piece + Fill::offset(outer + lane % kSide, at));
    }
    return own;
  }
  AOTI_INLINE void multiply_piece(const char *a, const char *b) {
    AOTI_UNROLL_TIMES(1)
    for (int step = 0; step < FillA::kDepth / kSlices; step += kStep) {
      const int depth = slice() * (FillA::kDepth / kSlices) + step;
      const int own_lane = anew(lane());
      FragmentPieces left[kDown];
      AOTI_UNROLL_TIMES(8)
      for (int i = 0; i < kDown; ++i) left[i] = load<FillA>(a, own_lane, row0() + i * kSide, depth);
      AOTI_UNROLL_TIMES(8)
      for (int j = 0; j < kAcross; ++j) {
        const FragmentPieces right = load<FillB>(b, own_lane, column0() + j * kSide, depth);
        AOTI_UNROLL_TIMES(8)
        for (int i = 0; i < kDown; ++i) multiply_fragments<T>(sums[i][j], left[i], right);
      }
    }
  }
  // Rows [first, first + Some) of the results. Slices add their sums to those of the ones before, in turn.
  template <int Some> AOTI_INLINE void store(f32 *results, int first) const {
    AOTI_UNROLL_TIMES(1)
    for (int turn = 0; turn < kSlices; ++turn) {
      if (turn > 0) barrier();
      if (turn != slice()) continue;
      AOTI_UNROLL_TIMES(8)
      for (int i = 0; i < kDown; ++i) {
        const int row = row0() + i * kSide - first;
        if (row < 0 || row >= Some) continue;
        AOTI_UNROLL_TIMES(8)
        for (int j = 0; j < kAcross; ++j)
          AOTI_UNROLL_TIMES(8)
          for (int e = 0; e < kFragment.sums; ++e) {
            const int column = column0() + j * kSide + kFragment.row(lane(), e);
            f32 &place = results[(row + lane() % kSide) * (Columns + kResultPad) + column];
            place = turn > 0 ? place + sums[i][j][e] : sums[i][j][e];
          }
      }
    }
  }
};

// Multiplies pieces [first, end) of the tile. Aligned: operands that may be begin pieces at multiples of 16 bytes.
template <bool Aligned, class FillA, class FillB, class Sums, class TableA, class TableB, class I, class A, class B>
AOTI_INLINE void add_up_units(Sums &own, char *ring, TableA &table_a, TableB &table_b, int first, int end, I row0, I column0, I m,
                              I n, I k, const A &a, const B &b) {
  constexpr int kDepth = FillA::kDepth;
  FillA fill_a;
  FillB fill_b;
  fill_a.start(a, row0, m);
  fill_b.start(b, column0, n);
  const auto tabulate = [&](int step) {
    table_a.fill(a, step, I(step) * kDepth, k);
    table_b.fill(b, step, I(step) * kDepth, k);
  };
  const auto fetch = [&](int step) {
    if (step >= end) return;
    fill_a.template fetch<Aligned>(a, table_a, step, I(step) * kDepth, k);
    fill_b.template fetch<Aligned>(b, table_b, step, I(step) * kDepth, k);
  };
  tabulate(first);
  barrier();
  fetch(first);
  AOTI_UNROLL_TIMES(1)
  for (int step = first; step < end; ++step) {
    fill_a.template store<Aligned>(ring, a, table_a, step, I(step) * kDepth, k);
    fill_b.template store<Aligned>(ring + FillA::kBytes, b, table_b, step, I(step) * kDepth, k);
    tabulate(step + 1);
    barrier();
    fetch(step + 1);
    own.multiply_piece(ring, ring + FillA::kBytes);
    // Nobody needs the piece any more.
    barrier();
  }
}

#endif

} // namespace detail

AOTI_NAMESPACE_END
