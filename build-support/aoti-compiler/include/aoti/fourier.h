// Discrete Fourier transforms of rows, of a length that is known when the kernel is compiled. What the passes are, and all
// roots of unity, the compiler decides (`fourier/` there): the roots of the passes come first, then those of the way.
//
// Of an even number of real numbers half as many complex ones are transformed (Sorensen et al., "Real-valued fast Fourier
// transform algorithms", 1987). A length with a large prime factor is a convolution with a chirp, by transforms of a length
// without any (Bluestein, 1970). A row is computed by one thread, so results do not depend on the number of them.
#pragma once

#include "fourier_passes.h"
#include "run.h"

AOTI_NAMESPACE_BEGIN
namespace fourier {

// Elements of a plane: a pass writes a vector behind its end, and planes do not begin at equal addresses modulo pages.
constexpr i64 plane_size(i64 length) { return round_up(length, 16) + 32; }

// f(lanes, at) covers `count` elements, a vector at least, by whole vectors, of which the last one may repeat some.
template <class T, class F> AOTI_INLINE void cover(i64 count, F f) {
  constexpr int W = kWidth<T>;
  for (i64 at = 0; at < count; at = next<W>(at, count)) f(Full<W>{}, at);
}
// x[k] *= by[k], in whole vectors.
template <class T> AOTI_NOINLINE void multiply(Planes<T> x, Planes<const T> by, i64 count) {
  const Full<kWidth<T>> lanes;
  for (i64 k = 0; k < count; k += kWidth<T>) x.store(lanes, k, times(x.load(lanes, k), by.load(lanes, k)));
}
// x[last - lane] for every lane.
template <class T, class From> AOTI_INLINE Complex<T, kWidth<T>> load_backwards(From from, i64 last) {
  constexpr int W = kWidth<T>;
  const Complex<T, W> x = from.load(Full<W>{}, last - (W - 1));
  return {detail::reversed(x.re, indices<W>{}), detail::reversed(x.im, indices<W>{})};
}

// The transform z of x[2 j] + i x[2 j + 1], of which x are n = 2 h numbers, to twice the first half of that of x:
// z[k] + z'[h - k] - i e^(-2 pi i k / n) (z[k] - z'[h - k]). There is a place behind the last z.
template <class T> AOTI_CONTRACT AOTI_NOINLINE void unfold(Planes<T> z, i64 h, Planes<const T> roots, Pairs<T, false> out) {
  z.re[h] = z.re[0], z.im[h] = z.im[0];
  cover<T>(h + 1, [&](auto lanes, i64 k) AOTI_LAMBDA {
    const auto a = z.load(lanes, k), b = load_backwards<T>(z, h - k);
    const Complex<T, lanes.width> sum{a.re + b.re, a.im - b.im}, difference{a.re - b.re, a.im + b.im};
    out.store(lanes, k, minus_turned(sum, times(difference, roots.load(lanes, k))));
  });
}
// The way back: x[k] + x'[h - k] + i e^(2 pi i k / n) (x[k] - x'[h - k]). The imaginary parts of the first and the last number
// do not count.
template <class T> AOTI_CONTRACT AOTI_NOINLINE void fold(Pairs<const T, false> x, i64 h, Planes<const T> roots, Planes<T> z) {
  cover<T>(h, [&](auto lanes, i64 k) AOTI_LAMBDA {
    const auto a = x.load(lanes, k), b = load_backwards<T>(x, h - k), root = roots.load(lanes, k);
    const Complex<T, lanes.width> sum{a.re + b.re, a.im - b.im}, difference{a.re - b.re, a.im + b.im};
    z.store(lanes, k, plus_turned(sum, times(difference, Complex<T, lanes.width>{root.re, -root.im})));
  });
  z.re[0] = x.pairs[0] + x.pairs[2 * h], z.im[0] = x.pairs[0] - x.pairs[2 * h];
}

// One row between the program's tensors and planes.
template <Form F, class T> AOTI_NOINLINE void fill(const T *x, i64 n, Planes<T> to) {
  if constexpr (F == kToHalf) {
    cover<T>(n, [&](auto lanes, i64 k) AOTI_LAMBDA { store(lanes, to.re + k, load(lanes, x + k)); });
    __builtin_memset(to.im, 0, size_t(n) * sizeof(T));
  } else {
    cover<T>(F == kFromHalf ? n / 2 + 1 : n, [&](auto lanes, i64 k) AOTI_LAMBDA {
      to.store(lanes, k, Pairs<const T, false>{x}.load(lanes, k));
    });
  }
  if constexpr (F == kFromHalf) {
    to.im[0] = 0;
    if (n % 2 == 0) to.im[n / 2] = 0;
    for (i64 k = 1; 2 * k < n; ++k) to.re[n - k] = to.re[k], to.im[n - k] = -to.im[k];
  }
}
template <Form F, class T> AOTI_NOINLINE void emit(Planes<T> from, i64 n, T *y) {
  if constexpr (F == kFromHalf)
    cover<T>(n, [&](auto lanes, i64 k) AOTI_LAMBDA { store(lanes, y + k, load(lanes, from.re + k)); });
  else
    cover<T>(F == kToHalf ? n / 2 + 1 : n, [&](auto lanes, i64 k) AOTI_LAMBDA {
      Pairs<T, false>{y}.store(lanes, k, from.load(lanes, k));
    });
}

// The transform of n numbers in the first piece of memory, by convolution: where it is.
template <class Passes, class T>
AOTI_INLINE Planes<T> convolve(Planes<T> a, Planes<T> b, i64 n, const T *roots, const T *own, T scale) {
  constexpr i64 m = Passes::length;
  const Planes<const T> chirp{own, own + n}, spectrum{own + 2 * n, own + 2 * n + m};
  multiply(a, chirp, n);
  __builtin_memset(a.re + n, 0, size_t(m - n) * sizeof(T));
  __builtin_memset(a.im + n, 0, size_t(m - n) * sizeof(T));
  const Planes<T> c = Passes::run(a, b, roots, T(1)), free = c.re == a.re ? b : a;
  multiply(c, spectrum, m);
  const Planes<T> back = Passes::run(c.exchanged(), free, roots, scale).exchanged();
  multiply(back, chirp, n);
  return back;
}

// One row.
template <Form F, Way By, i64 N, class Passes, class T>
AOTI_INLINE void one(const T *x, const T *roots, T *y, T *work, T scale) {
  constexpr i64 length = Passes::length, plane = plane_size(length);
  constexpr bool is_inverse = F == kInverse || F == kFromHalf;
  static_assert(N >= 2 * kWidth<T>, "shorter rows are products with a matrix");
  const Planes<T> a{work, work + plane}, b{work + 2 * plane, work + 3 * plane};
  const T *own = roots + Passes::roots;
  if constexpr (By == kPlain && (F == kForward || F == kInverse))
    Passes::run(Pairs<const T, is_inverse>{x}, Pairs<T, is_inverse>{y}, a, b, roots, scale);
  else if constexpr (By == kHalved && F == kToHalf) {
    const Planes<T> z = Passes::ends_in_second ? b : a;
    Passes::run(Pairs<const T, false>{x}, z, a, b, roots, scale / 2);
    unfold(z, length, {own, own + length + 1}, {y});
  } else if constexpr (By == kHalved && F == kFromHalf) {
    fold({x}, length, {own, own + length + 1}, a);
    Passes::run(a.exchanged(), Pairs<T, true>{y}, b, a, roots, scale);
  } else {
    // The transform of numbers whose parts are exchanged, exchanged again, is the inverse one.
    fill<F>(x, N, is_inverse ? a.exchanged() : a);
    Planes<T> done;
    if constexpr (By == kPlain)
      done = Passes::run(a, b, roots, scale);
    else
      done = convolve<Passes>(a, b, N, roots, own, scale);
    emit<F>(is_inverse ? done.exchanged() : done, N, y);
  }
}

} // namespace fourier

// Transforms of `rows` rows, which work in `bytes` bytes of each worker.
template <fourier::Form F, fourier::Way By, i64 N, class Passes, class T>
AOTI_INLINE void fourier_rows(const Run &run, i64 bytes, i64 rows, const T *x, const T *roots, T *y, T scale) {
  using namespace fourier;
  constexpr i64 half = 2 * (N / 2 + 1), in = F == kToHalf ? N : F == kFromHalf ? half : 2 * N;
  constexpr i64 out = F == kFromHalf ? N : F == kToHalf ? half : 2 * N;
  parallel(run, rows, grain(run, 16384, N), [&](i64 begin, i64 end, i64 worker) {
    T *work = (T *)(run.scratch + worker * bytes);
    for (i64 u = begin; u < end; ++u) one<F, By, N, Passes>(x + u * in, roots, y + u * out, work, scale);
  });
}

AOTI_NAMESPACE_END
