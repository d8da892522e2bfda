// Matrix products C[M,N] = A[M,K] * B[K,N] of few rows, where B lies side by side along its columns: B is read once, where it lies,
// and what its rows add goes to sums that stay near the core. Results leave only through the caller's epilogue.
#pragma once

#include "gemm.h"

AOTI_NAMESPACE_BEGIN
namespace detail {

// Columns whose sums are kept: those of all rows fit the nearest cache.
constexpr i64 kStreamColumns = 1024;
// Elements of A that stay in registers.
constexpr int kStreamHeld = AOTI_AVX512 || AOTI_AARCH64 ? 16 : 8;
// Rows of B that are added at a time.
template <int Rows> constexpr int kStreamDepth = Rows > kStreamHeld / 2 ? 1 : kStreamHeld / Rows > 8 ? 8 : kStreamHeld / Rows;

// Adds the products with Depth rows of B to the sums of the columns that are in lanes. Those of one column are added up first:
// chains of the sums are that much shorter.
template <int Rows, int Depth, class L, class S, int W, class TB>
AOTI_INLINE void stream_lanes(L lanes, const Vec<S, W> (&held)[Rows][Depth], const TB *b, i64 b_row, S *sums) {
  Vec<S, W> own[Rows];
  AOTI_UNROLL for (int d = 0; d < Depth; ++d) {
    const Vec<S, W> x = load(lanes, b + d * b_row);
    AOTI_UNROLL for (int r = 0; r < Rows; ++r) own[r] = d == 0 ? held[r][d] * x : mad(held[r][d], x, own[r]);
  }
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) {
    S *const sum = sums + r * kStreamColumns;
    store(Full<W>{}, sum, load(Full<W>{}, sum) + own[r]);
  }
}
// The same for all columns, with what A holds in registers.
template <int Rows, int Depth, class S, class TA, class TB>
AOTI_INLINE void stream_rows(Matrix<TA> a, const TB *b, i64 b_row, i64 columns, S *sums) {
  constexpr int W = kLanesOf<S>;
  Vec<S, W> held[Rows][Depth];
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int d = 0; d < Depth; ++d)
      held[r][d] = splat<W>(lane(load(Full<1>{}, a.data + r * a.row_stride + d * a.col_stride), 0));
  i64 c = 0;
  for (; c + W <= columns; c += W) stream_lanes(Full<W>{}, held, b + c, b_row, sums + c);
  if constexpr (W > 1)
    if (c < columns) stream_lanes(Tail<W>{int(columns - c)}, held, b + c, b_row, sums + c);
}

} // namespace detail

// Bytes that a call needs: sums of chains, and of all of them.
template <int Rows, class S> constexpr i64 kStreamBytes = 2 * Rows * detail::kStreamColumns * i64(sizeof(S));

// As `gemm_general`, where B lies side by side along its columns: of a product of Rows rows, all of them, so that m1 = m0 + Rows.
template <int Rows, class TA, class TB, class Epilogue, class RowEpilogue = NoRowEpilogue>
AOTI_INLINE void gemm_stream(i64 m0, i64 m1, i64 p0, i64 p1, i64 n, i64 k, Matrix<TA> a, Matrix<TB> b, void *scratch,
                             Epilogue epilogue, const RowEpilogue &row_epilogue = {}) {
  using S = TileSum<TA>;
  constexpr int depth = detail::kStreamDepth<Rows>, W = kLanesOf<S>;
  constexpr i64 block = detail::kStreamColumns, all = Rows * block;
  S *const sums = (S *)scratch, *const chains = sums + all;
  const i64 last = min_i64(p1 * kPanelOf<S>, n);
  for (i64 column = p0 * kPanelOf<S>; column < last; column += block) {
    const i64 columns = min_i64(last - column, block);
    for (i64 i = 0; i < all; i += W) store(Full<W>{}, sums + i, splat<W>(S(0)));
    for (i64 begin = 0; begin < k; begin += kChain) {
      const i64 end = min_i64(begin + kChain, k);
      for (i64 i = 0; i < all; i += W) store(Full<W>{}, chains + i, splat<W>(S(0)));
      const TA *left = a.data + m0 * a.row_stride;
      const TB *right = b.data + column;
      i64 at = begin;
      for (; at + depth <= end; at += depth)
        detail::stream_rows<Rows, depth>(Matrix<TA>{left + at * a.col_stride, a.row_stride, a.col_stride}, right + at * b.row_stride,
                                         b.row_stride, columns, chains);
      for (; at < end; ++at)
        detail::stream_rows<Rows, 1>(Matrix<TA>{left + at * a.col_stride, a.row_stride, a.col_stride}, right + at * b.row_stride,
                                     b.row_stride, columns, chains);
      for (i64 i = 0; i < all; i += W) store(Full<W>{}, sums + i, load(Full<W>{}, sums + i) + load(Full<W>{}, chains + i));
    }
    detail::hand_over(m0, Rows, column, columns, sums, block, epilogue);
  }
  row_epilogue(m0, m1);
}

AOTI_NAMESPACE_END
