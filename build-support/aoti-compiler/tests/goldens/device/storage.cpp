// Runs the model `storage` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_storage_cuda_run(DeviceRun &run) {
  (void)run;
  i64 s0 = run.symbols[0];
  launch(run, 0, 0, min_i64(1048576, -floor_div(-5 * s0, 32)), 256, 0, input<u32>(run, 0), output<f32>(run, 0), i32(s0)); // k_xf
  launch(run, 1, 1, min_i64(1048576, -floor_div(-s0, 8)), 256, 0, input<u64>(run, 1), input<u32>(run, 0), output<f64>(run, 1), output<f32>(run, 2), output<bool>(run, 4), output<u64>(run, 5), output<u64>(run, 6), output<u64>(run, 7), output<u32>(run, 8), i32(s0)); // k_yd
  launch(run, 2, 2, min_i64(1048576, -floor_div(-5 * s0, 32)), 256, 0, input<u16>(run, 2), output<f16>(run, 3), i32(s0)); // k_wf
  launch(run, 3, 3, min_i64(1048576, -floor_div(-s0, 8)), 128, 0, input<u64>(run, 1), output<u64>(run, 9), output<i64>(run, 10), i64(s0)); // k_order
  launch(run, 4, 4, min_i64(1048576, -floor_div(-5 * s0, 32)), 256, 0, input<f32>(run, 3), output<u32>(run, 11), output<u64>(run, 12), i32(s0)); // k_from
  launch(run, 5, 5, min_i64(1048576, -floor_div(-5 * s0, 32)), 256, 0, input<f8e4m3fn>(run, 4), input<f8e5m2>(run, 5), arena<f32>(run, 0), output<f8e4m3fn>(run, 13), output<f8e5m2>(run, 14), output<f8e4m3fnuz>(run, 15), output<f8e5m2fnuz>(run, 16), output<f8e8m0fnu>(run, 17), output<f32>(run, 18), i32(s0)); // k_ef
  launch(run, 6, 6, 2, 256, 0, input<f8e5m2fnuz>(run, 6), arena<f32>(run, 256 * floor_div(5 * s0 + 7, 8))); // k_vf
  launch(run, 7, 7, min_i64(1048576, -floor_div(-s0, 64)), 256, 0, arena<f32>(run, 0), arena<f32>(run, 256 * floor_div(5 * s0 + 7, 8)), output<f32>(run, 19), output<f8e4m3fn>(run, 20), i32(s0)); // k_product
  return 0;
}
