// The C interface of models on a GPU, over tables that a generated file supplies: tensors are taken from either side, copied
// where they must be, and kernels are launched on the caller's stream.
// Owns models and prepared runs there. Knows nothing of what kernels compute.
#pragma once

#include "prepared.h"
#include "states.h"

namespace aoti {
namespace gpu {
namespace {

// Runs that a model keeps for later ones at most.
constexpr int32_t kIdleRuns = 4;

// The entries of a model's table.
template <const Tables &T, const Program &P> struct Interface {
  using S = Sizes<T>;
  using State = States<T>;
  static constexpr int32_t state_slot() { return T.info->n_inputs + T.info->n_outputs; }
  static constexpr int32_t slots() { return state_slot() + 1; }
  static GpuModel *own(const AotiModel *model) { return static_cast<GpuModel *>(const_cast<AotiModel *>(model)); }
  static GpuRun *own(AotiRun *run) { return static_cast<GpuRun *>(run); }

  // --- models ---

  static int32_t create(const AotiCreateOptions *options, AotiModel **model, AotiError *error) {
    if (!model) return fail(error, AOTI_ERROR_NULL, "the place for the model is null");
    const AotiDevice asked = options ? options->device : AotiDevice{AOTI_CPU, 0};
    if (asked.kind != backend(P.vendor).kind)
      return fail(error, AOTI_ERROR_DEVICE, "%s was asked for, the library has code for %s only", device_name(asked).text,
                  kind_name(backend(P.vendor).kind));
    const char *weights;
    if (int32_t code = S::weights_of(options, &weights, error)) return code;
    GpuModel *made = (GpuModel *)calloc(1, sizeof(GpuModel));
    if (!made) return fail(error, AOTI_ERROR_MEMORY, "out of memory");
    const Source source = {&P, asked.index, (Context)options->device_context, weights, !options->weights};
    if (int32_t code = acquire(source, &made->loaded, error)) {
      free(made);
      return code;
    }
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    made->lock = unlocked;
    made->candidate = {made->loaded->architecture, asked.kind, AOTI_PICKED, made->loaded->reason};
    made->plan = {asked, made->loaded->architecture, &made->candidate, 1, 0};
    *model = made;
    return succeed(error);
  }

  static void destroy(AotiModel *model) {
    if (!model) return;
    while (GpuRun *run = own(model)->idle) {
      own(model)->idle = run->next;
      release_run(run, slots());
    }
    let_go(own(model)->loaded, true);
    free(own(model));
  }

  static const AotiPlan *plan(const AotiModel *model) { return model ? &own(model)->plan : nullptr; }

  static int32_t output_sizes(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int64_t *const *sizes,
                              AotiError *error) {
    if (!model) return fail(error, AOTI_ERROR_NULL, "the model is null");
    return S::output_sizes(OnDevice(*own(model)->loaded), inputs, n_inputs, sizes, error);
  }

  static int32_t workspace_bytes(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t,
                                 int64_t *bytes, AotiError *error) {
    if (!model || !bytes) return fail(error, AOTI_ERROR_NULL, "the model or the place for the size is null");
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = S::bind(inputs, n_inputs, Need::sizes, OnDevice(*own(model)->loaded), symbols, error)) return code;
    *bytes = 0;
    return succeed(error);
  }

  // --- runs ---

  static int32_t prepare_for(const GpuModel *model, const int64_t *symbols, GpuRun **run, AotiError *error) {
    int code;
    *run = make_run(model, symbols, T.n_symbols, slots(), T.n_late, T.arena_bytes(symbols), &code);
    if (*run) return succeed(error);
    return code ? driver_failed(error, *model->loaded, code, "no memory for a run")
                : fail(error, AOTI_ERROR_MEMORY, "out of memory");
  }

  static int32_t prepare(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t, void *, int64_t,
                         AotiRun **run, AotiError *error) {
    if (!model || !run) return fail(error, AOTI_ERROR_NULL, "the model or the place for the run is null");
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = S::bind(inputs, n_inputs, Need::sizes, OnDevice(*own(model)->loaded), symbols, error)) return code;
    GpuRun *made;
    const int32_t code = prepare_for(own(model), symbols, &made, error);
    if (!code) *run = made;
    return code;
  }

  // Bytes of an output whose memory the run allocated.
  static size_t late_bytes(int32_t output, const int64_t *values) {
    const AotiValueInfo &info = T.info->outputs[output];
    int64_t sizes[S::most_rank() + 1], bytes = dtype_bytes(info.dtype);
    S::size_of(info, T.output_sizes ? T.output_sizes[output] : nullptr, values, sizes);
    for (int32_t d = 0; d < info.rank; ++d) bytes *= sizes[d] > 0 ? sizes[d] : 0;
    return size_t(bytes);
  }

  // Bytes of an output that a run wrote with these sizes, some of them read from data: the rest of the tensor has no values.
  static size_t written_bytes(const AotiTensor &tensor, int32_t output, const int64_t *values) {
    const int32_t *expressions = T.output_sizes ? T.output_sizes[output] : nullptr;
    int64_t bytes = dtype_bytes(tensor.dtype);
    for (int32_t d = 0; d < tensor.rank; ++d) {
      const int64_t most = tensor.sizes[d], size = expressions && expressions[d] >= 0 ? values[expressions[d]] : most;
      bytes *= size < 0 ? 0 : size < most ? size : most;
    }
    return size_t(bytes);
  }

  // What a run allocates itself, and where outputs go for which it does.
  struct OwnMemory : DeviceLate {
    const AotiContext *context;
    const AotiTensor *tensors;
    void **targets;
  };

  static bool allocate_late(DeviceRun &run, int32_t number, int64_t bytes, int32_t output) {
    constexpr int kOutOfMemory = 2; // of both drivers
    const OwnMemory &own = *static_cast<const OwnMemory *>(run.late);
    if (bytes < 0) return false;
    gpu::release(run, number);
    if (run.error) return true;
    Address &memory = own.memory[number];
    const int code = run.driver->allocate(&memory, size_t(bytes) + 1);
    if (code) {
      memory = 0;
      if (code != kOutOfMemory) run.error = code;
      return code != kOutOfMemory;
    }
    if (output < 0) return true;
    run.outputs[output] = {memory, true};
    own.targets[output] = S::late_output(own.tensors[output], output, bytes, run.symbols, own.context);
    return own.targets[output] != nullptr;
  }

  static int32_t submit(AotiRun *prepared, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                        int32_t n_outputs, AotiState *state, const AotiContext *context, AotiError *error) {
    if (!prepared) return fail(error, AOTI_ERROR_NULL, "the run is null");
    GpuRun &run = *own(prepared);
    const Loaded &on = *run.model->loaded;
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = S::bind(inputs, n_inputs, Need::data, OnDevice(on, context), symbols, error)) return code;
    if (int32_t code = S::check_prepared(run.symbols, symbols, error)) return code;
    if (int32_t code = S::check_outputs(outputs, n_outputs, device_of(on), symbols, context, error)) return code;
    if (T.info->state_bytes > 0 && !state) return fail(error, AOTI_ERROR_NULL, "the state is missing");
    if (int32_t code = State::lies_here(state, on, error)) return code;
    if (int32_t code = S::check_communicator(context, error)) return code;
    run.communicator = T.info->n_collectives > 0 ? context->communicator : nullptr;
    run.refusal.code = AOTI_OK;
    Stream stream = context ? (Stream)context->stream : nullptr;
    bool on_host = true, gives_host = false;
    for (int32_t i = 0; i < n_inputs; ++i) on_host = on_host && inputs[i].device.kind == AOTI_CPU;
    for (int32_t i = 0; i < n_outputs; ++i) {
      const bool is_host = outputs[i].device.kind == AOTI_CPU;
      on_host = on_host && is_host, gives_host = gives_host || is_host;
    }
    void *late_targets[T.info->n_outputs + 1] = {};
    OwnMemory late{{run.late, allocate_late}, context, outputs, late_targets};
    if (!stream && on_host) stream = run.stream;
    Entered entered(on);
    int code = 0;
    for (int32_t i = 0; i < n_inputs && !code; ++i) code = place(run, i, inputs[i]);
    for (int32_t i = 0; i < n_outputs && !code; ++i)
      if (!S::is_late(i)) code = place(run, n_inputs + i, outputs[i]);
    give(run, state_slot(), state ? State::own(state)->memory : 0);
    for (int32_t i = 0; i < n_inputs && !code; ++i) code = copy_in(run, i, inputs[i], stream);
    run.fault()->site = 0;
    run.generator()[0] = context ? context->seed : 0;
    run.generator()[1] = context ? context->offset : 0;
    run.failed = 0;
    DeviceRun launches{&on.driver,
                       stream,
                       on.entries,
                       on.products ? &on.library : nullptr,
                       on.products,
                       run.given,
                       run.given + n_inputs,
                       run.given[state_slot()],
                       Address(uintptr_t(run.generator())),
                       on.uploaded,
                       run.arena,
                       Address(uintptr_t(run.fault())),
                       run.pinned,
                       on.multiprocessors,
                       run.symbols,
                       context && context->on_kernel ? tell : nullptr,
                       context,
                       nullptr,
                       nullptr,
                       0,
                       T.n_late > 0 ? &late : nullptr,
                       run.communicator,
                       device_of(on),
                       &run.refusal};
    Timing timing(on.driver, context ? context->on_time : nullptr, context ? context->on_time_arg : nullptr, T.first_kernel);
    if (timing.tell && !launches.tell) launches.timing = &timing, code = code ? code : timing.make_events();
    if (!code) code = start(run, launches, slots());
    // A copy to the host's memory may keep this thread until the ranks have met, and nobody would ask after them meanwhile.
    if (!code && run.communicator && gives_host) {
      code = on.driver.event_record(run.done, stream);
      if (!code) code = await(run);
      if (run.refusal.code) n_outputs = code = 0;
    }
    int64_t values[T.expressions.count + 1] = {};
    if (T.expressions.count > 0) T.expressions.evaluate(run.symbols, values);
    for (int32_t i = 0; i < n_outputs && !code; ++i) {
      const size_t bytes = S::is_late(i) ? late_bytes(i, values) : written_bytes(outputs[i], i, values);
      if (!S::is_late(i))
        code = copy_out(run, n_inputs + i, outputs[i], bytes, stream);
      else if (!run.failed && late_targets[i])
        code = copy_to(run, late_targets[i], outputs[i].device, run.given[n_inputs + i], bytes, stream);
    }
    if (!code) code = on.driver.event_record(run.done, stream);
    if (code) {
      // What was launched before must not outlive the caller's tensors.
      on.driver.stream_wait(stream);
      release_late(run);
      return driver_failed(error, on, code, "starting a run");
    }
    run.submitted = true;
    return succeed(error);
  }

  static int32_t wait(AotiRun *prepared, int64_t *const *sizes, AotiError *error) {
    if (!prepared || !own(prepared)->submitted) return fail(error, AOTI_ERROR_NULL, "no run was submitted");
    GpuRun &run = *own(prepared);
    run.submitted = false;
    Entered entered(*run.model->loaded);
    const int code = await(run);
    release_late(run);
    // What a communicator has ended may leave an error of the driver's.
    if (code && !run.refusal.code) return driver_failed(error, *run.model->loaded, code, "a run");
    if constexpr (T.info->n_collectives > 0)
      if (run.refusal.code) return S::refused(run.refusal, run.failed - 1, error);
    return S::outcome(run.failed, *run.fault(), run.symbols, sizes, error);
  }

  static void release(AotiRun *run) {
    if (run) release_run(own(run), slots());
  }

  // Whether a run was prepared for these sizes.
  static bool is_for(const GpuRun &run, const int64_t *symbols) {
    for (int32_t k = 0; k < T.n_symbols; ++k)
      if (T.symbols[k].from != From::data && run.symbols[k] != symbols[k]) return false;
    return true;
  }

  // An idle run for these sizes, or null.
  static GpuRun *take_idle(GpuModel *model, const int64_t *symbols) {
    pthread_mutex_lock(&model->lock);
    GpuRun **link = &model->idle;
    while (*link && !is_for(**link, symbols)) link = &(*link)->next;
    GpuRun *found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&model->lock);
    return found;
  }

  static void keep(GpuModel *model, GpuRun *run) {
    pthread_mutex_lock(&model->lock);
    run->next = model->idle, model->idle = run;
    GpuRun **link = &model->idle;
    for (int32_t k = 0; k < kIdleRuns && *link; ++k) link = &(*link)->next;
    GpuRun *excess = *link;
    *link = nullptr;
    pthread_mutex_unlock(&model->lock);
    if (excess) release_run(excess, slots());
  }

  static int32_t run(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                     int32_t n_outputs, int64_t *const *sizes, AotiState *state, void *, int64_t,
                     const AotiContext *context, AotiError *error) {
    if (!model) return fail(error, AOTI_ERROR_NULL, "the model is null");
    int64_t symbols[T.n_symbols + 1];
    if (int32_t code = S::bind(inputs, n_inputs, Need::data, OnDevice(*own(model)->loaded, context), symbols, error)) return code;
    GpuRun *run = take_idle(own(model), symbols);
    if (!run)
      if (int32_t code = prepare_for(own(model), symbols, &run, error)) return code;
    int32_t code = submit(run, inputs, n_inputs, outputs, n_outputs, state, context, error);
    if (!code) code = wait(run, sizes, error);
    keep(own(model), run);
    return code;
  }

  // --- kernels, for those who are told of them ---

  static void tell(DeviceRun &run, int32_t kernel, int32_t phase) {
    const AotiContext &context = *(const AotiContext *)run.teller;
    kernel += T.first_kernel;
    if (phase == AOTI_KERNEL_BEGIN) return context.on_kernel(context.on_kernel_arg, kernel, phase, nullptr);
    const auto address = [&](Place place, int64_t offset) -> void * {
      if (place == Place::late) return (void *)uintptr_t(run.late->memory[offset]);
      const Address base = place == Place::state ? run.states.address : run.arena;
      return (void *)uintptr_t(place == Place::output ? run.outputs[offset].address : base + Address(offset));
    };
    AotiTensor tensors[T.most_outputs + 1];
    int64_t sizes[T.most_dimensions + 1];
    S::written_by(kernel, run.symbols, address, tensors, sizes);
    const int32_t count = T.info->kernels[kernel].n_outputs;
    bool whole = true;
    for (int32_t i = 0; i < count; ++i) {
      const size_t bytes = size_t(bytes_of(tensors[i]));
      const Address from = Address(uintptr_t(tensors[i].data));
      tensors[i].data = malloc(bytes + 1);
      if (!tensors[i].data)
        whole = false;
      else if (!run.error && bytes > 0)
        run.error = run.driver->copy_out(tensors[i].data, from, bytes, run.stream);
    }
    if (!run.error) run.error = run.driver->stream_wait(run.stream);
    context.on_kernel(context.on_kernel_arg, kernel, phase, whole && !run.error ? tensors : nullptr);
    for (int32_t i = 0; i < count; ++i) free(tensors[i].data);
  }

  // --- memory where the model runs ---

  static int32_t allocate(const AotiModel *model, int64_t bytes, void **memory, AotiError *error) {
    if (!model || !memory) return fail(error, AOTI_ERROR_NULL, "the model or the place for the memory is null");
    if (bytes < 0) return fail(error, AOTI_ERROR_MEMORY, "there is no memory of %lld bytes", (long long)bytes);
    const Loaded &on = *own(model)->loaded;
    Entered entered(on);
    Address address = 0;
    int code = on.driver.allocate(&address, size_t(bytes) + 1);
    if (code) return driver_failed(error, on, code, "no memory");
    if (bytes > 0) code = on.driver.fill(address, 0, size_t(bytes), nullptr);
    if (!code) code = on.driver.stream_wait(nullptr);
    if (code) {
      on.driver.release(address);
      return driver_failed(error, on, code, "writing zeros");
    }
    *memory = (void *)uintptr_t(address);
    return succeed(error);
  }

  static void deallocate(const AotiModel *model, void *memory) {
    if (!model || !memory) return;
    Entered entered(*own(model)->loaded);
    own(model)->loaded->driver.release(Address(uintptr_t(memory)));
  }

  static int32_t copy(const AotiModel *model, void *to, AotiDevice to_device, const void *from, AotiDevice from_device,
                      int64_t bytes, AotiError *error) {
    if (!model) return fail(error, AOTI_ERROR_NULL, "the model is null");
    const Loaded &on = *own(model)->loaded;
    const AotiDevice here = device_of(on);
    const auto is_near = [&](AotiDevice device) {
      return device.kind == AOTI_CPU || (device.kind == here.kind && device.index == here.index);
    };
    if (!is_near(to_device) || !is_near(from_device))
      return fail(error, AOTI_ERROR_DEVICE, "memory of %s cannot be copied by a model that runs on %s",
                  device_name(is_near(to_device) ? from_device : to_device).text, device_name(here).text);
    if (bytes <= 0) return succeed(error);
    if (to_device.kind == AOTI_CPU && from_device.kind == AOTI_CPU) {
      memmove(to, from, size_t(bytes));
      return succeed(error);
    }
    Entered entered(on);
    const Address target = Address(uintptr_t(to)), source = Address(uintptr_t(from));
    int code = to_device.kind == AOTI_CPU     ? on.driver.copy_out(to, source, size_t(bytes), nullptr)
               : from_device.kind == AOTI_CPU ? on.driver.copy_in(target, from, size_t(bytes), nullptr)
                                              : on.driver.copy(target, source, size_t(bytes), nullptr);
    if (!code) code = on.driver.stream_wait(nullptr);
    return code ? driver_failed(error, on, code, "copying") : succeed(error);
  }

  // In the order of AotiApi.
  static constexpr AotiApi table() {
    return {AOTI_ABI_VERSION,
            sizeof(AotiApi),
            T.info,
            create,
            destroy,
            output_sizes,
            workspace_bytes,
            State::create,
            State::reset,
            State::copy,
            State::destroy,
            run,
            prepare,
            submit,
            wait,
            release,
            plan,
            T.prepare_bytes,
            T.prepare_weights,
            allocate,
            deallocate,
            copy,
            nullptr,
            0,
            0,
            State::assign,
            State::reset_part,
            State::read,
            State::write};
  }
};

} // namespace
} // namespace gpu
} // namespace aoti
