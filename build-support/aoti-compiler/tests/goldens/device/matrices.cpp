// Runs the model `matrices` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_matrices_cuda_run(DeviceRun &run) {
  (void)run;
  i64 s0 = run.symbols[0];
  launch(run, 0, 0, min_i64(1048576, -floor_div(-3 * s0, 32)), 256, 0, input<f32>(run, 0), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), i32(s0)); // k_turned
  launch(run, 1, 1, min_i64(1048576, s0), 256, 0, arena<f32>(run, 256 * floor_div(s0 + 3, 4)), input<f32>(run, 0), arena<f32>(run, 0), i32(s0)); // k_square
  launch(run, 2, 2, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, input<f32>(run, 0), output<f32>(run, 10), output<i64>(run, 11), arena<i64>(run, 256 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)), i64(s0)); // k_lu
  launch(run, 3, 3, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<f32>(run, 0), arena<f32>(run, 256 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)), output<i64>(run, 12), i64(s0)); // k_l
  launch(run, 4, 4, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<f32>(run, 256 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), output<f32>(run, 13), i64(s0)); // k_y
  launch(run, 5, 5, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), input<f32>(run, 0), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), arena<f32>(run, 256 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)), i64(s0)); // k_packed
  launch(run, 6, 6, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), arena<f32>(run, 256 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)), output<f32>(run, 14), i64(s0)); // k_q
  launch(run, 7, 7, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), arena<f32>(run, 0), output<f32>(run, 15), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), i64(s0)); // k_w
  launch(run, 8, 8, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), input<f32>(run, 0), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), output<f32>(run, 16), arena<f32>(run, 256 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)), i64(s0)); // k_left
  launch(run, 9, 9, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), arena<f32>(run, 0), output<f32>(run, 17), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), i64(s0)); // k_e
  launch(run, 10, 10, 1, 256, 0, arena<i64>(run, 0)); // k_seventh
  launch(run, 11, 11, 3, 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), input<f32>(run, 2), arena<i64>(run, 0), output<i64>(run, 0)); // k_at
  launch(run, 12, 12, 4, 256, 0, input<f32>(run, 2), arena<f32>(run, 256)); // k_whole
  launch(run, 13, 11, 3, 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), arena<f32>(run, 256), arena<i64>(run, 0), output<i64>(run, 1)); // k_at
  launch(run, 14, 13, 2, 256, 0, input<f32>(run, 1), arena<f32>(run, 1280)); // k_across
  launch(run, 15, 14, 2, 256, 0, arena<f32>(run, 1280), input<f32>(run, 1), arena<f32>(run, 0)); // k_normal
  launch(run, 16, 15, 2, 64, 0, input<f32>(run, 1), output<f32>(run, 2), output<i64>(run, 3), arena<i64>(run, 3328)); // k_wide_lu
  launch(run, 17, 16, 2, 64, 0, arena<f32>(run, 0), output<f32>(run, 4), arena<i64>(run, 3328)); // k_wide_l
  launch(run, 18, 17, 2, 64, 0, output<f32>(run, 4), arena<f32>(run, 1280), output<f32>(run, 5)); // k_wide_y
  launch(run, 19, 18, 2, 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), input<f32>(run, 1), arena<f32>(run, 1280), arena<f32>(run, 3328)); // k_wide_packed
  launch(run, 20, 19, 2, 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), arena<f32>(run, 1280), arena<f32>(run, 3328), output<f32>(run, 6)); // k_wide_q
  launch(run, 21, 20, 2, 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), arena<f32>(run, 0), output<f32>(run, 7), arena<f32>(run, 1280)); // k_wide_w
  launch(run, 22, 21, 2, 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), input<f32>(run, 1), arena<f32>(run, 1280), output<f32>(run, 8), arena<f32>(run, 3328)); // k_wide_left
  launch(run, 23, 22, 2, 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), arena<f32>(run, 0), output<f32>(run, 9), arena<f32>(run, 1280)); // k_wide_e
  return 0;
}
