// Matrix products by a vendor's library, cuBLASLt or hipBLASLt, whose functions differ in their names and in a few numbers. The
// library is opened when a model that may use it is loaded, and never needed: where there is none, where its version is another,
// or where it has no algorithm for a product, the model's own kernel computes it.
//
// Matrices of these libraries lie column by column, those of programs row by row: the library computes the transposed product.
#pragma once

#include "driver.h"

namespace aoti {
namespace gpu {

enum ProductType { kProductF32, kProductF16, kProductBf16, kProductTf32 };

// m by n sums of k products. Rows lie a pitch of elements apart; of a turned matrix columns do.
struct Product {
  int64_t m, n, k, a_pitch, b_pitch, d_pitch;
  bool a_turned, b_turned;
  ProductType type;
  bool relu;    // negative results are zero
  int64_t bias; // offset among the weights of what is added to each row, or -1
};

// A product as the library was told of it; without a description there is no way to compute it.
struct PreparedProduct {
  void *description, *a, *b, *d;
  alignas(16) char algorithm[128]; // a result of the library's heuristics, which begins with the algorithm
};

// Device memory that a product may use while it is computed.
constexpr int64_t kLibraryBytes = 32 << 20;

namespace detail {
struct LibraryRow;
}

struct MathLibrary {
  void *library;
  void *handle;
  const detail::LibraryRow *row;
  int (*create)(void **handle);
  int (*destroy)(void *handle);
  int (*description_create)(void **description, int compute, int scale);
  int (*description_destroy)(void *description);
  int (*description_set)(void *description, int attribute, const void *value, size_t bytes);
  int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t pitch);
  int (*layout_destroy)(void *layout);
  int (*preference_create)(void **preference);
  int (*preference_destroy)(void *preference);
  int (*preference_set)(void *preference, int attribute, const void *value, size_t bytes);
  int (*heuristic)(void *handle, void *description, void *a, void *b, void *c, void *d, void *preference, int wanted, void *results,
                   int *found);
  int (*multiply)(void *handle, void *description, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout,
                  const void *beta, const void *c, void *c_layout, void *d, void *d_layout, const void *algorithm, void *workspace,
                  size_t workspace_bytes, Stream stream);
};

namespace detail {

// Numbers that are the same in no two headers.
struct LibraryNumbers {
  int as_it_is, turned, turn_a, turn_b, epilogue, bias_pointer, compute_f32, compute_tf32;
};

// In what the libraries differ: whose devices it is for, the files that this was written for, what its functions' names begin
// with, and whether it is told how operands are aligned.
struct LibraryRow {
  Vendor vendor;
  const char *files[2], *prefix;
  LibraryNumbers numbers;
  bool is_told_alignment;
};
inline constexpr LibraryRow kLibraries[] = {
    {kNvidia, {"libcublasLt.so.13", "libcublasLt.so.12"}, "cublasLt", {0, 1, 3, 4, 7, 8, 68, 77}, true},
    {kAmd, {"libhipblaslt.so.1", "libhipblaslt.so.0"}, "hipblasLt", {111, 112, 0, 1, 2, 3, 2, 2}, false},
};
// And those that are the same: cudaDataType and hipDataType, epilogues, attributes of preferences; the last four are
// cuBLASLt's alone.
constexpr int kTypeF32 = 0, kTypeF16 = 2, kTypeBf16 = 14, kRelu = 2, kAddBias = 4, kMostWorkspace = 1, kLeastAlignment = 5;
// Buffers of models are aligned so, whatever offset a matrix begins at.
constexpr uint32_t kProductAlignment = 16;

struct LibrarySymbol {
  size_t offset;
  const char *name; // behind the prefix
};
#define AOTI_LIBRARY_SYMBOL(FIELD, NAME) {offsetof(MathLibrary, FIELD), NAME}
inline constexpr LibrarySymbol kLibrarySymbols[] = {
    AOTI_LIBRARY_SYMBOL(create, "Create"),
    AOTI_LIBRARY_SYMBOL(destroy, "Destroy"),
    AOTI_LIBRARY_SYMBOL(description_create, "MatmulDescCreate"),
    AOTI_LIBRARY_SYMBOL(description_destroy, "MatmulDescDestroy"),
    AOTI_LIBRARY_SYMBOL(description_set, "MatmulDescSetAttribute"),
    AOTI_LIBRARY_SYMBOL(layout_create, "MatrixLayoutCreate"),
    AOTI_LIBRARY_SYMBOL(layout_destroy, "MatrixLayoutDestroy"),
    AOTI_LIBRARY_SYMBOL(preference_create, "MatmulPreferenceCreate"),
    AOTI_LIBRARY_SYMBOL(preference_destroy, "MatmulPreferenceDestroy"),
    AOTI_LIBRARY_SYMBOL(preference_set, "MatmulPreferenceSetAttribute"),
    AOTI_LIBRARY_SYMBOL(heuristic, "MatmulAlgoGetHeuristic"),
    AOTI_LIBRARY_SYMBOL(multiply, "Matmul"),
};
#undef AOTI_LIBRARY_SYMBOL

} // namespace detail

// Opens a vendor's library for the current context; false where that cannot be done.
__attribute__((unused)) inline bool open_library(Vendor vendor, MathLibrary *own) {
  *own = MathLibrary{};
  for (const detail::LibraryRow &row : detail::kLibraries)
    if (row.vendor == vendor) own->row = &row;
  if (!own->row) return false;
  for (const char *name : own->row->files)
    if (!own->library) own->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  bool whole = own->library != nullptr;
  for (const detail::LibrarySymbol &symbol : detail::kLibrarySymbols) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", own->row->prefix, symbol.name);
    void *found = whole ? dlsym(own->library, name) : nullptr;
    whole = found != nullptr;
    *(void **)((char *)own + symbol.offset) = found;
  }
  if (whole && !own->create(&own->handle)) return true;
  // The library stays open: what it started is not ours to end.
  own->handle = nullptr;
  return false;
}

__attribute__((unused)) inline void forget(const MathLibrary &own, PreparedProduct *product) {
  if (product->description) own.description_destroy(product->description);
  if (product->a) own.layout_destroy(product->a);
  if (product->b) own.layout_destroy(product->b);
  if (product->d) own.layout_destroy(product->d);
  *product = PreparedProduct{};
}

// Describes a product and takes the algorithm that the library thinks best; false where it has none.
__attribute__((unused)) inline bool prepare(const MathLibrary &own, const Product &product, Address weights,
                                            PreparedProduct *prepared) {
  const detail::LibraryNumbers &number = own.row->numbers;
  const int type = product.type == kProductF16    ? detail::kTypeF16
                   : product.type == kProductBf16 ? detail::kTypeBf16
                                                  : detail::kTypeF32;
  const int compute = product.type == kProductTf32 ? number.compute_tf32 : number.compute_f32;
  const uint64_t m = uint64_t(product.m), n = uint64_t(product.n), k = uint64_t(product.k);
  const auto layout = [&](void **to, bool turned, uint64_t rows, uint64_t columns, int64_t pitch) {
    return own.layout_create(to, type, turned ? columns : rows, turned ? rows : columns, pitch) == 0;
  };
  *prepared = PreparedProduct{};
  void *preference = nullptr;
  // The library's first operand is our second.
  const int turn_first = product.b_turned ? number.turned : number.as_it_is, turn_second = product.a_turned ? number.turned : number.as_it_is;
  bool done = own.description_create(&prepared->description, compute, detail::kTypeF32) == 0 &&
              own.description_set(prepared->description, number.turn_a, &turn_first, sizeof turn_first) == 0 &&
              own.description_set(prepared->description, number.turn_b, &turn_second, sizeof turn_second) == 0 &&
              layout(&prepared->b, product.b_turned, n, k, product.b_pitch) &&
              layout(&prepared->a, product.a_turned, k, m, product.a_pitch) && layout(&prepared->d, false, n, m, product.d_pitch) &&
              own.preference_create(&preference) == 0;
  const int epilogue = (product.relu ? detail::kRelu : 0) | (product.bias >= 0 ? detail::kAddBias : 0);
  const void *const bias = (const void *)uintptr_t(weights + Address(product.bias));
  if (epilogue) done = done && own.description_set(prepared->description, number.epilogue, &epilogue, sizeof epilogue) == 0;
  if (product.bias >= 0) done = done && own.description_set(prepared->description, number.bias_pointer, &bias, sizeof bias) == 0;
  const uint64_t most = uint64_t(kLibraryBytes);
  done = done && own.preference_set(preference, detail::kMostWorkspace, &most, sizeof most) == 0;
  for (int operand = 0; own.row->is_told_alignment && operand < 4; ++operand)
    done = done && own.preference_set(preference, detail::kLeastAlignment + operand, &detail::kProductAlignment,
                                      sizeof detail::kProductAlignment) == 0;
  int found = 0;
  done = done && own.heuristic(own.handle, prepared->description, prepared->b, prepared->a, prepared->d, prepared->d, preference, 1,
                               prepared->algorithm, &found) == 0;
  if (preference) own.preference_destroy(preference);
  if (!done || found < 1) forget(own, prepared);
  return prepared->description != nullptr;
}

// Computes a product on a stream. Gives the library's code.
__attribute__((unused)) inline int multiply(const MathLibrary &own, const PreparedProduct &product, Address a, Address b, Address d,
                                            Address workspace, Stream stream) {
  const float one = 1.0f, nothing = 0.0f;
  const auto pointer = [](Address address) { return (void *)uintptr_t(address); };
  return own.multiply(own.handle, product.description, &one, pointer(b), product.b, pointer(a), product.a, &nothing, pointer(d),
                      product.d, pointer(d), product.d, product.algorithm, pointer(workspace), size_t(kLibraryBytes), stream);
}

} // namespace gpu
} // namespace aoti
