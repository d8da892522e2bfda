// Sums of products on the ordinary units of a GPU, for any operands (operands.h): tiles of rows and columns over blocks, a
// few sums for each thread in registers, operands by way of shared memory, the next piece on its way while the present one is
// multiplied. Where a tile is small its threads are slices that share the depth.
//
// Sums are in an order that depends on sizes alone: the result is the same in every run.
#pragma once

#include "cluster.h"
#include "operands.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// Signed overflow is undefined, unsigned is not.
template <class Sum, bool Float = is_float<Sum>> struct Wrapping {
  using type = Sum;
};
template <class Sum> struct Wrapping<Sum, false> {
  using type = unsigned_of<Sum>;
};

template <class U> AOTI_INLINE U multiply_add(U a, U b, U c) {
  if constexpr (is_float<U>)
    return scalar_fma(a, b, c);
  else
    return c + a * b;
}

// A few neighbouring sums of one row that lie in memory, those inside, to an epilogue.
template <class Sum, int N, class I, class U, class Epilogue>
AOTI_INLINE void finish(I row, I column, I m, I n, const U *sums, const Epilogue &epilogue) {
  if (row >= m) return;
  if (column + N <= n) {
    Vec<Sum, N> lanes;
    __builtin_memcpy(&lanes, sums, sizeof lanes);
    epilogue(row, column, Full<N>{}, lanes);
  } else {
    AOTI_UNROLL_TIMES(1)
    for (int i = 0; i < N; ++i)
      if (column + i < n) epilogue(row, I(column + i), Full<1>{}, Vec<Sum, 1>{Sum(sums[i])});
  }
}

} // namespace detail

// Neighbouring columns that are pixels of images, as pixels of one image each: body(lanes, image, pixel, sums).
template <int W, class I, class Sum, class Body>
AOTI_INLINE void by_image(Full<W>, I column, I pixels, Vec<Sum, W> sums, const Body &body) {
  const I image = column / pixels, pixel = column % pixels;
  if constexpr (W == 1)
    body(Full<1>{}, image, pixel, sums);
  else if (pixel + W <= pixels)
    body(Full<W>{}, image, pixel, sums);
  else {
    Sum each[W];
    __builtin_memcpy(each, &sums, sizeof sums);
    AOTI_UNROLL_TIMES(1)
    for (int i = 0; i < W; ++i) body(Full<1>{}, I((column + i) / pixels), I((column + i) % pixels), Vec<Sum, 1>{each[i]});
  }
}

// A few rows: bandwidth is all. Where B is contiguous along the depth, a warp has a column, its threads the depth; else
// neighbouring threads have neighbouring columns, and slices of threads share the depth.
template <class Sum, int Rows, int Columns, class I, class A, class B, class Epilogue>
AOTI_INLINE void contract_few(I column0, I m, I n, I k, const A &a, const B &b, const Epilogue &epilogue) {
  using namespace detail;
  using U = typename Wrapping<Sum>::type;
  constexpr int kThreads = 256;
  const int thread = thread_index();
  if constexpr (A::order == Order::kDepth && B::order == Order::kDepth) {
    constexpr int N = 16 / sizeof(typename B::Element), kAhead = 4;
    const bool aligned = a.template is_aligned<N>() && b.template is_aligned<N>();
    auto read_a = [&](I row, I depth) {
      return aligned ? a.template read<N, true>(a.position(row, m), nullptr, row, m, depth, k)
                     : a.template read<N, false>(a.position(row, m), nullptr, row, m, depth, k);
    };
    auto read_b = [&](I column, I depth) {
      return aligned ? b.template read<N, true>(b.position(column, n), nullptr, column, n, depth, k)
                     : b.template read<N, false>(b.position(column, n), nullptr, column, n, depth, k);
    };
    for (I c = column0 + thread / kWarp; c < min_i64(n, column0 + Columns); c += kThreads / kWarp) {
      U sums[Rows] = {};
      I d = thread % kWarp * N;
      auto add = [&](const Piece<typename B::Element, N> &right, I depth) {
        AOTI_UNROLL_TIMES(4)
        for (int r = 0; r < Rows; ++r) {
          if (r >= m) break;
          const auto left = read_a(I(r), depth);
          AOTI_UNROLL_TIMES(8)
          for (int i = 0; i < N; ++i) sums[r] = multiply_add(widen<U>(left.at[i]), widen<U>(right.at[i]), sums[r]);
        }
      };
      for (; d + (kAhead - 1) * kWarp * N < k; d += kAhead * kWarp * N) {
        Piece<typename B::Element, N> right[kAhead];
        AOTI_UNROLL_TIMES(4)
        for (int i = 0; i < kAhead; ++i) right[i] = read_b(c, I(d + i * kWarp * N));
        AOTI_UNROLL_TIMES(4)
        for (int i = 0; i < kAhead; ++i) add(right[i], I(d + i * kWarp * N));
      }
      for (; d < k; d += kWarp * N) add(read_b(c, d), d);
      AOTI_UNROLL_TIMES(4)
      for (int r = 0; r < Rows; ++r) {
        AOTI_UNROLL_TIMES(8)
        for (int distance = 1; distance < kWarp; distance *= 2) sums[r] += shuffle_xor(sums[r], distance);
        if (r < m && thread % kWarp == 0) epilogue(I(r), c, Full<1>{}, Vec<Sum, 1>{Sum(sums[r])});
      }
    }
  } else {
    constexpr int slices = kThreads / Columns;
    const int x = thread % Columns, slice = thread / Columns;
    const I c = column0 + x;
    U sums[Rows] = {};
    if (c < n) {
      const auto at = b.position(c, n);
      AOTI_UNROLL_TIMES(4)
      for (I d = slice; d < k; d += slices) {
        const U right = widen<U>(b.one(at, d));
        AOTI_UNROLL_TIMES(4)
        for (int r = 0; r < Rows; ++r) {
          if (r >= m) break;
          sums[r] = multiply_add(widen<U>(a.one(a.position(I(r), m), d)), right, sums[r]);
        }
      }
    }
    if constexpr (slices > 1) {
      AOTI_SHARED U parts[slices][Rows][Columns];
      for (int r = 0; r < Rows; ++r) parts[slice][r][x] = sums[r];
      barrier();
      if (slice == 0)
        for (int r = 0; r < Rows; ++r)
          for (int s = 1; s < slices; ++s) sums[r] += parts[s][r][x];
      barrier();
    }
    if (slice == 0 && c < n) {
      AOTI_UNROLL_TIMES(4)
      for (int r = 0; r < Rows; ++r)
        if (r < m) epilogue(I(r), c, Full<1>{}, Vec<Sum, 1>{Sum(sums[r])});
    }
  }
}

namespace detail {

// How the sums of a tile are shared out among the threads of a block.
template <class U, int Rows, int Columns, int Threads> struct TileShape {
  static constexpr bool kWide = sizeof(U) == 8;
  // Sums of one thread.
  static constexpr int kRows = kWide || Rows < 64 ? 4 : 8, kColumns = kWide || Columns < 32 ? 4 : 8;
  // Threads of one slice, and slices.
  static constexpr int kAcross = Columns / kColumns, kDown = Rows / kRows;
  static constexpr int kSlice = kAcross * kDown, kSlices = Threads / kSlice;
  // Depth of a piece: for all slices, for one.
  static constexpr int kStep = (Rows + Columns >= 256 ? 16 : Rows + Columns >= 128 ? 32 : 64) / (kWide ? 2 : 1);
  static constexpr int kOwn = kStep / kSlices;
  // Elements of the pieces of both operands.
  static constexpr int kPiece = kStep * (Rows + Columns);
  static_assert(kSlice * kSlices == Threads && kOwn * kSlices == kStep && kOwn >= 4);
};

// A piece of an operand, Outers by Step, between device memory and shared memory.
template <class U, int Outers, int Step, int Threads, class Source> struct Fill {
  static constexpr int kPieces = Outers * Step / 4, kOwn = (kPieces + Threads - 1) / Threads;
  static_assert(Source::order != Order::kLane || Threads % Outers == 0 || Outers % Threads == 0);
  using T = typename Source::Element;
  // Pieces along the depth are of an outer position each.
  static constexpr int kPositions = Source::order == Order::kDepth ? kOwn : 1;
  Piece<T, 4> pieces[kOwn];
  typename Source::Position positions[kPositions];

  // Rows of shared memory are turned, groups of eight by groups of eight, so that neighbours write to different banks.
  static AOTI_INLINE int turn(int depth) {
    constexpr int groups = Outers / 8 < 4 ? Outers / 8 : 4;
    return depth / 4 % groups * 8;
  }
  // Neighbouring threads have a few depths of eight outer positions, those behind them the next depths.
  static AOTI_INLINE void place(int number, int *outer, int *depth) {
    constexpr int groups = Step / 4, few = groups < 4 ? groups : 4;
    static_assert(groups % few == 0 && Outers % 8 == 0);
    if constexpr (Source::order == Order::kDepth)
      *outer = number / few % 8 + number / (8 * groups) * 8, *depth = (number % few + number / (8 * few) % (groups / few) * few) * 4;
    else if constexpr (Source::order == Order::kOuter)
      *outer = number % (Outers / 4) * 4, *depth = number / (Outers / 4);
    else
      *outer = number % Outers, *depth = number / Outers * 4;
  }
  template <class I> AOTI_INLINE void start(const Source &source, I outer0, I outers) {
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < kPositions; ++i) {
      int outer, depth;
      place(thread_index() + i * Threads, &outer, &depth);
      positions[i] = source.position(I(outer0 + outer), outers);
    }
  }
  template <bool Aligned, class Entries, class I>
  AOTI_INLINE void fetch(const Source &source, const Entries &table, int number_of, I outer0, I outers, I depth0, I depths) {
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < kOwn; ++i) {
      int outer, depth;
      const int number = thread_index() + i * Threads;
      if (kPieces % Threads != 0 && number >= kPieces) break;
      place(number, &outer, &depth);
      pieces[i] = source.template read<4, Aligned>(positions[kPositions == 1 ? 0 : i], table.at(number_of, depth),
                                                   I(outer0 + outer), outers, I(depth0 + depth), depths);
    }
  }
  AOTI_INLINE void land(U *tile) const {
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < kOwn; ++i) {
      int outer, depth;
      const int number = thread_index() + i * Threads;
      if (kPieces % Threads != 0 && number >= kPieces) break;
      place(number, &outer, &depth);
      if constexpr (Source::order == Order::kOuter) {
        U *p = tile + depth * Outers + (outer ^ turn(depth));
        Vec<U, 4> four;
        U wide[4];
        AOTI_UNROLL_TIMES(4)
        for (int e = 0; e < 4; ++e) wide[e] = widen<U>(pieces[i].at[e]);
        __builtin_memcpy(&four, wide, sizeof four);
        store_raw(Full<4>{}, p, four);
      } else {
        AOTI_UNROLL_TIMES(4)
        for (int e = 0; e < 4; ++e) tile[(depth + e) * Outers + (outer ^ turn(depth))] = widen<U>(pieces[i].at[e]);
      }
    }
  }
  // N neighbouring values of a depth in groups of four, the groups so far apart that all threads of a slice read all.
  template <int N> static AOTI_INLINE void take(const U *tile, int depth, int group, U *values) {
    AOTI_UNROLL_TIMES(2)
    for (int g = 0; g < N / 4; ++g) {
      const U *p = tile + depth * Outers + ((g * (Outers * 4 / N) + group * 4) ^ turn(depth));
      const auto four = read_whole<U, 4>(p);
      AOTI_UNROLL_TIMES(4)
      for (int e = 0; e < 4; ++e) values[g * 4 + e] = four.at[e];
    }
  }
};

} // namespace detail

namespace detail {

// Adds up pieces [first, end) of the tile, the next one on its way: `sums` of one slice each.
template <class Shape, class FillA, class FillB, int Rows, bool Aligned, class U, class TableA, class TableB, class I, class A, class B>
AOTI_INLINE void add_up(U (&sums)[Shape::kRows][Shape::kColumns], U *memory, TableA &table_a, TableB &table_b, int first, int end,
                        I row0, I column0, I m, I n, I k, const A &a, const B &b) {
  constexpr int kPiece = Shape::kPiece, kB = Shape::kStep * Rows, kStep = Shape::kStep;
  const int thread = thread_index(), slice = thread / Shape::kSlice, own = thread % Shape::kSlice;
  const int x = own % Shape::kAcross, y = own / Shape::kAcross;
  FillA fill_a;
  FillB fill_b;
  fill_a.start(a, row0, m);
  fill_b.start(b, column0, n);
  auto tabulate = [&](int piece) {
    table_a.fill(a, piece, I(piece) * kStep, k);
    table_b.fill(b, piece, I(piece) * kStep, k);
  };
  auto fetch = [&](int piece) {
    fill_a.template fetch<Aligned>(a, table_a, piece, row0, m, I(piece) * kStep, k);
    fill_b.template fetch<Aligned>(b, table_b, piece, column0, n, I(piece) * kStep, k);
  };
  auto land = [&](int piece) {
    U *to = memory + piece % 2 * kPiece;
    fill_a.land(to);
    fill_b.land(to + kB);
  };
  tabulate(first);
  tabulate(first + 1);
  barrier();
  if (first < end) {
    fetch(first);
    land(first);
  }
  barrier();
  AOTI_UNROLL_TIMES(1)
  for (int piece = first; piece < end; ++piece) {
    const bool more = piece + 1 < end;
    if (more) fetch(piece + 1);
    tabulate(piece + 2);
    const U *tile = memory + piece % 2 * kPiece;
    AOTI_UNROLL_TIMES(16)
    for (int d = 0; d < Shape::kOwn; ++d) {
      U left[Shape::kRows], right[Shape::kColumns];
      FillA::template take<Shape::kRows>(tile, slice * Shape::kOwn + d, y, left);
      FillB::template take<Shape::kColumns>(tile + kB, slice * Shape::kOwn + d, x, right);
      AOTI_UNROLL_TIMES(8)
      for (int r = 0; r < Shape::kRows; ++r)
        AOTI_UNROLL_TIMES(8)
        for (int c = 0; c < Shape::kColumns; ++c) sums[r][c] = multiply_add(left[r], right[c], sums[r][c]);
    }
    if (more) land(piece + 1);
    barrier();
  }
}

} // namespace detail

// The sums of rows [row0, row0 + Rows) and columns [column0, column0 + Columns), by the Threads of a block.
// epilogue(row, column, lanes, sums) once for each Lanes neighbouring columns, or each one at the border. Neighbouring Blocks
// share the depth (cluster.h).
template <class Sum, int Rows, int Columns, int Threads, int Lanes, int Blocks = 1, class I, class A, class B, class Epilogue>
AOTI_INLINE void contract(I row0, I column0, I m, I n, I k, const A &a, const B &b, const Epilogue &epilogue) {
  using namespace detail;
  using U = typename Wrapping<Sum>::type;
  using Shape = TileShape<U, Rows, Columns, Threads>;
  using FillA = Fill<U, Rows, Shape::kStep, Threads, A>;
  using FillB = Fill<U, Columns, Shape::kStep, Threads, B>;
  constexpr int kGroups = Shape::kRows / 4, kTile = Rows * Columns / kGroups;
  constexpr int kMemory = 2 * Shape::kPiece > kTile ? 2 * Shape::kPiece : kTile;
  alignas(16) AOTI_SHARED U memory[kMemory];
  if (Cluster<Blocks>::is_idle()) return;
  const int pieces = int((k + Shape::kStep - 1) / Shape::kStep);
  const int first = Cluster<Blocks>::begin(pieces), end = Cluster<Blocks>::end(pieces);
  const int thread = thread_index(), slice = thread / Shape::kSlice, own = thread % Shape::kSlice;
  const int x = own % Shape::kAcross, y = own / Shape::kAcross;
  U sums[Shape::kRows][Shape::kColumns];
  AOTI_UNROLL_TIMES(8)
  for (int r = 0; r < Shape::kRows; ++r)
    AOTI_UNROLL_TIMES(8)
    for (int c = 0; c < Shape::kColumns; ++c) sums[r][c] = U(0);
  AOTI_SHARED Lookup<typename A::Entry, 3, Shape::kStep> table_a;
  AOTI_SHARED Lookup<typename B::Entry, 3, Shape::kStep> table_b;
  // Memory and tables are used again by the next tile of the block.
  barrier();
  if (a.template is_aligned<4>() && b.template is_aligned<4>())
    add_up<Shape, FillA, FillB, Rows, true>(sums, memory, table_a, table_b, first, end, row0, column0, m, n, k, a, b);
  else
    add_up<Shape, FillA, FillB, Rows, false>(sums, memory, table_a, table_b, first, end, row0, column0, m, n, k, a, b);
  // Upper slices hand their sums to lower ones, as many at a time as fit.
  AOTI_UNROLL_TIMES(8)
  for (int slices = Shape::kSlices; slices > 1; slices /= 2) {
    constexpr int kSums = Shape::kRows * Shape::kColumns;
    static_assert(Shape::kSlices == 1 || Shape::kSlices / 2 * Shape::kSlice * kSums <= kMemory);
    const bool gives = slice >= slices / 2 && slice < slices;
    AOTI_UNROLL_TIMES(8)
    for (int r = 0; r < Shape::kRows; ++r)
      AOTI_UNROLL_TIMES(8)
      for (int c = 0; c < Shape::kColumns; ++c)
        if (gives) memory[(r * Shape::kColumns + c) * (slices / 2 * Shape::kSlice) + thread - slices / 2 * Shape::kSlice] = sums[r][c];
    barrier();
    AOTI_UNROLL_TIMES(8)
    for (int r = 0; r < Shape::kRows; ++r)
      AOTI_UNROLL_TIMES(8)
      for (int c = 0; c < Shape::kColumns; ++c)
        if (slice < slices / 2) sums[r][c] += memory[(r * Shape::kColumns + c) * (slices / 2 * Shape::kSlice) + thread];
    barrier();
  }
  // The tile, or half of its rows at a time, by way of shared memory, so that all threads have neighbouring columns.
  AOTI_UNROLL_TIMES(2)
  for (int g = 0; g < kGroups; ++g) {
    if (slice == 0) {
      AOTI_UNROLL_TIMES(4)
      for (int r = 0; r < 4; ++r)
        AOTI_UNROLL_TIMES(2)
        for (int h = 0; h < Shape::kColumns / 4; ++h) {
          Vec<U, 4> four;
          __builtin_memcpy(&four, sums[g * 4 + r] + h * 4, sizeof four);
          store_raw(Full<4>{}, memory + (y * 4 + r) * Columns + h * (Columns * 4 / Shape::kColumns) + x * 4, four);
        }
    }
    Cluster<Blocks>::meet();
    AOTI_UNROLL_TIMES(1)
    for (int i = Cluster<Blocks>::rank() * Threads + thread; i < Rows / kGroups * (Columns / Lanes); i += Cluster<Blocks>::kParts * Threads) {
      const int row = i / (Columns / Lanes), column = i % (Columns / Lanes) * Lanes;
      U *const all = memory + row * Columns + column;
      Cluster<Blocks>::template add_up<Lanes>(all);
      finish<Sum, Lanes>(I(row0 + g * (Rows / kGroups) + row), I(column0 + column), m, n, all, epilogue);
    }
    Cluster<Blocks>::part();
  }
}

AOTI_NAMESPACE_END
