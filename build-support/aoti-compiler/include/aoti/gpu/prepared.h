// A run that is prepared on a device: its memory, where its tensors lie, and its launches as a graph once they repeat.
// Owns device memory, a stream and an event. Knows nothing of what is checked before it starts.
#pragma once

#include "loaded.h"

namespace aoti {
namespace gpu {
namespace {

// Kernels read and write so many bytes at a time.
constexpr uint64_t kAccess = 16;

struct GpuModel : AotiModel {
  Loaded *loaded;
  AotiPlan plan;
  AotiCandidate candidate;
  // Runs that `run` has prepared and that nobody uses at present, the last used first.
  pthread_mutex_t lock;
  struct GpuRun *idle;
};

struct GpuState : AotiState {
  Loaded *loaded;
  Address memory;
  bool own;
};

struct GpuRun : AotiRun {
  const GpuModel *model;
  GpuRun *next;
  int64_t *symbols;
  Address arena;
  // As kernels get them: inputs, outputs, then the state; those of the last submit; and the run's own memory for tensors that
  // lie elsewhere, or null.
  Address *addresses, *last, *copies;
  Stream stream;
  Event done;
  char *pinned; // a number that is read, then the fault, then the seed and the offset of random numbers
  GraphExec graph;
  bool never_a_graph;
  bool submitted;
  int32_t failed;

  Driver &driver() const { return model->loaded->driver; }
  int *fault() const { return (int *)(pinned + 8); }
  uint64_t *generator() const { return (uint64_t *)(pinned + 16); }
};

inline int64_t bytes_of(const AotiTensor &tensor) {
  int64_t count = 1;
  for (int32_t d = 0; d < tensor.rank; ++d) count *= tensor.sizes[d];
  return count * dtype_bytes(tensor.dtype);
}

inline bool lies_here(const AotiTensor &tensor) {
  return tensor.device.kind != AOTI_CPU && uintptr_t(tensor.data) % kAccess == 0;
}

// Where kernels find a tensor: its own memory, or a copy of the run's, which is made when it is first wanted.
__attribute__((unused)) int place(GpuRun &run, int32_t slot, const AotiTensor &tensor) {
  if (lies_here(tensor) || bytes_of(tensor) == 0) {
    run.addresses[slot] = Address(uintptr_t(tensor.data));
    return 0;
  }
  if (!run.copies[slot])
    if (int code = run.driver().allocate(&run.copies[slot], size_t(bytes_of(tensor)))) {
      run.copies[slot] = 0;
      return code;
    }
  run.addresses[slot] = run.copies[slot];
  return 0;
}

__attribute__((unused)) int copy_in(GpuRun &run, int32_t slot, const AotiTensor &tensor, Stream stream) {
  const size_t bytes = size_t(bytes_of(tensor));
  if (lies_here(tensor) || bytes == 0) return 0;
  return tensor.device.kind == AOTI_CPU
             ? run.driver().copy_in(run.addresses[slot], tensor.data, bytes, stream)
             : run.driver().copy(run.addresses[slot], Address(uintptr_t(tensor.data)), bytes, stream);
}

__attribute__((unused)) int copy_out(GpuRun &run, int32_t slot, const AotiTensor &tensor, Stream stream) {
  const size_t bytes = size_t(bytes_of(tensor));
  if (lies_here(tensor) || bytes == 0) return 0;
  return tensor.device.kind == AOTI_CPU
             ? run.driver().copy_out(tensor.data, run.addresses[slot], bytes, stream)
             : run.driver().copy(Address(uintptr_t(tensor.data)), run.addresses[slot], bytes, stream);
}

__attribute__((unused)) void release_run(GpuRun *run, int32_t slots) {
  {
    Entered entered(*run->model->loaded);
    const Driver &driver = run->driver();
    // What was submitted and not waited for still uses the memory.
    if (run->submitted) driver.event_wait(run->done);
    if (run->graph) driver.graph_exec_destroy(run->graph);
    for (int32_t i = 0; i < slots; ++i)
      if (run->copies[i]) driver.release(run->copies[i]);
    if (run->arena) driver.release(run->arena);
    if (run->pinned) driver.release_host(run->pinned);
    if (run->done) driver.event_destroy(run->done);
    if (run->stream) driver.stream_destroy(run->stream);
  }
  free(run);
}

// A run with memory of its own for these sizes; or null, with the driver's code, or 0 where the host has no memory.
__attribute__((unused)) GpuRun *make_run(const GpuModel *model, const int64_t *symbols, int32_t n_symbols, int32_t slots,
                                         int64_t arena_bytes, int *code) {
  const size_t numbers = size_t(n_symbols) + 1, lists = 3 * size_t(slots);
  GpuRun *run = (GpuRun *)calloc(1, sizeof(GpuRun) + numbers * sizeof(int64_t) + lists * sizeof(Address));
  *code = 0;
  if (!run) return nullptr;
  run->model = model;
  run->symbols = (int64_t *)(run + 1);
  run->addresses = (Address *)(run->symbols + numbers);
  run->last = run->addresses + slots, run->copies = run->last + slots;
  memcpy(run->symbols, symbols, size_t(n_symbols) * sizeof(int64_t));
  const Driver &driver = run->driver();
  {
    Entered entered(*model->loaded);
    if (arena_bytes > 0) *code = driver.allocate(&run->arena, size_t(arena_bytes));
    if (*code) run->arena = 0;
    if (!*code) *code = driver.stream_create(&run->stream, kStreamNonBlocking);
    if (!*code) *code = driver.event_create(&run->done, kEventNoTiming);
    if (!*code) *code = driver.allocate_host((void **)&run->pinned, 64, kHostPortable | kHostMapped);
  }
  if (*code) release_run(run, slots), run = nullptr;
  return run;
}

// The launches of a run, as the driver shall repeat them; or null where it cannot.
__attribute__((unused)) GraphExec captured(GpuRun &run, DeviceRun launches) {
  const Driver &driver = run.driver();
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  launches.stream = run.stream;
  if (driver.capture_begin(run.stream, kCaptureRelaxed)) return nullptr;
  run.model->loaded->program->run(launches);
  if (driver.capture_end(run.stream, &graph) || !graph) return nullptr;
  if (launches.error || driver.graph_instantiate(&exec, graph, 0)) exec = nullptr;
  driver.graph_destroy(graph);
  return exec;
}

// Starts the kernels. Where the same addresses come again, their launches become a graph. Gives the driver's code.
__attribute__((unused)) int start(GpuRun &run, DeviceRun &launches, int32_t slots) {
  const Program &program = *run.model->loaded->program;
  const Driver &driver = run.driver();
  const size_t bytes = size_t(slots) * sizeof(Address);
  const bool again = memcmp(run.addresses, run.last, bytes) == 0;
  memcpy(run.last, run.addresses, bytes);
  if (program.launches_only && !launches.tell && !run.never_a_graph) {
    if (!again && run.graph) driver.graph_exec_destroy(run.graph), run.graph = nullptr;
    if (again && !run.graph) {
      run.graph = captured(run, launches);
      run.never_a_graph = !run.graph;
    }
    if (run.graph) return driver.graph_launch(run.graph, launches.stream);
  }
  run.failed = program.run(launches);
  return launches.error;
}

} // namespace
} // namespace gpu
} // namespace aoti
