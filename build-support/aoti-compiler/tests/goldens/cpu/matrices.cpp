// Kernels of the model `matrices`, written by cargo-aoti.
#include "aoti/nest.h"
#include "aoti/gemm.h"
#include "aoti/gemm_stream.h"
#include "aoti/linalg.h"

#define AOTI_JOIN_(a, b) a##_##b
#define AOTI_JOIN(a, b) AOTI_JOIN_(a, b)
#define AOTI_LEVEL_NAME(name) AOTI_JOIN(name, AOTI_LEVEL_NS)

using namespace aoti;

static AOTI_NOINLINE void k_turned(const Run &run, const f32 *in0, f32 *out0, i64 s0) {
  (void)run;
  parallel(run, 4 * s0, loop_grain(run, 16384, 12), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit / (4);
      (void)i0;
      const i64 i1 = unit % (4);
      (void)i1;
      over<AOTI_LANES, 6>(0, 6, [&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
        (void)lanes, (void)slot;
        const auto stage0_t0 = load_every<4>(lanes, in0 + (24 * i0 + i1 + 4 * i2));
        store(lanes, out0 + (24 * i0 + 6 * i1 + i2), stage0_t0);
      });
    }
  });
}

static AOTI_NOINLINE void k_square(const Run &run, const f32 *in0, const f32 *in1, f32 *out0, i64 s0) {
  (void)run;
  const i64 m = 4, n = 4, k = 6;
  parallel(run, s0, grain(run, 65536, 96), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit / (1) % (s0);
      (void)i0;
      const Matrix<f32> a{in0 + (24 * i0), 6, 1};
      const Matrix<f32> b{in1 + (24 * i0), 4, 1};
      const auto epilogue = [=, &run](i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i1, (void)i2;
        const auto t0 = sum;
        store(lanes, out0 + (16 * i0 + 4 * i1 + i2), t0);
      };
      gemm_stream<4>(0, m, 0, gemm_panels(n), n, k, a, b, run.scratch + worker * (32768), epilogue);
    }
  });
}

static AOTI_NOINLINE void k_lu(const Run &run, const f32 *in0, f32 *out0, i64 *out1, i64 *out2, i64 s0) {
  (void)run;
  matrices<linalg::Lu>(run, run.scratch, 0, s0, 6, 4, in0, out0, out1, out2);
}

static AOTI_NOINLINE void k_l(const Run &run, const f32 *in0, f32 *out0, i64 *out1, i64 s0) {
  (void)run;
  matrices<linalg::Cholesky>(run, run.scratch, 0, s0, 4, 4, in0, out0, out1);
}

static AOTI_NOINLINE void k_y(const Run &run, const f32 *in0, const f32 *in1, f32 *out0, i64 s0) {
  (void)run;
  matrices<linalg::SolveLower>(run, run.scratch, 0, s0, 4, 6, in0, in1, out0);
}

static AOTI_NOINLINE void k_packed(const Run &run, const f32 *in0, f32 *out0, f32 *out1, i64 s0) {
  (void)run;
  matrices<linalg::Qr>(run, run.scratch, 64, s0, 6, 4, in0, out0, out1);
}

static AOTI_NOINLINE void k_q(const Run &run, const f32 *in0, const f32 *in1, f32 *out0, i64 s0) {
  (void)run;
  matrices<linalg::Reflections>(run, run.scratch, 64, s0, 6, 4, in0, in1, out0);
}

static AOTI_NOINLINE void k_w(const Run &run, const f32 *in0, f32 *out0, f32 *out1, i64 s0) {
  (void)run;
  matrices<linalg::Eigh>(run, run.scratch, 64, s0, 4, 4, in0, out0, out1);
}

static AOTI_NOINLINE void k_left(const Run &run, const f32 *in0, f32 *out0, f32 *out1, f32 *out2, i64 s0) {
  (void)run;
  matrices<linalg::Svd>(run, run.scratch, 192, s0, 6, 4, in0, out0, out1, out2);
}

static AOTI_NOINLINE void k_e(const Run &run, const f32 *in0, f32 *out0, f32 *out1, i64 s0) {
  (void)run;
  matrices<linalg::Eig>(run, run.scratch, 384, s0, 4, 4, in0, out0, out1);
}

static AOTI_NOINLINE void k_across(const Run &run, const f32 *in0, f32 *out0) {
  (void)run;
  for (i64 i0 = 0; i0 < 2; ++i0) {
    for (i64 i1 = 0; i1 < 12; ++i1) {
      over<AOTI_LANES, 20>(0, 20, [&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
        (void)lanes, (void)slot;
        const auto stage0_t0 = load_every<12>(lanes, in0 + (240 * i0 + i1 + 12 * i2));
        store(lanes, out0 + (240 * i0 + 20 * i1 + i2), stage0_t0);
      });
    }
  }
}

static AOTI_NOINLINE void k_normal(const Run &run, const f32 *in0, const f32 *in1, f32 *out0) {
  (void)run;
  const i64 m = 12, n = 12, k = 20;
  parallel(run, 2, grain(run, 65536, 2880), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit / (1) % (2);
      (void)i0;
      const Matrix<f32> a{in0 + (240 * i0), 20, 1};
      const Matrix<f32> b{in1 + (240 * i0), 12, 1};
      const auto epilogue = [=, &run](i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i1, (void)i2;
        const auto t0 = sum;
        store(lanes, out0 + (144 * i0 + 12 * i1 + i2), t0);
      };
      gemm_general<12, 12>(0, m, 0, gemm_panels(n), n, k, a, b, run.scratch + worker * (4864), epilogue);
    }
  });
}

static AOTI_NOINLINE void k_wide_lu(const Run &run, const f32 *in0, f32 *out0, i64 *out1, i64 *out2) {
  (void)run;
  matrices<linalg::Lu>(run, run.scratch, 0, 2, 20, 12, in0, out0, out1, out2);
}

static AOTI_NOINLINE void k_wide_l(const Run &run, const f32 *in0, f32 *out0, i64 *out1) {
  (void)run;
  matrices<linalg::Cholesky>(run, run.scratch, 0, 2, 12, 12, in0, out0, out1);
}

static AOTI_NOINLINE void k_wide_y(const Run &run, const f32 *in0, const f32 *in1, f32 *out0) {
  (void)run;
  matrices<linalg::SolveLower>(run, run.scratch, 0, 2, 12, 20, in0, in1, out0);
}

static AOTI_NOINLINE void k_wide_packed(const Run &run, const f32 *in0, f32 *out0, f32 *out1) {
  (void)run;
  matrices<linalg::Qr>(run, run.scratch, 64, 2, 20, 12, in0, out0, out1);
}

static AOTI_NOINLINE void k_wide_q(const Run &run, const f32 *in0, const f32 *in1, f32 *out0) {
  (void)run;
  matrices<linalg::Reflections>(run, run.scratch, 64, 2, 20, 12, in0, in1, out0);
}

static AOTI_NOINLINE void k_wide_w(const Run &run, const f32 *in0, f32 *out0, f32 *out1) {
  (void)run;
  matrices<linalg::Eigh>(run, run.scratch, 576, 2, 12, 12, in0, out0, out1);
}

static AOTI_NOINLINE void k_wide_left(const Run &run, const f32 *in0, f32 *out0, f32 *out1, f32 *out2) {
  (void)run;
  matrices<linalg::Svd>(run, run.scratch, 1536, 2, 20, 12, in0, out0, out1, out2);
}

static AOTI_NOINLINE void k_wide_e(const Run &run, const f32 *in0, f32 *out0, f32 *out1) {
  (void)run;
  matrices<linalg::Eig>(run, run.scratch, 2560, 2, 12, 12, in0, out0, out1);
}

extern "C" int32_t AOTI_LEVEL_NAME(aoti_matrices_run)(const Run &run) {
  (void)run;
  i64 s0 = run.symbols[0];
  call(run, 0, k_turned, input<f32>(run, 0), arena<f32>(run, 64 * s0), s0);
  call(run, 1, k_square, arena<f32>(run, 64 * s0), input<f32>(run, 0), arena<f32>(run, 0), s0);
  call(run, 2, k_lu, input<f32>(run, 0), output<f32>(run, 8), output<i64>(run, 9), arena<i64>(run, 64 * s0 + 64 * floor_div(3 * s0 + 1, 2)), s0);
  call(run, 3, k_l, arena<f32>(run, 0), arena<f32>(run, 64 * s0 + 64 * floor_div(3 * s0 + 1, 2)), output<i64>(run, 10), s0);
  call(run, 4, k_y, arena<f32>(run, 64 * s0 + 64 * floor_div(3 * s0 + 1, 2)), arena<f32>(run, 64 * s0), output<f32>(run, 11), s0);
  call(run, 5, k_packed, input<f32>(run, 0), arena<f32>(run, 64 * s0), arena<f32>(run, 64 * s0 + 64 * floor_div(3 * s0 + 1, 2)), s0);
  call(run, 6, k_q, arena<f32>(run, 64 * s0), arena<f32>(run, 64 * s0 + 64 * floor_div(3 * s0 + 1, 2)), output<f32>(run, 12), s0);
  call(run, 7, k_w, arena<f32>(run, 0), output<f32>(run, 13), arena<f32>(run, 64 * s0), s0);
  call(run, 8, k_left, input<f32>(run, 0), arena<f32>(run, 64 * s0), output<f32>(run, 14), arena<f32>(run, 64 * s0 + 64 * floor_div(3 * s0 + 1, 2)), s0);
  call(run, 9, k_e, arena<f32>(run, 0), output<f32>(run, 15), arena<f32>(run, 64 * s0), s0);
  call(run, 10, k_across, input<f32>(run, 1), arena<f32>(run, 1152));
  call(run, 11, k_normal, arena<f32>(run, 1152), input<f32>(run, 1), arena<f32>(run, 0));
  call(run, 12, k_wide_lu, input<f32>(run, 1), output<f32>(run, 0), output<i64>(run, 1), arena<i64>(run, 3072));
  call(run, 13, k_wide_l, arena<f32>(run, 0), output<f32>(run, 2), arena<i64>(run, 3072));
  call(run, 14, k_wide_y, output<f32>(run, 2), arena<f32>(run, 1152), output<f32>(run, 3));
  call(run, 15, k_wide_packed, input<f32>(run, 1), arena<f32>(run, 1152), arena<f32>(run, 3072));
  call(run, 16, k_wide_q, arena<f32>(run, 1152), arena<f32>(run, 3072), output<f32>(run, 4));
  call(run, 17, k_wide_w, arena<f32>(run, 0), output<f32>(run, 5), arena<f32>(run, 1152));
  call(run, 18, k_wide_left, input<f32>(run, 1), arena<f32>(run, 1152), output<f32>(run, 6), arena<f32>(run, 3072));
  call(run, 19, k_wide_e, arena<f32>(run, 0), output<f32>(run, 7), arena<f32>(run, 1152));
  return 0;
}

extern "C" int64_t AOTI_LEVEL_NAME(aoti_matrices_scratch)(const int64_t *symbols, int64_t threads) {
  (void)symbols, (void)threads;
  i64 bytes = 0;
  bytes = max_i64(bytes, threads * (64));
  bytes = max_i64(bytes, threads * (192));
  bytes = max_i64(bytes, threads * (384));
  bytes = max_i64(bytes, threads * (576));
  bytes = max_i64(bytes, threads * (1536));
  bytes = max_i64(bytes, threads * (2560));
  bytes = max_i64(bytes, threads * (4864));
  bytes = max_i64(bytes, threads * (32768));
  return bytes;
}
