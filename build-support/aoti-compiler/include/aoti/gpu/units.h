// Products on matrix units, sums in f32: operands by way of shared memory, results too, so that epilogues read and write whole
// memory transactions. Where there are no units, or none for a type, the sums are those of contract.h.
//
// On NVIDIA's GPUs pieces of the operands are in a ring of four, two of which are on their way while one is multiplied. Halves are multiplied
// by a warp's instructions on sm_80 and later, by a warpgroup's on sm_90a; f32, and what is rounded to TF32, as in split_sums.h.
// On AMD's a piece is in registers while the one before it is multiplied (wave_sums.h).
#pragma once

#include "cluster.h"
#include "contract.h"
#include "split_sums.h"
#include "unit_fill.h"
#include "wave_sums.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

#if AOTI_UNITS == AOTI_MMA
#if AOTI_WARPGROUPS

// The sums of one thread by instructions of a warpgroup, each of which has 64 rows of the tile.
template <class T, int Rows, int Columns, int Threads, class FillA, class FillB> struct GroupSums {
  static_assert(Rows == Threads / 128 * 64);
  f32 sums[Columns / 2];

  AOTI_INLINE void clear() {
    AOTI_UNROLL_TIMES(128)
    for (int i = 0; i < Columns / 2; ++i) sums[i] = 0;
  }
  // Begins to multiply a piece; the one before is done.
  AOTI_INLINE void multiply_piece(u32 a, u32 b) {
    constexpr bool kTurnedA = FillA::kByOuter, kTurnedB = FillB::kByOuter;
    const WarpgroupOperand left(a + warpgroup_index() * (64 * 128), 64 * 128), right(b, 64 * 128);
    warpgroup_begin();
    // An instruction takes 32 bytes of a row.
    constexpr int kStep = 32 / int(sizeof(T));
    AOTI_UNROLL_TIMES(4)
    for (int d = 0; d < FillA::kDepth; d += kStep)
      warpgroup_multiply<T, false, kTurnedA, kTurnedB>(sums, left.at(kTurnedA ? d * 128 : d * int(sizeof(T))),
                                                       right.at(kTurnedB ? d * 128 : d * int(sizeof(T))));
    warpgroup_commit();
    warpgroup_wait<1>();
  }
  AOTI_INLINE void finish() { warpgroup_wait<0>(); }
  template <int> AOTI_INLINE void store(f32 *results, int) const {
    const int warp = thread_index() / 32, lane = thread_index() % 32;
    AOTI_UNROLL_TIMES(32)
    for (int j = 0; j < Columns / 8; ++j)
      AOTI_UNROLL_TIMES(2)
      for (int h = 0; h < 2; ++h)
        store_pair<Columns>(results, warp * 16 + h * 8 + lane / 4, j * 8 + lane % 4 * 2, sums + (j * 4 + h * 2));
  }
};

#else

// The sums of one thread by instructions of a warp, two warps one below the other.
template <class T, int Rows, int Columns, int Threads, class FillA, class FillB> struct WarpSums {
  static constexpr int kWarpRows = Rows / 2, kWarpColumns = Columns / (Threads / 64);
  static constexpr int kDown = kWarpRows / 16, kAcross = kWarpColumns / 8;
  f32 sums[kDown][kAcross][4];

  static AOTI_INLINE int row0() { return thread_index() / 32 % 2 * kWarpRows; }
  static AOTI_INLINE int column0() { return thread_index() / 64 * kWarpColumns; }
  AOTI_INLINE void clear() {
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < kDown; ++i)
      AOTI_UNROLL_TIMES(8)
      for (int j = 0; j < kAcross; ++j)
        AOTI_UNROLL_TIMES(4)
        for (int e = 0; e < 4; ++e) sums[i][j][e] = 0;
  }
  AOTI_INLINE void multiply_piece(u32 a, u32 b) {
    const int lane = thread_index() % 32;
    AOTI_UNROLL_TIMES(4)
    for (int d = 0; d < FillA::kDepth; d += 16) {
      u32 left[kDown][4], right[kAcross][2];
      AOTI_UNROLL_TIMES(8)
      for (int i = 0; i < kDown; ++i) {
        if constexpr (FillA::kByOuter)
          load_matrices<true>(left[i], a + FillA::offset(row0() + i * 16 + lane / 8 % 2 * 8, d + lane % 8 + lane / 16 * 8));
        else
          load_matrices<false>(left[i], a + FillA::offset(row0() + i * 16 + lane % 16, d + lane / 16 * 8));
      }
      AOTI_UNROLL_TIMES(8)
      for (int j = 0; j < kAcross; j += 2) {
        u32 pair[4];
        if constexpr (FillB::kByOuter)
          load_matrices<true>(pair, b + FillB::offset(column0() + j * 8 + lane / 16 * 8, d + lane % 8 + lane / 8 % 2 * 8));
        else
          load_matrices<false>(pair, b + FillB::offset(column0() + j * 8 + lane / 16 * 8 + lane % 8, d + lane / 8 % 2 * 8));
        right[j][0] = pair[0], right[j][1] = pair[1], right[j + 1][0] = pair[2], right[j + 1][1] = pair[3];
      }
      AOTI_UNROLL_TIMES(8)
      for (int i = 0; i < kDown; ++i)
        AOTI_UNROLL_TIMES(8)
        for (int j = 0; j < kAcross; ++j) multiply<T>(sums[i][j], left[i], right[j]);
    }
  }
  AOTI_INLINE void finish() {}
  template <int> AOTI_INLINE void store(f32 *results, int) const {
    const int lane = thread_index() % 32;
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < kDown; ++i)
      AOTI_UNROLL_TIMES(8)
      for (int j = 0; j < kAcross; ++j)
        AOTI_UNROLL_TIMES(2)
        for (int h = 0; h < 2; ++h)
          store_pair<Columns>(results, row0() + i * 16 + h * 8 + lane / 4, column0() + j * 8 + lane % 4 * 2, sums[i][j] + h * 2);
  }
};

#endif

// How the threads of a block add up a tile of T.
#if AOTI_WARPGROUPS
template <class T, int Rows, int Columns, int Threads, class FillA, class FillB> struct UnitSums : GroupSums<T, Rows, Columns, Threads, FillA, FillB> {};
#else
template <class T, int Rows, int Columns, int Threads, class FillA, class FillB> struct UnitSums : WarpSums<T, Rows, Columns, Threads, FillA, FillB> {};
#endif
template <int Rows, int Columns, int Threads, class FillA, class FillB>
struct UnitSums<f32, Rows, Columns, Threads, FillA, FillB> : SplitSums<false, Rows, Columns, Threads, FillA, FillB> {};
template <int Rows, int Columns, int Threads, class FillA, class FillB>
struct UnitSums<Tf32, Rows, Columns, Threads, FillA, FillB> : SplitSums<true, Rows, Columns, Threads, FillA, FillB> {};

// Multiplies pieces [first, end) of the tile. Copied: strided operands are aligned, and no thread waits for what it copies.
template <bool Copied, class FillA, class FillB, class Sums, class TableA, class TableB, class I, class A, class B>
AOTI_INLINE void add_up_units(Sums &own, char *ring, TableA &table_a, TableB &table_b, int first, int end, I row0, I column0, I m,
                              I n, I k, const A &a, const B &b) {
  constexpr int kDepth = FillA::kDepth, kPieceBytes = FillA::kBytes + FillB::kBytes;
  const u32 ring_address = shared_address(ring);
  // Where one is not aligned, the other may be.
  const bool copied_a = A::kCopied && (Copied || a.template is_aligned<FillA::kLanes>());
  const bool copied_b = B::kCopied && (Copied || b.template is_aligned<FillB::kLanes>());
  FillA fill_a;
  FillB fill_b;
  fill_a.start(a, row0, m, first);
  fill_b.start(b, column0, n, first);
  auto tabulate = [&](int step) {
    table_a.fill(a, step, I(step) * kDepth, k);
    table_b.fill(b, step, I(step) * kDepth, k);
  };
  auto fetch = [&](int step) __attribute__((always_inline)) {
    if (step < end) {
      const int at = step % kRing * kPieceBytes;
      if (copied_a)
        fill_a.copy(a, ring_address + u32(at), I(step) * kDepth, k);
      else
        fill_a.bring(a, ring + at, table_a, step, I(step) * kDepth, k);
      if (copied_b)
        fill_b.copy(b, ring_address + u32(at + FillA::kBytes), I(step) * kDepth, k);
      else
        fill_b.bring(b, ring + at + FillA::kBytes, table_b, step, I(step) * kDepth, k);
    }
    commit_copies();
  };
  tabulate(first), tabulate(first + 1), tabulate(first + 2);
  barrier();
  fetch(first);
  fetch(first + 1);
  AOTI_UNROLL_TIMES(1)
  for (int step = first; step < end; ++step) {
    wait_for_copies<1>();
#if AOTI_WARPGROUPS
    show_to_units();
#endif
    // Behind it, everybody has multiplied the piece before the last, whose place the next one takes.
    barrier();
    const u32 left = ring_address + u32(step % kRing * kPieceBytes);
    own.multiply_piece(left, left + FillA::kBytes);
    fetch(step + 2);
    tabulate(step + 3);
  }
  own.finish();
  wait_for_copies<0>();
}

template <class T> constexpr bool kHasUnits = true;
template <int Rows, int> constexpr int kResultRows = Rows;
template <int Outers, int Threads, int Depth, class Source, class I> using PieceFill = UnitFill<Outers, Threads, Depth, Source, I>;

#elif AOTI_FRAGMENTS

template <class T> constexpr bool kHasUnits = kHasFragments<T>;
template <int Rows, int Columns> constexpr int kResultRows = result_rows<Columns>(Rows);
template <int Outers, int Threads, int Depth, class Source, class I> using PieceFill = StagedFill<Outers, Threads, Depth, Source, I>;
template <class T, int Rows, int Columns, int Threads, class FillA, class FillB> using UnitSums = WaveSums<T, Rows, Columns, Threads, FillA, FillB>;

#endif

#if AOTI_UNITS

template <class T, int Rows, int Columns, int Threads, int Lanes, int Blocks, class I, class A, class B, class Epilogue>
AOTI_INLINE void contract_on_units(I row0, I column0, I m, I n, I k, const A &a, const B &b, const Epilogue &epilogue) {
  constexpr int kDepth = kUnitDepth<T, Rows, Columns, Threads>, kPitch = Columns + kResultPad, kWhole = 16 / int(sizeof(T));
  using FillA = PieceFill<Rows, Threads, kDepth, A, I>;
  using FillB = PieceFill<Columns, Threads, kDepth, B, I>;
  AOTI_DYNAMIC_SHARED(shared);
  char *const ring = shared;
  if (Cluster<Blocks>::is_idle()) return;
  const int pieces = int((k + kDepth - 1) / kDepth), first = Cluster<Blocks>::begin(pieces), end = Cluster<Blocks>::end(pieces);
  UnitSums<T, Rows, Columns, Threads, FillA, FillB> own;
  own.clear();
  AOTI_SHARED Lookup<typename A::Entry, kRing, kDepth> table_a;
  AOTI_SHARED Lookup<typename B::Entry, kRing, kDepth> table_b;
  // The ring and the tables are used again by the next tile of the block.
  barrier();
  if (a.template is_aligned<kWhole>() && b.template is_aligned<kWhole>())
    add_up_units<true, FillA, FillB>(own, ring, table_a, table_b, first, end, row0, column0, m, n, k, a, b);
  else
    add_up_units<false, FillA, FillB>(own, ring, table_a, table_b, first, end, row0, column0, m, n, k, a, b);
  barrier();
  f32 *const results = (f32 *)ring;
  constexpr int kSome = kResultRows<Rows, Columns>;
  AOTI_UNROLL_TIMES(1)
  for (int above = 0; above < Rows; above += kSome) {
    if (above > 0) barrier();
    own.template store<kSome>(results, above);
    Cluster<Blocks>::meet();
    AOTI_UNROLL_TIMES(1)
    for (int i = Cluster<Blocks>::rank() * Threads + thread_index(); i < kSome * (Columns / Lanes); i += Cluster<Blocks>::kParts * Threads) {
      const int row = i / (Columns / Lanes), column = i % (Columns / Lanes) * Lanes;
      const I to_row = row0 + (above + row), to_column = column0 + column;
      f32 *const sums = results + row * kPitch + column;
      Cluster<Blocks>::template add_up<Lanes>(sums);
#if AOTI_UNITS == AOTI_MMA
      if constexpr (sizeof(T) == sizeof(f32)) correct_split_sums<Lanes>(to_row, to_column, m, n, k, a, b, sums);
#endif
      finish<f32, Lanes>(to_row, to_column, m, n, sums, epilogue);
    }
  }
  Cluster<Blocks>::part();
}

#else
template <class T> constexpr bool kHasUnits = false;
#endif

} // namespace detail

// The sums of rows [row0, row0 + Rows) and columns [column0, column0 + Columns), by the Threads of a block.
// epilogue(row, column, lanes, sums) once for each Lanes neighbouring columns, or each one at the border. Neighbouring Blocks share
// the depth (cluster.h). A launch has the shared memory of as many pieces as there are, four at most, or of one (wave_sums.h), and
// of the results.
template <class T, int Rows, int Columns, int Threads, int Lanes, int Blocks = 1, class I, class A, class B, class Epilogue>
AOTI_INLINE void contract_units(I row0, I column0, I m, I n, I k, const A &a, const B &b, const Epilogue &epilogue) {
#if AOTI_UNITS
  if constexpr (detail::kHasUnits<T>)
    return detail::contract_on_units<T, Rows, Columns, Threads, Lanes, Blocks>(row0, column0, m, n, k, a, b, epilogue);
#endif
  if constexpr (!detail::kHasUnits<T>) {
    constexpr int kRows = Rows < 64 ? Rows : 64, kColumns = Columns < 64 ? Columns : 64;
    AOTI_UNROLL_TIMES(1)
    for (int r = 0; r < Rows; r += kRows)
      AOTI_UNROLL_TIMES(1)
      for (int c = 0; c < Columns; c += kColumns)
        contract<f32, kRows, kColumns, Threads, (Lanes < 4 ? Lanes : 4), Blocks>(I(row0 + r), I(column0 + c), m, n, k, a, b, epilogue);
  }
}

AOTI_NAMESPACE_END
