// Kernels of the model `clusters` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/contract.h"
#include "aoti/gpu/units.h"

using namespace aoti;

AOTI_CLUSTER_KERNEL(256, 4) k_few(Run run, const f32 *in0, const f32 *in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const i32 m = 12, n = 40, k = 600;
  const i32 across = ceil_div(n, 64), down = ceil_div(m, 16);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index() / 4); unit < across * down * (1); unit += i32(block_count() / 4)) {
    const i32 column0 = unit % across * 64, row0 = unit / across % down * 16, batch = unit / across / down;
    (void)batch, (void)row0;
    contract<f32, 16, 64, 256, 4, 4>(row0, column0, m, n, k,
        Strided<f32, i32, true>{whole(in0), 600, 1},
        Strided<f32, i32, false>{whole(in1), 1, 40},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, whole_lanes(lanes, out0 + (40 * i0 + i1)), t0);
        });
  }
}
AOTI_KERNEL_END(k_few)

AOTI_CLUSTER_KERNEL(256, 8) k_floats(Run run, const f32 *in0, const f32 *in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const i32 m = 70, n = 72, k = 600;
  const i32 across = ceil_div(n, 32), down = ceil_div(m, 32);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index() / 8); unit < across * down * (1); unit += i32(block_count() / 8)) {
    const i32 column0 = unit % across * 32, row0 = unit / across % down * 32, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_units<f32, 32, 32, 256, 4, 8>(row0, column0, m, n, k,
        Strided<f32, i32, true>{whole(in0), 600, 1},
        Strided<f32, i32, false>{whole(in1), 1, 72},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, whole_lanes(lanes, out0 + (72 * i0 + i1)), t0);
        });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_floats)

AOTI_CLUSTER_KERNEL(128, 4) k_halves(Run run, const f16 *in0, const f16 *in1, f16 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const i32 m = 70, n = 66, k = 1100;
  const i32 across = ceil_div(n, 64), down = ceil_div(m, 64);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index() / 4); unit < across * down * (1); unit += i32(block_count() / 4)) {
    const i32 column0 = unit % across * 64, row0 = unit / across % down * 64, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_units<f16, 64, 64, 128, 2, 4>(row0, column0, m, n, k,
        Strided<f16, i32, true>{whole(in0), 1100, 1},
        Strided<f16, i32, false>{whole(in1), 1, 66},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, whole_lanes(lanes, out0 + (66 * i0 + i1)), t0);
        });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_halves)

AOTI_CLUSTER_KERNEL(256, 2) k_integers(Run run, const i64 *in0, const i64 *in1, i64 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const i32 m = 20, n = 21, k = 300;
  const i32 across = ceil_div(n, 32), down = ceil_div(m, 16);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index() / 2); unit < across * down * (1); unit += i32(block_count() / 2)) {
    const i32 column0 = unit % across * 32, row0 = unit / across % down * 16, batch = unit / across / down;
    (void)batch, (void)row0;
    contract<i64, 16, 32, 256, 1, 2>(row0, column0, m, n, k,
        Strided<i64, i32, true>{whole(in0), 300, 1},
        Strided<i64, i32, false>{whole(in1), 1, 21},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = cast<i64>(sum);
          store(lanes, out0 + (21 * i0 + i1), t0);
        });
  }
}
AOTI_KERNEL_END(k_integers)

AOTI_CLUSTER_KERNEL(512, 8) k_most(Run run, const f32 *in0, f32 *__restrict__ out0, i64 *__restrict__ out1, f32 *__restrict__ out2) {
  (void)run;
  begin_kernel();
  constexpr Team<512, 1, false, 8> team{};
  if (team.is_idle()) return;
  team.gather();
  OwnRow<f32, 4, kOwnSteps<4, 16400, decltype(team)>> row0;
  const i32 units = 16;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index() / 8); unit < units; unit += i32(block_count() / 8)) {
    const i32 i0 = unit;
    (void)i0;
    MaxAccumulator<f32, 4> accumulator0;
    ArgAccumulator<f32, 4, true> accumulator2;
    over_own<4, kOwnSteps<4, 16400, decltype(team)>>(team, i32(16400), [&](auto lanes, i32 i1, auto slot) {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, aligned<16>(in0 + (16400 * i0 + i1)));
      store(lanes, row0.at(slot), stage0_t0);
      accumulator0.add(lanes, slot, stage0_t0);
      accumulator2.add(lanes, slot, stage0_t0, iota(lanes, i1));
    });
    accumulator0.combine(team);
    accumulator2.combine(team);
    const auto stage1_t0 = accumulator0.result();
    const auto stage1_t1 = accumulator2.result();
    if (team.leads()) {
      constexpr Full<1> lanes{};
      constexpr Slot<0> slot{};
      (void)lanes, (void)slot;
      store(Full<1>{}, out1 + i0, stage1_t1);
    }
    SumAccumulator<f32, 4> accumulator1;
    const auto stage2_t1 = stage1_t0;
    over_own<4, kOwnSteps<4, 16400, decltype(team)>>(team, i32(16400), [&](auto lanes, i32 i1, auto slot) {
      (void)lanes, (void)slot;
      const auto stage2_t0 = load(lanes, row0.at(slot));
      const auto stage2_v1 = spread(lanes, stage2_t1);
      const auto stage2_t2 = stage2_t0 - stage2_v1;
      const auto stage2_t3 = exp(stage2_t2);
      store(lanes, aligned<16>(out0 + (16400 * i0 + i1)), stage2_t3);
      accumulator1.add(lanes, slot, stage2_t3);
    });
    accumulator1.combine(team);
    team.sync();
    const auto stage3_t0 = accumulator1.result();
    const auto stage4_t1 = stage3_t0;
    over<4>(team, i32(16400), [&](auto lanes, i32 i1, auto slot) {
      (void)lanes, (void)slot;
      const auto stage4_t0 = load(lanes, aligned<16>(out0 + (16400 * i0 + i1)));
      const auto stage4_v1 = spread(lanes, stage4_t1);
      const auto stage4_t2 = stage4_t0 / stage4_v1;
      store(lanes, aligned<16>(out2 + (16400 * i0 + i1)), stage4_t2);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_most)

AOTI_CLUSTER_KERNEL(512, 8) k_total(Run run, const f16 *in0, f32 *__restrict__ out0, const f16 *in1, f16 *__restrict__ out1) {
  (void)run;
  begin_kernel();
  constexpr Team<512, 1, false, 8> team{};
  if (team.is_idle()) return;
  team.gather();
  OwnRow<f16, 4, kOwnSteps<4, 16400, decltype(team)>> row0;
  const i32 units = 16;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index() / 8); unit < units; unit += i32(block_count() / 8)) {
    const i32 i0 = unit / (4);
    (void)i0;
    const i32 i1 = unit % (4);
    (void)i1;
    SumAccumulator<f32, 4> accumulator0;
    over_own<4, kOwnSteps<4, 16400, decltype(team)>>(team, i32(16400), [&](auto lanes, i32 i3, auto slot) {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, aligned<8>(in0 + (65600 * i0 + 16400 * i1 + i3)));
      const auto stage0_t1 = stage0_t0;
      store(lanes, row0.at(slot), stage0_t0);
      accumulator0.add(lanes, slot, stage0_t1);
    });
    accumulator0.combine(team);
    const auto stage1_t0 = accumulator0.result();
    SumAccumulator<f32, 4> accumulator1;
    const auto stage2_t2 = stage1_t0;
    const auto stage2_t3 = broadcast(Full<1>{}, 16400.0f);
    const auto stage2_t4 = stage2_t2 / stage2_t3;
    over_own<4, kOwnSteps<4, 16400, decltype(team)>>(team, i32(16400), [&](auto lanes, i32 i3, auto slot) {
      (void)lanes, (void)slot;
      const auto stage2_t0 = load(lanes, row0.at(slot));
      const auto stage2_t1 = stage2_t0;
      const auto stage2_v4 = spread(lanes, stage2_t4);
      const auto stage2_t5 = stage2_t1 - stage2_v4;
      const auto stage2_t6 = stage2_t5 * stage2_t5;
      store(lanes, aligned<16>(out0 + (65600 * i0 + 16400 * i1 + i3)), stage2_t5);
      accumulator1.add(lanes, slot, stage2_t6);
    });
    accumulator1.combine(team);
    team.sync();
    const auto stage3_t0 = accumulator1.result();
    const auto stage3_t1 = broadcast(Full<1>{}, 16400.0f);
    const auto stage3_t2 = stage3_t0 / stage3_t1;
    const auto stage3_t3 = rsqrt(stage3_t2);
    over<4>(team, i32(16400), [&](auto lanes, i32 step, auto slot) {
      (void)lanes, (void)slot;
      const i32 i2 = step / (4100);
      (void)i2;
      const i32 i3 = step % (4100);
      (void)i3;
      const auto stage4_t1 = stage3_t3;
      const auto stage4_t3 = load(Full<1>{}, in1 + (4 * i1 + i2));
      const auto stage4_t4 = stage4_t3;
      const auto stage4_t0 = load(lanes, aligned<16>(out0 + (65600 * i0 + 16400 * i1 + 4100 * i2 + i3)));
      const auto stage4_v1 = spread(lanes, stage4_t1);
      const auto stage4_t2 = stage4_t0 * stage4_v1;
      const auto stage4_v4 = spread(lanes, stage4_t4);
      const auto stage4_t5 = stage4_t2 * stage4_v4;
      store(lanes, aligned<8>(out1 + (65600 * i0 + 16400 * i1 + 4100 * i2 + i3)), stage4_t5);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_total)

