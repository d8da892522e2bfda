// Reads digits from a table: a label and 64 grey levels from 0 to 255 in each line of standard input.
//
// Needs nothing but the header and the library that `cargo aoti compile` has written, and libm. Every function of the interface
// gives a status, and a message that names the input and its bounds.
#include "aoti_digits.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIXELS = 64, CLASSES = 10, BATCH = 64 };

// Ends the program with the message of the model, if something went wrong.
static void check(AotiStatus status, const AotiError *error) {
  if (status == AOTI_OK) return;
  fprintf(stderr, "error %d: %s\n", (int)status, error->message);
  exit(1);
}

// Reads up to BATCH lines; gives how many.
static int64_t read_pictures(int labels[BATCH], float pixels[BATCH * PIXELS]) {
  int64_t count = 0;
  while (count < BATCH && scanf("%d", &labels[count]) == 1) {
    for (int i = 0; i < PIXELS; ++i) {
      float level = 0;
      if (scanf(",%f", &level) != 1) {
        fprintf(stderr, "picture %d has %d grey levels, not %d\n", (int)count + 1, i, PIXELS);
        exit(1);
      }
      pixels[count * PIXELS + i] = level / 255;
    }
    ++count;
  }
  return count;
}

int main(void) {
  static int labels[BATCH];
  static float pixels[BATCH * PIXELS], probabilities[BATCH * CLASSES];
  int64_t count = read_pictures(labels, pixels);

  AotiError error = {0};
  const AotiApi *api = aoti_digits_api();
  if (api->abi_version != AOTI_ABI_VERSION || api->struct_bytes < sizeof *api) {
    fprintf(stderr, "the library has version %u of the interface, the header %u\n", api->abi_version, AOTI_ABI_VERSION);
    return 1;
  }
  AotiModel *model = NULL;
  AotiCreateOptions options = {.cpu_level = -1, .device = {AOTI_CPU, 0}};
  check(api->create(&options, &model, &error), &error);

  int64_t in_sizes[4] = {count, 1, 8, 8}, out_sizes[2] = {count, CLASSES}, found[2], *found_sizes[1] = {found};
  AotiTensor image = digits_input_image(pixels, in_sizes);
  AotiTensor output = digits_output_probabilities(probabilities, out_sizes);
  int64_t bytes = 0;
  check(api->workspace_bytes(model, &image, 1, 1, &bytes, &error), &error);
  void *workspace = aligned_alloc(AOTI_ALIGNMENT, (size_t)(bytes / AOTI_ALIGNMENT + 1) * AOTI_ALIGNMENT);
  AotiContext context = {.threads = 1};
  check(api->run(model, &image, 1, &output, 1, found_sizes, NULL, workspace, bytes, &context, &error), &error);

  int right = 0;
  for (int64_t row = 0; row < count; ++row) {
    int best = 0;
    for (int i = 1; i < CLASSES; ++i) {
      if (probabilities[row * CLASSES + i] > probabilities[row * CLASSES + best]) best = i;
    }
    right += best == labels[row];
  }
  printf("%d of %d right\n", right, (int)count);
  free(workspace);
  api->destroy(model);
  return 0;
}
