// The vector type `Vec<T, W>`, the mask type `Mask<W>`, and how both split, join and change element type.
// A vector of W lanes is one machine register, or a pair of half-width vectors when it is wider than one: compilers keep
// pairs in registers, where they spill vector types wider than the machine's. W = 1 is a plain scalar, so the scalar
// instance of a kernel body runs the same algorithms. Knows nothing of memory or of mathematics; see vec.h for the API.
#pragma once

#include "shuffle.h"
#if AOTI_GCC_X86
#include "x86_gcc.h"
#endif

AOTI_NAMESPACE_BEGIN

enum Shape { kScalar, kRegister, kPair };
template <class T, int W>
constexpr Shape shape_of = W == 1 ? kScalar : W * int(sizeof(T)) <= AOTI_VECTOR_BYTES ? kRegister : kPair;

template <class T, int W, Shape = shape_of<T, W>> struct Vec;
template <class T, int W> struct Vec<T, W, kScalar> {
  T v;
};
#if !AOTI_GPU
template <class T, int W> struct Vec<T, W, kRegister> {
  typedef T Register __attribute__((vector_size(W * sizeof(T))));
  Register v;
};
#endif
template <class T, int W> struct Vec<T, W, kPair> {
  Vec<T, W / 2> lo, hi;
};

// Booleans: lanes are 0 or -1.
template <int W> struct Mask {
  Vec<i32, W> m;
};

// Which lanes of a step a kernel body handles: all W, or only the first n.
template <int W> struct Full {
  static constexpr int width = W;
};
template <int W> struct Tail {
  static constexpr int width = W;
  int n;
};

namespace detail {

#if !AOTI_GPU
template <class T, int W, int... I, int Offset>
AOTI_INLINE Vec<T, W / 2> pick(Vec<T, W> a, Indices<I...>, Indices<Offset>) {
  return {shuffled<(I + Offset)...>(a.v, a.v)};
}
template <int Offset, class T, int W> AOTI_INLINE Vec<T, W / 2> half(Vec<T, W> a) {
  if constexpr (W == 2)
    return {a.v[Offset]};
#if AOTI_GCC_X86 && AOTI_AVX2
  else if constexpr (W * sizeof(T) >= 32)
    return {(typename Vec<T, W / 2>::Register)gcc::extract_half<Offset != 0>(a.v)};
#endif
  else
    return pick(a, indices<W / 2>{}, Indices<Offset>{});
}
template <class T, int W, int... I> AOTI_INLINE Vec<T, W> concat(Vec<T, W / 2> a, Vec<T, W / 2> b, Indices<I...>) {
  if constexpr (W == 2)
    return {typename Vec<T, W>::Register{a.v, b.v}};
#if AOTI_GCC_X86 && AOTI_AVX2
  else if constexpr (W * sizeof(T) >= 32)
    return {(typename Vec<T, W>::Register)gcc::join_halves(a.v, b.v)};
#endif
  else
    return {shuffled<I...>(a.v, b.v)};
}
// Lanes 0, Step, 2*Step, ... of a register.
template <int Step, class T, int W, int... I> AOTI_INLINE Vec<T, W / Step> every(Vec<T, W> a, Indices<I...>) {
  return {shuffled<(I * Step)...>(a.v, a.v)};
}
#endif

} // namespace detail

// The first and the second half of the lanes.
template <class T, int W> AOTI_INLINE Vec<T, W / 2> lower(Vec<T, W> a) {
#if !AOTI_GPU
  if constexpr (shape_of<T, W> != kPair) return detail::half<0>(a);
  else
#endif
    return a.lo;
}
template <class T, int W> AOTI_INLINE Vec<T, W / 2> upper(Vec<T, W> a) {
#if !AOTI_GPU
  if constexpr (shape_of<T, W> != kPair) return detail::half<W / 2>(a);
  else
#endif
    return a.hi;
}
template <class T, int H> AOTI_INLINE Vec<T, 2 * H> join(Vec<T, H> a, Vec<T, H> b) {
#if !AOTI_GPU
  if constexpr (shape_of<T, 2 * H> != kPair) return detail::concat<T, 2 * H>(a, b, indices<2 * H>{});
  else
#endif
    return {a, b};
}

template <int W, class T> AOTI_INLINE Vec<T, W> splat(T x) {
  if constexpr (shape_of<T, W> == kPair) {
    Vec<T, W / 2> h = splat<W / 2>(x);
    return {h, h};
  } else if constexpr (W == 1)
    return {x};
  else
    return {x - typename Vec<T, W>::Register{}};
}

// Lane i, for tests and rare scalar steps.
template <class T, int W> AOTI_INLINE T lane(Vec<T, W> a, int i) {
  if constexpr (shape_of<T, W> == kPair)
    return i < W / 2 ? lane(a.lo, i) : lane(a.hi, i - W / 2);
  else if constexpr (W == 1)
    return a.v;
  else
    return a.v[i];
}
template <int W> AOTI_INLINE bool lane(Mask<W> a, int i) { return lane(a.m, i) != 0; }

// Vec<R, W> whose lane i is f(lane i of each argument): a loop over memory, for functions that have no vector form.
#if AOTI_GPU
// Arrays with a run-time index would leave the registers.
template <class F, class T, int W> AOTI_INLINE auto lanewise(F f, Vec<T, W> a) -> Vec<decltype(f(T{})), W> {
  if constexpr (W == 1)
    return {f(a.v)};
  else
    return {lanewise(f, a.lo), lanewise(f, a.hi)};
}
template <class F, class T, class U, int W>
AOTI_INLINE auto lanewise(F f, Vec<T, W> a, Vec<U, W> b) -> Vec<decltype(f(T{}, U{})), W> {
  if constexpr (W == 1)
    return {f(a.v, b.v)};
  else
    return {lanewise(f, a.lo, b.lo), lanewise(f, a.hi, b.hi)};
}
#else
template <class F, class T, int W> AOTI_INLINE auto lanewise(F f, Vec<T, W> a) -> Vec<decltype(f(T{})), W> {
  using R = decltype(f(T{}));
  T in[W];
  R out[W];
  __builtin_memcpy(in, &a, sizeof in);
  for (int i = 0; i < W; ++i) out[i] = f(in[i]);
  Vec<R, W> r;
  __builtin_memcpy(&r, out, sizeof out);
  return r;
}
template <class F, class T, class U, int W>
AOTI_INLINE auto lanewise(F f, Vec<T, W> a, Vec<U, W> b) -> Vec<decltype(f(T{}, U{})), W> {
  using R = decltype(f(T{}, U{}));
  T in[W];
  U in2[W];
  R out[W];
  __builtin_memcpy(in, &a, sizeof in);
  __builtin_memcpy(in2, &b, sizeof in2);
  for (int i = 0; i < W; ++i) out[i] = f(in[i], in2[i]);
  Vec<R, W> r;
  __builtin_memcpy(&r, out, sizeof out);
  return r;
}

#endif

// The same bits seen as elements of another type of the same size.
template <class To, class T, int W> AOTI_INLINE Vec<To, W> bits_as(Vec<T, W> a) {
  static_assert(sizeof(To) == sizeof(T), "bits_as keeps the element size");
  if constexpr (shape_of<T, W> == kPair)
    return {bits_as<To>(a.lo), bits_as<To>(a.hi)};
  else if constexpr (W == 1)
    return {bit_cast<To>(a.v)};
  else
    return {(typename Vec<To, W>::Register)a.v};
}

namespace detail {

// i64 -> f64 with one rounding, from two exact halves. AVX-512 and NEON have an instruction.
#if !AOTI_GPU
template <int W> AOTI_INLINE Vec<f64, W> f64_from_i64(Vec<i64, W> a) {
  using U = typename Vec<u64, W>::Register;
  using F = typename Vec<f64, W>::Register;
  U bits = (U)a.v;
  U low = (bits & 0xffffffffu) | 0x4330000000000000u;               // 2^52 + low 32 bits
  U high = (bits >> 32) ^ 0x4530000080000000u;                      // 2^84 + 2^63 + 2^32 * signed high 32 bits
  F top = (F)high - (0x1p84 + 0x1p63 + 0x1p52);
  return {top + (F)low};
}
#endif

#if AOTI_GPU
template <class To, class T, int W> AOTI_INLINE Vec<To, W> convert_register(Vec<T, W> a) { return {To(a.v)}; }
#else
// One register (or scalar) each side.
template <class To, class T, int W> AOTI_INLINE Vec<To, W> convert_register(Vec<T, W> a) {
  constexpr bool narrow_ints = !is_float<T> && !is_float<To> && sizeof(To) < sizeof(T);
  if constexpr (W == 1)
    return {To(a.v)};
#if AOTI_GCC_X86
  else if constexpr (gcc::widens<To, T, W>)
    return {gcc::widen<To, T, W>(a.v)};
  else if constexpr (gcc::narrows<To, T, W>)
    return {gcc::narrow<To, T, W>(a.v)};
  else if constexpr (gcc::converts_f64<To, T, W>)
    return {gcc::convert_f64<To, T, W>(a.v)};
#endif
  else if constexpr (narrow_ints && !AOTI_AVX512) {
    // Compilers scalarise this; it is picking every n-th element of the narrower type.
    constexpr int step = sizeof(T) / sizeof(To);
    Vec<To, W * step> all{(typename Vec<To, W * step>::Register)a.v};
    return every<step>(all, indices<W>{});
  } else if constexpr (is_same<T, i64> && is_same<To, f64> && !AOTI_AVX512 && !AOTI_AARCH64)
    return f64_from_i64(a);
  else
    return {__builtin_convertvector(a.v, typename Vec<To, W>::Register)};
}
#endif

template <int W> AOTI_INLINE Vec<i64, W> i64_from_f32(Vec<f32, W> a);

} // namespace detail

// Converts element types as C does; a float outside an integer type's range gives an unspecified value.
template <class To, class T, int W> AOTI_INLINE Vec<To, W> convert(Vec<T, W> a) {
  if constexpr (is_same<To, T>)
    return a;
  else if constexpr (W > 1 && !is_float<T> && !is_float<To> && sizeof(T) + sizeof(To) >= 9 && sizeof(T) != 4 &&
                     sizeof(To) != 4 && sizeof(T) != sizeof(To))
    return convert<To>(convert<conditional<is_signed<T>, i32, u32>>(a)); // between 1 or 2 and 8 bytes
  else if constexpr (W > 1 && is_float<T> != is_float<To> && sizeof(T) < 4)
    return convert<To>(convert<i32>(a)); // there is no instruction from narrow integers to floats
  else if constexpr (W > 1 && is_float<T> && !is_float<To> && sizeof(To) < 4)
    return convert<To>(convert<i32>(a));
  else if constexpr (W == 1 && is_float<T> && sizeof(To) < 4)
    return {To(i32(a.v))};
  else if constexpr (W > 1 && is_same<T, f32> && is_same<To, i64> && !AOTI_AVX512)
    return detail::i64_from_f32(a);
  else if constexpr (shape_of<T, W> == kPair || shape_of<To, W> == kPair)
    return join(convert<To>(lower(a)), convert<To>(upper(a)));
  else
    return detail::convert_register<To>(a);
}

namespace detail {

template <int W> AOTI_NOINLINE Vec<i64, W> i64_from_any_f32(Vec<f32, W> a) { return convert<i64>(convert<f64>(a)); }

// Indices that a program computes as floats are such numbers: those that 32 bits hold are converted in these, as before AVX-512
// there is no instruction for more, and it gives the least number for what does not fit.
template <int W> AOTI_INLINE Vec<i64, W> i64_from_f32(Vec<f32, W> a) {
#if AOTI_SSE2
  const Vec<i32, W> narrow = convert<i32>(a);
  if (__builtin_expect(any(narrow == Limits<i32>::lowest), 0)) return i64_from_any_f32(a);
  return convert<i64>(narrow);
#else
  return i64_from_any_f32(a);
#endif
}

} // namespace detail

// A mask from lanes that are 0 or -1, and back.
template <class T, int W> AOTI_INLINE Mask<W> mask_from(Vec<T, W> a) { return {convert<i32>(a)}; }
template <class T, int W> AOTI_INLINE Vec<T, W> mask_lanes(Mask<W> a) { return convert<T>(a.m); }

AOTI_NAMESPACE_END
