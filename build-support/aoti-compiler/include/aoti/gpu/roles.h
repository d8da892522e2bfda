// Warpgroups with roles: one brings tiles to shared memory, the others compute ("warp specialization": Bauer, Cook and Khailany,
// "CudaDMA", 2011). Who copies needs few registers, so that who computes gets most of them. Roles meet at barriers in shared
// memory that count arrivals: a place is full, or free again. Where code is not for warpgroups (sm_90a by nvcc), there are no
// threads that copy alone, and everybody does both.
#pragma once

#include "mma.h"

AOTI_NAMESPACE_BEGIN

// Threads of the two warpgroups that compute, and of the one behind them that copies.
constexpr int kComputers = 256, kCopiers = 128;

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
template <int Places> struct Ring {
  static constexpr int kBytes = 2 * Places * 8;
  // The address of its barriers: those that tell that places are full, then those that tell that they are free.
  u32 barriers;

  AOTI_INLINE u32 full(u32 use) const { return barriers + use % Places * 8; }
  AOTI_INLINE u32 free(u32 use) const { return barriers + (Places + use % Places) * 8; }
  // Full when every copier has arrived, free when a thread of every warp that computes has.
  AOTI_INLINE void start() const {
    AOTI_UNROLL_TIMES(4)
    for (int i = 0; i < Places; ++i) start_barrier(full(u32(i)), kCopiers), start_barrier(free(u32(i)), kComputers / 32);
  }
  AOTI_INLINE void wait_until_free(u32 use) const { wait_for_phase(free(use), use / Places + 1); }
  AOTI_INLINE void wait_until_full(u32 use) const {
    wait_for_phase(full(use), use / Places);
    show_to_units();
  }
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
  AOTI_INLINE void begin_turns() const {
    if (detail::warpgroup_index() == 1) pass();
  }
  AOTI_INLINE void take() const {
    __asm__ volatile("bar.sync %0, %1;" ::"r"(detail::warpgroup_index() + 1), "n"(kComputers) : "memory");
  }
  AOTI_INLINE void pass() const {
    __asm__ volatile("bar.arrive %0, %1;" ::"r"(2 - detail::warpgroup_index()), "n"(kComputers) : "memory");
  }
};
struct Copier {
  TileRings rings;
};
struct Computer {
  TileRings rings;
};
#endif

// body(role) by kComputers that compute and kCopiers that copy alone, or by kComputers that do both. A thread has one of the roles
// from the start of a kernel to its end.
template <class Body> AOTI_INLINE void in_roles(const Body &body) {
#if AOTI_WARPGROUPS
  AOTI_SHARED u64 barriers[TileRings::kBytes / 8];
  const TileRings rings(detail::shared_address(barriers));
  if (thread_index() == 0) rings.start();
  barrier();
  if (detail::warpgroup_index() == kComputers / 128) {
    __asm__ volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    Copier role{rings};
    body(role);
  } else {
    __asm__ volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    Computer role{rings};
    role.rings.begin_turns();
    body(role);
  }
#else
  Everyone role;
  body(role);
#endif
}

AOTI_NAMESPACE_END
