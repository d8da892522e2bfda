// Tiles of queries, keys and values of attention on matrix units, on their way from device memory to shared memory: copied by the
// threads that compute, each its part, or brought to them by others (roles.h). Knows nothing of what is computed.
#pragma once

#include "attention.h"
#include "roles.h"

AOTI_NAMESPACE_BEGIN

namespace detail {
#if AOTI_UNITS == AOTI_MMA

template <int Size, int To> constexpr int kRounded = (Size + To - 1) / To * To;

// A tile of Count rows in shared memory: blocks of 64 columns, in which a row is 128 bytes, swizzled.
template <int Count> AOTI_INLINE constexpr u32 tile_offset(int row, int column) {
  return u32(column / 64 * (Count * 128) + row * 128 + (column % 64 / 8 ^ row % 8) * 16);
}
template <int Count, int Width> constexpr int kTileBytes = Count * kRounded<Width, 64> * 2;

// Tiles of Count rows of a table of `rows` rows, zero outside, up to a multiple of 16 columns: a thread copies every kApart-th of its
// 16 bytes of columns. Addresses of kAtOnce copies are kept in registers.
template <int Count, int Width, int Threads, class T, class I, int kAtOnce = 32> struct RowCopies {
  static constexpr int kChunks = kRounded<Width, 16> / 8, kAcross = kChunks <= 8 ? 8 : kChunks <= 16 ? 16 : 32;
  static constexpr int kApart = Threads / kAcross, kOwn = Count / kApart;
  static_assert(kOwn * kApart == Count && kChunks <= kAcross);
  const Table<T, I> &table;
  const char *from;
  i64 apart;
  I rows;
  int thread, row, column;
  bool whole;

  // By the threads from `first` on.
  AOTI_INLINE RowCopies(const Table<T, I> &x, I end, int first = 0)
      : table(x), rows(end), thread(thread_index() - first), whole(Width % 8 == 0 && x.has_whole_rows()) {
    row = thread / kAcross, column = thread % kAcross * 8;
    from = (const char *)&x.at(I(row), I(column));
    apart = i64(x.row_stride) * (kApart * 2);
  }
  // Nobody waits for what is copied.
  AOTI_INLINE void copy(char *tile, I first) const {
    if (!whole)
      copy_elements(tile, first);
    else if (first + Count <= rows && Width % 16 == 0)
      copy_pieces<true>(tile, first);
    else
      copy_pieces<false>(tile, first);
  }
  template <bool Inside> AOTI_INLINE void copy_pieces(char *tile, I first) const {
    if (kChunks < kAcross && column >= kChunks * 8) return;
    const u32 to = shared_address(tile);
    const char *own = from + i64(first) * table.row_stride * 2;
    AOTI_UNROLL_TIMES(kAtOnce)
    for (int i = 0; i < kOwn; ++i, own += apart) {
      const u32 at = to + tile_offset<Count>(row + i * kApart, column);
      if constexpr (Inside) {
        copy_ahead(at, own);
      } else {
        const bool has = column < Width && first + row + i * kApart < rows;
        copy_ahead(at, has ? own : (const char *)table.pointer, has ? 16 : 0);
      }
    }
  }
  AOTI_INLINE void copy_elements(char *tile, I first) const {
    constexpr int padded = kChunks * 8;
    const bool by_row = table.row_stride == 1 && table.column_stride != 1;
    // Several are read before the first is stored.
    AOTI_UNROLL_TIMES(4)
    for (int i = thread; i < Count * padded; i += Threads) {
      const int r = by_row ? i % Count : i / padded, c = by_row ? i / Count : i % padded;
      const u16 bits = first + r < rows && c < Width ? table.at(I(first + r), I(c)).bits : u16(0);
      *(u16 *)(tile + tile_offset<Count>(r, c) + c % 8 * 2) = bits;
    }
  }
};

// A tile of queries in shared memory, and behind it two of keys and two of values.
template <int Rows, int Keys, int Width, int Columns> struct HalvesTiles {
  static constexpr int kKeys = kTileBytes<Keys, Width>, kValues = kTileBytes<Keys, Columns>;
  char *queries;
  AOTI_INLINE char *keys(u32 use) const { return queries + kTileBytes<Rows, Width> + use % 2 * kKeys; }
  AOTI_INLINE char *values(u32 use) const { return queries + kTileBytes<Rows, Width> + 2 * kKeys + use % 2 * kValues; }
};

// Tiles that all threads copy while they compute, each its part.
template <int Rows, int Keys, int Width, int Columns, class T, class I> struct OwnTiles {
  static constexpr int kThreads = Rows * 2;
  HalvesTiles<Rows, Keys, Width, Columns> at;
  RowCopies<Rows, Width, kThreads, T, I> query_copies;
  RowCopies<Keys, Width, kThreads, T, I> key_copies;
  RowCopies<Keys, Columns, kThreads, T, I> value_copies;
  I tiles;

  AOTI_INLINE OwnTiles(char *shared, I m, I n, I count, const Table<T, I> &q, const Table<T, I> &k, const Table<T, I> &v)
      : at{shared}, query_copies(q, m), key_copies(k, n), value_copies(v, n), tiles(count) {}
  AOTI_INLINE void fetch_keys(I tile) const {
    if (tile < tiles) key_copies.copy(at.keys(u32(tile)), I(tile * Keys));
    commit_copies();
  }
  AOTI_INLINE void fetch_values(I tile) const {
    if (tile < tiles) value_copies.copy(at.values(u32(tile)), I(tile * Keys));
    commit_copies();
  }
  template <int Left> AOTI_INLINE void meet() const {
    wait_for_copies<Left>();
#if AOTI_WARPGROUPS
    show_to_units();
#endif
    barrier();
  }
  AOTI_INLINE void start(I row0) const {
    // Nobody needs the tile before of the same block.
    barrier();
    query_copies.copy(at.queries, row0);
    fetch_keys(I(0));
    fetch_values(I(0));
  }
  AOTI_INLINE u32 keys(I tile) const {
    // Behind it, keys of this tile and values of the one before are there, and nobody needs what lay where the next ones come.
    if (tile == 0)
      meet<1>();
    else
      meet<0>();
    return shared_address(at.keys(u32(tile)));
  }
  AOTI_INLINE void scores_begin(I tile) const {
    fetch_keys(I(tile + 1));
    if (tile > 0) fetch_values(tile);
  }
  AOTI_INLINE void keys_end(I) const {}
  AOTI_INLINE u32 values(I tile) const {
    if (tile + 1 == tiles) meet<0>();
    return shared_address(at.values(u32(tile)));
  }
  AOTI_INLINE void sums_begin() const {}
  AOTI_INLINE void values_end(I) const {}
  AOTI_INLINE void end() const { wait_for_copies<0>(); }
};

#if AOTI_WARPGROUPS

// Tiles that other threads copy.
template <int Rows, int Keys, int Width, int Columns, class T, class I> struct BroughtTiles {
  HalvesTiles<Rows, Keys, Width, Columns> at;
  TileRings &rings;
  I tiles;

  AOTI_INLINE BroughtTiles(TileRings &own, char *shared, I count) : at{shared}, rings(own), tiles(count) {}
  AOTI_INLINE u32 use(I tile) const { return rings.used + u32(tile); }
  AOTI_INLINE void start(I) const { rings.own.wait_until_full(rings.own_used); }
  AOTI_INLINE u32 keys(I tile) const {
    rings.left.wait_until_full(use(tile));
    rings.take();
    return shared_address(at.keys(use(tile)));
  }
  AOTI_INLINE void scores_begin(I tile) const {
    if (tile == 0) rings.pass();
  }
  AOTI_INLINE void keys_end(I tile) const { rings.left.give_back(use(tile)); }
  AOTI_INLINE u32 values(I tile) const {
    rings.right.wait_until_full(use(tile));
    return shared_address(at.values(use(tile)));
  }
  AOTI_INLINE void sums_begin() const { rings.pass(); }
  AOTI_INLINE void values_end(I tile) const { rings.right.give_back(use(tile)); }
  AOTI_INLINE void end() const {
    rings.own.give_back(rings.own_used);
    ++rings.own_used, rings.used += u32(tiles);
  }
};

// The part of those threads: keys are brought before the values of the tile before them, as they are used.
template <int Rows, int Keys, int Width, int Columns, class T, class I>
AOTI_INLINE void bring_tiles(TileRings &rings, char *shared, I row0, I m, I n, I tiles, const Table<T, I> &q, const Table<T, I> &k,
                             const Table<T, I> &v) {
  const HalvesTiles<Rows, Keys, Width, Columns> at{shared};
  rings.own.wait_until_free(rings.own_used);
  const RowCopies<Rows, Width, kCopiers, T, I, 4> query_copies(q, m, kComputers);
  query_copies.copy(at.queries, row0);
  rings.own.bring(rings.own_used, query_copies.whole);
  const RowCopies<Keys, Width, kCopiers, T, I, 4> key_copies(k, n, kComputers);
  const RowCopies<Keys, Columns, kCopiers, T, I, 4> value_copies(v, n, kComputers);
  AOTI_UNROLL_TIMES(1)
  for (I tile = 0; tile <= tiles; ++tile) {
    if (tile < tiles) {
      const u32 use = rings.used + u32(tile);
      rings.left.wait_until_free(use);
      key_copies.copy(at.keys(use), I(tile * Keys));
      rings.left.bring(use, key_copies.whole);
    }
    if (tile > 0) {
      const u32 use = rings.used + u32(tile - 1);
      rings.right.wait_until_free(use);
      value_copies.copy(at.values(use), I((tile - 1) * Keys));
      rings.right.bring(use, value_copies.whole);
    }
  }
  ++rings.own_used, rings.used += u32(tiles);
}

#endif

#endif
} // namespace detail

AOTI_NAMESPACE_END
