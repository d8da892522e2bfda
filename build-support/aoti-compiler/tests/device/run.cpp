// Runs a program for a GPU once, with whatever driver the machine has: RUN CASE IMAGE RESULT. The case says what there is;
// the outputs are written one after the other. Its host code is linked in.
#include "aoti/gpu/host.h"
#include <stdlib.h>
#include <string.h>

using namespace aoti;
using namespace aoti::gpu;

int32_t PROGRAM_RUN(DeviceRun &run, int64_t *symbols);
int64_t PROGRAM_ARENA(const int64_t *symbols);

static void check(int code, const char *what) {
  if (!code) return;
  fprintf(stderr, "driver error %d: %s\n", code, what);
  exit(1);
}
#define CHECK(CALL) check(CALL, #CALL)

static char *read_file(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (!file) check(1, path);
  fseek(file, 0, SEEK_END);
  *bytes = size_t(ftell(file));
  rewind(file);
  char *content = (char *)calloc(*bytes + 1, 1);
  if (fread(content, 1, *bytes, file) != *bytes) check(1, path);
  fclose(file);
  return content;
}

// Numbers of the case, in order.
static long long next(char **at) {
  char *end;
  long long value = strtoll(*at, &end, 10);
  if (end == *at) check(1, "the case is too short");
  *at = end;
  return value;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  size_t bytes;
  char *at = read_file(argv[1], &bytes);
  Driver driver;
  char message[512];
  if (!find_driver(kNvidia, &driver, message, sizeof message)) check(1, message);
  int device;
  Context context;
  CHECK(driver.device_get(&device, 0));
  CHECK(driver.context_retain(&context, device));
  CHECK(driver.context_push(context));
  Module module;
  CHECK(driver.module_load(&module, read_file(argv[2], &bytes)));
  Stream stream;
  CHECK(driver.stream_create(&stream, kStreamNonBlocking));
  auto memory = [&](size_t size) {
    Address address = 0;
    CHECK(driver.allocate(&address, size ? size : 1));
    CHECK(driver.fill(address, 0xff, size ? size : 1, stream));
    return address;
  };
  // Tensors follow the numbers: weights, then inputs.
  int64_t symbols[64];
  long long n_symbols = next(&at);
  for (long long i = 0; i < n_symbols; ++i) symbols[i] = next(&at);
  size_t sizes[2][64], counts[2];
  for (int kind = 0; kind < 2; ++kind) {
    counts[kind] = size_t(next(&at));
    for (size_t i = 0; i < counts[kind]; ++i) sizes[kind][i] = size_t(next(&at));
  }
  size_t weights_bytes = size_t(next(&at));
  static Function functions[256];
  size_t n_functions = size_t(next(&at));
  for (size_t i = 0; i < n_functions; ++i) {
    char name[256];
    int used;
    if (sscanf(at, "%255s%n", name, &used) != 1) return 2;
    at += used;
    CHECK(driver.module_function(&functions[i], module, name));
    int shared = int(next(&at));
    if (shared > 48 * 1024) CHECK(driver.function_attribute(functions[i], numbers(kNvidia).function_shared, shared));
  }
  at += 1;
  Address inputs[64], outputs[64], weights = memory(weights_bytes);
  CHECK(driver.copy_in(weights, at, weights_bytes, stream));
  at += weights_bytes;
  for (size_t i = 0; i < counts[0]; at += sizes[0][i++]) {
    inputs[i] = memory(sizes[0][i]);
    CHECK(driver.copy_in(inputs[i], at, sizes[0][i], stream));
  }
  for (size_t i = 0; i < counts[1]; ++i) outputs[i] = memory(sizes[1][i]);
  Address fault = memory(4);
  CHECK(driver.fill(fault, 0, 4, stream));
  void *staging;
  CHECK(driver.allocate_host(&staging, 64, 0));
  DeviceRun run{&driver, stream, functions, inputs, outputs, 0, weights, memory(size_t(PROGRAM_ARENA(symbols))), fault, staging, 0};
  int failed = PROGRAM_RUN(run, symbols);
  int faulty = read<int>(run, fault);
  CHECK(run.error);
  if (failed || faulty) {
    fprintf(stderr, "assertion %d, fault %d\n", failed, faulty);
    return 3;
  }
  FILE *result = fopen(argv[3], "wb");
  for (size_t i = 0; i < counts[1]; ++i) {
    char *host = (char *)malloc(sizes[1][i] + 1);
    CHECK(driver.copy_out(host, outputs[i], sizes[1][i], stream));
    CHECK(driver.stream_wait(stream));
    fwrite(host, 1, sizes[1][i], result);
  }
  return fclose(result);
}
