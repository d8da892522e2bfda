// Elementary functions of one f64, in namespace aoti::scalar. On processors they are libm's. GPUs without a vendor's
// device library have none, so there they are ours, and the same on every GPU.
//
// Largest errors found of ours (tests/device/scalar.cpp), in ULP, over 200,000 samples against 64-bit mantissas:
//   exp 0.90    exp2 0.97   expm1 1.77  log 0.72    log1p 1.14  log2 1.30   log10 1.70
//   sin 0.76    cos 0.73    tan 1.96    asin 1.84   acos 2.49   atan 1.21   atan2 1.14
//   sinh 2.55   cosh 2.55   asinh 1.80  acosh 2.28  atanh 1.78  pow 1.36    fmod exact
// erf, erfc and lgamma are right to about 1e-15, absolutely.
#pragma once

#include "math_f64_more.h"

AOTI_NAMESPACE_BEGIN
namespace scalar {

#if !AOTI_GPU

#define AOTI_LIBM1(NAME) AOTI_INLINE f64 NAME(f64 x) { return __builtin_##NAME(x); }
#define AOTI_LIBM2(NAME) AOTI_INLINE f64 NAME(f64 x, f64 y) { return __builtin_##NAME(x, y); }
AOTI_LIBM1(exp)
AOTI_LIBM1(exp2)
AOTI_LIBM1(expm1)
AOTI_LIBM1(log)
AOTI_LIBM1(log1p)
AOTI_LIBM1(log2)
AOTI_LIBM1(log10)
AOTI_LIBM1(sin)
AOTI_LIBM1(cos)
AOTI_LIBM1(tan)
AOTI_LIBM1(asin)
AOTI_LIBM1(acos)
AOTI_LIBM1(atan)
AOTI_LIBM1(sinh)
AOTI_LIBM1(cosh)
AOTI_LIBM1(asinh)
AOTI_LIBM1(acosh)
AOTI_LIBM1(atanh)
AOTI_LIBM1(erf)
AOTI_LIBM1(erfc)
AOTI_LIBM1(lgamma)
AOTI_LIBM2(atan2)
AOTI_LIBM2(pow)
AOTI_LIBM2(hypot)
AOTI_LIBM2(fmod)
#undef AOTI_LIBM1
#undef AOTI_LIBM2
// f32 beyond the range of our own reduction.
AOTI_INLINE f32 sinf(f32 x) { return __builtin_sinf(x); }
AOTI_INLINE f32 cosf(f32 x) { return __builtin_cosf(x); }
AOTI_INLINE f32 tanf(f32 x) { return __builtin_tanf(x); }

#else

namespace detail {
constexpr f64 infinity = Limits<f64>::infinity, nan = Limits<f64>::nan;
constexpr f64 half_pi = 0x1.921fb54442d18p+0, half_pi_low = 0x1.1a62633145c07p-54, pi = 0x1.921fb54442d18p+1;

// high + low is the exact or nearly exact value.
struct Twice {
  f64 high, low;
};
AOTI_INLINE Twice quick_sum(f64 a, f64 b) {
  f64 sum = a + b;
  return {sum, b - (sum - a)};
}
AOTI_INLINE Twice exact_sum(f64 a, f64 b) {
  f64 sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}
AOTI_INLINE Twice exact_product(f64 a, f64 b) {
  f64 product = a * b;
  return {product, __builtin_fma(a, b, -product)};
}

// x = quadrant * pi/2 + high + low with |high| <= pi/4.
struct Angle {
  int quadrant;
  f64 high, low;
};

// The fraction of x * 2/pi from those 192 bits of 2/pi that matter for this exponent (Payne and Hanek).
AOTI_NOINLINE Angle reduce_large(f64 x) {
  static const u64 digits[] = {
      0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
      0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
      0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
      0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
      0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};
  u64 bits = bit_cast<u64>(x);
  int exponent = int(bits >> 52 & 0x7ff) - 1075; // x = mantissa * 2^exponent
  u64 mantissa = (bits & 0xfffffffffffff) | 0x10000000000000;
  // Bits of 2/pi above weight 2^(2 - exponent) give multiples of 4.
  int first = exponent - 2 > 0 ? exponent - 2 : 0, word = first / 64, shift = first % 64;
  u64 d[3];
  for (int i = 0; i < 3; ++i)
    d[i] = shift ? digits[word + i] << shift | digits[word + i + 1] >> (64 - shift) : digits[word + i];
  // The 256-bit product's bits below the multiples of 4.
  u64 p[3] = {0, 0, 0};
  u64 carry = 0;
  for (int i = 2; i >= 0; --i) {
    unsigned __int128 product = (unsigned __int128)d[i] * mantissa + carry;
    p[i] = u64(product);
    carry = u64(product >> 64);
  }
  // p / 2^192 * 2^(exponent - first) is the value modulo 4.
  int left = exponent - first; // 2 from exponent 2 on, else as small as -52 and less
  u64 q[3] = {p[0], p[1], p[2]};
  int quadrant;
  if (left > 0) {
    quadrant = int((carry << left | p[0] >> (64 - left)) & 3);
    q[0] = p[0] << left | p[1] >> (64 - left);
    q[1] = p[1] << left | p[2] >> (64 - left);
    q[2] = p[2] << left;
  } else {
    // The whole part is in the carry.
    int right = -left;
    quadrant = int((right < 64 ? carry >> right : 0) & 3);
    u64 high = carry, fraction[3];
    if (right == 0) {
      fraction[0] = p[0], fraction[1] = p[1], fraction[2] = p[2];
    } else {
      fraction[0] = high << (64 - right) | p[0] >> right;
      fraction[1] = p[0] << (64 - right) | p[1] >> right;
      fraction[2] = p[1] << (64 - right) | p[2] >> right;
    }
    q[0] = fraction[0], q[1] = fraction[1], q[2] = fraction[2];
  }
  bool negative = q[0] >> 63;
  if (negative) {
    quadrant += 1;
    q[0] = ~q[0], q[1] = ~q[1], q[2] = ~q[2];
  }
  f64 high = f64(q[0] >> 11) * 0x1p-53, low = f64((q[0] & 0x7ff) << 42 | q[1] >> 22) * 0x1p-106;
  Twice sum = quick_sum(high, low);
  Twice r = exact_product(sum.high, half_pi);
  r.low += sum.high * half_pi_low + sum.low * half_pi;
  r = quick_sum(r.high, r.low);
  return negative ? Angle{quadrant & 3, -r.high, -r.low} : Angle{quadrant & 3, r.high, r.low};
}
AOTI_INLINE Angle reduce(f64 x) {
  f64 a = __builtin_fabs(x);
  if (a < 0x1.921fb54442d18p-1) return {0, x, 0};
  if (a >= 0x1p20) {
    Angle r = reduce_large(a);
    return x < 0 ? Angle{-r.quadrant & 3, -r.high, -r.low} : r;
  }
  auto r = aoti::detail::reduce_angle(Vec<f64, 1>{x});
  return {int(r.quadrant.v) & 3, r.high.v, r.low.v};
}
AOTI_INLINE f64 sine(f64 r, f64 low) { return aoti::detail::sine(Vec<f64, 1>{r}, Vec<f64, 1>{low}).v; }
AOTI_INLINE f64 cosine(f64 r, f64 low) { return aoti::detail::cosine(Vec<f64, 1>{r}, Vec<f64, 1>{low}).v; }
} // namespace detail

AOTI_INLINE f64 exp(f64 x) { return aoti::detail::exp_f64(Vec<f64, 1>{x}).v; }
AOTI_INLINE f64 log(f64 x) { return aoti::detail::log_f64(Vec<f64, 1>{x}).v; }

AOTI_NOINLINE f64 sin(f64 x) {
  if (!(__builtin_fabs(x) <= Limits<f64>::max)) return detail::nan;
  if (x == 0) return x;
  detail::Angle a = detail::reduce(x);
  f64 y = a.quadrant & 1 ? detail::cosine(a.high, a.low) : detail::sine(a.high, a.low);
  return a.quadrant & 2 ? -y : y;
}
AOTI_NOINLINE f64 cos(f64 x) {
  if (!(__builtin_fabs(x) <= Limits<f64>::max)) return detail::nan;
  detail::Angle a = detail::reduce(x);
  f64 y = a.quadrant & 1 ? -detail::sine(a.high, a.low) : detail::cosine(a.high, a.low);
  return a.quadrant & 2 ? -y : y;
}
AOTI_NOINLINE f64 tan(f64 x) {
  if (!(__builtin_fabs(x) <= Limits<f64>::max)) return detail::nan;
  if (x == 0) return x;
  detail::Angle a = detail::reduce(x);
  f64 s = detail::sine(a.high, a.low), c = detail::cosine(a.high, a.low);
  return a.quadrant & 1 ? -c / s : s / c;
}
AOTI_INLINE f32 sinf(f32 x) { return f32(sin(f64(x))); }
AOTI_INLINE f32 cosf(f32 x) { return f32(cos(f64(x))); }
AOTI_INLINE f32 tanf(f32 x) { return f32(tan(f64(x))); }

#define AOTI_OF_LANES(NAME) \
  AOTI_NOINLINE f64 NAME(f64 x) { return aoti::detail::NAME##_f64(Vec<f64, 1>{x}).v; }
#define AOTI_OF_LANES2(NAME) \
  AOTI_NOINLINE f64 NAME(f64 x, f64 y) { return aoti::detail::NAME##_f64(Vec<f64, 1>{x}, Vec<f64, 1>{y}).v; }
AOTI_OF_LANES(expm1)
AOTI_OF_LANES(log1p)
AOTI_OF_LANES(exp2)
AOTI_OF_LANES(log2)
AOTI_OF_LANES(asinh)
AOTI_OF_LANES(acosh)
AOTI_OF_LANES(atanh)
AOTI_OF_LANES2(atan2)
AOTI_OF_LANES2(hypot)
#undef AOTI_OF_LANES
#undef AOTI_OF_LANES2
AOTI_INLINE f64 log10(f64 x) { return log2(x) * 0x1.34413509f79ffp-2; }
AOTI_INLINE f64 atan(f64 x) { return x == 0 ? x : atan2(x, 1.0); }
AOTI_INLINE f64 asin(f64 x) { return x == 0 ? x : atan2(x, __builtin_sqrt((1 - x) * (1 + x))); }
AOTI_INLINE f64 acos(f64 x) { return atan2(__builtin_sqrt((1 - x) * (1 + x)), x); }

AOTI_NOINLINE f64 sinh(f64 x) {
  f64 a = __builtin_fabs(x);
  if (a > 40) {
    f64 half = exp(a * 0.5);
    return __builtin_copysign(half * 0.5 * half, x);
  }
  f64 t = expm1(a);
  return x == 0 ? x : __builtin_copysign(0.5 * (t + t / (t + 1)), x);
}
AOTI_NOINLINE f64 cosh(f64 x) {
  f64 half = exp(__builtin_fabs(x) * 0.5), e = half * half;
  return __builtin_fabs(x) > 40 ? half * 0.5 * half : 0.5 * (exp(__builtin_fabs(x)) + 1 / e);
}
// erf by its series of positive terms (DLMF 7.6.2), erfc from 1 on by the continued fraction (DLMF 7.9.2).
AOTI_NOINLINE f64 erf_series(f64 x) {
  f64 term = x, sum = x, z = 2 * x * x;
  for (int n = 1; n < 200; ++n) {
    term *= z / (2 * n + 1);
    sum += term;
    if (term <= sum * 1e-17) break;
  }
  detail::Twice square = detail::exact_product(x, x);
  return sum * exp(-square.high) * (1 - square.low) * 0x1.20dd750429b6dp+0;
}
AOTI_NOINLINE f64 erfc_fraction(f64 x) {
  f64 f = 0;
  for (int n = x < 2 ? 250 : 80; n >= 1; --n) f = n * 0.5 / (x + f);
  detail::Twice square = detail::exact_product(x, x);
  return exp(-square.high) * (1 - square.low) / ((x + f) * 0x1.c5bf891b4ef6bp+0);
}
AOTI_NOINLINE f64 erfc(f64 x) {
  if (x != x) return x;
  if (x < -6) return 2;
  if (x < 0) return 1 + (x > -2 ? erf_series(-x) : 1 - erfc_fraction(-x));
  return x < 1 ? 1 - erf_series(x) : x > 27 ? 0 : erfc_fraction(x);
}
AOTI_NOINLINE f64 erf(f64 x) {
  f64 a = __builtin_fabs(x);
  if (x != x || x == 0) return x;
  return __builtin_copysign(a < 2 ? erf_series(a) : a > 6 ? 1 : 1 - erfc_fraction(a), x);
}

// log |x| in two parts: with s = f / (2 + f), log(1 + f) = 2 s + s^3 (2/3 + ...), 2 s exact but for its square.
AOTI_INLINE detail::Twice log_twice(f64 x) {
  f64 shift = 0;
  if (x < Limits<f64>::min_positive) x *= 0x1p54, shift = -54;
  i64 bits = bit_cast<i64>(x);
  i64 exponent = (bits - 0x3fe6a09e667f3bcd) >> 52;
  f64 f = bit_cast<f64>(bits - (exponent << 52)) - 1, e = f64(exponent) + shift;
  detail::Twice below = detail::exact_sum(2, f);
  f64 s = f / below.high;
  f64 s_low = (__builtin_fma(-s, below.high, f) - s * below.low) / below.high;
  f64 z = s * s, sum = 0;
  for (int n = 25; n >= 3; n -= 2) sum = 2.0 / n + z * sum;
  detail::Twice r = detail::exact_sum(e * aoti::detail::ln2_high, 2 * s);
  r.low += e * aoti::detail::ln2_low + (2 * s_low + s * z * sum);
  return detail::quick_sum(r.high, r.low);
}
AOTI_NOINLINE f64 pow(f64 x, f64 y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return x + y;
  f64 a = __builtin_fabs(x), whole = __builtin_trunc(y);
  bool integer = whole == y, odd = integer && __builtin_fabs(y) < 0x1p53 && (i64(whole) & 1);
  f64 result;
  if (a == 1) {
    result = 1;
  } else if (a == 0 || a == detail::infinity || __builtin_fabs(y) == detail::infinity) {
    bool grows = (a > 1) == (y > 0);
    result = grows ? detail::infinity : 0;
  } else {
    detail::Twice l = log_twice(a);
    detail::Twice p = detail::exact_product(l.high, y);
    p.low += l.low * y;
    if (p.high > 800)
      result = detail::infinity;
    else if (p.high < -800)
      result = 0;
    else
      result = exp(p.high) * 1;
    if (result > 0 && result < detail::infinity) result += result * p.low;
  }
  if (x < 0 && a != detail::infinity && !integer && __builtin_fabs(y) != detail::infinity) return detail::nan;
  return __builtin_signbit(x) && odd ? -result : result;
}
AOTI_INLINE f64 fmod(f64 x, f64 y) { return aoti::detail::scalar_fmod(x, y); }

// Stirling's series (DLMF 5.11.1) from 12 on, reached by the recurrence; reflected below 1/2.
AOTI_NOINLINE f64 lgamma(f64 x) {
  if (x != x) return x;
  if (x == detail::infinity || x == -detail::infinity) return detail::infinity;
  if (x != 0 && __builtin_fabs(x) < 0x1p-60) return -log(__builtin_fabs(x)); // what is left is below half a unit
  f64 reflected = 0;
  bool negative = x < 0.5;
  if (negative) {
    if (x == __builtin_floor(x)) return x > 0 || x <= 0 ? detail::infinity : x;
    f64 whole = __builtin_rint(x);
    reflected = log(detail::pi / __builtin_fabs(sin(detail::pi * (x - whole))));
    x = 1 - x;
  }
  if (x == 1 || x == 2) return negative ? reflected : 0;
  f64 product = 1;
  for (; x < 12; x += 1) product *= x;
  f64 z = 1 / (x * x);
  f64 series = 1 / x * (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188 - z * (691.0 / 360360 - z / 156))))));
  f64 value = (x - 0.5) * log(x) - x + 0x1.d67f1c864beb5p-1 + series - log(product);
  return negative ? reflected - value : value;
}

#endif

} // namespace scalar
AOTI_NAMESPACE_END
