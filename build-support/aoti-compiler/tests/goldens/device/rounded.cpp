// Runs the model `rounded` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_rounded_cuda_run(DeviceRun &run) {
  (void)run;
  launch(run, 0, 0, 12, 256, 0, input<f32>(run, 0), input<f32>(run, 1), output<f32>(run, 0)); // k_product
  launch(run, 1, 1, 144, 256, 0, input<f32>(run, 2), weights<f32>(run, 0), output<f32>(run, 1)); // k_conv
  return 0;
}
