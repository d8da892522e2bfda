// Kernels of the model `library` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/units.h"
#include "aoti/gpu/contract.h"

using namespace aoti;

AOTI_KERNEL(128) k_product(Run run, const f16 *in0, const f16 *__restrict__ in1, const f16 *__restrict__ in2, f16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const i32 m = 40, n = 48, k = 64;
  const i32 across = ceil_div(n, 64), down = ceil_div(m, 64);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 64, row0 = unit / across % down * 64, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_units<f16, 64, 64, 128, 8>(row0, column0, m, n, k,
        Strided<f16, i32, true>{whole(in0), 64, 1},
        Strided<f16, i32, true>{whole(in1), 64, 1},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t3 = broadcast(Full<1>{}, 0.0f);
          const auto t0 = sum;
          const auto t1 = load(lanes, whole_lanes(lanes, in2 + i1));
          const auto t2 = t0 + t1;
          const auto v3 = spread(lanes, t3);
          const auto t4 = maximum(t2, v3);
          store(lanes, whole_lanes(lanes, out0 + (48 * i0 + i1)), t4);
        });
  }
}
AOTI_KERNEL_END(k_product)

AOTI_KERNEL(256) k_plain(Run run, const f32 *in0, const f32 *in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const i32 m = 40, n = 48, k = 64;
  const i32 across = ceil_div(n, 32), down = ceil_div(m, 16);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 32, row0 = unit / across % down * 16, batch = unit / across / down;
    (void)batch, (void)row0;
    contract<f32, 16, 32, 256, 4>(row0, column0, m, n, k,
        Strided<f32, i32, false>{whole(in0), 1, 40},
        Strided<f32, i32, false>{whole(in1), 1, 48},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, whole_lanes(lanes, out0 + (48 * i0 + i1)), t0);
        });
  }
}
AOTI_KERNEL_END(k_plain)

AOTI_KERNEL(256) k_exp(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 2560;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(2560), [&](auto lanes) {
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

