// The C interface of every model, over tables that a generated file supplies: what a model takes and gives, its sizes as
// expressions, its kernels' code for each CPU level.
// Owns models, states and prepared runs. Knows nothing of what kernels compute.
#pragma once

#include "check.h"
#include "levels.h"
#include "run.h"
#include <stdlib.h>
#include <string.h>

namespace aoti {

// The code of one CPU level.
struct Level {
  const char *name;
  // Null, or what this processor lacks to run it.
  const char *(*lacks)();
  // 0, or 1 + the number of the failure.
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

// A tensor of the state: its place there, and where the weights have its first value.
struct InitialState {
  int64_t offset, value, bytes;
};

// Where a kernel writes.
enum class Place { output, state, arena };
struct KernelOutput {
  Place place;
  int32_t expression; // the offset, or -1 where it is fixed
  int64_t offset;     // in bytes; of an output, its position
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
  // The most that outputs may need, before a run has read sizes from data.
  const int32_t *const *most_sizes;
  // Of the sizes: 0, or 1 + the number of the failure.
  int32_t (*checks)(const int64_t *symbols);
  int64_t (*arena_bytes)(const int64_t *symbols);
  const char *const *failures;
  // For each failure the symbols that it is about, ended by -1, or null.
  const int32_t *const *failure_symbols;
  // The operators that check indices.
  const char *const *sites;
  const InitialState *states;
  const char *weights;
  // Of all kernels one after the other, as info->kernels[0].outputs; with the largest numbers that one kernel has.
  const KernelOutput *kernel_outputs;
  Expressions kernel_expressions;
  int32_t most_outputs, most_dimensions;
  // Of a library that takes weights by name, else null.
  decltype(AotiApi::prepare_bytes) prepare_bytes;
  decltype(AotiApi::prepare_weights) prepare_weights;
};

} // namespace
} // namespace aoti

struct AotiModel {
  const char *weights;
  const aoti::Level *level;
  AotiPlan plan;
  AotiCandidate candidates[1]; // as many as there are levels
};

struct AotiState {
  char *memory;
};

struct AotiRun {
  const AotiModel *model;
  int64_t *symbols;
  char *workspace;
  int64_t arena_bytes;
  int32_t threads;
  bool submitted;
  int32_t failed;
  int fault;
};

namespace aoti {
namespace {

constexpr int64_t aligned(int64_t bytes) { return (bytes + AOTI_ALIGNMENT - 1) / AOTI_ALIGNMENT * AOTI_ALIGNMENT; }
inline char *aligned(void *address) { return (char *)aligned(int64_t(uintptr_t(address))); }

// The caller's context, made whole.
inline AotiContext complete(const AotiContext *context) {
  AotiContext whole = context ? *context : AotiContext{};
  if (!whole.parallel_for || whole.threads < 1) whole.threads = 1, whole.parallel_for = nullptr;
  return whole;
}

// The entries of a model's table.
template <const Tables &T> struct Interface {
  // --- models ---

  // Judges every level and gives the one to run, or -1. `asked` is -1 for the best.
  static int32_t pick(AotiCandidate *candidates, int32_t asked) {
    int32_t picked = -1;
    for (int32_t i = T.n_levels; i-- > 0;) {
      const char *lack = T.levels[i].lacks();
      AotiCandidate &candidate = candidates[i];
      candidate = {T.levels[i].name, AOTI_CPU, AOTI_PASSED_OVER, lack};
      if (lack)
        candidate.verdict = AOTI_CANNOT_RUN;
      else if (asked >= 0)
        candidate.reason = i == asked ? "it was asked for" : "another was asked for";
      else
        candidate.reason = picked < 0 ? "the highest level that this processor runs" : "a higher level runs here";
      if (!lack && picked < 0 && (asked < 0 || i == asked)) picked = i, candidate.verdict = AOTI_PICKED;
    }
    return picked;
  }

  static int32_t create(const AotiCreateOptions *options, AotiModel **model, AotiError *error) {
    if (!model) return fail(error, AOTI_ERROR_NULL, "the place for the model is null");
    int32_t asked = options ? options->cpu_level : -1;
    if (asked >= T.n_levels)
      return fail(error, AOTI_ERROR_CPU, "level %d does not exist, there are %d", int(asked), int(T.n_levels));
    if (options && options->device.kind != AOTI_CPU)
      return fail(error, AOTI_ERROR_DEVICE, "the library has code for processors only");
    const char *weights = T.weights;
    if (options && options->weights) {
      if (options->weights_bytes != T.info->weights_bytes)
        return fail(error, AOTI_ERROR_WEIGHTS, "the weights have %lld bytes, must have %lld",
                    (long long)options->weights_bytes, (long long)T.info->weights_bytes);
      weights = (const char *)options->weights;
    }
    if (!weights && T.info->weights_bytes > 0)
      return fail(error, AOTI_ERROR_WEIGHTS, "the weights are not embedded and none are given");
    if (uintptr_t(weights) % AOTI_ALIGNMENT != 0)
      return fail(error, AOTI_ERROR_ALIGNMENT, "the weights are not aligned to %d bytes", AOTI_ALIGNMENT);
    AotiModel *made = (AotiModel *)malloc(sizeof(AotiModel) + sizeof(AotiCandidate) * size_t(T.n_levels));
    if (!made) return fail(error, AOTI_ERROR_MEMORY, "out of memory");
    int32_t picked = pick(made->candidates, asked);
    if (picked < 0) {
      int32_t code = asked >= 0 ? fail(error, AOTI_ERROR_CPU, "%s, which %s needs", made->candidates[asked].reason,
                                       T.levels[asked].name)
                                : fail(error, AOTI_ERROR_CPU, "this processor runs none of the compiled levels");
      free(made);
      return code;
    }
    made->weights = weights;
    made->level = &T.levels[picked];
    made->plan = {{AOTI_CPU, 0}, T.levels[picked].name, made->candidates, T.n_levels, picked};
    *model = made;
    return succeed(error);
  }

  static void destroy(AotiModel *model) { free(model); }

  static const AotiPlan *plan(const AotiModel *model) { return model ? &model->plan : nullptr; }

  // --- sizes ---

  // Checks the inputs and finds every size; those that are read from data are at their bounds.
  static int32_t bind(const AotiTensor *inputs, int32_t n_inputs, Need need, int64_t *symbols, AotiError *error) {
    const AotiModelInfo &info = *T.info;
    if (int32_t code = check_tensors("input", inputs, n_inputs, info.inputs, info.n_inputs, need, error)) return code;
    for (int32_t k = 0; k < T.n_symbols; ++k) {
      const Symbol &symbol = T.symbols[k];
      if (symbol.from == From::dimension) symbols[k] = inputs[symbol.input].sizes[symbol.dimension];
      if (symbol.from == From::data) symbols[k] = symbol.max;
      if (symbol.from != From::value) continue;
      if (!inputs[symbol.input].data)
        return fail(error, AOTI_ERROR_NULL, "input `%s` is a size and has no data", symbol.name);
      symbols[k] = *(const int64_t *)inputs[symbol.input].data;
      if (symbols[k] < symbol.min || symbols[k] > symbol.max)
        return fail(error, AOTI_ERROR_RANGE, "input `%s` is %lld, must be in %lld..=%lld", symbol.name,
                    (long long)symbols[k], (long long)symbol.min, (long long)symbol.max);
    }
    int64_t values[T.expressions.count + 1] = {};
    if (T.expressions.count > 0) T.expressions.evaluate(symbols, values);
    if (int32_t code = check_sizes("input", inputs, info.inputs, info.n_inputs, T.input_sizes, values, error)) return code;
    if (int32_t failed = T.checks(symbols)) return fail_with(error, AOTI_ERROR_GUARD, failed - 1, symbols);
    if (T.arena_bytes(symbols) < 0)
      return fail(error, AOTI_ERROR_SIZE, "for these sizes the model needs more memory than there is");
    return AOTI_OK;
  }

  // A failure with the values of the sizes that it is about.
  static int32_t fail_with(AotiError *error, int32_t code, int32_t failure, const int64_t *symbols) {
    const int32_t *about = T.failure_symbols ? T.failure_symbols[failure] : nullptr;
    char values[512] = "";
    size_t length = 0;
    for (int32_t i = 0; about && about[i] >= 0 && length < sizeof values; ++i) {
      const int written = snprintf(values + length, sizeof values - length, "%s%s = %lld", i ? ", " : " with ",
                                   T.symbols[about[i]].name, (long long)symbols[about[i]]);
      if (written < 0) break;
      length += size_t(written);
    }
    return fail(error, code, "%s%s", T.failures[failure], values);
  }

  // Sizes that are expressions of others.
  static int32_t check_sizes(const char *kind, const AotiTensor *tensors, const AotiValueInfo *infos, int32_t count,
                             const int32_t *const *sizes, const int64_t *values, AotiError *error) {
    for (int32_t i = 0; sizes && i < count; ++i)
      for (int32_t d = 0; sizes[i] && d < infos[i].rank; ++d)
        if (sizes[i][d] >= 0)
          if (int32_t code = check_equal(kind, tensors, infos, i, d, values[sizes[i][d]], error)) return code;
    return AOTI_OK;
  }

  static void size_of(const AotiValueInfo &info, const int32_t *expressions, const int64_t *values, int64_t *sizes) {
    for (int32_t d = 0; d < info.rank; ++d)
      sizes[d] = expressions && expressions[d] >= 0 ? values[expressions[d]] : info.dims[d].min;
  }

  static int32_t write_sizes(const int64_t *symbols, const int32_t *const *expressions, int64_t *const *sizes,
                             AotiError *error) {
    int64_t values[T.expressions.count + 1] = {};
    if (T.expressions.count > 0) T.expressions.evaluate(symbols, values);
    for (int32_t i = 0; i < T.info->n_outputs; ++i) {
      const AotiValueInfo &info = T.info->outputs[i];
      size_of(info, expressions ? expressions[i] : nullptr, values, sizes[i]);
      for (int32_t d = 0; d < info.rank; ++d)
        if (sizes[i][d] < 0)
          return fail(error, AOTI_ERROR_SIZE, "output `%s`: dimension %d is out of range", info.name, int(d));
    }
    return AOTI_OK;
  }

  static int32_t output_sizes(const AotiModel *, const AotiTensor *inputs, int32_t n_inputs, int64_t *const *sizes,
                              AotiError *error) {
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = bind(inputs, n_inputs, Need::sizes, symbols, error)) return code;
    if (T.info->n_outputs > 0 && !sizes) return fail(error, AOTI_ERROR_NULL, "the place for sizes is null");
    if (int32_t code = write_sizes(symbols, T.most_sizes, sizes, error)) return code;
    return succeed(error);
  }

  static int64_t needed_bytes(const AotiRun &run) {
    return run.arena_bytes + run.model->level->scratch_bytes(run.symbols, run.threads);
  }

  static int32_t workspace_bytes(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t threads,
                                 int64_t *bytes, AotiError *error) {
    if (!model || !bytes) return fail(error, AOTI_ERROR_NULL, "the model or the place for the size is null");
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = bind(inputs, n_inputs, Need::sizes, symbols, error)) return code;
    const AotiRun now{model, symbols, nullptr, aligned(T.arena_bytes(symbols)), threads > 1 ? threads : 1, false, 0, 0};
    *bytes = needed_bytes(now);
    return succeed(error);
  }

  // --- states ---

  static void fill(const AotiModel *model, AotiState *state) {
    for (int32_t k = 0; k < T.info->n_states; ++k)
      memcpy(state->memory + T.states[k].offset, model->weights + T.states[k].value, size_t(T.states[k].bytes));
  }

  // A state whose values are not there yet.
  static int32_t new_state(void *memory, AotiState **state, AotiError *error) {
    if (!state) return fail(error, AOTI_ERROR_NULL, "the place for the state is null");
    if (uintptr_t(memory) % AOTI_ALIGNMENT != 0)
      return fail(error, AOTI_ERROR_ALIGNMENT, "the memory of the state is not aligned to %d bytes", AOTI_ALIGNMENT);
    size_t bytes = memory ? 0 : size_t(T.info->state_bytes) + AOTI_ALIGNMENT;
    AotiState *made = (AotiState *)malloc(sizeof(AotiState) + bytes);
    if (!made) return fail(error, AOTI_ERROR_MEMORY, "out of memory");
    made->memory = memory ? (char *)memory : aligned(made + 1);
    *state = made;
    return succeed(error);
  }

  static int32_t create_state(const AotiModel *model, void *memory, AotiState **state, AotiError *error) {
    if (!model) return fail(error, AOTI_ERROR_NULL, "the model is null");
    if (int32_t code = new_state(memory, state, error)) return code;
    fill(model, *state);
    return AOTI_OK;
  }

  static int32_t copy_state(const AotiState *from, void *memory, AotiState **state, AotiError *error) {
    if (!from) return fail(error, AOTI_ERROR_NULL, "the state is null");
    if (int32_t code = new_state(memory, state, error)) return code;
    memcpy((*state)->memory, from->memory, size_t(T.info->state_bytes));
    return AOTI_OK;
  }

  static int32_t reset_state(const AotiModel *model, AotiState *state, AotiError *error) {
    if (!model || !state) return fail(error, AOTI_ERROR_NULL, "the model or the state is null");
    fill(model, state);
    return succeed(error);
  }

  static void destroy_state(AotiState *state) { free(state); }

  // --- runs ---

  static int32_t check_workspace(const void *workspace, int64_t bytes, int64_t needed, AotiError *error) {
    if (needed > 0 && !workspace) return fail(error, AOTI_ERROR_NULL, "the workspace is null");
    if (bytes < needed)
      return fail(error, AOTI_ERROR_WORKSPACE, "the workspace has %lld bytes, must have %lld", (long long)bytes,
                  (long long)needed);
    if (uintptr_t(workspace) % AOTI_ALIGNMENT != 0)
      return fail(error, AOTI_ERROR_ALIGNMENT, "the workspace is not aligned to %d bytes", AOTI_ALIGNMENT);
    return AOTI_OK;
  }

  // Runs the kernels. What goes wrong from here on is in the data, and `finish` says it.
  static int32_t start(AotiRun &run, const AotiTensor *inputs, const AotiTensor *outputs, int32_t n_outputs,
                       AotiState *state, const AotiContext *context, AotiError *error) {
    const AotiModelInfo &info = *T.info;
    if (int32_t code = check_tensors("output", outputs, n_outputs, info.outputs, info.n_outputs, Need::data, error))
      return code;
    int64_t values[T.expressions.count + 1] = {};
    if (T.expressions.count > 0) T.expressions.evaluate(run.symbols, values);
    if (int32_t code = check_sizes("output", outputs, info.outputs, info.n_outputs, T.most_sizes, values, error))
      return code;
    if (info.state_bytes > 0 && !state) return fail(error, AOTI_ERROR_NULL, "the state is missing");
    const void *input_data[T.info->n_inputs + 1];
    void *output_data[T.info->n_outputs + 1];
    for (int32_t i = 0; i < info.n_inputs; ++i) input_data[i] = inputs[i].data;
    for (int32_t i = 0; i < info.n_outputs; ++i) output_data[i] = outputs[i].data;
    run.fault = 0;
    run.submitted = true;
    run.failed = run.model->level->run({context, input_data, output_data, state ? state->memory : nullptr,
                                        run.model->weights, run.workspace, run.workspace + run.arena_bytes, &run.fault,
                                        run.symbols, context->on_kernel ? tell : nullptr});
    return AOTI_OK;
  }

  static int32_t finish(AotiRun &run, int64_t *const *sizes, AotiError *error) {
    run.submitted = false;
    if (run.failed > 0) return fail_with(error, AOTI_ERROR_ASSERT, run.failed - 1, run.symbols);
    if (run.fault > 0)
      return fail(error, AOTI_ERROR_INDEX, "an index is outside its dimension in %s", T.sites[run.fault - 1]);
    if (sizes)
      if (int32_t code = write_sizes(run.symbols, T.output_sizes, sizes, error)) return code;
    return succeed(error);
  }

  static int32_t run(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                     int32_t n_outputs, int64_t *const *sizes, AotiState *state, void *workspace, int64_t bytes,
                     const AotiContext *context, AotiError *error) {
    if (!model) return fail(error, AOTI_ERROR_NULL, "the model is null");
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = bind(inputs, n_inputs, Need::data, symbols, error)) return code;
    const AotiContext whole = complete(context);
    AotiRun now{model, symbols, (char *)workspace, aligned(T.arena_bytes(symbols)), whole.threads, false, 0, 0};
    if (int32_t code = check_workspace(workspace, bytes, needed_bytes(now), error)) return code;
    if (int32_t code = start(now, inputs, outputs, n_outputs, state, &whole, error)) return code;
    return finish(now, sizes, error);
  }

  static int32_t prepare(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t threads,
                         void *workspace, int64_t bytes, AotiRun **run, AotiError *error) {
    if (!model || !run) return fail(error, AOTI_ERROR_NULL, "the model or the place for the run is null");
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = bind(inputs, n_inputs, Need::sizes, symbols, error)) return code;
    AotiRun now{model, symbols, nullptr, aligned(T.arena_bytes(symbols)), threads > 1 ? threads : 1, false, 0, 0};
    int64_t needed = needed_bytes(now);
    if (workspace)
      if (int32_t code = check_workspace(workspace, bytes, needed, error)) return code;
    // The run, its sizes, and its memory if that is its own.
    size_t own = sizeof(AotiRun) + sizeof symbols;
    AotiRun *made = (AotiRun *)malloc(own + (workspace ? 0 : size_t(needed) + AOTI_ALIGNMENT));
    if (!made) return fail(error, AOTI_ERROR_MEMORY, "out of memory: the run needs %lld bytes", (long long)needed);
    *made = now;
    made->symbols = (int64_t *)(made + 1);
    memcpy(made->symbols, symbols, sizeof symbols);
    made->workspace = workspace ? (char *)workspace : aligned((char *)made + own);
    *run = made;
    return succeed(error);
  }

  static int32_t submit(AotiRun *run, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                        int32_t n_outputs, AotiState *state, const AotiContext *context, AotiError *error) {
    if (!run) return fail(error, AOTI_ERROR_NULL, "the run is null");
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = bind(inputs, n_inputs, Need::data, symbols, error)) return code;
    for (int32_t k = 0; k < T.n_symbols; ++k) {
      // A run before may have found other values than the bounds.
      if (T.symbols[k].from == From::data) run->symbols[k] = symbols[k];
      if (symbols[k] != run->symbols[k])
        return fail(error, AOTI_ERROR_SIZE, "the run was prepared for %s = %lld, not %lld", T.symbols[k].name,
                    (long long)run->symbols[k], (long long)symbols[k]);
    }
    const AotiContext whole = complete(context);
    if (whole.threads > run->threads)
      return fail(error, AOTI_ERROR_WORKSPACE, "the run was prepared for %d threads, not %d", int(run->threads),
                  int(whole.threads));
    if (int32_t code = start(*run, inputs, outputs, n_outputs, state, &whole, error)) return code;
    return succeed(error);
  }

  static int32_t wait(AotiRun *run, int64_t *const *sizes, AotiError *error) {
    if (!run || !run->submitted) return fail(error, AOTI_ERROR_NULL, "no run was submitted");
    return finish(*run, sizes, error);
  }

  static void release(AotiRun *run) { free(run); }

  // --- kernels, for those who are told of them ---

  static void tell(const Run &run, int32_t kernel, int32_t phase) {
    const AotiContext &context = *run.context;
    if (phase == AOTI_KERNEL_BEGIN) return context.on_kernel(context.on_kernel_arg, kernel, phase, nullptr);
    int64_t values[T.kernel_expressions.count + 1] = {}, sizes[T.most_dimensions + 1], *next = sizes;
    if (T.kernel_expressions.count > 0) T.kernel_expressions.evaluate(run.symbols, values);
    AotiTensor tensors[T.most_outputs + 1];
    const AotiKernelInfo &info = T.info->kernels[kernel];
    for (int32_t i = 0; i < info.n_outputs; ++i) {
      const AotiValueInfo &value = info.outputs[i];
      const KernelOutput &output = T.kernel_outputs[&value - T.info->kernels[0].outputs];
      int64_t offset = output.expression >= 0 ? values[output.expression] : output.offset;
      void *data = output.place == Place::output  ? run.outputs[offset]
                   : output.place == Place::state ? run.state + offset
                                                  : run.arena + offset;
      size_of(value, output.sizes, values, next);
      tensors[i] = {data, next, nullptr, value.rank, value.dtype, {AOTI_CPU, 0}};
      next += value.rank;
    }
    context.on_kernel(context.on_kernel_arg, kernel, phase, tensors);
  }

  // In the order of AotiApi.
  static constexpr AotiApi table() {
    return {AOTI_ABI_VERSION, sizeof(AotiApi), T.info,      create,        destroy, output_sizes, workspace_bytes,
            create_state,     reset_state,     copy_state,  destroy_state, run,     prepare,      submit,
            wait,             release,         plan,        T.prepare_bytes, T.prepare_weights};
  }
};

} // namespace
} // namespace aoti
