// Speed of the convolutions of conv.h on the layers of ResNet-18 and MobileNet, batch 1, one thread.
// Not run by the tests; build with the flags of generated code and run on a calm machine.
#include "aoti/depthwise.h"
#include "aoti/depthwise_pixels.h"
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

// The same with channels last; a stem reads its input with channels first.
static double bench_pixels(i64 ic, i64 oc, i64 size, i64 kernel, i64 stride, i64 times = 1) {
  i64 pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  const ChannelOrder order = ic <= 3 ? ChannelOrder::First : ChannelOrder::Last;
  ConvShape s{1, ic, oc, 1, {1, size, size}, {1, kernel, kernel}, {1, stride, stride}, {1, 1, 1}, {0, pad, pad},
              {1, out, out}};
  f32 *x = bench_floats(ic * size * size), *w = bench_floats(round_up(oc, kPanel) * ic * kernel * kernel);
  f32 *y = bench_floats(oc * out * out), *scratch = bench_floats(conv_pixels_scratch_bytes(s, order) / 4);
  const auto pad_all = [&] {
    const i64 units = conv_pixels_pad_units(s, order);
    order == ChannelOrder::First ? conv_pixels_pad<ChannelOrder::First>(s, 0, units, x, scratch)
                                 : conv_pixels_pad<ChannelOrder::Last>(s, 0, units, x, scratch);
  };
  double pad_us = bench_best(pad_all);
  double us = bench_best([&] {
    pad_all();
    conv_pixels(s, order, 0, conv_pixels_units(s, order), x, w, scratch, [&](i64, i64 channel, i64 pixel, auto lanes, auto sums) {
      bench_store(lanes, y + pixel * oc + channel, sums);
    });
  });
  printf("pad %7.2f ", pad_us);
  bench_report("pixels", oc, out * out, ic * kernel * kernel, us, 2.0 * oc * out * out * ic * kernel * kernel,
               4.0 * oc * ic * kernel * kernel);
  return us * times;
}

static void bench_depthwise_pixels(i64 channels, i64 size, i64 kernel, i64 stride) {
  i64 pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  ConvShape s{1, channels, channels, channels, {1, size, size}, {1, kernel, kernel}, {1, stride, stride}, {1, 1, 1},
              {0, pad, pad}, {1, out, out}};
  f32 *x = bench_floats(channels * size * size), *w = bench_floats(round_up(channels, kPanel) * kernel * kernel);
  f32 *y = bench_floats(channels * out * out);
  double us = bench_best([&] {
    conv_depthwise_pixels(s, 0, conv_depthwise_pixels_units(s), x, w, [&](i64, i64 channel, i64 pixel, auto lanes, auto sums) {
      bench_store(lanes, y + pixel * channels + channel, sums);
    });
  });
  bench_report("dw pix", channels, out * out, kernel * kernel, us, 2.0 * channels * out * out * kernel * kernel,
               4.0 * channels * (size * size + out * out));
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

// Each layer in both layouts, one after the other; the sums are of all of a network's.
static double in_both[2];
static void bench_both(i64 ic, i64 oc, i64 size, i64 kernel, i64 stride, i64 times = 1) {
  in_both[0] += bench_conv(ic, oc, size, kernel, stride, times);
  in_both[1] += bench_pixels(ic, oc, size, kernel, stride, times);
}
static void bench_depthwise_both(i64 channels, i64 size, i64 kernel, i64 stride) {
  bench_depthwise(channels, size, kernel, stride), bench_depthwise_pixels(channels, size, kernel, stride);
}

int main() {
  bench_peak();
  bench_both(3, 64, 224, 7, 2);
  bench_both(64, 64, 56, 3, 1, 4);
  bench_both(64, 128, 56, 3, 2), bench_both(128, 128, 28, 3, 1, 3);
  bench_both(64, 128, 56, 1, 2);
  bench_both(128, 256, 28, 3, 2), bench_both(256, 256, 14, 3, 1, 3);
  bench_both(128, 256, 28, 1, 2);
  bench_both(256, 512, 14, 3, 2), bench_both(512, 512, 7, 3, 1, 3);
  bench_both(256, 512, 14, 1, 2);
  printf("resnet18 convolutions: %.2f ms, with channels last %.2f ms\n", in_both[0] * 1e-3, in_both[1] * 1e-3);
  bench_both(64, 256, 56, 1, 1), bench_both(256, 64, 56, 1, 1), bench_both(16, 96, 112, 1, 1);
  bench_both(160, 960, 7, 1, 1), bench_both(960, 160, 7, 1, 1), bench_both(24, 72, 28, 1, 1), bench_both(88, 24, 28, 1, 1);
  bench_both(1, 32, 28, 3, 1), bench_both(32, 64, 28, 3, 1), bench_both(3, 16, 224, 3, 2), bench_both(3, 16, 32, 3, 1);
  bench_depthwise_both(96, 112, 3, 2), bench_depthwise_both(144, 56, 3, 1), bench_depthwise_both(384, 14, 3, 1);
  bench_depthwise_both(960, 7, 3, 1), bench_depthwise_both(672, 14, 5, 1), bench_depthwise_both(72, 28, 3, 1);
  bench_transposed(64, 32, 28, 2, 2, 0), bench_transposed(64, 32, 28, 4, 2, 1), bench_transposed(256, 128, 8, 3, 1, 1);
}
