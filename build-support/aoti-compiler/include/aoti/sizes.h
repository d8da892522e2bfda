// What is the same for runs on every device: inputs and outputs are checked against a model's tables, sizes are found,
// failures get their texts.
// Owns nothing. Knows neither memory nor kernels.
#pragma once

#include "check.h"
#include "tables.h"

namespace aoti {
namespace {

// Where a model runs, and how numbers in its inputs are read: the processor's own memory.
struct OnProcessor {
  AotiDevice device = {AOTI_CPU, 0};
  bool read(const AotiTensor &tensor, int64_t *value) const {
    *value = *(const int64_t *)tensor.data;
    return true;
  }
};

template <const Tables &T> struct Sizes {
  // Finds the tensor of the state that has all of a part, or says that there is none.
  static int32_t tensor_of(const AotiStatePart *part, int32_t *tensor, AotiError *error) {
    if (!part) return fail(error, AOTI_ERROR_NULL, "the part of the state is null");
    const bool is_part = part->begin >= 0 && part->bytes >= 0 && part->stride >= 0 && part->count >= 0;
    for (int32_t k = 0; is_part && k < T.info->n_states; ++k) {
      const int64_t rest = T.states[k].offset + T.states[k].bytes - part->begin;
      if (part->begin < T.states[k].offset || part->bytes > rest) continue;
      if (part->count > 1 && part->stride > (rest - part->bytes) / (part->count - 1)) continue;
      *tensor = k;
      return AOTI_OK;
    }
    return fail(error, AOTI_ERROR_SIZE, "no tensor of the state has %lld pieces of %lld bytes from byte %lld on, %lld bytes apart",
                part->count > 0 ? (long long)part->count : 0LL, (long long)part->bytes, (long long)part->begin,
                (long long)part->stride);
  }

  // The weights that a model reads: those given, else those in the library.
  static int32_t weights_of(const AotiCreateOptions *options, const char **found, AotiError *error) {
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
    *found = weights;
    return AOTI_OK;
  }

  // Checks the inputs and finds every size; those that are read from data are at their bounds.
  template <class Host>
  static int32_t bind(const AotiTensor *inputs, int32_t n_inputs, Need need, const Host &host, int64_t *symbols,
                      AotiError *error) {
    const AotiModelInfo &info = *T.info;
    if (int32_t code = check_tensors("input", inputs, n_inputs, info.inputs, info.n_inputs, need, host.device, error)) return code;
    for (int32_t k = 0; k < T.n_symbols; ++k) {
      const Symbol &symbol = T.symbols[k];
      if (symbol.from == From::dimension) symbols[k] = inputs[symbol.input].sizes[symbol.dimension];
      if (symbol.from == From::data) symbols[k] = symbol.max;
      if (symbol.from != From::value) continue;
      if (!inputs[symbol.input].data)
        return fail(error, AOTI_ERROR_NULL, "input `%s` is a size and has no data", symbol.name);
      if (!host.read(inputs[symbol.input], &symbols[k]))
        return fail(error, AOTI_ERROR_DEVICE, "input `%s` is a size and cannot be read from the device", symbol.name);
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

  // What a function of the project said, and where the program calls it.
  static int32_t reported(const AotiError &report, int32_t failure, AotiError *error) {
    if (report.message[0]) return fail(error, AOTI_ERROR_OPERATOR, "%s: %s", report.message, T.failures[failure]);
    return fail(error, AOTI_ERROR_OPERATOR, "the function gave status %d: %s", int(report.code), T.failures[failure]);
  }

  // A rank alone does not begin.
  static int32_t check_communicator(const AotiContext *context, AotiError *error) {
    if (T.info->n_collectives == 0 || (context && context->communicator)) return AOTI_OK;
    return fail(error, AOTI_ERROR_RANKS, "the model computes with other ranks, and the run has no communicator");
  }

  // What the communicator said, and where the program asks for it.
  static int32_t refused(const AotiError &refusal, int32_t failure, AotiError *error) {
    const char *place = failure < 0 ? "while the run waited" : T.failures[failure];
    if (refusal.message[0]) return fail(error, AOTI_ERROR_RANKS, "%s: %s", refusal.message, place);
    return fail(error, AOTI_ERROR_RANKS, "the communicator gave status %d: %s", int(refusal.code), place);
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

  // Whether a size of an output is known only when a run has read it from data: then so is its memory.
  static bool is_late(int32_t output) {
    const int32_t *sizes = T.n_late > 0 && T.most_sizes ? T.most_sizes[output] : nullptr;
    for (int32_t d = 0; sizes && d < T.info->outputs[output].rank; ++d)
      if (sizes[d] == kLate) return true;
    return false;
  }

  static constexpr int32_t most_rank() {
    int32_t most = 0;
    for (int32_t i = 0; i < T.info->n_outputs; ++i) most = T.info->outputs[i].rank > most ? T.info->outputs[i].rank : most;
    return most;
  }

  // Memory of the caller's for such an output, or null.
  static void *late_output(const AotiTensor &tensor, int32_t output, int64_t bytes, const int64_t *symbols,
                           const AotiContext *context) {
    const AotiValueInfo &info = T.info->outputs[output];
    if (bytes < 0) return nullptr;
    if (tensor.data) {
      int64_t room = dtype_bytes(info.dtype);
      for (int32_t d = 0; d < info.rank; ++d) room *= tensor.sizes[d];
      return bytes <= room ? tensor.data : nullptr;
    }
    int64_t values[T.expressions.count + 1] = {}, sizes[most_rank() + 1];
    if (T.expressions.count > 0) T.expressions.evaluate(symbols, values);
    size_of(info, T.output_sizes ? T.output_sizes[output] : nullptr, values, sizes);
    void *memory = context->allocate_output(context->allocate_output_arg, output, sizes, bytes);
    return uintptr_t(memory) % uintptr_t(dtype_alignment(info.dtype)) == 0 ? memory : nullptr;
  }

  static void size_of(const AotiValueInfo &info, const int32_t *expressions, const int64_t *values, int64_t *sizes) {
    for (int32_t d = 0; d < info.rank; ++d)
      sizes[d] = !expressions || expressions[d] == -1 ? info.dims[d].min : expressions[d] == kLate ? -1 : values[expressions[d]];
  }

  static int32_t write_sizes(const int64_t *symbols, const int32_t *const *expressions, int64_t *const *sizes,
                             AotiError *error) {
    int64_t values[T.expressions.count + 1] = {};
    if (T.expressions.count > 0) T.expressions.evaluate(symbols, values);
    for (int32_t i = 0; i < T.info->n_outputs; ++i) {
      const AotiValueInfo &info = T.info->outputs[i];
      size_of(info, expressions ? expressions[i] : nullptr, values, sizes[i]);
      for (int32_t d = 0; d < info.rank; ++d)
        if (sizes[i][d] < 0 && !(expressions && expressions[i] && expressions[i][d] == kLate))
          return fail(error, AOTI_ERROR_SIZE, "output `%s`: dimension %d is out of range", info.name, int(d));
    }
    return AOTI_OK;
  }

  template <class Host>
  static int32_t output_sizes(const Host &host, const AotiTensor *inputs, int32_t n_inputs, int64_t *const *sizes,
                              AotiError *error) {
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = bind(inputs, n_inputs, Need::sizes, host, symbols, error)) return code;
    if (T.info->n_outputs > 0 && !sizes) return fail(error, AOTI_ERROR_NULL, "the place for sizes is null");
    if (int32_t code = write_sizes(symbols, T.most_sizes, sizes, error)) return code;
    return succeed(error);
  }

  // Checks the outputs of a run for inputs of these sizes.
  static int32_t check_outputs(const AotiTensor *outputs, int32_t n_outputs, AotiDevice device, const int64_t *symbols,
                               const AotiContext *context, AotiError *error) {
    const AotiModelInfo &info = *T.info;
    if (int32_t code = check_count("output", outputs, n_outputs, info.n_outputs, error)) return code;
    int64_t values[T.expressions.count + 1] = {};
    if (T.expressions.count > 0) T.expressions.evaluate(symbols, values);
    for (int32_t i = 0; i < n_outputs; ++i) {
      const bool is_asked_for = is_late(i) && !outputs[i].data;
      const Need need = is_asked_for ? Need::type : Need::data;
      if (int32_t code = check_tensor("output", outputs[i], info.outputs[i], need, device, error)) return code;
      if (is_asked_for && !(context && context->allocate_output))
        return fail(error, AOTI_ERROR_NULL,
                    "the sizes of output `%s` are known only when the model has run: it must have room, or the context a "
                    "function `allocate_output`",
                    info.outputs[i].name);
      const int32_t *sizes = T.most_sizes && !is_asked_for ? T.most_sizes[i] : nullptr;
      for (int32_t d = 0; sizes && d < info.outputs[i].rank; ++d)
        if (sizes[d] >= 0)
          if (int32_t code = check_equal("output", outputs, info.outputs, i, d, values[sizes[d]], error)) return code;
    }
    return AOTI_OK;
  }

  // Of a run that was prepared for `own` sizes: whether it is one for these. A run before may have found other values than
  // the bounds.
  static int32_t check_prepared(int64_t *own, const int64_t *symbols, AotiError *error) {
    for (int32_t k = 0; k < T.n_symbols; ++k) {
      if (T.symbols[k].from == From::data) own[k] = symbols[k];
      if (symbols[k] != own[k])
        return fail(error, AOTI_ERROR_SIZE, "the run was prepared for %s = %lld, not %lld", T.symbols[k].name,
                    (long long)own[k], (long long)symbols[k]);
    }
    return AOTI_OK;
  }

  // What a run that is done says: an assertion or an index that failed, or the sizes of the outputs.
  static int32_t outcome(int32_t failed, const Fault &fault, const int64_t *symbols, int64_t *const *sizes, AotiError *error) {
    if (failed > 0) return fail_with(error, AOTI_ERROR_ASSERT, failed - 1, symbols);
    if (failed < 0) return fail_with(error, AOTI_ERROR_MEMORY, -failed - 1, symbols);
    if (fault.site > 0) {
      const Site &site = T.sites[fault.site - 1];
      if (site.is_assertion) return fail(error, AOTI_ERROR_ASSERT, "%s", site.text);
      return fail(error, AOTI_ERROR_INDEX, "index %lld is outside %lld..=%lld in %s", (long long)fault.index,
                  (long long)(fault.wraps ? -fault.size : 0), (long long)fault.size - 1, site.text);
    }
    if (sizes)
      if (int32_t code = write_sizes(symbols, T.output_sizes, sizes, error)) return code;
    return succeed(error);
  }

  // The tensors that a kernel wrote, with their sizes in `sizes`; `address` gives those of outputs, states and the arena.
  template <class Address>
  static void written_by(int32_t kernel, const int64_t *symbols, const Address &address, AotiTensor *tensors,
                         int64_t *sizes) {
    int64_t values[T.kernel_expressions.count + 1] = {};
    if (T.kernel_expressions.count > 0) T.kernel_expressions.evaluate(symbols, values);
    const AotiKernelInfo &info = T.info->kernels[kernel];
    for (int32_t i = 0; i < info.n_outputs; ++i) {
      const AotiValueInfo &value = info.outputs[i];
      const KernelOutput &output = T.kernel_outputs[&value - T.kernel_values];
      int64_t offset = output.expression >= 0 ? values[output.expression] : output.offset;
      size_of(value, output.sizes, values, sizes);
      tensors[i] = {address(output.place, offset), sizes, nullptr, value.rank, value.dtype, {AOTI_CPU, 0}};
      sizes += value.rank;
    }
  }
};

} // namespace
} // namespace aoti
