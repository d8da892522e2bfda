// Attention of a few queries, as when a model writes one word after the other: a matter of bandwidth.
#pragma once

#include "attention.h"
#include "cluster.h"
#include "copies.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// Columns [column, column + count) of a row; zero outside.
template <int Width, int count, class T, class I>
AOTI_INLINE void read_chunk(f32 *to, const Table<T, I> &x, I row, int column, bool inside, bool whole) {
  if constexpr (count * sizeof(T) == 16) {
    if (inside && whole && column + count <= Width) {
      const SixteenBytes raw = *(const SixteenBytes *)&x.at(row, I(column));
      T own[count];
      __builtin_memcpy(own, &raw, sizeof raw);
      AOTI_UNROLL_TIMES(8)
      for (int e = 0; e < count; ++e) to[e] = widen<f32>(own[e]);
      return;
    }
  }
  AOTI_UNROLL_TIMES(8)
  for (int e = 0; e < count; ++e)
    to[e] = inside && column + e < Width ? widen<f32>(x.at(row, I(column + e))) : 0.0f;
}

} // namespace detail

// All of a few queries, by the 512 threads of a block: 32 groups take every 32nd key each, with sums of their own, which
// are joined in the end. The threads of a group share the width of a key and a value. Where there are few heads, several blocks
// share the keys of each, and join their sums in the same way ("flash decoding").
template <int Rows, int Blocks, int Width, int Columns, bool Causal, int OfNothing, class I, class Q, class K, class V, class Score,
          class Epilogue>
AOTI_INLINE void attend_few(char *, I row0, I m, I n, I reach, Table<Q, I> q, Table<K, I> k, Table<V, I> v,
                            const Score &score, const Epilogue &epilogue) {
  using namespace detail;
  using C = Cluster<Blocks>;
  if (C::is_idle()) return;
  constexpr int kThreads = 512, kGroup = 16, groups = kThreads / kGroup, at_once = 4;
  constexpr int k_chunk = 16 / sizeof(K), v_chunk = 16 / sizeof(V);
  constexpr int k_steps = (Width + kGroup * k_chunk - 1) / (kGroup * k_chunk);
  constexpr int v_steps = (Columns + kGroup * v_chunk - 1) / (kGroup * v_chunk);
  AOTI_SHARED f32 parts[groups][Columns], peaks[groups], totals[groups], weights[groups];
  // Of this block: the sums, their peak and their total.
  AOTI_SHARED f32 joined[C::kParts == 1 ? 1 : Columns + 2];
  const int thread = thread_index(), place = thread % kGroup, group = thread / kGroup;
  const bool q_whole = q.has_whole_rows(), k_whole = k.has_whole_rows(), v_whole = v.has_whole_rows();
  f32 query[Rows][k_steps * k_chunk], sums[Rows][v_steps * v_chunk], peak[Rows], total[Rows];
  AOTI_UNROLL_TIMES(4)
  for (int r = 0; r < Rows; ++r) {
    peak[r] = -__builtin_inff(), total[r] = 0.0f;
    AOTI_UNROLL_TIMES(32)
    for (int e = 0; e < v_steps * v_chunk; ++e) sums[r][e] = 0.0f;
    AOTI_UNROLL_TIMES(4)
    for (int s = 0; s < k_steps; ++s)
      read_chunk<Width, k_chunk>(query[r] + s * k_chunk, q, I(row0 + r), (s * kGroup + place) * k_chunk, row0 + r < m, q_whole);
  }
  const I seen = seen_by<Causal>(I(row0 + Rows), n, reach);
  const int pieces = int(ceil_div(seen, I(groups * at_once)));
  for (I key0 = I(C::begin(pieces)) * (groups * at_once), end = I(C::end(pieces)) * (groups * at_once); key0 < end;
       key0 += groups * at_once) {
    f32 keys[at_once][k_steps * k_chunk], values[at_once][v_steps * v_chunk];
    AOTI_UNROLL_TIMES(4)
    for (int u = 0; u < at_once; ++u) {
      const I key = key0 + u * groups + group;
      AOTI_UNROLL_TIMES(4)
      for (int s = 0; s < k_steps; ++s)
        read_chunk<Width, k_chunk>(keys[u] + s * k_chunk, k, key, (s * kGroup + place) * k_chunk, key < n, k_whole);
      AOTI_UNROLL_TIMES(4)
      for (int s = 0; s < v_steps; ++s)
        read_chunk<Columns, v_chunk>(values[u] + s * v_chunk, v, key, (s * kGroup + place) * v_chunk, key < n, v_whole);
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
    // Every thread of a warp has a group.
    const int own = thread % kWarp % groups;
    f32 most = peaks[own];
    AOTI_UNROLL_TIMES(8)
    for (int distance = 1; distance < groups; distance *= 2) most = __builtin_fmaxf(most, shuffle_xor(most, distance));
    const f32 weight = weight_of(peaks[own], base_of(most));
    f32 all = totals[own] * weight;
    AOTI_UNROLL_TIMES(8)
    for (int distance = 1; distance < groups; distance *= 2) all += shuffle_xor(all, distance);
    if (thread < groups) weights[thread] = weight;
    barrier();
    const auto finish = [&](int column, f32 sum, f32 total) {
      const f32 inverse = inverse_of<OfNothing>(total, n);
      if (row0 + r < m) epilogue(I(row0 + r), I(column), Full<1>{}, Vec<f32, 1>{mean_of<OfNothing>(sum, inverse)});
    };
    for (int column = thread; column < Columns; column += kThreads) {
      f32 sum = 0.0f;
      AOTI_UNROLL_TIMES(32)
      for (int g = 0; g < groups; ++g) sum = scalar_fma(parts[g][column], weights[g], sum);
      if constexpr (C::kParts == 1)
        finish(column, sum, all);
      else
        joined[column] = sum;
    }
    if constexpr (C::kParts > 1) {
      if (thread == 0) joined[Columns] = most, joined[Columns + 1] = all;
      C::meet();
      for (int column = C::begin(Columns) + thread; column < C::end(Columns); column += kThreads) {
        f32 highest = C::of(0, joined + Columns);
        for (int b = 1; b < C::kParts; ++b) highest = __builtin_fmaxf(highest, C::of(b, joined + Columns));
        f32 sum = 0.0f, total = 0.0f;
        for (int b = 0; b < C::kParts; ++b) {
          const f32 weight = weight_of(C::of(b, joined + Columns), base_of(highest));
          sum = scalar_fma(C::of(b, joined + column), weight, sum);
          total = scalar_fma(C::of(b, joined + Columns + 1), weight, total);
        }
        finish(column, sum, total);
      }
      C::part();
    }
  }
  barrier();
}

AOTI_NAMESPACE_END
