// C interface of the compiled model `constant`, written by cargo-aoti.
//
// | output | elements | sizes | bounds |
// |---|---|---|---|
// | `out` | `i64` | `[2]` | |
#pragma once

#include <aoti/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

// The model's function table: lives as long as the library and needs no freeing.
const AotiApi *aoti_constant_api(void);

// Positions of the inputs.
enum {
  CONSTANT_INPUT_COUNT = 0
};

// Positions of the outputs.
enum {
  CONSTANT_OUTPUT_OUT = 0,
  CONSTANT_OUTPUT_COUNT = 1
};

// Describes output `out`: `[2]`, row-major.
static inline AotiTensor constant_output_out(int64_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_I64, {AOTI_CPU, 0}};
  return tensor;
}

#ifdef __cplusplus
}
#endif
