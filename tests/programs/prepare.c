// Makes the weights of the model `scaled` of tensors by name, and runs it: first with tensors that do not fit.
#include "aoti_scaled.h"

#include <stdio.h>
#include <stdlib.h>

static void finding(void *arg, const char *message) {
  (void)arg;
  puts(message);
}

static void progress(void *arg, int64_t done, int64_t total) {
  (void)arg;
  printf("%lld of %lld bytes\n", (long long)done, (long long)total);
}

static int fail(const char *what, const AotiError *error) {
  printf("%s: %s\n", what, error->message);
  return 1;
}

int main(void) {
  const AotiApi *api = aoti_scaled_api();
  AotiError error;
  size_t bytes = (size_t)api->info->weights_bytes, room = (size_t)(api->prepare_bytes(1) + 63) / 64 * 64;
  void *weights = aligned_alloc(64, bytes), *workspace = aligned_alloc(64, room);
  float numbers[3] = {5, 6, 7};
  int64_t sizes[1] = {3};
  AotiNamedTensor tensor = {.name = "other", .tensor = {.data = numbers, .sizes = sizes, .rank = 1, .dtype = AOTI_F32}};
  AotiPrepareOptions options = {.progress = progress, .finding = finding};
  int32_t status = api->prepare_weights(&tensor, 1, weights, (int64_t)bytes, workspace, (int64_t)room, &options, &error);
  if (status != AOTI_ERROR_WEIGHTS) return fail("not refused", &error);
  printf("refused: %s\n", error.message);
  tensor.name = "weight";
  if (api->prepare_weights(&tensor, 1, weights, (int64_t)bytes, workspace, (int64_t)room, &options, &error))
    return fail("prepare_weights", &error);

  AotiModel *model;
  AotiCreateOptions create = {.weights = weights, .weights_bytes = (int64_t)bytes, .cpu_level = -1};
  if (api->create(&create, &model, &error)) return fail("create", &error);
  float x[3] = {1, 2, 3}, y[3];
  int64_t x_sizes[2] = {1, 3};
  AotiTensor input = scaled_input_x(x, x_sizes), output = scaled_output_y(y, x_sizes);
  int64_t needed = 0;
  if (api->workspace_bytes(model, &input, 1, 1, &needed, &error)) return fail("workspace_bytes", &error);
  void *arena = aligned_alloc(64, (size_t)(needed + 64) / 64 * 64);
  if (api->run(model, &input, 1, &output, 1, NULL, NULL, arena, needed, NULL, &error)) return fail("run", &error);
  printf("%g %g %g\n", y[0], y[1], y[2]);
  api->destroy(model);
  free(arena);
  free(workspace);
  free(weights);
  return 0;
}
