// Speed of the matrix products of gemm.h: GFLOP/s per shape and percent of the measured multiply-add peak.
// Not run by the tests; build with the flags of generated code and run on a calm machine.
#include "aoti/gemm.h"
#include "bench.h"

using namespace aoti;

static void bench_packed(i64 m, i64 n, i64 k) {
  f32 *a = bench_floats(m * k), *b = bench_floats(gemm_panels(n) * kPanel * k), *c = bench_floats(m * n + 64);
  void *scratch = bench_floats(gemm_packed_scratch_bytes(m, k) / 4);
  double us = bench_best([&] {
    gemm_packed(0, m, 0, gemm_panels(n), n, k, Matrix<f32>{a, k, 1}, b, scratch,
                [&](i64 row, i64 col, auto lanes, auto sums) { bench_store(lanes, c + row * n + col, sums); });
  });
  bench_report("packed", m, n, k, us, 2.0 * m * n * k, 4.0 * n * k);
}

static void bench_general(i64 m, i64 n, i64 k, bool transposed) {
  f32 *a = bench_floats(m * k), *b = bench_floats(n * k), *c = bench_floats(m * n + 64);
  void *scratch = bench_floats(gemm_general_scratch_bytes(m, n, k) / 4);
  Matrix<f32> bm = transposed ? Matrix<f32>{b, 1, k} : Matrix<f32>{b, n, 1};
  double us = bench_best([&] {
    gemm_general(0, m, 0, gemm_panels(n), n, k, Matrix<f32>{a, k, 1}, bm, scratch,
                 [&](i64 row, i64 col, auto lanes, auto sums) { bench_store(lanes, c + row * n + col, sums); });
  });
  bench_report(transposed ? "A*B'" : "A*B", m, n, k, us, 2.0 * m * n * k, 4.0 * n * k);
}

int main() {
  bench_peak();
  bench_packed(1, 256, 784), bench_packed(1, 256, 256), bench_packed(1, 10, 256);
  const i64 rows[] = {1, 2, 3, 4, 7, 8, 14, 16, 32, 64, 128};
  for (i64 m : rows) bench_packed(m, 768, 768);
  bench_packed(1, 3072, 768), bench_packed(1, 768, 3072), bench_packed(128, 3072, 768), bench_packed(128, 768, 3072);
  bench_packed(256, 1024, 1024), bench_packed(512, 512, 512), bench_packed(1024, 1024, 1024);
  bench_packed(112, 64, 64), bench_packed(1000, 32, 32);
  for (int t = 0; t < 2; ++t)
    bench_general(1, 128, 64, t), bench_general(128, 128, 64, t), bench_general(128, 64, 128, t),
        bench_general(512, 512, 64, t);
}
