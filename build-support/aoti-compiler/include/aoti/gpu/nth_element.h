// The element of a rank in each row, a row for each block.
#pragma once

#include "../nth_element.h"
#include "atomics.h"
#include "simt.h"

AOTI_NAMESPACE_BEGIN

// A row for each block: the digits of the key from the highest on, as counting finds them, and of its equals the one that a stable
// sort has there, or one thread partitions. `scratch` holds an order of each row that is partitioned. Counts have 32 bits: longer rows are only
// partitioned.
template <int Threads, class T, bool Partitioned, class Ranks>
AOTI_INLINE void nth_elements(const T *in, Ranks ranks, T *out, i64 *index, char *scratch, i64 outer, i64 length, i64 inner) {
  using U = order_word<T>;
  constexpr int bits = 8, digits = 1 << bits, warps = Threads / kWarp, each = digits / 32;
  AOTI_SHARED u32 counts[digits], chosen[3], equals[warps];
  const int thread = thread_index(), lane = thread % kWarp, warp = thread / kWarp;
  AOTI_UNROLL_TIMES(1)
  for (i64 unit = block_index(); unit < outer * inner; unit += block_count()) {
    const T *const row = in + unit / inner * length * inner + unit % inner;
    U found = 0;
    const i64 rank = rank_in(ranks, unit, length);
    u32 left = u32(rank), within = u32(length);
    const bool is_counted = !Partitioned || length <= i64(~u32(0));
    for (int shift = is_counted ? int(sizeof(U)) * 8 - bits : -1; shift >= 0; shift -= bits) {
      for (int i = thread; i < digits; i += Threads) counts[i] = 0;
      barrier();
      for (i64 first = 0; first < length; first += Threads) {
        const i64 i = first + thread;
        U key = 0;
        if (i < length) key = order_key<false>(row + i * inner);
        // Digits behind those that are found; shifted in two steps, as there may be none before them.
        const bool is_one = i < length && (key >> shift >> bits) == (found >> shift >> bits);
        const u32 digit = u32(key >> shift) & (digits - 1);
        // Of lanes with the same digit, which many are in the first pass, one counts for all.
        const u64 same = lanes_like<bits + 1>(digit | (is_one ? 0u : u32(digits)));
        if (is_one && (same & ((u64(1) << lane) - 1)) == 0) atomic_add(&counts[digit], u32(count_bits(same)));
      }
      barrier();
      if (thread < 32) {
        u32 own = 0;
        AOTI_UNROLL_TIMES(8)
        for (int k = 0; k < each; ++k) own += counts[thread * each + k];
        u32 before = own;
        for (int distance = 1; distance < 32; distance *= 2) {
          const u32 other = shuffle(before, lane >= distance ? lane - distance : lane);
          if (thread >= distance) before += other;
        }
        before -= own;
        if (before <= left && left - before < own) {
          int k = 0;
          while (left - before >= counts[thread * each + k]) before += counts[thread * each + k++];
          chosen[0] = u32(thread * each + k), chosen[1] = left - before, chosen[2] = counts[thread * each + k];
        }
      }
      barrier();
      found |= U(chosen[0]) << shift, left = chosen[1], within = chosen[2];
      barrier();
    }
    if (Partitioned && (within > 1 || !is_counted)) {
      if (thread == 0) {
        i64 *const order = (i64 *)scratch + unit * length;
        for (i64 i = 0; i < length; ++i) order[i] = i;
        partition_to([&](i64 i) { return order_key<false>(row + i * inner); }, order, length, rank);
        out[unit] = row[order[rank] * inner], index[unit] = order[rank];
      }
      continue;
    }
    // What is left to pass over of the equal ones.
    for (i64 first = 0; first < length; first += Threads) {
      const i64 i = first + thread;
      const bool is_one = i < length && order_key<false>(row + i * inner) == found;
      u32 before = 0;
      if (within > 1) {
        const u64 ones = ballot(is_one);
        before = u32(count_bits(ones & ((u64(1) << lane) - 1)));
        if (lane == 0) equals[warp] = u32(count_bits(ones));
        barrier();
        u32 all = 0;
        for (int w = 0; w < warps; ++w) {
          if (w < warp) before += equals[w];
          all += equals[w];
        }
        barrier();
        if (is_one && before == left) out[unit] = row[i * inner], index[unit] = i;
        if (all > left) break;
        left -= all;
      } else if (is_one) {
        out[unit] = row[i * inner], index[unit] = i;
      }
    }
  }
}

AOTI_NAMESPACE_END
