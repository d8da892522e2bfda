// Matrix products whose sums a library of blas.h computes, tile by tile; each tile then goes to the caller's epilogue. Where there
// is no library, and for matrices that it does not read, this is `gemm_general`.
//
// Tiles depend on the sizes of the product alone, so results do not depend on the number of threads.
#pragma once

#include "blas.h"
#include "gemm.h"

AOTI_NAMESPACE_BEGIN

// Rows and columns of a tile at most, and what its rows are a multiple of.
constexpr i64 kBlasRows = 192, kBlasColumns = 1024, kBlasStep = 16;

namespace detail {

// Rows or columns of each tile, so that tiles are about equal.
AOTI_INLINE i64 blas_part(i64 all, i64 most, i64 step) {
  return max_i64(round_up(ceil_div(all, max_i64(ceil_div(all, most), 1)), step), step);
}
template <class S> AOTI_INLINE i64 blas_columns(i64 n) { return blas_part(n, kBlasColumns, kPanelOf<S>); }
AOTI_INLINE i64 blas_rows(i64 m) { return blas_part(m, kBlasRows, kBlasStep); }

// What the library is told of a matrix of so many rows and columns.
struct BlasMatrix {
  bool is_turned;
  int pitch;
};
template <class S> AOTI_INLINE bool blas_matrix(Matrix<S> own, i64 rows, i64 columns, BlasMatrix *to) {
  const bool is_turned = own.col_stride != 1;
  const i64 step = is_turned ? own.row_stride : own.col_stride, pitch = is_turned ? own.col_stride : own.row_stride;
  *to = {is_turned, int(pitch)};
  return step == 1 && pitch >= max_i64(is_turned ? rows : columns, 1) && pitch == int(pitch);
}

} // namespace detail

// Number of tiles of a product: the range that callers split.
template <class S = f32> AOTI_INLINE i64 gemm_blas_tiles(i64 m, i64 n) {
  return ceil_div(m, detail::blas_rows(m)) * ceil_div(n, detail::blas_columns<S>(n));
}

// Scratch of one `gemm_blas` call.
template <class S = f32> AOTI_INLINE i64 gemm_blas_scratch_bytes(i64 m, i64 n, i64 k) {
  return max_i64(gemm_general_scratch_bytes<S>(m, n, k), detail::blas_rows(m) * detail::blas_columns<S>(n) * int(sizeof(S)));
}

// One tile of A * B. `scratch` and the epilogue are as of `gemm_general`.
template <class Library, class S, class Epilogue>
AOTI_INLINE void gemm_blas(i64 tile, i64 m, i64 n, i64 k, Matrix<S> a, Matrix<S> b, void *scratch, Epilogue epilogue) {
  const i64 most_rows = detail::blas_rows(m), most_columns = detail::blas_columns<S>(n), across = ceil_div(n, most_columns);
  const i64 m0 = tile / across * most_rows, n0 = tile % across * most_columns;
  const i64 rows = min_i64(m - m0, most_rows), columns = min_i64(n - n0, most_columns);
  S *const sums = (S *)scratch;
  const i64 pitch = round_up(columns, kPanelOf<S>);
  detail::BlasMatrix left, right;
  const bool is_readable = detail::blas_matrix(a, m, k, &left) && detail::blas_matrix(b, k, n, &right) && k == int(k);
  const S *const a_rows = a.data + m0 * a.row_stride, *const b_columns = b.data + n0 * b.col_stride;
  const BlasProduct<S> product = {int(rows), int(columns), int(k), a_rows, left.pitch, left.is_turned,
                                  b_columns, right.pitch, right.is_turned, sums, int(pitch)};
  if (!is_readable || !Library::multiply(product)) {
    const i64 p0 = n0 / kPanelOf<S>;
    gemm_general(m0, m0 + rows, p0, p0 + ceil_div(columns, kPanelOf<S>), n, k, a, b, scratch, epilogue);
    return;
  }
  detail::hand_over(m0, rows, n0, columns, sums, pitch, epilogue);
}

AOTI_NAMESPACE_END
