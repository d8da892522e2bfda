// The C interface of models on processors, over tables that a generated file supplies.
// Owns models, states and prepared runs. Knows nothing of what kernels compute.
#pragma once

#include "host.h"
#include "levels.h"
#include "sizes.h"
#include <stdlib.h>
#include <string.h>

namespace aoti {
namespace {

struct CpuModel : AotiModel {
  const char *weights;
  const Level *level;
  AotiPlan plan;
  AotiCandidate candidates[1]; // as many as there are levels
};

struct CpuState : AotiState {
  char *memory;
};

struct CpuRun : AotiRun {
  const CpuModel *model;
  int64_t *symbols;
  char *workspace;
  int64_t arena_bytes;
  int32_t threads;
  bool submitted;
  int32_t failed;
  Fault fault;
  AotiError refusal; // of the communicator, where ranks compute something together
};

constexpr int64_t aligned(int64_t bytes) { return (bytes + AOTI_ALIGNMENT - 1) / AOTI_ALIGNMENT * AOTI_ALIGNMENT; }
inline char *aligned(void *address) { return (char *)aligned(int64_t(uintptr_t(address))); }

// The caller's context, made whole.
inline AotiContext complete(const AotiContext *context) {
  AotiContext whole = context ? *context : AotiContext{};
  if (!whole.parallel_for || whole.threads < 1) whole.threads = 1, whole.parallel_for = nullptr;
  if (whole.fork_join_ns <= 0) whole.fork_join_ns = kForkJoin;
  if (whole.fork_join_ns > kMostForkJoin) whole.fork_join_ns = kMostForkJoin;
  return whole;
}

// The entries of a model's table.
template <const Tables &T> struct Interface {
  using S = Sizes<T>;
  static const CpuModel *own(const AotiModel *model) { return static_cast<const CpuModel *>(model); }

  // --- models ---

  // What a model makes of its weights lies behind its candidates.
  static constexpr size_t head_bytes = sizeof(CpuModel) + sizeof(AotiCandidate) * size_t(T.n_levels);
  static char *expanded(const CpuModel *model) { return T.expand ? aligned((char *)model + head_bytes) : nullptr; }

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
      return fail(error, AOTI_ERROR_DEVICE, "%s was asked for, the library has code for cpu only",
                  device_name(options->device).text);
    const char *weights;
    if (int32_t code = S::weights_of(options, &weights, error)) return code;
    constexpr int64_t more = T.expand ? T.expanded_bytes + AOTI_ALIGNMENT : 0;
    constexpr int64_t all = int64_t(head_bytes) + more;
    CpuModel *made = is_addressable(all) ? (CpuModel *)malloc(size_t(all)) : nullptr;
    if (!made && !T.expand) return fail(error, AOTI_ERROR_MEMORY, "out of memory");
    if (!made) return fail(error, AOTI_ERROR_MEMORY, "out of memory: the model needs %lld bytes", (long long)more);
    int32_t picked = pick(made->candidates, asked);
    if (picked < 0) {
      int32_t code = asked >= 0 ? fail(error, AOTI_ERROR_CPU, "%s, which %s needs", made->candidates[asked].reason,
                                       T.levels[asked].name)
                                : fail(error, AOTI_ERROR_CPU, "this processor runs none of the compiled levels");
      free(made);
      return code;
    }
    if constexpr (T.open_libraries != nullptr) T.open_libraries();
    made->weights = weights;
    if constexpr (T.expand != nullptr) T.expand(weights, expanded(made), T.expanded_bytes);
    made->level = &T.levels[picked];
    made->plan = {{AOTI_CPU, 0}, T.levels[picked].name, made->candidates, T.n_levels, picked};
    *model = made;
    return succeed(error);
  }

  static void destroy(AotiModel *model) { free(model); }

  static const AotiPlan *plan(const AotiModel *model) { return model ? &own(model)->plan : nullptr; }

  static int32_t output_sizes(const AotiModel *, const AotiTensor *inputs, int32_t n_inputs, int64_t *const *sizes,
                              AotiError *error) {
    return S::output_sizes(OnProcessor{}, inputs, n_inputs, sizes, error);
  }

  // A run without memory.
  static CpuRun unprepared(const AotiModel *model, int64_t *symbols, int32_t threads) {
    CpuRun run{};
    run.model = own(model), run.symbols = symbols, run.threads = threads > 1 ? threads : 1;
    run.arena_bytes = aligned(T.arena_bytes(symbols));
    return run;
  }

  static int64_t needed_bytes(const CpuRun &run) {
    return run.arena_bytes + run.model->level->scratch_bytes(run.symbols, run.threads);
  }

  static int32_t workspace_bytes(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t threads,
                                 int64_t *bytes, AotiError *error) {
    if (!model || !bytes) return fail(error, AOTI_ERROR_NULL, "the model or the place for the size is null");
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = S::bind(inputs, n_inputs, Need::sizes, OnProcessor{}, symbols, error)) return code;
    const CpuRun now = unprepared(model, symbols, threads);
    *bytes = needed_bytes(now);
    return succeed(error);
  }

  // --- states ---

  static char *memory_of(AotiState *state) { return static_cast<CpuState *>(state)->memory; }

  static void fill(const AotiModel *model, AotiState *state) {
    for (int32_t k = 0; k < T.info->n_states; ++k)
      memcpy(memory_of(state) + T.states[k].offset, own(model)->weights + T.states[k].value, size_t(T.states[k].bytes));
  }

  // A state whose values are not there yet.
  static int32_t new_state(void *memory, AotiState **state, AotiError *error) {
    if (!state) return fail(error, AOTI_ERROR_NULL, "the place for the state is null");
    if (uintptr_t(memory) % AOTI_ALIGNMENT != 0)
      return fail(error, AOTI_ERROR_ALIGNMENT, "the memory of the state is not aligned to %d bytes", AOTI_ALIGNMENT);
    size_t bytes = memory ? 0 : size_t(T.info->state_bytes) + AOTI_ALIGNMENT;
    CpuState *made = (CpuState *)malloc(sizeof(CpuState) + bytes);
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
    memcpy(memory_of(*state), static_cast<const CpuState *>(from)->memory, size_t(T.info->state_bytes));
    return AOTI_OK;
  }

  static int32_t reset_state(const AotiModel *model, AotiState *state, AotiError *error) {
    if (!model || !state) return fail(error, AOTI_ERROR_NULL, "the model or the state is null");
    fill(model, state);
    return succeed(error);
  }

  static int32_t assign_state(AotiState *to, const AotiState *from, AotiError *error) {
    if (!to || !from) return fail(error, AOTI_ERROR_NULL, "the state is null");
    memmove(memory_of(to), static_cast<const CpuState *>(from)->memory, size_t(T.info->state_bytes));
    return succeed(error);
  }

  static int32_t reset_state_part(const AotiModel *model, AotiState *state, const AotiStatePart *part, AotiError *error) {
    if (!model || !state) return fail(error, AOTI_ERROR_NULL, "the model or the state is null");
    int32_t tensor;
    if (int32_t code = S::tensor_of(part, &tensor, error)) return code;
    const char *values = own(model)->weights + T.states[tensor].value - T.states[tensor].offset;
    for (int64_t i = 0, at = part->begin; i < part->count; ++i, at += part->stride)
      memcpy(memory_of(state) + at, values + at, size_t(part->bytes));
    return succeed(error);
  }

  static int32_t read_state(const AotiState *state, const AotiStatePart *part, void *to, AotiError *error) {
    if (!state || !to) return fail(error, AOTI_ERROR_NULL, "the state or the memory for its values is null");
    int32_t tensor;
    if (int32_t code = S::tensor_of(part, &tensor, error)) return code;
    const char *from = static_cast<const CpuState *>(state)->memory + part->begin;
    for (int64_t i = 0; i < part->count; ++i)
      memcpy((char *)to + i * part->bytes, from + i * part->stride, size_t(part->bytes));
    return succeed(error);
  }

  static int32_t write_state(AotiState *state, const AotiStatePart *part, const void *from, AotiError *error) {
    if (!state || !from) return fail(error, AOTI_ERROR_NULL, "the state or its new values are null");
    int32_t tensor;
    if (int32_t code = S::tensor_of(part, &tensor, error)) return code;
    char *to = memory_of(state) + part->begin;
    for (int64_t i = 0; i < part->count; ++i)
      memcpy(to + i * part->stride, (const char *)from + i * part->bytes, size_t(part->bytes));
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

  // What a run allocates itself, and where its outputs lie.
  struct OwnMemory : Late {
    const AotiTensor *tensors;
    void **outputs;
  };

  static void release_late(const Run &run, int32_t number) {
    free_aligned(run.late->memory[number]);
    run.late->memory[number] = nullptr;
  }

  static bool allocate_late(const Run &run, int32_t number, int64_t bytes, int32_t output) {
    const OwnMemory &own = *static_cast<const OwnMemory *>(run.late);
    if (output >= 0) {
      own.outputs[output] = S::late_output(own.tensors[output], output, bytes, run.symbols, run.context);
      return own.outputs[output] != nullptr;
    }
    release_late(run, number);
    if (bytes >= 0) own.memory[number] = allocate_aligned(AOTI_ALIGNMENT, aligned(bytes + 1));
    if (!own.memory[number]) return false;
    // Zeros, as in `prepare`.
    memset(own.memory[number], 0, size_t(bytes));
    return true;
  }

  // Runs the kernels. What goes wrong from here on is in the data, and `finish` says it.
  static int32_t start(CpuRun &run, const AotiTensor *inputs, const AotiTensor *outputs, int32_t n_outputs,
                       AotiState *state, const AotiContext *context, AotiError *error) {
    const AotiModelInfo &info = *T.info;
    if (int32_t code = S::check_outputs(outputs, n_outputs, {AOTI_CPU, 0}, run.symbols, context, error)) return code;
    if (info.state_bytes > 0 && !state) return fail(error, AOTI_ERROR_NULL, "the state is missing");
    if (int32_t code = S::check_communicator(context, error)) return code;
    const void *input_data[T.info->n_inputs + 1];
    void *output_data[T.info->n_outputs + 1];
    for (int32_t i = 0; i < info.n_inputs; ++i) input_data[i] = inputs[i].data;
    for (int32_t i = 0; i < info.n_outputs; ++i) output_data[i] = outputs[i].data;
    void *late_memory[T.n_late + 1] = {};
    OwnMemory late{{late_memory, allocate_late, release_late}, outputs, output_data};
    run.fault.site = 0;
    run.refusal.code = AOTI_OK;
    run.submitted = true;
    run.failed = run.model->level->run({context, input_data, output_data, state ? memory_of(state) : nullptr,
                                        run.model->weights, expanded(run.model), run.workspace,
                                        run.workspace + run.arena_bytes, &run.fault, run.symbols,
                                        context->on_kernel ? tell : nullptr, T.n_late > 0 ? &late : nullptr,
                                        &run.refusal});
    for (int32_t k = 0; k < T.n_late; ++k) free_aligned(late_memory[k]);
    return AOTI_OK;
  }

  // What a function of the project reported: the last that is in the arena.
  static const AotiError &report_of(const CpuRun &run) {
    return *(const AotiError *)(run.workspace + run.arena_bytes - aligned(sizeof(AotiError)));
  }

  static int32_t finish(CpuRun &run, int64_t *const *sizes, AotiError *error) {
    run.submitted = false;
    if constexpr (T.reports != nullptr)
      if (run.failed > 0 && T.reports[run.failed - 1]) return S::reported(report_of(run), run.failed - 1, error);
    if constexpr (T.info->n_collectives > 0)
      if (run.failed > 0 && run.refusal.code) return S::refused(run.refusal, run.failed - 1, error);
    return S::outcome(run.failed, run.fault, run.symbols, sizes, error);
  }

  static int32_t run(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                     int32_t n_outputs, int64_t *const *sizes, AotiState *state, void *workspace, int64_t bytes,
                     const AotiContext *context, AotiError *error) {
    if (!model) return fail(error, AOTI_ERROR_NULL, "the model is null");
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = S::bind(inputs, n_inputs, Need::data, OnProcessor{}, symbols, error)) return code;
    const AotiContext whole = complete(context);
    CpuRun now = unprepared(model, symbols, whole.threads);
    now.workspace = (char *)workspace;
    if (int32_t code = check_workspace(workspace, bytes, needed_bytes(now), error)) return code;
    if (int32_t code = start(now, inputs, outputs, n_outputs, state, &whole, error)) return code;
    return finish(now, sizes, error);
  }

  static int32_t prepare(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t threads,
                         void *workspace, int64_t bytes, AotiRun **run, AotiError *error) {
    if (!model || !run) return fail(error, AOTI_ERROR_NULL, "the model or the place for the run is null");
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = S::bind(inputs, n_inputs, Need::sizes, OnProcessor{}, symbols, error)) return code;
    const CpuRun now = unprepared(model, symbols, threads);
    int64_t needed = needed_bytes(now);
    if (workspace)
      if (int32_t code = check_workspace(workspace, bytes, needed, error)) return code;
    // The run, its sizes, and its memory if that is its own.
    size_t head = sizeof(CpuRun) + sizeof symbols;
    // Zeros, as functions of the project may look at what they are to write.
    CpuRun *made = (CpuRun *)calloc(1, head + (workspace ? 0 : size_t(needed) + AOTI_ALIGNMENT));
    if (!made) return fail(error, AOTI_ERROR_MEMORY, "out of memory: the run needs %lld bytes", (long long)needed);
    *made = now;
    made->symbols = (int64_t *)(made + 1);
    memcpy(made->symbols, symbols, sizeof symbols);
    made->workspace = workspace ? (char *)workspace : aligned((char *)made + head);
    *run = made;
    return succeed(error);
  }

  static int32_t submit(AotiRun *run, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                        int32_t n_outputs, AotiState *state, const AotiContext *context, AotiError *error) {
    if (!run) return fail(error, AOTI_ERROR_NULL, "the run is null");
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = S::bind(inputs, n_inputs, Need::data, OnProcessor{}, symbols, error)) return code;
    CpuRun &prepared = *static_cast<CpuRun *>(run);
    if (int32_t code = S::check_prepared(prepared.symbols, symbols, error)) return code;
    const AotiContext whole = complete(context);
    if (whole.threads > prepared.threads)
      return fail(error, AOTI_ERROR_WORKSPACE, "the run was prepared for %d threads, not %d", int(prepared.threads),
                  int(whole.threads));
    if (int32_t code = start(prepared, inputs, outputs, n_outputs, state, &whole, error)) return code;
    return succeed(error);
  }

  static int32_t wait(AotiRun *run, int64_t *const *sizes, AotiError *error) {
    if (!run || !static_cast<CpuRun *>(run)->submitted)
      return fail(error, AOTI_ERROR_NULL, "no run was submitted");
    return finish(*static_cast<CpuRun *>(run), sizes, error);
  }

  static void release(AotiRun *run) { free(run); }

  // --- kernels, for those who are told of them ---

  static void tell(const Run &run, int32_t kernel, int32_t phase) {
    const AotiContext &context = *run.context;
    kernel += T.first_kernel;
    if (phase == AOTI_KERNEL_BEGIN) return context.on_kernel(context.on_kernel_arg, kernel, phase, nullptr);
    const auto address = [&](Place place, int64_t offset) -> void * {
      if (place == Place::late) return run.late->memory[offset];
      return place == Place::output ? run.outputs[offset] : (place == Place::state ? run.state : run.arena) + offset;
    };
    AotiTensor tensors[T.most_outputs + 1];
    int64_t sizes[T.most_dimensions + 1];
    S::written_by(kernel, run.symbols, address, tensors, sizes);
    context.on_kernel(context.on_kernel_arg, kernel, phase, tensors);
  }

  // --- memory where the model runs ---

  static int32_t allocate(const AotiModel *model, int64_t bytes, void **memory, AotiError *error) {
    if (!model || !memory) return fail(error, AOTI_ERROR_NULL, "the model or the place for the memory is null");
    const bool fits = bytes >= 0 && bytes < INT64_MAX - AOTI_ALIGNMENT;
    *memory = fits ? allocate_aligned(AOTI_ALIGNMENT, aligned(bytes + 1)) : nullptr;
    if (!*memory) return fail(error, AOTI_ERROR_MEMORY, "out of memory: %lld bytes", (long long)bytes);
    memset(*memory, 0, size_t(bytes));
    return succeed(error);
  }

  static void deallocate(const AotiModel *, void *memory) { free_aligned(memory); }

  static int32_t copy(const AotiModel *, void *to, AotiDevice to_device, const void *from, AotiDevice from_device,
                      int64_t bytes, AotiError *error) {
    if (to_device.kind != AOTI_CPU || from_device.kind != AOTI_CPU)
      return fail(error, AOTI_ERROR_DEVICE, "memory of %s cannot be copied by a model that runs on cpu",
                  device_name(to_device.kind != AOTI_CPU ? to_device : from_device).text);
    if (bytes > 0) memmove(to, from, size_t(bytes));
    return succeed(error);
  }

  // In the order of AotiApi.
  static constexpr AotiApi table() {
    return {AOTI_ABI_VERSION, sizeof(AotiApi), T.info,      create,        destroy, output_sizes, workspace_bytes,
            create_state,     reset_state,     copy_state,  destroy_state, run,     prepare,      submit,
            wait,             release,         plan,        T.prepare_bytes, T.prepare_weights, allocate, deallocate, copy,
            nullptr,          0,               0,           assign_state,  reset_state_part, read_state, write_state};
  }
};

} // namespace
} // namespace aoti
