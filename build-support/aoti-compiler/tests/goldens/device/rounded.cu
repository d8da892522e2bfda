// Kernels of the model `rounded` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/contract.h"

using namespace aoti;

AOTI_KERNEL(256) k_product(Run run, const f32 *in0, const f32 *in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const i32 m = 64, n = 72, k = 96;
  const i32 across = ceil_div(n, 32), down = ceil_div(m, 16);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 32, row0 = unit / across % down * 16, batch = unit / across / down;
    (void)batch, (void)row0;
    contract<f32, 16, 32, 256, 4>(row0, column0, m, n, k,
        Strided<f32, i32, true>{whole(in0), 96, 1},
        Strided<f32, i32, false>{whole(in1), 1, 72},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, whole_lanes(lanes, out0 + (72 * i0 + i1)), t0);
        });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_product)

AOTI_CLUSTER_KERNEL(256, 4) k_conv(Run run, const f32 *in0, const f32 *__restrict__ in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const ConvSizes<i32> shape{2, 64, 64, 1, {1, 12, 12}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {1, 12, 12}};
  const i32 m = 64, n = 288, k = shape.depth();
  const i32 across = ceil_div(n, 32), down = ceil_div(m, 16);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index() / 4); unit < across * down * (1); unit += i32(block_count() / 4)) {
    const i32 column0 = unit % across * 32, row0 = unit / across % down * 16, batch = unit / across / down;
    (void)batch, (void)row0;
    contract<f32, 16, 32, 256, 4, 4>(row0, column0, m, n, k,
        Strided<f32, i32, true>{whole(in1) + batch * m * k, k, 1},
        Pixels<f32, i32, false>{in0, shape, batch},
        [&](i32 row, i32 column, auto lanes, auto sums) {
          const i32 i1 = batch * m + row;
          (void)i1;
          by_image(lanes, column, i32(144), sums, [&](auto lanes, i32 i0, i32 i2, auto sum) {
            (void)i0, (void)i2;
            const auto t0 = sum;
            store(lanes, whole_lanes(lanes, out0 + (9216 * i0 + 144 * i1 + i2)), t0);
          });
        });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_conv)

