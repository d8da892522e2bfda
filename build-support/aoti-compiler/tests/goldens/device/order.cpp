// Runs the model `order` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_order_cuda_run(DeviceRun &run) {
  (void)run;
  launch(run, 0, 0, 6, 1024, 0, input<f32>(run, 0), arena<f32>(run, 0), arena<i32>(run, 72192)); // k_sorted_rows
  launch(run, 1, 1, 10, 512, 0, arena<f32>(run, 0), arena<i32>(run, 72192), arena<f32>(run, 144384), arena<i32>(run, 216576)); // k_sorted_rows_2
  launch(run, 2, 2, 10, 512, 0, arena<f32>(run, 144384), arena<i32>(run, 216576), output<f32>(run, 0), output<i64>(run, 1)); // k_sorted_rows_3
  launch(run, 3, 3, 15, 512, 0, input<f64>(run, 1), arena<f64>(run, 0), arena<i32>(run, 768)); // k_top_rows
  launch(run, 4, 4, 1, 128, 0, arena<f64>(run, 0), arena<i32>(run, 768), output<f64>(run, 2), output<i64>(run, 3)); // k_top_rows_2
  launch(run, 5, 5, 6, 512, 0, input<i64>(run, 2), arena<i64>(run, 0), arena<i32>(run, 160256)); // k_least_rows
  launch(run, 6, 6, 6, 512, 0, arena<i64>(run, 0), arena<i32>(run, 160256), arena<i64>(run, 80128), arena<i32>(run, 200448)); // k_least_rows_2
  launch(run, 7, 7, 6, 512, 0, arena<i64>(run, 80128), arena<i32>(run, 200448), output<i64>(run, 4), output<i64>(run, 5)); // k_least_rows_3
  launch(run, 8, 8, 19, 128, 0, input<f16>(run, 4), output<f16>(run, 6), output<i64>(run, 7)); // k_short
  launch(run, 9, 9, 300, 1024, 0, input<f16>(run, 4), output<f16>(run, 8), output<i64>(run, 9)); // k_only
  launch(run, 10, 10, 2, 1024, 0, arena<u8>(run, 640000), input<f32>(run, 0), input<i64>(run, 5), output<f32>(run, 10), output<i64>(run, 11)); // k_nth
  launch(run, 11, 11, 157, 256, 0, input<bf16>(run, 3), arena<f32>(run, 320000)); // k_map_map
  launch(run, 12, 12, 9, 1024, 0, arena<f32>(run, 320000), arena<f32>(run, 480000), arena<i64>(run, 0)); // k_rows_rows
  launch(run, 13, 13, 1, 256, 0, input<bf16>(run, 3, 79984), arena<f32>(run, 320000)); // k_map_map_2
  launch(run, 14, 14, 1, 64, 0, arena<f32>(run, 320000), arena<f32>(run, 360192), arena<i64>(run, 360448)); // k_rows_rows_2
  launch(run, 15, 15, 1, 256, 0, arena<f32>(run, 480000, 17760), arena<i64>(run, 0, 35536), arena<f32>(run, 320000), arena<i64>(run, 320256)); // k_map_map_3
  launch(run, 16, 16, 1, 1, 0, arena<f32>(run, 360192), arena<i64>(run, 360448, 16), arena<f32>(run, 320000, 32), arena<i64>(run, 320256, 64)); // k_map_map_4
  launch(run, 17, 17, 1, 64, 0, arena<f32>(run, 320000), arena<f32>(run, 360704), arena<i64>(run, 320512)); // k_rows_rows_3
  launch(run, 18, 18, 1, 256, 0, arena<i64>(run, 320512), arena<i64>(run, 320256), arena<i64>(run, 360960)); // k_map_map_7
  launch(run, 19, 19, 157, 256, 0, arena<f32>(run, 480000), arena<f32>(run, 360704), arena<i64>(run, 0), arena<i64>(run, 360960), arena<bool>(run, 320000), output<i64>(run, 13)); // k_map_map_8
  launch(run, 20, 20, 1, 256, 0, arena<f32>(run, 360192), arena<f32>(run, 360704, 32), arena<i64>(run, 360448), arena<i64>(run, 360960, 64), arena<bool>(run, 0), output<i64>(run, 13, 319968)); // k_map_map_9
  launch(run, 21, 21, 157, 256, 0, arena<f32>(run, 480000), arena<bool>(run, 320000), arena<f32>(run, 360704), arena<f32>(run, 360192), arena<bool>(run, 0), output<bf16>(run, 12)); // k_running
  return 0;
}
