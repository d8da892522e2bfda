// The C interface of a compiled model: what the one exported symbol `aoti_<name>_api` gives.
// Plain C11; owns the layouts that callers and generated code share, and knows nothing of kernels.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AOTI_ABI_VERSION 2u
#define AOTI_ALIGNMENT 64
#define AOTI_MESSAGE_BYTES 256

// Element types. Half types are IEEE binary16 and bfloat16; booleans are one byte, 0 or 1.
typedef enum AotiDType {
  AOTI_BOOL = 0,
  AOTI_U8 = 1,
  AOTI_I8 = 2,
  AOTI_I16 = 3,
  AOTI_I32 = 4,
  AOTI_I64 = 5,
  AOTI_F16 = 6,
  AOTI_BF16 = 7,
  AOTI_F32 = 8,
  AOTI_F64 = 9
} AotiDType;

typedef enum AotiStatus {
  AOTI_OK = 0,
  AOTI_ERROR_NULL = 1,       // a pointer that must be given is null
  AOTI_ERROR_COUNT = 2,      // number of inputs or outputs
  AOTI_ERROR_DTYPE = 3,      // element type of an input or output
  AOTI_ERROR_RANK = 4,       // number of dimensions
  AOTI_ERROR_SIZE = 5,       // a fixed dimension has another size
  AOTI_ERROR_RANGE = 6,      // a dynamic dimension is outside its bounds
  AOTI_ERROR_GUARD = 7,      // a condition between dimensions does not hold
  AOTI_ERROR_STRIDE = 8,     // not row-major contiguous
  AOTI_ERROR_ALIGNMENT = 9,  // data or workspace address
  AOTI_ERROR_WORKSPACE = 10, // workspace too small
  AOTI_ERROR_WEIGHTS = 11,   // weights missing, of another size or of another digest
  AOTI_ERROR_CPU = 12,       // this processor runs none of the compiled levels
  AOTI_ERROR_INDEX = 13,     // an index tensor holds an index outside its dimension
  AOTI_ERROR_ASSERT = 14,    // an assertion of the program does not hold
  AOTI_ERROR_MEMORY = 15,    // `create` could not allocate
  AOTI_ERROR_DEVICE = 16     // a device call failed
} AotiStatus;

// `message` is a zero-terminated sentence without a full stop; empty on success.
typedef struct AotiError {
  int32_t code;
  char message[AOTI_MESSAGE_BYTES];
} AotiError;

// A borrowed dense tensor. Strides count elements; null means row-major contiguous, and so must strides be when given.
typedef struct AotiTensor {
  void *data;
  const int64_t *sizes;
  const int64_t *strides;
  int32_t rank;
  int32_t dtype;
} AotiTensor;

// One dimension: `expression` is null for a fixed size (then min == max), else the size in terms of the model's
// symbols, such as "batch" or "2*seq"; bounds are inclusive.
typedef struct AotiDimInfo {
  const char *expression;
  int64_t min;
  int64_t max;
} AotiDimInfo;

typedef struct AotiValueInfo {
  const char *name;
  int32_t dtype;
  int32_t rank;
  const AotiDimInfo *dims;
} AotiValueInfo;

// A weight: a tensor of the program's state (parameters and buffers) by its name there, as a checkpoint holds it.
// `tied_to` is the position of the constant of which this is another name, else -1. `is_read` is 0 where no result depends
// on it: it may be absent.
typedef struct AotiConstantInfo {
  const char *name;
  const int64_t *sizes;
  int32_t dtype;
  int32_t rank;
  int32_t tied_to;
  int32_t is_read;
} AotiConstantInfo;

typedef struct AotiModelInfo {
  const char *name;
  const char *compiler;
  int32_t n_inputs;
  int32_t n_outputs;
  int32_t n_constants;
  int32_t n_states;
  const AotiValueInfo *inputs;
  const AotiValueInfo *outputs;
  const AotiConstantInfo *constants;
  const AotiValueInfo *states; // tensors that the program mutates; they live in the caller's `state`
  int64_t weights_bytes;
  int64_t state_bytes;
} AotiModelInfo;

// Runs `body(arg, begin, end, worker)` over parts that cover [0, n) exactly once and returns when all are done.
// Parts may run at the same time; `worker` is in [0, threads) and no two running parts share one.
typedef void (*AotiParallelBody)(void *arg, int64_t begin, int64_t end, int32_t worker);
typedef struct AotiContext {
  void (*parallel_for)(void *pool, int64_t n, AotiParallelBody body, void *arg); // null: everything on the caller
  void *pool;
  int32_t threads; // at least 1
  int32_t reserved;
  void *stream; // device stream or null
} AotiContext;

// `weights` may be null where they are embedded; it must stay valid and unchanged while the model lives.
// `cpu_level` is -1 for the best that the processor runs, else an index into the compiled levels, lowest first.
typedef struct AotiCreateOptions {
  const void *weights;
  int64_t weights_bytes;
  int32_t cpu_level;
  int32_t reserved;
} AotiCreateOptions;

// A weight that a program offers: row-major contiguous, aligned for its elements.
typedef struct AotiNamedTensor {
  const char *name;
  AotiTensor tensor;
} AotiNamedTensor;

// How weights are prepared; every entry may be null.
typedef struct AotiPrepareOptions {
  const AotiContext *context; // threads to work on
  // Told, on the calling thread, how many bytes of the weights are written so far.
  void (*progress)(void *arg, int64_t done, int64_t total);
  // Told of everything that is wrong with the tensors given, one sentence at a time; `error` has room for the first.
  void (*finding)(void *arg, const char *message);
  void *arg;
} AotiPrepareOptions;

typedef struct AotiModel AotiModel;

// Every function but `destroy` gives an AotiStatus and fills `error`, which may be null.
typedef struct AotiApi {
  uint32_t abi_version;
  uint32_t struct_bytes;
  const AotiModelInfo *info;
  int32_t (*create)(const AotiCreateOptions *options, AotiModel **model, AotiError *error);
  void (*destroy)(AotiModel *model);
  // Checks the inputs and writes the sizes of output k to sizes[k][0 .. rank).
  int32_t (*output_sizes)(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int64_t *const *sizes,
                          AotiError *error);
  // Bytes of workspace that `run` needs for inputs of these sizes on `threads` threads.
  int32_t (*workspace_bytes)(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t threads,
                             int64_t *bytes, AotiError *error);
  // Writes the initial values of mutable state to `state` (info->state_bytes, 64-byte aligned).
  int32_t (*init_state)(const AotiModel *model, void *state, AotiError *error);
  // Re-entrant on one model; allocates nothing. `workspace` is 64-byte aligned; outputs are contiguous and the caller's,
  // of the sizes that `output_sizes` gives. Where a size depends on data, that is its bound: the output then holds a
  // smaller tensor, contiguous at the start of its memory, whose sizes are written to sizes[k][0 .. rank). `sizes` may
  // be null.
  int32_t (*run)(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                 int32_t n_outputs, int64_t *const *sizes, void *state, void *workspace, int64_t workspace_bytes,
                 const AotiContext *context, AotiError *error);
  // Name of the kernel level in use, such as "x86-64-v3".
  const char *(*level)(const AotiModel *model);
  // Both are null in a library that takes no weights by name. `prepare_weights` makes of the tensors of a checkpoint, by
  // the names in info->constants, the weights that `create` takes: it does what the compiler did to those of the model
  // file and lays out the result in `weights` (info->weights_bytes, 64-byte aligned, the caller's). A tensor that is
  // missing, not of the model, or of another element type or other sizes is refused, all of them at once. `workspace` has
  // prepare_bytes(threads) bytes, 64-byte aligned, and is free again when it returns.
  //
  // To change weights while runs go on, create a second model from other weights and destroy the first when its last
  // run has returned: models share nothing but code, so each run sees one whole set.
  int64_t (*prepare_bytes)(int32_t threads);
  int32_t (*prepare_weights)(const AotiNamedTensor *tensors, int32_t n_tensors, void *weights, int64_t weights_bytes,
                             void *workspace, int64_t workspace_bytes, const AotiPrepareOptions *options,
                             AotiError *error);
} AotiApi;

#ifdef __cplusplus
}
#endif
