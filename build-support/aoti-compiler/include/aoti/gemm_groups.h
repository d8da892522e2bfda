// Matrix products with weights that are stored as whole numbers of a few bits, in groups along the depth: each group of a column has a
// scale, a least number that is added to all of its numbers before they are scaled, and perhaps an offset that is added then.
// `runplan/group_panels.rs` writes them.
//
// Packed B begins with 64 bytes, of which the first words are bits of a number (4 or 8), rows of a group, whether there are offsets, whether
// groups have least numbers of their own, and else the one of all. Panels of kPanel columns follow, each a list of groups: kPanel scales (f32),
// kPanel least numbers (i16) and kPanel offsets (f32) where there are such, and blocks of 32 / bits rows of unsigned numbers, those past the group's last row zero. In a block each column has a word of
// four bytes: one of each row of 8 bits; of 4 bits rows 0 to 3 are the low halves and rows 4 to 7 the high ones.
//
// Products of few rows are fixed-point: the numbers of a row of A are, in each group of B's rows, whole numbers of 24 bits times a power of
// two. Their three digits are multiplied with B's numbers as bytes are (`bytes.h`), so the sum of a group is exact, by whichever
// instructions; its error is that of rounding A's numbers to 24 bits of the largest of their group. Rows with numbers that are not finite,
// and products of more rows, read what a program without this form would: number times scale, rounded once. The number of rows of the
// whole product decides, never that of a part.
#pragma once

#include "gemm.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// Rows of a product up to which sums are fixed-point: with the instruction for words, and without.
constexpr i64 kGroupedRows = 32;
constexpr i64 kSlowGroupedRows = 4;
constexpr int kPanelVectors = kPanel / kLanes;
// Vectors of columns whose sums are kept in registers with those of so many rows.
constexpr int grouped_vectors(int rows) {
  const int registers = AOTI_AVX512 || AOTI_AARCH64 ? 8 : 4;
  return registers / rows < kPanelVectors ? registers / rows : kPanelVectors;
}
// Digits of a number of A, and words before those of a group: a power of two, the sum of each digit, and that times the least number of all.
constexpr int kDigits = 3;
constexpr i64 kDigitHead = 8;

struct GroupForm {
  i64 bits, rows, has_offsets, has_least;
  i32 least;
  AOTI_INLINE i64 blocks() const { return ceil_div(rows, 32 / bits); }
  // Bytes before offsets, and before blocks.
  AOTI_INLINE i64 offsets() const { return kPanel * (has_least ? 6 : 4); }
  AOTI_INLINE i64 head() const { return offsets() + (has_offsets ? kPanel * 4 : 0); }
  AOTI_INLINE i64 group_bytes() const { return head() + blocks() * kPanel * 4; }
  // Words of the digits of a group: a digit of four numbers each, those of the same numbers side by side, and one of nothing.
  AOTI_INLINE i64 digit_words() const { return kDigitHead + blocks() * (32 / bits); }
};
// Words of the digits of a row: a vector behind them may be overwritten.
AOTI_INLINE i64 digit_row_words(GroupForm form, i64 k) { return k / form.rows * form.digit_words() + kLanes; }

// --- numbers of A ---

typedef u8 DigitBytes __attribute__((vector_size(AOTI_VECTOR_BYTES)));
constexpr int digit_place(int at) { return at / 16 * 16 + at % 4 * 4 + at % 16 / 4; }
template <int... I> AOTI_INLINE DigitBytes digits_together(Indices<I...>, DigitBytes x) {
  return shuffled<digit_place(I)...>(x, x);
}

// The digits of a vector of numbers times `power`, balanced: from -128 to 127. Each sum grows by those of one digit.
AOTI_INLINE void write_digits(TileVector x, f32 power, i32 *to, WordVector &sums) {
  const TileVector scaled = x * power;
  const TileVector half = (TileVector)(((WordVector)scaled & i32(0x80000000)) | 0x3f000000);
  const WordVector whole = (WordVector)convert<i32>(Vec<f32, kLanes>{scaled + half}).v;
  const WordVector digits = (whole + 0x808080) ^ 0x808080;
  const WordVector together = (WordVector)digits_together(indices<AOTI_VECTOR_BYTES>{}, (DigitBytes)digits);
  store_tile_vector(to, together);
  sums += (together << 24 >> 24) + (together << 16 >> 24) + (together << 8 >> 24) + (together >> 24);
}

// The numbers of a row in each group; false where some are not finite.
AOTI_NOINLINE AOTI_VECTORIZE bool write_row_digits(GroupForm form, i64 groups, const f32 *a, i32 *to) {
  // The largest digits are not those of 2^23: what is nearly a power of two counts as one.
  constexpr u32 kNearly = 65800, kInfinite = 0x7f800000, kLeast = 30;
  for (i64 j = 0; j < groups; ++j, a += form.rows, to += form.digit_words()) {
    u32 most = 0;
    for (i64 i = 0; i < form.rows; ++i) {
      const u32 magnitude = bit_cast<u32>(a[i]) & 0x7fffffff;
      most = magnitude > most ? magnitude : most;
    }
    if (most >= kInfinite) return false;
    u32 exponent = (most + kNearly) >> 23;
    exponent = exponent > kLeast ? exponent : kLeast;
    const f32 power = bit_cast<f32>((276 - exponent) << 23);
    WordVector sums = {};
    i64 i = 0;
    for (; i + kLanes <= form.rows; i += kLanes) write_digits(load_tile_vector(a + i), power, to + kDigitHead + i, sums);
    if (i < form.rows) {
      f32 rest[kLanes] = {};
      for (i64 own = i; own < form.rows; ++own) rest[own - i] = a[own];
      write_digits(load_tile_vector(rest), power, to + kDigitHead + i, sums);
      i += kLanes;
    }
    for (; i < form.digit_words() - kDigitHead; ++i) to[kDigitHead + i] = 0;
    const f32 back = bit_cast<f32>((exponent - 22) << 23);
    to[0] = bit_cast<i32>(back);
    for (int digit = 0; digit < kDigits; ++digit) {
      i32 sum = 0;
      for (int lane = digit; lane < kLanes; lane += 4) sum += sums[lane];
      to[1 + digit] = sum;
      to[4 + digit] = sum * form.least;
    }
  }
  return true;
}

// --- few rows ---

AOTI_INLINE TileVector to_floats(WordVector x) { return (TileVector)convert<f32>(Vec<i32, kLanes>{x}).v; }
// The least numbers of some columns of a group.
AOTI_INLINE WordVector load_least(GroupForm form, const u8 *group, i64 column) {
  if (!form.has_least) return word_everywhere(form.least);
  return (WordVector)convert<i32>(load_raw(Full<kLanes>{}, (const i16 *)(group + kPanel * 4) + column)).v;
}

// sum + numbers * digits, which are the same in all columns.
template <int Bits, bool Fast> AOTI_INLINE WordVector add_digits(WordVector sum, WordVector numbers, i32 digits) {
  const WordVector x = word_everywhere(digits);
#if AOTI_WORD_PRODUCTS
  if constexpr (Fast) return add_words(sum, numbers, x);
#endif
#if AOTI_AVX2
  if constexpr (Bits == 4) {
    // Sums of two products fit 16 bits.
    typedef char Bytes __attribute__((vector_size(AOTI_VECTOR_BYTES)));
#if AOTI_AVX512 && defined(__clang__)
    const WordHalves pairs = (WordHalves)__builtin_ia32_pmaddubsw512((Bytes)numbers, (Bytes)x);
#elif AOTI_AVX512
    const WordHalves pairs = (WordHalves)__builtin_ia32_pmaddubsw512_mask((Bytes)numbers, (Bytes)x, WordHalves{}, u32(-1));
#else
    const WordHalves pairs = (WordHalves)__builtin_ia32_pmaddubsw256((Bytes)numbers, (Bytes)x);
#endif
    return sum + pair_products(WordHalves{} + 1, pairs);
  }
#endif
  return sum + pair_products(left_halves<false>(numbers), right_halves<false>(x)) +
         pair_products(left_halves<true>(numbers), right_halves<true>(x));
}

// The instruction of Arm takes signed numbers.
template <int Bits, bool Fast> constexpr i32 kLessBy = AOTI_AARCH64 && Fast && Bits == 8 ? 128 : 0;

// Adds, to tile[Rows][kPanel], the sums of Rows rows with a panel's columns from `first` on, as many as vectors hold.
template <int Bits, int Rows, int Vectors, bool Fast>
AOTI_INLINE void digit_sums(GroupForm form, i64 groups, const i32 *digits, i64 row_words, const u8 *b, i64 first, f32 *tile) {
  const i64 blocks = form.blocks();
  for (i64 j = 0; j < groups; ++j, b += form.group_bytes(), digits += form.digit_words()) {
    WordVector sum[Rows][kDigits][Vectors];
    if (form.has_least) {
      AOTI_UNROLL for (int v = 0; v < Vectors; ++v) {
        const WordVector least = load_least(form, b, first + v * kLanes) + kLessBy<Bits, Fast>;
        AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int d = 0; d < kDigits; ++d)
            sum[r][d][v] = least * digits[r * row_words + 1 + d];
      }
    } else {
      AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int d = 0; d < kDigits; ++d) {
        const i32 *head = digits + r * row_words;
        const WordVector start = word_everywhere(head[4 + d] + head[1 + d] * kLessBy<Bits, Fast>);
        AOTI_UNROLL for (int v = 0; v < Vectors; ++v) sum[r][d][v] = start;
      }
    }
    const i32 *block = (const i32 *)(b + form.head()) + first;
    const i32 *x = digits + kDigitHead;
    for (i64 i = 0; i < blocks; ++i, block += kPanel, x += 32 / Bits) {
      AOTI_UNROLL for (int half = 0; half < 8 / Bits; ++half) {
        WordVector w[Vectors];
        AOTI_UNROLL for (int v = 0; v < Vectors; ++v) {
          w[v] = load_tile_vector(block + v * kLanes);
          if constexpr (Bits == 4) w[v] = (half == 0 ? w[v] : w[v] >> 4) & 0x0f0f0f0f;
          if constexpr (kLessBy<Bits, Fast> != 0) w[v] ^= i32(0x80808080);
        }
        AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int d = 0; d < kDigits; ++d)
            AOTI_UNROLL for (int v = 0; v < Vectors; ++v)
                sum[r][d][v] = add_digits<Bits, Fast>(sum[r][d][v], w[v], x[r * row_words + half * 4 + d]);
      }
    }
    AOTI_UNROLL for (int r = 0; r < Rows; ++r) {
      const i32 *head = digits + r * row_words;
      const f32 power = bit_cast<f32>(head[0]);
      AOTI_UNROLL for (int v = 0; v < Vectors; ++v) {
        const TileVector lower = to_floats(sum[r][1][v]) * 256.0f + to_floats(sum[r][0][v]);
        const TileVector all = to_floats(sum[r][2][v]) * 65536.0f + lower;
        f32 *to = tile + r * kPanel + v * kLanes;
        TileVector total = load_tile_vector(to) + all * (load_tile_vector((const f32 *)b + first + v * kLanes) * power);
        if (form.has_offsets) {
          const f32 row = (f32(head[3]) * 65536.0f + (f32(head[2]) * 256.0f + f32(head[1]))) * power;
          total += load_tile_vector((const f32 *)(b + form.offsets()) + first + v * kLanes) * row;
        }
        store_tile_vector(to, total);
      }
    }
  }
}

template <int Bits, int Rows>
AOTI_NOINLINE AOTI_CONTRACT void group_sums(GroupForm form, i64 groups, const i32 *digits, i64 row_words, const u8 *b, i64 first,
                                            f32 *tile) {
  AOTI_CONTRACT_BODY
  digit_sums<Bits, Rows, grouped_vectors(Rows), false>(form, groups, digits, row_words, b, first, tile);
}
template <int Bits, int Rows>
AOTI_NOINLINE AOTI_CONTRACT AOTI_USES_WORDS void fast_group_sums(GroupForm form, i64 groups, const i32 *digits, i64 row_words,
                                                                 const u8 *b, i64 first, f32 *tile) {
  AOTI_CONTRACT_BODY
  digit_sums<Bits, Rows, grouped_vectors(Rows), AOTI_WORD_PRODUCTS != 0>(form, groups, digits, row_words, b, first, tile);
}

// The sums of Rows rows and a panel, into tile[Rows][kPanel].
template <int Bits, int Rows>
AOTI_INLINE void group_tile(GroupForm form, i64 groups, const i32 *digits, i64 row_words, const u8 *b, f32 *tile) {
  constexpr int columns = grouped_vectors(Rows) * kLanes;
  zero_floats(tile, Rows * kPanel);
  for (i64 c = 0; c < kPanel; c += columns)
    if (has_word_products())
      fast_group_sums<Bits, Rows>(form, groups, digits, row_words, b, c, tile + c);
    else
      group_sums<Bits, Rows>(form, groups, digits, row_words, b, c, tile + c);
}

// --- more rows ---

// A panel as floats, [k][kPanel].
template <int Bits> AOTI_NOINLINE void scale_panel(GroupForm form, i64 groups, const u8 *b, f32 *to) {
  constexpr i64 count = 32 / Bits;
  for (i64 j = 0; j < groups; ++j, b += form.group_bytes()) {
    const i32 *block = (const i32 *)(b + form.head());
    for (i64 i = 0; i < form.rows; i += count, block += kPanel)
      for (int v = 0; v < kPanelVectors; ++v) {
        const WordVector least = load_least(form, b, v * kLanes);
        const TileVector scale = load_tile_vector((const f32 *)b + v * kLanes);
        const WordVector words = load_tile_vector(block + v * kLanes);
        AOTI_UNROLL for (int r = 0; r < count; ++r) {
          const int shift = r % 4 * 8 + r / 4 * 4;
          TileVector w = to_floats((words >> shift & (Bits == 4 ? 15 : 255)) + least) * scale;
          if (form.has_offsets) w += load_tile_vector((const f32 *)(b + form.offsets()) + v * kLanes);
          if (i + r < form.rows) store_tile_vector(to + (i + r) * kPanel + v * kLanes, w);
        }
      }
    to += form.rows * kPanel;
  }
}

// --- a part of a product ---

// What the rows of a part are multiplied as: digits of `digit_row_words` words, and whether a row has such; none where rows are many.
struct GroupedRows {
  Matrix<f32> a;
  const i32 *digits;
  u32 has_digits;
};

// The next rows of a tile of fixed-point sums. The widest vectors have two in registers with all that is added to them.
AOTI_INLINE int next_grouped(u32 has_digits, i64 left) {
  if (!AOTI_AVX512 && left >= 4 && (has_digits & 15) == 15) return 4;
  return left >= 2 && (has_digits & 3) == 3 ? 2 : 1;
}

template <int Bits, i64 Most, class Sink>
AOTI_INLINE void grouped_panel(GroupForm form, i64 m, i64 rows, i64 panel, i64 n, i64 k, const GroupedRows &of, const u8 *b,
                               f32 *scratch, Sink &sink) {
  const i64 groups = k / form.rows, words = digit_row_words(form, k);
  const auto by_floats = [&](i64 first, i64 last) AOTI_LAMBDA {
    const Matrix<f32> a = {of.a.data + first * of.a.row_stride, of.a.row_stride, of.a.col_stride};
    scale_panel<Bits>(form, groups, b, scratch);
    gemm_group<Most, kPanel>(m + first, last - first, panel, panel + 1, n, k, a, GemmPanels<f32>{scratch, kPanel, k * kPanel}, sink);
  };
  if (of.digits == nullptr) return by_floats(0, rows);
  alignas(64) f32 tile[4 * kPanel];
  for (i64 r = 0; r < rows;) {
    const i32 *digits = of.digits + r * words;
    const int own = next_grouped(of.has_digits >> r, rows - r);
    if (!(of.has_digits >> r & 1)) {
      by_floats(r, r + 1);
    } else {
      if (own == 4)
        group_tile<Bits, 4>(form, groups, digits, words, b, tile);
      else if (own == 2)
        group_tile<Bits, 2>(form, groups, digits, words, b, tile);
      else
        group_tile<Bits, 1>(form, groups, digits, words, b, tile);
      sink(m + r, own, panel * kPanel, min_i64(n - panel * kPanel, kPanel), tile, kPanel);
    }
    r += own;
  }
}

} // namespace detail

// As `gemm_packed`, of a product of `all` rows, for weights in groups; `scratch` as `packed_groups.rs` says.
template <i64 Most = kGemmMost, class T, class Epilogue, class RowEpilogue = NoRowEpilogue>
AOTI_INLINE void gemm_groups(i64 m0, i64 m1, i64 p0, i64 p1, i64 all, i64 n, i64 k, Matrix<T> a, const u8 *packed, void *scratch,
                             Epilogue epilogue, const RowEpilogue &row_epilogue = {}) {
  const i32 *head = (const i32 *)packed;
  const detail::GroupForm form = {head[0], head[1], head[2], head[3], head[4]};
  const auto sink = [&](i64 row, i64 rows, i64 column, i64 width, const f32 *sums, i64 pitch) AOTI_LAMBDA {
    detail::hand_over(row, rows, column, width, sums, pitch, epilogue);
  };
  const bool few = all <= (detail::has_word_products() ? detail::kGroupedRows : detail::kSlowGroupedRows);
  f32 *panel = (f32 *)scratch, *copy = panel + kPanel * k;
  i32 *digits = (i32 *)(copy + detail::gemm_copy_bytes<f32>(detail::gemm_even_rows<f32>(m1 - m0, k), k) / 4);
  const i64 bytes = k / form.rows * form.group_bytes(), block = detail::gemm_even_rows<f32>(m1 - m0, k);
  for (i64 m = m0; m < m1; m += block) {
    const i64 rows = min_i64(m1 - m, block);
    detail::GroupedRows of = {
        detail::gemm_rows(Matrix<T>{a.data + m * a.row_stride, a.row_stride, a.col_stride}, rows, k, copy), nullptr, 0};
    if (few) {
      of.digits = digits;
      for (i64 r = 0; r < rows; ++r)
        if (detail::write_row_digits(form, k / form.rows, of.a.data + r * of.a.row_stride, digits + r * detail::digit_row_words(form, k)))
          of.has_digits |= 1u << r;
    }
    for (i64 p = p0; p < p1; ++p) {
      const u8 *b = packed + 64 + p * bytes;
      if (form.bits == 8)
        detail::grouped_panel<8, Most>(form, m, rows, p, n, k, of, b, panel, sink);
      else
        detail::grouped_panel<4, Most>(form, m, rows, p, n, k, of, b, panel, sink);
    }
    row_epilogue(m, m + rows);
  }
}

AOTI_NAMESPACE_END
