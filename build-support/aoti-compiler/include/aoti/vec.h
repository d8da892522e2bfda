// Vectors for generated CPU kernels: the one header a kernel includes for everything but elementary functions (math.h)
// and special functions (special.h). A kernel body is generic in its lanes L and runs with Full<W>, Tail<W> or Full<1>:
//
//   template <class L> void body(L lanes, const float *x, float *y) { store(lanes, y, load(lanes, x) * 2.0f); }
//
// Types (namespace aoti; all but the element types are local to the object file, so kernel signatures with external
// linkage name element types and pointers to them only)
//   i8 i16 i32 i64 u8 f32 f64     elements;  f16 bf16  storage only: lanes of them are f32
//   Vec<T, W>, Mask<W>            W lanes (a power of 2, 1..=64); AOTI_LANES lanes of 4 bytes fill a register
//   Full<W>{}, Tail<W>{n}         lanes in use: all W, or the first n, 0 <= n <= W;  L::width == W
// Memory (T: any element type or bool; bool lanes are Mask, f16/bf16 lanes are Vec<f32>)
//   load(L, const T *p)                         store(L, T *p, value)
//   load_strided(L, const T *p, i64 stride)     store_strided(L, T *p, i64 stride, value)
//   load_every<Step>(L, const T *p)
//   gather(L, const T *p, Vec<i64|i32, W>)      scatter(L, T *p, Vec<i64|i32, W>, value)
//   broadcast(L, T scalar)                      iota(L, i64 start, i64 step = 1) -> Vec<i64>; iota32(L, ...) -> Vec<i32>
//   active(L) -> Mask; select_tail(L, value, neutral): `neutral` in the lanes not in use
//   lane(value, int i) -> scalar; to_f32(f16|bf16); to_f16(f32); to_bf16(f32)
// Casts
//   cast<To>(Vec | Mask)    To: any element type, bool -> Mask, f16/bf16 -> Vec<f32> rounded to that type
//   bits_as<To>(Vec)        same bits, same size
// Arithmetic (Vec with Vec or with a scalar of the element type on either side; integers wrap)
//   + - * / (floats only)  unary -  & | ^ ~  << >> (PyTorch's shifts: any count is defined)
//   == != < <= > >= -> Mask;  Mask: & | ^ ~ == !=, any(m), all(m);  select(Mask, a, b) for Vec (or one scalar) and Mask
//   trunc_div floor_div fmod remainder(Python's sign): ints and floats; integer division by zero gives 0
//   floor_div_by<D>(a) remainder_by<D>(a): of indices, by a positive constant
//   minimum maximum (NaN propagates), fmin fmax (NaN is ignored), clamp(a, low, high), copysign(magnitude, sign)
//   neg abs sign sgn floor ceil trunc round(half to even) sqrt rsqrt reciprocal
//   fma(a, b, c) one rounding everywhere; mad(a, b, c) fused only where that is an instruction
//   isnan isinf isfinite signbit -> Mask
// Reductions to a scalar, lanes halved in a fixed order
//   reduce_add reduce_mul reduce_min reduce_max (NaN propagates) reduce_fmin reduce_fmax
//   reduce_and reduce_or reduce_xor (integers; and, or also on Mask -> bool)
// Build flags: -ffp-contract=off, so that only `fma` and `mad` fuse; clang at x86-64-v4 also wants
// -mprefer-vector-width=512; AOTI_LEVEL_NS names the level. A fallback may call libm.
// Own functions per lane:  lanewise(f, a), lanewise(f, a, b)
#pragma once

#include "round.h"
#include "strided.h"
