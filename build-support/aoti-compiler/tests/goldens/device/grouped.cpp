// Runs the model `grouped` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_grouped_cuda_run(DeviceRun &run) {
  (void)run;
  launch(run, 0, 0, 16, 128, 0, input<f16>(run, 0), weights<f16>(run, 0), output<f16>(run, 0)); // k_a
  launch(run, 1, 1, 11, 256, 0, input<bf16>(run, 1), arena<bf16>(run, 0)); // k_b
  launch(run, 2, 2, 6, 128, 0, arena<bf16>(run, 0), weights<bf16>(run, 448), arena<bf16>(run, 5376)); // k_c
  launch(run, 3, 3, 2, 128, 0, arena<bf16>(run, 5376), output<bf16>(run, 1)); // k_d
  launch(run, 4, 4, 8, 256, 0, input<f32>(run, 2), arena<f32>(run, 0)); // k_e
  launch(run, 5, 5, 4, 128, 0, arena<f32>(run, 0), weights<f32>(run, 2816), output<f32>(run, 2)); // k_f
  launch(run, 6, 6, 16, 128, 0, input<bf16>(run, 3), weights<bf16>(run, 5120), output<bf16>(run, 3)); // k_g
  launch(run, 7, 7, 3, 128, 0, input<f64>(run, 4), weights<f64>(run, 5632), output<f64>(run, 4)); // k_h
  return 0;
}
