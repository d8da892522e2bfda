// One run of a model on a GPU, as generated host code drives it: launches on a stream, and small reads where the data
// decides what comes next. Knows no kernel. An error of the driver is kept: nothing is launched after it, what is read is
// zero, and what the run returns means nothing.
#pragma once

#include "../abi.h"
#include "../base.h"
#include "../checked.h"
#include "driver.h"
#include "library.h"
#include "timing.h"

namespace aoti {
namespace gpu {

// A kernel as it is launched: threads of a block beside those that the launch names.
struct Entry {
  Function function;
  unsigned copiers;
};

// An address of the caller's, and whether it is another than the graph of the run has.
struct Given {
  Address address;
  bool moved;
  operator Address() const { return address; }
};
static_assert(__builtin_offsetof(Given, address) == 0, "as an argument it is the address");

// What is done to the graph of a run instead of launching: while `exec` is null, the stream is captured, and the nodes that
// are given an address of the caller's are noted; then those of them whose addresses have moved are given the new ones.
struct Replay {
  GraphExec exec;
  Node *nodes; // in the order of the run
  int32_t next;
  bool known; // whether the driver named every node
};

struct DeviceLate;

struct DeviceRun {
  const Driver *driver;
  Stream stream;
  const Entry *entries;
  const MathLibrary *library; // null where none is used
  const PreparedProduct *products;
  const Given *inputs;
  Given *outputs;
  Given states;
  Address generator, weights, arena;
  Address fault; // a `Fault`, which kernels and the host see
  void *staging; // 8 bytes of page-locked memory
  int64_t multiprocessors;
  int64_t *symbols; // sizes, to which those that are read from data are added
  // Told of kernels, or null; and what it wants to know.
  void (*tell)(DeviceRun &run, int32_t kernel, int32_t phase);
  const void *teller;
  Replay *replay; // or null
  Timing *timing; // or null
  int error; // the first code of the driver that was not success
  const DeviceLate *late = nullptr;
  // Where ranks compute something together: how they are reached, where this one is, and why they could not.
  const AotiCommunicator *communicator = nullptr;
  AotiDevice device = {};
  AotiError *refusal = nullptr;
};

// Memory that a run allocates when it has read how much that is: pieces of the device's, each null or allocated, some of which are
// for outputs.
struct DeviceLate {
  Address *memory;
  bool (*allocate)(DeviceRun &run, int32_t number, int64_t bytes, int32_t output); // `output` is -1 for a piece of its own
};

inline Given behind(const Given &given, int64_t bytes) { return {given.address + Address(bytes), given.moved}; }

template <class T> Given input(const DeviceRun &run, int position, int64_t start = 0) {
  return behind(run.inputs[position], start);
}
template <class T> Given output(const DeviceRun &run, int position, int64_t start = 0) {
  return behind(run.outputs[position], start);
}
template <class T> Given state(const DeviceRun &run, int64_t offset, int64_t start = 0) {
  return behind(run.states, offset + start);
}
template <class T> Address generator(const DeviceRun &run, int, int64_t start = 0) {
  return run.generator + Address(start);
}
template <class T> Address weights(const DeviceRun &run, int64_t offset, int64_t start = 0) {
  return run.weights + Address(offset + start);
}
template <class T> Address arena(const DeviceRun &run, int64_t offset, int64_t start = 0) {
  return run.arena + Address(offset + start);
}

template <class T> Address late(const DeviceRun &run, int number, int64_t start = 0) {
  return run.late->memory[number] + Address(start);
}
inline bool allocate(DeviceRun &run, int32_t number, int64_t bytes, int32_t output) {
  return run.late->allocate(run, number, bytes, output);
}

struct TensorMap;

// What the caller's addresses among the arguments of a launch say: whether there are any, and whether one has moved.
struct Callers {
  bool any = false, moved = false;
  void see(const Given &given) { any = true, moved = moved || given.moved; }
  inline void see(const TensorMap &map);
  template <class A> void see(const A &) {}
};

struct Shape {
  unsigned blocks, threads, shared_bytes;
};

// Of a kernel whose code has the role of copiers a multiprocessor has one block, which does the work of several; without it there are
// as many as there is work.
inline int64_t staying(const DeviceRun &run, int function, int64_t blocks) {
  return run.entries[function].copiers && blocks > run.multiprocessors ? run.multiprocessors : blocks;
}

// A tensor of Rank axes, the contiguous one first: its sizes, elements between neighbours along the other axes, and how many of
// the first axes are copied at a time; one of the others.
template <int Rank> struct Boxes {
  int64_t sizes[Rank], strides[Rank - 1];
  int extents[Rank];
};
// How the windows of a convolution move over a tensor, along its axes between channels and images.
template <int Axes> struct Windows {
  int lower[Axes], upper[Axes];
  uint32_t steps[Axes];
};
// CUtensorMap, and whether the address is one of the caller's that has moved.
struct alignas(64) TensorMap {
  uint64_t words[16];
  bool any, moved;
};
inline void Callers::see(const TensorMap &map) { any = any || map.any, moved = moved || map.moved; }
inline Callers callers_of(const Given &given) {
  Callers callers;
  callers.see(given);
  return callers;
}
inline Callers callers_of(Address) { return {}; }

// The map by which a kernel's copies find boxes of a tensor, or what windows meet. Drivers without such have no kernels that read it.
template <class T, int Rank, class A, class... W>
TensorMap tensor_map(DeviceRun &run, const A &address, const Boxes<Rank> &boxes, const W &...windows) {
  const Callers callers = callers_of(address);
  TensorMap map = {{}, callers.any, callers.moved};
  if (run.error || !backend(run.driver->vendor).has_maps) return map;
  uint64_t sizes[Rank], strides[Rank];
  uint32_t extents[Rank], steps[Rank];
  for (int d = 0; d < Rank; ++d) {
    // Coordinates have 32 bits.
    if (boxes.sizes[d] > INT32_MAX) run.error = kInvalidValue;
    // Where a size is zero, so is the number of blocks or of pieces.
    sizes[d] = uint64_t(boxes.sizes[d] > 0 ? boxes.sizes[d] : 1);
    if (d > 0) strides[d - 1] = uint64_t(boxes.strides[d - 1] > 0 ? boxes.strides[d - 1] * int64_t(sizeof(T)) : 16);
    extents[d] = boxes.extents[d] > 0 ? uint32_t(boxes.extents[d]) : 1;
    steps[d] = 1;
  }
  if (run.error) return map;
  if constexpr (sizeof...(W) == 0) {
    run.error = encode_map(*run.driver, map.words, sizeof(T), Rank, address, sizes, strides, extents, steps);
  } else {
    const Windows<Rank - 2> own = {windows...};
    for (int d = 1; d < Rank - 1; ++d) steps[d] = own.steps[d - 1];
    run.error = encode_windows(*run.driver, map.words, sizeof(T), Rank, address, sizes, strides, own.lower, own.upper, extents, steps);
  }
  return map;
}

inline void replay_launch(DeviceRun &run, const Entry &entry, const Shape &shape, void **arguments, Callers callers) {
  Replay &replay = *run.replay;
  if (!replay.exec) {
    run.error = launch_blocks(*run.driver, entry.function, shape.blocks, shape.threads, shape.shared_bytes, run.stream, arguments);
    if (!callers.any || run.error || !replay.known) return;
    Node &node = replay.nodes[replay.next++];
    node = last_node(*run.driver, run.stream);
    replay.known = node != nullptr;
  } else if (callers.any) {
    Node node = replay.nodes[replay.next++];
    if (callers.moved)
      run.error = set_kernel(*run.driver, replay.exec, node, entry.function, shape.blocks, shape.threads, shape.shared_bytes,
                             arguments);
  }
}

// Which of the launches of one kernel a launch is: who is told of kernels is told of it once.
enum Part { kWhole, kFirst, kMiddle, kLast };

// Starts a kernel, if there is anything to start, and tells those who want to know of it.
template <class Start> void start_kernel(DeviceRun &run, int32_t kernel, Part part, bool any, const Start &start) {
  const bool begins = part == kWhole || part == kFirst, ends = part == kWhole || part == kLast;
  if (run.tell && begins) run.tell(run, kernel, AOTI_KERNEL_BEGIN);
  if (run.timing && any) run.error = run.timing->begin(run.stream);
  if (any && !run.error) run.error = start();
  if (run.timing && any && !run.error) run.error = run.timing->end(kernel, begins, run.stream);
  if (!run.tell || run.error || !ends) return;
  run.error = run.driver->stream_wait(run.stream);
  if (!run.error) run.tell(run, kernel, AOTI_KERNEL_END);
}

inline void launch_list(DeviceRun &run, int32_t kernel, Part part, const Entry &entry, const Shape &shape, void **arguments,
                        Callers callers) {
  if (run.replay) {
    if (shape.blocks > 0) replay_launch(run, entry, shape, arguments, callers);
    return;
  }
  start_kernel(run, kernel, part, shape.blocks > 0, [&] {
    return launch_blocks(*run.driver, entry.function, shape.blocks, shape.threads, shape.shared_bytes, run.stream, arguments);
  });
}

// Arguments are passed as the kernel declares them: addresses and sizes, after the run itself. Who is told of kernels sees
// what each wrote, so that each is waited for.
template <Part P = kWhole, class... A>
void launch(DeviceRun &run, int32_t kernel, int function, int64_t blocks, int threads, int64_t shared, A... arguments) {
  if (run.error) return;
  void *list[] = {&run.fault, &arguments...};
  Callers callers;
  (callers.see(arguments), ...);
  const Entry &entry = run.entries[function];
  launch_list(run, kernel, P, entry, {blocks > 0 ? unsigned(blocks) : 0, unsigned(threads) + entry.copiers, unsigned(shared)},
              list, callers);
}

// A product by the library. False where it is not used: then the kernel is launched. In a graph it stays as it was captured, for
// the addresses that it had.
template <class A, class B, class D>
bool multiply(DeviceRun &run, int32_t kernel, int product, Address workspace, A a, B b, D d) {
  if (!run.library || !run.products[product].description) return false;
  if (run.error || (run.replay && run.replay->exec)) return true;
  Callers callers;
  callers.see(a), callers.see(b), callers.see(d);
  const auto start = [&] { return multiply(*run.library, run.products[product], a, b, d, workspace, run.stream); };
  if (run.replay) {
    if (callers.any) run.replay->known = false;
    run.error = start();
  } else {
    start_kernel(run, kernel, kWhole, true, start);
  }
  return true;
}

// Waits until everything before it is done.
inline void finish(DeviceRun &run) {
  // What is waited for must not wait for this thread.
  if (!run.error && run.timing) run.error = run.timing->report();
  if (!run.error) run.error = run.driver->stream_wait(run.stream);
}

// Frees what kernels no longer use.
inline void release(DeviceRun &run, int32_t number) {
  finish(run);
  if (run.error || !run.late->memory[number]) return;
  run.error = run.driver->release(run.late->memory[number]);
  run.late->memory[number] = 0;
}

// An element of device memory, once everything before it is done.
template <class T> T read(DeviceRun &run, Address from) {
  T value{};
  if (run.error) return value;
  if (run.timing) run.error = run.timing->report();
  if (!run.error) run.error = run.driver->copy_out(run.staging, from, sizeof(T), run.stream);
  if (!run.error) run.error = run.driver->stream_wait(run.stream);
  if (!run.error) __builtin_memcpy(&value, run.staging, sizeof(T));
  return value;
}

// Whether an operator met an index outside its dimension, as far as kernels are done: loops end then.
inline bool has_fault(const DeviceRun &run) { return *(const volatile int *)uintptr_t(run.fault) != 0; }

} // namespace gpu
} // namespace aoti
