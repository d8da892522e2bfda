// Calls of functions of the user's project: tensors as the C interface has them, and what a function says went wrong.
// Knows nothing of what the functions compute.
#pragma once

#include "run.h"

AOTI_NAMESPACE_BEGIN

static_assert(sizeof(AotiError) <= 320, "the plan of a run keeps so many bytes for one");

// A whole tensor of the run.
AOTI_INLINE AotiTensor tensor(const void *data, i32 dtype, i32 rank, const i64 *sizes) {
  return {const_cast<void *>(data), sizes, nullptr, rank, dtype, {AOTI_CPU, 0}};
}

// What a function changes is a copy.
AOTI_INLINE void copy_bytes(void *to, const void *from, i64 bytes) {
  if (bytes > 0) __builtin_memcpy(to, from, size_t(bytes));
}

// The place for what a function reports, before it is called.
AOTI_INLINE AotiError *cleared(u8 *report) {
  AotiError *error = (AotiError *)report;
  error->code = AOTI_OK;
  error->message[0] = 0;
  return error;
}

// Keeps what a function gave back, with a message that ends.
AOTI_INLINE void reported(AotiError *error, i32 status) {
  error->code = status;
  error->message[AOTI_MESSAGE_BYTES - 1] = 0;
}

AOTI_NAMESPACE_END
