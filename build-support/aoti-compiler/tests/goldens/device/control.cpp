// Runs the model `control` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_control_cuda_run(DeviceRun &run) {
  (void)run;
  i64 s0 = run.symbols[0];
  i64 s1 = run.symbols[1];
  if (read<bool>(run, input<bool>(run, 1))) {
    launch(run, 0, 0, min_i64(1048576, -floor_div(-s0, 32)), 256, 0, input<f32>(run, 0), arena<f32>(run, 0), i32(s0)); // k_map_map
  } else {
    launch(run, 1, 1, min_i64(1048576, -floor_div(-s0, 32)), 256, 0, input<f32>(run, 0), arena<f32>(run, 0), i32(s0)); // k_map_map_2
  }
  launch(run, 2, 2, min_i64(1048576, -floor_div(-s0, 32)), 256, 0, arena<f32>(run, 0), output<f32>(run, 0), i32(s0)); // k_keep_z_map
  launch(run, 3, 3, 1, 1, 0, input<i64>(run, 2), output<i64>(run, 1)); // k_keep_left_map
  for (;;) {
    launch(run, 4, 4, 1, 1, 0, output<i64>(run, 1), arena<bool>(run, 0)); // k_map_map_3
    if (!read<bool>(run, arena<bool>(run, 0)) || has_fault(run)) break;
    launch(run, 5, 5, min_i64(1048576, -floor_div(-s0, 32)), 256, 0, output<f32>(run, 0), arena<f32>(run, 0), i32(s0)); // k_map_map_4
    launch(run, 6, 6, 1, 1, 0, output<i64>(run, 1), arena<i64>(run, 256 * floor_div(s0 + 7, 8))); // k_map_map_5
    launch(run, 7, 2, min_i64(1048576, -floor_div(-s0, 32)), 256, 0, arena<f32>(run, 0), output<f32>(run, 0), i32(s0)); // k_keep_z_map
    launch(run, 8, 3, 1, 1, 0, arena<i64>(run, 256 * floor_div(s0 + 7, 8)), output<i64>(run, 1)); // k_keep_left_map
  }
  s1 = run.symbols[1] = read<i64>(run, input<i64>(run, 2));
  if (s1 < 0 || s1 > 1000) return 1;
  if (!(Checked(s1) <= Checked(s0))) return 2;
  launch(run, 9, 7, min_i64(1048576, -floor_div(-s1, 32)), 256, 0, input<f32>(run, 0), arena<f32>(run, 0), i32(s1)); // k_rows
  launch(run, 10, 8, 1, 512, 0, arena<f32>(run, 0), output<f32>(run, 2), i32(s1)); // k_sum
  launch(run, 11, 9, min_i64(1048576, -floor_div(-s1, 64)), 128, 0, arena<f32>(run, 0), output<f32>(run, 4), arena<i64>(run, 32000), i64(s1)); // k_sorted
  launch(run, 12, 8, 1, 512, 0, output<f32>(run, 4), output<f32>(run, 3), i32(s1)); // k_sum
  return 0;
}
