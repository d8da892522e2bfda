// A model written by hand against abi.h, to test what sits on this side of the interface: y = x + weights[0], with a
// mutated counter, a parallel loop, and the checks that a compiled model makes. It knows nothing of the compiler.
//
// FAKE_API names the exported function. FAKE_STATE adds the counter as state and as a second output. FAKE_FIXED takes no
// weights by name. FAKE_CUBE gives the first output one more axis. FAKE_AT is the address of the one model at a time.
// FAKE_VERSION, FAKE_BYTES and FAKE_GAP spoil the function table.
#define _GNU_SOURCE
#include <aoti/abi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef FAKE_VERSION
#define FAKE_VERSION AOTI_ABI_VERSION
#endif
#ifndef FAKE_BYTES
#define FAKE_BYTES sizeof(AotiApi)
#endif

struct AotiModel {
  const float *weights;
};
struct AotiState {
  int64_t count;
};
struct AotiRun {
  const AotiModel *model;
  int32_t threads, status;
  void *workspace;
  AotiError error;
};

static const float embedded[16] = {1.0f};
static const AotiDimInfo x_dims[] = {{"batch", 1, 1000000}, {NULL, 3, 3}, {NULL, 1, 1}};
#ifdef FAKE_CUBE
enum { Y_RANK = 3 };
#else
enum { Y_RANK = 2 };
#endif
static const AotiValueInfo inputs_info[] = {{"x", AOTI_F32, 2, x_dims}};
static const AotiValueInfo outputs_info[] = {{"y", AOTI_F32, Y_RANK, x_dims}, {"count", AOTI_I64, 0, NULL}};
static const int64_t bias_sizes[] = {1};
static const AotiConstantInfo constants_info[] = {{"layer.bias", bias_sizes, AOTI_F32, 1, -1, 1}};

#ifdef FAKE_STATE
enum { N_OUTPUTS = 2, N_STATES = 1, STATE_BYTES = 64 };
#else
enum { N_OUTPUTS = 1, N_STATES = 0, STATE_BYTES = 0 };
#endif

static const AotiKernelInfo kernels_info[] = {
    {"add_bias", "aten.add.Tensor of add\naten.clone.default of y", "m.py:3", "layer", outputs_info, 1, AOTI_CPU}};

static const int64_t state_offsets[] = {0};

static const AotiModelInfo info = {
    .name = "fake",
    .compiler = "by hand",
    .n_inputs = 1,
    .n_outputs = N_OUTPUTS,
    .n_constants = 1,
    .n_states = N_STATES,
    .inputs = inputs_info,
    .outputs = outputs_info,
    .constants = constants_info,
    .states = &outputs_info[1],
    .weights_bytes = sizeof embedded,
    .state_bytes = STATE_BYTES,
    .kernels = kernels_info,
    .n_kernels = 1,
    .library_digest = "",
    .state_offsets = state_offsets,
};

static int32_t fail(AotiError *error, int32_t code, const char *format, long long value) {
  if (error) {
    error->code = code;
    snprintf(error->message, sizeof error->message, format, value);
  }
  return code;
}

static int32_t check(const AotiTensor *inputs, int32_t n_inputs, AotiError *error) {
  if (n_inputs != 1) return fail(error, AOTI_ERROR_COUNT, "%lld inputs given, not 1", n_inputs);
  if (inputs[0].dtype != AOTI_F32) return fail(error, AOTI_ERROR_DTYPE, "input `x` has dtype %lld", inputs[0].dtype);
  if (inputs[0].rank != 2) return fail(error, AOTI_ERROR_RANK, "input `x` has rank %lld, not 2", inputs[0].rank);
  if (inputs[0].strides) return fail(error, AOTI_ERROR_STRIDE, "input `x` has %lld strides", inputs[0].rank);
  if (inputs[0].sizes[1] != 3)
    return fail(error, AOTI_ERROR_SIZE, "input `x`: dimension 1 is %lld, not 3", inputs[0].sizes[1]);
  if (inputs[0].sizes[0] < 1 || inputs[0].sizes[0] > 1000000)
    return fail(error, AOTI_ERROR_RANGE, "input `x`: dimension 0 (`batch`) is %lld, outside 1..=1000000",
                inputs[0].sizes[0]);
  return AOTI_OK;
}

static int32_t create(const AotiCreateOptions *options, AotiModel **model, AotiError *error) {
  if (options->cpu_level > 0) return fail(error, AOTI_ERROR_CPU, "there is no level %lld", options->cpu_level);
  if (options->weights && options->weights_bytes != sizeof embedded)
    return fail(error, AOTI_ERROR_WEIGHTS, "weights have %lld bytes", options->weights_bytes);
#ifdef FAKE_AT
  *model = mmap((void *)FAKE_AT, sizeof **model, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (*model == MAP_FAILED) *model = NULL;
#else
  *model = malloc(sizeof **model);
#endif
  if (!*model) return fail(error, AOTI_ERROR_MEMORY, "no memory for %lld model", 1);
  (*model)->weights = options->weights ? options->weights : embedded;
  return AOTI_OK;
}

static void destroy(AotiModel *model) {
#ifdef FAKE_AT
  munmap(model, sizeof *model);
#else
  free(model);
#endif
}

static int32_t output_sizes(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int64_t *const *sizes,
                            AotiError *error) {
  (void)model;
  int32_t status = check(inputs, n_inputs, error);
  if (status != AOTI_OK) return status;
  sizes[0][0] = inputs[0].sizes[0];
  sizes[0][1] = 3;
  if (Y_RANK == 3) sizes[0][2] = 1;
  return AOTI_OK;
}

static int32_t workspace_bytes(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t threads,
                               int64_t *bytes, AotiError *error) {
  (void)model;
  int32_t status = check(inputs, n_inputs, error);
  *bytes = status == AOTI_OK ? inputs[0].sizes[0] * 3 * 4 + threads * 64 : 0;
  return status;
}

static int32_t create_state(const AotiModel *model, void *memory, AotiState **state, AotiError *error) {
  (void)model, (void)memory;
  *state = malloc(sizeof **state);
  if (!*state) return fail(error, AOTI_ERROR_MEMORY, "no memory for %lld state", 1);
  (*state)->count = 10;
  return AOTI_OK;
}

static int32_t reset_state(const AotiModel *model, AotiState *state, AotiError *error) {
  (void)model, (void)error;
  state->count = 10;
  return AOTI_OK;
}

static int32_t copy_state(const AotiState *from, void *memory, AotiState **state, AotiError *error) {
  int32_t status = create_state(NULL, memory, state, error);
  if (status == AOTI_OK) (*state)->count = from->count;
  return status;
}

static void destroy_state(AotiState *state) { free(state); }

static int32_t assign_state(AotiState *to, const AotiState *from, AotiError *error) {
  (void)error;
  to->count = from->count;
  return AOTI_OK;
}

static int32_t check_part(const AotiStatePart *part, AotiError *error) {
  const int is_all = part->begin == 0 && part->bytes == sizeof(int64_t) && part->count == 1;
  return is_all ? AOTI_OK : fail(error, AOTI_ERROR_SIZE, "no tensor has %lld bytes", part->bytes);
}

static int32_t reset_state_part(const AotiModel *model, AotiState *state, const AotiStatePart *part, AotiError *error) {
  int32_t status = check_part(part, error);
  return status ? status : reset_state(model, state, error);
}

static int32_t read_state(const AotiState *state, const AotiStatePart *part, void *to, AotiError *error) {
  int32_t status = check_part(part, error);
  if (!status) memcpy(to, &state->count, sizeof state->count);
  return status;
}

static int32_t write_state(AotiState *state, const AotiStatePart *part, const void *from, AotiError *error) {
  int32_t status = check_part(part, error);
  if (!status) memcpy(&state->count, from, sizeof state->count);
  return status;
}

typedef struct Loop {
  const float *x;
  float *copy;
  int64_t *rows_of_worker;
  float bias;
} Loop;

static void rows(void *arg, int64_t begin, int64_t end, int32_t worker) {
  Loop *loop = arg;
  for (int64_t i = begin * 3; i < end * 3; ++i) loop->copy[i] = loop->x[i] + loop->bias;
  // One cache line for each worker: a lost update here shows two parts with one worker number at a time.
  loop->rows_of_worker[worker * 8] += end - begin;
}

static int32_t run(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                   int32_t n_outputs, int64_t *const *sizes, AotiState *state, void *workspace, int64_t bytes,
                   const AotiContext *context, AotiError *error) {
  (void)sizes;
  int32_t status = check(inputs, n_inputs, error);
  if (status != AOTI_OK) return status;
  int64_t batch = inputs[0].sizes[0], needed = batch * 3 * 4 + context->threads * 64;
  if (n_outputs != N_OUTPUTS) return fail(error, AOTI_ERROR_COUNT, "%lld outputs", n_outputs);
  if (outputs[0].sizes[0] != batch) return fail(error, AOTI_ERROR_SIZE, "output `y` has %lld rows", outputs[0].sizes[0]);
  if ((uintptr_t)workspace % AOTI_ALIGNMENT || (uintptr_t)outputs[0].data % AOTI_ALIGNMENT)
    return fail(error, AOTI_ERROR_ALIGNMENT, "workspace of %lld bytes is not aligned", bytes);
  if (bytes < needed) return fail(error, AOTI_ERROR_WORKSPACE, "workspace is short of %lld bytes", needed - bytes);
  Loop loop = {inputs[0].data, NULL, workspace, model->weights[0]};
  loop.copy = (float *)((char *)workspace + context->threads * 64);
  memset(workspace, 0, (size_t)context->threads * 64);
  if (context->on_kernel) context->on_kernel(context->on_kernel_arg, 0, AOTI_KERNEL_BEGIN, NULL);
  if (context->parallel_for)
    context->parallel_for(context->pool, batch, rows, &loop);
  else
    rows(&loop, 0, batch, 0);
  AotiTensor written = {loop.copy, inputs[0].sizes, NULL, 2, AOTI_F32, {AOTI_CPU, 0}};
  if (context->on_kernel) context->on_kernel(context->on_kernel_arg, 0, AOTI_KERNEL_END, &written);
  int64_t seen = 0;
  for (int32_t t = 0; t < context->threads; ++t) seen += loop.rows_of_worker[t * 8];
  if (seen != batch) return fail(error, AOTI_ERROR_ASSERT, "parallel_for covered %lld rows", seen);
  memcpy(outputs[0].data, loop.copy, (size_t)batch * 12);
  if (N_STATES) *(int64_t *)outputs[1].data = ++state->count;
  return AOTI_OK;
}

static int32_t prepare(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t threads,
                       void *workspace, int64_t bytes, AotiRun **run, AotiError *error) {
  int64_t needed;
  int32_t status = workspace_bytes(model, inputs, n_inputs, threads, &needed, error);
  if (status != AOTI_OK) return status;
  *run = aligned_alloc(AOTI_ALIGNMENT, AOTI_ALIGNMENT * (1 + sizeof **run / AOTI_ALIGNMENT));
  (**run) = (AotiRun){.model = model, .threads = threads};
  (*run)->workspace = aligned_alloc(AOTI_ALIGNMENT, (size_t)(needed + 63) / 64 * 64);
  (void)workspace, (void)bytes;
  return AOTI_OK;
}

static int32_t submit(AotiRun *r, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                      int32_t n_outputs, AotiState *state, const AotiContext *context, AotiError *error) {
  (void)error;
  r->status = run(r->model, inputs, n_inputs, outputs, n_outputs, NULL, state, r->workspace, INT64_MAX, context,
                  &r->error);
  // As models on a device tell of it.
  if (context->on_time) context->on_time(context->on_time_arg, 0, 12.5);
  return AOTI_OK;
}

static int32_t allocate(const AotiModel *model, int64_t bytes, void **memory, AotiError *error) {
  (void)model;
  if (bytes > INT32_MAX) return fail(error, AOTI_ERROR_MEMORY, "no memory for %lld bytes", bytes);
  *memory = aligned_alloc(AOTI_ALIGNMENT, (size_t)(bytes + AOTI_ALIGNMENT) / AOTI_ALIGNMENT * AOTI_ALIGNMENT);
  memset(*memory, 0, (size_t)bytes);
  return AOTI_OK;
}

static void deallocate(const AotiModel *model, void *memory) {
  (void)model;
  free(memory);
}

static int32_t copy(const AotiModel *model, void *to, AotiDevice to_device, const void *from, AotiDevice from_device,
                    int64_t bytes, AotiError *error) {
  (void)model, (void)to_device, (void)from_device, (void)error;
  memcpy(to, from, (size_t)bytes);
  return AOTI_OK;
}

static int32_t wait(AotiRun *run, int64_t *const *sizes, AotiError *error) {
  (void)sizes;
  if (error) *error = run->error;
  return run->status;
}

static void release(AotiRun *run) {
  free(run->workspace);
  free(run);
}

static const AotiCandidate candidates[] = {{"by-hand", AOTI_CPU, AOTI_PICKED, "there is no other"}};
static const AotiPlan the_plan = {{AOTI_CPU, 0}, "by-hand", candidates, 1, 0};
static const AotiPlan *plan(const AotiModel *model) {
  (void)model;
  return &the_plan;
}

static int64_t prepare_bytes(int32_t threads) { return threads * 64; }

// Adds a hundredth to the bias, so that tests see whether this was called, and reports what no tensor is right for.
static int32_t prepare_weights(const AotiNamedTensor *tensors, int32_t n_tensors, void *weights, int64_t weights_bytes,
                               void *workspace, int64_t workspace_bytes, const AotiPrepareOptions *options,
                               AotiError *error) {
  if (weights_bytes < (int64_t)sizeof embedded || workspace_bytes < prepare_bytes(options->context->threads))
    return fail(error, AOTI_ERROR_WORKSPACE, "%lld bytes are too few", workspace_bytes);
  memset(workspace, 0xff, (size_t)workspace_bytes);
  const float *bias = NULL;
  for (int32_t i = 0; i < n_tensors; ++i) {
    if (strcmp(tensors[i].name, "layer.bias") == 0 && tensors[i].tensor.rank == 1)
      bias = tensors[i].tensor.data;
    else
      options->finding(options->arg, tensors[i].name);
  }
  if (!bias) options->finding(options->arg, "weight `layer.bias` is missing");
  if (!bias || n_tensors != 1) return fail(error, AOTI_ERROR_WEIGHTS, "%lld tensors do not fit", n_tensors);
  memset(weights, 0, (size_t)weights_bytes);
  *(float *)weights = *bias + 0.01f;
  for (int64_t done = 1; options->progress && done <= 4; ++done) options->progress(options->arg, done, 4);
  return AOTI_OK;
}

static const AotiApi api = {
    .abi_version = FAKE_VERSION,
    .struct_bytes = (uint32_t)(FAKE_BYTES),
    .info = &info,
    .create = create,
    .destroy = destroy,
    .output_sizes = output_sizes,
    .workspace_bytes = workspace_bytes,
    .create_state = create_state,
    .reset_state = reset_state,
    .copy_state = copy_state,
    .destroy_state = destroy_state,
    .prepare = prepare,
    .submit = submit,
    .wait = wait,
    .release = release,
#ifndef FAKE_GAP
    .run = run,
#endif
    .plan = plan,
    .allocate = allocate,
    .deallocate = deallocate,
    .copy = copy,
    .assign_state = assign_state,
    .reset_state_part = reset_state_part,
    .read_state = read_state,
    .write_state = write_state,
#ifndef FAKE_FIXED
    .prepare_bytes = prepare_bytes,
    .prepare_weights = prepare_weights,
#endif
};

const AotiApi *FAKE_API(void);
const AotiApi *FAKE_API(void) {
  (void)run, (void)prepare_weights;
  return &api;
}
