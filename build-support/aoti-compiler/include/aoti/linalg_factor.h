// Factorisations by elimination, and solvers with triangular and factored matrices. Matrices are row-major.
// Knows no batches.
#pragma once

#include "linalg_team.h"

AOTI_NAMESPACE_BEGIN
namespace linalg {

template <class T> AOTI_INLINE T magnitude(T x) { return x < T(0) ? -x : x; }
template <class T> AOTI_INLINE void swap(T &a, T &b) {
  T c = a;
  a = b, b = c;
}
template <class Team, class T> AOTI_INLINE void copy(i64 count, const T *from, T *to) {
  Team::each(count, [&](i64 i) { to[i] = from[i]; });
}

// Rows are exchanged so that no multiplier is larger than one. `info` is 0, or one more than the first column without a pivot.
struct Lu {
  template <class Team, class T> AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *, const T *in, T *out, i64 *pivots, i64 *info) {
    T *a = out + u * m * n;
    const i64 k = m < n ? m : n;
    copy<Team>(m * n, in + u * m * n, a), pivots += u * k, info[u] = 0;
    for (i64 j = 0; j < k; ++j) {
      const i64 p = Team::template largest<T>(j, m, [&](i64 i) { return magnitude(a[i * n + j]); });
      const T pivot = a[p * n + j];
      pivots[j] = p + 1;
      if (pivot == T(0)) {
        if (info[u] == 0) info[u] = j + 1;
        continue;
      }
      if (p != j) Team::each(n, [&](i64 c) { swap(a[p * n + c], a[j * n + c]); });
      Team::each(m - j - 1, [&](i64 i) { a[(j + 1 + i) * n + j] = a[(j + 1 + i) * n + j] / pivot; });
      Team::each(m - j - 1, n - j - 1, [&](i64 r, i64 c) {
        const i64 row = (j + 1 + r) * n, column = j + 1 + c;
        a[row + column] = a[row + column] - a[row + j] * a[j * n + column];
      });
    }
  }
};

// Of the lower triangle, column by column. `info` is 0, or the order of the first minor that is not positive; then what is left is as
// LAPACK leaves it. Below an infinite pivot there is NaN, as below those of PyTorch.
struct Cholesky {
  template <class Team, class T> AOTI_NOINLINE static void one(i64 u, i64, i64 n, char *, const T *in, T *out, i64 *info) {
    const T *a = in + u * n * n;
    T *l = out + u * n * n;
    Team::each(n, n, [&](i64 i, i64 j) { l[i * n + j] = j <= i ? a[i * n + j] : T(0); });
    info[u] = 0;
    for (i64 j = 0; j < n; ++j) {
      // What a column has of those before it is subtracted from all of it, also from its pivot.
      Team::each(n - j, [&](i64 i) {
        const T *own = l + (j + i) * n, *pivot = l + j * n;
        T sum = own[j];
        for (i64 k = 0; k < j; ++k) sum = sum - own[k] * pivot[k];
        l[(j + i) * n + j] = sum;
      });
      const T square = l[j * n + j];
      if (!(square > T(0))) {
        // The rest of the column is as it was.
        Team::each(n - j - 1, [&](i64 i) { l[(j + 1 + i) * n + j] = a[(j + 1 + i) * n + j]; });
        info[u] = j + 1;
        return;
      }
      const T root = T(__builtin_sqrt(f64(square))), divisor = root == root + root ? root * T(0) : root;
      Team::each(n - j, [&](i64 i) { l[(j + i) * n + j] = i == 0 ? root : l[(j + i) * n + j] / divisor; });
    }
  }
};

// Rows are exchanged, one pivot after the other; those outside the matrix exchange nothing.
struct Exchange {
  template <class Team, class T> AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *, const i64 *pivots, const T *b, T *out) {
    T *x = out + u * m * n;
    pivots += u * m;
    copy<Team>(m * n, b + u * m * n, x);
    Team::columns(0, n, [&](i64 begin, i64 end) {
      for (i64 i = 0; i < m; ++i) {
        const i64 j = pivots[i] - 1;
        if (j != i && j >= 0 && j < m)
          for (i64 c = begin; c < end; ++c) swap(x[i * n + c], x[j * n + c]);
      }
    });
  }
};

// X of A X = B with a lower triangular A of m rows and n columns of B.
struct SolveLower {
  template <class Team, class T> AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *, const T *a, const T *b, T *out) {
    T *x = out + u * m * n;
    a += u * m * m;
    copy<Team>(m * n, b + u * m * n, x);
    Team::columns(0, n, [&](i64 begin, i64 end) {
      for (i64 i = 0; i < m; ++i) {
        for (i64 k = 0; k < i; ++k)
          for (i64 c = begin; c < end; ++c) x[i * n + c] = x[i * n + c] - a[i * m + k] * x[k * n + c];
        for (i64 c = begin; c < end; ++c) x[i * n + c] = x[i * n + c] / a[i * m + i];
      }
    });
  }
};
struct SolveUpper {
  template <class Team, class T> AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *, const T *a, const T *b, T *out) {
    T *x = out + u * m * n;
    a += u * m * m;
    copy<Team>(m * n, b + u * m * n, x);
    Team::columns(0, n, [&](i64 begin, i64 end) {
      for (i64 i = m - 1; i >= 0; --i) {
        for (i64 k = i + 1; k < m; ++k)
          for (i64 c = begin; c < end; ++c) x[i * n + c] = x[i * n + c] - a[i * m + k] * x[k * n + c];
        for (i64 c = begin; c < end; ++c) x[i * n + c] = x[i * n + c] / a[i * m + i];
      }
    });
  }
};

// L D L^T of the lower triangle of a symmetric matrix, D of blocks of one and two rows, by Bunch and Kaufman's
// pivoting, as LAPACK stores it: a pivot is positive for a block of one row, negative and there twice for one of two.
struct Ldl {
  template <class Team, class T> AOTI_NOINLINE static void one(i64 u, i64, i64 n, char *, const T *in, T *out, i64 *pivots, i64 *info) {
    Team::once([&] { factor(n, in + u * n * n, out + u * n * n, pivots + u * n, info + u); });
  }

private:
  template <class T> AOTI_INLINE static void factor(i64 n, const T *in, T *a, i64 *pivots, i64 *info) {
    *info = 0;
    for (i64 i = 0; i < n; ++i)
      for (i64 j = 0; j < n; ++j) a[i * n + j] = j <= i ? in[i * n + j] : T(0);
    const T alpha = T(0.6403882032022076);
    for (i64 k = 0; k < n;) {
      i64 steps = 1, p = k, widest = k;
      T column = T(0);
      for (i64 i = k + 1; i < n; ++i)
        if (magnitude(a[i * n + k]) > column) widest = i, column = magnitude(a[i * n + k]);
      const T diagonal = magnitude(a[k * n + k]);
      if (diagonal == T(0) && column == T(0)) {
        if (*info == 0) *info = k + 1;
        pivots[k] = k + 1, ++k;
        continue;
      }
      if (diagonal < alpha * column) {
        T row = T(0);
        for (i64 j = k; j < widest; ++j)
          if (magnitude(a[widest * n + j]) > row) row = magnitude(a[widest * n + j]);
        for (i64 i = widest + 1; i < n; ++i)
          if (magnitude(a[i * n + widest]) > row) row = magnitude(a[i * n + widest]);
        if (diagonal < alpha * column * (column / row)) {
          p = widest;
          if (magnitude(a[widest * n + widest]) < alpha * row) steps = 2;
        }
      }
      const i64 last = k + steps - 1;
      if (p != last) {
        for (i64 i = p + 1; i < n; ++i) swap(a[i * n + last], a[i * n + p]);
        for (i64 j = last + 1; j < p; ++j) swap(a[j * n + last], a[p * n + j]);
        swap(a[last * n + last], a[p * n + p]);
        if (steps == 2) swap(a[(k + 1) * n + k], a[p * n + k]);
      }
      if (steps == 1) {
        const T d = T(1) / a[k * n + k];
        for (i64 j = k + 1; j < n; ++j) {
          const T l = d * a[j * n + k];
          for (i64 i = j; i < n; ++i) a[i * n + j] = a[i * n + j] - l * a[i * n + k];
        }
        for (i64 i = k + 1; i < n; ++i) a[i * n + k] = a[i * n + k] * d;
        pivots[k] = p + 1;
      } else {
        const T below = a[(k + 1) * n + k];
        const T d1 = a[(k + 1) * n + k + 1] / below, d2 = a[k * n + k] / below;
        const T scale = T(1) / (d1 * d2 - T(1)) / below;
        for (i64 j = k + 2; j < n; ++j) {
          const T l1 = scale * (d1 * a[j * n + k] - a[j * n + k + 1]);
          const T l2 = scale * (d2 * a[j * n + k + 1] - a[j * n + k]);
          for (i64 i = j; i < n; ++i) a[i * n + j] = a[i * n + j] - a[i * n + k] * l1 - a[i * n + k + 1] * l2;
          a[j * n + k] = l1, a[j * n + k + 1] = l2;
        }
        pivots[k] = pivots[k + 1] = -(p + 1);
      }
      k += steps;
    }
  }
};

// X of A X = B with an A that `Ldl` has factored.
struct LdlSolve {
  template <class Team, class T> AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *, const T *a, const i64 *pivots, const T *b, T *out) {
    Team::once([&] { solve(m, n, a + u * m * m, pivots + u * m, b + u * m * n, out + u * m * n); });
  }

private:
  template <class T> AOTI_INLINE static void solve(i64 m, i64 n, const T *a, const i64 *pivots, const T *b, T *x) {
    copy<Alone>(m * n, b, x);
    const auto exchange = [&](i64 i, i64 j) {
      // Pivots are the caller's: those outside the matrix exchange nothing.
      if (i != j && j >= 0 && j < m)
        for (i64 c = 0; c < n; ++c) swap(x[i * n + c], x[j * n + c]);
    };
    const auto subtract = [&](i64 i, i64 k) {
      for (i64 c = 0; c < n; ++c) x[i * n + c] = x[i * n + c] - a[i * m + k] * x[k * n + c];
    };
    for (i64 k = 0; k < m;) {
      if (pivots[k] > 0 || k + 1 == m) {
        exchange(k, pivots[k] - 1);
        for (i64 i = k + 1; i < m; ++i) subtract(i, k);
        for (i64 c = 0; c < n; ++c) x[k * n + c] = x[k * n + c] / a[k * m + k];
        ++k;
        continue;
      }
      exchange(k + 1, -pivots[k] - 1);
      for (i64 i = k + 2; i < m; ++i) subtract(i, k), subtract(i, k + 1);
      const T below = a[(k + 1) * m + k];
      const T d1 = a[k * m + k] / below, d2 = a[(k + 1) * m + k + 1] / below, whole = d1 * d2 - T(1);
      for (i64 c = 0; c < n; ++c) {
        const T b1 = x[k * n + c] / below, b2 = x[(k + 1) * n + c] / below;
        x[k * n + c] = (d2 * b1 - b2) / whole, x[(k + 1) * n + c] = (d1 * b2 - b1) / whole;
      }
      k += 2;
    }
    const auto gather = [&](i64 to, i64 from) {
      for (i64 i = from; i < m; ++i)
        for (i64 c = 0; c < n; ++c) x[to * n + c] = x[to * n + c] - a[i * m + to] * x[i * n + c];
    };
    for (i64 k = m - 1; k >= 0;) {
      gather(k, k + 1);
      if (pivots[k] > 0 || k == 0) {
        exchange(k, pivots[k] - 1), --k;
        continue;
      }
      gather(k - 1, k + 1), exchange(k, -pivots[k] - 1), k -= 2;
    }
  }
};

} // namespace linalg
AOTI_NAMESPACE_END
