// Timing for the header benches: the best of many runs, against a multiply-add peak measured on the spot.
#pragma once
#include "aoti/tile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double bench_now_us() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}
static float *bench_floats(int64_t n) {
  float *p = (float *)aligned_alloc(64, (n + 256) / 16 * 64);
  for (int64_t i = 0; i < n; ++i) p[i] = float(i * 7919 % 1009 - 504) / 1009;
  return p;
}
template <class F> static double bench_best(F &&f) {
  double best = 1e30, start = bench_now_us();
  for (int i = 0; i < 5 || bench_now_us() - start < 60e3; ++i) {
    double t = bench_now_us();
    f();
    t = bench_now_us() - t;
    if (t < best) best = t;
  }
  return best;
}
template <class V> static inline void bench_store(aoti::Full<aoti::kLanes>, float *p, V v) {
  aoti::store_tile_vector(p, v.v);
}
template <class V> static inline void bench_store(aoti::Tail<aoti::kLanes> lanes, float *p, V v) {
  for (int i = 0; i < lanes.n; ++i) p[i] = v.v[i];
}
static double bench_peak_gflops = 1;
AOTI_CONTRACT static inline __attribute__((noinline)) float bench_peak_loop(int64_t n) {
  aoti::TileVector s[12] = {}, x = {1.0f, 2.0f}, y = {0.5f, 0.25f};
  for (int64_t i = 0; i < n; ++i) {
    AOTI_UNROLL for (int j = 0; j < 12; ++j) s[j] += x * y;
    AOTI_UNROLL for (int j = 0; j < 12; ++j) asm volatile("" : "+v"(s[j]));
  }
  AOTI_UNROLL for (int j = 1; j < 12; ++j) s[0] += s[j];
  return s[0][0];
}
static void bench_peak() {
  volatile float sink;
  double us = bench_best([&] { sink = bench_peak_loop(100000); });
  (void)sink;
  bench_peak_gflops = 2.0 * 12 * aoti::kLanes * 100000 / us * 1e-3;
  printf("peak %.1f GFLOP/s\n", bench_peak_gflops);
}
static void bench_report(const char *what, int64_t m, int64_t n, int64_t k, double us, double flops, double bytes) {
  printf("%-8s %5ld x %5ld x %5ld  %9.2f us  %7.1f GFLOP/s %5.1f %%  %6.1f GB/s\n", what, (long)m, (long)n, (long)k, us,
         flops / us * 1e-3, flops / us * 1e-3 / bench_peak_gflops * 100, bytes / us * 1e-3);
}
