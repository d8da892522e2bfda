// Kernels of the model `random`, written by cargo-aoti.
#include "aoti/nest.h"
#include "aoti/random.h"

#define AOTI_JOIN_(a, b) a##_##b
#define AOTI_JOIN(a, b) AOTI_JOIN_(a, b)
#define AOTI_LEVEL_NAME(name) AOTI_JOIN(name, AOTI_LEVEL_NS)

using namespace aoti;

static AOTI_NOINLINE void k_key(const Run &run, const i64 *in0, i64 *out0) {
  (void)run;
  const auto stage0_t0 = load(Full<1>{}, in0 + 1);
  const auto stage0_t1 = load(Full<1>{}, in0);
  const auto stage0_t2 = philox(stage0_t0, stage0_t1);
  store(Full<1>{}, out0, stage0_t2);
}

static AOTI_NOINLINE void k_bits(const Run &run, const i64 *in0, const f32 *in1, i64 *out0, f32 *out1, i64 s0) {
  (void)run;
  constexpr i64 chunk = 1024;
  const i64 extent = 8 * s0;
  parallel(run, ceil_div(extent, chunk), loop_grain(run, 16384, 9216), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    over<AOTI_LANES>(begin * chunk, min_i64(end * chunk, extent), [&](auto lanes, i64 i1, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t1 = load(Full<1>{}, in0);
      const auto stage0_t3 = broadcast(Full<1>{}, i64(16777215));
      const auto stage0_t0 = iota(lanes, i1);
      const auto stage0_v1 = spread(lanes, stage0_t1);
      const auto stage0_t2 = philox(stage0_t0, stage0_v1);
      const auto stage0_v3 = spread(lanes, stage0_t3);
      const auto stage0_t4 = stage0_t2 & stage0_v3;
      const auto stage0_t5 = cast<f32>(stage0_t4);
      const auto stage0_t6 = load(lanes, in1 + i1);
      const auto stage0_t7 = stage0_t5 * stage0_t6;
      store(lanes, out0 + i1, stage0_t2);
      store(lanes, out1 + i1, stage0_t7);
    });
  });
}

extern "C" int32_t AOTI_LEVEL_NAME(aoti_random_run)(const Run &run) {
  (void)run;
  i64 s0 = run.symbols[0];
  call(run, 0, k_key, generator<i64>(run, 0), arena<i64>(run, 0));
  call(run, 1, k_bits, arena<i64>(run, 0), input<f32>(run, 0), output<i64>(run, 0), output<f32>(run, 1), s0);
  return 0;
}

extern "C" int64_t AOTI_LEVEL_NAME(aoti_random_scratch)(const int64_t *symbols, int64_t threads) {
  (void)symbols, (void)threads;
  i64 bytes = 0;
  return bytes;
}
