// Runs the model `narrow` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_narrow_cuda_run(DeviceRun &run) {
  (void)run;
  launch(run, 0, 0, 5, 256, 32768, input<bf16>(run, 0), weights<bf16>(run, 0), weights<bf16>(run, 10880), output<bf16>(run, 0)); // k_one
  launch(run, 1, 1, 6, 256, 0, input<f16>(run, 3), weights<i8>(run, 11072), output<f16>(run, 1)); // k_few
  launch(run, 2, 2, 1, 256, 0, input<f32>(run, 4), weights<f32>(run, 20672), output<f32>(run, 2)); // k_skinny
  launch(run, 3, 3, 5, 256, 0, input<i32>(run, 5), weights<i8>(run, 45248), output<i32>(run, 3)); // k_whole
  launch(run, 4, 4, 6, 256, 0, input<bf16>(run, 0), weights<bf16>(run, 50368), output<bf16>(run, 4)); // k_plain
  launch(run, 5, 5, 2, 256, 0, input<f32>(run, 4), input<f8e4m3fn>(run, 6), output<f32>(run, 5)); // k_eighth
  launch(run, 6, 6, 5, 256, 32768, input<f16>(run, 1), weights<f16>(run, 68800), output<f16>(run, 7)); // k_units
  launch(run, 7, 7, 4, 256, 0, input<bf16>(run, 2), weights<bf16>(run, 79680), output<bf16>(run, 8)); // k_rows
  launch(run, 8, 8, 7, 256, 0, input<f16>(run, 7), arena<f16>(run, 0)); // k_exp
  launch(run, 9, 9, 9, 256, 0, input<f32>(run, 4), arena<f16>(run, 0), output<f32>(run, 6)); // k_half
  launch(run, 10, 10, 3, 256, 0, input<f32>(run, 8), weights<i8>(run, 104256), output<f32>(run, 9)); // k_groups
  return 0;
}
