// Runs the model `roles` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_roles_cuda_run(DeviceRun &run) {
  (void)run;
  i64 s0 = run.symbols[0];
  launch(run, 0, 0, 256, 256, 163840, input<bf16>(run, 0), input<bf16>(run, 1), input<bf16>(run, 2), output<bf16>(run, 0)); // k_y
  const TensorMap map_1_0 = tensor_map<bf16>(run, input<bf16>(run, 3), Boxes<3>{{24, 33, s0}, {24, 792}, {64, 128}});
  const TensorMap map_1_1 = tensor_map<bf16>(run, input<bf16>(run, 4), Boxes<3>{{40, 24, s0}, {40, 960}, {64, 64}});
  launch(run, 1, 1, staying(run, 1, min_i64(1048576, s0)), 256, 151552, map_1_0, map_1_1, input<bf16>(run, 3), input<bf16>(run, 4), output<bf16>(run, 1), i32(s0)); // k_ab
  const TensorMap map_2_0 = tensor_map<bf16>(run, input<bf16>(run, 5), Boxes<2>{{24, s0}, {24}, {64, 128}});
  const TensorMap map_2_1 = tensor_map<bf16>(run, input<bf16>(run, 6), Boxes<2>{{24, 48}, {24}, {64, 128}});
  launch(run, 2, 2, staying(run, 2, min_i64(1048576, -floor_div(-s0, 128))), 256, 151552, map_2_0, map_2_1, input<bf16>(run, 5), input<bf16>(run, 6), output<bf16>(run, 2), i32(s0)); // k_rows
  return 0;
}
