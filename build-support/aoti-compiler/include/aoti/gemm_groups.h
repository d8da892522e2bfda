// Matrix products with weights that are stored as whole numbers of a few bits, in groups along the depth: each group of a column has a
// scale, and a number that is added to all of its numbers before they are scaled. `runplan/group_panels.rs` writes them.
//
// Packed B begins with 64 bytes of which the first two words are bits of a number (4 or 8) and rows of a group. Panels of kPanel
// columns follow, each a list of groups: kPanel scales (f32), kPanel least numbers (i16), and rows of unsigned numbers. In a row of
// 4 bits, byte c holds column c in its low half and column c + kPanel / 2 in its high half.
//
// Products of few rows multiply the numbers as they are and scale the sum of each group. Those of more rows read what a program
// without this form would: number times scale, rounded once. The number of rows of the whole product decides, never that of a part.
#pragma once

#include "gemm.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

// Rows of a product up to which numbers are multiplied as they are, and how many of them at once.
constexpr i64 kGroupedRows = 8;
constexpr int kGroupedTile = AOTI_AVX512 ? 4 : 2;
constexpr int kPanelVectors = kPanel / kLanes;
constexpr i64 kGroupHead = kPanel * 6;

struct GroupForm {
  i64 bits, rows;
  AOTI_INLINE i64 row_bytes() const { return kPanel * bits / 8; }
  AOTI_INLINE i64 group_bytes() const { return kGroupHead + rows * row_bytes(); }
};

AOTI_INLINE TileVector load_least(const u8 *p) {
  return (TileVector)convert<f32>(load_raw(Full<kLanes>{}, (const i16 *)p)).v;
}

// A row of numbers.
template <int Bits> AOTI_INLINE void load_numbers(const u8 *row, const TileVector (&least)[kPanelVectors], TileVector (&w)[kPanelVectors]) {
  if constexpr (Bits == 8) {
    AOTI_UNROLL for (int v = 0; v < kPanelVectors; ++v)
        w[v] = (TileVector)convert<f32>(load_raw(Full<kLanes>{}, row + v * kLanes)).v + least[v];
  } else {
    constexpr int half = kPanelVectors / 2;
    AOTI_UNROLL for (int v = 0; v < half; ++v) {
      const auto both = convert<i32>(load_raw(Full<kLanes>{}, row + v * kLanes));
      w[v] = (TileVector)convert<f32>(both & 15).v + least[v];
      w[v + half] = (TileVector)convert<f32>(both >> 4).v + least[v + half];
    }
  }
}

// Sums of Rows rows and a panel, into tile[Rows][kPanel].
template <int Bits, int Rows>
AOTI_NOINLINE AOTI_CONTRACT void group_sums(GroupForm form, i64 groups, const f32 *a, i64 a_row, i64 a_k, const u8 *b, f32 *tile) {
  AOTI_CONTRACT_BODY
  TileVector total[Rows][kPanelVectors];
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < kPanelVectors; ++v) total[r][v] = TileVector{};
  for (i64 j = 0; j < groups; ++j) {
    const f32 *scale = (const f32 *)b;
    TileVector least[kPanelVectors], sum[Rows][kPanelVectors];
    AOTI_UNROLL for (int v = 0; v < kPanelVectors; ++v) least[v] = load_least(b + kPanel * 4 + v * kLanes * 2);
    AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < kPanelVectors; ++v) sum[r][v] = TileVector{};
    const u8 *row = b + kGroupHead;
    for (i64 i = 0; i < form.rows; ++i, row += kPanel * Bits / 8, a += a_k) {
      TileVector w[kPanelVectors];
      load_numbers<Bits>(row, least, w);
      AOTI_UNROLL for (int r = 0; r < Rows; ++r) {
        const f32 x = a[r * a_row];
        AOTI_UNROLL for (int v = 0; v < kPanelVectors; ++v) sum[r][v] += w[v] * x;
      }
    }
    AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < kPanelVectors; ++v)
        total[r][v] += sum[r][v] * load_tile_vector(scale + v * kLanes);
    b = row;
  }
  AOTI_UNROLL for (int r = 0; r < Rows; ++r) AOTI_UNROLL for (int v = 0; v < kPanelVectors; ++v)
      store_tile_vector(tile + r * kPanel + v * kLanes, total[r][v]);
}

// A panel as floats, [k][kPanel].
template <int Bits> AOTI_NOINLINE void scale_panel(GroupForm form, i64 groups, const u8 *b, f32 *to) {
  for (i64 j = 0; j < groups; ++j) {
    const f32 *scale = (const f32 *)b;
    TileVector least[kPanelVectors];
    AOTI_UNROLL for (int v = 0; v < kPanelVectors; ++v) least[v] = load_least(b + kPanel * 4 + v * kLanes * 2);
    const u8 *row = b + kGroupHead;
    for (i64 i = 0; i < form.rows; ++i, row += kPanel * Bits / 8, to += kPanel) {
      TileVector w[kPanelVectors];
      load_numbers<Bits>(row, least, w);
      AOTI_UNROLL for (int v = 0; v < kPanelVectors; ++v)
          store_tile_vector(to + v * kLanes, w[v] * load_tile_vector(scale + v * kLanes));
    }
    b = row;
  }
}

template <int Bits, i64 Most, class Sink>
AOTI_INLINE void grouped_panel(GroupForm form, bool few, i64 m, i64 rows, i64 panel, i64 n, i64 k, Matrix<f32> a, const u8 *b,
                               f32 *scratch, Sink &sink) {
  if (!few) {
    scale_panel<Bits>(form, k / form.rows, b, scratch);
    gemm_group<Most, kPanel>(m, rows, panel, panel + 1, n, k, a, GemmPanels<f32>{scratch, kPanel, k * kPanel}, sink);
    return;
  }
  alignas(64) f32 tile[kGroupedTile * kPanel];
  for (i64 r = 0; r < rows;) {
    const f32 *from = a.data + r * a.row_stride;
    const int own = rows - r >= kGroupedTile ? kGroupedTile : 1;
    if (own > 1)
      group_sums<Bits, kGroupedTile>(form, k / form.rows, from, a.row_stride, a.col_stride, b, tile);
    else
      group_sums<Bits, 1>(form, k / form.rows, from, a.row_stride, a.col_stride, b, tile);
    sink(m + r, own, panel * kPanel, min_i64(n - panel * kPanel, kPanel), tile, kPanel);
    r += own;
  }
}

} // namespace detail

// As `gemm_packed`, of a product of `all` rows, for weights in groups; `scratch` as for `gemm_general`.
template <i64 Most = kGemmMost, class Epilogue, class RowEpilogue = NoRowEpilogue>
AOTI_INLINE void gemm_groups(i64 m0, i64 m1, i64 p0, i64 p1, i64 all, i64 n, i64 k, Matrix<f32> a, const u8 *packed, void *scratch,
                             Epilogue &&epilogue, const RowEpilogue &row_epilogue = {}) {
  const detail::GroupForm form = {((const i32 *)packed)[0], ((const i32 *)packed)[1]};
  const auto sink = [&](i64 row, i64 rows, i64 column, i64 width, const f32 *sums, i64 pitch) AOTI_LAMBDA {
    detail::hand_over(row, rows, column, width, sums, pitch, epilogue);
  };
  f32 *panel = (f32 *)scratch, *copy = panel + min_i64(ceil_div(n, i64(kPanel)), detail::kGroup) * kPanel * k;
  const i64 bytes = k / form.rows * form.group_bytes(), block = detail::gemm_even_rows<f32>(m1 - m0, k);
  for (i64 m = m0; m < m1; m += block) {
    const i64 rows = min_i64(m1 - m, block);
    const Matrix<f32> own =
        detail::gemm_rows(Matrix<f32>{a.data + m * a.row_stride, a.row_stride, a.col_stride}, rows, k, copy);
    for (i64 p = p0; p < p1; ++p) {
      const u8 *b = packed + 64 + p * bytes;
      const bool few = all <= detail::kGroupedRows;
      if (form.bits == 8)
        detail::grouped_panel<8, Most>(form, few, m, rows, p, n, k, own, b, panel, sink);
      else
        detail::grouped_panel<4, Most>(form, few, m, rows, p, n, k, own, b, panel, sink);
    }
    row_epilogue(m, m + rows);
  }
}

AOTI_NAMESPACE_END
