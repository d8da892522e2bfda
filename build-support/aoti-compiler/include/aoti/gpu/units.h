// Products of halves on the matrix units of NVIDIA GPUs, sums in f32: operands by way of shared memory in a ring of four
// pieces, two of which are on their way while one is multiplied; results by way of shared memory too, so that epilogues read
// and write whole memory transactions. By a warp's instructions on sm_80 and later, by a warpgroup's on sm_90a. Elsewhere the
// sums are those of contract.h.
#pragma once

#include "contract.h"
#include "mma.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// Pieces in the ring, and their depth: 128 bytes.
constexpr int kRing = 4, kUnitDepth = 64;
// Floats between rows of results, beside the columns.
constexpr int kResultPad = 8;

#if AOTI_NVIDIA

template <class Source> constexpr bool is_strided = false;
template <class T, class I, bool ByDepth> constexpr bool is_strided<Strided<T, I, ByDepth>> = true;

// Pieces of an operand, Outers by 64, from device memory into the ring, 16 bytes of a thread at a time.
template <int Outers, int Threads, class Source, class I> struct UnitFill {
  using T = typename Source::Element;
  static constexpr bool kByOuter = Source::order == Order::kOuter, kStrided = is_strided<Source>;
  static constexpr int kOwn = Outers * 8 / Threads, kApart = Threads / 8;
  // Pieces along the depth are of an outer position each.
  static constexpr int kPositions = Source::order == Order::kDepth && !kStrided ? kOwn : 1;
  static_assert(kOwn * Threads == Outers * 8 && 64 % kApart == 0 && (Source::order != Order::kLane || Threads % Outers == 0));
  I outer0, outers;
  typename Source::Position positions[kPositions];
  // Of a strided operand: the next address of this thread, and the bytes to its other ones in a piece, and in the next piece.
  const char *next;
  i64 apart, ahead;
  u32 to;

  // Bytes from the beginning of the piece: a row is an outer position, or, where the outer axis is contiguous, a depth.
  static AOTI_INLINE u32 offset(int outer, int depth) {
    if constexpr (kByOuter)
      return u32(outer / 64 * (64 * 128) + depth * 128 + (outer % 64 / 8 ^ depth % 8) * 16);
    else
      return u32(outer * 128 + (depth / 8 ^ outer % 8) * 16);
  }
  static AOTI_INLINE void place(int number, int *outer, int *depth) {
    if constexpr (Source::order == Order::kDepth)
      *outer = number / 8, *depth = number % 8 * 8;
    else if constexpr (kByOuter)
      *outer = number / 512 * 64 + number % 8 * 8, *depth = number / 8 % 64;
    else
      *outer = number % Outers, *depth = number / Outers * 8;
  }
  AOTI_INLINE void start(const Source &source, I first, I end) {
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
      apart = i64(kByOuter ? source.depth_stride : source.outer_stride) * (kApart * 2);
      ahead = kByOuter ? i64(source.depth_stride) * (kUnitDepth * 2) : kUnitDepth * 2;
      to = offset(outer, depth);
    }
  }
  // Copies that no thread waits for.
  AOTI_INLINE void copy(const Source &source, u32 piece, I depth0, I depths) {
    if constexpr (kStrided)
      copy_steps(source, piece, depth0, depths);
    else
      copy_found(source, piece, depth0, depths);
  }
  AOTI_INLINE void copy_found(const Source &source, u32 piece, I depth0, I depths) {
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < kOwn; ++i) {
      int outer, depth;
      place(thread_index() + i * Threads, &outer, &depth);
      const T *from = source.template find<kUnitDepth>(positions[i], depth0, depth, depths);
      copy_ahead(piece + offset(outer, depth), from ? from : source.pointer, from ? 16 : 0);
    }
  }
  AOTI_INLINE void copy_steps(const Source &source, u32 piece, I depth0, I depths) {
    const bool whole = outer0 + Outers <= outers && depth0 + kUnitDepth <= depths;
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < kOwn; ++i) {
      // Rows of a thread lie kApart apart, and those of the next block of the outer axis behind them.
      const char *from = kByOuter ? next + apart * (i * kApart % 64 / kApart) + i * kApart / 64 * 128 : next + apart * i;
      const u32 at = piece + to + u32(kByOuter ? i * kApart % 64 * 128 + i * kApart / 64 * (64 * 128) : i * kApart * 128);
      if (whole) {
        copy_ahead(at, from);
      } else {
        int outer, depth;
        place(thread_index() + i * Threads, &outer, &depth);
        const I o = outers - outer0 - outer, d = depths - depth0 - depth;
        const I left = o > 0 && d > 0 ? (kByOuter ? o : d) : I(0);
        const int bytes = left >= 8 ? 16 : int(left) * 2;
        copy_ahead(at, bytes ? (const void *)from : (const void *)source.pointer, bytes);
      }
    }
    next += ahead;
  }
  // The same by way of registers.
  template <class Entries>
  AOTI_INLINE void read(const Source &source, char *piece, const Entries &table, int number_of, I depth0, I depths) {
    // Several pieces are read before the first is stored.
    AOTI_UNROLL_TIMES(4)
    for (int i = 0; i < kOwn; ++i) {
      int outer, depth;
      place(thread_index() + i * Threads, &outer, &depth);
      const auto eight = source.template read<8, false>(positions[kPositions == 1 ? 0 : i], table.at(number_of, depth), I(outer0 + outer), outers,
                                                        I(depth0 + depth), depths);
      Chunk<T, 8> chunk;
      __builtin_memcpy(&chunk, &eight, sizeof chunk);
      *(Chunk<T, 8> *)(piece + offset(outer, depth)) = chunk;
    }
  }
};

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
    AOTI_UNROLL_TIMES(4)
    for (int d = 0; d < kUnitDepth; d += 16)
      warpgroup_multiply<T, false, kTurnedA, kTurnedB>(sums, left.at(kTurnedA ? d * 128 : d * 2),
                                                       right.at(kTurnedB ? d * 128 : d * 2));
    warpgroup_commit();
    warpgroup_wait<1>();
  }
  AOTI_INLINE void finish() { warpgroup_wait<0>(); }
  // keep(row, column, x, y) for neighbouring columns of the tile.
  template <class Keep> AOTI_INLINE void each_pair(const Keep &keep) const {
    const int warp = thread_index() / 32, lane = thread_index() % 32;
    AOTI_UNROLL_TIMES(32)
    for (int j = 0; j < Columns / 8; ++j)
      AOTI_UNROLL_TIMES(2)
      for (int h = 0; h < 2; ++h)
        keep(warp * 16 + h * 8 + lane / 4, j * 8 + lane % 4 * 2, sums[j * 4 + h * 2], sums[j * 4 + h * 2 + 1]);
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
    for (int d = 0; d < kUnitDepth; d += 16) {
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
  template <class Keep> AOTI_INLINE void each_pair(const Keep &keep) const {
    const int lane = thread_index() % 32;
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < kDown; ++i)
      AOTI_UNROLL_TIMES(8)
      for (int j = 0; j < kAcross; ++j)
        AOTI_UNROLL_TIMES(2)
        for (int h = 0; h < 2; ++h)
          keep(row0() + i * 16 + h * 8 + lane / 4, column0() + j * 8 + lane % 4 * 2, sums[i][j][h * 2], sums[i][j][h * 2 + 1]);
  }
};

#endif

// Multiplies the tile piece by piece. Copied: strided operands are aligned, and no thread waits for what it copies.
template <bool Copied, int Rows, class FillA, class FillB, class Sums, class TableA, class TableB, class I, class A, class B>
AOTI_INLINE void add_up_units(Sums &own, char *ring, TableA &table_a, TableB &table_b, I row0, I column0, I m, I n, I k,
                              const A &a, const B &b) {
  constexpr int kColumns = FillB::kOwn * FillB::kApart, kPieceBytes = (Rows + kColumns) * 128;
  const u32 ring_address = shared_address(ring);
  FillA fill_a;
  FillB fill_b;
  fill_a.start(a, row0, m);
  fill_b.start(b, column0, n);
  const int steps = int((k + kUnitDepth - 1) / kUnitDepth);
  auto tabulate = [&](int step) {
    table_a.fill(a, step, I(step) * kUnitDepth, k);
    table_b.fill(b, step, I(step) * kUnitDepth, k);
  };
  auto fetch = [&](int step) {
    if (step < steps) {
      const int at = step % kRing * kPieceBytes;
      if constexpr (Copied && A::kCopied)
        fill_a.copy(a, ring_address + u32(at), I(step) * kUnitDepth, k);
      else
        fill_a.read(a, ring + at, table_a, step, I(step) * kUnitDepth, k);
      if constexpr (Copied && B::kCopied)
        fill_b.copy(b, ring_address + u32(at + Rows * 128), I(step) * kUnitDepth, k);
      else
        fill_b.read(b, ring + at + Rows * 128, table_b, step, I(step) * kUnitDepth, k);
    }
    commit_copies();
  };
  tabulate(0), tabulate(1), tabulate(2);
  barrier();
  fetch(0);
  fetch(1);
  AOTI_UNROLL_TIMES(1)
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<1>();
#if AOTI_WARPGROUPS
    show_to_units();
#endif
    // Behind it, everybody has multiplied the piece before the last, whose place the next one takes.
    barrier();
    const u32 left = ring_address + u32(step % kRing * kPieceBytes);
    own.multiply_piece(left, left + Rows * 128);
    fetch(step + 2);
    tabulate(step + 3);
  }
  own.finish();
  wait_for_copies<0>();
}

#endif

} // namespace detail

// The sums of rows [row0, row0 + Rows) and columns [column0, column0 + Columns), by the Threads of a block.
// epilogue(row, column, lanes, sums) once for each Lanes neighbouring columns, or each one at the border. A launch has the
// shared memory of as many pieces as there are, four at most, and of the results.
template <class T, int Rows, int Columns, int Threads, int Lanes, class I, class A, class B, class Epilogue>
AOTI_INLINE void contract_units(I row0, I column0, I m, I n, I k, const A &a, const B &b, const Epilogue &epilogue) {
#if AOTI_NVIDIA
  using namespace detail;
  using FillA = UnitFill<Rows, Threads, A, I>;
  using FillB = UnitFill<Columns, Threads, B, I>;
  constexpr int kPitch = Columns + kResultPad;
  AOTI_DYNAMIC_SHARED(shared);
  char *const ring = shared;
#if AOTI_WARPGROUPS
  GroupSums<T, Rows, Columns, Threads, FillA, FillB> own;
#else
  WarpSums<T, Rows, Columns, Threads, FillA, FillB> own;
#endif
  own.clear();
  AOTI_SHARED Lookup<typename A::Entry, kRing, kUnitDepth> table_a;
  AOTI_SHARED Lookup<typename B::Entry, kRing, kUnitDepth> table_b;
  // The ring and the tables are used again by the next tile of the block.
  barrier();
  if (a.template is_aligned<8>() && b.template is_aligned<8>())
    add_up_units<true, Rows, FillA, FillB>(own, ring, table_a, table_b, row0, column0, m, n, k, a, b);
  else
    add_up_units<false, Rows, FillA, FillB>(own, ring, table_a, table_b, row0, column0, m, n, k, a, b);
  barrier();
  f32 *const results = (f32 *)ring;
  auto keep = [&](int row, int column, f32 x, f32 y) {
    Chunk<f32, 2> pair = {{x, y}};
    *(Chunk<f32, 2> *)(results + row * kPitch + column) = pair;
  };
  own.each_pair(keep);
  barrier();
  AOTI_UNROLL_TIMES(1)
  for (int i = thread_index(); i < Rows * (Columns / Lanes); i += Threads) {
    const int row = i / (Columns / Lanes), column = i % (Columns / Lanes) * Lanes;
    finish<f32, Lanes>(I(row0 + row), I(column0 + column), m, n, results + row * kPitch + column, epilogue);
  }
#else
  AOTI_UNROLL_TIMES(1)
  for (int r = 0; r < Rows; r += 64)
    AOTI_UNROLL_TIMES(1)
    for (int c = 0; c < Columns; c += 64)
      contract<f32, 64, 64, Threads, (Lanes < 4 ? Lanes : 4)>(I(row0 + r), I(column0 + c), m, n, k, a, b, epilogue);
#endif
}

AOTI_NAMESPACE_END
