// Conversions between f32 and elements of one byte on vectors: to_f32 and from_f32 of base.h, selected instead of branched.
// Knows nothing of memory; see vec.h for the API.
#pragma once

#include "ops.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

template <class T> struct Float8Lanes;
template <int X, int M, int B, Ends E> struct Float8Lanes<Float8<X, M, B, E>> {
  template <int W> static AOTI_INLINE Vec<f32, W> decode(Vec<u8, W> a) {
    Vec<i32, W> code = convert<i32>(a);
    if constexpr (E == kPowers) {
      Vec<i32, W> bits = select(code == 0, 0x400000, shl<23>(code));
      return bits_as<f32>(select(code == 0xff, 0x7fc00000, bits));
    } else {
      Vec<i32, W> magnitude = code & 0x7f;
      Vec<f32, W> value = bits_as<f32>(shl<23 - M>(magnitude)) * bit_cast<f32>(u32(254 - B) << 23);
      Vec<i32, W> bits = bits_as<i32>(value);
      if constexpr (E == kInfinite) bits = bits | ((magnitude >= (((1 << X) - 1) << M)).m & 0x7f800000);
      if constexpr (E == kFinite) bits = bits | ((magnitude == 0x7f).m & 0x7fc00000);
      if constexpr (E == kUnsignedZero) bits = bits | ((code == 0x80).m & 0x7fc00000);
      return bits_as<f32>(bits | shl<24>(code & 0x80));
    }
  }
  template <int W> static AOTI_INLINE Vec<u8, W> encode(Vec<f32, W> a) {
    Vec<i32, W> bits = bits_as<i32>(a), magnitude = bits & 0x7fffffff;
    if constexpr (E == kPowers) {
      Vec<i32, W> field = shr<23>(magnitude), rest = magnitude & 0x7fffff;
      Mask<W> up = (field != 0xff) & ((rest > 0x400000) | ((rest == 0x400000) & (field != 0)));
      return convert<u8>(bits_as<u32>(field - up.m));
    } else {
      constexpr int shift = 23 - M;
      constexpr i32 normal = (128 - B) << 23, unit = (151 - B - M) << 23, infinity = ((1 << X) - 1) << M;
      constexpr i32 rebias = (127 - B) << 23, below_half = (1 << (shift - 1)) - 1;
      Vec<i32, W> denormal = bits_as<i32>(bits_as<f32>(magnitude) + bit_cast<f32>(unit)) - unit;
      Vec<i32, W> rounded = shr<shift>(magnitude - rebias + below_half + (shr<shift>(magnitude) & 1));
      Vec<i32, W> code = select(magnitude < normal, denormal, rounded);
      Vec<i32, W> sign = shr<24>(bits) & 0x80;
      if constexpr (E == kInfinite)
        code = sign | select(magnitude > 0x7f800000, 0x7f, minimum(code, infinity));
      else if constexpr (E == kFinite)
        code = sign | select(magnitude > 0x7f800000, 0x7f, minimum(code, 0x7e));
      else
        code = select(code > 0x7f, 0x80, code | (sign & (code != 0).m));
      return convert<u8>(bits_as<u32>(code));
    }
  }
};

} // namespace detail

AOTI_NAMESPACE_END
