// Kernels of the model `control` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/rows.h"
#include "aoti/gpu/scan.h"
#include "aoti/gpu/sort.h"

using namespace aoti;

AOTI_KERNEL(256) k_map_map(Run run, const f32 *in0, f32 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 8 * s0;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(8 * s0), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = exp(stage0_t0);
      store(lanes, out0 + i1, stage0_t1);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_map_map)

AOTI_KERNEL(256) k_map_map_2(Run run, const f32 *in0, f32 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 8 * s0;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(8 * s0), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = -stage0_t0;
      store(lanes, out0 + i1, stage0_t1);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_map_map_2)

AOTI_KERNEL(256) k_keep_z_map(Run run, const f32 *in0, f32 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 8 * s0;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(8 * s0), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      store(lanes, out0 + i1, stage0_t0);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_keep_z_map)

AOTI_KERNEL(1) k_keep_left_map(Run run, const i64 *in0, i64 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 1, false> team{};
  const i32 units = 1;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    const auto stage0_t0 = load(Full<1>{}, in0);
    {
      constexpr Full<1> lanes{};
      constexpr Slot<0> slot{};
      (void)lanes, (void)slot;
      store(Full<1>{}, out0, stage0_t0);
    }
  }
}
AOTI_KERNEL_END(k_keep_left_map)

AOTI_KERNEL(1) k_map_map_3(Run run, const i64 *in0, bool *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 1, false> team{};
  const i32 units = 1;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    const auto stage0_t0 = load(Full<1>{}, in0);
    const auto stage0_t1 = broadcast(Full<1>{}, i64(0));
    const auto stage0_t2 = stage0_t0 > stage0_t1;
    {
      constexpr Full<1> lanes{};
      constexpr Slot<0> slot{};
      (void)lanes, (void)slot;
      store(Full<1>{}, out0, stage0_t2);
    }
  }
}
AOTI_KERNEL_END(k_map_map_3)

AOTI_KERNEL(256) k_map_map_4(Run run, const f32 *in0, f32 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 8 * s0;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(8 * s0), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = stage0_t0 + stage0_t0;
      store(lanes, out0 + i1, stage0_t1);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_map_map_4)

AOTI_KERNEL(1) k_map_map_5(Run run, const i64 *in0, i64 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 1, false> team{};
  const i32 units = 1;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    const auto stage0_t0 = load(Full<1>{}, in0);
    const auto stage0_t1 = broadcast(Full<1>{}, i64(1));
    const auto stage0_t2 = stage0_t0 - stage0_t1;
    {
      constexpr Full<1> lanes{};
      constexpr Slot<0> slot{};
      (void)lanes, (void)slot;
      store(Full<1>{}, out0, stage0_t2);
    }
  }
}
AOTI_KERNEL_END(k_map_map_5)

AOTI_KERNEL(256) k_rows(Run run, const f32 *in0, f32 *__restrict__ out0, i32 s1) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 8 * s1;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(8 * s1), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      store(lanes, out0 + i1, stage0_t0);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_rows)

AOTI_KERNEL(512) k_sum(Run run, const f32 *in0, f32 *__restrict__ out0, i32 s1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<64, 8, true> team{};
  const i32 units = 1;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    const i32 i0 = unit * 8 + team.place() * 1;
    const auto lanes = lanes_before<1>(i0, i32(8));
    constexpr Slot<0> slot{};
    (void)slot;
    SumAccumulator<f32, 1> accumulator0;
    over_slots<1>(team, i32(s1), [&](auto, i32 i1, auto slot) {
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (i0 + 8 * i1));
      accumulator0.add(lanes, slot, stage0_t0);
    });
    accumulator0.combine_lanes(team);
    const auto stage1_t0 = accumulator0.value();
    if (team.leads()) {
      store(lanes, out0 + i0, stage1_t0);
    }
  }
}
AOTI_KERNEL_END(k_sum)

AOTI_KERNEL(128) k_sorted(Run run, const f32 *in0, f32 *__restrict__ out0, i64 *__restrict__ out1, i64 s1) {
  (void)run;
  begin_kernel();
  sort_runs<128, 64, f32, false>(in0, NoPlaces{}, out0, out1, s1, 8, 1, 8, 8);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_sorted)

