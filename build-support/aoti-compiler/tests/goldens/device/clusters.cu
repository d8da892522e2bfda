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

