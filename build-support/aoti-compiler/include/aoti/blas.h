// Libraries of matrix products for processors, OpenBLAS and oneDNN. They are opened when a model that may use them is loaded, and
// never needed: where there is none, kernels compute their products themselves.
//
// Kernels call a library from threads that have work of their own, so it must not start any.
#pragma once

#include "dynamic.h"
#include <stdint.h>

namespace aoti {

// c = a * b, where a has m x k and b k x n elements. What is turned lies by columns.
template <class T> struct BlasProduct {
  int m, n, k;
  const T *a;
  int a_pitch;
  bool a_turned;
  const T *b;
  int b_pitch;
  bool b_turned;
  T *c;
  int c_pitch;
};

// CBLAS_LAYOUT and CBLAS_TRANSPOSE.
constexpr int kBlasRowMajor = 101, kBlasAsItIs = 111, kBlasTurned = 112;

// OpenBLAS has one number of threads for the whole program. Where the program opened it for itself, that number is the program's
// affair: the library is asked only if it is one.
struct OpenBlas {
  template <class T>
  using Multiply = void (*)(int order, int turn_a, int turn_b, int m, int n, int k, T alpha, const T *a, int a_pitch, const T *b,
                            int b_pitch, T beta, T *c, int c_pitch);
  // Functions of CBLAS; null where there is no library.
  Multiply<float> f32;
  Multiply<double> f64;

  static void open();
  // Whether the library computed it.
  template <class T> static bool multiply(const BlasProduct<T> &own);
};

// oneDNN runs on OpenMP, which has a number of threads for each thread that asks: it is one during a product.
struct OneDnn {
  using Multiply = int (*)(char turn_a, char turn_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t a_pitch,
                           const float *b, int64_t b_pitch, float beta, float *c, int64_t c_pitch);
  // Null where there is no library.
  Multiply f32;
  // Null where the library never starts threads.
  int (*threads)();
  void (*set_threads)(int);

  static void open();
  // Whether the library computed it.
  static bool multiply(const BlasProduct<float> &own);
};

// All models of a program share them, those too that other versions of the compiler made: hence the numbers.
inline OpenBlas opened_blas_1;
inline OneDnn opened_onednn_1;

inline void OpenBlas::open() {
  if (__atomic_load_n(&opened_blas_1.f64, __ATOMIC_ACQUIRE)) return;
#if defined(_WIN32)
  constexpr const char *file = "libopenblas.dll";
#elif defined(__APPLE__)
  constexpr const char *file = "libopenblas.0.dylib";
#else
  constexpr const char *file = "libopenblas.so.0";
#endif
  const bool is_ours = !is_library_open(file);
  void *const library = open_library(file);
  if (!library) return;
  const auto threads = (int (*)())library_symbol(library, "openblas_get_num_threads");
  const auto set_threads = (void (*)(int))library_symbol(library, "openblas_set_num_threads");
  const auto f32 = (Multiply<float>)library_symbol(library, "cblas_sgemm");
  const auto f64 = (Multiply<double>)library_symbol(library, "cblas_dgemm");
  if (!threads || !set_threads || !f32 || !f64) return;
  if (is_ours) set_threads(1);
  if (threads() != 1) return;
  __atomic_store_n(&opened_blas_1.f32, f32, __ATOMIC_RELAXED);
  __atomic_store_n(&opened_blas_1.f64, f64, __ATOMIC_RELEASE);
}

template <class T> inline bool OpenBlas::multiply(const BlasProduct<T> &own) {
  Multiply<T> function;
  if constexpr (sizeof(T) == sizeof(float))
    function = opened_blas_1.f32;
  else
    function = opened_blas_1.f64;
  if (!function) return false;
  const auto turn = [](bool is_turned) { return is_turned ? kBlasTurned : kBlasAsItIs; };
  function(kBlasRowMajor, turn(own.a_turned), turn(own.b_turned), own.m, own.n, own.k, T(1), own.a, own.a_pitch, own.b, own.b_pitch,
           T(0), own.c, own.c_pitch);
  return true;
}

inline void OneDnn::open() {
  if (__atomic_load_n(&opened_onednn_1.f32, __ATOMIC_ACQUIRE)) return;
  // dnnl_version_t and the values of DNNL_CPU_THREADING_RUNTIME.
  struct Version {
    int major, minor, patch;
    const char *hash;
    unsigned threading;
  };
  constexpr unsigned alone = 1, open_mp = 2;
#if defined(_WIN32)
  constexpr const char *files[] = {"dnnl.dll"};
#elif defined(__APPLE__)
  constexpr const char *files[] = {"libdnnl.3.dylib", "libdnnl.2.dylib"};
#else
  constexpr const char *files[] = {"libdnnl.so.3", "libdnnl.so.2"};
#endif
  void *library = nullptr;
  for (const char *file : files)
    if ((library = open_library(file))) break;
  if (!library) return;
  const auto version = (const Version *(*)())library_symbol(library, "dnnl_version");
  const auto f32 = (Multiply)library_symbol(library, "dnnl_sgemm");
  if (!version || !f32) return;
  const unsigned threading = version()->threading;
  if (threading == open_mp) {
    const auto threads = (int (*)())library_symbol(library, "omp_get_max_threads");
    const auto set_threads = (void (*)(int))library_symbol(library, "omp_set_num_threads");
    if (!threads || !set_threads) return;
    __atomic_store_n(&opened_onednn_1.threads, threads, __ATOMIC_RELAXED);
    __atomic_store_n(&opened_onednn_1.set_threads, set_threads, __ATOMIC_RELAXED);
  } else if (threading != alone) {
    return;
  }
  __atomic_store_n(&opened_onednn_1.f32, f32, __ATOMIC_RELEASE);
}

inline bool OneDnn::multiply(const BlasProduct<float> &own) {
  const OneDnn &library = opened_onednn_1;
  if (!library.f32) return false;
  const int threads = library.threads ? library.threads() : 1;
  if (threads != 1) library.set_threads(1);
  const auto turn = [](bool is_turned) { return is_turned ? 'T' : 'N'; };
  const int failure = library.f32(turn(own.a_turned), turn(own.b_turned), own.m, own.n, own.k, 1.0f, own.a, own.a_pitch, own.b,
                                  own.b_pitch, 0.0f, own.c, own.c_pitch);
  if (threads != 1) library.set_threads(threads);
  return failure == 0;
}

// Opens all that a model may ask.
template <class... Libraries> inline void open_libraries() { (Libraries::open(), ...); }

} // namespace aoti
