// The normal distribution's functions and small elementary ones: ndtr, ndtri, log_ndtr, erfcx, entr, sinc, xlogy,
// logaddexp, heaviside, nextafter, frexp, ldexp, gcd, lcm. Edge values are PyTorch's.
#pragma once

#include "special_base.h"

AOTI_NAMESPACE_BEGIN
namespace special {
namespace detail {

constexpr f64 sqrt_half = 0x1.6a09e667f3bcdp-1, sqrt_2 = 0x1.6a09e667f3bcdp+0, sqrt_pi = 0x1.c5bf891b4ef6bp+0;

// e^(x^2) erfc(x). The square is split, so that its rounding is not magnified by the exponential; from 25 on the
// asymptotic series (DLMF 7.12.1).
AOTI_NOINLINE f64 erfcx_f64(f64 x) {
  if (x != x) return x;
  if (x < -26.7) return Limits<f64>::infinity;
  if (x < 25) {
    f64 square = x * x, rest = __builtin_fma(x, x, -square);
    return scalar::exp(square) * (1 + rest) * scalar::erfc(x);
  }
  f64 z = 1 / (2 * x * x);
  return (1 - z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z)))) / (x * sqrt_pi);
}

AOTI_INLINE f64 ndtr_f64(f64 x) { return 0.5 * scalar::erfc(-x * sqrt_half); }
AOTI_NOINLINE f64 log_ndtr_f64(f64 x) {
  f64 t = x * sqrt_half;
  if (x < -1) return scalar::log(erfcx_f64(-t) / 2) - t * t;
  return scalar::log1p(-scalar::erfc(t) / 2);
}

// z with erfc(z) = q, 0 < q <= 1: a fit (math_more.h) or, for small q, the asymptotic form, then Halley's method.
AOTI_NOINLINE f64 erfc_inverse(f64 q) {
  f64 y, log_q = scalar::log(q);
  if (q > 1e-6)
    y = aoti::detail::erfinv_for_f32(Vec<f64, 1>{1 - q}).v;
  else {
    y = __builtin_sqrt(-log_q);
    for (int i = 0; i < 4; ++i) y = __builtin_sqrt(-log_q - scalar::log(y * sqrt_pi));
  }
  for (int i = 0; i < 4; ++i) {
    f64 step = (scalar::erfc(y) - q) * (sqrt_pi / 2) * scalar::exp(y * y);
    y += step / (1 - y * step);
  }
  return y;
}
AOTI_NOINLINE f64 ndtri_f64(f64 p) {
  if (p == 0) return -Limits<f64>::infinity;
  if (p == 1) return Limits<f64>::infinity;
  if (!(p > 0 && p < 1)) return Limits<f64>::nan;
  if (p > 0.25 && p < 0.75) return sqrt_2 * aoti::detail::erfinv_scalar(2 * p - 1);
  return p < 0.5 ? -sqrt_2 * erfc_inverse(2 * p) : sqrt_2 * erfc_inverse(2 * (1 - p));
}

AOTI_NOINLINE f64 entr_f64(f64 x) {
  if (x != x) return x;
  return x > 0 ? -x * scalar::log(x) : x == 0 ? 0 : -Limits<f64>::infinity;
}
AOTI_NOINLINE f64 sinc_f64(f64 x) {
  if (x == 0) return 1;
  f64 y = x * 0x1.921fb54442d18p+1;
  return scalar::sin(y) / y;
}
AOTI_NOINLINE f64 xlogy_f64(f64 x, f64 y) { return y != y ? y : x == 0 ? 0 : x * scalar::log(y); }
AOTI_NOINLINE f64 xlog1py_f64(f64 x, f64 y) { return y != y ? y : x == 0 ? 0 : x * scalar::log1p(y); }

AOTI_NOINLINE f64 logaddexp_f64(f64 x, f64 y) {
  if (x == y && __builtin_isinf(x)) return x;
  return (x > y || x != x ? x : y) + scalar::log1p(scalar::exp(-__builtin_fabs(x - y)));
}
AOTI_NOINLINE f64 logaddexp2_f64(f64 x, f64 y) {
  if (x == y && __builtin_isinf(x)) return x;
  f64 power = scalar::exp2(-__builtin_fabs(x - y));
  return (x > y || x != x ? x : y) + scalar::log1p(power) * 0x1.71547652b82fep+0;
}

template <class T> AOTI_INLINE u64 magnitude(T x) { return x < T(0) ? 0 - u64(x) : u64(x); }
AOTI_NOINLINE u64 gcd_u64(u64 a, u64 b) {
  while (b != 0) {
    u64 r = a % b;
    a = b;
    b = r;
  }
  return a;
}
// 0 if either is 0; wraps when the multiple does not fit.
AOTI_INLINE u64 lcm_u64(u64 a, u64 b) { return a == 0 || b == 0 ? 0 : a / gcd_u64(a, b) * b; }

} // namespace detail

AOTI_SPECIAL1(ndtr, detail::ndtr_f64)
AOTI_SPECIAL1(ndtri, detail::ndtri_f64)
AOTI_SPECIAL1(log_ndtr, detail::log_ndtr_f64)
AOTI_SPECIAL1(erfcx, detail::erfcx_f64)
AOTI_SPECIAL1(entr, detail::entr_f64)
AOTI_SPECIAL2(xlogy, detail::xlogy_f64)
AOTI_SPECIAL2(xlog1py, detail::xlog1py_f64)
AOTI_SPECIAL2(logaddexp, detail::logaddexp_f64)
AOTI_SPECIAL2(logaddexp2, detail::logaddexp2_f64)

AOTI_INLINE f64 sinc(f64 x) { return detail::sinc_f64(x); }
// The product with pi is rounded to f32, as PyTorch does: it decides where the zeros fall.
AOTI_INLINE f32 sinc(f32 x) {
  if (x == 0) return 1;
  f32 y = x * 0x1.921fb6p+1f;
  return f32(scalar::sin(f64(y)) / f64(y));
}
template <class T, int W> AOTI_INLINE Vec<T, W> sinc(Vec<T, W> x) {
  return lanewise([](T v) { return sinc(v); }, x);
}

#if AOTI_GPU
template <class T> AOTI_INLINE T step_towards(T x, T y) {
  using U = unsigned_of<T>;
  if (x != x || y != y) return x + y;
  if (x == y) return y;
  if (x == T(0)) return __builtin_copysign(bit_cast<T>(U(1)), y);
  return bit_cast<T>(U(bit_cast<U>(x) + ((x < y) == (x > T(0)) ? U(1) : U(-1))));
}
AOTI_INLINE f32 nextafter(f32 x, f32 y) { return step_towards(x, y); }
AOTI_INLINE f64 nextafter(f64 x, f64 y) { return step_towards(x, y); }
#else
AOTI_INLINE f32 nextafter(f32 x, f32 y) { return __builtin_nextafterf(x, y); }
AOTI_INLINE f64 nextafter(f64 x, f64 y) { return __builtin_nextafter(x, y); }
#endif
AOTI_SPECIAL2_LANES(nextafter)

template <class T> AOTI_INLINE enable_if<is_float<T>, T> frexp(T x, i32 &exponent) {
  int e = 0;
  T mantissa;
#if AOTI_GPU
  using U = unsigned_of<T>;
  constexpr int digits = sizeof(T) == 4 ? 23 : 52, bias = sizeof(T) == 4 ? 126 : 1022;
  T normal = __builtin_fabs(x) < Limits<T>::min_positive ? x * T(U(1) << digits) : x;
  if (x == T(0) || !__builtin_isfinite(x)) {
    exponent = 0;
    return x;
  }
  U bits = bit_cast<U>(normal);
  e = int(bits >> digits & (2 * bias + 3)) - bias - (normal == x ? 0 : digits);
  mantissa = bit_cast<T>(U((bits & ~(U(2 * bias + 3) << digits)) | U(bias) << digits));
  exponent = e;
  return mantissa;
#else
  if constexpr (is_same<T, f32>)
    mantissa = __builtin_frexpf(x, &e);
  else
    mantissa = __builtin_frexp(x, &e);
  exponent = __builtin_isfinite(x) ? e : 0;
  return mantissa;
#endif
}
// The two results of frexp apart, the exponent as a number of x's type.
template <class T, int W> AOTI_INLINE Vec<T, W> frexp_mantissa(Vec<T, W> x) {
  return lanewise([](T v) { i32 e; return frexp(v, e); }, x);
}
template <class T, int W> AOTI_INLINE Vec<T, W> frexp_exponent(Vec<T, W> x) {
  return lanewise([](T v) { i32 e; frexp(v, e); return T(e); }, x);
}
template <class T, int W> AOTI_INLINE Vec<T, W> frexp(Vec<T, W> x, Vec<i32, W> &exponent) {
  exponent = lanewise([](T v) { i32 e; frexp(v, e); return e; }, x);
  return lanewise([](T v) { i32 e; return frexp(v, e); }, x);
}

// x * 2^n by a power that may itself be infinite or zero, as in PyTorch.
template <class T, int W> AOTI_INLINE Vec<T, W> ldexp(Vec<T, W> x, Vec<T, W> n) { return x * exp2(n); }
template <class T> AOTI_INLINE enable_if<is_float<T>, T> ldexp(T x, T n) { return x * exp2(Vec<T, 1>{n}).v; }

// 0 below zero and for NaN, 1 above, y at zero.
template <class T, int W> AOTI_INLINE Vec<T, W> heaviside(Vec<T, W> x, Vec<T, W> y) {
  return select(x == T(0), y, cast<T>(x > T(0)));
}
AOTI_INLINE f32 heaviside(f32 x, f32 y) { return x == 0 ? y : f32(x > 0); }
AOTI_INLINE f64 heaviside(f64 x, f64 y) { return x == 0 ? y : f64(x > 0); }

// For every integer type. Not templates, so that they never compete with the vector forms.
#define AOTI_INTEGER2(T)                                                                             \
  AOTI_INLINE T gcd(T a, T b) { return T(detail::gcd_u64(detail::magnitude(a), detail::magnitude(b))); } \
  AOTI_INLINE T lcm(T a, T b) { return T(detail::lcm_u64(detail::magnitude(a), detail::magnitude(b))); } \
  AOTI_INLINE T heaviside(T x, T y) { return x == T(0) ? y : T(x > T(0)); }
AOTI_INTEGER2(i8)
AOTI_INTEGER2(i16)
AOTI_INTEGER2(i32)
AOTI_INTEGER2(i64)
AOTI_INTEGER2(u8)
AOTI_INTEGER2(u16)
AOTI_INTEGER2(u32)
AOTI_INTEGER2(u64)
#undef AOTI_INTEGER2
template <class T, int W> AOTI_INLINE Vec<T, W> gcd(Vec<T, W> a, Vec<T, W> b) {
  return lanewise([](T x, T y) { return gcd(x, y); }, a, b);
}
template <class T, int W> AOTI_INLINE Vec<T, W> lcm(Vec<T, W> a, Vec<T, W> b) {
  return lanewise([](T x, T y) { return lcm(x, y); }, a, b);
}

} // namespace special
AOTI_NAMESPACE_END
