// Stable sorting of rows. Blocks sort runs in shared memory: every thread finds by binary search where its part of two sorted
// runs begins, and merges from there (Odeh, Green, Mwassi, Shmueli & Birk 2012). What blocks sorted is merged in the same way, of
// which a block does a part.
#pragma once

#include "../rows.h"
#include "atomics.h"
#include "simt.h"

AOTI_NAMESPACE_BEGIN

// Elements that a thread has.
constexpr int kSorted = 4;

// Elements are where they are.
struct NoPlaces {
  AOTI_INLINE i64 operator[](i64) const { return 0; }
};
template <class Places> AOTI_INLINE i64 place_in_row(const Places &places, i64 at, i64 place) {
  if constexpr (is_same<Places, NoPlaces>)
    return place;
  else
    return i64(places[at]);
}

template <class Item> AOTI_INLINE void in_order(Item &a, Item &b) {
  const Item first = is_before(a, b) ? a : b, second = is_before(a, b) ? b : a;
  a = first, b = second;
}
// Behind all others.
AOTI_INLINE void make_last(u64 &item) { item = ~u64(0); }
AOTI_INLINE void make_last(WideItem &item) { item = {~u64(0), i64(~u64(0) >> 1)}; }

// The elements from `diagonal` on of two sorted runs, one behind the other, as one.
template <class Item> AOTI_INLINE void merge_some(const Item *left, int lefts, int rights, int diagonal, Item (&own)[kSorted]) {
  const Item *right = left + lefts;
  if (diagonal > lefts + rights) diagonal = lefts + rights;
  int begin = diagonal > rights ? diagonal - rights : 0, end = diagonal < lefts ? diagonal : lefts;
  while (begin < end) {
    const int half = (begin + end) / 2;
    if (is_before(left[half], right[diagonal - 1 - half]))
      begin = half + 1;
    else
      end = half;
  }
  int i = begin, j = diagonal - begin;
  AOTI_UNROLL_TIMES(4)
  for (int k = 0; k < kSorted; ++k) {
    make_last(own[k]);
    if (i < lefts && (j >= rights || is_before(left[i], right[j])))
      own[k] = left[i++];
    else if (j < rights)
      own[k] = right[j++];
  }
}

// Sorts what a block has, in runs of Size: neighbours in order are in `items`.
template <int Threads, int Size, class Item> AOTI_INLINE void sort_in_block(Item (&own)[kSorted], Item *items) {
  const int first = thread_index() * kSorted;
  in_order(own[0], own[1]), in_order(own[2], own[3]);
  in_order(own[0], own[2]), in_order(own[1], own[3]);
  in_order(own[1], own[2]);
  AOTI_UNROLL_TIMES(4)
  for (int k = 0; k < kSorted; ++k) items[first + k] = own[k];
  for (int width = kSorted; width < Size; width *= 2) {
    // Small runs are read by the warp that wrote them.
    const bool in_warp = 2 * width <= kSorted * kWarp && Threads % kWarp == 0;
    in_warp ? warp_barrier() : barrier();
    const int low = first / (2 * width) * (2 * width), diagonal = first - low;
    merge_some(items + low, width, width, diagonal, own);
    in_warp ? warp_barrier() : barrier();
    AOTI_UNROLL_TIMES(4)
    for (int k = 0; k < kSorted; ++k) items[first + k] = own[k];
  }
  barrier();
}

// The first `kept` of each run of `run` elements, Rows runs at a time.
template <int Threads, int Rows, class T, bool Descending, class Places, class Index>
AOTI_INLINE void sort_runs(const T *in, Places places, T *out, Index *index, i64 outer, i64 length, i64 inner, i64 run,
                           i64 kept) {
  using Item = SortItem<T>;
  constexpr int size = Threads * kSorted / Rows;
  alignas(16) AOTI_SHARED char memory[Threads * kSorted * sizeof(Item)];
  Item *const items = (Item *)memory;
  if (length == 0) return;
  const i64 runs = ceil_div(length, run), count = outer * inner * runs, last = length - (runs - 1) * run;
  const i64 results = (runs - 1) * min_i64(kept, run) + min_i64(kept, last);
  AOTI_UNROLL_TIMES(1)
  for (i64 block = block_index(); block * Rows < count; block += block_count()) {
    // Neighbouring columns of an axis that is not the last are neighbouring units.
    const auto row_of = [&](int at, i64 &row, i64 &column, i64 &number) {
      const i64 unit = block * Rows + at / size;
      row = unit / (inner * runs), number = unit / inner % runs, column = unit % inner;
      return unit < count;
    };
    Item own[kSorted];
    AOTI_UNROLL_TIMES(4)
    for (int k = 0; k < kSorted; ++k) {
      // Neighbours load neighbours; who sorts what is all the same.
      const int at = k * Threads + thread_index();
      i64 row, column, number;
      const bool is_unit = row_of(at, row, column, number);
      const i64 place = at % size;
      Item item;
      make_last(item);
      if (is_unit && place < (number == runs - 1 ? last : run))
        item = item_of(order_key<Descending>(in + (row * length + number * run + place) * inner + column), place);
      if constexpr (Rows == 1)
        own[k] = item;
      else
        items[at] = item;
    }
    if constexpr (Rows > 1) {
      barrier();
      AOTI_UNROLL_TIMES(4)
      for (int k = 0; k < kSorted; ++k) own[k] = items[thread_index() * kSorted + k];
      barrier();
    }
    sort_in_block<Threads, size>(own, items);
    for (int k = 0; k < kSorted; ++k) {
      const int at = k * Threads + thread_index();
      i64 row, column, number;
      const bool is_unit = row_of(at, row, column, number);
      const i64 rank = at % size;
      if (is_unit && rank < kept && rank < (number == runs - 1 ? last : run)) {
        const i64 place = number * run + place_of(items[at]), from = (row * length + place) * inner + column;
        const i64 to = (row * results + number * min_i64(kept, run) + rank) * inner + column;
        out[to] = in[from];
        index[to] = Index(place_in_row(places, from, place));
      }
    }
    barrier();
  }
}

// How many of the first `diagonal` elements of two sorted runs are of the left one, which has the place before equal ones of
// the right: found by all lanes of a warp.
template <class Left, class Right>
AOTI_INLINE i64 split_by_warp(i64 left, i64 right, i64 diagonal, const Left &left_key, const Right &right_key) {
  i64 low = diagonal > right ? diagonal - right : 0, high = min_i64(diagonal, left);
  const int lane = thread_index() % kWarp;
  while (low < high) {
    const i64 width = ceil_div(high - low, i64(kWarp)), at = low + (lane + 1) * width - 1;
    int before = at < high && left_key(at) <= right_key(diagonal - 1 - at) ? 1 : 0;
    // What holds for a lane holds for those before it.
    for (int distance = 1; distance < kWarp; distance *= 2) before += shuffle_xor(before, distance);
    low += before * width;
    high = min_i64(high, low + width - 1);
  }
  return low;
}

// Pairs of sorted runs of `merged` elements as runs of twice as many, of which the last row keeps `kept`: a block has as many
// results as it sorts.
template <int Threads, class T, bool Descending, class Place, class Index>
AOTI_INLINE void merge_runs(const T *in, const Place *places, T *out, Index *index, i64 outer, i64 length, i64 inner, i64 kept,
                            i64 merged) {
  using Item = SortItem<T>;
  constexpr int size = Threads * kSorted;
  alignas(16) AOTI_SHARED char memory[size * sizeof(Item)];
  AOTI_SHARED i64 ends[2];
  Item *const items = (Item *)memory;
  const i64 chunks = ceil_div(length, i64(size)), count = outer * inner * chunks;
  const i64 results = length <= 2 * merged ? kept : length;
  AOTI_UNROLL_TIMES(1)
  for (i64 unit = block_index(); unit < count; unit += block_count()) {
    const i64 row = unit / (inner * chunks), column = unit / chunks % inner, start = unit % chunks * size;
    const i64 base = row * length * inner + column;
    const i64 first = start / (2 * merged) * (2 * merged), left = min_i64(merged, length - first);
    const i64 right = min_i64(merged, length - first - left), diagonal = start - first;
    const i64 total = min_i64(size, left + right - diagonal);
    const auto key = [&](i64 at) { return order_key<Descending>(in + base + at * inner); };
    const int warp = thread_index() / kWarp;
    if (warp < 2) {
      const i64 end = split_by_warp(
          left, right, warp == 0 ? diagonal : diagonal + total, [&](i64 i) { return key(first + i); },
          [&](i64 i) { return key(first + left + i); });
      if (thread_index() % kWarp == 0) ends[warp] = end;
    }
    barrier();
    const i64 begin = ends[0];
    const int own_left = int(ends[1] - begin);
    const auto source = [&](i64 k) { return k < own_left ? first + begin + k : first + left + diagonal - begin + k - own_left; };
    AOTI_UNROLL_TIMES(4)
    for (int k = 0; k < kSorted; ++k) {
      const int at = k * Threads + thread_index();
      if (at < total) items[at] = item_of(key(source(at)), at);
    }
    barrier();
    Item own[kSorted];
    merge_some(items, own_left, int(total) - own_left, thread_index() * kSorted, own);
    barrier();
    AOTI_UNROLL_TIMES(4)
    for (int k = 0; k < kSorted; ++k) items[thread_index() * kSorted + k] = own[k];
    barrier();
    for (int k = 0; k < kSorted; ++k) {
      const int at = k * Threads + thread_index();
      if (at < total && start + at < results) {
        const i64 from = base + source(place_of(items[at])) * inner, to = (row * results + start + at) * inner + column;
        out[to] = in[from];
        index[to] = Index(places[from]);
      }
    }
    barrier();
  }
}

// Rows of any length, a block for each: positions are merged run by run, every thread finding by binary search where its
// elements belong in the sibling run.
template <int Threads, class T, bool Descending>
AOTI_INLINE void sort_long_rows(const T *in, T *out, i64 *index, char *scratch, i64 outer, i64 length, i64 inner,
                                i64 kept) {
  AOTI_UNROLL_TIMES(1)
  for (i64 u = block_index(); u < outer * inner; u += block_count()) {
    const i64 base = u / inner * length * inner + u % inner;
    i64 *from = (i64 *)scratch + u * 2 * length, *to = from + length;
    auto key = [&](i64 i) { return read(in + base + i * inner); };
    auto goes_first = [&](i64 a, i64 b) { return Descending ? before(key(b), key(a)) : before(key(a), key(b)); };
    for (i64 i = thread_index(); i < length; i += Threads) from[i] = i;
    barrier();
    for (i64 width = 1; width < length; width *= 2) {
      for (i64 i = thread_index(); i < length; i += Threads) {
        const i64 low = i / (2 * width) * (2 * width), middle = min_i64(low + width, length);
        const i64 high = min_i64(low + 2 * width, length);
        const bool left = i < middle;
        i64 begin = left ? middle : low, end = left ? high : middle, own = from[i];
        const i64 first = begin;
        // Elements of the right run go before equal ones of the left run never, the other way round always.
        while (begin < end) {
          const i64 half = begin + (end - begin) / 2, other = from[half];
          const bool precedes = left ? goes_first(other, own) : !goes_first(own, other);
          precedes ? begin = half + 1 : end = half;
        }
        to[(left ? i : low + (i - middle)) + (begin - first)] = own;
      }
      barrier();
      i64 *swap = from;
      from = to, to = swap;
    }
    const i64 first = u / inner * kept * inner + u % inner;
    for (i64 i = thread_index(); i < kept; i += Threads) {
      index[first + i * inner] = from[i];
      out[first + i * inner] = in[base + from[i] * inner];
    }
  }
}

AOTI_NAMESPACE_END
