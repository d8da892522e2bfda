// Products of halves and of f32 as TF32 on matrix units by warpgroups with roles (roles.h): a thread has the copy engine bring pieces of both
// operands into a ring, two warpgroups multiply them, each 64 rows of the tile. While these finish a tile, the first pieces of the
// block's next tile are on their way. Where there are few tiles, the blocks of a cluster share the depth of one, and add up their sums by way
// of each other's shared memory (cluster.h). Where there are no such roles, all threads of a block do as in units.h.
#pragma once

#include "tensor_map.h"
#include "units.h"

AOTI_NAMESPACE_BEGIN

// The tile that a block comes to: those of blocks that run at a time are of as many rows as columns, about, so that what they read is
// little and stays in the cache that all blocks share. Rows of tiles come in groups of kTall, tiles of a group from top to bottom.
template <class I> struct TilePlace {
  static constexpr I kTall = 16;
  I row, column, batch;
  AOTI_INLINE TilePlace(I unit, I across, I down) {
    const I own = unit % (across * down), group = own / (across * kTall), left = down - group * kTall, within = own % (across * kTall);
    const I tall = left < kTall ? left : kTall;
    row = group * kTall + within % tall, column = within / tall, batch = unit / (across * down);
  }
};

namespace detail {

#if AOTI_WARPGROUPS

// Floats between rows of a warp's columns, beside those, and floats of its 16 rows.
constexpr int kSpanPitch = kSpan + kResultPad, kSpanFloats = 16 * kSpanPitch;

// A piece of an operand in the ring.
template <int Outers, class Source> struct BroughtPiece {
  static constexpr bool kByOuter = Source::kByOuter;
  static constexpr int kDepth = 128 / int(sizeof(typename Source::Element)), kBytes = Outers * 128;
};

// The part of the thread that has pieces brought.
template <int Rows, int Columns, class I, class A, class B>
AOTI_INLINE void bring_pieces(PieceRing &ring, u32 shared, I row0, I column0, I begin, I end, const A &a, const B &b) {
  using PieceA = BroughtPiece<Rows, A>;
  using PieceB = BroughtPiece<Columns, B>;
  constexpr int kBytes = PieceA::kBytes + PieceB::kBytes;
  const auto left = a.template tile<Rows>(row0);
  const auto right = b.template tile<Columns>(column0);
  AOTI_UNROLL_TIMES(1)
  for (I depth = begin; depth < end; depth += PieceA::kDepth, ++ring.used) {
    ring.pieces.wait_until_free(ring.used);
    const u32 to = shared + ring.used % kPiecePlaces * kBytes, barrier = ring.pieces.full(ring.used);
    ring.pieces.expect(ring.used, kBytes);
    left.bring(to, barrier, depth);
    right.bring(to + PieceA::kBytes, barrier, depth);
  }
}

// The sums of a thread in one span. Registers have no index: each span has stores of its own, of which those of one are taken.
template <int Span = 0, int N> AOTI_INLINE void store_span(const f32 (&sums)[N], int span, f32 *to) {
  constexpr int count = kSpan / 2, first = Span * count;
  if (span == Span) {
    // Else the compiler makes all spans one, with an index.
    __asm__ volatile("// sums from %0 on" ::"n"(first));
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < count; i += 2) {
      const Chunk<f32, 2> pair = {{sums[first + i], sums[first + i + 1]}};
      *(Chunk<f32, 2> *)(to + i / 2 % 2 * 8 * kSpanPitch + i / 4 * 8) = pair;
    }
  }
  if constexpr (first + count < N) store_span<Span + 1>(sums, span, to);
}

// The sums of a warp: those of a few columns at a time by way of `own`, so that epilogues read and write neighbours.
template <int Columns, int Lanes, class I, class Epilogue>
AOTI_INLINE void finish_rows(const f32 (&sums)[Columns / 2], f32 *own, I row0, I column0, I m, I n, const Epilogue &epilogue) {
  const int lane = thread_index() % 32;
  // Of narrow ones several are on their way: there are few warps that could hide how long each takes.
  constexpr int kAll = 16 * (kSpan / Lanes), kAtOnce = Lanes < 4 ? 4 : 1;
  static_assert(kAll % (32 * kAtOnce) == 0);
  AOTI_UNROLL_TIMES(1)
  for (int span = 0; span < Columns / kSpan; ++span) {
    warp_barrier();
    store_span(sums, span, own + lane / 4 * kSpanPitch + lane % 4 * 2);
    warp_barrier();
    AOTI_UNROLL_TIMES(1)
    for (int first = lane; first < kAll; first += 32 * kAtOnce)
      AOTI_UNROLL_TIMES(4)
      for (int u = 0; u < kAtOnce; ++u) {
        const int i = first + u * 32, row = i / (kSpan / Lanes), column = i % (kSpan / Lanes) * Lanes;
        finish<f32, Lanes>(I(row0 + row), I(column0 + span * kSpan + column), m, n, own + row * kSpanPitch + column, epilogue);
      }
  }
}

// The sums of a warp whose columns are interleaved: each thread has neighbours, which nobody has to hand it.
template <int Columns, int Lanes, class I, class Epilogue>
AOTI_INLINE void finish_neighbours(const f32 (&sums)[Columns / 2], I row0, I column0, I m, I n, const Epilogue &epilogue) {
  const int lane = thread_index() % 32;
  const I row = row0 + lane / 4, column = column0 + lane % 4 * kNeighbours;
  // Unrolled, so that what the epilogue reads for some columns is on its way while it computes others.
  AOTI_UNROLL_TIMES(8)
  for (int span = 0; span < Columns / kSpan; ++span) {
    AOTI_UNROLL_TIMES(2)
    for (int h = 0; h < 2; ++h)
      AOTI_UNROLL_TIMES(2)
      for (int c = 0; c < kNeighbours; c += Lanes) {
        f32 own[Lanes];
        AOTI_UNROLL_TIMES(8)
        for (int e = 0; e < Lanes; ++e) own[e] = sums[span * (kSpan / 2) + (c + e) / 2 * 4 + h * 2 + (c + e) % 2];
        Vec<f32, Lanes> lanes;
        __builtin_memcpy(&lanes, own, sizeof lanes);
        // Columns are whole spans.
        if (row + h * 8 < m && column + span * kSpan < n) epilogue(I(row + h * 8), I(column + span * kSpan + c), Full<Lanes>{}, lanes);
      }
  }
}
template <class Source> constexpr bool is_interleaved = false;
template <class T, class I> constexpr bool is_interleaved<Interleaved<T, I>> = true;

// The sums of the blocks of a cluster, each of which has those of a part of the depth: every block finishes some rows of them. The ring is
// free for them, as what is in it is multiplied and the thread that has pieces brought is waiting too.
template <int Rows, int Columns, int Lanes, int Blocks, class I, class Sums, class Epilogue>
AOTI_INLINE void finish_together(const Sums &own, f32 *results, I row0, I column0, I m, I n, const Epilogue &epilogue) {
  using Together = Cluster<Blocks>;
  constexpr int kAcross = Columns / Lanes;
  // Both warpgroups have multiplied the last piece.
  __asm__ volatile("bar.sync 1, %0;" ::"n"(kComputers) : "memory");
  own.template store<Rows>(results, 0);
  Together::meet();
  constexpr int kAll = Rows * kAcross / (Blocks * kComputers), kMany = kAll % 2 == 0 ? 2 : 1;
  static_assert(kAll * Blocks * kComputers == Rows * kAcross);
  AOTI_UNROLL_TIMES(1)
  for (int step = 0; step < kAll; step += kMany) {
    int rows[kMany], columns[kMany];
    f32 *places[kMany];
    AOTI_UNROLL_TIMES(2)
    for (int p = 0; p < kMany; ++p) {
      const int i = ((step + p) * Blocks + Together::rank()) * kComputers + thread_index();
      rows[p] = i / kAcross, columns[p] = i % kAcross * Lanes, places[p] = results + rows[p] * (Columns + kResultPad) + columns[p];
    }
    Together::template add_up_all<Lanes>(places);
    AOTI_UNROLL_TIMES(2)
    for (int p = 0; p < kMany; ++p) finish<f32, Lanes>(I(row0 + rows[p]), I(column0 + columns[p]), m, n, places[p], epilogue);
  }
  // The copy engine may write there again.
  show_to_units();
  Together::part();
}

// The part of those that multiply what is brought.
template <class T, int Rows, int Columns, int Lanes, int Blocks, class I, class A, class B, class Epilogue>
AOTI_INLINE void multiply_pieces(PieceRing &ring, char *shared, I row0, I column0, I m, I n, I begin, I end, const Epilogue &epilogue) {
  using PieceA = BroughtPiece<Rows, A>;
  using PieceB = BroughtPiece<Columns, B>;
  constexpr int kBytes = PieceA::kBytes + PieceB::kBytes;
  const u32 address = shared_address(shared);
  GroupSums<T, Rows, Columns, kComputers, PieceA, PieceB> own;
  own.clear();
  AOTI_UNROLL_TIMES(1)
  for (I depth = begin; depth < end; depth += PieceA::kDepth, ++ring.used) {
    ring.pieces.wait_until_full(ring.used);
    const u32 left = address + ring.used % kPiecePlaces * kBytes;
    own.multiply_piece(left, left + PieceA::kBytes);
    // The piece before is multiplied.
    if (depth > begin) ring.pieces.give_back(ring.used - 1);
  }
  own.finish();
  if (end > begin) ring.pieces.give_back(ring.used - 1);
  const int warp = thread_index() / 32;
  const I first = row0 + warp * 16;
  if constexpr (Blocks > 1)
    finish_together<Rows, Columns, Lanes, Blocks>(own, (f32 *)shared, row0, column0, m, n, epilogue);
  else if constexpr (is_interleaved<B>)
    finish_neighbours<Columns, Lanes>(own.sums, first, column0, m, n, epilogue);
  else
    finish_rows<Columns, Lanes>(own.sums, (f32 *)(shared + kPiecePlaces * kBytes) + warp * kSpanFloats, first, column0, m, n, epilogue);
}

#endif
} // namespace detail

// The sums of rows [row0, row0 + Rows) and columns [column0, column0 + Columns), by the threads of a block, each in its role.
// epilogue(row, column, lanes, sums) once for each Lanes neighbouring columns, or each one at the border. Neighbouring Blocks share the
// depth. A launch has the shared memory of a ring of pieces and, behind it, of the few columns that warps finish at a time.
template <class T, int Rows, int Columns, int Lanes, int Blocks = 1, class Role, class I, class A, class B, class Epilogue>
AOTI_INLINE void contract_brought(Role &role, I row0, I column0, I m, I n, I k, const A &a, const B &b, const Epilogue &epilogue) {
#if AOTI_WARPGROUPS
  using namespace detail;
  using Together = Cluster<Blocks>;
  static_assert(Rows == kComputers / 2);
  static_assert(Blocks == 1 || (!is_interleaved<B> && Rows * (Columns + kResultPad) * 4 <= kPiecePlaces * (Rows + Columns) * 128));
  AOTI_DYNAMIC_SHARED(shared);
  constexpr int kDepth = BroughtPiece<Rows, A>::kDepth;
  const int pieces = int((k + kDepth - 1) / kDepth);
  const I begin = I(Together::begin(pieces)) * kDepth, last = I(Together::end(pieces)) * kDepth, end = last < k ? last : k;
  if constexpr (is_copier<Role>) {
    if (thread_index() == kComputers) bring_pieces<Rows, Columns>(role.rings, shared_address(shared), row0, column0, begin, end, a, b);
    // Those that add up meet all threads of all blocks, before and after.
    if constexpr (Blocks > 1) {
      warp_barrier();
      Together::meet();
      Together::part();
    }
  } else {
    multiply_pieces<T, Rows, Columns, Lanes, Blocks, I, A, B>(role.rings, shared, row0, column0, m, n, begin, end, epilogue);
  }
#else
  (void)role;
  contract_units<T, Rows, Columns, kComputers, Lanes, Blocks>(row0, column0, m, n, k, a.matrix, b.matrix, epilogue);
#endif
}

AOTI_NAMESPACE_END
