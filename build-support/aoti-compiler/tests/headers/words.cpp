// Sums of products of bytes in words are exact, with the instruction for them where this machine has it and without.
#include "aoti/gemm.h"
#include "aoti/pixels.h"

#include "check.h"

using namespace aoti;
using namespace aoti::detail;

constexpr i64 kMost = 70;
static u8 left_bytes[kMainRows * kMost * 4 + 1];
static int8_t right_bytes[kMost * kPanel * 4];

// What a tile must hold.
static i32 sum_of(i64 k, i64 row, i64 column, const u8 *left, i64 row_bytes) {
  u32 sum = 0;
  for (i64 i = 0; i < k; ++i)
    for (i64 j = 0; j < 4; ++j)
      sum += u32(i32(left[row * row_bytes + 4 * i + j]) * right_bytes[(i * kPanel + column) * 4 + j]);
  return i32(sum);
}

template <bool Fast, int Rows, int Vectors> static void check_tile(i64 k) {
  // Operands begin anywhere.
  const u8 *left = left_bytes + 1;
  alignas(64) i32 tile[Rows * kPanel];
  const i64 row_words = kMost;
  (Fast ? fast_word_kernel<Rows, 1, Vectors> : word_kernel<Rows, 1, Vectors>)(
      k, (const i32 *)left, row_words, 1, (const i32 *)right_bytes, kPanel, 0, tile);
  for (i64 r = 0; r < Rows; ++r)
    for (i64 c = 0; c < Vectors * kLanes; ++c) {
      const i32 want = sum_of(k, r, c, left, row_words * 4);
      if (tile[r * kPanel + c] != want)
        return CHECK_FAIL("%d rows of %ld words, fast %d, at (%ld, %ld): %d, not %d", Rows, (long)k, int(Fast), (long)r, (long)c,
                          tile[r * kPanel + c], want);
    }
  // The same as pixels of a convolution, added to what is there.
  alignas(64) i32 pixels[Rows * kPixelColumns];
  for (i32 &sum : pixels) sum = 3;
  const i64 offsets[] = {0};
  (Fast ? fast_word_pixels<Rows, Vectors> : word_pixels<Rows, Vectors>)(offsets, 1, k, (const i32 *)left, row_words, (const i32 *)right_bytes, 0, true, pixels);
  for (i64 r = 0; r < Rows; ++r)
    for (i64 c = 0; c < Vectors * kLanes; ++c)
      if (pixels[r * kPixelColumns + c] != i32(u32(tile[r * kPanel + c]) + 3))
        return CHECK_FAIL("%d pixels of %ld words, fast %d", Rows, (long)k, int(Fast));
}

template <bool Fast> static void check_tiles() {
  const i64 depths[] = {0, 1, 2, 7, kMost};
  for (i64 k : depths) {
    check_tile<Fast, 1, 1>(k), check_tile<Fast, 1, 2>(k), check_tile<Fast, 2, 2>(k);
    check_tile<Fast, 4, 2>(k), check_tile<Fast, kMainRows, 2>(k);
  }
}

int main() {
  // Random numbers, and those whose products saturate where two are added up in 16 bits.
  for (int round = 0; round < 3; ++round) {
    for (u8 &x : left_bytes) x = round == 0 ? 255 : u8(check_random(0, 255));
    for (int8_t &w : right_bytes) w = round == 0 ? -128 : round == 1 ? 127 : int8_t(check_random(0, 255) - 128);
    check_tiles<false>();
    if (has_word_products()) check_tiles<true>();
  }
  return check_end();
}
