// How the special_*.h headers turn one f64 formula into scalar and vector functions of f32 and f64.
// Knows no function itself.
#pragma once

#include "math.h"

// NAME(x) and NAME(x, y) for scalars and vectors, from the f64 function FORMULA.
#define AOTI_SPECIAL1(NAME, FORMULA)                                                                 \
  AOTI_INLINE f64 NAME(f64 x) { return FORMULA(x); }                                                 \
  AOTI_INLINE f32 NAME(f32 x) { return f32(FORMULA(f64(x))); }                                       \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(Vec<T, W> x) {                                \
    return lanewise([](T v) { return NAME(v); }, x);                                                 \
  }
#define AOTI_SPECIAL2(NAME, FORMULA)                                                                 \
  AOTI_INLINE f64 NAME(f64 x, f64 y) { return FORMULA(x, y); }                                       \
  AOTI_INLINE f32 NAME(f32 x, f32 y) { return f32(FORMULA(f64(x), f64(y))); }                        \
  AOTI_SPECIAL2_LANES(NAME)
#define AOTI_SPECIAL2_LANES(NAME)                                                                    \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(Vec<T, W> x, Vec<T, W> y) {                   \
    return lanewise([](T v, T u) { return NAME(v, u); }, x, y);                                      \
  }                                                                                                  \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(Vec<T, W> x, identity<T> y) {                 \
    return NAME(x, splat<W, T>(y));                                                                  \
  }                                                                                                  \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(identity<T> x, Vec<T, W> y) {                 \
    return NAME(splat<W, T>(x), y);                                                                  \
  }
