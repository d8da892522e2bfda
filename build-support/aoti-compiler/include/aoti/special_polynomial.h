// Orthogonal polynomials by their three-term recurrences (DLMF 18.9), with PyTorch's rules: a negative degree gives 0,
// the ends of the interval have exact values, and high degrees inside it use the trigonometric form.
#pragma once

#include "special_base.h"

AOTI_NAMESPACE_BEGIN
namespace special {
namespace detail {

// Degree n of p_0 = 1, p_1 = first, p_(k+1) = 2x p_k - p_(k-1), the recurrence that all Chebyshev kinds share.
AOTI_NOINLINE f64 chebyshev_recurrence(f64 x, i64 n, f64 first) {
  if (n == 0) return 1;
  f64 p = 1, q = first;
  for (i64 k = 2; k <= n && q == q; ++k) {
    f64 r = 2 * x * q - p;
    p = q;
    q = r;
  }
  return q;
}

enum Kind { kT, kU, kV, kW };

// Values at x = 1 (`right`) or x = -1.
AOTI_NOINLINE f64 chebyshev_end(Kind kind, i64 n, bool right) {
  f64 sign = right || n % 2 == 0 ? 1 : -1;
  f64 wide = f64(n) + f64(n) + 1;
  if (kind == kT) return sign;
  if (kind == kU) return sign * (f64(n) + 1);
  if (kind == kV) return right ? 1 : sign * wide;
  return right ? wide : sign;
}

AOTI_NOINLINE f64 chebyshev_inside(Kind kind, f64 x, i64 n) {
  f64 angle = scalar::acos(x), half = angle / 2;
  if (kind == kT) return scalar::cos(f64(n) * angle);
  if (kind == kU) return scalar::sin((f64(n) + 1) * angle) / scalar::sin(angle);
  if (kind == kV) return scalar::cos((f64(n) + 0.5) * angle) / scalar::cos(half);
  return scalar::sin((f64(n) + 0.5) * angle) / scalar::sin(half);
}

// `limit`: the degree above which the trigonometric form is used.
AOTI_NOINLINE f64 chebyshev(Kind kind, f64 x, f64 degree, i64 limit) {
  if (degree != degree) return 0;
  i64 n = i64(degree);
  if (n < 0) return 0;
  f64 a = __builtin_fabs(x);
  if (a == 1) return chebyshev_end(kind, n, x > 0);
  if (n > limit && a < 1) return chebyshev_inside(kind, x, n);
  f64 first = kind == kT ? x : kind == kU ? 2 * x : kind == kV ? 2 * x - 1 : 2 * x + 1;
  return chebyshev_recurrence(x, n, first);
}
AOTI_INLINE f64 chebyshev_t(f64 x, f64 n) { return chebyshev(kT, x, n, 6); }
AOTI_INLINE f64 chebyshev_u(f64 x, f64 n) { return chebyshev(kU, x, n, 8); }
AOTI_INLINE f64 chebyshev_v(f64 x, f64 n) { return chebyshev(kV, x, n, 8); }
AOTI_INLINE f64 chebyshev_w(f64 x, f64 n) { return chebyshev(kW, x, n, 8); }
// The shifted kinds are the plain ones at 2x - 1.
AOTI_INLINE f64 shifted_t(f64 x, f64 n) { return chebyshev(kT, x + x - 1, n, 6); }
AOTI_INLINE f64 shifted_u(f64 x, f64 n) { return chebyshev(kU, x + x - 1, n, 6); }
AOTI_INLINE f64 shifted_v(f64 x, f64 n) { return chebyshev(kV, x + x - 1, n, 6); }
AOTI_INLINE f64 shifted_w(f64 x, f64 n) { return chebyshev(kW, x + x - 1, n, 6); }

// Degrees beyond `limit` overflow and are NaN.
AOTI_NOINLINE f64 hermite(f64 x, f64 degree, f64 factor, i64 limit) {
  if (degree != degree) return 0;
  i64 n = i64(degree);
  if (n < 0) return 0;
  if (n == 0) return 1;
  if (n > limit) return Limits<f64>::nan;
  f64 p = 1, q = factor * x;
  for (i64 k = 1; k < n && q == q; ++k) {
    f64 r = factor * (x * q - f64(k) * p);
    p = q;
    q = r;
  }
  return q;
}

AOTI_NOINLINE f64 laguerre(f64 x, f64 degree) {
  if (degree != degree) return 0;
  i64 n = i64(degree);
  if (n < 0) return 0;
  if (x == 0 || n == 0) return 1;
  f64 p = 1, q = 1 - x;
  for (i64 k = 1; k < n && q == q; ++k) {
    f64 r = ((f64(k + k) + (1 - x)) * q - f64(k) * p) / f64(k + 1);
    p = q;
    q = r;
  }
  return q;
}

AOTI_NOINLINE f64 legendre(f64 x, f64 degree) {
  if (degree != degree) return 0;
  i64 n = i64(degree);
  if (n < 0) return 0;
  if (__builtin_fabs(x) == 1) return x > 0 || n % 2 == 0 ? 1 : -1;
  if (n == 0) return 1;
  f64 p = 1, q = x;
  for (i64 k = 1; k < n && q == q; ++k) {
    f64 r = (f64(k + k + 1) * x * q - f64(k) * p) / f64(k + 1);
    p = q;
    q = r;
  }
  return q;
}

} // namespace detail

AOTI_SPECIAL2(chebyshev_polynomial_t, detail::chebyshev_t)
AOTI_SPECIAL2(chebyshev_polynomial_u, detail::chebyshev_u)
AOTI_SPECIAL2(chebyshev_polynomial_v, detail::chebyshev_v)
AOTI_SPECIAL2(chebyshev_polynomial_w, detail::chebyshev_w)
AOTI_SPECIAL2(shifted_chebyshev_polynomial_t, detail::shifted_t)
AOTI_SPECIAL2(shifted_chebyshev_polynomial_u, detail::shifted_u)
AOTI_SPECIAL2(shifted_chebyshev_polynomial_v, detail::shifted_v)
AOTI_SPECIAL2(shifted_chebyshev_polynomial_w, detail::shifted_w)
AOTI_SPECIAL2(laguerre_polynomial_l, detail::laguerre)
AOTI_SPECIAL2(legendre_polynomial_p, detail::legendre)

AOTI_INLINE f64 hermite_polynomial_h(f64 x, f64 n) { return detail::hermite(x, n, 2, 512); }
AOTI_INLINE f32 hermite_polynomial_h(f32 x, f32 n) { return f32(detail::hermite(x, n, 2, 128)); }
AOTI_INLINE f64 hermite_polynomial_he(f64 x, f64 n) { return detail::hermite(x, n, 1, 512); }
AOTI_INLINE f32 hermite_polynomial_he(f32 x, f32 n) { return f32(detail::hermite(x, n, 1, 128)); }
AOTI_SPECIAL2_LANES(hermite_polynomial_h)
AOTI_SPECIAL2_LANES(hermite_polynomial_he)

} // namespace special
AOTI_NAMESPACE_END
