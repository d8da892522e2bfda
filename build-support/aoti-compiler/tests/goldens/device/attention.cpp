// Runs the model `attention` on a GPU, written by cargo-aoti.
#include "aoti/gpu/host.h"

using namespace aoti;
using namespace aoti::gpu;

extern "C" int32_t aoti_attention_cuda_run(DeviceRun &run) {
  (void)run;
  launch(run, 0, 0, 4, 128, 40960, input<bf16>(run, 0), input<bf16>(run, 1), input<bf16>(run, 2), output<bf16>(run, 0)); // k_causaly
  launch(run, 1, 1, 4, 128, 40960, input<f16>(run, 3), input<f16>(run, 4), input<f16>(run, 5), output<f16>(run, 1)); // k_groupedy
  launch(run, 2, 2, 12, 256, 12288, input<f32>(run, 6), input<f32>(run, 7), input<f32>(run, 8), input<bool>(run, 9), output<f32>(run, 2)); // k_maskedy
  launch(run, 3, 3, 2, 128, 40960, input<bf16>(run, 10), input<bf16>(run, 11), input<bf16>(run, 12), input<bf16>(run, 13), output<bf16>(run, 3)); // k_biasedy
  launch(run, 4, 4, 16, 512, 0, input<f16>(run, 14), input<f16>(run, 15), input<f16>(run, 16), input<bool>(run, 17), output<f16>(run, 4)); // k_decodey
  launch(run, 5, 5, 2, 256, 47616, input<f32>(run, 18), input<f32>(run, 19), input<f32>(run, 20), output<f32>(run, 5)); // k_widey
  launch(run, 6, 6, 2, 512, 0, input<f32>(run, 21), input<f32>(run, 22), input<f32>(run, 23), output<f32>(run, 6)); // k_fewy
  launch(run, 7, 7, 4, 128, 40960, input<bf16>(run, 24), input<bf16>(run, 25), input<bf16>(run, 26), input<bool>(run, 27), output<bf16>(run, 7)); // k_nany
  launch(run, 8, 8, 16, 512, 0, input<f16>(run, 28), input<f16>(run, 29), input<f16>(run, 30), input<bool>(run, 31), output<f16>(run, 8)); // k_nanoney
  launch(run, 9, 9, 2, 256, 12288, input<f32>(run, 32), input<f32>(run, 33), input<f32>(run, 34), input<bool>(run, 35), output<f32>(run, 9)); // k_nanwidey
  return 0;
}
