// Kernels of the model `together` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/contract.h"
#include "aoti/rows.h"
#include "aoti/gpu/scan.h"
#include "aoti/gpu/sort.h"

using namespace aoti;

AOTI_KERNEL(256) k_two(Run run, const f32 *in0, const f32 *in1, const f32 *in2, f32 *__restrict__ out0, f32 *__restrict__ out1, f32 *__restrict__ out2, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<32, 8, false> team{};
  const i32 units = s0;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 8 + team.place(); unit < units; unit += i32(block_count()) * 8) {
    const i32 i0 = unit;
    (void)i0;
    SumAccumulator<f32, 1> accumulator0;
    over_slots<1>(team, i32(65), [&](auto lanes, i32 i1, auto slot) {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load_between(lanes, in0 + (40 * i0 + i1), -i1, -i1 + 40, true, 0.0f);
      const auto stage0_t1 = load_between(lanes, in1 + (24 * i0 + i1 - 40), -i1 + 40, -i1 + 64, true, 0.0f);
      const auto stage0_t2 = load_between(lanes, in2 + (i0 + i1 - 64), -i1 + 64, -i1 + 65, true, 0.0f);
      const auto stage0_t3 = inside(iota32(lanes, i32(i1 - 40)), 24);
      const auto stage0_t4 = select(stage0_t3, stage0_t1, stage0_t2);
      const auto stage0_t5 = inside(iota32(lanes, i32(i1)), 40);
      const auto stage0_t6 = select(stage0_t5, stage0_t0, stage0_t4);
      const auto stage0_t7 = -stage0_t6;
      store(lanes, out0 + (65 * i0 + i1), stage0_t7);
      accumulator0.add(lanes, slot, stage0_t6);
    });
    accumulator0.combine(team);
    const auto stage1_t0 = accumulator0.result();
    if (team.leads()) {
      constexpr Full<1> lanes{};
      constexpr Slot<0> slot{};
      (void)lanes, (void)slot;
      store(Full<1>{}, out1 + i0, stage1_t0);
    }
    over<1>(team, i32(40), [&](auto lanes, i32 i1, auto slot) {
      (void)lanes, (void)slot;
      const auto stage2_t0 = load_between(lanes, in0 + (40 * i0 + i1 + 20), -i1, -i1 + 20, true, 0.0f);
      const auto stage2_t1 = -stage2_t0;
      const auto stage2_t2 = load_between(lanes, in0 + (40 * i0 + i1 - 20), -i1 + 20, -i1 + 40, true, 0.0f);
      const auto stage2_t3 = inside(iota32(lanes, i32(i1)), 20);
      const auto stage2_t4 = select(stage2_t3, stage2_t1, stage2_t2);
      const auto stage2_t5 = load(lanes, in0 + (40 * i0 + i1));
      const auto stage2_t6 = stage2_t4 * stage2_t5;
      store(lanes, out2 + (40 * i0 + i1), stage2_t6);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_two)

AOTI_KERNEL(256) k_parts(Run run, const f32 *in0, f32 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 24 * s0 + 24;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 steps = 24;
    const i32 i0 = (unit / steps);
    (void)i0;
    const i32 i1 = unit % steps * 1;
    with_lanes<1>(i1, i32(24), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t3 = broadcast(Full<1>{}, u64(i0 - 1) < u64(s0));
      const auto stage0_t5 = broadcast(Full<1>{}, u64(s0 + i0 - 1) < u64(s0));
      const auto stage0_t0 = load_between(lanes, in0 + (40 * s0 + 40 * i0 + i1 - 37), 0, lanes.width, u64(s0 + i0 - 1) < u64(s0), 0.0f);
      const auto stage0_t1 = load_between(lanes, in0 + (40 * i0 + i1 - 37), 0, lanes.width, u64(i0 - 1) < u64(s0), 0.0f);
      const auto stage0_t2 = load_between(lanes, in0 + (-40 * s0 + 40 * i0 + i1 - 37), 0, lanes.width, u64(-s0 + i0 - 1) < u64(s0), 0.0f);
      const auto stage0_v3 = spread(lanes, stage0_t3);
      const auto stage0_t4 = select(stage0_v3, stage0_t1, stage0_t2);
      const auto stage0_v5 = spread(lanes, stage0_t5);
      const auto stage0_t6 = select(stage0_v5, stage0_t0, stage0_t4);
      const auto stage0_t7 = abs(stage0_t6);
      store(lanes, out0 + (24 * i0 + i1), stage0_t7);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_parts)

AOTI_KERNEL(256) k_gemm(Run run, const f32 *in0, const f32 *__restrict__ in1, f32 *__restrict__ out0) {
  (void)run;
  const i32 m = 2, n = 44, k = 37;
  const i32 across = ceil_div(n, 8), down = ceil_div(m, 4);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 8, row0 = unit / across % down * 4, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_few<f32, 4, 8, true>(column0, m, n, k,
        Strided<f32, i32, true>{whole(in0), 37, 1},
        Strided<f32, i32, true>{whole(in1), 37, 1},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, out0 + (44 * i0 + i1), t0);
        });
  }
  begin_kernel();
}
AOTI_KERNEL_END(k_gemm)

AOTI_KERNEL(256) k_k(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 24;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 steps = 12;
    const i32 i0 = (unit / steps);
    (void)i0;
    const i32 i1 = unit % steps * 1;
    with_lanes<1>(i1, i32(12), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (44 * i0 + i1));
      store(lanes, out0 + (44 * i0 + i1), stage0_t0);
    });
  }
}
AOTI_KERNEL_END(k_k)

AOTI_KERNEL(256) k_q(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 40;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 steps = 20;
    const i32 i0 = (unit / steps);
    (void)i0;
    const i32 i1 = unit % steps * 1;
    with_lanes<1>(i1, i32(20), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (44 * i0 + i1));
      store(lanes, out0 + (44 * i0 + i1), stage0_t0);
    });
  }
}
AOTI_KERNEL_END(k_q)

AOTI_KERNEL(256) k_few(Run run, const bf16 *in0, const bf16 *__restrict__ in1, bf16 *__restrict__ out0) {
  (void)run;
  const i32 m = 3, n = 51, k = 331;
  const i32 across = ceil_div(n, 8), down = ceil_div(m, 4);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 8, row0 = unit / across % down * 4, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_few<f32, 4, 8, true>(column0, m, n, k,
        Strided<bf16, i32, true>{whole(in0), 331, 1},
        Strided<bf16, i32, true>{whole(in1), 331, 1},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, out0 + (51 * i0 + i1), t0);
        });
  }
  begin_kernel();
}
AOTI_KERNEL_END(k_few)

AOTI_KERNEL(256) k_fixed(Run run, const f32 *in0, const f32 *__restrict__ in1, f32 *__restrict__ out0) {
  (void)run;
  const i32 m = 2, n = 33, k = 64;
  const i32 across = ceil_div(n, 8), down = ceil_div(m, 4);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 8, row0 = unit / across % down * 4, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_few<f32, 4, 8, true>(column0, m, n, k,
        Strided<f32, i32, true>{whole(in0), 64, 1},
        Strided<f32, i32, true>{whole(in1), 64, 1},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, out0 + (33 * i0 + i1), t0);
        });
  }
  begin_kernel();
}
AOTI_KERNEL_END(k_fixed)

AOTI_KERNEL(256) k_exp(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 2112;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(2112), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = exp(stage0_t0);
      store(lanes, out0 + i1, stage0_t1);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_exp)

AOTI_KERNEL(128) k_sorted(Run run, const f32 *in0, f32 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  sort_runs<128, 8, f32, false>(in0, NoPlaces{}, out0, out1, 33, 64, 1, 64, 64);
}
AOTI_KERNEL_END(k_sorted)

AOTI_KERNEL(256) k_moved(Run run, const f32 *in0, const f32 *in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const i32 m = 2, n = 33, k = 64;
  const i32 across = ceil_div(n, 8), down = ceil_div(m, 4);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 8, row0 = unit / across % down * 4, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_few<f32, 4, 8>(column0, m, n, k,
        Strided<f32, i32, true>{whole(in0), 64, 1},
        Strided<f32, i32, true>{whole(in1), 64, 1},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, out0 + (33 * i0 + i1), t0);
        });
  }
}
AOTI_KERNEL_END(k_moved)

AOTI_KERNEL(256) k_one(Run run, const f32 *in0, const f32 *in1, const f32 *in2, f32 *__restrict__ out0, f32 *__restrict__ out1, f32 *__restrict__ out2) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 60;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(60), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = exp(stage0_t0);
      const auto stage0_t2 = load(lanes, in1 + i1);
      const auto stage0_t3 = -stage0_t2;
      const auto stage0_t4 = load(lanes, in2 + i1);
      const auto stage0_t5 = abs(stage0_t4);
      store(lanes, out0 + i1, stage0_t1);
      store(lanes, out1 + i1, stage0_t3);
      store(lanes, out2 + i1, stage0_t5);
    });
  }
}
AOTI_KERNEL_END(k_one)

