// A model's code and weights on one device: loaded once for all models of the process there, whoever asks first.
// Owns them, the driver's table and the context. Knows nothing of tensors and runs.
#pragma once

#include "../sizes.h"
#include "host.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

namespace aoti {
namespace gpu {

struct Kernel {
  const char *name;
  int32_t shared;  // bytes that a launch asks for at most
  int32_t threads; // of a block
  int32_t copiers; // threads of a block beside those, if its code was compiled for them (roles.h)
};

// What a library holds for the GPUs of one vendor.
struct Program {
  Vendor vendor;
  const char *images;
  const Kernel *kernels;
  int32_t n_kernels;
  // Products that a library may compute.
  const Product *products;
  int32_t n_products;
  // 0, or 1 + the number of the failure.
  int32_t (*run)(DeviceRun &run);
  // Whether a run never waits for what kernels wrote, and can so be replayed.
  bool launches_only;
  // Launches of a run that are given an address of the caller's.
  int32_t n_given;
  // The part of the weights that kernels read.
  int64_t weights_begin, weights_bytes;
};

namespace {

// Device code as the build embeds it: what it is for, as people read it, then where each image lies and how long it is.
// Images are in the order in which they are tried.
struct Images {
  char code_for[240];
  uint64_t count, reserved;
  struct {
    uint64_t offset, bytes;
  } image[1];
};

// What a model is loaded from. An address says which weights are meant only while somebody borrows them: freed, it may be that
// of others.
struct Source {
  const Program *program;
  int32_t index;
  Context given;       // or null
  const char *weights; // borrowed by models, not by states
  bool embedded;       // in the library, and so as long there as this code
  bool operator==(const Source &other) const {
    return program == other.program && index == other.index && given == other.given && weights == other.weights;
  }
};

// Weights in memory of a device: once for all programs of a library that read the same part of the same weights.
struct Upload {
  int32_t users;
  Address memory;
};

struct Loaded : Source {
  Loaded *next;
  int32_t models, users; // users are models and states
  // Whether another model from the same source is one of the same weights. The weights and the context of models that are gone
  // may be gone as well.
  bool serves(const Source &other) const { return *this == other && (models > 0 || (embedded && !given)); }
  // What that gave.
  Driver driver;
  int device, multiprocessors;
  Context context;
  Module module;
  Entry *entries;
  MathLibrary library;
  PreparedProduct *products; // or null, where the library is not used
  Upload *upload;   // or null, where there are no weights
  Address uploaded; // the weights, such that offsets into all of them can be added
  // Whether another program reads what this one reads of the weights.
  bool has_weights_of(const Loaded &other) const {
    const bool is_here = index == other.index && given == other.given && context == other.context;
    const bool is_same = weights == other.weights && program->weights_begin == other.program->weights_begin &&
                         program->weights_bytes == other.program->weights_bytes;
    return is_here && is_same && upload && (models > 0 || (embedded && !given));
  }
  char name[96], architecture[32], reason[160];
};

inline AotiDevice device_of(const Loaded &on) { return {backend(on.program->vendor).kind, on.index}; }

// The context of a device, current on this thread for the time of a scope.
struct Entered {
  const Driver &driver;
  explicit Entered(const Loaded &on) : driver(on.driver) { driver.context_push(on.context); }
  ~Entered() {
    Context before;
    driver.context_pop(&before);
  }
  Entered(const Entered &) = delete;
};

// Where a model runs, and how numbers in its inputs are read from there: once everything before them on the stream is done.
struct OnDevice {
  const Loaded &on;
  Stream stream;
  AotiDevice device;
  explicit OnDevice(const Loaded &on, const AotiContext *context = nullptr)
      : on(on), stream(context ? (Stream)context->stream : nullptr), device(device_of(on)) {}
  bool read(const AotiTensor &tensor, int64_t *value) const {
    if (tensor.device.kind == AOTI_CPU) return OnProcessor{}.read(tensor, value);
    Entered entered(on);
    return !on.driver.copy_out(value, Address(uintptr_t(tensor.data)), sizeof *value, stream) &&
           !on.driver.stream_wait(stream);
  }
};

__attribute__((unused)) int32_t driver_failed(AotiError *error, const Loaded &on, int code, const char *doing) {
  const char *text = nullptr;
  if (!on.driver.error_text || on.driver.error_text(code, &text) || !text) text = "no text";
  return fail(error, code == kOutOfMemory ? AOTI_ERROR_MEMORY : AOTI_ERROR_DEVICE,
              "%s on %s: the %s driver reports error %d (%s)", doing, device_name(device_of(on)).text, on.driver.name, code,
              text);
}

// Finds the device that was asked for, its context and what it is called.
__attribute__((unused)) int32_t find_device(Loaded &on, AotiError *error) {
  char message[AOTI_MESSAGE_BYTES];
  if (!find_driver(on.program->vendor, &on.driver, message, sizeof message))
    return fail(error, AOTI_ERROR_DEVICE, "%s", message);
  int count = 0;
  if (on.driver.device_count(&count)) count = 0;
  if (on.index < 0 || on.index >= count)
    return fail(error, AOTI_ERROR_DEVICE, "%s was asked for, the %s driver of this machine has %d device%s",
                device_name(device_of(on)).text, on.driver.name, count, count == 1 ? "" : "s");
  if (int code = on.driver.device_get(&on.device, on.index)) return driver_failed(error, on, code, "no device");
  on.driver.device_name(on.name, int(sizeof on.name), on.device);
  const Backend &own = backend(on.program->vendor);
  const Numbers &number = own.numbers;
  int major = 0, minor = 0;
  on.driver.device_attribute(&major, number.compute_major, on.device);
  on.driver.device_attribute(&minor, number.compute_minor, on.device);
  on.driver.device_attribute(&on.multiprocessors, number.multiprocessors, on.device);
  allow_early_launches(on.program->vendor, &on.driver, major);
  if (own.architecture)
    snprintf(on.architecture, sizeof on.architecture, own.architecture, major, minor);
  else
    snprintf(on.architecture, sizeof on.architecture, "%.31s", on.name);
  on.context = on.given;
  if (!on.given)
    if (int code = on.driver.context_retain(&on.context, on.device)) return driver_failed(error, on, code, "no context");
  return AOTI_OK;
}

// Loads the first image that the device takes.
__attribute__((unused)) int32_t load_code(Loaded &on, AotiError *error) {
  const Program &program = *on.program;
  const Images &images = *(const Images *)program.images;
  int code = 1;
  for (uint64_t i = 0; i < images.count && code; ++i)
    code = on.driver.module_load(&on.module, program.images + images.image[i].offset);
  if (code)
    return fail(error, AOTI_ERROR_DEVICE, "the library has code for %s; %s, %s (%s), runs none of it (error %d)",
                images.code_for, device_name(device_of(on)).text, on.name, on.architecture, code);
  snprintf(on.reason, sizeof on.reason, "what %.60s runs of the code for %.60s", on.name, images.code_for);
  on.entries = (Entry *)calloc(size_t(program.n_kernels) + 1, sizeof(Entry));
  if (!on.entries) return fail(error, AOTI_ERROR_MEMORY, "out of memory");
  for (int32_t k = 0; k < program.n_kernels; ++k) {
    const Kernel &kernel = program.kernels[k];
    Entry &entry = on.entries[k];
    if (int failed = on.driver.module_function(&entry.function, on.module, kernel.name))
      return driver_failed(error, on, failed, "a kernel is missing");
    // What a kernel declares itself comes on top of it, so that less than the driver's 48 KiB has to be asked for too.
    const Backend &own = backend(program.vendor);
    if (kernel.shared > 0 && own.asks_for_shared)
      if (int failed = on.driver.function_attribute(entry.function, own.numbers.function_shared, kernel.shared))
        return driver_failed(error, on, failed, "no shared memory for a kernel");
    // The code of some architectures has a role for more threads than that of others, and is bound to as many as it has.
    int most = 0;
    if (kernel.copiers > 0 && !on.driver.function_number(&most, kFunctionThreads, entry.function) &&
        most >= kernel.threads + kernel.copiers)
      entry.copiers = unsigned(kernel.copiers);
  }
  return AOTI_OK;
}

// Uploads the weights, unless another program that is loaded has them there.
__attribute__((unused)) int32_t load_weights(Loaded &on, const Loaded *others, AotiError *error) {
  const Program &program = *on.program;
  if (program.weights_bytes == 0) return AOTI_OK;
  while (others && !others->has_weights_of(on)) others = others->next;
  if (others) {
    on.upload = others->upload, on.uploaded = others->uploaded;
    ++on.upload->users;
    return AOTI_OK;
  }
  on.upload = (Upload *)calloc(1, sizeof(Upload));
  if (!on.upload) return fail(error, AOTI_ERROR_MEMORY, "out of memory");
  on.upload->users = 1;
  if (int code = on.driver.allocate(&on.upload->memory, size_t(program.weights_bytes))) {
    on.upload->memory = 0;
    return driver_failed(error, on, code, "no memory for the weights");
  }
  on.uploaded = on.upload->memory - Address(program.weights_begin);
  int code = on.driver.copy_in(on.upload->memory, on.weights + program.weights_begin, size_t(program.weights_bytes), nullptr);
  if (!code) code = on.driver.stream_wait(nullptr);
  return code ? driver_failed(error, on, code, "copying the weights") : AOTI_OK;
}

// Opens the library, if any of the products may be its own, and describes those to it.
__attribute__((unused)) void prepare_products(Loaded &on) {
  const Program &program = *on.program;
  if (program.n_products == 0 || !open_library(program.vendor, &on.library)) return;
  on.products = (PreparedProduct *)calloc(size_t(program.n_products), sizeof(PreparedProduct));
  for (int32_t i = 0; on.products && i < program.n_products; ++i)
    prepare(on.library, program.products[i], on.uploaded, &on.products[i]);
}

__attribute__((unused)) void unload(Loaded *on) {
  if (on->context) {
    {
      Entered entered(*on);
      for (int32_t i = 0; on->products && i < on->program->n_products; ++i) forget(on->library, &on->products[i]);
      if (on->library.handle) on->library.destroy(on->library.handle);
      if (on->upload && --on->upload->users == 0) {
        if (on->upload->memory) on->driver.release(on->upload->memory);
        free(on->upload);
      }
      if (on->module) on->driver.module_unload(on->module);
    }
    if (!on->given) on->driver.context_release(on->device);
  }
  // The driver's library stays open: there is one for the process.
  free(on->products);
  free(on->entries);
  free(on);
}

// What is loaded at present, and who may look.
pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
Loaded *loaded = nullptr;

// What a model is loaded from, for one model more.
__attribute__((unused)) int32_t acquire(const Source &source, Loaded **result, AotiError *error) {
  pthread_mutex_lock(&loading);
  Loaded *on = loaded;
  while (on && !on->serves(source)) on = on->next;
  int32_t code = AOTI_OK;
  if (!on) {
    on = (Loaded *)calloc(1, sizeof(Loaded));
    if (!on) {
      pthread_mutex_unlock(&loading);
      return fail(error, AOTI_ERROR_MEMORY, "out of memory");
    }
    *static_cast<Source *>(on) = source;
    code = find_device(*on, error);
    if (!code) {
      Entered entered(*on);
      code = load_code(*on, error);
      if (!code) code = load_weights(*on, loaded, error);
      if (!code) prepare_products(*on);
    }
    if (code)
      unload(on), on = nullptr;
    else
      on->next = loaded, loaded = on;
  }
  if (on) ++on->models, ++on->users;
  pthread_mutex_unlock(&loading);
  *result = on;
  return code;
}

// For one state more: it may live longer than the model that it was made for.
__attribute__((unused)) void retain(Loaded *on) {
  pthread_mutex_lock(&loading);
  ++on->users;
  pthread_mutex_unlock(&loading);
}

// For one user less, which may be a model.
__attribute__((unused)) void let_go(Loaded *on, bool is_model) {
  pthread_mutex_lock(&loading);
  if (is_model) --on->models;
  if (--on->users == 0) {
    Loaded **link = &loaded;
    while (*link != on) link = &(*link)->next;
    *link = on->next;
    unload(on);
  }
  pthread_mutex_unlock(&loading);
}

} // namespace
} // namespace gpu
} // namespace aoti
