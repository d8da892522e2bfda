// C interface of the compiled model `Double 'trouble' \u{202e}\`, written by cargo-aoti.
//
// | input | elements | sizes | bounds |
// |---|---|---|---|
// | `spectrum` | `c64` | `[seq]` | `seq`: from 2 |
// | `type_` (`type` in the program) | `f16` | `[seq]` | `seq`: from 2 |
// | `self_` (`self` in the program) | `bf16` | `[2*seq, seq]` | `2*seq`: from 4, `seq`: from 2 |
// | `a_b` (`a.b` in the program) | `bool` | `[]` | |
// | `a_b_2` (`a b` in the program) | `u8` | `[0]` | |
// | `u5165_u529b` (`入力` in the program) | `i8` | `[3]` | |
// | `count_2` (`count` in the program) | `i16` | `[3]` | |
// | `x` (`X` in the program) | `i32` | `[3]` | |
// | `unnamed` (` ` in the program) | `i64` | `[3]` | |
// | `unnamed_2` (`*/ '\|\u{a}\` in the program) | `f64` | `[3]` | |
// | `inputs` | `f32` | `[batch\|'x']` | `batch\|'x'`: 1 to 9 |
//
// | output | elements | sizes | bounds |
// |---|---|---|---|
// | `wide` | `c128` | `[seq]` | `seq`: from 2 |
// | `narrow` | `c32` | `[seq]` | `seq`: from 2 |
// | `out_0` (`out[0]` in the program) | `bool` | `[]` | |
// | `out_1` (`out[1]` in the program) | `i64` | `[seq]` | `seq`: from 2 |
// | `self_` (`self` in the program) | `f16` | `[]` | |
//
// | state | elements | sizes | bounds |
// |---|---|---|---|
// | `cache_k` (`cache.k` in the program) | `f32` | `[4, 8]` | |
// | `cache_k_2` (`cache_k` in the program) | `f32` | `[]` | |
#pragma once

#include <aoti/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

// The model's function table: lives as long as the library and needs no freeing.
const AotiApi *aoti_double_trouble_085a10a0eec1_api(void);

// The same by a name that does not change with the package's version.
static inline const AotiApi *aoti_double_trouble_api(void) {
  return aoti_double_trouble_085a10a0eec1_api();
}

// Positions of the inputs.
enum {
  DOUBLE_TROUBLE_INPUT_SPECTRUM = 0,
  DOUBLE_TROUBLE_INPUT_TYPE_ = 1,
  DOUBLE_TROUBLE_INPUT_SELF_ = 2,
  DOUBLE_TROUBLE_INPUT_A_B = 3,
  DOUBLE_TROUBLE_INPUT_A_B_2 = 4,
  DOUBLE_TROUBLE_INPUT_U5165_U529B = 5,
  DOUBLE_TROUBLE_INPUT_COUNT_2 = 6,
  DOUBLE_TROUBLE_INPUT_X = 7,
  DOUBLE_TROUBLE_INPUT_UNNAMED = 8,
  DOUBLE_TROUBLE_INPUT_UNNAMED_2 = 9,
  DOUBLE_TROUBLE_INPUT_INPUTS = 10,
  DOUBLE_TROUBLE_INPUT_COUNT = 11
};

// Positions of the outputs.
enum {
  DOUBLE_TROUBLE_OUTPUT_WIDE = 0,
  DOUBLE_TROUBLE_OUTPUT_NARROW = 1,
  DOUBLE_TROUBLE_OUTPUT_OUT_0 = 2,
  DOUBLE_TROUBLE_OUTPUT_OUT_1 = 3,
  DOUBLE_TROUBLE_OUTPUT_SELF_ = 4,
  DOUBLE_TROUBLE_OUTPUT_COUNT = 5
};

// Positions of the states.
enum {
  DOUBLE_TROUBLE_STATE_CACHE_K = 0,
  DOUBLE_TROUBLE_STATE_CACHE_K_2 = 1,
  DOUBLE_TROUBLE_STATE_COUNT = 2
};

// Describes input `spectrum`: `[seq]`, row-major, each element its real and its imaginary part.
static inline AotiTensor double_trouble_input_spectrum(const float *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_C64, {AOTI_CPU, 0}};
  return tensor;
}

// Describes input `type_` (`type` in the program): `[seq]`, row-major.
static inline AotiTensor double_trouble_input_type_(const uint16_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_F16, {AOTI_CPU, 0}};
  return tensor;
}

// Describes input `self_` (`self` in the program): `[2*seq, seq]`, row-major.
static inline AotiTensor double_trouble_input_self_(const uint16_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 2, AOTI_BF16, {AOTI_CPU, 0}};
  return tensor;
}

// Describes input `a_b` (`a.b` in the program): `[]`, row-major.
static inline AotiTensor double_trouble_input_a_b(const uint8_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 0, AOTI_BOOL, {AOTI_CPU, 0}};
  return tensor;
}

// Describes input `a_b_2` (`a b` in the program): `[0]`, row-major.
static inline AotiTensor double_trouble_input_a_b_2(const uint8_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_U8, {AOTI_CPU, 0}};
  return tensor;
}

// Describes input `u5165_u529b` (`入力` in the program): `[3]`, row-major.
static inline AotiTensor double_trouble_input_u5165_u529b(const int8_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_I8, {AOTI_CPU, 0}};
  return tensor;
}

// Describes input `count_2` (`count` in the program): `[3]`, row-major.
static inline AotiTensor double_trouble_input_count_2(const int16_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_I16, {AOTI_CPU, 0}};
  return tensor;
}

// Describes input `x` (`X` in the program): `[3]`, row-major.
static inline AotiTensor double_trouble_input_x(const int32_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_I32, {AOTI_CPU, 0}};
  return tensor;
}

// Describes input `unnamed` (` ` in the program): `[3]`, row-major.
static inline AotiTensor double_trouble_input_unnamed(const int64_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_I64, {AOTI_CPU, 0}};
  return tensor;
}

// Describes input `unnamed_2` (`*/ '\|\u{a}\` in the program): `[3]`, row-major.
static inline AotiTensor double_trouble_input_unnamed_2(const double *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_F64, {AOTI_CPU, 0}};
  return tensor;
}

// Describes input `inputs`: `[batch\|'x']`, row-major.
static inline AotiTensor double_trouble_input_inputs(const float *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_F32, {AOTI_CPU, 0}};
  return tensor;
}

// Describes output `wide`: `[seq]`, row-major, each element its real and its imaginary part.
static inline AotiTensor double_trouble_output_wide(double *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_C128, {AOTI_CPU, 0}};
  return tensor;
}

// Describes output `narrow`: `[seq]`, row-major, each element its real and its imaginary part.
static inline AotiTensor double_trouble_output_narrow(uint16_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_C32, {AOTI_CPU, 0}};
  return tensor;
}

// Describes output `out_0` (`out[0]` in the program): `[]`, row-major.
static inline AotiTensor double_trouble_output_out_0(uint8_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 0, AOTI_BOOL, {AOTI_CPU, 0}};
  return tensor;
}

// Describes output `out_1` (`out[1]` in the program): `[seq]`, row-major.
static inline AotiTensor double_trouble_output_out_1(int64_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 1, AOTI_I64, {AOTI_CPU, 0}};
  return tensor;
}

// Describes output `self_` (`self` in the program): `[]`, row-major.
static inline AotiTensor double_trouble_output_self_(uint16_t *data, const int64_t *sizes) {
  AotiTensor tensor = {(void *)data, sizes, 0, 0, AOTI_F16, {AOTI_CPU, 0}};
  return tensor;
}

#ifdef __cplusplus
}
#endif
