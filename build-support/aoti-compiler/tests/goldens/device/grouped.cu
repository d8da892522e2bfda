// Kernels of the model `grouped` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/windows.h"

using namespace aoti;

AOTI_KERNEL(128) k_p(Run run, const f32 *in0, const f32 *__restrict__ in1, f32 *__restrict__ out0, i32 s0, i32 s1) {
  (void)run;
  begin_kernel();
  using Taps = Window<1, 1, 1, 1, 5, 1, 1, 1, 1>;
  const ConvSizes<i32> shape{s0, 8, 8, 8, {1, 1, s1}, {1, 1, 5}, {1, 1, 1}, {1, 1, 1}, {0, 0, 2}, {1, 1, s1}};
  convolve_planes<f32, Taps, 8, 1, 32, 1, 1, 0, 1, 1, 128>(whole<f32>(in0), in1, shape,
      [&](i32 i0, i32 i1, i32 i2, auto lanes, auto sum) {
        (void)i0, (void)i1, (void)i2;
        const auto t0 = sum;
        const auto t1 = tanh(t0);
        store(lanes, out0 + (i2 + 8 * (s1 * i0) + (s1 * i1)), t1);
      });
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_p)

AOTI_KERNEL(128) k_r(Run run, const f32 *in0, const f32 *__restrict__ in1, f32 *__restrict__ out0, i32 s0, i32 s1) {
  (void)run;
  begin_kernel();
  using Taps = Window<1, 1, 1, 1, 5, 1, 1, 1, 2>;
  const ConvSizes<i32> shape{s0, 8, 8, 8, {1, 1, s1}, {1, 1, 5}, {1, 1, 1}, {1, 1, 2}, {0, 0, 4}, {1, 1, s1}};
  convolve_planes<f32, Taps, 8, 1, 32, 1, 1, 0, 1, 1, 128>(whole<f32>(in0), in1, shape,
      [&](i32 i0, i32 i1, i32 i2, auto lanes, auto sum) {
        (void)i0, (void)i1, (void)i2;
        const auto t0 = sum;
        store(lanes, out0 + (i2 + 8 * (s1 * i0) + (s1 * i1)), t0);
      });
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_r)

AOTI_KERNEL(128) k_a(Run run, const f16 *in0, const f16 *__restrict__ in1, f16 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  using Taps = Window<1, 1, 1, 3, 3, 2, 2, 1, 1>;
  const ConvSizes<i32> shape{2, 24, 24, 24, {1, 9, 12}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {1, 5, 6}};
  convolve_planes<f32, Taps, 3, 5, 6, 1, 1, 3, 4, 2, 128>(whole<f16>(in0), in1, shape,
      [&](i32 i0, i32 i1, i32 i2, auto lanes, auto sum) {
        (void)i0, (void)i1, (void)i2;
        const auto t0 = sum;
        store(lanes, out0 + (720 * i0 + 30 * i1 + i2), t0);
      });
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_a)

AOTI_KERNEL(256) k_b(Run run, const bf16 *in0, bf16 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 2640;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 steps = 24;
    const i32 i1 = (unit / steps);
    (void)i1;
    const i32 i2 = unit % steps * 1;
    with_lanes<1>(i2, i32(24), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load_strided(lanes, in0 + (i1 + 110 * i2), 110);
      const auto stage0_t1 = tanh(stage0_t0);
      store(lanes, out0 + (24 * i1 + i2), stage0_t1);
    });
  }
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_b)

AOTI_KERNEL(128) k_c(Run run, const bf16 *in0, const bf16 *__restrict__ in1, bf16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  using Taps = Window<1, 1, 1, 7, 7, 1, 1, 1, 1>;
  const ConvSizes<i32> shape{1, 24, 24, 24, {1, 10, 11}, {1, 7, 7}, {1, 1, 1}, {1, 1, 1}, {0, 3, 3}, {1, 10, 11}};
  convolve_pixels<f32, Taps, 4, 6, 1, 1, 128, true>(whole<bf16>(in0), in1, shape,
      [&](i32 i0, i32 i3, i32 i1, auto lanes, auto sum) {
        (void)i0, (void)i3, (void)i1;
        const auto t0 = sum;
        store(lanes, out0 + (2640 * i0 + 24 * i1 + i3), t0);
      });
}
AOTI_KERNEL_END(k_c)

AOTI_KERNEL(128) k_d(Run run, const bf16 *in0, bf16 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 128, false> team{};
  const i32 units = 240;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 128 + team.place(); unit < units; unit += i32(block_count()) * 128) {
    const i32 steps = 10;
    const i32 i0 = (unit / steps);
    (void)i0;
    const i32 i1 = unit % steps * 1;
    with_lanes<1>(i1, i32(10), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      MaxAccumulator<f32, 1> accumulator0;
      for (i32 i2 = 0; i2 < 11; ++i2) {
        const auto stage0_t0 = load_strided(lanes, in0 + (i0 + 264 * i1 + 24 * i2), 264);
        accumulator0.add(lanes, slot, stage0_t0);
      }
      accumulator0.combine_lanes(team);
      const auto stage1_t0 = accumulator0.value();
      store(lanes, out0 + (10 * i0 + i1), stage1_t0);
    });
  }
}
AOTI_KERNEL_END(k_d)

AOTI_KERNEL(256) k_e(Run run, const f32 *in0, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  constexpr Team<1, 256, false> team{};
  const i32 units = 2048;
  AOTI_UNROLL_TIMES(1)
  for (i32 unit = i32(block_index()) * 256 + team.place(); unit < units; unit += i32(block_count()) * 256) {
    const i32 steps = 16;
    const i32 i0 = (unit / steps) / (64);
    (void)i0;
    const i32 i2 = (unit / steps) % (64);
    (void)i2;
    const i32 i3 = unit % steps * 1;
    with_lanes<1>(i3, i32(16), [&](auto lanes) {
      constexpr Slot<0> slot{};
      (void)slot;
      const auto stage0_t0 = load_every<64>(lanes, in0 + (1024 * i0 + i2 + 64 * i3));
      const auto stage0_t1 = tanh(stage0_t0);
      store(lanes, out0 + (1024 * i0 + 16 * i2 + i3), stage0_t1);
    });
  }
}
AOTI_KERNEL_END(k_e)

AOTI_KERNEL(128) k_f(Run run, const f32 *in0, const f32 *__restrict__ in1, f32 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  using Taps = Window<4, 4, 1, 3, 3, 1, 1, 2, 2>;
  const ConvSizes<i32> shape{2, 16, 16, 4, {1, 8, 8}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, {0, 2, 2}, {1, 8, 8}};
  convolve_pixels<f32, Taps, 4, 4, 1, 1, 128, false>(whole<f32>(in0), in1, shape,
      [&](i32 i0, i32 i1, i32 i2, auto lanes, auto sum) {
        (void)i0, (void)i1, (void)i2;
        const auto t0 = sum;
        store(lanes, out0 + (1024 * i0 + 64 * i1 + i2), t0);
      });
}
AOTI_KERNEL_END(k_f)

AOTI_KERNEL(128) k_g(Run run, const bf16 *in0, const bf16 *__restrict__ in1, bf16 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  using Taps = Window<2, 2, 1, 1, 4, 1, 1, 1, 1>;
  const ConvSizes<i32> shape{2, 32, 32, 16, {1, 1, 40}, {1, 1, 4}, {1, 1, 1}, {1, 1, 1}, {0, 0, 3}, {1, 1, 43}};
  convolve_planes<f32, Taps, 2, 1, 43, 1, 2, 1, 8, 1, 128>(whole<bf16>(in0), in1, shape,
      [&](i32 i0, i32 i1, i32 i2, auto lanes, auto sum) {
        (void)i0, (void)i1, (void)i2;
        const auto t0 = sum;
        store(lanes, out0 + (1376 * i0 + 43 * i1 + i2), t0);
      });
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_g)

AOTI_KERNEL(128) k_h(Run run, const f64 *in0, const f64 *__restrict__ in1, f64 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  using Taps = Window<1, 2, 2, 3, 3, 1, 1, 1, 1>;
  const ConvSizes<i32> shape{1, 3, 6, 3, {4, 5, 6}, {2, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {3, 5, 6}};
  convolve_planes<f64, Taps, 3, 5, 6, 1, 2, 0, 2, 2, 128>(whole<f64>(in0), in1, shape,
      [&](i32 i0, i32 i1, i32 i2, auto lanes, auto sum) {
        (void)i0, (void)i1, (void)i2;
        const auto t0 = sum;
        store(lanes, out0 + (540 * i0 + 90 * i1 + i2), t0);
      });
}
AOTI_KERNEL_END(k_h)

