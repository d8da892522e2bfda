// A run that is prepared on a device: its memory, where its tensors lie, and its launches as a graph once it is repeated. A
// graph whose kernels can be told of other addresses serves for all; else it is for addresses that come again.
// Owns device memory, a stream and an event. Knows nothing of what is checked before it starts.
#pragma once

#include "loaded.h"
#include <time.h>
#include <unistd.h>

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
  // As kernels get them: inputs, outputs, then the state. What moved is told by the graph's addresses, and where there is no
  // graph, by those of the last submit.
  Given *given;
  Address *copies; // the run's own memory for tensors that lie elsewhere, or null
  Address *late;   // memory that a run has allocated since it was submitted, or null
  int32_t n_late;
  Stream stream;
  Event done;
  char *pinned; // a number that is read, then the fault, then the seed and the offset of random numbers
  Graph graph;
  GraphExec exec; // or null
  Node *nodes;    // of the graph, that are given an address of the caller's
  bool never_a_graph;
  bool fixed; // its graph is for these addresses alone
  bool repeated;
  bool submitted;
  int32_t failed;
  const AotiCommunicator *communicator; // of the run that was submitted; or null
  uint64_t partners;                    // the id of the one before it
  AotiError refusal;

  Driver &driver() const { return model->loaded->driver; }
  Fault *fault() const { return (Fault *)(pinned + 8); }
  uint64_t *generator() const { return (uint64_t *)(pinned + 32); }
};

inline int64_t bytes_of(const AotiTensor &tensor) {
  int64_t count = 1;
  for (int32_t d = 0; d < tensor.rank; ++d) count *= tensor.sizes[d];
  return count * dtype_bytes(tensor.dtype);
}

inline bool lies_here(const AotiTensor &tensor) {
  return tensor.device.kind != AOTI_CPU && uintptr_t(tensor.data) % kAccess == 0;
}

// Where kernels find what the caller gave.
inline void give(GpuRun &run, int32_t slot, Address address) {
  Given &given = run.given[slot];
  given = {address, given.moved || given.address != address};
}

// Where kernels find a tensor: its own memory, or a copy of the run's, which is made when it is first wanted.
__attribute__((unused)) int place(GpuRun &run, int32_t slot, const AotiTensor &tensor) {
  if (lies_here(tensor) || bytes_of(tensor) == 0) {
    give(run, slot, Address(uintptr_t(tensor.data)));
    return 0;
  }
  if (!run.copies[slot])
    if (int code = run.driver().allocate(&run.copies[slot], size_t(bytes_of(tensor)))) {
      run.copies[slot] = 0;
      return code;
    }
  give(run, slot, run.copies[slot]);
  return 0;
}

__attribute__((unused)) int copy_in(GpuRun &run, int32_t slot, const AotiTensor &tensor, Stream stream) {
  const size_t bytes = size_t(bytes_of(tensor));
  if (lies_here(tensor) || bytes == 0) return 0;
  return tensor.device.kind == AOTI_CPU
             ? run.driver().copy_in(run.given[slot], tensor.data, bytes, stream)
             : run.driver().copy(run.given[slot], Address(uintptr_t(tensor.data)), bytes, stream);
}

__attribute__((unused)) int copy_out(GpuRun &run, int32_t slot, const AotiTensor &tensor, size_t bytes, Stream stream) {
  if (lies_here(tensor) || bytes == 0) return 0;
  return tensor.device.kind == AOTI_CPU
             ? run.driver().copy_out(tensor.data, run.given[slot], bytes, stream)
             : run.driver().copy(Address(uintptr_t(tensor.data)), run.given[slot], bytes, stream);
}

__attribute__((unused)) int copy_to(GpuRun &run, void *to, AotiDevice device, Address from, size_t bytes, Stream stream) {
  if (bytes == 0) return 0;
  return device.kind == AOTI_CPU ? run.driver().copy_out(to, from, bytes, stream)
                                 : run.driver().copy(Address(uintptr_t(to)), from, bytes, stream);
}

__attribute__((unused)) void drop_graph(GpuRun &run) {
  if (run.exec) run.driver().graph_exec_destroy(run.exec);
  if (run.graph) run.driver().graph_destroy(run.graph);
  run.exec = nullptr, run.graph = nullptr;
}

// Frees what a run that is done has allocated.
__attribute__((unused)) void release_late(GpuRun &run) {
  for (int32_t k = 0; k < run.n_late; ++k) {
    if (run.late[k]) run.driver().release(run.late[k]);
    run.late[k] = 0;
  }
}

__attribute__((unused)) void release_run(GpuRun *run, int32_t slots) {
  {
    Entered entered(*run->model->loaded);
    const Driver &driver = run->driver();
    // What was submitted and not waited for still uses the memory.
    if (run->submitted) driver.event_wait(run->done);
    drop_graph(*run);
    release_late(*run);
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
                                         int32_t n_late, int64_t arena_bytes, int *code) {
  const size_t numbers = size_t(n_symbols) + 1, nodes = size_t(model->loaded->program->n_given);
  GpuRun *run = (GpuRun *)calloc(1, sizeof(GpuRun) + numbers * sizeof(int64_t) +
                                        size_t(slots) * (sizeof(Given) + sizeof(Address)) +
                                        size_t(n_late) * sizeof(Address) + nodes * sizeof(Node));
  *code = 0;
  if (!run) return nullptr;
  run->model = model;
  run->symbols = (int64_t *)(run + 1);
  run->given = (Given *)(run->symbols + numbers);
  run->copies = (Address *)(run->given + slots);
  run->late = run->copies + slots, run->n_late = n_late;
  run->nodes = (Node *)(run->late + n_late);
  memcpy(run->symbols, symbols, size_t(n_symbols) * sizeof(int64_t));
  const Driver &driver = run->driver();
  run->fixed = !can_set_nodes(driver);
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

// Makes a graph of the launches, where the driver can.
__attribute__((unused)) void capture(GpuRun &run, DeviceRun launches) {
  const Driver &driver = run.driver();
  Replay replay{nullptr, run.nodes, 0, !run.fixed};
  launches.stream = run.stream, launches.replay = &replay;
  if (!driver.capture_begin(run.stream, kCaptureRelaxed)) {
    run.model->loaded->program->run(launches);
    if (driver.capture_end(run.stream, &run.graph)) run.graph = nullptr;
    if (run.graph && (launches.error || driver.graph_instantiate(&run.exec, run.graph, 0))) run.exec = nullptr;
  }
  run.fixed = !replay.known;
  run.never_a_graph = !run.exec;
  if (!run.exec) drop_graph(run);
}

// Waits until a run is done, or until the communicator has ended it: then `refusal` says why. Gives the driver's code.
__attribute__((unused)) int await(GpuRun &run) {
  const Driver &driver = run.driver();
  const AotiCommunicator *ranks = run.communicator;
  if (!ranks || !ranks->poll || !driver.event_query) return driver.event_wait(run.done);
  constexpr int64_t kNanoseconds = 1000000000, kOften = 1000000;
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return int64_t(time.tv_sec) * kNanoseconds + time.tv_nsec;
  };
  const int64_t begin = now();
  int64_t asked = begin;
  for (;;) {
    const int code = driver.event_query(run.done);
    if (code != kNotReady) return code;
    const int64_t time = now();
    // Runs that take long leave the processor to others.
    if (time - begin > kOften) usleep(50);
    if (time - asked < kOften) continue;
    asked = time;
    run.refusal.code = ranks->poll(ranks->arg, time - begin, &run.refusal);
    run.refusal.message[AOTI_MESSAGE_BYTES - 1] = 0;
    if (run.refusal.code) return driver.event_wait(run.done);
  }
}

// Tells the graph of the addresses that have moved. Nobody knows what it has where that fails.
__attribute__((unused)) bool follow(GpuRun &run, DeviceRun launches) {
  if (run.fixed) return false;
  Replay replay{run.exec, run.nodes, 0, true};
  launches.replay = &replay;
  run.model->loaded->program->run(launches);
  run.fixed = launches.error != 0;
  return !run.fixed;
}

// Starts the kernels: as a graph, from the second time on. Gives the driver's code.
__attribute__((unused)) int start(GpuRun &run, DeviceRun &launches, int32_t slots) {
  const Program &program = *run.model->loaded->program;
  const bool again = run.repeated;
  bool moved = false;
  for (int32_t i = 0; i < slots; ++i) moved = moved || run.given[i].moved;
  run.repeated = true;
  // A communicator is met on a stream before it is captured, and what was captured with another is not for it.
  const uint64_t partners = launches.communicator ? launches.communicator->id : 0;
  const bool known = !launches.communicator || (partners && partners == run.partners);
  if (!known) drop_graph(run);
  run.partners = partners;
  const bool as_graph = known && program.launches_only && !launches.tell && !launches.timing && !run.never_a_graph;
  if (as_graph && run.exec && moved && !follow(run, launches)) drop_graph(run);
  if (as_graph && !run.exec && again && !(moved && run.fixed)) capture(run, launches);
  const bool graph = as_graph && run.exec;
  if (graph || !run.exec)
    for (int32_t i = 0; i < slots; ++i) run.given[i].moved = false;
  if (graph) return run.driver().graph_launch(run.exec, launches.stream);
  run.failed = program.run(launches);
  // Even after an error: the stream must go on.
  const int code = launches.timing ? launches.timing->report() : 0;
  if (!launches.error) launches.error = code;
  return launches.error;
}

} // namespace
} // namespace gpu
} // namespace aoti
