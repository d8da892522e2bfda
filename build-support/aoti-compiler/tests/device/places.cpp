// Models, states and runs of a library in all orders, on two devices and in contexts of the caller's, over the driver that emulates
// them: each run reads the weights that its model was made with, wherever others lie or lay.
#include "aoti/abi.h"
#include "vendor.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" const AotiApi *MODEL_API(void);

static AotiError error;
static const AotiApi *api = MODEL_API();
static const AotiDevice cpu = {AOTI_CPU, 0};
static void check(int32_t code, const char *what) {
  if (code == AOTI_OK) return;
  fprintf(stderr, "%d in %s: %s\n", int(code), what, error.message);
  exit(1);
}
#define CHECK(CALL) check(CALL, #CALL)
static void expect(bool right, const char *what) {
  if (right) return;
  fprintf(stderr, "%s\n", what);
  exit(2);
}
static size_t bytes_on(int device) { return driver<size_t(int)>("emulated_bytes")(device); }

constexpr int kCount = 256;
static const int64_t flat[] = {kCount};

// Weights that are `value` everywhere.
static void fill(void *weights, float value) {
  for (int64_t i = 0; i < api->info->weights_bytes / 4; ++i) ((float *)weights)[i] = value;
}
static void *buffer(float value) {
  void *weights = aligned_alloc(AOTI_ALIGNMENT, size_t(api->info->weights_bytes + 63) / 64 * 64);
  fill(weights, value);
  return weights;
}
static AotiModel *model_of(const void *weights, int device, void *context = nullptr) {
  AotiCreateOptions options{};
  options.weights = weights, options.weights_bytes = weights ? api->info->weights_bytes : 0;
  options.cpu_level = -1, options.device = {DEVICE_KIND, device}, options.device_context = context;
  AotiModel *model;
  CHECK(api->create(&options, &model, &error));
  return model;
}
static AotiState *state_of(const AotiModel *model) {
  AotiState *state;
  CHECK(api->create_state(model, nullptr, &state, &error));
  return state;
}
struct Run {
  float x[kCount] = {}, y[kCount] = {}, z[kCount * 8] = {};
  int64_t n = 3, z_sizes[2] = {3, kCount};
  AotiTensor in[2] = {{x, flat, nullptr, 1, AOTI_F32, cpu}, {&n, nullptr, nullptr, 0, AOTI_I64, cpu}};
  AotiTensor out[2] = {{y, flat, nullptr, 1, AOTI_F32, cpu}, {z, z_sizes, nullptr, 2, AOTI_F32, cpu}};
};
// What is added to the input: the weights of the model, and what the state has after it.
static float weight_of(const AotiModel *model, AotiState *state, float *cache = nullptr) {
  Run run;
  for (int i = 0; i < kCount; ++i) run.x[i] = float(i);
  CHECK(api->run(model, run.in, 2, run.out, 2, nullptr, state, nullptr, 0, nullptr, &error));
  for (int i = 1; i < kCount; ++i) expect(run.y[i] - float(i) == run.y[0], "not all weights are of one set");
  if (cache) *cache = run.z[0];
  return run.y[0];
}

static void old_weights_are_gone() {
  void *weights = buffer(1);
  AotiModel *model = model_of(weights, 0);
  AotiState *state = state_of(model), *kept = nullptr;
  expect(weight_of(model, state) == 1, "the first weights");
  for (int round = 2; round < 5; ++round) {
    // The state lives on, and others take the place of the weights.
    api->destroy(model);
    fill(weights, float(round));
    model = model_of(weights, 0);
    float cache = 0;
    AotiState *fresh = state_of(model);
    expect(weight_of(model, fresh, &cache) == float(round), "weights at the address of others are those of others");
    expect(cache == float(round + round), "a state begins with the weights of its model");
    expect(weight_of(model, state) == float(round), "a state knows no weights");
    CHECK(api->reset_state(model, state, &error));
    weight_of(model, state, &cache);
    expect(cache == float(round + round), "a state that is reset begins with the weights of the model");
    // One of the states goes after the model, the others before it.
    if (round == 2)
      kept = fresh;
    else
      api->destroy_state(fresh);
  }
  api->destroy(model), api->destroy_state(state), api->destroy_state(kept);
  expect(bytes_on(0) == 0, "memory is left on the device");
  free(weights);
}

static void one_copy_serves_models() {
  void *weights = buffer(1), *others = buffer(2);
  AotiModel *first = model_of(weights, 0);
  const size_t once = bytes_on(0);
  AotiModel *second = model_of(weights, 0);
  expect(bytes_on(0) == once, "the same weights lie on the device twice");
  AotiModel *third = model_of(others, 0);
  expect(bytes_on(0) == 2 * once, "other weights lie beside them");
  api->destroy(first);
  expect(bytes_on(0) == 2 * once, "what another model reads stays");
  api->destroy(second), api->destroy(third);
  expect(bytes_on(0) == 0, "memory is left on the device");
  // Those in the library are the same for as long as it is there.
  first = model_of(nullptr, 0);
  AotiState *state = state_of(first);
  api->destroy(first);
  const size_t with_state = bytes_on(0);
  second = model_of(nullptr, 0);
  expect(bytes_on(0) == with_state, "weights of the library lie on the device twice");
  api->destroy(second), api->destroy_state(state);
  free(weights), free(others);
}

static void devices_are_apart() {
  void *weights = buffer(5), *before, *context;
  // Whatever is current stays so.
  driver<int(void **, int)>(NAME("cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain"))(&context, 0);
  driver<int(void *)>(NAME("cuCtxPushCurrent_v2", "hipCtxPushCurrent"))(context);
  AotiModel *models[] = {model_of(weights, 0), model_of(weights, 1)};
  const size_t once = bytes_on(0);
  expect(once > 0 && bytes_on(1) == once, "each device has its own copy");
  AotiState *states[] = {state_of(models[0]), state_of(models[1])};
  for (int k = 0; k < 6; ++k) expect(weight_of(models[k % 2], states[k % 2]) == 5, "a run on one of two devices");
  Run run;
  const int32_t refused = api->run(models[0], run.in, 2, run.out, 2, nullptr, states[1], nullptr, 0, nullptr, &error);
  expect(refused == AOTI_ERROR_DEVICE && strstr(error.message, "the state lies on " NAME("cuda:1, the model runs on cuda:0",
                                                                                         "rocm:1, the model runs on rocm:0")),
         "a state of another device is refused");
  expect(api->reset_state(models[1], states[0], &error) == AOTI_ERROR_DEVICE, "a state of another device is not reset");
  api->destroy(models[0]), api->destroy_state(states[1]), api->destroy(models[1]), api->destroy_state(states[0]);
  expect(!driver<int(void **)>(NAME("cuCtxPopCurrent_v2", "hipCtxPopCurrent"))(&before) && before == context, "the current context changed");
  driver<int(int)>(NAME("cuDevicePrimaryCtxRelease_v2", "hipDevicePrimaryCtxRelease"))(0);
  expect(bytes_on(0) + bytes_on(1) == 0, "memory is left on a device");
  free(weights);
}

static void contexts_are_apart() {
  void *weights = buffer(6), *context, *before;
  driver<int(int)>(NAME("cuInit", "hipInit"))(0);
  driver<int(void **, unsigned, int)>(NAME("cuCtxCreate_v2", "hipCtxCreate"))(&context, 0, 1);
  driver<int(void **)>(NAME("cuCtxPopCurrent_v2", "hipCtxPopCurrent"))(&before);
  AotiModel *own = model_of(weights, 1), *given = model_of(weights, 1, context);
  AotiState *states[] = {state_of(own), state_of(given)};
  for (int k = 0; k < 3; ++k)
    expect(weight_of(own, states[0]) == 6 && weight_of(given, states[1]) == 6, "a run in one of two contexts");
  Run run;
  const int32_t refused = api->run(given, run.in, 2, run.out, 2, nullptr, states[0], nullptr, 0, nullptr, &error);
  expect(refused == AOTI_ERROR_DEVICE && strstr(error.message, "another context"), "a state of another context is refused");
  for (AotiState *state : states) api->destroy_state(state);
  api->destroy(given), api->destroy(own);
  driver<int(void *)>(NAME("cuCtxDestroy_v2", "hipCtxDestroy"))(context);
  free(weights);
}

// Inputs that the caller's stream only comes to later, one of them a size, and outputs that it reads without waiting.
static void runs_are_ordered_by_their_stream() {
  using Copy = int(uint64_t, uint64_t, size_t, void *);
  Copy *in = driver<Copy>(NAME("cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync")), *out = driver<Copy>(NAME("cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync"));
  void *weights = buffer(7), *context, *stream, *before;
  AotiModel *model = model_of(weights, 1);
  AotiState *state = state_of(model);
  driver<int(void **, int)>(NAME("cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain"))(&context, 1);
  const auto enter = [&] { driver<int(void *)>(NAME("cuCtxPushCurrent_v2", "hipCtxPushCurrent"))(context); };
  const auto leave = [&] { driver<int(void **)>(NAME("cuCtxPopCurrent_v2", "hipCtxPopCurrent"))(&before); };
  enter();
  driver<int(void **, unsigned)>(NAME("cuStreamCreate", "hipStreamCreateWithFlags"))(&stream, 1);
  leave();
  Run run, there;
  for (int k = 0; k < 2; ++k) {
    const int64_t sizes[] = {kCount * 4, 8}, results[] = {kCount * 4, kCount * 32};
    CHECK(api->allocate(model, sizes[k], &there.in[k].data, &error));
    CHECK(api->allocate(model, results[k], &there.out[k].data, &error));
    there.in[k].device = there.out[k].device = {DEVICE_KIND, 1};
  }
  AotiContext on{};
  on.threads = 1, on.stream = stream;
  for (int k = 0; k < 5; ++k) {
    for (float &x : run.x) x = float(k + 1);
    run.n = 3 + k % 2, there.z_sizes[0] = 3 + k % 2;
    enter();
    in(uint64_t(there.in[0].data), uint64_t(run.x), sizeof run.x, stream);
    in(uint64_t(there.in[1].data), uint64_t(&run.n), 8, stream);
    leave();
    CHECK(api->run(model, there.in, 2, there.out, 2, nullptr, state, nullptr, 0, &on, &error));
    enter();
    out(uint64_t(run.y), uint64_t(there.out[0].data), sizeof run.y, stream);
    driver<int(void *)>(NAME("cuStreamSynchronize", "hipStreamSynchronize"))(stream);
    leave();
    for (float y : run.y) expect(y == float(k + 1 + 7), "a run reads what its stream wrote before it");
  }
  for (int k = 0; k < 2; ++k) api->deallocate(model, there.in[k].data), api->deallocate(model, there.out[k].data);
  api->destroy(model), api->destroy_state(state);
  enter();
  driver<int(void *)>(NAME("cuStreamDestroy_v2", "hipStreamDestroy"))(stream);
  leave();
  driver<int(int)>(NAME("cuDevicePrimaryCtxRelease_v2", "hipDevicePrimaryCtxRelease"))(1);
  free(weights);
}

// Anything in any order.
static void orders_do_not_matter() {
  unsigned seed = 1;
  const auto next = [&](unsigned count) { return (seed = seed * 1664525u + 1013904223u) / 65536 % count; };
  void *weights[2] = {buffer(0), buffer(0)};
  float values[2] = {};
  struct Made {
    AotiModel *model;
    AotiState *state;
    int device, of;
  } models[6] = {}, states[6] = {};
  for (int step = 0, value = 1; step < 400; ++step) {
    Made &model = models[next(6)], &state = states[next(6)];
    const unsigned what = next(5);
    if (what == 0 && !model.model) {
      const int device = int(next(2)), of = int(next(2));
      bool borrowed = false;
      for (const Made &other : models) borrowed = borrowed || (other.model && other.of == of);
      if (!borrowed) fill(weights[of], values[of] = float(value++));
      model = {model_of(weights[of], device), nullptr, device, of};
    } else if (what == 1 && model.model) {
      api->destroy(model.model), model.model = nullptr;
    } else if (what == 2 && model.model && !state.state) {
      state = {nullptr, state_of(model.model), model.device, model.of};
    } else if (what == 3 && state.state) {
      api->destroy_state(state.state), state.state = nullptr;
    } else if (model.model && state.state && model.device == state.device) {
      expect(weight_of(model.model, state.state) == values[model.of], "a run after others in any order");
    }
  }
  for (Made &model : models) api->destroy(model.model);
  for (Made &state : states) api->destroy_state(state.state);
  expect(bytes_on(0) + bytes_on(1) == 0, "memory is left on a device");
  for (void *memory : weights) free(memory);
}

int main() {
  old_weights_are_gone();
  one_copy_serves_models();
  devices_are_apart();
  contexts_are_apart();
  runs_are_ordered_by_their_stream();
  orders_do_not_matter();
  expect(driver<int()>("emulated_depth")() == 0, "a context is left current");
}
