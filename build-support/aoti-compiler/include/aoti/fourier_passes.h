// Passes of a discrete Fourier transform of one row, by Stockham's method (Cochran et al., 1967; Van Loan, "Computational
// Frameworks for the Fast Fourier Transform", 1992, section 1.7): each pass transforms one factor of the length and leaves the
// numbers where the next one reads them side by side, so that none is put in order at the end.
//
// With s the product of the factors that are done and n = s * R * m, a pass makes of x[q + s * (p + m * k)], for all q < s and
// p < m, y[q + s * (R * p + j)], where R numbers k become R numbers j, each turned by p * j / (R * m). Vectors run along q. The
// first pass has no q: there they run along p, and results are transposed in registers.
//
// Lanes beyond a row of q hold what is there, and are stored over what is stored next: memory of a pass goes on for a vector
// behind its end.
#pragma once

#include "fourier_radix.h"

AOTI_NAMESPACE_BEGIN
namespace fourier {

template <class T> constexpr int kWidth = AOTI_VECTOR_BYTES / int(sizeof(T));

// Lane i of b behind lane i of a, and back.
template <int Half, class T, int W, int... I> AOTI_INLINE Vec<T, W> zipped(Vec<T, W> a, Vec<T, W> b, Indices<I...>) {
  return {shuffled<(Half * W / 2 + I / 2 + I % 2 * W)...>(a.v, b.v)};
}
template <int Odd, class T, int W, int... I> AOTI_INLINE Vec<T, W> unzipped(Vec<T, W> a, Vec<T, W> b, Indices<I...>) {
  return {shuffled<(2 * I + Odd)...>(a.v, b.v)};
}

// Lanes of the two registers that hold pairs.
template <int W> AOTI_INLINE Full<W> first_of_two(Full<W> lanes) { return lanes; }
template <int W> AOTI_INLINE Full<W> second_of_two(Full<W> lanes) { return lanes; }
template <int W> AOTI_INLINE Tail<W> first_of_two(Tail<W> lanes) { return {2 * lanes.n < W ? 2 * lanes.n : W}; }
template <int W> AOTI_INLINE Tail<W> second_of_two(Tail<W> lanes) { return {2 * lanes.n < W ? 0 : 2 * lanes.n - W}; }

// Memory of complex numbers: real parts and imaginary parts apart, as passes have them.
template <class T> struct Planes {
  T *re, *im;
  template <class L> AOTI_INLINE auto load(L lanes, i64 at) const {
    return complex(aoti::load(lanes, re + at), aoti::load(lanes, im + at));
  }
  template <class L> AOTI_INLINE void store(L lanes, i64 at, Complex<T, L::width> x) const {
    aoti::store(lanes, re + at, x.re), aoti::store(lanes, im + at, x.im);
  }
  AOTI_INLINE Planes exchanged() const { return {im, re}; }
};
// Side by side, as programs have them. The transform of numbers whose parts are exchanged, exchanged again, is the inverse one.
template <class T, bool Exchanged> struct Pairs {
  T *pairs;
  template <class L> AOTI_INLINE auto load(L lanes, i64 at) const {
    constexpr int W = L::width;
    const T *from = pairs + 2 * at;
    const auto a = aoti::load(first_of_two(lanes), from), b = aoti::load(second_of_two(lanes), from + W);
    return complex(unzipped<Exchanged>(a, b, indices<W>{}), unzipped<!Exchanged>(a, b, indices<W>{}));
  }
  template <class L> AOTI_INLINE void store(L lanes, i64 at, Complex<T, L::width> x) const {
    constexpr int W = L::width;
    T *to = pairs + 2 * at;
    const Vec<T, W> re = Exchanged ? x.im : x.re, im = Exchanged ? x.re : x.im;
    aoti::store(first_of_two(lanes), to, zipped<0>(re, im, indices<W>{}));
    aoti::store(second_of_two(lanes), to + W, zipped<1>(re, im, indices<W>{}));
  }
};

// All lanes of a register, or as many as there are elements.
template <class T, bool Whole> AOTI_INLINE auto lanes_of(i64 count) {
  if constexpr (Whole)
    return Full<kWidth<T>>{};
  else
    return Tail<kWidth<T>>{int(count)};
}
template <int W> AOTI_INLINE int count_of(Full<W>) { return W; }
template <int W> AOTI_INLINE int count_of(Tail<W> lanes) { return lanes.n; }
// Where the vector behind `at` begins, of `count` elements: the last one goes over what is done.
template <int W> AOTI_INLINE i64 next(i64 at, i64 count) {
  return at + 2 * W <= count || at + W >= count ? at + W : count - W;
}

// --- transposition in registers ---

template <int D, class T, int W, int... I> AOTI_INLINE void exchange(Vec<T, W> &a, Vec<T, W> &b, Indices<I...>) {
  const Vec<T, W> low{shuffled<(I & D ? I - D + W : I)...>(a.v, b.v)};
  const Vec<T, W> high{shuffled<(I & D ? I + W : I + D)...>(a.v, b.v)};
  a = low, b = high;
}
template <int D, class T, int W> AOTI_INLINE void transpose(Vec<T, W> (&x)[W]) {
  if constexpr (D > 0) {
    AOTI_UNROLL for (int i = 0; i < W; ++i)
      if ((i & D) == 0) exchange<D>(x[i], x[i + D], indices<W>{});
    transpose<D / 2>(x);
  }
}
// Of the lanes l in use, those of R vectors to R elements at to + l * R; up to a vector behind the last one is overwritten.
template <int R, class L, class T, int W> AOTI_INLINE void store_rows(L lanes, T *to, const Vec<T, W> (&x)[R]) {
  constexpr int blocks = (R + W - 1) / W;
  Vec<T, W> block[blocks][W];
  AOTI_UNROLL for (int b = 0; b < blocks; ++b) {
    AOTI_UNROLL for (int i = 0; i < W; ++i) block[b][i] = x[b * W + i < R ? b * W + i : R - 1];
    transpose<W / 2>(block[b]);
  }
  AOTI_UNROLL for (int l = 0; l < W; ++l) {
    if (l >= count_of(lanes)) return;
    AOTI_UNROLL for (int b = 0; b < blocks; ++b) store(Full<W>{}, to + l * R + b * W, block[b][l]);
  }
}

// --- passes ---

// Roots: for each j from 1 on, m cosines and m (negative) sines.
template <int R, bool Whole, class T, class In>
AOTI_CONTRACT AOTI_NOINLINE void first_pass(In in, Planes<T> out, i64 m, const T *roots) {
  constexpr int W = kWidth<T>;
  const auto lanes = lanes_of<T, Whole>(m);
  for (i64 p = 0; p < m; p = next<W>(p, m)) {
    Complex<T, W> x[R];
    AOTI_UNROLL for (int k = 0; k < R; ++k) x[k] = in.load(lanes, p + m * k);
    transform(x);
    AOTI_UNROLL for (int j = 1; j < R; ++j) {
      const T *root = roots + (2 * j - 2) * m + p;
      x[j] = times(x[j], Complex<T, W>{load(lanes, root), load(lanes, root + m)});
    }
    Vec<T, W> part[R];
    AOTI_UNROLL for (int j = 0; j < R; ++j) part[j] = x[j].re;
    store_rows(lanes, out.re + R * p, part);
    AOTI_UNROLL for (int j = 0; j < R; ++j) part[j] = x[j].im;
    store_rows(lanes, out.im + R * p, part);
  }
}

// Roots: for each p, R - 1 pairs.
template <int R, class T>
AOTI_CONTRACT AOTI_NOINLINE void middle_pass(Planes<T> in, Planes<T> out, i64 s, i64 m, const T *roots) {
  constexpr int W = kWidth<T>;
  const Full<W> lanes;
  for (i64 p = 0; p < m; ++p, roots += 2 * R - 2)
    for (i64 q = 0; q < s; q = next<W>(q, s)) {
      Complex<T, W> x[R];
      AOTI_UNROLL for (int k = 0; k < R; ++k) x[k] = in.load(lanes, q + s * (p + m * k));
      transform(x);
      out.store(lanes, q + s * R * p, x[0]);
      AOTI_UNROLL for (int j = 1; j < R; ++j) {
        const Complex<T, W> root{splat<W>(roots[2 * j - 2]), splat<W>(roots[2 * j - 1])};
        out.store(lanes, q + s * (R * p + j), times(x[j], root));
      }
    }
}

template <int R, bool Whole, class T, class Out>
AOTI_CONTRACT AOTI_NOINLINE void last_pass(Planes<T> in, Out out, i64 s, T scale) {
  constexpr int W = kWidth<T>;
  const auto lanes = lanes_of<T, Whole>(s);
  for (i64 q = 0; q < s; q = next<W>(q, s)) {
    Complex<T, W> x[R];
    AOTI_UNROLL for (int k = 0; k < R; ++k) x[k] = in.load(Full<W>{}, q + s * k);
    transform(x);
    AOTI_UNROLL for (int j = 0; j < R; ++j)
      out.store(lanes, q + s * j, Complex<T, W>{x[j].re * scale, x[j].im * scale});
  }
}

// Elements of the roots of the passes behind the first one.
template <int... R> constexpr i64 later_roots(i64 m) {
  i64 count = 0;
  ((m /= R, count += m > 1 ? 2 * (R - 1) * m : 0), ...);
  return count;
}

// The factors of a length, in the order of its passes: two at least.
template <int First, int... Rest> struct Radices {
  static constexpr i64 length = First * (i64(Rest) * ...);
  // Elements of the roots of all passes.
  static constexpr i64 roots = 2 * (First - 1) * (length / First) + later_roots<Rest...>(length / First);
  // Of two pieces of memory, where the result may go: the last pass does not read there.
  static constexpr bool ends_in_second = sizeof...(Rest) % 2 == 1;

  // From `in` to `out` by way of two pieces of memory, of which the second may be `in`.
  template <class T, class In, class Out>
  static AOTI_INLINE void run(In in, Out out, Planes<T> a, Planes<T> b, const T *roots, T scale) {
    constexpr i64 m = length / First;
    first_pass<First, (m >= kWidth<T>)>(in, a, m, roots);
    later<First, m, Rest...>(a, b, out, roots + 2 * (First - 1) * m, scale);
  }
  // Within these pieces of memory, from the first of them to the one that is returned.
  template <class T> static AOTI_INLINE Planes<T> run(Planes<T> from, Planes<T> other, const T *roots, T scale) {
    const Planes<T> to = ends_in_second ? from : other;
    run(from, to, other, from, roots, scale);
    return to;
  }

  template <i64 S, i64 M, int R, int... More, class T, class Out>
  static AOTI_INLINE void later(Planes<T> in, Planes<T> other, Out out, const T *roots, T scale) {
    if constexpr (sizeof...(More) == 0)
      last_pass<R, (S >= kWidth<T>)>(in, out, S, scale);
    else {
      middle_pass<R>(in, other, S, M / R, roots);
      later<S * R, M / R, More...>(other, in, out, roots + 2 * (R - 1) * (M / R), scale);
    }
  }
};

} // namespace fourier
AOTI_NAMESPACE_END
