// Matrix products as in gemm.h, on matrix units where the machine has them and there are rows enough; else they are those of
// gemm.h. Which it is depends on the machine and the size of the whole product alone, never on how it is split.
//
// A block of rows is split into planes once, and each panel once for every block: so a part should have many rows, and there
// should be no more parts than threads.
#pragma once

#include "gemm.h"
#include "matrix_units.h"
#include "run.h"

AOTI_NAMESPACE_BEGIN

// Rows from which on the planes of a panel pay.
constexpr i64 kUnitLeastRows = 48;
// Rows of a unit of work where a product on matrix units is split by rows.
constexpr i64 kGemmUnitRows = 2 * kUnitRows;

// How one product is computed and split over threads: in units of `step` rows, or of panels.
struct GemmPlan {
  bool on_units, by_rows;
  i64 step, units;
};
// `many`: rows from which on a product by ordinary instructions is split by rows.
AOTI_INLINE GemmPlan gemm_plan(i64 m, i64 n, i64 many) {
  GemmPlan p;
  p.on_units = m >= kUnitLeastRows && has_matrix_units();
  // What is not split is brought into planes by every thread.
  p.by_rows = p.on_units ? m >= n : m >= many;
  p.step = p.on_units ? kGemmUnitRows : 1;
  p.units = p.by_rows ? ceil_div(m, p.step) : gemm_panels(n);
  return p;
}
// Units of work that a thread takes at least.
AOTI_INLINE i64 gemm_grain(const Run &run, const GemmPlan &p, i64 grain) {
  if (p.on_units) return max_i64(grain, p.units / max_i64(run.context->threads, 1));
  return p.by_rows ? max_i64(grain, kGemmRows) : grain;
}

namespace detail {

// Numbers of a block of rows whose planes stay in the second-level cache beside those of a panel, and the least and the
// most rows of a block.
constexpr i64 kUnitBlock = 196608;
constexpr i64 kUnitBlockRows[] = {64, 256};
AOTI_INLINE i64 unit_block_rows(i64 m, i64 k) {
  const i64 fitting = min_i64(max_i64(kUnitBlock / max_i64(k, 1), kUnitBlockRows[0]), kUnitBlockRows[1]);
  return min_i64(fitting / kGemmUnitRows * kGemmUnitRows, round_up(m, kGemmUnitRows));
}

// Parts of the scratch of one worker, in bytes from its start: planes of rows and of a panel, sums and those of one chain, rows
// that cannot be read in place, and a panel that is packed now.
struct UnitScratch {
  i64 right, sums, chain, rows, panel, end;
};
AOTI_INLINE UnitScratch unit_scratch(i64 m, i64 k) {
  const i64 rows = unit_block_rows(m, k), depth = round_up(k, kUnitDepth), plane_bytes = 3 * 2;
  UnitScratch s;
  s.right = rows * depth * plane_bytes;
  s.sums = s.right + kPanel * depth * plane_bytes;
  s.chain = s.sums + rows * kPanel * 4;
  s.rows = s.chain + rows * kPanel * 4;
  s.panel = s.rows + rows * depth * 4;
  s.end = s.panel + kPanel * depth * 4;
  return s;
}

// The sums of a few rows by ordinary instructions.
template <class W> AOTI_NOINLINE void plain_sums(i64 rows, i64 k, Matrix<f32> a, const W *panel, f32 *sums) {
  const auto sink = [=](i64 row, i64 count, i64, i64, const f32 *tile, i64) AOTI_LAMBDA {
    copy_floats(sums + row * kPanel, tile, count * kPanel);
  };
  gemm_group<kGemmMost, kPanel>(0, rows, 0, 1, kPanel, k, a, GemmPanels<W>{panel, kPanel, 0}, sink);
}

#if AOTI_UNITS
// Rows [m0, m1) and panels [p0, p1) of A * B; panel(p) is a packed panel of B. Of each block of rows, done(first, last) is told
// at its end.
template <int Planes, class T, class Panel, class Sink, class Done>
AOTI_INLINE void unit_tiles(i64 m0, i64 m1, i64 p0, i64 p1, i64 n, i64 k, Matrix<T> a, char *scratch, const Panel &panel,
                            Sink &sink, Done &done) {
  if (m0 >= m1) return;
  const UnitScratch s = unit_scratch(m1 - m0, k);
  u16 *const left = (u16 *)scratch, *const right = (u16 *)(scratch + s.right);
  f32 *const sums = (f32 *)(scratch + s.sums), *const chain = (f32 *)(scratch + s.chain);
  // Blocks of about one size: a panel is brought into planes for each of them.
  const i64 blocks = ceil_div(m1 - m0, unit_block_rows(m1 - m0, k));
  const i64 block = round_up(ceil_div(m1 - m0, blocks), kGemmUnitRows);
  for (i64 m = m0; m < m1; m += block) {
    const i64 rows = min_i64(m1 - m, block);
    Matrix<f32> own;
    if constexpr (is_same<T, f32>) own = {a.data + m * a.row_stride, a.row_stride, a.col_stride};
    if (!is_same<T, f32> || a.col_stride != 1) {
      const i64 stride = round_up(k, kUnitDepth);
      copy_rows(Matrix<T>{a.data + m * a.row_stride, a.row_stride, a.col_stride}, rows, k, (f32 *)(scratch + s.rows), stride);
      own = {(const f32 *)(scratch + s.rows), stride, 1};
    }
    split_rows<Planes>(own.data, own.row_stride, rows, k, left);
    for (i64 p = p0; p < p1; ++p) {
      const auto packed = panel(p);
      split_panel<Planes>(packed, k, right);
      unit_products<Planes>(ceil_div(rows, kUnitRows), k, left, right, sums, chain);
      for (i64 r = 0; r < rows; r += kGemmUnitRows) {
        const i64 count = min_i64(rows - r, kGemmUnitRows);
        f32 *const tile = sums + r * kPanel;
        if (!unit_sums_hold(tile, count))
          plain_sums(count, k, Matrix<f32>{own.data + r * own.row_stride, own.row_stride, 1}, packed, tile);
        sink(m + r, count, p * kPanel, min_i64(n - p * kPanel, kPanel), tile, kPanel);
      }
    }
    done(m, m + rows);
  }
}
#endif

} // namespace detail

// Scratch of one `gemm_packed_units` or `gemm_general_units` call, over at most `m` rows.
AOTI_INLINE i64 gemm_packed_units_scratch_bytes(i64 m, i64 k) {
  return max_i64(detail::unit_scratch(m, k).panel, gemm_packed_scratch_bytes(m, k));
}
AOTI_INLINE i64 gemm_general_units_scratch_bytes(i64 m, i64 n, i64 k) {
  return max_i64(detail::unit_scratch(m, k).end, gemm_general_scratch_bytes(m, n, k));
}

// As `gemm_packed`. The planes of B are those of T: B is of that type, or was widened from it.
template <class T, class W, class Epilogue, class RowEpilogue = NoRowEpilogue>
AOTI_INLINE void gemm_packed_units(const GemmPlan &plan, i64 m0, i64 m1, i64 p0, i64 p1, i64 n, i64 k, Matrix<T> a,
                                   const W *packed, void *scratch, Epilogue epilogue,
                                   const RowEpilogue &row_epilogue = {}) {
  // Once for both ways, so that epilogues are compiled once.
  const auto sink = [&](i64 row, i64 rows, i64 column, i64 width, const f32 *sums, i64 pitch) __attribute__((noinline)) {
    detail::hand_over(row, rows, column, width, sums, pitch, epilogue);
  };
#if AOTI_UNITS
  if (plan.on_units)
    return detail::unit_tiles<kPlanes<T>>(m0, m1, p0, p1, n, k, a, (char *)scratch,
                                          [&](i64 p) { return packed + p * k * kPanel; }, sink, row_epilogue);
#endif
  (void)plan;
  detail::packed_tiles<kGemmMost>(m0, m1, p0, p1, n, k, a, packed, scratch, sink, row_epilogue);
}

// As `gemm_general`, for A and B of one type.
template <class T, class Epilogue, class RowEpilogue = NoRowEpilogue>
AOTI_INLINE void gemm_general_units(const GemmPlan &plan, i64 m0, i64 m1, i64 p0, i64 p1, i64 n, i64 k, Matrix<T> a,
                                    Matrix<T> b, void *scratch, Epilogue epilogue, const RowEpilogue &row_epilogue = {}) {
  const auto sink = [&](i64 row, i64 rows, i64 column, i64 width, const f32 *sums, i64 pitch) __attribute__((noinline)) {
    detail::hand_over(row, rows, column, width, sums, pitch, epilogue);
  };
#if AOTI_UNITS
  if (plan.on_units) {
    f32 *const to = (f32 *)((char *)scratch + detail::unit_scratch(m1 - m0, k).panel);
    return detail::unit_tiles<kPlanes<T>>(m0, m1, p0, p1, n, k, a, (char *)scratch, [&](i64 p) {
      const Matrix<T> columns{b.data + p * kPanel * b.col_stride, b.row_stride, b.col_stride};
      detail::pack_panel<kPanel>(columns, k, min_i64(n - p * kPanel, kPanel), to);
      return (const f32 *)to;
    }, sink, row_epilogue);
  }
#endif
  (void)plan;
  detail::general_tiles<kGemmMost, kGemmColumns>(m0, m1, p0, p1, n, k, a, b, scratch, sink, row_epilogue);
}

AOTI_NAMESPACE_END
