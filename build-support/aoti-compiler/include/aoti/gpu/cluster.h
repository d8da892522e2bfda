// Blocks that share the depth of a tile ("split-K"): neighbours in the grid, of which each adds up a part. Where a GPU runs such
// blocks as a cluster (sm_90 and later, compiled by nvcc), they read each other's sums in shared memory, and each finishes a
// part of the tile; elsewhere the first block adds up everything, and the others have nothing to do.
//
// Sums of blocks are added in the order of the blocks: the result is the same in every run. Teams of the threads of several blocks
// (simt.h) meet and hand each other what they have here too. A block that has not begun has no memory that others could write to, and
// one that has ended none that they could read: they meet before the first of them does either, and what is read is used before they part.
#pragma once

#include "../nest.h"

AOTI_NAMESPACE_BEGIN

template <int Blocks> struct Cluster {
#if AOTI_CLUSTERS
  // Blocks that add up.
  static constexpr int kParts = Blocks;
#else
  static constexpr int kParts = 1;
#endif
  static AOTI_INLINE int rank() { return Blocks == 1 ? 0 : block_index() % Blocks; }
  static AOTI_INLINE bool is_idle() { return rank() >= kParts; }
  // What this block has of `count` pieces begins here, and that of the next block behind it.
  static AOTI_INLINE int begin(int count) { return kParts == 1 ? 0 : count * rank() / kParts; }
  static AOTI_INLINE int end(int count) { return kParts == 1 ? count : count * (rank() + 1) / kParts; }

#if AOTI_CLUSTERS
  // All threads of all blocks; what they wrote to shared memory is seen behind it.
  static AOTI_INLINE void meet() {
    if constexpr (kParts == 1)
      barrier();
    else
      __asm__ volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
  }
  // No block writes to its memory, or ends, while others read it; or all have begun.
  static AOTI_INLINE void part() {
    if constexpr (kParts == 1)
      barrier();
    else
      __asm__ volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  }
  // What lies at the same place in the shared memory of a block.
  static AOTI_INLINE f32 of(int block, const f32 *p) {
    if constexpr (kParts == 1) return *p;
    f32 own[1];
    read(address_in(block, detail::shared_address(p)), own);
    return own[0];
  }
  // Adds the sums that lie at the same place in the shared memory of the other blocks to a few neighbouring ones. Each place is
  // finished, and so written, by one block alone.
  template <int N, class U> static AOTI_INLINE void add_up(U *sums) {
    U *const places[1] = {sums};
    add_up_all<N>(places);
  }
  // The same at several places, whose sums are on their way together.
  template <int N, int Count, class U> static AOTI_INLINE void add_up_all(U *const (&places)[Count]) {
    if constexpr (kParts > 1) {
      U all[Count][N];
      AOTI_UNROLL_TIMES(8)
      for (int block = 0; block < kParts; ++block)
        AOTI_UNROLL_TIMES(4)
        for (int p = 0; p < Count; ++p) {
          U own[N];
          read(address_in(block, detail::shared_address(places[p])), own);
          AOTI_UNROLL_TIMES(8)
          for (int i = 0; i < N; ++i) all[p][i] = block == 0 ? own[i] : all[p][i] + own[i];
        }
      AOTI_UNROLL_TIMES(4)
      for (int p = 0; p < Count; ++p) __builtin_memcpy(places[p], all[p], sizeof all[p]);
    }
  }

  // Writes any value to the same place in the shared memory of a block, word by word.
  template <class X> static AOTI_INLINE void put_words(int block, u32 *p, const X &x) {
    const u32 address = address_in(block, detail::shared_address(p));
    u32 words[(sizeof(X) + 3) / 4] = {};
    __builtin_memcpy(words, &x, sizeof x);
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < int(sizeof words / 4); ++i)
      __asm__ volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address + u32(i) * 4), "r"(words[i]) : "memory");
  }
  // Writes to the same place in the shared memory of a block.
  static AOTI_INLINE void put(int block, f32 *p, f32 x) {
    if constexpr (kParts == 1)
      *p = x;
    else
      __asm__ volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address_in(block, detail::shared_address(p))), "f"(x) : "memory");
  }

private:
  static AOTI_INLINE u32 address_in(int block, u32 address) {
    u32 theirs;
    __asm__ volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(address), "r"(block));
    return theirs;
  }
  template <int N, class U> static AOTI_INLINE void read(u32 address, U (&sums)[N]) {
    constexpr int bytes = N * int(sizeof(U)), step = bytes % 16 == 0 ? 4 : 1;
    u32 words[bytes / 4];
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < bytes / 4; i += step)
      if constexpr (step == 4)
        __asm__ volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(words[i]), "=r"(words[i + 1]), "=r"(words[i + 2]), "=r"(words[i + 3])
                         : "r"(address + u32(i) * 4)
                         : "memory");
      else
        __asm__ volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(words[i]) : "r"(address + u32(i) * 4) : "memory");
    __builtin_memcpy(sums, words, sizeof sums);
  }
#else
  static AOTI_INLINE void meet() { barrier(); }
  static AOTI_INLINE void part() { barrier(); }
  static AOTI_INLINE f32 of(int, const f32 *p) { return *p; }
  static AOTI_INLINE void put(int, f32 *p, f32 x) { *p = x; }
  template <int, class U> static AOTI_INLINE void add_up(U *) {}
  template <class X> static AOTI_INLINE void put_words(int, u32 *p, const X &x) { __builtin_memcpy(p, &x, sizeof x); }
#endif
};

AOTI_NAMESPACE_END
