// Runs the model `random` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_random_cuda_run(DeviceRun &run) {
  (void)run;
  i64 s0 = run.symbols[0];
  launch(run, 0, 0, 1, 1, 0, generator<i64>(run, 0), arena<i64>(run, 0)); // k_key
  launch(run, 1, 1, min_i64(1048576, -floor_div(-s0, 32)), 256, 0, arena<i64>(run, 0), input<f32>(run, 0), output<i64>(run, 0), output<f32>(run, 1), i32(s0)); // k_bits
  return 0;
}
