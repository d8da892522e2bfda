// Runs the model `library` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_library_cuda_run(DeviceRun &run) {
  (void)run;
  if (!multiply(run, 0, 0, arena<u8>(run, 0), input<f16>(run, 0), weights<f16>(run, 0), output<f16>(run, 0)))
    launch(run, 0, 0, 1, 128, 18432, input<f16>(run, 0), weights<f16>(run, 0), weights<f16>(run, 6144), output<f16>(run, 0)); // k_product
  if (!multiply(run, 1, 1, arena<u8>(run, 0), input<f32>(run, 1), input<f32>(run, 2), output<f32>(run, 1)))
    launch(run, 1, 1, 6, 256, 0, input<f32>(run, 1), input<f32>(run, 2), output<f32>(run, 1)); // k_plain
  launch(run, 2, 2, 10, 256, 0, input<f32>(run, 1), output<f32>(run, 2)); // k_exp
  return 0;
}
