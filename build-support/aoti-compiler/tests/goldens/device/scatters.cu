// Kernels of the model `scatters` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/scatter.h"

using namespace aoti;

AOTI_KERNEL(256) k_map_map(Run run, const f64 *in0, const f32 *in1, f64 *__restrict__ out0, f32 *__restrict__ out1, f32 *__restrict__ out2) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 11200;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(11200), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = load(lanes, in1 + i1);
      store(lanes, out0 + i1, stage0_t0);
      store(lanes, out1 + i1, stage0_t1);
      store(lanes, out2 + i1, stage0_t1);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_map_map)

AOTI_KERNEL(256) k_sorted(Run run, char *scratch, const f32 *in0, const i64 *in1, f64 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  u32 *const counts = (u32 *)(scratch + (200000));
  u32 *const totals = (u32 *)(scratch + (212288));
  const auto key = [&](i32 update) {
    const i32 i0 = update;
    (void)i0;
    const auto stage0_t0 = load(Full<1>{}, in1 + i0);
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 700, 0);
    return u32(lane(stage0_t1, 0));
  };
  count_digits<10>(counts, i32(5000), 0, key);
}
AOTI_KERNEL_END(k_sorted)

AOTI_KERNEL(256) k_sorted_2(Run run, char *scratch, const f32 *in0, const i64 *in1, f64 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  u32 *const counts = (u32 *)(scratch + (200000));
  u32 *const totals = (u32 *)(scratch + (212288));
  sum_digits(counts, totals, i32(5000));
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_sorted_2)

AOTI_KERNEL(256) k_sorted_3(Run run, char *scratch, const f32 *in0, const i64 *in1, f64 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  u32 *const counts = (u32 *)(scratch + (200000));
  u32 *const totals = (u32 *)(scratch + (212288));
  const auto key = [&](i32 update) {
    const i32 i0 = update;
    (void)i0;
    const auto stage0_t0 = load(Full<1>{}, in1 + i0);
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 700, 0);
    return u32(lane(stage0_t1, 0));
  };
  u32 *const keys0 = (u32 *)(scratch + (0));
  u32 *const order0 = (u32 *)(scratch + (20000));
  const auto order = [&](i32 i) { return u32(i); };
  place_updates<10>(keys0, order0, counts, totals, i32(5000), 0, key, order);
}
AOTI_KERNEL_END(k_sorted_3)

AOTI_KERNEL(256) k_sorted_4(Run run, char *scratch, const f32 *in0, const i64 *in1, f64 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  u32 *const keys0 = (u32 *)(scratch + (0));
  u32 *const order0 = (u32 *)(scratch + (20000));
  Held<f64, 2> *const parts = (Held<f64, 2> *)(scratch + (40000));
  const auto value = [&](auto lanes, i32 update, i32 column, auto &accumulator0) {
    (void)update, (void)column;
    constexpr Slot<0> slot{};
    const i32 i0 = update;
    (void)i0;
    const i32 i1 = column * 2;
    (void)i1;
    const auto stage0_t0 = load(lanes, aligned<8>(in0 + (16 * i0 + i1)));
    const auto stage0_t1 = cast<f64>(stage0_t0);
    accumulator0.add(lanes, slot, stage0_t1);
  };
  const auto at = [&](f64 *out, u32 key, i32 column) {
    (void)key, (void)column;
    const i32 i1 = column * 2;
    (void)i1;
    return aligned<16>(out + (i32(key) * (16) + (i1)));
  };
  merge_pieces<8, 2, Added>(out0, parts, keys0, order0, i32(5000), i32(8), value, at);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_sorted_4)

AOTI_KERNEL(256) k_sorted_5(Run run, char *scratch, const f32 *in0, const i64 *in1, f64 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  u32 *const keys0 = (u32 *)(scratch + (0));
  u32 *const order0 = (u32 *)(scratch + (20000));
  Held<f64, 2> *const parts = (Held<f64, 2> *)(scratch + (40000));
  const auto at = [&](f64 *out, u32 key, i32 column) {
    (void)key, (void)column;
    const i32 i1 = column * 2;
    (void)i1;
    return aligned<16>(out + (i32(key) * (16) + (i1)));
  };
  (void)order0;
  merge_parts<8, 2, Added>(out0, parts, keys0, i32(5000), i32(8), at);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_sorted_5)

AOTI_KERNEL(256) k_fixed(Run run, char *scratch, const f32 *in0, const i64 *in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const auto key = [&](i32 update) {
    const i32 i0 = update;
    (void)i0;
    const auto stage0_t0 = load(Full<1>{}, in1 + i0);
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 700, 0);
    return u32(lane(stage0_t1, 0));
  };
  const FixedPoint sums((u32 *)(scratch + (89600)), (u64 *)scratch, 5000);
  forget_sums(sums, i32(5000), i32(16), i32(700), key);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_fixed)

AOTI_KERNEL(256) k_fixed_2(Run run, char *scratch, const f32 *in0, const i64 *in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const auto key = [&](i32 update) {
    const i32 i0 = update;
    (void)i0;
    const auto stage0_t0 = load(Full<1>{}, in1 + i0);
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 700, 0);
    return u32(lane(stage0_t1, 0));
  };
  const auto value = [&](auto lanes, i32 update, i32 column, auto &accumulator0) {
    (void)update, (void)column;
    constexpr Slot<0> slot{};
    const i32 i0 = update;
    (void)i0;
    const i32 i1 = column;
    (void)i1;
    const auto stage0_t0 = load(Full<1>{}, in0 + (16 * i0 + i1));
    accumulator0.add(lanes, slot, stage0_t0);
  };
  const FixedPoint sums((u32 *)(scratch + (89600)), (u64 *)scratch, 5000);
  find_exponents<f32>(sums, i32(5000), i32(16), key, value);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_fixed_2)

AOTI_KERNEL(256) k_fixed_3(Run run, char *scratch, const f32 *in0, const i64 *in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const auto key = [&](i32 update) {
    const i32 i0 = update;
    (void)i0;
    const auto stage0_t0 = load(Full<1>{}, in1 + i0);
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 700, 0);
    return u32(lane(stage0_t1, 0));
  };
  const auto value = [&](auto lanes, i32 update, i32 column, auto &accumulator0) {
    (void)update, (void)column;
    constexpr Slot<0> slot{};
    const i32 i0 = update;
    (void)i0;
    const i32 i1 = column;
    (void)i1;
    const auto stage0_t0 = load(Full<1>{}, in0 + (16 * i0 + i1));
    accumulator0.add(lanes, slot, stage0_t0);
  };
  const FixedPoint sums((u32 *)(scratch + (89600)), (u64 *)scratch, 5000);
  add_fixed<f32>(sums, i32(5000), i32(16), key, value);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_fixed_3)

AOTI_KERNEL(256) k_fixed_4(Run run, char *scratch, const f32 *in0, const i64 *in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const auto key = [&](i32 update) {
    const i32 i0 = update;
    (void)i0;
    const auto stage0_t0 = load(Full<1>{}, in1 + i0);
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 700, 0);
    return u32(lane(stage0_t1, 0));
  };
  const auto at = [&](f32 *out, u32 key, i32 column) {
    (void)key, (void)column;
    const i32 i1 = column;
    (void)i1;
    return out + (i32(key) * (16) + (i1));
  };
  const FixedPoint sums((u32 *)(scratch + (89600)), (u64 *)scratch, 5000);
  write_sums(out0, sums, i32(5000), i32(16), i32(700), key, at);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_fixed_4)

AOTI_KERNEL(256) k_last(Run run, char *scratch, const f32 *in0, const i64 *in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const auto key = [&](i32 update) {
    const i32 i0 = update;
    (void)i0;
    const auto stage0_t0 = load(Full<1>{}, in1 + i0);
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 700, 0);
    return u32(lane(stage0_t1, 0));
  };
  u32 *const last = (u32 *)scratch;
  forget_updates(last, i32(5000), key);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_last)

AOTI_KERNEL(256) k_last_2(Run run, char *scratch, const f32 *in0, const i64 *in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const auto key = [&](i32 update) {
    const i32 i0 = update;
    (void)i0;
    const auto stage0_t0 = load(Full<1>{}, in1 + i0);
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 700, 0);
    return u32(lane(stage0_t1, 0));
  };
  u32 *const last = (u32 *)scratch;
  find_last_updates(last, i32(5000), key);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_last_2)

AOTI_KERNEL(256) k_last_3(Run run, char *scratch, const f32 *in0, const i64 *in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const auto key = [&](i32 update) {
    const i32 i0 = update;
    (void)i0;
    const auto stage0_t0 = load(Full<1>{}, in1 + i0);
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 700, 0);
    return u32(lane(stage0_t1, 0));
  };
  const auto value = [&](auto lanes, i32 update, i32 column, auto &accumulator0) {
    (void)update, (void)column;
    constexpr Slot<0> slot{};
    const i32 i0 = update;
    (void)i0;
    const i32 i1 = column * 4;
    (void)i1;
    const auto stage0_t0 = load(lanes, aligned<16>(in0 + (16 * i0 + i1)));
    accumulator0.add(lanes, slot, stage0_t0);
  };
  const auto at = [&](f32 *out, u32 key, i32 column) {
    (void)key, (void)column;
    const i32 i1 = column * 4;
    (void)i1;
    return aligned<16>(out + (i32(key) * (16) + (i1)));
  };
  u32 *const last = (u32 *)scratch;
  write_last_updates<4>(out0, last, i32(5000), i32(4), key, value, at);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_last_3)

AOTI_KERNEL(256) k_map_map_4(Run run, const f16 *in0, f16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 320;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(320), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      store(lanes, out0 + i1, stage0_t0);
    });
  }
}
AOTI_KERNEL_END(k_map_map_4)

AOTI_KERNEL(256) k_ranked(Run run, char *scratch, const f16 *in0, const i64 *in1, f16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const auto key = [&](i32 update) {
    const i32 i0 = update;
    (void)i0;
    const auto stage0_t0 = load(Full<1>{}, in1 + i0);
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 40, 0);
    return u32(lane(stage0_t1, 0));
  };
  u32 *const keys0 = (u32 *)(scratch + (0));
  u32 *const order0 = (u32 *)(scratch + (240));
  AOTI_DYNAMIC_SHARED(shared);
  rank_updates(keys0, order0, (u32 *)shared, i32(60), key);
}
AOTI_KERNEL_END(k_ranked)

AOTI_KERNEL(256) k_ranked_2(Run run, char *scratch, const f16 *in0, const i64 *in1, f16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  u32 *const keys0 = (u32 *)(scratch + (0));
  u32 *const order0 = (u32 *)(scratch + (240));
  Held<f16, 8> *const parts = (Held<f16, 8> *)(scratch + (480));
  const auto value = [&](auto lanes, i32 update, i32 column, auto &accumulator0) {
    (void)update, (void)column;
    constexpr Slot<0> slot{};
    const i32 i0 = update;
    (void)i0;
    const i32 i1 = column * 8;
    (void)i1;
    const auto stage0_t0 = load(lanes, aligned<16>(in0 + (8 * i0 + i1)));
    accumulator0.add(lanes, slot, stage0_t0);
  };
  const auto at = [&](f16 *out, u32 key, i32 column) {
    (void)key, (void)column;
    const i32 i1 = column * 8;
    (void)i1;
    return aligned<16>(out + (i32(key) * (8) + (i1)));
  };
  merge_pieces<8, 8, Multiplied>(out0, parts, keys0, order0, i32(60), i32(1), value, at);
}
AOTI_KERNEL_END(k_ranked_2)

AOTI_KERNEL(256) k_ranked_3(Run run, char *scratch, const f16 *in0, const i64 *in1, f16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  u32 *const keys0 = (u32 *)(scratch + (0));
  u32 *const order0 = (u32 *)(scratch + (240));
  Held<f16, 8> *const parts = (Held<f16, 8> *)(scratch + (480));
  const auto at = [&](f16 *out, u32 key, i32 column) {
    (void)key, (void)column;
    const i32 i1 = column * 8;
    (void)i1;
    return aligned<16>(out + (i32(key) * (8) + (i1)));
  };
  (void)order0;
  merge_parts<8, 8, Multiplied>(out0, parts, keys0, i32(60), i32(1), at);
}
AOTI_KERNEL_END(k_ranked_3)

AOTI_KERNEL(256) k_map_map_5(Run run, const i64 *in0, i64 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 40;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i0 = unit * 1;
    with_lanes<1>(i0, i32(40), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i0);
      store(lanes, out0 + i0, stage0_t0);
    });
  }
}
AOTI_KERNEL_END(k_map_map_5)

AOTI_KERNEL(256) k_bins(Run run, const i64 *in0, i64 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const auto key = [&](i32 update) {
    const i32 i0 = update;
    (void)i0;
    const auto stage0_t0 = load(Full<1>{}, in0 + i0);
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 40, 0);
    return u32(lane(stage0_t1, 0));
  };
  const auto value = [&](auto lanes, i32 update, i32 column, auto &accumulator0) {
    (void)update, (void)column;
    constexpr Slot<0> slot{};
    const i32 i0 = update;
    (void)i0;
    const auto stage0_t0 = broadcast(Full<1>{}, i64(1));
    accumulator0.add(lanes, slot, stage0_t0);
  };
  const auto at = [&](i64 *out, u32 key, i32 column) {
    (void)key, (void)column;
    return out + (i32(key) * (1) + (0));
  };
  scatter_in_bins<40>(out0, i32(5000), key, value, at);
}
AOTI_KERNEL_END(k_bins)

AOTI_KERNEL(256) k_map_map_6(Run run, const f64 *in0, const i32 *in1, f64 *__restrict__ out0, i32 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 600;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(600), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = load(lanes, in1 + i1);
      store(lanes, out0 + i1, stage0_t0);
      store(lanes, out1 + i1, stage0_t1);
    });
  }
}
AOTI_KERNEL_END(k_map_map_6)

AOTI_KERNEL(256) k_largest(Run run, const f64 *in0, const i64 *in1, f64 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const auto key = [&](i32 update) {
    const i32 i0 = update / (30);
    (void)i0;
    const i32 i1 = update % (30);
    (void)i1;
    const auto stage0_t0 = load(Full<1>{}, in1 + (30 * i0 + i1));
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 20, 0);
    return u32(lane(stage0_t1, 0) * (30) + i1);
  };
  const auto value = [&](auto lanes, i32 update, i32 column, auto &accumulator0) {
    (void)update, (void)column;
    constexpr Slot<0> slot{};
    const i32 i0 = update / (30);
    (void)i0;
    const i32 i1 = update % (30);
    (void)i1;
    const auto stage0_t0 = load(Full<1>{}, in0 + (30 * i0 + i1));
    accumulator0.add(lanes, slot, stage0_t0);
  };
  const auto at = [&](f64 *out, u32 key, i32 column) {
    (void)key, (void)column;
    return out + (i32(key) / (30) * (30) + i32(key) % (30) * (1) + (0));
  };
  scatter_atomically<Largest>(out0, i32(990), i32(1), key, value, at);
}
AOTI_KERNEL_END(k_largest)

AOTI_KERNEL(256) k_cellsum(Run run, const f64 *in0, const i64 *in1, i32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const auto key = [&](i32 update) {
    const i32 i0 = update / (30);
    (void)i0;
    const i32 i1 = update % (30);
    (void)i1;
    const auto stage0_t0 = load(Full<1>{}, in1 + (30 * i0 + i1));
    const auto stage0_t1 = wrap_index(Full<1>{}, run, stage0_t0, 20, 0);
    return u32(lane(stage0_t1, 0) * (30) + i1);
  };
  const auto value = [&](auto lanes, i32 update, i32 column, auto &accumulator0) {
    (void)update, (void)column;
    constexpr Slot<0> slot{};
    const i32 i0 = update / (30);
    (void)i0;
    const i32 i1 = update % (30);
    (void)i1;
    const auto stage0_t0 = load(Full<1>{}, in0 + (30 * i0 + i1));
    const auto stage0_t1 = cast<i32>(stage0_t0);
    accumulator0.add(lanes, slot, stage0_t1);
  };
  const auto at = [&](i32 *out, u32 key, i32 column) {
    (void)key, (void)column;
    return out + (i32(key) / (30) * (30) + i32(key) % (30) * (1) + (0));
  };
  scatter_atomically<Added>(out0, i32(990), i32(1), key, value, at);
}
AOTI_KERNEL_END(k_cellsum)

