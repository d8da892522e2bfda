// Runs a model on a GPU by its C interface, with whatever driver the machine has: RUN CASE RESULT. The case has the sizes and
// the bytes of the inputs; the outputs of each way of running are written one after the other, or the program fails where
// they differ.
#include "aoti/abi.h"
#include "vendor.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" const AotiApi *MODEL_API(void);

static AotiError error;
static void check(int32_t code, const char *what) {
  if (code == AOTI_OK) return;
  fprintf(stderr, "%d: %s\n", int(code), error.message[0] ? error.message : what);
  exit(code == AOTI_ERROR_ASSERT || code == AOTI_ERROR_INDEX ? 3 : 1);
}
#define CHECK(CALL) check(CALL, #CALL)

struct Tensors {
  AotiTensor at[64];
  int64_t sizes[64][8], bytes[64];
  int32_t count;
};
static const int64_t widths[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 2, 4, 8, 1, 1, 1, 1, 1};

static int64_t bytes_of(const int64_t *sizes, const AotiValueInfo &info) {
  int64_t bytes = widths[info.dtype];
  for (int32_t d = 0; d < info.rank; ++d) bytes *= sizes[d];
  return bytes;
}
static void describe(Tensors &tensors, int32_t i, const AotiValueInfo &info) {
  tensors.bytes[i] = bytes_of(tensors.sizes[i], info);
  tensors.at[i] = {calloc(size_t(tensors.bytes[i]) + 16, 1), tensors.sizes[i], nullptr, info.rank, info.dtype, {AOTI_CPU, 0}};
}

static int kernels = 0, timed = 0;
static double micros = 0;
static void on_time(void *, int32_t, double time) { ++timed, micros += time; }
static void on_kernel(void *, int32_t, int32_t phase, const AotiTensor *outputs) {
  if (phase == AOTI_KERNEL_END && outputs) ++kernels;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  FILE *file = fopen(argv[1], "rb");
  if (!file) return 2;
  const AotiApi *api = MODEL_API();
  const AotiModelInfo &info = *api->info;
  static Tensors inputs, outputs, again;
  inputs.count = info.n_inputs, outputs.count = info.n_outputs;
  for (int32_t i = 0; i < info.n_inputs; ++i) {
    for (int32_t d = 0; d < info.inputs[i].rank; ++d)
      if (fread(&inputs.sizes[i][d], 8, 1, file) != 1) return 2;
    describe(inputs, i, info.inputs[i]);
    if (fread(inputs.at[i].data, 1, size_t(inputs.bytes[i]), file) != size_t(inputs.bytes[i])) return 2;
  }
  fclose(file);

  AotiCreateOptions options{};
  options.cpu_level = -1, options.device = {DEVICE_KIND, 0};
  AotiModel *model, *twin;
  CHECK(api->create(&options, &model, &error));
  CHECK(api->create(&options, &twin, &error));
  if (!strstr(api->plan(model)->level, NAME("sm_90", "emulated"))) return 4;
  int64_t *places[64];
  for (int32_t i = 0; i < info.n_outputs; ++i) places[i] = outputs.sizes[i];
  CHECK(api->output_sizes(model, inputs.at, info.n_inputs, places, &error));
  // Where nobody knows a size, there is room.
  bool unknown[64] = {}, any_unknown = false;
  for (int32_t i = 0; i < info.n_outputs; ++i)
    for (int32_t d = 0; d < info.outputs[i].rank; ++d)
      if (outputs.sizes[i][d] < 0) outputs.sizes[i][d] = 300, unknown[i] = any_unknown = true;
  memcpy(again.sizes, outputs.sizes, sizeof again.sizes);
  for (int32_t i = 0; i < info.n_outputs; ++i) describe(outputs, i, info.outputs[i]), describe(again, i, info.outputs[i]);

  // From and to memory of the processor, and once more as a run that was kept; then told of every kernel.
  static int64_t actual[64][8]; // sizes, where some are read from data
  for (int32_t i = 0; i < info.n_outputs; ++i) places[i] = actual[i];
  auto run = [&](AotiModel *on, Tensors &to, const AotiContext *context) {
    CHECK(api->run(on, inputs.at, info.n_inputs, to.at, info.n_outputs, places, nullptr, nullptr, 0, context, &error));
  };
  auto same = [&](const char *what) {
    for (int32_t i = 0; i < info.n_outputs; ++i) {
      if (memcmp(outputs.at[i].data, again.at[i].data, size_t(bytes_of(actual[i], info.outputs[i]))) != 0) {
        fprintf(stderr, "%s: output %d differs\n", what, int(i));
        exit(5);
      }
      memset(again.at[i].data, 0x5a, size_t(again.bytes[i]));
    }
  };
  AotiContext drawn{}, others{};
  drawn.threads = others.threads = 1, drawn.seed = others.seed = 11, drawn.offset = 3, others.offset = 4;
  run(model, outputs, &drawn);
  // Nothing is copied that the run did not write.
  for (int32_t i = 0; i < info.n_outputs; ++i)
    for (int64_t at = bytes_of(actual[i], info.outputs[i]); at < outputs.bytes[i]; ++at)
      if (((const char *)outputs.at[i].data)[at] != 0) return 9;
  // What is repeated as a graph draws by the numbers of its run all the same.
  for (int k = 0; k < 3; ++k) run(model, again, &others), run(model, again, &drawn), same("a run again");
  run(twin, again, &drawn), same("the same model again");
  if (any_unknown) {
    AotiContext asked = drawn;
    static Tensors without = again;
    for (int32_t i = 0; i < info.n_outputs; ++i)
      if (unknown[i]) without.at[i].data = nullptr;
    asked.allocate_output = [](void *to, int32_t output, const int64_t *, int64_t) { return ((Tensors *)to)->at[output].data; };
    asked.allocate_output_arg = &again;
    run(model, without, &asked), same("asked for memory");
    if (api->run(model, inputs.at, info.n_inputs, without.at, info.n_outputs, places, nullptr, nullptr, 0, &drawn, &error) !=
        AOTI_ERROR_NULL)
      return 10;
    asked.allocate_output = [](void *, int32_t, const int64_t *, int64_t) -> void * { return nullptr; };
    if (api->run(model, inputs.at, info.n_inputs, without.at, info.n_outputs, places, nullptr, nullptr, 0, &asked, &error) !=
        AOTI_ERROR_MEMORY)
      return 11;
  }
  AotiContext told = drawn;
  told.on_kernel = on_kernel;
  run(model, again, &told), same("told of kernels");
  if (kernels == 0) return 6;
  // Told of times; a launch of no blocks takes none.
  AotiContext with_times = drawn;
  with_times.on_time = on_time;
  run(model, again, &with_times), same("told of times");
  if (timed == 0 || timed > kernels || micros <= 0) return 8;

  // Everything on the device, one output at an address that kernels cannot use.
  static Tensors here = inputs, there = outputs;
  AotiDevice cpu{AOTI_CPU, 0};
  void *memory;
  for (int32_t i = 0; i < info.n_inputs; ++i) {
    CHECK(api->allocate(model, inputs.bytes[i], &memory, &error));
    CHECK(api->copy(model, memory, options.device, inputs.at[i].data, cpu, inputs.bytes[i], &error));
    here.at[i].data = memory, here.at[i].device = options.device, here.at[i].sizes = inputs.sizes[i];
  }
  void *allocated[64];
  for (int32_t i = 0; i < info.n_outputs; ++i) {
    CHECK(api->allocate(model, outputs.bytes[i] + 16, &allocated[i], &error));
    there.at[i].data = (char *)allocated[i] + (i == 0 ? 8 : 0);
    there.at[i].device = options.device, there.at[i].sizes = outputs.sizes[i];
  }
  AotiRun *prepared;
  CHECK(api->prepare(model, here.at, info.n_inputs, 1, nullptr, 0, &prepared, &error));
  for (int k = 0; k < 3; ++k) {
    CHECK(api->submit(prepared, here.at, info.n_inputs, there.at, info.n_outputs, nullptr, &drawn, &error));
    CHECK(api->wait(prepared, nullptr, &error));
  }
  for (int32_t i = 0; i < info.n_outputs; ++i)
    CHECK(api->copy(model, again.at[i].data, cpu, there.at[i].data, options.device, outputs.bytes[i], &error));
  same("on the device");
  here.at[0].device.index = 1;
  if (api->submit(prepared, here.at, info.n_inputs, there.at, info.n_outputs, nullptr, nullptr, &error) != AOTI_ERROR_DEVICE ||
      !strstr(error.message, "lies on " NAME("cuda:1, the model runs on cuda:0", "rocm:1, the model runs on rocm:0")))
    return 7;
  api->release(prepared);
  for (int32_t i = 0; i < info.n_inputs; ++i) api->deallocate(model, here.at[i].data);
  for (int32_t i = 0; i < info.n_outputs; ++i) api->deallocate(model, allocated[i]);
  api->destroy(twin);
  api->destroy(model);

  FILE *result = fopen(argv[2], "wb");
  for (int32_t i = 0; i < info.n_outputs; ++i) fwrite(outputs.at[i].data, 1, size_t(bytes_of(actual[i], info.outputs[i])), result);
  return fclose(result);
}
