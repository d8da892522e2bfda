// Kernels of the model `kernels` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/scatter.h"
#include "aoti/gpu/contract.h"
#include "aoti/gpu/units.h"
#include "aoti/rows.h"
#include "aoti/gpu/scan.h"
#include "aoti/gpu/sort.h"

using namespace aoti;

AOTI_KERNEL(256) k_chain(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 100003;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i0 = unit * 1;
    with_lanes<1>(i0, i32(100003), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i0);
      const auto stage0_t1 = tanh(stage0_t0);
      const auto stage0_t2 = stage0_t0 * stage0_t1;
      store(lanes, out0 + i0, stage0_t2);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_chain)

AOTI_KERNEL(256) k_half(Run run, const f16 *in0, f16 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 64000;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(64000), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = stage0_t0;
      const auto stage0_t2 = sigmoid(stage0_t1);
      store(lanes, out0 + i1, stage0_t2);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_half)

AOTI_KERNEL(256) k_top(Run run, const f32 *in0, i64 *__restrict__ out0, f32 *__restrict__ out1) {
  (void)run;
  begin_kernel();
  constexpr Team<256, 1, false> team{};
  OwnRow<f32, 4, 1> row0;
  OwnRow<f32, 4, 1> row1;
  const i32 units = 37;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    const i32 i0 = unit;
    (void)i0;
    MaxAccumulator<f32, 4> accumulator0;
    ArgAccumulator<f32, 4, true> accumulator2;
    over_own<4, 1>(team, i32(1000), [&](auto lanes, i32 i1, auto slot) {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, aligned<16>(in0 + (1000 * i0 + i1)));
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
      store(Full<1>{}, out0 + i0, stage1_t1);
    }
    SumAccumulator<f32, 4> accumulator1;
    const auto stage2_t1 = stage1_t0;
    over_own<4, 1>(team, i32(1000), [&](auto lanes, i32 i1, auto slot) {
      (void)lanes, (void)slot;
      const auto stage2_t0 = load(lanes, row0.at(slot));
      const auto stage2_v1 = spread(lanes, stage2_t1);
      const auto stage2_t2 = stage2_t0 - stage2_v1;
      const auto stage2_t3 = exp(stage2_t2);
      store(lanes, row1.at(slot), stage2_t3);
      accumulator1.add(lanes, slot, stage2_t3);
    });
    accumulator1.combine(team);
    const auto stage3_t0 = accumulator1.result();
    const auto stage4_t1 = stage3_t0;
    over_own<4, 1>(team, i32(1000), [&](auto lanes, i32 i1, auto slot) {
      (void)lanes, (void)slot;
      const auto stage4_t0 = load(lanes, row1.at(slot));
      const auto stage4_v1 = spread(lanes, stage4_t1);
      const auto stage4_t2 = stage4_t0 / stage4_v1;
      store(lanes, aligned<16>(out1 + (1000 * i0 + i1)), stage4_t2);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_top)

AOTI_KERNEL(256) k_fewsum(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<32, 8, false> team{};
  const i32 units = 5;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 8 + team.place(); unit < units; unit += i32(block_count()) * 8) {
    const i32 i0 = unit;
    (void)i0;
    SumAccumulator<f32, 4> accumulator0;
    over_slots<4>(team, i32(24), [&](auto lanes, i32 i1, auto slot) {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, aligned<16>(in0 + (24 * i0 + i1)));
      accumulator0.add(lanes, slot, stage0_t0);
    });
    accumulator0.combine(team);
    const auto stage1_t0 = accumulator0.result();
    if (team.leads()) {
      constexpr Full<1> lanes{};
      constexpr Slot<0> slot{};
      (void)lanes, (void)slot;
      store(Full<1>{}, out0 + i0, stage1_t0);
    }
  }
}
AOTI_KERNEL_END(k_fewsum)

AOTI_KERNEL(512) k_columns(Run run, const f32 *in0, f32 *__restrict__ out0, f32 *__restrict__ out1, i64 *__restrict__ out2) {
  (void)run;
  begin_kernel();
  constexpr Team<64, 8, true> team{};
  const i32 units = 9;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    const i32 i0 = unit * 8 + team.place() * 1;
    const auto lanes = lanes_before<1>(i0, i32(70));
    constexpr Slot<0> slot{};
    (void)slot;
    SumAccumulator<f32, 1> accumulator0;
    MinAccumulator<f32, 1> accumulator1;
    ArgAccumulator<f32, 1, false> accumulator2;
    over_slots<1>(team, i32(3000), [&](auto, i32 i1, auto slot) {
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (i0 + 70 * i1));
      accumulator0.add(lanes, slot, stage0_t0);
      accumulator1.add(lanes, slot, stage0_t0);
      accumulator2.add(lanes, slot, stage0_t0, broadcast(lanes, i64(i1)));
    });
    accumulator0.combine_lanes(team);
    accumulator1.combine_lanes(team);
    accumulator2.combine_lanes(team);
    const auto stage1_t0 = accumulator0.value();
    const auto stage1_t1 = accumulator1.value();
    const auto stage1_t2 = accumulator2.value();
    if (team.leads()) {
      store(lanes, out0 + i0, stage1_t0);
      store(lanes, out1 + i0, stage1_t1);
      store(lanes, out2 + i0, stage1_t2);
    }
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_columns)

AOTI_CLUSTER_KERNEL(1024, 8) k_all(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1024, 1, false, 8> team{};
  if (team.is_idle()) return;
  team.gather();
  const i32 units = 1;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index() / 8); unit < units; unit += i32(block_count() / 8)) {
    SumAccumulator<f32, 4> accumulator0;
    over_slots<4>(team, i32(210000), [&](auto lanes, i32 i1, auto slot) {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, aligned<16>(in0 + i1));
      accumulator0.add(lanes, slot, stage0_t0);
    });
    accumulator0.combine(team);
    const auto stage1_t0 = accumulator0.result();
    if (team.leads()) {
      constexpr Full<1> lanes{};
      constexpr Slot<0> slot{};
      (void)lanes, (void)slot;
      store(Full<1>{}, out0, stage1_t0);
    }
  }
}
AOTI_KERNEL_END(k_all)

AOTI_KERNEL(128) k_any(Run run, const bool *in0, bool *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<128, 1, false> team{};
  const i32 units = 9;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    const i32 i0 = unit;
    (void)i0;
    AnyAccumulator<4> accumulator0;
    over_slots<4>(team, i32(300), [&](auto lanes, i32 i1, auto slot) {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, aligned<4>(in0 + (300 * i0 + i1)));
      accumulator0.add(lanes, slot, stage0_t0);
    });
    accumulator0.combine(team);
    const auto stage1_t0 = accumulator0.result();
    if (team.leads()) {
      constexpr Full<1> lanes{};
      constexpr Slot<0> slot{};
      (void)lanes, (void)slot;
      store(Full<1>{}, out0 + i0, stage1_t0);
    }
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_any)

AOTI_KERNEL(1024) k_every(Run run, const bool *in0, bool *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1024, 1, false> team{};
  const i32 units = 1;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    AllAccumulator<4> accumulator0;
    over_slots<4>(team, i32(2700), [&](auto lanes, i32 i1, auto slot) {
      (void)lanes, (void)slot;
      const auto stage0_t0 = load(lanes, aligned<4>(in0 + i1));
      accumulator0.add(lanes, slot, stage0_t0);
    });
    accumulator0.combine(team);
    const auto stage1_t0 = accumulator0.result();
    if (team.leads()) {
      constexpr Full<1> lanes{};
      constexpr Slot<0> slot{};
      (void)lanes, (void)slot;
      store(Full<1>{}, out0, stage1_t0);
    }
  }
}
AOTI_KERNEL_END(k_every)

AOTI_KERNEL(256) k_picked(Run run, const i64 *in0, const f32 *in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 1650;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 steps = 33;
    const i32 i0 = (unit / steps);
    (void)i0;
    const i32 i1 = unit % steps * 1;
    with_lanes<1>(i1, i32(33), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(Full<1>{}, in0 + i0);
      const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 20, 0);
      const auto stage0_v1 = spread(lanes, stage0_t1);
      const auto stage0_t2 = load(lanes, in1 + (i1 + lane(stage0_t1, 0) * (33)));
      store(lanes, out0 + (33 * i0 + i1), stage0_t2);
    });
  }
}
AOTI_KERNEL_END(k_picked)

AOTI_KERNEL(256) k_map_map(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 660;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(660), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      store(lanes, out0 + i1, stage0_t0);
    });
  }
}
AOTI_KERNEL_END(k_map_map)

AOTI_KERNEL(1024) k_added(Run run, const f32 *in0, const i64 *in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const auto key = [&](i32 update) {
    const i32 i0 = update;
    (void)i0;
    const auto stage0_t0 = load(Full<1>{}, in1 + i0);
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 20, 0);
    return u32(lane(stage0_t1, 0));
  };
  const auto value = [&](auto lanes, i32 update, i32 column, auto &accumulator0) {
    (void)update, (void)column;
    constexpr Slot<0> slot{};
    const i32 i0 = update;
    (void)i0;
    const i32 i1 = column;
    (void)i1;
    const auto stage0_t0 = load(Full<1>{}, in0 + (33 * i0 + i1));
    accumulator0.add(lanes, slot, stage0_t0);
  };
  const auto at = [&](f32 *out, u32 key, i32 column) {
    (void)key, (void)column;
    const i32 i1 = column;
    (void)i1;
    return out + (i32(key) * (33) + (i1));
  };
  AOTI_DYNAMIC_SHARED(shared);
  add_columns(shared, out0, i32(50), i32(33), i32(20), key, value, at);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_added)

AOTI_KERNEL(256) k_product(Run run, const f32 *in0, const f32 *__restrict__ in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const i32 m = 17, n = 24, k = 40;
  const i32 across = ceil_div(n, 32), down = ceil_div(m, 16);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (3); unit += i32(block_count())) {
    const i32 column0 = unit % across * 32, row0 = unit / across % down * 16, batch = unit / across / down;
    (void)batch, (void)row0;
    const i32 i0 = batch / (1) % (3);
    (void)i0;
    contract<f32, 16, 32, 256, 4>(row0, column0, m, n, k,
        Strided<f32, i32, true>{whole(in0) + (680 * i0), 40, 1},
        Strided<f32, i32, false>{whole(in1), 1, 24},
        [&](i32 i1, i32 i2, auto lanes, auto sum) {
          (void)i1, (void)i2;
          const auto t0 = sum;
          const auto t1 = sigmoid(t0);
          store(lanes, whole_lanes(lanes, out0 + (408 * i0 + 24 * i1 + i2)), t1);
        });
  }
}
AOTI_KERNEL_END(k_product)

AOTI_KERNEL(128) k_halves(Run run, const bf16 *in0, const bf16 *in1, bf16 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const i32 m = 130, n = 200, k = 70;
  const i32 across = ceil_div(n, 64), down = ceil_div(m, 64);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 64, row0 = unit / across % down * 64, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_units<bf16, 64, 64, 128, 8>(row0, column0, m, n, k,
        Strided<bf16, i32, true>{whole(in0), 70, 1},
        Strided<bf16, i32, true>{whole(in1), 70, 1},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, whole_lanes(lanes, out0 + (200 * i0 + i1)), t0);
        });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_halves)

AOTI_KERNEL(256) k_whole(Run run, const i32 *in0, i32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const i32 m = 7, n = 7, k = 40;
  const i32 across = ceil_div(n, 64), down = ceil_div(m, 16);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 64, row0 = unit / across % down * 16, batch = unit / across / down;
    (void)batch, (void)row0;
    contract<i32, 16, 64, 256, 1>(row0, column0, m, n, k,
        Strided<i32, i32, false>{whole(in0), 1, 7},
        Strided<i32, i32, false>{whole(in0), 1, 7},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = cast<i32>(sum);
          store(lanes, out0 + (7 * i0 + i1), t0);
        });
  }
}
AOTI_KERNEL_END(k_whole)

AOTI_KERNEL(256) k_conv(Run run, const f32 *in0, const f32 *__restrict__ in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const ConvSizes<i32> shape{2, 4, 6, 1, {1, 9, 11}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {1, 5, 6}};
  const i32 m = 6, n = 60, k = shape.depth();
  const i32 across = ceil_div(n, 64), down = ceil_div(m, 16);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 64, row0 = unit / across % down * 16, batch = unit / across / down;
    (void)batch, (void)row0;
    contract<f32, 16, 64, 256, 2>(row0, column0, m, n, k,
        Strided<f32, i32, true>{whole(in1) + batch * m * k, k, 1},
        Pixels<f32, i32, false>{in0, shape, batch},
        [&](i32 row, i32 column, auto lanes, auto sums) {
          const i32 i1 = batch * m + row;
          (void)i1;
          by_image(lanes, column, i32(30), sums, [&](auto lanes, i32 i0, i32 i2, auto sum) {
            (void)i0, (void)i2;
            const auto t0 = sum;
            store(lanes, whole_lanes(lanes, out0 + (180 * i0 + 30 * i1 + i2)), t0);
          });
        });
  }
}
AOTI_KERNEL_END(k_conv)

AOTI_KERNEL(64) k_cumulative(Run run, const f64 *in0, f64 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  scan_rows<64, ScanSum, f64>(in0, out0, 6, 50, 4);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_cumulative)

AOTI_KERNEL(64) k_running(Run run, const f64 *in0, f64 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  begin_kernel();
  scan_extreme_rows<64, ScanMax, f64>(in0, out0, out1, 6, 50, 4);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_running)

AOTI_KERNEL(256) k_lengthwise(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  scan_rows<256, ScanSum, f32>(in0, out0, 37, 1000, 1);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_lengthwise)

AOTI_KERNEL(256) k_map_map_2(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 52325;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i2 = unit * 4;
    with_lanes<4>(i2, i32(209300), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, aligned<16>(in0 + i2));
      store(lanes, aligned<16>(out0 + i2), stage0_t0);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_map_map_2)

AOTI_KERNEL(64) k_rows_rows(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  scan_rows<64, ScanLogSumExp, f32>(in0, out0, 46, 65, 70);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_rows_rows)

AOTI_KERNEL(256) k_map_map_3(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 700;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(700), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      store(lanes, out0 + i1, stage0_t0);
    });
  }
}
AOTI_KERNEL_END(k_map_map_3)

AOTI_KERNEL(64) k_rows_rows_2(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  scan<ScanLogSumExp, f32>(run, in0, out0, 1, 10, 70);
}
AOTI_KERNEL_END(k_rows_rows_2)

AOTI_KERNEL(256) k_map_map_4(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 3220;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 steps = 70;
    const i32 i0 = (unit / steps);
    (void)i0;
    const i32 i1 = unit % steps * 1;
    with_lanes<1>(i1, i32(70), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (4550 * i0 + i1));
      store(lanes, out0 + (70 * i0 + i1), stage0_t0);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_map_map_4)

AOTI_KERNEL(256) k_map_map_5(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 70;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i0 = unit * 1;
    with_lanes<1>(i0, i32(70), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (i0 + 2));
      store(lanes, out0 + i0, stage0_t0);
    });
  }
}
AOTI_KERNEL_END(k_map_map_5)

AOTI_KERNEL(64) k_rows_rows_3(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  scan_rows<64, ScanLogSumExp, f32>(in0, out0, 1, 47, 70);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_rows_rows_3)

AOTI_KERNEL(256) k_map_map_6(Run run, const f32 *in0, const f32 *in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 104650;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 steps = 35;
    const i32 i0 = (unit / steps) / (65);
    (void)i0;
    const i32 i1 = (unit / steps) % (65);
    (void)i1;
    const i32 i2 = unit % steps * 2;
    with_lanes<2>(i2, i32(70), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = broadcast(Full<1>{}, i64(i0));
      const auto stage0_t1 = broadcast(Full<1>{}, i64(0));
      const auto stage0_t2 = stage0_t0 == stage0_t1;
      const auto stage0_t8 = broadcast(Full<1>{}, 0.0f);
      const auto stage0_t3 = load(lanes, aligned<8>(in0 + (4550 * i0 + 70 * i1 + i2)));
      const auto stage0_t4 = load_between(lanes, in1 + (70 * i0 + i2 - 70), 0, lanes.width, u64(i0 - 1) < u64(47), 0.0f);
      const auto stage0_t5 = maximum(stage0_t4, stage0_t3);
      const auto stage0_t6 = minimum(stage0_t4, stage0_t3);
      const auto stage0_t7 = stage0_t6 == stage0_t5;
      const auto stage0_t9 = stage0_t6 - stage0_t5;
      const auto stage0_v8 = spread(lanes, stage0_t8);
      const auto stage0_t10 = select(stage0_t7, stage0_v8, stage0_t9);
      const auto stage0_t11 = exp(stage0_t10);
      const auto stage0_t12 = log1p(stage0_t11);
      const auto stage0_t13 = stage0_t5 + stage0_t12;
      const auto stage0_v2 = spread(lanes, stage0_t2);
      const auto stage0_t14 = select(stage0_v2, stage0_t3, stage0_t13);
      store(lanes, aligned<8>(out0 + (4550 * i0 + 70 * i1 + i2)), stage0_t14);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_map_map_6)

AOTI_KERNEL(256) k_map_map_7(Run run, const f32 *in0, const f32 *in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 700;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 steps = 70;
    const i32 i0 = (unit / steps);
    (void)i0;
    const i32 i1 = unit % steps * 1;
    with_lanes<1>(i1, i32(70), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = broadcast(Full<1>{}, i64(46));
      const auto stage0_t1 = broadcast(Full<1>{}, i64(0));
      const auto stage0_t2 = stage0_t0 == stage0_t1;
      const auto stage0_t8 = broadcast(Full<1>{}, 0.0f);
      const auto stage0_t3 = load(lanes, in0 + (70 * i0 + i1));
      const auto stage0_t4 = load(lanes, in1 + (i1 + 2));
      const auto stage0_t5 = maximum(stage0_t4, stage0_t3);
      const auto stage0_t6 = minimum(stage0_t4, stage0_t3);
      const auto stage0_t7 = stage0_t6 == stage0_t5;
      const auto stage0_t9 = stage0_t6 - stage0_t5;
      const auto stage0_v8 = spread(lanes, stage0_t8);
      const auto stage0_t10 = select(stage0_t7, stage0_v8, stage0_t9);
      const auto stage0_t11 = exp(stage0_t10);
      const auto stage0_t12 = log1p(stage0_t11);
      const auto stage0_t13 = stage0_t5 + stage0_t12;
      const auto stage0_v2 = spread(lanes, stage0_t2);
      const auto stage0_t14 = select(stage0_v2, stage0_t3, stage0_t13);
      store(lanes, out0 + (70 * i0 + i1), stage0_t14);
    });
  }
}
AOTI_KERNEL_END(k_map_map_7)

AOTI_KERNEL(128) k_lowest(Run run, const f32 *in0, f32 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  begin_kernel();
  scan_extreme_rows<128, ScanMin, f32>(in0, out0, out1, 12, 260, 1);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_lowest)

AOTI_KERNEL(64) k_numbers(Run run, const i32 *in0, i32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  scan_rows<64, ScanProd, i32>(in0, out0, 1, 40, 7);
}
AOTI_KERNEL_END(k_numbers)

AOTI_KERNEL(256) k_halfway(Run run, const f16 *in0, f16 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  scan_rows<256, ScanSum, f16>(in0, out0, 64, 1000, 1);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_halfway)

AOTI_KERNEL(128) k_sorted(Run run, const f32 *in0, f32 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  begin_kernel();
  sort_runs<128, 1, f32, true>(in0, NoPlaces{}, out0, out1, 12, 260, 1, 260, 260);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_sorted)

AOTI_KERNEL(128) k_ascending(Run run, const f32 *in0, f32 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  begin_kernel();
  sort_runs<128, 1, f32, false>(in0, NoPlaces{}, out0, out1, 12, 260, 1, 260, 260);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_ascending)

AOTI_KERNEL(64) k_found(Run run, const f32 *in0, const f32 *in1, i64 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  search_sorted<f32, true>(run, in0, in1, out0, 12, 260, 260);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_found)

AOTI_KERNEL(256) k_turned2(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, true> team{};
  const i32 units = 282;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    const i32 tiles_across = ceil_div(i32(3000), 32), tiles_down = ceil_div(i32(70), 32);
    const i32 i1_first = unit % tiles_across * 32, i0_first = unit / tiles_across % tiles_down * 32;
    AOTI_SHARED StagedTile<f32> tile0;
    each_of_tile(team, [&](int row, int column) {
      const i32 i1 = i1_first + row, i0 = i0_first + column;
      if (i1 < 3000 && i0 < 70) {
        tile0.rows[row][column] = load(Full<1>{}, in0 + (i0 + 70 * i1));
      }
    });
    barrier();
    each_of_tile(team, [&](int row, int column) {
      const i32 i0 = i0_first + row, i1 = i1_first + column;
      if (i1 < 3000 && i0 < 70) {
        const auto stage0_t0 = tile0.rows[column][row];
        const auto stage0_t1 = -stage0_t0;
        {
          constexpr Full<1> lanes{};
          constexpr Slot<0> slot{};
          (void)lanes, (void)slot;
          store(Full<1>{}, out0 + (3000 * i0 + i1), stage0_t1);
        }
      }
    });
    barrier();
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_turned2)

AOTI_KERNEL(256) k_planes(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, true> team{};
  const i32 units = 169;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    const i32 tiles_across = ceil_div(i32(400), 32), tiles_down = ceil_div(i32(410), 32);
    const i32 i1_first = unit % tiles_across * 32, i0_first = unit / tiles_across % tiles_down * 32;
    AOTI_SHARED StagedTile<f32> tile0;
    each_of_tile(team, [&](int row, int column) {
      const i32 i1 = i1_first + row, i0 = i0_first + column;
      if (i1 < 400 && i0 < 410) {
        tile0.rows[row][column] = load(Full<1>{}, in0 + (i0 + 410 * i1));
      }
    });
    barrier();
    each_of_tile(team, [&](int row, int column) {
      const i32 i0 = i0_first + row, i1 = i1_first + column;
      if (i1 < 400 && i0 < 410) {
        const auto stage0_t0 = tile0.rows[column][row];
        const auto stage0_t1 = exp(stage0_t0);
        {
          constexpr Full<1> lanes{};
          constexpr Slot<0> slot{};
          (void)lanes, (void)slot;
          store(Full<1>{}, out0 + (400 * i0 + i1), stage0_t1);
        }
      }
    });
    barrier();
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_planes)

AOTI_KERNEL(256) k_padded(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 37148;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 steps = 1004;
    const i32 i0 = (unit / steps);
    (void)i0;
    const i32 i1 = unit % steps * 1;
    with_lanes<1>(i1, i32(1004), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load_between(lanes, in0 + (1000 * i0 + i1 - 2), -i1 + 2, -i1 + 1002, true, 7.0f);
      store(lanes, out0 + (1004 * i0 + i1), stage0_t0);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_padded)

AOTI_KERNEL(256) k_sines(Run run, const f64 *in0, f64 *__restrict__ out0, f64 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 1200;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i2 = unit * 1;
    with_lanes<1>(i2, i32(1200), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i2);
      const auto stage0_t1 = sin(stage0_t0);
      const auto stage0_t2 = erf(stage0_t0);
      store(lanes, out0 + i2, stage0_t1);
      store(lanes, out1 + i2, stage0_t2);
    });
  }
}
AOTI_KERNEL_END(k_sines)

