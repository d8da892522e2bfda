// Runs one model in a program of its own, for processors that are not this one and under sanitizers: `cargo aoti verify`
// compiles it for the target and links it with the model's static library.
//
//   harness INPUTS OUTPUTS THREADS CALLERS
//
// Owns the calls of the C interface in their order, and the memory that a caller gives: exactly as large as it must be,
// aligned no better than abi.h demands, and never zero by luck. Knows nothing of the model beyond what its table says.
// CALLERS threads run the one model at the same time, each on THREADS threads of its own; all must find the same.
//
// INPUTS and OUTPUTS are flat files of little-endian numbers:
//   "AOTIFLAT", i64 count, then for each tensor: i32 dtype, i32 rank, i64 sizes[rank], the elements.
//
// Prints one line of JSON. What goes wrong is told on stderr, with exit code 1.
#include <aoti/abi.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(_WIN32)
#include <malloc.h>
#include <windows.h>
#elif !defined(__wasm__)
#include <pthread.h>
#endif

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
// It watches memory in units of eight bytes.
#define LEAST_LEAD 8
#else
#define ASAN_POISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#define LEAST_LEAD 1
#endif

// What is linked with this names the model.
const AotiApi *aoti_harness_api(void);

enum { MOST_RANK = 64, MOST_TENSORS = 1 << 16, MOST_THREADS = 1024 };
// Not a number, minus one, no boolean: what reads memory that nobody wrote finds something that shows.
enum { POISON = 0xff };
static const char MAGIC[8] = {'A', 'O', 'T', 'I', 'F', 'L', 'A', 'T'};
static const int64_t ELEMENT_BYTES[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 2, 4, 8, 1, 1, 1, 1, 1, 4, 8, 16};

// A tensor with its memory. `data` lies so far behind a multiple of AOTI_ALIGNMENT that it is no better aligned than it
// must be.
typedef struct Tensor {
  AotiTensor view;
  int64_t sizes[MOST_RANK];
  int64_t bytes;
  unsigned char *block;
} Tensor;

// One caller of the model: everything that `run` borrows from it.
typedef struct Caller {
  const AotiApi *api;
  const AotiModel *model;
  const AotiTensor *inputs;
  Tensor *outputs;
  int32_t threads;
  int64_t nanoseconds;
} Caller;

__attribute__((format(printf, 1, 2), noreturn)) static void stop(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("error: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  // Other threads may still run: nothing is torn down under them.
  fflush(NULL);
  _Exit(1);
}

static void check(const char *function, int32_t status, const AotiError *error) {
  if (status == AOTI_OK) return;
  if (error->code != status) stop("`%s` gave code %d and said code %d", function, (int)status, (int)error->code);
  stop("%s (code %d of `%s`)", error->message, (int)status, function);
}

// --- the system ---

static void *allocate_aligned(size_t bytes) {
#if defined(_WIN32)
  return _aligned_malloc(bytes, AOTI_ALIGNMENT);
#else
  void *block = NULL;
  return posix_memalign(&block, AOTI_ALIGNMENT, bytes) == 0 ? block : NULL;
#endif
}

static void free_aligned(void *block) {
#if defined(_WIN32)
  _aligned_free(block);
#else
  free(block);
#endif
}

// A function with its argument, and the thread that calls it.
typedef struct Thread {
  void (*function)(void *argument);
  void *argument;
#if defined(_WIN32)
  HANDLE handle;
#elif !defined(__wasm__)
  pthread_t handle;
#endif
} Thread;

#if defined(_WIN32)
static DWORD WINAPI enter(void *argument) {
  const Thread *thread = argument;
  thread->function(thread->argument);
  return 0;
}
#elif !defined(__wasm__)
static void *enter(void *argument) {
  const Thread *thread = argument;
  thread->function(thread->argument);
  return NULL;
}
#endif

// Where there are no threads, the function has returned when this does.
static void begin(Thread *thread) {
#if defined(_WIN32)
  thread->handle = CreateThread(NULL, 0, enter, thread, 0, NULL);
  if (!thread->handle) stop("cannot start a thread");
#elif !defined(__wasm__)
  if (pthread_create(&thread->handle, NULL, enter, thread) != 0) stop("cannot start a thread");
#else
  thread->function(thread->argument);
#endif
}

static void join(Thread *thread) {
#if defined(_WIN32)
  WaitForSingleObject(thread->handle, INFINITE);
  CloseHandle(thread->handle);
#elif !defined(__wasm__)
  pthread_join(thread->handle, NULL);
#else
  (void)thread;
#endif
}

static int64_t now(void) {
#if defined(_WIN32)
  LARGE_INTEGER ticks, of_second;
  QueryPerformanceCounter(&ticks);
  QueryPerformanceFrequency(&of_second);
  return (int64_t)((double)ticks.QuadPart * 1e9 / (double)of_second.QuadPart);
#else
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
#endif
}

// --- memory ---

static unsigned char *allocate(int64_t bytes) {
  void *block = bytes < 0 || (uint64_t)bytes > SIZE_MAX ? NULL : allocate_aligned((size_t)bytes);
  if (!block) stop("no memory for %lld bytes", (long long)bytes);
  memset(block, POISON, (size_t)bytes);
  return block;
}

static int64_t elements_of(const int64_t *sizes, int32_t rank) {
  int64_t count = 1;
  for (int32_t d = 0; d < rank; ++d)
    if (sizes[d] < 0 || __builtin_mul_overflow(count, sizes[d], &count)) stop("a tensor has an impossible size");
  return count;
}

static int64_t lead_of(int32_t dtype) {
  // Complex numbers are as aligned as their parts.
  int64_t alignment = dtype < AOTI_C32 ? ELEMENT_BYTES[dtype] : ELEMENT_BYTES[dtype] / 2;
  return alignment > LEAST_LEAD ? alignment : LEAST_LEAD;
}

// Memory for a tensor whose `sizes` are known. It ends where the last element ends.
static void give_memory(Tensor *tensor, int32_t dtype, int32_t rank) {
  int64_t lead = lead_of(dtype);
  if (__builtin_mul_overflow(elements_of(tensor->sizes, rank), ELEMENT_BYTES[dtype], &tensor->bytes) ||
      tensor->bytes > INT64_MAX - AOTI_ALIGNMENT)
    stop("a tensor has an impossible size");
  tensor->block = allocate(lead + tensor->bytes);
  tensor->view = (AotiTensor){tensor->block + lead, tensor->sizes, NULL, rank, dtype, {AOTI_CPU, 0}};
  ASAN_POISON_MEMORY_REGION(tensor->block, (size_t)lead);
}

static void take_memory(Tensor *tensor) {
  if (!tensor->block) return;
  ASAN_UNPOISON_MEMORY_REGION(tensor->block, (size_t)lead_of(tensor->view.dtype));
  free_aligned(tensor->block);
}

// --- files ---

static void get(FILE *file, void *to, int64_t bytes) {
  if (fread(to, 1, (size_t)bytes, file) != (size_t)bytes) stop("the inputs end too early");
}

static Tensor *read_tensors(const char *path, int64_t *count) {
  FILE *file = fopen(path, "rb");
  if (!file) stop("cannot open `%s`", path);
  char magic[sizeof MAGIC];
  get(file, magic, sizeof magic);
  get(file, count, sizeof *count);
  if (memcmp(magic, MAGIC, sizeof magic) != 0 || *count < 0 || *count > MOST_TENSORS) stop("these are no inputs");
  Tensor *tensors = calloc((size_t)*count + 1, sizeof *tensors);
  if (!tensors) stop("no memory for %lld tensors", (long long)*count);
  for (int64_t i = 0; i < *count; ++i) {
    int32_t dtype, rank;
    get(file, &dtype, sizeof dtype);
    get(file, &rank, sizeof rank);
    if (dtype < AOTI_BOOL || dtype > AOTI_C128 || rank < 0 || rank > MOST_RANK) stop("input %lld is no tensor", (long long)i);
    get(file, tensors[i].sizes, rank * (int64_t)sizeof(int64_t));
    give_memory(&tensors[i], dtype, rank);
    get(file, tensors[i].view.data, tensors[i].bytes);
  }
  fclose(file);
  return tensors;
}

static void put(FILE *file, const void *from, int64_t bytes) {
  if (fwrite(from, 1, (size_t)bytes, file) != (size_t)bytes) stop("cannot write the outputs");
}

static void write_tensors(const char *path, const Tensor *tensors, int64_t count) {
  FILE *file = fopen(path, "wb");
  if (!file) stop("cannot make `%s`", path);
  put(file, MAGIC, sizeof MAGIC);
  put(file, &count, sizeof count);
  for (int64_t i = 0; i < count; ++i) {
    const AotiTensor *view = &tensors[i].view;
    put(file, &view->dtype, sizeof view->dtype);
    put(file, &view->rank, sizeof view->rank);
    put(file, view->sizes, view->rank * (int64_t)sizeof(int64_t));
    put(file, view->data, tensors[i].bytes);
  }
  if (fclose(file) != 0) stop("cannot write the outputs");
}

// --- threads ---

typedef struct Share {
  AotiParallelBody body;
  void *arg;
  int64_t begin, end;
  int32_t worker;
} Share;

// Unit by unit: a body may rely on no larger part.
static void work(void *argument) {
  const Share *share = argument;
  for (int64_t i = share->begin; i < share->end; ++i) share->body(share->arg, i, i + 1, share->worker);
}

static Share share_of(int32_t worker, int32_t threads, int64_t n, AotiParallelBody body, void *arg) {
  int64_t each = n / threads, more = n % threads;
  int64_t begin = each * worker + (more < worker ? more : worker);
  return (Share){body, arg, begin, begin + each + (worker < more), worker};
}

// Starts its threads anew each time: slow, and without any memory order between two loops but that of the loops.
static void parallel_for(void *pool, int64_t n, AotiParallelBody body, void *arg) {
  int32_t threads = *(const int32_t *)pool;
  Thread others[MOST_THREADS];
  Share shares[MOST_THREADS], own = share_of(0, threads, n, body, arg);
  for (int32_t t = 1; t < threads; ++t) {
    shares[t] = share_of(t, threads, n, body, arg);
    others[t] = (Thread){.function = work, .argument = &shares[t]};
    begin(&others[t]);
  }
  work(&own);
  for (int32_t t = 1; t < threads; ++t) join(&others[t]);
}

// --- the model ---

static void check_ranks(const char *kind, const AotiValueInfo *infos, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    if (infos[i].rank < 0 || infos[i].rank > MOST_RANK || infos[i].dtype < AOTI_BOOL || infos[i].dtype > AOTI_C128)
      stop("the table of %ss is spoiled", kind);
}

// Sizes as the run wrote them: no larger than the bound that the memory is for.
static void shrink(const AotiValueInfo *info, Tensor *output) {
  int64_t bytes = elements_of(output->sizes, info->rank) * ELEMENT_BYTES[info->dtype];
  if (bytes > output->bytes) stop("output `%s` is larger than its bound", info->name);
  output->bytes = bytes;
}

// Gives an output its memory during the run, where nobody knows its sizes before.
static void *allocate_output(void *argument, int32_t output, const int64_t *sizes, int64_t bytes) {
  Caller *caller = argument;
  const AotiValueInfo *info = &caller->api->info->outputs[output];
  Tensor *tensor = &caller->outputs[output];
  if (tensor->block) stop("memory for output `%s` is asked for twice", info->name);
  memcpy(tensor->sizes, sizes, (size_t)info->rank * sizeof(int64_t));
  give_memory(tensor, info->dtype, info->rank);
  if (bytes != tensor->bytes) stop("output `%s` has %lld bytes, not %lld", info->name, (long long)tensor->bytes, (long long)bytes);
  return tensor->view.data;
}

static bool is_unknown(const Tensor *output, int32_t rank) {
  for (int32_t d = 0; d < rank; ++d)
    if (output->sizes[d] == -1) return true;
  return false;
}

static void call(void *argument) {
  Caller *caller = argument;
  const AotiModelInfo *info = caller->api->info;
  int32_t n_inputs = info->n_inputs, n_outputs = info->n_outputs;
  AotiError error = {0};
  // One more than there are: none of these may be null.
  int64_t **sizes = calloc((size_t)n_outputs + 1, sizeof *sizes);
  AotiTensor *views = calloc((size_t)n_outputs + 1, sizeof *views);
  caller->outputs = calloc((size_t)n_outputs + 1, sizeof *caller->outputs);
  if (!sizes || !views || !caller->outputs) stop("no memory for %d outputs", (int)n_outputs);
  for (int32_t i = 0; i < n_outputs; ++i) sizes[i] = caller->outputs[i].sizes;
  check("output_sizes", caller->api->output_sizes(caller->model, caller->inputs, n_inputs, sizes, &error), &error);
  for (int32_t i = 0; i < n_outputs; ++i) {
    if (is_unknown(&caller->outputs[i], info->outputs[i].rank)) {
      views[i] = (AotiTensor){NULL, NULL, NULL, info->outputs[i].rank, info->outputs[i].dtype, {AOTI_CPU, 0}};
      continue;
    }
    give_memory(&caller->outputs[i], info->outputs[i].dtype, info->outputs[i].rank);
    views[i] = caller->outputs[i].view;
    // The bound stays as it is while the run writes the sizes that it found.
    int64_t *bound = (int64_t *)allocate(info->outputs[i].rank * (int64_t)sizeof(int64_t));
    memcpy(bound, sizes[i], (size_t)info->outputs[i].rank * sizeof(int64_t));
    views[i].sizes = bound;
  }
  int64_t bytes = 0;
  int32_t status =
      caller->api->workspace_bytes(caller->model, caller->inputs, n_inputs, caller->threads, &bytes, &error);
  check("workspace_bytes", status, &error);
  void *workspace = allocate(bytes), *memory = allocate(info->state_bytes);
  AotiState *state = NULL;
  check("create_state", caller->api->create_state(caller->model, memory, &state, &error), &error);
  AotiContext context = {.parallel_for = parallel_for, .pool = &caller->threads, .threads = caller->threads};
  if (caller->threads == 1) context.parallel_for = NULL;
  context.allocate_output = allocate_output, context.allocate_output_arg = caller;
  int64_t begun = now();
  status = caller->api->run(caller->model, caller->inputs, n_inputs, views, n_outputs, sizes, state, workspace, bytes,
                            &context, &error);
  caller->nanoseconds = now() - begun;
  check("run", status, &error);
  for (int32_t i = 0; i < n_outputs; ++i) {
    shrink(&info->outputs[i], &caller->outputs[i]);
    free_aligned((void *)views[i].sizes);
  }
  caller->api->destroy_state(state);
  free_aligned(memory);
  free_aligned(workspace);
  free(views);
  free(sizes);
}

// Runs the model by all callers at once and checks that they agree.
static void call_all(Caller *callers, int32_t count) {
  Thread threads[MOST_THREADS];
  for (int32_t c = 1; c < count; ++c) {
    threads[c] = (Thread){.function = call, .argument = &callers[c]};
    begin(&threads[c]);
  }
  call(&callers[0]);
  for (int32_t c = 1; c < count; ++c) join(&threads[c]);
  const AotiModelInfo *info = callers[0].api->info;
  for (int32_t c = 1; c < count; ++c)
    for (int32_t i = 0; i < info->n_outputs; ++i) {
      const Tensor *first = &callers[0].outputs[i], *other = &callers[c].outputs[i];
      if (first->bytes != other->bytes || memcmp(first->view.data, other->view.data, (size_t)first->bytes) != 0)
        stop("output `%s` is not the same in two runs at the same time", info->outputs[i].name);
    }
}

static int32_t number(const char *text) {
  long value = strtol(text, NULL, 10);
  if (value < 1 || value > MOST_THREADS) stop("`%s` is no number of threads", text);
  return (int32_t)value;
}

int main(int n_arguments, char **arguments) {
  if (n_arguments != 5) stop("give INPUTS OUTPUTS THREADS CALLERS");
  const AotiApi *api = aoti_harness_api();
  if (api->abi_version != AOTI_ABI_VERSION || api->struct_bytes < sizeof *api)
    stop("the model has version %u of the C interface, not %u", api->abi_version, AOTI_ABI_VERSION);
  const AotiModelInfo *info = api->info;
  check_ranks("input", info->inputs, info->n_inputs);
  check_ranks("output", info->outputs, info->n_outputs);

  int64_t count;
  Tensor *inputs = read_tensors(arguments[1], &count);
  if (count != info->n_inputs) stop("%lld inputs instead of %d", (long long)count, (int)info->n_inputs);
  AotiTensor *views = calloc((size_t)count + 1, sizeof *views);
  unsigned char **copies = calloc((size_t)count + 1, sizeof *copies);
  if (!views || !copies) stop("no memory for %lld inputs", (long long)count);
  for (int64_t i = 0; i < count; ++i) {
    views[i] = inputs[i].view;
    copies[i] = allocate(inputs[i].bytes);
    memcpy(copies[i], views[i].data, (size_t)inputs[i].bytes);
  }

  AotiError error = {0};
  AotiModel *model = NULL;
  AotiCreateOptions options = {.cpu_level = -1};
  check("create", api->create(&options, &model, &error), &error);
  Caller callers[MOST_THREADS];
  int32_t n_callers = number(arguments[4]);
  for (int32_t c = 0; c < n_callers; ++c) callers[c] = (Caller){api, model, views, NULL, number(arguments[3]), 0};
  call_all(callers, n_callers);
  for (int64_t i = 0; i < count; ++i)
    if (memcmp(copies[i], views[i].data, (size_t)inputs[i].bytes) != 0)
      stop("the run wrote to input `%s`", info->inputs[i].name);
  write_tensors(arguments[2], callers[0].outputs, info->n_outputs);
  printf("{\"run_us\": %.3f, \"level\": \"%s\"}\n", (double)callers[0].nanoseconds / 1e3, api->plan(model)->level);

  api->destroy(model);
  for (int32_t c = 0; c < n_callers; ++c) {
    for (int32_t i = 0; i < info->n_outputs; ++i) take_memory(&callers[c].outputs[i]);
    free(callers[c].outputs);
  }
  for (int64_t i = 0; i < count; ++i) {
    take_memory(&inputs[i]);
    free_aligned(copies[i]);
  }
  free(copies);
  free(views);
  free(inputs);
  return 0;
}
