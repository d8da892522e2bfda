// Memory at an alignment, which systems give under different names. Knows nothing of models.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#if defined(_WIN32)
#include <malloc.h>
#endif

namespace aoti {
namespace {

// Whether there can be so many bytes: addresses may have 32 bits.
constexpr bool is_addressable(int64_t bytes) { return bytes >= 0 && uint64_t(bytes) <= SIZE_MAX; }

// Memory whose address is a multiple of a power of two, or null. Only `free_aligned` takes it back.
__attribute__((unused)) void *allocate_aligned(size_t alignment, int64_t bytes) {
  if (!is_addressable(bytes)) return nullptr;
#if defined(_WIN32)
  return _aligned_malloc(size_t(bytes), alignment);
#else
  // Releases of Android and macOS have it that lack `aligned_alloc`.
  void *memory = nullptr;
  return posix_memalign(&memory, alignment, size_t(bytes)) == 0 ? memory : nullptr;
#endif
}

__attribute__((unused)) void free_aligned(void *memory) {
#if defined(_WIN32)
  _aligned_free(memory);
#else
  free(memory);
#endif
}

} // namespace
} // namespace aoti
