// Packs or expands one matrix: arguments are form, element type and the numbers of the form; elements come on standard input, and what
// is packed goes to standard output. Parts run last to first, as several threads might.
#include "aoti/expand.h"
#include "aoti/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace aoti;

static void backwards(void *, int64_t n, AotiParallelBody body, void *arg) {
  for (int64_t i = n; i-- > 0;) body(arg, i, i + 1, int32_t(i % 2));
}

template <class T> static void pack(const Run &run, const char *form, const i64 *n, const T *from, f32 *to) {
  if (strcmp(form, "product") == 0) pack_product(run, from + n[0], n[1], n[2], n[3], n[4], to);
  if constexpr (sizeof(T) == 2)
    if (strcmp(form, "narrow") == 0) pack_narrow(run, from + n[0], n[1], n[2], n[3], n[4], (u16 *)to);
  if (strcmp(form, "tap_panels") == 0) pack_tap_panels(run, from, n[0], n[1], n[2], n[3], to);
  if (strcmp(form, "conv") == 0) pack_conv(run, from, n[0], n[1], n[2], to);
  if (strcmp(form, "transposed") == 0) pack_conv_transposed(run, from, n[0], n[1], n[2], to);
}

int main(int argc, char **argv) {
  const long bytes = atol(argv[3]);
  i64 numbers[5] = {};
  for (int i = 4; i < argc; ++i) numbers[i - 4] = atol(argv[i]);
  static char from[1 << 22];
  static f32 to[1 << 20];
  if (fread(from, 1, sizeof from, stdin) == 0) return 1;
  memset(to, 0xff, sizeof to);
  AotiContext context = {};
  context.parallel_for = backwards, context.threads = 2;
  Run run = {};
  run.context = &context;
  if (strcmp(argv[2], "f64") == 0)
    pack_product(run, (const f64 *)from + numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], (f64 *)to);
  if (strcmp(argv[2], "f16") == 0) pack(run, argv[1], numbers, (const f16 *)from, to);
  if (strcmp(argv[2], "bf16") == 0) pack(run, argv[1], numbers, (const bf16 *)from, to);
  if (strcmp(argv[2], "f32") == 0) pack(run, argv[1], numbers, (const f32 *)from, to);
  if (argv[2][0] == 'i') {
    const i64 size = atol(argv[2] + 1) / 8, *n = numbers;
    const u8 *bytes = (const u8 *)from;
    if (strcmp(argv[1], "product_words") == 0)
      pack_product_words(run, bytes + n[0] * size, n[1] * size, n[2] * size, n[3], n[4], (i32 *)to);
    else if (strcmp(argv[1], "product_bytes") == 0)
      pack_product(run, (const i8 *)bytes + n[0] * size, n[1] * size, n[2] * size, n[3], n[4], to);
    else if (strcmp(argv[1], "narrow") == 0)
      pack_narrow(run, bytes + n[0], n[1], n[2], n[3], n[4], (u8 *)to);
    else
      pack_tap_words(run, bytes, size, n[0], n[1], n[2], n[3], (i32 *)to);
  }
  if (strcmp(argv[1], "winograd") == 0) expand_winograd((const f32 *)from, to, numbers);
  if (strcmp(argv[1], "panels") == 0) expand_panels((const f32 *)from, to, numbers);
  return fwrite(to, 1, size_t(bytes), stdout) == size_t(bytes) ? 0 : 1;
}
