// Runs the model `grouped` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_grouped_cuda_run(DeviceRun &run) {
  (void)run;
  i64 s0 = run.symbols[0];
  i64 s1 = run.symbols[1];
  launch(run, 0, 0, min_i64(1048576, -(s0 * floor_div(-s1, 32))), 128, 0, input<f32>(run, 0), weights<f32>(run, 0), arena<f32>(run, 0), i32(s0), i32(s1)); // k_p
  launch(run, 1, 1, min_i64(1048576, -(s0 * floor_div(-s1, 32))), 128, 0, arena<f32>(run, 0), weights<f32>(run, 0), output<f32>(run, 5), i32(s0), i32(s1)); // k_r
  launch(run, 2, 2, 16, 128, 0, input<f16>(run, 1), weights<f16>(run, 192), output<f16>(run, 0)); // k_a
  launch(run, 3, 3, 11, 256, 0, input<bf16>(run, 2), arena<bf16>(run, 0)); // k_b
  launch(run, 4, 4, 6, 128, 0, arena<bf16>(run, 0), weights<bf16>(run, 640), arena<bf16>(run, 5376)); // k_c
  launch(run, 5, 5, 2, 128, 0, arena<bf16>(run, 5376), output<bf16>(run, 1)); // k_d
  launch(run, 6, 6, 8, 256, 0, input<f32>(run, 3), arena<f32>(run, 0)); // k_e
  launch(run, 7, 7, 4, 128, 0, arena<f32>(run, 0), weights<f32>(run, 3008), output<f32>(run, 2)); // k_f
  launch(run, 8, 8, 16, 128, 0, input<bf16>(run, 4), weights<bf16>(run, 5312), output<bf16>(run, 3)); // k_g
  launch(run, 9, 9, 3, 128, 0, input<f64>(run, 5), weights<f64>(run, 5824), output<f64>(run, 4)); // k_h
  return 0;
}
