// Runs the model `roles` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_roles_cuda_run(DeviceRun &run) {
  (void)run;
  launch(run, 0, 0, 256, 256, 163840, input<bf16>(run, 0), input<bf16>(run, 1), input<bf16>(run, 2), output<bf16>(run, 0)); // k_y
  return 0;
}
