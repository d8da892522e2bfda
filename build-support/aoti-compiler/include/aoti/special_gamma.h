// The gamma function's family: lgamma, digamma, polygamma, Hurwitz zeta and the incomplete gamma functions.
// Formulas by DLMF number (https://dlmf.nist.gov); values at poles and for bad arguments are PyTorch's.
#pragma once

#include "special_base.h"

AOTI_NAMESPACE_BEGIN
namespace special {
namespace detail {

constexpr f64 pi = 0x1.921fb54442d18p+1;
constexpr f64 infinity = Limits<f64>::infinity, nan = Limits<f64>::nan;

AOTI_INLINE f64 lgamma_f64(f64 x) { return scalar::lgamma(x); }

// Right to about 1e-14, absolutely: Stirling's series (DLMF 5.11.1) from 8 on, below it of the argument plus 8, by the recurrence;
// below 1/2 reflected. y + i and y + 7 - i of the recurrence's product are a pair: y^2 + 7 y + i (7 - i).
template <int W> AOTI_INLINE Vec<f64, W> lgamma_for_f32(Vec<f64, W> x) {
  const auto reflected = x < 0.5;
  const Vec<f64, W> own = select(reflected, 1.0 - x, x);
  const auto low = own < 8.0;
  const Vec<f64, W> y = select(low, own + 8.0, own), t = mad(own, own, own * 7.0);
  Vec<f64, W> factor = select(low, t * (t + 6.0) * ((t + 10.0) * (t + 12.0)), 1.0);
  const Vec<f64, W> inverse = 1.0 / y;
  const Vec<f64, W> series =
      inverse * aoti::detail::horner(inverse * inverse, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360);
  const Vec<f64, W> stirling = mad(y - 0.5, log(y), 0x1.d67f1c864beb5p-1 - y) + series;
  const Vec<f64, W> fraction = x - round(x);
  if (any(reflected))
    factor = select(reflected, factor * pi / abs(aoti::detail::sine_f64<0>(fraction * pi)), factor);
  Vec<f64, W> value = stirling - log(factor);
  value = select((x == 1.0) | (x == 2.0), 0.0, select(reflected, -value, value));
  return select((abs(x) == infinity) | (reflected & (fraction == 0.0)), infinity, value);
}

// DLMF 5.11.2 from x = 10 on, below it of the argument plus 10 by the recurrence 5.5.2: the sum of 1 / (y + i) is (2 y + 9) D'(t) / D(t),
// t = y^2 + 9 y and D the product of all t + i (9 - i), i < 5. 5.5.4 reflects negative arguments.
template <int W> AOTI_INLINE Vec<f64, W> digamma_of(Vec<f64, W> x) {
  const auto negative = x < 0.0;
  const Vec<f64, W> own = select(negative, 1.0 - x, x);
  const auto low = own < 10.0;
  const Vec<f64, W> y = select(low, own + 10.0, own), from = select(low, own, 1.0), t = mad(from, from, from * 9.0);
  const Vec<f64, W> above = aoti::detail::horner(t, 40320.0, 24352.0, 3924.0, 240.0, 5.0);
  const Vec<f64, W> below = t * aoti::detail::horner(t, 40320.0, 12176.0, 1308.0, 60.0, 1.0);
  const Vec<f64, W> sum = select(low, mad(from, splat<W>(2.0), splat<W>(9.0)) * above / below, 0.0);
  const Vec<f64, W> inverse = 1.0 / y, z = inverse * inverse;
  const Vec<f64, W> series =
      z * aoti::detail::horner(z, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12);
  Vec<f64, W> value = log(y) - inverse * 0.5 - series - sum;
  if (any(negative)) {
    const Vec<f64, W> fraction = x - trunc(x);
    const Vec<f64, W> turned = value - pi / aoti::detail::tan_f64(fraction * pi);
    value = select(negative, select(fraction == 0.0, nan, turned), value);
  }
  value = select(abs(x) == infinity, select(negative, splat<W>(nan), infinity), value);
  return select(x == 0.0, copysign(splat<W>(infinity), -x), value);
}
AOTI_NOINLINE f64 digamma_f64(f64 x) { return digamma_of(Vec<f64, 1>{x}).v; }

// The derivative of the above: DLMF 5.15.8, 5.15.5 and 5.15.6.
AOTI_NOINLINE f64 trigamma_f64(f64 x) {
  f64 sign = 1, result = 0;
  if (x < 0.5) {
    f64 s = scalar::sin(pi * x);
    sign = -1;
    result = -(pi * pi) / (s * s);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result += 1 / (x * x);
  f64 z = 1 / (x * x);
  f64 series = z * (1.0 / 6 - z * (1.0 / 30 - z * (1.0 / 42 - z * (1.0 / 30 - z * (5.0 / 66 - z * (691.0 / 2730 - z * 7.0 / 6))))));
  return sign * (result + (1 + 0.5 / x + series) / x);
}

// Euler-Maclaurin summation from q + n > 9 on, DLMF 25.11.28; the factors are B_2j / (2j)!.
AOTI_NOINLINE f64 zeta_sum(f64 x, f64 q) {
  static const f64 factors[] = {0x1.5555555555555p-4, -0x1.6c16c16c16c17p-10, 0x1.1566abc011567p-15,
                                -0x1.bbd779334ef0bp-21, 0x1.66a8f2bf70ebep-26, -0x1.22805d644267fp-31,
                                0x1.d6db2c4e09162p-37, -0x1.7da4e1f79955cp-42, 0x1.355871d652e9ep-47,
                                -0x1.f57d968caacf1p-53};
  f64 sum = 0, a = q, term = 0;
  for (int i = 0; i < 9 || a <= 9; ++i, a += 1) {
    term = scalar::pow(a, -x);
    sum += term;
    if (__builtin_fabs(term) < 1e-17 * __builtin_fabs(sum) && a > 0) return sum;
  }
  f64 power = scalar::pow(a, -x);
  sum += power * a / (x - 1) + power / 2;
  f64 product = x * power / a;
  for (int j = 0; j < 10; ++j) {
    f64 correction = product * factors[j];
    sum += correction;
    if (__builtin_fabs(correction) < 1e-17 * __builtin_fabs(sum)) break;
    f64 k = x + 2 * j;
    product *= (k + 1) * (k + 2) / (a * a);
  }
  return sum;
}

AOTI_NOINLINE f64 zeta_f64(f64 x, f64 q) {
  if (x == 1) return infinity;
  if (x < 1) return nan;
  if (q <= 0) {
    if (q == __builtin_floor(q)) return infinity;
    if (x != __builtin_floor(x)) return nan;
  }
  if (!(q < -64)) return zeta_sum(x, q);
  // The terms below zero, of which there may be any number, are the difference of two such sums.
  f64 least = q - __builtin_floor(q), below = zeta_sum(x, 1 - least) - zeta_sum(x, 1 - q);
  return zeta_sum(x, least) + (scalar::fmod(x, 2) != 0 ? -below : below);
}

// DLMF 25.11.12.
AOTI_NOINLINE f64 polygamma_f64(f64 order, f64 x) {
  f64 n = __builtin_trunc(order);
  if (n == 0) return digamma_f64(x);
  if (n == 1) return trigamma_f64(x);
  f64 sign = scalar::fmod(n, 2) != 0 ? 1 : -1;
  return sign * scalar::exp(scalar::lgamma(n + 1)) * zeta_f64(n + 1, x);
}

// log(1 + u) - u for |u| < 0.5, by its series 2 atanh(t) - u with t = u / (2 + u).
AOTI_NOINLINE f64 log1p_minus(f64 u) {
  if (__builtin_fabs(u) > 0.5) return scalar::log1p(u) - u;
  f64 t = u / (2 + u), z = t * t, power = t, sum = 0;
  for (int k = 3; k < 80; k += 2) {
    power *= z;
    f64 term = power / k;
    sum += term;
    if (__builtin_fabs(term) < 1e-18 * __builtin_fabs(sum)) break;
  }
  return 2 * sum - t * u; // 2t - u = -t u
}

// x^a e^-x / Gamma(a + 1). For large a through Stirling's series (DLMF 5.11.1), where the powers would lose digits.
AOTI_NOINLINE f64 gamma_density(f64 a, f64 x) {
  if (a < 10) return scalar::exp(a * scalar::log(x) - x - scalar::lgamma(a + 1));
  f64 u = (x - a) / a, z = 1 / (a * a);
  f64 stirling = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188 - z * 691.0 / 360360))))) / a;
  return scalar::exp(a * log1p_minus(u) - stirling) / __builtin_sqrt(2 * pi * a);
}

// Terms are summed until one is `enough` smaller than the sum.
// The series DLMF 8.7.1 for the lower function, Lentz's evaluation of the fraction 8.9.2 for the upper one.
AOTI_NOINLINE f64 gamma_lower_series(f64 a, f64 x, f64 enough) {
  f64 sum = 1, term = 1;
  for (f64 k = 1; k < 1e6; k += 1) {
    term *= x / (a + k);
    sum += term;
    if (term < enough * sum) break;
  }
  return gamma_density(a, x) * sum;
}
AOTI_NOINLINE f64 gamma_upper_fraction(f64 a, f64 x, f64 enough) {
  f64 b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (f64 k = 1; k < 1e6; k += 1) {
    f64 numerator = -k * (k - a);
    b += 2;
    d = numerator * d + b;
    if (__builtin_fabs(d) < 1e-300) d = 1e-300;
    c = b + numerator / c;
    if (__builtin_fabs(c) < 1e-300) c = 1e-300;
    d = 1 / d;
    f64 factor = d * c;
    h *= factor;
    if (__builtin_fabs(factor - 1) < 8 * enough) break;
  }
  return gamma_density(a, x) * a * h;
}

// 1 - x^a / Gamma(a + 1) - ..., for small x and a, where one minus the series would cancel.
AOTI_NOINLINE f64 gamma_upper_series(f64 a, f64 x, f64 enough) {
  f64 sum = 0, factor = 1;
  for (f64 k = 1; k < 2000; k += 1) {
    factor *= -x / k;
    f64 term = factor / (a + k);
    sum += term;
    if (__builtin_fabs(term) < enough * __builtin_fabs(sum)) break;
  }
  f64 log_x = scalar::log(x);
  f64 first = -scalar::expm1(a * log_x - scalar::lgamma(1 + a));
  return first - scalar::exp(a * log_x - scalar::lgamma(a)) * sum;
}

AOTI_NOINLINE f64 igamma_of(f64 a, f64 x, f64 enough) {
  if (a < 0 || x < 0) return nan;
  if (a == 0) return x > 0 ? 1 : nan;
  if (x == 0) return 0;
  if (a == infinity) return x == infinity ? nan : 0;
  if (x == infinity) return 1;
  if (a != a || x != x) return nan;
  return x <= 1 || x <= a ? gamma_lower_series(a, x, enough) : 1 - gamma_upper_fraction(a, x, enough);
}
AOTI_NOINLINE f64 igammac_of(f64 a, f64 x, f64 enough) {
  if (a < 0 || x < 0) return nan;
  if (a == 0) return x > 0 ? 0 : nan;
  if (x == 0) return 1;
  if (a == infinity) return x == infinity ? nan : 1;
  if (x == infinity) return 0;
  if (a != a || x != x) return nan;
  if (x > 1.1) return x < a ? 1 - gamma_lower_series(a, x, enough) : gamma_upper_fraction(a, x, enough);
  bool small_tail = x <= 0.5 ? -0.4 / scalar::log(x) < a : x * 1.1 < a;
  return small_tail ? 1 - gamma_lower_series(a, x, enough) : gamma_upper_series(a, x, enough);
}

} // namespace detail

AOTI_SPECIAL1_BY_TYPE(lgamma, detail::lgamma_f64, detail::lgamma_for_f32)
AOTI_SPECIAL1_OF_LANES(digamma, detail::digamma_of)
AOTI_SPECIAL2(polygamma, detail::polygamma_f64)
AOTI_SPECIAL2(zeta, detail::zeta_f64)
AOTI_SPECIAL2_TO(igamma, detail::igamma_of)
AOTI_SPECIAL2_TO(igammac, detail::igammac_of)

} // namespace special
AOTI_NAMESPACE_END
