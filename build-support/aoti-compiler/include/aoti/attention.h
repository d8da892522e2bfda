// Attention of a block of queries at a time: its scores against all keys, their softmax, and the weighted sums of the values,
// while the scores are in cache. What a score is made of and where results go are the caller's functions.
//
// Keys and values are packed once for the blocks of queries that a worker takes one after the other. Results do not depend
// on how blocks are shared out.
#pragma once

#include "gemm.h"
#include "nest.h"

AOTI_NAMESPACE_BEGIN

struct AttentionShape {
  i64 queries, keys, depth, columns;
};

// Queries of a block: whole register tiles.
constexpr i64 kAttentionRows = 28;

namespace detail {

// Parts of the scratch of one worker, in floats from its start: panels of keys and of values, scores, what the rows' sums
// are multiplied by, and a copy of queries.
struct AttentionScratch {
  i64 values, scores, inverse, queries, end;
};
AOTI_INLINE AttentionScratch attention_scratch(const AttentionShape &s) {
  AttentionScratch p;
  p.values = gemm_panels(s.keys) * kPanel * s.depth;
  p.scores = p.values + gemm_panels(s.columns) * kPanel * s.keys;
  p.inverse = p.scores + kAttentionRows * gemm_copy_stride<f32>(s.keys);
  p.queries = p.inverse + 32;
  p.end = p.queries + kAttentionRows * gemm_copy_stride<f32>(s.depth);
  return p;
}

// B[k, n] as panels.
template <class T> AOTI_INLINE void pack_operand(Matrix<T> b, i64 k, i64 n, f32 *to) {
  for (i64 c = 0; c < n; c += kPanel, to += k * kPanel)
    pack_panel<kPanel>(Matrix<T>{b.data + c * b.col_stride, b.row_stride, b.col_stride}, k, min_i64(n - c, kPanel), to);
}

// Rows of A by the first n columns of packed panels of `height` rows, of which the first k count.
template <class Epilogue>
AOTI_INLINE void attention_product(i64 rows, i64 n, i64 k, i64 height, Matrix<f32> a, const f32 *packed, Epilogue epilogue) {
  const auto sink = [&](i64 row, i64 count, i64 column, i64 width, const f32 *sums, i64 pitch) AOTI_LAMBDA {
    hand_over(row, count, column, width, sums, pitch, epilogue);
  };
  for (i64 p = 0; p < gemm_panels(n); p += kGroup) {
    const GemmPanels<f32> b{packed + p * height * kPanel, kPanel, height * kPanel};
    gemm_group<kGemmMost, kPanel>(0, rows, p, min_i64(gemm_panels(n), p + kGroup), n, k, a, b, sink);
  }
}

// The largest of a row's scores. One that is not a number may be passed over: it shows in the sum of the weights.
AOTI_NOINLINE f32 attention_peak(const f32 *scores, i64 seen) {
  Vec<f32, kLanes> part[4];
  for (auto &p : part) p = splat<kLanes>(-__builtin_inff());
  over_slots<kLanes>(0, seen, [&](auto lanes, i64 i, auto slot) AOTI_LAMBDA {
    auto &own = part[decltype(slot)::index];
    own = larger(select_tail(lanes, load(lanes, scores + i), -__builtin_inff()), own);
  });
  return reduce_larger(larger(larger(part[0], part[1]), larger(part[2], part[3])));
}

// What attention gives for a row all of whose scores are hidden: what comes of dividing by their sum, zeros, or zeros for every row
// of whose sum NaN would come.
enum RowOfNothing : int { kNothingSpecial = 0, kZeros = 1, kZerosForNaN = 2 };

// Scores as weights that are not divided by their sum yet, and what they are to be multiplied by. What is behind `seen` is
// hidden, up to `keys`.
template <int OfNothing> AOTI_NOINLINE f32 attention_weights(f32 *scores, f32 peak, i64 seen, i64 keys) {
  bool nothing = OfNothing == kZeros && peak == -__builtin_inff();
  for (i64 i = 0; nothing && i < seen; ++i) nothing = scores[i] == peak;
  SumAccumulator<f32, kLanes> total;
  if (!nothing)
    over_slots<kLanes>(0, seen, [&](auto lanes, i64 i, auto slot) AOTI_LAMBDA {
      const auto weight = exp_of_weight(load(lanes, (const f32 *)scores + i) - peak);
      total.add(lanes, slot, weight);
      store(lanes, scores + i, weight);
    });
  if (OfNothing == kZerosForNaN) nothing = seen <= 0 || total.result().v != total.result().v;
  const i64 from = nothing ? 0 : seen;
  if (from < keys) zero_floats(scores + from, keys - from);
  return nothing ? 0.0f : 1.0f / total.result().v;
}

// A score, or one for all lanes.
template <class L, int W> AOTI_INLINE auto all_lanes(L lanes, Vec<f32, W> score) {
  if constexpr (W == L::width)
    return score;
  else
    return spread(lanes, score);
}

} // namespace detail

AOTI_INLINE i64 attention_scratch_bytes(const AttentionShape &s) {
  return detail::attention_scratch(s).end * 4;
}

// Queries [q0, q0 + kAttentionRows) of one batch position, q of [queries, depth], k of [depth, keys], v of [keys,
// columns]. Where `fresh`, keys and values are others than those of the last call with this scratch. Causal: keys
// behind the query's own position plus `reach` are hidden. score(query, key, lanes, products) gives scores; the
// epilogue is called as by `gemm_packed`.
template <bool Causal, int OfNothing, class Q, class K, class V, class Score, class Epilogue>
AOTI_INLINE void attend(const AttentionShape &s, i64 q0, bool fresh, i64 reach, Matrix<Q> q, Matrix<K> k, Matrix<V> v,
                        void *scratch, Score score, Epilogue epilogue) {
  using namespace detail;
  const AttentionScratch place = attention_scratch(s);
  f32 *const keys = (f32 *)scratch, *const values = keys + place.values, *const scores = keys + place.scores;
  f32 *const inverse = keys + place.inverse;
  if (fresh) pack_operand(k, s.depth, s.keys, keys), pack_operand(v, s.keys, s.columns, values);
  const i64 rows = min_i64(s.queries - q0, kAttentionRows), pitch = gemm_copy_stride<f32>(s.keys);
  const auto seen_by = [&](i64 query) { return Causal ? min_i64(max_i64(query + reach + 1, 0), s.keys) : s.keys; };
  const i64 seen = seen_by(q0 + rows - 1);
  const Matrix<Q> own{q.data + q0 * q.row_stride, q.row_stride, q.col_stride};
  const Matrix<f32> a = gemm_rows(own, rows, s.depth, keys + place.queries);
  attention_product(rows, seen, s.depth, s.depth, a, keys, [&](i64 row, i64 key, auto lanes, auto products) AOTI_LAMBDA {
    store(lanes, scores + row * pitch + key, all_lanes(lanes, score(q0 + row, key, lanes, products)));
  });
  // One after the other, so that no row waits for another's largest score.
  for (i64 row = 0; row < rows; ++row) inverse[row] = attention_peak(scores + row * pitch, seen_by(q0 + row));
  for (i64 row = 0; row < rows; ++row) {
    inverse[row] = attention_weights<OfNothing>(scores + row * pitch, inverse[row], seen_by(q0 + row), seen);
    if (s.keys == 0) inverse[row] = 0;
  }
  attention_product(rows, s.columns, seen, s.keys, Matrix<f32>{scores, pitch, 1}, values,
                    [&](i64 row, i64 column, auto lanes, auto sums) AOTI_LAMBDA {
    epilogue(q0 + row, column, lanes, sums * inverse[row]);
  });
}

AOTI_NAMESPACE_END
