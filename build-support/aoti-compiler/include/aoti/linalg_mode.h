// The most frequent number of a row. Knows no batches.
#pragma once

#include "linalg_factor.h"

AOTI_NAMESPACE_BEGIN
namespace linalg {

// Introspective sorting (Musser, "Introspective Sorting and Selection Algorithms", 1997) by what is less alone, as PyTorch's
// `mode` sorts: NaN, which is less than nothing, stays where others move past it or stop at it, and divides what would otherwise
// be one run of equal numbers. Which number is found, and at which position, follows from every step. `work` holds the positions
// of a row in their present order.
struct Mode {
  // Up to so many numbers are sorted by insertion.
  static constexpr i64 kFew = 16;

  template <class Team, class T> AOTI_NOINLINE static void one(i64 u, i64 m, i64 n, char *work, const T *in, i64 *out) {
    i64 *order = (i64 *)work;
    Team::once([&] {
      for (i64 row = 0; row < m; ++row) {
        const T *x = in + (u * m + row) * n;
        for (i64 i = 0; i < n; ++i) order[i] = i;
        sort(x, order, n);
        out[u * m + row] = longest_run(x, order, n);
      }
    });
  }

  // The position that ends the first of the longest runs of equal numbers.
  template <class T> static AOTI_INLINE i64 longest_run(const T *x, const i64 *order, i64 n) {
    i64 found = 0, length = 0, most = 0;
    for (i64 i = 0; i < n; ++i) {
      ++length;
      if (i + 1 < n && x[order[i]] == x[order[i + 1]]) continue;
      if (length > most) {
        most = length;
        found = order[i];
      }
      length = 0;
    }
    return found;
  }

  template <class T> static AOTI_INLINE void sort(const T *x, i64 *order, i64 n) {
    // Parts that are left, each no deeper than the one before it.
    struct Part {
      i64 first, end, depth;
    };
    Part parts[130];
    i64 count = 0, depth = 0;
    for (i64 size = n; size > 1; size /= 2) depth += 2;
    parts[count++] = {0, n, depth};
    while (count > 0) {
      Part part = parts[--count];
      while (part.end - part.first > kFew) {
        if (part.depth == 0) {
          sort_by_heap(x, order + part.first, part.end - part.first);
          break;
        }
        --part.depth;
        const i64 cut = partition(x, order, part.first, part.end, n);
        parts[count++] = {cut, part.end, part.depth};
        part.end = cut;
      }
    }
    insert_all(x, order, n);
  }

  // Divides a part at the median of its second, middle and last number, and gives where the upper half begins.
  template <class T> static AOTI_INLINE i64 partition(const T *x, i64 *order, i64 first, i64 end, i64 n) {
    auto less = [&](i64 a, i64 b) { return x[order[a]] < x[order[b]]; };
    const i64 a = first + 1, b = first + (end - first) / 2, c = end - 1;
    i64 median;
    if (less(a, b)) {
      median = less(b, c) ? b : less(a, c) ? c : a;
    } else {
      median = less(a, c) ? a : less(b, c) ? c : b;
    }
    swap(order[first], order[median]);
    const T pivot = x[order[first]];
    i64 low = first + 1, high = end;
    for (;;) {
      // NaN may leave nothing that stops either end.
      while (low < n && x[order[low]] < pivot) ++low;
      --high;
      while (high > 0 && pivot < x[order[high]]) --high;
      if (low >= high) return low;
      swap(order[low], order[high]);
      ++low;
    }
  }

  template <class T> static AOTI_INLINE void insert_all(const T *x, i64 *order, i64 n) {
    for (i64 i = 1; i < n; ++i) {
      const i64 own = order[i];
      i64 hole = i;
      if (i < kFew && x[own] < x[order[0]]) {
        for (; hole > 0; --hole) order[hole] = order[hole - 1];
      } else {
        for (; hole > 0 && x[own] < x[order[hole - 1]]; --hole) order[hole] = order[hole - 1];
      }
      order[hole] = own;
    }
  }

  template <class T> static AOTI_INLINE void sort_by_heap(const T *x, i64 *order, i64 n) {
    for (i64 parent = (n - 2) / 2; parent >= 0; --parent) sink(x, order, parent, n, order[parent]);
    for (i64 last = n - 1; last > 0; --last) {
      const i64 own = order[last];
      order[last] = order[0];
      sink(x, order, 0, last, own);
    }
  }

  // Moves a hole down to a leaf, along the larger children, and what belongs there up to its place.
  template <class T> static AOTI_INLINE void sink(const T *x, i64 *order, i64 hole, i64 n, i64 own) {
    const i64 top = hole;
    i64 child = hole;
    while (child < (n - 1) / 2) {
      child = 2 * (child + 1);
      if (x[order[child]] < x[order[child - 1]]) --child;
      order[hole] = order[child];
      hole = child;
    }
    if (n % 2 == 0 && child == (n - 2) / 2) {
      child = 2 * child + 1;
      order[hole] = order[child];
      hole = child;
    }
    while (hole > top && x[order[(hole - 1) / 2]] < x[own]) {
      order[hole] = order[(hole - 1) / 2];
      hole = (hole - 1) / 2;
    }
    order[hole] = own;
  }
};

} // namespace linalg
AOTI_NAMESPACE_END
