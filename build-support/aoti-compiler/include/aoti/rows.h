// Operations along one axis of [outer, length, inner] tensors: sorting, binary search; `scan.h` has running reductions.
// Elements are handled one at a time; NaN counts as the largest number.
#pragma once

#include "nest.h"

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
template <bool Descending, class T, int W> AOTI_INLINE auto order_keys(Vec<T, W> x) {
  using U = order_word<T>;
  using I = signed_of<U>;
  constexpr U sign = U(1) << (sizeof(U) * 8 - 1);
  Vec<U, W> keys;
  if constexpr (is_float<T>) {
    const Vec<I, W> bits = bits_as<I>(x + T(0));
    const Vec<I, W> ordered = bits ^ (select(bits < I(0), splat<W>(I(-1)), splat<W>(I(0))) & I(~sign));
    keys = bits_as<U>(select(isnan(x), splat<W>(I(~sign)), ordered)) ^ sign;
  } else if constexpr (is_signed<T>)
    keys = bits_as<U>(convert<I>(x)) ^ sign;
  else
    keys = convert<U>(x);
  if constexpr (Descending)
    return ~keys;
  else
    return keys;
}
template <bool Descending, class T> AOTI_INLINE order_word<T> order_key(const T *p) {
  return lane(order_keys<Descending>(Vec<conditional<is_same<T, bool>, u8, computed<T>>, 1>{read(p)}), 0);
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
AOTI_INLINE u32 key_of(u64 item) { return u32(item >> 32); }
AOTI_INLINE u64 key_of(WideItem item) { return item.key; }
AOTI_INLINE bool is_before(u64 a, u64 b) { return a < b; }
AOTI_INLINE bool is_before(WideItem a, WideItem b) { return a.key < b.key || (a.key == b.key && a.place < b.place); }

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
// Elements of a row up to which all are compared with all; results up to which each element is held against those there are, and
// where there are many times as many elements.
constexpr i64 kRanked = 256, kHeld = 16, kMostHeld = 64, kManyTimes = 32;

// The sorted items, in one of the two arrays.
template <class Item> AOTI_INLINE Item *sort_items(Item *from, Item *to, i64 n) {
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
  if (4 * kept > n) return sort_items(from, to, n);
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

// The keys of a row from `i` on.
template <bool Descending, class L, class T> AOTI_INLINE auto load_keys(L lanes, const T *row, i64 i, i64 inner) {
  const T *p = row + i * inner;
  return order_keys<Descending>(inner == 1 ? load(lanes, p) : load_strided(lanes, p, inner));
}

// Few results of a row: each key is held against those that there are, most of them several at a time against the last.
template <bool Descending, class Item, class T>
AOTI_INLINE const Item *hold_row(const T *row, Item *held, i64 length, i64 inner, i64 kept) {
  constexpr int W = AOTI_LANES;
  using U = order_word<T>;
  i64 count = 0;
  U last = ~U(0);
  over<W>(0, kept == 0 ? 0 : length, [&](auto lanes, i64 i, auto) AOTI_LAMBDA {
    const auto keys = load_keys<Descending>(lanes, row, i, inner);
    if (count == kept && !any(select_tail(lanes, keys < last, false))) return;
    U some[W];
    detail::store_raw(Full<W>{}, some, keys);
    for (int j = 0; j < detail::used(lanes); ++j) {
      if (count == kept && some[j] >= last) continue;
      i64 k = count < kept ? count++ : kept - 1;
      const Item own = item_of(some[j], i + j);
      for (; k > 0 && is_before(own, held[k - 1]); --k) held[k] = held[k - 1];
      held[k] = own;
      last = key_of(held[count - 1]);
    }
  });
  return held;
}

// Short rows: how many keys are before each is its place. Nothing waits for the outcome of a comparison.
template <bool Descending, class Item, class T>
AOTI_INLINE const Item *rank_row(const T *row, Item *sorted, i64 length, i64 inner) {
  constexpr int W = AOTI_LANES;
  using U = order_word<T>;
  using I = signed_of<U>;
  alignas(64) U keys[kRanked + W];
  over<W>(0, length, [&](auto lanes, i64 i, auto) AOTI_LAMBDA {
    detail::store_raw(Full<W>{}, keys + i, load_keys<Descending>(lanes, row, i, inner));
  });
  for (i64 base = 0; base < length; base += W) {
    const Vec<U, W> own = detail::load_raw(Full<W>{}, keys + base);
    const i64 end = min_i64(base + W, length);
    Vec<I, W> rank = splat<W>(I(0));
    // Of equal ones the first comes first.
    for (i64 j = 0; j < base; ++j) rank = rank - mask_lanes<I>(own >= keys[j]);
    for (i64 j = base; j < end; ++j)
      rank = rank - mask_lanes<I>((own > keys[j]) | ((own == keys[j]) & (detail::count_lanes<W>() > i32(j - base))));
    for (i64 j = end; j < length; ++j) rank = rank - mask_lanes<I>(own > keys[j]);
    I places[W];
    detail::store_raw(Full<W>{}, places, rank);
    for (i64 j = base; j < end; ++j) sorted[places[j - base]] = item_of(keys[j], j);
  }
  return sorted;
}

template <bool Descending, class Item, class T>
AOTI_INLINE void sort_row(const T *in, T *out, i64 *index, char *scratch, i64 length, i64 inner, i64 kept) {
  Item *from = (Item *)scratch, *to = from + length;
  const Item *sorted;
  if (kept <= kHeld || (kept <= kMostHeld && length >= kManyTimes * kept))
    sorted = hold_row<Descending>(in, to, length, inner, kept);
  else if (length <= kRanked)
    sorted = rank_row<Descending>(in, to, length, inner);
  else {
    for (i64 i = 0; i < length; ++i) from[i] = item_of(order_key<Descending>(in + i * inner), i);
    sorted = select_items(from, to, length, kept);
  }
  for (i64 i = 0; i < kept; ++i) {
    const i64 place = place_of(sorted[i]);
    index[i * inner] = place;
    out[i * inner] = in[place * inner];
  }
}

// Rows that are sorted a lane each: up to so many elements and results, and elements times results.
constexpr i64 kAcross = 64, kAcrossKept = 16, kAcrossSteps = 256;

// Short rows, a lane each: each element is held against those that there are, from the last on. Those
// that it comes before go on by one place, which of equal ones leaves the first before the others.
template <bool Descending, class L, class T>
AOTI_INLINE void sort_across(L lanes, const T *in, T *out, i64 *index, i64 length, i64 inner, i64 kept) {
  constexpr int W = L::width;
  using U = order_word<T>;
  using I = signed_of<U>;
  Vec<U, W> keys[kAcrossKept + 1];
  Vec<I, W> places[kAcrossKept + 1];
  for (i64 i = 0; i < length; ++i) {
    const T *p = in + i * inner;
    auto key = order_keys<Descending>(inner == 1 ? load_strided(lanes, p, length) : load(lanes, p));
    auto place = splat<W>(I(i));
    for (i64 j = min_i64(i, kept) - 1; j >= 0; --j) {
      const auto is_before = key < keys[j];
      keys[j + 1] = select(is_before, keys[j], key), places[j + 1] = select(is_before, places[j], place);
      key = select(is_before, key, keys[j]), place = select(is_before, place, places[j]);
    }
    keys[0] = key, places[0] = place;
  }
  for (i64 i = 0; i < kept; ++i) {
    const auto place = convert<i64>(places[i]);
    const auto element = place * inner + iota(lanes, 0, inner == 1 ? length : 1);
    const auto value = gather(lanes, in, element);
    if (inner == 1)
      store_strided(lanes, out + i, kept, value), store_strided(lanes, index + i, kept, place);
    else
      store(lanes, out + i * inner, value), store(lanes, index + i * inner, place);
  }
}

// Stable sort: the first `kept` of each row.
template <class T, bool Descending>
AOTI_INLINE void sort_rows(const Run &run, const T *in, T *out, i64 *index, i64 outer, i64 length, i64 inner, i64 kept) {
  if constexpr (is_same<T, bool>)
    return sort_rows<u8, Descending>(run, (const u8 *)in, (u8 *)out, index, outer, length, inner, kept);
  else {
    constexpr int W = AOTI_LANES;
    // Rows whose elements are the same distance apart.
    const i64 like = inner == 1 ? outer : inner;
    if (length <= kAcross && kept <= kAcrossKept && length * kept <= kAcrossSteps && 2 * like >= W) {
      parallel(run, outer * inner, grain(run, 1024, length), [&](i64 begin, i64 end, i64) {
        for (i64 u = begin, next; u < end; u = next) {
          const i64 row = u / like, first = row * like;
          next = min_i64(end, first + like);
          over<W>(u - first, next - first, [&](auto lanes, i64 column, auto) AOTI_LAMBDA {
            const i64 from = inner == 1 ? column * length : row * length * inner + column;
            const i64 to = inner == 1 ? column * kept : row * kept * inner + column;
            sort_across<Descending>(lanes, in + from, out + to, index + to, length, inner, kept);
          });
        }
      });
      return;
    }
    const i64 worker_bytes = (2 * length * i64(sizeof(SortItem<T>)) + 63) / 64 * 64;
    parallel(run, outer * inner, grain(run, 1024, length), [&](i64 begin, i64 end, i64 worker) {
      char *scratch = run.scratch + worker * worker_bytes;
      for (i64 u = begin; u < end; ++u) {
        const i64 row = u / inner, column = u % inner, to = row * kept * inner + column;
        sort_row<Descending, SortItem<T>>(in + row * length * inner + column, out + to, index + to, scratch, length, inner, kept);
      }
    });
  }
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
