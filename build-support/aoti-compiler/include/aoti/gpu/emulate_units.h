// What matrix units of NVIDIA's GPUs and the copies to shared memory do, on a processor: each instruction of copies.h, mma.h and
// split_sums.h, by the threads of an emulated warp together. A copy is done as late as may be, when its thread waits for it.
// For tests. The instructions of a warpgroup and those of sm_90a's copy engine are not here.
#pragma once

AOTI_NAMESPACE_BEGIN

namespace units {
using namespace aoti::emulated;


inline void check_aligned(const void *p, int bytes, const char *what) {
  if (uintptr_t(p) % uintptr_t(bytes) == 0) return;
  fprintf(stderr, "emulated block %d: %s at %p, which is no multiple of %d\n", state().block, what, p, bytes);
  abort();
}

// Shared memory has addresses of 32 bits: static memory begins somewhere around the middle.
inline char *anchor() {
  static char place[16];
  return place;
}
constexpr u32 kStatic = 0x80000000u;
inline u32 shared_address_of(const void *p) {
  const Block &block = state();
  const char *const at = (const char *)p;
  if (at >= block.shared && at <= block.shared + block.shared_bytes) return u32(at - block.shared);
  return kStatic + u32(at - anchor());
}
inline char *shared_place_of(u32 address) {
  return address < kStatic / 2 ? state().shared + address : anchor() + i32(address - kStatic);
}

// Copies of one thread of a block that it has not waited for, in groups: how many there were when each was closed.
struct Copies {
  struct {
    u32 to;
    const void *from;
    int bytes, size;
  } at[512];
  int count, closed[64], groups;
  unsigned block;
};
inline Copies &copies() {
  static Copies *const all = (Copies *)calloc(kMostThreads, sizeof(Copies));
  Copies &own = all[state().thread];
  if (own.block != state().begun) own.block = state().begun, own.count = own.groups = 0;
  return own;
}
inline void copy_later(u32 to, const void *from, int bytes, int size) {
  Copies &own = copies();
  check_aligned(shared_place_of(to), size, "a copy ends");
  if (bytes > 0) check_aligned(from, size, "a copy begins");
  if (own.count == 512) abort();
  own.at[own.count++] = {to, from, bytes, size};
}
inline void close_group() {
  Copies &own = copies();
  if (own.groups == 64) abort();
  own.closed[own.groups++] = own.count;
}
// Does all groups but the last `left`.
inline void finish_groups(int left) {
  Copies &own = copies();
  const int done = own.groups - left;
  if (done <= 0) return;
  const int count = own.closed[done - 1];
  for (int i = 0; i < count; ++i) {
    char *const to = shared_place_of(own.at[i].to);
    memset(to, 0, size_t(own.at[i].size));
    memcpy(to, own.at[i].from, size_t(own.at[i].bytes));
  }
  memmove(own.at, own.at + count, size_t(own.count - count) * sizeof own.at[0]);
  own.count -= count, own.groups = left;
  for (int i = 0; i < left; ++i) own.closed[i] = own.closed[i + done] - count;
}

// Registers that the threads of a warp show each other behind one barrier: two sets in turn, as a thread may be at its next instruction
// while others still read those of the last.
struct Registers {
  u32 a[4], b[2];
};
inline Registers *registers() {
  static Registers all[2][kMostThreads];
  static unsigned char turn[kMostThreads];
  const int thread = state().thread;
  turn[thread] ^= 1;
  return all[turn[thread]] + thread / 32 * 32;
}
// d = c + a b for a of 16 rows, b of 8 columns, and a depth of `Each` elements in each of the words that a thread has of a row: two
// words of four threads. element(word, i) is the i-th of a word.
template <int Each, class Element> void multiply_fragments(f32 *d, const u32 *a, const u32 *b, const f32 *c, const Element &element) {
  Registers *const all = registers();
  const int lane = state().thread % 32;
  memcpy(all[lane].a, a, sizeof all->a), memcpy(all[lane].b, b, sizeof all->b);
  warp_barrier();
  f32 sums[4];
  for (int e = 0; e < 4; ++e) {
    const int below = e / 2, row = lane / 4, column = lane % 4 * 2 + e % 2;
    double sum = c[e];
    for (int half = 0; half < 2; ++half)
      for (int t = 0; t < 4; ++t)
        for (int i = 0; i < Each; ++i)
          sum += double(element(all[row * 4 + t].a[half * 2 + below], i)) * double(element(all[column * 4 + t].b[half], i));
    sums[e] = f32(sum);
  }
  memcpy(d, sums, sizeof sums);
}

} // namespace units

inline u32 to_f16s(f32 x, f32 y) { return u32(to_f16(x).bits) | u32(to_f16(y).bits) << 16; }
inline u32 to_bf16s(f32 x, f32 y) { return u32(to_bf16(x).bits) | u32(to_bf16(y).bits) << 16; }

namespace detail {

inline u32 shared_address(const void *p) { return units::shared_address_of(p); }
inline u32 load_word(u32 address) {
  u32 word;
  memcpy(&word, units::shared_place_of(address), sizeof word);
  return word;
}

#define AOTI_COPIES 1
inline void copy_ahead(u32 to, const void *from, int bytes) { units::copy_later(to, from, bytes, 16); }
inline void copy_ahead(u32 to, const void *from) { units::copy_later(to, from, 16, 16); }
inline void copy_word_ahead(u32 to, const void *from, int bytes) { units::copy_later(to, from, bytes, 4); }
inline void commit_copies() { units::close_group(); }
template <int N> inline void wait_for_copies() { units::finish_groups(N); }

template <bool Turned> inline void load_matrices(u32 *r, u32 address) {
  units::Registers *const all = units::registers();
  const int lane = thread_index() % 32;
  units::check_aligned(units::shared_place_of(address), 16, "a row of a matrix");
  all[lane].a[0] = address;
  warp_barrier();
  u32 words[4];
  for (int matrix = 0; matrix < 4; ++matrix) {
    u16 both[2];
    for (int i = 0; i < 2; ++i) {
      const int row = Turned ? lane % 4 * 2 + i : lane / 4, column = Turned ? lane / 4 : lane % 4 * 2 + i;
      memcpy(&both[i], units::shared_place_of(all[matrix * 8 + row].a[0]) + column * 2, 2);
    }
    words[matrix] = u32(both[0]) | u32(both[1]) << 16;
  }
  memcpy(r, words, sizeof words);
}
template <class T, class Op> inline u32 of_pairs(u32 a, u32 b, const Op &op) {
  const auto half = [](u32 word, int i) { return to_f32(T{u16(word >> 16 * i)}); };
  T both[2];
  for (int i = 0; i < 2; ++i) from_f32(both[i], op(half(a, i), half(b, i)));
  return u32(both[0].bits) | u32(both[1].bits) << 16;
}
template <class T> inline u32 add_pairs(u32 a, u32 b) {
  return of_pairs<T>(a, b, [](f32 x, f32 y) { return x + y; });
}
template <class T> inline u32 multiply_pairs(u32 a, u32 b) {
  return of_pairs<T>(a, b, [](f32 x, f32 y) { return x * y; });
}
template <class T> inline void multiply(f32 *c, const u32 *a, const u32 *b) {
  units::multiply_fragments<2>(c, a, b, c, [](u32 word, int i) { return to_f32(T{u16(word >> 16 * i)}); });
}
// The units ignore the last bits.
inline void multiply_tf32(f32 (&d)[4], const u32 *a, const u32 *b, const f32 (&c)[4]) {
  units::multiply_fragments<1>(d, a, b, c, [](u32 word, int) {
    word &= 0xffffe000u;
    f32 value;
    memcpy(&value, &word, sizeof value);
    return value;
  });
}
// To 11 bits, halves away from zero.
inline u32 rounded_to_tf32(f32 x) {
  u32 bits;
  memcpy(&bits, &x, sizeof bits);
  return __builtin_isfinite(x) ? (bits + 0x1000u) & 0xffffe000u : bits;
}
inline bool any_in_warp(bool condition) {
  units::Registers *const all = units::registers();
  all[thread_index() % 32].a[0] = condition;
  warp_barrier();
  bool any = false;
  for (int i = 0; i < 32; ++i) any = any || all[i].a[0];
  return any;
}

} // namespace detail

AOTI_NAMESPACE_END
