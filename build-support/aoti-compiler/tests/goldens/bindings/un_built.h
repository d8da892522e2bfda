// C interface of the compiled model `un-built`, written by cargo-aoti.
//
// | input | elements | sizes | bounds |
// |---|---|---|---|
// | `x` | `f32` | `[3]` | |
//
// | output | elements | sizes | bounds |
// |---|---|---|---|
// | `x` | `f32` | `[3]` | |
#pragma once

#include <aoti/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

// The model's function table: lives as long as the library and needs no freeing.
const AotiApi *aoti_un_built_api(void);

// Positions of the inputs.
enum {
  UN_BUILT_INPUT_X = 0,
  UN_BUILT_INPUT_COUNT = 1
};

// Positions of the outputs.
enum {
  UN_BUILT_OUTPUT_X = 0,
  UN_BUILT_OUTPUT_COUNT = 1
};

// Describes input `x`: `[3]`, row-major.
static inline AotiTensor un_built_input_x(const float *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_F32, {AOTI_CPU, 0}};
  return tensor;
}

// Describes output `x`: `[3]`, row-major.
static inline AotiTensor un_built_output_x(float *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_F32, {AOTI_CPU, 0}};
  return tensor;
}

#ifdef __cplusplus
}
#endif
