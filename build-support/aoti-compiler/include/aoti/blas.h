// A library of matrix products for processors, OpenBLAS. It is opened when a model that may use it is loaded, and never needed:
// where there is none, kernels compute their products themselves.
//
// The library is one for the whole program, and so is its number of threads. Kernels call it from threads that have work of their
// own, so it must not start any. Where the program opened it for itself, its number of threads is the program's affair: it is
// asked only if that is one.
#pragma once

#include <dlfcn.h>

namespace aoti {

// Functions of CBLAS; null where there is no library.
struct Blas {
  template <class T>
  using Multiply = void (*)(int order, int turn_a, int turn_b, int m, int n, int k, T alpha, const T *a, int a_pitch, const T *b,
                            int b_pitch, T beta, T *c, int c_pitch);
  Multiply<float> f32;
  Multiply<double> f64;
};

// CBLAS_LAYOUT and CBLAS_TRANSPOSE.
constexpr int kBlasRowMajor = 101, kBlasAsItIs = 111, kBlasTurned = 112;

// All models of a program share it, those too that other versions of the compiler made: hence the number.
inline Blas opened_blas_1;

__attribute__((unused)) inline void open_blas() {
  if (__atomic_load_n(&opened_blas_1.f64, __ATOMIC_ACQUIRE)) return;
  constexpr const char *file = "libopenblas.so.0";
  const bool is_ours = !dlopen(file, RTLD_NOW | RTLD_NOLOAD);
  void *const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) return;
  const auto threads = (int (*)())dlsym(library, "openblas_get_num_threads");
  const auto set_threads = (void (*)(int))dlsym(library, "openblas_set_num_threads");
  const auto f32 = (Blas::Multiply<float>)dlsym(library, "cblas_sgemm");
  const auto f64 = (Blas::Multiply<double>)dlsym(library, "cblas_dgemm");
  if (!threads || !set_threads || !f32 || !f64) return;
  if (is_ours) set_threads(1);
  if (threads() != 1) return;
  __atomic_store_n(&opened_blas_1.f32, f32, __ATOMIC_RELAXED);
  __atomic_store_n(&opened_blas_1.f64, f64, __ATOMIC_RELEASE);
}

} // namespace aoti
