// Kernels of the model `attention` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/attention_units.h"
#include "aoti/gpu/attention.h"
#include "aoti/gpu/attention_few.h"

using namespace aoti;

AOTI_KERNEL(128) k_causaly(Run run, const bf16 *in0, const bf16 *in1, const bf16 *in2, bf16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  AOTI_DYNAMIC_SHARED(shared);
  const i32 m = 70, n = 70, down = ceil_div(m, i32(64)), batches = 2;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < down * batches; unit += i32(block_count())) {
    const TileOfHeads<2, i32> place(unit, down, batches);
    const i32 row0 = place.tile * 64, batch = place.batch;
    (void)batch;
    const i32 i0 = batch / (2) % (1);
    (void)i0;
    const i32 i1 = batch / (1) % (2);
    (void)i1;
    attend_halves<64, 64, 16, 16, true, 0>(shared, row0, m, n, i32(0),
        Table<bf16, i32>{whole(in0) + (2240 * i0 + 1120 * i1), 16, 1},
        Table<bf16, i32>{whole(in1) + (2240 * i0 + 1120 * i1), 16, 1},
        Table<bf16, i32>{whole(in2) + (2240 * i0 + 1120 * i1), 16, 1},
        [&](i32 i2, i32 i4, auto lanes, auto sum) {
          (void)i2, (void)i4;
          const auto t1 = broadcast(Full<1>{}, 0.25f);
          const auto t0 = sum;
          const auto v1 = spread(lanes, t1);
          const auto t2 = t0 * v1;
          return t2;
        },
        [&](i32 i2, i32 i3, auto lanes, auto sum) {
          (void)i2, (void)i3;
          const auto t0 = sum;
          store(lanes, out0 + (2240 * i0 + 1120 * i1 + 16 * i2 + i3), t0);
        });
  }
}
AOTI_KERNEL_END(k_causaly)

AOTI_KERNEL(128) k_groupedy(Run run, const f16 *in0, const f16 *in1, const f16 *in2, f16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  AOTI_DYNAMIC_SHARED(shared);
  const i32 m = 5, n = 133, down = ceil_div(m, i32(64)), batches = 4;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < down * batches; unit += i32(block_count())) {
    const TileOfHeads<4, i32> place(unit, down, batches);
    const i32 row0 = place.tile * 64, batch = place.batch;
    (void)batch;
    const i32 i0 = batch / (4) % (1);
    (void)i0;
    const i32 i1 = batch / (1) % (4);
    (void)i1;
    attend_halves<64, 64, 32, 24, true, 0>(shared, row0, m, n, i32(128),
        Table<f16, i32>{whole(in0) + (640 * i0 + 160 * i1), 32, 1},
        Table<f16, i32>{whole(in1) + (4256 * floor_div(i1, 2)), 32, 1},
        Table<f16, i32>{whole(in2) + (6384 * i0 + 3192 * floor_div(i1, 2)), 24, 1},
        [&](i32 i2, i32 i4, auto lanes, auto sum) {
          (void)i2, (void)i4;
          const auto t2 = broadcast(Full<1>{}, 0.176777f);
          const auto t0 = sum;
          const auto t1 = t0;
          const auto v2 = spread(lanes, t2);
          const auto t3 = t1 * v2;
          return t3;
        },
        [&](i32 i2, i32 i3, auto lanes, auto sum) {
          (void)i2, (void)i3;
          const auto t0 = sum;
          store(lanes, out0 + (480 * i0 + 120 * i1 + 24 * i2 + i3), t0);
        });
  }
}
AOTI_KERNEL_END(k_groupedy)

AOTI_KERNEL(256) k_maskedy(Run run, const f32 *in0, const f32 *in1, const f32 *in2, const bool *in3, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  AOTI_DYNAMIC_SHARED(shared);
  const i32 m = 37, n = 41, down = ceil_div(m, i32(16)), batches = 4;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < down * batches; unit += i32(block_count())) {
    const TileOfHeads<1, i32> place(unit, down, batches);
    const i32 row0 = place.tile * 16, batch = place.batch;
    (void)batch;
    const i32 i0 = batch / (2) % (2);
    (void)i0;
    const i32 i1 = batch / (1) % (2);
    (void)i1;
    attend<256, 16, 24, 40, false, 1>(shared, row0, m, n, i32(0),
        Table<f32, i32>{whole(in0) + (1776 * i0 + 888 * i1), 24, 1},
        Table<f32, i32>{whole(in1) + (1968 * i0 + 984 * i1), 24, 1},
        Table<f32, i32>{whole(in2) + (3280 * i0 + 1640 * i1), 40, 1},
        [&](i32 i2, i32 i4, auto lanes, auto sum) {
          (void)i2, (void)i4;
          const auto t2 = broadcast(Full<1>{}, 0.204124f);
          const auto t4 = broadcast(Full<1>{}, -__builtin_inff());
          const auto t0 = load(lanes, in3 + (41 * i0 + i4));
          const auto t1 = sum;
          const auto v2 = spread(lanes, t2);
          const auto t3 = t1 * v2;
          const auto v4 = spread(lanes, t4);
          const auto t5 = select(t0, t3, v4);
          return t5;
        },
        [&](i32 i2, i32 i3, auto lanes, auto sum) {
          (void)i2, (void)i3;
          const auto t0 = sum;
          store(lanes, out0 + (2960 * i0 + 1480 * i1 + 40 * i2 + i3), t0);
        });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_maskedy)

AOTI_KERNEL(128) k_biasedy(Run run, const bf16 *in0, const bf16 *in1, const bf16 *in2, const bf16 *in3, bf16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  AOTI_DYNAMIC_SHARED(shared);
  const i32 m = 9, n = 50, down = ceil_div(m, i32(64)), batches = 2;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < down * batches; unit += i32(block_count())) {
    const TileOfHeads<1, i32> place(unit, down, batches);
    const i32 row0 = place.tile * 64, batch = place.batch;
    (void)batch;
    const i32 i0 = batch / (1) % (2);
    (void)i0;
    const i32 i1 = batch / (1) % (1);
    (void)i1;
    attend_halves<64, 64, 20, 8, false, 1>(shared, row0, m, n, i32(0),
        Table<bf16, i32>{whole(in0) + (180 * i0 + 180 * i1), 20, 1},
        Table<bf16, i32>{whole(in1) + (1000 * i0 + 1000 * i1), 20, 1},
        Table<bf16, i32>{whole(in2) + (400 * i0 + 400 * i1), 8, 1},
        [&](i32 i2, i32 i4, auto lanes, auto sum) {
          (void)i2, (void)i4;
          const auto t1 = broadcast(Full<1>{}, 0.223607f);
          const auto t0 = sum;
          const auto v1 = spread(lanes, t1);
          const auto t2 = t0 * v1;
          const auto t3 = load(lanes, in3 + (50 * i2 + i4));
          const auto t4 = t3;
          const auto t5 = t2 + t4;
          return t5;
        },
        [&](i32 i2, i32 i3, auto lanes, auto sum) {
          (void)i2, (void)i3;
          const auto t0 = sum;
          store(lanes, out0 + (72 * i0 + 72 * i1 + 8 * i2 + i3), t0);
        });
  }
}
AOTI_KERNEL_END(k_biasedy)

AOTI_CLUSTER_KERNEL(512, 2) k_decodey(Run run, const f16 *in0, const f16 *in1, const f16 *in2, const bool *in3, f16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  AOTI_DYNAMIC_SHARED(shared);
  const i32 m = 1, n = 300, down = ceil_div(m, i32(1)), batches = 8;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index() / 2); unit < down * batches; unit += i32(block_count() / 2)) {
    const TileOfHeads<1, i32> place(unit, down, batches);
    const i32 row0 = place.tile * 1, batch = place.batch;
    (void)batch;
    const i32 i0 = batch / (4) % (2);
    (void)i0;
    const i32 i1 = batch / (1) % (4);
    (void)i1;
    attend_few<1, 2, 64, 64, false, 1>(shared, row0, m, n, i32(0),
        Table<f16, i32>{whole(in0) + (256 * i0 + 64 * i1), 64, 1},
        Table<f16, i32>{whole(in1) + (38400 * i0 + 19200 * floor_div(i1, 2)), 64, 1},
        Table<f16, i32>{whole(in2) + (38400 * i0 + 19200 * floor_div(i1, 2)), 64, 1},
        [&](i32 i2, i32 i4, auto lanes, auto sum) {
          (void)i2, (void)i4;
          const auto t2 = broadcast(Full<1>{}, 0.125f);
          const auto t4 = broadcast(Full<1>{}, -__builtin_inff());
          const auto t0 = load(lanes, in3 + (300 * i0 + i4));
          const auto t1 = sum;
          const auto v2 = spread(lanes, t2);
          const auto t3 = t1 * v2;
          const auto v4 = spread(lanes, t4);
          const auto t5 = select(t0, t3, v4);
          return t5;
        },
        [&](i32 i2, i32 i3, auto lanes, auto sum) {
          (void)i2, (void)i3;
          const auto t0 = sum;
          store(lanes, out0 + (256 * i0 + 64 * i1 + 64 * i2 + i3), t0);
        });
  }
}
AOTI_KERNEL_END(k_decodey)

AOTI_KERNEL(256) k_widey(Run run, const f32 *in0, const f32 *in1, const f32 *in2, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  AOTI_DYNAMIC_SHARED(shared);
  const i32 m = 18, n = 33, down = ceil_div(m, i32(16)), batches = 1;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < down * batches; unit += i32(block_count())) {
    const TileOfHeads<1, i32> place(unit, down, batches);
    const i32 row0 = place.tile * 16, batch = place.batch;
    (void)batch;
    const i32 i0 = batch / (1) % (1);
    (void)i0;
    const i32 i1 = batch / (1) % (1);
    (void)i1;
    attend<256, 16, 200, 256, false, 0>(shared, row0, m, n, i32(0),
        Table<f32, i32>{whole(in0) + (3600 * i0 + 3600 * i1), 200, 1},
        Table<f32, i32>{whole(in1) + (6600 * i0 + 6600 * i1), 200, 1},
        Table<f32, i32>{whole(in2) + (8448 * i0 + 8448 * i1), 256, 1},
        [&](i32 i2, i32 i4, auto lanes, auto sum) {
          (void)i2, (void)i4;
          const auto t1 = broadcast(Full<1>{}, 0.070711f);
          const auto t0 = sum;
          const auto v1 = spread(lanes, t1);
          const auto t2 = t0 * v1;
          return t2;
        },
        [&](i32 i2, i32 i3, auto lanes, auto sum) {
          (void)i2, (void)i3;
          const auto t0 = sum;
          store(lanes, out0 + (4608 * i0 + 4608 * i1 + 256 * i2 + i3), t0);
        });
  }
}
AOTI_KERNEL_END(k_widey)

AOTI_KERNEL(512) k_fewy(Run run, const f32 *in0, const f32 *in1, const f32 *in2, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  AOTI_DYNAMIC_SHARED(shared);
  const i32 m = 3, n = 45, down = ceil_div(m, i32(3)), batches = 2;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < down * batches; unit += i32(block_count())) {
    const TileOfHeads<1, i32> place(unit, down, batches);
    const i32 row0 = place.tile * 3, batch = place.batch;
    (void)batch;
    const i32 i0 = batch / (2) % (1);
    (void)i0;
    const i32 i1 = batch / (1) % (2);
    (void)i1;
    attend_few<3, 1, 36, 20, true, 0>(shared, row0, m, n, i32(42),
        Table<f32, i32>{whole(in0) + (216 * i0 + 108 * i1), 36, 1},
        Table<f32, i32>{whole(in1), 36, 1},
        Table<f32, i32>{whole(in2) + (900 * i0), 20, 1},
        [&](i32 i2, i32 i4, auto lanes, auto sum) {
          (void)i2, (void)i4;
          const auto t1 = broadcast(Full<1>{}, 0.166667f);
          const auto t0 = sum;
          const auto v1 = spread(lanes, t1);
          const auto t2 = t0 * v1;
          return t2;
        },
        [&](i32 i2, i32 i3, auto lanes, auto sum) {
          (void)i2, (void)i3;
          const auto t0 = sum;
          store(lanes, out0 + (120 * i0 + 60 * i1 + 20 * i2 + i3), t0);
        });
  }
}
AOTI_KERNEL_END(k_fewy)

AOTI_KERNEL(128) k_nany(Run run, const bf16 *in0, const bf16 *in1, const bf16 *in2, const bool *in3, bf16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  AOTI_DYNAMIC_SHARED(shared);
  const i32 m = 70, n = 70, down = ceil_div(m, i32(64)), batches = 2;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < down * batches; unit += i32(block_count())) {
    const TileOfHeads<1, i32> place(unit, down, batches);
    const i32 row0 = place.tile * 64, batch = place.batch;
    (void)batch;
    const i32 i0 = batch / (2) % (1);
    (void)i0;
    const i32 i1 = batch / (1) % (2);
    (void)i1;
    attend_halves<64, 64, 16, 16, false, 2>(shared, row0, m, n, i32(0),
        Table<bf16, i32>{whole(in0) + (2240 * i0 + 1120 * i1), 16, 1},
        Table<bf16, i32>{whole(in1) + (2240 * i0 + 1120 * i1), 16, 1},
        Table<bf16, i32>{whole(in2) + (2240 * i0 + 1120 * i1), 16, 1},
        [&](i32 i2, i32 i4, auto lanes, auto sum) {
          (void)i2, (void)i4;
          const auto t2 = broadcast(Full<1>{}, 0.375f);
          const auto t4 = broadcast(Full<1>{}, -__builtin_inff());
          const auto t0 = load(lanes, in3 + (70 * i2 + i4));
          const auto t1 = sum;
          const auto v2 = spread(lanes, t2);
          const auto t3 = t1 * v2;
          const auto v4 = spread(lanes, t4);
          const auto t5 = select(t0, t3, v4);
          return t5;
        },
        [&](i32 i2, i32 i3, auto lanes, auto sum) {
          (void)i2, (void)i3;
          const auto t0 = sum;
          store(lanes, out0 + (2240 * i0 + 1120 * i1 + 16 * i2 + i3), t0);
        });
  }
}
AOTI_KERNEL_END(k_nany)

AOTI_CLUSTER_KERNEL(512, 2) k_nanoney(Run run, const f16 *in0, const f16 *in1, const f16 *in2, const bool *in3, f16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  AOTI_DYNAMIC_SHARED(shared);
  const i32 m = 1, n = 300, down = ceil_div(m, i32(1)), batches = 8;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index() / 2); unit < down * batches; unit += i32(block_count() / 2)) {
    const TileOfHeads<1, i32> place(unit, down, batches);
    const i32 row0 = place.tile * 1, batch = place.batch;
    (void)batch;
    const i32 i0 = batch / (4) % (2);
    (void)i0;
    const i32 i1 = batch / (1) % (4);
    (void)i1;
    attend_few<1, 2, 64, 64, false, 2>(shared, row0, m, n, i32(0),
        Table<f16, i32>{whole(in0) + (256 * i0 + 64 * i1), 64, 1},
        Table<f16, i32>{whole(in1) + (76800 * i0 + 19200 * i1), 64, 1},
        Table<f16, i32>{whole(in2) + (76800 * i0 + 19200 * i1), 64, 1},
        [&](i32 i2, i32 i4, auto lanes, auto sum) {
          (void)i2, (void)i4;
          const auto t2 = broadcast(Full<1>{}, 0.375f);
          const auto t4 = broadcast(Full<1>{}, -__builtin_inff());
          const auto t0 = load(lanes, in3 + (300 * i2 + i4));
          const auto t1 = sum;
          const auto v2 = spread(lanes, t2);
          const auto t3 = t1 * v2;
          const auto v4 = spread(lanes, t4);
          const auto t5 = select(t0, t3, v4);
          return t5;
        },
        [&](i32 i2, i32 i3, auto lanes, auto sum) {
          (void)i2, (void)i3;
          const auto t0 = sum;
          store(lanes, out0 + (256 * i0 + 64 * i1 + 64 * i2 + i3), t0);
        });
  }
}
AOTI_KERNEL_END(k_nanoney)

AOTI_KERNEL(256) k_nanwidey(Run run, const f32 *in0, const f32 *in1, const f32 *in2, const bool *in3, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  AOTI_DYNAMIC_SHARED(shared);
  const i32 m = 18, n = 33, down = ceil_div(m, i32(16)), batches = 1;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < down * batches; unit += i32(block_count())) {
    const TileOfHeads<1, i32> place(unit, down, batches);
    const i32 row0 = place.tile * 16, batch = place.batch;
    (void)batch;
    const i32 i0 = batch / (1) % (1);
    (void)i0;
    const i32 i1 = batch / (1) % (1);
    (void)i1;
    attend<256, 16, 24, 40, false, 2>(shared, row0, m, n, i32(0),
        Table<f32, i32>{whole(in0) + (432 * i0 + 432 * i1), 24, 1},
        Table<f32, i32>{whole(in1) + (792 * i0 + 792 * i1), 24, 1},
        Table<f32, i32>{whole(in2) + (1320 * i0 + 1320 * i1), 40, 1},
        [&](i32 i2, i32 i4, auto lanes, auto sum) {
          (void)i2, (void)i4;
          const auto t2 = broadcast(Full<1>{}, 0.375f);
          const auto t4 = broadcast(Full<1>{}, -__builtin_inff());
          const auto t0 = load(lanes, in3 + (33 * i2 + i4));
          const auto t1 = sum;
          const auto v2 = spread(lanes, t2);
          const auto t3 = t1 * v2;
          const auto v4 = spread(lanes, t4);
          const auto t5 = select(t0, t3, v4);
          return t5;
        },
        [&](i32 i2, i32 i3, auto lanes, auto sum) {
          (void)i2, (void)i3;
          const auto t0 = sum;
          store(lanes, out0 + (720 * i0 + 720 * i1 + 40 * i2 + i3), t0);
        });
  }
}
AOTI_KERNEL_END(k_nanwidey)

