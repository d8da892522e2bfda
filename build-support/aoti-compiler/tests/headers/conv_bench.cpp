// Speed of the convolutions of conv.h on the layers of ResNet-18 and MobileNet, batch 1, one thread.
// Not run by the tests; build with the flags of generated code and run on a calm machine.
#include "aoti/depthwise.h"
#include "aoti/transposed.h"
#include "bench.h"

using namespace aoti;

static double bench_conv(i64 ic, i64 oc, i64 size, i64 kernel, i64 stride, i64 times = 1) {
  i64 pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  ConvShape s{1, ic, oc, 1, {1, size, size}, {1, kernel, kernel}, {1, stride, stride}, {1, 1, 1}, {0, pad, pad},
              {1, out, out}};
  f32 *x = bench_floats(ic * size * size), *w = bench_floats(round_up(oc, kConvRows) * ic * kernel * kernel);
  f32 *y = bench_floats(oc * out * out), *scratch = bench_floats(conv_scratch_bytes(s) / 4);
  double pad_us = bench_best([&] { conv_pad(s, 0, conv_pad_units(s), x, scratch); });
  double us = bench_best([&] {
    conv_pad(s, 0, conv_pad_units(s), x, scratch);
    conv(s, 0, conv_units(s), x, w, scratch, [&](i64, i64 channel, i64 pixel, auto lanes, auto sums) {
      bench_store(lanes, y + channel * out * out + pixel, sums);
    });
  });
  printf("pad %7.2f ", pad_us);
  bench_report("conv", oc, out * out, ic * kernel * kernel, us, 2.0 * oc * out * out * ic * kernel * kernel,
               4.0 * oc * ic * kernel * kernel);
  return us * times;
}

static void bench_depthwise(i64 channels, i64 size, i64 kernel, i64 stride) {
  i64 pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  ConvShape s{1, channels, channels, channels, {1, size, size}, {1, kernel, kernel}, {1, stride, stride}, {1, 1, 1},
              {0, pad, pad}, {1, out, out}};
  f32 *x = bench_floats(channels * size * size), *w = bench_floats(channels * kernel * kernel);
  f32 *y = bench_floats(channels * out * out);
  double us = bench_best([&] {
    conv_depthwise(s, 0, conv_depthwise_units(s), x, w, [&](i64, i64 channel, i64 pixel, auto lanes, auto sums) {
      bench_store(lanes, y + channel * out * out + pixel, sums);
    });
  });
  bench_report("depthw", channels, out * out, kernel * kernel, us, 2.0 * channels * out * out * kernel * kernel,
               4.0 * channels * (size * size + out * out));
}

static void bench_transposed(i64 ic, i64 oc, i64 size, i64 kernel, i64 stride, i64 pad) {
  i64 out = (size - 1) * stride - 2 * pad + kernel;
  ConvShape s{1, ic, oc, 1, {1, size, size}, {1, kernel, kernel}, {1, stride, stride}, {1, 1, 1}, {0, pad, pad},
              {1, out, out}};
  f32 *x = bench_floats(ic * size * size), *w = bench_floats(ic * oc * kernel * kernel);
  f32 *y = bench_floats(oc * out * out);
  f32 *scratch = bench_floats(conv_transposed_scratch_bytes(s) / 4);
  double us = bench_best([&] {
    conv_transposed_products(s, 0, conv_transposed_product_units(s), x, w, scratch);
    conv_transposed_gather(s, 0, conv_transposed_units(s), scratch, [&](i64, i64 channel, i64 pixel, auto lanes, auto sums) {
      bench_store(lanes, y + channel * out * out + pixel, sums);
    });
  });
  bench_report("transp", oc, size * size, ic * kernel * kernel, us, 2.0 * ic * oc * size * size * kernel * kernel,
               4.0 * (ic * size * size + oc * out * out));
}

int main() {
  bench_peak();
  double total = 0;
  total += bench_conv(3, 64, 224, 7, 2);
  total += bench_conv(64, 64, 56, 3, 1, 4);
  total += bench_conv(64, 128, 56, 3, 2), total += bench_conv(128, 128, 28, 3, 1, 3);
  total += bench_conv(64, 128, 56, 1, 2);
  total += bench_conv(128, 256, 28, 3, 2), total += bench_conv(256, 256, 14, 3, 1, 3);
  total += bench_conv(128, 256, 28, 1, 2);
  total += bench_conv(256, 512, 14, 3, 2), total += bench_conv(512, 512, 7, 3, 1, 3);
  total += bench_conv(256, 512, 14, 1, 2);
  printf("resnet18 convolutions: %.2f ms\n", total * 1e-3);
  bench_conv(64, 256, 56, 1, 1), bench_conv(256, 64, 56, 1, 1), bench_conv(16, 96, 112, 1, 1);
  bench_conv(160, 960, 7, 1, 1), bench_conv(960, 160, 7, 1, 1);
  bench_conv(1, 32, 28, 3, 1), bench_conv(32, 64, 28, 3, 1), bench_conv(3, 32, 224, 3, 2), bench_conv(3, 16, 32, 3, 1);
  bench_depthwise(96, 112, 3, 2), bench_depthwise(144, 56, 3, 1), bench_depthwise(384, 14, 3, 1);
  bench_depthwise(960, 7, 3, 1), bench_depthwise(672, 14, 5, 1);
  bench_transposed(64, 32, 28, 2, 2, 0), bench_transposed(64, 32, 28, 4, 2, 1), bench_transposed(256, 128, 8, 3, 1, 1);
}
