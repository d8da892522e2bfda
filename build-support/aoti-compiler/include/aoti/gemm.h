// Matrix products C[M,N] = A[M,K] * B[K,N] with f32 sums: packed weights (`gemm_packed`) and run-time matrices
// (`gemm_general`). Results leave only through the caller's epilogue, so nothing here knows of C, biases or activations.
//
// Each output is a sum of chains of kChain fused multiply-adds over k = 0, 1, .. K-1. All block shapes keep that order,
// so results do not depend on M, on how rows and panels are split over threads, nor (where the level has FMA) on the CPU
// level.
//
// Packed B is [ceil(N / kPanel)][K][kPanel], columns past N zero, 64-byte aligned; `codegen/pack.rs` writes it.
// Register blocking and operand order follow Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication".
#pragma once

#include "tile.h"

AOTI_NAMESPACE_BEGIN

// A view of a matrix; strides count elements.
template <class T> struct Matrix {
  const T *data;
  i64 row_stride, col_stride;
};

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
constexpr int kTileFloats = kMainRows * kPanel > kGroup * kPanel ? kMainRows * kPanel : kGroup * kPanel;

// Rows of A per cache block: about 384 KiB of A stay in L2 while the panels of B go past.
AOTI_INLINE i64 gemm_block_rows(i64 k) { return max_i64(98304 / max_i64(k, 1) / kMainRows, 1) * kMainRows; }
// The same for `rows` rows, so that blocks are about equal.
AOTI_INLINE i64 gemm_even_rows(i64 rows, i64 k) {
  return ceil_div(rows, max_i64(ceil_div(rows, gemm_block_rows(k)), 1));
}
// Row stride of copied A: never a multiple of a page, so that the rows of a block fall into different cache sets.
AOTI_INLINE i64 gemm_copy_stride(i64 k) { return round_up(k, 16) + 16; }

// One chain for Rows rows and, of each of Panels panels, Vectors vectors, into tile[Rows][Panels * kPanel].
template <int Rows, int Panels, int Vectors>
AOTI_NOINLINE AOTI_CONTRACT void gemm_kernel(i64 k_count, const f32 *a, i64 a_row, i64 a_k, const f32 *b, i64 b_k,
                                             i64 b_panel, f32 *tile) {
  AOTI_CONTRACT_BODY
  TileVector sum[Rows][Panels * Vectors];
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < Panels * Vectors; ++v) sum[r][v] =
      TileVector{};
  for (i64 k = 0; k < k_count; ++k) {
    TileVector row[Panels * Vectors];
    AOTI_UNROLL for (int p = 0; p < Panels; ++p) AOTI_UNROLL for (int v = 0; v < Vectors; ++v)
        row[p * Vectors + v] = load_tile_vector(b + p * b_panel + v * kLanes);
    if constexpr (Rows > 2)
      AOTI_UNROLL for (int p = 0; p < Panels; ++p) AOTI_UNROLL for (int v = 0; v < Vectors; ++v)
          ask_for(b + kRowsAhead * b_k + p * b_panel + v * kLanes);
    AOTI_UNROLL for (int r = 0; r < Rows; ++r) {
      f32 x = a[r * a_row];
      AOTI_UNROLL for (int v = 0; v < Panels * Vectors; ++v) sum[r][v] += row[v] * x;
    }
    a += a_k;
    b += b_k;
  }
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int p = 0; p < Panels; ++p)
      AOTI_UNROLL for (int v = 0; v < Vectors; ++v)
          store_tile_vector(tile + (r * Panels + p) * kPanel + v * kLanes, sum[r][p * Vectors + v]);
}

// A kernel applied to every part of the panel, when one call covers Vectors of its vectors only.
template <int Rows, int Panels, int Vectors>
AOTI_INLINE void gemm_panel(i64 k, const f32 *a, i64 a_row, i64 a_k, const f32 *b, i64 b_k, i64 b_panel, f32 *tile) {
  static_assert(kPanel % (Vectors * kLanes) == 0, "parts cover the panel");
  for (int c = 0; c < kPanel; c += Vectors * kLanes)
    gemm_kernel<Rows, Panels, Vectors>(k, a, a_row, a_k, b + c, b_k, b_panel, tile + c);
}

struct GemmBlock {
  int rows, panels;
};

// Rows of the register tiles that there are, largest first, and as how many one counts at least: sums of fewer wait for each
// other.
#if AOTI_AVX512
constexpr int kTileRows[] = {14, 13, 12, 8, 4, 2, 1};
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
template <i64 Most> AOTI_INLINE GemmBlock gemm_block(i64 rows) {
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

// One chain of a block of at most Largest rows.
template <int Largest>
AOTI_NOINLINE void gemm_chain(GemmBlock block, i64 k, const f32 *a, i64 a_row, i64 a_k, const f32 *b, i64 b_k,
                              i64 b_panel, f32 *tile) {
#define AOTI_GEMM(ROWS, PANELS, VECTORS)               \
  if constexpr (ROWS <= Largest)                       \
    if (block.rows == ROWS && block.panels == PANELS) \
      return gemm_panel<ROWS, PANELS, VECTORS>(k, a, a_row, a_k, b, b_k, b_panel, tile)
#if AOTI_AVX512
  AOTI_GEMM(14, 1, 2);
  AOTI_GEMM(13, 1, 2);
  AOTI_GEMM(12, 1, 2);
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

template <i64 Most>
AOTI_INLINE void gemm_tile(GemmBlock block, i64 k, const f32 *a, i64 a_row, i64 a_k, const f32 *b, i64 b_k,
                           i64 b_panel, f32 *tile) {
  constexpr int largest = tile_of(Most);
  gemm_chain<largest>(block, min_i64(k, kChain), a, a_row, a_k, b, b_k, b_panel, tile);
  for (i64 i = kChain; i < k; i += kChain) {
    alignas(64) f32 chain[kTileFloats];
    gemm_chain<largest>(block, min_i64(k - i, kChain), a + i * a_k, a_row, a_k, b + i * b_k, b_k, b_panel, chain);
    add_chain(tile, chain, block.rows, block.panels * kPanel, block.panels * kPanel);
  }
}

// A[rows, k] as f32 rows of stride `to_stride`.
template <class T> AOTI_NOINLINE AOTI_VECTORIZE void copy_rows(Matrix<T> a, i64 rows, i64 k, f32 *to, i64 to_stride) {
  i64 r = 0;
  if constexpr (is_same<T, f32>)
    if (a.row_stride == 1)
      for (; r + 4 <= rows; r += 4) {
        i64 c = 0;
        for (; c + 4 <= k; c += 4)
          transpose_4x4(a.data + r + c * a.col_stride, a.col_stride, to + r * to_stride + c, to_stride);
        for (; c < k; ++c)
          for (int i = 0; i < 4; ++i) to[(r + i) * to_stride + c] = a.data[r + i + c * a.col_stride];
      }
  for (; r < rows; ++r) {
    const T *from = a.data + r * a.row_stride;
    f32 *row = to + r * to_stride;
    if (a.col_stride == 1)
      for (i64 c = 0; c < k; ++c) row[c] = widen<f32>(from[c]);
    else
      for (i64 c = 0; c < k; ++c) row[c] = widen<f32>(from[c * a.col_stride]);
  }
}

// One panel of B[k, columns], columns <= kPanel, the rest zero.
template <class T> AOTI_NOINLINE AOTI_VECTORIZE void pack_panel(Matrix<T> b, i64 k, i64 columns, f32 *to) {
  if (columns < kPanel)
    for (i64 i = 0; i < k * kPanel; ++i) to[i] = 0;
  i64 n = 0;
  if constexpr (is_same<T, f32>)
    if (b.row_stride == 1)
      for (; n + 4 <= columns; n += 4) {
        i64 i = 0;
        for (; i + 4 <= k; i += 4)
          transpose_4x4(b.data + i + n * b.col_stride, b.col_stride, to + i * kPanel + n, kPanel);
        for (; i < k; ++i)
          for (int j = 0; j < 4; ++j) to[i * kPanel + n + j] = b.data[i + (n + j) * b.col_stride];
      }
  if (b.col_stride == 1) {
    for (i64 i = 0; i < k; ++i)
      for (i64 j = n; j < columns; ++j) to[i * kPanel + j] = widen<f32>(b.data[i * b.row_stride + j]);
    return;
  }
  for (i64 i = 0; i < k; ++i)
    for (i64 j = n; j < columns; ++j) to[i * kPanel + j] = widen<f32>(b.data[i * b.row_stride + j * b.col_stride]);
}

// Where the panels of a group are: packed before, read in place, or packed now.
struct GemmPanels {
  const f32 *data;
  i64 k_stride, panel_stride;
};
template <class T>
AOTI_INLINE GemmPanels pack_group(Matrix<T> b, i64 first, i64 last, i64 n, i64 k, i64 rows, f32 *scratch) {
  if constexpr (is_same<T, f32>)
    // For a few rows packing costs more than it saves; the last, partial panel must not be read past its end.
    if (b.col_stride == 1 && rows <= 8 && last * kPanel <= n) return {b.data + first * kPanel, b.row_stride, kPanel};
  for (i64 p = first; p < last; ++p) {
    Matrix<T> columns{b.data + p * kPanel * b.col_stride, b.row_stride, b.col_stride};
    pack_panel(columns, k, min_i64(n - p * kPanel, kPanel), scratch + (p - first) * k * kPanel);
  }
  return {scratch, kPanel, k * kPanel};
}

// f32 rows that the kernels read well: A itself, or a copy where it is of another type, strided along k, or of a row
// stride that maps all rows of a block to one cache set.
template <class T> AOTI_INLINE Matrix<f32> gemm_rows(Matrix<T> a, i64 rows, i64 k, f32 *scratch) {
  if constexpr (is_same<T, f32>) {
    bool one_set = rows >= 8 && a.row_stride % 1024 == 0;
    if (scratch == nullptr || k == 1 || (a.col_stride == 1 && !one_set)) return a;
  }
  copy_rows(a, rows, k, scratch, gemm_copy_stride(k));
  return {scratch, gemm_copy_stride(k), 1};
}

// Columns [first, last) panels of rows [m0, m0 + rows), whose A rows start at a.data; blocks have at most Most rows. Finished
// tiles go to sink(row, rows, column, width, sums, pitch).
template <i64 Most, class Sink>
AOTI_INLINE void gemm_group(i64 m0, i64 rows, i64 first, i64 last, i64 n, i64 k, Matrix<f32> a, GemmPanels b, Sink &sink) {
  alignas(64) f32 tile[kTileFloats];
  for (i64 done = 0; done < rows;) {
    GemmBlock block = gemm_block<Most>(rows - done);
    i64 end = done;
    while (end < rows && gemm_block<Most>(rows - end).rows == block.rows) end += block.rows;
    for (i64 p = first; p < last; p += block.panels) {
      if (last - p < block.panels) block.panels = 1;
      i64 width = min_i64(n - p * kPanel, block.panels * kPanel);
      for (i64 r = done; r < end; r += block.rows) {
        gemm_tile<Most>(block, k, a.data + r * a.row_stride, a.row_stride, a.col_stride,
                  b.data + (p - first) * b.panel_stride, b.k_stride, b.panel_stride, tile);
        sink(m0 + r, block.rows, p * kPanel, width, tile, block.panels * kPanel);
      }
    }
    done = end;
  }
}

// Rows [m0, m1) and panels [p0, p1) of A * B for packed B.
template <i64 Most, class T, class Sink>
AOTI_INLINE void packed_tiles(i64 m0, i64 m1, i64 p0, i64 p1, i64 n, i64 k, Matrix<T> a, const f32 *packed, void *scratch,
                              Sink &sink) {
  const i64 block = gemm_even_rows(m1 - m0, k);
  for (i64 m = m0; m < m1; m += block) {
    i64 rows = min_i64(m1 - m, block);
    Matrix<f32> block_a =
        gemm_rows(Matrix<T>{a.data + m * a.row_stride, a.row_stride, a.col_stride}, rows, k, (f32 *)scratch);
    for (i64 p = p0; p < p1; p += kGroup) {
      GemmPanels b{packed + p * k * kPanel, kPanel, k * kPanel};
      gemm_group<Most>(m, rows, p, min_i64(p1, p + kGroup), n, k, block_a, b, sink);
    }
  }
}

// The same for a B that is packed now.
template <i64 Most, class TA, class TB, class Sink>
AOTI_INLINE void general_tiles(i64 m0, i64 m1, i64 p0, i64 p1, i64 n, i64 k, Matrix<TA> a, Matrix<TB> b, void *scratch,
                               Sink &sink) {
  i64 block = gemm_block_rows(k);
  f32 *b_scratch = (f32 *)scratch;
  f32 *a_scratch = b_scratch + min_i64(ceil_div(n, kPanel), kGroup) * kPanel * k;
  for (i64 m = m0; m < m1; m += block) {
    i64 rows = min_i64(m1 - m, block);
    Matrix<f32> block_a =
        gemm_rows(Matrix<TA>{a.data + m * a.row_stride, a.row_stride, a.col_stride}, rows, k, a_scratch);
    for (i64 p = p0; p < p1; p += kGroup) {
      i64 last = min_i64(p1, p + kGroup);
      GemmPanels panels = pack_group(b, p, last, n, k, rows, b_scratch);
      gemm_group<Most>(m, rows, p, last, n, k, block_a, panels, sink);
    }
  }
}

// Hands the sums of a tile to an epilogue, vector by vector.
template <class Epilogue>
AOTI_INLINE void hand_over(i64 row, i64 rows, i64 column, i64 width, const f32 *sums, i64 pitch, Epilogue &epilogue) {
  for (i64 i = 0; i < rows; ++i)
    for_each_vector(sums + i * pitch, width, [&](i64 c, auto lanes, auto values)
                        __attribute__((always_inline)) { epilogue(row + i, column + c, lanes, values); });
}

} // namespace detail

// Rows of the largest tile, where nobody says otherwise.
constexpr i64 kGemmMost = detail::kMainRows;
// Rows that a unit of work has at least where a product is split by rows: whole tiles.
template <i64 Most> constexpr i64 kGemmRowsOf = Most < 12 ? 12 / Most * Most : 12;
constexpr i64 kGemmRows = kGemmRowsOf<kGemmMost>;

// Number of panels of N columns: the range that callers split.
AOTI_INLINE i64 gemm_panels(i64 n) { return ceil_div(n, kPanel); }

// Scratch of one `gemm_packed` call over at most `m` rows. A call without scratch (null) is correct for f32 A, and as
// fast unless A is strided along k or its row stride is a multiple of 1024.
AOTI_INLINE i64 gemm_packed_scratch_bytes(i64 m, i64 k) {
  return round_up(min_i64(m, detail::gemm_block_rows(k)) * detail::gemm_copy_stride(k) * 4, 64);
}
// Scratch of one `gemm_general` call.
AOTI_INLINE i64 gemm_general_scratch_bytes(i64 m, i64 n, i64 k) {
  return min_i64(gemm_panels(n), detail::kGroup) * kPanel * k * 4 + gemm_packed_scratch_bytes(m, k);
}

// Rows [m0, m1) and panels [p0, p1) of A * B for B packed. A: f32, f16 or bf16, any strides. `scratch`: 64-byte aligned,
// one per concurrent call. The epilogue is called once per vector of results: epilogue(row, column, lanes, sums) with
// lanes Full<kLanes> or Tail<kLanes>, sums Vec<f32, kLanes>. Tiles have at most Most rows, which changes no result.
template <i64 Most = kGemmMost, class T, class Epilogue>
AOTI_INLINE void gemm_packed(i64 m0, i64 m1, i64 p0, i64 p1, i64 n, i64 k, Matrix<T> a, const f32 *packed,
                             void *scratch, Epilogue &&epilogue) {
  const auto sink = [&](i64 row, i64 rows, i64 column, i64 width, const f32 *sums, i64 pitch) AOTI_LAMBDA {
    detail::hand_over(row, rows, column, width, sums, pitch, epilogue);
  };
  detail::packed_tiles<Most>(m0, m1, p0, p1, n, k, a, packed, scratch, sink);
}

// As `gemm_packed`, for a B that is packed now, panel by panel. A and B: f32, f16 or bf16, any strides.
template <i64 Most = kGemmMost, class TA, class TB, class Epilogue>
AOTI_INLINE void gemm_general(i64 m0, i64 m1, i64 p0, i64 p1, i64 n, i64 k, Matrix<TA> a, Matrix<TB> b, void *scratch,
                              Epilogue &&epilogue) {
  const auto sink = [&](i64 row, i64 rows, i64 column, i64 width, const f32 *sums, i64 pitch) AOTI_LAMBDA {
    detail::hand_over(row, rows, column, width, sums, pitch, epilogue);
  };
  detail::general_tiles<Most>(m0, m1, p0, p1, n, k, a, b, scratch, sink);
}

AOTI_NAMESPACE_END
