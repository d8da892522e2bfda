// Runs the model `kernels` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_kernels_cuda_run(DeviceRun &run) {
  (void)run;
  launch(run, 0, 0, 391, 256, 0, input<f32>(run, 0), output<f32>(run, 0)); // k_chain
  launch(run, 1, 1, 250, 256, 0, input<f16>(run, 1), output<f16>(run, 1)); // k_half
  launch(run, 2, 2, 37, 256, 0, input<f32>(run, 2), output<i64>(run, 7), output<f32>(run, 2)); // k_top
  launch(run, 3, 3, 1, 256, 0, input<f32>(run, 3), output<f32>(run, 3)); // k_fewsum
  launch(run, 4, 4, 9, 512, 0, input<f32>(run, 4), output<f32>(run, 4), output<f32>(run, 5), output<i64>(run, 8)); // k_columns
  launch(run, 5, 5, 8, 1024, 0, input<f32>(run, 4), output<f32>(run, 6)); // k_all
  launch(run, 6, 6, 9, 128, 0, input<bool>(run, 5), output<bool>(run, 9)); // k_any
  launch(run, 7, 7, 1, 1024, 0, input<bool>(run, 5), output<bool>(run, 10)); // k_every
  launch(run, 8, 8, 7, 256, 0, input<i64>(run, 6), input<f32>(run, 7), output<f32>(run, 11)); // k_picked
  launch(run, 9, 9, 3, 256, 0, input<f32>(run, 7), output<f32>(run, 12)); // k_map_map
  launch(run, 10, 10, 33, 1024, 240, output<f32>(run, 11), input<i64>(run, 6), output<f32>(run, 12)); // k_added
  launch(run, 11, 11, 6, 256, 0, input<f32>(run, 9), weights<f32>(run, 0), output<f32>(run, 13)); // k_product
  launch(run, 12, 12, 12, 128, 32768, input<bf16>(run, 12), input<bf16>(run, 13), output<bf16>(run, 33)); // k_halves
  launch(run, 13, 13, 1, 256, 0, input<i32>(run, 8), output<i32>(run, 14)); // k_whole
  launch(run, 14, 14, 1, 256, 0, input<f32>(run, 10), weights<f32>(run, 3840), output<f32>(run, 15)); // k_conv
  launch(run, 15, 15, 24, 64, 0, input<f64>(run, 11), output<f64>(run, 16)); // k_cumulative
  launch(run, 16, 16, 24, 64, 0, input<f64>(run, 11), output<f64>(run, 17), output<i64>(run, 18)); // k_running
  launch(run, 17, 17, 37, 256, 0, input<f32>(run, 2), output<f32>(run, 19)); // k_lengthwise
  launch(run, 18, 18, 205, 256, 0, input<f32>(run, 4), arena<f32>(run, 0)); // k_map_map_2
  launch(run, 19, 19, 3220, 64, 0, arena<f32>(run, 0), arena<f32>(run, 837376)); // k_rows_rows
  launch(run, 20, 20, 3, 256, 0, input<f32>(run, 4, 837200), arena<f32>(run, 0)); // k_map_map_3
  launch(run, 21, 21, 2, 64, 0, arena<f32>(run, 0), arena<f32>(run, 26624)); // k_rows_rows_2
  launch(run, 22, 22, 13, 256, 0, arena<f32>(run, 837376, 17920), arena<f32>(run, 0)); // k_map_map_4
  launch(run, 23, 23, 1, 256, 0, arena<f32>(run, 26624, 2512), arena<f32>(run, 0, 12880)); // k_map_map_5
  launch(run, 24, 24, 70, 64, 0, arena<f32>(run, 0), arena<f32>(run, 13312)); // k_rows_rows_3
  launch(run, 25, 25, 409, 256, 0, arena<f32>(run, 837376), arena<f32>(run, 13312), output<f32>(run, 20)); // k_map_map_6
  launch(run, 26, 26, 3, 256, 0, arena<f32>(run, 26624), arena<f32>(run, 13312, 12592), output<f32>(run, 20, 837200)); // k_map_map_7
  launch(run, 27, 27, 12, 128, 0, input<f32>(run, 14), output<f32>(run, 21), output<i64>(run, 22)); // k_lowest
  launch(run, 28, 28, 7, 64, 0, input<i32>(run, 8), output<i32>(run, 23)); // k_numbers
  launch(run, 29, 29, 64, 256, 0, input<f16>(run, 1), output<f16>(run, 24)); // k_halfway
  launch(run, 30, 30, 12, 128, 0, input<f32>(run, 14), output<f32>(run, 25), output<i64>(run, 26)); // k_sorted
  launch(run, 31, 31, 12, 128, 0, input<f32>(run, 14), arena<f32>(run, 25088), arena<i64>(run, 0)); // k_ascending
  launch(run, 32, 32, 49, 64, 0, arena<f32>(run, 25088), input<f32>(run, 14), output<i64>(run, 27)); // k_found
  launch(run, 33, 33, 282, 256, 0, input<f32>(run, 4), output<f32>(run, 28)); // k_turned2
  launch(run, 34, 34, 169, 256, 0, input<f32>(run, 15), output<f32>(run, 32)); // k_planes
  launch(run, 35, 35, 146, 256, 0, input<f32>(run, 2), output<f32>(run, 29)); // k_padded
  launch(run, 36, 36, 5, 256, 0, input<f64>(run, 11), output<f64>(run, 30), output<f64>(run, 31)); // k_sines
  return 0;
}
