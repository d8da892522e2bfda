// Scalar foundations of generated kernels: names of element types, half-precision storage and their conversions, and
// the macros that keep objects built for different CPU levels apart and say what runs on a GPU.
// Owns nothing about vectors. Uses compiler builtins only; includes no standard C++ header.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Objects of several CPU levels are linked into one library. An inline function that the linker merged across levels
// would run AVX-512 instructions on a baseline processor, so everything sits in a namespace named for the level and,
// inside it, in an unnamed one: no symbol leaves its object file.
#ifndef AOTI_LEVEL_NS
#define AOTI_LEVEL_NS base
#endif
#define AOTI_NAMESPACE_BEGIN \
  namespace aoti {           \
  inline namespace AOTI_LEVEL_NS { \
  namespace {
#define AOTI_NAMESPACE_END \
  }                        \
  }                        \
  }

// Device code, or (gpu/emulate.h) the same text made for a processor. Lanes of a thread are scalars there, and every
// function is for the device alone.
#if defined(__CUDACC__) || defined(__CUDA__) || defined(__HIP__) || defined(AOTI_EMULATED)
#define AOTI_GPU 1
#else
#define AOTI_GPU 0
#endif
#if AOTI_GPU && !defined(AOTI_EMULATED)
#define AOTI_DEVICE __attribute__((device))
#else
#define AOTI_DEVICE
#endif

#define AOTI_INLINE AOTI_DEVICE inline __attribute__((always_inline, unused))
#define AOTI_NOINLINE AOTI_DEVICE __attribute__((noinline, unused))
// What constant expressions may call as well.
#define AOTI_CONSTEXPR AOTI_DEVICE constexpr
// After the parameters of a lambda: its body becomes part of the loop that calls it.
#define AOTI_LAMBDA __attribute__((always_inline))
// The same where several places call it: its code is there once.
#define AOTI_ONCE __attribute__((noinline))

#if AOTI_GPU
#define AOTI_AVX512 0
#define AOTI_VECTOR_BYTES 1
#elif defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define AOTI_AVX512 1
#define AOTI_VECTOR_BYTES 64
#elif defined(__AVX2__) && defined(__FMA__)
#define AOTI_AVX512 0
#define AOTI_VECTOR_BYTES 32
#else
#define AOTI_AVX512 0
#define AOTI_VECTOR_BYTES 16
#endif
#if !AOTI_GPU && defined(__AVX2__) && defined(__FMA__)
#define AOTI_AVX2 1
#else
#define AOTI_AVX2 0
#endif
#if defined(__clang__)
#define AOTI_CLANG 1
#else
#define AOTI_CLANG 0
#endif
#if !AOTI_GPU && defined(__SSE2__)
#define AOTI_SSE2 1
#else
#define AOTI_SSE2 0
#endif
#if !AOTI_GPU && defined(__aarch64__)
#define AOTI_AARCH64 1
#else
#define AOTI_AARCH64 0
#endif
#if !AOTI_GPU && !AOTI_CLANG && defined(__x86_64__)
#define AOTI_GCC_X86 1
#else
#define AOTI_GCC_X86 0
#endif
// Lanes of a vector register for 4-byte elements.
#define AOTI_LANES (AOTI_VECTOR_BYTES / 4)

// Whether a fused multiply-add is one instruction.
#if AOTI_AVX2 || AOTI_AARCH64 || (AOTI_GPU && !defined(AOTI_EMULATED))
#define AOTI_HAS_FMA 1
#else
#define AOTI_HAS_FMA 0
#endif

// Element types are the same at every level: a kernel's signature may name them without becoming local to its object.
namespace aoti {

using i8 = int8_t;
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;
using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using f32 = float;
using f64 = double;

// The first index of a run that was outside its dimension: 1 + the number of the operator that met it, or 0; then the index, the
// size of the dimension, and whether negative ones count from its end. All but the number are written by who has written that.
struct Fault {
  i32 site;
  i32 wraps;
  i64 index;
  i64 size;
};

// Storage of a half-precision element. Arithmetic is done in f32.
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};

// Storage of an element of one byte: bits of exponent and mantissa, the exponent's bias, and what there is beyond ordinary
// numbers. Arithmetic is done in f32.
enum Ends {
  kInfinite,     // infinities and NaN in the largest exponent
  kFinite,       // NaN as the largest magnitude
  kUnsignedZero, // NaN in the place of negative zero
  kPowers,       // powers of two alone: no sign, no zero, NaN as the last code
};
template <int Exponent, int Mantissa, int Bias, Ends E> struct Float8 {
  u8 bits;
};
using f8e4m3fn = Float8<4, 3, 7, kFinite>;
using f8e5m2 = Float8<5, 2, 15, kInfinite>;
using f8e4m3fnuz = Float8<4, 3, 8, kUnsignedZero>;
using f8e5m2fnuz = Float8<5, 2, 16, kUnsignedZero>;
using f8e8m0fnu = Float8<8, 0, 127, kPowers>;

} // namespace aoti

AOTI_NAMESPACE_BEGIN

template <class A, class B> constexpr bool is_same = false;
template <class A> constexpr bool is_same<A, A> = true;
template <class T> constexpr bool is_float = is_same<T, f32> || is_same<T, f64>;
template <class T> constexpr bool is_signed = T(-1) < T(0);
// Storage only: computed in f32.
template <class T> constexpr bool is_float8 = false;
template <int X, int M, int B, Ends E> constexpr bool is_float8<Float8<X, M, B, E>> = true;
template <class T> constexpr bool is_narrow = is_same<T, f16> || is_same<T, bf16> || is_float8<T>;

// Keeps a parameter out of template argument deduction.
template <class T> struct Identity {
  using type = T;
};
template <class T> using identity = typename Identity<T>::type;

template <bool B, class Then, class Else> struct Conditional {
  using type = Then;
};
template <class Then, class Else> struct Conditional<false, Then, Else> {
  using type = Else;
};
template <bool B, class Then, class Else> using conditional = typename Conditional<B, Then, Else>::type;

template <bool B, class T = int> struct EnableIf {};
template <class T> struct EnableIf<true, T> {
  using type = T;
};
template <bool B, class T = int> using enable_if = typename EnableIf<B, T>::type;

// --- integer arithmetic of sizes and indices ---

#if defined(__CUDA_ARCH__)
// NVIDIA's assembler (13.0 and 13.5, for sm_90 and sm_100) makes one instruction of a minimum or maximum and a difference
// x - c in it, and has its sign wrong if unrolling has made x a constant: max(2 - 1, 0) was 0. With the sign bit turned
// between the two, as here, it does not recognise them. Narrow integers are compared as i32.
#define AOTI_EXTREME(NAME, INSTRUCTION)                                                                    \
  template <class T> AOTI_INLINE T NAME(T a, T b) {                                                        \
    T r;                                                                                                   \
    if constexpr (sizeof(T) < 4)                                                                           \
      r = T(NAME<i32>(a, b));                                                                              \
    else if constexpr (sizeof(T) == 8 && is_signed<T>)                                                     \
      __asm__(INSTRUCTION ".s64 %0, %1, %2;" : "=l"(r) : "l"(a), "l"(b));                                  \
    else if constexpr (sizeof(T) == 8)                                                                     \
      __asm__(INSTRUCTION ".u64 %0, %1, %2;" : "=l"(r) : "l"(a), "l"(b));                                  \
    else if constexpr (is_signed<T>)                                                                       \
      __asm__(AOTI_TURNED(INSTRUCTION ".u32") : "=r"(r) : "r"(a), "r"(b));                                 \
    else                                                                                                   \
      __asm__(AOTI_TURNED(INSTRUCTION ".s32") : "=r"(r) : "r"(a), "r"(b));                                 \
    return r;                                                                                              \
  }
#define AOTI_TURNED(INSTRUCTION)                                                                           \
  "{ .reg .b32 x, y; xor.b32 x, %1, 0x80000000; xor.b32 y, %2, 0x80000000; " INSTRUCTION                   \
  " x, x, y; xor.b32 %0, x, 0x80000000; }"
AOTI_EXTREME(smaller_integer, "min")
AOTI_EXTREME(larger_integer, "max")
#if __CUDA_ARCH__ >= 800
// Extremes of f32 that are NaN where a number is, in one instruction; the others prefer the operand that is not NaN.
#define AOTI_FLOAT_EXTREMES 1
#define AOTI_EXTREME_F32(NAME, INSTRUCTION)                                                                \
  AOTI_INLINE f32 NAME(f32 a, f32 b) {                                                                     \
    f32 r;                                                                                                 \
    __asm__(INSTRUCTION ".f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));                                    \
    return r;                                                                                              \
  }
AOTI_EXTREME_F32(minimum_f32, "min.NaN")
AOTI_EXTREME_F32(maximum_f32, "max.NaN")
AOTI_EXTREME_F32(fmin_f32, "min")
AOTI_EXTREME_F32(fmax_f32, "max")
#endif
#else
template <class T> AOTI_CONSTEXPR T smaller_integer(T a, T b) { return a < b ? a : b; }
template <class T> AOTI_CONSTEXPR T larger_integer(T a, T b) { return a > b ? a : b; }
#endif

#if AOTI_GPU
template <class A, class B> using indices_of = enable_if<!is_float<A> && !is_float<B> && (sizeof(A) >= 4) && (sizeof(B) >= 4) && (A(1) / 2 == A(0)) && (B(1) / 2 == B(0))>;
// Indices are as wide as the kernel needs: 64-bit division is dozens of instructions on a GPU.
template <class A, class B, indices_of<A, B> = 0> AOTI_INLINE auto min_i64(A a, B b) {
  return smaller_integer<decltype(a + b)>(a, b);
}
template <class A, class B, indices_of<A, B> = 0> AOTI_INLINE auto max_i64(A a, B b) {
  return larger_integer<decltype(a + b)>(a, b);
}
template <class A, class B, indices_of<A, B> = 0> AOTI_CONSTEXPR auto ceil_div(A a, B b) { return (a + b - 1) / b; }
template <class A, class B, indices_of<A, B> = 0> AOTI_CONSTEXPR auto round_up(A a, B b) { return ceil_div(a, b) * b; }
template <class A, class B, indices_of<A, B> = 0> AOTI_CONSTEXPR auto floor_div(A a, B b) {
  return b < 0 ? (a > 0 ? (a - 1) / b - 1 : a / b) : a >= 0 ? a / b : ~(~a / b);
}
template <class A, class B, indices_of<A, B> = 0> AOTI_CONSTEXPR auto floor_mod(A a, B b) {
  return b < 0 ? (a % b > 0 ? a % b + b : a % b) : a - floor_div(a, b) * b;
}
#else
AOTI_INLINE i64 min_i64(i64 a, i64 b) { return a < b ? a : b; }
AOTI_INLINE i64 max_i64(i64 a, i64 b) { return a > b ? a : b; }
AOTI_CONSTEXPR i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }
AOTI_CONSTEXPR i64 round_up(i64 a, i64 b) { return ceil_div(a, b) * b; }
// Quotient and remainder that round down. Divisors are positive but for those that the user's program computes.
AOTI_CONSTEXPR i64 floor_div(i64 a, i64 b) {
  return b < 0 ? (a > 0 ? (a - 1) / b - 1 : a / b) : a >= 0 ? a / b : ~(~a / b);
}
AOTI_CONSTEXPR i64 floor_mod(i64 a, i64 b) {
  return b < 0 ? (a % b > 0 ? a % b + b : a % b) : i64(u64(a) - u64(floor_div(a, b)) * u64(b));
}
#endif
// Bytes rounded up so that what follows is aligned for vectors.
AOTI_CONSTEXPR i64 align(i64 bytes) { return round_up(bytes, 64); }

// The integer types that are as wide as T.
template <int Bytes> struct Integers;
template <> struct Integers<1> {
  using Signed = i8;
  using Unsigned = u8;
};
template <> struct Integers<2> {
  using Signed = i16;
  using Unsigned = u16;
};
template <> struct Integers<4> {
  using Signed = i32;
  using Unsigned = u32;
};
template <> struct Integers<8> {
  using Signed = i64;
  using Unsigned = u64;
};
template <class T> using signed_of = typename Integers<sizeof(T)>::Signed;
template <class T> using unsigned_of = typename Integers<sizeof(T)>::Unsigned;

// A compile-time list 0..N-1.
template <int... I> struct Indices {};
#if defined(__clang__)
template <class T, T... I> struct IndexSequence {
  using type = Indices<I...>;
};
template <int N> using indices = typename __make_integer_seq<IndexSequence, int, N>::type;
#else
template <int N> using indices = Indices<__integer_pack(N)...>;
#endif

template <class To, class From> AOTI_INLINE To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

template <class T> struct Limits;
template <> struct Limits<f32> {
  static constexpr f32 infinity = __builtin_inff();
  static constexpr f32 nan = __builtin_nanf("");
  static constexpr f32 max = 3.40282346638528859812e+38f;
  static constexpr f32 lowest = -max;
  static constexpr f32 epsilon = 1.1920928955078125e-07f;
  static constexpr f32 min_positive = 1.17549435082228750797e-38f;
};
template <> struct Limits<f64> {
  static constexpr f64 infinity = __builtin_inf();
  static constexpr f64 nan = __builtin_nan("");
  static constexpr f64 max = 1.79769313486231570815e+308;
  static constexpr f64 lowest = -max;
  static constexpr f64 epsilon = 2.22044604925031308085e-16;
  static constexpr f64 min_positive = 2.22507385850720138309e-308;
};
template <> struct Limits<u8> {
  static constexpr u8 max = 255, lowest = 0;
};
template <> struct Limits<i8> {
  static constexpr i8 max = 127, lowest = -128;
};
template <> struct Limits<i16> {
  static constexpr i16 max = 32767, lowest = -32768;
};
template <> struct Limits<i32> {
  static constexpr i32 max = 0x7fffffff, lowest = -0x7fffffff - 1;
};
template <> struct Limits<u16> {
  static constexpr u16 max = 0xffff, lowest = 0;
};
template <> struct Limits<u32> {
  static constexpr u32 max = 0xffffffff, lowest = 0;
};
template <> struct Limits<u64> {
  static constexpr u64 max = 0xffffffffffffffff, lowest = 0;
};
template <> struct Limits<i64> {
  static constexpr i64 max = 0x7fffffffffffffff, lowest = -0x7fffffffffffffff - 1;
};

// Half-precision conversions: exact upwards, to nearest even downwards; NaN stays NaN. GPUs have instructions for them.
AOTI_INLINE f32 to_f32(bf16 x) { return bit_cast<f32>(u32(x.bits) << 16); }
AOTI_INLINE f32 to_f32(f16 x) {
#if defined(__CUDA_ARCH__)
  f32 wide;
  __asm__("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
#elif defined(__AMDGCN__)
  return f32(bit_cast<_Float16>(x.bits));
#else
  // The exponent is rebiased by multiplying, which also normalises denormals.
  u32 magnitude = u32(x.bits & 0x7fff) << 13;
  u32 sign = u32(x.bits & 0x8000) << 16;
  u32 bits = bit_cast<u32>(bit_cast<f32>(magnitude) * 0x1p112f);
  if (magnitude >= (0x7c00u << 13)) bits |= 0x7f800000u;
  return bit_cast<f32>(bits | sign);
#endif
}
AOTI_INLINE bf16 to_bf16(f32 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  bf16 narrow;
  __asm__("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
  return narrow;
#else
  u32 bits = bit_cast<u32>(x);
  if (x != x) return {u16((bits >> 16) | 0x40)};
  return {u16((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
#endif
}
AOTI_INLINE f16 to_f16(f32 x) {
#if defined(__CUDA_ARCH__)
  f16 narrow;
  __asm__("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
  return narrow;
#elif defined(__AMDGCN__)
  return {bit_cast<u16>(_Float16(x))};
#else
  u32 bits = bit_cast<u32>(x);
  u32 sign = (bits >> 16) & 0x8000;
  u32 magnitude = bits & 0x7fffffff;
  u32 half;
  if (magnitude > 0x7f800000u)
    half = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  else if (magnitude >= 0x477ff000u) // rounds to 65536 or more
    half = 0x7c00;
  else if (magnitude < 0x38800000u) // denormal or zero: adding 1/2 leaves the rounded value in the low bits
    half = bit_cast<u32>(bit_cast<f32>(magnitude) + 0.5f) - 0x3f000000u;
  else
    half = (magnitude - 0x38000000u + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  return {u16(half | sign)};
#endif
}
// Of numbers of one byte, the mantissa moves to where f32 has it, and multiplying rebiases the exponent.
template <int X, int M, int B, Ends E> AOTI_INLINE f32 to_f32(Float8<X, M, B, E> x) {
  const u32 code = x.bits;
  if constexpr (E == kPowers) return bit_cast<f32>(code == 0 ? 0x400000u : code == 0xff ? 0x7fc00000u : code << 23);
  const u32 magnitude = code & 0x7f, sign = (code & 0x80) << 24;
  u32 bits = bit_cast<u32>(bit_cast<f32>(magnitude << (23 - M)) * bit_cast<f32>(u32(254 - B) << 23));
  if (E == kInfinite && magnitude >= ((1u << X) - 1) << M) bits |= 0x7f800000;
  if ((E == kFinite && magnitude == 0x7f) || (E == kUnsignedZero && code == 0x80)) bits = 0x7fc00000;
  return bit_cast<f32>(bits | sign);
}
// The code of the nearest number, the even of two. What is too large is infinite; where there is no infinity, the largest
// number if NaN is next to it, else NaN.
template <int X, int M, int B, Ends E> AOTI_INLINE void from_f32(Float8<X, M, B, E> &to, f32 x) {
  const u32 bits = bit_cast<u32>(x), magnitude = bits & 0x7fffffff;
  if constexpr (E == kPowers) {
    const u32 rest = magnitude & 0x7fffff, field = magnitude >> 23;
    to.bits = u8(field + (field != 0xff && (rest > 0x400000 || (rest == 0x400000 && field != 0))));
    return;
  }
  constexpr u32 shift = 23 - M, normal = u32(128 - B) << 23, unit = u32(151 - B - M) << 23;
  // Below the smallest normal number, adding one whose last place is ours leaves the rounded number in the low bits.
  u32 code = magnitude < normal
                 ? bit_cast<u32>(bit_cast<f32>(magnitude) + bit_cast<f32>(unit)) - unit
                 : (magnitude - (u32(127 - B) << 23) + (1u << (shift - 1)) - 1 + ((magnitude >> shift) & 1)) >> shift;
  const u32 sign = (bits >> 24) & 0x80;
  constexpr u32 infinity = ((1u << X) - 1) << M;
  if constexpr (E == kInfinite)
    code = sign | (magnitude > 0x7f800000 ? 0x7f : code < infinity ? code : infinity);
  else if constexpr (E == kFinite)
    code = sign | (magnitude > 0x7f800000 ? 0x7f : code < 0x7e ? code : 0x7e);
  else
    code = code > 0x7f ? 0x80 : code == 0 ? 0 : sign | code;
  to.bits = u8(code);
}
AOTI_INLINE void from_f32(f16 &to, f32 x) { to = to_f16(x); }
AOTI_INLINE void from_f32(bf16 &to, f32 x) { to = to_bf16(x); }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// Two at a time, the first in the lower half.
AOTI_INLINE u32 to_f16s(f32 x, f32 y) {
  u32 both;
  __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
  return both;
}
AOTI_INLINE u32 to_bf16s(f32 x, f32 y) {
  u32 both;
  __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
  return both;
}
#endif

AOTI_NAMESPACE_END
