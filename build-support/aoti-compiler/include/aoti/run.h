// One run of a model, as its kernels see it: threads, memory, and faults in the data.
// Knows nothing of tensors; the layouts here are the same at every CPU level.
#pragma once

#include "abi.h"
#include "base.h"
#include "checked.h"

namespace aoti {

// Nanoseconds that threads take to begin a loop together and end it: where nobody knows, which is what amounts of work that are
// worth a thread are for, and at most.
constexpr int32_t kForkJoin = 1024, kMostForkJoin = 1 << 20;

// `scratch` belongs to the kernel that runs now: `shared_scratch` bytes for all workers, then `worker_scratch` bytes for
// each worker. `fault` is about the first index that was outside its dimension.
// `expanded` holds what the model made of its weights when it was created. `symbols` are the sizes, to which those that are
// read from data are added. `tell` is told of kernels, or null.
struct Late;
struct Run {
  const AotiContext *context;
  const void *const *inputs;
  void *const *outputs;
  char *state;
  const char *weights;
  const char *expanded;
  char *arena;
  char *scratch;
  Fault *fault;
  int64_t *symbols;
  void (*tell)(const Run &run, int32_t kernel, int32_t phase);
  const Late *late = nullptr;
  AotiError *refusal = nullptr; // why ranks could not compute something together
};

// Memory that a run allocates when it has read how much that is: pieces of its own, each null or allocated, and outputs of the
// caller's. `bytes` is negative where no memory is so large. What is allocated again is freed before.
struct Late {
  void **memory;
  bool (*allocate)(const Run &run, int32_t number, int64_t bytes, int32_t output); // `output` is -1 for a piece of its own
  void (*release)(const Run &run, int32_t number);
};

} // namespace aoti

AOTI_NAMESPACE_BEGIN

// --- addresses: a position among the caller's tensors, or bytes into the memory of the run; and bytes from there ---

template <class T> AOTI_INLINE const T *input(const Run &run, i64 position, i64 start = 0) {
  return (const T *)((const char *)run.inputs[position] + start);
}
template <class T> AOTI_INLINE T *output(const Run &run, i64 position, i64 start = 0) {
  return (T *)((char *)run.outputs[position] + start);
}
template <class T> AOTI_INLINE T *state(const Run &run, i64 offset, i64 start = 0) {
  return (T *)(run.state + offset + start);
}
template <class T> AOTI_INLINE const T *generator(const Run &run, i64, i64 start = 0) {
  return (const T *)((const char *)&run.context->seed + start);
}
template <class T> AOTI_INLINE const T *weights(const Run &run, i64 offset, i64 start = 0) {
  return (const T *)(run.weights + offset + start);
}
template <class T> AOTI_INLINE const T *expanded(const Run &run, i64 offset, i64 start = 0) {
  return (const T *)(run.expanded + offset + start);
}
template <class T> AOTI_INLINE T *arena(const Run &run, i64 offset, i64 start = 0) {
  return (T *)(run.arena + offset + start);
}

template <class T> AOTI_INLINE T *late(const Run &run, i64 number, i64 start = 0) {
  return (T *)((char *)run.late->memory[number] + start);
}
AOTI_INLINE bool allocate(const Run &run, i32 number, i64 bytes, i32 output) {
  return run.late->allocate(run, number, bytes, output);
}
AOTI_INLINE void release(const Run &run, i32 number) { run.late->release(run, number); }
// The run as a kernel sees it whose scratch was allocated for it.
AOTI_INLINE Run with_scratch(const Run &run, i64 number) {
  Run own = run;
  own.scratch = late<char>(run, number);
  return own;
}

// Calls a kernel of the model. Where nobody is told of kernels, that costs two branches that are always predicted.
template <class... Parameters>
AOTI_INLINE void call(const Run &run, i32 number, void (*kernel)(const Run &, Parameters...),
                      identity<Parameters>... arguments) {
  if (__builtin_expect(run.tell != nullptr, 0)) run.tell(run, number, AOTI_KERNEL_BEGIN);
  kernel(run, arguments...);
  if (__builtin_expect(run.tell != nullptr, 0)) run.tell(run, number, AOTI_KERNEL_END);
}

// What a kernel wrote, where the run depends on it.
template <class T> AOTI_INLINE T read(const Run &, const T *from) { return *from; }

// The first fault of a run is the one that is told.
AOTI_INLINE void note_fault(const Run &run, const Fault &fault) {
  i32 none = 0;
  if (!__atomic_compare_exchange_n(&run.fault->site, &none, fault.site, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
  run.fault->wraps = fault.wraps, run.fault->index = fault.index, run.fault->size = fault.size;
}

// Whether an operator met an index outside its dimension. Loops end then: their conditions are of what came of it.
AOTI_INLINE bool has_fault(const Run &run) { return __atomic_load_n(&run.fault->site, __ATOMIC_RELAXED) != 0; }

// Units of so much work that are worth a thread: those that make `enough`, where threads take `kForkJoin` to begin and end. One
// thread does not ask.
AOTI_INLINE i64 grain(const Run &run, i64 enough, i64 unit) {
  if (run.context->threads <= 1) return 1;
  return max_i64(enough * run.context->fork_join_ns / kForkJoin / max_i64(unit, 1), 1);
}
// The same for loops over elements. However near threads are, no less of these is worth one than where they take `kForkJoin`.
AOTI_INLINE i64 loop_grain(const Run &run, i64 enough, i64 unit) {
  return max_i64(grain(run, enough, unit), enough / max_i64(unit, 1));
}
// The same as `grain` where so many units are all the work.
AOTI_INLINE i64 grain_of(const Run &run, i64 enough, i64 units, i64 work) {
  if (run.context->threads <= 1) return 1;
  return 1 + enough * run.context->fork_join_ns / kForkJoin * units / max_i64(work, 1);
}

// Parts that each thread gets of long work, so that fast threads take from slow ones, and how much more than what is worth a
// thread is in each where there are more parts than threads.
constexpr i64 kPartsOfThread = 4, kGrainsOfPart = 4;

// Covers [0, n) by calls body(begin, end, worker). Work of fewer than `grain` units is not worth a hand-over.
template <class Body> AOTI_INLINE void parallel(const Run &run, i64 n, i64 grain, const Body &body) {
  const AotiContext &context = *run.context;
  if (n <= 0) return;
  if (!context.parallel_for || context.threads <= 1 || n < 2 * grain) {
    body(i64(0), n, i64(0));
    return;
  }
  struct Call {
    const Body *body;
    i64 n, parts;
  };
  const i64 worth = n / max_i64(grain, 1), threads = context.threads;
  i64 parts = min_i64(worth, min_i64(max_i64(worth / kGrainsOfPart, threads), kPartsOfThread * threads));
  // As many for each thread where that makes them equal.
  if (parts > threads && parts < n) parts -= parts % threads;
  Call call{&body, n, parts};
  context.parallel_for(
      context.pool, parts,
      [](void *arg, int64_t begin, int64_t end, int32_t worker) {
        const Call &call = *(const Call *)arg;
        (*call.body)(call.n / call.parts * begin + (begin < call.n % call.parts ? begin : call.n % call.parts),
                     call.n / call.parts * end + (end < call.n % call.parts ? end : call.n % call.parts), i64(worker));
      },
      &call);
}

AOTI_NAMESPACE_END
