// C interface of the compiled model `for`, written by cargo-aoti.
//
// | input | elements | sizes | bounds |
// |---|---|---|---|
// | `x` | `f32` | `[]` | |
#pragma once

#include <aoti/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

// The model's function table: lives as long as the library and needs no freeing.
const AotiApi *aoti_for__api(void);

// Positions of the inputs.
enum {
  FOR__INPUT_X = 0,
  FOR__INPUT_COUNT = 1
};

// Positions of the outputs.
enum {
  FOR__OUTPUT_COUNT = 0
};

// Describes input `x`: `[]`, row-major.
static inline AotiTensor for__input_x(const float *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 0, AOTI_F32, {AOTI_CPU, 0}};
  return tensor;
}

#ifdef __cplusplus
}
#endif
