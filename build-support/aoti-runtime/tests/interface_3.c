// A library that speaks version 3 of the C interface, as libraries of that time did: its table ends where version 4 goes on, and
// so does what it says of the model. Written without abi.h, which is of the present version.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
  const char *name;
  const char *compiler;
  int32_t counts[4]; // inputs, outputs, constants, states
  const void *lists[4];
  int64_t weights_bytes;
  int64_t state_bytes;
  const void *kernels;
  int32_t n_kernels;
  int32_t reserved;
  const char *library_digest;
  const char *weights_digest;
} Info3;

typedef struct {
  uint32_t abi_version;
  uint32_t struct_bytes;
  const Info3 *info;
  // create, destroy, output_sizes, workspace_bytes, create_state, reset_state, copy_state, destroy_state, run, prepare, submit,
  // wait, release, plan, prepare_bytes, prepare_weights, allocate, deallocate, copy
  void (*functions[19])(void);
} Api3;

// Nobody may call a function of another version.
static void called(void) { abort(); }

static const Info3 info = {.name = "old", .compiler = "by hand", .library_digest = ""};
static Api3 api = {3, sizeof(Api3), &info, {NULL}};

__attribute__((visibility("default"))) const void *aoti_old_api(void) {
  for (size_t i = 0; i < sizeof api.functions / sizeof *api.functions; ++i) api.functions[i] = called;
  return &api;
}
