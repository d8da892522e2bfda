// Kernels of the model `bytes`, written by cargo-aoti.
#include "aoti/nest.h"
#include "aoti/pixels.h"
#include "aoti/depthwise_words.h"
#include "aoti/turned.h"

#define AOTI_JOIN_(a, b) a##_##b
#define AOTI_JOIN(a, b) AOTI_JOIN_(a, b)
#define AOTI_LEVEL_NAME(name) AOTI_JOIN(name, AOTI_LEVEL_NS)

using namespace aoti;

static AOTI_NOINLINE void k_b(const Run &run, const f32 *in0, u8 *out0) {
  (void)run;
  parallel(run, 144, loop_grain(run, 16384, 280), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    TurnedLoads<40> block0;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i1 = unit;
      (void)i1;
      auto *const turned0 = block0.row(in0 + (i1), 144, end - unit);
      over<AOTI_LANES, 40>(0, 40, [&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
        (void)lanes, (void)slot;
        const auto stage0_t1 = broadcast(Full<1>{}, 0.0f);
        const auto stage0_t3 = broadcast(Full<1>{}, 255.0f);
        const auto stage0_t0 = load(lanes, turned0 + i2);
        const auto stage0_v1 = spread(lanes, stage0_t1);
        const auto stage0_t2 = maximum(stage0_t0, stage0_v1);
        const auto stage0_v3 = spread(lanes, stage0_t3);
        const auto stage0_t4 = minimum(stage0_t2, stage0_v3);
        const auto stage0_t5 = cast<u8>(stage0_t4);
        store(lanes, out0 + (40 * i1 + i2), stage0_t5);
      });
    }
  });
}

static AOTI_NOINLINE void k_d(const Run &run, const u8 *in0, const i32 *in1, i32 *out0) {
  (void)run;
  const ConvShape shape{1, 40, 40, 40, {1, 12, 12}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {1, 12, 12}};
  const auto epilogue = [=, &run](i64 i0, i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1, (void)i2;
    const auto t0 = cast<i32>(sum);
    store_strided(lanes, out0 + (5760 * i0 + 144 * i1 + i2), 144, t0);
  };
  const i64 units = conv_depthwise_words_units(shape);
  parallel(run, units, grain_of(run, 65536, units, 51840), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    conv_depthwise_words(shape, begin, end, in0, (const f32 *)in1, epilogue);
  });
}

static AOTI_NOINLINE void k_e(const Run &run, const i32 *in0, u8 *out0) {
  (void)run;
  parallel(run, 144, loop_grain(run, 16384, 400), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i1 = unit;
      (void)i1;
      over<AOTI_LANES, 40>(0, 40, [&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
        (void)lanes, (void)slot;
        const auto stage0_t2 = broadcast(Full<1>{}, 0.001f);
        const auto stage0_t4 = broadcast(Full<1>{}, 0.0f);
        const auto stage0_t6 = broadcast(Full<1>{}, 255.0f);
        const auto stage0_t0 = load_strided(lanes, in0 + (i1 + 144 * i2), 144);
        const auto stage0_t1 = cast<f32>(stage0_t0);
        const auto stage0_v2 = spread(lanes, stage0_t2);
        const auto stage0_t3 = stage0_t1 * stage0_v2;
        const auto stage0_v4 = spread(lanes, stage0_t4);
        const auto stage0_t5 = maximum(stage0_t3, stage0_v4);
        const auto stage0_v6 = spread(lanes, stage0_t6);
        const auto stage0_t7 = minimum(stage0_t5, stage0_v6);
        const auto stage0_t8 = cast<u8>(stage0_t7);
        store(lanes, out0 + (40 * i1 + i2), stage0_t8);
      });
    }
  });
}

static AOTI_NOINLINE void k_y(const Run &run, const u8 *in0, const i32 *in1, i32 *out0) {
  (void)run;
  const ConvShape shape{1, 10, 24, 1, {1, 12, 12}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 12, 12}};
  parallel(run, conv_pixels_pad_units(shape, ChannelOrder::Last), 8, [&](i64 begin, i64 end, i64) { conv_pixels_pad<ChannelOrder::Last>(shape, begin, end, (const i32 *)in0, run.scratch); });
  const auto epilogue = [=, &run](i64 i0, i64 i1, i64 i2, auto lanes, auto sum) AOTI_LAMBDA {
    (void)i0, (void)i1, (void)i2;
    const auto t0 = cast<i32>(sum);
    store(lanes, out0 + (3456 * i0 + 144 * i1 + i2), t0);
  };
  const i64 units = conv_pixels_units(shape, ChannelOrder::Last);
  parallel(run, units, grain_of(run, 65536, units, 138240), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    conv_pixels<ConvOnce::Larger, PixelShape<24, 144, false>, ChannelOrder::First>(shape, ChannelOrder::Last, begin, end, (const i32 *)in0, (const i32 *)in1, run.scratch, epilogue);
  });
}

extern "C" int32_t AOTI_LEVEL_NAME(aoti_bytes_run)(const Run &run) {
  (void)run;
  call(run, 0, k_b, input<f32>(run, 0), arena<u8>(run, 23040));
  call(run, 1, k_d, arena<u8>(run, 23040), weights<i32>(run, 0), arena<i32>(run, 0));
  call(run, 2, k_e, arena<i32>(run, 0), arena<u8>(run, 23040));
  call(run, 3, k_y, arena<u8>(run, 23040), weights<i32>(run, 2304), output<i32>(run, 0));
  return 0;
}

extern "C" int64_t AOTI_LEVEL_NAME(aoti_bytes_scratch)(const int64_t *symbols, int64_t threads) {
  (void)symbols, (void)threads;
  i64 bytes = 0;
  return bytes;
}
