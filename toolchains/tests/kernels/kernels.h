// The test kernels: one that streams, one that shares memory within a block, one that calls a device function.
#pragma once
#include "gpu.h"

// out[i] = a[i] + b[i]
KERNEL void vector_add(const float* a, const float* b, float* out, int count) {
  const int i = block_index() * block_size() + thread_index();
  if (i < count) out[i] = a[i] + b[i];
}

// out[block] = sum of the 256 values of each block, by halves in shared memory.
KERNEL void block_sum(const float* in, float* out, int count) {
  SHARED float partial[256];
  const int lane = thread_index();
  const int i = block_index() * 256 + lane;
  partial[lane] = i < count ? in[i] : 0.0f;
  barrier();
  for (int width = 128; width > 0; width /= 2) {
    if (lane < width) partial[lane] += partial[lane + width];
    barrier();
  }
  if (lane == 0) out[block_index()] = partial[0];
}

DEVICE float leaky(float x) { return x > 0.0f ? x : SLOPE * x; }

// out[i] = leaky(in[i]), SLOPE from the command line.
KERNEL void leaky_relu(const float* in, float* out, int count) {
  const int i = block_index() * block_size() + thread_index();
  if (i < count) out[i] = leaky(in[i]);
}
