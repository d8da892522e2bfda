// Orthogonal factorisations: Householder's reflections, and Jacobi's rotations for symmetric eigenvalues and singular values.
// Matrices are row-major. Knows neither batches nor threads.
#pragma once

#include "linalg_factor.h"

AOTI_NAMESPACE_BEGIN
namespace linalg {

template <class T> constexpr T epsilon = sizeof(T) == 4 ? T(1.1920928955078125e-7) : T(2.220446049250313e-16);
// Rotations stop at the latest after so many times all pairs.
constexpr i64 kSweeps = 60;

template <class T> AOTI_INLINE T root(T x) { return T(__builtin_sqrt(f64(x))); }

// The length of a column of `count` elements `stride` apart, without overflow on the way.
template <class T> AOTI_NOINLINE T length(i64 count, const T *x, i64 stride) {
  T most = T(0);
  for (i64 i = 0; i < count; ++i)
    if (magnitude(x[i * stride]) > most) most = magnitude(x[i * stride]);
  if (most == T(0)) return T(0);
  T sum = T(0);
  for (i64 i = 0; i < count; ++i) {
    const T part = x[i * stride] / most;
    sum = sum + part * part;
  }
  return most * root(sum);
}

// Applies I - tau v v^T to columns [first, n) of rows [j, m), where v is 1 and then column j of `v` below row j.
template <class T>
AOTI_NOINLINE void reflect(i64 j, i64 m, i64 n, i64 first, const T *v, T tau, T *a, T *work) {
  for (i64 c = first; c < n; ++c) work[c] = a[j * n + c];
  for (i64 i = j + 1; i < m; ++i)
    for (i64 c = first; c < n; ++c) work[c] = work[c] + v[i * n + j] * a[i * n + c];
  for (i64 c = first; c < n; ++c) work[c] = work[c] * tau, a[j * n + c] = a[j * n + c] - work[c];
  for (i64 i = j + 1; i < m; ++i)
    for (i64 c = first; c < n; ++c) a[i * n + c] = a[i * n + c] - v[i * n + j] * work[c];
}

// R in the upper triangle, below it the vectors of the reflections whose factors are in `tau`.
struct Qr {
  template <class T> AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *memory, const T *in, T *out, T *tau) {
    T *a = out + u * m * n, *work = (T *)memory;
    const i64 k = m < n ? m : n;
    copy(m * n, in + u * m * n, a), tau += u * k;
    for (i64 j = 0; j < k; ++j) {
      const T first = a[j * n + j];
      tau[j] = T(0);
      if (length(m - j - 1, a + (j + 1) * n + j, n) == T(0)) continue;
      T whole = length(m - j, a + j * n + j, n);
      if (first > T(0)) whole = -whole;
      tau[j] = (whole - first) / whole;
      for (i64 i = j + 1; i < m; ++i) a[i * n + j] = a[i * n + j] / (first - whole);
      a[j * n + j] = whole;
      reflect(j, m, n, j + 1, a, tau[j], a, work);
    }
  }
};

// The first n columns of the product of n reflections.
struct Reflections {
  template <class T> AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *memory, const T *in, const T *tau, T *out) {
    T *q = out + u * m * n;
    for (i64 i = 0; i < m * n; ++i) q[i] = i / n == i % n ? T(1) : T(0);
    for (i64 j = n - 1; j >= 0; --j) reflect(j, m, n, j, in + u * m * n, tau[u * n + j], q, (T *)memory);
  }
};

// Sine and cosine of the rotation that takes `off`, beside the numbers x and y of a symmetric matrix of two rows, to zero.
template <class T> struct Rotation {
  T c, s;
  AOTI_INLINE Rotation(T x, T y, T off) {
    const T ratio = (y - x) / (T(2) * off);
    const T size = magnitude(ratio);
    // Of a ratio whose square overflows, nothing is left beside it.
    const T t = (ratio < T(0) ? T(-1) : T(1)) / (size > T(1e15) ? T(2) * size : size + root(ratio * ratio + T(1)));
    c = T(1) / root(t * t + T(1));
    s = t * c;
  }
  AOTI_INLINE void turn(i64 count, T *x, i64 xs, T *y, i64 ys) const {
    for (i64 i = 0; i < count; ++i) {
      const T a = x[i * xs], b = y[i * ys];
      x[i * xs] = c * a - s * b, y[i * ys] = s * a + c * b;
    }
  }
};

// Eigenvalues, ascending, and eigenvectors as columns, of the lower triangle of a symmetric matrix.
struct Eigh {
  template <class T> AOTI_NOINLINE static void one(i64 u, i64, i64 n, char *memory, const T *in, T *values, T *vectors) {
    T *a = (T *)memory, *v = vectors + u * n * n;
    values += u * n;
    for (i64 i = 0; i < n; ++i)
      for (i64 j = 0; j < n; ++j) {
        a[i * n + j] = in[u * n * n + (j <= i ? i * n + j : j * n + i)];
        v[i * n + j] = i == j ? T(1) : T(0);
      }
    bool turned = true;
    for (i64 sweep = 0; sweep < kSweeps && turned; ++sweep) {
      turned = false;
      for (i64 p = 0; p < n; ++p)
        for (i64 q = p + 1; q < n; ++q) {
          const T x = a[p * n + p], y = a[q * n + q], off = a[p * n + q];
          const T most = magnitude(x) > magnitude(y) ? magnitude(x) : magnitude(y);
          if (!(magnitude(off) > epsilon<T> * T(0.25) * most)) {
            a[p * n + q] = a[q * n + p] = T(0);
            continue;
          }
          turned = true;
          const Rotation<T> rotation(x, y, off);
          rotation.turn(n, a + p * n, 1, a + q * n, 1);
          rotation.turn(n, a + p, n, a + q, n);
          rotation.turn(n, v + p, n, v + q, n);
        }
    }
    for (i64 i = 0; i < n; ++i) values[i] = a[i * n + i];
    for (i64 i = 0; i < n; ++i) {
      i64 least = i;
      for (i64 j = i + 1; j < n; ++j)
        if (values[j] < values[least]) least = j;
      if (least == i) continue;
      swap(values[i], values[least]);
      for (i64 r = 0; r < n; ++r) swap(v[r * n + i], v[r * n + least]);
    }
  }
};

// The parts of a row of `count` elements along the rows before it go; `at` is its number.
template <class T> AOTI_NOINLINE void orthogonalise(i64 at, i64 count, T *rows) {
  T *own = rows + at * count;
  for (i64 j = 0; j < at; ++j) {
    T sum = T(0);
    for (i64 i = 0; i < count; ++i) sum = sum + rows[j * count + i] * own[i];
    for (i64 i = 0; i < count; ++i) own[i] = own[i] - sum * rows[j * count + i];
  }
}

// Singular values, descending, with left and right singular vectors as columns, of a matrix with at least as many rows as
// columns: columns are rotated in pairs until all are orthogonal (Hestenes).
struct Svd {
  template <class T>
  AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *memory, const T *in, T *left, T *values, T *right) {
    // Columns lie along rows while they are worked on.
    T *x = (T *)memory, *v = x + n * m, *s = values + u * n;
    in += u * m * n, left += u * m * n, right += u * n * n;
    T most = T(0);
    for (i64 i = 0; i < m * n; ++i)
      if (magnitude(in[i]) > most) most = magnitude(in[i]);
    if (most == T(0)) most = T(1);
    for (i64 j = 0; j < n; ++j) {
      for (i64 i = 0; i < m; ++i) x[j * m + i] = in[i * n + j] / most;
      for (i64 i = 0; i < n; ++i) v[j * n + i] = i == j ? T(1) : T(0);
    }
    bool turned = true;
    for (i64 sweep = 0; sweep < kSweeps && turned; ++sweep) {
      turned = false;
      for (i64 p = 0; p < n; ++p)
        for (i64 q = p + 1; q < n; ++q) {
          T *a = x + p * m, *b = x + q * m;
          T aa = T(0), bb = T(0), ab = T(0);
          for (i64 i = 0; i < m; ++i) aa = aa + a[i] * a[i], bb = bb + b[i] * b[i], ab = ab + a[i] * b[i];
          if (!(magnitude(ab) > epsilon<T> * root(aa) * root(bb))) continue;
          turned = true;
          const Rotation<T> rotation(aa, bb, ab);
          rotation.turn(m, a, 1, b, 1);
          rotation.turn(n, v + p * n, 1, v + q * n, 1);
        }
    }
    for (i64 j = 0; j < n; ++j) s[j] = length(m, x + j * m, 1);
    for (i64 j = 0; j < n; ++j) {
      i64 largest = j;
      for (i64 k = j + 1; k < n; ++k)
        if (s[k] > s[largest]) largest = k;
      if (largest != j) {
        swap(s[j], s[largest]);
        for (i64 i = 0; i < m; ++i) swap(x[j * m + i], x[largest * m + i]);
        for (i64 i = 0; i < n; ++i) swap(v[j * n + i], v[largest * n + i]);
      }
      // What is zero has no direction: one that is orthogonal to all others.
      T size = s[j];
      if (!(size > epsilon<T> * epsilon<T> * s[0])) size = T(0);
      for (i64 axis = 0; axis < m && size == T(0); ++axis) {
        for (i64 i = 0; i < m; ++i) x[j * m + i] = i == axis ? T(1) : T(0);
        orthogonalise(j, m, x), orthogonalise(j, m, x);
        size = length(m, x + j * m, 1);
        if (size * size * T(2 * m) < T(1)) size = T(0);
      }
      for (i64 i = 0; i < m; ++i) x[j * m + i] = x[j * m + i] / size;
      for (i64 i = 0; i < m; ++i) left[i * n + j] = x[j * m + i];
      for (i64 i = 0; i < n; ++i) right[i * n + j] = v[j * n + i];
    }
    for (i64 j = 0; j < n; ++j) s[j] = s[j] * most;
  }
};

} // namespace linalg
AOTI_NAMESPACE_END
