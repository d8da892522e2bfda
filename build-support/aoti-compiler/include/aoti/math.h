// Elementary functions on vectors, for generated CPU kernels: the umbrella of math_f64.h, math_f64_more.h, math_f32.h and math_more.h.
//
// All take and give Vec<f32, W> or Vec<f64, W>, any W, and give the same value whatever W is on one machine.
// NaN, infinities, signed zeros and denormals are handled as libm does. On vectors throughout for f32:
//   exp exp2 expm1 log log2 log10 log1p pow hypot
//   sin cos tan asin acos atan atan2(y, x) sinh cosh tanh asinh acosh atanh
//   erf erfc erfinv sigmoid silu softplus(x) = log1p(exp(x)) gelu gelu_tanh
// For f64, log10 erf erfc erfinv pow call libm lane by lane, and sin cos tan beyond 2^20 and sinh cosh beyond 700 in magnitude.
//   pow(Vec<integer>, Vec<integer>)   PyTorch's: a negative exponent gives 1, -1 or 0
//
// Largest error found for f32, in units of the last place (ULP) of the correctly rounded result, over every 97th of all
// 2^32 arguments (tests/headers/math.cpp); pow, atan2 and hypot over 2^25 pairs:
//   exp 1.03    exp2 1.03   expm1 1.68  log 0.87    log2 1.75   log10 0.51  log1p 1.44
//   sin 1.54    cos 1.52    tan 1.37    asin 0.51   acos 0.51   atan 0.51   atan2 0.51
//   sinh 0.51   cosh 0.51   tanh 1.31   asinh 0.51  acosh 0.51  atanh 0.51
//   erf 1.30 (1.39 with AVX-512, 1.00 with AVX2)      erfc 0.52   erfinv 0.60 softplus 2.06   pow 0.51
//   hypot 0.51  sigmoid 2.21            silu 1.96
// For f64, over samples against 64-bit mantissas; the lane-by-lane ones are libm's:
//   exp 0.96    exp2 1.02   expm1 1.56  log 0.77    log2 1.59   log1p 1.44  sin 0.77    cos 0.75    tan 2.18    asin 2.09
//   acos 2.27   atan 0.97   atan2 1.95  sinh 2.17   cosh 1.59   tanh 2.10   asinh 1.58  acosh 2.07  atanh 1.88  hypot 1.16
//   sigmoid 1.99            erfinv 2.0
// Where a GPU's units for functions help (AOTI_FUNCTION_UNITS), of f32: exp 1.9, sigmoid 3.1, tanh 1.9, erf 1.4, over four million
// arguments. Beyond 2^20 in magnitude sin, cos and tan of f32 are libm's as well.
#pragma once

#include "math_more.h"
