// Warpgroups with roles: one brings tiles to shared memory, the others compute ("warp specialization": Bauer, Cook and Khailany,
// "CudaDMA", 2011). Who copies needs few registers, so that who computes gets most of them. Roles meet at barriers in shared
// memory that count arrivals: a place is full, or free again. Where code is not for warpgroups (sm_90a by nvcc), there are no
// threads that copy alone, and everybody does both.
#pragma once

#include "mma.h"

AOTI_NAMESPACE_BEGIN

// Threads of the two warpgroups that compute, and of the one behind them that copies.
constexpr int kComputers = 256, kCopiers = 128;
// Pieces of a product that are on their way or multiplied at a time.
constexpr int kPiecePlaces = 4;

// Every thread copies its part of a tile and computes.
struct Everyone {};

#if AOTI_WARPGROUPS
namespace detail {

AOTI_INLINE void start_barrier(u32 barrier, int arrivals) {
  __asm__ volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
AOTI_INLINE void arrive(u32 barrier) {
  __asm__ volatile("{ .reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0]; }" ::"r"(barrier) : "memory");
}
// Arrives, and so many bytes are to come before a phase is over.
AOTI_INLINE void arrive_expecting(u32 barrier, u32 bytes) {
  __asm__ volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], %1; }" ::"r"(barrier), "r"(bytes) : "memory");
}
// Arrives once everything is there that this thread copies; the thread goes on.
AOTI_INLINE void arrive_behind_copies(u32 barrier) {
  __asm__ volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
// Waits until a phase is over; phases are counted from 0, and the one before the first is over.
AOTI_INLINE void wait_for_phase(u32 barrier, u32 phase) {
  __asm__ volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra.uni over; bra.uni again; over: }"
                   ::"r"(barrier), "r"(phase & 1)
                   : "memory");
}
// Places in shared memory that are filled and read by turns; the n-th use is of place n % Places.
// Bringers arrive when a place is full: all threads that copy, or one that has the copy engine bring a tile.
template <int Places, int Bringers = kCopiers> struct Ring {
  static constexpr int kBytes = 2 * Places * 8;
  // The address of its barriers: those that tell that places are full, then those that tell that they are free.
  u32 barriers;

  AOTI_INLINE u32 full(u32 use) const { return barriers + use % Places * 8; }
  AOTI_INLINE u32 free(u32 use) const { return barriers + (Places + use % Places) * 8; }
  // Full when every bringer has arrived, free when a thread of every warp that computes has.
  AOTI_INLINE void start() const {
    AOTI_UNROLL_TIMES(4)
    for (int i = 0; i < Places; ++i) start_barrier(full(u32(i)), Bringers), start_barrier(free(u32(i)), kComputers / 32);
  }
  AOTI_INLINE void wait_until_free(u32 use) const { wait_for_phase(free(use), use / Places + 1); }
  // What the copy engine brings is seen by the units as it is; what threads copy has to be shown to them.
  AOTI_INLINE void wait_until_full(u32 use) const {
    wait_for_phase(full(use), use / Places);
    if constexpr (Bringers == kCopiers) show_to_units();
  }
  // Full when so many bytes are there that the copy engine brings.
  AOTI_INLINE void expect(u32 use, u32 bytes) const { arrive_expecting(full(use), bytes); }
  // Everything that this thread brought, by copies that nobody waits for or by its own stores.
  AOTI_INLINE void bring(u32 use, bool by_copies) const {
    if (by_copies) return arrive_behind_copies(full(use));
    show_to_units();
    arrive(full(use));
  }
  // One thread of a warp, for all of them, which are through.
  AOTI_INLINE void give_back(u32 use) const {
    warp_barrier();
    if (thread_index() % 32 == 0) arrive(free(use));
  }
};

} // namespace detail

// Rings of a tile of its own, and of two kinds of tiles that pass by it. How often places were used before is counted over all tiles
// of a block.
struct TileRings {
  static constexpr int kBytes = detail::Ring<1>::kBytes + 2 * detail::Ring<2>::kBytes;
  detail::Ring<1> own;
  detail::Ring<2> left, right;
  u32 own_used = 0, used = 0;
  AOTI_INLINE explicit TileRings(u32 barriers)
      : own{barriers}, left{barriers + own.kBytes}, right{barriers + own.kBytes + left.kBytes} {}
  AOTI_INLINE void start() const { own.start(), left.start(), right.start(); }
  // Two warpgroups multiply by turns, so that one does so while the other computes something else; the first one begins.
  AOTI_INLINE void begin() const {
    if (detail::warpgroup_index() == 1) pass();
  }
  AOTI_INLINE void take() const {
    __asm__ volatile("bar.sync %0, %1;" ::"r"(detail::warpgroup_index() + 1), "n"(kComputers) : "memory");
  }
  AOTI_INLINE void pass() const {
    __asm__ volatile("bar.arrive %0, %1;" ::"r"(2 - detail::warpgroup_index()), "n"(kComputers) : "memory");
  }
};
// A ring of pieces of two operands, which one thread has the copy engine bring.
struct PieceRing {
  static constexpr int kBytes = detail::Ring<kPiecePlaces, 1>::kBytes;
  detail::Ring<kPiecePlaces, 1> pieces;
  u32 used = 0;
  AOTI_INLINE explicit PieceRing(u32 barriers) : pieces{barriers} {}
  AOTI_INLINE void start() const { pieces.start(); }
  AOTI_INLINE void begin() const {}
};
template <class Rings> struct Copier {
  Rings rings;
};
template <class Rings> struct Computer {
  Rings rings;
};
template <class Role> constexpr bool is_copier = false;
template <class Rings> constexpr bool is_copier<Copier<Rings>> = true;
#else
struct TileRings;
struct PieceRing;
#endif

// body(role) by kComputers that compute and kCopiers that copy alone, or by kComputers that do both. A thread has one of the roles
// from the start of a kernel to its end. Rings: where the roles meet.
template <class Rings, class Body> AOTI_INLINE void in_roles(const Body &body) {
#if AOTI_WARPGROUPS
  AOTI_SHARED u64 barriers[Rings::kBytes / 8];
  const Rings rings(detail::shared_address(barriers));
  if (thread_index() == 0) {
    rings.start();
    // The copy engine sees them too.
    detail::show_to_units();
  }
  barrier();
  if (detail::warpgroup_index() == kComputers / 128) {
    __asm__ volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    Copier<Rings> role{rings};
    body(role);
  } else {
    __asm__ volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    Computer<Rings> role{rings};
    role.rings.begin();
    body(role);
  }
#else
  Everyone role;
  body(role);
#endif
}

AOTI_NAMESPACE_END
