// Operations that are one machine instruction but have no operator: square root, fused multiply-add, rounding to an
// integer; and division with its integer and modulo forms. Knows instruction sets; see vec.h for the API.
#pragma once

#include "memory.h"

// Clang has a builtin for vectors of any width, but not from its first release on, and not for all operations from the same
// one on. Without it, and with GCC, those of the instruction set are spelled out.
#define AOTI_ANY_WIDTH_FMA 0
#define AOTI_ANY_WIDTH_SQRT 0
#define AOTI_ANY_WIDTH_ROUND 0
#if !AOTI_GPU && AOTI_CLANG
#if __has_builtin(__builtin_elementwise_fma)
#undef AOTI_ANY_WIDTH_FMA
#define AOTI_ANY_WIDTH_FMA 1
#endif
#if __has_builtin(__builtin_elementwise_sqrt)
#undef AOTI_ANY_WIDTH_SQRT
#define AOTI_ANY_WIDTH_SQRT 1
#endif
#if __has_builtin(__builtin_elementwise_roundeven) && __has_builtin(__builtin_elementwise_floor) && \
    __has_builtin(__builtin_elementwise_ceil) && __has_builtin(__builtin_elementwise_trunc)
#undef AOTI_ANY_WIDTH_ROUND
#define AOTI_ANY_WIDTH_ROUND 1
#endif
// Its builtins for NEON have no documented names.
#if AOTI_AARCH64 && !(AOTI_ANY_WIDTH_FMA && AOTI_ANY_WIDTH_SQRT)
#include <arm_neon.h>
#endif
#endif

AOTI_NAMESPACE_BEGIN

namespace detail {

AOTI_INLINE f32 scalar_sqrt(f32 x) { return __builtin_sqrtf(x); }
AOTI_INLINE f64 scalar_sqrt(f64 x) { return __builtin_sqrt(x); }
AOTI_INLINE f32 scalar_fma(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
AOTI_INLINE f64 scalar_fma(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
#if AOTI_GPU
// Long division by chunks of the quotient: every remainder is exact.
AOTI_NOINLINE f64 scalar_fmod(f64 a, f64 b) {
  f64 x = __builtin_fabs(a), y = __builtin_fabs(b);
  if (!(x <= Limits<f64>::max) || !(y > 0)) return Limits<f64>::nan;
  while (x >= y) {
    f64 divisor = y;
    while (x > divisor * 0x1p52) divisor *= 0x1p50;
    f64 quotient = __builtin_trunc(x / divisor);
    f64 rest = __builtin_fma(-quotient, divisor, x);
    x = rest < 0 ? rest + divisor : rest;
  }
  return __builtin_copysign(x, a);
}
AOTI_INLINE f32 scalar_fmod(f32 a, f32 b) { return f32(scalar_fmod(f64(a), f64(b))); }
#else
AOTI_INLINE f32 scalar_fmod(f32 a, f32 b) { return __builtin_fmodf(a, b); }
AOTI_INLINE f64 scalar_fmod(f64 a, f64 b) { return __builtin_fmod(a, b); }
#endif

// Applies a register function to each register of a vector.
template <class F, class T, int W> AOTI_INLINE Vec<T, W> per_register(F f, Vec<T, W> a) {
  if constexpr (shape_of<T, W> == kPair)
    return {per_register(f, a.lo), per_register(f, a.hi)};
  else
    return f(a);
}

// The two compilers have different builtins for square roots of 64 bytes.
#if AOTI_CLANG
#define AOTI_SQRT_512(TYPE, BITS) __builtin_ia32_sqrt##TYPE##512(a.v, 4)
#else
#define AOTI_SQRT_512(TYPE, BITS) __builtin_ia32_sqrt##TYPE##512_mask(a.v, a.v, BITS(-1), 4)
#endif
template <class T, int W> AOTI_INLINE Vec<T, W> sqrt_register(Vec<T, W> a) {
  constexpr int bytes = W * int(sizeof(T));
  (void)bytes;
  if constexpr (W == 1)
    return {scalar_sqrt(a.v)};
#if AOTI_ANY_WIDTH_SQRT
  else
    return {__builtin_elementwise_sqrt(a.v)};
#else
#if AOTI_AVX512
  else if constexpr (bytes == 64 && is_same<T, f32>)
    return {AOTI_SQRT_512(ps, u16)};
  else if constexpr (bytes == 64)
    return {AOTI_SQRT_512(pd, u8)};
#endif
#if AOTI_AVX2
  else if constexpr (bytes == 32 && is_same<T, f32>)
    return {__builtin_ia32_sqrtps256(a.v)};
  else if constexpr (bytes == 32)
    return {__builtin_ia32_sqrtpd256(a.v)};
#endif
#if AOTI_SSE2
  else if constexpr (bytes == 16 && is_same<T, f32>)
    return {__builtin_ia32_sqrtps(a.v)};
  else if constexpr (bytes == 16)
    return {__builtin_ia32_sqrtpd(a.v)};
#elif AOTI_AARCH64 && AOTI_CLANG
  else if constexpr (bytes == 16 && is_same<T, f32>)
    return {(typename Vec<T, W>::Register)vsqrtq_f32((float32x4_t)a.v)};
  else if constexpr (bytes == 16)
    return {(typename Vec<T, W>::Register)vsqrtq_f64((float64x2_t)a.v)};
#elif AOTI_AARCH64
  else if constexpr (bytes == 16 && is_same<T, f32>)
    return {__builtin_aarch64_sqrtv4sf(a.v)};
  else if constexpr (bytes == 16)
    return {__builtin_aarch64_sqrtv2df(a.v)};
#endif
  else
    return lanewise([](T x) { return scalar_sqrt(x); }, a);
#endif
}

template <class T, int W> AOTI_INLINE Vec<T, W> fma_register(Vec<T, W> a, Vec<T, W> b, Vec<T, W> c) {
  constexpr int bytes = W * int(sizeof(T));
  (void)bytes;
  if constexpr (W == 1)
    return {scalar_fma(a.v, b.v, c.v)};
#if AOTI_ANY_WIDTH_FMA
  else
    return {__builtin_elementwise_fma(a.v, b.v, c.v)};
#else
#if AOTI_AVX512
  else if constexpr (bytes == 64 && is_same<T, f32>)
    return {__builtin_ia32_vfmaddps512_mask(a.v, b.v, c.v, u16(-1), 4)};
  else if constexpr (bytes == 64)
    return {__builtin_ia32_vfmaddpd512_mask(a.v, b.v, c.v, u8(-1), 4)};
#endif
#if AOTI_AVX2
  else if constexpr (bytes == 32 && is_same<T, f32>)
    return {__builtin_ia32_vfmaddps256(a.v, b.v, c.v)};
  else if constexpr (bytes == 32)
    return {__builtin_ia32_vfmaddpd256(a.v, b.v, c.v)};
  else if constexpr (bytes == 16 && is_same<T, f32>)
    return {__builtin_ia32_vfmaddps(a.v, b.v, c.v)};
  else if constexpr (bytes == 16)
    return {__builtin_ia32_vfmaddpd(a.v, b.v, c.v)};
#elif AOTI_AARCH64 && AOTI_CLANG
  else if constexpr (bytes == 16 && is_same<T, f32>)
    return {(typename Vec<T, W>::Register)vfmaq_f32((float32x4_t)c.v, (float32x4_t)a.v, (float32x4_t)b.v)};
  else if constexpr (bytes == 16)
    return {(typename Vec<T, W>::Register)vfmaq_f64((float64x2_t)c.v, (float64x2_t)a.v, (float64x2_t)b.v)};
#elif AOTI_AARCH64
  else if constexpr (bytes == 16 && is_same<T, f32>)
    return {__builtin_aarch64_fmav4sf(a.v, b.v, c.v)};
  else if constexpr (bytes == 16)
    return {__builtin_aarch64_fmav2df(a.v, b.v, c.v)};
#endif
  else {
    T x[W], y[W], z[W];
    store_raw(Full<W>{}, x, a);
    store_raw(Full<W>{}, y, b);
    store_raw(Full<W>{}, z, c);
    for (int i = 0; i < W; ++i) x[i] = scalar_fma(x[i], y[i], z[i]);
    return load_raw(Full<W>{}, x);
  }
#endif
}

enum Rounding { kNearest = 8, kFloor = 9, kCeil = 10, kTrunc = 11 }; // the immediates of SSE4.1, exceptions off

// Without a rounding instruction: adding and taking away 2^23 (2^52) rounds to nearest; then correct by one.
template <Rounding R, class T, int W> AOTI_INLINE Vec<T, W> round_by_adding(Vec<T, W> a) {
  constexpr T big = is_same<T, f32> ? T(0x1p23) : T(0x1p52);
  Vec<T, W> m = abs(a);
  Vec<T, W> r = (m + big) - big;
  if constexpr (R == kTrunc)
    r = r - select(r > m, splat<W, T>(1), T(0));
  r = copysign(r, a);
  if constexpr (R == kFloor)
    r = copysign(r - select(r > a, splat<W, T>(1), T(0)), a);
  if constexpr (R == kCeil)
    r = copysign(r + select(r < a, splat<W, T>(1), T(0)), a);
  return select(m < big, r, a);
}

template <Rounding R, class T, int W> AOTI_INLINE Vec<T, W> round_register(Vec<T, W> a) {
  constexpr int bytes = W * int(sizeof(T));
  (void)bytes;
#if AOTI_GPU || defined(__SSE4_1__) || AOTI_AARCH64
  constexpr bool f = is_same<T, f32>;
  (void)f;
  if constexpr (W == 1 && R == kNearest)
    return {T(f ? __builtin_rintf(f32(a.v)) : __builtin_rint(f64(a.v)))};
  else if constexpr (W == 1 && R == kFloor)
    return {T(f ? __builtin_floorf(f32(a.v)) : __builtin_floor(f64(a.v)))};
  else if constexpr (W == 1 && R == kCeil)
    return {T(f ? __builtin_ceilf(f32(a.v)) : __builtin_ceil(f64(a.v)))};
  else if constexpr (W == 1)
    return {T(f ? __builtin_truncf(f32(a.v)) : __builtin_trunc(f64(a.v)))};
#if AOTI_ANY_WIDTH_ROUND
  else if constexpr (R == kNearest)
    return {__builtin_elementwise_roundeven(a.v)};
  else if constexpr (R == kFloor)
    return {__builtin_elementwise_floor(a.v)};
  else if constexpr (R == kCeil)
    return {__builtin_elementwise_ceil(a.v)};
  else
    return {__builtin_elementwise_trunc(a.v)};
#else
#if AOTI_AVX512
  else if constexpr (bytes == 64 && f)
    return {__builtin_ia32_rndscaleps_mask(a.v, R, a.v, u16(-1), 4)};
  else if constexpr (bytes == 64)
    return {__builtin_ia32_rndscalepd_mask(a.v, R, a.v, u8(-1), 4)};
#endif
#if AOTI_AVX2
  else if constexpr (bytes == 32 && f)
    return {__builtin_ia32_roundps256(a.v, R)};
  else if constexpr (bytes == 32)
    return {__builtin_ia32_roundpd256(a.v, R)};
#endif
#if defined(__SSE4_1__)
  else if constexpr (bytes == 16 && f)
    return {__builtin_ia32_roundps(a.v, R)};
  else if constexpr (bytes == 16)
    return {__builtin_ia32_roundpd(a.v, R)};
#endif
  else
    return round_by_adding<R>(a);
#endif
#else
  return round_by_adding<R>(a);
#endif
}
template <Rounding R, class T, int W> AOTI_INLINE Vec<T, W> round_to(Vec<T, W> a) {
  if constexpr (is_float<T>)
    return per_register([](auto x) { return round_register<R>(x); }, a);
  else
    return a;
}

} // namespace detail

template <class T, int W> AOTI_INLINE Vec<T, W> sqrt(Vec<T, W> a) {
  return detail::per_register([](auto x) { return detail::sqrt_register(x); }, a);
}
template <class T, int W> AOTI_INLINE Vec<T, W> rsqrt(Vec<T, W> a) { return T(1) / sqrt(a); }
template <class T, int W> AOTI_INLINE Vec<T, W> reciprocal(Vec<T, W> a) { return T(1) / a; }

// a * b + c with one rounding on every machine (slow without the instruction). `mad` is as fast as the machine allows:
// fused where that is one instruction, else with two roundings.
template <class T, int W> AOTI_INLINE Vec<T, W> fma(Vec<T, W> a, Vec<T, W> b, Vec<T, W> c) {
  if constexpr (!is_float<T>)
    return a * b + c;
  else if constexpr (shape_of<T, W> == kPair)
    return {fma(a.lo, b.lo, c.lo), fma(a.hi, b.hi, c.hi)};
  else
    return detail::fma_register(a, b, c);
}
template <class T, int W> AOTI_INLINE Vec<T, W> mad(Vec<T, W> a, Vec<T, W> b, Vec<T, W> c) {
#if AOTI_HAS_FMA
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}
template <class T, int W> AOTI_INLINE Vec<T, W> mad(Vec<T, W> a, Vec<T, W> b, identity<T> c) {
  return mad(a, b, splat<W, T>(c));
}
template <class T, int W> AOTI_INLINE Vec<T, W> mad(Vec<T, W> a, identity<T> b, Vec<T, W> c) {
  return mad(a, splat<W, T>(b), c);
}

template <class T, int W> AOTI_INLINE Vec<T, W> floor(Vec<T, W> a) { return detail::round_to<detail::kFloor>(a); }
template <class T, int W> AOTI_INLINE Vec<T, W> ceil(Vec<T, W> a) { return detail::round_to<detail::kCeil>(a); }
template <class T, int W> AOTI_INLINE Vec<T, W> trunc(Vec<T, W> a) { return detail::round_to<detail::kTrunc>(a); }
// To nearest, ties to even, as torch.round.
template <class T, int W> AOTI_INLINE Vec<T, W> round(Vec<T, W> a) { return detail::round_to<detail::kNearest>(a); }

namespace detail {
#if AOTI_AVX512
// The nearest integers, ties to even; the least number for NaN and for what 32 bits do not hold.
AOTI_INLINE Vec<i32, 16> nearest_integers(Vec<f32, 16> a) {
  return {(Vec<i32, 16>::Register)__builtin_ia32_cvtps2dq512_mask(a.v, Vec<i32, 16>{}.v, u16(-1), 4)};
}
// As bytes; the largest one for numbers that bytes do not hold, as numbers without a sign.
AOTI_INLINE Vec<u8, 16> saturated_bytes(Vec<i32, 16> a) {
  typedef char Bytes __attribute__((vector_size(16)));
  return {(Vec<u8, 16>::Register)__builtin_ia32_pmovusdb512_mask(a.v, Bytes{}, u16(-1))};
}
#elif AOTI_AVX2
AOTI_INLINE Vec<i32, 8> nearest_integers(Vec<f32, 8> a) { return {(Vec<i32, 8>::Register)__builtin_ia32_cvtps2dq256(a.v)}; }
#endif
} // namespace detail

// Numbers of one byte: a rounded to the nearest integer, ties to even, plus `zero`, an integer that bytes hold or nearly so, as
// far as bytes hold that. 0 for NaN.
template <class To, int W> AOTI_INLINE Vec<To, W> quantised(Vec<f32, W> a, f32 zero) {
  constexpr f32 lowest = Limits<To>::lowest, highest = Limits<To>::max;
  if constexpr (shape_of<f32, W> == kPair)
    return join(quantised<To>(a.lo, zero), quantised<To>(a.hi, zero));
#if AOTI_AVX512
  else if constexpr (W == 16 && is_same<To, u8>)
    // What is too large for 32 bits, too, is large as a number without a sign.
    return detail::saturated_bytes(detail::nearest_integers(larger(a, splat<W>(lowest - zero))) + i32(zero));
#endif
#if AOTI_AVX2
  else if constexpr (W * sizeof(f32) == AOTI_VECTOR_BYTES)
    if (zero == 0) return convert<To>(detail::nearest_integers(minimum(maximum(a, lowest), highest)));
#endif
  return cast<To>(minimum(maximum(round(a) + zero, lowest), highest));
}

// Quotients rounded towards zero. Integer division by zero gives 0; the most negative value divided by -1 wraps.
template <class T, int W> AOTI_INLINE Vec<T, W> trunc_div(Vec<T, W> a, Vec<T, W> b) {
  if constexpr (is_float<T>)
    return trunc(a / b);
  else if constexpr (!AOTI_GPU && sizeof(T) <= 4 && is_signed<T>) {
    // Exact in f64: a quotient of 32-bit numbers that is no integer is further from one than f64 rounds. Threads of GPUs divide
    // integers in a third of the instructions.
    Vec<T, W> divisor = select(b == T(0), T(1), b);
    Vec<T, W> q = convert<T>(convert<f64>(a) / convert<f64>(divisor));
    return select(b == T(0), T(0), select(b == T(-1), -a, q));
  } else {
#if AOTI_AVX512 && !AOTI_GPU
    // The same with numbers that f64 holds with a bit to spare, as most are; wider ones one by one.
    if constexpr (W > 1 && is_same<T, i64>) {
      constexpr i64 limit = i64(1) << 52;
      const auto is_wide = (a > limit) | (a < -limit) | (b > limit) | (b < -limit);
      if (!any(is_wide)) {
        const auto is_zero = b == T(0);
        return select(is_zero, T(0), convert<T>(convert<f64>(a) / convert<f64>(select(is_zero, T(1), b))));
      }
    }
#endif
    return lanewise(
        [](T x, T y) { return y == 0 ? T(0) : is_signed<T> && y == T(-1) ? T(0 - u64(x)) : T(x / y); }, a, b);
  }
}

// The remainder of trunc_div, with the sign of `a`; an integer remainder by zero is 0.
template <class T, int W> AOTI_INLINE Vec<T, W> fmod(Vec<T, W> a, Vec<T, W> b) {
  if constexpr (is_float<T>) {
#if AOTI_HAS_FMA && !AOTI_GPU
    // A rounded quotient below this is right or one too large, as whole numbers are not rounded. What is left is exact then, and so
    // it is with the divisor added.
    constexpr T limit = T(i64(1) << (sizeof(T) == 4 ? 23 : 51));
    const Vec<T, W> x = abs(a), y = abs(b), q = trunc(x / y);
    if (all(q < limit)) {
      const Vec<T, W> r = fma(-q, y, x);
      return copysign(select(x < y, x, select(r < T(0), r + y, r)), a);
    }
#endif
    return lanewise([](T x, T y) { return detail::scalar_fmod(x, y); }, a, b);
  } else
    return select(b == T(0), T(0), a - trunc_div(a, b) * b);
}

// The remainder of floor_div, with the sign of `b`, as in Python; an integer remainder by zero is 0.
template <class T, int W> AOTI_INLINE Vec<T, W> remainder(Vec<T, W> a, Vec<T, W> b) {
  Vec<T, W> r = fmod(a, b);
  if constexpr (!is_signed<T>)
    return r;
  else
    return select((r != T(0)) & ((r < T(0)) != (b < T(0))), r + b, r);
}

// Quotients rounded down, as in Python; integer division by zero gives 0. For floats the remainder is exact, which
// makes the quotient right where a / b would round up to the next integer.
template <class T, int W> AOTI_INLINE Vec<T, W> floor_div(Vec<T, W> a, Vec<T, W> b) {
  Vec<T, W> r = fmod(a, b);
  auto wrong_sign = (r != T(0)) & ((r < T(0)) != (b < T(0)));
  if constexpr (!is_signed<T>)
    return trunc_div(a, b);
  else if constexpr (!is_float<T>)
    return trunc_div(a, b) - detail::Cast<T>::from(wrong_sign);
  else {
    Vec<T, W> q = (a - r) / b;
    q = select(wrong_sign, q - T(1), q);
    Vec<T, W> down = floor(q);
    down = select(q - down > T(0.5), down + T(1), down);
    down = select(q == T(0), copysign(splat<W, T>(0), a / b), down);
    return select(b == T(0), a / b, down);
  }
}
namespace detail {
// The quotient of a number of 31 bits by one that is known: the upper half of a product and a shift. As the factor is by less than D
// / 2^(32 + shift) too large, and D below 2^(1 + shift), such a number times that is not enough for the next integer.
template <u32 D> AOTI_INLINE u32 quotient_of_31_bits(u32 a) {
  if constexpr ((D & (D - 1)) == 0)
    return a >> __builtin_ctz(D);
  else {
    constexpr int shift = 31 - __builtin_clz(D);
    constexpr u64 factor = (u64(1) << (32 + shift)) / D + 1;
    return u32(a * factor >> 32) >> shift;
  }
}
} // namespace detail

// The same by a positive number that is known when the kernel is compiled, as indices are divided: without a division.
template <i64 D, class T, int W> AOTI_INLINE Vec<T, W> floor_div_by(Vec<T, W> a) {
#if AOTI_GPU
  // Below zero, -1 - a is divided and mirrored.
  if constexpr (is_same<T, i32> && D < i64(1) << 31)
    return lanewise(
        [](i32 x) {
          const u32 mirror = u32(x >> 31);
          return i32(detail::quotient_of_31_bits<u32(D)>(u32(x) ^ mirror) ^ mirror);
        },
        a);
#else
  if constexpr (W > 1 && (D & (D - 1)) == 0)
    return shr<__builtin_ctzll(u64(D))>(a);
  // In the middle between two dividends, a quotient of doubles is far enough from the next integer.
  else if constexpr (W > 1 && is_same<T, i32> && D < i64(1) << 31)
    return convert<i32>(floor((convert<f64>(a) + 0.5) * (1.0 / f64(D))));
  else if constexpr (W > 1 && is_same<T, i64>) {
    constexpr i64 limit = i64(1) << 50;
    if (!any((a > limit) | (a < -limit))) return convert<i64>(floor((convert<f64>(a) + 0.5) * (1.0 / f64(D))));
  }
#endif
  return floor_div(a, splat<W>(T(D)));
}
template <i64 D, class T, int W> AOTI_INLINE Vec<T, W> remainder_by(Vec<T, W> a) {
  return a - floor_div_by<D>(a) * T(D);
}
AOTI_WITH_SCALAR(trunc_div)
AOTI_WITH_SCALAR(floor_div)
AOTI_WITH_SCALAR(fmod)
AOTI_WITH_SCALAR(remainder)

AOTI_NAMESPACE_END
