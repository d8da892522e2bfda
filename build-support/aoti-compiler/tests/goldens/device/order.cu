// Kernels of the model `order` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/rows.h"
#include "aoti/gpu/scan.h"
#include "aoti/gpu/sort.h"
#include "aoti/nth_element.h"
#include "aoti/gpu/nth_element.h"

using namespace aoti;

AOTI_KERNEL(1024) k_sorted_rows(Run run, const f32 *in0, f32 *__restrict__ out0, i32 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  sort_runs<1024, 1, f32, false>(in0, NoPlaces{}, out0, out1, 2, 9000, 1, 4096, 4096);
}
AOTI_KERNEL_END(k_sorted_rows)

AOTI_KERNEL(512) k_sorted_rows_2(Run run, const f32 *in0, const i32 *in1, f32 *__restrict__ out0, i32 *__restrict__ out1) {
  (void)run;
  begin_kernel();
  merge_runs<512, f32, false>(in0, in1, out0, out1, 2, 9000, 1, 9000, 4096);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_sorted_rows_2)

AOTI_KERNEL(512) k_sorted_rows_3(Run run, const f32 *in0, const i32 *in1, f32 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  begin_kernel();
  merge_runs<512, f32, false>(in0, in1, out0, out1, 2, 9000, 1, 9000, 8192);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_sorted_rows_3)

AOTI_KERNEL(512) k_top_rows(Run run, const f64 *in0, f64 *__restrict__ out0, i32 *__restrict__ out1) {
  (void)run;
  begin_kernel();
  sort_runs<512, 1, f64, true>(in0, NoPlaces{}, out0, out1, 3, 9000, 1, 2048, 5);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_top_rows)

AOTI_KERNEL(128) k_top_rows_2(Run run, const f64 *in0, const i32 *in1, f64 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  sort_runs<128, 16, f64, true>(in0, in1, out0, out1, 3, 25, 1, 25, 5);
}
AOTI_KERNEL_END(k_top_rows_2)

AOTI_KERNEL(512) k_least_rows(Run run, const i64 *in0, i64 *__restrict__ out0, i32 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  sort_runs<512, 1, i64, false>(in0, NoPlaces{}, out0, out1, 1, 5000, 2, 2048, 2048);
}
AOTI_KERNEL_END(k_least_rows)

AOTI_KERNEL(512) k_least_rows_2(Run run, const i64 *in0, const i32 *in1, i64 *__restrict__ out0, i32 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  merge_runs<512, i64, false>(in0, in1, out0, out1, 1, 5000, 2, 5000, 2048);
}
AOTI_KERNEL_END(k_least_rows_2)

AOTI_KERNEL(512) k_least_rows_3(Run run, const i64 *in0, const i32 *in1, i64 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  merge_runs<512, i64, false>(in0, in1, out0, out1, 1, 5000, 2, 3000, 4096);
}
AOTI_KERNEL_END(k_least_rows_3)

AOTI_KERNEL(128) k_short(Run run, const f16 *in0, f16 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  begin_kernel();
  sort_runs<128, 16, f16, true>(in0, NoPlaces{}, out0, out1, 300, 20, 1, 20, 20);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_short)

AOTI_KERNEL(1024) k_only(Run run, const f16 *in0, f16 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  begin_kernel();
  nth_elements<1024, f16, false>(in0, 10, out0, out1, nullptr, 300, 20, 1);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_only)

AOTI_KERNEL(1024) k_nth(Run run, char *scratch, const f32 *in0, const i64 *in1, f32 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  nth_elements<1024, f32, true>(in0, in1, out0, out1, scratch, 2, 9000, 1);
}
AOTI_KERNEL_END(k_nth)

AOTI_KERNEL(256) k_map_map(Run run, const bf16 *in0, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 39996;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(39996), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = stage0_t0;
      store(lanes, out0 + i1, stage0_t1);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_map_map)

AOTI_KERNEL(1024) k_rows_rows(Run run, const f32 *in0, f32 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  begin_kernel();
  scan_extreme_rows<1024, ScanMax, f32>(in0, out0, out1, 9, 4444, 1);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_rows_rows)

AOTI_KERNEL(256) k_map_map_2(Run run, const bf16 *in0, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 4;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i0 = unit * 1;
    with_lanes<1>(i0, i32(4), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + (i0 + 4));
      const auto stage0_t1 = stage0_t0;
      store(lanes, out0 + i0, stage0_t1);
    });
  }
}
AOTI_KERNEL_END(k_map_map_2)

AOTI_KERNEL(64) k_rows_rows_2(Run run, const f32 *in0, f32 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  scan_extreme<ScanMax, f32>(run, in0, out0, out1, 1, 4, 1);
}
AOTI_KERNEL_END(k_rows_rows_2)

AOTI_KERNEL(256) k_map_map_3(Run run, const f32 *in0, const i64 *in1, f32 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 9;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i0 = unit * 1;
    with_lanes<1>(i0, i32(9), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load_strided(lanes, in0 + (4444 * i0 + 3), 4444);
      const auto stage0_t1 = load_strided(lanes, in1 + (4444 * i0 + 1), 4444);
      const auto stage0_t2 = iota(lanes, 4444 * i0, 4444);
      const auto stage0_t3 = stage0_t1 + stage0_t2;
      store(lanes, out0 + i0, stage0_t0);
      store(lanes, out1 + i0, stage0_t3);
    });
  }
}
AOTI_KERNEL_END(k_map_map_3)

AOTI_KERNEL(1) k_map_map_4(Run run, const f32 *in0, const i64 *in1, f32 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 1, false> team{};
  const i32 units = 1;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    const auto stage0_t0 = load(Full<1>{}, in0 + 3);
    const auto stage0_t1 = load(Full<1>{}, in1 + 1);
    const auto stage0_t2 = broadcast(Full<1>{}, i64(39996));
    const auto stage0_t3 = stage0_t1 + stage0_t2;
    {
      constexpr Full<1> lanes{};
      constexpr Slot<0> slot{};
      (void)lanes, (void)slot;
      store(Full<1>{}, out0 + 1, stage0_t0);
      store(Full<1>{}, out1 + 1, stage0_t3);
    }
  }
}
AOTI_KERNEL_END(k_map_map_4)

AOTI_KERNEL(64) k_rows_rows_3(Run run, const f32 *in0, f32 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  scan_extreme<ScanMax, f32>(run, in0, out0, out1, 1, 10, 1);
}
AOTI_KERNEL_END(k_rows_rows_3)

AOTI_KERNEL(256) k_map_map_7(Run run, const i64 *in0, const i64 *in1, i64 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 10;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i0 = unit * 1;
    with_lanes<1>(i0, i32(10), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i0);
      const auto stage0_t1 = check_index(lanes, run, stage0_t0, 10, 0);
      const auto stage0_t2 = gather(lanes, in1, stage0_t1 * i64(1));
      store(lanes, out0 + i0, stage0_t2);
    });
  }
}
AOTI_KERNEL_END(k_map_map_7)

AOTI_KERNEL(256) k_map_map_8(Run run, const f32 *in0, const f32 *in1, const i64 *in2, const i64 *in3, bool *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 39996;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 steps = 4444;
    const i32 i0 = (unit / steps);
    (void)i0;
    const i32 i1 = unit % steps * 1;
    with_lanes<1>(i1, i32(4444), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t1 = load_between(Full<1>{}, in1 + (i0 - 1), 0, 1, u64(i0 - 1) < u64(10), 0.0f);
      const auto stage0_t5 = broadcast(Full<1>{}, i64(i0));
      const auto stage0_t6 = broadcast(Full<1>{}, i64(0));
      const auto stage0_t7 = stage0_t5 == stage0_t6;
      const auto stage0_t10 = broadcast(Full<1>{}, i64(4444 * i0));
      const auto stage0_t12 = load_between(Full<1>{}, in3 + (i0 - 1), 0, 1, u64(i0 - 1) < u64(10), i64(0));
      const auto stage0_t0 = load(lanes, in0 + (4444 * i0 + i1));
      const auto stage0_v1 = spread(lanes, stage0_t1);
      const auto stage0_t2 = stage0_t0 >= stage0_v1;
      const auto stage0_t3 = isnan(stage0_t0);
      const auto stage0_t4 = stage0_t2 | stage0_t3;
      const auto stage0_v7 = spread(lanes, stage0_t7);
      const auto stage0_t8 = stage0_v7 | stage0_t4;
      const auto stage0_t9 = load(lanes, in2 + (4444 * i0 + i1));
      const auto stage0_v10 = spread(lanes, stage0_t10);
      const auto stage0_t11 = stage0_t9 + stage0_v10;
      const auto stage0_v12 = spread(lanes, stage0_t12);
      const auto stage0_t13 = select(stage0_t8, stage0_t11, stage0_v12);
      store(lanes, out0 + (4444 * i0 + i1), stage0_t4);
      store(lanes, out1 + (4444 * i0 + i1), stage0_t13);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_map_map_8)

AOTI_KERNEL(256) k_map_map_9(Run run, const f32 *in0, const f32 *in1, const i64 *in2, const i64 *in3, bool *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 4;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i0 = unit * 1;
    with_lanes<1>(i0, i32(4), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t1 = load(Full<1>{}, in1);
      const auto stage0_t5 = broadcast(Full<1>{}, i64(9));
      const auto stage0_t6 = broadcast(Full<1>{}, i64(0));
      const auto stage0_t7 = stage0_t5 == stage0_t6;
      const auto stage0_t10 = broadcast(Full<1>{}, i64(39996));
      const auto stage0_t12 = load(Full<1>{}, in3);
      const auto stage0_t0 = load(lanes, in0 + i0);
      const auto stage0_v1 = spread(lanes, stage0_t1);
      const auto stage0_t2 = stage0_t0 >= stage0_v1;
      const auto stage0_t3 = isnan(stage0_t0);
      const auto stage0_t4 = stage0_t2 | stage0_t3;
      const auto stage0_v7 = spread(lanes, stage0_t7);
      const auto stage0_t8 = stage0_v7 | stage0_t4;
      const auto stage0_t9 = load(lanes, in2 + i0);
      const auto stage0_v10 = spread(lanes, stage0_t10);
      const auto stage0_t11 = stage0_t9 + stage0_v10;
      const auto stage0_v12 = spread(lanes, stage0_t12);
      const auto stage0_t13 = select(stage0_t8, stage0_t11, stage0_v12);
      store(lanes, out0 + i0, stage0_t4);
      store(lanes, out1 + i0, stage0_t13);
    });
  }
}
AOTI_KERNEL_END(k_map_map_9)

AOTI_KERNEL(256) k_running(Run run, const f32 *in0, const bool *in1, const f32 *in2, const f32 *in3, const bool *in4, bf16 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 40000;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i0 = unit * 1;
    with_lanes<1>(i0, i32(40000), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t1 = broadcast(Full<1>{}, i64(0));
      const auto stage0_t7 = broadcast(Full<1>{}, 0.0f);
      const auto stage0_t11 = broadcast(Full<1>{}, i64(9));
      const auto stage0_t12 = stage0_t11 == stage0_t1;
      const auto stage0_t0 = convert<i64>(floor_div_by<4444>(iota32(lanes, i32(i0))));
      const auto stage0_v1 = spread(lanes, stage0_t1);
      const auto stage0_t2 = stage0_t0 == stage0_v1;
      const auto stage0_t3 = load_between(lanes, in0 + i0, -i0, -i0 + 39996, true, 0.0f);
      const auto stage0_t4 = load_between(lanes, in1 + i0, -i0, -i0 + 39996, true, false);
      const auto stage0_t5 = gather_where(lanes, in2 + ((-1)), floor_div_by<4444>(iota32(lanes, i32(i0))), inside(iota32(lanes, i32(i0)), 39996) & ((floor_div_by<4444>(iota32(lanes, i32(i0))) + i32(-1)) >= i32(0)), 0.0f);
      const auto stage0_t6 = ((floor_div_by<4444>(iota32(lanes, i32(i0))) + i32(-1)) >= i32(0));
      const auto stage0_v7 = spread(lanes, stage0_t7);
      const auto stage0_t8 = select(stage0_t6, stage0_t5, stage0_v7);
      const auto stage0_t9 = select(stage0_t4, stage0_t3, stage0_t8);
      const auto stage0_t10 = select(stage0_t2, stage0_t3, stage0_t9);
      const auto stage0_t13 = load_between(lanes, in3 + (i0 - 39996), -i0 + 39996, -i0 + 40000, true, 0.0f);
      const auto stage0_t14 = load_between(lanes, in4 + (i0 - 39996), -i0 + 39996, -i0 + 40000, true, false);
      const auto stage0_t15 = gather_where(lanes, in2 + 8, broadcast(lanes, i32(0)), (iota32(lanes, i32(i0 - 39996)) >= i32(0)), 0.0f);
      const auto stage0_t16 = select(stage0_t14, stage0_t13, stage0_t15);
      const auto stage0_v12 = spread(lanes, stage0_t12);
      const auto stage0_t17 = select(stage0_v12, stage0_t13, stage0_t16);
      const auto stage0_t18 = inside(iota32(lanes, i32(i0)), 39996);
      const auto stage0_t19 = select(stage0_t18, stage0_t10, stage0_t17);
      store(lanes, out0 + i0, stage0_t19);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_running)

