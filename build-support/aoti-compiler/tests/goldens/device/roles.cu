// Kernels of the model `roles` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/attention_units.h"

using namespace aoti;

AOTI_ROLES_KERNEL(256, 128) k_y(Run run, const bf16 *in0, const bf16 *in1, const bf16 *in2, bf16 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  AOTI_DYNAMIC_SHARED(shared);
  const i32 m = 9, n = 11, down = ceil_div(m, i32(128)), batches = 256;
  in_roles([&](auto &role) {
    for (i32 unit = i32(block_index()); unit < down * batches; unit += i32(block_count())) {
      const TileOfHeads<1, i32> place(unit, down, batches);
      const i32 row0 = place.tile * 128, batch = place.batch;
      (void)batch;
      const i32 i0 = batch / (16) % (16);
      (void)i0;
      const i32 i1 = batch / (1) % (16);
      (void)i1;
      attend_halves<128, 128, 72, 80, false, false>(role, shared, row0, m, n, i32(0),
          Table<bf16, i32>{whole(in0) + (10368 * i0 + 648 * i1), 72, 1},
          Table<bf16, i32>{whole(in1) + (12672 * i0 + 792 * i1), 72, 1},
          Table<bf16, i32>{whole(in2) + (14080 * i0 + 880 * i1), 80, 1},
          [&](i32 i2, i32 i4, auto lanes, auto sum) {
            (void)i2, (void)i4;
            const auto t1 = broadcast(Full<1>{}, 0.125f);
            const auto t0 = sum;
            const auto v1 = spread(lanes, t1);
            const auto t2 = t0 * v1;
            return t2;
          },
          [&](i32 i2, i32 i3, auto lanes, auto sum) {
            (void)i2, (void)i3;
            const auto t0 = sum;
            store(lanes, out0 + (11520 * i0 + 720 * i1 + 80 * i2 + i3), t0);
          });
    }
  });
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_y)

