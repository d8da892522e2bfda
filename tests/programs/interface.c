// Calls every entry of the C interface as a program without Rust does. `counter` adds what its state holds to each row,
// and one to the state. Says what is wrong and ends with 1.
#include "aoti_counter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                       \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, error.message); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

static AotiError error;

typedef struct Told {
  const AotiModelInfo *info;
  int begun, ended;
  float first;
} Told;

static void on_kernel(void *arg, int32_t kernel, int32_t phase, const AotiTensor *outputs) {
  Told *told = arg;
  EXPECT(kernel >= 0 && kernel < told->info->n_kernels);
  const AotiKernelInfo *info = &told->info->kernels[kernel];
  EXPECT(strlen(info->name) > 0 && info->device == AOTI_CPU && info->n_outputs > 0);
  if (phase == AOTI_KERNEL_BEGIN) {
    EXPECT(!outputs && told->begun == told->ended);
    told->begun++;
    return;
  }
  told->ended++;
  for (int32_t i = 0; i < info->n_outputs; ++i) {
    EXPECT(outputs[i].data && outputs[i].rank == info->outputs[i].rank && outputs[i].dtype == AOTI_F32);
    // The kernel that writes the rows, of as many as this run has.
    if (outputs[i].rank == 2) EXPECT(outputs[i].sizes[0] == 2 && outputs[i].sizes[1] == 3);
    if (outputs[i].rank == 2) told->first = *(const float *)outputs[i].data;
  }
}

int main(void) {
  const AotiApi *api = aoti_counter_api();
  EXPECT(api->abi_version == AOTI_ABI_VERSION && api->struct_bytes == sizeof *api);
  const AotiModelInfo *info = api->info;
  EXPECT(info->n_kernels > 0);
  int named = 0;
  for (int32_t k = 0; k < info->n_kernels; ++k) named += strstr(info->kernels[k].source, "m.py:3") != NULL;
  EXPECT(named > 0);

  AotiModel *model = NULL;
  AotiCreateOptions options = {.cpu_level = -1, .device = {AOTI_CUDA, 0}};
  EXPECT(api->create(&options, &model, &error) == AOTI_ERROR_DEVICE);
  options.device.kind = AOTI_CPU;
  EXPECT(api->create(&options, &model, &error) == AOTI_OK);
  const AotiPlan *plan = api->plan(model);
  EXPECT(plan->n_candidates == 2 && plan->picked == 1 && strcmp(plan->level, plan->candidates[1].name) == 0);
  EXPECT(plan->candidates[0].verdict == AOTI_PASSED_OVER && strlen(plan->candidates[0].reason) > 0);
  AotiModel *lower = NULL;
  options.cpu_level = 0;
  EXPECT(api->create(&options, &lower, &error) == AOTI_OK && api->plan(lower)->picked == 0);
  api->destroy(lower);

  float x[6] = {0, 1, 2, 3, 4, 5}, y[6];
  int64_t sizes[2] = {2, 3}, found[2], *places[1] = {found};
  AotiTensor input = counter_input_x(x, sizes), output = counter_output_y(y, sizes);
  AotiState *state = NULL, *copy = NULL;
  EXPECT(api->create_state(model, NULL, &state, &error) == AOTI_OK);

  // One call.
  int64_t bytes = -1;
  EXPECT(api->workspace_bytes(model, &input, 1, 1, &bytes, &error) == AOTI_OK && bytes >= 0);
  void *workspace = aligned_alloc(AOTI_ALIGNMENT, (size_t)(bytes + 63) / 64 * 64 + 64);
  Told told = {info, 0, 0, -1};
  AotiContext context = {.threads = 1, .on_kernel = on_kernel, .on_kernel_arg = &told};
  EXPECT(api->run(model, &input, 1, &output, 1, places, state, workspace, bytes, &context, &error) == AOTI_OK);
  EXPECT(y[0] == 10 && y[5] == 37 && found[0] == 2 && found[1] == 3);
  EXPECT(told.begun > 0 && told.begun == told.ended && told.first == y[0]);
  EXPECT(api->run(model, &input, 1, &output, 1, NULL, NULL, workspace, bytes, NULL, &error) == AOTI_ERROR_NULL);

  // Prepared once, submitted many times; the state goes on, and a copy of it stays behind.
  EXPECT(api->copy_state(state, NULL, &copy, &error) == AOTI_OK);
  AotiRun *run = NULL;
  AotiTensor sizes_only = {NULL, sizes, NULL, 2, AOTI_F32, {AOTI_CPU, 0}};
  EXPECT(api->prepare(model, &sizes_only, 1, 1, NULL, 0, &run, &error) == AOTI_OK);
  EXPECT(api->wait(run, NULL, &error) == AOTI_ERROR_NULL);
  for (int k = 0; k < 3; ++k) {
    EXPECT(api->submit(run, &input, 1, &output, 1, state, NULL, &error) == AOTI_OK);
    EXPECT(api->wait(run, places, &error) == AOTI_OK);
    EXPECT(y[0] == (float)(11 + k) && found[0] == 2);
  }
  EXPECT(api->submit(run, &sizes_only, 1, &output, 1, state, NULL, &error) == AOTI_ERROR_NULL);
  int64_t one[2] = {1, 3};
  AotiTensor other = counter_input_x(x, one);
  EXPECT(api->submit(run, &other, 1, &output, 1, state, NULL, &error) == AOTI_ERROR_SIZE);
  EXPECT(strstr(error.message, "batch = 2, not 1"));
  EXPECT(api->submit(run, &input, 1, &output, 1, copy, NULL, &error) == AOTI_OK);
  EXPECT(api->wait(run, NULL, &error) == AOTI_OK && y[0] == 11);
  EXPECT(api->reset_state(model, copy, &error) == AOTI_OK);
  EXPECT(api->submit(run, &input, 1, &output, 1, copy, NULL, &error) == AOTI_OK);
  EXPECT(api->wait(run, NULL, &error) == AOTI_OK && y[0] == 10);
  api->release(run);

  // In the caller's memory.
  EXPECT(api->prepare(model, &input, 1, 1, workspace, bytes - 1, &run, &error) == AOTI_ERROR_WORKSPACE);
  EXPECT(api->prepare(model, &input, 1, 1, workspace, bytes, &run, &error) == AOTI_OK);
  EXPECT(api->submit(run, &input, 1, &output, 1, copy, NULL, &error) == AOTI_OK);
  EXPECT(api->wait(run, NULL, &error) == AOTI_OK && y[0] == 11);
  api->release(run);
  input.device.kind = AOTI_CUDA;
  EXPECT(api->prepare(model, &input, 1, 1, workspace, bytes, &run, &error) == AOTI_ERROR_DEVICE);

  api->destroy_state(copy);
  api->destroy_state(state);
  api->destroy(model);
  free(workspace);
  puts("all as it should be");
  return 0;
}
