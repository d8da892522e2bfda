// How the driver of a vendor is asked for things: CUDA's or, with EMULATED_HIP, HIP's.
#pragma once

#ifdef EMULATED_HIP
#define NAME(CUDA, HIP) HIP
#else
#define NAME(CUDA, HIP) CUDA
#endif
#define DEVICE_KIND NAME(AOTI_CUDA, AOTI_ROCM)
#define DRIVER_FILE NAME("libcuda.so.1", "libamdhip64.so.6")

#include <dlfcn.h>

// A function of the driver that the program has opened.
template <class Signature> Signature *driver(const char *name) {
  return (Signature *)dlsym(dlopen(DRIVER_FILE, RTLD_NOW | RTLD_NOLOAD), name);
}
