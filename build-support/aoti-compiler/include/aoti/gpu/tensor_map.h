// Matrices as the copy engine of a multiprocessor reads them ("TMA"): a map of a tensor, which the driver makes when a kernel is
// launched, and copies of boxes of it to shared memory, which come in the layout that matrix units want. sm_90a by nvcc; elsewhere
// kernels get maps that say nothing, and threads copy.
#pragma once

#include "operands.h"
#include "roles.h"

AOTI_NAMESPACE_BEGIN

// CUtensorMap, whose words only the driver and the copy engine understand.
struct alignas(64) TensorMap {
  u64 words[16];
};

// As a kernel gets one: where the copy engine finds it, instead of a copy of each thread.
#if AOTI_WARPGROUPS
#define AOTI_TENSOR_MAP const __attribute__((grid_constant)) TensorMap
#else
#define AOTI_TENSOR_MAP const TensorMap
#endif

// A matrix among several of a tensor, for threads, and its map: where it lies there, along the axes behind the first two.
template <class T, class I, bool ByDepth, int Batches> struct Mapped {
  using Element = T;
  static constexpr bool kByOuter = !ByDepth;
  Strided<T, I, ByDepth> matrix;
  const TensorMap &map;
  I batch[Batches == 0 ? 1 : Batches];

#if AOTI_WARPGROUPS
  // Outers by one piece of the depth, from (outer, depth) on, in blocks of rows of 128 bytes; zero outside. Boxes of a map are as
  // large as a block. `barrier` counts their bytes.
  template <int Outers> AOTI_INLINE void bring(u32 to, u32 barrier, I outer, I depth) const {
    constexpr int row = 128 / int(sizeof(T));
    if constexpr (ByDepth) {
      bring_box(to, barrier, depth, outer);
    } else {
      AOTI_UNROLL_TIMES(4)
      for (int o = 0; o < Outers; o += row) bring_box(to + u32(o / row * (row * 128)), barrier, I(outer + o), depth);
    }
  }

private:
  AOTI_INLINE void bring_box(u32 to, u32 barrier, I x, I y) const {
#define AOTI_BRING(DIMENSIONS, COORDINATES, ...)                                                                                \
  __asm__ volatile("cp.async.bulk.tensor." DIMENSIONS                                                                           \
                   ".shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4" COORDINATES "}], [%2];" ::"r"(to),  \
                   "l"(&map), "r"(barrier), "r"(i32(x)), "r"(i32(y)) __VA_ARGS__                                                \
                   : "memory")
    static_assert(Batches <= 3);
    if constexpr (Batches == 0)
      AOTI_BRING("2d", "", );
    else if constexpr (Batches == 1)
      AOTI_BRING("3d", ", %5", , "r"(i32(batch[0])));
    else if constexpr (Batches == 2)
      AOTI_BRING("4d", ", %5, %6", , "r"(i32(batch[0])), "r"(i32(batch[1])));
    else
      AOTI_BRING("5d", ", %5, %6, %7", , "r"(i32(batch[0])), "r"(i32(batch[1])), "r"(i32(batch[2])));
#undef AOTI_BRING
  }
#endif
};

AOTI_NAMESPACE_END
