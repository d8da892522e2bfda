// Collectives in the run of a model on processors.
// Knows nothing of who the other ranks are.
#pragma once

#include "exchange.h"
#include "run.h"

AOTI_NAMESPACE_BEGIN

// Has the ranks do it; false where they cannot. A run without a communicator does not begin. Who is told of kernels is told of
// it as of one.
AOTI_INLINE bool exchange(const Run &run, i32 kernel, const Stated &stated, const void *input, void *output) {
  if (__builtin_expect(run.tell != nullptr, 0)) run.tell(run, kernel, AOTI_KERNEL_BEGIN);
  if (!ask(*run.context->communicator, stated, input, output, {AOTI_CPU, 0}, nullptr, run.refusal)) return false;
  if (__builtin_expect(run.tell != nullptr, 0)) run.tell(run, kernel, AOTI_KERNEL_END);
  return true;
}

AOTI_NAMESPACE_END
