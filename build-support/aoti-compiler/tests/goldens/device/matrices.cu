// Kernels of the model `matrices` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/contract.h"
#include "aoti/linalg.h"

using namespace aoti;

AOTI_KERNEL(256) k_turned(Run run, const f32 *in0, f32 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 24 * s0;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 steps = 6;
    const i32 i0 = (unit / steps) / (4);
    (void)i0;
    const i32 i1 = (unit / steps) % (4);
    (void)i1;
    const i32 i2 = unit % steps * 1;
    with_lanes<1>(i2, i32(6), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load_every<4>(lanes, in0 + (24 * i0 + i1 + 4 * i2));
      store(lanes, out0 + (24 * i0 + 6 * i1 + i2), stage0_t0);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_turned)

AOTI_KERNEL(256) k_square(Run run, const f32 *in0, const f32 *in1, f32 *__restrict__ out0, i32 s0) {
  (void)run;
  begin_kernel();
  const i32 m = 4, n = 4, k = 6;
  const i32 across = ceil_div(n, 256), down = ceil_div(m, 4);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (s0); unit += i32(block_count())) {
    const i32 column0 = unit % across * 256, row0 = unit / across % down * 4, batch = unit / across / down;
    (void)batch, (void)row0;
    const i32 i0 = batch / (1) % (s0);
    (void)i0;
    contract_few<f32, 4, 256>(column0, m, n, k,
        Strided<f32, i32, true>{whole(in0) + (24 * i0), 6, 1},
        Strided<f32, i32, false>{whole(in1) + (24 * i0), 1, 4},
        [&](i32 i1, i32 i2, auto lanes, auto sum) {
          (void)i1, (void)i2;
          const auto t0 = sum;
          store(lanes, out0 + (16 * i0 + 4 * i1 + i2), t0);
        });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_square)

AOTI_KERNEL(64) k_lu(Run run, const f32 *in0, f32 *__restrict__ out0, i64 *__restrict__ out1, i64 *__restrict__ out2, i64 s0) {
  (void)run;
  begin_kernel();
  matrices<linalg::Lu>(run, nullptr, 0, s0, 6, 4, in0, out0, out1, out2);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_lu)

AOTI_KERNEL(64) k_l(Run run, const f32 *in0, f32 *__restrict__ out0, i64 *__restrict__ out1, i64 s0) {
  (void)run;
  begin_kernel();
  matrices<linalg::Cholesky>(run, nullptr, 0, s0, 4, 4, in0, out0, out1);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_l)

AOTI_KERNEL(64) k_y(Run run, const f32 *in0, const f32 *in1, f32 *__restrict__ out0, i64 s0) {
  (void)run;
  begin_kernel();
  matrices<linalg::SolveLower>(run, nullptr, 0, s0, 4, 6, in0, in1, out0);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_y)

AOTI_KERNEL(64) k_packed(Run run, char *scratch, const f32 *in0, f32 *__restrict__ out0, f32 *__restrict__ out1, i64 s0) {
  (void)run;
  begin_kernel();
  matrices<linalg::Qr>(run, scratch, 64, s0, 6, 4, in0, out0, out1);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_packed)

AOTI_KERNEL(64) k_q(Run run, char *scratch, const f32 *in0, const f32 *in1, f32 *__restrict__ out0, i64 s0) {
  (void)run;
  begin_kernel();
  matrices<linalg::Reflections>(run, scratch, 64, s0, 6, 4, in0, in1, out0);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_q)

AOTI_KERNEL(64) k_w(Run run, char *scratch, const f32 *in0, f32 *__restrict__ out0, f32 *__restrict__ out1, i64 s0) {
  (void)run;
  begin_kernel();
  matrices<linalg::Eigh>(run, scratch, 64, s0, 4, 4, in0, out0, out1);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_w)

AOTI_KERNEL(64) k_left(Run run, char *scratch, const f32 *in0, f32 *__restrict__ out0, f32 *__restrict__ out1, f32 *__restrict__ out2, i64 s0) {
  (void)run;
  begin_kernel();
  matrices<linalg::Svd>(run, scratch, 192, s0, 6, 4, in0, out0, out1, out2);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_left)

AOTI_KERNEL(64) k_e(Run run, char *scratch, const f32 *in0, f32 *__restrict__ out0, f32 *__restrict__ out1, i64 s0) {
  (void)run;
  begin_kernel();
  matrices<linalg::Eig>(run, scratch, 384, s0, 4, 4, in0, out0, out1);
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_e)

AOTI_KERNEL(256) k_across(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 480;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 steps = 20;
    const i32 i0 = (unit / steps) / (12);
    (void)i0;
    const i32 i1 = (unit / steps) % (12);
    (void)i1;
    const i32 i2 = unit % steps * 1;
    with_lanes<1>(i2, i32(20), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load_every<12>(lanes, in0 + (240 * i0 + i1 + 12 * i2));
      store(lanes, out0 + (240 * i0 + 20 * i1 + i2), stage0_t0);
    });
  }
}
AOTI_KERNEL_END(k_across)

AOTI_KERNEL(256) k_normal(Run run, const f32 *in0, const f32 *in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  const i32 m = 12, n = 12, k = 20;
  const i32 across = ceil_div(n, 64), down = ceil_div(m, 16);
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()); unit < across * down * (2); unit += i32(block_count())) {
    const i32 column0 = unit % across * 64, row0 = unit / across % down * 16, batch = unit / across / down;
    (void)batch, (void)row0;
    const i32 i0 = batch / (1) % (2);
    (void)i0;
    contract<f32, 16, 64, 256, 4>(row0, column0, m, n, k,
        Strided<f32, i32, true>{whole(in0) + (240 * i0), 20, 1},
        Strided<f32, i32, false>{whole(in1) + (240 * i0), 1, 12},
        [&](i32 i1, i32 i2, auto lanes, auto sum) {
          (void)i1, (void)i2;
          const auto t0 = sum;
          store(lanes, whole_lanes(lanes, out0 + (144 * i0 + 12 * i1 + i2)), t0);
        });
  }
}
AOTI_KERNEL_END(k_normal)

AOTI_KERNEL(64) k_wide_lu(Run run, const f32 *in0, f32 *__restrict__ out0, i64 *__restrict__ out1, i64 *__restrict__ out2) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  matrices_of_blocks<linalg::Lu>(run, nullptr, 0, 2, 20, 12, in0, out0, out1, out2);
}
AOTI_KERNEL_END(k_wide_lu)

AOTI_KERNEL(64) k_wide_l(Run run, const f32 *in0, f32 *__restrict__ out0, i64 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  matrices_of_blocks<linalg::Cholesky>(run, nullptr, 0, 2, 12, 12, in0, out0, out1);
}
AOTI_KERNEL_END(k_wide_l)

AOTI_KERNEL(64) k_wide_y(Run run, const f32 *in0, const f32 *in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  matrices_of_blocks<linalg::SolveLower>(run, nullptr, 0, 2, 12, 20, in0, in1, out0);
}
AOTI_KERNEL_END(k_wide_y)

AOTI_KERNEL(64) k_wide_packed(Run run, char *scratch, const f32 *in0, f32 *__restrict__ out0, f32 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  matrices_of_blocks<linalg::Qr>(run, scratch, 64, 2, 20, 12, in0, out0, out1);
}
AOTI_KERNEL_END(k_wide_packed)

AOTI_KERNEL(64) k_wide_q(Run run, char *scratch, const f32 *in0, const f32 *in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  matrices_of_blocks<linalg::Reflections>(run, scratch, 64, 2, 20, 12, in0, in1, out0);
}
AOTI_KERNEL_END(k_wide_q)

AOTI_KERNEL(64) k_wide_w(Run run, char *scratch, const f32 *in0, f32 *__restrict__ out0, f32 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  matrices_of_blocks<linalg::Eigh>(run, scratch, 576, 2, 12, 12, in0, out0, out1);
}
AOTI_KERNEL_END(k_wide_w)

AOTI_KERNEL(64) k_wide_left(Run run, char *scratch, const f32 *in0, f32 *__restrict__ out0, f32 *__restrict__ out1, f32 *__restrict__ out2) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  matrices_of_blocks<linalg::Svd>(run, scratch, 1536, 2, 20, 12, in0, out0, out1, out2);
}
AOTI_KERNEL_END(k_wide_left)

AOTI_KERNEL(64) k_wide_e(Run run, char *scratch, const f32 *in0, f32 *__restrict__ out0, f32 *__restrict__ out1) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  matrices_of_blocks<linalg::Eig>(run, scratch, 2560, 2, 12, 12, in0, out0, out1);
}
AOTI_KERNEL_END(k_wide_e)

