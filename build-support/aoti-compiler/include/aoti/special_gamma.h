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

// DLMF 5.11.2 from x = 10 on, reached by the recurrence 5.5.2; 5.5.4 reflects negative arguments.
AOTI_NOINLINE f64 digamma_f64(f64 x) {
  if (x == 0) return __builtin_copysign(infinity, -x);
  f64 result = 0;
  if (x < 0) {
    f64 whole = __builtin_trunc(x);
    if (x == whole) return nan;
    result = -pi / scalar::tan(pi * (x - whole));
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  f64 z = 1 / (x * x);
  f64 series = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return result + (scalar::log(x) - 0.5 / x - (x < 1e17 ? series : 0));
}

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

// The series DLMF 8.7.1 for the lower function, Lentz's evaluation of the fraction 8.9.2 for the upper one.
AOTI_NOINLINE f64 gamma_lower_series(f64 a, f64 x) {
  f64 sum = 1, term = 1;
  for (f64 k = 1; k < 1e6; k += 1) {
    term *= x / (a + k);
    sum += term;
    if (term < 1e-17 * sum) break;
  }
  return gamma_density(a, x) * sum;
}
AOTI_NOINLINE f64 gamma_upper_fraction(f64 a, f64 x) {
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
    if (__builtin_fabs(factor - 1) < 1e-16) break;
  }
  return gamma_density(a, x) * a * h;
}

// 1 - x^a / Gamma(a + 1) - ..., for small x and a, where one minus the series would cancel.
AOTI_NOINLINE f64 gamma_upper_series(f64 a, f64 x) {
  f64 sum = 0, factor = 1;
  for (f64 k = 1; k < 2000; k += 1) {
    factor *= -x / k;
    f64 term = factor / (a + k);
    sum += term;
    if (__builtin_fabs(term) < 1e-17 * __builtin_fabs(sum)) break;
  }
  f64 log_x = scalar::log(x);
  f64 first = -scalar::expm1(a * log_x - scalar::lgamma(1 + a));
  return first - scalar::exp(a * log_x - scalar::lgamma(a)) * sum;
}

AOTI_NOINLINE f64 igamma_f64(f64 a, f64 x) {
  if (a < 0 || x < 0) return nan;
  if (a == 0) return x > 0 ? 1 : nan;
  if (x == 0) return 0;
  if (a == infinity) return x == infinity ? nan : 0;
  if (x == infinity) return 1;
  if (a != a || x != x) return nan;
  return x <= 1 || x <= a ? gamma_lower_series(a, x) : 1 - gamma_upper_fraction(a, x);
}
AOTI_NOINLINE f64 igammac_f64(f64 a, f64 x) {
  if (a < 0 || x < 0) return nan;
  if (a == 0) return x > 0 ? 0 : nan;
  if (x == 0) return 1;
  if (a == infinity) return x == infinity ? nan : 1;
  if (x == infinity) return 0;
  if (a != a || x != x) return nan;
  if (x > 1.1) return x < a ? 1 - gamma_lower_series(a, x) : gamma_upper_fraction(a, x);
  bool small_tail = x <= 0.5 ? -0.4 / scalar::log(x) < a : x * 1.1 < a;
  return small_tail ? 1 - gamma_lower_series(a, x) : gamma_upper_series(a, x);
}

} // namespace detail

AOTI_SPECIAL1(lgamma, detail::lgamma_f64)
AOTI_SPECIAL1(digamma, detail::digamma_f64)
AOTI_SPECIAL2(polygamma, detail::polygamma_f64)
AOTI_SPECIAL2(zeta, detail::zeta_f64)
AOTI_SPECIAL2(igamma, detail::igamma_f64)
AOTI_SPECIAL2(igammac, detail::igammac_f64)

} // namespace special
AOTI_NAMESPACE_END
