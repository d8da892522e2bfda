// Runs the model `rounded_windows` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_rounded_windows_cuda_run(DeviceRun &run) {
  (void)run;
  i64 s0 = run.symbols[0];
  launch(run, 0, 0, min_i64(1048576, 64 * s0), 256, 0, input<f16>(run, 0), arena<f16>(run, 0), i32(s0)); // k_a
  const TensorMap map_1_0 = tensor_map<f16>(run, arena<f16>(run, 0), Boxes<4>{{64, 32, 32, s0}, {64, 2048, 65536}, {64, 128}}, Windows<2>{{-2, -1}, {-1, -1}, {2, 2}});
  const TensorMap map_1_1 = tensor_map<f16>(run, weights<f16>(run, 0), Boxes<5>{{384, 2, 4, 4, 2}, {384, 3072, 768, 12288}, {64, 2, 4, 4, 4}});
  launch(run, 1, 1, staying(run, 1, min_i64(1048576, -floor_div(-17 * s0, 8))), 256, 151552, map_1_0, map_1_1, arena<f16>(run, 0), weights<f16>(run, 0), output<f16>(run, 0), i32(s0)); // k_p
  launch(run, 2, 2, min_i64(1048576, 32 * s0), 256, 0, input<f32>(run, 1), arena<f32>(run, 0), i32(s0)); // k_b
  const TensorMap map_3_0 = tensor_map<f32>(run, arena<f32>(run, 0), Boxes<4>{{32, 32, 32, s0}, {32, 1024, 32768}, {32, 128}}, Windows<2>{{0, 0}, {-2, 0}, {1, 1}});
  const TensorMap map_3_1 = tensor_map<f32>(run, weights<f32>(run, 49152), Boxes<2>{{96, 48}, {96}, {32, 128}});
  launch(run, 3, 3, staying(run, 3, min_i64(1048576, -floor_div(-15 * s0, 2))), 256, 151552, map_3_0, map_3_1, arena<f32>(run, 0), weights<f32>(run, 49152), output<f32>(run, 1), i32(s0)); // k_r
  return 0;
}
