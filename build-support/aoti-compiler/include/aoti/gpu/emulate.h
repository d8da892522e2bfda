// A block of GPU threads on one thread of a processor: each is a fiber that runs until it meets a barrier or a shuffle.
// For tests, so that device code is run where there is no GPU; blocks run one after the other.
//
// Wavefronts are AOTI_EMULATED threads wide. A barrier that some threads of a block never meet ends the program, and so does
// a shuffle that some threads of a warp of 32 never meet: on a GPU they would hang or give garbage.
#pragma once

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

namespace aoti {
namespace emulated {

constexpr int kMostThreads = 1024;
constexpr int kStack = 256 * 1024;

// What a fiber waits for.
enum Waiting { kRunning, kAtBarrier, kAtWarpBarrier, kDone };

struct Block {
  jmp_buf scheduler, fibers[kMostThreads];
  bool started[kMostThreads];
  Waiting waiting[kMostThreads];
  unsigned exchanged[kMostThreads];
  char *stacks, *shared;
  int shared_bytes;
  int threads, thread, block, blocks;
  unsigned begun; // blocks so far
  void (*kernel)(void **);
  void **arguments;
};
inline Block &state() {
  static Block block;
  return block;
}
inline char *dynamic_shared() { return state().shared; }

// Fibers begin as contexts and go on by jumps, which ask nothing of the system.
__attribute__((noinline)) inline void wait(Waiting what) {
  Block &block = state();
  block.waiting[block.thread] = what;
  if (!_setjmp(block.fibers[block.thread])) _longjmp(block.scheduler, 1);
}
inline void start() {
  Block &block = state();
  block.kernel(block.arguments);
  block.waiting[block.thread] = kDone;
  _longjmp(block.scheduler, 1);
}
// Lets a thread run until it waits.
__attribute__((noinline)) inline void resume(Block &block, int thread) {
  block.thread = thread;
  if (_setjmp(block.scheduler)) return;
  if (block.started[thread]) _longjmp(block.fibers[thread], 1);
  block.started[thread] = true;
  ucontext_t fiber;
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = block.stacks + size_t(thread) * kStack;
  fiber.uc_stack.ss_size = kStack;
  fiber.uc_link = nullptr;
  makecontext(&fiber, start, 0);
  setcontext(&fiber);
}

// Threads [first, last) go on if all of them wait for the same thing.
inline bool release(Block &block, int first, int last, Waiting what) {
  for (int i = first; i < last; ++i)
    if (block.waiting[i] != what) return false;
  for (int i = first; i < last; ++i) block.waiting[i] = kRunning;
  return true;
}

// A wavefront of 64 runs in step: where its threads wait for different things, each goes on in its turn.
inline bool release_in_step(Block &block, int first, int last) {
  bool released = false;
  for (int i = first; i < last; ++i)
    if (block.waiting[i] == kRunning) return false;
  for (int i = first; i < last; ++i)
    if (block.waiting[i] == kAtWarpBarrier) block.waiting[i] = kRunning, released = true;
  return released;
}

inline void run_block(Block &block, int warp) {
  ++block.begun;
  for (int i = 0; i < block.threads; ++i) block.waiting[i] = kRunning, block.started[i] = false;
  for (;;) {
    bool went = false, done = true;
    for (int i = 0; i < block.threads; ++i) {
      if (block.waiting[i] == kRunning) {
        went = true;
        resume(block, i);
      }
      done = done && block.waiting[i] == kDone;
    }
    if (done) return;
    if (release(block, 0, block.threads, kAtBarrier)) continue;
    bool released = false;
    for (int first = 0; first < block.threads; first += warp) {
      int last = first + warp < block.threads ? first + warp : block.threads;
      bool own = warp == 32 ? release(block, first, last, kAtWarpBarrier) : release_in_step(block, first, last);
      released = own || released;
    }
    if (!released && !went) {
      fprintf(stderr, "emulated block %d hangs: its threads do not all meet the same barrier\n", block.block);
      abort();
    }
  }
}

// Runs a kernel whose arguments are unpacked by `kernel`.
inline void launch(void (*kernel)(void **), int blocks, int threads, int shared_bytes, void **arguments, int warp) {
  Block &block = state();
  if (threads > kMostThreads) abort();
  if (!block.stacks) block.stacks = (char *)malloc(size_t(kMostThreads) * kStack);
  block.shared_bytes = shared_bytes, block.shared = (char *)aligned_alloc(1024, size_t(shared_bytes + 1024) / 1024 * 1024);
  memset(block.shared, 0xa5, shared_bytes);
  block.kernel = kernel, block.arguments = arguments, block.threads = threads, block.blocks = blocks;
  for (block.block = 0; block.block < blocks; ++block.block) run_block(block, warp);
  free(block.shared);
}

template <int... I> struct Numbers {};
template <int N, int... I> struct CountTo : CountTo<N - 1, N - 1, I...> {};
template <int... I> struct CountTo<0, I...> {
  using type = Numbers<I...>;
};
template <class... A, int... I> void unpack(void (*kernel)(A...), void **arguments, Numbers<I...>) {
  kernel(*(A *)arguments[I]...);
}
template <auto Kernel> struct Unpacked;
template <class... A, void (*Kernel)(A...)> struct Unpacked<Kernel> {
  static void call(void **arguments) { unpack(Kernel, arguments, typename CountTo<sizeof...(A)>::type{}); }
  static constexpr int sizes[] = {int(sizeof(A))..., 0};
};

} // namespace emulated
} // namespace aoti

// What the emulated driver finds by name: a kernel, and the sizes of its arguments, ended by 0.
#define AOTI_EMULATED_KERNEL(NAME)                                                                    \
  extern "C" __attribute__((visibility("default"))) void aoti_emulated_##NAME(int blocks, int threads, int shared, void **arguments) { \
    aoti::emulated::launch(aoti::emulated::Unpacked<NAME>::call, blocks, threads, shared, arguments, AOTI_EMULATED); \
  }                                                                                                   \
  extern "C" __attribute__((visibility("default"))) const int *aoti_emulated_sizes_##NAME() {         \
    return aoti::emulated::Unpacked<NAME>::sizes;                                                     \
  }

AOTI_NAMESPACE_BEGIN

// The matrix units that the tests emulate: emulate_units.h, with its copies, or emulate_fragments.h.
#define AOTI_NVIDIA 0
#if defined(AOTI_EMULATED_UNITS)
#define AOTI_UNITS AOTI_EMULATED_UNITS
#else
#define AOTI_UNITS 0
#endif
constexpr int kWarp = AOTI_EMULATED;
inline int thread_index() { return emulated::state().thread; }
inline int block_index() { return emulated::state().block; }
inline int block_count() { return emulated::state().blocks; }
inline int block_size() { return emulated::state().threads; }
inline void barrier() { emulated::wait(emulated::kAtBarrier); }
inline void warp_barrier() { emulated::wait(emulated::kAtWarpBarrier); }
inline u32 shuffle_word(u32 x, int from) {
  emulated::Block &block = emulated::state();
  int own = block.thread;
  block.exchanged[own] = x;
  warp_barrier();
  u32 result = block.exchanged[own / kWarp * kWarp + from];
  warp_barrier();
  return result;
}
inline u64 ballot(bool x) {
  emulated::Block &block = emulated::state();
  const int own = block.thread, first = own / kWarp * kWarp;
  block.exchanged[own] = x;
  warp_barrier();
  u64 all = 0;
  for (int lane = 0; lane < kWarp && first + lane < block.threads; ++lane) all |= u64(block.exchanged[first + lane]) << lane;
  warp_barrier();
  return all;
}
inline u32 shuffle_xor_word(u32 x, int mask) { return shuffle_word(x, thread_index() % kWarp ^ mask); }
inline bool exchange_if_zero(int *p, int x) {
  if (*p != 0) return false;
  *p = x;
  return true;
}
inline void fence() {}

AOTI_NAMESPACE_END

#if AOTI_UNITS == AOTI_MMA
#include "emulate_units.h"
#endif
