// Trigonometric, hyperbolic and other functions in f64 to f64's own precision, on vectors: for the arguments that need no
// more than a few parts of pi, or no other scale; what is beyond those is left to scalar.h.
// Knows nothing of f32. Errors stand in math.h.
#pragma once

#include "math_f64.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// high + low is the exact or nearly exact value.
template <int W> struct Twice {
  Vec<f64, W> high, low;
};
// The sum of `a` and a `b` that is not larger.
template <int W> AOTI_INLINE Twice<W> quick_sum(Vec<f64, W> a, Vec<f64, W> b) {
  const Vec<f64, W> sum = a + b;
  return {sum, b - (sum - a)};
}
template <int W> AOTI_INLINE Twice<W> exact_sum(Vec<f64, W> a, Vec<f64, W> b) {
  const Vec<f64, W> sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

// e^x - 1 = 2^n (e^r - 1) + (2^n - 1), of half the power, so that it is a number where the result is one.
template <int W> AOTI_INLINE Vec<f64, W> expm1_f64(Vec<f64, W> x) {
  Vec<f64, W> c = select(x > 710.0, 710.0, x);
  c = select(c < -60.0, -60.0, c);
  const Rounded<W> n = round_product(c, log2_e);
  const Vec<f64, W> r = mad(n.value, -ln2_low, mad(n.value, -ln2_high, c));
  const Vec<f64, W> p = mad(exp_tail(r), r * r, r);
  const Vec<f64, W> half_power = bits_as<f64>(shl<52>(n.integer + 1022));
  return select(x == 0.0, x, mad(p, half_power, half_power - 0.5) * 2.0);
}
// log(1 + x): the rounding of 1 + x is made good to first order.
template <int W> AOTI_INLINE Vec<f64, W> log1p_f64(Vec<f64, W> x) {
  const Vec<f64, W> u = x + 1.0;
  Vec<f64, W> r = log_f64(u) + (x - (u - 1.0)) / u;
  r = select((u == 1.0) | (u == Limits<f64>::infinity), x, r);
  return select(u == 0.0, -Limits<f64>::infinity, r);
}

template <int W> AOTI_INLINE Vec<f64, W> exp2_f64(Vec<f64, W> x) {
  Vec<f64, W> c = select(x > 1025.0, 1025.0, x);
  c = select(c < -1080.0, -1080.0, c);
  const Rounded<W> n = round_product(c, 1.0);
  const Vec<f64, W> r = (c - n.value) * 0x1.62e42fefa39efp-1;
  return scale(mad(exp_tail(r), r * r, r) + 1.0, n.integer);
}
// Powers of 2 come out exact: the logarithm of 1 is 0.
template <int W> AOTI_INLINE Vec<f64, W> log2_f64(Vec<f64, W> x) {
  const Split<W> p = split_power(x);
  return log_edges(x, mad(p.f - log_shortfall(p.f, splat<W>(0.0)), log2_e, p.e));
}

// x = quadrant * pi/2 + high + low with |high| <= pi/4, for |x| < 2^20: pi/2 in three parts, of which products with the first
// two are exact.
template <int W> struct Angle {
  Vec<i64, W> quadrant;
  Vec<f64, W> high, low;
};
template <int W> AOTI_INLINE Angle<W> reduce_angle(Vec<f64, W> x) {
  const Rounded<W> k = round_product(x, 0x1.45f306dc9c883p-1);
  const Vec<f64, W> first = x - k.value * 0x1.921fb544p+0;
  Twice<W> r = exact_sum(first, k.value * -0x1.0b4611a6p-34);
  r = quick_sum(r.high, mad(k.value, -0x1.3198a2e037073p-69, r.low));
  return {k.integer, r.high, r.low};
}
template <int W> AOTI_INLINE Vec<f64, W> sine(Vec<f64, W> r, Vec<f64, W> low) {
  const Vec<f64, W> z = r * r;
  const Vec<f64, W> p = horner(z, -0x1.5555555555555p-3, 0x1.1111111111111p-7, -0x1.a01a01a01a01ap-13, 0x1.71de3a556c734p-19,
                               -0x1.ae64567f544e4p-26, 0x1.6124613a86d09p-33, -0x1.ae7f3e733b81fp-41, 0x1.952c77030ad4ap-49);
  return r + mad(r * z, p, low * mad(z, -0.5, splat<W>(1.0)));
}
template <int W> AOTI_INLINE Vec<f64, W> cosine(Vec<f64, W> r, Vec<f64, W> low) {
  const Vec<f64, W> z = r * r;
  const Vec<f64, W> p = horner(z, 0x1.5555555555555p-5, -0x1.6c16c16c16c17p-10, 0x1.a01a01a01a01ap-16, -0x1.27e4fb7789f5cp-22,
                               0x1.1eed8eff8d898p-29, -0x1.93974a8c07c9dp-37, 0x1.ae7f3e733b81fp-45, -0x1.6827863b97d97p-53);
  const Twice<W> head = quick_sum(splat<W>(1.0), z * -0.5);
  return head.high + (head.low + mad(z * z, p, -(r * low)));
}
// Sine (Shift 0) or cosine (Shift 1), for |x| < 2^20.
template <int Shift, int W> AOTI_INLINE Vec<f64, W> sine_f64(Vec<f64, W> x) {
  const Angle<W> a = reduce_angle(x);
  const Vec<i64, W> quadrant = a.quadrant + Shift;
  const Vec<f64, W> y = select((quadrant & 1) == 0, sine(a.high, a.low), cosine(a.high, a.low));
  const Vec<f64, W> turned = bits_as<f64>(bits_as<i64>(y) ^ shl<62>(quadrant & 2));
  return Shift == 0 ? select(x == 0.0, x, turned) : turned;
}
template <int W> AOTI_INLINE Vec<f64, W> tan_f64(Vec<f64, W> x) {
  const Angle<W> a = reduce_angle(x);
  const Vec<f64, W> s = sine(a.high, a.low), c = cosine(a.high, a.low);
  const auto odd = (a.quadrant & 1) != 0;
  return select(x == 0.0, x, select(odd, -c, s) / select(odd, s, c));
}

// The angle of the point (x, y), neither negative nor infinite, not both zero: reduced to |t| <= tan(pi/8) by turning the
// point by pi/4 or pi/2. The polynomial's error is 2^-57.
template <int W> AOTI_INLINE Vec<f64, W> angle_f64(Vec<f64, W> y, Vec<f64, W> x) {
  constexpr f64 tan_pi_8 = 0x1.a827999fcef32p-2, tan_3pi_8 = 0x1.3504f333f9de6p+1;
  constexpr f64 half_pi = 0x1.921fb54442d18p+0, half_pi_low = 0x1.1a62633145c07p-54;
  const auto steep = y > x * tan_3pi_8, middle = y > x * tan_pi_8;
  const Vec<f64, W> above = select(steep, -x, select(middle, y - x, y));
  const Vec<f64, W> below = select(steep, y, select(middle, y + x, x));
  const Vec<f64, W> turns = select(steep, 1.0, select(middle, splat<W>(0.5), 0.0));
  const Vec<f64, W> t = above / below, z = t * t;
  const Vec<f64, W> p = horner(z, -0x1.5555555555555p-2, 0x1.999999999934cp-3, -0x1.2492492436201p-3, 0x1.c71c71853d796p-4,
                               -0x1.745d0b28a6e5bp-4, 0x1.3b1263063865ap-4, -0x1.10fa77b062878p-4, 0x1.dfe6496893b59p-5,
                               -0x1.a0999beffe38bp-5, 0x1.4162bede603c7p-5, -0x1.3a31ae91fdacdp-6);
  return mad(turns, half_pi, t + mad(t * z, p, turns * half_pi_low));
}
template <int W> AOTI_INLINE Vec<f64, W> atan2_f64(Vec<f64, W> y, Vec<f64, W> x) {
  constexpr f64 pi = 0x1.921fb54442d18p+1, pi_low = 0x1.1a62633145c07p-53;
  Vec<f64, W> a = abs(y), b = abs(x);
  const auto both_infinite = (a == Limits<f64>::infinity) & (b == Limits<f64>::infinity);
  const auto both_zero = (a == 0.0) & (b == 0.0);
  // Neither their sums nor their products with a tangent overflow.
  const Vec<f64, W> factor = select((a > 0x1p1000) | (b > 0x1p1000), splat<W>(0x1p-100), 1.0);
  a = select(both_infinite, 1.0, a * factor);
  b = select(both_infinite | both_zero, 1.0, b * factor);
  const Vec<f64, W> angle = angle_f64(a, b);
  return copysign(select(signbit(x), pi - (angle - pi_low), angle), y);
}

// The hyperbolic functions, for results that are far from overflowing: |x| < 700.
template <int W> AOTI_INLINE Vec<f64, W> sinh_f64(Vec<f64, W> x) {
  const Vec<f64, W> t = expm1_f64(abs(x));
  return copysign((t + t / (t + 1.0)) * 0.5, x);
}
template <int W> AOTI_INLINE Vec<f64, W> cosh_f64(Vec<f64, W> x) {
  const Vec<f64, W> e = exp_f64(abs(x));
  return (e + 1.0 / e) * 0.5;
}
// Where squares would overflow or no longer tell from 1, the logarithm of twice the argument.
constexpr f64 kLargeArea = 0x1p28, kLn2 = 0x1.62e42fefa39efp-1;
template <int W> AOTI_INLINE Vec<f64, W> asinh_f64(Vec<f64, W> x) {
  const Vec<f64, W> a = abs(x), square = a * a;
  const auto large = a > kLargeArea;
  const Vec<f64, W> y = log1p_f64(select(large, a - 1.0, a + square / (sqrt(square + 1.0) + 1.0)));
  return copysign(select(large, y + kLn2, y), x);
}
template <int W> AOTI_INLINE Vec<f64, W> acosh_f64(Vec<f64, W> x) {
  const Vec<f64, W> t = x - 1.0;
  const auto large = x > kLargeArea;
  const Vec<f64, W> y = log1p_f64(select(large, t, t + sqrt(mad(t, t, t + t))));
  return select(x < 1.0, Limits<f64>::nan, select(large, y + kLn2, y));
}
template <int W> AOTI_INLINE Vec<f64, W> atanh_f64(Vec<f64, W> x) {
  const Vec<f64, W> a = abs(x);
  return copysign(log1p_f64((a + a) / (1.0 - a)) * 0.5, x);
}

template <int W> AOTI_INLINE Vec<f64, W> hypot_f64(Vec<f64, W> x, Vec<f64, W> y) {
  const Vec<f64, W> a = abs(x), b = abs(y);
  const auto large = (a > 0x1p500) | (b > 0x1p500), tiny = (a < 0x1p-500) & (b < 0x1p-500);
  const Vec<f64, W> factor = select(large, splat<W>(0x1p-600), select(tiny, splat<W>(0x1p600), 1.0));
  const Vec<f64, W> back = select(large, splat<W>(0x1p600), select(tiny, splat<W>(0x1p-600), 1.0));
  const Vec<f64, W> u = a * factor, v = b * factor;
  const Vec<f64, W> r = sqrt(mad(u, u, v * v)) * back;
  return select((a == Limits<f64>::infinity) | (b == Limits<f64>::infinity), Limits<f64>::infinity, r);
}

} // namespace detail

AOTI_NAMESPACE_END
