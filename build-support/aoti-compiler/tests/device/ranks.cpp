// One of two ranks on a GPU, with whatever driver the machine has. The other rank has the same inputs: what the two compute
// together follows from what this one has. Runs are launched, captured and repeated; communicators refuse, hang, and are others.
#include "aoti/abi.h"
#include "vendor.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" const AotiApi *MODEL_API(void);

static AotiError error;
static const AotiApi *api = MODEL_API();
static const AotiDevice gpu = {DEVICE_KIND, 0};
static void fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, error.message);
  exit(1);
}
#define CHECK(CONDITION) \
  if (!(CONDITION)) fail(#CONDITION)

static int asked = 0, worked = 0, polled = 0, refused_at = -1;

// What a stream does when it comes to it. A graph may repeat it.
static void work(void *with) {
  const AotiCollective &call = *(const AotiCollective *)with;
  const float *in = (const float *)call.input;
  float *out = (float *)call.output;
  for (int64_t k = 0; k < call.output_count; ++k) {
    const float value = in[k % call.input_count];
    out[k] = call.kind == AOTI_ALL_REDUCE ? value + value : value;
  }
  ++worked;
}
static int32_t exchange(void *arg, const AotiCollective *call, AotiError *why) {
  const int kinds[] = {AOTI_ALL_REDUCE, AOTI_ALL_GATHER, AOTI_REDUCE_SCATTER, AOTI_BROADCAST};
  const int number = asked++ % 4;
  const bool right = call->kind == kinds[number] && !strcmp(call->group, "0") && call->dtype == AOTI_F32 &&
                     call->device.kind == gpu.kind && call->stream && call->ranks == (number == 1 || number == 2 ? 2 : 0) &&
                     call->root == (number == 3) && call->reduction == (number == 2 ? AOTI_MAX : AOTI_SUM);
  if (!right || number == refused_at) {
    snprintf(why->message, sizeof why->message, right ? "rank 1 is gone" : "another collective");
    return AOTI_ERROR_RANKS;
  }
  AotiCollective *own = (AotiCollective *)malloc(sizeof *call);
  *own = *call;
  driver<void(void *, void (*)(void *), void *)>("emulated_put")(call->stream, work, own);
  return AOTI_OK;
}
static int32_t poll(void *, int64_t waited, AotiError *why) {
  if (waited < 0) abort();
  if (++polled < 3) return AOTI_OK;
  *driver<int>("emulated_stuck") = 0;
  snprintf(why->message, sizeof why->message, "rank 1 did not come");
  return AOTI_ERROR_RANKS;
}

int main() {
  AotiCreateOptions options{};
  options.cpu_level = -1, options.device = gpu;
  AotiModel *model;
  CHECK(api->create(&options, &model, &error) == AOTI_OK);
  CHECK(api->info->n_collectives == 4);
  const int64_t n = 5, in_sizes[] = {n, 8}, out_sizes[] = {n, 6};
  static float x[n * 8], y[n * 6], expected[n * 6];
  for (int k = 0; k < n * 8; ++k) x[k] = float(k % 11) / 16 - 0.25f;
  const AotiTensor in = {x, in_sizes, nullptr, 2, AOTI_F32, {AOTI_CPU, 0}};
  const AotiTensor out = {y, out_sizes, nullptr, 2, AOTI_F32, {AOTI_CPU, 0}};
  AotiCommunicator first = {exchange, nullptr, nullptr, 1}, second = {exchange, nullptr, nullptr, 2};
  AotiCommunicator never = {exchange, nullptr, nullptr, 0}, waiting = {exchange, poll, nullptr, 3};
  AotiContext context{};
  context.threads = 1;
  const auto run = [&](const AotiCommunicator *communicator) {
    memset(y, 0, sizeof y);
    context.communicator = communicator;
    return api->run(model, &in, 1, &out, 1, nullptr, nullptr, nullptr, 0, &context, &error);
  };
  // A rank alone does not begin.
  CHECK(run(nullptr) == AOTI_ERROR_RANKS && strstr(error.message, "no communicator"));
  CHECK(run(&never) == AOTI_OK);
  memcpy(expected, y, sizeof y);
  // By hand: e is exp of twice the product, and the result e * e + e.
  for (float value : expected) {
    const float e = (-1 + sqrtf(1 + 4 * value)) / 2;
    CHECK(value > 0 && fabsf(e * e + e - value) < 1e-4f * value && e > 0);
  }
  const int *counts = driver<int>("emulated_counts");
  // How often the driver captures in a run, and how often the communicator is asked.
  const auto same = [&](const AotiCommunicator *communicator, int captures, int times) {
    const int before[] = {counts[1], asked, worked};
    CHECK(run(communicator) == AOTI_OK && !memcmp(y, expected, sizeof y));
    CHECK(counts[1] - before[0] == captures && asked - before[1] == times && worked - before[2] == 4);
  };
  // Nothing is captured for one that must not be, or that was not met before; later runs are the graph.
  same(&never, 0, 4), same(&never, 0, 4);
  same(&first, 0, 4), same(&first, 1, 4), same(&first, 0, 0), same(&first, 0, 0);
  same(&second, 0, 4), same(&second, 1, 4), same(&second, 0, 0);
  same(&first, 0, 4);
  // One that refuses ends the run, with what it says and where the program is.
  refused_at = 1;
  CHECK(run(&never) == AOTI_ERROR_RANKS && !strcmp(error.message, "rank 1 is gone: all_gather of group `0`"));
  asked = 0, refused_at = -1;
  same(&never, 0, 4);
  // One that waits for a rank that does not come.
  *driver<int>("emulated_stuck") = 1;
  CHECK(run(&waiting) == AOTI_ERROR_RANKS && !strcmp(error.message, "rank 1 did not come: while the run waited"));
  CHECK(polled == 3);
  api->destroy(model);
  return 0;
}
