// Eigenvalues and eigenvectors of general matrices, by the QR algorithm with single shifts on complex Hessenberg matrices
// (Golub and Van Loan, "Matrix computations", 7.5). Matrices are row-major. Knows no batches.
#pragma once

#include "linalg_orthogonal.h"

AOTI_NAMESPACE_BEGIN
namespace linalg {

template <class T> struct Complex {
  T re, im;
};
template <class T> AOTI_INLINE Complex<T> operator+(Complex<T> a, Complex<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T> AOTI_INLINE Complex<T> operator-(Complex<T> a, Complex<T> b) { return {a.re - b.re, a.im - b.im}; }
template <class T> AOTI_INLINE Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T> AOTI_INLINE Complex<T> scaled(Complex<T> a, T b) { return {a.re * b, a.im * b}; }
template <class T> AOTI_INLINE Complex<T> conjugate(Complex<T> a) { return {a.re, -a.im}; }
template <class T> AOTI_NOINLINE T modulus(Complex<T> a) {
  const T x = magnitude(a.re), y = magnitude(a.im), most = x > y ? x : y;
  if (most == T(0)) return T(0);
  return most * root((x / most) * (x / most) + (y / most) * (y / most));
}
template <class T> AOTI_NOINLINE Complex<T> quotient(Complex<T> a, Complex<T> b) {
  const T size = modulus(b);
  const Complex<T> unit = {b.re / size, -b.im / size};
  return scaled(a * unit, T(1) / size);
}
template <class T> AOTI_NOINLINE Complex<T> square_root(Complex<T> a) {
  const T size = modulus(a);
  const T re = root((size + magnitude(a.re)) / T(2));
  if (re == T(0)) return {T(0), T(0)};
  const T im = a.im / (T(2) * re);
  if (a.re >= T(0)) return {re, im};
  return {magnitude(im), a.im < T(0) ? -re : re};
}

// A rotation of two complex numbers that takes the second to zero: c is real.
template <class T> struct Givens {
  T c;
  Complex<T> s;
  AOTI_INLINE Givens(Complex<T> a, Complex<T> b) : c(T(1)), s{T(0), T(0)} {
    const T x = modulus(a), y = modulus(b);
    if (y == T(0)) return;
    const Complex<T> pair = {x, y};
    const T whole = modulus(pair);
    const Complex<T> phase = x == T(0) ? Complex<T>{T(1), T(0)} : Complex<T>{a.re / x, a.im / x};
    c = x / whole;
    s = scaled(phase * conjugate(b), T(1) / whole);
  }
  // Rows x and y: (c, s; -conj(s), c).
  template <class Team> AOTI_INLINE void rows(i64 from, i64 to, Complex<T> *x, Complex<T> *y) const {
    Team::each(to - from, [&](i64 i) {
      const Complex<T> a = x[from + i], b = y[from + i];
      x[from + i] = scaled(a, c) + s * b, y[from + i] = scaled(b, c) - conjugate(s) * a;
    });
  }
  // Columns x and y, `stride` apart from row to row, by the inverse.
  template <class Team> AOTI_INLINE void columns(i64 count, i64 stride, Complex<T> *x, Complex<T> *y) const {
    Team::each(count, [&](i64 i) {
      const Complex<T> a = x[i * stride], b = y[i * stride];
      x[i * stride] = scaled(a, c) + conjugate(s) * b, y[i * stride] = scaled(b, c) - s * a;
    });
  }
};

struct Eig {
  // To upper Hessenberg form.
  template <class Team, class T> AOTI_NOINLINE static void reduce(i64 n, Complex<T> *h, Complex<T> *q) {
    for (i64 k = 0; k + 2 < n; ++k)
      for (i64 i = n - 1; i > k + 1; --i) {
        const Givens<T> turn(h[(i - 1) * n + k], h[i * n + k]);
        turn.template rows<Team>(k, n, h + (i - 1) * n, h + i * n);
        h[i * n + k] = {T(0), T(0)};
        turn.template columns<Team>(n, n, h + i - 1, h + i);
        turn.template columns<Team>(n, n, q + i - 1, q + i);
      }
  }

  // The eigenvalue of the last two rows up to `high` that is nearer to the last element; now and then another number, lest
  // the iteration go in circles.
  template <class T> AOTI_NOINLINE static Complex<T> shift(i64 n, i64 high, i64 round, const Complex<T> *h) {
    const Complex<T> a = h[(high - 1) * n + high - 1], b = h[(high - 1) * n + high];
    const Complex<T> c = h[high * n + high - 1], d = h[high * n + high];
    if (round % 10 == 0) return {d.re + modulus(c), d.im};
    const Complex<T> half = scaled(a - d, T(0.5));
    const Complex<T> spread = square_root(half * half + b * c);
    const Complex<T> first = half + spread, second = half - spread;
    return d + (modulus(first) < modulus(second) ? first : second);
  }

  // To upper triangular form. Rounds are bounded: what has not converged then stays.
  template <class Team, class T> AOTI_NOINLINE static void iterate(i64 n, Complex<T> *h, Complex<T> *q, Givens<T> *turns) {
    i64 high = n - 1, round = 0;
    while (high > 0 && round < 300) {
      i64 low = high;
      for (; low > 0; --low) {
        const T beside = modulus(h[(low - 1) * n + low - 1]) + modulus(h[low * n + low]);
        if (modulus(h[low * n + low - 1]) <= epsilon<T> * beside) break;
      }
      if (low > 0) h[low * n + low - 1] = {T(0), T(0)};
      if (low == high) {
        --high, round = 0;
        continue;
      }
      ++round;
      const Complex<T> by = shift(n, high, round, h);
      Team::each(n, [&](i64 i) { h[i * n + i] = h[i * n + i] - by; });
      for (i64 k = low; k < high; ++k) {
        turns[k] = Givens<T>(h[k * n + k], h[(k + 1) * n + k]);
        turns[k].template rows<Team>(k, n, h + k * n, h + (k + 1) * n);
        h[(k + 1) * n + k] = {T(0), T(0)};
      }
      for (i64 k = low; k < high; ++k) {
        turns[k].template columns<Team>(k + 2, n, h + k, h + k + 1);
        turns[k].template columns<Team>(n, n, q + k, q + k + 1);
      }
      Team::each(n, [&](i64 i) { h[i * n + i] = h[i * n + i] + by; });
    }
  }

  // The eigenvector of eigenvalue k, of length one, its largest element real.
  template <class T>
  AOTI_NOINLINE static void vector(i64 n, i64 k, T small, const Complex<T> *h, const Complex<T> *q, Complex<T> *y, Complex<T> *out) {
    y[k] = {T(1), T(0)};
    for (i64 i = k - 1; i >= 0; --i) {
      Complex<T> sum = {T(0), T(0)};
      for (i64 j = i + 1; j <= k; ++j) sum = sum + h[i * n + j] * y[j];
      Complex<T> gap = h[k * n + k] - h[i * n + i];
      if (modulus(gap) < small) gap = {small, T(0)};
      y[i] = quotient(sum, gap);
      // Only the direction counts, and must not overflow.
      const T large = modulus(y[i]);
      for (i64 j = i; j <= k && large > T(1e8); ++j) y[j] = scaled(y[j], T(1) / large);
    }
    Complex<T> most = {T(0), T(0)};
    for (i64 i = 0; i < n; ++i) {
      Complex<T> sum = {T(0), T(0)};
      for (i64 j = 0; j <= k; ++j) sum = sum + q[i * n + j] * y[j];
      out[i * n + k] = sum;
      if (modulus(sum) > modulus(most)) most = sum;
    }
    T size = T(0);
    for (i64 i = 0; i < n; ++i) {
      out[i * n + k] = quotient(out[i * n + k], most);
      size = size + out[i * n + k].re * out[i * n + k].re + out[i * n + k].im * out[i * n + k].im;
    }
    for (i64 i = 0; i < n; ++i) out[i * n + k] = scaled(out[i * n + k], T(1) / root(size));
  }

  // Eigenvalues and, as columns, eigenvectors, both as pairs.
  template <class Team, class T> AOTI_NOINLINE static void one(i64 u, i64, i64 n, char *memory, const T *in, T *values, T *vectors) {
    Complex<T> *h = (Complex<T> *)memory, *q = h + n * n, *y = q + n * n;
    Givens<T> *turns = (Givens<T> *)(y + n);
    Complex<T> *w = (Complex<T> *)values + u * n, *v = (Complex<T> *)vectors + u * n * n;
    Team::each(n * n, [&](i64 i) {
      h[i] = {in[u * n * n + i], T(0)};
      q[i] = {i / n == i % n ? T(1) : T(0), T(0)};
    });
    const T size = length<Team>(n * n, in + u * n * n, 1);
    reduce<Team>(n, h, q);
    iterate<Team>(n, h, q, turns);
    // A division by zero would lose the vector; this much the matrix is not known by.
    const T small = size == T(0) ? T(1) : epsilon<T> * size;
    // Vectors share `y`.
    Team::once([&] {
      for (i64 k = 0; k < n; ++k) {
        vector(n, k, small, h, q, y, v);
        w[k] = h[k * n + k];
        if (magnitude(w[k].im) > T(8) * small) continue;
        // Of a real matrix: what is left of an imaginary part is rounding.
        w[k].im = T(0);
        for (i64 i = 0; i < n; ++i) v[i * n + k].im = T(0);
      }
    });
  }
};

} // namespace linalg
AOTI_NAMESPACE_END
