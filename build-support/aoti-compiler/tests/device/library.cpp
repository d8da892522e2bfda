// cuBLASLt and hipBLASLt for tests: products computed here, column by column, in f32, when their stream comes to them. Counts them,
// and refuses what is not described as a model describes it.
#include "vendor.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The attributes of a description, the numbers of an operation that turns nothing, and of sums in f32.
constexpr int kTurn = NAME(3, 0), kEpilogue = NAME(7, 2), kBias = NAME(8, 3), kPlain = NAME(0, 111), kCompute = NAME(68, 2);

struct Layout { int type; uint64_t rows, columns; int64_t pitch; };
struct Description { int compute, scale, turn[2], epilogue; const void *bias; };
struct Preference { uint64_t workspace; uint32_t alignment[4]; };
extern "C" { int emulated_products; }

static float get(const void *from, int type, int64_t at) {
  if (type == 0) return ((const float *)from)[at];
  if (type == 2) return float(((const _Float16 *)from)[at]);
  const uint32_t bits = uint32_t(((const uint16_t *)from)[at]) << 16;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
static void put(void *to, int type, int64_t at, float value) {
  if (type == 0) ((float *)to)[at] = value;
  if (type == 2) ((_Float16 *)to)[at] = _Float16(value);
  if (type == 14) abort();
}

extern "C" {
int NAME(cublasLtCreate, hipblasLtCreate)(void **handle) { *handle = malloc(1); return 0; }
int NAME(cublasLtDestroy, hipblasLtDestroy)(void *handle) { free(handle); return 0; }
int NAME(cublasLtMatmulDescCreate, hipblasLtMatmulDescCreate)(Description **own, int compute, int scale) {
  *own = (Description *)calloc(1, sizeof(Description));
  (*own)->compute = compute, (*own)->scale = scale, (*own)->epilogue = 1, (*own)->turn[0] = (*own)->turn[1] = kPlain;
  return compute == kCompute && scale == 0 ? 0 : 7;
}
int NAME(cublasLtMatmulDescDestroy, hipblasLtMatmulDescDestroy)(Description *own) { free(own); return 0; }
int NAME(cublasLtMatmulDescSetAttribute, hipblasLtMatmulDescSetAttribute)(Description *own, int attribute, const void *value, size_t bytes) {
  if (attribute == kTurn || attribute == kTurn + 1) return bytes == 4 ? (memcpy(&own->turn[attribute - kTurn], value, 4), 0) : 7;
  if (attribute == kEpilogue) return bytes == 4 ? (memcpy(&own->epilogue, value, 4), 0) : 7;
  if (attribute == kBias) return bytes == 8 ? (memcpy(&own->bias, value, 8), 0) : 7;
  return 7;
}
int NAME(cublasLtMatrixLayoutCreate, hipblasLtMatrixLayoutCreate)(Layout **own, int type, uint64_t rows, uint64_t columns, int64_t pitch) {
  if (pitch < int64_t(rows)) return 7;
  *own = (Layout *)malloc(sizeof(Layout));
  **own = {type, rows, columns, pitch};
  return 0;
}
int NAME(cublasLtMatrixLayoutDestroy, hipblasLtMatrixLayoutDestroy)(Layout *own) { free(own); return 0; }
int NAME(cublasLtMatmulPreferenceCreate, hipblasLtMatmulPreferenceCreate)(Preference **own) { *own = (Preference *)calloc(1, sizeof(Preference)); return 0; }
int NAME(cublasLtMatmulPreferenceDestroy, hipblasLtMatmulPreferenceDestroy)(Preference *own) { free(own); return 0; }
int NAME(cublasLtMatmulPreferenceSetAttribute, hipblasLtMatmulPreferenceSetAttribute)(Preference *own, int attribute, const void *value, size_t bytes) {
  if (attribute == 1) return bytes == 8 ? (memcpy(&own->workspace, value, 8), 0) : 7;
  if (NAME(true, false) && attribute >= 5 && attribute < 9) return bytes == 4 ? (memcpy(&own->alignment[attribute - 5], value, 4), 0) : 7;
  return 7;
}
struct Result { uint64_t algorithm[8]; size_t workspace; int state; float waves; int reserved[4]; };
int NAME(cublasLtMatmulAlgoGetHeuristic, hipblasLtMatmulAlgoGetHeuristic)(void *, Description *, Layout *a, Layout *b, Layout *c, Layout *d, Preference *preference, int wanted,
                                   Result *results, int *found) {
  for (uint32_t alignment : preference->alignment)
    if (alignment != NAME(16, 0)) return 7;
  if (!a || !b || c != d || wanted != 1 || preference->workspace < 1 << 20) return 7;
  *results = Result{};
  results->algorithm[0] = 4711, results->workspace = 1 << 20;
  *found = 1;
  return 0;
}
struct Product {
  Description own;
  Layout al, bl, dl;
  const void *a, *b;
  void *d, *workspace;
};
static void compute(void *with) {
  const Product &product = *(const Product *)with;
  const Description &own = product.own;
  const Layout &al = product.al, &bl = product.bl, &dl = product.dl;
  // The memory is the library's alone.
  memset(product.workspace, 0x77, 1 << 20);
  const bool turned[] = {own.turn[0] != kPlain, own.turn[1] != kPlain};
  const uint64_t depth = turned[0] ? al.rows : al.columns;
  for (uint64_t column = 0; column < dl.columns; ++column)
    for (uint64_t row = 0; row < dl.rows; ++row) {
      float sum = 0;
      for (uint64_t k = 0; k < depth; ++k)
        sum += get(product.a, al.type, turned[0] ? int64_t(k) + int64_t(row) * al.pitch : int64_t(row) + int64_t(k) * al.pitch) *
               get(product.b, bl.type, turned[1] ? int64_t(column) + int64_t(k) * bl.pitch : int64_t(k) + int64_t(column) * bl.pitch);
      if (own.epilogue & 4) sum += get(own.bias, dl.type, int64_t(row));
      if (own.epilogue & 2) sum = sum < 0 ? 0 : sum;
      put(product.d, dl.type, int64_t(row) + int64_t(column) * dl.pitch, sum);
    }
  ++emulated_products;
}
int NAME(cublasLtMatmul, hipblasLtMatmul)(void *, Description *own, const float *alpha, const void *a, Layout *al, const void *b, Layout *bl,
                                          const float *beta, const void *c, Layout *, void *d, Layout *dl, const uint64_t *algorithm,
                                          void *workspace, size_t bytes, void *stream) {
  if (*alpha != 1 || *beta != 0 || c != d || *algorithm != 4711 || bytes < 1 << 20) return 7;
  // A graph may repeat it.
  Product *product = (Product *)malloc(sizeof(Product));
  *product = {*own, *al, *bl, *dl, a, b, d, workspace};
  driver<void(void *, void (*)(void *), void *)>("emulated_put")(stream, compute, product);
  return 0;
}
__attribute__((destructor)) static void say() {
  if (FILE *file = fopen("products", "w")) fprintf(file, "%d", emulated_products), fclose(file);
}
}
