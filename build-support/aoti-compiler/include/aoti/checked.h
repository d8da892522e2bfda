// Integer arithmetic that knows whether it left 64 bits: for sizes and conditions over numbers that a caller or data chose.
// Owns no policy: a comparison with what left 64 bits does not hold, and the rest is the reader's.
#pragma once

#include "base.h"

AOTI_NAMESPACE_BEGIN

struct Checked {
  i64 value;
  bool fits;
  constexpr Checked(i64 value) : value(value), fits(true) {}
  constexpr Checked(i64 value, bool fits) : value(value), fits(fits) {}
};

AOTI_INLINE Checked operator+(Checked a, Checked b) {
  i64 sum = 0;
  const bool overflows = __builtin_add_overflow(a.value, b.value, &sum);
  return {sum, a.fits && b.fits && !overflows};
}
AOTI_INLINE Checked operator*(Checked a, Checked b) {
  i64 product = 0;
  const bool overflows = __builtin_mul_overflow(a.value, b.value, &product);
  return {product, a.fits && b.fits && !overflows};
}
// Quotient and remainder that round down.
AOTI_INLINE Checked floor_div(Checked a, Checked b) {
  const bool fits = a.fits && b.fits && b.value != 0 && !(a.value == Limits<i64>::lowest && b.value == -1);
  if (!fits) return {0, false};
  const i64 quotient = a.value / b.value;
  return {quotient - (a.value % b.value != 0 && (a.value < 0) != (b.value < 0)), true};
}
AOTI_INLINE Checked floor_mod(Checked a, Checked b) {
  const bool fits = a.fits && b.fits && b.value != 0 && !(a.value == Limits<i64>::lowest && b.value == -1);
  if (!fits) return {0, false};
  const i64 rest = a.value % b.value;
  return {rest != 0 && (rest < 0) != (b.value < 0) ? rest + b.value : rest, true};
}
AOTI_INLINE Checked min_i64(Checked a, Checked b) { return {a.value < b.value ? a.value : b.value, a.fits && b.fits}; }
AOTI_INLINE Checked max_i64(Checked a, Checked b) { return {a.value > b.value ? a.value : b.value, a.fits && b.fits}; }
// Bytes rounded up so that what follows is aligned for vectors.
AOTI_INLINE Checked align(Checked bytes) { return floor_div(bytes + Checked(63), Checked(64)) * Checked(64); }

AOTI_INLINE bool operator==(Checked a, Checked b) { return a.fits && b.fits && a.value == b.value; }
AOTI_INLINE bool operator!=(Checked a, Checked b) { return a.fits && b.fits && a.value != b.value; }
AOTI_INLINE bool operator<(Checked a, Checked b) { return a.fits && b.fits && a.value < b.value; }
AOTI_INLINE bool operator<=(Checked a, Checked b) { return a.fits && b.fits && a.value <= b.value; }
AOTI_INLINE bool operator>(Checked a, Checked b) { return a.fits && b.fits && a.value > b.value; }
AOTI_INLINE bool operator>=(Checked a, Checked b) { return a.fits && b.fits && a.value >= b.value; }

// A size or a number of bytes; -1 where it cannot be one.
AOTI_INLINE i64 size(Checked x) { return x.fits && x.value >= 0 && x.value <= (i64(1) << 48) ? x.value : -1; }

AOTI_NAMESPACE_END
