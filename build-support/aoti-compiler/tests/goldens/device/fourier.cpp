// Runs the model `fourier` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_fourier_cuda_run(DeviceRun &run) {
  (void)run;
  launch(run, 0, 0, 300, 8, 528, input<f32>(run, 0), weights<f32>(run, 0), output<f32>(run, 0)); // k_fourier_rows
  launch(run, 1, 1, 3, 10, 1344, input<f64>(run, 1), weights<f64>(run, 512), output<f64>(run, 1)); // k_fourier_rows_2
  return 0;
}
