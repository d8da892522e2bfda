// Selection by rank. Knows neither batches nor threads.
#pragma once

#include "linalg_factor.h"

AOTI_NAMESPACE_BEGIN
namespace linalg {

// Hoare's selection with the median of three for a pivot, as in Numerical Recipes (section 8.5): which of equal numbers it ends
// at is part of the result, as PyTorch's `kthvalue` has it. `work` holds the positions of a row in their present order.
struct Select {
  template <class T>
  AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *work, const T *in, const i64 *ranks, i64 *out) {
    i64 *order = (i64 *)work;
    i64 rank = ranks[u] - 1;
    // The run has checked it; no number makes this read outside of the row.
    rank = rank < 0 ? 0 : rank < n ? rank : n - 1;
    for (i64 row = 0; row < m; ++row) {
      const T *x = in + (u * m + row) * n;
      for (i64 i = 0; i < n; ++i) order[i] = i;
      partition_to(x, order, n, rank);
      out[u * m + row] = order[rank];
    }
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
