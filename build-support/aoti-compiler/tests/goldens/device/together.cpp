// Runs the model `together` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_together_cuda_run(DeviceRun &run) {
  (void)run;
  i64 s0 = run.symbols[0];
  launch(run, 0, 0, min_i64(1048576, -floor_div(-s0, 8)), 256, 0, input<f32>(run, 0), input<f32>(run, 1), input<f32>(run, 2), output<f32>(run, 0), output<f32>(run, 1), output<f32>(run, 3), i32(s0)); // k_two
  launch(run, 1, 1, min_i64(1048576, -floor_div(-3 * s0 + 29, 32) + 1), 256, 0, input<f32>(run, 0), output<f32>(run, 2), i32(s0)); // k_parts
  launch(run, 2, 2, 6, 256, 0, input<f32>(run, 3), weights<f32>(run, 0), arena<f32>(run, 0)); // k_gemm
  launch(run, 3, 3, 1, 256, 0, arena<f32>(run, 0, 80), output<f32>(run, 4)); // k_k
  launch(run, 4, 4, 1, 256, 0, arena<f32>(run, 0), output<f32>(run, 4, 48)); // k_q
  launch(run, 5, 3, 1, 256, 0, arena<f32>(run, 0, 128), output<f32>(run, 4, 128)); // k_k
  launch(run, 6, 5, 7, 256, 0, input<bf16>(run, 4), weights<bf16>(run, 6528), output<bf16>(run, 5)); // k_few
  launch(run, 7, 6, 5, 256, 0, input<f32>(run, 5), weights<f32>(run, 40320), output<f32>(run, 6)); // k_fixed
  launch(run, 8, 7, 9, 256, 0, input<f32>(run, 6), arena<f32>(run, 16896)); // k_exp
  launch(run, 9, 8, 5, 128, 0, arena<f32>(run, 16896), arena<f32>(run, 25344), arena<i64>(run, 0)); // k_sorted
  launch(run, 10, 9, 5, 256, 0, input<f32>(run, 5), arena<f32>(run, 25344), output<f32>(run, 7)); // k_moved
  launch(run, 11, 10, 1, 256, 0, input<f32>(run, 7), input<f32>(run, 8), input<f32>(run, 9), output<f32>(run, 8), output<f32>(run, 9), output<f32>(run, 10)); // k_one
  return 0;
}
