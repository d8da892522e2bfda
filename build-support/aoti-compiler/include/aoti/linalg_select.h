// Selection by rank. Knows no batches.
#pragma once

#include "linalg_factor.h"
#include "rows.h"

AOTI_NAMESPACE_BEGIN
namespace linalg {

// Hoare's selection with the median of three for a pivot, as in Numerical Recipes (section 8.5): which of equal numbers it ends
// at is part of the result, as PyTorch's `kthvalue` has it. `work` holds the positions of a row in their present order. A
// number that has no equal is found by counting: by threads of a team two bits of it at a time.
struct Select {
  template <class Team, class T>
  AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *work, const T *in, const i64 *ranks, i64 *out) {
    i64 *order = (i64 *)work;
    i64 rank = ranks[u] - 1;
    // The run has checked it; no number makes this read outside of the row.
    rank = rank < 0 ? 0 : rank < n ? rank : n - 1;
    for (i64 row = 0; row < m; ++row) {
      const T *x = in + (u * m + row) * n;
#if !AOTI_GPU
      order_word<T> *const keys = (order_word<T> *)work;
      store_keys<false>(x, n, 1, keys);
      const Selected own = select_key<T>(keys, n, rank);
      if (own.equals == 1) {
        out[u * m + row] = own.place;
        continue;
      }
#endif
      if constexpr (!Team::kIsAlone) {
        const Equal equal = find<Team>(x, n, rank);
        if (equal.count == 1) {
          out[u * m + row] = equal.position;
          continue;
        }
      }
      Team::once([&] {
        for (i64 i = 0; i < n; ++i) order[i] = i;
        partition_to(x, order, n, rank);
        out[u * m + row] = order[rank];
      });
    }
  }

  // Numbers that are as the one of a rank: how many, and the sum of their positions.
  struct Equal {
    i64 count, position;
    friend AOTI_INLINE Equal operator+(Equal a, Equal b) { return {a.count + b.count, a.position + b.position}; }
  };
  // How many are less than three numbers.
  struct Less {
    i64 first, second, third;
    friend AOTI_INLINE Less operator+(Less a, Less b) { return {a.first + b.first, a.second + b.second, a.third + b.third}; }
  };

  // A number as one that is compared without a sign: zeros alike, NaN last.
  template <class T> static AOTI_INLINE u64 key(T x) {
    constexpr int bits = int(sizeof(T)) * 8;
    if (x != x) return ~u64(0) >> (64 - bits);
    u64 all = 0;
    const T positive = x + T(0);
    __builtin_memcpy(&all, &positive, sizeof positive);
    const u64 sign = u64(1) << (bits - 1);
    return all & sign ? ~all & (sign - 1) : all | sign;
  }

  // The number of a rank is the largest with no more before it.
  template <class Team, class T> static AOTI_INLINE Equal find(const T *x, i64 n, i64 rank) {
    u64 found = 0;
    for (int bit = int(sizeof(T)) * 8 - 2; bit >= 0; bit -= 2) {
      const u64 first = found | u64(1) << bit, second = found | u64(2) << bit, third = found | u64(3) << bit;
      const Less less = Team::template sum<Less>(n, [&](i64 i) {
        const u64 own = key(x[i]);
        return Less{own < first, own < second, own < third};
      });
      found = less.third <= rank ? third : less.second <= rank ? second : less.first <= rank ? first : found;
    }
    return Team::template sum<Equal>(n, [&](i64 i) {
      const bool is = key(x[i]) == found;
      return Equal{is, is ? i : 0};
    });
  }

  // Whether x comes after y, NaN last.
  template <class T> static AOTI_INLINE bool after(T x, T y) { return x > y || (x != x && y == y); }

  // Puts the number of this rank in its place.
  template <class T> static AOTI_INLINE void partition_to(const T *x, i64 *order, i64 n, i64 rank) {
    i64 low = 0, high = n - 1;
    auto sorted = [&](i64 a, i64 b) {
      if (after(x[order[a]], x[order[b]])) swap(order[a], order[b]);
    };
    while (high > low + 1) {
      // Of first, middle and last the median to `low`, the smallest to `low + 1`, the largest to `high`.
      swap(order[low + (high - low) / 2], order[low + 1]);
      sorted(low + 1, high);
      sorted(low, high);
      sorted(low + 1, low);
      const T pivot = x[order[low]];
      i64 i = low + 1, j = high;
      for (;;) {
        while (after(pivot, x[order[++i]])) {
        }
        while (after(x[order[--j]], pivot)) {
        }
        if (j < i) break;
        swap(order[i], order[j]);
      }
      swap(order[low], order[j]);
      if (j <= rank) low = i;
      if (j >= rank) high = j - 1;
    }
    if (high == low + 1) sorted(low, high);
  }
};

} // namespace linalg
AOTI_NAMESPACE_END
