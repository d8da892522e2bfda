// Attention without a matrix of scores in memory: tiles of keys and values pass by a tile of queries, whose weighted sums
// are kept in registers and scaled down where a larger score comes (Dao, "FlashAttention-2", 2023).
//
// A score is what the program makes of the product of query and key; masks, biases and scales are all in that function.
// Sums are in an order that depends on sizes alone: the result is the same in every run.
#pragma once

#include "mma.h"
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

namespace detail {

constexpr f32 kLog2E = 1.44269504088896341f;
constexpr int kScoreKeys = 32, kUnitKeys = 64, kUnitThreads = 128;

AOTI_INLINE f32 power_of_two(f32 x) {
#if AOTI_NVIDIA
  f32 y;
  __asm__("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2(Vec<f32, 1>{x}).v;
#endif
}

// What the exponents of a row are relative to: its largest score, so that no power overflows; anything where all scores
// are hidden.
AOTI_INLINE f32 base_of(f32 peak) { return peak == -__builtin_inff() ? 0.0f : peak; }
// e to the power of score - base.
AOTI_INLINE f32 weight_of(f32 score, f32 base) { return power_of_two(scalar_fma(score, kLog2E, -base * kLog2E)); }
// What the weighted sum of a row is multiplied with.
template <bool ZeroOfNothing, class I> AOTI_INLINE f32 inverse_of(f32 total, I keys) {
  return total == 0.0f && (ZeroOfNothing || keys <= 0) ? 0.0f : 1.0f / total;
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
template <int Threads, int Rows, int Width, int Columns, bool Causal, bool ZeroOfNothing, class I, class Q, class K, class V,
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
    const f32 inverse = inverse_of<ZeroOfNothing>(total[r], n);
    const I row = row0 + y + r;
    AOTI_UNROLL_TIMES(8)
    for (int c = 0; c < own_columns; ++c) {
      const I column = x + c * 32;
      if (row < m && column < Columns) epilogue(row, column, Full<1>{}, Vec<f32, 1>{sums[r][c] * inverse});
    }
  }
}

// --- a few queries: a matter of bandwidth ------------------------------------------------------------------------------

namespace detail {

struct alignas(16) SixteenBytes {
  u32 words[4];
} __attribute__((may_alias));

// Columns [column, column + 16 / sizeof(T)) of a row; zero outside.
template <int Width, class T, class I>
AOTI_INLINE void read_chunk(f32 *to, const Table<T, I> &x, I row, int column, bool inside, bool whole) {
  constexpr int count = 16 / sizeof(T);
  if (inside && whole && column + count <= Width) {
    const SixteenBytes raw = *(const SixteenBytes *)&x.at(row, I(column));
    T own[count];
    __builtin_memcpy(own, &raw, sizeof raw);
    AOTI_UNROLL_TIMES(8)
    for (int e = 0; e < count; ++e) to[e] = widen<f32>(own[e]);
  } else {
    AOTI_UNROLL_TIMES(8)
    for (int e = 0; e < count; ++e)
      to[e] = inside && column + e < Width ? widen<f32>(x.at(row, I(column + e))) : 0.0f;
  }
}

} // namespace detail

// All of a few queries, by the 512 threads of a block: 32 groups take every 32nd key each, with sums of their own, which
// are joined in the end. The threads of a group share the width of a key and a value.
template <int Rows, int Width, int Columns, bool Causal, bool ZeroOfNothing, class I, class Q, class K, class V, class Score,
          class Epilogue>
AOTI_INLINE void attend_few(char *, I row0, I m, I n, I reach, Table<Q, I> q, Table<K, I> k, Table<V, I> v,
                            const Score &score, const Epilogue &epilogue) {
  using namespace detail;
  constexpr int kThreads = 512, kGroup = 16, groups = kThreads / kGroup, at_once = 4;
  constexpr int k_chunk = 16 / sizeof(K), v_chunk = 16 / sizeof(V);
  constexpr int k_steps = (Width + kGroup * k_chunk - 1) / (kGroup * k_chunk);
  constexpr int v_steps = (Columns + kGroup * v_chunk - 1) / (kGroup * v_chunk);
  AOTI_SHARED f32 parts[groups][Columns], peaks[groups], totals[groups];
  const int thread = thread_index(), place = thread % kGroup, group = thread / kGroup;
  const bool k_whole = k.has_whole_rows(), v_whole = v.has_whole_rows();
  f32 query[Rows][k_steps * k_chunk], sums[Rows][v_steps * v_chunk], peak[Rows], total[Rows];
  AOTI_UNROLL_TIMES(4)
  for (int r = 0; r < Rows; ++r) {
    peak[r] = -__builtin_inff(), total[r] = 0.0f;
    AOTI_UNROLL_TIMES(32)
    for (int e = 0; e < v_steps * v_chunk; ++e) sums[r][e] = 0.0f;
    AOTI_UNROLL_TIMES(32)
    for (int e = 0; e < k_steps * k_chunk; ++e) {
      const int column = (e / k_chunk * kGroup + place) * k_chunk + e % k_chunk;
      query[r][e] = column < Width && row0 + r < m ? widen<f32>(q.at(I(row0 + r), I(column))) : 0.0f;
    }
  }
  const I seen = seen_by<Causal>(I(row0 + Rows), n, reach);
  for (I key0 = 0; key0 < seen; key0 += groups * at_once) {
    f32 keys[at_once][k_steps * k_chunk], values[at_once][v_steps * v_chunk];
    AOTI_UNROLL_TIMES(4)
    for (int u = 0; u < at_once; ++u) {
      const I key = key0 + u * groups + group;
      AOTI_UNROLL_TIMES(4)
      for (int s = 0; s < k_steps; ++s)
        read_chunk<Width>(keys[u] + s * k_chunk, k, key, (s * kGroup + place) * k_chunk, key < n, k_whole);
      AOTI_UNROLL_TIMES(4)
      for (int s = 0; s < v_steps; ++s)
        read_chunk<Columns>(values[u] + s * v_chunk, v, key, (s * kGroup + place) * v_chunk, key < n, v_whole);
    }
    AOTI_UNROLL_TIMES(4)
    for (int r = 0; r < Rows; ++r) {
      const I row = row0 + r, inside = row < m ? row : m - 1;
      f32 scores[at_once], most = peak[r];
      AOTI_UNROLL_TIMES(4)
      for (int u = 0; u < at_once; ++u) {
        const I key = key0 + u * groups + group;
        f32 product = 0.0f;
        AOTI_UNROLL_TIMES(32)
        for (int e = 0; e < k_steps * k_chunk; ++e) product = scalar_fma(query[r][e], keys[u][e], product);
        AOTI_UNROLL_TIMES(4)
        for (int distance = 1; distance < kGroup; distance *= 2) product += shuffle_xor(product, distance);
        scores[u] = -__builtin_inff();
        if (key < n && (!Causal || key <= row + reach)) scores[u] = score(inside, key, Full<1>{}, Vec<f32, 1>{product}).v;
        most = __builtin_fmaxf(most, scores[u]);
      }
      const f32 base = base_of(most), shrink = weight_of(peak[r], base);
      peak[r] = most, total[r] *= shrink;
      AOTI_UNROLL_TIMES(32)
      for (int e = 0; e < v_steps * v_chunk; ++e) sums[r][e] *= shrink;
      AOTI_UNROLL_TIMES(4)
      for (int u = 0; u < at_once; ++u) {
        const f32 weight = weight_of(scores[u], base);
        total[r] += weight;
        AOTI_UNROLL_TIMES(32)
        for (int e = 0; e < v_steps * v_chunk; ++e) sums[r][e] = scalar_fma(weight, values[u][e], sums[r][e]);
      }
    }
  }
  AOTI_UNROLL_TIMES(4)
  for (int r = 0; r < Rows; ++r) {
    barrier();
    AOTI_UNROLL_TIMES(32)
    for (int e = 0; e < v_steps * v_chunk; ++e) {
      const int column = (e / v_chunk * kGroup + place) * v_chunk + e % v_chunk;
      if (column < Columns) parts[group][column] = sums[r][e];
    }
    if (place == 0) peaks[group] = peak[r], totals[group] = total[r];
    barrier();
    f32 most = peaks[0];
    for (int g = 1; g < groups; ++g) most = __builtin_fmaxf(most, peaks[g]);
    const f32 base = base_of(most);
    f32 all = 0.0f;
    for (int g = 0; g < groups; ++g) all = scalar_fma(totals[g], weight_of(peaks[g], base), all);
    const f32 inverse = inverse_of<ZeroOfNothing>(all, n);
    for (int column = thread; column < Columns; column += kThreads) {
      f32 sum = 0.0f;
      for (int g = 0; g < groups; ++g) sum = scalar_fma(parts[g][column], weight_of(peaks[g], base), sum);
      if (row0 + r < m) epilogue(I(row0 + r), I(column), Full<1>{}, Vec<f32, 1>{sum * inverse});
    }
  }
  barrier();
}

// --- halves, on the matrix units of NVIDIA GPUs (sm_80 and later) ---------------------------------------------------------

#if AOTI_NVIDIA
namespace detail {

// Scores of a row may exceed what its exponents are relative to by this much before the sums are scaled: weights stay far
// below what halves hold, and most tiles need no scaling.
constexpr f32 kSlack = 5.0f;

template <class T> AOTI_INLINE u32 pack_two(f32 low, f32 high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return is_same<T, bf16> ? to_bf16s(low, high) : to_f16s(low, high);
#else
  (void)low, (void)high;
  return 0;
#endif
}
AOTI_INLINE bool any_in_warp(bool condition) {
  u32 any;
  __asm__ volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync.any.pred q, p, 0xffffffff; selp.u32 %0, 1, 0, q; }"
                   : "=r"(any)
                   : "r"(u32(condition)));
  return any != 0;
}
AOTI_INLINE void wait_for_own_copies() {
  commit_copies();
  wait_for_copies<0>();
}
// Rows [first, first + Count) of a table of `rows` rows, in rows of Padded + 8 elements; zero outside. The copies are under
// way: wait_for_own_copies() waits for a thread's own.
template <int Count, int Width, class T, class I>
AOTI_INLINE void copy_rows(u16 *tile, const Table<T, I> &x, I first, I rows, bool whole) {
  constexpr int padded = (Width + 15) / 16 * 16, chunks = padded / 8, pitch = padded + 8;
  if (whole && Width % 8 == 0) {
    const u32 to = shared_address(tile);
    AOTI_UNROLL_TIMES(16)
    for (int step = 0; step < Count * chunks / kUnitThreads; ++step) {
      const int i = step * kUnitThreads + thread_index(), row = i / chunks, column = i % chunks * 8;
      const bool inside = first + row < rows && column < Width;
      copy_ahead(to + u32(row * pitch + column) * 2, inside ? &x.at(I(first + row), I(column)) : x.pointer, inside ? 16 : 0);
    }
  } else {
    for (int i = thread_index(); i < Count * padded; i += kUnitThreads) {
      const bool by_row = x.row_stride == 1 && x.column_stride != 1;
      const int row = by_row ? i % Count : i / padded, column = by_row ? i / Count : i % padded;
      tile[row * pitch + column] = first + row < rows && column < Width ? x.at(I(first + row), I(column)).bits : u16(0);
    }
  }
}

} // namespace detail
#endif

// The queries [row0, row0 + Rows), by the 128 threads of a block: each warp has a quarter of them.
template <int Rows, int Width, int Columns, bool Causal, bool ZeroOfNothing, class T, class I, class Score, class Epilogue>
AOTI_INLINE void attend_halves(char *shared, I row0, I m, I n, I reach, Table<T, I> q, Table<T, I> k, Table<T, I> v,
                               const Score &score, const Epilogue &epilogue) {
  using namespace detail;
#if AOTI_NVIDIA
  constexpr int keys = kUnitKeys, steps = Rows / 64, depth = (Width + 15) / 16 * 16, across = (Columns + 15) / 16 * 16;
  constexpr int depth_pitch = depth + 8, across_pitch = across + 8;
  u16 *const tile_q = (u16 *)shared, *const tile_k = tile_q + Rows * depth_pitch, *const tile_v = tile_k + keys * depth_pitch;
  const int thread = thread_index(), warp = thread / 32, place = thread % 32, own_row = warp * 16 * steps;
  const u32 left_q = shared_address(tile_q) + u32((own_row + place % 16) * depth_pitch + place / 16 * 8) * 2;
  const u32 right_k = shared_address(tile_k) + u32((place / 16 * 8 + place % 8) * depth_pitch + place / 8 % 2 * 8) * 2;
  const u32 right_v = shared_address(tile_v) + u32((place % 8 + place / 8 % 2 * 8) * across_pitch + place / 16 * 8) * 2;
  const bool q_whole = q.has_whole_rows(), k_whole = k.has_whole_rows(), v_whole = v.has_whole_rows();
  const I end = row0 + Rows < m ? row0 + Rows : m, seen = seen_by<Causal>(end, n, reach);
  barrier();
  copy_rows<Rows, Width>(tile_q, q, row0, m, q_whole);
  copy_rows<keys, Width>(tile_k, k, I(0), n, k_whole);
  f32 sums[steps][across / 8][4], peak[steps][2], total[steps][2];
  AOTI_UNROLL_TIMES(2)
  for (int i = 0; i < steps; ++i) {
    AOTI_UNROLL_TIMES(32)
    for (int j = 0; j < across / 8; ++j)
      AOTI_UNROLL_TIMES(4)
      for (int e = 0; e < 4; ++e) sums[i][j][e] = 0.0f;
    AOTI_UNROLL_TIMES(2)
    for (int h = 0; h < 2; ++h) peak[i][h] = -__builtin_inff(), total[i][h] = 0.0f;
  }
  for (I key0 = 0; key0 < seen; key0 += keys) {
    // The keys are there, and nobody needs the last values.
    wait_for_own_copies();
    barrier();
    copy_rows<keys, Columns>(tile_v, v, key0, n, v_whole);
    f32 scores[steps][keys / 8][4];
    AOTI_UNROLL_TIMES(2)
    for (int i = 0; i < steps; ++i)
      AOTI_UNROLL_TIMES(8)
      for (int j = 0; j < keys / 8; ++j)
        AOTI_UNROLL_TIMES(4)
        for (int e = 0; e < 4; ++e) scores[i][j][e] = 0.0f;
    AOTI_UNROLL_TIMES(16)
    for (int d = 0; d < depth; d += 16) {
      u32 left[steps][4];
      AOTI_UNROLL_TIMES(2)
      for (int i = 0; i < steps; ++i)
        load_matrices<false>(left[i], left_q + u32(i * 16 * depth_pitch + d) * 2);
      AOTI_UNROLL_TIMES(4)
      for (int j = 0; j < keys / 8; j += 2) {
        u32 pair[4];
        load_matrices<false>(pair, right_k + u32(j * 8 * depth_pitch + d) * 2);
        AOTI_UNROLL_TIMES(2)
        for (int i = 0; i < steps; ++i) {
          multiply<T>(scores[i][j], left[i], pair);
          multiply<T>(scores[i][j + 1], left[i], pair + 2);
        }
      }
    }
    // The values are there, and nobody needs these keys.
    wait_for_own_copies();
    barrier();
    if (key0 + keys < seen) copy_rows<keys, Width>(tile_k, k, I(key0 + keys), n, k_whole);
    const bool is_whole = key0 + keys <= n && (!Causal || key0 + keys <= row0 + own_row + reach + 1);
    f32 most[steps][2];
    bool grows = false;
    AOTI_UNROLL_TIMES(2)
    for (int i = 0; i < steps; ++i)
      AOTI_UNROLL_TIMES(2)
      for (int h = 0; h < 2; ++h) {
        const I row = row0 + own_row + i * 16 + h * 8 + place / 4, inside = row < m ? row : m - 1;
        const I visible = seen_by<Causal>(I(row + 1), n, reach);
        most[i][h] = -__builtin_inff();
        AOTI_UNROLL_TIMES(8)
        for (int j = 0; j < keys / 8; ++j) {
          const I key = key0 + j * 8 + place % 4 * 2;
          f32 &a = scores[i][j][h * 2], &b = scores[i][j][h * 2 + 1];
          if (is_whole || key + 2 <= n) {
            const auto both = score(inside, key, Full<2>{}, Vec<f32, 2>{{a}, {b}});
            a = lane(both, 0), b = lane(both, 1);
          } else if (key < n)
            a = score(inside, key, Full<1>{}, Vec<f32, 1>{a}).v;
          if (!is_whole) {
            a = key < visible ? a : -__builtin_inff();
            b = key + 1 < visible ? b : -__builtin_inff();
          }
          most[i][h] = __builtin_fmaxf(most[i][h], __builtin_fmaxf(a, b));
        }
        most[i][h] = __builtin_fmaxf(most[i][h], shuffle_xor(most[i][h], 1));
        most[i][h] = __builtin_fmaxf(most[i][h], shuffle_xor(most[i][h], 2));
        grows = grows || most[i][h] > peak[i][h] + kSlack;
      }
    if (any_in_warp(grows)) {
      AOTI_UNROLL_TIMES(2)
      for (int i = 0; i < steps; ++i)
        AOTI_UNROLL_TIMES(2)
        for (int h = 0; h < 2; ++h) {
          const f32 next = __builtin_fmaxf(peak[i][h], most[i][h]), shrink = weight_of(peak[i][h], base_of(next));
          peak[i][h] = next, total[i][h] *= shrink;
          AOTI_UNROLL_TIMES(32)
          for (int j = 0; j < across / 8; ++j) sums[i][j][h * 2] *= shrink, sums[i][j][h * 2 + 1] *= shrink;
        }
    }
    AOTI_UNROLL_TIMES(2)
    for (int i = 0; i < steps; ++i)
      AOTI_UNROLL_TIMES(2)
      for (int h = 0; h < 2; ++h) {
        const f32 base = base_of(peak[i][h]);
        AOTI_UNROLL_TIMES(8)
        for (int j = 0; j < keys / 8; ++j) {
          f32 &a = scores[i][j][h * 2], &b = scores[i][j][h * 2 + 1];
          a = weight_of(a, base), b = weight_of(b, base);
          total[i][h] += a + b;
        }
      }
    AOTI_UNROLL_TIMES(4)
    for (int d = 0; d < keys / 16; ++d) {
      u32 left[steps][4];
      AOTI_UNROLL_TIMES(2)
      for (int i = 0; i < steps; ++i)
        AOTI_UNROLL_TIMES(4)
        for (int e = 0; e < 4; ++e) {
          const f32 *const two = scores[i][d * 2 + e / 2] + e % 2 * 2;
          left[i][e] = pack_two<T>(two[0], two[1]);
        }
      AOTI_UNROLL_TIMES(16)
      for (int j = 0; j < across / 8; j += 2) {
        u32 pair[4];
        load_matrices<true>(pair, right_v + u32(d * 16 * across_pitch + j * 8) * 2);
        AOTI_UNROLL_TIMES(2)
        for (int i = 0; i < steps; ++i) {
          multiply<T>(sums[i][j], left[i], pair);
          multiply<T>(sums[i][j + 1], left[i], pair + 2);
        }
      }
    }
  }
  wait_for_own_copies();
  AOTI_UNROLL_TIMES(2)
  for (int i = 0; i < steps; ++i)
    AOTI_UNROLL_TIMES(2)
    for (int h = 0; h < 2; ++h) {
      f32 all = total[i][h];
      all += shuffle_xor(all, 1);
      all += shuffle_xor(all, 2);
      const f32 inverse = inverse_of<ZeroOfNothing>(all, n);
      const I row = row0 + own_row + i * 16 + h * 8 + place / 4;
      AOTI_UNROLL_TIMES(32)
      for (int j = 0; j < across / 8; ++j) {
        const I column = j * 8 + place % 4 * 2;
        const f32 a = sums[i][j][h * 2] * inverse, b = sums[i][j][h * 2 + 1] * inverse;
        if (row < m && column + 2 <= Columns)
          epilogue(row, column, Full<2>{}, Vec<f32, 2>{{a}, {b}});
        else if (row < m && column < Columns)
          epilogue(row, column, Full<1>{}, Vec<f32, 1>{a});
      }
    }
#else
  for (I r = 0; r < Rows && row0 + r < m; r += 16)
    attend<kUnitThreads, 16, Width, Columns, Causal, ZeroOfNothing>(shared, I(row0 + r), m, n, reach, q, k, v, score, epilogue);
#endif
}

AOTI_NAMESPACE_END
