// Attention without a matrix of scores in memory: tiles of keys and values pass by a tile of queries, whose weighted sums
// are kept in registers and scaled down where a larger score comes (Dao, "FlashAttention-2", 2023).
//
// A score is what the program makes of the product of query and key; masks, biases and scales are all in that function.
// Sums are in an order that depends on sizes alone: the result is the same in every run.
#pragma once

#include "operands.h"

AOTI_NAMESPACE_BEGIN

// Element (row, column) is at pointer[row * row_stride + column * column_stride].
template <class T, class I> struct Table {
  const T *pointer;
  I row_stride, column_stride;
  AOTI_INLINE const T &at(I row, I column) const { return pointer[row * row_stride + column * column_stride]; }
  // Whether rows can be read 16 bytes at a time.
  AOTI_INLINE bool has_whole_rows() const {
    return column_stride == 1 && row_stride * I(sizeof(T)) % 16 == 0 && uintptr_t(pointer) % 16 == 0;
  }
};

// Which tile of queries a block takes: those of Heads heads by turns, first those that see the most keys where keys are hidden
// from earlier queries, so that what is left at the end is short.
template <int Heads, class I> struct TileOfHeads {
  I tile, batch;
  AOTI_INLINE TileOfHeads(I unit, I down, I batches) {
    const I first = Heads == 1 ? unit / down : unit / (down * Heads) * Heads, own = unit - first * down;
    const I heads = Heads == 1 ? I(1) : batches - first < Heads ? batches - first : I(Heads);
    tile = down - 1 - own / heads, batch = first + own % heads;
  }
};

namespace detail {

constexpr f32 kLog2E = 1.44269504088896341f;
constexpr int kScoreKeys = 32;

AOTI_INLINE f32 power_of_two(f32 x) {
#if AOTI_FUNCTION_UNITS
  return unit_exp2(x);
#else
  return exp2(Vec<f32, 1>{x}).v;
#endif
}

// Scores of a row may exceed what its exponents are relative to by this much before the sums are scaled, where weights are rounded
// to halves: they stay far below what those hold, and most tiles need no scaling.
constexpr f32 kSlack = 5.0f;

// What the exponents of a row are relative to: its largest score, so that no power overflows; anything where all scores
// are hidden.
AOTI_INLINE f32 base_of(f32 peak) { return peak == -__builtin_inff() ? 0.0f : peak; }
// e to the power of score - base. The difference first: masks hide scores with the least of all numbers too, of which there is no
// multiple, and a row may have no others.
AOTI_INLINE f32 weight_of(f32 score, f32 base) { return power_of_two((score - base) * kLog2E); }
// What attention gives for a row all of whose scores are hidden: what comes of dividing by their sum, zeros, or zeros for every row
// of whose sum NaN would come.
enum RowOfNothing : int { kNothingSpecial = 0, kZeros = 1, kZerosForNaN = 2 };

// What the weighted sum of a row is multiplied with; 0 for a row that has no weights.
template <int OfNothing, class I> AOTI_INLINE f32 inverse_of(f32 total, I keys) {
  if (OfNothing == kZerosForNaN && total != total) return 0.0f;
  return total == 0.0f && (OfNothing != kNothingSpecial || keys <= 0) ? 0.0f : 1.0f / total;
}
// The weighted sum, divided. That of a row whose weights are NaN is NaN, whatever it is multiplied with.
template <int OfNothing> AOTI_INLINE f32 mean_of(f32 sum, f32 inverse) {
  return OfNothing == kZerosForNaN && inverse == 0.0f ? 0.0f : sum * inverse;
}

// Shared memory of attend(): queries, weights, keys and values. Rows of keys are padded to an odd number of four floats,
// so that threads that read four of each lie in different banks; values lie behind the keys where there is room.
template <int Rows, int Width, int Columns> struct AttendTile {
  static constexpr int depth = (Width + 3) / 4 * 4, pitch = (depth / 4 | 1) * 4;
  static constexpr bool apart = (Rows * (depth + kScoreKeys) + kScoreKeys * (pitch + Columns)) * 4 <= 48 * 1024;
};
struct alignas(16) Four {
  f32 x[4];
} __attribute__((may_alias));

// Keys that the queries before `rows` see.
template <bool Causal, class I> AOTI_INLINE I seen_by(I rows, I keys, I reach) {
  if constexpr (!Causal) return keys;
  const I seen = rows + reach;
  return seen < 0 ? I(0) : seen < keys ? seen : keys;
}

} // namespace detail

// The queries [row0, row0 + Rows), by the Threads threads of a block, in f32. Threads lie in groups of 32: a group has some
// queries, and each of its threads a key of a tile, then columns of the values. What the next step reads is on its way
// while the present one is computed.
// score(query, key, lanes, product) once for each score that is not hidden, epilogue(query, column, lanes, mean).
template <int Threads, int Rows, int Width, int Columns, bool Causal, int OfNothing, class I, class Q, class K, class V,
          class Score, class Epilogue>
AOTI_INLINE void attend(char *shared, I row0, I m, I n, I reach, Table<Q, I> q, Table<K, I> k, Table<V, I> v,
                        const Score &score, const Epilogue &epilogue) {
  using namespace detail;
  using Tile = AttendTile<Rows, Width, Columns>;
  constexpr int keys = kScoreKeys, depth = Tile::depth, pitch = Tile::pitch;
  constexpr int own_rows = Rows / (Threads / 32), own_columns = (Columns + 31) / 32;
  constexpr int k_steps = (keys * depth + Threads - 1) / Threads, v_steps = (keys * Columns + Threads - 1) / Threads;
  f32 *const tile_q = (f32 *)shared, *const tile_p = tile_q + Rows * depth, *const tile_k = tile_p + Rows * keys;
  f32 *const tile_v = Tile::apart ? tile_k + keys * pitch : tile_k;
  const int thread = thread_index(), x = thread % 32, y = thread / 32 * own_rows;
  const bool k_by_key = k.row_stride == 1 && k.column_stride != 1, v_by_key = v.row_stride == 1 && v.column_stride != 1;
  const I end = row0 + Rows < m ? row0 + Rows : m, seen = seen_by<Causal>(end, n, reach);
  f32 next_k[k_steps], next_v[v_steps];
  auto fetch_keys = [&](I key0) {
    AOTI_UNROLL_TIMES(32)
    for (int t = 0; t < k_steps; ++t) {
      const int i = thread + t * Threads, row = k_by_key ? i % keys : i / depth, column = k_by_key ? i / keys : i % depth;
      next_k[t] = row < keys && column < Width && key0 + row < n ? widen<f32>(k.at(I(key0 + row), I(column))) : 0.0f;
    }
  };
  barrier();
  for (int i = thread; i < Rows * depth; i += Threads) {
    const I row = row0 + i / depth;
    const int column = i % depth;
    tile_q[i] = row < m && column < Width ? widen<f32>(q.at(row, I(column))) : 0.0f;
  }
  f32 sums[own_rows][own_columns], peak[own_rows], total[own_rows];
  AOTI_UNROLL_TIMES(8)
  for (int r = 0; r < own_rows; ++r) {
    peak[r] = -__builtin_inff(), total[r] = 0.0f;
    AOTI_UNROLL_TIMES(8)
    for (int c = 0; c < own_columns; ++c) sums[r][c] = 0.0f;
  }
  if (seen > 0) fetch_keys(I(0));
  for (I key0 = 0; key0 < seen; key0 += keys) {
    if constexpr (!Tile::apart) barrier();
    AOTI_UNROLL_TIMES(32)
    for (int t = 0; t < k_steps; ++t) {
      const int i = thread + t * Threads, row = k_by_key ? i % keys : i / depth, column = k_by_key ? i / keys : i % depth;
      if (row < keys && column < depth) tile_k[row * pitch + column] = next_k[t];
    }
    AOTI_UNROLL_TIMES(32)
    for (int t = 0; t < v_steps; ++t) {
      const int i = thread + t * Threads, row = v_by_key ? i % keys : i / Columns, column = v_by_key ? i / keys : i % Columns;
      next_v[t] = row < keys && column < Columns && key0 + row < n ? widen<f32>(v.at(I(key0 + row), I(column))) : 0.0f;
    }
    barrier();
    f32 scores[own_rows];
    AOTI_UNROLL_TIMES(8)
    for (int r = 0; r < own_rows; ++r) scores[r] = 0.0f;
    AOTI_UNROLL_TIMES(4)
    for (int d = 0; d < depth; d += 4) {
      const Four right = *(const Four *)(tile_k + x * pitch + d);
      AOTI_UNROLL_TIMES(8)
      for (int r = 0; r < own_rows; ++r) {
        const Four left = *(const Four *)(tile_q + (y + r) * depth + d);
        AOTI_UNROLL_TIMES(4)
        for (int e = 0; e < 4; ++e) scores[r] = scalar_fma(left.x[e], right.x[e], scores[r]);
      }
    }
    const I key = key0 + x;
    AOTI_UNROLL_TIMES(8)
    for (int r = 0; r < own_rows; ++r) {
      const I row = row0 + y + r, inside = row < m ? row : m - 1;
      f32 own = -__builtin_inff();
      if (key < n && (!Causal || key <= row + reach)) own = score(inside, key, Full<1>{}, Vec<f32, 1>{scores[r]}).v;
      f32 most = own;
      AOTI_UNROLL_TIMES(5)
      for (int distance = 1; distance < 32; distance *= 2) most = __builtin_fmaxf(most, shuffle_xor(most, distance));
      const f32 next = __builtin_fmaxf(peak[r], most), base = base_of(next), shrink = weight_of(peak[r], base);
      const f32 weight = weight_of(own, base);
      peak[r] = next;
      total[r] = scalar_fma(total[r], shrink, weight);
      AOTI_UNROLL_TIMES(8)
      for (int c = 0; c < own_columns; ++c) sums[r][c] *= shrink;
      tile_p[(y + r) * keys + x] = weight;
    }
    if constexpr (!Tile::apart) barrier();
    AOTI_UNROLL_TIMES(32)
    for (int t = 0; t < v_steps; ++t) {
      const int i = thread + t * Threads, row = v_by_key ? i % keys : i / Columns, column = v_by_key ? i / keys : i % Columns;
      if (row < keys && column < Columns) tile_v[row * Columns + column] = next_v[t];
    }
    if (key0 + keys < seen) fetch_keys(I(key0 + keys));
    barrier();
    AOTI_UNROLL_TIMES(4)
    for (int j = 0; j < keys; j += 4) {
      Four weights[own_rows];
      AOTI_UNROLL_TIMES(8)
      for (int r = 0; r < own_rows; ++r) weights[r] = *(const Four *)(tile_p + (y + r) * keys + j);
      AOTI_UNROLL_TIMES(4)
      for (int e = 0; e < 4; ++e)
        AOTI_UNROLL_TIMES(8)
        for (int c = 0; c < own_columns; ++c) {
          const int column = x + c * 32;
          const f32 value = Columns % 32 == 0 || column < Columns ? tile_v[(j + e) * Columns + column] : 0.0f;
          AOTI_UNROLL_TIMES(8)
          for (int r = 0; r < own_rows; ++r) sums[r][c] = scalar_fma(weights[r].x[e], value, sums[r][c]);
        }
    }
  }
  AOTI_UNROLL_TIMES(8)
  for (int r = 0; r < own_rows; ++r) {
    AOTI_UNROLL_TIMES(5)
    for (int distance = 1; distance < 32; distance *= 2) total[r] += shuffle_xor(total[r], distance);
    const f32 inverse = inverse_of<OfNothing>(total[r], n);
    const I row = row0 + y + r;
    AOTI_UNROLL_TIMES(8)
    for (int c = 0; c < own_columns; ++c) {
      const I column = x + c * 32;
      if (row < m && column < Columns) epilogue(row, column, Full<1>{}, Vec<f32, 1>{mean_of<OfNothing>(sums[r][c], inverse)});
    }
  }
}

AOTI_NAMESPACE_END
