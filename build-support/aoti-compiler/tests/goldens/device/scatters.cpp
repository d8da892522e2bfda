// Runs the model `scatters` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_scatters_cuda_run(DeviceRun &run) {
  (void)run;
  launch(run, 0, 0, 44, 256, 0, input<f64>(run, 10), input<f32>(run, 0), output<f64>(run, 0), output<f32>(run, 1), output<f32>(run, 2)); // k_map_map
  launch<kFirst>(run, 1, 1, 3, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f64>(run, 0)); // k_sorted
  launch<kMiddle>(run, 1, 2, 1024, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f64>(run, 0)); // k_sorted_2
  launch<kMiddle>(run, 1, 3, 3, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f64>(run, 0)); // k_sorted_3
  launch<kMiddle>(run, 1, 4, 20, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f64>(run, 0)); // k_sorted_4
  launch<kLast>(run, 1, 5, 20, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f64>(run, 0)); // k_sorted_5
  launch<kFirst>(run, 2, 6, 313, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 1)); // k_fixed
  launch<kMiddle>(run, 2, 7, 313, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 1)); // k_fixed_2
  launch<kMiddle>(run, 2, 8, 313, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 1)); // k_fixed_3
  launch<kLast>(run, 2, 9, 313, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 1)); // k_fixed_4
  launch<kFirst>(run, 3, 10, 20, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 2)); // k_last
  launch<kMiddle>(run, 3, 11, 20, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 2)); // k_last_2
  launch<kLast>(run, 3, 12, 79, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 2)); // k_last_3
  launch(run, 4, 13, 2, 256, 0, input<f16>(run, 3), output<f16>(run, 3)); // k_map_map_4
  launch<kFirst>(run, 5, 14, 2, 256, 240, arena<u8>(run, 0), input<f16>(run, 2), input<i64>(run, 4), output<f16>(run, 3)); // k_ranked
  launch<kMiddle>(run, 5, 15, 1, 256, 0, arena<u8>(run, 0), input<f16>(run, 2), input<i64>(run, 4), output<f16>(run, 3)); // k_ranked_2
  launch<kLast>(run, 5, 16, 1, 256, 0, arena<u8>(run, 0), input<f16>(run, 2), input<i64>(run, 4), output<f16>(run, 3)); // k_ranked_3
  launch(run, 6, 17, 1, 256, 0, input<i64>(run, 5), output<i64>(run, 4)); // k_map_map_5
  launch(run, 7, 18, 5, 256, 0, input<i64>(run, 4), output<i64>(run, 4)); // k_bins
  launch(run, 8, 19, 3, 256, 0, input<f64>(run, 9), input<i32>(run, 6), output<f64>(run, 5), output<i32>(run, 6)); // k_map_map_6
  launch(run, 9, 20, 4, 256, 0, input<f64>(run, 7), input<i64>(run, 8), output<f64>(run, 5)); // k_largest
  launch(run, 10, 21, 4, 256, 0, input<f64>(run, 7), input<i64>(run, 8), output<i32>(run, 6)); // k_cellsum
  return 0;
}
