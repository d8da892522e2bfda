// Dense linear algebra, one matrix at a time: the umbrella of the linalg_*.h headers, and the loop over a batch of matrices.
// The reference evaluator (`interpret/matrices`) does the same operations in the same order.
#pragma once

#include "linalg_eigen.h"
#include "linalg_factor.h"
#include "linalg_orthogonal.h"
#include "linalg_mode.h"
#include "linalg_team.h"
#include "math.h"
#include "vec.h"
#if AOTI_GPU
#include "gpu/run.h"
#else
#include "run.h"
#endif

AOTI_NAMESPACE_BEGIN

// Routine::one(u, m, n, work, tensors...) computes matrix u of a batch, a thread each. `work` has Bytes bytes, of the worker, or on
// GPUs of the matrix.
template <class Routine, class... Tensors>
AOTI_INLINE void matrices(const Run &run, char *scratch, i64 bytes, i64 batch, i64 m, i64 n, Tensors... tensors) {
  parallel(run, batch, grain(run, 16384, m * m * n + m * n * n), [&](i64 begin, i64 end, i64 worker) {
    for (i64 u = begin; u < end; ++u) {
#if AOTI_GPU
      worker = u;
#endif
      Routine::template one<linalg::Alone>(u, m, n, scratch + worker * bytes, tensors...);
    }
  });
}

#if AOTI_GPU
// As matrices(), a block each.
template <class Routine, class... Tensors>
AOTI_INLINE void matrices_of_blocks(const Run &, char *scratch, i64 bytes, i64 batch, i64 m, i64 n, Tensors... tensors) {
  for (i64 u = block_index(); u < batch; u += block_count())
    Routine::template one<linalg::Block>(u, m, n, scratch + u * bytes, tensors...);
}
#endif

AOTI_NAMESPACE_END
