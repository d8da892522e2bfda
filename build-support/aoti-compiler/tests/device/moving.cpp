// Repeats prepared runs with other inputs, outputs and states, with whatever driver the machine has. What they give must be
// what runs give that are told of kernels, which are launched one by one. Says after each part how often the driver was asked
// for what, if it is the one that emulates.
#include "aoti/abi.h"
#include "vendor.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern "C" const AotiApi *MODEL_API(void);

static AotiError error;
static const AotiApi *api = MODEL_API();
static AotiModel *model;
static const AotiDevice cpu = {AOTI_CPU, 0}, gpu = {DEVICE_KIND, 0};
static void check(int32_t code, const char *what) {
  if (code == AOTI_OK) return;
  fprintf(stderr, "%d: %s\n", int(code), error.message[0] ? error.message : what);
  exit(1);
}
#define CHECK(CALL) check(CALL, #CALL)
static void told(void *, int32_t, int32_t, const AotiTensor *) {}

static const int64_t tall[] = {48, 8}, wide[] = {8, 48}, square[] = {48, 48}, row[] = {48};
struct Set {
  AotiTensor in[2], out[2];
};
static AotiTensor made(const int64_t *sizes, int rank, unsigned seed) {
  static float values[48 * 48];
  const int64_t count = sizes[0] * (rank > 1 ? sizes[1] : 1);
  for (int64_t i = 0; i < count; ++i) seed = seed * 1664525u + 1013904223u, values[i] = float(seed >> 16) / 65536 - 0.5f;
  void *memory;
  CHECK(api->allocate(model, count * 4, &memory, &error));
  CHECK(api->copy(model, memory, gpu, values, cpu, count * 4, &error));
  return {memory, sizes, nullptr, rank, AOTI_F32, gpu};
}
static void submit(AotiRun *run, Set &set, AotiState *state, const AotiContext *context) {
  CHECK(api->submit(run, set.in, 2, set.out, 2, state, context, &error));
  CHECK(api->wait(run, nullptr, &error));
}
static void compare(Set &got, Set &expected, int at) {
  static char values[2][48 * 48 * 4];
  for (int i = 0; i < 2; ++i) {
    const int64_t bytes = i ? 48 * 48 * 4 : 48 * 4;
    CHECK(api->copy(model, values[0], cpu, got.out[i].data, gpu, bytes, &error));
    CHECK(api->copy(model, values[1], cpu, expected.out[i].data, gpu, bytes, &error));
    if (memcmp(values[0], values[1], size_t(bytes)) != 0) {
      fprintf(stderr, "output %d of run %d differs\n", i, at);
      exit(2);
    }
  }
}
static int *counts() {
  static int none[4];
  int *own = driver<int>("emulated_counts");
  return own ? own : none;
}
static void say() {
  int *counts = ::counts();
  printf("launches %d captures %d graphs %d changed %d\n", counts[0], counts[1], counts[2], counts[3]);
  memset(counts, 0, 4 * sizeof(int));
}

int main() {
  alarm(300);
  AotiCreateOptions options{};
  options.cpu_level = -1, options.device = gpu;
  CHECK(api->create(&options, &model, &error));
  // Memory holds nobody else's values.
  void *memory;
  char byte[1000];
  CHECK(api->allocate(model, 1000, &memory, &error));
  CHECK(api->copy(model, byte, cpu, memory, gpu, 1000, &error));
  for (char one : byte)
    if (one != 0) exit(6);
  api->deallocate(model, memory);
  Set sets[3], expected;
  for (unsigned k = 0; k < 3; ++k)
    sets[k] = {{made(tall, 2, 4 * k), made(wide, 2, 4 * k + 1)}, {made(row, 1, 4 * k + 2), made(square, 2, 4 * k + 3)}};
  AotiState *states[2], *plain[2];
  for (int k = 0; k < 2; ++k) {
    CHECK(api->create_state(model, nullptr, &states[k], &error));
    CHECK(api->create_state(model, nullptr, &plain[k], &error));
  }
  AotiRun *runs[3];
  for (AotiRun *&run : runs) CHECK(api->prepare(model, sets[0].in, 2, 1, nullptr, 0, &run, &error));
  AotiContext context{}, watched{};
  context.threads = watched.threads = 1, watched.on_kernel = told;
  const auto step = [&](int run, int set, int state, int at) {
    expected = {{sets[set].in[0], sets[set].in[1]}, {made(row, 1, 0), made(square, 2, 0)}};
    const int before = counts()[0];
    submit(runs[2], expected, plain[state], &watched);
    counts()[0] = before;
    submit(runs[run], sets[set], states[state], &context);
    compare(sets[set], expected, at);
    for (AotiTensor &tensor : expected.out) api->deallocate(model, tensor.data);
  };
  // Everything moves from run to run.
  for (int k = 0; k < 6; ++k) step(0, k % 3, k % 2, k);
  say();
  // The state alone.
  for (int k = 6; k < 10; ++k) step(0, 2, k % 2, k);
  say();
  // Nothing.
  for (int k = 10; k < 14; ++k) step(0, 2, 1, k);
  say();
  // Two runs in turn, each with addresses of its own and then with those of the other.
  for (int k = 14; k < 22; ++k) step(k % 2, k < 18 ? k % 2 : 1 - k % 2, k % 2, k);
  say();
  // A run between that is launched kernel by kernel leaves the graph with addresses from before it.
  submit(runs[0], sets[0], states[0], &watched), submit(runs[2], sets[0], plain[0], &watched);
  step(0, 1, 1, 22), step(0, 1, 1, 23);
  // Told of times, a run launches as it does without a graph.
  AotiContext timed = context;
  static int32_t next = 0;
  timed.on_time = [](void *, int32_t kernel, double micros) {
    if (kernel != next++ || micros <= 0) exit(3);
  };
  submit(runs[0], sets[1], states[0], &timed), submit(runs[2], sets[1], plain[0], &watched);
  if (next != api->info->n_kernels) exit(4);
  step(0, 0, 0, 24);
  for (AotiRun *run : runs) api->release(run);
  for (Set &set : sets)
    for (int i = 0; i < 2; ++i) api->deallocate(model, set.in[i].data), api->deallocate(model, set.out[i].data);
  for (int k = 0; k < 2; ++k) api->destroy_state(states[k]), api->destroy_state(plain[k]);
  api->destroy(model);
}
