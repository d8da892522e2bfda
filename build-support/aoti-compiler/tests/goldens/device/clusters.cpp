// Runs the model `clusters` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_clusters_cuda_run(DeviceRun &run) {
  (void)run;
  launch(run, 0, 0, 4, 256, 0, input<f32>(run, 0), input<f32>(run, 1), output<f32>(run, 0)); // k_few
  launch(run, 1, 1, 72, 256, 65536, input<f32>(run, 2), input<f32>(run, 3), output<f32>(run, 1)); // k_floats
  launch(run, 2, 2, 16, 128, 65536, input<f16>(run, 4), input<f16>(run, 5), output<f16>(run, 2)); // k_halves
  launch(run, 3, 3, 4, 256, 0, input<i64>(run, 6), input<i64>(run, 7), output<i64>(run, 3)); // k_integers
  return 0;
}
