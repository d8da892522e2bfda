// Products of half-precision matrices on the matrix units of NVIDIA GPUs (sm_80 and later), sums in f32: tiles of 128 by
// 128, operands in any layout, the next piece of both on its way while the present one is multiplied. Elsewhere the sums
// are those of contract.h.
#pragma once

#include "contract.h"

AOTI_NAMESPACE_BEGIN

// Element (outer, depth) is at pointer[outer * outer_stride + depth * depth_stride].
template <class T, class I> struct HalfOperand {
  const T *pointer;
  I outer_stride, depth_stride;
};

#if AOTI_NVIDIA
namespace detail {

constexpr int kMmaTile = 128, kMmaDepth = 32;
// Rows of shared memory are padded, so that eight of them lie in different banks.
constexpr int kByDepthPitch = kMmaDepth + 8, kByOuterPitch = kMmaTile + 8;
constexpr int kMmaShared = kMmaTile * kByDepthPitch;

struct Eight {
  u32 words[4];
};
struct alignas(16) EightAligned {
  u32 words[4];
} __attribute__((may_alias));

AOTI_INLINE u32 shared_address(const void *p) {
  u32 address;
  __asm__("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(address) : "l"(p));
  return address;
}
template <bool Turned> AOTI_INLINE void load_matrices(u32 *r, const u16 *p) {
  const u32 address = shared_address(p);
  if constexpr (Turned)
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address));
  else
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address));
}
template <class T> AOTI_INLINE void multiply(f32 *c, const u32 *a, const u32 *b) {
  if constexpr (is_same<T, bf16>)
    __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Chunk `number` of 512 of a piece of an operand: eight elements along the depth, or along the outer axis where that is
// contiguous; zero outside.
template <class T, class I>
AOTI_INLINE Eight load_eight(const HalfOperand<T, I> &x, bool by_outer, int number, I outer0, I outers, I depth0, I depths) {
  const I outer = outer0 + (by_outer ? number % 16 * 8 : number / 4);
  const I depth = depth0 + (by_outer ? number / 16 : number % 4 * 8);
  const T *p = x.pointer + (outer * x.outer_stride + depth * x.depth_stride);
  const I step = by_outer ? x.outer_stride : x.depth_stride;
  const I left = by_outer ? (depth < depths ? outers - outer : I(0)) : (outer < outers ? depths - depth : I(0));
  Eight eight = {};
  if (left >= 8 && step == 1 && uintptr_t(p) % 16 == 0) {
    EightAligned whole = *(const EightAligned *)p;
    __builtin_memcpy(&eight, &whole, sizeof eight);
  } else {
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < 8; ++i)
      if (i < left) eight.words[i / 2] |= u32(p[i * step].bits) << (i % 2 * 16);
  }
  return eight;
}
AOTI_INLINE void store_eight(u16 *tile, bool by_outer, int number, Eight eight) {
  u16 *p = by_outer ? tile + number / 16 * kByOuterPitch + number % 16 * 8 : tile + number / 4 * kByDepthPitch + number % 4 * 8;
  EightAligned whole;
  __builtin_memcpy(&whole, &eight, sizeof eight);
  *(EightAligned *)p = whole;
}

} // namespace detail
#endif

// The sums of rows [row0, row0 + 128) and columns [column0, column0 + 128), by the 256 threads of a block.
// epilogue(row, column, lanes, sums) once for each one or two neighbouring columns.
template <class T, class I, class Epilogue>
AOTI_INLINE void contract_halves(I row0, I column0, I m, I n, I k, HalfOperand<T, I> a, HalfOperand<T, I> b,
                                 const Epilogue &epilogue) {
#if AOTI_NVIDIA
  using namespace detail;
  alignas(16) AOTI_SHARED u16 tile_a[kMmaShared];
  alignas(16) AOTI_SHARED u16 tile_b[kMmaShared];
  const int thread = thread_index(), warp = thread / 32, lane = thread % 32;
  const bool a_by_outer = a.outer_stride == 1 && a.depth_stride != 1, b_by_outer = b.outer_stride == 1 && b.depth_stride != 1;
  const int own_row = warp % 2 * 64, own_column = warp / 2 * 32;
  f32 sums[4][4][4];
  AOTI_UNROLL_TIMES(4)
  for (int i = 0; i < 4; ++i)
    AOTI_UNROLL_TIMES(4)
    for (int j = 0; j < 4; ++j)
      AOTI_UNROLL_TIMES(4)
      for (int e = 0; e < 4; ++e) sums[i][j][e] = 0;
  Eight next_a[2], next_b[2];
  AOTI_UNROLL_TIMES(2)
  for (int i = 0; i < 2; ++i) {
    next_a[i] = load_eight(a, a_by_outer, thread + i * 256, row0, m, I(0), k);
    next_b[i] = load_eight(b, b_by_outer, thread + i * 256, column0, n, I(0), k);
  }
  for (I d0 = 0; d0 < k; d0 += kMmaDepth) {
    AOTI_UNROLL_TIMES(2)
    for (int i = 0; i < 2; ++i) {
      store_eight(tile_a, a_by_outer, thread + i * 256, next_a[i]);
      store_eight(tile_b, b_by_outer, thread + i * 256, next_b[i]);
    }
    barrier();
    if (d0 + kMmaDepth < k) {
      AOTI_UNROLL_TIMES(2)
      for (int i = 0; i < 2; ++i) {
        next_a[i] = load_eight(a, a_by_outer, thread + i * 256, row0, m, I(d0 + kMmaDepth), k);
        next_b[i] = load_eight(b, b_by_outer, thread + i * 256, column0, n, I(d0 + kMmaDepth), k);
      }
    }
    AOTI_UNROLL_TIMES(2)
    for (int d = 0; d < kMmaDepth; d += 16) {
      u32 left[4][4], right[4][2];
      AOTI_UNROLL_TIMES(4)
      for (int i = 0; i < 4; ++i) {
        if (a_by_outer)
          load_matrices<true>(left[i], tile_a + (d + lane % 8 + lane / 16 * 8) * kByOuterPitch + own_row + i * 16 + lane / 8 % 2 * 8);
        else
          load_matrices<false>(left[i], tile_a + (own_row + i * 16 + lane % 16) * kByDepthPitch + d + lane / 16 * 8);
      }
      AOTI_UNROLL_TIMES(2)
      for (int j = 0; j < 4; j += 2) {
        u32 pair[4];
        if (b_by_outer)
          load_matrices<true>(pair, tile_b + (d + lane % 8 + lane / 8 % 2 * 8) * kByOuterPitch + own_column + j * 8 + lane / 16 * 8);
        else
          load_matrices<false>(pair, tile_b + (own_column + j * 8 + lane / 16 * 8 + lane % 8) * kByDepthPitch + d + lane / 8 % 2 * 8);
        right[j][0] = pair[0], right[j][1] = pair[1], right[j + 1][0] = pair[2], right[j + 1][1] = pair[3];
      }
      AOTI_UNROLL_TIMES(4)
      for (int i = 0; i < 4; ++i)
        AOTI_UNROLL_TIMES(4)
        for (int j = 0; j < 4; ++j) multiply<T>(sums[i][j], left[i], right[j]);
    }
    barrier();
  }
  AOTI_UNROLL_TIMES(4)
  for (int i = 0; i < 4; ++i)
    AOTI_UNROLL_TIMES(4)
    for (int j = 0; j < 4; ++j)
      AOTI_UNROLL_TIMES(2)
      for (int h = 0; h < 2; ++h) {
        const I row = row0 + own_row + i * 16 + h * 8 + lane / 4, column = column0 + own_column + j * 8 + lane % 4 * 2;
        if (row < m && column + 2 <= n)
          epilogue(row, column, Full<2>{}, Vec<f32, 2>{{sums[i][j][h * 2]}, {sums[i][j][h * 2 + 1]}});
        else if (row < m && column < n)
          epilogue(row, column, Full<1>{}, Vec<f32, 1>{sums[i][j][h * 2]});
      }
#else
  for (I r = 0; r < 128; r += 64)
    for (I c = 0; c < 128; c += 64)
      contract<f32, 64, 64, true, true>(
          I(row0 + r), I(column0 + c), m, n, k,
          [&](I row, I depth) { return to_f32(a.pointer[row * a.outer_stride + depth * a.depth_stride]); },
          [&](I depth, I column) { return to_f32(b.pointer[column * b.outer_stride + depth * b.depth_stride]); }, epilogue);
#endif
}

AOTI_NAMESPACE_END
