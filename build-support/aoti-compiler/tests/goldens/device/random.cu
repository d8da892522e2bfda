// Kernels of the model `random` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/random.h"

using namespace aoti;

AOTI_KERNEL(1) k_key(Run run, const i64 *in0, i64 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 1, false> team{};
  const i32 units = 1;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    const auto stage0_t0 = load(Full<1>{}, in0 + 1);
    const auto stage0_t1 = load(Full<1>{}, in0);
    const auto stage0_t2 = philox(stage0_t0, stage0_t1);
    {
      constexpr Full<1> lanes{};
      constexpr Slot<0> slot{};
      (void)lanes, (void)slot;
      store(Full<1>{}, out0, stage0_t2);
    }
  }
}
AOTI_KERNEL_END(k_key)

AOTI_KERNEL(256) k_bits(Run run, const i64 *in0, const f32 *in1, i64 *__restrict__ out0, f32 *__restrict__ out1, i32 s0) {
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
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_bits)

