// Kernels of the model `kernels`, written by cargo-aoti.
#include "aoti/nest.h"
#include "aoti/gemm.h"
#include "aoti/gemm_units.h"
#include "aoti/conv.h"
#include "aoti/contract_any.h"
#include "aoti/rows.h"
#include "aoti/scan.h"

#define AOTI_JOIN_(a, b) a##_##b
#define AOTI_JOIN(a, b) AOTI_JOIN_(a, b)
#define AOTI_LEVEL_NAME(name) AOTI_JOIN(name, AOTI_LEVEL_NS)

using namespace aoti;

static AOTI_NOINLINE void k_chain(const Run &run, const f32 *in0, f32 *out0) {
  (void)run;
  constexpr i64 chunk = 1024;
  const i64 extent = 100003;
  parallel(run, ceil_div(extent, chunk), loop_grain(run, 16384, 4096), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    over<AOTI_LANES, 100003>(begin * chunk, min_i64(end * chunk, extent), [&](auto lanes, i64 i0, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i0);
      const auto stage0_t1 = tanh(stage0_t0);
      const auto stage0_t2 = stage0_t0 * stage0_t1;
      store(lanes, out0 + i0, stage0_t2);
    });
  });
}

static AOTI_NOINLINE void k_half(const Run &run, const f16 *in0, f16 *out0) {
  (void)run;
  constexpr i64 chunk = 1024;
  const i64 extent = 64000;
  parallel(run, ceil_div(extent, chunk), loop_grain(run, 16384, 5120), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    over<AOTI_LANES, 64000>(begin * chunk, min_i64(end * chunk, extent), [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = stage0_t0;
      const auto stage0_t2 = sigmoid(stage0_t1);
      store(lanes, out0 + i1, stage0_t2);
    });
  });
}

static AOTI_NOINLINE void k_top(const Run &run, const f32 *in0, i64 *out0, f32 *out1) {
  (void)run;
  parallel(run, 37, loop_grain(run, 16384, 8004), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    char *const scratch = run.scratch + worker * (4032);
    f32 *const row0 = (f32 *)(scratch + 0);
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit;
      (void)i0;
      MaxAccumulator<f32, AOTI_LANES> accumulator0;
      ArgAccumulator<f32, AOTI_LANES, true> accumulator2;
      over_slots<AOTI_LANES, 1000>([&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
        (void)lanes, (void)slot;
        const auto stage0_t0 = load(lanes, in0 + (1000 * i0 + i1));
        accumulator0.add(lanes, slot, stage0_t0);
        accumulator2.add(lanes, slot, stage0_t0, iota(lanes, i1));
      });
      const auto stage1_t0 = accumulator0.result();
      const auto stage1_t1 = accumulator2.result();
      store(Full<1>{}, out0 + i0, stage1_t1);
      SumAccumulator<f32, AOTI_LANES> accumulator1;
      const auto stage2_t1 = stage1_t0;
      over_slots<AOTI_LANES, 1000>([&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
        (void)lanes, (void)slot;
        const auto stage2_t0 = load(lanes, in0 + (1000 * i0 + i1));
        const auto stage2_v1 = spread(lanes, stage2_t1);
        const auto stage2_t2 = stage2_t0 - stage2_v1;
        const auto stage2_t3 = exp(stage2_t2);
        store(lanes, row0 + i1, stage2_t3);
        accumulator1.add(lanes, slot, stage2_t3);
      });
      const auto stage3_t0 = accumulator1.result();
      const auto stage4_t1 = stage3_t0;
      over<AOTI_LANES, 1000>(0, 1000, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
        (void)lanes, (void)slot;
        const auto stage4_t0 = load(lanes, row0 + i1);
        const auto stage4_v1 = spread(lanes, stage4_t1);
        const auto stage4_t2 = stage4_t0 / stage4_v1;
        store(lanes, out1 + (1000 * i0 + i1), stage4_t2);
      });
    }
  });
}

static AOTI_NOINLINE void k_fewsum(const Run &run, const f32 *in0, f32 *out0) {
  (void)run;
  for (i64 i0 = 0; i0 < 5; ++i0) {
    SumAccumulator<f32, AOTI_LANES> accumulator0;
    over_slots<AOTI_LANES, 24>([&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (24 * i0 + i1));
      accumulator0.add(lanes, slot, stage0_t0);
    });
    const auto stage1_t0 = accumulator0.result();
    store(Full<1>{}, out0 + i0, stage1_t0);
  }
}

static AOTI_NOINLINE void k_columns(const Run &run, const f32 *in0, f32 *out0, f32 *out1, f32 *out2, i64 *out3) {
  (void)run;
  over<AOTI_LANES, 70>(0, 70, [&](auto lanes, i64 i0, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    SumAccumulator<f32, AOTI_LANES> accumulator0;
    MinAccumulator<f32, AOTI_LANES> accumulator1;
    ArgAccumulator<f32, AOTI_LANES, false> accumulator2;
    for (i64 i1 = 0; i1 < 3000; ++i1) {
      const auto stage0_t0 = load(lanes, in0 + (i0 + 70 * i1));
      const auto stage0_t1 = -stage0_t0;
      accumulator0.add(lanes, slot, stage0_t0);
      accumulator1.add(lanes, slot, stage0_t0);
      accumulator2.add(lanes, slot, stage0_t0, broadcast(lanes, i64(i1)));
      store_strided(lanes, out0 + (3000 * i0 + i1), 3000, stage0_t1);
    }
    const auto stage1_t0 = accumulator0.value();
    const auto stage1_t1 = accumulator1.value();
    const auto stage1_t2 = accumulator2.value();
    store(lanes, out1 + i0, stage1_t0);
    store(lanes, out2 + i0, stage1_t1);
    store(lanes, out3 + i0, stage1_t2);
  });
}

static AOTI_NOINLINE void k_all(const Run &run, const f32 *in0, f32 *out0) {
  (void)run;
  SumAccumulator<f32, AOTI_LANES> accumulator0;
  over_slots<AOTI_LANES, 210000>([&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i1);
    accumulator0.add(lanes, slot, stage0_t0);
  });
  const auto stage1_t0 = accumulator0.result();
  store(Full<1>{}, out0, stage1_t0);
}

static AOTI_NOINLINE void k_any(const Run &run, const bool *in0, bool *out0) {
  (void)run;
  for (i64 i0 = 0; i0 < 9; ++i0) {
    AnyAccumulator<AOTI_LANES> accumulator0;
    over_slots<AOTI_LANES, 300>([&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (300 * i0 + i1));
      accumulator0.add(lanes, slot, stage0_t0);
    });
    const auto stage1_t0 = accumulator0.result();
    store(Full<1>{}, out0 + i0, stage1_t0);
  }
}

static AOTI_NOINLINE void k_every(const Run &run, const bool *in0, bool *out0) {
  (void)run;
  AllAccumulator<AOTI_LANES> accumulator0;
  over_slots<AOTI_LANES, 2700>([&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i1);
    accumulator0.add(lanes, slot, stage0_t0);
  });
  const auto stage1_t0 = accumulator0.result();
  store(Full<1>{}, out0, stage1_t0);
}

static AOTI_NOINLINE void k_picked(const Run &run, const i64 *in0, const f32 *in1, f32 *out0) {
  (void)run;
  for (i64 i0 = 0; i0 < 50; ++i0) {
    over<AOTI_LANES, 33>(0, 33, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(Full<1>{}, in0 + i0);
      const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 20, 0);
      const auto stage0_v1 = spread(lanes, stage0_t1);
      const auto stage0_t2 = load(lanes, in1 + (i1 + lane(stage0_t1, 0) * (33)));
      store(lanes, out0 + (33 * i0 + i1), stage0_t2);
    });
  }
}

static AOTI_NOINLINE void k_map(const Run &run, const f32 *in0, f32 *out0) {
  (void)run;
  over<AOTI_LANES, 660>(0, 660, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i1);
    store(lanes, out0 + i1, stage0_t0);
  });
}

static AOTI_NOINLINE void k_added(const Run &run, const f32 *in0, const i64 *in1, f32 *out0) {
  (void)run;
  for (i64 i0 = 0; i0 < 50; ++i0) {
    const auto stage0_t1 = load(Full<1>{}, in1 + i0);
    const auto stage0_t2 = wrap_index(Full<1>{}, run, stage0_t1, 20, 0);
    over<AOTI_LANES, 33>(0, 33, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (33 * i0 + i1));
      const auto stage0_v2 = spread(lanes, stage0_t2);
      store(lanes, out0 + (i1 + lane(stage0_t2, 0) * (33)), load(lanes, out0 + (i1 + lane(stage0_t2, 0) * (33))) + stage0_t0);
    });
  }
}

static AOTI_NOINLINE void k_product(const Run &run, const f32 *in0, const f32 *in1, f32 *out0) {
  (void)run;
  const i64 m = 17, n = 24, k = 40;
  parallel(run, 3, grain(run, 65536, 16320), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit / (1) % (3);
      (void)i0;
      const Matrix<f32> a{in0 + (680 * i0), 40, 1};
      const f32 *const b = (const f32 *)in1;
      const auto epilogue = [=, &run](i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i1, (void)i2;
        const auto t0 = sum;
        const auto t1 = sigmoid(t0);
        store(lanes, out0 + (408 * i0 + 24 * i1 + i2), t1);
      };
      gemm_packed(0, m, 0, gemm_panels(n), n, k, a, b, nullptr, epilogue);
    }
  });
}

static AOTI_NOINLINE void k_halves(const Run &run, const bf16 *in0, const bf16 *in1, bf16 *out0) {
  (void)run;
  const i64 m = 130, n = 200, k = 70;
  const GemmPlan plan = gemm_plan(m, n, 64);
  const Matrix<bf16> a{in0, 70, 1};
  const Matrix<bf16> b{in1, 1, 70};
  const auto epilogue = [=, &run](i64 i0, i64 i1, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1;
    const auto t0 = sum;
    store(lanes, out0 + (200 * i0 + i1), t0);
  };
  parallel(run, plan.units, gemm_grain(run, plan, grain_of(run, 65536, plan.units, 1820000)), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    const i64 m0 = plan.by_rows ? begin * plan.step : 0, m1 = plan.by_rows ? min_i64(end * plan.step, m) : m;
    const i64 p0 = plan.by_rows ? 0 : begin, p1 = plan.by_rows ? gemm_panels(n) : end;
    gemm_general_units(plan, m0, m1, p0, p1, n, k, a, b, run.scratch + worker * (has_matrix_units() ? 225280 : 85760), epilogue);
  });
}

static AOTI_NOINLINE void k_whole(const Run &run, const i32 *in0, i32 *out0) {
  (void)run;
  const i64 m = 7, n = 7, k = 40;
  const Matrix<i32> a{in0, 1, 7};
  const Matrix<i32> b{in0, 7, 1};
  const auto epilogue = [=, &run](i64 i0, i64 i1, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1;
    const auto t0 = cast<i32>(sum);
    store(lanes, out0 + (7 * i0 + i1), t0);
  };
  parallel(run, m, grain(run, 65536, 280), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    gemm_any<i32, AOTI_LANES>(begin, end, n, k, a, b, epilogue);
  });
}

static AOTI_NOINLINE void k_conv(const Run &run, const f32 *in0, const f32 *in1, f32 *out0) {
  (void)run;
  const ConvShape shape{2, 4, 6, 1, {1, 9, 11}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {1, 5, 6}};
  parallel(run, conv_pad_units(shape), 8, [&](i64 begin, i64 end, i64) { conv_pad(shape, begin, end, in0, run.scratch); });
  const auto epilogue = [=, &run](i64 i0, i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1, (void)i2;
    const auto t0 = sum;
    store(lanes, out0 + (180 * i0 + 30 * i1 + i2), t0);
  };
  const i64 units = conv_units(shape);
  parallel(run, units, grain_of(run, 65536, units, 12960), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    conv<ConvOnce::Larger>(shape, begin, end, in0, in1, run.scratch, epilogue);
  });
}

static AOTI_NOINLINE void k_cumulative(const Run &run, const f64 *in0, f64 *out0) {
  (void)run;
  scan<ScanSum, f64>(run, in0, out0, 6, 50, 4);
}

static AOTI_NOINLINE void k_running(const Run &run, const f64 *in0, f64 *out0, i64 *out1) {
  (void)run;
  scan_extreme<ScanMax, f64>(run, in0, out0, out1, 6, 50, 4);
}

static AOTI_NOINLINE void k_lengthwise(const Run &run, const f32 *in0, f32 *out0) {
  (void)run;
  scan<ScanSum, f32>(run, in0, out0, 37, 1000, 1);
}

static AOTI_NOINLINE void k_down(const Run &run, const f32 *in0, f32 *out0) {
  (void)run;
  scan<ScanLogSumExp, f32>(run, in0, out0, 1, 3000, 70);
}

static AOTI_NOINLINE void k_lowest(const Run &run, const f32 *in0, f32 *out0, i64 *out1) {
  (void)run;
  scan_extreme<ScanMin, f32>(run, in0, out0, out1, 12, 260, 1);
}

static AOTI_NOINLINE void k_numbers(const Run &run, const i32 *in0, i32 *out0) {
  (void)run;
  scan<ScanProd, i32>(run, in0, out0, 1, 40, 7);
}

static AOTI_NOINLINE void k_halfway(const Run &run, const f16 *in0, f16 *out0) {
  (void)run;
  scan<ScanSum, f16>(run, in0, out0, 64, 1000, 1);
}

static AOTI_NOINLINE void k_sorted(const Run &run, const f32 *in0, f32 *out0, i64 *out1) {
  (void)run;
  sort_rows<f32, true>(run, in0, out0, out1, 12, 260, 1, 260);
}

static AOTI_NOINLINE void k_ascending(const Run &run, const f32 *in0, f32 *out0, i64 *out1) {
  (void)run;
  sort_rows<f32, false>(run, in0, out0, out1, 12, 260, 1, 260);
}

static AOTI_NOINLINE void k_found(const Run &run, const f32 *in0, const f32 *in1, i64 *out0) {
  (void)run;
  search_sorted<f32, true>(run, in0, in1, out0, 12, 260, 260);
}

static AOTI_NOINLINE void k_planes(const Run &run, const f32 *in0, f32 *out0) {
  (void)run;
  parallel(run, 410, loop_grain(run, 16384, 1200), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit;
      (void)i0;
      over<AOTI_LANES, 400>(0, 400, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
        (void)lanes, (void)slot;
        const auto stage0_t0 = load_strided(lanes, in0 + (i0 + 410 * i1), 410);
        const auto stage0_t1 = exp(stage0_t0);
        store(lanes, out0 + (400 * i0 + i1), stage0_t1);
      });
    }
  });
}

static AOTI_NOINLINE void k_padded(const Run &run, const f32 *in0, f32 *out0) {
  (void)run;
  parallel(run, 37, loop_grain(run, 16384, 2008), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit;
      (void)i0;
      over<AOTI_LANES, 1004>(0, 1004, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
        (void)lanes, (void)slot;
        const auto stage0_t0 = load_between(lanes, in0 + (1000 * i0 + i1 - 2), -i1 + 2, -i1 + 1002, true, 7.0f);
        store(lanes, out0 + (1004 * i0 + i1), stage0_t0);
      });
    }
  });
}

static AOTI_NOINLINE void k_sines(const Run &run, const f64 *in0, f64 *out0, f64 *out1) {
  (void)run;
  over<AOTI_LANES, 1200>(0, 1200, [&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i2);
    const auto stage0_t1 = sin(stage0_t0);
    const auto stage0_t2 = erf(stage0_t0);
    store(lanes, out0 + i2, stage0_t1);
    store(lanes, out1 + i2, stage0_t2);
  });
}

extern "C" int32_t AOTI_LEVEL_NAME(aoti_kernels_run)(const Run &run) {
  (void)run;
  call(run, 0, k_chain, input<f32>(run, 0), output<f32>(run, 0));
  call(run, 1, k_half, input<f16>(run, 1), output<f16>(run, 1));
  call(run, 2, k_top, input<f32>(run, 2), output<i64>(run, 7), output<f32>(run, 2));
  call(run, 3, k_fewsum, input<f32>(run, 3), output<f32>(run, 3));
  call(run, 4, k_columns, input<f32>(run, 4), output<f32>(run, 28), output<f32>(run, 4), output<f32>(run, 5), output<i64>(run, 8));
  call(run, 5, k_all, input<f32>(run, 4), output<f32>(run, 6));
  call(run, 6, k_any, input<bool>(run, 5), output<bool>(run, 9));
  call(run, 7, k_every, input<bool>(run, 5), output<bool>(run, 10));
  call(run, 8, k_picked, input<i64>(run, 6), input<f32>(run, 7), output<f32>(run, 11));
  call(run, 9, k_map, input<f32>(run, 7), output<f32>(run, 12));
  call(run, 10, k_added, output<f32>(run, 11), input<i64>(run, 6), output<f32>(run, 12));
  call(run, 11, k_product, input<f32>(run, 9), weights<f32>(run, 0), output<f32>(run, 13));
  call(run, 12, k_halves, input<bf16>(run, 12), input<bf16>(run, 13), output<bf16>(run, 33));
  call(run, 13, k_whole, input<i32>(run, 8), output<i32>(run, 14));
  call(run, 14, k_conv, input<f32>(run, 10), weights<f32>(run, 5120), output<f32>(run, 15));
  call(run, 15, k_cumulative, input<f64>(run, 11), output<f64>(run, 16));
  call(run, 16, k_running, input<f64>(run, 11), output<f64>(run, 17), output<i64>(run, 18));
  call(run, 17, k_lengthwise, input<f32>(run, 2), output<f32>(run, 19));
  call(run, 18, k_down, input<f32>(run, 4), output<f32>(run, 20));
  call(run, 19, k_lowest, input<f32>(run, 14), output<f32>(run, 21), output<i64>(run, 22));
  call(run, 20, k_numbers, input<i32>(run, 8), output<i32>(run, 23));
  call(run, 21, k_halfway, input<f16>(run, 1), output<f16>(run, 24));
  call(run, 22, k_sorted, input<f32>(run, 14), output<f32>(run, 25), output<i64>(run, 26));
  call(run, 23, k_ascending, input<f32>(run, 14), arena<f32>(run, 24960), arena<i64>(run, 0));
  call(run, 24, k_found, arena<f32>(run, 24960), input<f32>(run, 14), output<i64>(run, 27));
  call(run, 25, k_planes, input<f32>(run, 15), output<f32>(run, 32));
  call(run, 26, k_padded, input<f32>(run, 2), output<f32>(run, 29));
  call(run, 27, k_sines, input<f64>(run, 11), output<f64>(run, 30), output<f64>(run, 31));
  return 0;
}

extern "C" int64_t AOTI_LEVEL_NAME(aoti_kernels_scratch)(const int64_t *symbols, int64_t threads) {
  (void)symbols, (void)threads;
  i64 bytes = 0;
  bytes = max_i64(bytes, threads * (4032));
  bytes = max_i64(bytes, threads * (4160));
  bytes = max_i64(bytes, threads * (has_matrix_units() ? 225280 : 85760));
  bytes = max_i64(bytes, 5632);
  return bytes;
}
