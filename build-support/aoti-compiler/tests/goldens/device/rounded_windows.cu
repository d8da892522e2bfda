// Kernels of the model `rounded_windows` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/unit_roles.h"

using namespace aoti;

AOTI_KERNEL(256) k_a(Run run, const f16 *in0, f16 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, true> team{};
  const i32 units = 64 * s0;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    const i32 tiles_across = ceil_div(i32(64), 32), tiles_down = ceil_div(i32(1024), 32);
    const i32 i0 = (unit / tiles_across / tiles_down);
    (void)i0;
    const i32 i3_first = unit % tiles_across * 32, i2_first = unit / tiles_across % tiles_down * 32;
    AOTI_SHARED StagedTile<f16> tile0;
    each_of_tile(team, [&](int row, int column) {
      const i32 i3 = i3_first + row, i2 = i2_first + column;
      if (i3 < 64 && i2 < 1024) {
        tile0.rows[row][column] = load(Full<1>{}, in0 + (65536 * i0 + i2 + 1024 * i3));
      }
    });
    barrier();
    each_of_tile(team, [&](int row, int column) {
      const i32 i2 = i2_first + row, i3 = i3_first + column;
      if (i3 < 64 && i2 < 1024) {
        const auto stage0_t0 = tile0.rows[column][row];
        const auto stage0_t1 = tanh(stage0_t0);
        {
          constexpr Full<1> lanes{};
          constexpr Slot<0> slot{};
          (void)lanes, (void)slot;
          store(Full<1>{}, out0 + (65536 * i0 + 64 * i2 + i3), stage0_t1);
        }
      }
    });
    barrier();
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_a)

AOTI_ROLES_KERNEL(256, 128) k_p(Run run, AOTI_TENSOR_MAP left_map, AOTI_TENSOR_MAP right_map, const f16 *in0, const f16 *__restrict__ in1, f16 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  const ConvSizes<i32> shape{s0, 64, 64, 1, {1, 32, 32}, {1, 3, 2}, {1, 2, 2}, {1, 1, 1}, {0, 1, 2}, {1, 16, 17}};
  const i32 m = 272 * s0, n = 64, k = shape.depth();
  in_roles<PieceRing>([&](auto &role) {
    const i32 across = ceil_div(n, 128), down = ceil_div(m, 128);
    AOTI_UNROLL_TIMES(1)
    for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
      const TilePlace<i32> tile(unit, across, down);
      const i32 column0 = tile.column * 128, row0 = tile.row * 128, batch = tile.batch;
      (void)batch, (void)row0;
      contract_brought<f16, 128, 128, 8>(role, row0, column0, m, n, k,
          MappedPixels<f16, i32, 2>{WidePixels<f16, i32>{whole(in0), shape, batch}, left_map},
          Interleaved<f16, i32>{Strided<f16, i32, true>{whole(in1) + batch * n * k, k, 1}, right_map},
          [&](i32 row, i32 column, auto lanes, auto sum) {
            const i32 i0 = row / i32(272), i1 = row % i32(272), i3 = batch * n + column;
            (void)i0, (void)i1, (void)i3;
            const auto t0 = sum;
            const auto t1 = -t0;
            store_strided(lanes, out0 + (17408 * i0 + i1 + 272 * i3), 272, t1);
          });
    }
  });
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_p)

AOTI_KERNEL(256) k_b(Run run, const f32 *in0, f32 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, true> team{};
  const i32 units = 32 * s0;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < units; unit += i32(block_count())) {
    const i32 tiles_across = ceil_div(i32(32), 32), tiles_down = ceil_div(i32(1024), 32);
    const i32 i0 = (unit / tiles_across / tiles_down);
    (void)i0;
    const i32 i3_first = unit % tiles_across * 32, i2_first = unit / tiles_across % tiles_down * 32;
    AOTI_SHARED StagedTile<f32> tile0;
    each_of_tile(team, [&](int row, int column) {
      const i32 i3 = i3_first + row, i2 = i2_first + column;
      if (i3 < 32 && i2 < 1024) {
        tile0.rows[row][column] = load(Full<1>{}, in0 + (32768 * i0 + i2 + 1024 * i3));
      }
    });
    barrier();
    each_of_tile(team, [&](int row, int column) {
      const i32 i2 = i2_first + row, i3 = i3_first + column;
      if (i3 < 32 && i2 < 1024) {
        const auto stage0_t0 = tile0.rows[column][row];
        const auto stage0_t1 = -stage0_t0;
        {
          constexpr Full<1> lanes{};
          constexpr Slot<0> slot{};
          (void)lanes, (void)slot;
          store(Full<1>{}, out0 + (32768 * i0 + 32 * i2 + i3), stage0_t1);
        }
      }
    });
    barrier();
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_b)

AOTI_ROLES_KERNEL(256, 128) k_r(Run run, AOTI_TENSOR_MAP left_map, AOTI_TENSOR_MAP right_map, const f32 *in0, const f32 *__restrict__ in1, f32 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  const ConvSizes<i32> shape{s0, 32, 48, 1, {1, 32, 32}, {1, 1, 3}, {1, 1, 1}, {1, 1, 2}, {0, 0, 0}, {1, 32, 30}};
  const i32 m = 960 * s0, n = 48, k = shape.depth();
  in_roles<PieceRing>([&](auto &role) {
    const i32 across = ceil_div(n, 128), down = ceil_div(m, 128);
    AOTI_UNROLL_TIMES(1)
    for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
      const TilePlace<i32> tile(unit, across, down);
      const i32 column0 = tile.column * 128, row0 = tile.row * 128, batch = tile.batch;
      (void)batch, (void)row0;
      contract_brought<Tf32, 128, 128, 4>(role, row0, column0, m, n, k,
          MappedPixels<f32, i32, 2>{WidePixels<f32, i32>{whole(in0), shape, batch}, left_map},
          Mapped<f32, i32, true, 0>{Strided<f32, i32, true>{whole(in1) + batch * n * k, k, 1}, right_map, {}},
          [&](i32 row, i32 column, auto lanes, auto sum) {
            const i32 i0 = row / i32(960), i1 = row % i32(960), i3 = batch * n + column;
            (void)i0, (void)i1, (void)i3;
            const auto t0 = sum;
            const auto t1 = -t0;
            store_strided(lanes, out0 + (46080 * i0 + i1 + 960 * i3), 960, t1);
          });
    }
  });
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_r)

