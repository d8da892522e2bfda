// Sums of products of bytes in words are exact, with the instruction for them where this machine has it and without.
#include "aoti/depthwise_words.h"
#include "aoti/gemm_groups.h"
#include "aoti/pixels.h"

#include "check.h"

using namespace aoti;
using namespace aoti::detail;

constexpr i64 kMost = 2 * kSplitWords + 6;
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

// A tile of a product whose words are `step` apart, of rows that are split where that is what its kernel reads.
template <bool Fast, int Rows, int Vectors>
static void product_tile(i64 k, const i32 *left, i64 row, i64 step, const i32 *right, i32 *tile) {
  static i32 split[kMainRows * (2 * (kMost + kSplitWords) + 64)];
  if (Fast) return fast_word_kernel<Rows, 1, Vectors>(k, left, row, step, right, kPanel, 0, tile);
  const Matrix<i32> rows = split_rows(Matrix<i32>{left, row, step}, Rows, k, split);
  word_kernel<Rows, 1, Vectors>(k, rows.data, rows.row_stride, right, kPanel, 0, tile);
}

template <bool Fast, int Rows, int Vectors> static void check_tile(i64 k) {
  // Operands begin anywhere.
  const u8 *left = left_bytes + 1;
  alignas(64) i32 tile[Rows * kPanel];
  const i64 row_words = kMost;
  product_tile<Fast, Rows, Vectors>(k, (const i32 *)left, row_words, 1, (const i32 *)right_bytes, tile);
  for (i64 r = 0; r < Rows; ++r)
    for (i64 c = 0; c < Vectors * kLanes; ++c) {
      const i32 want = sum_of(k, r, c, left, row_words * 4);
      if (tile[r * kPanel + c] != want)
        return CHECK_FAIL("%d rows of %ld words, fast %d, at (%ld, %ld): %d, not %d", Rows, (long)k, int(Fast), (long)r, (long)c,
                          tile[r * kPanel + c], want);
    }
  // The same as pixels of a convolution, in one run and in several.
  alignas(64) i32 pixels[Rows * kPixelColumns];
  for (i64 runs = 1; runs <= 3; ++runs) {
    if (k % runs != 0) continue;
    static PixelPlan plan;
    plan.runs = runs, plan.run = k / runs, plan.step = row_words;
    for (i64 i = 0; i < runs; ++i) plan.offsets[i] = i * plan.run;
    // By the instruction for words, or as if there were none.
    if constexpr (Fast)
      pixel_columns<AnyPixelTiles>(plan, Rows, Vectors * kLanes, (const i32 *)left, (const i32 *)right_bytes, 0, pixels);
    else
      split_pixel_columns<AnyPixelTiles>(plan, Rows, Vectors * kLanes, (const i32 *)left, (const i32 *)right_bytes, 0, pixels);
    for (i64 r = 0; r < Rows; ++r)
      for (i64 c = 0; c < Vectors * kLanes; ++c)
        if (pixels[r * kPixelColumns + c] != tile[r * kPanel + c])
          return CHECK_FAIL("%d pixels of %ld runs of %ld words, fast %d", Rows, (long)runs, (long)plan.run, int(Fast));
  }
  // Every second word.
  if (k > kMost / 2) return;
  alignas(64) i32 apart[Rows * kPanel];
  static int8_t spread[kMost * kPanel * 4];
  for (i64 i = 0; i < k; ++i)
    for (i64 j = 0; j < 2 * kPanel * 4; ++j)
      spread[2 * i * kPanel * 4 + j] = j < kPanel * 4 ? right_bytes[i * kPanel * 4 + j] : 0;
  product_tile<Fast, Rows, Vectors>(k, (const i32 *)left, row_words, 2, (const i32 *)right_bytes, tile);
  product_tile<Fast, Rows, Vectors>(2 * k, (const i32 *)left, row_words, 1, (const i32 *)spread, apart);
  for (i64 r = 0; r < Rows; ++r)
    for (i64 c = 0; c < Vectors * kLanes; ++c)
      if (tile[r * kPanel + c] != apart[r * kPanel + c])
        return CHECK_FAIL("%d rows of %ld words that lie apart, fast %d", Rows, (long)k, int(Fast));
}

template <bool Fast> static void check_tiles() {
  const i64 depths[] = {0, 1, 2, 7, 19, kSplitWords, kSplitWords + 1, kMost};
  for (i64 k : depths) {
    check_tile<Fast, 1, 1>(k), check_tile<Fast, 1, 2>(k), check_tile<Fast, 2, 2>(k);
    check_tile<Fast, 4, 2>(k), check_tile<Fast, kMainRows, 2>(k);
  }
}

// Weights in groups, as `runplan/group_panels.rs` writes them, with the doubles that they stand for.
struct Grouped {
  GroupForm form;
  i64 n, k;
  u8 *packed;
  double *weight;
  Grouped(i64 bits, i64 rows, bool has_offsets, bool has_least, i64 columns, i64 groups)
      : form{bits, rows, has_offsets, has_least, has_least ? 0 : -7}, n(columns), k(rows * groups) {
    const i64 panels = ceil_div(n, i64(kPanel)), height = 32 / bits;
    packed = (u8 *)aligned_alloc(64, round_up(64 + panels * groups * form.group_bytes(), 64));
    weight = (double *)calloc(n * k, sizeof(double));
    ((i32 *)packed)[0] = i32(bits), ((i32 *)packed)[1] = i32(rows), ((i32 *)packed)[2] = has_offsets;
    ((i32 *)packed)[3] = has_least, ((i32 *)packed)[4] = form.least;
    for (i64 p = 0; p < panels; ++p)
      for (i64 j = 0; j < groups; ++j) {
        u8 *b = packed + 64 + (p * groups + j) * form.group_bytes();
        memset(b, 0, form.group_bytes());
        for (i64 c = 0; c < kPanel && p * kPanel + c < n; ++c) {
          f32 &scale = ((f32 *)b)[c], offset = has_offsets ? f32(check_random(-99, 99)) / 64 : 0;
          const int least = has_least ? check_random(-128, 3) : form.least;
          scale = f32(check_random(1, 999)) / 4096;
          if (has_least) ((i16 *)(b + kPanel * 4))[c] = i16(least);
          if (has_offsets) ((f32 *)(b + form.offsets()))[c] = offset;
          for (i64 i = 0; i < rows; ++i) {
            const int number = check_random(0, (1 << bits) - 1);
            u8 &byte = b[form.head() + (i / height * kPanel + c) * 4 + i % 4];
            byte = u8(byte | number << (i % height / 4 * 4));
            weight[(p * kPanel + c) * k + j * rows + i] = double(number + least) * scale + offset;
          }
        }
      }
  }
  ~Grouped() { free(packed), free(weight); }
};

// Few rows with the instruction and without have the same bits, and more rows are near them.
template <int Bits, int Rows> static void same_bits(const Grouped &b, const i32 *digits, i64 words) {
  alignas(64) f32 fast[4 * kPanel], slow[4 * kPanel];
  const i64 groups = b.k / b.form.rows;
  for (i64 p = 0; p < ceil_div(b.n, i64(kPanel)); ++p) {
    memset(fast, 0, sizeof fast), memset(slow, 0, sizeof slow);
    const u8 *panel = b.packed + 64 + p * groups * b.form.group_bytes();
    for (i64 c = 0; c < kPanel; c += grouped_vectors(Rows) * kLanes) {
      fast_group_sums<Bits, Rows>(b.form, groups, digits, words, panel, c, fast + c);
      group_sums<Bits, Rows>(b.form, groups, digits, words, panel, c, slow + c);
    }
    if (memcmp(fast, slow, sizeof fast) != 0) CHECK_FAIL("%d bits, %d rows: sums differ without the instruction", Bits, Rows);
  }
}

static void check_groups(i64 bits, i64 rows, bool has_offsets, i64 m, i64 n, i64 groups) {
  const Grouped b(bits, rows, has_offsets, n % 3 != 0, n, groups);
  const i64 k = b.k, stride = k + 3;
  Guarded<f32> a(m * stride), result(m * n);
  // Numbers of very different sizes in every group, and one that is not finite in one row.
  for (i64 i = 0; i < a.n; ++i) a.data[i] = f32(check_random(-9999, 9999)) * (i % 7 == 0 ? 1e3f : i % 5 == 0 ? 1e-4f : 0.01f);
  const i64 odd = m > 2 ? 1 : -1;
  if (odd >= 0) a.data[odd * stride + 5] = __builtin_inff();
  const i64 words = digit_row_words(b.form, k);
  Guarded<u8> scratch(kPanel * k * 4 + gemm_copy_bytes<f32>(m, k) + min_i64(m, kGroupedRows) * words * 4, true);
  const auto keep = [&](i64 row, i64 column, auto lanes, auto sums) { store(lanes, result.data + row * n + column, sums); };
  gemm_groups(0, m, 0, ceil_div(n, i64(kPanel)), m, n, k, Matrix<f32>{a.data, stride, 1}, b.packed, scratch.data, keep);
  for (i64 r = 0; r < m; ++r)
    for (i64 c = 0; c < n; ++c) {
      double sum = 0, size = 0;
      for (i64 i = 0; i < k; ++i) {
        const double product = double(a.data[r * stride + i]) * b.weight[c * k + i];
        sum += product, size += product < 0 ? -product : product;
      }
      const double own = result.data[r * n + c], away = own - sum;
      const bool is_right = r == odd ? !(own - own == 0) : (away < 0 ? -away : away) <= 4e-6 * size;
      ++check_cases;
      if (!is_right) return CHECK_FAIL("%ld bits, %ld rows of %ld groups of %ld, at (%ld, %ld): %g, not %g", (long)bits, (long)m, (long)groups, (long)rows, (long)r, (long)c, own, sum);
    }
  if (m != 4) return;
  for (i64 i = 0; i < a.n; ++i) a.data[i] = f32(check_random(-9999, 9999));
  i32 *digits = (i32 *)scratch.data;
  for (i64 r = 0; r < m; ++r) write_row_digits(b.form, groups, a.data + r * stride, digits + r * words);
  if (AOTI_WORD_PRODUCTS && !has_word_products()) return;
  bits == 4 ? same_bits<4, 4>(b, digits, words) : same_bits<8, 4>(b, digits, words);
  bits == 4 ? same_bits<4, 1>(b, digits, words) : same_bits<8, 1>(b, digits, words);
}

static void check_all_groups() {
  for (i64 bits = 4; bits <= 8; bits += 4) {
    const i64 rows[] = {1, 2, 3, 4, 5, 32, 33};
    for (i64 m : rows) check_groups(bits, 32, m % 2 == 0, m, 70, 3);
    check_groups(bits, 19, false, 4, 33, 2), check_groups(bits, 2050, true, 1, 5, 1);
    check_groups(bits, 16, true, 4, 64, 9), check_groups(bits, 128, false, 7, 32, 2);
  }
}

// Depthwise convolutions have the sums of those whose bytes are widened, read nothing behind the input, and hand over each sum once.
static void check_depthwise(i64 channels, i64 size, i64 kernel, i64 stride, i64 padding, i64 batch) {
  const i64 out = (size + 2 * padding - kernel) / stride + 1, pixels = out * out, taps = kernel * kernel;
  const ConvShape s{batch, channels, channels, channels, {1, size, size}, {1, kernel, kernel}, {1, stride, stride}, {1, 1, 1},
                    {0, padding, padding}, {1, out, out}};
  Guarded<u8> x(batch * size * size * channels);
  Guarded<f32> weights(round_up(channels, kPanel) * taps);
  Guarded<i32> wanted(batch * pixels * channels), own(batch * pixels * channels);
  for (i64 i = 0; i < x.n; ++i) x.data[i] = u8(check_random(0, 255));
  for (i64 i = 0; i < weights.n; ++i)
    weights.data[i] = i / (taps * kPanel) * kPanel + i % kPanel < channels ? f32(check_random(0, 255) - 128) : 0;
  for (i64 i = 0; i < own.n; ++i) own.data[i] = wanted.data[i] = 0;
  const auto add_to = [&](i32 *sums) {
    return [=](i64 image, i64 channel, i64 pixel, auto lanes, auto v) {
      i32 *at = sums + (image * pixels + pixel) * channels + channel;
      store(lanes, at, load(lanes, at) + v);
    };
  };
  conv_depthwise_pixels(s, 0, conv_depthwise_pixels_units(s), x.data, weights.data, add_to(wanted.data));
  const i64 units = conv_depthwise_words_units(s), middle = units / 3;
  conv_depthwise_words(s, 0, middle, x.data, weights.data, add_to(own.data));
  conv_depthwise_words(s, middle, units, x.data, weights.data, add_to(own.data));
  ++check_cases;
  if (memcmp(own.data, wanted.data, size_t(own.n) * 4) != 0)
    CHECK_FAIL("depthwise, %ld channels of %ld pixels, %ld taps, stride %ld", (long)channels, (long)size, (long)kernel, (long)stride);
}

static void check_all_depthwise() {
  const i64 channels[] = {8, 16, 17, 24, 32, 33, 40, 48, 64, 72, 100, 144, 1030};
  for (i64 own : channels)
    for (i64 stride = 1; stride <= 3; ++stride) {
      check_depthwise(own, 1, 3, stride, 1, 1), check_depthwise(own, 5, 3, stride, 1, 2), check_depthwise(own, 9, 3, stride, 0, 1);
      check_depthwise(own, 18, 3, stride, 2, 1), check_depthwise(own, 7, 5, stride, 2, 1);
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
  check_all_groups(), check_all_depthwise();
  return check_end();
}
