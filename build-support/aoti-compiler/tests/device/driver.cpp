// A driver of CUDA for tests, whose one device runs emulated kernels: a module is a shared library in memory, a graph is a
// list of launches, of which a node is one. Ends the program with what is still allocated when its modules are unloaded.
// OLD_DRIVER leaves out what drivers have only of late.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>
#include <time.h>
#include <sys/mman.h>

typedef void (*Kernel)(int, int, int, void **);
struct Function { Kernel kernel; const int *sizes; };
// Arguments are kept by value.
struct Launch { const Function *function; int blocks, threads, shared; unsigned char arguments[96][128]; };
struct List { Launch *at; int count; };
static List *capturing;
static int allocated;
// Launches one by one, captures, graphs that were made of them, and kernels of graphs that were given other arguments.
extern "C" { int emulated_counts[4]; }
// A block takes a microsecond. What the host is asked to do is done when somebody waits.
static double clock_ms;
static void (*asked)(void *);
static void *asked_with;
static int done_waiting() {
  if (!asked) return 0;
  timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  asked(asked_with), asked = nullptr;
  clock_gettime(CLOCK_MONOTONIC, &to);
  if ((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000 < 90) return 0;
  fprintf(stderr, "who waits for the stream holds it\n");
  abort();
}
inline void *operator new(size_t, void *at) { return at; }
extern "C" {
int cuInit(unsigned) { return 0; }
int cuGetErrorString(int code, const char **text) { *text = code == 2 ? "out of memory" : "emulated"; return 0; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDeviceGetCount(int *c) { *c = 1; return 0; }
int cuDeviceGet(int *d, int o) { *d = o; return o ? 101 : 0; }
int cuDeviceGetName(char *n, int b, int) { snprintf(n, b, "emulated"); return 0; }
int cuDeviceGetAttribute(int *v, int a, int) { *v = a == 75 ? 9 : a == 76 ? 0 : a == 16 ? 4 : a == 97 ? 232448 : 0; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int) { *c = (void *)1; return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxPushCurrent_v2(void *) { return 0; }
int cuCtxPopCurrent_v2(void **c) { *c = (void *)1; return 0; }
int cuModuleLoadData(void **m, const void *image) {
  // An ELF image: its size is behind the section headers.
  const unsigned char *e = (const unsigned char *)image;
  if (memcmp(e, "\177ELF", 4)) return 200;
  uint64_t shoff; uint16_t size, num; memcpy(&shoff, e + 40, 8); memcpy(&size, e + 58, 2); memcpy(&num, e + 60, 2);
  size_t bytes = shoff + size_t(size) * num;
  int fd = memfd_create("image", 0);
  if (write(fd, image, bytes) != (ssize_t)bytes) return 1;
  char path[64]; snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  *m = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!*m) { fprintf(stderr, "%s\n", dlerror()); return 200; }
  return 0;
}
int cuModuleUnload(void *) {
  if (allocated) {
    fprintf(stderr, "%d pieces of memory are still allocated\n", allocated);
    abort();
  }
  return 0;
}
int cuModuleGetFunction(void **f, void *m, const char *name) {
  char full[512]; snprintf(full, sizeof full, "aoti_emulated_%s", name);
  Kernel kernel = (Kernel)dlsym(m, full);
  snprintf(full, sizeof full, "aoti_emulated_sizes_%s", name);
  const int *(*sizes)() = (const int *(*)())dlsym(m, full);
  if (!kernel || !sizes) return 500;
  *f = new (malloc(sizeof(Function))) Function{kernel, sizes()};
  return 0;
}
int cuFuncSetAttribute(void *, int, int) { return 0; }
int cuFuncGetAttribute(int *value, int, void *) { *value = 0; return 0; }
int cuMemAlloc_v2(uint64_t *a, size_t b) { ++allocated; void *p = aligned_alloc(256, (b + 255) / 256 * 256 + 256); memset(p, 0xff, b); *a = (uint64_t)p; return 0; }
int cuMemGetInfo_v2(size_t *left, size_t *all) { *left = (size_t(1) << 40) - (size_t(allocated) << 20), *all = size_t(1) << 40; return 0; }
int cuMemFree_v2(uint64_t a) { --allocated; free((void *)a); return 0; }
int cuMemHostAlloc(void **p, size_t b, unsigned) { ++allocated; *p = malloc(b); return 0; }
int cuMemFreeHost(void *p) { --allocated; free(p); return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t t, const void *f, size_t b, void *) { memcpy((void *)t, f, b); return 0; }
int cuMemcpyDtoHAsync_v2(void *t, uint64_t f, size_t b, void *) { memcpy(t, (void *)f, b); return 0; }
int cuMemcpyDtoDAsync_v2(uint64_t t, uint64_t f, size_t b, void *) { memmove((void *)t, (void *)f, b); return 0; }
int cuMemsetD8Async(uint64_t t, unsigned char v, size_t b, void *) { memset((void *)t, v, b); return 0; }
static int keep(Launch &launch, void **arguments) {
  const int *sizes = launch.function->sizes;
  for (int k = 0; sizes[k]; ++k) {
    if (k == 96 || sizes[k] > 128) return 1;
    memcpy(launch.arguments[k], arguments[k], sizes[k]);
  }
  return 0;
}
int cuLaunchKernel(const Function *f, unsigned bx, unsigned, unsigned, unsigned tx, unsigned, unsigned, unsigned shared, void *, void **arguments, void **) {
  if (!capturing) {
    ++emulated_counts[0], clock_ms += bx / 1000.0;
    f->kernel((int)bx, (int)tx, (int)shared, arguments);
    return 0;
  }
  capturing->at = (Launch *)realloc(capturing->at, size_t(capturing->count + 1) * sizeof(Launch));
  Launch &launch = capturing->at[capturing->count++];
  launch.function = f, launch.blocks = (int)bx, launch.threads = (int)tx, launch.shared = (int)shared;
  return keep(launch, arguments);
}
int cuStreamCreate(void **s, unsigned) { *s = (void *)1; return 0; }
int cuStreamDestroy_v2(void *) { return 0; }
int cuStreamSynchronize(void *) { return done_waiting(); }
int cuEventCreate(void **e, unsigned) { ++allocated; *e = malloc(8); return 0; }
int cuEventDestroy_v2(void *e) { --allocated; free(e); return 0; }
int cuEventRecord(double *e, void *) { *e = clock_ms; return 0; }
int cuEventSynchronize(void *) { return done_waiting(); }
int cuEventElapsedTime(float *ms, double *from, double *to) { *ms = float(*to - *from); return 0; }
int cuLaunchHostFunc(void *, void (*function)(void *), void *with) { done_waiting(); asked = function, asked_with = with; return 0; }
int cuStreamBeginCapture_v2(void *, int) { ++emulated_counts[1]; capturing = (List *)calloc(1, sizeof(List)); return 0; }
int cuStreamEndCapture(void *, void **graph) { *graph = capturing; capturing = nullptr; return 0; }
int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long) {
  List *copy = (List *)malloc(sizeof(List)), *list = (List *)graph;
  copy->count = list->count, copy->at = (Launch *)malloc(size_t(list->count + 1) * sizeof(Launch));
  memcpy(copy->at, list->at, size_t(list->count) * sizeof(Launch));
  *exec = copy;
  ++allocated, ++emulated_counts[2];
  return 0;
}
// Maps are not used by emulated kernels. What they say must be what the copy engine takes.
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const uint64_t *sizes, const uint64_t *strides,
                           const unsigned *box, const unsigned *steps, int, int, int, int) {
  if (type != 1 || rank < 2 || rank > 5 || (uint64_t)address % 16 || box[0] * 2 != 128 || (uint64_t)map % 64) return 1;
  for (unsigned d = 0; d < rank; ++d)
    if (!sizes[d] || !box[d] || box[d] > 256 || steps[d] != 1 || (d > 0 && strides[d - 1] % 16)) return 1;
  memset(map, 0x5a, 128);
  return 0;
}
#ifndef OLD_DRIVER
int cuStreamGetCaptureInfo_v3(void *, int *status, uint64_t *, void **graph, const void ***last, const void **, size_t *count) {
  static const void *node;
  node = (const void *)(uintptr_t)capturing->count;
  *status = 1, *graph = capturing, *last = &node, *count = 1;
  return 0;
}
struct Parameters { const Function *function; unsigned blocks[3], threads[3], shared; void **arguments; };
int cuGraphExecKernelNodeSetParams_v2(void *exec, void *node, const Parameters *given) {
  Launch &launch = ((List *)exec)->at[(uintptr_t)node - 1];
  if (launch.function != given->function) return 910;
  ++emulated_counts[3];
  launch.blocks = (int)given->blocks[0], launch.threads = (int)given->threads[0], launch.shared = (int)given->shared;
  return keep(launch, given->arguments);
}
#endif
int cuGraphLaunch(void *exec, void *) {
  List *list = (List *)exec;
  for (int i = 0; i < list->count; ++i) {
    Launch &launch = list->at[i];
    // Maps of tensors are at multiples of 64 bytes.
    alignas(64) static unsigned char values[96][128];
    memcpy(values, launch.arguments, sizeof values);
    void *arguments[96];
    for (int k = 0; k < 96; ++k) arguments[k] = values[k];
    launch.function->kernel(launch.blocks, launch.threads, launch.shared, arguments);
  }
  return 0;
}
int cuGraphDestroy(void *graph) { free(((List *)graph)->at); free(graph); return 0; }
int cuGraphExecDestroy(void *exec) { --allocated; return cuGraphDestroy(exec); }
}
