// The common subset of CUDA C++ and HIP that the test kernels are written in. Needs no vendor header under clang, where
// indices and barriers are builtins; nvcc and hipcc bring their own.
#pragma once

#if defined(__CUDACC__) && defined(__NVCC__)
#define KERNEL extern "C" __global__
#define SHARED __shared__
#define DEVICE static __device__ inline
DEVICE int block_index() { return static_cast<int>(blockIdx.x); }
DEVICE int block_size() { return static_cast<int>(blockDim.x); }
DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
DEVICE void barrier() { __syncthreads(); }
#else
#define KERNEL extern "C" __attribute__((global))
#define SHARED __attribute__((shared))
#define DEVICE static __attribute__((device)) inline
#if defined(__AMDGCN__)
DEVICE int block_index() { return static_cast<int>(__builtin_amdgcn_workgroup_id_x()); }
DEVICE int block_size() { return static_cast<int>(__builtin_amdgcn_workgroup_size_x()); }
DEVICE int thread_index() { return static_cast<int>(__builtin_amdgcn_workitem_id_x()); }
DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
}
#elif defined(__NVPTX__)
DEVICE int block_index() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE int block_size() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE int thread_index() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE void barrier() { __syncthreads(); }
#else
#error the test kernels are for GPUs
#endif
#endif
