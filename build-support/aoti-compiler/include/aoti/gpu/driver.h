// The driver of a GPU, found when it is first wanted: one table of functions for CUDA and HIP, whose drivers have the same
// ones under different names. Nothing of a GPU is linked, and a machine without one is an error that says what was
// looked for.
//
// Owns no memory and no policy. C++17 without the standard library; needs dlopen.
#pragma once

#include "../abi.h"
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

namespace aoti {
namespace gpu {

using Address = uint64_t; // of device memory
typedef struct OpaqueStream *Stream;
typedef struct OpaqueEvent *Event;
typedef struct OpaqueModule *Module;
typedef struct OpaqueFunction *Function;
typedef struct OpaqueContext *Context;
typedef struct OpaqueGraph *Graph;
typedef struct OpaqueGraphExec *GraphExec;
typedef struct OpaqueNode *Node;

// Whose devices: each has a row of kBackends, and names its functions in kSymbols.
enum Vendor { kNvidia, kAmd, kVendors };

// CUlaunchConfig with one CUlaunchAttribute.
struct LaunchAttribute {
  int id, reserved;
  int value[16];
};
struct LaunchConfig {
  unsigned blocks[3], threads[3], shared_bytes;
  Stream stream;
  const LaunchAttribute *attributes;
  unsigned n_attributes;
};
// CUDA_KERNEL_NODE_PARAMS and hipKernelNodeParams: what a kernel of a graph is launched with.
struct CudaKernelNode {
  Function function;
  unsigned blocks[3], threads[3], shared_bytes;
  void **arguments, **extra;
  void *kernel, *context;
};
struct HipKernelNode {
  unsigned threads[3];
  void **extra;
  Function function;
  unsigned blocks[3];
  void **arguments;
  unsigned shared_bytes;
};
// Programmatic stream serialization: the kernel itself waits for what the one before wrote.
constexpr LaunchAttribute kEarly = {6, 0, {1}};

// Codes are the driver's own; 0 is success.
struct Driver {
  void *library;
  const char *name; // "CUDA" or "HIP"
  Vendor vendor;
  int (*init)(unsigned flags);
  int (*driver_version)(int *version);
  int (*device_count)(int *count);
  int (*device_get)(int *device, int ordinal);
  int (*device_name)(char *name, int bytes, int device);
  int (*device_attribute)(int *value, int attribute, int device);
  int (*context_retain)(Context *context, int device);
  int (*context_release)(int device);
  int (*context_push)(Context context);
  int (*context_pop)(Context *context);
  int (*module_load)(Module *module, const void *image);
  int (*module_unload)(Module module);
  int (*module_function)(Function *function, Module module, const char *name);
  int (*function_attribute)(Function function, int attribute, int value);
  int (*function_number)(int *value, int attribute, Function function);
  int (*allocate)(Address *address, size_t bytes);
  int (*release)(Address address);
  int (*allocate_host)(void **memory, size_t bytes, unsigned flags);
  int (*release_host)(void *memory);
  int (*copy_in)(Address to, const void *from, size_t bytes, Stream stream);
  int (*copy_out)(void *to, Address from, size_t bytes, Stream stream);
  int (*copy)(Address to, Address from, size_t bytes, Stream stream);
  int (*fill)(Address to, unsigned char byte, size_t bytes, Stream stream);
  int (*launch)(Function function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x,
                unsigned threads_y, unsigned threads_z, unsigned shared_bytes, Stream stream, void **arguments,
                void **extra);
  // The same for a kernel that may come to the multiprocessors before the one before it is through; null where that is not known.
  int (*launch_early)(const LaunchConfig *config, Function function, void **arguments, void **extra);
  int (*stream_create)(Stream *stream, unsigned flags);
  int (*stream_destroy)(Stream stream);
  int (*stream_wait)(Stream stream);
  int (*event_create)(Event *event, unsigned flags);
  int (*event_destroy)(Event event);
  int (*event_record)(Event event, Stream stream);
  int (*event_wait)(Event event);
  int (*event_elapsed)(float *milliseconds, Event from, Event to);
  int (*capture_begin)(Stream stream, int mode);
  int (*capture_end)(Stream stream, Graph *graph);
  int (*graph_instantiate)(GraphExec *exec, Graph graph, unsigned long long flags);
  int (*graph_launch)(GraphExec exec, Stream stream);
  int (*graph_destroy)(Graph graph);
  int (*graph_exec_destroy)(GraphExec exec);
  // The functions from here on may be null: old drivers lack them.
  int (*error_text)(int code, const char **text);
  int (*call_host)(Stream stream, void (*function)(void *), void *argument);
  int (*event_query)(Event event);
  int (*graph_set_kernel)(GraphExec exec, Node node, const void *parameters);
  // Makes a map of a tensor for the copy engine of multiprocessors.
  int (*encode_map)(void *map, int type, unsigned rank, void *address, const uint64_t *sizes, const uint64_t *strides,
                    const unsigned *box, const unsigned *steps, int interleave, int swizzle, int promotion, int fill);
  // The same of the pixels that the windows of a convolution meet.
  int (*encode_windows)(void *map, int type, unsigned rank, void *address, const uint64_t *sizes, const uint64_t *strides,
                        const int *lower, const int *upper, unsigned channels, unsigned pixels, const unsigned *steps,
                        int interleave, int swizzle, int promotion, int fill);
  // What comes next in a capture follows these nodes; the second form also where launches are early.
  int (*capture_info)(Stream stream, int *status, uint64_t *id, Graph *graph, const Node **last, size_t *count);
  int (*capture_info_edges)(Stream stream, int *status, uint64_t *id, Graph *graph, const Node **last, const void **edges,
                            size_t *count);
};

// Numbers that are the same in no two headers: CUdevice_attribute and hipDeviceAttribute_t, CUfunction_attribute.
struct Numbers {
  int compute_major, compute_minor, multiprocessors, function_shared;
};

// In what drivers and devices differ beside the names of functions.
struct Backend {
  AotiDeviceKind kind;
  const char *driver;       // its name
  const char *libraries[5]; // files of the driver in which it is looked for, and null
  Numbers numbers;
  // What an architecture is called by its compute capability; null where devices tell its name.
  const char *architecture;
  // Whether a launch may have more than a little shared memory only if it was asked for. HIP gives what there is, and takes no
  // functions of modules there.
  bool asks_for_shared;
  // Whether devices copy boxes of tensors, of which the driver makes maps.
  bool has_maps;
  // The function for launches that begin early, the first version of the driver that also repeats such in graphs, and the first
  // compute capability with kernels that wait by themselves; or null.
  const char *launch_early;
  int early_in_graphs, early_compute;
};
inline constexpr Backend kBackends[kVendors] = {
    {AOTI_CUDA,
     "CUDA",
     {"libcuda.so.1", "libcuda.so", nullptr},
     {75, 76, 16, 8},
     "sm_%d%d",
     true,
     true,
     "cuLaunchKernelEx",
     12030,
     9},
    {AOTI_ROCM,
     "HIP",
     {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so", nullptr},
     {23, 61, 63, 8},
     nullptr,
     false,
     false,
     nullptr,
     0,
     0},
};
constexpr const Backend &backend(Vendor vendor) { return kBackends[vendor]; }

// Threads that a block of a function has at most: the attribute of this number in both.
constexpr int kFunctionThreads = 0;
constexpr unsigned kStreamNonBlocking = 1, kEventTiming = 0, kEventNoTiming = 2;
// Page-locked memory that every context may use and kernels see at the address that the host has.
constexpr unsigned kHostPortable = 1, kHostMapped = 2;
constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNotReady = 600, kNotSupported = 801;
constexpr int kCaptureRelaxed = 2;

namespace detail {

struct Symbol {
  size_t offset;
  const char *names[kVendors]; // null where a driver has no such function
};
#define AOTI_DRIVER_SYMBOL(FIELD, ...) {offsetof(Driver, FIELD), {__VA_ARGS__}}
inline constexpr Symbol kSymbols[] = {
    AOTI_DRIVER_SYMBOL(init, "cuInit", "hipInit"),
    AOTI_DRIVER_SYMBOL(driver_version, "cuDriverGetVersion", "hipDriverGetVersion"),
    AOTI_DRIVER_SYMBOL(device_count, "cuDeviceGetCount", "hipGetDeviceCount"),
    AOTI_DRIVER_SYMBOL(device_get, "cuDeviceGet", "hipDeviceGet"),
    AOTI_DRIVER_SYMBOL(device_name, "cuDeviceGetName", "hipDeviceGetName"),
    AOTI_DRIVER_SYMBOL(device_attribute, "cuDeviceGetAttribute", "hipDeviceGetAttribute"),
    AOTI_DRIVER_SYMBOL(context_retain, "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain"),
    AOTI_DRIVER_SYMBOL(context_release, "cuDevicePrimaryCtxRelease_v2", "hipDevicePrimaryCtxRelease"),
    AOTI_DRIVER_SYMBOL(context_push, "cuCtxPushCurrent_v2", "hipCtxPushCurrent"),
    AOTI_DRIVER_SYMBOL(context_pop, "cuCtxPopCurrent_v2", "hipCtxPopCurrent"),
    AOTI_DRIVER_SYMBOL(module_load, "cuModuleLoadData", "hipModuleLoadData"),
    AOTI_DRIVER_SYMBOL(module_unload, "cuModuleUnload", "hipModuleUnload"),
    AOTI_DRIVER_SYMBOL(module_function, "cuModuleGetFunction", "hipModuleGetFunction"),
    AOTI_DRIVER_SYMBOL(function_attribute, "cuFuncSetAttribute", "hipFuncSetAttribute"),
    AOTI_DRIVER_SYMBOL(function_number, "cuFuncGetAttribute", "hipFuncGetAttribute"),
    AOTI_DRIVER_SYMBOL(allocate, "cuMemAlloc_v2", "hipMalloc"),
    AOTI_DRIVER_SYMBOL(release, "cuMemFree_v2", "hipFree"),
    AOTI_DRIVER_SYMBOL(allocate_host, "cuMemHostAlloc", "hipHostMalloc"),
    AOTI_DRIVER_SYMBOL(release_host, "cuMemFreeHost", "hipHostFree"),
    AOTI_DRIVER_SYMBOL(copy_in, "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync"),
    AOTI_DRIVER_SYMBOL(copy_out, "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync"),
    AOTI_DRIVER_SYMBOL(copy, "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync"),
    AOTI_DRIVER_SYMBOL(fill, "cuMemsetD8Async", "hipMemsetD8Async"),
    AOTI_DRIVER_SYMBOL(launch, "cuLaunchKernel", "hipModuleLaunchKernel"),
    AOTI_DRIVER_SYMBOL(stream_create, "cuStreamCreate", "hipStreamCreateWithFlags"),
    AOTI_DRIVER_SYMBOL(stream_destroy, "cuStreamDestroy_v2", "hipStreamDestroy"),
    AOTI_DRIVER_SYMBOL(stream_wait, "cuStreamSynchronize", "hipStreamSynchronize"),
    AOTI_DRIVER_SYMBOL(event_create, "cuEventCreate", "hipEventCreateWithFlags"),
    AOTI_DRIVER_SYMBOL(event_destroy, "cuEventDestroy_v2", "hipEventDestroy"),
    AOTI_DRIVER_SYMBOL(event_record, "cuEventRecord", "hipEventRecord"),
    AOTI_DRIVER_SYMBOL(event_wait, "cuEventSynchronize", "hipEventSynchronize"),
    AOTI_DRIVER_SYMBOL(event_elapsed, "cuEventElapsedTime", "hipEventElapsedTime"),
    AOTI_DRIVER_SYMBOL(capture_begin, "cuStreamBeginCapture_v2", "hipStreamBeginCapture"),
    AOTI_DRIVER_SYMBOL(capture_end, "cuStreamEndCapture", "hipStreamEndCapture"),
    AOTI_DRIVER_SYMBOL(graph_instantiate, "cuGraphInstantiateWithFlags", "hipGraphInstantiateWithFlags"),
    AOTI_DRIVER_SYMBOL(graph_launch, "cuGraphLaunch", "hipGraphLaunch"),
    AOTI_DRIVER_SYMBOL(graph_destroy, "cuGraphDestroy", "hipGraphDestroy"),
    AOTI_DRIVER_SYMBOL(graph_exec_destroy, "cuGraphExecDestroy", "hipGraphExecDestroy"),
};
// What a run goes without where the driver does not have it.
inline constexpr Symbol kOptionalSymbols[] = {
    AOTI_DRIVER_SYMBOL(call_host, "cuLaunchHostFunc", "hipLaunchHostFunc"),
    AOTI_DRIVER_SYMBOL(error_text, "cuGetErrorString", "hipDrvGetErrorString"),
    AOTI_DRIVER_SYMBOL(event_query, "cuEventQuery", "hipEventQuery"),
    AOTI_DRIVER_SYMBOL(graph_set_kernel, "cuGraphExecKernelNodeSetParams_v2", "hipGraphExecKernelNodeSetParams"),
    AOTI_DRIVER_SYMBOL(encode_map, "cuTensorMapEncodeTiled", nullptr),
    AOTI_DRIVER_SYMBOL(encode_windows, "cuTensorMapEncodeIm2col", nullptr),
    AOTI_DRIVER_SYMBOL(capture_info, "cuStreamGetCaptureInfo_v2", "hipStreamGetCaptureInfo_v2"),
    AOTI_DRIVER_SYMBOL(capture_info_edges, "cuStreamGetCaptureInfo_v3", nullptr),
};
#undef AOTI_DRIVER_SYMBOL

// CU_TENSOR_MAP_DATA_TYPE_UINT8, 16, 32 and 64, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B.
constexpr int map_type(size_t element) { return element == 1 ? 0 : element == 2 ? 1 : element == 4 ? 2 : 4; }
constexpr int kMapSwizzle = 3, kMapPromotion = 3;

} // namespace detail

// Finds a vendor's driver and fills the table. False, with a sentence in `message`, where there is none or it is too old.
__attribute__((unused)) inline bool find_driver(Vendor vendor, Driver *driver, char *message, size_t bytes) {
  const char *const *names = backend(vendor).libraries;
  *driver = Driver{};
  driver->name = backend(vendor).driver;
  driver->vendor = vendor;
  for (int i = 0; names[i] && !driver->library; ++i) driver->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (!driver->library) {
    int used = snprintf(message, bytes, "no %s driver on this machine: looked for", driver->name);
    for (int i = 0; names[i] && used > 0 && size_t(used) < bytes; ++i)
      used += snprintf(message + used, bytes - size_t(used), "%s %s", i ? "," : "", names[i]);
    return false;
  }
  for (const detail::Symbol &symbol : detail::kSymbols) {
    const char *name = symbol.names[vendor];
    void *found = dlsym(driver->library, name);
    if (!found) {
      snprintf(message, bytes, "the %s driver of this machine has no `%s`: it is too old", driver->name, name);
      dlclose(driver->library);
      driver->library = nullptr;
      return false;
    }
    *(void **)((char *)driver + symbol.offset) = found;
  }
  for (const detail::Symbol &symbol : detail::kOptionalSymbols)
    if (const char *name = symbol.names[vendor])
      *(void **)((char *)driver + symbol.offset) = dlsym(driver->library, name);
  if (int code = driver->init(0)) {
    snprintf(message, bytes, "the %s driver of this machine does not start: error %d", driver->name, code);
    dlclose(driver->library);
    driver->library = nullptr;
    return false;
  }
  return true;
}

// Launches on such a device are early where the driver knows how.
__attribute__((unused)) inline void allow_early_launches(Vendor vendor, Driver *driver, int compute_major) {
  const Backend &own = backend(vendor);
  int version = 0;
  if (own.launch_early && compute_major >= own.early_compute && !driver->driver_version(&version) && version >= own.early_in_graphs)
    *(void **)&driver->launch_early = dlsym(driver->library, own.launch_early);
}

// Launches blocks along one axis.
__attribute__((unused)) inline int launch_blocks(const Driver &driver, Function function, unsigned blocks, unsigned threads,
                                                 unsigned shared_bytes, Stream stream, void **arguments) {
  if (!driver.launch_early)
    return driver.launch(function, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, arguments, nullptr);
  const LaunchConfig config = {{blocks, 1, 1}, {threads, 1, 1}, shared_bytes, stream, &kEarly, 1};
  return driver.launch_early(&config, function, arguments, nullptr);
}

// Whether kernels of a graph can be given other arguments.
__attribute__((unused)) inline bool can_set_nodes(const Driver &driver) {
  return driver.graph_set_kernel && (driver.capture_info_edges || driver.capture_info);
}

// A map by which rows of boxes come as 128 bytes each, swizzled, and zero outside of the tensor. What is copied keeps its bits, so
// that elements of one size are of one type.
__attribute__((unused)) inline int encode_map(const Driver &driver, void *map, size_t element, unsigned rank, Address address,
                                              const uint64_t *sizes, const uint64_t *strides, const unsigned *box,
                                              const unsigned *steps) {
  if (!driver.encode_map) return kNotSupported;
  return driver.encode_map(map, detail::map_type(element), rank, (void *)uintptr_t(address), sizes, strides, box, steps, 0,
                           detail::kMapSwizzle, detail::kMapPromotion, 0);
}
// The same of pixels that windows meet: so many of these, and so many channels of each; steps of windows along all axes.
__attribute__((unused)) inline int encode_windows(const Driver &driver, void *map, size_t element, unsigned rank, Address address,
                                                  const uint64_t *sizes, const uint64_t *strides, const int *lower,
                                                  const int *upper, const unsigned *box, const unsigned *steps) {
  if (!driver.encode_windows) return kNotSupported;
  return driver.encode_windows(map, detail::map_type(element), rank, (void *)uintptr_t(address), sizes, strides, lower, upper,
                               box[0], box[1], steps, 0, detail::kMapSwizzle, detail::kMapPromotion, 0);
}

// The node that a stream, which is captured, came to last; or null, where the driver does not say.
__attribute__((unused)) inline Node last_node(const Driver &driver, Stream stream) {
  int status = 0;
  uint64_t id = 0;
  Graph graph = nullptr;
  const Node *last = nullptr;
  const void *edges = nullptr;
  size_t count = 0;
  const int code = driver.capture_info_edges
                       ? driver.capture_info_edges(stream, &status, &id, &graph, &last, &edges, &count)
                       : driver.capture_info(stream, &status, &id, &graph, &last, &count);
  return code == 0 && count == 1 ? last[0] : nullptr;
}

// Gives a kernel of a graph other arguments; what is running already keeps those that it has.
__attribute__((unused)) inline int set_kernel(const Driver &driver, GraphExec exec, Node node, Function function, unsigned blocks,
                                              unsigned threads, unsigned shared_bytes, void **arguments) {
  const CudaKernelNode cuda = {function, {blocks, 1, 1}, {threads, 1, 1}, shared_bytes, arguments, nullptr, nullptr, nullptr};
  const HipKernelNode hip = {{threads, 1, 1}, nullptr, function, {blocks, 1, 1}, arguments, shared_bytes};
  return driver.graph_set_kernel(exec, node, driver.vendor == kNvidia ? (const void *)&cuda : &hip);
}

} // namespace gpu
} // namespace aoti
