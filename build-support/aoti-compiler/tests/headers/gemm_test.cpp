// Matrix products of gemm.h, dots.h, gemm_stream.h, gemm_units.h and contract_any.h against plain loops: odd sizes, strides, element types, splits.
#include "aoti/contract_any.h"
#include "aoti/dots.h"
#include "aoti/gemm_stream.h"
#include "aoti/gemm_units.h"
#include "check.h"

using namespace aoti;

template <class TA, class TB>
static void compare(const char *what, const Collected &c, i64 m, i64 n, i64 k, Matrix<TA> a, Matrix<TB> b) {
  ++check_cases;
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) {
      double want = 0;
      for (i64 l = 0; l < k; ++l)
        want += check_value(a.data[i * a.row_stride + l * a.col_stride]) *
                check_value(b.data[l * b.row_stride + j * b.col_stride]);
      if (!check_same(c, i * n + j, want))
        return CHECK_FAIL("%s %ld x %ld x %ld at (%ld, %ld): %g, written %d times, want %g", what, (long)m, (long)n,
                          (long)k, (long)i, (long)j, c.value[i * n + j], c.times[i * n + j], want);
    }
}

enum Layout { kRows, kColumns, kBoth };
template <class T> static Matrix<T> view(const Guarded<T> &g, Layout layout, i64 rows, i64 cols, i64 extra) {
  if (layout == kRows) return {g.data, cols + extra, 1};
  if (layout == kColumns) return {g.data, 1, rows + extra};
  return {g.data, 2 * cols, 2};
}
static i64 extent(Layout layout, i64 rows, i64 cols, i64 extra) {
  if (rows == 0 || cols == 0) return 0;
  if (layout == kRows) return (rows - 1) * (cols + extra) + cols;
  if (layout == kColumns) return (cols - 1) * (rows + extra) + rows;
  return (rows - 1) * 2 * cols + (cols - 1) * 2 + 1;
}

// Splits rows and panels, as threads would, and calls run(m0, m1, p0, p1) for each part.
template <class F> static void split(i64 m, i64 panels, bool whole, F &&run) {
  i64 mid = whole ? m : check_random(0, int(m)), half = whole ? panels : check_random(0, int(panels));
  run(i64(0), mid, i64(0), half), run(mid, m, i64(0), half), run(i64(0), mid, half, panels);
  run(mid, m, half, panels);
}

// What a row epilogue was told: each row as often as there are panels, where calls cover some panels each.
struct Rows {
  Guarded<f32> panels;
  i64 count;
  explicit Rows(i64 m) : panels(m), count(m) {
    for (i64 i = 0; i < m; ++i) panels.data[i] = 0;
  }
  auto of(i64 m0, i64 m1, i64 p0, i64 p1) const {
    return [=, this_panels = panels.data](i64 first, i64 last) {
      if (first < m0 || last > m1) return CHECK_FAIL("rows %ld to %ld of %ld to %ld", (long)first, (long)last, (long)m0, (long)m1);
      for (i64 i = first; i < last; ++i) this_panels[i] += f32(p1 - p0);
    };
  }
  void compare(const char *what, i64 all) const {
    ++check_cases;
    for (i64 i = 0; i < count; ++i)
      if (panels.data[i] != f32(all)) return CHECK_FAIL("%s: row %ld is finished for %g panels of %ld", what, (long)i, panels.data[i], (long)all);
  }
};

template <class T, class W = TileSum<T>>
static void check_packed(i64 m, i64 n, i64 k, Layout layout, i64 extra, bool whole) {
  using S = TileSum<T>;
  constexpr i64 width = kPanelOf<S>;
  const i64 panels = gemm_panels<S>(n);
  Guarded<T> a(extent(layout, m, k, extra));
  Guarded<W> b(k * n), packed(panels * k * width, true);
  Guarded<char> scratch(gemm_packed_scratch_bytes<S, W>(m, k), true);
  check_fill(a), check_fill(b);
  for (i64 p = 0; p < panels; ++p)
    for (i64 i = 0; i < k * width; ++i) {
      i64 column = p * width + i % width;
      packed.data[p * k * width + i] = column < n ? b.data[i / width * n + column] : W{};
    }
  Matrix<T> am = view(a, layout, m, k, extra);
  Collected c(m * n);
  Rows rows(m);
  split(m, panels, whole, [&](i64 m0, i64 m1, i64 p0, i64 p1) {
    gemm_packed(m0, m1, p0, p1, n, k, am, packed.data, scratch.data,
                [&](i64 row, i64 col, auto lanes, auto v) { c.put(lanes, row * n + col, v); }, rows.of(m0, m1, p0, p1));
  });
  rows.compare("packed", panels);
  compare("packed", c, m, n, k, am, Matrix<W>{b.data, n, 1});
}

template <class TA, class TB, i64 Columns = kGemmColumns>
static void check_general(i64 m, i64 n, i64 k, Layout la, Layout lb, i64 extra) {
  Guarded<TA> a(extent(la, m, k, extra));
  Guarded<TB> b(extent(lb, k, n, extra));
  Guarded<char> scratch(gemm_general_scratch_bytes<TileSum<TA>>(m, n, k), true);
  check_fill(a), check_fill(b);
  Matrix<TA> am = view(a, la, m, k, extra);
  Matrix<TB> bm = view(b, lb, k, n, extra);
  Collected c(m * n);
  Rows rows(m);
  split(m, gemm_panels<TileSum<TA>>(n), check_random(0, 1), [&](i64 m0, i64 m1, i64 p0, i64 p1) {
    gemm_general<kGemmMost, Columns>(
        m0, m1, p0, p1, n, k, am, bm, scratch.data,
        [&](i64 row, i64 col, auto lanes, auto v) { c.put(lanes, row * n + col, v); }, rows.of(m0, m1, p0, p1));
  });
  rows.compare("general", gemm_panels<TileSum<TA>>(n));
  compare("general", c, m, n, k, am, bm);
}

template <class TA, class TB> static void check_dots(i64 m, i64 n, i64 k, i64 extra) {
  Guarded<TA> a(extent(kRows, m, k, extra));
  Guarded<TB> b(extent(kColumns, k, n, extra));
  check_fill(a), check_fill(b);
  Matrix<TA> am = view(a, kRows, m, k, extra);
  Matrix<TB> bm = view(b, kColumns, k, n, extra);
  Collected c(m * n);
  Rows rows(m);
  split(m, gemm_panels<TileSum<TA>>(n), check_random(0, 1), [&](i64 m0, i64 m1, i64 p0, i64 p1) {
    gemm_dots(m0, m1, p0, p1, n, k, am, bm, nullptr,
              [&](i64 row, i64 col, auto lanes, auto v) { c.put(lanes, row * n + col, v); }, rows.of(m0, m1, p0, p1));
  });
  rows.compare("dots", gemm_panels<TileSum<TA>>(n));
  compare("dots", c, m, n, k, am, bm);
}

template <int Rows_, class TA, class TB> static void check_stream(i64 n, i64 k, i64 extra) {
  using S = TileSum<TA>;
  constexpr i64 m = Rows_;
  const Layout la = Layout(check_random(0, 2));
  const i64 panels = gemm_panels<S>(n), half = check_random(0, int(panels));
  Guarded<TA> a(extent(la, m, k, extra));
  Guarded<TB> b(extent(kRows, k, n, extra));
  Guarded<char> scratch(kStreamBytes<Rows_, S>, true);
  check_fill(a), check_fill(b);
  Matrix<TA> am = view(a, la, m, k, extra);
  Matrix<TB> bm = view(b, kRows, k, n, extra);
  Collected c(m * n);
  Rows rows(m);
  const auto part = [&](i64 p0, i64 p1) {
    gemm_stream<Rows_>(0, m, p0, p1, n, k, am, bm, scratch.data,
                       [&](i64 row, i64 col, auto lanes, auto v) { c.put(lanes, row * n + col, v); }, rows.of(0, m, p0, p1));
  };
  part(0, half), part(half, panels);
  rows.compare("stream", panels);
  compare("stream", c, m, n, k, am, bm);
}
template <class TA, class TB> static void check_streams(i64 n, i64 k) {
  const i64 extra = check_random(0, 5);
  check_stream<1, TA, TB>(n, k, extra), check_stream<2, TA, TB>(n, k, extra);
  check_stream<3, TA, TB>(n, k, extra), check_stream<4, TA, TB>(n, k, extra);
}

// Products of at most Columns columns, of each number of rows, with sums of one chain and of two.
template <i64 Columns> static void check_few_columns() {
  const i64 depths[] = {0, 1, 6, 32, 1030};
  for (i64 n = 0; n <= Columns; n += 1 + n / 5)
    for (i64 m = 0; m < 33; m += 1 + m / 8)
      for (i64 k : depths) {
        Layout la = Layout(check_random(0, 2)), lb = Layout(check_random(0, 2));
        check_general<f32, f32, Columns>(m, n, k, la, lb, check_random(0, 5));
        check_general<f64, f64, Columns>(m, n, k, la, lb, check_random(0, 5));
        check_general<bf16, f16, Columns>(m, n, k, la, lb, 0);
      }
}

template <class Sum, int W, class T> static void check_any(i64 m, i64 n, i64 k, Layout la, Layout lb) {
  Guarded<T> a(extent(la, m, k, 0)), b(extent(lb, k, n, 0));
  check_fill(a), check_fill(b);
  Matrix<T> am = view(a, la, m, k, 0), bm = view(b, lb, k, n, 0);
  Collected c(m * n);
  Rows rows(m);
  gemm_any<Sum, W>(0, m, n, k, am, bm, [&](i64 row, i64 col, auto lanes, auto v) { c.put(lanes, row * n + col, v); },
                   rows.of(0, m, 0, 1));
  rows.compare("any", 1);
  compare("any", c, m, n, k, am, bm);
}

static void check_wrapping() {
  i32 a[2] = {0x7fffffff, 2}, b[2] = {2, 0x7fffffff};
  Collected c(1);
  gemm_any<i32, 1>(0, 1, 1, 2, Matrix<i32>{a, 2, 1}, Matrix<i32>{b, 1, 1},
                   [&](i64, i64, auto lanes, auto v) { c.put(lanes, 0, v); });
  if (!check_same(c, 0, -4)) CHECK_FAIL("i32 sums do not wrap: %g", c.value[0]);
}

// Sums of equal products drift in one direction, and one chain of them drifts in proportion to its length: by 1e-3 here.
static void check_long_sums(i64 m) {
  const i64 n = 33, k = 200000;
  Guarded<f32> a(m * k), b(k * n);
  Guarded<char> scratch(gemm_general_scratch_bytes(m, n, k), true);
  for (i64 i = 0; i < m * k; ++i) a.data[i] = 0.1f;
  for (i64 i = 0; i < k * n; ++i) b.data[i] = 0.1f;
  Collected c(m * n);
  gemm_general(0, m, 0, gemm_panels(n), n, k, Matrix<f32>{a.data, k, 1}, Matrix<f32>{b.data, n, 1}, scratch.data,
               [&](i64 row, i64 col, auto lanes, auto v) { c.put(lanes, row * n + col, v); });
  ++check_cases;
  double want = double(k) * 0.1f * 0.1f;
  for (i64 i = 0; i < m * n; ++i)
    if (__builtin_fabs(c.value[i] / want - 1) > 5e-5)
      return CHECK_FAIL("a sum of %ld products is off by %g", (long)k, c.value[i] / want - 1);
}

// Products as on a machine with matrix units, where this one has them or they are emulated.
template <class T> static void check_units(i64 m, i64 n, i64 k, Layout la, Layout lb, i64 extra) {
  Guarded<T> a(extent(la, m, k, extra)), b(extent(lb, k, n, extra));
  Guarded<char> scratch(gemm_general_units_scratch_bytes(m, n, k), true);
  check_fill(a), check_fill(b);
  Matrix<T> am = view(a, la, m, k, extra), bm = view(b, lb, k, n, extra);
  Collected c(m * n);
  Rows rows(m);
  GemmPlan plan = gemm_plan(m, n, 64);
  plan.on_units = has_matrix_units();
  split(m, gemm_panels(n), check_random(0, 1), [&](i64 m0, i64 m1, i64 p0, i64 p1) {
    gemm_general_units(plan, m0, m1, p0, p1, n, k, am, bm, scratch.data,
                       [&](i64 row, i64 col, auto lanes, auto v) { c.put(lanes, row * n + col, v); },
                       rows.of(m0, m1, p0, p1));
  });
  rows.compare("on units", gemm_panels(n));
  compare("on units", c, m, n, k, am, bm);
}

// The same for a packed B of the type of A.
template <class T> static void check_packed_units(i64 m, i64 n, i64 k, Layout layout) {
  const i64 panels = gemm_panels(n);
  Guarded<T> a(extent(layout, m, k, 0)), b(k * n), packed(panels * k * kPanel, true);
  Guarded<char> scratch(gemm_packed_units_scratch_bytes(m, k), true);
  check_fill(a), check_fill(b);
  for (i64 p = 0; p < panels; ++p)
    for (i64 i = 0; i < k * kPanel; ++i) {
      i64 column = p * kPanel + i % kPanel;
      packed.data[p * k * kPanel + i] = column < n ? b.data[i / kPanel * n + column] : T{};
    }
  Matrix<T> am = view(a, layout, m, k, 0);
  Collected c(m * n);
  Rows rows(m);
  GemmPlan plan = gemm_plan(m, n, 64);
  plan.on_units = has_matrix_units();
  split(m, panels, check_random(0, 1), [&](i64 m0, i64 m1, i64 p0, i64 p1) {
    gemm_packed_units(plan, m0, m1, p0, p1, n, k, am, packed.data, scratch.data,
                      [&](i64 row, i64 col, auto lanes, auto v) { c.put(lanes, row * n + col, v); },
                      rows.of(m0, m1, p0, p1));
  });
  rows.compare("packed, on units", panels);
  compare("packed, on units", c, m, n, k, am, Matrix<T>{b.data, n, 1});
}

// Numbers of all magnitudes: sums are as near as those of ordinary instructions, and what is infinite, not a number or tiny
// is what they make of it.
static void check_unit_rounding(i64 m, i64 n, i64 k) {
  Guarded<f32> a(m * k), b(k * n), packed(gemm_panels(n) * k * kPanel, true);
  Guarded<char> scratch(gemm_packed_units_scratch_bytes(m, k), true);
  const auto number = [](int exponents) {
    return __builtin_ldexpf(f32(check_random(-8388607, 8388607)), check_random(-24 - exponents, -24 + exponents));
  };
  for (i64 i = 0; i < m * k; ++i) a.data[i] = number(i / k % 3 * 4);
  for (i64 i = 0; i < k * n; ++i) b.data[i] = number(3);
  // Rows of their own: of infinities, of what is none, of the largest, and of small numbers; and one of zeros.
  const f32 special[] = {__builtin_inff(), __builtin_nanf(""), 3.4e38f, 1e-37f};
  for (i64 s = 0; s < 4; ++s)
    for (i64 i = 0; i < k; ++i)
      if (s == 3 || i == k / 2) a.data[(7 + 11 * s) * k + i] = special[s] * (s == 3 ? 1 + 0.001f * f32(i) : 1);
  for (i64 i = 0; i < k; ++i) a.data[5 * k + i] = 0;
  for (i64 p = 0; p < gemm_panels(n); ++p)
    for (i64 i = 0; i < k * kPanel; ++i) {
      i64 column = p * kPanel + i % kPanel;
      packed.data[p * k * kPanel + i] = column < n ? b.data[i / kPanel * n + column] : 0;
    }
  Collected c(m * n), plain(m * n);
  GemmPlan plan = gemm_plan(m, n, 64);
  for (int on_units = 0; on_units < 2; ++on_units) {
    plan.on_units = on_units && has_matrix_units();
    gemm_packed_units(plan, 0, m, 0, gemm_panels(n), n, k, Matrix<f32>{a.data, k, 1}, packed.data, scratch.data,
                      [&](i64 row, i64 col, auto lanes, auto v) { (on_units ? c : plain).put(lanes, row * n + col, v); });
  }
  ++check_cases;
  double error = 0, plain_error = 0;
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) {
      double want = 0, all = 0;
      for (i64 l = 0; l < k; ++l) {
        const double product = double(a.data[i * k + l]) * double(b.data[l * n + j]);
        want += product, all += __builtin_fabs(product);
      }
      const double got = c.value[i * n + j], other = plain.value[i * n + j];
      if (__builtin_isfinite(other) && all > 0) {
        error = __builtin_fmax(error, __builtin_fabs(got - want) / all);
        plain_error = __builtin_fmax(plain_error, __builtin_fabs(other - want) / all);
      } else if (got != other && (got == got || other == other)) {
        return CHECK_FAIL("on units %ld x %ld x %ld at (%ld, %ld): %g, by vectors %g", (long)m, (long)n, (long)k, (long)i,
                          (long)j, got, other);
      }
    }
  // In which parts vectors add the depth up depends on the machine's caches, and so does what they err by. A product of planes that
  // is left out shows: the smallest of them makes seven times as much of the shortest sums.
  if (!(error <= 2 * plain_error))
    CHECK_FAIL("on units %ld x %ld x %ld: error %g of the sum of magnitudes, by vectors %g", (long)m, (long)n, (long)k, error,
               plain_error);
}

int main() {
  const i64 sizes[] = {0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 257};
  for (i64 m : sizes)
    for (i64 n : sizes)
      for (i64 k : sizes)
        if (m * n * k < 40000 || check_random(0, 15) == 0) check_packed<f32>(m, n, k, kRows, 0, false);
  // Every way to make tiles of rows.
  for (i64 m = 1; m < 72; ++m) check_packed<f32>(m, 35, 9, kRows, 0, false);
  for (int i = 0; i < 400; ++i) {
    i64 m = sizes[check_random(0, 16)], n = sizes[check_random(0, 16)], k = sizes[check_random(0, 16)];
    Layout la = Layout(check_random(0, 2)), lb = Layout(check_random(0, 2));
    check_packed<f32>(m, n, k, la, check_random(0, 5), i & 1);
    check_general<f32, f32>(m, n, k, la, lb, check_random(0, 5));
    check_dots<f32, f32>(m, n, k, check_random(0, 5));
    check_streams<f32, f32>(n, k);
    if (m * n * k > 300000) continue;
    check_streams<bf16, f16>(n, k), check_streams<f64, f64>(n, k);
    check_dots<bf16, f16>(m, n, k, check_random(0, 5)), check_dots<f64, f64>(m, n, k, check_random(0, 5));
    check_packed<f16>(m, n, k, la, 0, false), check_packed<f16, f16>(m, n, k, la, 0, false);
    check_packed<bf16, bf16>(m, n, k, la, check_random(0, 5), i & 1), check_general<bf16, f16>(m, n, k, la, lb, 0);
    check_any<f64, 8, f64>(m, n, k, la, lb), check_any<i32, 1, i8>(m, n, k, la, lb);
    check_any<i64, 4, i64>(m, n, k, la, lb), check_any<f32, 16, bf16>(m, n, k, la, lb);
  }
  check_packed<f32>(40, 70, 1024, kRows, 0, true), check_general<f32, f32>(40, 70, 1024, kRows, kColumns, 1024);
  for (i64 m = 1; m < 64; m += 1 + m / 2)
    check_packed<bf16, bf16>(m, 140, 2100, kRows, 0, true), check_packed<f16, f16>(m, 70, 1030, kRows, 0, false);
  check_packed<f32>(1, 70, 5000, kRows, 0, true), check_packed<f32>(60, 33, 5000, kRows, 0, false);
  // More columns than sums are kept of, and more rows than one chain has.
  check_streams<f32, f32>(2100, 1030), check_streams<f64, f64>(1025, 7);
  // More rows and panels than sums are kept of from chain to chain.
  check_packed<f32>(300, 170, 1100, kRows, 0, true), check_packed<bf16, bf16>(139, 70, 2048, kRows, 0, true);
  // Panels are widened once for many rows.
  check_packed<f32, bf16>(100, 70, 1500, kRows, 0, true), check_packed<f16, f16>(60, 40, 70, kColumns, 0, false);
  check_general<f32, f32>(300, 170, 1100, kColumns, kRows, 0), check_general<f32, f32>(139, 140, 2049, kRows, kColumns, 3);
  for (int i = 0; i < 60; ++i) {
    i64 m = sizes[check_random(0, 16)], n = sizes[check_random(0, 16)], k = sizes[check_random(0, 16)];
    Layout la = Layout(check_random(0, 2)), lb = Layout(check_random(0, 2));
    check_units<f32>(m, n, k, la, lb, check_random(0, 5));
    check_units<f16>(m, n, k, la, lb, 0), check_units<bf16>(m, n, k, la, lb, 3);
    check_packed_units<f16>(m, n, k, la), check_packed_units<bf16>(m, n, k, la);
  }
  check_units<f32>(70, 40, 2500, kRows, kColumns, 0), check_units<f32>(600, 33, 40, kRows, kRows, 0);
  check_unit_rounding(45, 40, 300), check_unit_rounding(100, 70, 64), check_unit_rounding(49, 33, 1100);
  for (int i = 0; i < 400; ++i) {
    i64 m = sizes[check_random(0, 16)], n = sizes[check_random(0, 16)], k = sizes[check_random(0, 16)];
    Layout la = Layout(check_random(0, 2)), lb = Layout(check_random(0, 2));
    check_packed<f64>(m, n, k, la, check_random(0, 5), i & 1);
    check_general<f64, f64>(m, n, k, la, lb, check_random(0, 5));
  }
  check_packed<f64>(40, 70, 512, kRows, 0, true), check_general<f64, f64>(40, 70, 512, kRows, kColumns, 512);
  check_packed<f64>(1, 70, 5000, kRows, 0, true), check_packed<f64>(60, 33, 5000, kRows, 0, false);
  check_few_columns<1>(), check_few_columns<5>(), check_few_columns<9>(), check_few_columns<16>(), check_few_columns<31>();
  check_wrapping();
  check_long_sums(1), check_long_sums(20);
  return check_end();
}
