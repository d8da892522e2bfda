// Products of bytes for tiles of integers: a *word* holds four numbers of one byte, neighbours along the depth of a product. The
// left operand's are unsigned, the right one's signed, and a sum of 32 bits is of all of them. It is exact, and wraps around.
//
// Some processors have an instruction for this: those with AVX512-VNNI, AVX-VNNI or the dot products of Armv8.4, which a
// processor of a level may have or not: a run asks (`has_word_products`). Others multiply numbers of 16 bits, which bytes are
// widened to, as products of bytes saturate where two of them are added up in 16 bits: left operands once for each tile, as
// *halves* (`split_words`), so that in the loop over the depth there is little but products (`HalfSums`).
#pragma once

#include "tile.h"

#if defined(__x86_64__) && !defined(__APPLE__) && !defined(_MSC_VER) && AOTI_AVX2
#define AOTI_WORD_PRODUCTS 1
#elif defined(__aarch64__) && (defined(__linux__) || defined(__APPLE__))
#define AOTI_WORD_PRODUCTS 1
#else
#define AOTI_WORD_PRODUCTS 0
#endif

// Functions that may use the instruction: gcc's assembler for Arm wants to know.
#if defined(__aarch64__) && !defined(__clang__)
#define AOTI_USES_WORDS __attribute__((target("arch=armv8.2-a+dotprod")))
#else
#define AOTI_USES_WORDS
#endif

#if defined(__aarch64__) && defined(__linux__)
extern "C" unsigned long getauxval(unsigned long) noexcept;
#endif

AOTI_NAMESPACE_BEGIN

namespace detail {

using WordVector = TileVectorOf<i32>;
typedef i16 WordHalves __attribute__((vector_size(AOTI_VECTOR_BYTES)));

#if defined(__x86_64__) && !defined(__APPLE__) && !defined(_MSC_VER)
// Whether this processor has the instruction for the widest vectors, and for those of 32 bytes.
struct WordInstructions {
  bool wide, vectors;
};
AOTI_NOINLINE WordInstructions word_instructions() {
  const auto ask = [](u32 &a, u32 &c) {
    u32 b, d;
    asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  };
  u32 most = 0, none = 0, first = 7, wide = 0, second = 7, vectors = 1;
  ask(most, none);
  if (most < 7) return {};
  ask(first, wide), ask(second, vectors);
  return {(wide & 1 << 11) != 0, (second & 1 << 4) != 0};
}
#endif

AOTI_NOINLINE bool find_word_products() {
#if !AOTI_WORD_PRODUCTS
  return false;
#elif defined(__aarch64__)
#if defined(__linux__)
  constexpr unsigned long kHardware = 16, kDotProducts = 1ul << 20;
  return (getauxval(kHardware) & kDotProducts) != 0;
#else
  return true;
#endif
#else
  // The widest form of a level is what its code uses.
  return AOTI_AVX512 ? word_instructions().wide : word_instructions().vectors;
#endif
}

// Whether this processor has it at some level: what is asked before there is a level. Nothing but time depends on it.
AOTI_INLINE bool may_multiply_words() {
#if defined(__x86_64__) && !defined(__APPLE__) && !defined(_MSC_VER)
  const WordInstructions own = word_instructions();
  return own.wide || own.vectors;
#else
  return false;
#endif
}
// A form of weights that follows a head of so many numbers of four bytes, of which the first says what it is: words, or what takes
// their place where they would be split.
constexpr i64 kFormHead = 16;
enum WordForm : i32 { kWordsThemselves = 1, kWordPoints = 2 };

// Whether this machine has an instruction for it.
AOTI_INLINE bool has_word_products() {
#if AOTI_WORD_PRODUCTS
  // Asked once, by as many threads as come before there is an answer.
  enum { kUnknown, kNo, kYes };
  static int known = kUnknown;
  int state = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (state == kUnknown) {
    state = find_word_products() ? kYes : kNo;
    __atomic_store_n(&known, state, __ATOMIC_RELAXED);
  }
  return state == kYes;
#else
  return false;
#endif
}

AOTI_INLINE WordVector word_everywhere(i32 x) { return WordVector{} + x; }

// --- with the instruction ---

#if AOTI_WORD_PRODUCTS
// sum + left * right. Vectors may be narrower than a level has them.
template <class V> AOTI_INLINE V add_words(V sum, V left, V right) {
#if defined(__aarch64__)
#if defined(__clang__)
  asm(".arch_extension dotprod\n\tsdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(left), "w"(right));
#else
  asm("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(left), "w"(right));
#endif
#elif AOTI_AVX512
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(left), "v"(right));
#else
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(left), "x"(right));
#endif
  return sum;
}
#endif

// --- without ---

// Of each word the numbers at even places, or at odd ones, as numbers of 16 bits.
template <bool Odd> AOTI_INLINE WordHalves left_halves(WordVector x) {
  typedef u16 Halves __attribute__((vector_size(AOTI_VECTOR_BYTES)));
  if constexpr (Odd) return (WordHalves)((Halves)x >> 8);
  return (WordHalves)(x & 0x00ff00ff);
}
template <bool Odd> AOTI_INLINE WordHalves right_halves(WordVector w) {
  typedef u16 Halves __attribute__((vector_size(AOTI_VECTOR_BYTES)));
  const WordHalves all = Odd ? (WordHalves)w : (WordHalves)((Halves)w << 8);
  return all >> 8;
}
// The sums of neighbouring products.
AOTI_INLINE WordVector pair_products(WordHalves a, WordHalves b) {
#if AOTI_AVX512 && defined(__clang__)
  return (WordVector)__builtin_ia32_pmaddwd512(a, b);
#elif AOTI_AVX512
  return (WordVector)__builtin_ia32_pmaddwd512_mask(a, b, WordVector{}, u16(-1));
#elif AOTI_AVX2
  return (WordVector)__builtin_ia32_pmaddwd256(a, b);
#elif defined(__x86_64__)
  return (WordVector)__builtin_ia32_pmaddwd128(a, b);
#else
  // Numbers of the left operand are no larger than a byte, so their upper halves are zero.
  const WordVector x = (WordVector)a, y = (WordVector)b;
  return (x & 0xffff) * (y << 16 >> 16) + (x >> 16) * (y >> 16);
#endif
}

// The same of left operands of either sign.
AOTI_INLINE WordVector signed_pair_products(WordHalves a, WordHalves b) {
#if defined(__x86_64__)
  return pair_products(a, b);
#else
  const WordVector x = (WordVector)a, y = (WordVector)b;
  return (x << 16 >> 16) * (y << 16 >> 16) + (x >> 16) * (y >> 16);
#endif
}

// Words of a row that are split at once: halves of a tile and the weights that they meet stay in the nearest cache.
constexpr i64 kSplitWords = 64;

// The halves of `count` words, at least `Lanes`, that lie side by side and begin anywhere.
template <int Lanes> AOTI_INLINE void split_row(const i32 *from, i64 count, i32 *even, i32 *odd) {
  typedef u32 Words __attribute__((vector_size(4 * Lanes), aligned(1), may_alias));
  for (i64 i = 0; i < count; i += Lanes) {
    // The last vector may have words of the one before it.
    const i64 first = min_i64(i, count - Lanes);
    const Words x = *(const Words *)(from + first);
    *(Words *)(even + first) = x & 0x00ff00ffu;
    *(Words *)(odd + first) = x >> 8 & 0x00ff00ffu;
  }
}

// Of `count` words of each of `rows` rows the halves, `even` and `odd`, [row][kSplitWords]. The rows are `row` words apart, and
// words `step`. A function of its own, as sums in registers would be in the way of what it keeps there.
AOTI_NOINLINE void split_words(const i32 *from, i64 row, i64 step, int rows, i64 count, i32 *even, i32 *odd) {
  constexpr int lanes = kLanesOf<i32>, few = 4;
  for (int r = 0; r < rows; ++r, from += row, even += kSplitWords, odd += kSplitWords) {
    if (step == 1 && count >= lanes)
      split_row<lanes>(from, count, even, odd);
    else if (step == 1 && count >= few)
      split_row<few>(from, count, even, odd);
    else
      for (i64 i = 0; i < count; ++i) split_row<1>(from + i * step, 1, even + i, odd + i);
  }
}

// Sums of `Vectors` vectors of columns for `Rows` rows of words that are split. Where vectors of weights are is what `at` says.
template <int Rows, int Vectors> struct HalfSums {
  WordVector sum[Rows][Vectors];

  AOTI_INLINE HalfSums() {
    AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < Vectors; ++v) sum[r][v] = WordVector{};
  }

  // One half of `count` words at a time: sums, weights and a left operand fill the registers.
  template <bool Odd, class At> AOTI_INLINE void add_halves(i64 count, const i32 *left, i64 row, const At &at) {
    for (i64 k = 0; k < count; ++k) {
      WordHalves right[Vectors];
      AOTI_UNROLL for (int v = 0; v < Vectors; ++v) {
        const i32 *from = at(k, v);
        right[v] = right_halves<Odd>(load_tile_vector(from));
        // Each line once.
        if (Rows > 2 && !Odd && v * AOTI_VECTOR_BYTES % 64 == 0) ask_for(from + kRowsAhead * kPanel);
      }
      AOTI_UNROLL for (int r = 0; r < Rows; ++r) {
        const WordHalves x = (WordHalves)word_everywhere(left[r * row + k]);
        AOTI_UNROLL for (int v = 0; v < Vectors; ++v) sum[r][v] += pair_products(x, right[v]);
      }
    }
  }
  // Of `count` words of each row, whose halves are `row` words apart.
  template <class At> AOTI_INLINE void add(i64 count, const i32 *even, const i32 *odd, i64 row, const At &at) {
    add_halves<false>(count, even, row, at);
    add_halves<true>(count, odd, row, at);
  }

  AOTI_INLINE WordVector total(int r, int v) const { return sum[r][v]; }
};

// The same by the instruction, one word of each row at a time, rows `step` apart.
template <int Rows, int Vectors> struct WordSums {
#if AOTI_WORD_PRODUCTS
  WordVector sum[Rows][Vectors];
#if defined(__aarch64__)
  // The instruction takes signed numbers: those of the left operand less 128, of which the sums are here.
  WordVector less[Vectors];
#endif

  AOTI_INLINE WordSums() {
    AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < Vectors; ++v) sum[r][v] = WordVector{};
#if defined(__aarch64__)
    AOTI_UNROLL for (int v = 0; v < Vectors; ++v) less[v] = WordVector{};
#endif
  }

  // Operands of bytes may begin anywhere.
  AOTI_INLINE static i32 word_at(const i32 *p) {
    typedef i32 Unaligned __attribute__((aligned(1), may_alias));
    return *(const Unaligned *)p;
  }

  AOTI_INLINE void add(const i32 *a, i64 step, const WordVector (&w)[Vectors]) {
#if defined(__aarch64__)
    const WordVector lowest = word_everywhere(i32(0x80808080));
    AOTI_UNROLL for (int v = 0; v < Vectors; ++v) less[v] = add_words(less[v], lowest, w[v]);
#endif
    AOTI_UNROLL for (int r = 0; r < Rows; ++r) {
      WordVector x = word_everywhere(word_at(a + r * step));
#if defined(__aarch64__)
      x ^= lowest;
#endif
      AOTI_UNROLL for (int v = 0; v < Vectors; ++v) sum[r][v] = add_words(sum[r][v], x, w[v]);
    }
  }

  AOTI_INLINE WordVector total(int r, int v) const {
#if defined(__aarch64__)
    return sum[r][v] - less[v];
#else
    return sum[r][v];
#endif
  }
#endif
};

} // namespace detail

AOTI_NAMESPACE_END
