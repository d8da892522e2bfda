// Collectives in a run on a GPU: the caller's communicator submits them to the run's stream.
// Knows nothing of who the other ranks are.
#pragma once

#include "../exchange.h"
#include "host.h"

namespace aoti {
namespace gpu {

// Has the ranks do it; false where they cannot. A run without a communicator does not begin. In a graph it stays as it was captured,
// for the addresses that it had.
template <class A, class B> bool exchange(DeviceRun &run, int32_t kernel, const Stated &stated, A input, B output) {
  if (run.error || (run.replay && run.replay->exec)) return true;
  Callers callers;
  callers.see(input), callers.see(output);
  bool done = true;
  const auto pointer = [](Address address) { return (void *)uintptr_t(address); };
  const auto start = [&] {
    done = ask(*run.communicator, stated, pointer(input), pointer(output), run.device, run.stream, run.refusal);
    return 0;
  };
  if (run.replay) {
    if (callers.any) run.replay->known = false;
    start();
  } else {
    start_kernel(run, kernel, kWhole, true, start);
  }
  return done;
}

} // namespace gpu
} // namespace aoti
