// Kernels of the model `storage` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/rows.h"
#include "aoti/gpu/scan.h"
#include "aoti/gpu/sort.h"
#include "aoti/gpu/contract.h"

using namespace aoti;

AOTI_KERNEL(256) k_xf(Run run, const u32 *in0, f32 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 40 * s0;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(40 * s0), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = cast<f32>(stage0_t0);
      store(lanes, out0 + i1, stage0_t1);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_xf)

AOTI_KERNEL(256) k_yd(Run run, const u64 *in0, const u32 *in1, f64 *__restrict__ out0, f32 *__restrict__ out1, bool *__restrict__ out2, u64 *__restrict__ out3, u64 *__restrict__ out4, u64 *__restrict__ out5, u32 *__restrict__ out6, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<32, 8, false> team{};
  const i32 units = s0;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 8 + team.place(); unit < units; unit += i32(block_count()) * 8) {
    const i32 i0 = unit;
    (void)i0;
    MaxAccumulator<u64, 2> accumulator0;
    SumAccumulator<u32, 2> accumulator1;
    const auto stage0_t3 = broadcast(Full<1>{}, u64(9223372036854775808u));
    const auto stage0_t9 = broadcast(Full<1>{}, u64(3u));
    over_slots<2>(team, i32(40), [&](auto lanes, i32 i1, auto slot) {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, aligned<16>(in0 + (40 * i0 + i1)));
      const auto stage0_t1 = cast<f64>(stage0_t0);
      const auto stage0_t2 = cast<f32>(stage0_t0);
      const auto stage0_v3 = spread(lanes, stage0_t3);
      const auto stage0_t4 = stage0_t0 >= stage0_v3;
      const auto stage0_t5 = load(lanes, aligned<8>(in1 + (40 * i0 + i1)));
      const auto stage0_t6 = cast<u64>(stage0_t5);
      const auto stage0_t7 = stage0_t6 + stage0_t0;
      const auto stage0_t8 = maximum(stage0_t7, stage0_t6);
      const auto stage0_v9 = spread(lanes, stage0_t9);
      const auto stage0_t10 = floor_div(stage0_t8, stage0_v9);
      const auto stage0_t11 = stage0_t0 >> stage0_v9;
      store(lanes, aligned<16>(out0 + (40 * i0 + i1)), stage0_t1);
      store(lanes, aligned<8>(out1 + (40 * i0 + i1)), stage0_t2);
      store(lanes, aligned<2>(out2 + (40 * i0 + i1)), stage0_t4);
      store(lanes, aligned<16>(out3 + (40 * i0 + i1)), stage0_t10);
      store(lanes, aligned<16>(out4 + (40 * i0 + i1)), stage0_t11);
      accumulator0.add(lanes, slot, stage0_t0);
      accumulator1.add(lanes, slot, stage0_t5);
    });
    accumulator0.combine(team);
    accumulator1.combine(team);
    const auto stage1_t0 = accumulator0.result();
    const auto stage1_t1 = accumulator1.result();
    if (team.leads()) {
      constexpr Full<1> lanes{};
      constexpr Slot<0> slot{};
      (void)lanes, (void)slot;
      store(Full<1>{}, out5 + i0, stage1_t0);
      store(Full<1>{}, out6 + i0, stage1_t1);
    }
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_yd)

AOTI_KERNEL(256) k_wf(Run run, const u16 *in0, f16 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 40 * s0;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(40 * s0), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = cast<f16>(stage0_t0);
      store(lanes, out0 + i1, stage0_t1);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_wf)

AOTI_KERNEL(128) k_order(Run run, const u64 *in0, u64 *__restrict__ out0, i64 *__restrict__ out1, i64 s0) {
  (void)run;
  begin_kernel();
  sort_runs<128, 8, u64, false>(in0, NoPlaces{}, out0, out1, s0, 40, 1, 40, 40);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_order)

AOTI_KERNEL(256) k_from(Run run, const f32 *in0, u32 *__restrict__ out0, u64 *__restrict__ out1, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 40 * s0;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(40 * s0), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t1 = broadcast(Full<1>{}, 4000000000.0f);
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_v1 = spread(lanes, stage0_t1);
      const auto stage0_t2 = stage0_t0 * stage0_v1;
      const auto stage0_t3 = abs(stage0_t2);
      const auto stage0_t4 = cast<u32>(stage0_t3);
      const auto stage0_t5 = cast<u64>(stage0_t3);
      store(lanes, out0 + i1, stage0_t4);
      store(lanes, out1 + i1, stage0_t5);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_from)

AOTI_KERNEL(256) k_ef(Run run, const f8e4m3fn *in0, const f8e5m2 *in1, f32 *__restrict__ out0, f8e4m3fn *__restrict__ out1, f8e5m2 *__restrict__ out2, f8e4m3fnuz *__restrict__ out3, f8e5m2fnuz *__restrict__ out4, f8e8m0fnu *__restrict__ out5, f32 *__restrict__ out6, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 40 * s0;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(40 * s0), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = stage0_t0;
      const auto stage0_t2 = load(lanes, in1 + i1);
      const auto stage0_t3 = stage0_t2;
      const auto stage0_t4 = stage0_t1 * stage0_t3;
      const auto stage0_t7 = cast<f8e4m3fnuz>(stage0_t4);
      const auto stage0_t9 = cast<f8e8m0fnu>(stage0_t4);
      const auto stage0_t10 = stage0_t7;
      const auto stage0_t11 = stage0_t9;
      const auto stage0_t12 = stage0_t10 * stage0_t11;
      store(lanes, out0 + i1, stage0_t1);
      store(lanes, out1 + i1, stage0_t4);
      store(lanes, out2 + i1, stage0_t4);
      store(lanes, out3 + i1, stage0_t4);
      store(lanes, out4 + i1, stage0_t4);
      store(lanes, out5 + i1, stage0_t4);
      store(lanes, out6 + i1, stage0_t12);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_ef)

AOTI_KERNEL(256) k_vf(Run run, const f8e5m2fnuz *in0, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 480;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(480), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = stage0_t0;
      store(lanes, out0 + i1, stage0_t1);
    });
  }
}
AOTI_KERNEL_END(k_vf)

AOTI_KERNEL(256) k_product(Run run, const f32 *in0, const f32 *in1, f32 *__restrict__ out0, f8e4m3fn *__restrict__ out1, i32 s0) {
  (void)run;
  begin_kernel();
  const i32 m = s0, n = 12, k = 40;
  const i32 across = ceil_div(n, 16), down = ceil_div(m, 64);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 16, row0 = unit / across % down * 64, batch = unit / across / down;
    (void)batch, (void)row0;
    contract<f32, 64, 16, 256, 4>(row0, column0, m, n, k,
        Strided<f32, i32, true>{whole(in0), 40, 1},
        Strided<f32, i32, false>{whole(in1), 1, 12},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, whole_lanes(lanes, out0 + (12 * i0 + i1)), t0);
          store(lanes, whole_lanes(lanes, out1 + (12 * i0 + i1)), t0);
        });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_product)

