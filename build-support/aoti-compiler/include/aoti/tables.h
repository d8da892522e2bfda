// What a generated file says of a model to the code behind its C interface: sizes as expressions, addresses, texts, and the
// code of each CPU level. One set of tables for each device that the library has code for.
// Knows nothing of how runs are made.
#pragma once

#include "abi.h"
#include "run.h"

// What every model, state and prepared run begins with, whatever it runs on: the functions that know the rest, and the kind of
// device. They are set where a library has code for several devices.
struct AotiModel {
  const AotiApi *api;
  int32_t kind;
};
struct AotiState {
  const AotiApi *api;
  int32_t kind;
};
struct AotiRun {
  const AotiApi *api;
  int32_t kind;
};

namespace aoti {

// The code of one CPU level.
struct Level {
  const char *name;
  // Null, or what this processor lacks to run it.
  const char *(*lacks)();
  // 0, or 1 + the number of the failure; negative where it is about memory.
  int32_t (*run)(const Run &run);
  int64_t (*scratch_bytes)(const int64_t *symbols, int64_t threads);
};

namespace {

// Where a size is known from.
enum class From { dimension, value, data };
struct Symbol {
  From from;
  int32_t input;
  int32_t dimension;
  const char *name;
  int64_t min, max;
};

// Sizes that are expressions of the symbols, computed all at once. A tensor's own are a list of their numbers, one for
// each dimension, -1 for a dimension that needs none; where no dimension needs one, the list is null.
struct Expressions {
  int32_t count;
  void (*evaluate)(const int64_t *symbols, int64_t *values);
};

// What a fault that a kernel notes is about: an index of the operator that `text` describes, or a condition with this message.
struct Site {
  const char *text;
  bool is_assertion;
};

// A tensor of the state: its place there, and where the weights have its first value.
struct InitialState {
  int64_t offset, value, bytes;
};

// In place of the number of an expression: the size is known only when a run has read it from data.
constexpr int32_t kLate = -2;

// Where a kernel writes.
enum class Place { output, state, arena, late };
struct KernelOutput {
  Place place;
  int32_t expression; // the offset, or -1 where it is fixed
  int64_t offset;     // in bytes; of an output, its position; of what is allocated late, its number
  const int32_t *sizes;
};

struct Tables {
  const AotiModelInfo *info;
  const Level *levels;
  int32_t n_levels;
  int32_t n_symbols;
  const Symbol *symbols;
  Expressions expressions;
  const int32_t *const *input_sizes;
  const int32_t *const *output_sizes;
  // The most that outputs may need, before a run has read sizes from data; `kLate` for a size that has no such bound.
  const int32_t *const *most_sizes;
  // Of the sizes: 0, or 1 + the number of the failure.
  int32_t (*checks)(const int64_t *symbols);
  int64_t (*arena_bytes)(const int64_t *symbols);
  const char *const *failures;
  // For each failure the symbols that it is about, ended by -1, or null.
  const int32_t *const *failure_symbols;
  // What kernels check.
  const Site *sites;
  const InitialState *states;
  const char *weights;
  // Of all kernels one after the other, as `kernel_values`; with the largest numbers that one kernel has.
  const KernelOutput *kernel_outputs;
  Expressions kernel_expressions;
  int32_t most_outputs, most_dimensions;
  // Of the kernels in info, those of this device begin there; and the tensors that they write.
  int32_t first_kernel;
  const AotiValueInfo *kernel_values;
  // Of a library that takes weights by name, else null.
  decltype(AotiApi::prepare_bytes) prepare_bytes;
  decltype(AotiApi::prepare_weights) prepare_weights;
  // For each failure, whether a function of the project reported it behind the arena; null where there are no such functions.
  const bool *reports = nullptr;
  // Opens the libraries that kernels ask, when a model is made; null where none does.
  void (*open_libraries)() = nullptr;
  // Makes the forms of weights that take more memory than what the weights hold, when a model is made; with their bytes. Null
  // where there are none.
  void (*expand)(const char *weights, char *to, int64_t bytes) = nullptr;
  int64_t expanded_bytes = 0;
  // Pieces of memory that a run allocates when their sizes are known.
  int32_t n_late = 0;
};

// The table of one of several programs.
template <int32_t Count> constexpr AotiApi one_of(AotiApi api, const AotiProgram (&programs)[Count]) {
  api.programs = programs, api.n_programs = Count;
  return api;
}

} // namespace
} // namespace aoti
