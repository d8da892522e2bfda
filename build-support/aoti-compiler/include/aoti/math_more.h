// The public elementary functions: f32 ones that work in f64 and round, f64 ones, and what is put together from both.
// Knows formulas only; the kernels are in math_f32.h and math_f64.h. math.h lists the functions and their errors.
#pragma once

#include "math_f32.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

constexpr f64 pi = 0x1.921fb54442d18p+1;

// log2 of an f32 that is not negative, relative error 2^-43: as log_f64, by one series; all of them are normal in f64.
template <int W> AOTI_INLINE Vec<f64, W> log2_for_f32(Vec<f64, W> x) {
  const Split<W> p = split_normal(x);
  const Vec<f64, W> s = p.f / (p.f + 2.0);
  const Vec<f64, W> r = mad(s, horner(s * s, 0x1.71547652b8252p+1, 0x1.ec709dc53a51fp-1, 0x1.2776c2956bf50p-1,
                                      0x1.a61a2d3229672p-2, 0x1.4795930157333p-2, 0x1.21adbe62ac00cp-2), p.e);
  return select(x == 0.0, -Limits<f64>::infinity, select(x < Limits<f64>::infinity, r, x));
}
// The same of any f32, in other units than powers of two.
template <int W> AOTI_INLINE Vec<f64, W> log_for_f32(Vec<f64, W> x, f64 unit) {
  return select(x < 0.0, Limits<f64>::nan, log2_for_f32(x) * unit);
}
// 2^x to 2^-34, of what is no f32 its limit.
template <int W> AOTI_INLINE Vec<f64, W> exp2_for_f32(Vec<f64, W> x) {
  x = select(x > 200.0, 200.0, x);
  x = select(x < -200.0, -200.0, x);
  const Rounded<W> n = round_product(x, 1.0);
  const Vec<f64, W> p = horner(x - n.value, 0x1.ffffffffa6eedp-1, 0x1.62e42fef9cc3cp-1, 0x1.ebfbe0aa3a945p-3, 0x1.c6b08da71da60p-5,
                               0x1.3b29d88d75aa5p-7, 0x1.5d87757c238f2p-10, 0x1.446c9e668735ep-13, 0x1.00c0fb54e0f1cp-16);
  return p * bits_as<f64>(shl<52>(n.integer + 1023));
}
// sin(r) and cos(r), |r| <= pi/4; relative errors 2^-47 and 2^-53.
template <int W> AOTI_INLINE Vec<f64, W> sin_reduced(Vec<f64, W> r, Vec<f64, W> z) {
  return mad(r * z, horner(z, -0x1.5555555552170p-3, 0x1.1111110c7450bp-7, -0x1.a019f91a5b812p-13,
                           0x1.71d75a56a27b4p-19, -0x1.a95a28fabe8fep-26), r);
}
template <int W> AOTI_INLINE Vec<f64, W> cos_reduced(Vec<f64, W> z) {
  Vec<f64, W> p = horner(z, 0x1.5555555552f44p-5, -0x1.6c16c1673bea8p-10, 0x1.a019fa751f6c1p-16,
                         -0x1.27e0120ef3950p-22, 0x1.1bbfcf3852dfdp-29);
  return mad(z, mad(z, p, splat<W>(-0.5)), splat<W>(1.0));
}
template <int W> AOTI_INLINE Vec<f64, W> tan_for_f32(Vec<f64, W> x) {
  Rounded<W> k = reduce_quadrant(x);
  Vec<f64, W> z = k.value * k.value;
  Vec<f64, W> s = sin_reduced(k.value, z), c = cos_reduced(z);
  auto odd = (k.integer & 1) != 0;
  return select(x == 0.0, x, select(odd, -c, s) / select(odd, s, c));
}

// The hyperbolic functions of f32 arguments. Differences that cancel near 0 give way to terms of the series there.
constexpr f64 series_limit = 0x1p-10;
template <int W> AOTI_INLINE Vec<f64, W> sinh_for_f32(Vec<f64, W> x) {
  Vec<f64, W> e = exp2_for_f32(x * log2_e);
  Vec<f64, W> z = x * x, series = mad(x * z, mad(z, splat<W>(1.0 / 120), splat<W>(1.0 / 6)), x);
  return select(x == 0.0, x, select(abs(x) < 0x1p-5, series, (e - 1.0 / e) * 0.5));
}
template <int W> AOTI_INLINE Vec<f64, W> cosh_for_f32(Vec<f64, W> x) {
  Vec<f64, W> e = exp2_for_f32(x * log2_e);
  return (e + 1.0 / e) * 0.5;
}
template <int W> AOTI_INLINE Vec<f64, W> asinh_for_f32(Vec<f64, W> x) {
  Vec<f64, W> a = abs(x);
  Vec<f64, W> series = mad(a * a * a, splat<W>(-1.0 / 6), a);
  return copysign(select(a < series_limit, series, log_for_f32(a + sqrt(mad(a, a, splat<W>(1.0))), kLn2)), x);
}
template <int W> AOTI_INLINE Vec<f64, W> acosh_for_f32(Vec<f64, W> x) {
  return select(x < 1.0, Limits<f64>::nan, log_for_f32(x + sqrt((x - 1.0) * (x + 1.0)), kLn2));
}
template <int W> AOTI_INLINE Vec<f64, W> atanh_for_f32(Vec<f64, W> x) {
  Vec<f64, W> series = mad(x * x * x, splat<W>(1.0 / 3), x);
  Vec<f64, W> y = log_for_f32((1.0 + x) / (1.0 - x), kLn2 / 2);
  return select(x == 0.0, x, select(abs(x) < series_limit, series, y));
}

template <int W> AOTI_INLINE Vec<f64, W> atan_for_f32(Vec<f64, W> x) {
  return copysign(angle_for_f32(abs(x), splat<W>(1.0)), x);
}
template <int W> AOTI_INLINE Vec<f64, W> atan2_for_f32(Vec<f64, W> y, Vec<f64, W> x) {
  Vec<f64, W> a = abs(y), b = abs(x);
  auto both_infinite = (a == Limits<f64>::infinity) & (b == Limits<f64>::infinity);
  auto both_zero = (a == 0.0) & (b == 0.0);
  a = select(both_infinite, 1.0, a);
  b = select(both_infinite | both_zero, 1.0, b);
  Vec<f64, W> angle = angle_for_f32(a, b);
  return copysign(select(signbit(x), pi - angle, angle), y);
}

// erfcx(x) (1 + 2x) as a polynomial in (x - 3) / (x + 3); relative error 2^-30 up to x = 10.3, beyond which f32 has 0.
template <int W> AOTI_INLINE Vec<f64, W> erfc_for_f32(Vec<f64, W> x) {
  Vec<f64, W> a = abs(x);
  a = select(a > 12.0, 12.0, a);
  Vec<f64, W> g = horner((a - 3.0) / (a + 3.0), 0x1.40c522daed594p+0, -0x1.15c08594e5781p-3, -0x1.85a18e6163a0fp-5,
                         0x1.09838742e1792p-3, -0x1.e8894eadd908ep-4, 0x1.17c82ba875aabp-4, -0x1.85bdb422f628ep-6,
                         0x1.4b75ed9d88896p-9, 0x1.ff2bf98bc67f5p-10, -0x1.840cdd5ddbcbep-11, -0x1.7c02645307977p-13,
                         0x1.2ca7873a65d98p-15);
  Vec<f64, W> y = exp2_for_f32(a * a * -log2_e) * g / mad(a, 2.0, splat<W>(1.0));
  return select(x < 0.0, 2.0 - y, y);
}

// erfinv(x) / x in w = -log(1 - x^2), as Giles proposed, with our own fits: below 5 in w (2^-31), above in sqrt(w),
// to 2^-26 for f32 arguments and to 2^-20 for all of f64's, where Newton's method follows.
template <int W> AOTI_INLINE Vec<f64, W> erfinv_of(Vec<f64, W> x, Vec<f64, W> w) {
  Vec<f64, W> central =
      horner(w - 2.5, 0x1.805c5cff6fe7bp+0, 0x1.f91e8972db4dep-3, -0x1.11c3e0c1af379p-8, -0x1.486399c8ba212p-10,
             0x1.c9bb5ced361efp-13, -0x1.4f761938b9485p-18, -0x1.cbd5128646f3ap-19, 0x1.018965307f3e4p-21,
             0x1.1abf93cfb4982p-26, -0x1.7ac197a0924a9p-27, 0x1.e076e331b6844p-32, 0x1.2429383cf1711p-33);
  Vec<f64, W> tail =
      horner(sqrt(w) - 3.0, 0x1.6a9efbdf1ba90p+1, 0x1.006dc4f011e5fp+0, 0x1.35800289b0996p-7, -0x1.f47ec4f2dbdc4p-8,
             0x1.74c1a7e784400p-8, -0x1.d7ba80ad38ed7p-9, 0x1.84b81f330cd87p-10, -0x1.c2d50cc13e514p-15,
             -0x1.42b0d37db6646p-12, 0x1.dc99c107df1fdp-14);
  return x * select(w < 5.0, central, tail);
}
template <int W> AOTI_INLINE Vec<f64, W> erfinv_for_f32(Vec<f64, W> x) {
  Vec<f64, W> y = erfinv_of(x, -log_for_f32((1.0 - x) * (1.0 + x), kLn2));
  y = select(abs(x) == 1.0, copysign(splat<W>(Limits<f64>::infinity), x), y);
  return select(abs(x) > 1.0, Limits<f64>::nan, y);
}
AOTI_NOINLINE f64 erfinv_scalar(f64 x) {
  f64 a = __builtin_fabs(x);
  if (!(a <= 1.0)) return Limits<f64>::nan;
  if (a == 1.0) return __builtin_copysign(Limits<f64>::infinity, x);
  f64 w = -scalar::log((1.0 - a) * (1.0 + a));
  f64 y;
  if (w < 5.0)
    y = erfinv_for_f32(Vec<f64, 1>{a}).v;
  else
    y = a * horner(Vec<f64, 1>{__builtin_sqrt(w) - 4.0}, 0x1.eb7dfc4c382d0p+1, 0x1.026ee54b52554p+0,
                   0x1.502d276864234p-10, -0x1.e1c44a926159fp-11, 0x1.21022fff0bc49p-12, -0x1.b16412edc1c27p-15,
                   0x1.4e6ab96ee9a85p-14, -0x1.2301cdd6adae4p-14, 0x1.499bc5a52cd44p-16, -0x1.5e9c8511af28fp-20).v;
  for (int i = 0; i < 2; ++i) {
    f64 excess = a < 0.5 ? scalar::erf(y) - a : (1.0 - a) - scalar::erfc(y);
    f64 step = excess * 0x1.c5bf891b4ef6bp-1 * scalar::exp(y * y); // times sqrt(pi)/2
    y -= step / (1.0 + y * step);                                    // Halley's correction
  }
  return __builtin_copysign(y, x);
}

template <int W> AOTI_INLINE Vec<f64, W> pow_for_f32(Vec<f64, W> x, Vec<f64, W> y) {
  Vec<f64, W> r = exp2_for_f32(y * log2_for_f32(abs(x)));
  const auto negative = signbit(x);
  if (any(negative)) {
    const auto integer = trunc(y) == y;
    const auto odd = integer & (trunc(y * 0.5) * 2.0 != y);
    r = select(negative & odd, -r, r);
    r = select((x < 0.0) & ~integer & (abs(x) != Limits<f64>::infinity), Limits<f64>::nan, r);
    r = select((x == -1.0) & (abs(y) == Limits<f64>::infinity), 1.0, r);
  }
  return select((x == 1.0) | (y == 0.0), 1.0, r);
}

} // namespace detail

#define AOTI_F32_DIRECT(NAME, KERNEL)                                                                \
  template <int W> AOTI_INLINE Vec<f32, W> NAME(Vec<f32, W> x) { return detail::KERNEL(x); }
#define AOTI_F64_DIRECT(NAME, KERNEL)                                                                \
  template <int W> AOTI_INLINE Vec<f64, W> NAME(Vec<f64, W> x) { return detail::KERNEL(x); }
// Where lanes are not inside of the kernel's range, as libm has it.
#define AOTI_F64_INSIDE(NAME, KERNEL, RANGE)                                                         \
  template <int W> AOTI_INLINE Vec<f64, W> NAME(Vec<f64, W> x) {                                     \
    const Vec<f64, W> y = detail::KERNEL(x);                                                         \
    const auto outside = ~(abs(x) < RANGE);                                                          \
    if (__builtin_expect(any(outside), 0))                                                           \
      return select(outside, lanewise([](f64 v) { return scalar::NAME(v); }, x), y);                 \
    return y;                                                                                        \
  }
#define AOTI_F64_LIBM(NAME)                                                                          \
  template <int W> AOTI_INLINE Vec<f64, W> NAME(Vec<f64, W> x) {                                     \
    return lanewise([](f64 v) { return scalar::NAME(v); }, x);                                   \
  }
#define AOTI_F64_LIBM2(NAME)                                                                         \
  template <int W> AOTI_INLINE Vec<f64, W> NAME(Vec<f64, W> x, Vec<f64, W> y) {                      \
    return lanewise([](f64 v, f64 u) { return scalar::NAME(v, u); }, x, y);                      \
  }
// f32 by a formula in f64: `v` is the argument's f64 vector, of some width inside the lambda.
#define AOTI_F32_THROUGH(NAME, FORMULA)                                                              \
  template <int W> AOTI_INLINE Vec<f32, W> NAME(Vec<f32, W> x) {                                     \
    return detail::through_f64([](auto v) { return FORMULA; }, x);                                   \
  }

AOTI_F32_DIRECT(exp, exp_f32)
AOTI_F32_DIRECT(log, log_f32)
AOTI_F32_DIRECT(log1p, log1p_f32)
AOTI_F32_DIRECT(tanh, tanh_f32)
AOTI_F32_DIRECT(erf, erf_f32)
AOTI_F32_DIRECT(sin, sine_f32<0>)
AOTI_F32_DIRECT(cos, sine_f32<1>)
AOTI_F64_DIRECT(exp, exp_f64)
AOTI_F64_DIRECT(expm1, expm1_f64)
AOTI_F64_DIRECT(log, log_f64)
AOTI_F64_DIRECT(log1p, log1p_f64)
AOTI_F64_DIRECT(exp2, exp2_f64)
AOTI_F64_DIRECT(log2, log2_f64)
AOTI_F64_DIRECT(asinh, asinh_f64)
AOTI_F64_DIRECT(acosh, acosh_f64)
AOTI_F64_DIRECT(atanh, atanh_f64)
AOTI_F64_INSIDE(sin, sine_f64<0>, 0x1p20)
AOTI_F64_INSIDE(cos, sine_f64<1>, 0x1p20)
AOTI_F64_INSIDE(tan, tan_f64, 0x1p20)
AOTI_F64_INSIDE(sinh, sinh_f64, 700.0)
AOTI_F64_INSIDE(cosh, cosh_f64, 700.0)
AOTI_F64_LIBM(log10)
AOTI_F64_LIBM(erf)
AOTI_F64_LIBM(erfc)
AOTI_F64_LIBM2(pow)

template <int W> AOTI_INLINE Vec<f32, W> exp2(Vec<f32, W> x) {
  Vec<f32, W> c = select(x > 129.0f, 129.0f, x);
  c = select(c < -151.0f, -151.0f, c);
  auto n = detail::round_product(c, 1.0f);
  return detail::scale(detail::exp_reduced((c - n.value) * 0x1.62e430p-1f), n.integer);
}
AOTI_F32_DIRECT(expm1, expm1_f32)
AOTI_F32_DIRECT(log2, log2_f32)
AOTI_F32_THROUGH(log10, detail::log_for_f32(v, 0x1.34413509f79ffp-2))
AOTI_F32_THROUGH(erfc, detail::erfc_for_f32(v))
AOTI_F32_THROUGH(erfinv, detail::erfinv_for_f32(v))

template <int W> AOTI_INLINE Vec<f32, W> tan(Vec<f32, W> x) {
  Vec<f32, W> y = detail::through_f64([](auto v) { return detail::tan_for_f32(v); }, x);
  auto large = ~(abs(x) < 0x1p20f);
  if (__builtin_expect(any(large), 0)) y = select(large, lanewise([](f32 v) { return scalar::tanf(v); }, x), y);
  return y;
}

AOTI_F32_THROUGH(asin, copysign(detail::angle_for_f32(abs(v), sqrt((1.0 - v) * (1.0 + v))), v))
AOTI_F32_THROUGH(acos, detail::atan2_for_f32(sqrt((1.0 - v) * (1.0 + v)), v))
AOTI_F32_THROUGH(atan, detail::atan_for_f32(v))

AOTI_F32_THROUGH(cosh, detail::cosh_for_f32(v))
AOTI_F32_THROUGH(sinh, detail::sinh_for_f32(v))
AOTI_F32_THROUGH(asinh, detail::asinh_for_f32(v))
AOTI_F32_THROUGH(acosh, detail::acosh_for_f32(v))
AOTI_F32_THROUGH(atanh, detail::atanh_for_f32(v))

template <int W> AOTI_INLINE Vec<f64, W> asin(Vec<f64, W> x) {
  return select(x == 0.0, x, copysign(detail::angle_f64(abs(x), sqrt((1.0 - x) * (1.0 + x))), x));
}
template <int W> AOTI_INLINE Vec<f64, W> acos(Vec<f64, W> x) {
  return detail::atan2_f64(sqrt((1.0 - x) * (1.0 + x)), x);
}
template <int W> AOTI_INLINE Vec<f64, W> atan(Vec<f64, W> x) { return detail::atan2_f64(x, splat<W>(1.0)); }
template <int W> AOTI_INLINE Vec<f64, W> atan2(Vec<f64, W> y, Vec<f64, W> x) { return detail::atan2_f64(y, x); }
template <int W> AOTI_INLINE Vec<f64, W> hypot(Vec<f64, W> x, Vec<f64, W> y) { return detail::hypot_f64(x, y); }

template <int W> AOTI_INLINE Vec<f32, W> atan2(Vec<f32, W> y, Vec<f32, W> x) {
  return detail::through_f64([](auto a, auto b) { return detail::atan2_for_f32(a, b); }, y, x);
}
template <int W> AOTI_INLINE Vec<f32, W> pow(Vec<f32, W> x, Vec<f32, W> y) {
  return detail::through_f64([](auto a, auto b) { return detail::pow_for_f32(a, b); }, x, y);
}
template <int W> AOTI_INLINE Vec<f32, W> hypot(Vec<f32, W> x, Vec<f32, W> y) {
  Vec<f32, W> r = detail::through_f64([](auto a, auto b) { return sqrt(a * a + b * b); }, x, y);
  return select(isinf(x) | isinf(y), Limits<f32>::infinity, r);
}

// PyTorch's integer powers: a negative exponent gives 1 for base 1, +-1 for base -1, and 0 for all else.
template <class T, int W, enable_if<!is_float<T>> = 0> AOTI_INLINE Vec<T, W> pow(Vec<T, W> x, Vec<T, W> y) {
  return lanewise(
      [](T base, T exponent) {
        if (is_signed<T> && exponent < T(0)) {
          if (base == T(1)) return T(1);
          if (base == T(-1)) return T(exponent & 1 ? -1 : 1);
          return T(0);
        }
        u64 result = 1, square = u64(base);
        for (u64 e = u64(exponent); e != 0; e >>= 1, square *= square)
          if (e & 1) result *= square;
        return T(result);
      },
      x, y);
}

template <int W> AOTI_INLINE Vec<f64, W> erfinv(Vec<f64, W> x) {
  return lanewise([](f64 v) { return detail::erfinv_scalar(v); }, x);
}
template <int W> AOTI_INLINE Vec<f64, W> tanh(Vec<f64, W> x) {
  Vec<f64, W> a = abs(x);
  Vec<f64, W> c = select(a > 20.0, 20.0, a);
  Vec<f64, W> t = detail::expm1_f64(c + c);
  return copysign(t / (t + 2.0), x);
}
// a / (1 + e^-x)
template <class T, int W> AOTI_INLINE Vec<T, W> logistic(Vec<T, W> a, Vec<T, W> x) {
  if constexpr (is_same<T, f32>)
    return detail::quotient(a * 0.5f, detail::logistic_divisor(x));
  else
    return detail::quotient(a, T(1) + exp(-x));
}
template <class T, int W> AOTI_INLINE Vec<T, W> sigmoid(Vec<T, W> x) { return logistic(splat<W>(T(1)), x); }
template <class T, int W> AOTI_INLINE Vec<T, W> silu(Vec<T, W> x) { return logistic(x, x); }
// log(1 + e^x) without overflow.
template <class T, int W> AOTI_INLINE Vec<T, W> softplus(Vec<T, W> x) {
  return maximum(x, splat<W, T>(0)) + log1p(exp(-abs(x)));
}
template <class T, int W> AOTI_INLINE Vec<T, W> gelu(Vec<T, W> x) {
  return x * T(0.5) * (erf(x * T(0x1.6a09e667f3bcdp-1)) + T(1));
}
template <class T, int W> AOTI_INLINE Vec<T, W> gelu_tanh(Vec<T, W> x) {
  Vec<T, W> inner = (x + x * x * x * T(0.044715)) * T(0x1.988453c6b0c93p-1); // sqrt(2 / pi)
  return x * T(0.5) * (tanh(inner) + T(1));
}
AOTI_WITH_SCALAR(atan2)
AOTI_WITH_SCALAR(pow)
AOTI_WITH_SCALAR(hypot)
#undef AOTI_F32_DIRECT
#undef AOTI_F64_DIRECT
#undef AOTI_F64_INSIDE
#undef AOTI_F64_LIBM
#undef AOTI_F64_LIBM2
#undef AOTI_F32_THROUGH

AOTI_NAMESPACE_END
