// The element of a rank in each row of [outer, length, inner] tensors; NaN counts as the largest number.
#pragma once

#include "rows.h"

AOTI_NAMESPACE_BEGIN

// The rank in a row, from 0 on: that of all rows or its own, and no number that leads out of it.
AOTI_INLINE i64 rank_in(i64 rank, i64, i64 length) { return rank < 0 ? 0 : rank < length ? rank : length - 1; }
AOTI_INLINE i64 rank_in(const i64 *ranks, i64 row, i64 length) { return rank_in(ranks[row], row, length); }

// Hoare's selection with the median of three for a pivot, as in Numerical Recipes (section 8.5): which of equal elements it ends
// at is part of the result, as PyTorch's `kthvalue` has it. `order` holds places in their present order, `key` gives what is
// compared. Puts the place of the element of a rank where that rank is.
template <class Key> AOTI_INLINE void partition_to(const Key &key, i64 *order, i64 n, i64 rank) {
  i64 low = 0, high = n - 1;
  const auto swap = [&](i64 a, i64 b) AOTI_LAMBDA {
    const i64 own = order[a];
    order[a] = order[b], order[b] = own;
  };
  const auto sorted = [&](i64 a, i64 b) AOTI_LAMBDA {
    if (key(order[a]) > key(order[b])) swap(a, b);
  };
  while (high > low + 1) {
    // Of first, middle and last the median to `low`, the smallest to `low + 1`, the largest to `high`.
    swap(low + (high - low) / 2, low + 1);
    sorted(low + 1, high);
    sorted(low, high);
    sorted(low + 1, low);
    const auto pivot = key(order[low]);
    i64 i = low + 1, j = high;
    for (;;) {
      while (pivot > key(order[++i])) {
      }
      while (key(order[--j]) > pivot) {
      }
      if (j < i) break;
      swap(i, j);
    }
    swap(low, j);
    if (j <= rank) low = i;
    if (j >= rank) high = j - 1;
  }
  if (high == low + 1) sorted(low, high);
}

#if !AOTI_GPU
template <bool Descending, class T> AOTI_INLINE void store_keys(const T *row, i64 length, i64 inner, order_word<T> *keys) {
  over<AOTI_LANES>(0, length, [&](auto lanes, i64 i, auto) AOTI_LAMBDA {
    detail::store_raw(lanes, keys + i, load_keys<Descending>(lanes, row, i, inner));
  });
}

// The place of an element, and how many are equal to it.
struct Selected {
  i64 place, equals;
};
// The element of a rank: the largest key of which no more are less, found bit by bit, and the one of its equals that a stable
// sort has there.
template <class T> AOTI_INLINE Selected select_key(const order_word<T> *keys, i64 length, i64 rank) {
  constexpr int W = AOTI_LANES;
  using U = order_word<T>;
  using I = signed_of<U>;
  const auto count = [&](const auto &is) AOTI_LAMBDA {
    Vec<I, W> sums[4] = {splat<W>(I(0)), splat<W>(I(0)), splat<W>(I(0)), splat<W>(I(0))};
    over_slots<W>(0, length, [&](auto lanes, i64 i, auto slot) AOTI_LAMBDA {
      sums[slot.index] = sums[slot.index] - mask_lanes<I>(select_tail(lanes, is(detail::load_raw(lanes, keys + i)), false));
    });
    return i64(reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3])));
  };
  // Of keys from `found` on that differ from it in the `open` last bits only there are `within`, of those before it `less`.
  U found = 0;
  int open = int(sizeof(U)) * 8;
  i64 less = 0, within = length;
  while (within > 1 && open > 0) {
    const U middle = found | U(1) << --open;
    const i64 below = count([&](auto key) AOTI_LAMBDA { return key < middle; });
    if (below <= rank)
      within -= below - less, found = middle, less = below;
    else
      within = below - less;
  }
  if (length == 1) return {0, 1};
  const U width = U(1) << open;
  for (i64 i = 0, left = rank - less;; ++i)
    if ((keys[i] ^ found) < width && left-- == 0) return {i, within};
}
// A worker has keys of a row, and their order where they are partitioned.
template <class T, bool Partitioned, class Ranks>
AOTI_INLINE void nth_elements(const Run &run, const T *in, Ranks ranks, T *out, i64 *index, i64 outer, i64 length, i64 inner) {
  if constexpr (is_same<T, bool>)
    return nth_elements<u8, Partitioned>(run, (const u8 *)in, ranks, (u8 *)out, index, outer, length, inner);
  else {
    using U = order_word<T>;
    const i64 worker_bytes = (length * i64(sizeof(U) + (Partitioned ? sizeof(i64) : 0)) + 63) / 64 * 64;
    parallel(run, outer * inner, grain(run, 1024, length), [&](i64 begin, i64 end, i64 worker) {
      i64 *const order = (i64 *)(run.scratch + worker * worker_bytes);
      U *const keys = (U *)(order + (Partitioned ? length : 0));
      for (i64 u = begin; u < end; ++u) {
        const T *row = in + u / inner * length * inner + u % inner;
        const i64 rank = rank_in(ranks, u, length);
        store_keys<false>(row, length, inner, keys);
        Selected own = select_key<T>(keys, length, rank);
        if (Partitioned && own.equals > 1) {
          for (i64 i = 0; i < length; ++i) order[i] = i;
          partition_to([&](i64 i) AOTI_LAMBDA { return keys[i]; }, order, length, rank);
          own.place = order[rank];
        }
        index[u] = own.place;
        out[u] = row[own.place * inner];
      }
    });
  }
}
#endif

AOTI_NAMESPACE_END
