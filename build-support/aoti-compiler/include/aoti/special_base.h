// How the special_*.h headers turn one f64 formula into scalar and vector functions of f32 and f64.
// Knows no function itself.
#pragma once

#include "math.h"

AOTI_NAMESPACE_BEGIN
namespace special {
// What a term may be of the sum that it is the last of.
constexpr f64 kEnoughForF64 = 1e-17, kEnoughForF32 = 1e-10;
} // namespace special
AOTI_NAMESPACE_END

// NAME(x) and NAME(x, y) for scalars and vectors, from the f64 function FORMULA.
#define AOTI_SPECIAL1(NAME, FORMULA)                                                                 \
  AOTI_INLINE f64 NAME(f64 x) { return FORMULA(x); }                                                 \
  AOTI_INLINE f32 NAME(f32 x) { return f32(FORMULA(f64(x))); }                                       \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(Vec<T, W> x) {                                \
    return lanewise([](T v) { return NAME(v); }, x);                                                 \
  }
// The same from a FORMULA on vectors of f64 of any width.
#define AOTI_SPECIAL1_OF_LANES(NAME, FORMULA)                                                        \
  template <int W> AOTI_INLINE Vec<f64, W> NAME(Vec<f64, W> x) { return FORMULA(x); }                \
  template <int W> AOTI_INLINE Vec<f32, W> NAME(Vec<f32, W> x) {                                     \
    return aoti::detail::through_f64([](auto v) { return FORMULA(v); }, x);                          \
  }                                                                                                  \
  AOTI_INLINE f64 NAME(f64 x) { return NAME(Vec<f64, 1>{x}).v; }                                     \
  AOTI_INLINE f32 NAME(f32 x) { return NAME(Vec<f32, 1>{x}).v; }
// The same from one that sums terms until one is as small as the type asks for.
#define AOTI_SPECIAL1_TO(NAME, FORMULA)                                                              \
  template <int W> AOTI_INLINE Vec<f64, W> NAME(Vec<f64, W> x) { return FORMULA(x, kEnoughForF64); } \
  template <int W> AOTI_INLINE Vec<f32, W> NAME(Vec<f32, W> x) {                                     \
    return aoti::detail::through_f64([](auto v) { return FORMULA(v, kEnoughForF32); }, x);           \
  }                                                                                                  \
  AOTI_INLINE f64 NAME(f64 x) { return NAME(Vec<f64, 1>{x}).v; }                                     \
  AOTI_INLINE f32 NAME(f32 x) { return NAME(Vec<f32, 1>{x}).v; }
// The same where f32 has a formula on vectors of its own, which need not be right to all digits of f64.
#define AOTI_SPECIAL1_BY_TYPE(NAME, FORMULA, FORMULA_FOR_F32)                                        \
  AOTI_INLINE f64 NAME(f64 x) { return FORMULA(x); }                                                 \
  template <int W> AOTI_INLINE Vec<f64, W> NAME(Vec<f64, W> x) {                                     \
    return lanewise([](f64 v) { return FORMULA(v); }, x);                                            \
  }                                                                                                  \
  template <int W> AOTI_INLINE Vec<f32, W> NAME(Vec<f32, W> x) {                                     \
    return aoti::detail::through_f64([](auto v) { return FORMULA_FOR_F32(v); }, x);                  \
  }                                                                                                  \
  AOTI_INLINE f32 NAME(f32 x) { return NAME(Vec<f32, 1>{x}).v; }
#define AOTI_SPECIAL2(NAME, FORMULA)                                                                 \
  AOTI_INLINE f64 NAME(f64 x, f64 y) { return FORMULA(x, y); }                                       \
  AOTI_INLINE f32 NAME(f32 x, f32 y) { return f32(FORMULA(f64(x), f64(y))); }                        \
  AOTI_SPECIAL2_LANES(NAME)
// From the f64 function FORMULA of two numbers, which sums terms until one is as small as the type asks for.
#define AOTI_SPECIAL2_TO(NAME, FORMULA)                                                              \
  AOTI_INLINE f64 NAME(f64 x, f64 y) { return FORMULA(x, y, kEnoughForF64); }                        \
  AOTI_INLINE f32 NAME(f32 x, f32 y) { return f32(FORMULA(f64(x), f64(y), kEnoughForF32)); }         \
  AOTI_SPECIAL2_LANES(NAME)
#define AOTI_SPECIAL2_LANES(NAME)                                                                    \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(Vec<T, W> x, Vec<T, W> y) {                   \
    return lanewise([](T v, T u) { return NAME(v, u); }, x, y);                                      \
  }                                                                                                  \
  AOTI_SPECIAL2_WITH_SCALAR(NAME)
// From a FORMULA on two vectors of f64 of any width.
#define AOTI_SPECIAL2_OF_LANES(NAME, FORMULA)                                                        \
  template <int W> AOTI_INLINE Vec<f64, W> NAME(Vec<f64, W> x, Vec<f64, W> y) { return FORMULA(x, y); } \
  template <int W> AOTI_INLINE Vec<f32, W> NAME(Vec<f32, W> x, Vec<f32, W> y) {                      \
    return aoti::detail::through_f64([](auto v, auto u) { return FORMULA(v, u); }, x, y);            \
  }                                                                                                  \
  AOTI_INLINE f64 NAME(f64 x, f64 y) { return NAME(Vec<f64, 1>{x}, Vec<f64, 1>{y}).v; }              \
  AOTI_INLINE f32 NAME(f32 x, f32 y) { return NAME(Vec<f32, 1>{x}, Vec<f32, 1>{y}).v; }              \
  AOTI_SPECIAL2_WITH_SCALAR(NAME)
#define AOTI_SPECIAL2_WITH_SCALAR(NAME)                                                              \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(Vec<T, W> x, identity<T> y) {                 \
    return NAME(x, splat<W, T>(y));                                                                  \
  }                                                                                                  \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(identity<T> x, Vec<T, W> y) {                 \
    return NAME(splat<W, T>(x), y);                                                                  \
  }
