// Matrix products C[M,N] = A[M,K] * B[K,N] of which both operands lie side by side along the depth, for few rows or few columns:
// vectors run along the depth, and nothing is packed. Results leave only through the caller's epilogue.
#pragma once

#include "gemm.h"
#include "vec.h"

AOTI_NAMESPACE_BEGIN
namespace detail {

// Sums of so many rows and columns that are computed at once: as many as hide the latency of a multiply-add and stay in registers.
#if AOTI_AVX512 || AOTI_AARCH64
constexpr int kDotRows = 4, kDotColumns = 4;
#else
constexpr int kDotRows = 2, kDotColumns = 4;
#endif
constexpr int kDots = 8;
// Rows that read the columns of B together.
constexpr i64 kDotBlock = 32;

template <int Rows, int Columns, class L, class S, int W, class TA, class TB>
AOTI_INLINE void add_dots(L lanes, const TA *a, i64 a_row, const TB *b, i64 b_column, Vec<S, W> (&sum)[Rows][Columns]) {
  Vec<S, W> x[Rows];
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) x[r] = load(lanes, a + r * a_row);
  AOTI_UNROLL for (int c = 0; c < Columns; ++c) {
    const Vec<S, W> y = load(lanes, b + c * b_column);
    AOTI_UNROLL for (int r = 0; r < Rows; ++r) sum[r][c] = mad(x[r], y, sum[r][c]);
  }
}
// sums[r * pitch + c] of Rows rows and Columns columns.
template <int Rows, int Columns, class S, class TA, class TB>
AOTI_NOINLINE void dot_tile(i64 k, const TA *a, i64 a_row, const TB *b, i64 b_column, S *sums, i64 pitch) {
  constexpr int W = kLanesOf<S>;
  Vec<S, W> sum[Rows][Columns];
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int c = 0; c < Columns; ++c) sum[r][c] = splat<W>(S(0));
  i64 i = 0;
  for (; i + W <= k; i += W) add_dots(Full<W>{}, a + i, a_row, b + i, b_column, sum);
  if constexpr (W > 1)
    if (i < k) add_dots(Tail<W>{int(k - i)}, a + i, a_row, b + i, b_column, sum);
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int c = 0; c < Columns; ++c)
      sums[r * pitch + c] = reduce_add(sum[r][c]);
}

// `rows` rows and `columns` columns at most of what tiles compute at once.
template <class S, class TA, class TB>
AOTI_INLINE void dot_block(i64 rows, i64 columns, i64 k, const TA *a, i64 a_row, const TB *b, i64 b_column, S *sums, i64 pitch) {
  i64 r = 0;
  for (; r + kDotRows <= rows; r += kDotRows) {
    i64 c = 0;
    for (; c + kDotColumns <= columns; c += kDotColumns)
      dot_tile<kDotRows, kDotColumns>(k, a + r * a_row, a_row, b + c * b_column, b_column, sums + r * pitch + c, pitch);
    for (; c < columns; ++c)
      dot_tile<kDotRows, 1>(k, a + r * a_row, a_row, b + c * b_column, b_column, sums + r * pitch + c, pitch);
  }
  for (; r < rows; ++r) {
    i64 c = 0;
    for (; c + kDots <= columns; c += kDots)
      dot_tile<1, kDots>(k, a + r * a_row, a_row, b + c * b_column, b_column, sums + r * pitch + c, pitch);
    for (; c < columns; ++c)
      dot_tile<1, 1>(k, a + r * a_row, a_row, b + c * b_column, b_column, sums + r * pitch + c, pitch);
  }
}

} // namespace detail

// As `gemm_general`, where A lies side by side along its columns and B along its rows.
template <class TA, class TB, class Epilogue, class RowEpilogue = NoRowEpilogue>
AOTI_INLINE void gemm_dots(i64 m0, i64 m1, i64 p0, i64 p1, i64 n, i64 k, Matrix<TA> a, Matrix<TB> b, void *, Epilogue epilogue,
                           const RowEpilogue &row_epilogue = {}) {
  using S = TileSum<TA>;
  constexpr i64 width = kPanelOf<S>, height = detail::kDotBlock;
  alignas(64) S sums[height * width];
  for (i64 m = m0; m < m1; m += height) {
    const i64 rows = min_i64(m1 - m, height);
    for (i64 p = p0; p < p1; ++p) {
      const i64 column = p * width, columns = min_i64(n - column, width);
      const TA *from = a.data + m * a.row_stride;
      const TB *to = b.data + column * b.col_stride;
      // Of few columns rows are side by side.
      if (columns < detail::kDotColumns) {
        for (i64 c = 0; c < columns; ++c) {
          S own[height];
          detail::dot_block(i64(1), rows, k, to + c * b.col_stride, b.col_stride, from, a.row_stride, own, height);
          for (i64 r = 0; r < rows; ++r) sums[r * width + c] = own[r];
        }
      } else
        detail::dot_block(rows, columns, k, from, a.row_stride, to, b.col_stride, sums, width);
      detail::hand_over(m, rows, column, columns, sums, width, epilogue);
    }
    row_epilogue(m, m + rows);
  }
}

AOTI_NAMESPACE_END
