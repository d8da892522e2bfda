// What the emulated driver does not let pass: MISUSE gives a line for each mistake, with what the driver said before it ended the
// program.
#include "vendor.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

using Pointer = void *;
static int (*retain)(Pointer *, int), (*push)(Pointer), (*pop)(Pointer *), (*allocate)(uint64_t *, size_t), (*release)(uint64_t);
static int (*in)(uint64_t, const void *, size_t, Pointer), (*out)(void *, uint64_t, size_t, Pointer), (*copy)(uint64_t, uint64_t, size_t, Pointer);
static int (*stream_create)(Pointer *, unsigned), (*stream_destroy)(Pointer), (*stream_wait)(Pointer);
static int (*event_create)(Pointer *, unsigned), (*event_record)(Pointer, Pointer), (*release_context)(int);
static int (*begin)(Pointer, int);
static Pointer contexts[2], streams[2], events[2];
static uint64_t memory[2];
static char host[64];

static void prepare() {
  for (int k = 0; k < 2; ++k) {
    retain(&contexts[k], k), push(contexts[k]);
    stream_create(&streams[k], 1), event_create(&events[k], 2), allocate(&memory[k], 64);
    pop(&contexts[k]);
  }
  push(contexts[0]);
}
static const struct {
  const char *name;
  void (*make)();
} mistakes[] = {
    {"no context", [] { pop(&contexts[0]), allocate(&memory[0], 8); }},
    {"stream of another context", [] { stream_wait(streams[1]); }},
    {"copy to a stream of another context", [] { in(memory[0], host, 8, streams[1]); }},
    {"event of another context", [] { event_record(events[1], streams[0]); }},
    {"memory of another device", [] { in(memory[1], host, 8, streams[0]); }},
    {"copy between devices", [] { copy(memory[0], memory[1], 8, nullptr); }},
    {"beyond the allocation", [] { out(host, memory[0] + 60, 8, nullptr); }},
    {"memory that was freed", [] { release(memory[0]), in(memory[0], host, 8, nullptr); }},
    {"memory that is freed before the work", [] { in(memory[0], host, 8, streams[0]), release(memory[0]), stream_wait(streams[0]); }},
    {"memory of another context freed", [] { release(memory[1]); }},
    {"freed twice", [] { release(memory[0]), release(memory[0]); }},
    {"touched by the host", [] { *(volatile char *)memory[0] = 1; }},
    {"a stream that is gone", [] { stream_destroy(streams[0]), stream_wait(streams[0]); }},
    {"a stream with work", [] { in(memory[0], host, 8, streams[0]), stream_destroy(streams[0]); }},
    {"waiting while captured", [] { begin(streams[0], 2), stream_wait(streams[0]); }},
    {"a leak", [] { release_context(0); }},
};

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  void *library = dlopen(DRIVER_FILE, RTLD_NOW);
  const auto find = [&](auto &function, const char *name) { *(void **)&function = dlsym(library, name); };
  int (*init)(unsigned);
  find(init, NAME("cuInit", "hipInit")), init(0);
  find(retain, NAME("cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain"));
  find(release_context, NAME("cuDevicePrimaryCtxRelease_v2", "hipDevicePrimaryCtxRelease"));
  find(push, NAME("cuCtxPushCurrent_v2", "hipCtxPushCurrent")), find(pop, NAME("cuCtxPopCurrent_v2", "hipCtxPopCurrent"));
  find(allocate, NAME("cuMemAlloc_v2", "hipMalloc")), find(release, NAME("cuMemFree_v2", "hipFree"));
  find(in, NAME("cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync")), find(out, NAME("cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync"));
  find(copy, NAME("cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync"));
  find(stream_create, NAME("cuStreamCreate", "hipStreamCreateWithFlags"));
  find(stream_destroy, NAME("cuStreamDestroy_v2", "hipStreamDestroy"));
  find(stream_wait, NAME("cuStreamSynchronize", "hipStreamSynchronize"));
  find(event_create, NAME("cuEventCreate", "hipEventCreateWithFlags")), find(event_record, NAME("cuEventRecord", "hipEventRecord"));
  find(begin, NAME("cuStreamBeginCapture_v2", "hipStreamBeginCapture"));
  for (const auto &mistake : mistakes) {
    printf("%s: ", mistake.name);
    if (pid_t child = fork()) {
      waitpid(child, nullptr, 0);
    } else {
      dup2(1, 2);
      prepare(), mistake.make();
      printf("nothing\n");
      _exit(0);
    }
  }
  // An order that nothing makes is none: what one stream writes is not there for another.
  prepare();
  char from[] = "new", to[8] = "";
  in(memory[0], from, 4, streams[0]), out(to, memory[0], 4, nullptr), stream_wait(nullptr);
  printf("before it was waited for: %s\n", strcmp(to, "new") ? "old" : "new");
  stream_wait(streams[0]), out(to, memory[0], 4, nullptr), stream_wait(nullptr);
  printf("after: %s\n", strcmp(to, "new") ? "old" : "new");
}
