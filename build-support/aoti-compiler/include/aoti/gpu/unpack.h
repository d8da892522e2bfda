// What a thread reads of weights at once, as the numbers that it multiplies.
#pragma once

#include "operands.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// 2^23 and a byte of a word, without a conversion.
AOTI_INLINE f32 raised_byte(u32 word, int i) {
#if AOTI_NVIDIA
  u32 bits;
  __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(bits) : "r"(word), "r"(0x4b000000), "r"(0x7440 | i));
#else
  const u32 bits = 0x4b000000u | (word >> 8 * i & 0xffu);
#endif
  f32 value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
// A byte of a word as a number. A signed one has its sign turned, and is 128 more.
template <bool Signed> AOTI_INLINE f32 byte_of(u32 word, int i) {
  return raised_byte(word, i) - (Signed ? 8388608.0f + 128.0f : 8388608.0f);
}
template <bool Signed> AOTI_INLINE u32 without_sign(u32 word) { return Signed ? word ^ 0x80808080u : word; }

// As sums are held. The halves of a word are words whose other half is zero, one instruction each.
template <class T, int N, class U, class Own> AOTI_INLINE void unpack(const Own &piece, U *to) {
  constexpr bool kBytes = is_same<T, i8> || is_same<T, u8>;
  if constexpr (is_same<T, bf16> && is_same<U, f32> && N % 2 == 0) {
    u32 words[N / 2];
    __builtin_memcpy(words, &piece, sizeof words);
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < N; ++i) {
      const u32 word = i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u;
      __builtin_memcpy(to + i, &word, sizeof word);
    }
  } else if constexpr (kBytes && is_same<U, f32> && N % 4 == 0) {
    u32 words[N / 4];
    __builtin_memcpy(words, &piece, sizeof words);
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < N; ++i) to[i] = byte_of<is_same<T, i8>>(without_sign<is_same<T, i8>>(words[i / 4]), i % 4);
  } else {
    Piece<T, N> own;
    __builtin_memcpy(&own, &piece, sizeof own);
    AOTI_UNROLL_TIMES(16)
    for (int i = 0; i < N; ++i) to[i] = widen<U>(own.at[i]);
  }
}

} // namespace detail

AOTI_NAMESPACE_END
