// Runs the model `clusters` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_clusters_cuda_run(DeviceRun &run) {
  (void)run;
  launch(run, 0, 0, 4, 256, 0, input<f32>(run, 0), input<f32>(run, 1), output<f32>(run, 3)); // k_few
  launch(run, 1, 1, 72, 256, 65536, input<f32>(run, 2), input<f32>(run, 3), output<f32>(run, 4)); // k_floats
  launch(run, 2, 2, 16, 128, 65536, input<f16>(run, 4), input<f16>(run, 5), output<f16>(run, 5)); // k_halves
  launch(run, 3, 3, 4, 256, 0, input<i64>(run, 6), input<i64>(run, 7), output<i64>(run, 6)); // k_integers
  launch(run, 4, 4, 128, 512, 0, input<f32>(run, 8), arena<f32>(run, 0), output<i64>(run, 1), output<f32>(run, 0)); // k_most
  launch(run, 5, 5, 128, 512, 0, input<f16>(run, 9), arena<f32>(run, 0), input<f16>(run, 10), output<f16>(run, 2)); // k_total
  return 0;
}
