// Exponential, logarithm, tangent and arctangent kernels in f64. They are f64's own `exp` and `log`, and the working
// precision of the f32 functions that would otherwise need careful compensation.
// Knows nothing of f32 results. Polynomials are minimax fits by Remez exchange; error bounds stand beside them.
#pragma once

#include "vec.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// c[0] + x * (c[1] + x * (...)): Horner's rule.
template <class T, int W> AOTI_INLINE Vec<T, W> horner(Vec<T, W>, identity<T> c) { return splat<W, T>(c); }
template <class T, int W, class... Rest>
AOTI_INLINE Vec<T, W> horner(Vec<T, W> x, identity<T> c, identity<T> next, Rest... rest) {
  return mad(horner(x, next, rest...), x, splat<W, T>(c));
}

// x rounded to an integer, |x| < 2^50, by adding 1.5 * 2^52, with that integer as i64.
template <int W> struct Rounded {
  Vec<f64, W> value;
  Vec<i64, W> integer;
};
template <int W> AOTI_INLINE Rounded<W> round_product(Vec<f64, W> x, f64 factor) {
  constexpr f64 magic = 0x1.8p52;
  Vec<f64, W> shifted = mad(x, factor, splat<W>(magic));
  return {shifted - magic, bits_as<i64>(shifted) - 0x4338000000000000};
}

// p * 2^n for n in -2040..2040, in two steps so that neither factor leaves the exponent's range.
template <int W> AOTI_INLINE Vec<f64, W> scale(Vec<f64, W> p, Vec<i64, W> n) {
  Vec<i64, W> first = bits_as<i64>(shr<1>(bits_as<u64>(n + 2048))) - 1024;
  Vec<i64, W> second = n - first;
  return p * bits_as<f64>(shl<52>(first + 1023)) * bits_as<f64>(shl<52>(second + 1023));
}

constexpr f64 ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
constexpr f64 log2_e = 0x1.71547652b82fep+0;

// e^r - 1 - r over r^2 for |r| <= ln(2)/2; absolute error of e^r 2^-64.
template <int W> AOTI_INLINE Vec<f64, W> exp_tail(Vec<f64, W> r) {
  return horner(r, 0x1.0000000000000p-1, 0x1.555555555555cp-3, 0x1.555555555555ep-5, 0x1.111111110eb69p-7,
                0x1.6c16c16c134c7p-10, 0x1.a01a01b3d782dp-13, 0x1.a01a01b480128p-16, 0x1.71ddef4c994d4p-19,
                0x1.27e4bee7f9a47p-22, 0x1.af6d49deb2f16p-26, 0x1.1f9e4ff3da30dp-29);
}

// Cody and Waite's reduction x = n ln2 + r.
template <int W> AOTI_INLINE Vec<f64, W> exp_f64(Vec<f64, W> x) {
  x = select(x > 710.0, 710.0, x);
  // As for f32: not by way of a number below the normal ones.
  const auto nothing = x < -746.0;
  x = select(nothing, 0.0, x);
  Rounded<W> n = round_product(x, log2_e);
  Vec<f64, W> r = mad(n.value, -ln2_low, mad(n.value, -ln2_high, x));
  return select(nothing, 0.0, scale(mad(exp_tail(r), r * r, r) + 1.0, n.integer));
}

// x = (1 + f) 2^e with 1 + f in [sqrt(1/2), sqrt(2)), for positive normal numbers.
template <int W> struct Split {
  Vec<f64, W> e, f;
};
template <int W> AOTI_INLINE Split<W> split_normal(Vec<f64, W> x) {
  constexpr i64 sqrt_half = 0x3fe6a09e667f3bcd;
  const Vec<i64, W> bits = bits_as<i64>(x);
  const Vec<i64, W> biased = bits_as<i64>(shr<52>(bits_as<u64>(bits - sqrt_half + (i64(1023) << 52))));
  return {bits_as<f64>(biased + 0x4330000000000000) - (0x1p52 + 1023),
          bits_as<f64>(bits - shl<52>(biased - 1023)) - 1.0};
}
// The same of all positive numbers.
template <int W> AOTI_INLINE Split<W> split_power(Vec<f64, W> x) {
  const auto tiny = x < Limits<f64>::min_positive;
  const Split<W> p = split_normal(select(tiny, x * 0x1p54, x));
  return {select(tiny, p.e - 54.0, p.e), p.f};
}
// f - log(1 + f), less `low`. With s = f / (2 + f), log(1 + f) = f - s (f - R(s^2)): the form of Sun's fdlibm, with our own R.
template <int W> AOTI_INLINE Vec<f64, W> log_shortfall(Vec<f64, W> f, Vec<f64, W> low) {
  Vec<f64, W> s = f / (f + 2.0);
  Vec<f64, W> z = s * s;
  Vec<f64, W> tail = z * horner(z, 0x1.5555555555592p-1, 0x1.999999997fd20p-2, 0x1.24924941f96b0p-2,
                                0x1.c71c5202bc883p-3, 0x1.7466403de0102p-3, 0x1.39a1990ff27a0p-3, 0x1.2f06ae99f7d10p-3);
  Vec<f64, W> half_square = f * f * 0.5;
  return half_square - (s * (half_square + tail) + low);
}
// What a logarithm is where it is no sum of parts.
template <class T, int W> AOTI_INLINE Vec<T, W> log_edges(Vec<T, W> x, Vec<T, W> r) {
  r = select(x == T(0), -Limits<T>::infinity, r);
  r = select(x == Limits<T>::infinity, x, r);
  return select((x < T(0)) | isnan(x), Limits<T>::nan, r);
}
template <int W> AOTI_INLINE Vec<f64, W> log_f64(Vec<f64, W> x) {
  const Split<W> p = split_power(x);
  return log_edges(x, p.e * ln2_high - (log_shortfall(p.f, p.e * ln2_low) - p.f));
}

// The angle of the point (x, y), both finite and not negative, not both zero; relative error 2^-40.
// Reduced to |t| <= tan(pi/8) by turning the point by pi/4 or pi/2.
template <int W> AOTI_INLINE Vec<f64, W> angle_for_f32(Vec<f64, W> y, Vec<f64, W> x) {
  constexpr f64 tan_pi_8 = 0x1.a827999fcef32p-2, tan_3pi_8 = 0x1.3504f333f9de6p+1;
  auto steep = y > x * tan_3pi_8;
  auto middle = y > x * tan_pi_8;
  Vec<f64, W> above = select(steep, -x, select(middle, y - x, y));
  Vec<f64, W> below = select(steep, y, select(middle, y + x, x));
  Vec<f64, W> base = select(steep, 0x1.921fb54442d18p+0, select(middle, splat<W>(0x1.921fb54442d18p-1), 0.0));
  Vec<f64, W> t = above / below;
  Vec<f64, W> z = t * t;
  Vec<f64, W> p = horner(z, -0x1.5555554ef5e94p-2, 0x1.9999920f39d6bp-3, -0x1.2490c5a78e930p-3, 0x1.c6d2400f86e16p-4,
                         -0x1.70855e52c6e03p-4, 0x1.1e66af67d3241p-4, -0x1.36cce29bb3743p-5);
  return base + mad(t * z, p, t);
}

// x = k pi/2 + r with |r| <= pi/4, for |x| < 2^20: the high part of pi/2 has 33 bits, so that its products are exact.
template <int W> AOTI_INLINE Rounded<W> reduce_quadrant(Vec<f64, W> x) {
  Rounded<W> k = round_product(x, 0x1.45f306dc9c883p-1);
  Vec<f64, W> r = x - k.value * 0x1.921fb54400000p+0;
  return {r - k.value * 0x1.0b4611a626331p-34, k.integer};
}

} // namespace detail

AOTI_NAMESPACE_END
