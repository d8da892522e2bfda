// One run of a model on a GPU, as generated host code drives it: launches on a stream, and small reads where the data
// decides what comes next. Knows no kernel. An error of the driver is kept: nothing is launched after it, what is read is
// zero, and what the run returns means nothing.
#pragma once

#include "../abi.h"
#include "../base.h"
#include "../checked.h"
#include "driver.h"

namespace aoti {
namespace gpu {

// A kernel as it is launched: threads of a block beside those that the launch names.
struct Entry {
  Function function;
  unsigned copiers;
};

struct DeviceRun {
  const Driver *driver;
  Stream stream;
  const Entry *entries;
  const Address *inputs, *outputs;
  Address states, generator, weights, arena;
  Address fault; // one word that kernels and the host see
  void *staging; // 8 bytes of page-locked memory
  int64_t *symbols; // sizes, to which those that are read from data are added
  // Told of kernels, or null; and what it wants to know.
  void (*tell)(DeviceRun &run, int32_t kernel, int32_t phase);
  const void *teller;
  int error; // the first code of the driver that was not success
};

template <class T> Address input(const DeviceRun &run, int position) { return run.inputs[position]; }
template <class T> Address output(const DeviceRun &run, int position) { return run.outputs[position]; }
template <class T> Address state(const DeviceRun &run, int64_t offset) { return run.states + Address(offset); }
template <class T> Address generator(const DeviceRun &run, int) { return run.generator; }
template <class T> Address weights(const DeviceRun &run, int64_t offset) { return run.weights + Address(offset); }
template <class T> Address arena(const DeviceRun &run, int64_t offset) { return run.arena + Address(offset); }

// Arguments are passed as the kernel declares them: addresses and sizes, after the run itself. Who is told of kernels sees
// what each wrote, so that each is waited for.
template <class... A>
void launch(DeviceRun &run, int32_t kernel, int function, int64_t blocks, int threads, int64_t shared, A... arguments) {
  if (run.error) return;
  if (run.tell) run.tell(run, kernel, AOTI_KERNEL_BEGIN);
  void *list[] = {&run.fault, &arguments...};
  const Entry &entry = run.entries[function];
  if (blocks > 0)
    run.error = launch_blocks(*run.driver, entry.function, unsigned(blocks), unsigned(threads) + entry.copiers,
                              unsigned(shared), run.stream, list);
  if (!run.tell || run.error) return;
  run.error = run.driver->stream_wait(run.stream);
  if (!run.error) run.tell(run, kernel, AOTI_KERNEL_END);
}

inline void copy(DeviceRun &run, Address to, Address from, int64_t bytes) {
  if (!run.error && bytes > 0) run.error = run.driver->copy(to, from, size_t(bytes), run.stream);
}

// An element of device memory, once everything before it is done.
template <class T> T read(DeviceRun &run, Address from) {
  T value{};
  if (run.error) return value;
  run.error = run.driver->copy_out(run.staging, from, sizeof(T), run.stream);
  if (!run.error) run.error = run.driver->stream_wait(run.stream);
  if (!run.error) __builtin_memcpy(&value, run.staging, sizeof(T));
  return value;
}

// Whether an operator met an index outside its dimension, as far as kernels are done: loops end then.
inline bool has_fault(const DeviceRun &run) { return *(const volatile int *)uintptr_t(run.fault) != 0; }

} // namespace gpu
} // namespace aoti
