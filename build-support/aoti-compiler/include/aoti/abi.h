// The C interface of a compiled model: what the one exported symbol `aoti_<name>_api` gives. <name> is the model's name
// as an identifier and, for a model of a package, 12 digits of a digest of both with the package's version, so that models
// of one name never meet in one program: `aoti_digits_1c3a5e7f9b0d_api`. The model's header also declares it without the digest.
// Plain C11; owns the layouts that callers and generated code share, and knows nothing of kernels.
//
// Versions. The exported function takes nothing and returns the table in every version, and the first two members of the table
// are `abi_version` and `struct_bytes` in every version. Before anything else is read, a caller compares them:
//
//   const AotiApi *api = aoti_digits_api();
//   if (api->abi_version != AOTI_ABI_VERSION || api->struct_bytes < sizeof(AotiApi)) return refused;
//
// Within a version functions are only added at the end of AotiApi, which makes `struct_bytes` larger, and values to enumerations:
// a caller that was compiled with this header works with every library of this version whose table is as long as it knows or
// longer, and treats a status that it does not know as an error. Anything else (another layout, another meaning, a function that
// is gone) makes another version, and a library of another version is refused: none is emulated. So a library and its caller are
// upgraded together, and a library that was linked into a program stays good for as long as the program.
#pragma once
// Programs with several models may have a copy of this file for each.
#ifndef AOTI_ABI_H
#define AOTI_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AOTI_ABI_VERSION 4u
#define AOTI_ALIGNMENT 64
#define AOTI_MESSAGE_BYTES 256

// Element types. Half types are IEEE binary16 and bfloat16; booleans are one byte, 0 or 1. Types of one byte are named for
// their bits of exponent and mantissa: FN has no infinity, UZ no negative zero, U no sign. A complex number is its real and
// its imaginary part, side by side, and as aligned as those: AOTI_C64 is two floats.
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
  AOTI_F64 = 9,
  AOTI_U16 = 10,
  AOTI_U32 = 11,
  AOTI_U64 = 12,
  AOTI_F8E4M3FN = 13,
  AOTI_F8E5M2 = 14,
  AOTI_F8E4M3FNUZ = 15,
  AOTI_F8E5M2FNUZ = 16,
  AOTI_F8E8M0FNU = 17,
  AOTI_C32 = 18,
  AOTI_C64 = 19,
  AOTI_C128 = 20
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
  AOTI_ERROR_CPU = 12,       // this processor runs none of the compiled levels, or not the one asked for
  AOTI_ERROR_INDEX = 13,     // an index tensor holds an index outside its dimension
  AOTI_ERROR_ASSERT = 14,    // an assertion of the program does not hold
  AOTI_ERROR_MEMORY = 15,    // `create`, `create_state` or `prepare` could not allocate, or a run a tensor of a size that it read
  AOTI_ERROR_DEVICE = 16,    // a device call failed
  AOTI_ERROR_OPERATOR = 17,  // a function that computes an operator of the project reported an error
  AOTI_ERROR_RANKS = 18      // the ranks could not compute something together, or there is no communicator for it
} AotiStatus;

// `message` is a zero-terminated sentence without a full stop; empty on success.
typedef struct AotiError {
  int32_t code;
  char message[AOTI_MESSAGE_BYTES];
} AotiError;

typedef enum AotiDeviceKind { AOTI_CPU = 0, AOTI_CUDA = 1, AOTI_ROCM = 2 } AotiDeviceKind;
// What they are called, in this order.
#define AOTI_DEVICE_NAMES "cpu", "cuda", "rocm"

// All zeros: the processor, and memory that it sees.
typedef struct AotiDevice {
  int32_t kind;
  int32_t index;
} AotiDevice;

// A borrowed dense tensor, in memory of the processor or of the device that the model runs on; the library copies what lies
// elsewhere than kernels want it. Strides count elements; null means row-major contiguous, and so must strides be when given.
typedef struct AotiTensor {
  void *data;
  const int64_t *sizes;
  const int64_t *strides;
  int32_t rank;
  int32_t dtype;
  AotiDevice device; // where `data` lies
} AotiTensor;

// Lists that functions of a project are given, for a model that calls such functions. A count of -1 is no list.
typedef struct AotiTensors {
  const AotiTensor *data;
  int64_t count;
} AotiTensors;
typedef struct AotiInts {
  const int64_t *data;
  int64_t count;
} AotiInts;
typedef struct AotiFloats {
  const double *data;
  int64_t count;
} AotiFloats;
typedef struct AotiBools {
  const uint8_t *data; // 0 or 1
  int64_t count;
} AotiBools;

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

// A kernel: one function that a run calls. Texts are for people; several lines or calls stand one below the other.
typedef struct AotiKernelInfo {
  const char *name;    // no other kernel of the model has it
  const char *calls;   // calls of the user's program that it computes, such as "aten.relu.default of relu_1"
  const char *source;  // lines of the user's program where they stand, or empty
  const char *module;  // path of the module that made the first of them, or empty
  const AotiValueInfo *outputs;
  int32_t n_outputs;
  int32_t device;      // an AotiDeviceKind
} AotiKernelInfo;

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
  const AotiKernelInfo *kernels; // in the order in which they stand in the run
  int32_t n_kernels;
  int32_t n_collectives; // among the kernels of one device: where there are any, a run needs a communicator
  const char *library_digest; // of all that is compiled into the library
  const char *weights_digest; // of the weights inside the library; null where they are elsewhere
  const int64_t *state_offsets; // where each of `states` begins in a state, in bytes; row-major contiguous there
} AotiModelInfo;

// Runs `body(arg, begin, end, worker)` over parts that cover [0, n) exactly once and returns when all are done.
// Parts may run at the same time; `worker` is in [0, threads) and no two running parts share one.
typedef void (*AotiParallelBody)(void *arg, int64_t begin, int64_t end, int32_t worker);

// Told of every kernel, on the thread that submitted the run: with AOTI_KERNEL_BEGIN before info->kernels[kernel] and
// with AOTI_KERNEL_END after it. At the end `outputs` are the tensors that it has written, as the kernel's info lists
// them, valid for the call and until a later kernel reuses their memory; at the beginning `outputs` is null. A kernel in
// a loop is told of in each iteration. On a device, a run with a callback waits for each kernel and copies what it wrote
// to memory of the processor.
typedef enum AotiKernelPhase { AOTI_KERNEL_BEGIN = 0, AOTI_KERNEL_END = 1 } AotiKernelPhase;
typedef void (*AotiKernelCallback)(void *arg, int32_t kernel, int32_t phase, const AotiTensor *outputs);

// Told of every kernel that was launched on a device how long it took there, in microseconds: in the order of the run, from
// `submit`, on its thread. Such a run launches kernels one by one, each between two events of the stream, and waits for what
// it has launched; what a graph and kernels that begin before their predecessor's end would save is in these times. Nobody is
// told of times on the processor, where `on_kernel` comes right before and after a kernel, nor in a run with `on_kernel`.
typedef void (*AotiTimeCallback)(void *arg, int32_t kernel, double microseconds);

// Gives a run the memory for an output whose size nobody knows before: called on the thread that submitted the run, when the
// sizes are known. The memory has `bytes`, is aligned for the element type, lies where the output's tensor says, and is the
// caller's. Null where there is none: the run ends with AOTI_ERROR_MEMORY.
typedef void *(*AotiOutputCallback)(void *arg, int32_t output, const int64_t *sizes, int64_t bytes);

// What the ranks of a group compute together. Each rank runs a program of its own, and all meet in the same collectives in the
// same order. What they exchange are blocks of elements that lie one behind the other, in the order of the ranks.
typedef enum AotiCollectiveKind {
  AOTI_ALL_REDUCE = 0,     // each rank gets all ranks' inputs, reduced
  AOTI_ALL_GATHER = 1,     // each rank gets all ranks' inputs, one behind the other
  AOTI_REDUCE_SCATTER = 2, // each rank gets its block of all ranks' inputs, reduced; blocks are equal
  AOTI_ALL_TO_ALL = 3,     // each rank sends each rank a block
  AOTI_BROADCAST = 4       // each rank gets the input of rank `root`
} AotiCollectiveKind;

// Bits are those of integers and booleans; a mean is one of floats.
typedef enum AotiReduction {
  AOTI_SUM = 0,
  AOTI_AVERAGE = 1,
  AOTI_PRODUCT = 2,
  AOTI_MIN = 3,
  AOTI_MAX = 4,
  AOTI_BITS_AND = 5,
  AOTI_BITS_OR = 6,
  AOTI_BITS_XOR = 7
} AotiReduction;

typedef struct AotiCollective {
  int32_t kind;
  int32_t reduction; // where there is one
  int32_t dtype;
  int32_t ranks; // of the group, or 0 where the program does not say
  int32_t root;  // of a broadcast, a number within the group
  AotiDevice device; // where input and output lie
  const char *group; // its name in the program
  const void *input; // overlaps no output
  int64_t input_count; // elements
  void *output;
  int64_t output_count;
  const int64_t *send; // of an all-to-all, for each rank how many elements it is sent; else null
  const int64_t *receive; // and how many come from it
  void *stream; // on a device, where everything before it is submitted and everything behind it will be
} AotiCollective;

// Connects a run to the other ranks. `exchange` gives AOTI_OK, or fills `error` with a code and a sentence: then the run ends
// with AOTI_ERROR_RANKS. On a processor it returns when the output is written. On a device it submits work to the stream and
// need not wait for it.
//
// `poll` may be null. While what a device was submitted is not done, a run's `wait` calls it about every millisecond with the
// nanoseconds that it has waited. Where it gives something other than AOTI_OK, it has ended what it submitted, and so does
// the run.
//
// `id` is 0, or is given to no other communicator of the process: then what `exchange` submits to a stream may be captured in a
// graph and submitted again, for runs with a communicator of the same id.
typedef struct AotiCommunicator {
  int32_t (*exchange)(void *arg, const AotiCollective *collective, AotiError *error);
  int32_t (*poll)(void *arg, int64_t waited, AotiError *error);
  void *arg;
  uint64_t id;
} AotiCommunicator;

// All zeros but for `threads`: one thread, the default stream, nobody is told anything. Random numbers of a program are a
// function of `seed`, `offset` and their places in it: two runs with the same two draw the same on every device and for any
// number of threads; another offset, such as the number of the run, draws others that are independent of them.
typedef struct AotiContext {
  void (*parallel_for)(void *pool, int64_t n, AotiParallelBody body, void *arg); // null: everything on the caller
  void *pool;
  int32_t threads;      // at least 1
  int32_t fork_join_ns; // what the threads take to begin a loop together and end it; 0 where nobody knows. Loops are shared
                        // from about that much work for each thread on
  void *stream;                 // stream of the device, or null: its default stream, or one of the run's own where all
                                // tensors are in memory of the processor
  AotiKernelCallback on_kernel; // or null
  void *on_kernel_arg;
  uint64_t seed;
  uint64_t offset;
  AotiTimeCallback on_time; // or null
  void *on_time_arg;
  AotiOutputCallback allocate_output; // or null
  void *allocate_output_arg;
  const AotiCommunicator *communicator; // or null; lasts until `wait` has returned
} AotiContext;

// `weights` may be null where they are embedded; it must stay valid and unchanged while the model lives.
// `cpu_level` is -1 for the best that the processor runs, else an index into the compiled levels, lowest first.
typedef struct AotiCreateOptions {
  const void *weights;
  int64_t weights_bytes;
  int32_t cpu_level;
  int32_t reserved;
  AotiDevice device;    // where the model runs
  void *device_context; // the driver's context to work in, or null for the device's own
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

typedef enum AotiVerdict {
  AOTI_PICKED = 0,
  AOTI_PASSED_OVER = 1, // would run, but another was preferred or asked for
  AOTI_CANNOT_RUN = 2   // the device lacks something
} AotiVerdict;

// One of the codes that a library holds, such as the kernels for one CPU level.
typedef struct AotiCandidate {
  const char *name;
  int32_t device; // an AotiDeviceKind
  int32_t verdict;
  const char *reason; // of the verdict, a phrase
} AotiCandidate;

// Which code a model runs, and why. Lives as long as the model.
typedef struct AotiPlan {
  AotiDevice device;
  const char *level; // name of the candidate that was picked, such as "x86-64-v3"
  const AotiCandidate *candidates;
  int32_t n_candidates;
  int32_t picked;
} AotiPlan;

// AotiState holds the tensors that a program mutates, such as a key-value cache: one for each sequence of runs that belong
// together. What it holds after a run that failed is not defined: states change in place. AotiRun is a run prepared for
// inputs of certain sizes, with all memory that it needs.
typedef struct AotiModel AotiModel;
typedef struct AotiState AotiState;
typedef struct AotiRun AotiRun;

typedef struct AotiApi AotiApi;

// One of several programs of a library. Their models are made one by one, by the functions of each, and share weights and code
// of kernels; a state that a model of one made serves those of all that run on the same device.
typedef struct AotiProgram {
  const char *name;
  const AotiApi *api;
} AotiProgram;

// Parts of a state, all in one of its tensors: `count` pieces of `bytes` each, the first of which begins so many bytes into the
// state, and each `stride` bytes behind the one before.
typedef struct AotiStatePart {
  int64_t begin;
  int64_t bytes;
  int64_t stride;
  int64_t count;
} AotiStatePart;

// Functions that take an `error` give an AotiStatus and fill it; it may be null.
struct AotiApi {
  uint32_t abi_version;
  uint32_t struct_bytes;
  const AotiModelInfo *info;
  // On processors, the model makes the forms of weights that take more memory than the weights (some convolutions read them:
  // of 3 x 3 taps 16/9 as much), in memory of its own.
  int32_t (*create)(const AotiCreateOptions *options, AotiModel **model, AotiError *error);
  void (*destroy)(AotiModel *model);
  // Checks the inputs and writes the sizes of output k to sizes[k][0 .. rank): what depends on data at its bound, or -1 where that
  // is none that memory could be set aside for.
  int32_t (*output_sizes)(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int64_t *const *sizes,
                          AotiError *error);
  // Bytes of workspace that `run` needs for inputs of these sizes on `threads` threads. On a device none: runs there keep
  // memory of their own, and the model keeps the runs that `run` prepared for later ones of the same sizes.
  int32_t (*workspace_bytes)(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t threads,
                             int64_t *bytes, AotiError *error);
  // A state with the values that the program starts from. `memory` is null, or info->state_bytes of the device that the
  // model runs on, 64-byte aligned and the caller's for as long as the state lives. One run at a time uses a state.
  int32_t (*create_state)(const AotiModel *model, void *memory, AotiState **state, AotiError *error);
  // The values that the program starts from, again.
  int32_t (*reset_state)(const AotiModel *model, AotiState *state, AotiError *error);
  // A state that holds what another holds, in `memory` as for `create_state`.
  int32_t (*copy_state)(const AotiState *from, void *memory, AotiState **state, AotiError *error);
  void (*destroy_state)(AotiState *state);
  // Re-entrant on one model; allocates nothing but tensors inside the model whose size nobody knows before. `workspace` is
  // 64-byte aligned; outputs are contiguous and the caller's, of the sizes that `output_sizes` gives, and overlap neither inputs
  // nor each other. Where a size depends on data, that is its bound: the output then holds a smaller tensor, contiguous at the
  // start of its memory, whose sizes are written to sizes[k][0 .. rank). Where such a size is -1, the output is a tensor with
  // as much room as the caller likes, or has no data (sizes and strides are not read then): then context->allocate_output gives
  // its memory. `sizes` may be null, and so may `state` where info->state_bytes is 0. The same as `prepare`, `submit`, `wait`
  // and `release`.
  int32_t (*run)(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                 int32_t n_outputs, int64_t *const *sizes, AotiState *state, void *workspace, int64_t workspace_bytes,
                 const AotiContext *context, AotiError *error);
  // A run for inputs of these sizes on at most `threads` threads. Of inputs only types and sizes are read, and the values
  // of those that are sizes. `workspace` is null, or as `workspace_bytes` says, and the caller's for as long as the run
  // lives. The model outlives the run; runs do not disturb each other.
  int32_t (*prepare)(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t threads,
                     void *workspace, int64_t workspace_bytes, AotiRun **run, AotiError *error);
  // Starts a prepared run, on context->stream where it runs on a device; allocates what `run` does. Inputs have the sizes that it
  // was prepared for. What it borrows must last until `wait` has returned; it is submitted again only after that.
  int32_t (*submit)(AotiRun *run, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                    int32_t n_outputs, AotiState *state, const AotiContext *context, AotiError *error);
  // Waits until a submitted run is done, says what went wrong in it, and writes `sizes` as `run` does.
  int32_t (*wait)(AotiRun *run, int64_t *const *sizes, AotiError *error);
  void (*release)(AotiRun *run);
  // Which code was picked, and why.
  const AotiPlan *(*plan)(const AotiModel *model);
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
  // Memory of the device that the model runs on, aligned for every kernel, to put tensors in. It holds zeros. The model
  // outlives it.
  int32_t (*allocate)(const AotiModel *model, int64_t bytes, void **memory, AotiError *error);
  void (*deallocate)(const AotiModel *model, void *memory);
  // Copies between memory of the model's device and the processor's, either way, and returns when that is done. Waits for
  // no run: what a run writes is there when it was waited for.
  int32_t (*copy)(const AotiModel *model, void *to, AotiDevice to_device, const void *from, AotiDevice from_device,
                  int64_t bytes, AotiError *error);
  // Where the library has several programs: all of them, in every program's table. The first is the one that the exported function
  // gives. Otherwise null and 0.
  const AotiProgram *programs;
  int32_t n_programs;
  int32_t reserved;
  // Gives a state the values of another, which was made for the same device. Allocates nothing.
  int32_t (*assign_state)(AotiState *to, const AotiState *from, AotiError *error);
  // The values that the program starts from, again, in a part of a state.
  int32_t (*reset_state_part)(const AotiModel *model, AotiState *state, const AotiStatePart *part, AotiError *error);
  // Copies a part of a state to memory of the processor, where its pieces lie side by side, or from there. What it has is there
  // when this returns.
  int32_t (*read_state)(const AotiState *state, const AotiStatePart *part, void *to, AotiError *error);
  int32_t (*write_state)(AotiState *state, const AotiStatePart *part, const void *from, AotiError *error);
};

#ifdef __cplusplus
}
#endif

#endif
