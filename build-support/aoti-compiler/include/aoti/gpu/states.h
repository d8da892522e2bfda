// What a program changes, in device memory: made, copied, reset, read and written by those who run it.
#pragma once

#include "prepared.h"

namespace aoti {
namespace gpu {
namespace {

// The entries of a model's table for its states.
template <const Tables &T> struct States {
  using S = Sizes<T>;
  static GpuModel *own(const AotiModel *model) { return static_cast<GpuModel *>(const_cast<AotiModel *>(model)); }
  static GpuState *own(AotiState *state) { return static_cast<GpuState *>(state); }

  static int32_t make(Loaded *on, void *memory, AotiState **state, AotiError *error) {
    if (!state) return fail(error, AOTI_ERROR_NULL, "the place for the state is null");
    if (uintptr_t(memory) % AOTI_ALIGNMENT != 0)
      return fail(error, AOTI_ERROR_ALIGNMENT, "the memory of the state is not aligned to %d bytes", AOTI_ALIGNMENT);
    GpuState *made = (GpuState *)calloc(1, sizeof(GpuState));
    if (!made) return fail(error, AOTI_ERROR_MEMORY, "out of memory");
    made->loaded = on, made->memory = Address(uintptr_t(memory)), made->own = !memory;
    if (made->own) {
      Entered entered(*on);
      if (int code = on->driver.allocate(&made->memory, size_t(T.info->state_bytes) + 1)) {
        free(made);
        return driver_failed(error, *on, code, "no memory for the state");
      }
    }
    retain(on);
    *state = made;
    return succeed(error);
  }

  // The memory of a state that was made on another device, or in another context, is not that of kernels here.
  static int32_t lies_here(const AotiState *state, const Loaded &on, AotiError *error) {
    if (!state) return AOTI_OK;
    const Loaded &made_on = *static_cast<const GpuState *>(state)->loaded;
    if (made_on.index != on.index)
      return fail(error, AOTI_ERROR_DEVICE, "the state lies on %s, the model runs on %s",
                  device_name(device_of(made_on)).text, device_name(device_of(on)).text);
    if (made_on.context != on.context)
      return fail(error, AOTI_ERROR_DEVICE, "the state was made in another context of %s than the model works in",
                  device_name(device_of(on)).text);
    return AOTI_OK;
  }

  // Copies of parts of a state, which are there when this returns.
  template <class Copy> static int32_t filled(const Loaded &on, const Copy &copy, AotiError *error) {
    Entered entered(on);
    int code = copy();
    if (!code) code = on.driver.stream_wait(nullptr);
    return code ? driver_failed(error, on, code, "copying the state") : succeed(error);
  }

  static int32_t reset(const AotiModel *model, AotiState *state, AotiError *error) {
    if (!model || !state) return fail(error, AOTI_ERROR_NULL, "the model or the state is null");
    const Loaded &on = *own(model)->loaded;
    if (int32_t code = lies_here(state, on, error)) return code;
    const auto initial = [&] {
      int code = 0;
      for (int32_t k = 0; k < T.info->n_states && !code; ++k)
        code = on.driver.copy(own(state)->memory + Address(T.states[k].offset), on.uploaded + Address(T.states[k].value),
                              size_t(T.states[k].bytes), nullptr);
      return code;
    };
    return filled(on, initial, error);
  }

  static int32_t create(const AotiModel *model, void *memory, AotiState **state, AotiError *error) {
    if (!model) return fail(error, AOTI_ERROR_NULL, "the model is null");
    if (int32_t code = make(own(model)->loaded, memory, state, error)) return code;
    const int32_t code = reset(model, *state, error);
    if (code) destroy(*state);
    return code;
  }

  static int32_t copy(const AotiState *from, void *memory, AotiState **state, AotiError *error) {
    if (!from) return fail(error, AOTI_ERROR_NULL, "the state is null");
    const GpuState &old = *static_cast<const GpuState *>(from);
    if (int32_t code = make(old.loaded, memory, state, error)) return code;
    const auto same = [&] {
      return old.loaded->driver.copy(own(*state)->memory, old.memory, size_t(T.info->state_bytes), nullptr);
    };
    const int32_t code = filled(*old.loaded, same, error);
    if (code) destroy(*state);
    return code;
  }

  static int32_t assign(AotiState *to, const AotiState *from, AotiError *error) {
    if (!to || !from) return fail(error, AOTI_ERROR_NULL, "the state is null");
    const Loaded &on = *own(to)->loaded;
    if (int32_t code = lies_here(from, on, error)) return code;
    const Address values = static_cast<const GpuState *>(from)->memory;
    return filled(on, [&] { return on.driver.copy(own(to)->memory, values, size_t(T.info->state_bytes), nullptr); }, error);
  }

  // Does something with every piece of a part: with its place in the state, and its place among the pieces.
  template <class Each> static int32_t for_pieces(const Loaded &on, const AotiStatePart &part, const Each &each, AotiError *error) {
    const auto all = [&] {
      int code = 0;
      for (int64_t i = 0; i < part.count && part.bytes > 0 && !code; ++i)
        code = each(Address(part.begin + i * part.stride), i * part.bytes, size_t(part.bytes));
      return code;
    };
    return filled(on, all, error);
  }

  static int32_t reset_part(const AotiModel *model, AotiState *state, const AotiStatePart *part, AotiError *error) {
    if (!model || !state) return fail(error, AOTI_ERROR_NULL, "the model or the state is null");
    const Loaded &on = *own(model)->loaded;
    if (int32_t code = lies_here(state, on, error)) return code;
    int32_t tensor;
    if (int32_t code = S::tensor_of(part, &tensor, error)) return code;
    const Address values = on.uploaded + Address(T.states[tensor].value) - Address(T.states[tensor].offset);
    const auto reset = [&](Address at, int64_t, size_t bytes) {
      return on.driver.copy(own(state)->memory + at, values + at, bytes, nullptr);
    };
    return for_pieces(on, *part, reset, error);
  }

  static int32_t read(const AotiState *state, const AotiStatePart *part, void *to, AotiError *error) {
    int32_t tensor;
    if (!state || !to) return fail(error, AOTI_ERROR_NULL, "the state or the memory for its values is null");
    if (int32_t code = S::tensor_of(part, &tensor, error)) return code;
    const GpuState &from = *static_cast<const GpuState *>(state);
    const auto read = [&](Address at, int64_t piece, size_t bytes) {
      return from.loaded->driver.copy_out((char *)to + piece, from.memory + at, bytes, nullptr);
    };
    return for_pieces(*from.loaded, *part, read, error);
  }

  static int32_t write(AotiState *state, const AotiStatePart *part, const void *from, AotiError *error) {
    if (!state || !from) return fail(error, AOTI_ERROR_NULL, "the state or its new values are null");
    int32_t tensor;
    if (int32_t code = S::tensor_of(part, &tensor, error)) return code;
    const GpuState &to = *own(state);
    const auto write = [&](Address at, int64_t piece, size_t bytes) {
      return to.loaded->driver.copy_in(to.memory + at, (const char *)from + piece, bytes, nullptr);
    };
    return for_pieces(*to.loaded, *part, write, error);
  }

  static void destroy(AotiState *state) {
    if (!state) return;
    if (own(state)->own) {
      Entered entered(*own(state)->loaded);
      own(state)->loaded->driver.release(own(state)->memory);
    }
    let_go(own(state)->loaded, false);
    free(own(state));
  }
};

} // namespace
} // namespace gpu
} // namespace aoti
