// Operations along one axis of [outer, length, inner] tensors: running reductions, sorting, binary search.
// Elements are handled one at a time; NaN counts as the largest number.
#pragma once

#include "math.h"
#include "vec.h"
#if AOTI_GPU
#include "gpu/run.h"
#else
#include "run.h"
#endif

AOTI_NAMESPACE_BEGIN

// The type that elements of T are compared and summed in.
template <class T> using computed = conditional<is_narrow<T>, f32, T>;

template <class T> AOTI_INLINE computed<T> read(const T *p) {
  if constexpr (is_narrow<T>)
    return to_f32(*p);
  else
    return *p;
}
template <class T> AOTI_INLINE void write(T *p, computed<T> x) {
  if constexpr (is_narrow<T>)
    from_f32(*p, x);
  else
    *p = x;
}
template <class T> AOTI_INLINE bool is_nan(T x) { return x != x; }
// Whether a comes before b in ascending order, NaN last.
template <class T> AOTI_INLINE bool before(T a, T b) { return a < b || (is_nan(b) && !is_nan(a)); }

// Keys that are in the order of the elements as unsigned integers, Descending in the opposite one. Zeros are equal, and so is
// NaN, the largest.
template <class T> using order_word = conditional<(sizeof(computed<T>) > 4), u64, u32>;
template <bool Descending, class T> AOTI_INLINE order_word<T> order_key(const T *p) {
  using U = order_word<T>;
  constexpr U sign = U(1) << (sizeof(U) * 8 - 1);
  const computed<T> x = read(p);
  U key;
  if constexpr (is_float<computed<T>>) {
    constexpr U infinity = sizeof(U) == 4 ? U(0xff) << 23 : U(0x7ff) << (sizeof(U) == 4 ? 0 : 52);
    U bits;
    __builtin_memcpy(&bits, &x, sizeof(U));
    const U magnitude = bits & ~sign;
    key = magnitude == 0 ? sign : bits & sign ? ~bits : bits | sign;
    if (magnitude > infinity) key = ~U(0);
  } else if constexpr (is_signed<computed<T>>)
    key = U(x) ^ sign;
  else
    key = U(x);
  return Descending ? U(~key) : key;
}

// A key and where the element is: no two are equal, so that any way of sorting is stable. `SortItem` where places have 32 bits.
struct WideItem {
  u64 key;
  i64 place;
};
template <class T> using SortItem = conditional<(sizeof(computed<T>) > 4), WideItem, u64>;
AOTI_INLINE u64 item_of(u32 key, i64 place) { return u64(key) << 32 | u64(u32(place)); }
AOTI_INLINE WideItem item_of(u64 key, i64 place) { return {key, place}; }
AOTI_INLINE i64 place_of(u64 item) { return i64(u32(item)); }
AOTI_INLINE i64 place_of(WideItem item) { return item.place; }
AOTI_INLINE bool is_before(u64 a, u64 b) { return a < b; }
AOTI_INLINE bool is_before(WideItem a, WideItem b) { return a.key < b.key || (a.key == b.key && a.place < b.place); }

struct ScanSum {
  template <class T> static AOTI_INLINE T first(T x) { return x; }
  template <class T> static AOTI_INLINE T next(T a, T x) {
    if constexpr (is_float<T>)
      return a + x;
    else
      return T(u64(a) + u64(x));
  }
};
struct ScanProd {
  template <class T> static AOTI_INLINE T first(T x) { return x; }
  template <class T> static AOTI_INLINE T next(T a, T x) {
    if constexpr (is_float<T>)
      return a * x;
    else
      return T(u64(a) * u64(x));
  }
};
struct ScanLogSumExp {
  template <class T> static AOTI_INLINE T first(T x) { return x; }
  template <class T> static AOTI_INLINE T next(T a, T x) {
    T high = a > x ? a : x, low = a > x ? x : a;
    if (is_nan(a) || is_nan(x)) return a + x;
    // Equal infinities would give infinity minus infinity.
    if (high == low && high - high != T(0)) return high;
    return high + log1p(exp(Vec<T, 1>{low - high})).v;
  }
};

// Rows that lie so many elements apart, at a time: their sums do not wait for each other.
template <class Op, int Rows, class T>
AOTI_INLINE void scan_some(const T *in, T *out, i64 length, i64 inner, i64 apart) {
  computed<T> sums[Rows];
  for (int k = 0; k < Rows; ++k) {
    sums[k] = Op::first(read(in + k * apart));
    write(out + k * apart, sums[k]);
  }
  for (i64 i = 1; i < length; ++i)
    for (int k = 0; k < Rows; ++k) {
      sums[k] = Op::next(sums[k], read(in + i * inner + k * apart));
      write(out + i * inner + k * apart, sums[k]);
    }
}
template <class Op, class T>
AOTI_INLINE void scan(const Run &run, const T *in, T *out, i64 outer, i64 length, i64 inner) {
  // Columns side by side are lanes.
  [[maybe_unused]] constexpr int rows = 4, columns = 16;
  if (length == 0) return;
  parallel(run, outer * inner, grain(run, 4096, length), [&](i64 begin, i64 end, i64) {
    for (i64 u = begin; u < end;) {
      const i64 base = u / inner * length * inner + u % inner;
#if !AOTI_GPU
      if (inner == 1 && u + rows <= end) {
        scan_some<Op, rows>(in + base, out + base, length, 1, length);
        u += rows;
        continue;
      }
      if (u % inner + columns <= inner && u + columns <= end) {
        scan_some<Op, columns>(in + base, out + base, length, inner, 1);
        u += columns;
        continue;
      }
#endif
      scan_some<Op, 1>(in + base, out + base, length, inner, 0);
      ++u;
    }
  });
}

// A later equal element takes over, and NaN stays.
struct ScanMax {
  // Without a look at NaN.
  template <class T> static AOTI_INLINE bool stays(T x, T best) { return x < best; }
  template <class T> static AOTI_INLINE bool replaces(T x, T best) { return is_nan(x) || (!is_nan(best) && x >= best); }
};
struct ScanMin {
  template <class T> static AOTI_INLINE bool stays(T x, T best) { return x > best; }
  template <class T> static AOTI_INLINE bool replaces(T x, T best) { return is_nan(x) || (!is_nan(best) && x <= best); }
};

template <class Op, class T>
AOTI_INLINE void scan_extreme(const Run &run, const T *in, T *out, i64 *index, i64 outer, i64 length, i64 inner) {
  parallel(run, outer * inner, grain(run, 4096, length), [&](i64 begin, i64 end, i64) {
    for (i64 u = begin; u < end; ++u) {
      i64 base = u / inner * length * inner + u % inner;
      if (length == 0) continue;
      computed<T> best = read(in + base);
      i64 at = 0;
      for (i64 i = 0; i < length; ++i) {
        const computed<T> x = read(in + base + i * inner);
        // Mostly it stays, and what follows does not wait for the answer.
        if (__builtin_expect(!Op::stays(x, best), 0) && Op::replaces(x, best)) best = x, at = i;
        write(out + base + i * inner, best);
        index[base + i * inner] = at;
      }
    }
  });
}

#if !AOTI_GPU
// Digits that items are distributed by, and the number of passes.
constexpr int kDigit = 8;
template <class Item> constexpr int kDigits = sizeof(Item) == 8 ? 4 : 8;
AOTI_INLINE int digit_of(u64 item, int pass) { return int(item >> (32 + kDigit * pass)) & 255; }
AOTI_INLINE int digit_of(WideItem item, int pass) { return int(item.key >> (kDigit * pass)) & 255; }
// The first bits of a key.
constexpr int kBuckets = 2048;
AOTI_INLINE int bucket_of(u64 item) { return int(item >> 53); }
AOTI_INLINE int bucket_of(WideItem item) { return int(item.key >> 53); }
// Items up to which runs are merged.
constexpr i64 kMerged = 256;
// Results up to which each element is held against those that there are.
constexpr i64 kHeld = 16;

template <class Item> AOTI_INLINE void insert_items(Item *items, i64 n) {
  for (i64 i = 1; i < n; ++i) {
    const Item own = items[i];
    i64 k = i;
    for (; k > 0 && is_before(own, items[k - 1]); --k) items[k] = items[k - 1];
    items[k] = own;
  }
}
// Runs of eight by insertion, then merged.
template <class Item> AOTI_INLINE Item *merge_items(Item *from, Item *to, i64 n) {
  for (i64 low = 0; low < n; low += 8) insert_items(from + low, min_i64(8, n - low));
  for (i64 width = 8; width < n; width *= 2) {
    for (i64 low = 0; low < n; low += 2 * width) {
      const Item *a = from + low, *a_end = from + min_i64(low + width, n), *b = a_end, *b_end = from + min_i64(low + 2 * width, n);
      Item *next = to + low;
      while (a < a_end && b < b_end) {
        const bool left = is_before(*a, *b);
        *next++ = left ? *a : *b;
        a += left, b += !left;
      }
      while (a < a_end) *next++ = *a++;
      while (b < b_end) *next++ = *b++;
    }
    Item *swap = from;
    from = to, to = swap;
  }
  return from;
}
// The sorted items, in one of the two arrays.
template <class Item> AOTI_INLINE Item *sort_items(Item *from, Item *to, i64 n) {
  if (n <= kMerged) return merge_items(from, to, n);
  i64 counts[kDigits<Item>][1 << kDigit] = {};
  for (i64 i = 0; i < n; ++i)
    for (int pass = 0; pass < kDigits<Item>; ++pass) ++counts[pass][digit_of(from[i], pass)];
  for (int pass = 0; pass < kDigits<Item>; ++pass) {
    i64 *next = counts[pass];
    // Nothing moves where all have the same digit.
    if (next[digit_of(from[0], pass)] == n) continue;
    i64 before = 0;
    for (int d = 0; d < 1 << kDigit; ++d) {
      const i64 own = next[d];
      next[d] = before, before += own;
    }
    for (i64 i = 0; i < n; ++i) to[next[digit_of(from[i], pass)]++] = from[i];
    Item *swap = from;
    from = to, to = swap;
  }
  return from;
}
// The first `kept` of the sorted items.
template <class Item> AOTI_INLINE Item *select_items(Item *from, Item *to, i64 n, i64 kept) {
  if (kept <= kHeld) {
    i64 held = 0;
    for (i64 i = 0; i < n; ++i) {
      const Item own = from[i];
      if (held == kept && (kept == 0 || !is_before(own, to[kept - 1]))) continue;
      i64 k = held < kept ? held++ : kept - 1;
      for (; k > 0 && is_before(own, to[k - 1]); --k) to[k] = to[k - 1];
      to[k] = own;
    }
    return to;
  }
  if (n <= kMerged || 4 * kept > n) return sort_items(from, to, n);
  // What has the first bits of the last result, and all before it.
  i64 counts[kBuckets] = {};
  for (i64 i = 0; i < n; ++i) ++counts[bucket_of(from[i])];
  int last = 0;
  for (i64 before = counts[0]; before < kept; before += counts[++last]) {}
  i64 count = 0;
  for (i64 i = 0; i < n; ++i) {
    const Item own = from[i];
    from[count] = own;
    count += bucket_of(own) <= last;
  }
  return sort_items(from, to, count);
}

template <bool Descending, class Item, class T>
AOTI_INLINE void sort_row(const T *in, T *out, i64 *index, char *scratch, i64 length, i64 inner, i64 kept) {
  Item *from = (Item *)scratch, *to = from + length;
  for (i64 i = 0; i < length; ++i) from[i] = item_of(conditional<(sizeof(Item) > 8), u64, u32>(order_key<Descending>(in + i * inner)), i);
  const Item *sorted = select_items(from, to, length, kept);
  for (i64 i = 0; i < kept; ++i) {
    const i64 place = place_of(sorted[i]);
    index[i * inner] = place;
    out[i * inner] = in[place * inner];
  }
}

// Stable sort: the first `kept` of each row.
template <class T, bool Descending>
AOTI_INLINE void sort_rows(const Run &run, const T *in, T *out, i64 *index, i64 outer, i64 length, i64 inner, i64 kept) {
  const i64 worker_bytes = (2 * length * i64(sizeof(SortItem<T>)) + 63) / 64 * 64;
  parallel(run, outer * inner, grain(run, 1024, length), [&](i64 begin, i64 end, i64 worker) {
    char *scratch = run.scratch + worker * worker_bytes;
    for (i64 u = begin; u < end; ++u) {
      const i64 row = u / inner, column = u % inner, to = row * kept * inner + column;
      sort_row<Descending, SortItem<T>>(in + row * length * inner + column, out + to, index + to, scratch, length, inner, kept);
    }
  });
}
#endif

// For each of `count` values of a row, where it belongs among the `length` sorted elements of the same row.
template <class T, bool Right>
AOTI_INLINE void search_sorted(const Run &run, const T *sorted, const T *values, i64 *out, i64 rows, i64 length,
                               i64 count) {
  parallel(run, rows * count, grain(run, 512, 1), [&](i64 begin, i64 end, i64) {
    for (i64 u = begin; u < end; ++u) {
      const T *row = sorted + u / count * length;
      computed<T> x = read(values + u);
      i64 low = 0, high = length;
      while (low < high) {
        i64 middle = low + (high - low) / 2;
        // Plain comparisons, as PyTorch's search has them: it goes right of NaN, whatever is looked for.
        computed<T> other = read(row + middle);
        bool goes_right = Right ? !(other > x) : !(other >= x);
        if (goes_right)
          low = middle + 1;
        else
          high = middle;
      }
      out[u] = low;
    }
  });
}

AOTI_NAMESPACE_END
