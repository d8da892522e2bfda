// Scatters whose updates may meet, with a thread for every update and column, and the same result in every run:
// by atomic operations where their order makes no difference; by finding the last update of each destination; and for sums by
// grouping updates by destination (a stable radix sort of the numbers of destinations, or ranks where they are few), so that
// each group is added up in order, in pieces of fixed length.
//
// Kernels are given what a scatter does as functions: key(update), the number of an update's destination; value(lanes, update,
// column, taken), which feeds `taken`; at(out, key, column), the element. A column is a vector of W elements.
#pragma once

#include "../rows.h"
#include "atomics.h"
#include "scan.h"

AOTI_NAMESPACE_BEGIN

// Takes the place of an accumulator, to be fed once.
template <class V> struct Taken {
  V value;
  template <class L, int S> AOTI_INLINE void add(L, Slot<S>, V x) { value = x; }
};
template <class T, int W, class I, class Value> AOTI_INLINE Held<T, W> value_of(const Value &value, I update, I column) {
  Taken<Held<T, W>> taken;
  value(Full<W>{}, update, column, taken);
  return taken.value;
}

// How updates meet. Maxima and minima of floats are the same in any order: of zeros, and of NaNs, it is one that stays.
struct Added {
  template <class V> static AOTI_INLINE V merge(V a, V b) { return a + b; }
  template <int W> static AOTI_INLINE Mask<W> merge(Mask<W> a, Mask<W> b) { return a | b; }
};
struct Multiplied {
  template <class V> static AOTI_INLINE V merge(V a, V b) { return a * b; }
  template <int W> static AOTI_INLINE Mask<W> merge(Mask<W> a, Mask<W> b) { return a & b; }
};
template <bool Max> struct Extremes {
  template <class T, int W> static AOTI_INLINE Vec<T, W> merge(Vec<T, W> a, Vec<T, W> b) {
    const Vec<T, W> extreme = Max ? maximum(a, b) : minimum(a, b);
    if constexpr (is_float<T>) {
      const Vec<T, W> zero = splat<W>(T(0)), turned = splat<W>(T(-0.0));
      const Mask<W> zeros = (a == zero) & (b == zero);
      const Mask<W> negative = Max ? signbit(a) & signbit(b) : signbit(a) | signbit(b);
      const Vec<T, W> number = select(zeros, select(negative, turned, zero), extreme);
      return select(isnan(extreme), splat<W>(T(Limits<T>::nan)), number);
    } else {
      return extreme;
    }
  }
  template <int W> static AOTI_INLINE Mask<W> merge(Mask<W> a, Mask<W> b) { return Max ? a | b : a & b; }
};
using Largest = Extremes<true>;
using Smallest = Extremes<false>;

// --- atomic operations -----------------------------------------------------------------------------------------------

// Merges one value into an element, whose bytes are a word or lie within one.
template <class Op, class T> AOTI_INLINE void merge_atomically(T *p, Held<T, 1> x) {
  constexpr bool adds = is_same<Op, Added>;
  if constexpr (adds && (is_same<T, i32> || is_same<T, u32>)) {
    atomic_add((u32 *)p, u32(lane(x, 0)));
  } else if constexpr (adds && (is_same<T, i64> || is_same<T, u64>)) {
    atomic_add((u64 *)p, u64(lane(x, 0)));
  } else {
    using Word = conditional<sizeof(T) == 8, u64, u32>;
    using Bits = unsigned_of<T>;
    using Element = detail::Element<T>;
    const u64 address = u64(p), offset = address % sizeof(Word);
    const int shift = int(offset) * 8;
    Word *const word = (Word *)(address - offset);
    Word old = atomic_read(word);
    for (;;) {
      Bits bits = Bits(old >> shift);
      detail::raw_of<T> raw;
      __builtin_memcpy(&raw, &bits, sizeof(T));
      raw = lane(Element::encode(Op::merge(Element::decode(splat<1>(raw)), x)), 0);
      __builtin_memcpy(&bits, &raw, sizeof(T));
      const Word merged = (old & ~(Word(Bits(~Bits(0))) << shift)) | Word(bits) << shift;
      if (merged == old || atomic_replace(word, old, merged)) return;
    }
  }
}
template <class Op, class T, class I, class Key, class Value, class At>
AOTI_INLINE void scatter_atomically(T *out, I updates, I columns, const Key &key, const Value &value, const At &at) {
  AOTI_UNROLL_TIMES(1)
  for (I unit = I(block_index()) * block_size() + thread_index(); unit < updates * columns; unit += I(block_count()) * block_size()) {
    const I update = unit / columns, column = unit % columns;
    merge_atomically<Op>(at(out, key(update), column), value_of<T, 1>(value, update, column));
  }
}

// A number in shared memory that is added to in words, as there are instructions for these.
template <class T> struct Bin {
  u32 words[sizeof(T) / 4];
  AOTI_INLINE void add(T x) {
    const u32 low = u32(u64(x));
    const bool carries = low != 0 && atomic_add(&words[0], low) + low < low;
    if constexpr (sizeof(T) == 8) {
      const u32 high = u32(u64(x) >> 32) + carries;
      if (high != 0) atomic_add(&words[1], high);
    }
  }
  AOTI_INLINE T sum() const {
    u64 sum = words[0];
    if constexpr (sizeof(T) == 8) sum |= u64(words[1]) << 32;
    return T(sum);
  }
};
// Sums of integers in few destinations: each block has its own.
template <int Slots, class T, class I, class Key, class Value, class At>
AOTI_INLINE void scatter_in_bins(T *out, I updates, const Key &key, const Value &value, const At &at) {
  alignas(16) AOTI_SHARED char memory[Slots * sizeof(Bin<T>)];
  Bin<T> *const bins = (Bin<T> *)memory;
  for (int i = thread_index(); i < Slots; i += block_size()) bins[i] = Bin<T>{};
  barrier();
  AOTI_UNROLL_TIMES(1)
  for (I update = I(block_index()) * block_size() + thread_index(); update < updates; update += I(block_count()) * block_size())
    bins[key(update)].add(lane(value_of<T, 1>(value, update, I(0)), 0));
  barrier();
  for (int i = thread_index(); i < Slots; i += block_size()) {
    const T sum = bins[i].sum();
    if (sum != 0) merge_atomically<Added>(at(out, i, I(0)), splat<1>(sum));
  }
}

// --- sums of fixed point ---------------------------------------------------------------------------------------------

// Floats are added up as integers of 64 bits, whose unit is a part of the largest number that an element is given, so that
// their order makes no difference: of f32 at least seven bits more are kept than it has. Four launches: elements that are given
// something forget what was there, the exponent of the largest number is found, numbers are added, and each sum is added to its
// element by the first who takes it. Infinities and NaNs are counted instead: positive ones in the lower half of a sum, negative
// ones in the upper half, and NaNs in both.
struct FixedPoint {
  u32 *exponents; // biased, from 1 on; 0 where there is none
  u64 *sums;
  int room; // bits that so many numbers need beside those of one

  AOTI_INLINE FixedPoint(u32 *exponents, u64 *sums, i64 updates) : exponents(exponents), sums(sums), room(1) {
    while (room < 62 && (i64(1) << room) < updates) ++room;
  }
  static constexpr u32 kNoNumber = 255;
  static AOTI_INLINE u32 bits_of(f32 x) {
    u32 bits;
    __builtin_memcpy(&bits, &x, 4);
    return bits;
  }
  static AOTI_INLINE u32 exponent_of(f32 x) {
    const u32 exponent = bits_of(x) >> 23 & 255;
    return exponent > 0 ? exponent : 1;
  }
  // A number of this exponent is less than 2^(exponent - 126).
  AOTI_INLINE f64 scale(u32 exponent, bool back) const {
    const int power = 62 - room + 126 - int(exponent);
    const u64 bits = u64(1023 + (back ? -power : power)) << 52;
    f64 x;
    __builtin_memcpy(&x, &bits, 8);
    return x;
  }
  AOTI_INLINE u64 unit(f32 x, u32 exponent) const {
    if (exponent != kNoNumber) return u64(i64(f64(x) * scale(exponent, false)));
    if (exponent_of(x) != kNoNumber) return 0;
    const u64 positive = 1, negative = u64(1) << 32;
    return x != x ? positive + negative : x > 0 ? positive : negative;
  }
  AOTI_INLINE f64 number(u64 sum, u32 exponent) const {
    if (exponent != kNoNumber) return f64(i64(sum)) * scale(exponent, true);
    const f64 infinity = Limits<f64>::infinity;
    return u32(sum) == 0 ? -infinity : sum >> 32 == 0 ? infinity : Limits<f64>::nan;
  }
};
// body(destination, column) for each destination, or, where there are fewer updates, for that of each update.
template <class I, class Key, class Body>
AOTI_INLINE void each_destination(I updates, I columns, I slots, const Key &key, const Body &body) {
  const bool all = slots <= updates;
  const I units = (all ? slots : updates) * columns;
  AOTI_UNROLL_TIMES(1)
  for (I unit = I(block_index()) * block_size() + thread_index(); unit < units; unit += I(block_count()) * block_size()) {
    const I row = unit / columns;
    body(all ? i64(row) : i64(key(row)), unit % columns);
  }
}
template <class I, class Key> AOTI_INLINE void forget_sums(FixedPoint own, I updates, I columns, I slots, const Key &key) {
  each_destination(updates, columns, slots, key, [&](i64 destination, I column) {
    const i64 place = destination * columns + column;
    own.exponents[place] = 0, own.sums[place] = 0;
  });
}
template <class T, class I, class Key, class Value>
AOTI_INLINE void find_exponents(FixedPoint own, I updates, I columns, const Key &key, const Value &value) {
  AOTI_UNROLL_TIMES(1)
  for (I unit = I(block_index()) * block_size() + thread_index(); unit < updates * columns; unit += I(block_count()) * block_size()) {
    const I update = unit / columns, column = unit % columns;
    const u32 exponent = FixedPoint::exponent_of(lane(value_of<T, 1>(value, update, column), 0));
    u32 *const largest = own.exponents + (i64(key(update)) * columns + column);
    // Most find a larger one.
    if (atomic_read(largest) < exponent) atomic_max(largest, exponent);
  }
}
template <class T, class I, class Key, class Value>
AOTI_INLINE void add_fixed(FixedPoint own, I updates, I columns, const Key &key, const Value &value) {
  AOTI_UNROLL_TIMES(1)
  for (I unit = I(block_index()) * block_size() + thread_index(); unit < updates * columns; unit += I(block_count()) * block_size()) {
    const I update = unit / columns, column = unit % columns;
    const i64 place = i64(key(update)) * columns + column;
    atomic_add(own.sums + place, own.unit(lane(value_of<T, 1>(value, update, column), 0), own.exponents[place]));
  }
}
template <class T, class I, class Key, class At>
AOTI_INLINE void write_sums(T *out, FixedPoint own, I updates, I columns, I slots, const Key &key, const At &at) {
  each_destination(updates, columns, slots, key, [&](i64 destination, I column) {
    const i64 place = destination * columns + column;
    // What was taken is 0; nobody writes what is not.
    if (atomic_read(own.exponents + place) == 0) return;
    const u32 exponent = atomic_exchange(own.exponents + place, u32(0));
    if (exponent == 0) return;
    T *const p = at(out, destination, column);
    const f64 sum = f64(lane(load(Full<1>{}, p), 0)) + own.number(own.sums[place], exponent);
    store(Full<1>{}, p, splat<1>(f32(sum)));
  });
}

// The same by one launch where a block has room for the sums of a column in its shared memory, and each of its threads for a few of the
// updates in registers: what they are is read once, and at once.
constexpr int kOwnUpdates = 4;
template <class T, class I, class Key, class Value, class At>
AOTI_INLINE void add_columns(char *shared, T *out, I updates, I columns, I slots, const Key &key, const Value &value, const At &at) {
  Bin<u64> *const sums = (Bin<u64> *)shared;
  u32 *const exponents = (u32 *)(sums + slots);
  const FixedPoint own(exponents, nullptr, updates);
  AOTI_UNROLL_TIMES(1)
  for (I column = block_index(); column < columns; column += block_count()) {
    for (I slot = thread_index(); slot < slots; slot += block_size()) exponents[slot] = 0, sums[slot] = Bin<u64>{};
    barrier();
    i64 to[kOwnUpdates];
    f32 numbers[kOwnUpdates];
    AOTI_UNROLL_TIMES(4)
    for (int i = 0; i < kOwnUpdates; ++i) {
      const I update = I(i * block_size() + thread_index());
      to[i] = update < updates ? i64(key(update)) : i64(-1);
      numbers[i] = update < updates ? lane(value_of<T, 1>(value, update, column), 0) : 0.0f;
    }
    AOTI_UNROLL_TIMES(4)
    for (int i = 0; i < kOwnUpdates; ++i)
      if (to[i] >= 0) atomic_max(exponents + to[i], FixedPoint::exponent_of(numbers[i]));
    barrier();
    AOTI_UNROLL_TIMES(4)
    for (int i = 0; i < kOwnUpdates; ++i)
      if (to[i] >= 0) sums[to[i]].add(own.unit(numbers[i], exponents[to[i]]));
    barrier();
    AOTI_UNROLL_TIMES(4)
    for (I slot = thread_index(); slot < slots; slot += block_size()) {
      if (exponents[slot] == 0) continue;
      T *const p = at(out, slot, column);
      const f64 sum = f64(lane(load(Full<1>{}, p), 0)) + own.number(sums[slot].sum(), exponents[slot]);
      store(Full<1>{}, p, splat<1>(f32(sum)));
    }
    barrier();
  }
}

// --- the last update of each destination -----------------------------------------------------------------------------

// Three launches: destinations that have updates forget what was there, each finds its last one, and that is written.
template <class Word, class I, class Key> AOTI_INLINE void forget_updates(Word *last, I updates, const Key &key) {
  AOTI_UNROLL_TIMES(1)
  for (I update = I(block_index()) * block_size() + thread_index(); update < updates; update += I(block_count()) * block_size())
    last[key(update)] = 0;
}
template <class Word, class I, class Key> AOTI_INLINE void find_last_updates(Word *last, I updates, const Key &key) {
  AOTI_UNROLL_TIMES(1)
  for (I update = I(block_index()) * block_size() + thread_index(); update < updates; update += I(block_count()) * block_size())
    atomic_max(last + key(update), Word(update) + 1);
}
template <int W, class T, class Word, class I, class Key, class Value, class At>
AOTI_INLINE void write_last_updates(T *out, const Word *last, I updates, I columns, const Key &key, const Value &value,
                                    const At &at) {
  AOTI_UNROLL_TIMES(1)
  for (I unit = I(block_index()) * block_size() + thread_index(); unit < updates * columns; unit += I(block_count()) * block_size()) {
    const I update = unit / columns, column = unit % columns;
    const Word own = key(update);
    if (last[own] == Word(update) + 1) store(Full<W>{}, at(out, own, column), value_of<T, W>(value, update, column));
  }
}

// --- updates by destination ------------------------------------------------------------------------------------------

// Updates that a block ranks at a time, each by so many threads.
constexpr int kRanked = 32, kRankers = 8;

// The place of each update among all, by destination and then in order; blocks have kRanked * kRankers threads, and all keys in
// shared memory.
template <class Word, class I, class Key>
AOTI_INLINE void rank_updates(Word *keys, Word *order, Word *all, I updates, const Key &key) {
  for (I i = thread_index(); i < updates; i += kRanked * kRankers) all[i] = key(i);
  barrier();
  AOTI_UNROLL_TIMES(1)
  for (I first = I(block_index()) * kRanked; first < updates; first += I(block_count()) * kRanked) {
    const I update = first + thread_index() / kRankers;
    const bool is_one = update < updates;
    const Word own = is_one ? all[update] : Word(0);
    u32 rank = 0;
    for (I other = thread_index() % kRankers; other < updates; other += kRankers)
      rank += all[other] < own || (all[other] == own && other < update);
    for (int distance = 1; distance < kRankers; distance *= 2) rank += shuffle_xor(rank, distance);
    if (is_one && thread_index() % kRankers == 0) keys[rank] = own, order[rank] = Word(update);
  }
}

// Threads of the blocks that sort, and updates that each of these has of a tile.
constexpr int kKeySorters = 256, kKeysEach = 8, kSortTile = kKeySorters * kKeysEach;

// A pass is three launches: how often a tile has each digit (counts[digit][tile]), what comes before each tile in its digit, and
// the places of updates. Keys(i) and order(i) are those of the pass before.
// There are 2^Bits digits, as many as there are threads or more.
template <int Bits, class I, class Keys> AOTI_INLINE void count_digits(u32 *counts, I updates, int shift, const Keys &keys) {
  constexpr int digits = 1 << Bits;
  AOTI_SHARED u32 bins[digits];
  const I tiles = (updates + kSortTile - 1) / kSortTile;
  AOTI_UNROLL_TIMES(1)
  for (I tile = block_index(); tile < tiles; tile += block_count()) {
    for (int digit = thread_index(); digit < digits; digit += kKeySorters) bins[digit] = 0;
    barrier();
    AOTI_UNROLL_TIMES(8)
    for (int k = 0; k < kKeysEach; ++k) {
      const I i = tile * kSortTile + k * kKeySorters + thread_index();
      if (i < updates) atomic_add(&bins[keys(i) >> shift & (digits - 1)], u32(1));
    }
    barrier();
    for (int digit = thread_index(); digit < digits; digit += kKeySorters) counts[digit * tiles + tile] = bins[digit];
  }
}
// A block for each digit; totals are the counts of whole digits.
template <class I> AOTI_INLINE void sum_digits(u32 *counts, u32 *totals, I updates) {
  const I tiles = (updates + kSortTile - 1) / kSortTile;
  u32 *const row = counts + block_index() * tiles;
  const auto load = [&](i64 first, u32 *own) {
    AOTI_UNROLL_TIMES(4)
    for (int k = 0; k < kScanned; ++k) own[k] = first + k < tiles ? row[first + k] : 0;
  };
  const auto store = [&](i64 first, const u32 *sums) {
    AOTI_UNROLL_TIMES(4)
    for (int k = 0; k < kScanned; ++k) {
      const i64 tile = first + k;
      if (tile >= tiles) break;
      row[tile] = sums[k] - row[tile];
      if (tile == tiles - 1) totals[block_index()] = sums[k];
    }
  };
  scan_row<kKeySorters, u32>(tiles, load, [](u32 a, u32 b) { return a + b; }, store);
}
template <int Bits, class Word, class I, class Keys, class Order>
AOTI_INLINE void place_updates(Word *keys_out, Word *order_out, const u32 *counts, const u32 *totals, I updates, int shift,
                               const Keys &keys, const Order &order) {
  constexpr int warps = kKeySorters / kWarp, digits = 1 << Bits, each = digits / kKeySorters;
  AOTI_SHARED u32 placed[warps][digits], starts[2][digits];
  const I tiles = (updates + kSortTile - 1) / kSortTile;
  const int thread = thread_index(), lane = thread % kWarp, warp = thread / kWarp;
  // What comes before each digit.
  const auto each_digit = [&](const auto &body) {
    AOTI_UNROLL_TIMES(4)
    for (int k = 0; k < each; ++k) body(k * kKeySorters + thread);
  };
  each_digit([&](int digit) { starts[0][digit] = totals[digit]; });
  barrier();
  int side = 0;
  for (int distance = 1; distance < digits; distance *= 2) {
    each_digit([&](int digit) {
      starts[1 - side][digit] = starts[side][digit] + (digit >= distance ? starts[side][digit - distance] : 0);
    });
    side = 1 - side;
    barrier();
  }
  AOTI_UNROLL_TIMES(1)
  for (I tile = block_index(); tile < tiles; tile += block_count()) {
    each_digit([&](int digit) {
      for (int w = 0; w < warps; ++w) placed[w][digit] = 0;
    });
    barrier();
    // A warp has neighbouring updates of a tile, in order.
    const I first = tile * kSortTile + warp * (kWarp * kKeysEach) + lane;
    Word own[kKeysEach];
    u32 rank[kKeysEach];
    AOTI_UNROLL_TIMES(8)
    for (int k = 0; k < kKeysEach; ++k) own[k] = first + k * kWarp < updates ? keys(first + k * kWarp) : Word(0);
    AOTI_UNROLL_TIMES(8)
    for (int k = 0; k < kKeysEach; ++k) {
      const bool is_one = first + k * kWarp < updates;
      const u32 digit = u32(own[k] >> shift & (digits - 1));
      const u64 same = lanes_like<Bits + 1>(digit | (is_one ? 0u : u32(digits)));
      const u32 before = u32(count_bits(same & ((u64(1) << lane) - 1)));
      rank[k] = placed[warp][digit] + before;
      warp_barrier();
      if (is_one && before == 0) placed[warp][digit] += u32(count_bits(same));
      warp_barrier();
    }
    barrier();
    each_digit([&](int digit) {
      u32 sum = starts[side][digit] - totals[digit] + counts[digit * tiles + tile];
      for (int w = 0; w < warps; ++w) {
        const u32 count = placed[w][digit];
        placed[w][digit] = sum;
        sum += count;
      }
    });
    barrier();
    AOTI_UNROLL_TIMES(8)
    for (int k = 0; k < kKeysEach; ++k) {
      const I i = first + k * kWarp;
      if (i >= updates) continue;
      const u32 place = placed[warp][own[k] >> shift & (digits - 1)] + rank[k];
      keys_out[place] = own[k], order_out[place] = order(i);
    }
    barrier();
  }
}

// Updates that a thread has on their way at a time.
constexpr int kAhead = 4;

// Adds up what is in pieces of Length of the sorted updates. A group that is inside a piece is done; of what reaches beyond, sums
// go to parts[piece][0] (a group that begins before it) and parts[piece][1] (one that ends behind it).
template <int Length, int W, class Op, class T, class Word, class I, class Value, class At>
AOTI_INLINE void merge_pieces(T *out, Held<T, W> *parts, const Word *keys, const Word *order, I updates, I columns,
                              const Value &value, const At &at) {
  using V = Held<T, W>;
  const I pieces = (updates + Length - 1) / Length;
  AOTI_UNROLL_TIMES(1)
  for (I unit = I(block_index()) * block_size() + thread_index(); unit < pieces * columns; unit += I(block_count()) * block_size()) {
    const I piece = unit / columns, column = unit % columns;
    const I first = piece * Length, end = first + Length < updates ? first + Length : updates;
    bool begins_before = first > 0 && keys[first - 1] == keys[first];
    const bool ends_behind = end < updates && keys[end] == keys[end - 1];
    Word current = keys[first];
    V sum{};
    bool is_new = true;
    for (I i = first; i < end; i += kAhead) {
      V values[kAhead];
      Word own[kAhead];
      AOTI_UNROLL_TIMES(4)
      for (int k = 0; k < kAhead; ++k) {
        if (i + k >= end) continue;
        own[k] = keys[i + k];
        values[k] = value_of<T, W>(value, I(order[i + k]), column);
      }
      AOTI_UNROLL_TIMES(4)
      for (int k = 0; k < kAhead; ++k) {
        if (i + k >= end) continue;
        if (own[k] != current) {
          if (begins_before) {
            parts[2 * piece * columns + column] = sum;
          } else {
            T *const p = at(out, current, column);
            store(Full<W>{}, p, Op::merge(load(Full<W>{}, p), sum));
          }
          begins_before = false, is_new = true, current = own[k];
        }
        sum = is_new ? values[k] : Op::merge(sum, values[k]);
        is_new = false;
      }
    }
    if (begins_before || ends_behind) {
      parts[(2 * piece + (begins_before ? 0 : 1)) * columns + column] = sum;
    } else {
      T *const p = at(out, current, column);
      store(Full<W>{}, p, Op::merge(load(Full<W>{}, p), sum));
    }
  }
}
// Adds up the groups of which several pieces have parts: where they begin.
template <int Length, int W, class Op, class T, class Word, class I, class At>
AOTI_INLINE void merge_parts(T *out, const Held<T, W> *parts, const Word *keys, I updates, I columns, const At &at) {
  const I pieces = (updates + Length - 1) / Length;
  AOTI_UNROLL_TIMES(1)
  for (I unit = I(block_index()) * block_size() + thread_index(); unit < pieces * columns; unit += I(block_count()) * block_size()) {
    const I piece = unit / columns, column = unit % columns;
    const I first = piece * Length, next = first + Length;
    if (next >= updates) continue;
    const Word own = keys[next - 1];
    const bool begins_before = first > 0 && keys[first - 1] == own;
    if (keys[next] != own || begins_before) continue;
    // The last update of the group.
    I low = next, high = updates;
    while (high - low > 1) {
      const I middle = low + (high - low) / 2;
      keys[middle] == own ? low = middle : high = middle;
    }
    auto sum = parts[(2 * piece + 1) * columns + column];
    const I last = low / Length;
    AOTI_UNROLL_TIMES(4)
    for (I other = piece + 1; other <= last; ++other) sum = Op::merge(sum, parts[2 * other * columns + column]);
    T *const p = at(out, own, column);
    store(Full<W>{}, p, Op::merge(load(Full<W>{}, p), sum));
  }
}

AOTI_NAMESPACE_END
