// Register conversions for GCC on x86. GCC 12 lowers many generic conversions, splits and blends lane by lane although
// the machine has an instruction, so they are spelled with its builtins here. Other compilers never see this file.
// Works on plain registers; knows nothing of Vec.
#pragma once

#include "base.h"

AOTI_NAMESPACE_BEGIN
namespace gcc {

template <class T, int N> struct RegisterOf {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N> using reg = typename RegisterOf<T, N>::type;

// A register's bits with the upper part zero, or only its lower part.
template <class To, class From> AOTI_INLINE To resize(From from) {
  if constexpr (sizeof(From) == 8 && sizeof(To) == 16)
    return (To)reg<i64, 2>{bit_cast<i64>(from), 0};
  else if constexpr (sizeof(From) == 4 && sizeof(To) == 16)
    return (To)reg<i32, 4>{bit_cast<i32>(from), 0, 0, 0};
  else if constexpr (sizeof(From) == 16 && sizeof(To) == 8)
    return bit_cast<To>(((reg<i64, 2>)from)[0]);
  else if constexpr (sizeof(From) == 16 && sizeof(To) == 4)
    return bit_cast<To>(((reg<i32, 4>)from)[0]);
  else {
    static_assert(sizeof(From) == sizeof(To), "only narrow registers change size");
    return (To)from;
  }
}

// Which conversions `widen` and `narrow` spell out, from a register of N elements of type T.
template <class To, class T, int N>
constexpr bool widens = !is_float<T> && !is_float<To> && N * int(sizeof(To)) == AOTI_VECTOR_BYTES &&
                        ((sizeof(To) == 4 && sizeof(T) < 4) || (sizeof(To) == 8 && sizeof(T) == 4));
template <class To, class T, int N>
constexpr bool narrows = !is_float<T> && !is_float<To> && N * int(sizeof(T)) == AOTI_VECTOR_BYTES &&
                         ((sizeof(T) == 4 && sizeof(To) < 4) || (AOTI_AVX512 && sizeof(T) == 8 && sizeof(To) == 4));

template <class To, class T, int N> AOTI_INLINE reg<To, N> widen(reg<T, N> a) {
  using R = reg<To, N>;
#if AOTI_AVX512
  if constexpr (sizeof(T) == 1 && is_signed<T>)
    return (R)__builtin_ia32_pmovsxbd512_mask((reg<char, 16>)a, reg<i32, 16>{}, u16(-1));
  else if constexpr (sizeof(T) == 1)
    return (R)__builtin_ia32_pmovzxbd512_mask((reg<char, 16>)a, reg<i32, 16>{}, u16(-1));
  else if constexpr (sizeof(T) == 2 && is_signed<T>)
    return (R)__builtin_ia32_pmovsxwd512_mask((reg<i16, 16>)a, reg<i32, 16>{}, u16(-1));
  else if constexpr (sizeof(T) == 2)
    return (R)__builtin_ia32_pmovzxwd512_mask((reg<i16, 16>)a, reg<i32, 16>{}, u16(-1));
  else if constexpr (is_signed<T>)
    return (R)__builtin_ia32_pmovsxdq512_mask((reg<i32, 8>)a, reg<long long, 8>{}, u8(-1));
  else
    return (R)__builtin_ia32_pmovzxdq512_mask((reg<i32, 8>)a, reg<long long, 8>{}, u8(-1));
#elif AOTI_AVX2
  if constexpr (sizeof(T) == 1 && is_signed<T>)
    return (R)__builtin_ia32_pmovsxbd256(resize<reg<char, 16>>(a));
  else if constexpr (sizeof(T) == 1)
    return (R)__builtin_ia32_pmovzxbd256(resize<reg<char, 16>>(a));
  else if constexpr (sizeof(T) == 2 && is_signed<T>)
    return (R)__builtin_ia32_pmovsxwd256((reg<i16, 8>)a);
  else if constexpr (sizeof(T) == 2)
    return (R)__builtin_ia32_pmovzxwd256((reg<i16, 8>)a);
  else if constexpr (is_signed<T>)
    return (R)__builtin_ia32_pmovsxdq256((reg<i32, 4>)a);
  else
    return (R)__builtin_ia32_pmovzxdq256((reg<i32, 4>)a);
#else
  if constexpr (sizeof(T) == 4) {
    auto low = resize<reg<i32, 4>>(a);
    return (R)__builtin_ia32_punpckldq128(low, is_signed<T> ? low >> 31 : reg<i32, 4>{});
  } else {
  // Interleaving below zeros puts the element on top; shifting it down extends it.
  constexpr int shift = 32 - 8 * int(sizeof(T));
  reg<i16, 8> words;
  if constexpr (sizeof(T) == 1)
    words = (reg<i16, 8>)__builtin_ia32_punpcklbw128(reg<char, 16>{}, resize<reg<char, 16>>(a));
  else
    words = resize<reg<i16, 8>>(a);
  auto top = (reg<i32, 4>)__builtin_ia32_punpcklwd128(reg<i16, 8>{}, words);
  if constexpr (is_signed<T>)
    return (R)(top >> shift);
  else
    return (R)((reg<u32, 4>)top >> shift);
  }
#endif
}

template <class To, class T, int N> AOTI_INLINE reg<To, N> narrow(reg<T, N> a) {
  using R = reg<To, N>;
#if AOTI_AVX512
  if constexpr (sizeof(T) == 8)
    return (R)__builtin_ia32_pmovqd512_mask((reg<long long, 8>)a, reg<i32, 8>{}, u8(-1));
  else if constexpr (sizeof(To) == 1)
    return (R)__builtin_ia32_pmovdb512_mask((reg<i32, 16>)a, reg<char, 16>{}, u16(-1));
  else
    return (R)__builtin_ia32_pmovdw512_mask((reg<i32, 16>)a, reg<i16, 16>{}, u16(-1));
#elif AOTI_AVX2
  auto v = (reg<i32, 8>)a & (sizeof(To) == 1 ? 0xff : 0xffff);
  auto low = (reg<i32, 4>)__builtin_ia32_vextractf128_pd256((reg<f64, 4>)v, 0);
  auto high = (reg<i32, 4>)__builtin_ia32_vextractf128_pd256((reg<f64, 4>)v, 1);
  auto words = __builtin_ia32_packusdw128(low, high);
  if constexpr (sizeof(To) == 1)
    return resize<R>((reg<i32, 4>)__builtin_ia32_packuswb128(words, words));
  else
    return (R)words;
#else
  auto v = (reg<i32, 4>)a;
  if constexpr (sizeof(To) == 1) {
    auto words = __builtin_ia32_packssdw128(v & 0xff, v & 0xff);
    return resize<R>((reg<i32, 4>)__builtin_ia32_packuswb128(words, words));
  } else {
    v = (v << 16) >> 16;
    return resize<R>((reg<i32, 4>)__builtin_ia32_packssdw128(v, v));
  }
#endif
}

#if AOTI_AVX2
template <int Half, class R> AOTI_INLINE auto extract_half(R a) {
#if AOTI_AVX512
  if constexpr (sizeof(R) == 64)
    return (reg<f64, 4>)__builtin_ia32_extractf64x4_mask((reg<f64, 8>)a, Half, reg<f64, 4>{}, u8(-1));
  else
#endif
    return __builtin_ia32_vextractf128_pd256((reg<f64, 4>)a, Half);
}
template <class R> AOTI_INLINE auto join_halves(R a, R b) {
#if AOTI_AVX512
  if constexpr (sizeof(R) == 32) {
    auto low = __builtin_ia32_pd512_256pd((reg<f64, 4>)a);
    return (reg<f64, 8>)__builtin_ia32_insertf64x4_mask(low, (reg<f64, 4>)b, 1, low, u8(-1));
  } else
#endif
    return __builtin_ia32_vinsertf128_pd256(__builtin_ia32_pd256_pd((reg<f64, 2>)a), (reg<f64, 2>)b, 1);
}
#endif

// mask ? a : b where the mask's lanes are 0 or -1 and as wide as the elements.
template <class M, class R> AOTI_INLINE R blend(M mask, R a, R b) {
#if AOTI_AVX512
  return mask ? a : b;
#elif AOTI_AVX2
  if constexpr (sizeof(R) == 32 && sizeof(a[0]) == 4)
    return (R)__builtin_ia32_blendvps256((reg<f32, 8>)b, (reg<f32, 8>)a, (reg<f32, 8>)mask);
  else if constexpr (sizeof(R) == 32 && sizeof(a[0]) == 8)
    return (R)__builtin_ia32_blendvpd256((reg<f64, 4>)b, (reg<f64, 4>)a, (reg<f64, 4>)mask);
  else if constexpr (sizeof(R) == 32)
    return (R)__builtin_ia32_pblendvb256((reg<char, 32>)b, (reg<char, 32>)a, (reg<char, 32>)mask);
  else
    return (R)((mask & (M)a) | (~mask & (M)b));
#else
  return (R)((mask & (M)a) | (~mask & (M)b));
#endif
}

// Conversions between 8-byte floats and 4-byte elements, one full register on the 8-byte side.
template <class To, class T, int N>
constexpr bool converts_f64 = AOTI_AVX2 && N * 8 == AOTI_VECTOR_BYTES &&
                              ((is_same<To, f64> && (is_same<T, f32> || is_same<T, i32>)) ||
                               (is_same<T, f64> && (is_same<To, f32> || is_same<To, i32>)));
template <class To, class T, int N> AOTI_INLINE reg<To, N> convert_f64(reg<T, N> a) {
#if AOTI_AVX512
  reg<To, N> zero{};
  if constexpr (is_same<T, f32>)
    return __builtin_ia32_cvtps2pd512_mask(a, zero, u8(-1), 4);
  else if constexpr (is_same<T, i32>)
    return __builtin_ia32_cvtdq2pd512_mask(a, zero, u8(-1));
  else if constexpr (is_same<To, f32>)
    return __builtin_ia32_cvtpd2ps512_mask(a, zero, u8(-1), 4);
  else
    return __builtin_ia32_cvttpd2dq512_mask(a, zero, u8(-1), 4);
#elif AOTI_AVX2
  if constexpr (is_same<T, f32>)
    return __builtin_ia32_cvtps2pd256(a);
  else if constexpr (is_same<T, i32>)
    return __builtin_ia32_cvtdq2pd256(a);
  else if constexpr (is_same<To, f32>)
    return __builtin_ia32_cvtpd2ps256(a);
  else
    return __builtin_ia32_cvttpd2dq256(a);
#else
  return __builtin_convertvector(a, reg<To, N>);
#endif
}

// a < b ? a : b and a > b ? a : b of floating-point lanes, of which GCC 12 makes comparisons and blends.
#if AOTI_AVX512
#define AOTI_GCC_EXTREMUM(NAME, OP)                                                                          \
  AOTI_INLINE reg<f32, 16> NAME(reg<f32, 16> a, reg<f32, 16> b) {                                            \
    return __builtin_ia32_##OP##ps512_mask(a, b, a, u16(-1), 4);                                             \
  }                                                                                                          \
  AOTI_INLINE reg<f64, 8> NAME(reg<f64, 8> a, reg<f64, 8> b) {                                               \
    return __builtin_ia32_##OP##pd512_mask(a, b, a, u8(-1), 4);                                              \
  }
#elif AOTI_AVX2
#define AOTI_GCC_EXTREMUM(NAME, OP)                                                                          \
  AOTI_INLINE reg<f32, 8> NAME(reg<f32, 8> a, reg<f32, 8> b) { return __builtin_ia32_##OP##ps256(a, b); }    \
  AOTI_INLINE reg<f64, 4> NAME(reg<f64, 4> a, reg<f64, 4> b) { return __builtin_ia32_##OP##pd256(a, b); }
#else
#define AOTI_GCC_EXTREMUM(NAME, OP)                                                                          \
  AOTI_INLINE reg<f32, 4> NAME(reg<f32, 4> a, reg<f32, 4> b) { return __builtin_ia32_##OP##ps(a, b); }       \
  AOTI_INLINE reg<f64, 2> NAME(reg<f64, 2> a, reg<f64, 2> b) { return __builtin_ia32_##OP##pd(a, b); }
#endif
AOTI_GCC_EXTREMUM(smaller, min)
AOTI_GCC_EXTREMUM(larger, max)
#undef AOTI_GCC_EXTREMUM

} // namespace gcc
AOTI_NAMESPACE_END
