// Kernels of the model `narrow`, written by cargo-aoti.
#include "aoti/nest.h"
#include "aoti/gemm.h"
#include "aoti/dots.h"
#include "aoti/gemm_stream.h"
#include "aoti/contract_any.h"

#define AOTI_JOIN_(a, b) a##_##b
#define AOTI_JOIN(a, b) AOTI_JOIN_(a, b)
#define AOTI_LEVEL_NAME(name) AOTI_JOIN(name, AOTI_LEVEL_NS)

using namespace aoti;

static AOTI_NOINLINE void k_one(const Run &run, const bf16 *in0, const i8 *in1, const bf16 *in2, bf16 *out0) {
  (void)run;
  const i64 m = 1, n = 80, k = 192;
  const Matrix<bf16> a{in0, 192, 1};
  const i8 *const b = (const i8 *)in1;
  const auto epilogue = [=, &run](i64 i0, i64 i1, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1;
    const auto t0 = sum;
    const auto t1 = load(lanes, in2 + i1);
    const auto t2 = t0 * t1;
    store(lanes, out0 + i1, t2);
  };
  const bool by_rows = m >= 64;
  const i64 units = by_rows ? m : gemm_panels(n), least = by_rows ? kGemmRowsOf<1> : 1;
  parallel(run, units, max_i64(grain_of(run, 65536, units, 15360), least), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    const i64 m0 = by_rows ? begin : 0, m1 = by_rows ? end : m;
    const i64 p0 = by_rows ? 0 : begin, p1 = by_rows ? gemm_panels(n) : end;
    gemm_packed<1>(m0, m1, p0, p1, n, k, a, b, run.scratch + worker * (832), epilogue);
  });
}

static AOTI_NOINLINE void k_few(const Run &run, const f16 *in0, const i8 *in1, f16 *out0) {
  (void)run;
  const i64 m = 3, n = 48, k = 200;
  const Matrix<f16> a{in0, 200, 1};
  const i8 *const b = (const i8 *)in1;
  const auto epilogue = [=, &run](i64 i0, i64 i1, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1;
    const auto t0 = sum;
    store(lanes, out0 + (48 * i0 + i1), t0);
  };
  const bool by_rows = m >= 64;
  const i64 units = by_rows ? m : gemm_panels(n), least = by_rows ? kGemmRowsOf<3> : 1;
  parallel(run, units, max_i64(grain_of(run, 65536, units, 28800), least), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    const i64 m0 = by_rows ? begin : 0, m1 = by_rows ? end : m;
    const i64 p0 = by_rows ? 0 : begin, p1 = by_rows ? gemm_panels(n) : end;
    gemm_packed<3>(m0, m1, p0, p1, n, k, a, b, run.scratch + worker * (2688), epilogue);
  });
}

static AOTI_NOINLINE void k_skinny(const Run &run, const f32 *in0, const bf16 *in1, f32 *out0) {
  (void)run;
  const i64 m = 12, n = 64, k = 96;
  const Matrix<f32> a{in0, 96, 1};
  const bf16 *const b = (const bf16 *)in1;
  const auto epilogue = [=, &run](i64 i0, i64 i1, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1;
    const auto t0 = sum;
    store(lanes, out0 + (64 * i0 + i1), t0);
  };
  const bool by_rows = m >= 64;
  const i64 units = by_rows ? m : gemm_panels(n), least = by_rows ? kGemmRowsOf<12> : 1;
  parallel(run, units, max_i64(grain_of(run, 65536, units, 73728), least), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    const i64 m0 = by_rows ? begin : 0, m1 = by_rows ? end : m;
    const i64 p0 = by_rows ? 0 : begin, p1 = by_rows ? gemm_panels(n) : end;
    gemm_packed<12>(m0, m1, p0, p1, n, k, a, b, run.scratch + worker * (12288), epilogue);
  });
}

static AOTI_NOINLINE void k_whole(const Run &run, const i32 *in0, const i32 *in1, i32 *out0) {
  (void)run;
  const i64 m = 1, n = 40, k = 128;
  const Matrix<i32> a{in0, 128, 1};
  const Matrix<i32> b{in1, 40, 1};
  const auto epilogue = [=, &run](i64 i0, i64 i1, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1;
    const auto t0 = cast<i32>(sum);
    store(lanes, out0 + (40 * i0 + i1), t0);
  };
  parallel(run, m, grain(run, 65536, 5120), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    gemm_any<i32, AOTI_LANES>(begin, end, n, k, a, b, epilogue);
  });
}

static AOTI_NOINLINE void k_plain(const Run &run, const bf16 *in0, const bf16 *in1, bf16 *out0) {
  (void)run;
  const i64 m = 1, n = 48, k = 192;
  const Matrix<bf16> a{in0, 192, 1};
  const f32 *const b = (const f32 *)in1;
  const auto epilogue = [=, &run](i64 i0, i64 i1, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1;
    const auto t0 = sum;
    store(lanes, out0 + (48 * i0 + i1), t0);
  };
  const bool by_rows = m >= 64;
  const i64 units = by_rows ? m : gemm_panels(n), least = by_rows ? kGemmRowsOf<1> : 1;
  parallel(run, units, max_i64(grain_of(run, 65536, units, 9216), least), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    const i64 m0 = by_rows ? begin : 0, m1 = by_rows ? end : m;
    const i64 p0 = by_rows ? 0 : begin, p1 = by_rows ? gemm_panels(n) : end;
    gemm_packed<1>(m0, m1, p0, p1, n, k, a, b, run.scratch + worker * (832), epilogue);
  });
}

static AOTI_NOINLINE void k_we(const Run &run, const f8e4m3fn *in0, f32 *out0) {
  (void)run;
  over<AOTI_LANES, 6144>(0, 6144, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i1);
    const auto stage0_t1 = stage0_t0;
    store(lanes, out0 + i1, stage0_t1);
  });
}

static AOTI_NOINLINE void k_eighth(const Run &run, const f32 *in0, const f32 *in1, f32 *out0) {
  (void)run;
  const i64 m = 1, n = 64, k = 96;
  const Matrix<f32> a{in0, 96, 1};
  const Matrix<f32> b{in1, 64, 1};
  const auto epilogue = [=, &run](i64 i0, i64 i1, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1;
    const auto t0 = sum;
    store(lanes, out0 + (64 * i0 + i1), t0);
  };
  const bool by_rows = m >= 64;
  const i64 units = by_rows ? m : gemm_panels(n), least = by_rows ? kGemmRowsOf<1> : 1;
  parallel(run, units, max_i64(grain_of(run, 65536, units, 6144), least), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    const i64 m0 = by_rows ? begin : 0, m1 = by_rows ? end : m;
    const i64 p0 = by_rows ? 0 : begin, p1 = by_rows ? gemm_panels(n) : end;
    gemm_stream<1>(m0, m1, p0, p1, n, k, a, b, run.scratch + worker * (8192), epilogue);
  });
}

static AOTI_NOINLINE void k_units(const Run &run, const f16 *in0, const i8 *in1, f16 *out0) {
  (void)run;
  const i64 m = 12, n = 80, k = 192;
  const Matrix<f16> a{in0, 192, 1};
  const i8 *const b = (const i8 *)in1;
  const auto epilogue = [=, &run](i64 i0, i64 i1, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1;
    const auto t0 = sum;
    store(lanes, out0 + (80 * i0 + i1), t0);
  };
  const bool by_rows = m >= 64;
  const i64 units = by_rows ? m : gemm_panels(n), least = by_rows ? kGemmRowsOf<12> : 1;
  parallel(run, units, max_i64(grain_of(run, 65536, units, 184320), least), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    const i64 m0 = by_rows ? begin : 0, m1 = by_rows ? end : m;
    const i64 p0 = by_rows ? 0 : begin, p1 = by_rows ? gemm_panels(n) : end;
    gemm_packed<12>(m0, m1, p0, p1, n, k, a, b, run.scratch + worker * (34560), epilogue);
  });
}

static AOTI_NOINLINE void k_rows(const Run &run, const bf16 *in0, const bf16 *in1, bf16 *out0) {
  (void)run;
  const i64 m = 7, n = 64, k = 192;
  const Matrix<bf16> a{in0, 192, 1};
  const f32 *const b = (const f32 *)in1;
  const auto epilogue = [=, &run](i64 i0, i64 i1, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1;
    const auto t0 = sum;
    store(lanes, out0 + (64 * i0 + i1), t0);
  };
  const bool by_rows = m >= 64;
  const i64 units = by_rows ? m : gemm_panels(n), least = by_rows ? kGemmRowsOf<7> : 1;
  parallel(run, units, max_i64(grain_of(run, 65536, units, 86016), least), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    const i64 m0 = by_rows ? begin : 0, m1 = by_rows ? end : m;
    const i64 p0 = by_rows ? 0 : begin, p1 = by_rows ? gemm_panels(n) : end;
    gemm_packed<7>(m0, m1, p0, p1, n, k, a, b, run.scratch + worker * (5824), epilogue);
  });
}

static AOTI_NOINLINE void k_wide(const Run &run, const f16 *in0, f32 *out0) {
  (void)run;
  over<AOTI_LANES, 1680>(0, 1680, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i1);
    const auto stage0_t1 = exp(stage0_t0);
    const auto stage0_t2 = stage0_t1;
    store(lanes, out0 + i1, stage0_t2);
  });
}

static AOTI_NOINLINE void k_half(const Run &run, const f32 *in0, const f32 *in1, f32 *out0) {
  (void)run;
  const i64 m = 1, n = 70, k = 24;
  const Matrix<f32> a{in0, 96, 1};
  const Matrix<f32> b{in1, 1, 24};
  const auto epilogue = [=, &run](i64 i0, i64 i1, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1;
    const auto t0 = sum;
    store(lanes, out0 + (70 * i0 + i1), t0);
  };
  const bool by_rows = m >= 64;
  const i64 units = by_rows ? m : gemm_panels(n), least = by_rows ? kGemmRowsOf<1> : 1;
  parallel(run, units, max_i64(grain_of(run, 65536, units, 1680), least), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    const i64 m0 = by_rows ? begin : 0, m1 = by_rows ? end : m;
    const i64 p0 = by_rows ? 0 : begin, p1 = by_rows ? gemm_panels(n) : end;
    gemm_dots(m0, m1, p0, p1, n, k, a, b, nullptr, epilogue);
  });
}

static AOTI_NOINLINE void k_groups(const Run &run, const f32 *in0, const f32 *in1, f32 *out0) {
  (void)run;
  const i64 m = 1, n = 48, k = 40;
  parallel(run, 3, grain(run, 65536, 1920), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit / (1) % (3);
      (void)i0;
      const Matrix<f32> a{in0 + (40 * i0), 40, 1};
      const Matrix<f32> b{in1 + (1920 * i0), 48, 1};
      const auto epilogue = [=, &run](i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i1, (void)i2;
        const auto t0 = sum;
        store(lanes, out0 + (48 * i0 + 48 * i1 + i2), t0);
      };
      gemm_stream<1>(0, m, 0, gemm_panels(n), n, k, a, b, run.scratch + worker * (8192), epilogue);
    }
  });
}

extern "C" int32_t AOTI_LEVEL_NAME(aoti_narrow_run)(const Run &run) {
  (void)run;
  call(run, 0, k_one, input<bf16>(run, 0), weights<i8>(run, 0), weights<bf16>(run, 18432), output<bf16>(run, 0));
  call(run, 1, k_few, input<f16>(run, 3), weights<i8>(run, 18624), output<f16>(run, 1));
  call(run, 2, k_skinny, input<f32>(run, 4), weights<bf16>(run, 31424), output<f32>(run, 2));
  call(run, 3, k_whole, input<i32>(run, 5), weights<i32>(run, 43712), output<i32>(run, 3));
  call(run, 4, k_plain, input<bf16>(run, 0), weights<bf16>(run, 64192), output<bf16>(run, 4));
  call(run, 5, k_we, input<f8e4m3fn>(run, 6), arena<f32>(run, 0));
  call(run, 6, k_eighth, input<f32>(run, 4), arena<f32>(run, 0), output<f32>(run, 5));
  call(run, 7, k_units, input<f16>(run, 1), weights<i8>(run, 113344), output<f16>(run, 7));
  call(run, 8, k_rows, input<bf16>(run, 2), weights<bf16>(run, 131776), output<bf16>(run, 8));
  call(run, 9, k_wide, input<f16>(run, 7), arena<f32>(run, 0));
  call(run, 10, k_half, input<f32>(run, 4), arena<f32>(run, 0), output<f32>(run, 6));
  call(run, 11, k_groups, input<f32>(run, 8), weights<f32>(run, 180928), output<f32>(run, 9));
  return 0;
}

extern "C" int64_t AOTI_LEVEL_NAME(aoti_narrow_scratch)(const int64_t *symbols, int64_t threads) {
  (void)symbols, (void)threads;
  i64 bytes = 0;
  bytes = max_i64(bytes, threads * (832));
  bytes = max_i64(bytes, threads * (2688));
  bytes = max_i64(bytes, threads * (5824));
  bytes = max_i64(bytes, threads * (8192));
  bytes = max_i64(bytes, threads * (12288));
  bytes = max_i64(bytes, threads * (34560));
  return bytes;
}
