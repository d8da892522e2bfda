// Kernels of the model `grouped`, written by cargo-aoti.
#include "aoti/nest.h"
#include "aoti/conv.h"
#include "aoti/depthwise.h"
#include "aoti/contract_any.h"

#define AOTI_JOIN_(a, b) a##_##b
#define AOTI_JOIN(a, b) AOTI_JOIN_(a, b)
#define AOTI_LEVEL_NAME(name) AOTI_JOIN(name, AOTI_LEVEL_NS)

using namespace aoti;

static AOTI_NOINLINE void k_p(const Run &run, const f32 *in0, const f32 *in1, f32 *out0, i64 s0, i64 s1) {
  (void)run;
  const ConvShape shape{s0, 8, 8, 8, {1, 1, s1}, {1, 1, 5}, {1, 1, 1}, {1, 1, 1}, {0, 0, 2}, {1, 1, s1}};
  const auto epilogue = [=, &run](i64 i0, i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1, (void)i2;
    const auto t0 = sum;
    const auto t1 = tanh(t0);
    store(lanes, out0 + (i2 + 8 * (s1 * i0) + (s1 * i1)), t1);
  };
  const i64 units = conv_depthwise_units(shape);
  parallel(run, units, grain_of(run, 65536, units, 40 * (s0 * s1)), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    conv_depthwise(shape, begin, end, in0, in1, epilogue);
  });
}

static AOTI_NOINLINE void k_r(const Run &run, const f32 *in0, const f32 *in1, f32 *out0, i64 s0, i64 s1) {
  (void)run;
  const ConvShape shape{s0, 8, 8, 8, {1, 1, s1}, {1, 1, 5}, {1, 1, 1}, {1, 1, 2}, {0, 0, 4}, {1, 1, s1}};
  const auto epilogue = [=, &run](i64 i0, i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1, (void)i2;
    const auto t0 = sum;
    store(lanes, out0 + (i2 + 8 * (s1 * i0) + (s1 * i1)), t0);
  };
  const i64 units = conv_depthwise_units(shape);
  parallel(run, units, grain_of(run, 65536, units, 40 * (s0 * s1)), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    conv_depthwise(shape, begin, end, in0, in1, epilogue);
  });
}

static AOTI_NOINLINE void k_map_map(const Run &run, const f16 *in0, f32 *out0) {
  (void)run;
  over<AOTI_LANES, 5184>(0, 5184, [&](auto lanes, i64 i3, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i3);
    const auto stage0_t1 = stage0_t0;
    store(lanes, out0 + i3, stage0_t1);
  });
}

static AOTI_NOINLINE void k_a_conv(const Run &run, const f32 *in0, const f32 *in1, f16 *out0) {
  (void)run;
  const ConvShape shape{2, 24, 24, 24, {1, 9, 12}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {1, 5, 6}};
  const auto epilogue = [=, &run](i64 i0, i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1, (void)i2;
    const auto t0 = sum;
    store(lanes, out0 + (720 * i0 + 30 * i1 + i2), t0);
  };
  const i64 units = conv_depthwise_units(shape);
  parallel(run, units, grain_of(run, 65536, units, 12960), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    conv_depthwise(shape, begin, end, in0, in1, epilogue);
  });
}

static AOTI_NOINLINE void k_map_map_2(const Run &run, const bf16 *in0, f32 *out0) {
  (void)run;
  over<AOTI_LANES, 2640>(0, 2640, [&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i2);
    const auto stage0_t1 = tanh(stage0_t0);
    const auto stage0_t2 = stage0_t1;
    store(lanes, out0 + i2, stage0_t2);
  });
}

static AOTI_NOINLINE void k_c(const Run &run, const f32 *in0, const f32 *in1, f32 *out0) {
  (void)run;
  const ConvShape shape{1, 24, 24, 24, {1, 10, 11}, {1, 7, 7}, {1, 1, 1}, {1, 1, 1}, {0, 3, 3}, {1, 10, 11}};
  const auto epilogue = [=, &run](i64 i0, i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1, (void)i2;
    const auto t0 = sum;
    store(lanes, out0 + (2640 * i0 + 110 * i1 + i2), t0);
  };
  const i64 units = conv_depthwise_units(shape);
  parallel(run, units, grain_of(run, 65536, units, 129360), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    conv_depthwise(shape, begin, end, in0, in1, epilogue);
  });
}

static AOTI_NOINLINE void k_d(const Run &run, const f32 *in0, bf16 *out0) {
  (void)run;
  over<AOTI_LANES, 240>(0, 240, [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    MaxAccumulator<f32, AOTI_LANES> accumulator0;
    for (i64 i2 = 0; i2 < 11; ++i2) {
      const auto stage0_t0 = load_every<11>(lanes, in0 + (11 * i1 + i2));
      const auto stage0_t1 = cast<bf16>(stage0_t0);
      accumulator0.add(lanes, slot, stage0_t1);
    }
    const auto stage1_t0 = accumulator0.value();
    store(lanes, out0 + i1, stage1_t0);
  });
}

static AOTI_NOINLINE void k_e(const Run &run, const f32 *in0, f32 *out0) {
  (void)run;
  over<AOTI_LANES, 2048>(0, 2048, [&](auto lanes, i64 i3, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i3);
    const auto stage0_t1 = tanh(stage0_t0);
    store(lanes, out0 + i3, stage0_t1);
  });
}

static AOTI_NOINLINE void k_f(const Run &run, const f32 *in0, const f32 *in1, f32 *out0) {
  (void)run;
  const ConvShape shape{2, 16, 16, 4, {1, 8, 8}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, {0, 2, 2}, {1, 8, 8}};
  parallel(run, conv_pad_units(shape), 8, [&](i64 begin, i64 end, i64) { conv_pad(shape, begin, end, in0, run.scratch); });
  const auto epilogue = [=, &run](i64 i0, i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1, (void)i2;
    const auto t0 = sum;
    store(lanes, out0 + (1024 * i0 + 64 * i1 + i2), t0);
  };
  const i64 units = conv_units(shape);
  parallel(run, units, grain_of(run, 65536, units, 73728), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    conv<ConvOnce::Larger>(shape, begin, end, in0, in1, run.scratch, epilogue);
  });
}

static AOTI_NOINLINE void k_map_map_3(const Run &run, const bf16 *in0, f32 *out0) {
  (void)run;
  over<AOTI_LANES, 2560>(0, 2560, [&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i2);
    const auto stage0_t1 = stage0_t0;
    store(lanes, out0 + i2, stage0_t1);
  });
}

static AOTI_NOINLINE void k_g_conv(const Run &run, const f32 *in0, const f32 *in1, bf16 *out0) {
  (void)run;
  const ConvShape shape{2, 32, 32, 16, {1, 1, 40}, {1, 1, 4}, {1, 1, 1}, {1, 1, 1}, {0, 0, 3}, {1, 1, 43}};
  parallel(run, conv_pad_units(shape), 8, [&](i64 begin, i64 end, i64) { conv_pad(shape, begin, end, in0, run.scratch); });
  const auto epilogue = [=, &run](i64 i0, i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1, (void)i2;
    const auto t0 = sum;
    store(lanes, out0 + (1376 * i0 + 43 * i1 + i2), t0);
  };
  const i64 units = conv_units(shape);
  parallel(run, units, grain_of(run, 65536, units, 22016), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    conv<ConvOnce::Larger>(shape, begin, end, in0, in1, run.scratch, epilogue);
  });
}

static AOTI_NOINLINE void k_h(const Run &run, const f64 *in0, const f64 *in1, f64 *out0) {
  (void)run;
  const ConvShape shape{1, 3, 6, 3, {4, 5, 6}, {2, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {3, 5, 6}};
  const auto epilogue = [=, &run](i64 i0, i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1, (void)i2;
    const auto t0 = sum;
    store(lanes, out0 + (540 * i0 + 90 * i1 + i2), t0);
  };
  const i64 units = conv_any_units(shape);
  parallel(run, units, grain_of(run, 65536, units, 9720), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    conv_any<f64, AOTI_LANES>(shape, begin, end, in0, in1, epilogue);
  });
}

extern "C" int32_t AOTI_LEVEL_NAME(aoti_grouped_run)(const Run &run) {
  (void)run;
  i64 s0 = run.symbols[0];
  i64 s1 = run.symbols[1];
  call(run, 0, k_p, input<f32>(run, 0), weights<f32>(run, 0), arena<f32>(run, 0), s0, s1);
  call(run, 1, k_r, arena<f32>(run, 0), weights<f32>(run, 0), output<f32>(run, 5), s0, s1);
  call(run, 2, k_map_map, input<f16>(run, 1), arena<f32>(run, 0));
  call(run, 3, k_a_conv, arena<f32>(run, 0), weights<f32>(run, 192), output<f16>(run, 0));
  call(run, 4, k_map_map_2, input<bf16>(run, 2), arena<f32>(run, 0));
  call(run, 5, k_c, arena<f32>(run, 0), weights<f32>(run, 1088), arena<f32>(run, 10560));
  call(run, 6, k_d, arena<f32>(run, 10560), output<bf16>(run, 1));
  call(run, 7, k_e, input<f32>(run, 3), arena<f32>(run, 0));
  call(run, 8, k_f, arena<f32>(run, 0), weights<f32>(run, 5824), output<f32>(run, 2));
  call(run, 9, k_map_map_3, input<bf16>(run, 4), arena<f32>(run, 0));
  call(run, 10, k_g_conv, arena<f32>(run, 0), weights<f32>(run, 10432), output<bf16>(run, 3));
  call(run, 11, k_h, input<f64>(run, 5), weights<f64>(run, 14528), output<f64>(run, 4));
  return 0;
}

extern "C" int64_t AOTI_LEVEL_NAME(aoti_grouped_scratch)(const int64_t *symbols, int64_t threads) {
  (void)symbols, (void)threads;
  i64 bytes = 0;
  bytes = max_i64(bytes, 12032);
  bytes = max_i64(bytes, 18688);
  return bytes;
}
