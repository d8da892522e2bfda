// Weights of products that are stored as whole numbers of 4 or 8 bits, in groups along the depth: each group of a column has a scale
// and a least number, which is added to all of its numbers before they are scaled (`runplan/group_tiles.rs` writes them).
//
// Memory is cut into blocks of 16 columns and a step of the depth, those of the same columns one after the other. A block is
// 1 KiB of numbers as the threads of a warp take them, 16 bytes at a time, as left operands of matrix units (skinny.h): thread
// t has columns t / 4 and t / 4 + 8, and of each run of 32 depths the eight from t % 4 * 8 on. Numbers are unsigned. A word of 4 bits
// has eight of them, those of even depths in its low half, so that a shift makes a pair of neighbours. What the groups of a step are
// scaled by follows in the block, that of whole columns behind all blocks.
#pragma once

#include "skinny.h"

AOTI_NAMESPACE_BEGIN

// What the numbers of a group are made with.
struct alignas(8) GroupFactor {
  f32 scale;
  i32 least;
};

// The right operand of a product, for elements of T, each of which is a number times a scale, rounded once. Sums of numbers are exact: where
// scales are not of type T they are what is scaled, of few rows. Group: depths of a group, 0 where it is a whole column; Scale: bytes of a
// scale, 2 for one of type T.
template <class T, class I, int Bits, int Group, int Scale> struct Grouped {
  using Element = T;
  static constexpr Order order = Order::kDepth;
  static constexpr bool kCopied = false;
  static constexpr int kColumns = 16, kRun = 32, kRuns = 16 / Bits, kStep = kRun * kRuns;
  // Depths that have a factor of their own in a block: the largest part of a step of which all groups consist.
  static constexpr int kOwn = Group == 0 ? 0 : Group % kStep == 0 ? kStep : Group % (kStep / 2) == 0 ? kStep / 2 : kRun;
  static constexpr int kFactors = Group == 0 ? 0 : kStep / (kOwn == 0 ? 1 : kOwn), kFactorBytes = Scale == 2 ? 4 : 8;
  // Whether scales are such as numbers of T are multiplied by.
  static constexpr bool kRounds = Scale == 2;
  static constexpr int kNumberBytes = 1024, kBlockBytes = kNumberBytes + kFactors * kColumns * kFactorBytes;
  static_assert((Bits == 4 || Bits == 8) && Group % kRun == 0 && (Scale == 4 || (Scale == 2 && sizeof(T) == 2)));
  const u8 *pointer;
  I columns, depth;

  AOTI_INLINE I steps() const { return ceil_div(depth, I(kStep)); }
  // The first block of 16 columns.
  AOTI_INLINE const u8 *panel(I column) const { return pointer + i64(column / kColumns) * steps() * kBlockBytes; }
  template <class Word> static AOTI_INLINE Word load(const u8 *p) {
    Word word;
    __builtin_memcpy(&word, aligned<sizeof word>(p), sizeof word);
    return word;
  }
  static AOTI_INLINE GroupFactor factor_at(const u8 *p) {
    if constexpr (Scale == 2) {
      const u32 word = load<u32>(p);
      return {to_f32(T{u16(word)}), i32(word) >> 16};
    } else {
      return load<GroupFactor>(p);
    }
  }
  // That of the depths from `own * kOwn` of a block on, of a column by its number among the sixteen.
  static AOTI_INLINE GroupFactor factor(const u8 *block, int own, int column) {
    return factor_at(block + kNumberBytes + (own * kColumns + column) * kFactorBytes);
  }
  // That of a whole column.
  AOTI_INLINE GroupFactor factor_of_column(I column) const {
    const I panels = ceil_div(columns, I(kColumns));
    return load<GroupFactor>(pointer + i64(panels) * steps() * kBlockBytes + i64(column) * 8);
  }

  // As an operand of contract.h and units.h: elements, each number times its scale and rounded once.
  template <int N> AOTI_INLINE bool is_aligned() const { return true; }
  struct Entry {};
  AOTI_INLINE Entry entry(I, I) const { return {}; }
  struct Position {
    const u8 *panel;
    GroupFactor factor;
    int column;
    bool is_inside;
  };
  AOTI_INLINE Position position(I outer, I outers) const {
    Position at = {panel(0), {}, 0, outer < outers};
    if (at.is_inside) {
      at.panel = panel(outer), at.column = int(outer % kColumns);
      if constexpr (Group == 0) at.factor = factor_of_column(outer);
    }
    return at;
  }
  static AOTI_INLINE T element(u32 number, GroupFactor factor) {
    // A number in the low bits of 2^23 is one without a conversion.
    const u32 bits = 0x4b000000u | number;
    f32 value;
    __builtin_memcpy(&value, &bits, sizeof value);
    value = (value - f32(8388608 - factor.least)) * factor.scale;
    if constexpr (is_same<T, f32>) {
      return value;
    } else {
      T rounded;
      from_f32(rounded, value);
      return rounded;
    }
  }
  AOTI_INLINE T one(const Position &from, I at) const { return read<1, true>(from, nullptr, I(0), I(0), at, depth).at[0]; }
  // N elements along the depth from a multiple of N on.
  template <int N, bool>
  AOTI_INLINE Piece<T, N> read(const Position &from, const Entry *, I, I, I at, I depths) const {
    static_assert(N <= 8);
    Piece<T, N> piece;
    if (!from.is_inside || at >= depths) {
      AOTI_UNROLL_TIMES(8)
      for (int i = 0; i < N; ++i) piece.at[i] = T{};
      return piece;
    }
    const u8 *block = from.panel + i64(at / kStep) * kBlockBytes;
    const int own = int(at % kStep), run = own / kRun, quarter = own % kRun / 8, first = own % 8;
    GroupFactor factor = from.factor;
    if constexpr (Group != 0) factor = this->factor(block, own / (kOwn == 0 ? 1 : kOwn), from.column);
    const u8 *numbers = block + from.column / 8 * 512 + (from.column % 8 * 4 + quarter) * 16 + run * Bits;
    if constexpr (Bits == 4) {
      const u32 word = load<u32>(numbers);
      AOTI_UNROLL_TIMES(8)
      for (int i = 0; i < N; ++i) piece.at[i] = element(word >> ((first + i) % 2 * 16 + (first + i) / 2 * 4) & 15u, factor);
    } else {
      AOTI_UNROLL_TIMES(8)
      for (int i = 0; i < N; ++i) piece.at[i] = element(numbers[first + i], factor);
    }
    return piece;
  }
};

namespace detail {

#if AOTI_COPIES

// The halves of T that a thread multiplies of eight numbers, two in a word; scaled, and rounded as the program does it, where they are
// to be.
template <class T, int Bits, bool Scaled>
AOTI_INLINE void numbers_of_run(const SixteenBytes &piece, int run, const GroupFactor &factor, u32 *words) {
  const i32 least = factor.least;
  if constexpr (Bits == 4) {
    // In the low bits of 128, or 1024, numbers are halves as they are.
    constexpr u32 raised = is_same<T, bf16> ? 0x43004300u : 0x64006400u;
    const f32 less = f32(least - (is_same<T, bf16> ? 128 : 1024));
    const u32 both = pair_of<T>(less, less);
    AOTI_UNROLL_TIMES(4)
    for (int j = 0; j < 4; ++j) words[j] = add_pairs<T>((piece.words[run] >> 4 * j & 0x000f000fu) | raised, both);
  } else {
    const f32 less = f32(8388608 - least);
    AOTI_UNROLL_TIMES(4)
    for (int j = 0; j < 4; ++j) {
      const u32 word = piece.words[run * 2 + j / 2];
      words[j] = pair_of<T>(raised_byte(word, j % 2 * 2) - less, raised_byte(word, j % 2 * 2 + 1) - less);
    }
  }
  if constexpr (Scaled) {
    const u32 scale = pair_of<T>(factor.scale, factor.scale);
    AOTI_UNROLL_TIMES(4)
    for (int j = 0; j < 4; ++j) words[j] = multiply_pairs<T>(words[j], scale);
  }
}

// What a thread multiplies of the rows in a step, a word of halves for each two depths. Numbers of f32 are sums of three halves of
// eight bits each, so that products with whole numbers are exact.
template <class T, int Groups, int Runs> struct GroupedRows {
  static constexpr int kWide = sizeof(T) / 2, kParts = kWide == 1 ? 1 : 3;
  SixteenBytes at[Groups][Runs][kWide];

  // Those from a depth on; zeros behind the end and below the last row.
  template <class I> AOTI_INLINE void read(const Strided<T, I, true> &a, I depth, I m, I k) {
    AOTI_UNROLL_TIMES(2)
    for (int g = 0; g < Groups; ++g) {
      const I row = g * 8 + thread_index() % 32 / 4;
      const auto *from = (const SixteenBytes *)a.element(row, depth);
      AOTI_UNROLL_TIMES(4)
      for (int run = 0; run < Runs; ++run)
        AOTI_UNROLL_TIMES(2)
        for (int part = 0; part < kWide; ++part)
          at[g][run][part] = row < m && depth + run * 32 < k ? from[run * 4 * kWide + part] : SixteenBytes{};
    }
  }
  AOTI_INLINE void words(int g, int run, u32 (&to)[kParts][4]) const {
    if constexpr (kWide == 1) {
      AOTI_UNROLL_TIMES(4)
      for (int j = 0; j < 4; ++j) to[0][j] = at[g][run][0].words[j];
    } else {
      AOTI_UNROLL_TIMES(4)
      for (int j = 0; j < 4; ++j) {
        const u32 low = at[g][run][j / 2].words[j % 2 * 2], high = at[g][run][j / 2].words[j % 2 * 2 + 1];
        u32 x[3], y[3];
        split_halves(low, x), split_halves(high, y);
        AOTI_UNROLL_TIMES(3)
        for (int part = 0; part < 3; ++part) to[part][j] = x[part] >> 16 | (y[part] & 0xffff0000u);
      }
    }
  }
  // A number as three whose bits below those of a bfloat are zero.
  static AOTI_INLINE void split_halves(u32 bits, u32 (&to)[3]) {
    to[0] = bits & 0xffff0000u;
    f32 value, high;
    __builtin_memcpy(&value, &bits, sizeof value);
    __builtin_memcpy(&high, &to[0], sizeof high);
    const bool is_finite = (bits & 0x7f800000u) != 0x7f800000u;
    f32 rest = is_finite ? value - high : 0.0f;
    // A number that is none may have its mark in the low bits alone.
    if (!is_finite && (bits & 0x007fffffu) != 0) to[0] |= 0x00400000u;
    __builtin_memcpy(&to[1], &rest, sizeof rest);
    to[1] &= 0xffff0000u;
    __builtin_memcpy(&high, &to[1], sizeof high);
    rest -= high;
    __builtin_memcpy(&to[2], &rest, sizeof rest);
  }
};

// Blocks of memory that are on their way to a warp, and places for them.
template <class B> constexpr int kGroupedAhead = B::kBlockBytes > 1280 ? 2 : 3;
template <class B> constexpr int kGroupedBytes = (kGroupedAhead<B> + 1) * B::kBlockBytes * (kSkinnyThreads / 32);

// Sums of a block: its warps share the depth, step by step.
template <class T, int Rows, bool Early, class I, class B, class Epilogue>
AOTI_INLINE void contract_grouped_units(char *shared, I column0, I m, I n, I k, const Strided<T, I, true> &a, const B &b,
                                        const Epilogue &epilogue) {
  // Halves of f32 are bfloats, which hold as large numbers.
  using Half = conditional<sizeof(T) == 2, T, bf16>;
  constexpr int kWarps = kSkinnyThreads / 32, kGroups = Rows / 8, kAhead = kGroupedAhead<B>, kPlaces = kAhead + 1;
  constexpr int kRuns = B::kRuns, kFactors = B::kFactors, kOwnRuns = kFactors == 0 ? kRuns : kRuns / (kFactors == 0 ? 1 : kFactors);
  constexpr int kBits = 16 / kRuns;
  // Sums are scaled where numbers are not.
  constexpr bool kRounds = B::kRounds;
  static_assert(kGroupedBytes<B> >= int(sizeof(f32)) * kWarps * kSkinnyColumns * Rows);
  const int lane = thread_index() % 32, warp = thread_index() / 32;
  char *const own = shared + warp * (kPlaces * B::kBlockBytes);
  const I steps = b.steps();
  const u8 *const panel = b.panel(column0);
  I next_step = warp;
  // The next block; a thread brings what it takes, and some of the factors that all threads do.
  auto copy = [&](int place) {
    if (next_step < steps) {
      const u8 *from = panel + i64(next_step) * B::kBlockBytes;
      const u32 to = shared_address(own + place * B::kBlockBytes);
      AOTI_UNROLL_TIMES(2)
      for (int h = 0; h < 2; ++h) copy_ahead(to + u32(h * 512 + lane * 16), from + h * 512 + lane * 16);
      if (lane * 16 < B::kBlockBytes - B::kNumberBytes)
        copy_ahead(to + u32(B::kNumberBytes + lane * 16), from + B::kNumberBytes + lane * 16);
    }
    next_step += kWarps;
    commit_copies();
  };
  // The sums of the block's last tile are read from where blocks come to.
  barrier();
  AOTI_UNROLL_TIMES(4)
  for (int i = 0; i < kAhead; ++i) copy(i);
  GroupFactor factors[2] = {};
  if constexpr (kFactors == 0) {
    AOTI_UNROLL_TIMES(2)
    for (int h = 0; h < 2; ++h) {
      const I column = column0 + lane / 4 + h * 8;
      factors[h] = b.factor_of_column(column < n ? column : n - 1);
    }
  }
  if constexpr (Early) let_next_kernel_come(), begin_kernel();
  // Rows are read a step ahead: they come from a cache, but not at once.
  GroupedRows<T, kGroups, kRuns> rows, next;
  const I depth = lane % 4 * 8;
  next.read(a, I(warp * B::kStep + depth), m, k);
  f32 total[kGroups][4] = {}, sums[kGroups][4] = {};
  int place = 0;
  AOTI_UNROLL_TIMES(1)
  for (I step = warp; step < steps; step += kWarps) {
    rows = next;
    next.read(a, I((step + kWarps) * B::kStep + depth), m, k);
    wait_for_copies<kAhead - 1>();
    // Other threads brought factors, and have read those of the block whose place the next one takes.
    if constexpr (kFactors != 0) warp_barrier();
    const char *const block = own + place * B::kBlockBytes;
    SixteenBytes pieces[2];
    AOTI_UNROLL_TIMES(2)
    for (int h = 0; h < 2; ++h) pieces[h] = *(const SixteenBytes *)(block + h * 512 + lane * 16);
    copy((place + kAhead) % kPlaces);
    place = place + 1 == kPlaces ? 0 : place + 1;
    AOTI_UNROLL_TIMES(4)
    for (int run = 0; run < kRuns; ++run) {
      if constexpr (kFactors != 0) {
        if (run % kOwnRuns == 0) {
          AOTI_UNROLL_TIMES(2)
          for (int h = 0; h < 2; ++h) factors[h] = B::factor((const u8 *)block, run / kOwnRuns, lane / 4 + h * 8);
        }
      }
      u32 left[2][4];
      AOTI_UNROLL_TIMES(2)
      for (int h = 0; h < 2; ++h) numbers_of_run<Half, kBits, kRounds>(pieces[h], run, factors[h], left[h]);
      AOTI_UNROLL_TIMES(2)
      for (int g = 0; g < kGroups; ++g) {
        u32 right[GroupedRows<T, kGroups, kRuns>::kParts][4];
        rows.words(g, run, right);
        // The least part first.
        AOTI_UNROLL_TIMES(3)
        for (int part = GroupedRows<T, kGroups, kRuns>::kParts - 1; part >= 0; --part)
          AOTI_UNROLL_TIMES(2)
          for (int i = 0; i < 2; ++i) {
            const u32 words[4] = {left[0][2 * i], left[1][2 * i], left[0][2 * i + 1], left[1][2 * i + 1]};
            multiply<Half>(sums[g], words, right[part] + 2 * i);
          }
      }
      if constexpr (kFactors != 0 && !kRounds) {
        if (run % kOwnRuns == kOwnRuns - 1) {
          AOTI_UNROLL_TIMES(2)
          for (int g = 0; g < kGroups; ++g)
            AOTI_UNROLL_TIMES(4)
            for (int e = 0; e < 4; ++e) {
              total[g][e] = scalar_fma(sums[g][e], factors[e / 2].scale, total[g][e]);
              sums[g][e] = 0;
            }
        }
      }
    }
  }
  wait_for_copies<0>();
  finish_few<Rows>((f32 *)shared, [&](int g, int e) { return kRounds ? sums[g][e] : kFactors != 0 ? total[g][e] : sums[g][e] * factors[e / 2].scale; }, column0, m, n, epilogue);
}

#endif

} // namespace detail

// The sums of all rows, `Rows` at most, and of 16 columns from column0 on. Rows of A are contiguous, begin at multiples of 16 bytes and
// end at such. Where B does not depend on earlier kernels (`Early`), it is on its way before the kernel begins.
template <class T, int Rows, bool Early = false, class I, class A, class B, class Epilogue>
AOTI_INLINE void contract_grouped(I column0, I m, I n, I k, const A &a, const B &b, const Epilogue &epilogue) {
  static_assert(A::order == Order::kDepth && (Rows == 8 || Rows == 16));
#if AOTI_COPIES
  AOTI_DYNAMIC_SHARED(shared);
  detail::contract_grouped_units<T, Rows, Early>(shared, column0, m, n, k, a, b, epilogue);
#else
  if constexpr (Early) let_next_kernel_come(), begin_kernel();
  contract<f32, 16, detail::kSkinnyColumns, detail::kSkinnyThreads, 4>(I(0), column0, m, n, k, a, b, epilogue);
#endif
}

AOTI_NAMESPACE_END
