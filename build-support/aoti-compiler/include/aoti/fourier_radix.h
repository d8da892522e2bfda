// Discrete Fourier transforms of a few numbers in registers, one in each lane: the butterflies of fourier.h and gpu/fourier.h,
// and what both call the forms of transforms. A radix that is a product is made of those of its factors (Good, 1958, where they are coprime; Cooley and Tukey, 1965, else),
// an odd prime of sums and differences of the numbers that are conjugate to each other. Knows nothing of memory.
#pragma once

#include "vec.h"
#if !AOTI_GPU
#include "tile.h"
#endif

AOTI_NAMESPACE_BEGIN
namespace fourier {

// What rows of `length` numbers become: complex ones are pairs; of `half` the first length / 2 + 1 are there.
enum Form { kForward, kInverse, kToHalf, kFromHalf };
// By passes alone, as half as many complex numbers, or by convolution.
enum Way { kPlain, kHalved, kConvolved };

// Complex numbers side by side.
template <class T, int W> struct Complex {
  Vec<T, W> re, im;
};
template <class T, int W> AOTI_INLINE Complex<T, W> complex(Vec<T, W> re, Vec<T, W> im) { return {re, im}; }
template <class T, int W> AOTI_INLINE Complex<T, W> operator+(Complex<T, W> a, Complex<T, W> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T, int W> AOTI_INLINE Complex<T, W> operator-(Complex<T, W> a, Complex<T, W> b) {
  return {a.re - b.re, a.im - b.im};
}
// Products feed sums through one fused instruction where there is one: of functions that are AOTI_CONTRACT where gcc
// compiles them.
template <class T, int W> AOTI_INLINE Complex<T, W> times(Complex<T, W> a, Complex<T, W> b) {
#if AOTI_GPU
  return {mad(a.re, b.re, -(a.im * b.im)), mad(a.re, b.im, a.im * b.re)};
#else
  AOTI_CONTRACT_BODY
  return {{a.re.v * b.re.v - a.im.v * b.im.v}, {a.re.v * b.im.v + a.im.v * b.re.v}};
#endif
}
// a - i b and a + i b.
template <class T, int W> AOTI_INLINE Complex<T, W> minus_turned(Complex<T, W> a, Complex<T, W> b) {
  return {a.re + b.im, a.im - b.re};
}
template <class T, int W> AOTI_INLINE Complex<T, W> plus_turned(Complex<T, W> a, Complex<T, W> b) {
  return {a.re - b.im, a.im + b.re};
}

// --- roots of unity that are part of the code ---

// Cosine and sine of up to an eighth of a turn, by their series.
constexpr f64 series(f64 x, int first) {
  f64 sum = 0;
  for (int k = first + 22; k >= first; k -= 2) {
    f64 term = first ? x : 1;
    for (int i = first + 1; i <= k; ++i) term *= x / i;
    sum += (k - first) / 2 % 2 ? -term : term;
  }
  return sum;
}
// The cosine of k / n turns, 0 <= k: by symmetry of an angle up to an eighth of a turn, so that equal magnitudes have
// equal bits.
constexpr f64 cosine(i64 k, i64 n) {
  k %= n;
  if (2 * k > n) k = n - k;
  if (4 * k > n) return -cosine(n - 2 * k, 2 * n);
  constexpr f64 turn = 6.283185307179586476925286766559;
  return 8 * k <= n ? series(turn * f64(k) / f64(n), 0) : series(turn * f64(n - 4 * k) / f64(4 * n), 1);
}
constexpr f64 sine(i64 k, i64 n) { return cosine(4 * k + 3 * n, 4 * n); }

template <class T, int R> struct Roots {
  T cos[R], sin[R];
  constexpr Roots() : cos{}, sin{} {
    for (int k = 0; k < R; ++k) cos[k] = T(cosine(k, R)), sin[k] = T(sine(k, R));
  }
};
template <class T, int R> constexpr Roots<T, R> roots{};

// x times e^(-2 pi i K / R).
template <int K, int R, class T, int W> AOTI_INLINE Complex<T, W> turned(Complex<T, W> x) {
  if constexpr (K == 0)
    return x;
  else if constexpr (4 * K == R)
    return {x.im, -x.re};
  else {
    constexpr T c = roots<T, R>.cos[K], s = -roots<T, R>.sin[K];
    return times(x, {splat<W>(c), splat<W>(s)});
  }
}

// --- transforms ---

// The factor of R that is transformed first: all that one prime has in it, unless R is a power of that.
AOTI_CONSTEXPR int first_factor(int r) {
  int odd = r, power = 1;
  while (odd % 2 == 0) odd /= 2, power *= 2;
  if (odd == 1) return r == 8 || r < 4 ? 2 : 4;
  if (power > 1) return power;
  int prime = 3;
  while (r % prime != 0) prime += 2;
  return prime;
}
AOTI_CONSTEXPR bool coprime(int a, int b) { return b == 0 ? a == 1 : coprime(b, a % b); }
// The k below a * b that is k1 modulo a and k2 modulo b.
AOTI_CONSTEXPR int remainders(int k1, int k2, int a, int b) {
  int k = k1;
  while (k % b != k2) k += a;
  return k;
}

// Where the numbers of row i and column j stand among A * B.
template <int A, int B> AOTI_CONSTEXPR int place_in(int i, int j) {
  return coprime(A, B) ? (B * i + A * j) % (A * B) : B * i + j;
}
template <int A, int B> AOTI_CONSTEXPR int place_out(int i, int j) {
  return coprime(A, B) ? remainders(i, j, A, B) : i + A * j;
}

// Calls f of every index below N, each a constant.
template <int I> struct Index {
  static constexpr int value = I;
};
template <class F, int... I> AOTI_INLINE void each(F f, Indices<I...>) { (f(Index<I>{}), ...); }
template <int N, class F> AOTI_INLINE void each(F f) { each(f, indices<N>{}); }

// The transform of an odd prime length: of conjugate roots the sums of pairs have the cosines, their differences the sines.
template <int R, class T, int W> AOTI_INLINE void transform_prime(Complex<T, W> (&x)[R]) {
  constexpr int H = R / 2;
  Complex<T, W> sums[H], differences[H];
  const Complex<T, W> first = x[0];
  each<H>([&](auto index) AOTI_LAMBDA {
    constexpr int j = decltype(index)::value;
    sums[j] = x[j + 1] + x[R - 1 - j], differences[j] = x[j + 1] - x[R - 1 - j];
    x[0] = x[0] + sums[j];
  });
  each<H>([&](auto row) AOTI_LAMBDA {
    constexpr int k = decltype(row)::value + 1;
    Complex<T, W> even = first, odd;
    each<H>([&](auto column) AOTI_LAMBDA {
      constexpr int j = decltype(column)::value, at = (j + 1) * k % R;
      constexpr T cos = roots<T, R>.cos[at], sin = roots<T, R>.sin[at];
      const Vec<T, W> c = splat<W>(cos), s = splat<W>(sin);
      even = {mad(sums[j].re, c, even.re), mad(sums[j].im, c, even.im)};
      if constexpr (j == 0)
        odd = {differences[j].re * s, differences[j].im * s};
      else
        odd = {mad(differences[j].re, s, odd.re), mad(differences[j].im, s, odd.im)};
    });
    x[k] = minus_turned(even, odd), x[R - k] = plus_turned(even, odd);
  });
}

// x[k] becomes the sum of x[j] e^(-2 pi i j k / R).
template <int R, class T, int W> AOTI_INLINE void transform(Complex<T, W> (&x)[R]) {
  constexpr int A = first_factor(R), B = R / A;
  if constexpr (R == 2) {
    const Complex<T, W> a = x[0], b = x[1];
    x[0] = a + b, x[1] = a - b;
  } else if constexpr (R == 4) {
    const Complex<T, W> a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = x[1] - x[3];
    x[0] = a + c, x[1] = minus_turned(b, d), x[2] = a - c, x[3] = plus_turned(b, d);
  } else if constexpr (A == R)
    transform_prime(x);
  else {
    Complex<T, W> columns[B][A];
    each<B>([&](auto column) AOTI_LAMBDA {
      constexpr int j = decltype(column)::value;
      each<A>([&](auto row) AOTI_LAMBDA {
        constexpr int i = decltype(row)::value;
        columns[j][i] = x[place_in<A, B>(i, j)];
      });
      transform(columns[j]);
    });
    each<A>([&](auto row_index) AOTI_LAMBDA {
      constexpr int i = decltype(row_index)::value;
      Complex<T, W> row[B];
      each<B>([&](auto column) AOTI_LAMBDA {
        constexpr int j = decltype(column)::value;
        row[j] = turned<coprime(A, B) ? 0 : i * j, R>(columns[j][i]);
      });
      transform(row);
      each<B>([&](auto column) AOTI_LAMBDA {
        constexpr int j = decltype(column)::value;
        x[place_out<A, B>(i, j)] = row[j];
      });
    });
  }
}

} // namespace fourier
AOTI_NAMESPACE_END
