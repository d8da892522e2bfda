// CUDA's driver for tests: memory is this processor's, a stream does at once what it is given, and threads of a block are threads.
// The kernel is the one that GPUs run.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <thread>
#include <vector>

static thread_local unsigned own_thread, own_block;
static thread_local pthread_barrier_t *own_barrier;
// Fewer than a GPU has: each has more elements.
constexpr unsigned kThreads = 8;

#define AOTI_STAND_IN
#define KERNEL static void
#define DEVICE static inline
static unsigned thread() { return own_thread; }
static unsigned threads() { return kThreads; }
static unsigned block() { return own_block; }
static void barrier() { pthread_barrier_wait(own_barrier); }
static void signal(unsigned *flag, unsigned value) {
  reinterpret_cast<std::atomic<unsigned> *>(flag)->store(value, std::memory_order_release);
}
static unsigned observe(const unsigned *flag) {
  sched_yield();
  return reinterpret_cast<const std::atomic<unsigned> *>(flag)->load(std::memory_order_acquire);
}
#include "../src/ffi/nccl/all_reduce.cu"

template <class Bits> static void call(void (*kernel)(Group, const Bits *, Bits *, u64), void **arguments) {
  kernel(*(Group *)arguments[0], *(const Bits **)arguments[1], *(Bits **)arguments[2], *(u64 *)arguments[3]);
}

static thread_local int context;
static std::atomic<int> live{0};

extern "C" {
int cuGetErrorString(int, const char **text) { return *text = "it failed", 0; }
int cuCtxGetCurrent(void **current) { return *current = &context, 0; }
int cuCtxPushCurrent_v2(void *) { return 0; }
int cuCtxPopCurrent_v2(void **) { return 0; }
int cuCtxGetDevice(int *device) { return *device = 0, 0; }
int cuDeviceCanAccessPeer(int *can, int, int) { return *can = 1, 0; }
int cuCtxEnablePeerAccess(void *peer, unsigned) { return peer && peer != &context ? 0 : 1; }
int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  void *memory = nullptr;
  if (posix_memalign(&memory, 256, bytes)) return 2;
  *address = uint64_t(memory), ++live;
  return 0;
}
int cuMemFree_v2(uint64_t address) { return free((void *)address), --live, 0; }
int cuMemHostAlloc(void **address, size_t bytes, unsigned) { return *address = malloc(bytes), ++live, 0; }
int cuMemFreeHost(void *address) { return free(address), --live, 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) { return memcpy((void *)to, from, bytes), 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { return memcpy(to, (void *)from, bytes), 0; }
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) { return memset((void *)to, value, bytes), 0; }
int cuIpcGetMemHandle(void *, uint64_t) { return 1; }
struct Handle {
  char bytes[64];
};
int cuIpcOpenMemHandle_v2(uint64_t *, Handle, unsigned) { return 1; }
int cuIpcCloseMemHandle(uint64_t) { return 1; }
int cuStreamQuery(void *) { return 0; }
int cuModuleLoadData(void **module, const void *text) {
  const bool is_code = strstr((const char *)text, ".version") != nullptr;
  return *module = &live, is_code ? 0 : 218;
}
int cuModuleUnload(void *) { return 0; }
int cuModuleGetFunction(void **function, void *, const char *name) {
  const std::string of = name;
  void (*run)(void **) = nullptr;
  if (of == "sum_f32") run = [](void **arguments) { call(sum_f32, arguments); };
  if (of == "sum_f16") run = [](void **arguments) { call(sum_f16, arguments); };
  if (of == "sum_bf16") run = [](void **arguments) { call(sum_bf16, arguments); };
  return *function = (void *)run, run ? 0 : 500;
}
int cuLaunchKernel(void *function, unsigned blocks, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                   void **arguments, void **) {
  for (unsigned block = 0; block < blocks; ++block) {
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, nullptr, kThreads);
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < kThreads; ++thread)
      all.emplace_back([=, &barrier] {
        own_thread = thread, own_block = block, own_barrier = &barrier;
        ((void (*)(void **))function)(arguments);
      });
    for (std::thread &one : all) one.join();
    pthread_barrier_destroy(&barrier);
  }
  return 0;
}
// For the test: pieces of memory that nobody has given back.
int live_memory() { return live; }
}
