// Sums of products on the ordinary units of a GPU, for any operands (operands.h): tiles of rows and columns over blocks, a
// few sums for each thread in registers, operands by way of shared memory, the next piece on its way while the present one is
// multiplied. Where a tile is small its threads are slices that share the depth.
//
// Sums are in an order that depends on sizes alone: the result is the same in every run.
#pragma once

#include "cluster.h"
#include "copies.h"
#include "operands.h"
#include "unpack.h"

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

namespace detail {

// Threads of a block whose warps have a column each.
constexpr int kColumnThreads = 256;

// Pieces of N along the depth that a thread of a warp has of a column, by their number: where, and whether it is inside. What would
// lie behind the end is the first piece once more.
template <int N, class I> AOTI_INLINE I depth_of(I number, I k, bool *inside) {
  const I depth = (number * kWarp + thread_index() % kWarp) * N;
  *inside = depth + N <= k;
  return *inside ? depth : I(0);
}

// In registers, some at once.
template <int N, bool Aligned, class I, class B, class = void> struct ColumnPieces {
  using Own = Piece<typename B::Element, N>;
  static constexpr int kAtOnce = 4, kSlots = 0;
  const B &b;
  typename B::Position at;
  I column, k;
  Own pieces[kAtOnce];
  AOTI_INLINE ColumnPieces(const B &b, I column, I n, I k, SixteenBytes *) : b(b), at(b.position(column, n)), column(column), k(k) {}
  AOTI_INLINE void begin(I first) {
    AOTI_UNROLL_TIMES(4)
    for (int i = 0; i < kAtOnce; ++i) {
      bool inside;
      const I depth = depth_of<N>(I(first + i), k, &inside);
      pieces[i] = b.template read<N, Aligned>(at, nullptr, column, I(column + 1), depth, I(depth + N));
    }
  }
  AOTI_INLINE Own take(I, int i) const { return pieces[i]; }
};

#if AOTI_COPIES
// By way of shared memory, where each thread finds its own: copies do not wait for registers, and compilers cannot put them off.
template <int N, class I, class T> struct ColumnPieces<N, true, I, Strided<T, I, true>> {
  using Own = SixteenBytes;
  static constexpr int kAtOnce = 8, kSlots = kAtOnce, kAhead = kSlots - 1;
  const T *own;
  I k;
  SixteenBytes *slots;
  AOTI_INLINE ColumnPieces(const Strided<T, I, true> &b, I column, I, I k, SixteenBytes *slots)
      : own(b.element(column, I(thread_index() % kWarp * N))), k(k), slots(slots + thread_index()) {
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < kAhead; ++i) copy(I(i), i);
  }
  AOTI_INLINE void copy(I number, int slot) const {
    if ((number * kWarp + thread_index() % kWarp + 1) * N <= k)
      copy_ahead(shared_address(slots + slot * kColumnThreads), own + number * (kWarp * N));
    commit_copies();
  }
  AOTI_INLINE void begin(I) {}
  AOTI_INLINE Own take(I first, int i) const {
    wait_for_copies<kAhead - 1>();
    // Into the slot whose piece was used up before this one.
    copy(I(first + i + kAhead), (i + kAhead) % kSlots);
    return slots[i * kColumnThreads];
  }
};
#endif

// The column of a warp, its threads along the depth. The kernel begins here where its first pieces come early.
template <class Sum, int Rows, bool Aligned, bool Early, class I, class A, class B, class Epilogue>
AOTI_INLINE void contract_column(SixteenBytes *slots, I column, I m, I n, I k, const A &a, const B &b, const Epilogue &epilogue) {
  using U = typename Wrapping<Sum>::type;
  constexpr int N = 16 / sizeof(typename B::Element);
  using Pieces = ColumnPieces<N, Aligned, I, B>;
  // A sum for each place in a piece: additions that follow each other do not wait for each other.
  U parts[Rows][N] = {};
  auto add = [&](int r, const Piece<typename A::Element, N> &left, const auto &right) {
    U x[N], y[N];
    unpack<typename A::Element, N>(left, x), unpack<typename B::Element, N>(right, y);
    AOTI_UNROLL_TIMES(16)
    for (int e = 0; e < N; ++e) parts[r][e] = multiply_add(x[e], y[e], parts[r][e]);
  };
  // Pieces of the warp, and those of them of which every thread has one.
  const I count = ceil_div(I(k / N), I(kWarp)), whole = k / (kWarp * N);
  Pieces pieces(b, column, n, k, slots);
  if constexpr (Early) let_next_kernel_come(), begin_kernel();
  for (I first = 0; first < count; first += Pieces::kAtOnce) {
    pieces.begin(first);
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < Pieces::kAtOnce; ++i) {
      if (first + i >= count) break;
      bool inside;
      const I depth = depth_of<N>(I(first + i), k, &inside);
      Piece<typename A::Element, N> left[Rows];
      AOTI_UNROLL_TIMES(4)
      for (int r = 0; r < Rows; ++r) {
        if (r >= m) break;
        left[r] = a.template read<N, Aligned>(a.position(I(r), m), nullptr, I(r), I(r + 1), depth, I(depth + N));
      }
      const auto right = pieces.take(first, i);
      if (first + i < whole || inside) {
        AOTI_UNROLL_TIMES(4)
        for (int r = 0; r < Rows; ++r) {
          if (r >= m) break;
          add(r, left[r], right);
        }
      }
    }
  }
  // The last piece may be shorter.
  const int lane = thread_index() % kWarp;
  const I rest = k / N * N;
  if (lane == 0 && rest < k) {
    const auto right = b.template read<N, Aligned>(b.position(column, n), nullptr, column, n, rest, k);
    AOTI_UNROLL_TIMES(4)
    for (int r = 0; r < Rows; ++r) {
      if (r >= m) break;
      add(r, a.template read<N, Aligned>(a.position(I(r), m), nullptr, I(r), m, rest, k), right);
    }
  }
  AOTI_UNROLL_TIMES(4)
  for (int r = 0; r < Rows; ++r) {
    U sum = parts[r][0];
    AOTI_UNROLL_TIMES(16)
    for (int e = 1; e < N; ++e) sum += parts[r][e];
    AOTI_UNROLL_TIMES(8)
    for (int distance = 1; distance < kWarp; distance *= 2) sum += shuffle_xor(sum, distance);
    if (r < m && lane == 0) epilogue(I(r), column, Full<1>{}, Vec<Sum, 1>{Sum(sum)});
  }
}

} // namespace detail

// A few rows: bandwidth is all. Where B is contiguous along the depth, a warp has a column, its threads the depth; else
// neighbouring threads have neighbouring columns, and slices of threads share the depth. Where B does not depend on earlier
// kernels (`Early`), it is on its way before the kernel begins, and so it is while its predecessors end.
template <class Sum, int Rows, int Columns, bool Early = false, class I, class A, class B, class Epilogue>
AOTI_INLINE void contract_few(I column0, I m, I n, I k, const A &a, const B &b, const Epilogue &epilogue) {
  using namespace detail;
  using U = typename Wrapping<Sum>::type;
  constexpr int kThreads = kColumnThreads;
  const int thread = thread_index();
  if constexpr (A::order == Order::kDepth && B::order == Order::kDepth) {
    constexpr int N = 16 / sizeof(typename B::Element), slots_of_thread = ColumnPieces<N, true, I, B>::kSlots;
    AOTI_SHARED SixteenBytes slots[slots_of_thread == 0 ? 1 : slots_of_thread * kThreads];
    const bool aligned = a.template is_aligned<N>() && b.template is_aligned<N>();
    for (I c = column0 + thread / kWarp; c < min_i64(n, column0 + Columns); c += kThreads / kWarp)
      if (aligned)
        contract_column<Sum, Rows, true, Early>(slots, c, m, n, k, a, b, epilogue);
      else
        contract_column<Sum, Rows, false, Early>(slots, c, m, n, k, a, b, epilogue);
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
