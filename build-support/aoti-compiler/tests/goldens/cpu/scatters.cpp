// Kernels of the model `scatters`, written by cargo-aoti.
#include "aoti/nest.h"

#define AOTI_JOIN_(a, b) a##_##b
#define AOTI_JOIN(a, b) AOTI_JOIN_(a, b)
#define AOTI_LEVEL_NAME(name) AOTI_JOIN(name, AOTI_LEVEL_NS)

using namespace aoti;

static AOTI_NOINLINE void k_map_map(const Run &run, const f64 *in0, f64 *out0) {
  (void)run;
  over<AOTI_LANES, 11200>(0, 11200, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i1);
    store(lanes, out0 + i1, stage0_t0);
  });
}

static AOTI_NOINLINE void k_sorted(const Run &run, const f32 *in0, const i64 *in1, f64 *out0) {
  (void)run;
  for (i64 i0 = 0; i0 < 5000; ++i0) {
    const auto stage0_t2 = load(Full<1>{}, in1 + i0);
    const auto stage0_t3 = wrap_index(Full<1>{}, run, stage0_t2, 700, 0);
    over<AOTI_LANES, 16>(0, 16, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (16 * i0 + i1));
      const auto stage0_t1 = cast<f64>(stage0_t0);
      const auto stage0_v3 = spread(lanes, stage0_t3);
      store(lanes, out0 + (i1 + lane(stage0_t3, 0) * (16)), load(lanes, out0 + (i1 + lane(stage0_t3, 0) * (16))) + stage0_t1);
    });
  }
}

static AOTI_NOINLINE void k_map_map_2(const Run &run, const f32 *in0, f32 *out0, f32 *out1) {
  (void)run;
  over<AOTI_LANES, 11200>(0, 11200, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i1);
    store(lanes, out0 + i1, stage0_t0);
    store(lanes, out1 + i1, stage0_t0);
  });
}

static AOTI_NOINLINE void k_fixed(const Run &run, const f32 *in0, const i64 *in1, f32 *out0) {
  (void)run;
  for (i64 i0 = 0; i0 < 5000; ++i0) {
    const auto stage0_t1 = load(Full<1>{}, in1 + i0);
    const auto stage0_t2 = wrap_index(Full<1>{}, run, stage0_t1, 700, 0);
    over<AOTI_LANES, 16>(0, 16, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (16 * i0 + i1));
      const auto stage0_v2 = spread(lanes, stage0_t2);
      store(lanes, out0 + (i1 + lane(stage0_t2, 0) * (16)), load(lanes, out0 + (i1 + lane(stage0_t2, 0) * (16))) + stage0_t0);
    });
  }
}

static AOTI_NOINLINE void k_last(const Run &run, const f32 *in0, const i64 *in1, f32 *out0) {
  (void)run;
  for (i64 i0 = 0; i0 < 5000; ++i0) {
    const auto stage0_t1 = load(Full<1>{}, in1 + i0);
    const auto stage0_t2 = wrap_index(Full<1>{}, run, stage0_t1, 700, 0);
    over<AOTI_LANES, 16>(0, 16, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (16 * i0 + i1));
      const auto stage0_v2 = spread(lanes, stage0_t2);
      store(lanes, out0 + (i1 + lane(stage0_t2, 0) * (16)), stage0_t0);
    });
  }
}

static AOTI_NOINLINE void k_map_map_4(const Run &run, const f16 *in0, f16 *out0) {
  (void)run;
  over<AOTI_LANES, 320>(0, 320, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i1);
    store(lanes, out0 + i1, stage0_t0);
  });
}

static AOTI_NOINLINE void k_ranked(const Run &run, const f16 *in0, const i64 *in1, f16 *out0) {
  (void)run;
  for (i64 i0 = 0; i0 < 60; ++i0) {
    const auto stage0_t1 = load(Full<1>{}, in1 + i0);
    const auto stage0_t2 = wrap_index(Full<1>{}, run, stage0_t1, 40, 0);
    over<AOTI_LANES, 8>(0, 8, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (8 * i0 + i1));
      const auto stage0_v2 = spread(lanes, stage0_t2);
      store(lanes, out0 + (i1 + lane(stage0_t2, 0) * (8)), load(lanes, out0 + (i1 + lane(stage0_t2, 0) * (8))) * stage0_t0);
    });
  }
}

static AOTI_NOINLINE void k_map_map_5(const Run &run, const i64 *in0, i64 *out0) {
  (void)run;
  over<AOTI_LANES, 40>(0, 40, [&](auto lanes, i64 i0, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i0);
    store(lanes, out0 + i0, stage0_t0);
  });
}

static AOTI_NOINLINE void k_bins(const Run &run, const i64 *in0, i64 *out0) {
  (void)run;
  for (i64 i0 = 0; i0 < 5000; ++i0) {
    const auto stage0_t0 = broadcast(Full<1>{}, i64(1));
    const auto stage0_t1 = load(Full<1>{}, in0 + i0);
    const auto stage0_t2 = wrap_index(Full<1>{}, run, stage0_t1, 40, 0);
    store(Full<1>{}, out0 + (lane(stage0_t2, 0)), load(Full<1>{}, out0 + (lane(stage0_t2, 0))) + stage0_t0);
  }
}

static AOTI_NOINLINE void k_map_map_6(const Run &run, const f64 *in0, f64 *out0) {
  (void)run;
  over<AOTI_LANES, 600>(0, 600, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i1);
    store(lanes, out0 + i1, stage0_t0);
  });
}

static AOTI_NOINLINE void k_largest(const Run &run, const f64 *in0, const i64 *in1, f64 *out0) {
  (void)run;
  for (i64 i0 = 0; i0 < 33; ++i0) {
    over<AOTI_LANES, 30>(0, 30, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (30 * i0 + i1));
      const auto stage0_t1 = load(lanes, in1 + (30 * i0 + i1));
      const auto stage0_t2 = wrap_index(lanes, run, stage0_t1, 20, 0);
      scatter(lanes, out0, iota(lanes, i1) + stage0_t2 * i64(30), maximum(gather(lanes, out0, iota(lanes, i1) + stage0_t2 * i64(30)), stage0_t0));
    });
  }
}

static AOTI_NOINLINE void k_map_map_7(const Run &run, const i32 *in0, i32 *out0) {
  (void)run;
  over<AOTI_LANES, 600>(0, 600, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i1);
    store(lanes, out0 + i1, stage0_t0);
  });
}

static AOTI_NOINLINE void k_cellsum(const Run &run, const f64 *in0, const i64 *in1, i32 *out0) {
  (void)run;
  for (i64 i0 = 0; i0 < 33; ++i0) {
    over<AOTI_LANES, 30>(0, 30, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (30 * i0 + i1));
      const auto stage0_t1 = cast<i32>(stage0_t0);
      const auto stage0_t2 = load(lanes, in1 + (30 * i0 + i1));
      const auto stage0_t3 = wrap_index(lanes, run, stage0_t2, 20, 0);
      scatter(lanes, out0, iota(lanes, i1) + stage0_t3 * i64(30), gather(lanes, out0, iota(lanes, i1) + stage0_t3 * i64(30)) + stage0_t1);
    });
  }
}

extern "C" int32_t AOTI_LEVEL_NAME(aoti_scatters_run)(const Run &run) {
  (void)run;
  call(run, 0, k_map_map, input<f64>(run, 10), output<f64>(run, 0));
  call(run, 1, k_sorted, input<f32>(run, 1), input<i64>(run, 4), output<f64>(run, 0));
  call(run, 2, k_map_map_2, input<f32>(run, 0), output<f32>(run, 1), output<f32>(run, 2));
  call(run, 3, k_fixed, input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 1));
  call(run, 4, k_last, input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 2));
  call(run, 5, k_map_map_4, input<f16>(run, 3), output<f16>(run, 3));
  call(run, 6, k_ranked, input<f16>(run, 2), input<i64>(run, 4), output<f16>(run, 3));
  call(run, 7, k_map_map_5, input<i64>(run, 5), output<i64>(run, 4));
  call(run, 8, k_bins, input<i64>(run, 4), output<i64>(run, 4));
  call(run, 9, k_map_map_6, input<f64>(run, 9), output<f64>(run, 5));
  call(run, 10, k_largest, input<f64>(run, 7), input<i64>(run, 8), output<f64>(run, 5));
  call(run, 11, k_map_map_7, input<i32>(run, 6), output<i32>(run, 6));
  call(run, 12, k_cellsum, input<f64>(run, 7), input<i64>(run, 8), output<i32>(run, 6));
  return 0;
}

extern "C" int64_t AOTI_LEVEL_NAME(aoti_scatters_scratch)(const int64_t *symbols, int64_t threads) {
  (void)symbols, (void)threads;
  i64 bytes = 0;
  return bytes;
}
