// The f32 functions that kernels spend their time in, on f32 lanes: exp, log, tanh, sigmoid, erf, sin and cos.
// Polynomials are minimax fits by Remez exchange; error bounds stand beside them.
#pragma once

#include "scalar.h"
#if AOTI_GPU && !defined(AOTI_EMULATED)
#include "gpu/device.h"
#endif

AOTI_NAMESPACE_BEGIN

namespace detail {

template <int W> struct RoundedF32 {
  Vec<f32, W> value;
  Vec<i32, W> integer;
};
template <int W> AOTI_INLINE RoundedF32<W> round_product(Vec<f32, W> x, f32 factor) {
  constexpr f32 magic = 0x1.8p23f;
  Vec<f32, W> shifted = mad(x, factor, splat<W>(magic));
  return {shifted - magic, bits_as<i32>(shifted) - 0x4b400000};
}

// p * 2^n, n in -250..250.
template <int W> AOTI_INLINE Vec<f32, W> scale(Vec<f32, W> p, Vec<i32, W> n) {
  Vec<i32, W> first = shr<1>(n);
  Vec<i32, W> second = n - first;
  return p * bits_as<f32>(shl<23>(first + 127)) * bits_as<f32>(shl<23>(second + 127));
}
template <int W> AOTI_INLINE Vec<f32, W> scale(Vec<f32, W> p, RoundedF32<W> n) {
#if AOTI_AVX512
  // One instruction, which rounds as the last of the two products does.
  if constexpr (W == 16) return {__builtin_ia32_scalefps512_mask(p.v, n.value.v, p.v, u16(-1), 4)};
#endif
  return scale(p, n.integer);
}

// e^r - 1 for |r| <= ln(2)/2, absolute error 2^-28.
template <int W> AOTI_INLINE Vec<f32, W> expm1_reduced(Vec<f32, W> r) {
  Vec<f32, W> q = horner(r, 0x1.000000p-1f, 0x1.555486p-3f, 0x1.555450p-5f, 0x1.12414ap-7f, 0x1.6dbedap-10f);
  return mad(q, r * r, r);
}
template <int W> AOTI_INLINE Vec<f32, W> exp_reduced(Vec<f32, W> r) { return expm1_reduced(r) + 1.0f; }

// e^x for x in -104..89, or NaN.
template <int W> AOTI_INLINE Vec<f32, W> exp_inside(Vec<f32, W> x) {
  RoundedF32<W> n = round_product(x, 0x1.715476p+0f);
  Vec<f32, W> r = mad(n.value, -0x1.7f7d1cp-20f, mad(n.value, -0x1.62e400p-1f, x));
  return scale(exp_reduced(r), n);
}

template <int W> AOTI_INLINE Vec<f32, W> exp_f32(Vec<f32, W> x) {
#if AOTI_FUNCTION_UNITS
  // 2^n 2^r, n a whole number within the exponents of normal numbers; what is beyond them overflows with 2^r.
  return lanewise(
      [](f32 v) {
        constexpr f32 magic = 0x1.8p23f;
        const f32 inside = __builtin_fminf(__builtin_fmaxf(v, -87.0f), 88.0f);
        const f32 shifted = __builtin_fmaf(inside, 0x1.715476p+0f, magic);
        const f32 r = __builtin_fmaf(v, 0x1.4ae0cp-26f, __builtin_fmaf(v, 0x1.715476p+0f, magic - shifted));
        u32 power;
        __builtin_memcpy(&power, &shifted, 4);
        power = (power << 23) + 0x3f800000u;
        f32 scale;
        __builtin_memcpy(&scale, &power, 4);
        return unit_exp2(r) * scale;
      },
      x);
#else
  x = smaller(splat<W>(89.0f), x);
  // Not by way of a number below the normal ones: masked scores are -inf, and some processors take a hundred cycles for each.
  const auto nothing = x < -104.0f;
  return select(nothing, 0.0f, exp_inside(select(nothing, 0.0f, x)));
#endif
}

// e^x - 1 = 2^n (e^r - 1) + (2^n - 1), of half the power, so that it is a number where the result is one.
template <int W> AOTI_INLINE Vec<f32, W> expm1_f32(Vec<f32, W> x) {
  const Vec<f32, W> c = larger(splat<W>(-18.0f), smaller(splat<W>(89.0f), x));
  const RoundedF32<W> n = round_product(c, 0x1.715476p+0f);
  const Vec<f32, W> r = mad(n.value, -0x1.7f7d1cp-20f, mad(n.value, -0x1.62e400p-1f, c));
  const Vec<f32, W> half_power = bits_as<f32>(shl<23>(n.integer + 126));
  return select(x == 0.0f, x, mad(expm1_reduced(r), half_power, half_power - 0.5f) * 2.0f);
}

// e^x for x up to 0, or NaN; zero for what would be below the normal numbers: a weight beside one that is 1, of which nothing is left
// in any sum.
template <int W> AOTI_INLINE Vec<f32, W> exp_of_weight(Vec<f32, W> x) {
#if AOTI_AVX512 || AOTI_FUNCTION_UNITS
  return exp_f32(x);
#else
  const Vec<f32, W> y = larger(splat<W>(-88.0f), x);
  const RoundedF32<W> n = round_product(y, 0x1.715476p+0f);
  const Vec<f32, W> r = mad(n.value, -0x1.7f7d1cp-20f, mad(n.value, -0x1.62e400p-1f, y));
  return exp_reduced(r) * bits_as<f32>(shl<23>(n.integer + 127));
#endif
}

// (1 + e^-x) / 2, and infinity for x below -89.1: what logistic functions divide by. Half of it, so that all of these are powers of
// two that are normal numbers, or zero, or infinity; more than 87 is as much as 87.
template <int W> AOTI_INLINE Vec<f32, W> logistic_divisor(Vec<f32, W> x) {
#if AOTI_FUNCTION_UNITS
  return mad(exp_f32(-x), 0.5f, splat<W>(0.5f));
#else
  const Vec<f32, W> y = -larger(splat<W>(-89.5f), smaller(splat<W>(87.0f), x));
  const RoundedF32<W> n = round_product(y, 0x1.715476p+0f);
  const Vec<f32, W> r = mad(n.value, -0x1.7f7d1cp-20f, mad(n.value, -0x1.62e400p-1f, y));
  return mad(exp_reduced(r), bits_as<f32>(shl<23>(n.integer + 126)), splat<W>(0.5f));
#endif
}

// a / b for b from 1 on. By units for functions with an error of 2 ULP, and zero for b beyond 2^126.
template <class T, int W> AOTI_INLINE Vec<T, W> quotient(Vec<T, W> a, Vec<T, W> b) {
#if AOTI_FUNCTION_UNITS
  if constexpr (is_same<T, f32>) return a * lanewise([](f32 v) { return unit_reciprocal(v); }, b);
#endif
  return a / b;
}

// x = (1 + f) 2^e with 1 + f in [sqrt(1/2), sqrt(2)), and log(1 + f) = f + low: low = -f^2/2 + f^3 q(f), error of the fit 2^-27 f^2.
template <int W> struct LogF32 {
  Vec<f32, W> e, f, square, q;
};
template <int W> AOTI_INLINE LogF32<W> log_parts(Vec<f32, W> x) {
  auto tiny = x < Limits<f32>::min_positive;
  Vec<i32, W> bits = bits_as<i32>(select(tiny, x * 0x1p23f, x));
  Vec<i32, W> exponent = shr<23>(bits - 0x3f3504f3);
  Vec<f32, W> f = bits_as<f32>(bits - shl<23>(exponent)) - 1.0f;
  Vec<f32, W> e = convert<f32>(exponent);
  e = select(tiny, e - 23.0f, e);
  Vec<f32, W> q = horner(f, 0x1.55554ap-2f, -0x1.000220p-2f, 0x1.99a5a4p-3f, -0x1.5478a8p-3f, 0x1.226d46p-3f,
                         -0x1.0cde6ap-3f, 0x1.07d6ccp-3f, -0x1.4207p-4f);
  return {e, f, f * f, q};
}
template <int W> AOTI_INLINE Vec<f32, W> log_f32(Vec<f32, W> x) {
  const LogF32<W> p = log_parts(x);
  Vec<f32, W> low = mad(p.square * p.f, p.q, mad(p.e, 0x1.7f7d1cp-20f, p.square * -0.5f));
  return log_edges(x, mad(p.e, splat<W>(0x1.62e400p-1f), p.f + low));
}
// Powers of 2 come out exact: f is 0.
template <int W> AOTI_INLINE Vec<f32, W> log2_f32(Vec<f32, W> x) {
  const LogF32<W> p = log_parts(x);
  const Vec<f32, W> low = mad(p.square * p.f, p.q, p.square * -0.5f);
  const Vec<f32, W> fraction = mad(p.f, 0x1.715476p+0f, mad(p.f, 0x1.4ae0c0p-26f, low * 0x1.715476p+0f));
  return log_edges(x, p.e + fraction);
}

// log(1 + x): the rounding of 1 + x is made good to first order.
template <int W> AOTI_INLINE Vec<f32, W> log1p_f32(Vec<f32, W> x) {
  Vec<f32, W> u = x + 1.0f;
  Vec<f32, W> r = log_f32(u) + (x - (u - 1.0f)) / u;
  return select((u == 1.0f) | (u == Limits<f32>::infinity) | (u == 0.0f), select(u == 0.0f, log_f32(u), x), r);
}

// Below 0.625, x + x^3 p(x^2), error 2^-28; above, 1 - 2 / (e^2x + 1).
template <int W> AOTI_INLINE Vec<f32, W> tanh_f32(Vec<f32, W> x) {
  Vec<f32, W> a = abs(x);
  Vec<f32, W> z = x * x;
  Vec<f32, W> small = mad(a * z, horner(z, -0x1.555534p-2f, 0x1.11074ep-3f, -0x1.b8407cp-5f, 0x1.523c86p-6f,
                                        -0x1.76301ep-8f), a);
  Vec<f32, W> large = 1.0f - quotient(splat<W>(1.0f), logistic_divisor(-(a + a)));
  return copysign(select(a < 0.625f, small, large), x);
}

#if AOTI_AVX512 && !AOTI_GPU
// Coefficients of erf around 1/16 + n kErfStep, each power's in a vector; around 0 for n = 0, where that of power 0 is x itself.
constexpr f32 kErfStep = 0x1.10f22cp-2f;
alignas(64) constexpr f32 kErfPowers[6][16] = {
    {0, 0x1.6eea56p-2f, 0x1.33652ap-1f, 0x1.8df442p-1f, 0x1.c77456p-1f, 0x1.e72e2cp-1f, 0x1.f66430p-1f, 0x1.fcba80p-1f,
     0x1.ff05cap-1f, 0x1.ffbe86p-1f, 0x1.fff104p-1f, 0x1.fffd00p-1f, 0x1.ffff7ap-1f, 0x1.ffffecp-1f, 0x1.fffffep-1f,
     0x1.000000p+0f},
    {0x1.06eba2p-3f, 0x1.0338f4p+0f, 0x1.953220p-1f, 0x1.12bc66p-1f, 0x1.4335aap-2f, 0x1.49de6ep-3f, 0x1.2411dep-4f,
     0x1.c0b1a8p-6f, 0x1.2b0028p-7f, 0x1.59b5cep-9f, 0x1.5ac4ecp-11f, 0x1.2dc1c0p-13f, 0x1.c79bd2p-16f, 0x1.2a63fep-18f,
     0x1.531358p-21f, 0x1.4e44dep-24f},
    {0, -0x1.552e44p-2f, -0x1.e2a8dep-2f, -0x1.d9b92cp-2f, -0x1.6cce54p-2f, -0x1.cc3e16p-3f, -0x1.e55272p-4f,
     -0x1.b0a064p-5f, -0x1.4812acp-6f, -0x1.a95e72p-8f, -0x1.dad592p-10f, -0x1.b87c94p-12f, -0x1.6de818p-14f,
     -0x1.5b0548p-16f, -0x1.8560aap-17f, -0x1.27757cp-18f},
    {-0x1.812186p-2f, -0x1.0ecf90p-2f, -0x1.39fcbcp-4f, 0x1.64753ep-4f, 0x1.4d8788p-3f, 0x1.3e26eep-3f, 0x1.b85cd2p-4f,
     0x1.e160d2p-5f, 0x1.ae51ccp-6f, 0x1.4047cep-7f, 0x1.913154p-9f, 0x1.a9cf50p-11f, 0x1.80bbd8p-13f, 0x1.28ef34p-15f,
     0x1.8881bap-18f, 0x1.bd2d04p-21f},
    {0, 0x1.3a265cp-3f, 0x1.6e2712p-3f, 0x1.dcb1f2p-4f, 0x1.bd185cp-6f, -0x1.100e96p-5f, -0x1.9a833ep-5f, -0x1.3f12b8p-5f,
     -0x1.6f2db6p-6f, -0x1.47dddcp-7f, -0x1.a5148ap-9f, -0x1.bac324p-10f, -0x1.6cc808p-12f, 0x1.cecc9ap-13f, 0x1.0802a0p-11f,
     0x1.db1b1ep-13f},
    {0x1.c7e78cp-4f, 0x1.eb6518p-5f, -0x1.35eaa6p-6f, -0x1.0cc822p-4f, -0x1.f1961cp-5f, -0x1.cb9d10p-6f, 0x1.5535c0p-11f,
     0x1.95feaap-7f, 0x1.79ebbep-7f, 0x1.bd1ae2p-8f, 0x1.892100p-9f, 0x1.13a44ap-10f, 0x1.3babe6p-12f, 0x1.2bdeb0p-14f,
     0x1.dd3832p-17f, 0x1.40481cp-19f},
};

// table[n % 16]
template <int W> AOTI_INLINE Vec<f32, W> entry_of(const f32 (&table)[16], Vec<i32, W> n) {
  if constexpr (W == 16) {
    typedef f32 Table __attribute__((vector_size(64)));
#ifdef __clang__
    return {__builtin_ia32_permvarsf512(*(const Table *)table, n.v)};
#else
    return {__builtin_shuffle(*(const Table *)table, n.v)};
#endif
  } else if constexpr (W > 16) {
    return {entry_of(table, n.lo), entry_of(table, n.hi)};
  } else {
    return lanewise([&](i32 k) { return table[k & 15]; }, n);
  }
}

// By polynomials of degree 5, of which each lane looks up its own; 1 from 4 on.
template <int W> AOTI_INLINE Vec<f32, W> erf_f32(Vec<f32, W> x) {
  Vec<f32, W> a = smaller(splat<W>(4.0f), abs(x));
  Vec<f32, W> from_first = a - 0.0625f;
  RoundedF32<W> n = round_product(from_first, 3.75f);
  const auto is_first = n.value == 0.0f;
  Vec<f32, W> t = select(is_first, a, mad(n.value, -kErfStep, from_first));
  const auto of = [&](int power) { return entry_of(kErfPowers[power], n.integer); };
  Vec<f32, W> r = mad(mad(mad(mad(of(5), t, of(4)), t, of(3)), t, of(2)), t, of(1));
  return copysign(mad(r, t, select(is_first, a, of(0))), x);
}
#elif AOTI_AVX2 && !AOTI_GPU
// Coefficients of erf around four centres, each power's in a vector; around 0 for the first, where that of power 0 is x itself.
constexpr f32 kErfScale = 0x1.e6135cp-1f, kErfShift = 0x1.1d2a20p-2f;
alignas(16) constexpr f32 kErfCentres[4] = {0, 0x1.495e96p+0f, 0x1.2ba566p+1f, 0x1.b39536p+1f};
alignas(16) constexpr f32 kErfPowers[9][4] = {
    {0, 0x1.dcc22ap-1f, 0x1.ff8600p-1f, 0x1.ffffcep-1f},
    {0x1.06eba8p-3f, 0x1.b972e8p-3f, 0x1.344248p-8f, 0x1.61d0b8p-17f},
    {0x1.feedcap-22f, -0x1.1bfc10p-2f, -0x1.68cf80p-7f, -0x1.2d0c96p-15f},
    {-0x1.812bc2p-2f, 0x1.54087cp-3f, 0x1.ff9e54p-7f, 0x1.479552p-14f},
    {0x1.cb3778p-13f, -0x1.d61bd0p-7f, -0x1.deacfcp-7f, -0x1.fab2f4p-14f},
    {0x1.c8962cp-4f, -0x1.5c761ap-5f, 0x1.282182p-7f, 0x1.221970p-13f},
    {0x1.342096p-8f, 0x1.66b822p-6f, -0x1.9a39e0p-9f, -0x1.08251ap-13f},
    {-0x1.283298p-5f, 0x1.57d86ep-9f, -0x1.12dfaap-12f, 0x1.ae82d6p-14f},
    {0x1.4f369ap-7f, -0x1.3fd7c0p-8f, 0x1.7c9940p-11f, -0x1.c967d0p-15f},
};

// table[n % 4]
template <int W> AOTI_INLINE Vec<f32, W> entry_of(const f32 (&table)[4], Vec<i32, W> n) {
  if constexpr (W == 8) {
    typedef f32 Four __attribute__((vector_size(16)));
    const Four all = *(const Four *)table;
    return {__builtin_ia32_vpermilvarps256(shuffled<0, 1, 2, 3, 0, 1, 2, 3>(all, all), n.v)};
  } else if constexpr (W > 8) {
    return {entry_of(table, n.lo), entry_of(table, n.hi)};
  } else {
    return lanewise([&](i32 k) { return table[k & 3]; }, n);
  }
}

// By polynomials of degree 8, of which each lane looks up its own; 1 from 3.92 on. In three steps rather than one coefficient after
// the other, as few vectors are on their way at once.
template <int W> AOTI_INLINE Vec<f32, W> erf_f32(Vec<f32, W> x) {
  Vec<f32, W> a = smaller(splat<W>(3.92f), abs(x));
  const Vec<i32, W> n = convert<i32>(mad(a, kErfScale, splat<W>(kErfShift)));
  const auto of = [&](int power) { return entry_of(kErfPowers[power], n); };
  const Vec<f32, W> t = a - entry_of(kErfCentres, n), square = t * t;
  const Vec<f32, W> first = mad(square, mad(of(4), t, of(3)), mad(of(2), t, of(1)));
  const Vec<f32, W> last = mad(square, mad(of(8), t, of(7)), mad(of(6), t, of(5)));
  const Vec<f32, W> from = select(n == 0, a, of(0));
  return copysign(mad(mad(square * square, last, first), t, from), x);
}
#elif AOTI_FUNCTION_UNITS
// x (1 + p(x^2)) up to 0.9, error 2^-26; above, 1 - 2^-q(x) with q(x) = x p(x), error 2^-28 up to 4.2, where it is 1. Which p it is
// decides about coefficients alone: all lanes take one way.
template <int W> AOTI_INLINE Vec<f32, W> erf_f32(Vec<f32, W> x) {
  return lanewise(
      [](f32 v) {
        const f32 size = __builtin_fabsf(v), a = size > 4.2f ? 4.2f : size;
        const bool small = size < 0.9f;
        const f32 z = small ? v * v : a;
        f32 p = small ? -0x1.3f4f6ep-11f : -0x1.44a246p-12f;
        p = __builtin_fmaf(p, z, small ? 0x1.4876c8p-8f : 0x1.307192p-8f);
        p = __builtin_fmaf(p, z, small ? -0x1.b6bee2p-6f : -0x1.0eb75ap-5f);
        p = __builtin_fmaf(p, z, small ? 0x1.ce1dd2p-4f : 0x1.3715aep-3f);
        p = __builtin_fmaf(p, z, small ? -0x1.8126fap-2f : 0x1.d590ccp-1f);
        p = __builtin_fmaf(p, z, small ? 0x1.06eba6p-3f : 0x1.a0cbd4p+0f);
        const f32 q = __builtin_fmaf(p, small ? v : -a, small ? v : 0.0f);
        return small ? q : __builtin_copysignf(1.0f - unit_exp2(q), v);
      },
      x);
}
#else
// 1 - e^-q(|x|) with q(x) = x (1 + p(x)) fitted to -log(erfc), error 2^-27; 1 from 4 on. Of e^-q = 2^n (1 - r), r is what the
// reduced argument takes from 1, so that nothing cancels where x is small, and what rounding takes from q is put back there.
template <int W> AOTI_INLINE Vec<f32, W> erf_f32(Vec<f32, W> x) {
  Vec<f32, W> a = smaller(splat<W>(4.0f), abs(x));
  Vec<f32, W> z = a * a;
  Vec<f32, W> even = horner(z, 0x1.06eba8p-3f, 0x1.a4f980p-4f, -0x1.56cc68p-13f, -0x1.4c315cp-11f, -0x1.36d42ap-17f);
  Vec<f32, W> p = mad(horner(z, 0x1.45f2fep-1f, -0x1.39c434p-6f, 0x1.b58fb6p-10f, 0x1.edf79cp-14f), a, even);
  Vec<f32, W> q = mad(a, p, a);
  RoundedF32<W> n = round_product(q, -0x1.715476p+0f);
  Vec<f32, W> u = mad(n.value, 0x1.62e430p-1f, q);
  Vec<f32, W> square = u * u;
  Vec<f32, W> upper = mad(square, mad(u, 0x1.9adc40p-13f, splat<W>(-0x1.6d4a80p-10f)),
                          mad(u, 0x1.111598p-7f, splat<W>(-0x1.5554eap-5f)));
  Vec<f32, W> e = mad(square, upper, mad(u, 0x1.555552p-3f, splat<W>(-0.5f)));
  Vec<f32, W> r = u + mad(square, e, mad(a, p, a - q));
  Vec<f32, W> power = bits_as<f32>(shl<23>(n.integer + 127));
  return copysign(mad(power, r, 1.0f - power), x);
}
#endif

// Sine (Shift 0) or cosine (Shift 1). The reduction is in f64; beyond 2^20 libm takes over.
template <int Shift, int W> AOTI_INLINE Vec<f32, W> sine_f32(Vec<f32, W> x) {
  Rounded<W> reduced = reduce_quadrant(convert<f64>(x));
  Vec<f32, W> r = convert<f32>(reduced.value);
  Vec<i32, W> k = convert<i32>(reduced.integer) + Shift;
  Vec<f32, W> z = r * r;
  Vec<f32, W> s = mad(r * z, horner(z, -0x1.555546p-3f, 0x1.11072cp-7f, -0x1.993ce8p-13f), r);
  Vec<f32, W> c = mad(z, mad(z, horner(z, 0x1.55554ap-5f, -0x1.6c0c58p-10f, 0x1.99f2dap-16f), splat<W>(-0.5f)),
                      splat<W>(1.0f));
  Vec<f32, W> y = select((k & 1) == 0, s, c);
  y = bits_as<f32>(bits_as<i32>(y) ^ shl<30>(k & 2));
  if (Shift == 0) y = select(x == 0.0f, x, y);
  auto large = ~(abs(x) < 0x1p20f);
  if (__builtin_expect(any(large), 0)) {
    auto exact = lanewise([](f32 v) { return Shift == 0 ? scalar::sinf(v) : scalar::cosf(v); }, x);
    y = select(large, exact, y);
  }
  return y;
}

// Computes in f64 and rounds.
template <class F, int W> AOTI_INLINE Vec<f32, W> through_f64(F f, Vec<f32, W> x) {
  if constexpr (shape_of<f64, W> == kPair)
    return join(through_f64(f, lower(x)), through_f64(f, upper(x)));
  else
    return convert<f32>(f(convert<f64>(x)));
}
template <class F, int W> AOTI_INLINE Vec<f32, W> through_f64(F f, Vec<f32, W> x, Vec<f32, W> y) {
  if constexpr (shape_of<f64, W> == kPair)
    return join(through_f64(f, lower(x), lower(y)), through_f64(f, upper(x), upper(y)));
  else
    return convert<f32>(f(convert<f64>(x), convert<f64>(y)));
}

} // namespace detail

AOTI_NAMESPACE_END
