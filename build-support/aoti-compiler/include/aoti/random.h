// Random bits: Philox 4x32-10 of J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011), a function of a counter and a key. Scalars and vectors of every device give the same bits.
// Knows no distribution: programs make those of the bits.
#pragma once

#include "vec.h"

AOTI_NAMESPACE_BEGIN
namespace detail {

// Ten rounds over words that stand in the lower halves of lanes U.
template <class U> AOTI_INLINE U philox(U counter, U key) {
  constexpr u64 low = 0xffffffff;
  U x0 = counter & low, x1 = counter >> 32, x2 = counter ^ counter, x3 = x2, k0 = key & low, k1 = key >> 32;
  for (int round = 0; round < 10; ++round) {
    const U first = x0 * u64(0xd2511f53), second = x2 * u64(0xcd9e8d57);
    x0 = (second >> 32) ^ x1 ^ k0, x1 = second & low;
    x2 = (first >> 32) ^ x3 ^ k1, x3 = first & low;
    k0 = (k0 + u64(0x9e3779b9)) & low, k1 = (k1 + u64(0xbb67ae85)) & low;
  }
  return x0 | (x1 << 32);
}

} // namespace detail

AOTI_INLINE i64 philox(i64 counter, i64 key) { return i64(detail::philox<u64>(u64(counter), u64(key))); }
template <int W> AOTI_INLINE Vec<i64, W> philox(Vec<i64, W> counter, Vec<i64, W> key) {
  if constexpr (shape_of<i64, W> == kPair)
    return join(philox(lower(counter), lower(key)), philox(upper(counter), upper(key)));
  else if constexpr (W == 1)
    return {philox(counter.v, key.v)};
#if !AOTI_GPU
  else {
    using Words = typename Vec<u64, W>::Register;
    return {(typename Vec<i64, W>::Register)detail::philox<Words>((Words)counter.v, (Words)key.v)};
  }
#endif
}
template <int W> AOTI_INLINE Vec<i64, W> philox(Vec<i64, W> counter, i64 key) { return philox(counter, splat<W>(key)); }
template <int W> AOTI_INLINE Vec<i64, W> philox(i64 counter, Vec<i64, W> key) { return philox(splat<W>(counter), key); }

AOTI_NAMESPACE_END
