// Matrix products of gemm_blas.h against plain loops: with libraries that are plain loops themselves, with one
// that refuses, and with none.
#include "aoti/gemm_blas.h"
#include "check.h"

using namespace aoti;

static int calls, threads = 3;
static bool refuses;

// What CBLAS says that its products are.
template <class T>
static void plain(int order, int turn_a, int turn_b, int m, int n, int k, T alpha, const T *a, int a_pitch, const T *b, int b_pitch,
                  T beta, T *c, int c_pitch) {
  ++calls;
  if (order != kBlasRowMajor || beta != 0 || a_pitch < (turn_a == kBlasTurned ? m : k) ||
      b_pitch < (turn_b == kBlasTurned ? k : n) || c_pitch < n)
    return CHECK_FAIL("a library would refuse %d x %d x %d", m, n, k);
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) {
      T sum = 0;
      for (i64 l = 0; l < k; ++l)
        sum += (turn_a == kBlasTurned ? a[l * a_pitch + i] : a[i * a_pitch + l]) *
               (turn_b == kBlasTurned ? b[j * b_pitch + l] : b[l * b_pitch + j]);
      c[i * c_pitch + j] = alpha * sum;
    }
}

// What oneDNN says, which has rows alone, and may refuse; here it starts threads unless it is told not to.
static int plain_onednn(char turn_a, char turn_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t a_pitch,
                        const float *b, int64_t b_pitch, float beta, float *c, int64_t c_pitch) {
  if (threads != 1) CHECK_FAIL("the library would start %d threads", threads);
  const auto turn = [](char word) { return word == 'T' ? kBlasTurned : kBlasAsItIs; };
  plain(kBlasRowMajor, turn(turn_a), turn(turn_b), int(m), int(n), int(k), alpha, a, int(a_pitch), b, int(b_pitch), beta, c,
        int(c_pitch));
  return refuses;
}

// Rows of `rows` x `columns`, or columns, a distance apart; or neither side by side.
enum Layout { kRows, kColumns, kNeither };
template <class T> static Matrix<T> view(const Guarded<T> &own, Layout layout, i64 rows, i64 columns, i64 extra) {
  if (layout == kRows) return {own.data, columns + extra, 1};
  if (layout == kColumns) return {own.data, 1, rows + extra};
  return {own.data, 2 * columns, 2};
}
static i64 extent(Layout layout, i64 rows, i64 columns, i64 extra) {
  if (layout == kRows) return (rows - 1) * (columns + extra) + columns;
  if (layout == kColumns) return (columns - 1) * (rows + extra) + rows;
  return (rows - 1) * 2 * columns + (columns - 1) * 2 + 1;
}

template <class Library, class T>
static void check_product(i64 m, i64 n, i64 k, Layout la, Layout lb, i64 extra, bool has_library) {
  Guarded<T> a(extent(la, m, k, extra)), b(extent(lb, k, n, extra));
  Guarded<char> scratch(gemm_blas_scratch_bytes<T>(m, n, k), true);
  check_fill(a), check_fill(b);
  opened_blas_1 = has_library ? OpenBlas{plain<f32>, plain<f64>} : OpenBlas{};
  opened_onednn_1 = has_library ? OneDnn{plain_onednn, [] { return threads; }, [](int number) { threads = number; }} : OneDnn{};
  const Matrix<T> am = view(a, la, m, k, extra), bm = view(b, lb, k, n, extra);
  Collected c(m * n);
  calls = 0;
  const i64 tiles = gemm_blas_tiles<T>(m, n);
  for (i64 tile = 0; tile < tiles; ++tile)
    gemm_blas<Library>(tile, m, n, k, am, bm, scratch.data,
              [&](i64 row, i64 column, auto lanes, auto v) { c.put(lanes, row * n + column, v); });
  ++check_cases;
  if (threads != 3) return CHECK_FAIL("the library was left with %d threads", threads);
  const bool is_asked = has_library && la != kNeither && lb != kNeither;
  if (calls != (is_asked ? tiles : 0)) return CHECK_FAIL("the library was called %d times for %ld tiles", calls, (long)tiles);
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) {
      double want = 0;
      for (i64 l = 0; l < k; ++l)
        want += check_value(am.data[i * am.row_stride + l * am.col_stride]) *
                check_value(bm.data[l * bm.row_stride + j * bm.col_stride]);
      if (!check_same(c, i * n + j, want))
        return CHECK_FAIL("%ld x %ld x %ld at (%ld, %ld): %g, written %d times, want %g", (long)m, (long)n, (long)k, (long)i,
                          (long)j, c.value[i * n + j], c.times[i * n + j], want);
    }
}

int main() {
  const i64 rows[] = {1, 15, 16, 33, 193, 400}, columns[] = {2, 31, 64, 257, 1025, 2100}, depths[] = {2, 7, 40};
  for (int i = 0; i < 120; ++i) {
    const i64 m = rows[check_random(0, 5)], n = columns[check_random(0, 5)], k = depths[check_random(0, 2)];
    const Layout la = Layout(check_random(0, 2)), lb = Layout(check_random(0, 2));
    const i64 extra = check_random(0, 5);
    refuses = i % 2;
    check_product<OpenBlas, f32>(m, n, k, la, lb, extra, i % 3), check_product<OpenBlas, f64>(m, n, k, la, lb, extra, i % 3);
    check_product<OneDnn, f32>(m, n, k, la, lb, extra, i % 3);
  }
  return check_end();
}
