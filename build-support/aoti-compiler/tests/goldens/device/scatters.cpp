// Runs the model `scatters` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_scatters_cuda_run(DeviceRun &run) {
  (void)run;
  launch(run, 0, 0, 44, 256, 0, input<f32>(run, 0), output<f32>(run, 0), output<f32>(run, 1)); // k_map_map
  launch<kFirst>(run, 1, 1, 3, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 0)); // k_sorted
  launch<kMiddle>(run, 1, 2, 256, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 0)); // k_sorted_2
  launch<kMiddle>(run, 1, 3, 3, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 0)); // k_sorted_3
  launch<kMiddle>(run, 1, 4, 3, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 0)); // k_sorted_4
  launch<kMiddle>(run, 1, 2, 256, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 0)); // k_sorted_2
  launch<kMiddle>(run, 1, 5, 3, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 0)); // k_sorted_5
  launch<kMiddle>(run, 1, 6, 10, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 0)); // k_sorted_6
  launch<kLast>(run, 1, 7, 10, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 0)); // k_sorted_7
  launch<kFirst>(run, 2, 8, 20, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 1)); // k_last
  launch<kMiddle>(run, 2, 9, 20, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 1)); // k_last_2
  launch<kLast>(run, 2, 10, 79, 256, 0, arena<u8>(run, 0), input<f32>(run, 1), input<i64>(run, 4), output<f32>(run, 1)); // k_last_3
  launch(run, 3, 11, 2, 256, 0, input<f16>(run, 3), output<f16>(run, 2)); // k_map_map_3
  launch<kFirst>(run, 4, 12, 2, 256, 240, arena<u8>(run, 0), input<f16>(run, 2), input<i64>(run, 4), output<f16>(run, 2)); // k_ranked
  launch<kMiddle>(run, 4, 13, 1, 256, 0, arena<u8>(run, 0), input<f16>(run, 2), input<i64>(run, 4), output<f16>(run, 2)); // k_ranked_2
  launch<kLast>(run, 4, 14, 1, 256, 0, arena<u8>(run, 0), input<f16>(run, 2), input<i64>(run, 4), output<f16>(run, 2)); // k_ranked_3
  launch(run, 5, 15, 1, 256, 0, input<i64>(run, 5), output<i64>(run, 3)); // k_map_map_4
  launch(run, 6, 16, 5, 256, 0, input<i64>(run, 4), output<i64>(run, 3)); // k_bins
  launch(run, 7, 17, 3, 256, 0, input<f64>(run, 9), input<i32>(run, 6), output<f64>(run, 4), output<i32>(run, 5)); // k_map_map_5
  launch(run, 8, 18, 4, 256, 0, input<f64>(run, 7), input<i64>(run, 8), output<f64>(run, 4)); // k_largest
  launch(run, 9, 19, 4, 256, 0, input<f64>(run, 7), input<i64>(run, 8), output<i32>(run, 5)); // k_cellsum
  return 0;
}
