// A driver for tests, of CUDA or, with EMULATED_HIP, of HIP: the same calls under other names and with other numbers, over two
// devices that run emulated kernels (machine.h). A module is a shared library in memory; a graph is a list of what was captured.
// OLD_DRIVER leaves out what drivers have only of late.
#include "machine.h"
#include "vendor.h"
#include <dlfcn.h>
#include <memory>
#include <string>

#ifdef EMULATED_HIP
// hipDeviceAttribute_t
constexpr int kMajor = 23, kMinor = 61, kMultiprocessors = 63;
constexpr int kMostShared = 65536;
#else
// CUdevice_attribute
constexpr int kMajor = 75, kMinor = 76, kMultiprocessors = 16;
constexpr int kMostShared = 232448;
#endif
using namespace machine;
constexpr bool kHip = kMajor == 23;
// HIP's devices differ, and find their code in bundles.
static const char *const kArchitectures[kDevices] = {"gfx90a", "gfx1100"};
// What a launch may have without having asked for it.
constexpr int kShared = kHip ? kMostShared : 49152;

typedef void (*Kernel)(int, int, int, void **);
struct Module : Owned {
  void *library;
};
struct Function : Owned {
  Kernel kernel;
  const int *sizes;
  Module *module;
  int most_shared = kShared;
};
// Arguments are kept by value. Maps of tensors are at multiples of 64 bytes.
struct Launch {
  Function *function = nullptr;
  unsigned blocks = 0, threads = 0, shared = 0;
  std::vector<std::vector<unsigned char>> arguments;
};
struct Node {
  Launch launch;             // or
  std::function<void()> run; // something else
};
struct machine::Capture {
  std::vector<Node *> nodes;
};
struct Graph : Owned {
  std::vector<Node *> nodes;
};
struct Exec : Owned {
  std::vector<Node> nodes;
  std::map<const Node *, size_t> position;
};

// Launches one by one, captures, graphs that were made of them, and kernels of graphs that were given other arguments.
extern "C" {
int emulated_counts[4];
// Bytes that are allocated on a device, and contexts that are current on this thread.
size_t emulated_bytes(int device) {
  Call call;
  size_t bytes = 0;
  for (const auto &[at, piece] : pieces)
    if (piece.context->device == device && !piece.on_host && !piece.freed) bytes += piece.bytes;
  return bytes;
}
int emulated_depth() { return (int)current.size(); }
}

// The code for an architecture in a bundle of clang's, or null; an image that is none is for all.
static const char *member(const void *image, const char *architecture) {
  const char *bundle = (const char *)image;
  if (memcmp(bundle, "__CLANG_OFFLOAD_BUNDLE__", 24)) return bundle;
  uint64_t count;
  memcpy(&count, bundle + 24, 8);
  for (const char *entry = bundle + 32; count-- > 0;) {
    uint64_t numbers[3]; // offset, size, and the length of the name
    memcpy(numbers, entry, sizeof numbers);
    const std::string name(entry + sizeof numbers, numbers[2]);
    if (name == std::string("hipv4-amdgcn-amd-amdhsa--") + architecture) return bundle + numbers[0];
    entry += sizeof numbers + numbers[2];
  }
  return nullptr;
}

static void perform(const Launch &launch, const Context &context) {
  if (!context.objects.count(launch.function->module)) die("a kernel of a module that was unloaded");
  alignas(64) unsigned char values[96][128];
  void *arguments[96];
  for (size_t k = 0; k < launch.arguments.size(); ++k) {
    memcpy(values[k], launch.arguments[k].data(), launch.arguments[k].size());
    arguments[k] = values[k];
  }
  Opened opened(context);
  launch.function->kernel((int)launch.blocks, (int)launch.threads, (int)launch.shared, arguments);
  // A block takes a microsecond.
  clock_ms += launch.blocks / 1000.0;
}
static Launch launch_of(Function *function, unsigned blocks, unsigned threads, unsigned shared, void **arguments) {
  own(function, "a function");
  if (blocks == 0 || threads == 0 || threads > 1024) die("a launch of %u blocks of %u threads", blocks, threads);
  if ((int)shared > function->most_shared) die("a launch of %u shared bytes where %d may be", shared, function->most_shared);
  Launch launch{function, blocks, threads, shared, {}};
  for (int k = 0; function->sizes[k]; ++k) {
    if (k == 96 || function->sizes[k] > 128) die("too many arguments");
    const unsigned char *from = (const unsigned char *)arguments[k];
    launch.arguments.emplace_back(from, from + function->sizes[k]);
  }
  return launch;
}
// Puts something into a stream, or into what is captured of it.
static int add(Stream &stream, std::function<void()> run) {
  if (stream.capture)
    stream.capture->nodes.push_back(new Node{{}, std::move(run)});
  else
    put(stream, std::move(run));
  return 0;
}
static int copy(uint64_t to, uint64_t from, size_t bytes, Stream *given, bool to_device, bool from_device, const char *what) {
  if (bytes == 0) return 0;
  Stream &stream = stream_of(given);
  const Context &context = *stream.context;
  const auto check = [=, &context] {
    to_device ? check_range(context, to, bytes, what) : check_host((void *)to, what);
    from_device ? check_range(context, from, bytes, what) : check_host((void *)from, what);
  };
  check();
  return add(stream, [=, &context] {
    check();
    Opened opened(context);
    memmove((void *)to, (void *)from, bytes);
  });
}

extern "C" {
// For libraries beside the driver: work of theirs on a stream.
void emulated_put(void *given, void (*function)(void *), void *with) {
  Call call;
  Stream &stream = stream_of((Stream *)given);
  const Context &context = *stream.context;
  add(stream, [=, &context] {
    Opened opened(context);
    function(with);
  });
}

int NAME(cuInit, hipInit)(unsigned) {
  struct sigaction action {};
  action.sa_sigaction = on_fault, action.sa_flags = SA_SIGINFO;
  return sigaction(SIGSEGV, &action, nullptr);
}
int NAME(cuGetErrorString, hipDrvGetErrorString)(int code, const char **text) {
  *text = code == 2 ? "out of memory" : "emulated";
  return 0;
}
int NAME(cuDriverGetVersion, hipDriverGetVersion)(int *version) { return *version = kHip ? 60443483 : 13000, 0; }
int NAME(cuDeviceGetCount, hipGetDeviceCount)(int *count) { return *count = kDevices, 0; }
int NAME(cuDeviceGet, hipDeviceGet)(int *device, int ordinal) {
  *device = ordinal;
  return ordinal < 0 || ordinal >= kDevices ? 101 : 0;
}
int NAME(cuDeviceGetName, hipDeviceGetName)(char *name, int bytes, int) { return snprintf(name, size_t(bytes), "emulated"), 0; }
int NAME(cuDeviceGetAttribute, hipDeviceGetAttribute)(int *value, int attribute, int) {
  if (attribute != kMajor && attribute != kMinor && attribute != kMultiprocessors) die("no attribute %d is known", attribute);
  *value = attribute == kMajor ? 9 : attribute == kMinor ? 0 : 4;
  return 0;
}

// --- contexts ---

int NAME(cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain)(Context **context, int device) {
  Call call;
  Context &primary = primaries[device];
  primary.device = device, primary.primary = true, ++primary.retained;
  contexts.insert(&primary);
  *context = &primary;
  return 0;
}
// What is left in a context that goes is a leak.
static void end(Context &context) {
  if (context.pieces) die("%d pieces of memory are still allocated on device %d", context.pieces, context.device);
  for (const auto &[object, what] : context.objects)
    if (strcmp(what, "a function")) die("%s is left on device %d", what, context.device);
  if (!context.standard.queue.empty()) die("work is pending on device %d", context.device);
  context.objects.clear();
  contexts.erase(&context);
}
int NAME(cuDevicePrimaryCtxRelease_v2, hipDevicePrimaryCtxRelease)(int device) {
  Call call;
  if (primaries[device].retained == 0) die("a context is released once too often");
  if (--primaries[device].retained == 0) end(primaries[device]);
  return 0;
}
int NAME(cuCtxCreate_v2, hipCtxCreate)(Context **context, unsigned, int device) {
  Call call;
  *context = new Context{device};
  contexts.insert(*context), current.push_back(*context);
  return 0;
}
int NAME(cuCtxDestroy_v2, hipCtxDestroy)(Context *context) {
  Call call;
  if (!contexts.count(context) || context->primary) die("a context that cannot be destroyed");
  end(*context);
  return 0;
}
int NAME(cuCtxPushCurrent_v2, hipCtxPushCurrent)(Context *context) {
  Call call;
  if (!contexts.count(context)) die("a context that does not exist becomes current");
  current.push_back(context);
  return 0;
}
int NAME(cuCtxPopCurrent_v2, hipCtxPopCurrent)(Context **context) {
  if (current.empty()) die("no context is current that could be popped");
  *context = current.back(), current.pop_back();
  return 0;
}

// --- code ---

int NAME(cuModuleLoadData, hipModuleLoadData)(Module **module, const void *image) {
  Call call;
  Context &context = here();
  const char *code = member(image, kArchitectures[context.device]);
  if (!code || memcmp(code, "\177ELF", 4)) return 200;
  // An image's size is behind the section headers.
  uint64_t headers;
  uint16_t size, count;
  memcpy(&headers, code + 40, 8), memcpy(&size, code + 58, 2), memcpy(&count, code + 60, 2);
  std::vector<char> bytes(code, code + headers + size_t(size) * count);
  // Whatever machine it says that it is for, it is for this one.
  const uint16_t x86_64 = 62;
  memcpy(&bytes[18], &x86_64, 2), memset(&bytes[48], 0, 4);
  const int file = memfd_create("image", 0);
  if (write(file, bytes.data(), bytes.size()) != (ssize_t)bytes.size()) return 1;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 200;
  *module = new Module{{&context}, library};
  context.objects[*module] = "a module";
  return 0;
}
int NAME(cuModuleUnload, hipModuleUnload)(Module *module) {
  Call call;
  own(module, "a module");
  here().objects.erase(module);
  return 0;
}
int NAME(cuModuleGetFunction, hipModuleGetFunction)(Function **function, Module *module, const char *name) {
  Call call;
  own(module, "a module");
  char full[512];
  snprintf(full, sizeof full, "aoti_emulated_%s", name);
  const Kernel kernel = (Kernel)dlsym(module->library, full);
  snprintf(full, sizeof full, "aoti_emulated_sizes_%s", name);
  const int *(*sizes)() = (const int *(*)())dlsym(module->library, full);
  if (!kernel || !sizes) return 500;
  *function = new Function{{&here()}, kernel, sizes(), module};
  here().objects[*function] = "a function";
  return 0;
}
// HIP's takes functions that are linked, and none of modules.
int NAME(cuFuncSetAttribute, hipFuncSetAttribute)(Function *function, int attribute, int value) {
  Call call;
  if (kHip) return 98;
  own(function, "a function");
  if (attribute != 8) die("no attribute %d of functions is known", attribute);
  if (value > kMostShared) return 1;
  function->most_shared = value;
  return 0;
}
int NAME(cuFuncGetAttribute, hipFuncGetAttribute)(int *value, int attribute, Function *function) {
  Call call;
  own(function, "a function");
  if (attribute != 0) die("no attribute %d of functions is known", attribute);
  *value = 0;
  return 0;
}

// --- memory ---

int NAME(cuMemAlloc_v2, hipMalloc)(uint64_t *address, size_t bytes) {
  Call call;
  *address = allocate(here(), bytes, false);
  return *address ? 0 : 2;
}
int NAME(cuMemFree_v2, hipFree)(uint64_t address) {
  Call call;
  return free_memory(address, false), 0;
}
int NAME(cuMemHostAlloc, hipHostMalloc)(void **memory, size_t bytes, unsigned) {
  Call call;
  *memory = (void *)allocate(here(), bytes, true);
  return *memory ? 0 : 2;
}
int NAME(cuMemFreeHost, hipHostFree)(void *memory) {
  Call call;
  return free_memory(uint64_t(memory), true), 0;
}
int NAME(cuMemGetInfo_v2, hipMemGetInfo)(size_t *left, size_t *all) {
  *all = size_t(1) << 40, *left = *all - emulated_bytes(here().device);
  return 0;
}
int NAME(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(uint64_t to, const void *from, size_t bytes, Stream *stream) {
  Call call;
  return copy(to, uint64_t(from), bytes, stream, true, false, "a copy to the device");
}
extern int emulated_stuck;
int NAME(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void *to, uint64_t from, size_t bytes, Stream *stream) {
  Call call;
  // To memory that is not pinned it may wait for all that is before it.
  if (emulated_stuck) die("a copy to the host waits forever");
  return copy(uint64_t(to), from, bytes, stream, false, true, "a copy from the device");
}
int NAME(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(uint64_t to, uint64_t from, size_t bytes, Stream *stream) {
  Call call;
  return copy(to, from, bytes, stream, true, true, "a copy on the device");
}
int NAME(cuMemsetD8Async, hipMemsetD8Async)(uint64_t to, unsigned char byte, size_t bytes, Stream *given) {
  Call call;
  Stream &stream = stream_of(given);
  check_range(*stream.context, to, bytes, "a fill");
  return add(stream, [=, &stream] {
    check_range(*stream.context, to, bytes, "a fill");
    Opened opened(*stream.context);
    memset((void *)to, byte, bytes);
  });
}

// --- streams and events ---

int NAME(cuLaunchKernel, hipModuleLaunchKernel)(Function *function, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned ty,
                                                unsigned tz, unsigned shared, Stream *given, void **arguments, void **) {
  Call call;
  Stream &stream = stream_of(given);
  if (y != 1 || z != 1 || ty != 1 || tz != 1) die("a launch of more than one axis");
  Launch launch = launch_of(function, blocks, threads, shared, arguments);
  if (stream.capture) return stream.capture->nodes.push_back(new Node{std::move(launch), nullptr}), 0;
  ++emulated_counts[0];
  put(stream, [=, &stream] { perform(launch, *stream.context); });
  return 0;
}
int NAME(cuStreamCreate, hipStreamCreateWithFlags)(Stream **stream, unsigned flags) {
  Call call;
  *stream = new Stream{{&here()}, flags == 0};
  here().objects[*stream] = "a stream";
  return 0;
}
int NAME(cuStreamDestroy_v2, hipStreamDestroy)(Stream *stream) {
  Call call;
  if (!own(stream, "a stream").queue.empty()) die("a stream goes while work is pending there");
  here().objects.erase(stream);
  return 0;
}
int NAME(cuStreamSynchronize, hipStreamSynchronize)(Stream *given) {
  Call call;
  Stream &stream = stream_of(given);
  if (stream.capture) die("a stream is waited for while it is captured");
  complete(stream, numbered);
  // Who waits for the default stream waits for those that are ordered with it.
  if (!given)
    for (const auto &[object, what] : std::map(here().objects))
      if (!strcmp(what, "a stream") && ((Stream *)object)->blocking) complete(*(Stream *)object, numbered);
  return 0;
}
int NAME(cuEventCreate, hipEventCreateWithFlags)(Event **event, unsigned) {
  Call call;
  *event = new Event{{&here()}};
  here().objects[*event] = "an event";
  return 0;
}
int NAME(cuEventDestroy_v2, hipEventDestroy)(Event *event) {
  Call call;
  own(event, "an event");
  here().objects.erase(event);
  return 0;
}
int NAME(cuEventRecord, hipEventRecord)(Event *event, Stream *given) {
  Call call;
  Stream &stream = stream_of(given);
  own(event, "an event");
  if (stream.capture) die("an event is recorded while its stream is captured");
  event->stream = &stream, event->done = false;
  event->number = put(stream, [=] { event->done = true, event->time = clock_ms; });
  return 0;
}
#include "events.h"
int NAME(cuEventElapsedTime, hipEventElapsedTime)(float *ms, Event *from, Event *to) {
  Call call;
  own(from, "an event"), own(to, "an event");
  if (!from->done || !to->done) return 600;
  *ms = float(to->time - from->time);
  return 0;
}
int NAME(cuLaunchHostFunc, hipLaunchHostFunc)(Stream *given, void (*function)(void *), void *with) {
  Call call;
  Stream &stream = stream_of(given);
  if (stream.capture) die("the host is called while its stream is captured");
  put(stream, [=] {
    timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    function(with);
    clock_gettime(CLOCK_MONOTONIC, &to);
    if ((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000 >= 90) die("who waits for the stream holds it");
  });
  return 0;
}

#include "graphs.h"

#ifndef EMULATED_HIP
#include "tensor_maps.h"
#endif
}
