// Kernels of the model `roles` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/attention_units.h"
#include "aoti/gpu/unit_roles.h"

using namespace aoti;

AOTI_ROLES_KERNEL(256, 128) k_y(Run run, const bf16 *in0, const bf16 *in1, const bf16 *in2, bf16 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  AOTI_DYNAMIC_SHARED(shared);
  const i32 m = 9, n = 11, down = ceil_div(m, i32(128)), batches = 256;
  in_roles<TileRings>([&](auto &role) {
    AOTI_UNROLL_TIMES(1)
    for (i32 unit = i32(block_index()); unit < down * batches; unit += i32(block_count())) {
      const TileOfHeads<1, i32> place(unit, down, batches);
      const i32 row0 = place.tile * 128, batch = place.batch;
      (void)batch;
      const i32 i0 = batch / (16) % (16);
      (void)i0;
      const i32 i1 = batch / (1) % (16);
      (void)i1;
      attend_halves<128, 128, 72, 80, false, 0>(role, shared, row0, m, n, i32(0),
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

AOTI_ROLES_KERNEL(256, 128) k_ab(Run run, AOTI_TENSOR_MAP left_map, AOTI_TENSOR_MAP right_map, const bf16 *in0, const bf16 *in1, bf16 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  const i32 m = 33, n = 40, k = 24;
  in_roles<PieceRing>([&](auto &role) {
    const i32 across = ceil_div(n, 128), down = ceil_div(m, 128);
    AOTI_UNROLL_TIMES(1)
    for (i32 unit = i32(block_index()); unit < across * down * (s0); unit += i32(block_count())) {
      const TilePlace<i32> tile(unit, across, down);
      const i32 column0 = tile.column * 128, row0 = tile.row * 128, batch = tile.batch;
      (void)batch, (void)row0;
      const i32 i0 = batch / (1) % (s0);
      (void)i0;
      contract_brought<bf16, 128, 128, 8>(role, row0, column0, m, n, k,
          Mapped<bf16, i32, true, 1>{Strided<bf16, i32, true>{whole(in0) + (792 * i0), 24, 1}, left_map, {i0}},
          Mapped<bf16, i32, false, 1>{Strided<bf16, i32, false>{whole(in1) + (960 * i0), 1, 40}, right_map, {i0}},
          [&](i32 i1, i32 i2, auto lanes, auto sum) {
            (void)i1, (void)i2;
            const auto t0 = sum;
            store(lanes, whole_lanes(lanes, out0 + (1320 * i0 + 40 * i1 + i2)), t0);
          });
    }
  });
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_ab)

AOTI_ROLES_KERNEL(256, 128) k_rows(Run run, AOTI_TENSOR_MAP left_map, AOTI_TENSOR_MAP right_map, const bf16 *in0, const bf16 *in1, bf16 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  const i32 m = s0, n = 48, k = 24;
  in_roles<PieceRing>([&](auto &role) {
    const i32 across = ceil_div(n, 128), down = ceil_div(m, 128);
    AOTI_UNROLL_TIMES(1)
    for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
      const TilePlace<i32> tile(unit, across, down);
      const i32 column0 = tile.column * 128, row0 = tile.row * 128, batch = tile.batch;
      (void)batch, (void)row0;
      contract_brought<bf16, 128, 128, 8>(role, row0, column0, m, n, k,
          Mapped<bf16, i32, true, 0>{Strided<bf16, i32, true>{whole(in0), 24, 1}, left_map, {}},
          Mapped<bf16, i32, true, 0>{Strided<bf16, i32, true>{whole(in1), 24, 1}, right_map, {}},
          [&](i32 i0, i32 i1, auto lanes, auto sum) {
            (void)i0, (void)i1;
            const auto t0 = sum;
            store(lanes, whole_lanes(lanes, out0 + (48 * i0 + i1)), t0);
          });
    }
  });
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_rows)

