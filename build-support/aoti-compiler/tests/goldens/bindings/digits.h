// C interface of the compiled model `digits`, written by cargo-aoti.
//
// | input | elements | sizes | bounds |
// |---|---|---|---|
// | `image` | `f32` | `[batch, 1, 28, 28]` | `batch`: 1 to 64 |
//
// | output | elements | sizes | bounds |
// |---|---|---|---|
// | `logits` | `f32` | `[batch, 10]` | `batch`: 1 to 64 |
#pragma once

#include <aoti/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

// The model's function table: lives as long as the library and needs no freeing.
const AotiApi *aoti_digits_api(void);

// Positions of the inputs.
enum {
  DIGITS_INPUT_IMAGE = 0,
  DIGITS_INPUT_COUNT = 1
};

// Positions of the outputs.
enum {
  DIGITS_OUTPUT_LOGITS = 0,
  DIGITS_OUTPUT_COUNT = 1
};

// Describes input `image`: `[batch, 1, 28, 28]`, row-major.
static inline AotiTensor digits_input_image(const float *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 4, AOTI_F32, {AOTI_CPU, 0}};
  return tensor;
}

// Describes output `logits`: `[batch, 10]`, row-major.
static inline AotiTensor digits_output_logits(float *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 2, AOTI_F32, {AOTI_CPU, 0}};
  return tensor;
}

#ifdef __cplusplus
}
#endif
