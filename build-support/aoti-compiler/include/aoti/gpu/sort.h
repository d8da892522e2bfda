// Stable sorting of rows, a block for each: positions are merged run by run, every thread finding by binary search where
// its elements belong in the sibling run.
#pragma once

#include "../rows.h"
#include "simt.h"

AOTI_NAMESPACE_BEGIN

template <int Threads, class T, bool Descending>
AOTI_INLINE void sort_rows(const T *in, T *out, i64 *index, char *scratch, i64 outer, i64 length, i64 inner) {
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
    for (i64 i = thread_index(); i < length; i += Threads) {
      index[base + i * inner] = from[i];
      out[base + i * inner] = in[base + from[i] * inner];
    }
  }
}

AOTI_NAMESPACE_END
