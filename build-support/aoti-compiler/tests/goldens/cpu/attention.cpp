// Kernels of the model `attention`, written by cargo-aoti.
#pragma once

#include "aoti/run.h"

#define AOTI_JOIN_(a, b) a##_##b
#define AOTI_JOIN(a, b) AOTI_JOIN_(a, b)
#define AOTI_LEVEL_NAME(name) AOTI_JOIN(name, AOTI_LEVEL_NS)

using namespace aoti;

namespace AOTI_JOIN(aoti_attention, AOTI_LEVEL_NS) {
void k_causaly(const Run &run, const bf16 *in0, const bf16 *in1, const bf16 *in2, bf16 *out0);
void k_groupedp(const Run &run, const f16 *in0, const f16 *in1, f32 *out0);
void k_groupedmax(const Run &run, const f32 *in0, f16 *out0);
void k_groupedy(const Run &run, const f16 *in0, const f16 *in1, f16 *out0);
void k_maskedy(const Run &run, const f32 *in0, const f32 *in1, const f32 *in2, const bool *in3, f32 *out0);
void k_biasedy(const Run &run, const bf16 *in0, const bf16 *in1, const bf16 *in2, const bf16 *in3, bf16 *out0);
void k_decodeqw(const Run &run, const f16 *in0, f32 *out0);
void k_decodekw(const Run &run, const f16 *in0, f32 *out0);
void k_decodep(const Run &run, const f32 *in0, const f32 *in1, const bool *in2, f32 *out0);
void k_decodemax(const Run &run, const f32 *in0, f16 *out0);
void k_decodey(const Run &run, const f16 *in0, const f16 *in1, f16 *out0);
void k_widey(const Run &run, const f32 *in0, const f32 *in1, const f32 *in2, f32 *out0);
void k_fewp(const Run &run, const f32 *in0, const f32 *in1, f32 *out0, f32 *out1);
void k_fewy(const Run &run, const f32 *in0, const f32 *in1, f32 *out0);
void k_nany(const Run &run, const bf16 *in0, const bf16 *in1, const bf16 *in2, const bool *in3, bf16 *out0);
void k_nanonekw(const Run &run, const f16 *in0, f32 *out0);
void k_nanonep(const Run &run, const f32 *in0, const f32 *in1, const bool *in2, f32 *out0, f16 *out1);
void k_nanoney(const Run &run, const f16 *in0, const f16 *in1, f16 *out0);
void k_nanwidey(const Run &run, const f32 *in0, const f32 *in1, const f32 *in2, const bool *in3, f32 *out0);
}
// Kernels of the model `attention`, written by cargo-aoti.
#include "aoti/nest.h"
#include "aoti/gemm.h"
#include "aoti/dots.h"
#include "aoti/gemm_stream.h"

#include "kernels.h"

namespace AOTI_JOIN(aoti_attention, AOTI_LEVEL_NS) {

void k_groupedmax(const Run &run, const f32 *in0, f16 *out0) {
  (void)run;
  char *const scratch = run.scratch;
  f32 *const row0 = (f32 *)(scratch + 0);
  for (i64 i1 = 0; i1 < 20; ++i1) {
    MaxAccumulator<f32, AOTI_LANES> accumulator0;
    over_slots<AOTI_LANES, 133>([&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (133 * i1 + i2));
      accumulator0.add(lanes, slot, stage0_t0);
    });
    const auto stage1_t0 = accumulator0.result();
    SumAccumulator<f32, AOTI_LANES> accumulator1;
    const auto stage2_t1 = stage1_t0;
    over_slots<AOTI_LANES, 133>([&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage2_t0 = load(lanes, in0 + (133 * i1 + i2));
      const auto stage2_v1 = spread(lanes, stage2_t1);
      const auto stage2_t2 = stage2_t0 - stage2_v1;
      const auto stage2_t3 = exp(stage2_t2);
      store(lanes, row0 + i2, stage2_t3);
      accumulator1.add(lanes, slot, stage2_t3);
    });
    const auto stage3_t0 = accumulator1.result();
    const auto stage4_t1 = stage3_t0;
    over<AOTI_LANES, 133>(0, 133, [&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage4_t0 = load(lanes, row0 + i2);
      const auto stage4_v1 = spread(lanes, stage4_t1);
      const auto stage4_t2 = stage4_t0 / stage4_v1;
      store(lanes, out0 + (133 * i1 + i2), stage4_t2);
    });
  }
}

void k_decodeqw(const Run &run, const f16 *in0, f32 *out0) {
  (void)run;
  over<AOTI_LANES, 512>(0, 512, [&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
    (void)lanes, (void)slot;
    const auto stage0_t0 = load(lanes, in0 + i2);
    const auto stage0_t1 = stage0_t0;
    store(lanes, out0 + i2, stage0_t1);
  });
}

void k_decodekw(const Run &run, const f16 *in0, f32 *out0) {
  (void)run;
  parallel(run, 8, loop_grain(run, 16384, 57600), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i1 = unit / (2);
      (void)i1;
      const i64 i2 = unit % (2);
      (void)i2;
      over<AOTI_LANES, 19200>(0, 19200, [&](auto lanes, i64 i4, auto slot) AOTI_LAMBDA {
        (void)lanes, (void)slot;
        const auto stage0_t0 = load(lanes, in0 + (19200 * i1 + i4));
        const auto stage0_t1 = stage0_t0;
        store(lanes, out0 + (38400 * i1 + 19200 * i2 + i4), stage0_t1);
      });
    }
  });
}

void k_decodemax(const Run &run, const f32 *in0, f16 *out0) {
  (void)run;
  parallel(run, 8, loop_grain(run, 16384, 5103), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    char *const scratch = run.scratch + worker * (1216);
    f32 *const row0 = (f32 *)(scratch + 0);
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i1 = unit;
      (void)i1;
      MaxAccumulator<f32, AOTI_LANES> accumulator0;
      over_slots<AOTI_LANES, 300>([&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
        (void)lanes, (void)slot;
        const auto stage0_t0 = load(lanes, in0 + (300 * i1 + i2));
        accumulator0.add(lanes, slot, stage0_t0);
      });
      const auto stage1_t0 = accumulator0.result();
      SumAccumulator<f32, AOTI_LANES> accumulator1;
      const auto stage2_t1 = stage1_t0;
      const auto stage2_t2 = broadcast(Full<1>{}, -__builtin_inff());
      const auto stage2_t3 = stage2_t1 == stage2_t2;
      const auto stage2_t4 = broadcast(Full<1>{}, 0.0f);
      const auto stage2_t5 = select(stage2_t3, stage2_t4, stage2_t1);
      over_slots<AOTI_LANES, 300>([&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
        (void)lanes, (void)slot;
        const auto stage2_t0 = load(lanes, in0 + (300 * i1 + i2));
        const auto stage2_v5 = spread(lanes, stage2_t5);
        const auto stage2_t6 = stage2_t0 - stage2_v5;
        const auto stage2_t7 = exp(stage2_t6);
        store(lanes, row0 + i2, stage2_t7);
        accumulator1.add(lanes, slot, stage2_t7);
      });
      const auto stage3_t0 = accumulator1.result();
      const auto stage4_t1 = stage3_t0;
      const auto stage4_t2 = broadcast(Full<1>{}, 0.0f);
      const auto stage4_t3 = stage4_t1 == stage4_t2;
      const auto stage4_t4 = broadcast(Full<1>{}, 1.0f);
      const auto stage4_t5 = select(stage4_t3, stage4_t4, stage4_t1);
      over<AOTI_LANES, 300>(0, 300, [&](auto lanes, i64 i2, auto slot) AOTI_LAMBDA {
        (void)lanes, (void)slot;
        const auto stage4_t0 = load(lanes, row0 + i2);
        const auto stage4_v5 = spread(lanes, stage4_t5);
        const auto stage4_t6 = stage4_t0 / stage4_v5;
        store(lanes, out0 + (300 * i1 + i2), stage4_t6);
      });
    }
  });
}

void k_nanonekw(const Run &run, const f16 *in0, f32 *out0) {
  (void)run;
  constexpr i64 chunk = 1024;
  const i64 extent = 153600;
  parallel(run, ceil_div(extent, chunk), loop_grain(run, 16384, 3072), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    over<AOTI_LANES, 153600>(begin * chunk, min_i64(end * chunk, extent), [&](auto lanes, i64 i3, auto slot) AOTI_LAMBDA {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i3);
      const auto stage0_t1 = stage0_t0;
      store(lanes, out0 + i3, stage0_t1);
    });
  });
}

void k_groupedp(const Run &run, const f16 *in0, const f16 *in1, f32 *out0) {
  (void)run;
  const i64 m = 5, n = 133, k = 32;
  parallel(run, 4, grain(run, 65536, 21280), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit / (4) % (1);
      (void)i0;
      const i64 i1 = unit / (1) % (4);
      (void)i1;
      const Matrix<f16> a{in0 + (640 * i0 + 160 * i1), 32, 1};
      const Matrix<f16> b{in1 + (4256 * floor_div(i1, 2)), 1, 32};
      const auto epilogue = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3;
        const auto t3 = broadcast(Full<1>{}, 0.176777f);
        const auto t5 = broadcast(Full<1>{}, -__builtin_inff());
        const auto t0 = sum;
        const auto t1 = inside(iota(lanes, i2 - i3 + 128, (-1)), 133);
        const auto t2 = t0;
        const auto v3 = spread(lanes, t3);
        const auto t4 = t2 * v3;
        const auto v5 = spread(lanes, t5);
        const auto t6 = select(t1, t4, v5);
        store(lanes, out0 + (665 * i1 + 133 * i2 + i3), t6);
      };
      gemm_general<5>(0, m, 0, gemm_panels(n), n, k, a, b, run.scratch + worker * (17344), epilogue);
    }
  });
}

void k_groupedy(const Run &run, const f16 *in0, const f16 *in1, f16 *out0) {
  (void)run;
  const i64 m = 5, n = 24, k = 133;
  parallel(run, 4, grain(run, 65536, 15960), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit / (4) % (1);
      (void)i0;
      const i64 i1 = unit / (1) % (4);
      (void)i1;
      const Matrix<f16> a{in0 + (2660 * i0 + 665 * i1), 133, 1};
      const Matrix<f16> b{in1 + (6384 * i0 + 3192 * floor_div(i1, 2)), 24, 1};
      const auto epilogue = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3;
        const auto t0 = sum;
        store(lanes, out0 + (480 * i0 + 120 * i1 + 24 * i2 + i3), t0);
      };
      gemm_general<5, 24>(0, m, 0, gemm_panels(n), n, k, a, b, run.scratch + worker * (20224), epilogue);
    }
  });
}

void k_decodep(const Run &run, const f32 *in0, const f32 *in1, const bool *in2, f32 *out0) {
  (void)run;
  const i64 m = 1, n = 300, k = 64;
  parallel(run, 8, grain(run, 65536, 19200), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit / (4) % (2);
      (void)i0;
      const i64 i1 = unit / (1) % (4);
      (void)i1;
      const Matrix<f32> a{in0 + (256 * i0 + 64 * i1), 64, 1};
      const Matrix<f32> b{in1 + (76800 * i0 + 19200 * i1), 1, 64};
      const auto epilogue = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3;
        const auto t2 = broadcast(Full<1>{}, 0.125f);
        const auto t4 = broadcast(Full<1>{}, -__builtin_inff());
        const auto t0 = sum;
        const auto t1 = load(lanes, in2 + (300 * i0 + i3));
        const auto v2 = spread(lanes, t2);
        const auto t3 = t0 * v2;
        const auto v4 = spread(lanes, t4);
        const auto t5 = select(t1, t3, v4);
        store(lanes, out0 + (1200 * i0 + 300 * i1 + i3), t5);
      };
      gemm_dots(0, m, 0, gemm_panels(n), n, k, a, b, nullptr, epilogue);
    }
  });
}

void k_fewp(const Run &run, const f32 *in0, const f32 *in1, f32 *out0, f32 *out1) {
  (void)run;
  const i64 m = 3, n = 45, k = 36;
  parallel(run, 2, grain(run, 65536, 4860), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit / (2) % (1);
      (void)i0;
      const i64 i1 = unit / (1) % (2);
      (void)i1;
      const Matrix<f32> a{in0 + (216 * i0 + 108 * i1), 36, 1};
      const Matrix<f32> b{in1, 1, 36};
      const auto epilogue = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3;
        const auto t2 = broadcast(Full<1>{}, 0.166667f);
        const auto t4 = broadcast(Full<1>{}, -__builtin_inff());
        const auto t0 = sum;
        const auto t1 = inside(iota(lanes, i2 - i3 + 42, (-1)), 45);
        const auto v2 = spread(lanes, t2);
        const auto t3 = t0 * v2;
        const auto v4 = spread(lanes, t4);
        const auto t5 = select(t1, t3, v4);
        store(lanes, out0 + (135 * i1 + 45 * i2 + i3), t5);
      };
      const auto row_epilogue = [&](i64 first, i64 last, char *scratch) AOTI_ONCE {
        f32 *const row0 = (f32 *)(scratch + 0);
        for (i64 i2 = first; i2 < last; ++i2) {
          MaxAccumulator<f32, AOTI_LANES> accumulator0;
          over_slots<AOTI_LANES, 45>([&](auto lanes, i64 i3, auto slot) AOTI_LAMBDA {
            (void)lanes, (void)slot;
            const auto stage0_t0 = load(lanes, out0 + (135 * i1 + 45 * i2 + i3));
            accumulator0.add(lanes, slot, stage0_t0);
          });
          const auto stage1_t0 = accumulator0.result();
          SumAccumulator<f32, AOTI_LANES> accumulator1;
          const auto stage2_t1 = stage1_t0;
          over_slots<AOTI_LANES, 45>([&](auto lanes, i64 i3, auto slot) AOTI_LAMBDA {
            (void)lanes, (void)slot;
            const auto stage2_t0 = load(lanes, out0 + (135 * i1 + 45 * i2 + i3));
            const auto stage2_v1 = spread(lanes, stage2_t1);
            const auto stage2_t2 = stage2_t0 - stage2_v1;
            const auto stage2_t3 = exp(stage2_t2);
            store(lanes, row0 + i3, stage2_t3);
            accumulator1.add(lanes, slot, stage2_t3);
          });
          const auto stage3_t0 = accumulator1.result();
          const auto stage4_t1 = stage3_t0;
          over<AOTI_LANES, 45>(0, 45, [&](auto lanes, i64 i3, auto slot) AOTI_LAMBDA {
            (void)lanes, (void)slot;
            const auto stage4_t0 = load(lanes, row0 + i3);
            const auto stage4_v1 = spread(lanes, stage4_t1);
            const auto stage4_t2 = stage4_t0 / stage4_v1;
            store(lanes, out1 + (135 * i1 + 45 * i2 + i3), stage4_t2);
          });
        }
      };
      gemm_dots(0, m, 0, gemm_panels(n), n, k, a, b, nullptr, epilogue, [&](i64 first, i64 last) AOTI_LAMBDA { row_epilogue(first, last, run.scratch + worker * (192)); });
    }
  });
}

void k_nanonep(const Run &run, const f32 *in0, const f32 *in1, const bool *in2, f32 *out0, f16 *out1) {
  (void)run;
  const i64 m = 1, n = 300, k = 64;
  parallel(run, 8, grain(run, 65536, 19200), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit / (4) % (2);
      (void)i0;
      const i64 i1 = unit / (1) % (4);
      (void)i1;
      const Matrix<f32> a{in0 + (256 * i0 + 64 * i1), 64, 1};
      const Matrix<f32> b{in1 + (76800 * i0 + 19200 * i1), 1, 64};
      const auto epilogue = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3;
        const auto t2 = broadcast(Full<1>{}, 0.375f);
        const auto t4 = broadcast(Full<1>{}, -__builtin_inff());
        const auto t0 = sum;
        const auto t1 = load(lanes, in2 + i3);
        const auto v2 = spread(lanes, t2);
        const auto t3 = t0 * v2;
        const auto v4 = spread(lanes, t4);
        const auto t5 = select(t1, t3, v4);
        store(lanes, out0 + (1200 * i0 + 300 * i1 + i3), t5);
      };
      const auto row_epilogue = [&](i64 first, i64 last, char *scratch) AOTI_ONCE {
        f32 *const row0 = (f32 *)(scratch + 0);
        for (i64 i2 = first; i2 < last; ++i2) {
          MaxAccumulator<f32, AOTI_LANES> accumulator0;
          over_slots<AOTI_LANES, 300>([&](auto lanes, i64 i3, auto slot) AOTI_LAMBDA {
            (void)lanes, (void)slot;
            const auto stage0_t0 = load(lanes, out0 + (1200 * i0 + 300 * i1 + i3));
            accumulator0.add(lanes, slot, stage0_t0);
          });
          const auto stage1_t0 = accumulator0.result();
          SumAccumulator<f32, AOTI_LANES> accumulator1;
          const auto stage2_t1 = stage1_t0;
          over_slots<AOTI_LANES, 300>([&](auto lanes, i64 i3, auto slot) AOTI_LAMBDA {
            (void)lanes, (void)slot;
            const auto stage2_t0 = load(lanes, out0 + (1200 * i0 + 300 * i1 + i3));
            const auto stage2_v1 = spread(lanes, stage2_t1);
            const auto stage2_t2 = stage2_t0 - stage2_v1;
            const auto stage2_t3 = exp(stage2_t2);
            store(lanes, row0 + i3, stage2_t3);
            accumulator1.add(lanes, slot, stage2_t3);
          });
          const auto stage3_t0 = accumulator1.result();
          const auto stage4_t1 = stage3_t0;
          const auto stage4_t4 = broadcast(Full<1>{}, 0.0f);
          over<AOTI_LANES, 300>(0, 300, [&](auto lanes, i64 i3, auto slot) AOTI_LAMBDA {
            (void)lanes, (void)slot;
            const auto stage4_t0 = load(lanes, row0 + i3);
            const auto stage4_v1 = spread(lanes, stage4_t1);
            const auto stage4_t2 = stage4_t0 / stage4_v1;
            const auto stage4_t3 = isnan(stage4_t2);
            const auto stage4_v4 = spread(lanes, stage4_t4);
            const auto stage4_t5 = select(stage4_t3, stage4_v4, stage4_t2);
            store(lanes, out1 + (1200 * i0 + 300 * i1 + i3), stage4_t5);
          });
        }
      };
      gemm_dots(0, m, 0, gemm_panels(n), n, k, a, b, nullptr, epilogue, [&](i64 first, i64 last) AOTI_LAMBDA { row_epilogue(first, last, run.scratch + worker * (1216)); });
    }
  });
}

void k_decodey(const Run &run, const f16 *in0, const f16 *in1, f16 *out0) {
  (void)run;
  const i64 m = 1, n = 64, k = 300;
  parallel(run, 8, grain(run, 65536, 19200), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit / (4) % (2);
      (void)i0;
      const i64 i1 = unit / (1) % (4);
      (void)i1;
      const Matrix<f16> a{in0 + (1200 * i0 + 300 * i1), 300, 1};
      const Matrix<f16> b{in1 + (38400 * i0 + 19200 * floor_div(i1, 2)), 64, 1};
      const auto epilogue = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3;
        const auto t0 = sum;
        store(lanes, out0 + (256 * i0 + 64 * i1 + 64 * i2 + i3), t0);
      };
      gemm_stream<1>(0, m, 0, gemm_panels(n), n, k, a, b, run.scratch + worker * (8192), epilogue);
    }
  });
}

void k_fewy(const Run &run, const f32 *in0, const f32 *in1, f32 *out0) {
  (void)run;
  const i64 m = 3, n = 20, k = 45;
  parallel(run, 2, grain(run, 65536, 2700), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit / (2) % (1);
      (void)i0;
      const i64 i1 = unit / (1) % (2);
      (void)i1;
      const Matrix<f32> a{in0 + (270 * i0 + 135 * i1), 45, 1};
      const Matrix<f32> b{in1 + (900 * i0), 20, 1};
      const auto epilogue = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3;
        const auto t0 = sum;
        store(lanes, out0 + (120 * i0 + 60 * i1 + 20 * i2 + i3), t0);
      };
      gemm_stream<3>(0, m, 0, gemm_panels(n), n, k, a, b, run.scratch + worker * (24576), epilogue);
    }
  });
}

void k_nanoney(const Run &run, const f16 *in0, const f16 *in1, f16 *out0) {
  (void)run;
  const i64 m = 1, n = 64, k = 300;
  parallel(run, 8, grain(run, 65536, 19200), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 unit = begin; unit < end; ++unit) {
      const i64 i0 = unit / (4) % (2);
      (void)i0;
      const i64 i1 = unit / (1) % (4);
      (void)i1;
      const Matrix<f16> a{in0 + (1200 * i0 + 300 * i1), 300, 1};
      const Matrix<f16> b{in1 + (76800 * i0 + 19200 * i1), 64, 1};
      const auto epilogue = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3;
        const auto t0 = sum;
        store(lanes, out0 + (256 * i0 + 64 * i1 + 64 * i2 + i3), t0);
      };
      gemm_stream<1>(0, m, 0, gemm_panels(n), n, k, a, b, run.scratch + worker * (8192), epilogue);
    }
  });
}

}
// Kernels of the model `attention`, written by cargo-aoti.
#include "aoti/nest.h"
#include "aoti/attention.h"

#include "kernels.h"

namespace AOTI_JOIN(aoti_attention, AOTI_LEVEL_NS) {

void k_causaly(const Run &run, const bf16 *in0, const bf16 *in1, const bf16 *in2, bf16 *out0) {
  (void)run;
  const AttentionShape shape{70, 70, 16, 16};
  const i64 blocks = ceil_div(shape.queries, kAttentionRows), units = blocks * (2);
  parallel(run, units, grain_of(run, 65536, units, 313600), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 block = begin, packed = -1; block < end; ++block) {
      const i64 unit = block / blocks;
      const i64 i0 = unit / (2) % (1);
      (void)i0;
      const i64 i1 = unit / (1) % (2);
      (void)i1;
      const Matrix<bf16> q{in0 + (2240 * i0 + 1120 * i1), 16, 1};
      const Matrix<bf16> k{in1 + (2240 * i0 + 1120 * i1), 1, 16};
      const Matrix<bf16> v{in2 + (2240 * i0 + 1120 * i1), 16, 1};
      const auto score = [=, &run](i64 i2, i64 i4, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i4, (void)lanes;
        const auto t1 = broadcast(Full<1>{}, 0.25f);
        const auto t0 = sum;
        const auto v1 = spread(lanes, t1);
        const auto t2 = t0 * v1;
        return t2;
      };
      const auto result = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3, (void)lanes;
        const auto t0 = sum;
        store(lanes, out0 + (2240 * i0 + 1120 * i1 + 16 * i2 + i3), t0);
      };
      attend<true, 0>(shape, block % blocks * kAttentionRows, packed != unit, 0, q, k, v, run.scratch + worker * (29568), score, result);
      packed = unit;
    }
  });
}

void k_maskedy(const Run &run, const f32 *in0, const f32 *in1, const f32 *in2, const bool *in3, f32 *out0) {
  (void)run;
  const AttentionShape shape{37, 41, 24, 40};
  const i64 blocks = ceil_div(shape.queries, kAttentionRows), units = blocks * (4);
  parallel(run, units, grain_of(run, 65536, units, 388352), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 block = begin, packed = -1; block < end; ++block) {
      const i64 unit = block / blocks;
      const i64 i0 = unit / (2) % (2);
      (void)i0;
      const i64 i1 = unit / (1) % (2);
      (void)i1;
      const Matrix<f32> q{in0 + (1776 * i0 + 888 * i1), 24, 1};
      const Matrix<f32> k{in1 + (1968 * i0 + 984 * i1), 1, 24};
      const Matrix<f32> v{in2 + (3280 * i0 + 1640 * i1), 40, 1};
      const auto score = [=, &run](i64 i2, i64 i4, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i4, (void)lanes;
        const auto t2 = broadcast(Full<1>{}, 0.204124f);
        const auto t4 = broadcast(Full<1>{}, -__builtin_inff());
        const auto t0 = load(lanes, in3 + (41 * i0 + i4));
        const auto t1 = sum;
        const auto v2 = spread(lanes, t2);
        const auto t3 = t1 * v2;
        const auto v4 = spread(lanes, t4);
        const auto t5 = select(t0, t3, v4);
        return t5;
      };
      const auto result = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3, (void)lanes;
        const auto t0 = sum;
        store(lanes, out0 + (2960 * i0 + 1480 * i1 + 40 * i2 + i3), t0);
      };
      attend<false, 1>(shape, block % blocks * kAttentionRows, packed != unit, 0, q, k, v, run.scratch + worker * (29312), score, result);
      packed = unit;
    }
  });
}

void k_biasedy(const Run &run, const bf16 *in0, const bf16 *in1, const bf16 *in2, const bf16 *in3, bf16 *out0) {
  (void)run;
  const AttentionShape shape{9, 50, 20, 8};
  const i64 blocks = ceil_div(shape.queries, kAttentionRows), units = blocks * (2);
  parallel(run, units, grain_of(run, 65536, units, 25200), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 block = begin, packed = -1; block < end; ++block) {
      const i64 unit = block / blocks;
      const i64 i0 = unit / (1) % (2);
      (void)i0;
      const i64 i1 = unit / (1) % (1);
      (void)i1;
      const Matrix<bf16> q{in0 + (180 * i0 + 180 * i1), 20, 1};
      const Matrix<bf16> k{in1 + (1000 * i0 + 1000 * i1), 1, 20};
      const Matrix<bf16> v{in2 + (400 * i0 + 400 * i1), 8, 1};
      const auto score = [=, &run](i64 i2, i64 i4, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i4, (void)lanes;
        const auto t1 = broadcast(Full<1>{}, 0.223607f);
        const auto t0 = sum;
        const auto v1 = spread(lanes, t1);
        const auto t2 = t0 * v1;
        const auto t3 = load(lanes, in3 + (50 * i2 + i4));
        const auto t4 = t3;
        const auto t5 = t2 + t4;
        return t5;
      };
      const auto result = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3, (void)lanes;
        const auto t0 = sum;
        store(lanes, out0 + (72 * i0 + 72 * i1 + 8 * i2 + i3), t0);
      };
      attend<false, 1>(shape, block % blocks * kAttentionRows, packed != unit, 0, q, k, v, run.scratch + worker * (25984), score, result);
      packed = unit;
    }
  });
}

void k_widey(const Run &run, const f32 *in0, const f32 *in1, const f32 *in2, f32 *out0) {
  (void)run;
  const AttentionShape shape{18, 33, 200, 256};
  const i64 blocks = ceil_div(shape.queries, kAttentionRows), units = blocks * (1);
  parallel(run, units, grain_of(run, 65536, units, 270864), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 block = begin, packed = -1; block < end; ++block) {
      const i64 unit = block / blocks;
      const i64 i0 = unit / (1) % (1);
      (void)i0;
      const i64 i1 = unit / (1) % (1);
      (void)i1;
      const Matrix<f32> q{in0 + (3600 * i0 + 3600 * i1), 200, 1};
      const Matrix<f32> k{in1 + (6600 * i0 + 6600 * i1), 1, 200};
      const Matrix<f32> v{in2 + (8448 * i0 + 8448 * i1), 256, 1};
      const auto score = [=, &run](i64 i2, i64 i4, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i4, (void)lanes;
        const auto t1 = broadcast(Full<1>{}, 0.070711f);
        const auto t0 = sum;
        const auto v1 = spread(lanes, t1);
        const auto t2 = t0 * v1;
        return t2;
      };
      const auto result = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3, (void)lanes;
        const auto t0 = sum;
        store(lanes, out0 + (4608 * i0 + 4608 * i1 + 256 * i2 + i3), t0);
      };
      attend<false, 0>(shape, block % blocks * kAttentionRows, packed != unit, 0, q, k, v, run.scratch + worker * (117376), score, result);
      packed = unit;
    }
  });
}

void k_nany(const Run &run, const bf16 *in0, const bf16 *in1, const bf16 *in2, const bool *in3, bf16 *out0) {
  (void)run;
  const AttentionShape shape{70, 70, 16, 16};
  const i64 blocks = ceil_div(shape.queries, kAttentionRows), units = blocks * (2);
  parallel(run, units, grain_of(run, 65536, units, 313600), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 block = begin, packed = -1; block < end; ++block) {
      const i64 unit = block / blocks;
      const i64 i0 = unit / (2) % (1);
      (void)i0;
      const i64 i1 = unit / (1) % (2);
      (void)i1;
      const Matrix<bf16> q{in0 + (2240 * i0 + 1120 * i1), 16, 1};
      const Matrix<bf16> k{in1 + (2240 * i0 + 1120 * i1), 1, 16};
      const Matrix<bf16> v{in2 + (2240 * i0 + 1120 * i1), 16, 1};
      const auto score = [=, &run](i64 i2, i64 i4, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i4, (void)lanes;
        const auto t2 = broadcast(Full<1>{}, 0.375f);
        const auto t4 = broadcast(Full<1>{}, -__builtin_inff());
        const auto t0 = load(lanes, in3 + (70 * i2 + i4));
        const auto t1 = sum;
        const auto v2 = spread(lanes, t2);
        const auto t3 = t1 * v2;
        const auto v4 = spread(lanes, t4);
        const auto t5 = select(t0, t3, v4);
        return t5;
      };
      const auto result = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3, (void)lanes;
        const auto t0 = sum;
        store(lanes, out0 + (2240 * i0 + 1120 * i1 + 16 * i2 + i3), t0);
      };
      attend<false, 2>(shape, block % blocks * kAttentionRows, packed != unit, 0, q, k, v, run.scratch + worker * (29568), score, result);
      packed = unit;
    }
  });
}

void k_nanwidey(const Run &run, const f32 *in0, const f32 *in1, const f32 *in2, const bool *in3, f32 *out0) {
  (void)run;
  const AttentionShape shape{18, 33, 24, 40};
  const i64 blocks = ceil_div(shape.queries, kAttentionRows), units = blocks * (1);
  parallel(run, units, grain_of(run, 65536, units, 38016), [&](i64 begin, i64 end, i64 worker) {
    (void)worker;
    for (i64 block = begin, packed = -1; block < end; ++block) {
      const i64 unit = block / blocks;
      const i64 i0 = unit / (1) % (1);
      (void)i0;
      const i64 i1 = unit / (1) % (1);
      (void)i1;
      const Matrix<f32> q{in0 + (432 * i0 + 432 * i1), 24, 1};
      const Matrix<f32> k{in1 + (792 * i0 + 792 * i1), 1, 24};
      const Matrix<f32> v{in2 + (1320 * i0 + 1320 * i1), 40, 1};
      const auto score = [=, &run](i64 i2, i64 i4, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i4, (void)lanes;
        const auto t2 = broadcast(Full<1>{}, 0.375f);
        const auto t4 = broadcast(Full<1>{}, -__builtin_inff());
        const auto t0 = load(lanes, in3 + (33 * i2 + i4));
        const auto t1 = sum;
        const auto v2 = spread(lanes, t2);
        const auto t3 = t1 * v2;
        const auto v4 = spread(lanes, t4);
        const auto t5 = select(t0, t3, v4);
        return t5;
      };
      const auto result = [=, &run](i64 i2, i64 i3, auto lanes, auto sum) AOTI_LAMBDA {
        (void)i2, (void)i3, (void)lanes;
        const auto t0 = sum;
        store(lanes, out0 + (720 * i0 + 720 * i1 + 40 * i2 + i3), t0);
      };
      attend<false, 2>(shape, block % blocks * kAttentionRows, packed != unit, 0, q, k, v, run.scratch + worker * (27264), score, result);
      packed = unit;
    }
  });
}

}
