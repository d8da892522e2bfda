// C interface of the compiled model `fake`, written by cargo-aoti.
//
// | input | elements | sizes | bounds |
// |---|---|---|---|
// | `x` | `f32` | `[batch, 3]` | `batch`: 1 to 1000000 |
//
// | output | elements | sizes | bounds |
// |---|---|---|---|
// | `y` | `f32` | `[batch, 3]` | `batch`: 1 to 1000000 |
// | `count_2` (`count` in the program) | `i64` | `[]` | |
//
// | state | elements | sizes | bounds |
// |---|---|---|---|
// | `count_2` (`count` in the program) | `i64` | `[]` | |
#pragma once

#include <aoti/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

// The model's function table: lives as long as the library and needs no freeing.
const AotiApi *aoti_fake_api(void);

// Positions of the inputs.
enum {
  FAKE_INPUT_X = 0,
  FAKE_INPUT_COUNT = 1
};

// Positions of the outputs.
enum {
  FAKE_OUTPUT_Y = 0,
  FAKE_OUTPUT_COUNT_2 = 1,
  FAKE_OUTPUT_COUNT = 2
};

// Positions of the states.
enum {
  FAKE_STATE_COUNT_2 = 0,
  FAKE_STATE_COUNT = 1
};

// Describes input `x`: `[batch, 3]`, row-major.
static inline AotiTensor fake_input_x(const float *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 2, AOTI_F32, {AOTI_CPU, 0}};
  return tensor;
}

// Describes output `y`: `[batch, 3]`, row-major.
static inline AotiTensor fake_output_y(float *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 2, AOTI_F32, {AOTI_CPU, 0}};
  return tensor;
}

// Describes output `count_2` (`count` in the program): `[]`, row-major.
static inline AotiTensor fake_output_count_2(int64_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 0, AOTI_I64, {AOTI_CPU, 0}};
  return tensor;
}

#ifdef __cplusplus
}
#endif
