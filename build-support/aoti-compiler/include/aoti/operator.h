// What a function that computes an operator of a project includes: the types that it is called with, its threads, and how it
// says what went wrong. Plain C11.
#pragma once

#include "abi.h"

// The function gets the arguments of the operator in the order of its schema, then its results, then these two:
//
//   int32_t scaled(const AotiTensor *x, double factor, const AotiTensor *result, const AotiContext *context,
//                  AotiError *error);
//
// Tensors are row-major, in memory of the processor, with null for strides and for an absent one. `int`, `float`, `bool` and
// `str` are int64_t, double, uint8_t and const char *; an optional one is the address of one, or null. Lists are AotiTensors,
// AotiInts, AotiFloats and AotiBools by value. A function writes all elements of the results, and of a tensor that the operator
// changes in place (`Tensor(a!)`) those that it likes, and nothing else, and gives 0 or what `aoti_fail` gave. Runs of one model
// may call it at the same time.
//
// The linker knows the function as `aoti_operator_`, its symbol, `_` and its signature: `aoti_operator_scaled_TfR`. So it never
// stands in for another function of the program, nor is it called with anything else. A `source` of the manifest is compiled
// behind a declaration that says so. A program in C or C++ that has the function itself gives it this name. The signature is a
// letter for each argument, then for each result:
//
//   Tensor T   Tensor? t   Tensor[] L      result Tensor R   Tensor[] M   Tensor(a!) R
//   int i      int? j      int[] I         int[]? J
//   float f    float? g    float[] F       float[]? G
//   bool b     bool? c     bool[] B        bool[]? C
//   str s      str? u
//
// Where the function decides sizes, each result is followed by a tensor `i64` of its sizes. The result has the sizes of the
// largest that there can be, and the function fills the first so many positions along each axis.

#ifdef __cplusplus
extern "C" {
#endif

// Says what went wrong: the run fails with this message, the operator's name and the line of the program.
static inline int32_t aoti_fail(AotiError *error, const char *message) {
  int32_t k = 0;
  for (; message && message[k] && k < AOTI_MESSAGE_BYTES - 1; ++k) error->message[k] = message[k];
  error->message[k] = 0;
  return AOTI_ERROR_OPERATOR;
}

// Runs `body(arg, begin, end, worker)` over parts of [0, n), on the threads of the run.
static inline void aoti_parallel_for(const AotiContext *context, int64_t n, AotiParallelBody body, void *arg) {
  if (n <= 0) return;
  if (context->parallel_for && context->threads > 1)
    context->parallel_for(context->pool, n, body, arg);
  else
    body(arg, 0, n, 0);
}

#ifdef __cplusplus
}
#endif
