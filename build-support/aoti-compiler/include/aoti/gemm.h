// Matrix products C[M,N] = A[M,K] * B[K,N] of floating-point numbers, or of words of bytes, with sums of type S (`TileSum`): packed weights
// (`gemm_packed`) and run-time matrices (`gemm_general`). Results leave only through the caller's epilogue, so nothing
// here knows of C, biases or activations.
//
// Each output is a sum of chains of kChain fused multiply-adds over k = 0, 1, .. K-1. All block shapes keep that order,
// so results do not depend on M, on how rows and panels are split over threads, nor (where the level has FMA) on the CPU
// level.
//
// Packed B is [ceil(N / kPanelOf<S>)][K][kPanelOf<S>], columns past N zero, 64-byte aligned; `runplan/pack.rs` writes it. Its
// elements are of type S, or of a narrower type W (a half type, or i8): those are fewer bytes, and widened where they are read.
// Register blocking and operand order follow Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication".
#pragma once

#include "bytes.h"
#include "matrix.h"
#include "memory.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// Panels that a B group holds: what the one-row kernel reads at once.
constexpr int kGroup = 4;
#if AOTI_AVX512
constexpr int kMainRows = 14;
#elif AOTI_AVX2 || AOTI_AARCH64
constexpr int kMainRows = 6;
#else
constexpr int kMainRows = 4;
#endif
// Numbers of the largest tile.
template <class S> constexpr int kTileOf = (kMainRows > kGroup ? kMainRows : kGroup) * kPanelOf<S>;
// Numbers of a cache line, and of a page: rows that are a page apart share a cache set.
template <class S> constexpr int kLineOf = 64 / int(sizeof(S));
template <class S> constexpr int kPageOf = 4096 / int(sizeof(S));

// Bytes of A that stay in L2 while the panels of B go past, and rows of A that are worth packing panels of B for.
constexpr i64 kBlockBytes = 393216;
constexpr i64 kGeneralRows = 140;
// Rows of two panels whose sums are kept from chain to chain, or half as many of four.
constexpr i64 kSumRows = 128;

// Rows of A per cache block, of which one chain is read at a time.
template <class S> AOTI_INLINE i64 gemm_block_rows(i64 k) {
  return max_i64(kBlockBytes / int(sizeof(S)) / min_i64(max_i64(k, 1), kChain) / kMainRows, 1) * kMainRows;
}
// The same for `rows` rows, so that blocks are about equal.
template <class S> AOTI_INLINE i64 gemm_even_rows(i64 rows, i64 k) {
  return ceil_div(rows, max_i64(ceil_div(rows, gemm_block_rows<S>(k)), 1));
}
// The same where panels of B are packed for each block anew: rows that pay for that, though they leave L2.
template <class S> AOTI_INLINE i64 gemm_general_rows(i64 k) {
  return max_i64(gemm_block_rows<S>(k), kGeneralRows / kMainRows * kMainRows);
}
// Words of a row that is split: halves of kSplitWords words at a time, those at even places before those at odd ones. So the halves
// of the words from a multiple of that on begin at twice their place, in all chains. Never a multiple of a page, as below.
AOTI_INLINE i64 gemm_split_stride(i64 k) { return 2 * round_up(k, kSplitWords) + kLineOf<i32>; }
static_assert(kChain % kSplitWords == 0, "chains begin where halves do");
// Row stride of copied A: never a multiple of a page, so that the rows of a block fall into different cache sets.
template <class S> AOTI_INLINE i64 gemm_copy_stride(i64 k) { return round_up(k, kLineOf<S>) + kLineOf<S>; }
template <class S> AOTI_INLINE i64 gemm_copy_bytes(i64 rows, i64 k) {
  return round_up(rows * gemm_copy_stride<S>(k) * int(sizeof(S)), 64);
}

// A vector of a panel, widened to the type of sums.
template <class S, class W> AOTI_INLINE TileVectorOf<S> load_panel_vector(const W *p) {
  if constexpr (is_same<S, W>)
    return load_tile_vector(p);
  else if constexpr (is_same<W, i8>)
    return (TileVectorOf<S>)convert<S>(load_raw(Full<kLanesOf<S>>{}, p)).v;
  else
    return Element<W>::decode(load_raw(Full<kLanesOf<S>>{}, (const typename Element<W>::Raw *)p)).v;
}

// One chain for Rows rows and, of each of Panels panels, Vectors vectors, into tile[Rows][Panels * kPanelOf<S>].
template <int Rows, int Panels, int Vectors, class S, class W>
AOTI_NOINLINE AOTI_CONTRACT void gemm_kernel(i64 k_count, const S *a, i64 a_row, i64 a_k, const W *b, i64 b_k,
                                             i64 b_panel, S *tile) {
  AOTI_CONTRACT_BODY
  using Vector = TileVectorOf<S>;
  constexpr int lanes = kLanesOf<S>;
  Vector sum[Rows][Panels * Vectors];
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < Panels * Vectors; ++v) sum[r][v] =
      Vector{};
  for (i64 k = 0; k < k_count; ++k) {
    Vector row[Panels * Vectors];
    AOTI_UNROLL for (int p = 0; p < Panels; ++p) AOTI_UNROLL for (int v = 0; v < Vectors; ++v)
        row[p * Vectors + v] = load_panel_vector<S>(b + p * b_panel + v * lanes);
    if constexpr (Rows > 2)
      AOTI_UNROLL for (int p = 0; p < Panels; ++p) AOTI_UNROLL for (int v = 0; v < Vectors; ++v)
          // Each line once.
          if (v * lanes * int(sizeof(W)) % 64 == 0) ask_for(b + kRowsAhead * b_k + p * b_panel + v * lanes);
    AOTI_UNROLL for (int r = 0; r < Rows; ++r) {
      S x = a[r * a_row];
      AOTI_UNROLL for (int v = 0; v < Panels * Vectors; ++v) sum[r][v] += row[v] * x;
    }
    a += a_k;
    b += b_k;
  }
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int p = 0; p < Panels; ++p)
      AOTI_UNROLL for (int v = 0; v < Vectors; ++v)
          store_tile_vector(tile + (r * Panels + p) * kPanelOf<S> + v * lanes, sum[r][p * Vectors + v]);
}

// Columns of a panel that are computed where a product has at most Columns: a power of two of what epilogues take at once.
template <class S> constexpr int width_of(i64 columns) {
  int width = kLanes;
  while (width < columns && width < kPanelOf<S>) width *= 2;
  return width < kPanelOf<S> ? width : kPanelOf<S>;
}

// Of words: sums that are done.
template <int Rows, int Panels, int Vectors, class Sums> AOTI_INLINE void store_word_sums(const Sums &sums, i32 *tile) {
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int p = 0; p < Panels; ++p)
      AOTI_UNROLL for (int v = 0; v < Vectors; ++v)
          store_tile_vector(tile + (r * Panels + p) * kPanel + v * kLanesOf<i32>, sums.total(r, p * Vectors + v));
}

// The same as `gemm_kernel` for words, by products of halves: rows are split (`split_rows`).
template <int Rows, int Panels, int Vectors>
AOTI_NOINLINE void word_kernel(i64 k_count, const i32 *a, i64 a_row, const i32 *b, i64 b_k, i64 b_panel, i32 *tile) {
  HalfSums<Rows, Panels * Vectors> sums;
  for (i64 k = 0; k < k_count; k += kSplitWords) {
    const i32 *even = a + 2 * k;
    sums.add(min_i64(k_count - k, kSplitWords), even, even + kSplitWords, a_row, [=](i64 i, int v) AOTI_LAMBDA {
      return b + (k + i) * b_k + v / Vectors * b_panel + v % Vectors * kLanesOf<i32>;
    });
  }
  store_word_sums<Rows, Panels, Vectors>(sums, tile);
}

// By the instruction for them.
template <int Rows, int Panels, int Vectors>
AOTI_NOINLINE AOTI_USES_WORDS void fast_word_kernel(i64 k_count, const i32 *a, i64 a_row, i64 a_k, const i32 *b, i64 b_k,
                                                    i64 b_panel, i32 *tile) {
#if AOTI_WORD_PRODUCTS
  constexpr int lanes = kLanesOf<i32>;
  WordSums<Rows, Panels * Vectors> sums;
  for (i64 k = 0; k < k_count; ++k) {
    WordVector row[Panels * Vectors];
    AOTI_UNROLL for (int p = 0; p < Panels; ++p) AOTI_UNROLL for (int v = 0; v < Vectors; ++v) {
      row[p * Vectors + v] = load_tile_vector(b + p * b_panel + v * lanes);
      if constexpr (Rows > 2)
        if (v * lanes * 4 % 64 == 0) ask_for(b + kRowsAhead * b_k + p * b_panel + v * lanes);
    }
    sums.add(a, a_row, row);
    a += a_k;
    b += b_k;
  }
  store_word_sums<Rows, Panels, Vectors>(sums, tile);
#else
  // Never called: rows are split where there is no such instruction.
  (void)k_count, (void)a, (void)a_row, (void)a_k, (void)b, (void)b_k, (void)b_panel, (void)tile;
#endif
}

// Rows that are worth widening a panel of narrow elements for once, where each tile of rows would do it again, and the most rows of
// tiles of which there are too few in any case.
constexpr i64 kWidenRows = 4 * kMainRows, kFewRows = 4;
// Numbers of a part of a panel that one chain reads.
template <class S> AOTI_INLINE i64 gemm_wide_panel(i64 k) { return min_i64(k, kChain) * kPanelOf<S>; }
template <class S, class W> AOTI_NOINLINE void widen_panel(const W *from, i64 numbers, S *to) {
  for (i64 i = 0; i < numbers; i += kLanesOf<S>) store_tile_vector(to + i, load_panel_vector<S>(from + i));
}

// A kernel applied to every part of a panel's first Width columns, when one call covers Vectors of their vectors only.
template <int Rows, int Panels, int Vectors, int Width, class S, class W>
AOTI_INLINE void gemm_panel(i64 k, const S *a, i64 a_row, i64 a_k, const W *b, i64 b_k, i64 b_panel, S *tile) {
  constexpr int all = Width / kLanesOf<S>, vectors = Vectors < all ? Vectors : all;
  static_assert(all % vectors == 0, "parts cover the columns");
  for (int c = 0; c < Width; c += vectors * kLanesOf<S>)
    if constexpr (!is_same<S, i32>)
      gemm_kernel<Rows, Panels, vectors>(k, a, a_row, a_k, b + c, b_k, b_panel, tile + c);
    else if (has_word_products())
      fast_word_kernel<Rows, Panels, vectors>(k, a, a_row, a_k, b + c, b_k, b_panel, tile + c);
    else
      word_kernel<Rows, Panels, vectors>(k, a, a_row, b + c, b_k, b_panel, tile + c);
}

struct GemmBlock {
  int rows, panels;
};

// Rows of the register tiles that there are, largest first, and as how many one counts at least: sums of fewer wait for each
// other.
#if AOTI_AVX512
constexpr int kTileRows[] = {14, 13, 8, 4, 2, 1};
constexpr int kTileLeast = 6;
#elif AOTI_AVX2 || AOTI_AARCH64
constexpr int kTileRows[] = {6, 5, 4, 2, 1};
constexpr int kTileLeast = 4;
#else
constexpr int kTileRows[] = {4, 2, 1};
constexpr int kTileLeast = 2;
#endif

// The largest tile of at most so many rows.
constexpr int tile_of(i64 most) {
  for (int rows : kTileRows)
    if (rows <= most) return rows;
  return 1;
}

// The tile to begin with for each number of rows, so that all tiles together cost least: 49 rows are 14, 14, 13 and 8. Of
// more rows than these, the largest tile comes first.
constexpr int kPlannedRows = 4 * kMainRows;
template <int Largest> struct TilePlan {
  int first[kPlannedRows + 1] = {};
  constexpr TilePlan() {
    int cost[kPlannedRows + 1] = {};
    for (int rows = 1; rows <= kPlannedRows; ++rows)
      for (int tile : kTileRows) {
        if (tile > Largest || tile > rows) continue;
        // Each tile costs a part of a row more.
        const int whole = cost[rows - tile] + 4 * (tile < kTileLeast ? kTileLeast : tile) + 1;
        if (first[rows] == 0 || whole < cost[rows]) cost[rows] = whole, first[rows] = tile;
      }
  }
};
template <int Largest> constexpr TilePlan<Largest> kTilePlan{};

// The next block of what is left, in tiles of at most Most rows. Few rows take several panels, for as many independent chains
// as FMA latency asks.
template <i64 Most> AOTI_NOINLINE GemmBlock gemm_block(i64 rows) {
  constexpr int largest = tile_of(Most);
  const int tile = rows > kPlannedRows ? largest : kTilePlan<largest>.first[rows];
#if AOTI_AVX512
  return {tile, tile > 2 ? 1 : 4 / tile};
#elif AOTI_AVX2
  return {tile, tile > 1 ? 1 : 2};
#else
  return {tile, 1};
#endif
}

// One chain of a block of at most Largest rows. Only whole panels are taken together.
template <int Largest, int Width, class S, class W>
AOTI_NOINLINE void gemm_chain(GemmBlock block, i64 k, const S *a, i64 a_row, i64 a_k, const W *b, i64 b_k, i64 b_panel,
                              S *tile) {
#define AOTI_GEMM(ROWS, PANELS, VECTORS)                                  \
  if constexpr (ROWS <= Largest && (PANELS == 1 || Width == kPanelOf<S>)) \
    if (block.rows == ROWS && block.panels == PANELS)                     \
      return gemm_panel<ROWS, PANELS, VECTORS, Width>(k, a, a_row, a_k, b, b_k, b_panel, tile)
#if AOTI_AVX512
  AOTI_GEMM(14, 1, 2);
  AOTI_GEMM(13, 1, 2);
  AOTI_GEMM(8, 1, 2);
  AOTI_GEMM(4, 1, 2);
  AOTI_GEMM(2, 2, 2);
  AOTI_GEMM(2, 1, 2);
  AOTI_GEMM(1, 4, 2);
  AOTI_GEMM(1, 1, 2);
#elif AOTI_AVX2
  AOTI_GEMM(6, 1, 2);
  AOTI_GEMM(5, 1, 2);
  AOTI_GEMM(4, 1, 2);
  AOTI_GEMM(2, 1, 4);
  AOTI_GEMM(1, 2, 4);
  AOTI_GEMM(1, 1, 4);
#elif AOTI_AARCH64
  AOTI_GEMM(6, 1, 4);
  AOTI_GEMM(5, 1, 4);
  AOTI_GEMM(4, 1, 4);
  AOTI_GEMM(2, 1, 8);
  AOTI_GEMM(1, 1, 8);
#else
  AOTI_GEMM(4, 1, 2);
  AOTI_GEMM(2, 1, 4);
  AOTI_GEMM(1, 1, 8);
#endif
#undef AOTI_GEMM
}

// Where the panels of a group are: packed before, read in place, or packed now.
template <class W> struct GemmPanels {
  const W *data;
  i64 k_stride, panel_stride;
};
template <int width, class T, class S>
AOTI_INLINE GemmPanels<S> pack_group(Matrix<T> b, i64 first, i64 last, i64 n, i64 k, i64 rows, S *scratch) {
  if constexpr (is_same<T, S>)
    // For a few rows packing costs more than it saves; the last, partial panel must not be read past its end.
    if (b.col_stride == 1 && rows <= 8 && last * width <= n) return {b.data + first * width, b.row_stride, width};
  for (i64 p = first; p < last; ++p) {
    Matrix<T> columns{b.data + p * width * b.col_stride, b.row_stride, b.col_stride};
    pack_panel<width>(columns, k, min_i64(n - p * width, width), scratch + (p - first) * k * width);
  }
  return {scratch, width, k * width};
}

// Rows of words without the instruction for them: split once for all columns.
AOTI_NOINLINE Matrix<i32> split_rows(Matrix<i32> a, i64 rows, i64 k, i32 *scratch) {
  const i64 stride = gemm_split_stride(k);
  for (i64 r = 0; r < rows; ++r)
    for (i64 i = 0; i < k; i += kSplitWords) {
      i32 *even = scratch + r * stride + 2 * i;
      split_words(a.data + r * a.row_stride + i * a.col_stride, 0, a.col_stride, 1, min_i64(k - i, kSplitWords), even,
                  even + kSplitWords);
    }
  return {scratch, stride, 2};
}

// Rows that the kernels read well: A itself, or a copy where it is of another type, strided along k, or of a row
// stride that maps all rows of a block to one cache set.
template <class T, class S> AOTI_INLINE Matrix<S> gemm_rows(Matrix<T> a, i64 rows, i64 k, S *scratch) {
  if constexpr (is_same<T, i32>)
    if (!has_word_products()) return split_rows(a, rows, k, scratch);
  if constexpr (is_same<T, S>) {
    bool one_set = rows >= 8 && a.row_stride % kPageOf<S> == 0;
    if (scratch == nullptr || k == 1 || (a.col_stride == 1 && !one_set)) return a;
  }
  copy_rows(a, rows, k, scratch, gemm_copy_stride<S>(k));
  return {scratch, gemm_copy_stride<S>(k), 1};
}

// Calls tile(block, row, panel) for register tiles that cover `rows` rows and panels [first, last); blocks have at most Most rows.
template <i64 Most, class Tile> AOTI_INLINE void for_each_tile(i64 rows, i64 first, i64 last, const Tile &tile) {
  for (i64 done = 0; done < rows;) {
    GemmBlock block = gemm_block<Most>(rows - done);
    i64 end = done;
    while (end < rows && gemm_block<Most>(rows - end).rows == block.rows) end += block.rows;
    for (i64 p = first; p < last; p += block.panels) {
      if (last - p < block.panels) block.panels = 1;
      for (i64 r = done; r < end; r += block.rows) tile(block, r, p);
    }
    done = end;
  }
}

// Columns [first, last) panels of rows [m0, m0 + rows), whose A rows start at a.data; blocks have at most Most rows. Finished
// tiles go to sink(row, rows, column, width, sums, pitch). Where panels are narrow, there is one. Of a sum of several chains,
// all tiles of some rows and panels are taken through one before the next, so that its part of A and B stays near. Panels of
// narrow elements are widened in `wide`, part by part, if there is such memory.
template <i64 Most, int Width, class S, class W, class Sink>
AOTI_INLINE void gemm_group(i64 m0, i64 rows, i64 first, i64 last, i64 n, i64 k, Matrix<S> a, GemmPanels<W> b,
                            Sink &sink, S *wide = nullptr) {
  constexpr int panel = kPanelOf<S>, largest = tile_of(Most);
  alignas(64) S sums[kSumRows * 2 * panel], chain[kTileOf<S>];
  const bool is_one = k <= kChain;
  const i64 most_rows = is_one ? rows : kSumRows;
  const i64 together = wide ? 1 : is_one || rows <= kSumRows / 2 ? kGroup : 2;
  for (i64 r0 = 0; r0 < rows; r0 += most_rows)
    for (i64 p0 = first; p0 < last; p0 += together) {
      i64 done = 0;
      do {
        const i64 count = min_i64(k - done, kChain);
        const bool is_first = done == 0, is_last = done + count == k;
        S *slot = sums;
        const auto through = [&](auto panels) AOTI_LAMBDA {
          for_each_tile<Most>(min_i64(rows - r0, most_rows), p0, min_i64(last, p0 + together), [&](GemmBlock block, i64 r, i64 p)
                                  AOTI_LAMBDA {
            const i64 pitch = block.panels * panel;
            gemm_chain<largest, Width>(block, count, a.data + (r0 + r) * a.row_stride + done * a.col_stride, a.row_stride,
                                       a.col_stride, panels.data + (p - p0) * panels.panel_stride, panels.k_stride,
                                       panels.panel_stride, is_first ? slot : chain);
            if (!is_first) add_chain(slot, chain, block.rows, block.panels * Width, pitch);
            if (is_last) sink(m0 + r0 + r, block.rows, p * panel, min_i64(n - p * panel, pitch), slot, pitch);
            if (!is_one) slot += block.rows * pitch;
          });
        };
        const W *part = b.data + (p0 - first) * b.panel_stride + done * b.k_stride;
        if constexpr (!is_same<S, W>) {
          if (wide) widen_panel(part, count * panel, wide), through(GemmPanels<S>{wide, panel, 0});
        }
        if (!wide) through(GemmPanels<W>{part, b.k_stride, b.panel_stride});
        done += count;
      } while (done < k);
    }
}

// Rows [m0, m1) and panels [p0, p1) of A * B for packed B. Of each block of rows, done(first, last) is told at its end.
template <i64 Most, class T, class W, class Sink, class Done>
AOTI_INLINE void packed_tiles(i64 m0, i64 m1, i64 p0, i64 p1, i64 n, i64 k, Matrix<T> a, const W *packed, void *scratch,
                              Sink &sink, Done &done, TileSum<T> *wide = nullptr) {
  using S = TileSum<T>;
  const i64 block = gemm_even_rows<S>(m1 - m0, k);
  for (i64 m = m0; m < m1; m += block) {
    i64 rows = min_i64(m1 - m, block);
    Matrix<S> block_a =
        gemm_rows(Matrix<T>{a.data + m * a.row_stride, a.row_stride, a.col_stride}, rows, k, (S *)scratch);
    for (i64 p = p0; p < p1; p += kGroup) {
      GemmPanels<W> b{packed + p * k * kPanelOf<S>, kPanelOf<S>, k * kPanelOf<S>};
      gemm_group<Most, kPanelOf<S>>(m, rows, p, min_i64(p1, p + kGroup), n, k, block_a, b, sink,
                                    rows >= kWidenRows ? wide : nullptr);
    }
    done(m, m + rows);
  }
}

// The same for a B that is packed now, which has at most Columns columns.
template <i64 Most, i64 Columns, class TA, class TB, class Sink, class Done>
AOTI_INLINE void general_tiles(i64 m0, i64 m1, i64 p0, i64 p1, i64 n, i64 k, Matrix<TA> a, Matrix<TB> b, void *scratch,
                               Sink &sink, Done &done) {
  using S = TileSum<TA>;
  constexpr int width = width_of<S>(Columns);
  i64 block = gemm_general_rows<S>(k);
  S *b_scratch = (S *)scratch;
  S *a_scratch = b_scratch + min_i64(ceil_div(n, kPanelOf<S>), kGroup) * kPanelOf<S> * k;
  for (i64 m = m0; m < m1; m += block) {
    i64 rows = min_i64(m1 - m, block);
    Matrix<S> block_a =
        gemm_rows(Matrix<TA>{a.data + m * a.row_stride, a.row_stride, a.col_stride}, rows, k, a_scratch);
    for (i64 p = p0; p < p1; p += kGroup) {
      i64 last = min_i64(p1, p + kGroup);
      GemmPanels<S> panels = pack_group<width>(b, p, last, n, k, rows, b_scratch);
      gemm_group<Most, width>(m, rows, p, last, n, k, block_a, panels, sink);
    }
    done(m, m + rows);
  }
}

// Hands the sums of a tile to an epilogue, vector by vector.
template <class S, class Epilogue>
AOTI_INLINE void hand_over(i64 row, i64 rows, i64 column, i64 width, const S *sums, i64 pitch, Epilogue epilogue) {
  for (i64 i = 0; i < rows; ++i)
    for_each_vector(sums + i * pitch, width, [&](i64 c, auto lanes, auto values)
                        __attribute__((always_inline)) { epilogue(row + i, column + c, lanes, values); });
}

} // namespace detail

// Nothing happens to whole rows.
struct NoRowEpilogue {
  AOTI_INLINE void operator()(i64, i64) const {}
};

// Rows of the largest tile, where nobody says otherwise.
constexpr i64 kGemmMost = detail::kMainRows;
// Columns that a product has at most, where nobody says.
constexpr i64 kGemmColumns = i64(1) << 40;
// Rows that a unit of work has at least where a product is split by rows: whole tiles.
template <i64 Most> constexpr i64 kGemmRowsOf = Most < 12 ? 12 / Most * Most : 12;
constexpr i64 kGemmRows = kGemmRowsOf<kGemmMost>;

// Number of panels of N columns: the range that callers split.
template <class S = f32> AOTI_INLINE i64 gemm_panels(i64 n) { return ceil_div(n, kPanelOf<S>); }

// Scratch of one `gemm_packed` call over at most `m` rows, with panels of elements W. A call without scratch (null) is correct for A
// of type S but words, and as fast unless A is strided along k, its rows are whole pages apart, or many rows read elements that are
// narrower than S.
template <class S = f32, class W = S> AOTI_INLINE i64 gemm_packed_scratch_bytes(i64 m, i64 k) {
  if constexpr (is_same<S, i32>)
    return round_up(min_i64(m, detail::gemm_block_rows<S>(k)) * detail::gemm_split_stride(k) * 4, 64);
  const i64 wide = is_same<S, W> ? 0 : detail::gemm_wide_panel<S>(k) * int(sizeof(S));
  return wide + detail::gemm_copy_bytes<S>(min_i64(m, detail::gemm_block_rows<S>(k)), k);
}
// Scratch of one `gemm_general` call.
template <class S = f32> AOTI_INLINE i64 gemm_general_scratch_bytes(i64 m, i64 n, i64 k) {
  return min_i64(gemm_panels<S>(n), detail::kGroup) * kPanelBytes * k +
         detail::gemm_copy_bytes<S>(min_i64(m, detail::gemm_general_rows<S>(k)), k);
}

// Rows [m0, m1) and panels [p0, p1) of A * B for B packed. A: of the type of the sums or a half type, any strides.
// `scratch`: 64-byte aligned, one per concurrent call. The epilogue is called once per vector of results: epilogue(row,
// column, lanes, sums) with lanes Full<kLanes> or Tail<kLanes>, sums Vec<S, kLanes>; and once all panels of some rows are done,
// row_epilogue(first, last). Tiles have at most Most rows, which changes no result.
template <i64 Most = kGemmMost, class T, class W, class Epilogue, class RowEpilogue = NoRowEpilogue>
AOTI_INLINE void gemm_packed(i64 m0, i64 m1, i64 p0, i64 p1, i64 n, i64 k, Matrix<T> a, const W *packed,
                             void *scratch, Epilogue epilogue, const RowEpilogue &row_epilogue = {}) {
  using S = TileSum<T>;
  const auto sink = [&](i64 row, i64 rows, i64 column, i64 width, const S *sums, i64 pitch) AOTI_LAMBDA {
    detail::hand_over(row, rows, column, width, sums, pitch, epilogue);
  };
  S *wide = nullptr;
  if constexpr (!is_same<S, W> && !is_same<S, i32> && Most > detail::kFewRows)
    if (scratch) wide = (S *)scratch, scratch = wide + detail::gemm_wide_panel<S>(k);
  detail::packed_tiles<Most>(m0, m1, p0, p1, n, k, a, packed, scratch, sink, row_epilogue, wide);
}

// As `gemm_packed`, for a B that is packed now, panel by panel. A and B: f32 and half types, or f64; any strides. Columns is at
// least n: of a product of few columns only their vectors are packed and computed.
template <i64 Most = kGemmMost, i64 Columns = kGemmColumns, class TA, class TB, class Epilogue,
          class RowEpilogue = NoRowEpilogue>
AOTI_INLINE void gemm_general(i64 m0, i64 m1, i64 p0, i64 p1, i64 n, i64 k, Matrix<TA> a, Matrix<TB> b, void *scratch,
                              Epilogue epilogue, const RowEpilogue &row_epilogue = {}) {
  using S = TileSum<TA>;
  const auto sink = [&](i64 row, i64 rows, i64 column, i64 width, const S *sums, i64 pitch) AOTI_LAMBDA {
    detail::hand_over(row, rows, column, width, sums, pitch, epilogue);
  };
  detail::general_tiles<Most, Columns>(m0, m1, p0, p1, n, k, a, b, scratch, sink, row_epilogue);
}

AOTI_NAMESPACE_END
