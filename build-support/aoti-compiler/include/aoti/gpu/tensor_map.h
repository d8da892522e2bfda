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
  // What is brought of the tile that begins at `outer`, piece by piece.
  template <int Outers> struct Tile {
    const Mapped &from;
    I outer;
    AOTI_INLINE void bring(u32 to, u32 barrier, I depth) const { from.bring<Outers>(to, barrier, outer, depth); }
  };
  template <int Outers> AOTI_INLINE Tile<Outers> tile(I outer) const { return {*this, outer}; }
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

// The pixels that a convolution adds up, for threads, and their map: the depth runs over taps and the channels of each, and a piece
// of it is of one tap. Axes: spatial ones.
template <class T, class I, int Axes> struct MappedPixels {
  using Element = T;
  static constexpr bool kByOuter = false;
  WidePixels<T, I> matrix;
  const TensorMap &map;

#if AOTI_WARPGROUPS
  // What is brought of the tile that begins at an output pixel: where its first tap lies along each axis, the last one first, and
  // its image.
  template <int Outers> struct Tile {
    const ConvSizes<I> &sizes;
    const TensorMap &map;
    i32 start[3], image;

    AOTI_INLINE void bring(u32 to, u32 barrier, I depth) const {
      const I tap = depth / sizes.in_channels;
      const i32 channel = i32(depth - tap * sizes.in_channels);
      const u16 x = u16(tap % sizes.kernel[2] * sizes.dilation[2]), y = u16(tap / sizes.kernel[2] % sizes.kernel[1] * sizes.dilation[1]);
      const u16 z = u16(tap / sizes.kernel[2] / sizes.kernel[1] * sizes.dilation[0]);
#define AOTI_BRING(DIMENSIONS, COORDINATES, REACH, ...)                                                                          \
  __asm__ volatile("cp.async.bulk.tensor." DIMENSIONS                                                                           \
                   ".shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, " COORDINATES "}], [%2], {" REACH \
                   "};" ::"r"(to),                                                                                              \
                   "l"(&map), "r"(barrier), "r"(channel), __VA_ARGS__                                                           \
                   : "memory")
      if constexpr (Axes == 1)
        AOTI_BRING("3d", "%4, %5", "%6", "r"(start[0]), "r"(image), "h"(x));
      else if constexpr (Axes == 2)
        AOTI_BRING("4d", "%4, %5, %6", "%7, %8", "r"(start[0]), "r"(start[1]), "r"(image), "h"(x), "h"(y));
      else
        AOTI_BRING("5d", "%4, %5, %6, %7", "%8, %9, %10", "r"(start[0]), "r"(start[1]), "r"(start[2]), "r"(image), "h"(x), "h"(y),
                   "h"(z));
#undef AOTI_BRING
    }
  };
  template <int Outers> AOTI_INLINE Tile<Outers> tile(I outer) const {
    const ConvSizes<I> &sizes = matrix.sizes;
    Tile<Outers> tile = {sizes, map, {}, i32(outer / (sizes.out[0] * sizes.out[1] * sizes.out[2]))};
    I rest = outer;
    AOTI_UNROLL_TIMES(3)
    for (int d = 0; d < 3; ++d) {
      tile.start[d] = i32(rest % sizes.out[2 - d] * sizes.stride[2 - d] - sizes.padding[2 - d]);
      rest = rest / sizes.out[2 - d];
    }
    return tile;
  }
#endif
};

AOTI_NAMESPACE_END
