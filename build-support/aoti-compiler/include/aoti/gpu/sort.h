// Stable sorting of rows. Blocks sort runs in shared memory: every thread finds by binary search where its part of two sorted
// runs begins, and merges from there (Odeh, Green, Mwassi, Shmueli & Birk 2012). What blocks sorted is merged by all threads:
// each element is searched for in the other runs.
#pragma once

#include "../rows.h"
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
    const Item *left = items + low, *right = left + width;
    int begin = diagonal > width ? diagonal - width : 0, end = diagonal < width ? diagonal : width;
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
      const bool goes_left = j >= width || (i < width && is_before(left[i], right[j]));
      own[k] = goes_left ? left[i] : right[j];
      goes_left ? ++i : ++j;
    }
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

// Sorted runs of `merged` elements as runs of `run`, or as a row of which `kept` are asked for. Runs of equal elements keep
// their order.
template <class T, bool Descending, class Place, class Index>
AOTI_INLINE void merge_runs(const Run &context, const T *in, const Place *places, T *out, Index *index, i64 outer, i64 length,
                            i64 inner, i64 run, i64 kept, i64 merged) {
  // Searches that wait for memory together.
  constexpr int together = 4;
  i64 largest = 1;
  while (largest * 2 <= merged) largest *= 2;
  const i64 results = run < length ? length : kept;
  parallel(context, outer * inner * length, 1, [&](i64 unit, i64, i64) {
    const i64 column = unit % inner, at = unit / inner % length, row = unit / inner / length;
    const T *elements = in + row * length * inner + column;
    const i64 first = at / run * run, end = min_i64(first + run, length), own = (at - first) / merged;
    const auto key = order_key<Descending>(elements + at * inner);
    i64 rank = at - first - own * merged;
    for (i64 number = 0; first + number * merged < end; number += together) {
      i64 found[together], count[together];
      AOTI_UNROLL_TIMES(4)
      for (int k = 0; k < together; ++k) {
        const i64 start = first + (number + k) * merged;
        found[k] = 0, count[k] = number + k == own || start >= end ? 0 : min_i64(merged, end - start);
      }
      for (i64 step = largest; step > 0; step /= 2) {
        AOTI_UNROLL_TIMES(4)
        for (int k = 0; k < together; ++k) {
          const i64 next = found[k] + step;
          if (next > count[k]) continue;
          const auto other = order_key<Descending>(elements + (first + (number + k) * merged + next - 1) * inner);
          if (number + k < own ? other <= key : other < key) found[k] = next;
        }
      }
      AOTI_UNROLL_TIMES(4)
      for (int k = 0; k < together; ++k) rank += found[k];
    }
    if (first + rank >= results) return;
    const i64 to = (row * results + first + rank) * inner + column;
    out[to] = elements[at * inner];
    index[to] = Index(places[(row * length + at) * inner + column]);
  });
}

// Rows of any length, a block for each: positions are merged run by run, every thread finding by binary search where its
// elements belong in the sibling run.
template <int Threads, class T, bool Descending>
AOTI_INLINE void sort_long_rows(const T *in, T *out, i64 *index, char *scratch, i64 outer, i64 length, i64 inner,
                                i64 kept) {
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
