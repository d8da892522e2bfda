// Runs the model `matrices` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_matrices_cuda_run(DeviceRun &run) {
  (void)run;
  i64 s0 = run.symbols[0];
  launch(run, 0, 0, min_i64(1048576, -floor_div(-3 * s0, 32)), 256, 0, input<f32>(run, 0), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), i32(s0)); // k_turned
  launch(run, 1, 1, min_i64(1048576, s0), 256, 0, arena<f32>(run, 256 * floor_div(s0 + 3, 4)), input<f32>(run, 0), arena<f32>(run, 0), i32(s0)); // k_square
  launch(run, 2, 2, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, input<f32>(run, 0), output<f32>(run, 8), output<i64>(run, 9), arena<i64>(run, 256 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)), i64(s0)); // k_lu
  launch(run, 3, 3, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<f32>(run, 0), arena<f32>(run, 256 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)), output<i64>(run, 10), i64(s0)); // k_l
  launch(run, 4, 4, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<f32>(run, 256 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), output<f32>(run, 11), i64(s0)); // k_y
  launch(run, 5, 5, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), input<f32>(run, 0), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), arena<f32>(run, 256 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)), i64(s0)); // k_packed
  launch(run, 6, 6, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), arena<f32>(run, 256 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)), output<f32>(run, 12), i64(s0)); // k_q
  launch(run, 7, 7, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), arena<f32>(run, 0), output<f32>(run, 13), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), i64(s0)); // k_w
  launch(run, 8, 8, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), input<f32>(run, 0), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), output<f32>(run, 14), arena<f32>(run, 256 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)), i64(s0)); // k_left
  launch(run, 9, 9, min_i64(1048576, -floor_div(-s0, 64)), 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), arena<f32>(run, 0), output<f32>(run, 15), arena<f32>(run, 256 * floor_div(s0 + 3, 4)), i64(s0)); // k_e
  launch(run, 10, 10, 2, 256, 0, input<f32>(run, 1), arena<f32>(run, 1280)); // k_across
  launch(run, 11, 11, 2, 256, 0, arena<f32>(run, 1280), input<f32>(run, 1), arena<f32>(run, 0)); // k_normal
  launch(run, 12, 12, 2, 64, 0, input<f32>(run, 1), output<f32>(run, 0), output<i64>(run, 1), arena<i64>(run, 3328)); // k_wide_lu
  launch(run, 13, 13, 2, 64, 0, arena<f32>(run, 0), output<f32>(run, 2), arena<i64>(run, 3328)); // k_wide_l
  launch(run, 14, 14, 2, 64, 0, output<f32>(run, 2), arena<f32>(run, 1280), output<f32>(run, 3)); // k_wide_y
  launch(run, 15, 15, 2, 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), input<f32>(run, 1), arena<f32>(run, 1280), arena<f32>(run, 3328)); // k_wide_packed
  launch(run, 16, 16, 2, 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), arena<f32>(run, 1280), arena<f32>(run, 3328), output<f32>(run, 4)); // k_wide_q
  launch(run, 17, 17, 2, 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), arena<f32>(run, 0), output<f32>(run, 5), arena<f32>(run, 1280)); // k_wide_w
  launch(run, 18, 18, 2, 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), input<f32>(run, 1), arena<f32>(run, 1280), output<f32>(run, 6), arena<f32>(run, 3328)); // k_wide_left
  launch(run, 19, 19, 2, 64, 0, arena<u8>(run, max_i64(4608, max_i64(256 * floor_div(s0 + 1, 2) + 256 * floor_div(s0 + 3, 4), 512 * floor_div(s0 + 3, 4) + 256 * floor_div(3 * s0 + 7, 8)))), arena<f32>(run, 0), output<f32>(run, 7), arena<f32>(run, 1280)); // k_wide_e
  return 0;
}
