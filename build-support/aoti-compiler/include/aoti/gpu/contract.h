// Sums of products on the ordinary units of a GPU, for any operands: tiles of rows and columns over blocks, a few sums for
// each thread in registers, operands by way of shared memory. Operands are functions of (row, depth) and (depth, column),
// so that views, guards and conversions happen while a tile is loaded.
//
// Sums are in an order that depends on sizes alone: the result is the same in every run.
#pragma once

#include "simt.h"

AOTI_NAMESPACE_BEGIN

template <class Sum, class T> AOTI_INLINE Sum widen(T x) {
  if constexpr (is_same<T, f16> || is_same<T, bf16>)
    return Sum(to_f32(x));
  else
    return Sum(x);
}

namespace detail {
// Signed overflow is undefined, unsigned is not.
template <class Sum, bool Float = is_float<Sum>> struct Wrapping {
  using type = Sum;
};
template <class Sum> struct Wrapping<Sum, false> {
  using type = unsigned_of<Sum>;
};
} // namespace detail

// A few rows: bandwidth is all. Where B is contiguous along the depth, a warp has a column, its threads the depth; else
// neighbouring threads have neighbouring columns, and slices of threads share the depth.
template <class Sum, int Rows, int Columns, bool ByDepth, class I, class A, class B, class Epilogue>
AOTI_INLINE void contract_few(I column0, I m, I n, I k, const A &a, const B &b, const Epilogue &epilogue) {
  using U = typename detail::Wrapping<Sum>::type;
  constexpr int kThreads = 256;
  const int thread = thread_index();
  auto add = [&](U *sums, I depth, I column) {
    const U right = U(b(depth, column));
    AOTI_UNROLL_TIMES(4)
    for (int r = 0; r < Rows; ++r) {
      if (r >= m) break;
      const U left = U(a(I(r), depth));
      if constexpr (is_float<Sum>)
        sums[r] = detail::scalar_fma(left, right, sums[r]);
      else
        sums[r] += left * right;
    }
  };
  if constexpr (ByDepth) {
    for (I c = column0 + thread / kWarp; c < min_i64(n, column0 + Columns); c += kThreads / kWarp) {
      U sums[Rows] = {};
      AOTI_UNROLL_TIMES(4)
      for (I d = thread % kWarp; d < k; d += kWarp) add(sums, d, c);
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
      AOTI_UNROLL_TIMES(4)
      for (I d = slice; d < k; d += slices) add(sums, d, c);
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

// The sums of rows [row0, row0 + Rows) and columns [column0, column0 + Columns), by the 256 threads of a block.
// ByDepth: neighbouring threads load along the depth, because there the operand is contiguous.
// epilogue(row, column, lanes, sum) once for each sum inside.
template <class Sum, int Rows, int Columns, bool AByDepth, bool BByDepth, class I, class A, class B, class Epilogue>
AOTI_INLINE void contract(I row0, I column0, I m, I n, I k, const A &a, const B &b, const Epilogue &epilogue) {
  if constexpr (Rows <= 4) return contract_few<Sum, Rows, Columns, BByDepth>(column0, m, n, k, a, b, epilogue);
  else {
  using U = typename detail::Wrapping<Sum>::type;
  constexpr int kThreads = 256, kDepth = sizeof(Sum) == 8 ? 8 : 16;
  // Threads as a grid of 16 columns; fewer rows where the tile has fewer.
  constexpr int across = Columns >= 64 ? 16 : 4, down = kThreads / across;
  constexpr int own_rows = Rows >= down ? Rows / down : 1, own_columns = Columns / across;
  constexpr int busy_rows = Rows < down ? Rows : down;
  AOTI_SHARED U tile_a[kDepth][Rows + 1], tile_b[kDepth][Columns + 1];
  const int thread = thread_index(), x = thread % across, y = thread / across;
  U sums[own_rows][own_columns];
  AOTI_UNROLL_TIMES(16)
  for (int r = 0; r < own_rows; ++r)
    AOTI_UNROLL_TIMES(16)
    for (int c = 0; c < own_columns; ++c) sums[r][c] = U(0);
  for (I d0 = 0; d0 < k; d0 += kDepth) {
    AOTI_UNROLL_TIMES(16)
    for (int i = thread; i < Rows * kDepth; i += kThreads) {
      const int d = AByDepth ? i % kDepth : i / Rows, r = AByDepth ? i / kDepth : i % Rows;
      const I row = row0 + r, depth = d0 + d;
      tile_a[d][r] = row < m && depth < k ? U(a(row, depth)) : U(0);
    }
    AOTI_UNROLL_TIMES(16)
    for (int i = thread; i < Columns * kDepth; i += kThreads) {
      const int d = BByDepth ? i % kDepth : i / Columns, c = BByDepth ? i / kDepth : i % Columns;
      const I column = column0 + c, depth = d0 + d;
      tile_b[d][c] = column < n && depth < k ? U(b(depth, column)) : U(0);
    }
    barrier();
    if (busy_rows == down || y < busy_rows) {
      AOTI_UNROLL_TIMES(16)
      for (int d = 0; d < kDepth; ++d) {
        U left[own_rows], right[own_columns];
        AOTI_UNROLL_TIMES(16)
        for (int r = 0; r < own_rows; ++r) left[r] = tile_a[d][y + r * down];
        AOTI_UNROLL_TIMES(16)
        for (int c = 0; c < own_columns; ++c) right[c] = tile_b[d][x + c * across];
        AOTI_UNROLL_TIMES(16)
        for (int r = 0; r < own_rows; ++r)
          AOTI_UNROLL_TIMES(16)
          for (int c = 0; c < own_columns; ++c) {
            if constexpr (is_float<Sum>)
              sums[r][c] = detail::scalar_fma(left[r], right[c], sums[r][c]);
            else
              sums[r][c] += left[r] * right[c];
          }
      }
    }
    barrier();
  }
  if (busy_rows != down && y >= busy_rows) return;
  AOTI_UNROLL_TIMES(16)
  for (int r = 0; r < own_rows; ++r)
    AOTI_UNROLL_TIMES(16)
    for (int c = 0; c < own_columns; ++c) {
      const I row = row0 + y + r * down, column = column0 + x + c * across;
      if (row < m && column < n) epilogue(row, column, Full<1>{}, Vec<Sum, 1>{Sum(sums[r][c])});
    }
  }
}

AOTI_NAMESPACE_END
