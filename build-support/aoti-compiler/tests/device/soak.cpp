// A model for a long time, with whatever driver the machine has: RUN [RUNS [THREADS]]. Many runs of one prepared run use no more
// memory than a few; a run after one that failed is right; so are two models on two streams at once, and many threads that
// submit to one model.
#include "aoti/abi.h"
#include "vendor.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" const AotiApi *MODEL_API(void);

static const AotiApi *api = MODEL_API();
static const AotiDevice cpu = {AOTI_CPU, 0}, gpu = {AOTI_CUDA, 0};
static const int64_t kRows = 40, kWidth = 64, kColumns = 48;
static const int64_t ids_sizes[] = {kRows}, x_sizes[] = {kRows, kWidth}, exp_sizes[] = {kRows, kColumns};

static void fail_with(const char *what, const char *message) {
  fprintf(stderr, "%s: %s\n", what, message);
  exit(1);
}
static void check(int32_t code, const char *what, const AotiError &error) {
  if (code != AOTI_OK) fail_with(what, error.message);
}
#define CHECK(CALL) check(CALL, #CALL, error)

// Inputs and outputs on the device, and what the outputs must be.
struct Set {
  AotiModel *model;
  AotiTensor in[2], out[2];
  float expected[kRows * kColumns + kRows];
};
static void *on_device(AotiModel *model, const void *from, int64_t bytes) {
  AotiError error;
  void *memory;
  CHECK(api->allocate(model, bytes, &memory, &error));
  CHECK(api->copy(model, memory, gpu, from, cpu, bytes, &error));
  return memory;
}
static void fill(Set &set, AotiModel *model, unsigned seed) {
  int64_t ids[kRows];
  static float x[kRows * kWidth];
  auto next = [&] { return (seed = seed * 1664525u + 1013904223u) >> 8; };
  for (int64_t &id : ids) id = next() % 50;
  for (float &value : x) value = float(next() % 1000) / 1000 - 0.5f;
  set.model = model;
  set.in[0] = {on_device(model, ids, sizeof ids), ids_sizes, nullptr, 1, AOTI_I64, gpu};
  set.in[1] = {on_device(model, x, sizeof x), x_sizes, nullptr, 2, AOTI_F32, gpu};
  memset(set.expected, 0, sizeof set.expected);
  set.out[0] = {on_device(model, set.expected, kRows * kColumns * 4), exp_sizes, nullptr, 2, AOTI_F32, gpu};
  set.out[1] = {on_device(model, set.expected, kRows * 4), ids_sizes, nullptr, 1, AOTI_F32, gpu};
}
static void release(Set &set) {
  for (int i = 0; i < 2; ++i) api->deallocate(set.model, set.in[i].data), api->deallocate(set.model, set.out[i].data);
}
static void read(Set &set, float *to) {
  AotiError error;
  CHECK(api->copy(set.model, to, cpu, set.out[0].data, gpu, kRows * kColumns * 4, &error));
  CHECK(api->copy(set.model, to + kRows * kColumns, cpu, set.out[1].data, gpu, kRows * 4, &error));
}
static void compare(Set &set, const char *what) {
  float got[kRows * kColumns + kRows];
  read(set, got);
  if (memcmp(got, set.expected, sizeof got) != 0) fail_with(what, "other results than before");
}
static AotiContext context_on(void *stream) {
  AotiContext context{};
  context.threads = 1, context.stream = stream;
  return context;
}
static void submit(AotiRun *run, Set &set, const AotiContext &context) {
  AotiError error;
  CHECK(api->submit(run, set.in, 2, set.out, 2, nullptr, &context, &error));
}
static void run_once(AotiRun *run, Set &set, const AotiContext &context) {
  AotiError error;
  submit(run, set, context);
  CHECK(api->wait(run, nullptr, &error));
}
static AotiRun *prepared(Set &set) {
  AotiError error;
  AotiRun *run;
  CHECK(api->prepare(set.model, set.in, 2, 1, nullptr, 0, &run, &error));
  return run;
}

static size_t free_bytes() {
  size_t left = 0, all = 0;
  auto *context_push = driver<int(void *)>("cuCtxPushCurrent_v2");
  auto *retain = driver<int(void **, int)>("cuDevicePrimaryCtxRetain");
  void *context, *before;
  if (retain(&context, 0) || context_push(context) || driver<int(size_t *, size_t *)>("cuMemGetInfo_v2")(&left, &all)) exit(2);
  driver<int(void **)>("cuCtxPopCurrent_v2")(&before);
  driver<int(int)>("cuDevicePrimaryCtxRelease_v2")(0);
  return left;
}

static void many_runs(AotiModel *model, int runs) {
  Set set;
  fill(set, model, 1);
  AotiRun *run = prepared(set);
  const AotiContext context = context_on(nullptr);
  run_once(run, set, context), read(set, set.expected);
  size_t before = 0;
  for (int k = 0; k < runs; ++k) {
    if (k == runs / 100 + 3) before = free_bytes();
    run_once(run, set, context);
    if (k % 1000 == 0) compare(set, "a run again");
  }
  const size_t after = free_bytes();
  if (before != after) {
    fprintf(stderr, "%zu bytes of device memory were free before and %zu are after\n", before, after);
    exit(1);
  }
  printf("%d runs: %zu bytes free before and after\n", runs, after);
  // An index outside of the table, and right ones again.
  AotiError error;
  const int64_t wrong = 1000;
  int64_t right;
  CHECK(api->copy(model, &right, cpu, set.in[0].data, gpu, 8, &error));
  for (int k = 0; k < 100; ++k) {
    CHECK(api->copy(model, set.in[0].data, gpu, &wrong, cpu, 8, &error));
    submit(run, set, context);
    if (api->wait(run, nullptr, &error) != AOTI_ERROR_INDEX) fail_with("an index outside", "is no error");
    CHECK(api->copy(model, set.in[0].data, gpu, &right, cpu, 8, &error));
    run_once(run, set, context), compare(set, "after a failure");
  }
  printf("100 runs after failed ones are right\n");
  api->release(run), release(set);
}

static void two_streams(AotiModel *first, AotiModel *second, int runs) {
  AotiError error;
  AotiModel *models[] = {first, second};
  Set sets[2];
  AotiRun *run[2];
  void *streams[2], *context, *before;
  driver<int(void **, int)>("cuDevicePrimaryCtxRetain")(&context, 0);
  driver<int(void *)>("cuCtxPushCurrent_v2")(context);
  for (int i = 0; i < 2; ++i) {
    if (driver<int(void **, unsigned)>("cuStreamCreate")(&streams[i], 1)) exit(2);
    fill(sets[i], models[i], 10u + unsigned(i));
    run[i] = prepared(sets[i]);
    run_once(run[i], sets[i], context_on(streams[i])), read(sets[i], sets[i].expected);
  }
  for (int k = 0; k < runs; ++k) {
    for (int i = 0; i < 2; ++i) submit(run[i], sets[i], context_on(streams[i]));
    for (int i = 0; i < 2; ++i) CHECK(api->wait(run[i], nullptr, &error));
    if (k % 50 == 0)
      for (Set &set : sets) compare(set, "two streams");
  }
  for (int i = 0; i < 2; ++i) api->release(run[i]), release(sets[i]), driver<int(void *)>("cuStreamDestroy_v2")(streams[i]);
  driver<int(void **)>("cuCtxPopCurrent_v2")(&before);
  driver<int(int)>("cuDevicePrimaryCtxRelease_v2")(0);
  printf("two models on two streams are right, %d runs each\n", runs);
}

struct Worker {
  pthread_t thread;
  AotiModel *model;
  unsigned seed;
  int runs;
};
static void *work(void *argument) {
  Worker &own = *(Worker *)argument;
  Set set;
  static pthread_mutex_t one_by_one = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&one_by_one);
  fill(set, own.model, own.seed);
  pthread_mutex_unlock(&one_by_one);
  AotiError error;
  const AotiContext context = context_on(nullptr);
  // As a run of its own, and as one that the model keeps.
  AotiRun *run = prepared(set);
  run_once(run, set, context), read(set, set.expected);
  for (int k = 0; k < own.runs; ++k) {
    if (k % 2)
      run_once(run, set, context);
    else
      CHECK(api->run(own.model, set.in, 2, set.out, 2, nullptr, nullptr, nullptr, 0, &context, &error));
    if (k % 16 < 2) compare(set, "beside other threads");
  }
  api->release(run), release(set);
  return nullptr;
}

int main(int argc, char **argv) {
  const int runs = argc > 1 ? atoi(argv[1]) : 100, threads = argc > 2 ? atoi(argv[2]) : 1;
  AotiError error;
  AotiCreateOptions options{};
  options.cpu_level = -1, options.device = gpu;
  AotiModel *model, *second;
  CHECK(api->create(&options, &model, &error));
  CHECK(api->create(&options, &second, &error));
  many_runs(model, runs);
  two_streams(model, second, runs / 50 + 1);
  Worker *workers = (Worker *)calloc(size_t(threads), sizeof(Worker));
  for (int i = 0; i < threads; ++i) {
    workers[i].model = model, workers[i].seed = unsigned(i), workers[i].runs = runs / 250 + 2;
    if (pthread_create(&workers[i].thread, nullptr, work, &workers[i])) exit(2);
  }
  for (int i = 0; i < threads; ++i) pthread_join(workers[i].thread, nullptr);
  printf("%d threads are right\n", threads);
  free(workers);
  api->destroy(second), api->destroy(model);
}
