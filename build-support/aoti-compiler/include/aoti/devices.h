// The C interface of a library with code for several devices: `create` goes to the one that is asked for, everything else to
// the one that made what it is given.
// Knows nothing of any device.
#pragma once

#include "check.h"
#include "tables.h"

namespace aoti {
namespace {

struct DeviceApi {
  const char *name;
  int32_t kind;
  const AotiApi *api;
};

// The entries of such a library's table, over Count devices.
template <const DeviceApi *Devices, int32_t Count> struct AnyDevice {
  static int32_t create(const AotiCreateOptions *options, AotiModel **model, AotiError *error) {
    const AotiDevice asked = options ? options->device : AotiDevice{AOTI_CPU, 0};
    for (int32_t k = 0; k < Count; ++k) {
      if (Devices[k].kind != asked.kind) continue;
      const int32_t code = Devices[k].api->create(options, model, error);
      if (!code) (*model)->api = Devices[k].api, (*model)->kind = asked.kind;
      return code;
    }
    char names[64] = "";
    int length = 0;
    for (int32_t k = 0; k < Count; ++k)
      length += snprintf(names + length, sizeof names - size_t(length), "%s%s", k ? ", " : "", Devices[k].name);
    return fail(error, AOTI_ERROR_DEVICE, "%s was asked for, the library has code for %s", device_name(asked).text, names);
  }

  static int32_t no_model(AotiError *error) { return fail(error, AOTI_ERROR_NULL, "the model is null"); }

  static void destroy(AotiModel *model) {
    if (model) model->api->destroy(model);
  }
  static const AotiPlan *plan(const AotiModel *model) { return model ? model->api->plan(model) : nullptr; }
  static int32_t output_sizes(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int64_t *const *sizes,
                              AotiError *error) {
    return model ? model->api->output_sizes(model, inputs, n_inputs, sizes, error) : no_model(error);
  }
  static int32_t workspace_bytes(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t threads,
                                 int64_t *bytes, AotiError *error) {
    return model ? model->api->workspace_bytes(model, inputs, n_inputs, threads, bytes, error) : no_model(error);
  }

  static int32_t create_state(const AotiModel *model, void *memory, AotiState **state, AotiError *error) {
    if (!model) return no_model(error);
    const int32_t code = model->api->create_state(model, memory, state, error);
    if (!code) (*state)->api = model->api, (*state)->kind = model->kind;
    return code;
  }
  static int32_t reset_state(const AotiModel *model, AotiState *state, AotiError *error) {
    if (int32_t code = are_of_one(model, state, error)) return code;
    return model && state ? model->api->reset_state(model, state, error) : no_model(error);
  }
  static int32_t copy_state(const AotiState *from, void *memory, AotiState **state, AotiError *error) {
    if (!from) return fail(error, AOTI_ERROR_NULL, "the state is null");
    const int32_t code = from->api->copy_state(from, memory, state, error);
    if (!code) (*state)->api = from->api, (*state)->kind = from->kind;
    return code;
  }
  static int32_t assign_state(AotiState *to, const AotiState *from, AotiError *error) {
    if (!to || !from) return fail(error, AOTI_ERROR_NULL, "the state is null");
    if (to->kind != from->kind)
      return fail(error, AOTI_ERROR_DEVICE, "the states were made for different kinds of devices");
    return to->api->assign_state(to, from, error);
  }
  static int32_t reset_state_part(const AotiModel *model, AotiState *state, const AotiStatePart *part, AotiError *error) {
    if (int32_t code = are_of_one(model, state, error)) return code;
    return model && state ? model->api->reset_state_part(model, state, part, error) : no_model(error);
  }
  static int32_t read_state(const AotiState *state, const AotiStatePart *part, void *to, AotiError *error) {
    if (!state) return fail(error, AOTI_ERROR_NULL, "the state is null");
    return state->api->read_state(state, part, to, error);
  }
  static int32_t write_state(AotiState *state, const AotiStatePart *part, const void *from, AotiError *error) {
    if (!state) return fail(error, AOTI_ERROR_NULL, "the state is null");
    return state->api->write_state(state, part, from, error);
  }
  static void destroy_state(AotiState *state) {
    if (state) state->api->destroy_state(state);
  }
  // A state made for another kind of device holds an address that means nothing here.
  template <class Object> static int32_t are_of_one(const Object *object, const AotiState *state, AotiError *error) {
    if (!object || !state || object->kind == state->kind) return AOTI_OK;
    return fail(error, AOTI_ERROR_DEVICE, "the state was made for another kind of device than the model");
  }

  static int32_t run(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                     int32_t n_outputs, int64_t *const *sizes, AotiState *state, void *workspace, int64_t bytes,
                     const AotiContext *context, AotiError *error) {
    if (!model) return no_model(error);
    if (int32_t code = are_of_one(model, state, error)) return code;
    return model->api->run(model, inputs, n_inputs, outputs, n_outputs, sizes, state, workspace, bytes, context, error);
  }
  static int32_t prepare(const AotiModel *model, const AotiTensor *inputs, int32_t n_inputs, int32_t threads,
                         void *workspace, int64_t bytes, AotiRun **run, AotiError *error) {
    if (!model) return no_model(error);
    const int32_t code = model->api->prepare(model, inputs, n_inputs, threads, workspace, bytes, run, error);
    if (!code) (*run)->api = model->api, (*run)->kind = model->kind;
    return code;
  }
  static int32_t submit(AotiRun *run, const AotiTensor *inputs, int32_t n_inputs, const AotiTensor *outputs,
                        int32_t n_outputs, AotiState *state, const AotiContext *context, AotiError *error) {
    if (!run) return fail(error, AOTI_ERROR_NULL, "the run is null");
    if (int32_t code = are_of_one(run, state, error)) return code;
    return run->api->submit(run, inputs, n_inputs, outputs, n_outputs, state, context, error);
  }
  static int32_t wait(AotiRun *run, int64_t *const *sizes, AotiError *error) {
    return run ? run->api->wait(run, sizes, error) : fail(error, AOTI_ERROR_NULL, "no run was submitted");
  }
  static void release(AotiRun *run) {
    if (run) run->api->release(run);
  }

  static int32_t allocate(const AotiModel *model, int64_t bytes, void **memory, AotiError *error) {
    return model ? model->api->allocate(model, bytes, memory, error) : no_model(error);
  }
  static void deallocate(const AotiModel *model, void *memory) {
    if (model) model->api->deallocate(model, memory);
  }
  static int32_t copy(const AotiModel *model, void *to, AotiDevice to_device, const void *from, AotiDevice from_device,
                      int64_t bytes, AotiError *error) {
    return model ? model->api->copy(model, to, to_device, from, from_device, bytes, error) : no_model(error);
  }

  // In the order of AotiApi.
  static constexpr AotiApi table(const AotiModelInfo *info) {
    // Weights are made in memory of the processor, whatever they are for.
    constexpr const AotiApi &any = *Devices[0].api;
    return {AOTI_ABI_VERSION, sizeof(AotiApi), info,        create,        destroy, output_sizes, workspace_bytes,
            create_state,     reset_state,     copy_state,  destroy_state, run,     prepare,      submit,
            wait,             release,         plan,        any.prepare_bytes, any.prepare_weights, allocate, deallocate,
            copy,             nullptr,         0,           0,             assign_state, reset_state_part, read_state,
            write_state};
  }
};

} // namespace
} // namespace aoti
