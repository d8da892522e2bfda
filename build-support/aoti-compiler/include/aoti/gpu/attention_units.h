// Attention of halves on matrix units, of NVIDIA's GPUs by a warp's instructions on sm_80 and later, by a warpgroup's on
// sm_90a, where the softmax of a tile of keys is computed while the units multiply: the next scores and the last weighted sum
// are both on their way, and, where a block has threads that only copy (roles.h), one warpgroup multiplies while the other
// computes (Shah et al., "FlashAttention-3", 2024). On AMD's as in attention_waves.h; elsewhere the sums are those of attention.h.
#pragma once

#include "attention.h"
#include "attention_tiles.h"
#include "attention_waves.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

#if AOTI_UNITS == AOTI_MMA

template <class T> AOTI_INLINE u32 pack_two(f32 low, f32 high) {
#if AOTI_COPIES
  return is_same<T, bf16> ? to_bf16s(low, high) : to_f16s(low, high);
#else
  (void)low, (void)high;
  return 0;
#endif
}
#if AOTI_NVIDIA
AOTI_INLINE bool any_in_warp(bool condition) {
  u32 any;
  __asm__ volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync.any.pred q, p, 0xffffffff; selp.u32 %0, 1, 0, q; }"
                   : "=r"(any)
                   : "r"(u32(condition)));
  return any != 0;
}
#endif

#if AOTI_WARPGROUPS

// Products of 64 queries of a warpgroup, which are on their way when a function returns. A thread has, of each eight columns,
// two neighbours in a row and two in the row eight below.
template <class T, int Rows, int Keys, int Width, int Columns> struct Products {
  static constexpr int kDepth = kRounded<Width, 16>, kAcross = kRounded<Columns, 64>;
  using Scores = f32[Keys / 2];
  using Sums = f32[kAcross / 2];

  static AOTI_INLINE void scores(Scores &to, u32 queries, u32 keys) {
    const WarpgroupOperand left(queries + warpgroup_index() * (64 * 128), 0), right(keys, 0);
    warpgroup_begin();
    warpgroup_multiply<T, true, false, false>(to, left.at(0), right.at(0));
    AOTI_UNROLL_TIMES(16)
    for (int d = 16; d < kDepth; d += 16)
      warpgroup_multiply<T, false, false, false>(to, left.at(d / 64 * (Rows * 128) + d % 64 * 2),
                                                 right.at(d / 64 * (Keys * 128) + d % 64 * 2));
    warpgroup_commit();
  }
  static AOTI_INLINE void add(Sums &to, const u32 (&weights)[Keys / 16][4], u32 values) {
    const WarpgroupOperand right(values, Keys * 128);
    warpgroup_begin();
    AOTI_UNROLL_TIMES(16)
    for (int d = 0; d < Keys / 16; ++d) warpgroup_multiply<T, false, true>(to, weights[d], right.at(d * (16 * 128)));
    warpgroup_commit();
  }
  // All but the last `Left` of what is on its way.
  template <int Left, int N> static AOTI_INLINE void wait(f32 (&sums)[N]) {
    warpgroup_wait<Left>();
    settle(sums);
  }
};

#else

// Products of 16 queries of a warp. A thread has, of each eight columns, two neighbours in a row and two in the row eight below.
template <class T, int Rows, int Keys, int Width, int Columns> struct Products {
  static constexpr int kDepth = kRounded<Width, 16>, kAcross = kRounded<Columns, 16>;
  using Scores = f32[Keys / 2];
  using Sums = f32[kAcross / 2];

  static AOTI_INLINE void scores(Scores &to, u32 queries, u32 keys) {
    const int lane = thread_index() % 32, row = thread_index() / 32 * 16 + lane % 16;
    AOTI_UNROLL_TIMES(64)
    for (int j = 0; j < Keys / 2; ++j) to[j] = 0.0f;
    AOTI_UNROLL_TIMES(16)
    for (int d = 0; d < kDepth; d += 16) {
      u32 left[4];
      load_matrices<false>(left, queries + tile_offset<Rows>(row, d + lane / 16 * 8));
      AOTI_UNROLL_TIMES(8)
      for (int j = 0; j < Keys / 8; j += 2) {
        u32 pair[4];
        load_matrices<false>(pair, keys + tile_offset<Keys>(j * 8 + lane / 16 * 8 + lane % 8, d + lane / 8 % 2 * 8));
        multiply<T>(to + j * 4, left, pair);
        multiply<T>(to + j * 4 + 4, left, pair + 2);
      }
    }
  }
  static AOTI_INLINE void add(Sums &to, const u32 (&weights)[Keys / 16][4], u32 values) {
    const int lane = thread_index() % 32;
    AOTI_UNROLL_TIMES(8)
    for (int d = 0; d < Keys / 16; ++d)
      AOTI_UNROLL_TIMES(16)
      for (int j = 0; j < kAcross / 8; j += 2) {
        u32 pair[4];
        load_matrices<true>(pair, values + tile_offset<Keys>(d * 16 + lane % 16, j * 8 + lane / 16 * 8));
        multiply<T>(to + j * 4, weights[d], pair);
        multiply<T>(to + j * 4 + 4, weights[d], pair + 2);
      }
  }
  template <int Left, int N> static AOTI_INLINE void wait(f32 (&)[N]) {}
};

#endif

// The softmax of the two rows that a thread has parts of, eight apart, tile by tile.
template <int Keys, bool Causal> struct Softmax {
  f32 peak[2], total[2], shrink[2];

  AOTI_INLINE void clear() {
    AOTI_UNROLL_TIMES(2)
    for (int h = 0; h < 2; ++h) peak[h] = -__builtin_inff(), total[h] = 0.0f, shrink[h] = 1.0f;
  }
  // Makes scores of products and weights of scores. `Inside`: all keys of the tile are there; `Seen`: every row sees them.
  // Returns whether some row of the warp outgrew its base, in which case sums so far are multiplied with `shrink`.
  template <bool Inside, bool Seen, class I, class Score>
  AOTI_INLINE bool weigh(f32 (&scores)[Keys / 2], I row0, I key0, I m, I n, I reach, const Score &score) {
    f32 most[2];
    AOTI_UNROLL_TIMES(2)
    for (int h = 0; h < 2; ++h) {
      const I row = row0 + h * 8, inside = row < m ? row : m - 1, visible = seen_by<Causal>(I(row + 1), n, reach) - key0;
      most[h] = -__builtin_inff();
      AOTI_UNROLL_TIMES(16)
      for (int j = 0; j < Keys / 8; ++j) {
        const I key = key0 + j * 8;
        f32 &a = scores[j * 4 + h * 2], &b = scores[j * 4 + h * 2 + 1];
        if (Inside || key + 2 <= n) {
          const auto both = score(inside, key, Full<2>{}, Vec<f32, 2>{{a}, {b}});
          a = lane(both, 0), b = lane(both, 1);
        } else if (key < n)
          a = score(inside, key, Full<1>{}, Vec<f32, 1>{a}).v;
        if constexpr (!Inside || !Seen) {
          a = visible > j * 8 ? a : -__builtin_inff();
          b = visible > j * 8 + 1 ? b : -__builtin_inff();
        }
        most[h] = __builtin_fmaxf(most[h], __builtin_fmaxf(a, b));
      }
      most[h] = __builtin_fmaxf(most[h], shuffle_xor(most[h], 1));
      most[h] = __builtin_fmaxf(most[h], shuffle_xor(most[h], 2));
    }
    const bool grows = any_in_warp(most[0] > peak[0] + kSlack || most[1] > peak[1] + kSlack);
    AOTI_UNROLL_TIMES(2)
    for (int h = 0; h < 2; ++h) {
      if (grows) {
        const f32 next = __builtin_fmaxf(peak[h], most[h]);
        shrink[h] = weight_of(peak[h], base_of(next));
        peak[h] = next, total[h] *= shrink[h];
      }
      const f32 base = base_of(peak[h]);
      AOTI_UNROLL_TIMES(16)
      for (int j = 0; j < Keys / 8; ++j) {
        f32 &a = scores[j * 4 + h * 2], &b = scores[j * 4 + h * 2 + 1];
        a = weight_of(a, base), b = weight_of(b, base);
        total[h] += a + b;
      }
    }
    return grows;
  }
  template <int N> AOTI_INLINE void scale(f32 (&sums)[N]) const {
    AOTI_UNROLL_TIMES(32)
    for (int j = 0; j < N / 4; ++j)
      AOTI_UNROLL_TIMES(4)
      for (int e = 0; e < 4; ++e) sums[j * 4 + e] *= shrink[e / 2];
  }
};

// Weights as the left operand of a product.
template <class T, int Keys> AOTI_INLINE void pack(u32 (&to)[Keys / 16][4], const f32 (&weights)[Keys / 2]) {
  AOTI_UNROLL_TIMES(8)
  for (int d = 0; d < Keys / 16; ++d)
    AOTI_UNROLL_TIMES(4)
    for (int e = 0; e < 4; ++e) to[d][e] = pack_two<T>(weights[d * 8 + e * 2], weights[d * 8 + e * 2 + 1]);
}

// A tile of queries whose keys and values `places` has, by the threads that compute.
template <int Rows, int Keys, int Width, int Columns, bool Causal, int OfNothing, class T, class Places, class I, class Score,
          class Epilogue>
AOTI_INLINE void attend_tiles(const Places &places, I row0, I m, I n, I reach, I tiles, const Score &score, const Epilogue &epilogue) {
  using Own = Products<T, Rows, Keys, Width, Columns>;
  const int lane = thread_index() % 32, warp_row = thread_index() / 32 * 16;
  const u32 queries = shared_address(places.at.queries);
  typename Own::Sums sums;
  typename Own::Scores scores;
  u32 weights[Keys / 16][4];
  Softmax<Keys, Causal> softmax;
  softmax.clear();
  AOTI_UNROLL_TIMES(128)
  for (int i = 0; i < Own::kAcross / 2; ++i) sums[i] = 0.0f;
  auto weigh = [&](I tile) {
    const I key0 = tile * Keys, row = row0 + warp_row;
    const I own_row = row + lane / 4, own_key = key0 + lane % 4 * 2;
    if (key0 + Keys > n) return softmax.template weigh<false, false>(scores, own_row, own_key, m, n, reach, score);
    if (Causal && key0 + Keys > row + reach + 1)
      return softmax.template weigh<true, false>(scores, own_row, own_key, m, n, reach, score);
    return softmax.template weigh<true, true>(scores, own_row, own_key, m, n, reach, score);
  };
  places.start(row0);
  if (tiles > 0) {
    Own::scores(scores, queries, places.keys(I(0)));
    places.scores_begin(I(0));
    Own::template wait<0>(scores);
    places.keys_end(I(0));
    weigh(I(0));
    pack<T, Keys>(weights, scores);
  }
  AOTI_UNROLL_TIMES(1)
  for (I tile = 1; tile < tiles; ++tile) {
    Own::scores(scores, queries, places.keys(tile));
    places.scores_begin(tile);
    Own::add(sums, weights, places.values(I(tile - 1)));
    places.sums_begin();
    Own::template wait<1>(scores);
    places.keys_end(tile);
    const bool grows = weigh(tile);
    Own::template wait<0>(sums);
    places.values_end(I(tile - 1));
    if (grows) softmax.scale(sums);
    pack<T, Keys>(weights, scores);
  }
  if (tiles > 0) {
    Own::add(sums, weights, places.values(I(tiles - 1)));
    Own::template wait<0>(sums);
    places.values_end(I(tiles - 1));
  }
  places.end();
  AOTI_UNROLL_TIMES(2)
  for (int h = 0; h < 2; ++h) {
    f32 all = softmax.total[h];
    all += shuffle_xor(all, 1);
    all += shuffle_xor(all, 2);
    const f32 inverse = inverse_of<OfNothing>(all, n);
    const I row = row0 + warp_row + h * 8 + lane / 4;
    AOTI_UNROLL_TIMES(32)
    for (int j = 0; j < kRounded<Columns, 8> / 8; ++j) {
      const I column = j * 8 + lane % 4 * 2;
      const f32 a = mean_of<OfNothing>(sums[j * 4 + h * 2], inverse);
      const f32 b = mean_of<OfNothing>(sums[j * 4 + h * 2 + 1], inverse);
      if (row < m && column + 2 <= Columns)
        epilogue(row, column, Full<2>{}, Vec<f32, 2>{{a}, {b}});
      else if (row < m && column < Columns)
        epilogue(row, column, Full<1>{}, Vec<f32, 1>{a});
    }
  }
}

#endif
} // namespace detail

// The queries [row0, row0 + Rows), by twice as many threads: 32 of them have 16, a warpgroup 64. Keys pass in tiles of `Keys`.
template <int Rows, int Keys, int Width, int Columns, bool Causal, int OfNothing, class T, class I, class Score, class Epilogue>
AOTI_INLINE void attend_halves(char *shared, I row0, I m, I n, I reach, Table<T, I> q, Table<T, I> k, Table<T, I> v,
                               const Score &score, const Epilogue &epilogue) {
  using namespace detail;
#if AOTI_UNITS == AOTI_MMA
  const I end = row0 + Rows < m ? row0 + Rows : m, tiles = ceil_div(seen_by<Causal>(end, n, reach), I(Keys));
  const OwnTiles<Rows, Keys, Width, Columns, T, I> places(shared, m, n, tiles, q, k, v);
  attend_tiles<Rows, Keys, Width, Columns, Causal, OfNothing, T>(places, row0, m, n, reach, tiles, score, epilogue);
#elif AOTI_FRAGMENTS
  attend_by_waves<Rows, Keys, Width, Columns, Causal, OfNothing>(shared, row0, m, n, reach, q, k, v, score, epilogue);
#else
  for (I r = 0; r < Rows && row0 + r < m; r += 16)
    attend<Rows * 2, 16, Width, Columns, Causal, OfNothing>(shared, I(row0 + r), m, n, reach, q, k, v, score, epilogue);
#endif
}
// The same in a role.
template <int Rows, int Keys, int Width, int Columns, bool Causal, int OfNothing, class Role, class T, class I, class Score,
          class Epilogue>
AOTI_INLINE void attend_halves(Role &role, char *shared, I row0, I m, I n, I reach, Table<T, I> q, Table<T, I> k, Table<T, I> v,
                               const Score &score, const Epilogue &epilogue) {
#if AOTI_WARPGROUPS
  using namespace detail;
  static_assert(Rows * 2 == kComputers);
  const I end = row0 + Rows < m ? row0 + Rows : m, tiles = ceil_div(seen_by<Causal>(end, n, reach), I(Keys));
  if constexpr (is_copier<Role>) {
    bring_tiles<Rows, Keys, Width, Columns>(role.rings, shared, row0, m, n, tiles, q, k, v);
  } else {
    const BroughtTiles<Rows, Keys, Width, Columns, T, I> places(role.rings, shared, tiles);
    attend_tiles<Rows, Keys, Width, Columns, Causal, OfNothing, T>(places, row0, m, n, reach, tiles, score, epilogue);
  }
#else
  (void)role;
  attend_halves<Rows, Keys, Width, Columns, Causal, OfNothing>(shared, row0, m, n, reach, q, k, v, score, epilogue);
#endif
}

AOTI_NAMESPACE_END
