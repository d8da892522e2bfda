// Arithmetic, comparisons, selection, reductions and element-type casts of `Vec` and `Mask`.
// Knows nothing of memory; elementary functions are in math.h. See vec.h for the API.
#pragma once

#include "lanes.h"

AOTI_NAMESPACE_BEGIN

// Integer arithmetic wraps, so it is done on unsigned lanes.
#define AOTI_BINARY(NAME, OP)                                                                        \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(Vec<T, W> a, Vec<T, W> b) {                   \
    if constexpr (shape_of<T, W> == kPair)                                                           \
      return {a.lo OP b.lo, a.hi OP b.hi};                                                           \
    else if constexpr (is_float<T>)                                                                  \
      return {a.v OP b.v};                                                                           \
    else if constexpr (W == 1)                                                                       \
      return {T(u64(a.v) OP u64(b.v))};                                                              \
    else {                                                                                           \
      using U = typename Vec<unsigned_of<T>, W>::Register;                                           \
      return {(typename Vec<T, W>::Register)((U)a.v OP(U) b.v)};                                     \
    }                                                                                                \
  }                                                                                                  \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(Vec<T, W> a, identity<T> b) {                 \
    return a OP splat<W, T>(b);                                                                      \
  }                                                                                                  \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(identity<T> a, Vec<T, W> b) {                 \
    return splat<W, T>(a) OP b;                                                                      \
  }
AOTI_BINARY(operator+, +)
AOTI_BINARY(operator-, -)
AOTI_BINARY(operator*, *)
AOTI_BINARY(operator&, &)
AOTI_BINARY(operator|, |)
AOTI_BINARY(operator^, ^)
#undef AOTI_BINARY

#define AOTI_COMPARE(NAME, OP)                                                                       \
  template <class T, int W> AOTI_INLINE Mask<W> NAME(Vec<T, W> a, Vec<T, W> b) {                     \
    if constexpr (shape_of<T, W> == kPair)                                                           \
      return {join((a.lo OP b.lo).m, (a.hi OP b.hi).m)};                                             \
    else if constexpr (W == 1)                                                                       \
      return {{-i32(a.v OP b.v)}};                                                                   \
    else {                                                                                           \
      using S = signed_of<T>;                                                                        \
      return mask_from(Vec<S, W>{(typename Vec<S, W>::Register)(a.v OP b.v)});                       \
    }                                                                                                \
  }                                                                                                  \
  template <class T, int W> AOTI_INLINE Mask<W> NAME(Vec<T, W> a, identity<T> b) {                   \
    return a OP splat<W, T>(b);                                                                      \
  }                                                                                                  \
  template <class T, int W> AOTI_INLINE Mask<W> NAME(identity<T> a, Vec<T, W> b) {                   \
    return splat<W, T>(a) OP b;                                                                      \
  }
AOTI_COMPARE(operator==, ==)
AOTI_COMPARE(operator!=, !=)
AOTI_COMPARE(operator<, <)
AOTI_COMPARE(operator<=, <=)
AOTI_COMPARE(operator>, >)
AOTI_COMPARE(operator>=, >=)
#undef AOTI_COMPARE

template <int W> AOTI_INLINE Mask<W> operator&(Mask<W> a, Mask<W> b) { return {a.m & b.m}; }
template <int W> AOTI_INLINE Mask<W> operator|(Mask<W> a, Mask<W> b) { return {a.m | b.m}; }
template <int W> AOTI_INLINE Mask<W> operator^(Mask<W> a, Mask<W> b) { return {a.m ^ b.m}; }
template <int W> AOTI_INLINE Mask<W> operator~(Mask<W> a) { return {a.m ^ -1}; }
template <int W> AOTI_INLINE Mask<W> operator==(Mask<W> a, Mask<W> b) { return ~(a ^ b); }
template <int W> AOTI_INLINE Mask<W> operator!=(Mask<W> a, Mask<W> b) { return a ^ b; }

template <class T, int W> AOTI_INLINE Vec<T, W> operator~(Vec<T, W> a) { return a ^ T(-1); }
template <class T, int W> AOTI_INLINE Vec<T, W> operator-(Vec<T, W> a) {
  if constexpr (is_float<T>) {
    using U = unsigned_of<T>;
    return bits_as<T>(bits_as<U>(a) ^ (U(1) << (8 * sizeof(T) - 1)));
  } else
    return T(0) - a;
}
template <class T, int W> AOTI_INLINE Vec<T, W> neg(Vec<T, W> a) { return -a; }

// mask ? a : b, lane by lane.
template <class T, int W> AOTI_INLINE Vec<T, W> select(Mask<W> mask, Vec<T, W> a, Vec<T, W> b) {
  if constexpr (shape_of<T, W> == kPair)
    return {select(Mask<W / 2>{lower(mask.m)}, a.lo, b.lo), select(Mask<W / 2>{upper(mask.m)}, a.hi, b.hi)};
  else if constexpr (W == 1)
    return {mask.m.v ? a.v : b.v};
  else {
    auto m = convert<signed_of<T>>(mask.m).v;
#if AOTI_GCC_X86
    return {gcc::blend(m, a.v, b.v)};
#else
    return {(typename Vec<T, W>::Register)(m ? a.v : b.v)};
#endif
  }
}
template <class T, int W> AOTI_INLINE Vec<T, W> select(Mask<W> mask, Vec<T, W> a, identity<T> b) {
  return select(mask, a, splat<W, T>(b));
}
template <class T, int W> AOTI_INLINE Vec<T, W> select(Mask<W> mask, identity<T> a, Vec<T, W> b) {
  return select(mask, splat<W, T>(a), b);
}
template <int W> AOTI_INLINE Mask<W> select(Mask<W> mask, Mask<W> a, Mask<W> b) {
  return (mask & a) | (~mask & b);
}

template <class T, int W> AOTI_INLINE Vec<T, W> operator/(Vec<T, W> a, Vec<T, W> b) {
  static_assert(is_float<T>, "integer division is trunc_div or floor_div");
  if constexpr (shape_of<T, W> == kPair)
    return {a.lo / b.lo, a.hi / b.hi};
  else
    return {a.v / b.v};
}
template <class T, int W> AOTI_INLINE Vec<T, W> operator/(Vec<T, W> a, identity<T> b) { return a / splat<W, T>(b); }
template <class T, int W> AOTI_INLINE Vec<T, W> operator/(identity<T> a, Vec<T, W> b) { return splat<W, T>(a) / b; }

// Shifts by a constant within the element's width; right shifts of signed elements keep the sign.
template <int N, class T, int W> AOTI_INLINE Vec<T, W> shl(Vec<T, W> a) {
  if constexpr (shape_of<T, W> == kPair)
    return {shl<N>(a.lo), shl<N>(a.hi)};
  else if constexpr (W == 1)
    return {T(u64(a.v) << N)};
  else
    return {a.v << N};
}
template <int N, class T, int W> AOTI_INLINE Vec<T, W> shr(Vec<T, W> a) {
  if constexpr (shape_of<T, W> == kPair)
    return {shr<N>(a.lo), shr<N>(a.hi)};
  else if constexpr (W == 1)
    return {T(a.v >> N)};
  else
    return {a.v >> N};
}

// PyTorch's shifts: a count that is negative or not below the width gives 0 on the left, the sign on the right.
template <class T, int W> AOTI_INLINE Vec<T, W> operator<<(Vec<T, W> a, Vec<T, W> n) {
  constexpr T bits = 8 * sizeof(T);
  if constexpr (shape_of<T, W> == kPair)
    return {a.lo << n.lo, a.hi << n.hi};
  else if constexpr (W == 1)
    return {n.v >= 0 && n.v < bits ? T(u64(a.v) << n.v) : T(0)};
  else
    return select((n >= T(0)) & (n < bits), Vec<T, W>{a.v << (n & T(bits - 1)).v}, T(0));
}
template <class T, int W> AOTI_INLINE Vec<T, W> operator>>(Vec<T, W> a, Vec<T, W> n) {
  constexpr T bits = 8 * sizeof(T);
  if constexpr (shape_of<T, W> == kPair)
    return {a.lo >> n.lo, a.hi >> n.hi};
  else {
    auto in_range = (n >= T(0)) & (n < bits);
    if constexpr (!is_signed<T>) {
      Vec<T, W> r;
      r.v = a.v >> (n & T(bits - 1)).v;
      return select(in_range, r, T(0));
    } else {
      Vec<T, W> r;
      r.v = a.v >> select(in_range, n, T(bits - 1)).v;
      return r;
    }
  }
}
template <class T, int W> AOTI_INLINE Vec<T, W> operator<<(Vec<T, W> a, identity<T> n) { return a << splat<W, T>(n); }
template <class T, int W> AOTI_INLINE Vec<T, W> operator>>(Vec<T, W> a, identity<T> n) { return a >> splat<W, T>(n); }

// Whether any or every lane is set.
template <int W> AOTI_INLINE bool any(Mask<W> mask) {
  if constexpr (W == 1)
    return mask.m.v != 0;
  else if constexpr (W > 2 && W * 4 > 16)
    return any(Mask<W / 2>{lower(mask.m) | upper(mask.m)});
#if AOTI_SSE2
  else if constexpr (W == 4)
    return __builtin_ia32_movmskps((typename Vec<f32, 4>::Register)mask.m.v) != 0;
#endif
  else
    return any(Mask<W / 2>{lower(mask.m) | upper(mask.m)});
}
template <int W> AOTI_INLINE bool all(Mask<W> mask) { return !any(~mask); }
// Whether some lane is less than zero.
template <class T, int W> AOTI_INLINE bool any_negative(Vec<T, W> a) {
  if constexpr (shape_of<T, W> == kPair)
    return any_negative(lower(a) | upper(a));
#if AOTI_AVX2 && !AOTI_AVX512
  else if constexpr (W == 4 && sizeof(T) == 8)
    return __builtin_ia32_movmskpd256((typename Vec<f64, 4>::Register)a.v) != 0;
#endif
  else
    return any(a < T(0));
}

// Element-type casts with PyTorch's meaning. To `bool`: nonzero, so NaN is true, as a Mask. To `f16` or `bf16`: an f32
// vector rounded to that type.
namespace detail {
// Without the fraction. What the integer cannot hold, NaN included, becomes its smallest number on every machine: that is
// what x86's instructions give; others give zero for NaN and the nearest number for the rest.
template <class To, class T, int W> AOTI_INLINE Vec<To, W> truncated(Vec<T, W> a) {
  if constexpr (!is_float<T>)
    return convert<To>(a);
  else if constexpr (sizeof(To) < 4)
    return convert<To>(truncated<i32>(a));
#if AOTI_SSE2
  else
    return convert<To>(a);
#else
  else {
    constexpr To lowest = Limits<To>::lowest;
    Mask<W> fits = (a >= T(lowest)) & (a < -T(lowest));
    return select(fits, convert<To>(a), splat<W>(lowest));
  }
#endif
}

template <class To> struct Cast {
  template <class T, int W> static AOTI_INLINE Vec<To, W> from(Vec<T, W> a) {
    if constexpr (is_float<T> && is_same<To, u32>)
      return convert<u32>(truncated<i64>(a));
    else if constexpr (is_float<T> && is_same<To, u64>) {
      Mask<W> upper = a >= T(0x1p63);
      Vec<i64, W> bits = truncated<i64>(select(upper, a - T(0x1p63), a));
      return bits_as<u64>(bits ^ (mask_lanes<i64>(upper) & Limits<i64>::lowest));
    } else if constexpr (is_float<To>)
      return convert<To>(a);
    else
      return truncated<To>(a);
  }
  template <int W> static AOTI_INLINE Vec<To, W> from(Mask<W> a) {
    if constexpr (is_float<To>)
      return bits_as<To>(mask_lanes<signed_of<To>>(a) & bit_cast<signed_of<To>>(To(1)));
    else
      return convert<To>(a.m & 1);
  }
};
template <> struct Cast<bool> {
  template <class T, int W> static AOTI_INLINE Mask<W> from(Vec<T, W> a) { return a != T(0); }
  template <int W> static AOTI_INLINE Mask<W> from(Mask<W> a) { return a; }
};
} // namespace detail

template <class T, int W> AOTI_INLINE Mask<W> isnan(Vec<T, W> a) { return a != a; }

template <class T, int W> AOTI_INLINE Vec<T, W> abs(Vec<T, W> a) {
  if constexpr (is_float<T>) {
    using U = unsigned_of<T>;
    return bits_as<T>(bits_as<U>(a) & U(U(-1) >> 1));
  } else if constexpr (!is_signed<T>)
    return a;
  else
    return select(a < T(0), -a, a);
}

template <class T, int W> AOTI_INLINE Mask<W> isinf(Vec<T, W> a) {
  if constexpr (is_float<T>)
    return abs(a) == Limits<T>::infinity;
  else
    return {splat<W>(i32(0))};
}
template <class T, int W> AOTI_INLINE Mask<W> isfinite(Vec<T, W> a) {
  if constexpr (is_float<T>)
    return abs(a) <= Limits<T>::max;
  else
    return {splat<W>(i32(-1))};
}
template <class T, int W> AOTI_INLINE Mask<W> signbit(Vec<T, W> a) {
  if constexpr (is_float<T>)
    return bits_as<signed_of<T>>(a) < signed_of<T>(0);
  else
    return a < T(0);
}
template <class T, int W> AOTI_INLINE Vec<T, W> copysign(Vec<T, W> magnitude, Vec<T, W> sign) {
  using U = unsigned_of<T>;
  constexpr U top = U(1) << (8 * sizeof(T) - 1);
  return bits_as<T>((bits_as<U>(magnitude) & U(~top)) | (bits_as<U>(sign) & top));
}
// -1, 0 or 1; NaN gives NaN as in torch.sgn, which for real numbers is torch.sign but for NaN.
template <class T, int W> AOTI_INLINE Vec<T, W> sign(Vec<T, W> a) {
  Vec<T, W> positive = detail::Cast<T>::from(a > T(0));
  if constexpr (!is_signed<T>)
    return positive;
  else
    return positive - detail::Cast<T>::from(a < T(0));
}
template <class T, int W> AOTI_INLINE Vec<T, W> sgn(Vec<T, W> a) { return sign(a); }

// The smaller and the larger of a and b; b where they are equal or either is NaN, as the instructions of x86 have it.
template <class T, int W> AOTI_INLINE Vec<T, W> smaller(Vec<T, W> a, Vec<T, W> b) {
  if constexpr (shape_of<T, W> == kPair)
    return {smaller(a.lo, b.lo), smaller(a.hi, b.hi)};
#if AOTI_GCC_X86
  else if constexpr (is_float<T> && W * sizeof(T) == AOTI_VECTOR_BYTES)
    return {gcc::smaller(a.v, b.v)};
#endif
#if AOTI_GPU
  else if constexpr (!is_float<T>)
    return {smaller_integer(a.v, b.v)};
#else
  // One instruction for most types.
  else if constexpr (!is_float<T> && W > 1)
    return {a.v < b.v ? a.v : b.v};
#endif
  else
    return select(a < b, a, b);
}
template <class T, int W> AOTI_INLINE Vec<T, W> larger(Vec<T, W> a, Vec<T, W> b) {
  if constexpr (shape_of<T, W> == kPair)
    return {larger(a.lo, b.lo), larger(a.hi, b.hi)};
#if AOTI_GCC_X86
  else if constexpr (is_float<T> && W * sizeof(T) == AOTI_VECTOR_BYTES)
    return {gcc::larger(a.v, b.v)};
#endif
#if AOTI_GPU
  else if constexpr (!is_float<T>)
    return {larger_integer(a.v, b.v)};
#else
  // One instruction for most types.
  else if constexpr (!is_float<T> && W > 1)
    return {a.v > b.v ? a.v : b.v};
#endif
  else
    return select(a > b, a, b);
}

// Minimum and maximum: NaN if either is NaN; `fmin` and `fmax` prefer the operand that is not NaN. What is known not to be
// NaN, such as the bound of a clamp, should be b: then one instruction is left.
#if AOTI_FLOAT_EXTREMES
#define AOTI_IN_ONE_INSTRUCTION(NAME)                                                                \
  if constexpr (is_same<T, f32>) {                                                                   \
    if constexpr (W == 1)                                                                            \
      return {NAME##_f32(a.v, b.v)};                                                                 \
    else                                                                                             \
      return {NAME(a.lo, b.lo), NAME(a.hi, b.hi)};                                                   \
  } else
#else
#define AOTI_IN_ONE_INSTRUCTION(NAME)
#endif
#define AOTI_EXTREME_OF_FLOATS(NAME, NUMBERS, OTHERWISE)                                             \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(Vec<T, W> a, Vec<T, W> b) {                   \
    AOTI_IN_ONE_INSTRUCTION(NAME) {                                                                  \
      Vec<T, W> r = NUMBERS;                                                                         \
      if constexpr (is_float<T>) r = select(isnan(b), OTHERWISE, r);                                 \
      return r;                                                                                      \
    }                                                                                                \
  }
AOTI_EXTREME_OF_FLOATS(minimum, smaller(b, a), b)
AOTI_EXTREME_OF_FLOATS(maximum, larger(b, a), b)
AOTI_EXTREME_OF_FLOATS(fmin, smaller(a, b), a)
AOTI_EXTREME_OF_FLOATS(fmax, larger(a, b), a)
#undef AOTI_EXTREME_OF_FLOATS
#undef AOTI_IN_ONE_INSTRUCTION
#define AOTI_WITH_SCALAR(NAME)                                                                       \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(Vec<T, W> a, identity<T> b) {                 \
    return NAME(a, splat<W, T>(b));                                                                  \
  }                                                                                                  \
  template <class T, int W> AOTI_INLINE Vec<T, W> NAME(identity<T> a, Vec<T, W> b) {                 \
    return NAME(splat<W, T>(a), b);                                                                  \
  }
AOTI_WITH_SCALAR(minimum)
AOTI_WITH_SCALAR(maximum)
AOTI_WITH_SCALAR(fmin)
AOTI_WITH_SCALAR(fmax)
AOTI_WITH_SCALAR(copysign)
template <class T, int W> AOTI_INLINE Vec<T, W> clamp(Vec<T, W> a, Vec<T, W> low, Vec<T, W> high) {
  return minimum(maximum(a, low), high);
}
template <class T, int W> AOTI_INLINE Vec<T, W> clamp(Vec<T, W> a, identity<T> low, identity<T> high) {
  return minimum(maximum(a, splat<W, T>(low)), splat<W, T>(high));
}

// Horizontal reductions, halving: lane i meets lane i + W/2, so the order does not depend on the machine.
#define AOTI_REDUCE(NAME, COMBINE)                                                                   \
  template <class T, int W> AOTI_INLINE T NAME(Vec<T, W> a) {                                        \
    if constexpr (W == 1)                                                                            \
      return a.v;                                                                                    \
    else {                                                                                           \
      Vec<T, W / 2> x = lower(a), y = upper(a);                                                      \
      return NAME(COMBINE);                                                                          \
    }                                                                                                \
  }
AOTI_REDUCE(reduce_add, x + y)
AOTI_REDUCE(reduce_mul, x *y)
AOTI_REDUCE(reduce_min, minimum(x, y))
AOTI_REDUCE(reduce_max, maximum(x, y))
AOTI_REDUCE(reduce_larger, larger(x, y))
AOTI_REDUCE(reduce_fmin, fmin(x, y))
AOTI_REDUCE(reduce_fmax, fmax(x, y))
AOTI_REDUCE(reduce_and, x &y)
AOTI_REDUCE(reduce_or, x | y)
AOTI_REDUCE(reduce_xor, x ^ y)
#undef AOTI_REDUCE
template <int W> AOTI_INLINE bool reduce_and(Mask<W> a) { return all(a); }
template <int W> AOTI_INLINE bool reduce_or(Mask<W> a) { return any(a); }

AOTI_NAMESPACE_END
