// Kernels of the model `control`, written by cargo-aoti.
#include "aoti/nest.h"
#include "aoti/rows.h"

#define AOTI_JOIN_(a, b) a##_##b
#define AOTI_JOIN(a, b) AOTI_JOIN_(a, b)
#define AOTI_LEVEL_NAME(name) AOTI_JOIN(name, AOTI_LEVEL_NS)

using namespace aoti;

static AOTI_NOINLINE void k_map_map(const Run &run, const f32 *in0, f32 *out0, i64 s0) {
  (void)run;
  constexpr i64 chunk = 1024;
  const i64 extent = 8 * s0;
  parallel(run, ceil_div(extent, chunk), loop_grain(run, 16384, 3072), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    over<AOTI_LANES>(begin * chunk, min_i64(end * chunk, extent), [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = exp(stage0_t0);
      store(lanes, out0 + i1, stage0_t1);
    });
  });
}

static AOTI_NOINLINE void k_map_map_2(const Run &run, const f32 *in0, f32 *out0, i64 s0) {
  (void)run;
  constexpr i64 chunk = 1024;
  const i64 extent = 8 * s0;
  parallel(run, ceil_div(extent, chunk), loop_grain(run, 16384, 3072), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    over<AOTI_LANES>(begin * chunk, min_i64(end * chunk, extent), [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = -stage0_t0;
      store(lanes, out0 + i1, stage0_t1);
    });
  });
}

static AOTI_NOINLINE void k_keep_z_map(const Run &run, const f32 *in0, f32 *out0, i64 s0) {
  (void)run;
  constexpr i64 chunk = 1024;
  const i64 extent = 8 * s0;
  parallel(run, ceil_div(extent, chunk), loop_grain(run, 16384, 2048), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    over<AOTI_LANES>(begin * chunk, min_i64(end * chunk, extent), [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      store(lanes, out0 + i1, stage0_t0);
    });
  });
}

static AOTI_NOINLINE void k_keep_left_map(const Run &run, const i64 *in0, i64 *out0) {
  (void)run;
  const auto stage0_t0 = load(Full<1>{}, in0);
  store(Full<1>{}, out0, stage0_t0);
}

static AOTI_NOINLINE void k_map_map_3(const Run &run, const i64 *in0, bool *out0) {
  (void)run;
  const auto stage0_t0 = load(Full<1>{}, in0);
  const auto stage0_t1 = broadcast(Full<1>{}, i64(0));
  const auto stage0_t2 = stage0_t0 > stage0_t1;
  store(Full<1>{}, out0, stage0_t2);
}

static AOTI_NOINLINE void k_map_map_4(const Run &run, const f32 *in0, f32 *out0, i64 s0) {
  (void)run;
  constexpr i64 chunk = 1024;
  const i64 extent = 8 * s0;
  parallel(run, ceil_div(extent, chunk), loop_grain(run, 16384, 3072), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    over<AOTI_LANES>(begin * chunk, min_i64(end * chunk, extent), [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = stage0_t0 + stage0_t0;
      store(lanes, out0 + i1, stage0_t1);
    });
  });
}

static AOTI_NOINLINE void k_map_map_5(const Run &run, const i64 *in0, i64 *out0) {
  (void)run;
  const auto stage0_t0 = load(Full<1>{}, in0);
  const auto stage0_t1 = broadcast(Full<1>{}, i64(1));
  const auto stage0_t2 = stage0_t0 - stage0_t1;
  store(Full<1>{}, out0, stage0_t2);
}

static AOTI_NOINLINE void k_rows(const Run &run, const f32 *in0, f32 *out0, i64 s1) {
  (void)run;
  constexpr i64 chunk = 1024;
  const i64 extent = 8 * s1;
  parallel(run, ceil_div(extent, chunk), loop_grain(run, 16384, 2048), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    over<AOTI_LANES>(begin * chunk, min_i64(end * chunk, extent), [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      store(lanes, out0 + i1, stage0_t0);
    });
  });
}

static AOTI_NOINLINE void k_sum(const Run &run, const f32 *in0, f32 *out0, i64 s1) {
  (void)run;
  constexpr i64 chunk = 1024;
  const i64 extent = 8;
  parallel(run, ceil_div(extent, chunk), loop_grain(run, 16384, 1024 * s1 + 2048), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    over<AOTI_LANES, 8>(begin * chunk, min_i64(end * chunk, extent), [&](auto lanes, i64 i0, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      SumAccumulator<f32, AOTI_LANES> accumulator0;
      for (i64 i1 = 0; i1 < s1; ++i1) {
        const auto stage0_t0 = load(lanes, in0 + (i0 + 8 * i1));
        accumulator0.add(lanes, slot, stage0_t0);
      }
      const auto stage1_t0 = accumulator0.value();
      store(lanes, out0 + i0, stage1_t0);
    });
  });
}

static AOTI_NOINLINE void k_sorted(const Run &run, const f32 *in0, f32 *out0, i64 *out1, i64 s1) {
  (void)run;
  sort_rows<f32, false>(run, in0, out0, out1, s1, 8, 1, 8);
}

extern "C" int32_t AOTI_LEVEL_NAME(aoti_control_run)(const Run &run) {
  (void)run;
  i64 s0 = run.symbols[0];
  i64 s1 = run.symbols[1];
  if (read<bool>(run, input<bool>(run, 1))) {
    call(run, 0, k_map_map, input<f32>(run, 0), arena<f32>(run, 0), s0);
  } else {
    call(run, 1, k_map_map_2, input<f32>(run, 0), arena<f32>(run, 0), s0);
  }
  call(run, 2, k_keep_z_map, arena<f32>(run, 0), output<f32>(run, 0), s0);
  call(run, 3, k_keep_left_map, input<i64>(run, 2), output<i64>(run, 1));
  for (;;) {
    call(run, 4, k_map_map_3, output<i64>(run, 1), arena<bool>(run, 0));
    if (!read<bool>(run, arena<bool>(run, 0)) || has_fault(run)) break;
    call(run, 5, k_map_map_4, output<f32>(run, 0), arena<f32>(run, 0), s0);
    call(run, 6, k_map_map_5, output<i64>(run, 1), arena<i64>(run, 64 * floor_div(s0 + 1, 2)));
    call(run, 7, k_keep_z_map, arena<f32>(run, 0), output<f32>(run, 0), s0);
    call(run, 8, k_keep_left_map, arena<i64>(run, 64 * floor_div(s0 + 1, 2)), output<i64>(run, 1));
  }
  s1 = run.symbols[1] = read<i64>(run, input<i64>(run, 2));
  if (s1 < 0 || s1 > 1000) return 1;
  if (!(Checked(s1) <= Checked(s0))) return 2;
  call(run, 9, k_rows, input<f32>(run, 0), arena<f32>(run, 0), s1);
  call(run, 10, k_sum, arena<f32>(run, 0), output<f32>(run, 2), s1);
  call(run, 11, k_sorted, arena<f32>(run, 0), output<f32>(run, 4), arena<i64>(run, 32000), s1);
  call(run, 12, k_sum, output<f32>(run, 4), output<f32>(run, 3), s1);
  return 0;
}

extern "C" int64_t AOTI_LEVEL_NAME(aoti_control_scratch)(const int64_t *symbols, int64_t threads) {
  (void)symbols, (void)threads;
  i64 bytes = 0;
  bytes = max_i64(bytes, threads * (128));
  return bytes;
}
