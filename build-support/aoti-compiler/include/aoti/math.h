// Elementary functions on vectors, for generated CPU kernels: the umbrella of math_f64.h, math_f32.h and math_more.h.
//
// All take and give Vec<f32, W> or Vec<f64, W>, any W, and give the same value whatever W is on one machine.
// NaN, infinities, signed zeros and denormals are handled as libm does. On vectors throughout for f32:
//   exp exp2 expm1 log log2 log10 log1p pow hypot
//   sin cos tan asin acos atan atan2(y, x) sinh cosh tanh asinh acosh atanh
//   erf erfc erfinv sigmoid silu softplus(x) = log1p(exp(x)) gelu gelu_tanh
// For f64, exp log tanh sigmoid silu softplus gelu_tanh are vectors; the others call libm lane by lane.
//   pow(Vec<integer>, Vec<integer>)   PyTorch's: a negative exponent gives 1, -1 or 0
//
// Largest error found for f32, in units of the last place (ULP) of the correctly rounded result, over every 97th of all
// 2^32 arguments (tests/headers/math.cpp); pow, atan2 and hypot over 2^24 pairs:
//AOTI_ERROR_TABLE
#pragma once

#include "math_more.h"
