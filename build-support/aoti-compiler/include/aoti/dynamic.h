// Opens shared libraries by name while the program runs. Knows no library.
#pragma once

#if defined(_WIN32)
// Of kernel32, whose header defines hundreds of macros.
extern "C" __declspec(dllimport) void *__stdcall GetModuleHandleA(const char *name);
extern "C" __declspec(dllimport) void *__stdcall LoadLibraryA(const char *name);
extern "C" __declspec(dllimport) void *__stdcall GetProcAddress(void *library, const char *name);
#elif !defined(__wasm__)
#include <dlfcn.h>
#endif

namespace aoti {

// Whether the program has opened the library already.
inline bool is_library_open(const char *name) {
#if defined(_WIN32)
  return GetModuleHandleA(name) != nullptr;
#elif defined(__wasm__)
  return name == nullptr; // nothing can be opened
#else
  return dlopen(name, RTLD_NOW | RTLD_NOLOAD) != nullptr;
#endif
}

// The library, which stays open, or null.
inline void *open_library(const char *name) {
#if defined(_WIN32)
  return LoadLibraryA(name);
#elif defined(__wasm__)
  return (void)name, nullptr;
#else
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
#endif
}

// What a library has under a name, or null.
inline void *library_symbol(void *library, const char *name) {
#if defined(_WIN32)
  return GetProcAddress(library, name);
#elif defined(__wasm__)
  return (void)library, (void)name, nullptr;
#else
  return dlsym(library, name);
#endif
}

} // namespace aoti
