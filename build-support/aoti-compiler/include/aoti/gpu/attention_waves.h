// Attention of halves on AMD's matrix units: each wavefront has some queries, and a lane of it parts of the scores of one of each
// sixteen (fragments.h), which are the left operand of the weighted sum without leaving registers. Keys are in registers on their way
// (staged_fill.h) while values are multiplied, and values while keys are.
#pragma once

#include "atomics.h"
#include "attention.h"
#include "contract.h"
#include "staged_fill.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

#if AOTI_FRAGMENTS

// The size of a tile for so many: the next power of two from `least` on, so that threads share evenly what they copy.
AOTI_CONSTEXPR int tile_size(int size, int least) {
  while (least < size) least *= 2;
  return least;
}

template <class T, int Rows, int Keys, int Width, int Columns, bool Causal, int OfNothing, class I> struct WaveAttention {
  static constexpr int kSide = FragmentLayout::kSide, kThreads = Rows * 2, kHalves = 8;
  static constexpr int kDown = Rows / kSide / (kThreads / kWarp), kStep = kFragment.groups * kFragment.pieces * kHalves;
  static constexpr int kAcross = (Columns + kSide - 1) / kSide, kScores = Keys / kSide, kSteps = Keys / kStep;
  // Neighbours in a row that a lane has, as the functions of scores and results get them.
  static constexpr int kLanes = kFragment.next == 1 ? 4 : 1;
  using Queries = StagedFill<Rows, kThreads, tile_size(Width, 64), Strided<T, I, true>, I>;
  using OwnKeys = StagedFill<Keys, kThreads, tile_size(Width, 64), Strided<T, I, true>, I>;
  using Values = StagedFill<tile_size(Columns, 32), kThreads, Keys, Strided<T, I, false>, I>;
  static_assert(kDown * kSide * (kThreads / kWarp) == Rows && kSteps * kStep == Keys);
  FragmentSums sums[kDown][kAcross], scores[kDown][kScores];
  FragmentPieces weights[kDown][kSteps];
  f32 peak[kDown], total[kDown];

  static AOTI_INLINE int lane() { return thread_index() % kWarp; }
  static AOTI_INLINE int row0() { return thread_index() / kWarp * (kDown * kSide); }
  // The column of a fragment's e-th sum, beside that of its first fragment's first.
  static AOTI_INLINE int column(int fragment, int e) { return fragment * kSide + e * kFragment.next; }
  template <int Down, int Across> static AOTI_INLINE void clear(FragmentSums (&all)[Down][Across]) {
    AOTI_UNROLL_TIMES(2)
    for (int i = 0; i < Down; ++i)
      AOTI_UNROLL_TIMES(16)
      for (int j = 0; j < Across; ++j)
        AOTI_UNROLL_TIMES(8)
        for (int e = 0; e < kFragment.sums; ++e) all[i][j][e] = 0.0f;
  }
  AOTI_INLINE void clear() {
    clear(sums);
    AOTI_UNROLL_TIMES(2)
    for (int i = 0; i < kDown; ++i) peak[i] = -__builtin_inff(), total[i] = 0.0f;
  }
  // `lane` is anew() for each use: there are many addresses, and registers are few.
  template <class Fill> static AOTI_INLINE FragmentPieces load(const char *piece, int lane, int outer, int depth) {
    FragmentPieces own;
    AOTI_UNROLL_TIMES(2)
    for (int p = 0; p < kFragment.pieces; ++p)
      own.at[p] = *(const SixteenBytes *)(piece + Fill::offset(outer + lane % kSide,
                                                              depth + (kFragment.group(lane) * kFragment.pieces + p) * kHalves));
    return own;
  }
  AOTI_INLINE void multiply_keys(const char *queries, const char *keys) {
    clear(scores);
    AOTI_UNROLL_TIMES(1)
    for (int d = 0; d < Width; d += kStep) {
      const int own_lane = anew(lane());
      FragmentPieces left[kDown];
      AOTI_UNROLL_TIMES(2)
      for (int i = 0; i < kDown; ++i) left[i] = load<Queries>(queries, own_lane, row0() + i * kSide, d);
      AOTI_UNROLL_TIMES(8)
      for (int j = 0; j < kScores; ++j) {
        const FragmentPieces right = load<OwnKeys>(keys, own_lane, j * kSide, d);
        AOTI_UNROLL_TIMES(2)
        for (int i = 0; i < kDown; ++i) multiply_fragments<T>(scores[i][j], left[i], right);
      }
    }
  }
  // The values of the keys whose weights a lane has in a step, in the order of pack().
  static AOTI_INLINE FragmentPieces load_values(const char *values, int lane, int outer, int key) {
    if constexpr (kFragment.sums * 2 != kHalves) {
      return load<Values>(values, lane, outer, key);
    } else {
      FragmentPieces own;
      AOTI_UNROLL_TIMES(2)
      for (int half = 0; half < 2; ++half) {
        const int depth = key + half * kSide + kFragment.row(lane, 0);
        const Chunk<T, 4> four = *(const Chunk<T, 4> *)(values + Values::offset(outer + lane % kSide, depth) + depth % kHalves * 2);
        __builtin_memcpy((char *)&own + half * 8, &four, 8);
      }
      return own;
    }
  }
  AOTI_INLINE void multiply_values(const char *values) {
    AOTI_UNROLL_TIMES(8)
    for (int step = 0; step < kSteps; ++step)
      AOTI_UNROLL_TIMES(16)
      for (int j = 0; j < kAcross; ++j) {
        const FragmentPieces right = load_values(values, anew(lane()), j * kSide, step * kStep);
        AOTI_UNROLL_TIMES(2)
        for (int i = 0; i < kDown; ++i) multiply_fragments<T>(sums[i][j], weights[i][step], right);
      }
  }
  static AOTI_INLINE u32 two_halves(f32 low, f32 high) {
    T both[2];
    from_f32(both[0], low), from_f32(both[1], high);
    return u32(both[0].bits) | u32(both[1].bits) << 16;
  }
  // Weights as the left operand: a lane has those of its own keys, of one fragment or of two; where lanes have every other key, and
  // repeat each other's operands, they show each other theirs.
  AOTI_INLINE void pack() {
    constexpr int kEach = kStep / kSide;
    AOTI_UNROLL_TIMES(2)
    for (int i = 0; i < kDown; ++i)
      AOTI_UNROLL_TIMES(8)
      for (int step = 0; step < kSteps; ++step) {
        u32 words[4 * kFragment.pieces];
        AOTI_UNROLL_TIMES(4)
        for (int w = 0; w < 4; ++w) {
          const int at = w * 2, fragment = step * kEach + at / kFragment.sums, e = at % kFragment.sums;
          const u32 own = two_halves(scores[i][fragment][e], scores[i][fragment][e + 1]);
          if constexpr (kFragment.next == 1) {
            words[w] = own;
          } else {
            // Of even lanes' groups the even keys: the halves of four keys in order.
            const u32 other = shuffle_xor(own, kSide), even = lane() < kSide ? own : other, odd = lane() < kSide ? other : own;
            words[w * 2] = (even & 0xffffu) | odd << 16;
            words[w * 2 + 1] = even >> 16 | (odd & 0xffff0000u);
          }
        }
        __builtin_memcpy(&weights[i][step], words, sizeof words);
      }
  }
  // Makes scores of products and weights of scores. `Inside`: all keys of the tile are there; `Seen`: every row sees them.
  template <bool Inside, bool Seen, class Score>
  AOTI_INLINE void weigh(I first_row, I key0, I m, I n, I reach, const Score &score) {
    const int own_lane = anew(lane());
    const I first_key = key0 + kFragment.row(own_lane, 0);
    f32 most[kDown];
    bool grows = false;
    AOTI_UNROLL_TIMES(2)
    for (int i = 0; i < kDown; ++i) {
      const I row = first_row + (i * kSide + own_lane % kSide), inside = row < m ? row : m - 1;
      const I visible = seen_by<Causal>(I(row + 1), n, reach) - first_key;
      most[i] = -__builtin_inff();
      AOTI_UNROLL_TIMES(8)
      for (int j = 0; j < kScores; ++j)
        AOTI_UNROLL_TIMES(8)
        for (int e = 0; e < kFragment.sums; e += kLanes) {
          const int own = column(j, e);
          f32 x[kLanes];
          AOTI_UNROLL_TIMES(4)
          for (int l = 0; l < kLanes; ++l) x[l] = scores[i][j][e + l];
          score_of<Inside>(inside, I(first_key + own), n, x, score);
          AOTI_UNROLL_TIMES(4)
          for (int l = 0; l < kLanes; ++l) {
            if constexpr (!Inside || !Seen) x[l] = visible > own + l ? x[l] : -__builtin_inff();
            most[i] = __builtin_fmaxf(most[i], x[l]);
            scores[i][j][e + l] = x[l];
          }
        }
      AOTI_UNROLL_TIMES(2)
      for (int apart = kSide; apart < kWarp; apart *= 2) most[i] = __builtin_fmaxf(most[i], shuffle_xor(most[i], apart));
      grows = grows || most[i] > peak[i] + kSlack;
    }
    const bool any_grows = ballot(grows) != 0;
    AOTI_UNROLL_TIMES(2)
    for (int i = 0; i < kDown; ++i) {
      if (any_grows) {
        const f32 next = __builtin_fmaxf(peak[i], most[i]), shrink = weight_of(peak[i], base_of(next));
        peak[i] = next, total[i] *= shrink;
        AOTI_UNROLL_TIMES(16)
        for (int j = 0; j < kAcross; ++j)
          AOTI_UNROLL_TIMES(8)
          for (int e = 0; e < kFragment.sums; ++e) sums[i][j][e] *= shrink;
      }
      const f32 base = base_of(peak[i]);
      AOTI_UNROLL_TIMES(8)
      for (int j = 0; j < kScores; ++j)
        AOTI_UNROLL_TIMES(8)
        for (int e = 0; e < kFragment.sums; ++e) {
          const f32 weight = weight_of(scores[i][j][e], base);
          scores[i][j][e] = weight, total[i] += weight;
        }
    }
  }
  template <bool Inside, class Score> static AOTI_INLINE void score_of(I row, I key, I n, f32 (&x)[kLanes], const Score &score) {
    if (Inside || key + kLanes <= n) {
      Vec<f32, kLanes> all;
      __builtin_memcpy(&all, x, sizeof all);
      all = score(row, key, Full<kLanes>{}, all);
      __builtin_memcpy(x, &all, sizeof all);
    } else {
      AOTI_UNROLL_TIMES(1)
      for (int l = 0; l < kLanes; ++l)
        if (key + l < n) x[l] = score(row, I(key + l), Full<1>{}, Vec<f32, 1>{x[l]}).v;
    }
  }
  template <class Epilogue> AOTI_INLINE void finish(I first_row, I m, I n, const Epilogue &epilogue) {
    const int own_lane = anew(lane());
    AOTI_UNROLL_TIMES(2)
    for (int i = 0; i < kDown; ++i) {
      f32 all = total[i];
      AOTI_UNROLL_TIMES(2)
      for (int apart = kSide; apart < kWarp; apart *= 2) all += shuffle_xor(all, apart);
      const f32 inverse = inverse_of<OfNothing>(all, n);
      const I row = first_row + (i * kSide + own_lane % kSide), first_column = kFragment.row(own_lane, 0);
      AOTI_UNROLL_TIMES(16)
      for (int j = 0; j < kAcross; ++j)
        AOTI_UNROLL_TIMES(8)
        for (int e = 0; e < kFragment.sums; e += kLanes) {
          f32 means[kLanes];
          AOTI_UNROLL_TIMES(4)
          for (int l = 0; l < kLanes; ++l) means[l] = mean_of<OfNothing>(sums[i][j][e + l], inverse);
          detail::finish<f32, kLanes>(row, I(first_column + column(j, e)), m, I(Columns), means, epilogue);
        }
    }
  }
};

// The queries [row0, row0 + Rows), by twice as many threads.
template <int Rows, int Keys, int Width, int Columns, bool Causal, int OfNothing, class T, class I, class Score, class Epilogue>
AOTI_INLINE void attend_by_waves(char *shared, I row0, I m, I n, I reach, Table<T, I> q, Table<T, I> k, Table<T, I> v,
                                 const Score &score, const Epilogue &epilogue) {
  using Own = WaveAttention<T, Rows, Keys, Width, Columns, Causal, OfNothing, I>;
  const Strided<T, I, true> queries{q.pointer, q.row_stride, q.column_stride}, keys{k.pointer, k.row_stride, k.column_stride};
  const Strided<T, I, false> values{v.pointer, v.column_stride, v.row_stride};
  const bool aligned = keys.template is_aligned<8>() && values.template is_aligned<8>();
  const I end = row0 + Rows < m ? row0 + Rows : m, tiles = ceil_div(seen_by<Causal>(end, n, reach), I(Keys));
  char *const own_queries = shared, *const own_keys = own_queries + Own::Queries::kBytes;
  char *const own_values = own_keys + Own::OwnKeys::kBytes;
  // Nothing is looked up of depths.
  const Lookup<typename Strided<T, I, true>::Entry, 1, 1> none{};
  const Lookup<typename Strided<T, I, false>::Entry, 1, 1> none_of_values{};
  typename Own::Queries query_fill;
  typename Own::OwnKeys key_fill;
  typename Own::Values value_fill;
  // Nobody needs the tile before of the same block.
  barrier();
  query_fill.start(queries, row0, m);
  query_fill.template store<false>(own_queries, queries, none, 0, I(0), I(Width));
  value_fill.start(values, I(0), I(Columns));
  const auto fetch_keys = [&](I tile) {
    key_fill.start(keys, I(tile * Keys), n);
    if (aligned) key_fill.template fetch<true>(keys, none, 0, I(0), I(Width));
  };
  const auto store_keys = [&] {
    if (aligned)
      key_fill.template store<true>(own_keys, keys, none, 0, I(0), I(Width));
    else
      key_fill.template store<false>(own_keys, keys, none, 0, I(0), I(Width));
  };
  const auto fetch_values = [&](I tile) {
    if (aligned) value_fill.template fetch<true>(values, none_of_values, 0, I(tile * Keys), n);
  };
  const auto store_values = [&](I tile) {
    if (aligned)
      value_fill.template store<true>(own_values, values, none_of_values, 0, I(tile * Keys), n);
    else
      value_fill.template store<false>(own_values, values, none_of_values, 0, I(tile * Keys), n);
  };
  Own own;
  own.clear();
  const I row = row0 + Own::row0();
  if (tiles > 0) fetch_keys(I(0)), store_keys();
  barrier();
  AOTI_UNROLL_TIMES(1)
  for (I tile = 0; tile < tiles; ++tile) {
    // Values of a tile come while its scores are computed, keys of the next one while values are added up.
    fetch_values(tile);
    own.multiply_keys(own_queries, own_keys);
    const I key0 = tile * Keys;
    if (key0 + Keys > n)
      own.template weigh<false, false>(row, key0, m, n, reach, score);
    else if (Causal && key0 + Keys > row + reach + 1)
      own.template weigh<true, false>(row, key0, m, n, reach, score);
    else
      own.template weigh<true, true>(row, key0, m, n, reach, score);
    own.pack();
    store_values(tile);
    // Behind it, everybody has the values, and nobody needs the keys.
    barrier();
    const bool goes_on = tile + 1 < tiles;
    if (goes_on) fetch_keys(I(tile + 1));
    own.multiply_values(own_values);
    if (goes_on) store_keys();
    barrier();
  }
  own.finish(row, m, n, epilogue);
}

#endif

} // namespace detail

AOTI_NAMESPACE_END
