// Two models in one program, each with a header of its own: prints what each makes of two rows, added up.
#include "aoti_other.h"
#include "aoti_scaled.h"

#include <cstdio>
#include <cstdlib>

static void expect(bool holds, const AotiError &error) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", error.message);
  std::exit(1);
}

static float sum(const AotiApi *api) {
  AotiError error = {};
  AotiModel *model = nullptr;
  AotiCreateOptions options = {};
  options.cpu_level = -1;
  options.device.kind = AOTI_CPU;
  expect(api->create(&options, &model, &error) == AOTI_OK, error);
  float x[6] = {0, 1, 2, 3, 4, 5}, y[6] = {};
  int64_t sizes[2] = {2, 3};
  AotiTensor input = scaled_input_x(x, sizes), output = scaled_output_y(y, sizes);
  AotiRun *run = nullptr;
  expect(api->prepare(model, &input, 1, 1, nullptr, 0, &run, &error) == AOTI_OK, error);
  expect(api->submit(run, &input, 1, &output, 1, nullptr, nullptr, &error) == AOTI_OK, error);
  expect(api->wait(run, nullptr, &error) == AOTI_OK, error);
  api->release(run);
  api->destroy(model);
  float all = 0;
  for (float one : y) all += one;
  return all;
}

int main() {
  std::printf("%g %g\n", sum(aoti_scaled_api()), sum(aoti_other_api()));
  return 0;
}
