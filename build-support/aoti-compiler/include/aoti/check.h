// Checks arguments of the C interface against a model's tables and says what is wrong with them.
// Owns no state and knows no model.
#pragma once

#include "abi.h"
#include <stdarg.h>
#include <stdio.h>

namespace aoti {
namespace {

__attribute__((format(printf, 3, 4), unused)) int32_t fail(AotiError *error, int32_t code, const char *format, ...) {
  if (error) {
    va_list arguments;
    va_start(arguments, format);
    error->code = code;
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
  }
  return code;
}

__attribute__((unused)) int32_t succeed(AotiError *error) {
  if (error) error->code = AOTI_OK, error->message[0] = 0;
  return AOTI_OK;
}

inline const char *dtype_name(int32_t dtype) {
  static const char names[][11] = {"bool",     "u8",     "i8",         "i16",        "i32",       "i64", "f16",
                                   "bf16",     "f32",    "f64",        "u16",        "u32",       "u64", "f8e4m3fn",
                                   "f8e5m2",   "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0fnu", "c32",    "c64", "c128"};
  return dtype >= 0 && dtype < int(sizeof names / sizeof *names) ? names[dtype] : "an unknown type";
}

inline int64_t dtype_bytes(int32_t dtype) {
  static const int8_t bytes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 2, 4, 8, 1, 1, 1, 1, 1, 4, 8, 16};
  return bytes[dtype];
}

// Complex numbers are as aligned as their parts.
inline int64_t dtype_alignment(int32_t dtype) { return dtype < AOTI_C32 ? dtype_bytes(dtype) : dtype_bytes(dtype) / 2; }

// No tensor in memory has a larger dimension; arithmetic with sizes of inputs counts on it.
constexpr int64_t largest_size = int64_t(1) << 48;

// What of a tensor must be there.
enum class Need { type, sizes, data };

// What devices of a kind are called, or null.
__attribute__((unused)) const char *kind_name(int32_t kind) {
  static const char *const names[] = {AOTI_DEVICE_NAMES};
  return kind >= 0 && kind < int32_t(sizeof names / sizeof *names) ? names[kind] : nullptr;
}

// A device as people write it: `cpu`, `cuda:0`.
struct DeviceName {
  char text[24];
};
__attribute__((unused)) DeviceName device_name(AotiDevice device) {
  const char *const kind = kind_name(device.kind);
  DeviceName name;
  if (device.kind == AOTI_CPU)
    snprintf(name.text, sizeof name.text, "%s", kind);
  else if (kind)
    snprintf(name.text, sizeof name.text, "%s:%d", kind, int(device.index));
  else
    snprintf(name.text, sizeof name.text, "device kind %d", int(device.kind));
  return name;
}

// Device, element type, rank, sizes and bounds, strides, address. Memory of the processor is good for every device.
__attribute__((unused)) int32_t check_tensor(const char *kind, const AotiTensor &tensor, const AotiValueInfo &info,
                                             Need need, AotiDevice runs_on, AotiError *error) {
  if (tensor.device.kind != AOTI_CPU && (tensor.device.kind != runs_on.kind || tensor.device.index != runs_on.index))
    return fail(error, AOTI_ERROR_DEVICE, "%s `%s` lies on %s, the model runs on %s", kind, info.name,
                device_name(tensor.device).text, device_name(runs_on).text);
  if (tensor.dtype != info.dtype)
    return fail(error, AOTI_ERROR_DTYPE, "%s `%s` is %s, must be %s", kind, info.name, dtype_name(tensor.dtype),
                dtype_name(info.dtype));
  if (tensor.rank != info.rank)
    return fail(error, AOTI_ERROR_RANK, "%s `%s` has %d dimensions, must have %d", kind, info.name, int(tensor.rank),
                int(info.rank));
  if (need == Need::type) return AOTI_OK;
  if (info.rank > 0 && !tensor.sizes)
    return fail(error, AOTI_ERROR_NULL, "%s `%s` has no sizes", kind, info.name);
  int64_t count = 1;
  for (int32_t d = 0; d < info.rank; ++d) {
    const AotiDimInfo &dim = info.dims[d];
    int64_t size = tensor.sizes[d];
    if (size > largest_size)
      return fail(error, AOTI_ERROR_SIZE, "%s `%s`: dimension %d is %lld, more than memory can hold", kind, info.name,
                  int(d), (long long)size);
    if (!dim.expression && size != dim.min)
      return fail(error, AOTI_ERROR_SIZE, "%s `%s`: dimension %d is %lld, must be %lld", kind, info.name, int(d),
                  (long long)size, (long long)dim.min);
    if (dim.expression && (size < dim.min || size > dim.max)) {
      if (dim.max == INT64_MAX)
        return fail(error, AOTI_ERROR_RANGE, "%s `%s`: dimension %d (%s) is %lld, must be at least %lld", kind,
                    info.name, int(d), dim.expression, (long long)size, (long long)dim.min);
      return fail(error, AOTI_ERROR_RANGE, "%s `%s`: dimension %d (%s) is %lld, must be in %lld..=%lld", kind,
                  info.name, int(d), dim.expression, (long long)size, (long long)dim.min, (long long)dim.max);
    }
    if (__builtin_mul_overflow(count, size, &count) || count > INT64_MAX / 16)
      return fail(error, AOTI_ERROR_SIZE, "%s `%s` has more elements than memory can hold", kind, info.name);
  }
  if (tensor.strides) {
    int64_t stride = 1;
    for (int32_t d = info.rank; d-- > 0;) {
      if (tensor.sizes[d] != 1 && count != 0 && tensor.strides[d] != stride)
        return fail(error, AOTI_ERROR_STRIDE, "%s `%s` is not contiguous: dimension %d has stride %lld, must be %lld",
                    kind, info.name, int(d), (long long)tensor.strides[d], (long long)stride);
      stride *= tensor.sizes[d];
    }
  }
  if (need == Need::sizes) return AOTI_OK;
  if (!tensor.data && count != 0) return fail(error, AOTI_ERROR_NULL, "%s `%s` has no data", kind, info.name);
  if (uintptr_t(tensor.data) % uintptr_t(dtype_alignment(info.dtype)) != 0)
    return fail(error, AOTI_ERROR_ALIGNMENT, "%s `%s`: the address is not aligned for %s", kind, info.name,
                dtype_name(info.dtype));
  return AOTI_OK;
}

__attribute__((unused)) int32_t check_count(const char *kind, const AotiTensor *tensors, int32_t given, int32_t expected,
                                            AotiError *error) {
  if (given != expected)
    return fail(error, AOTI_ERROR_COUNT, "%d %ss are given, the model has %d", int(given), kind, int(expected));
  if (expected > 0 && !tensors) return fail(error, AOTI_ERROR_NULL, "the %ss are null", kind);
  return AOTI_OK;
}

__attribute__((unused)) int32_t check_tensors(const char *kind, const AotiTensor *tensors, int32_t given,
                                              const AotiValueInfo *infos, int32_t expected, Need need,
                                              AotiDevice runs_on, AotiError *error) {
  if (int32_t code = check_count(kind, tensors, given, expected, error)) return code;
  for (int32_t i = 0; i < expected; ++i)
    if (int32_t code = check_tensor(kind, tensors[i], infos[i], need, runs_on, error)) return code;
  return AOTI_OK;
}

// A size that is an expression of others.
__attribute__((unused)) int32_t check_equal(const char *kind, const AotiTensor *tensors, const AotiValueInfo *infos,
                                            int32_t tensor, int32_t d, int64_t expected, AotiError *error) {
  if (tensors[tensor].sizes[d] == expected) return AOTI_OK;
  return fail(error, AOTI_ERROR_GUARD, "%s `%s`: dimension %d is %lld, must be %s = %lld", kind, infos[tensor].name,
              int(d), (long long)tensors[tensor].sizes[d], infos[tensor].dims[d].expression, (long long)expected);
}

} // namespace
} // namespace aoti
