// Kernels of the model `order`, written by cargo-aoti.
#include "aoti/nest.h"
#include "aoti/rows.h"
#include "aoti/nth_element.h"
#include "aoti/scan.h"

#define AOTI_JOIN_(a, b) a##_##b
#define AOTI_JOIN(a, b) AOTI_JOIN_(a, b)
#define AOTI_LEVEL_NAME(name) AOTI_JOIN(name, AOTI_LEVEL_NS)

using namespace aoti;

static AOTI_NOINLINE void k_sorted(const Run &run, const f32 *in0, f32 *out0, i64 *out1) {
  (void)run;
  sort_rows<f32, false>(run, in0, out0, out1, 2, 9000, 1, 9000);
}

static AOTI_NOINLINE void k_top(const Run &run, const f64 *in0, f64 *out0, i64 *out1) {
  (void)run;
  sort_rows<f64, true>(run, in0, out0, out1, 3, 9000, 1, 5);
}

static AOTI_NOINLINE void k_least(const Run &run, const i64 *in0, i64 *out0, i64 *out1) {
  (void)run;
  sort_rows<i64, false>(run, in0, out0, out1, 1, 5000, 2, 3000);
}

static AOTI_NOINLINE void k_short(const Run &run, const f16 *in0, f16 *out0, i64 *out1) {
  (void)run;
  sort_rows<f16, true>(run, in0, out0, out1, 300, 20, 1, 20);
}

static AOTI_NOINLINE void k_only(const Run &run, const f16 *in0, f16 *out0, i64 *out1) {
  (void)run;
  nth_elements<f16, false>(run, in0, 10, out0, out1, 300, 20, 1);
}

static AOTI_NOINLINE void k_nth(const Run &run, const f32 *in0, const i64 *in1, f32 *out0, i64 *out1) {
  (void)run;
  nth_elements<f32, true>(run, in0, in1, out0, out1, 2, 9000, 1);
}

static AOTI_NOINLINE void k_running(const Run &run, const bf16 *in0, bf16 *out0, i64 *out1) {
  (void)run;
  scan_extreme<ScanMax, bf16>(run, in0, out0, out1, 1, 40000, 1);
}

extern "C" int32_t AOTI_LEVEL_NAME(aoti_order_run)(const Run &run) {
  (void)run;
  call(run, 0, k_sorted, input<f32>(run, 0), output<f32>(run, 0), output<i64>(run, 1));
  call(run, 1, k_top, input<f64>(run, 1), output<f64>(run, 2), output<i64>(run, 3));
  call(run, 2, k_least, input<i64>(run, 2), output<i64>(run, 4), output<i64>(run, 5));
  call(run, 3, k_short, input<f16>(run, 4), output<f16>(run, 6), output<i64>(run, 7));
  call(run, 4, k_only, input<f16>(run, 4), output<f16>(run, 8), output<i64>(run, 9));
  call(run, 5, k_nth, input<f32>(run, 0), input<i64>(run, 5), output<f32>(run, 10), output<i64>(run, 11));
  call(run, 6, k_running, input<bf16>(run, 3), output<bf16>(run, 12), output<i64>(run, 13));
  return 0;
}

extern "C" int64_t AOTI_LEVEL_NAME(aoti_order_scratch)(const int64_t *symbols, int64_t threads) {
  (void)symbols, (void)threads;
  i64 bytes = 0;
  bytes = max_i64(bytes, threads * (128));
  bytes = max_i64(bytes, threads * (320));
  bytes = max_i64(bytes, threads * (108032));
  bytes = max_i64(bytes, threads * (144000));
  bytes = max_i64(bytes, threads * (160000));
  bytes = max_i64(bytes, threads * (288000));
  return bytes;
}
