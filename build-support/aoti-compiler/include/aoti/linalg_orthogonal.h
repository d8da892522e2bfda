// Orthogonal factorisations: Householder's reflections, and Jacobi's rotations for symmetric eigenvalues and singular values.
// Matrices are row-major. Knows no batches.
#pragma once

#include "linalg_factor.h"

AOTI_NAMESPACE_BEGIN
namespace linalg {

template <class T> constexpr T epsilon = sizeof(T) == 4 ? T(1.1920928955078125e-7) : T(2.220446049250313e-16);
// Rotations stop at the latest after so many times all pairs.
constexpr i64 kSweeps = 60;

template <class T> AOTI_INLINE T root(T x) { return T(__builtin_sqrt(f64(x))); }

// Among `count` elements `stride` apart, which may be none; a NaN has none.
template <class Team, class T> AOTI_NOINLINE T largest_magnitude(i64 count, const T *x, i64 stride) {
  const auto of = [&](i64 i) {
    const T own = magnitude(x[i * stride]);
    return own > T(0) ? own : T(0);
  };
  return count == 0 ? T(0) : of(Team::template largest<T>(0, count, of));
}

// The length of a column of `count` elements `stride` apart, without overflow on the way.
template <class Team, class T> AOTI_NOINLINE T length(i64 count, const T *x, i64 stride) {
  const T most = largest_magnitude<Team>(count, x, stride);
  if (most == T(0)) return T(0);
  return most * root(Team::template sum<T>(count, [&](i64 i) {
           const T part = x[i * stride] / most;
           return part * part;
         }));
}

// Applies I - tau v v^T to columns [first, n) of rows [j, m), where v is 1 and then column j of `v` below row j.
template <class Team, class T>
AOTI_NOINLINE void reflect(i64 j, i64 m, i64 n, i64 first, const T *v, T tau, T *a, T *work) {
  Team::columns(first, n, [&](i64 begin, i64 end) {
    for (i64 c = begin; c < end; ++c) work[c] = a[j * n + c];
    for (i64 i = j + 1; i < m; ++i)
      for (i64 c = begin; c < end; ++c) work[c] = work[c] + v[i * n + j] * a[i * n + c];
    for (i64 c = begin; c < end; ++c) work[c] = work[c] * tau, a[j * n + c] = a[j * n + c] - work[c];
    for (i64 i = j + 1; i < m; ++i)
      for (i64 c = begin; c < end; ++c) a[i * n + c] = a[i * n + c] - v[i * n + j] * work[c];
  });
}

// R in the upper triangle, below it the vectors of the reflections whose factors are in `tau`.
struct Qr {
  template <class Team, class T> AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *memory, const T *in, T *out, T *tau) {
    T *a = out + u * m * n, *work = (T *)memory;
    const i64 k = m < n ? m : n;
    copy<Team>(m * n, in + u * m * n, a), tau += u * k;
    for (i64 j = 0; j < k; ++j) {
      const T first = a[j * n + j], below = length<Team>(m - j - 1, a + (j + 1) * n + j, n);
      T whole = length<Team>(m - j, a + j * n + j, n);
      if (first > T(0)) whole = -whole;
      const T factor = below == T(0) ? T(0) : (whole - first) / whole;
      tau[j] = factor;
      if (below == T(0)) continue;
      Team::each(m - j, [&](i64 i) { a[(j + i) * n + j] = i == 0 ? whole : a[(j + i) * n + j] / (first - whole); });
      reflect<Team>(j, m, n, j + 1, a, factor, a, work);
    }
  }
};

// The first n columns of the product of n reflections.
struct Reflections {
  template <class Team, class T> AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *memory, const T *in, const T *tau, T *out) {
    T *q = out + u * m * n;
    Team::each(m * n, [&](i64 i) { q[i] = i / n == i % n ? T(1) : T(0); });
    for (i64 j = n - 1; j >= 0; --j) reflect<Team>(j, m, n, j, in + u * m * n, tau[u * n + j], q, (T *)memory);
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
  template <class Team> AOTI_INLINE void turn(i64 count, T *x, i64 xs, T *y, i64 ys) const {
    Team::each(count, [&](i64 i) {
      const T a = x[i * xs], b = y[i * ys];
      x[i * xs] = c * a - s * b, y[i * ys] = s * a + c * b;
    });
  }
};

// Eigenvalues, ascending, and eigenvectors as columns, of the lower triangle of a symmetric matrix.
struct Eigh {
  template <class Team, class T> AOTI_NOINLINE static void one(i64 u, i64, i64 n, char *memory, const T *in, T *values, T *vectors) {
    T *a = (T *)memory, *v = vectors + u * n * n;
    values += u * n;
    Team::each(n, n, [&](i64 i, i64 j) {
      a[i * n + j] = in[u * n * n + (j <= i ? i * n + j : j * n + i)];
      v[i * n + j] = i == j ? T(1) : T(0);
    });
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
          rotation.template turn<Team>(n, a + p * n, 1, a + q * n, 1);
          rotation.template turn<Team>(n, a + p, n, a + q, n);
          rotation.template turn<Team>(n, v + p, n, v + q, n);
        }
    }
    Team::each(n, [&](i64 i) { values[i] = a[i * n + i]; });
    for (i64 i = 0; i < n; ++i) {
      const i64 least = Team::template largest<T>(i, n, [&](i64 j) { return -values[j]; });
      if (least == i) continue;
      Team::once([&] { swap(values[i], values[least]); });
      Team::each(n, [&](i64 r) { swap(v[r * n + i], v[r * n + least]); });
    }
  }
};

// The parts of a row of `count` elements along the rows before it go; `at` is its number.
template <class Team, class T> AOTI_NOINLINE void orthogonalise(i64 at, i64 count, T *rows) {
  T *own = rows + at * count;
  for (i64 j = 0; j < at; ++j) {
    const T *other = rows + j * count;
    const T sum = Team::template sum<T>(count, [&](i64 i) { return other[i] * own[i]; });
    Team::each(count, [&](i64 i) { own[i] = own[i] - sum * other[i]; });
  }
}

// What two columns are to themselves and to each other.
template <class T> struct Products {
  T aa, bb, ab;
};
template <class T> AOTI_INLINE Products<T> operator+(Products<T> x, Products<T> y) {
  return {x.aa + y.aa, x.bb + y.bb, x.ab + y.ab};
}

// Singular values, descending, with left and right singular vectors as columns, of a matrix with at least as many rows as
// columns: columns are rotated in pairs until all are orthogonal (Hestenes).
struct Svd {
  template <class Team, class T>
  AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *memory, const T *in, T *left, T *values, T *right) {
    // Columns lie along rows while they are worked on.
    T *x = (T *)memory, *v = x + n * m, *s = values + u * n;
    in += u * m * n, left += u * m * n, right += u * n * n;
    T most = largest_magnitude<Team>(m * n, in, 1);
    if (most == T(0)) most = T(1);
    Team::each(n, m, [&](i64 j, i64 i) { x[j * m + i] = in[i * n + j] / most; });
    Team::each(n, n, [&](i64 j, i64 i) { v[j * n + i] = i == j ? T(1) : T(0); });
    bool turned = true;
    for (i64 sweep = 0; sweep < kSweeps && turned; ++sweep) {
      turned = false;
      for (i64 p = 0; p < n; ++p)
        for (i64 q = p + 1; q < n; ++q) {
          T *a = x + p * m, *b = x + q * m;
          const auto part = [&](i64 i) { return Products<T>{a[i] * a[i], b[i] * b[i], a[i] * b[i]}; };
          const Products<T> all = Team::template sum<Products<T>>(m, part);
          if (!(magnitude(all.ab) > epsilon<T> * root(all.aa) * root(all.bb))) continue;
          turned = true;
          const Rotation<T> rotation(all.aa, all.bb, all.ab);
          rotation.template turn<Team>(m, a, 1, b, 1);
          rotation.template turn<Team>(n, v + p * n, 1, v + q * n, 1);
        }
    }
    for (i64 j = 0; j < n; ++j) s[j] = length<Team>(m, x + j * m, 1);
    for (i64 j = 0; j < n; ++j) {
      const i64 largest = Team::template largest<T>(j, n, [&](i64 k) { return s[k]; });
      if (largest != j) {
        Team::once([&] { swap(s[j], s[largest]); });
        Team::each(m, [&](i64 i) { swap(x[j * m + i], x[largest * m + i]); });
        Team::each(n, [&](i64 i) { swap(v[j * n + i], v[largest * n + i]); });
      }
      // What is zero has no direction: one that is orthogonal to all others.
      T size = s[j];
      if (!(size > epsilon<T> * epsilon<T> * s[0])) size = T(0);
      for (i64 axis = 0; axis < m && size == T(0); ++axis) {
        Team::each(m, [&](i64 i) { x[j * m + i] = i == axis ? T(1) : T(0); });
        orthogonalise<Team>(j, m, x), orthogonalise<Team>(j, m, x);
        size = length<Team>(m, x + j * m, 1);
        if (size * size * T(2 * m) < T(1)) size = T(0);
      }
      Team::each(m, [&](i64 i) { x[j * m + i] = left[i * n + j] = x[j * m + i] / size; });
      Team::each(n, [&](i64 i) { right[i * n + j] = v[j * n + i]; });
    }
    Team::each(n, [&](i64 j) { s[j] = s[j] * most; });
  }
};

} // namespace linalg
AOTI_NAMESPACE_END
