// One run of a model on a GPU, as generated host code drives it: launches on a stream, and small reads where the data
// decides what comes next. Knows no kernel; errors of the driver are kept and end what follows.
#pragma once

#include "../base.h"
#include "driver.h"

namespace aoti {
namespace gpu {

struct DeviceRun {
  const Driver *driver;
  Stream stream;
  const Function *functions;
  const Address *inputs, *outputs;
  Address states, weights, arena;
  Address fault; // one word of device memory
  void *staging; // 8 bytes of page-locked memory
  int error;     // the first code of the driver that was not success
};

template <class T> Address input(const DeviceRun &run, int position) { return run.inputs[position]; }
template <class T> Address output(const DeviceRun &run, int position) { return run.outputs[position]; }
template <class T> Address state(const DeviceRun &run, int64_t offset) { return run.states + Address(offset); }
template <class T> Address weights(const DeviceRun &run, int64_t offset) { return run.weights + Address(offset); }
template <class T> Address arena(const DeviceRun &run, int64_t offset) { return run.arena + Address(offset); }

// Arguments are passed as the kernel declares them: addresses and sizes, after the run itself.
template <class... A>
void launch(DeviceRun &run, int function, int64_t blocks, int threads, int64_t shared, A... arguments) {
  if (run.error || blocks <= 0) return;
  void *list[] = {&run.fault, &arguments...};
  run.error = run.driver->launch(run.functions[function], unsigned(blocks), 1, 1, unsigned(threads), 1, 1, unsigned(shared),
                                 run.stream, list, nullptr);
}

inline void copy(DeviceRun &run, Address to, Address from, int64_t bytes) {
  if (!run.error && bytes > 0) run.error = run.driver->copy(to, from, size_t(bytes), run.stream);
}

// An element of device memory, once everything before it is done. A driver that fails gives zero.
template <class T> T read(DeviceRun &run, Address from) {
  T value{};
  if (run.error) return value;
  run.error = run.driver->copy_out(run.staging, from, sizeof(T), run.stream);
  if (!run.error) run.error = run.driver->stream_wait(run.stream);
  if (!run.error) __builtin_memcpy(&value, run.staging, sizeof(T));
  return value;
}

} // namespace gpu
} // namespace aoti
