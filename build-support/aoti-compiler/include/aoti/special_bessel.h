// Bessel and Airy functions. Ordinary Bessel functions are libm's; the modified ones are power series (no cancellation),
// asymptotic series, and, for the second kind in between, the trapezoidal rule on an integral, which converges
// exponentially. Formulas by DLMF number (https://dlmf.nist.gov); edge values are PyTorch's.
#pragma once

#include "special_gamma.h"

#if !AOTI_GPU
// Clang has no builtins for these. The names are our own, so that no declaration of <math.h> can contradict them.
namespace aoti {
namespace libm {
extern "C" double aoti_libm_j0(double) __asm__("j0");
extern "C" double aoti_libm_j1(double) __asm__("j1");
extern "C" double aoti_libm_y0(double) __asm__("y0");
extern "C" double aoti_libm_y1(double) __asm__("y1");
} // namespace libm
} // namespace aoti
#endif

AOTI_NAMESPACE_BEGIN
namespace special {
namespace detail {

// e^-x I_order(x) for order 0 or 1 and x >= 0: DLMF 10.25.2 below 20, 10.40.1 above (smallest term e^-2x).
template <int Order, int W> AOTI_INLINE Vec<f64, W> bessel_i_scaled(Vec<f64, W> x, f64 enough) {
  const auto large = x >= 20.0;
  const Vec<f64, W> a = select(large, 0.0, x), z = a * a * 0.25;
  Vec<f64, W> term = Order == 0 ? splat<W>(1.0) : a * 0.5, sum = term;
  for (int k = 1; k < 100 && any(term > sum * enough); ++k) {
    term = term * (z * (1.0 / (f64(k) * (k + Order))));
    sum = sum + term;
  }
  Vec<f64, W> value = sum * exp(-a);
  if (any(large)) {
    const Vec<f64, W> inverse = select(large, 0.125 / x, 0.0);
    term = splat<W>(1.0), sum = term;
    for (int k = 1; k < 40 && any(abs(term) > enough); ++k) {
      const f64 odd = 2 * k - 1;
      term = term * (inverse * ((odd * odd - 4 * Order) / k));
      sum = sum + term;
    }
    const Vec<f64, W> asymptotic = sum / (sqrt(x) * 0x1.40d931ff62705p+1); // the root of two pi
    value = select(large, select(x == infinity, 0.0, asymptotic), value);
  }
  return value;
}
template <int W> AOTI_INLINE Vec<f64, W> i0e_of(Vec<f64, W> x, f64 enough) { return bessel_i_scaled<0>(abs(x), enough); }
template <int W> AOTI_INLINE Vec<f64, W> i1e_of(Vec<f64, W> x, f64 enough) {
  return copysign(bessel_i_scaled<1>(abs(x), enough), x);
}
// Two factors, so that the product overflows only where the function does; at infinity PyTorch gives NaN.
template <int W> AOTI_INLINE Vec<f64, W> unscale(Vec<f64, W> scaled, Vec<f64, W> x) {
  const Vec<f64, W> half = exp(x * 0.5);
  return select(x == infinity, nan, scaled * half * half);
}
template <int W> AOTI_INLINE Vec<f64, W> i0_of(Vec<f64, W> x, f64 enough) { return unscale(i0e_of(x, enough), abs(x)); }
template <int W> AOTI_INLINE Vec<f64, W> i1_of(Vec<f64, W> x, f64 enough) {
  const Vec<f64, W> a = abs(x);
  return copysign(unscale(bessel_i_scaled<1>(a, enough), a), x);
}

// The integral of e^(-x (cosh t - 1)) cosh(nu t) over t >= 0, that is e^x K_nu(x): DLMF 10.32.9.
AOTI_NOINLINE f64 bessel_k_integral(f64 nu, f64 x) {
  const f64 step = 0.125;
  f64 sum = 0.5;
  for (int k = 1; k < 400; ++k) {
    f64 t = k * step, s = scalar::sinh(t / 2);
    f64 term = scalar::exp(-2 * x * s * s) * scalar::cosh(nu * t);
    sum += term;
    if (term < 1e-18 * sum) break;
  }
  return sum * step;
}
AOTI_NOINLINE f64 bessel_k_asymptotic(f64 nu, f64 x) { // DLMF 10.40.2
  f64 mu = 4 * nu * nu, term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    f64 odd = 2 * k - 1;
    term *= (mu - odd * odd) / (8 * x * k);
    sum += term;
    if (__builtin_fabs(term) <= 1e-17) break;
  }
  return sum * __builtin_sqrt(pi / (2 * x));
}
// e^x K_order(x); DLMF 10.31.2 up to 1.
AOTI_NOINLINE f64 bessel_k_scaled(int order, f64 x) {
  if (x == 0) return infinity;
  if (!(x > 0)) return nan;
  if (x == infinity) return 0;
  if (x >= 20) return bessel_k_asymptotic(order, x);
  if (x > 1) return bessel_k_integral(order, x);
  const f64 euler = 0x1.2788cfc6fb619p-1;
  f64 z = x * x / 4, log_half = scalar::log(x / 2);
  f64 power = order == 0 ? 1 : x / 2, harmonic = order == 0 ? 0 : 0.5; // psi sums: H_k, or (H_k + H_(k+1)) / 2
  f64 sum = 0, sign = order == 0 ? 1 : -1;
  for (int k = 0; k < 30; ++k) {
    sum += power * (harmonic - euler - log_half);
    if (power < 1e-18 * __builtin_fabs(sum)) break;
    harmonic += order == 0 ? 1.0 / (k + 1) : 0.5 / (k + 1) + 0.5 / (k + 2);
    power *= z / (f64(k + 1) * (k + 1 + order));
  }
  f64 value = sign * sum + (order == 0 ? 0 : 1 / x);
  return value * scalar::exp(x);
}
AOTI_INLINE f64 k0e_f64(f64 x) { return bessel_k_scaled(0, x); }
AOTI_INLINE f64 k1e_f64(f64 x) { return bessel_k_scaled(1, x); }
AOTI_NOINLINE f64 k0_f64(f64 x) { return x == infinity ? 0 : bessel_k_scaled(0, x) * scalar::exp(-x); }
AOTI_NOINLINE f64 k1_f64(f64 x) { return x == infinity ? 0 : bessel_k_scaled(1, x) * scalar::exp(-x); }

#if AOTI_GPU
struct BesselPair {
  f64 first, second;
};
// J_n and Y_n, n 0 or 1, for 0 < x. Below 25 by Miller's backward recurrence and Neumann's series (DLMF 10.23), from
// there on by Hankel's expansions (DLMF 10.17).
AOTI_NOINLINE BesselPair bessel_jy(int n, f64 x) {
  if (x >= 25) {
    f64 mu = 4.0 * n * n, p = 1, q = 0, term = 1;
    for (int k = 1; k < 40; ++k) {
      f64 odd = 2 * k - 1, next = term * (mu - odd * odd) / (k * 8 * x);
      if (__builtin_fabs(next) < 1e-17 || __builtin_fabs(next) > __builtin_fabs(term)) break;
      term = next;
      f64 sign = k / 2 % 2 ? -1 : 1;
      k % 2 ? q += sign * term : p += sign * term;
    }
    f64 factor = __builtin_sqrt(2 / (pi * x)), s = scalar::sin(x), c = scalar::cos(x);
    // The phase is x - n pi/2 - pi/4: no cancellation in x.
    f64 half = 0x1.6a09e667f3bcdp-1, cosine = n ? (s - c) * half : (c + s) * half, sine = n ? -(s + c) * half : (s - c) * half;
    return {factor * (cosine * p - sine * q), factor * (sine * p + cosine * q)};
  }
  f64 log_half = scalar::log(x / 2) + 0x1.2788cfc6fb619p-1;
  if (x < 1e-5) return n ? BesselPair{x / 2, -2 / (pi * x)} : BesselPair{1, 2 / pi * log_half};
  int order = x < 1 ? 20 : 2 * (int(x) / 2 + 20);
  f64 above = 0, here = 1e-200, norm = 0, sum = 0, j0 = 0, j1 = 0;
  for (int k = order; k > 0; --k) {
    f64 below = 2 * k / x * here - above;
    above = here, here = below; // J_(k-1)
    int m = k - 1;
    f64 sign = m / 2 % 2 ? -1 : 1;
    if (m % 2 == 0 && m > 0) norm += 2 * here;
    if (n == 0 && m % 2 == 0 && m > 0) sum += sign * here / (m / 2);
    if (n == 1 && m % 2 == 1 && m > 1) sum += sign * here * m / (f64(m / 2) * (m / 2 + 1));
    if (m == 1) j1 = here;
    if (m == 0) j0 = here;
  }
  norm += j0;
  j0 /= norm, j1 /= norm, sum /= norm;
  if (n == 0) return {j0, 2 / pi * log_half * j0 - 4 / pi * sum};
  return {j1, -2 / (pi * x) * j0 + 2 / pi * (log_half - 1) * j1 - 2 / pi * sum};
}
AOTI_NOINLINE f64 j0_f64(f64 x) {
  f64 a = __builtin_fabs(x);
  return __builtin_isinf(x) ? nan : x == 0 ? 1 : x != x ? x : bessel_jy(0, a).first;
}
AOTI_NOINLINE f64 j1_f64(f64 x) {
  f64 a = __builtin_fabs(x);
  return __builtin_isinf(x) ? nan : x == 0 || x != x ? x : __builtin_copysign(1.0, x) * bessel_jy(1, a).first;
}
AOTI_NOINLINE f64 y0_f64(f64 x) {
  return x < 0 ? nan : x == 0 ? -infinity : __builtin_isinf(x) || x != x ? nan : bessel_jy(0, x).second;
}
AOTI_NOINLINE f64 y1_f64(f64 x) {
  return x < 0 ? nan : x == 0 ? -infinity : __builtin_isinf(x) || x != x ? nan : bessel_jy(1, x).second;
}
#else
AOTI_NOINLINE f64 j0_f64(f64 x) { return __builtin_isinf(x) ? nan : libm::aoti_libm_j0(x); }
AOTI_NOINLINE f64 j1_f64(f64 x) { return __builtin_isinf(x) ? nan : libm::aoti_libm_j1(x); }
AOTI_NOINLINE f64 y0_f64(f64 x) { return x < 0 ? nan : x == 0 ? -infinity : __builtin_isinf(x) ? nan : libm::aoti_libm_y0(x); }
AOTI_NOINLINE f64 y1_f64(f64 x) { return x < 0 ? nan : x == 0 ? -infinity : __builtin_isinf(x) ? nan : libm::aoti_libm_y1(x); }
#endif
template <int W> AOTI_INLINE Vec<f64, W> spherical_j0_of(Vec<f64, W> x) {
  return select(abs(x) == infinity, 0.0, select(x == 0.0, 1.0, sin(x) / x));
}

// Between -10.5 and 2.5, the Taylor series of y'' = x y about the nearest integer; beyond, DLMF 9.6.2 with K_1/3, and
// the asymptotic series 9.7.9.
AOTI_NOINLINE f64 airy_f64(f64 x) {
  static const f64 at_integers[][2] = {
      {0x1.49a7fe67fe71ap-5, 0x1.fe1673ad658b8p-1}, // -10
      {-0x1.6aa38e8bd0844p-6, -0x1.f38a3ab3ed723p-1}, // -9
      {-0x1.afc28073abb84p-5, 0x1.df01d7e1f41fap-1}, // -8
      {0x1.79683b0571a28p-3, -0x1.8ac195288a6bdp-1}, // -7
      {-0x1.510b6eb1815d2p-2, 0x1.623ce99198c5bp-2}, // -6
      {0x1.672de4d9e1d32p-2, 0x1.4f0ba25cb5a72p-2}, // -5
      {-0x1.1fcec060d9f19p-4, -0x1.94cd44c4fb752p-1}, // -4
      {-0x1.83e7e4ea6959ap-2, 0x1.42223f628d022p-2}, // -3
      {0x1.d1bafc57f31d0p-3, 0x1.3c8c724515c8fp-1}, // -2
      {0x1.1235093d83da5p-1, -0x1.4cf103bcc6624p-7}, // -1
      {0x1.6b8c7962715b8p-2, -0x1.0907f42b70f8bp-2}, // 0
      {0x1.151430bbaf656p-3, -0x1.45ef17fce4faep-3}, // 1
      {0x1.1e1935c04b623p-5, -0x1.b2ea9b1bfccdcp-5}, // 2
  };
  if (__builtin_isinf(x) || __builtin_isnan(x)) return nan;
  if (x > 103.892) return 0;
  if (x > 2.5) {
    f64 root = __builtin_sqrt(x), zeta = x * root * 2 / 3;
    f64 k = zeta >= 20 ? bessel_k_asymptotic(1.0 / 3, zeta) : bessel_k_integral(1.0 / 3, zeta);
    return root * k * scalar::exp(-zeta) / (pi * 0x1.bb67ae8584caap+0);
  }
  if (x > -10.5) {
    f64 centre = __builtin_rint(x), h = x - centre;
    const f64 *start = at_integers[int(centre) + 10];
    f64 before = 0, current = start[0], next = start[1], power = 1, sum = 0; // coefficients n - 1, n, n + 1
    for (int n = 0; n < 60; ++n) {
      sum += current * power;
      f64 after = (centre * current + before) / ((n + 2.0) * (n + 1.0));
      before = current, current = next, next = after;
      power *= h;
      if (__builtin_fabs(power * current) + __builtin_fabs(power * h * next) < 1e-19) break;
    }
    return sum;
  }
  f64 a = -x, root = __builtin_sqrt(a), zeta = a * root * 2 / 3;
  f64 term = 1, even = 1, odd = 0; // u_k / zeta^k with signs of period four
  for (int k = 1; k < 40; ++k) {
    f64 u = (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / (216.0 * k * (2.0 * k - 1));
    f64 next = term * u / zeta;
    if (next > term || next < 1e-18) break;
    term = next;
    f64 sign = (k / 2) % 2 == 0 ? 1 : -1;
    if (k % 2 == 0)
      even += sign * term;
    else
      odd += sign * term;
  }
  f64 angle = zeta - pi / 4;
  return (scalar::cos(angle) * even + scalar::sin(angle) * odd) / __builtin_sqrt(pi * root);
}

} // namespace detail

AOTI_SPECIAL1_TO(i0, detail::i0_of)
AOTI_SPECIAL1_TO(i0e, detail::i0e_of)
AOTI_SPECIAL1_TO(i1, detail::i1_of)
AOTI_SPECIAL1_TO(i1e, detail::i1e_of)
AOTI_SPECIAL1(bessel_j0, detail::j0_f64)
AOTI_SPECIAL1(bessel_j1, detail::j1_f64)
AOTI_SPECIAL1(bessel_y0, detail::y0_f64)
AOTI_SPECIAL1(bessel_y1, detail::y1_f64)
AOTI_SPECIAL1_OF_LANES(spherical_bessel_j0, detail::spherical_j0_of)
AOTI_SPECIAL1(airy_ai, detail::airy_f64)
AOTI_SPECIAL1_TO(modified_bessel_i0, detail::i0_of)
AOTI_SPECIAL1_TO(modified_bessel_i1, detail::i1_of)
AOTI_SPECIAL1(modified_bessel_k0, detail::k0_f64)
AOTI_SPECIAL1(modified_bessel_k1, detail::k1_f64)
AOTI_SPECIAL1(scaled_modified_bessel_k0, detail::k0e_f64)
AOTI_SPECIAL1(scaled_modified_bessel_k1, detail::k1e_f64)

} // namespace special
AOTI_NAMESPACE_END
