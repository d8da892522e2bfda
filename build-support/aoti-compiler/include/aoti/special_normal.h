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

// As erfc of the type is: f32's is a vector's.
template <int W> AOTI_INLINE Vec<f64, W> ndtr_for_f32(Vec<f64, W> x) {
  return aoti::detail::erfc_for_f32(x * -sqrt_half) * 0.5;
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

// To f32's precision, of every p of f32: erfinv(2p - 1) in w = -log(4 p (1 - p)), as of erfinv (math_more.h), with a fit of its own
// for w beyond that one's (2^-30).
template <int W> AOTI_INLINE Vec<f64, W> ndtri_for_f32(Vec<f64, W> p) {
  const Vec<f64, W> w = -log(p * (1.0 - p) * 4.0), root = sqrt(w);
  const Vec<f64, W> x = p * 2.0 - 1.0;
  Vec<f64, W> y = aoti::detail::erfinv_of(x, w);
  const Vec<f64, W> far = aoti::detail::horner(
      root - 7.0, 0x1.b79e0497b5823p+2, 0x1.02335281f482ap+0, -0x1.0cc512f5173e8p-11, 0x1.a673e366adba6p-18,
      0x1.94eedf8d31ac8p-18, -0x1.b42ac5c61b2b2p-20, 0x1.5b5c7a04d43d1p-22, -0x1.c725ac071c601p-25,
      0x1.d3f113e7dca71p-28, -0x1.6cc4c272975a9p-30, 0x1.8a627386393dbp-32, -0x1.656ccefa4ee66p-35);
  y = select(root > 4.0, copysign(far, x), y) * sqrt_2;
  y = select(p == 0.0, -Limits<f64>::infinity, select(p == 1.0, Limits<f64>::infinity, y));
  return select((p >= 0.0) & (p <= 1.0), y, Limits<f64>::nan);
}

template <int W> AOTI_INLINE Vec<f64, W> entr_of(Vec<f64, W> x) {
  const Vec<f64, W> y = select(x > 0.0, -x * log(x), select(x == 0.0, splat<W>(0.0), -Limits<f64>::infinity));
  return select(isnan(x), x, y);
}
template <int W> AOTI_INLINE Vec<f64, W> xlogy_of(Vec<f64, W> x, Vec<f64, W> y) {
  return select(isnan(y), y, select(x == 0.0, 0.0, x * log(y)));
}
template <int W> AOTI_INLINE Vec<f64, W> xlog1py_of(Vec<f64, W> x, Vec<f64, W> y) {
  return select(isnan(y), y, select(x == 0.0, 0.0, x * log1p(y)));
}

template <int W> AOTI_INLINE Vec<f64, W> logaddexp_of(Vec<f64, W> x, Vec<f64, W> y) {
  const Vec<f64, W> sum = select((x > y) | isnan(x), x, y) + log1p(exp(-abs(x - y)));
  return select((x == y) & isinf(x), x, sum);
}
template <int W> AOTI_INLINE Vec<f64, W> logaddexp2_of(Vec<f64, W> x, Vec<f64, W> y) {
  const Vec<f64, W> sum = select((x > y) | isnan(x), x, y) + log1p(exp2(-abs(x - y))) * 0x1.71547652b82fep+0;
  return select((x == y) & isinf(x), x, sum);
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

AOTI_SPECIAL1_BY_TYPE(ndtr, detail::ndtr_f64, detail::ndtr_for_f32)
AOTI_SPECIAL1_BY_TYPE(ndtri, detail::ndtri_f64, detail::ndtri_for_f32)
AOTI_SPECIAL1(log_ndtr, detail::log_ndtr_f64)
AOTI_SPECIAL1(erfcx, detail::erfcx_f64)
AOTI_SPECIAL1_OF_LANES(entr, detail::entr_of)
AOTI_SPECIAL2_OF_LANES(xlogy, detail::xlogy_of)
AOTI_SPECIAL2_OF_LANES(xlog1py, detail::xlog1py_of)
AOTI_SPECIAL2_OF_LANES(logaddexp, detail::logaddexp_of)
AOTI_SPECIAL2_OF_LANES(logaddexp2, detail::logaddexp2_of)

// The product with pi is rounded to the type, as PyTorch does: it decides where the zeros fall.
template <class T, int W> AOTI_INLINE Vec<T, W> sinc(Vec<T, W> x) {
  const Vec<T, W> y = x * T(0x1.921fb54442d18p+1);
  return select(x == T(0), T(1), sin(y) / y);
}
template <class T> AOTI_INLINE enable_if<is_float<T>, T> sinc(T x) { return sinc(Vec<T, 1>{x}).v; }

template <class T, int W> AOTI_INLINE Vec<T, W> nextafter(Vec<T, W> x, Vec<T, W> y) {
  using Bits = signed_of<T>;
  const auto towards_larger = (x < y) == (x > T(0));
  const Vec<T, W> step = bits_as<T>(bits_as<Bits>(x) + select(towards_larger, splat<W>(Bits(1)), Bits(-1)));
  const Vec<T, W> from_zero = copysign(bits_as<T>(splat<W>(Bits(1))), y);
  return select(isnan(x) | isnan(y), x + y, select(x == y, y, select(x == T(0), from_zero, step)));
}
template <class T> AOTI_INLINE enable_if<is_float<T>, T> nextafter(T x, T y) {
  return nextafter(Vec<T, 1>{x}, Vec<T, 1>{y}).v;
}
AOTI_SPECIAL2_WITH_SCALAR(nextafter)

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
