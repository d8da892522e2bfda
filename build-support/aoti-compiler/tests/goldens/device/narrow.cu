// Kernels of the model `narrow` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/groups.h"
#include "aoti/gpu/contract.h"
#include "aoti/gpu/skinny.h"

using namespace aoti;

AOTI_KERNEL(256) k_one(Run run, const bf16 *in0, const bf16 *__restrict__ in1, const bf16 *__restrict__ in2, bf16 *__restrict__ out0) {
  (void)run;
  const i32 m = 1, n = 80, k = 192;
  const i32 across = ceil_div(n, 16), down = ceil_div(m, 8);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 16, row0 = unit / across % down * 8, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_grouped<bf16, 8, true>(column0, m, n, k,
        Strided<bf16, i32, true>{whole(in0), 192, 1},
        Grouped<bf16, i32, 4, 0, 4>{(const u8 *)whole(in1), n, k},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          const auto t1 = load(lanes, in2 + i1);
          const auto t2 = t0 * t1;
          store(lanes, out0 + i1, t2);
        });
  }
  begin_kernel();
}
AOTI_KERNEL_END(k_one)

AOTI_KERNEL(256) k_few(Run run, const f16 *in0, const i8 *__restrict__ in1, f16 *__restrict__ out0) {
  (void)run;
  const i32 m = 3, n = 48, k = 200;
  const i32 across = ceil_div(n, 8), down = ceil_div(m, 4);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 8, row0 = unit / across % down * 4, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_few<f32, 4, 8, true>(column0, m, n, k,
        Strided<f16, i32, true>{whole(in0), 200, 1},
        Strided<i8, i32, true>{whole(in1), 200, 1},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, out0 + (48 * i0 + i1), t0);
        });
  }
  begin_kernel();
}
AOTI_KERNEL_END(k_few)

AOTI_KERNEL(256) k_skinny(Run run, const f32 *in0, const f32 *__restrict__ in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const i32 m = 12, n = 64, k = 96;
  const i32 across = ceil_div(n, 64), down = ceil_div(m, 16);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 64, row0 = unit / across % down * 16, batch = unit / across / down;
    (void)batch, (void)row0;
    contract<f32, 16, 64, 256, 4>(row0, column0, m, n, k,
        Strided<f32, i32, true>{whole(in0), 96, 1},
        Strided<f32, i32, false>{whole(in1), 1, 64},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, whole_lanes(lanes, out0 + (64 * i0 + i1)), t0);
        });
  }
}
AOTI_KERNEL_END(k_skinny)

AOTI_KERNEL(256) k_whole(Run run, const i32 *in0, const i8 *__restrict__ in1, i32 *__restrict__ out0) {
  (void)run;
  const i32 m = 1, n = 40, k = 128;
  const i32 across = ceil_div(n, 8), down = ceil_div(m, 4);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 8, row0 = unit / across % down * 4, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_few<i32, 4, 8, true>(column0, m, n, k,
        Strided<i32, i32, true>{whole(in0), 128, 1},
        Strided<i8, i32, true>{whole(in1), 128, 1},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = cast<i32>(sum);
          store(lanes, out0 + (40 * i0 + i1), t0);
        });
  }
  begin_kernel();
}
AOTI_KERNEL_END(k_whole)

AOTI_KERNEL(256) k_plain(Run run, const bf16 *in0, const bf16 *__restrict__ in1, bf16 *__restrict__ out0) {
  (void)run;
  const i32 m = 1, n = 48, k = 192;
  const i32 across = ceil_div(n, 8), down = ceil_div(m, 4);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 8, row0 = unit / across % down * 4, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_few<f32, 4, 8, true>(column0, m, n, k,
        Strided<bf16, i32, true>{whole(in0), 192, 1},
        Strided<bf16, i32, true>{whole(in1), 192, 1},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, out0 + (48 * i0 + i1), t0);
        });
  }
  begin_kernel();
}
AOTI_KERNEL_END(k_plain)

AOTI_KERNEL(256) k_eighth(Run run, const f32 *in0, const f8e4m3fn *in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const i32 m = 1, n = 64, k = 96;
  const i32 across = ceil_div(n, 32), down = ceil_div(m, 4);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 32, row0 = unit / across % down * 4, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_few<f32, 4, 32>(column0, m, n, k,
        Strided<f32, i32, true>{whole(in0), 96, 1},
        Strided<f8e4m3fn, i32, false>{whole(in1), 1, 64},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, out0 + (64 * i0 + i1), t0);
        });
  }
}
AOTI_KERNEL_END(k_eighth)

AOTI_KERNEL(256) k_units(Run run, const f16 *in0, const f16 *__restrict__ in1, f16 *__restrict__ out0) {
  (void)run;
  const i32 m = 12, n = 80, k = 192;
  const i32 across = ceil_div(n, 16), down = ceil_div(m, 16);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 16, row0 = unit / across % down * 16, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_grouped<f16, 16, true>(column0, m, n, k,
        Strided<f16, i32, true>{whole(in0), 192, 1},
        Grouped<f16, i32, 4, 0, 4>{(const u8 *)whole(in1), n, k},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, out0 + (80 * i0 + i1), t0);
        });
  }
  begin_kernel();
}
AOTI_KERNEL_END(k_units)

AOTI_KERNEL(256) k_rows(Run run, const bf16 *in0, const bf16 *__restrict__ in1, bf16 *__restrict__ out0) {
  (void)run;
  const i32 m = 7, n = 64, k = 192;
  const i32 across = ceil_div(n, 16), down = ceil_div(m, 8);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 16, row0 = unit / across % down * 8, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_skinny<bf16, 8, true>(column0, m, n, k,
        Strided<bf16, i32, true>{whole(in0), 192, 1},
        Strided<bf16, i32, true>{whole(in1), 192, 1},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, out0 + (64 * i0 + i1), t0);
        });
  }
  begin_kernel();
}
AOTI_KERNEL_END(k_rows)

AOTI_KERNEL(256) k_exp(Run run, const f16 *in0, f16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 1680;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 i1 = unit * 1;
    with_lanes<1>(i1, i32(1680), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load(lanes, in0 + i1);
      const auto stage0_t1 = exp(stage0_t0);
      store(lanes, out0 + i1, stage0_t1);
    });
  }
}
AOTI_KERNEL_END(k_exp)

AOTI_KERNEL(256) k_half(Run run, const f32 *in0, const f16 *in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  const i32 m = 1, n = 70, k = 24;
  const i32 across = ceil_div(n, 8), down = ceil_div(m, 4);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (1); unit += i32(block_count())) {
    const i32 column0 = unit % across * 8, row0 = unit / across % down * 4, batch = unit / across / down;
    (void)batch, (void)row0;
    contract_few<f32, 4, 8>(column0, m, n, k,
        Strided<f32, i32, true>{whole(in0), 96, 1},
        Strided<f16, i32, true>{whole(in1), 24, 1},
        [&](i32 i0, i32 i1, auto lanes, auto sum) {
          (void)i0, (void)i1;
          const auto t0 = sum;
          store(lanes, out0 + (70 * i0 + i1), t0);
        });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_half)

AOTI_KERNEL(256) k_groups(Run run, const f32 *in0, const i8 *__restrict__ in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const i32 m = 1, n = 48, k = 40;
  const i32 across = ceil_div(n, 256), down = ceil_div(m, 4);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (3); unit += i32(block_count())) {
    const i32 column0 = unit % across * 256, row0 = unit / across % down * 4, batch = unit / across / down;
    (void)batch, (void)row0;
    const i32 i0 = batch / (1) % (3);
    (void)i0;
    contract_few<f32, 4, 256>(column0, m, n, k,
        Strided<f32, i32, true>{whole(in0) + (40 * i0), 40, 1},
        Strided<i8, i32, false>{whole(in1) + (1920 * i0), 1, 48},
        [&](i32 i1, i32 i2, auto lanes, auto sum) {
          (void)i1, (void)i2;
          const auto t0 = sum;
          store(lanes, out0 + (48 * i0 + 48 * i1 + i2), t0);
        });
  }
}
AOTI_KERNEL_END(k_groups)

