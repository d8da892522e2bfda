// Products of a few rows of halves with weights that are read once: matrix units of NVIDIA (sm_80 and later) multiply what each
// thread copies from device memory for itself. Elsewhere the sums are those of contract.h.
//
// The weights are the instruction's left operand, so that 16 of its rows are columns of the product and 8 of its columns the
// few rows. Which of the depth an instruction multiplies is of no matter as long as both operands have the same: each
// thread takes 16 bytes of weights as they lie in memory, of as many depths as those are, where the instruction's own order
// would take 2.
#pragma once

#include "contract.h"
#include "mma.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

constexpr int kSkinnyThreads = 256, kSkinnyColumns = 16;

#if AOTI_COPIES

// Two numbers as halves of a word.
template <class T> AOTI_INLINE u32 pair_of(f32 low, f32 high) {
  return is_same<T, bf16> ? to_bf16s(low, high) : to_f16s(low, high);
}

// What a thread copied of weights, as halves that matrix units multiply, two in a word.
template <class T, class W> AOTI_INLINE void halves_of(const SixteenBytes &piece, u32 *words) {
  constexpr int N = 16 / sizeof(W);
  if constexpr (is_same<W, T>) {
    __builtin_memcpy(words, &piece, sizeof piece);
  } else {
    f32 wide[N];
    unpack<W, N>(piece, wide);
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < N / 2; ++i) words[i] = pair_of<T>(wide[2 * i], wide[2 * i + 1]);
  }
}

// Pieces of weights that are on their way to a thread, of two columns each, and slots for them.
constexpr int kSkinnyAhead = 3, kSkinnySlots = kSkinnyAhead + 1;

// The weights of a warp's columns: its threads have two columns each, and a quarter of the depth of each step.
template <class I, class W> struct SkinnyWeights {
  static constexpr int N = 16 / sizeof(W), kStep = 4 * N, kWarps = kSkinnyThreads / 32;
  const W *next[2];
  // Depths from the next piece to the end.
  I left;
  SixteenBytes *slots;

  AOTI_INLINE SkinnyWeights(const Strided<W, I, true> &b, I column0, I n, I k, SixteenBytes *slots) : slots(slots + thread_index()) {
    const I depth = thread_index() / 32 * kStep + thread_index() % 4 * N;
    left = k - depth;
    AOTI_UNROLL_TIMES(2)
    for (int h = 0; h < 2; ++h) {
      const I column = column0 + thread_index() % 32 / 4 + h * 8;
      next[h] = b.element(column < n ? column : n - 1, depth);
    }
  }
  // The pieces of the next step, zeros behind the end.
  AOTI_INLINE void copy(int slot) {
    AOTI_UNROLL_TIMES(2)
    for (int h = 0; h < 2; ++h) {
      copy_ahead(shared_address(slots + (slot * 2 + h) * kSkinnyThreads), next[h], left > 0 ? 16 : 0);
      next[h] += kWarps * kStep;
    }
    left -= kWarps * kStep;
    commit_copies();
  }
  AOTI_INLINE SixteenBytes take(int slot, int h) const { return slots[(slot * 2 + h) * kSkinnyThreads]; }
};

// The rows as a thread multiplies them: a quarter of a step's depth of one of each eight.
template <int Groups, int Parts> struct SkinnyRows {
  SixteenBytes at[Groups][Parts];

  // Those from a depth on; zeros behind the end and below the last row.
  template <class T, class I> AOTI_INLINE void read(const Strided<T, I, true> &a, I depth, I m, I k) {
    AOTI_UNROLL_TIMES(2)
    for (int g = 0; g < Groups; ++g) {
      const I row = g * 8 + thread_index() % 32 / 4;
      const auto *from = (const SixteenBytes *)a.element(row, depth);
      AOTI_UNROLL_TIMES(2)
      for (int part = 0; part < Parts; ++part) at[g][part] = row < m && depth < k ? from[part] : SixteenBytes{};
    }
  }
};

// The sums of the warps of a block, each of a part of the depth, to an epilogue: sum(group, number) is one of a thread, which has two
// columns of two rows of each group of eight. By way of shared memory that nobody reads any more.
template <int Rows, class I, class Get, class Epilogue>
AOTI_INLINE void finish_few(f32 *parts, const Get &sum_of, I column0, I m, I n, const Epilogue &epilogue) {
  constexpr int kWarps = kSkinnyThreads / 32;
  const int warp = thread_index() / 32, lane = thread_index() % 32;
  barrier();
  // As [warp, row, column].
  AOTI_UNROLL_TIMES(2)
  for (int g = 0; g < Rows / 8; ++g)
    AOTI_UNROLL_TIMES(4)
    for (int e = 0; e < 4; ++e)
      parts[(warp * Rows + g * 8 + lane % 4 * 2 + e % 2) * kSkinnyColumns + lane / 4 + e / 2 * 8] = sum_of(g, e);
  barrier();
  const int row = thread_index() / kSkinnyColumns, column = thread_index() % kSkinnyColumns;
  if (row >= Rows || row >= m || column0 + column >= n) return;
  f32 sum = 0;
  AOTI_UNROLL_TIMES(8)
  for (int w = 0; w < kWarps; ++w) sum += parts[(w * Rows + row) * kSkinnyColumns + column];
  epilogue(I(row), I(column0 + column), Full<1>{}, Vec<f32, 1>{sum});
}

// Sums of a block: its warps share the depth, step by step.
template <class T, int Rows, bool Early, class I, class W, class Epilogue>
AOTI_INLINE void contract_skinny_units(I column0, I m, I n, I k, const Strided<T, I, true> &a, const Strided<W, I, true> &b,
                                       const Epilogue &epilogue) {
  using Weights = SkinnyWeights<I, W>;
  constexpr int N = Weights::N, kWarps = Weights::kWarps, kGroups = Rows / 8;
  AOTI_SHARED SixteenBytes slots[kSkinnySlots * 2 * kSkinnyThreads];
  static_assert(sizeof slots >= sizeof(f32) * kWarps * kSkinnyColumns * Rows);
  const int lane = thread_index() % 32, warp = thread_index() / 32;
  const I steps = ceil_div(k, I(Weights::kStep));
  f32 sums[kGroups][4] = {};
  // The sums of the block's last tile are read from where pieces come to.
  barrier();
  Weights weights(b, column0, n, k, slots);
  AOTI_UNROLL_TIMES(8)
  for (int i = 0; i < kSkinnyAhead; ++i) weights.copy(i);
  if constexpr (Early) let_next_kernel_come(), begin_kernel();
  // Rows are read a step ahead: they come from a cache, but not at once.
  SkinnyRows<kGroups, N / 8> rows, next;
  const I depth = lane % 4 * N;
  next.read(a, I(warp * Weights::kStep + depth), m, k);
  int slot = 0;
  AOTI_UNROLL_TIMES(1)
  for (I step = warp; step < steps; step += kWarps) {
    rows = next;
    next.read(a, I((step + kWarps) * Weights::kStep + depth), m, k);
    wait_for_copies<kSkinnyAhead - 1>();
    u32 left[2][N / 2];
    AOTI_UNROLL_TIMES(2)
    for (int h = 0; h < 2; ++h) halves_of<T, W>(weights.take(slot, h), left[h]);
    weights.copy((slot + kSkinnyAhead) % kSkinnySlots);
    slot = (slot + 1) % kSkinnySlots;
    AOTI_UNROLL_TIMES(4)
    for (int i = 0; i < N / 4; ++i) {
      const u32 own[4] = {left[0][2 * i], left[1][2 * i], left[0][2 * i + 1], left[1][2 * i + 1]};
      AOTI_UNROLL_TIMES(2)
      for (int g = 0; g < kGroups; ++g) multiply<T>(sums[g], own, rows.at[g][i / 2].words + i % 2 * 2);
    }
  }
  wait_for_copies<0>();
  finish_few<Rows>((f32 *)slots, [&](int g, int e) { return sums[g][e]; }, column0, m, n, epilogue);
}

#endif

} // namespace detail

// The sums of all rows, `Rows` at most, and of 16 columns from column0 on. Rows of A and columns of B are contiguous, begin at
// multiples of 16 bytes and end at such. Where B does not depend on earlier kernels (`Early`), it is on its way before the kernel begins.
template <class T, int Rows, bool Early = false, class I, class A, class B, class Epilogue>
AOTI_INLINE void contract_skinny(I column0, I m, I n, I k, const A &a, const B &b, const Epilogue &epilogue) {
  static_assert(A::order == Order::kDepth && B::order == Order::kDepth && (Rows == 8 || Rows == 16));
#if AOTI_COPIES
  detail::contract_skinny_units<T, Rows, Early>(column0, m, n, k, a, b, epilogue);
#else
  if constexpr (Early) let_next_kernel_come(), begin_kernel();
  contract<f32, 16, detail::kSkinnyColumns, detail::kSkinnyThreads, 4>(I(0), column0, m, n, k, a, b, epilogue);
#endif
}

AOTI_NAMESPACE_END
