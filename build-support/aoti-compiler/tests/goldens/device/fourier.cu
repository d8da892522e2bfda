// Kernels of the model `fourier` for GPUs, written by cargo-aoti.
#include "aoti/gpu/simt.h"
#include "aoti/gpu/fourier.h"

using namespace aoti;

AOTI_RESIDENT_KERNEL(8, 16) k_fourier_rows(Run run, const f32 *in0, const f32 *__restrict__ in1, f32 *__restrict__ out0) {
  (void)run;
  begin_kernel();
  fourier_of_teams<fourier::kToHalf, fourier::kHalved, 64, fourier::TeamRadices<4, 8>, 8, 2>(600, in0, in1, out0, f32(1e0));
  let_next_kernel_come();
}
AOTI_KERNEL_END(k_fourier_rows)

AOTI_RESIDENT_KERNEL(10, 16) k_fourier_rows_2(Run run, const f64 *in0, const f64 *__restrict__ in1, f64 *__restrict__ out0) {
  (void)run;
  let_next_kernel_come();
  begin_kernel();
  fourier_of_teams<fourier::kInverse, fourier::kConvolved, 37, fourier::TeamRadices<10, 8>, 10, 1>(3, in0, in1, out0, f64(1e0));
}
AOTI_KERNEL_END(k_fourier_rows_2)

