// What the ranks of a group compute together: a run hands it to the caller's communicator.
// Knows neither the run nor who the other ranks are.
#pragma once

#include "abi.h"
#include "base.h"

AOTI_NAMESPACE_BEGIN

// A collective as the program states it, with blocks counted in elements.
struct Stated {
  i32 kind, reduction, dtype, ranks, root;
  const char *group;
  i64 given, made;
  const i64 *send, *receive; // null, or as many as there are ranks
};

// Asks a communicator. Gives whether the ranks did it; if not, `error` says why.
AOTI_INLINE bool ask(const AotiCommunicator &communicator, const Stated &stated, const void *input, void *output,
                     AotiDevice device, void *stream, AotiError *error) {
  const AotiCollective call = {stated.kind,  stated.reduction, stated.dtype, stated.ranks,   stated.root,
                               device,       stated.group,     input,        stated.given,   output,
                               stated.made,  stated.send,      stated.receive, stream};
  error->code = AOTI_OK, error->message[0] = 0;
  error->code = communicator.exchange(communicator.arg, &call, error);
  error->message[AOTI_MESSAGE_BYTES - 1] = 0;
  return error->code == AOTI_OK;
}

AOTI_NAMESPACE_END
