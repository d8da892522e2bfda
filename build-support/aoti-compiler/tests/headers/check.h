// What the header tests share: memory that faults one byte past its end, exact test data, and stores that count.
#pragma once
#include "aoti/tile.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Values are small integers, so that every order of summation gives the same, exact result.
static uint32_t check_state = 1;
static inline int check_random(int low, int high) {
  check_state = check_state * 1664525u + 1013904223u;
  return low + int((check_state >> 8) % uint32_t(high - low + 1));
}

// `n` elements that end at a page nobody may touch; start rounded down to 64 bytes when `align` asks for it.
template <class T> struct Guarded {
  T *data;
  int64_t n;
  void *map;
  size_t bytes;
  Guarded(int64_t count, bool align = false) : n(count) {
    size_t page = 4096, want = size_t(count) * sizeof(T);
    if (align) want = (want + 63) / 64 * 64;
    bytes = (want + page - 1) / page * page + page;
    map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect((char *)map + bytes - page, page, PROT_NONE);
    data = (T *)((char *)map + bytes - page - want);
  }
  ~Guarded() { munmap(map, bytes); }
  Guarded(const Guarded &) = delete;
};
static inline void check_set(float &x, int v) { x = float(v); }
static inline void check_set(double &x, int v) { x = v; }
static inline void check_set(aoti::f16 &x, int v) { x = aoti::to_f16(float(v)); }
static inline void check_set(aoti::bf16 &x, int v) { x = aoti::to_bf16(float(v)); }
static inline void check_set(int8_t &x, int v) { x = int8_t(v); }
static inline void check_set(int32_t &x, int v) { x = v; }
static inline void check_set(int64_t &x, int v) { x = v; }
template <class T> static void check_fill(Guarded<T> &g) {
  for (int64_t i = 0; i < g.n; ++i) check_set(g.data[i], check_random(-4, 4));
}
template <class T> static double check_value(T x) { return aoti::widen<double>(x); }

// Results and how often each was written.
struct Collected {
  double *value;
  int *times;
  int64_t n;
  explicit Collected(int64_t count) : n(count) {
    value = (double *)calloc(size_t(count) + 1, sizeof(double));
    times = (int *)calloc(size_t(count) + 1, sizeof(int));
  }
  ~Collected() { free(value), free(times); }
  Collected(const Collected &) = delete;
  template <int W, class V> void put(aoti::Full<W>, int64_t at, V v) { put_lanes(W, at, v); }
  template <int W, class V> void put(aoti::Tail<W> lanes, int64_t at, V v) {
    if (lanes.n <= 0 || lanes.n >= W) at = -1;
    put_lanes(lanes.n, at, v);
  }
  // Lanes that are `step` results apart.
  template <int W, class V> void put_apart(aoti::Full<W>, int64_t at, int64_t step, V v) {
    for (int i = 0; i < W; ++i) put_one(at + i * step, check_value(aoti::lane(v, i)));
  }
  template <int W, class V> void put_apart(aoti::Tail<W> lanes, int64_t at, int64_t step, V v) {
    for (int i = 0; i < lanes.n; ++i) put_one(at + i * step, check_value(aoti::lane(v, i)));
  }
  void put_one(int64_t at, double v) {
    if (at < 0 || at >= n) {
      printf("written outside the result\n");
      exit(1);
    }
    value[at] = v;
    ++times[at];
  }
  template <class V> void put_lanes(int count, int64_t at, V v) {
    for (int i = 0; i < count; ++i) put_one(at < 0 ? -1 : at + i, check_value(aoti::lane(v, i)));
  }
};
static int check_failures = 0, check_cases = 0;
static inline bool check_same(const Collected &c, int64_t at, double want) {
  return c.times[at] == 1 && c.value[at] == want;
}
#define CHECK_FAIL(...) (printf(__VA_ARGS__), puts(""), ++check_failures > 10 ? exit(1) : (void)0)
static inline int check_end() {
  printf("%d cases, %d failures\n", check_cases, check_failures);
  return check_failures != 0;
}
