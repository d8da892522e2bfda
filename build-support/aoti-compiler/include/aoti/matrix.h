// A view of a matrix, and copies of its rows and of panels of its columns as products read them.
#pragma once

#include "tile.h"

AOTI_NAMESPACE_BEGIN

// A view of a matrix; strides count elements.
template <class T> struct Matrix {
  const T *data;
  i64 row_stride, col_stride;
};

namespace detail {

// A[rows, k] as rows of stride `to_stride`.
template <class T, class S> AOTI_NOINLINE AOTI_VECTORIZE void copy_rows(Matrix<T> a, i64 rows, i64 k, S *to, i64 to_stride) {
  constexpr int block = kBlock<S>;
  i64 r = 0;
  if constexpr (is_same<T, S>)
    if (a.row_stride == 1)
      for (; r + block <= rows; r += block) {
        i64 c = 0;
        for (; c + block <= k; c += block)
          transpose_block(a.data + r + c * a.col_stride, a.col_stride, to + r * to_stride + c, to_stride);
        for (; c < k; ++c)
          for (int i = 0; i < block; ++i) to[(r + i) * to_stride + c] = a.data[r + i + c * a.col_stride];
      }
  for (; r < rows; ++r) {
    const T *from = a.data + r * a.row_stride;
    S *row = to + r * to_stride;
    if (a.col_stride == 1)
      for (i64 c = 0; c < k; ++c) row[c] = widen<S>(from[c]);
    else
      for (i64 c = 0; c < k; ++c) row[c] = widen<S>(from[c * a.col_stride]);
  }
}

// One panel of B[k, columns] as rows of `width` numbers, columns <= width, the rest zero.
template <int width, class T, class S> AOTI_NOINLINE AOTI_VECTORIZE void pack_panel(Matrix<T> b, i64 k, i64 columns, S *to) {
  constexpr int block = kBlock<S>;
  if (columns < width)
    for (i64 i = 0; i < k * width; ++i) to[i] = 0;
  i64 n = 0;
  if constexpr (is_same<T, S>)
    if (b.row_stride == 1)
      for (; n + block <= columns; n += block) {
        i64 i = 0;
        for (; i + block <= k; i += block)
          transpose_block(b.data + i + n * b.col_stride, b.col_stride, to + i * width + n, width);
        for (; i < k; ++i)
          for (int j = 0; j < block; ++j) to[i * width + n + j] = b.data[i + (n + j) * b.col_stride];
      }
  if (b.col_stride == 1) {
    for (i64 i = 0; i < k; ++i)
      for (i64 j = n; j < columns; ++j) to[i * width + j] = widen<S>(b.data[i * b.row_stride + j]);
    return;
  }
  for (i64 i = 0; i < k; ++i)
    for (i64 j = n; j < columns; ++j) to[i * width + j] = widen<S>(b.data[i * b.row_stride + j * b.col_stride]);
}

} // namespace detail

AOTI_NAMESPACE_END
