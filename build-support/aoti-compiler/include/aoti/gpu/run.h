// One run of a model, as its kernels on a GPU see it: where faults are noted.
#pragma once

#include "device.h"

namespace aoti {

// `fault` is in memory that the host sees too, and reads when it waits for the run.
struct Run {
  Fault *fault;
};

} // namespace aoti

AOTI_NAMESPACE_BEGIN

// Every unit of work is worth a thread.
AOTI_INLINE i64 grain(const Run &, i64, i64) { return 1; }

// Covers [0, n) by calls body(i, i + 1, worker), every thread of the launch taking its share.
template <class Body> AOTI_INLINE void parallel(const Run &, i64 n, i64, const Body &body) {
  const i64 threads = block_size();
  AOTI_UNROLL_TIMES(1)
  for (i64 i = block_index() * threads + thread_index(); i < n; i += block_count() * threads) body(i, i + 1, i64(0));
}

// Waits until everything is seen that earlier kernels wrote. Before it a kernel touches only what none of them writes.
AOTI_INLINE void begin_kernel() {
#if AOTI_NVIDIA && __CUDA_ARCH__ >= 900
  __asm__ volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// When every block is here, the next kernel may come to the multiprocessors, where it waits for this one to end. Large kernels say
// it at their end, as the blocks of the next would crowd on multiprocessors that happen to be free; those that leave room on all
// alike, or whose successors have weights to read meanwhile, before they begin.
AOTI_INLINE void let_next_kernel_come() {
#if AOTI_NVIDIA && __CUDA_ARCH__ >= 900
  __asm__ volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

AOTI_INLINE void note_fault(const Run &run, const Fault &fault) {
  if (!exchange_if_zero(&run.fault->site, fault.site)) return;
  run.fault->wraps = fault.wraps, run.fault->index = fault.index, run.fault->size = fault.size;
}

AOTI_NAMESPACE_END
