// Convolutions of conv.h, depthwise.h and contract_any.h against plain loops: odd sizes, strides, paddings, dilations,
// groups, one to three dimensions, splits.
#include "aoti/contract_any.h"
#include "aoti/depthwise.h"
#include "aoti/depthwise_pixels.h"
#include "aoti/group_pixels.h"
#include "aoti/expand.h"
#include "aoti/winograd_bytes.h"
#include "check.h"

using namespace aoti;

static i64 volume(const i64 *size) { return size[0] * size[1] * size[2]; }

// The sum of one output element, in a wide type.
template <class T> static double convolve(const ConvShape &s, const T *x, const T *w, i64 n, i64 oc, const i64 *o) {
  i64 ic = s.in_channels / s.groups, group = oc / (s.out_channels / s.groups), k[3];
  double sum = 0;
  for (i64 c = 0; c < ic; ++c)
    for (k[0] = 0; k[0] < s.kernel[0]; ++k[0])
      for (k[1] = 0; k[1] < s.kernel[1]; ++k[1])
        for (k[2] = 0; k[2] < s.kernel[2]; ++k[2]) {
          i64 at = n * s.in_channels + group * ic + c, tap = oc * ic + c;
          bool inside = true;
          for (int d = 0; d < 3; ++d) {
            i64 i = o[d] * s.stride[d] + k[d] * s.dilation[d] - s.padding[d];
            inside = inside && i >= 0 && i < s.in[d];
            at = at * s.in[d] + i, tap = tap * s.kernel[d] + k[d];
          }
          if (inside) sum += check_value(x[at]) * check_value(w[tap]);
        }
  return sum;
}
template <class T> static void transpose(const ConvShape &s, const T *x, const T *w, double *y) {
  i64 ic = s.in_channels / s.groups, oc = s.out_channels / s.groups, i[3], k[3];
  for (i64 n = 0; n < s.batch; ++n)
    for (i64 c = 0; c < s.in_channels; ++c)
      for (i64 f = 0; f < oc; ++f)
        for (i[0] = 0; i[0] < s.in[0]; ++i[0])
          for (i[1] = 0; i[1] < s.in[1]; ++i[1])
            for (i[2] = 0; i[2] < s.in[2]; ++i[2])
              for (k[0] = 0; k[0] < s.kernel[0]; ++k[0])
                for (k[1] = 0; k[1] < s.kernel[1]; ++k[1])
                  for (k[2] = 0; k[2] < s.kernel[2]; ++k[2]) {
                    i64 from = n * s.in_channels + c, tap = c * oc + f;
                    i64 to = n * s.out_channels + c / ic * oc + f;
                    bool inside = true;
                    for (int d = 0; d < 3; ++d) {
                      i64 o = i[d] * s.stride[d] + k[d] * s.dilation[d] - s.padding[d];
                      inside = inside && o >= 0 && o < s.out[d];
                      from = from * s.in[d] + i[d], tap = tap * s.kernel[d] + k[d], to = to * s.out[d] + o;
                    }
                    if (inside) y[to] += check_value(x[from]) * check_value(w[tap]);
                  }
}

static void fail(const char *what, const ConvShape &s, const Collected &c, i64 at, double want) {
  CHECK_FAIL("%s n %ld ic %ld oc %ld g %ld in %ldx%ldx%ld k %ldx%ldx%ld s %ld,%ld,%ld d %ld,%ld,%ld p %ld,%ld,%ld out "
             "%ldx%ldx%ld: element %ld is %g, written %d times, want %g",
             what, (long)s.batch, (long)s.in_channels, (long)s.out_channels, (long)s.groups, (long)s.in[0],
             (long)s.in[1], (long)s.in[2], (long)s.kernel[0], (long)s.kernel[1], (long)s.kernel[2], (long)s.stride[0],
             (long)s.stride[1], (long)s.stride[2], (long)s.dilation[0], (long)s.dilation[1], (long)s.dilation[2],
             (long)s.padding[0], (long)s.padding[1], (long)s.padding[2], (long)s.out[0], (long)s.out[1],
             (long)s.out[2], (long)at, c.value[at], c.times[at], want);
}
template <class T>
static void compare(const char *what, const ConvShape &s, const Collected &c, const T *x, const T *w) {
  ++check_cases;
  i64 at = 0, o[3];
  for (i64 n = 0; n < s.batch; ++n)
    for (i64 oc = 0; oc < s.out_channels; ++oc)
      for (o[0] = 0; o[0] < s.out[0]; ++o[0])
        for (o[1] = 0; o[1] < s.out[1]; ++o[1])
          for (o[2] = 0; o[2] < s.out[2]; ++o[2], ++at) {
            double want = convolve(s, x, w, n, oc, o);
            if (!check_same(c, at, want)) return fail(what, s, c, at, want);
          }
}

// Runs units in two or three parts.
template <class F> static void split(i64 units, F &&run) {
  i64 a = check_random(0, int(units)), b = check_random(int(a), int(units));
  run(i64(0), a), run(a, b), run(b, units);
}

// [k][n] as panels, element (row, column) given by value(row, column).
template <class F> static void pack_columns(i64 k, i64 n, f32 *to, F &&value) {
  for (i64 p = 0; p < n; p += kPanel)
    for (i64 i = 0; i < k; ++i)
      for (i64 j = p; j < p + kPanel; ++j) *to++ = j < n ? value(i, j) : 0;
}

// The weights of a channel at a point: a row of G w, twice; halves are exact here.
static f32 at_point(int point, f32 a, f32 b, f32 c) {
  return point == 0 ? a : point == 3 ? c : (point == 1 ? a + b + c : a - b + c) / 2;
}
static void check_winograd(const ConvShape &s, const f32 *last, const f32 *x, const f32 *w) {
  const bool fits = s.in[0] == 1 && s.kernel[0] == 1 && s.kernel[1] == 3 && s.kernel[2] == 3 && s.padding[0] == 0;
  for (int d = 0; d < 3; ++d)
    if (!fits || s.stride[d] != 1 || s.dilation[d] != 1) return;
  const i64 ic = s.in_channels, of_point = round_up(s.out_channels, kPanel) * ic, pixels = volume(s.out);
  Guarded<f32> packed(16 * of_point, true);
  for (int point = 0; point < 16; ++point)
    pack_columns(ic, s.out_channels, packed.data + point * of_point, [&](i64 i, i64 channel) {
      const f32 *own = w + (channel * ic + i) * 9;
      const auto column = [&](int k) { return at_point(point / 4, own[k], own[3 + k], own[6 + k]); };
      return at_point(point % 4, column(0), column(1), column(2));
    });
  for (int i = 0; i < 2; ++i) {
    const ChannelOrder order = i == 0 ? ChannelOrder::First : ChannelOrder::Last;
    Guarded<char> copy(conv_pixels_scratch_bytes(s, ChannelOrder::First), true);
    Collected c(s.batch * s.out_channels * pixels);
    if (i == 0)
      split(conv_pixels_pad_units(s, order), [&](i64 u0, i64 u1) { conv_pixels_pad<ChannelOrder::First>(s, u0, u1, x, copy.data); });
    split(conv_winograd_units(s), [&](i64 u0, i64 u1) {
      Guarded<char> scratch(conv_winograd_scratch_bytes(s), true);
      const f32 *from = i == 0 ? x : last;
      const auto at = [&](i64 n, i64 channel, i64 pixel) { return (n * s.out_channels + channel) * pixels + pixel; };
      const auto apart = [&](i64 n, i64 channel, i64 pixel, auto lanes, auto v) {
        c.put_apart(lanes, at(n, channel, pixel), pixels, v);
      };
      const auto together = [&](i64 n, i64 channel, i64 pixel, auto lanes, auto v) { c.put(lanes, at(n, channel, pixel), v); };
      if (i == 0)
        conv_winograd<ChannelOrder::First>(s, order, u0, u1, from, packed.data, copy.data, scratch.data, together);
      else
        conv_winograd<ChannelOrder::Last>(s, order, u0, u1, from, packed.data, copy.data, scratch.data, apart);
    });
    compare(i == 0 ? "winograd of channels" : "winograd", s, c, x, w);
  }
}

// Of bytes, which are exact: random ones, or those of the largest sums. `words` of four channels of the input.
static void check_winograd_bytes(i64 batch, i64 words, i64 out_channels, i64 height, i64 width, bool largest) {
  using detail::kFormHead;
  const i64 ic = 4 * words, pixels = height * width;
  const ConvShape s{batch, ic, out_channels, 1, {1, height + 2, width + 2}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0},
                    {1, height, width}};
  Guarded<u8> x(batch * s.in[1] * s.in[2] * ic);
  Guarded<int8_t> w(round_up(out_channels, kPanel) * ic * 9, true);
  Guarded<i32> forms(kFormHead + 16 * round_up(out_channels, kPanel) * ic / 2, true);
  for (i64 i = 0; i < x.n; ++i) x.data[i] = largest ? 255 : u8(check_random(0, 255));
  // [panel][tap][word][column][channel of the word]
  const auto of_word = [&](i64 channel, i64 tap, i64 k) {
    return (((channel / kPanel * 9 + tap) * words + k / 4) * kPanel + channel % kPanel) * 4 + k % 4;
  };
  memset(w.data, 0, size_t(w.n));
  for (i64 channel = 0; channel < out_channels; ++channel)
    for (i64 i = 0; i < 9 * ic; ++i)
      w.data[of_word(channel, i / ic, i % ic)] = largest ? -128 : int8_t(check_random(0, 255) - 128);
  const int64_t sizes[] = {out_channels, ic};
  expand_winograd_bytes((const f32 *)w.data, (f32 *)forms.data, sizes);
  // The form that this machine makes, and each of both.
  for (int form = 0; form < 3; ++form) {
    if (form > 0) forms.data[0] = form;
    if (form == detail::kWordsThemselves) memcpy(forms.data + kFormHead, w.data, size_t(w.n));
    if (form == detail::kWordPoints)
      word_points(w.data, (int16_t *)(forms.data + kFormHead), ceil_div(out_channels, kPanel), words);
    Collected c(batch * out_channels * pixels);
    split(conv_winograd_bytes_units(s, forms.data), [&](i64 u0, i64 u1) {
      Guarded<char> scratch(conv_winograd_bytes_scratch_bytes(s), true);
      conv_winograd_bytes(s, u0, u1, x.data, forms.data, scratch.data, [&](i64 n, i64 channel, i64 pixel, auto lanes, auto v) {
        c.put_apart(lanes, (n * out_channels + channel) * pixels + pixel, pixels, v);
      });
    });
    ++check_cases;
    for (i64 i = 0; i < c.n; ++i) {
      const i64 n = i / (out_channels * pixels), channel = i / pixels % out_channels, h = i % pixels / width, v = i % width;
      i64 want = 0;
      for (i64 tap = 0; tap < 9; ++tap)
        for (i64 k = 0; k < ic; ++k)
          want += x.data[((n * s.in[1] + h + tap / 3) * s.in[2] + v + tap % 3) * ic + k] * w.data[of_word(channel, tap, k)];
      if (!check_same(c, i, double(want))) return fail("winograd of bytes", s, c, i, double(want));
    }
  }
}
static void check_winograd_bytes() {
  check_winograd_bytes(1, 1, 1, 1, 1, false), check_winograd_bytes(1, 3, 40, 5, 7, false);
  check_winograd_bytes(2, 9, 70, 8, 8, false), check_winograd_bytes(1, 16, 130, 7, 7, false);
  check_winograd_bytes(3, 7, 33, 1, 30, false), check_winograd_bytes(1, 8, 24, 19, 23, false);
  check_winograd_bytes(1, 32, 16, 4, 5, true), check_winograd_bytes(1, 456, 3, 3, 2, true);
}

// With vectors of channels or of pixels in the results, and channels first or last in the input, of which this is known.
template <class Known, ChannelOrder Order, ChannelOrder Results, i64 InChannels>
static void check_pixels_of(const ConvShape &s, const f32 *from, const f32 *packed, const f32 *x, const f32 *w) {
  const i64 pixels = volume(s.out);
  Guarded<char> scratch(conv_pixels_scratch_bytes(s, Order), true);
  Collected c(s.batch * s.out_channels * pixels);
  split(conv_pixels_pad_units(s, Order),
        [&](i64 u0, i64 u1) { conv_pixels_pad<Order, InChannels>(s, u0, u1, from, scratch.data); });
  split(conv_pixels_units(s, Order), [&](i64 u0, i64 u1) {
    conv_pixels<ConvOnce::Larger, Known, Results>(
        s, Order, u0, u1, from, packed, scratch.data, [&](i64 n, i64 channel, i64 pixel, auto lanes, auto v) {
          const i64 apart = Results == ChannelOrder::First ? 1 : pixels;
          c.put_apart(lanes, (n * s.out_channels + channel) * pixels + pixel, apart, v);
        });
  });
  compare(Order == ChannelOrder::First ? "pixels of channels" : "pixels", s, c, x, w);
}

template <class Known, i64 InChannels = 0> static void check_pixels(const ConvShape &s, const f32 *x, const f32 *w) {
  const i64 taps = volume(s.kernel), ic = s.in_channels / s.groups, k = ic * taps, pixels = volume(s.out);
  const i64 own = s.out_channels / s.groups, of_group = ceil_div(own, kPanel) * k * kPanel;
  Guarded<f32> last(s.batch * s.in_channels * volume(s.in));
  for (i64 n = 0; n < s.batch; ++n)
    for (i64 c = 0; c < s.in_channels; ++c)
      for (i64 i = 0; i < volume(s.in); ++i)
        last.data[(n * volume(s.in) + i) * s.in_channels + c] = x[(n * s.in_channels + c) * volume(s.in) + i];
  if (s.groups > 1 && s.groups == s.in_channels && s.groups == s.out_channels) {
    Guarded<f32> packed(ceil_div(s.out_channels, kPanel) * k * kPanel, true);
    pack_columns(k, s.out_channels, packed.data, [&](i64 tap, i64 channel) { return w[channel * taps + tap]; });
    Collected c(s.batch * s.out_channels * pixels);
    split(conv_depthwise_pixels_units(s), [&](i64 u0, i64 u1) {
      conv_depthwise_pixels(s, u0, u1, last.data, packed.data, [&](i64 n, i64 channel, i64 pixel, auto lanes, auto v) {
        c.put_apart(lanes, (n * s.out_channels + channel) * pixels + pixel, pixels, v);
      });
    });
    compare("depthwise, channels last", s, c, x, w);
  }
  if (s.groups == 1) check_winograd(s, last.data, x, w);
  Guarded<f32> packed(s.groups * of_group, true);
  for (i64 g = 0; g < s.groups; ++g)
    pack_columns(k, own, packed.data + g * of_group,
                 [&](i64 i, i64 channel) { return w[(g * own + channel) * k + i % ic * taps + i / ic]; });
  constexpr ChannelOrder first = ChannelOrder::First, end = ChannelOrder::Last;
  check_pixels_of<Known, first, end, InChannels>(s, x, packed.data, x, w);
  check_pixels_of<Known, end, end, InChannels>(s, last.data, packed.data, x, w);
  check_pixels_of<Known, end, first, InChannels>(s, last.data, packed.data, x, w);
}

// A convolution all of whose sizes are known.
template <i64 InChannels, i64 Channels, i64 Line, bool Groups = false> static void check_known(const ConvShape &s) {
  Guarded<f32> x(s.batch * s.in_channels * volume(s.in)), w(s.out_channels * (s.in_channels / s.groups) * volume(s.kernel));
  check_fill(x), check_fill(w);
  check_pixels<PixelShape<Channels, Line, Groups>, InChannels>(s, x.data, w.data);
}

// Few channels a group: tiles for rows of this length, and for rows of any.
template <class Shape> static void check_group_shape(const ConvShape &s, const f32 *last, const f32 *packed, const f32 *x, const f32 *w) {
  const i64 pixels = volume(s.out);
  Collected c(s.batch * s.out_channels * pixels);
  split(conv_group_pixels_units<Shape>(s), [&](i64 u0, i64 u1) {
    conv_group_pixels<Shape>(s, u0, u1, last, packed, [&](i64 n, i64 channel, i64 pixel, auto lanes, auto v) {
      c.put_apart(lanes, (n * s.out_channels + channel) * pixels + pixel, pixels, v);
    });
  });
  compare("groups, channels last", s, c, x, w);
}
template <int In, int Out, int Taps, int Stride, i64 Width, bool Whole = false>
static void check_groups(i64 batch, i64 groups, i64 height, i64 rows, i64 stride, i64 dilation) {
  const i64 pad = Taps / 2, wide = max_i64((Width - 1) * Stride + Taps - 2 * pad, 1);
  const i64 high = (height - 1) * stride + (rows - 1) * dilation + 1 - 2 * (rows / 2);
  const ConvShape s{batch, groups * In, groups * Out, groups, {1, max_i64(high, 1), wide}, {1, rows, Taps}, {1, stride, Stride},
                    {1, dilation, 1}, {0, rows / 2, pad}, {1, high < 1 ? 1 : height, Width}};
  const i64 taps = rows * Taps, k = In * taps;
  Guarded<f32> x(batch * s.in_channels * volume(s.in)), w(s.out_channels * k), last(x.n);
  check_fill(x), check_fill(w);
  for (i64 n = 0; n < batch; ++n)
    for (i64 c = 0; c < s.in_channels; ++c)
      for (i64 i = 0; i < volume(s.in); ++i)
        last.data[(n * volume(s.in) + i) * s.in_channels + c] = x.data[(n * s.in_channels + c) * volume(s.in) + i];
  Guarded<f32> packed(ceil_div(s.out_channels, kPanel) * k * kPanel, true);
  pack_columns(k, s.out_channels, packed.data, [&](i64 i, i64 channel) { return w.data[channel * k + i]; });
  check_group_shape<GroupShape<In, Out, Taps, Stride, Width, Whole>>(s, last.data, packed.data, x.data, w.data);
  check_group_shape<GroupShape<In, Out, Taps, Stride, 0, Whole>>(s, last.data, packed.data, x.data, w.data);
}
static void check_groups() {
  check_groups<1, 1, 3, 1, 7>(2, 5, 4, 3, 1, 1), check_groups<1, 1, 3, 2, 29>(1, 48, 3, 3, 2, 1);
  check_groups<1, 1, 5, 1, 16>(1, 19, 5, 5, 1, 1), check_groups<1, 1, 11, 1, 20>(1, 10, 3, 1, 1, 1);
  check_groups<1, 1, 1, 1, 9>(1, 33, 6, 11, 1, 1), check_groups<1, 1, 3, 1, 3, true>(2, 1040, 2, 3, 1, 1);
  check_groups<1, 2, 7, 2, 10>(2, 9, 5, 7, 2, 1), check_groups<1, 4, 3, 1, 15>(1, 6, 4, 3, 1, 2);
  check_groups<1, 16, 3, 1, 6>(1, 3, 4, 3, 1, 1), check_groups<2, 2, 3, 1, 14>(1, 11, 4, 3, 1, 1);
  check_groups<4, 4, 3, 2, 14, true>(2, 8, 4, 3, 2, 1), check_groups<4, 4, 1, 2, 8>(1, 5, 4, 1, 2, 1);
  check_groups<8, 8, 3, 1, 28>(1, 3, 3, 3, 1, 1), check_groups<8, 8, 5, 2, 5, true>(1, 4, 3, 5, 2, 1);
  check_groups<16, 16, 3, 1, 14, true>(1, 4, 4, 3, 1, 1), check_groups<16, 16, 3, 2, 3, true>(2, 3, 4, 3, 2, 1);
}

static void check_conv(const ConvShape &s) {
  i64 ic = s.in_channels / s.groups, oc = s.out_channels / s.groups, taps = volume(s.kernel), k = ic * taps;
  Guarded<f32> x(s.batch * s.in_channels * volume(s.in)), w(s.out_channels * k);
  Guarded<f32> packed(s.groups * ceil_div(oc, kConvRows) * k * kConvRows, true);
  Guarded<char> scratch(conv_scratch_bytes(s), true);
  check_fill(x), check_fill(w);
  for (i64 g = 0, at = 0; g < s.groups; ++g)
    for (i64 r = 0; r < oc; r += kConvRows)
      for (i64 i = 0; i < k; ++i)
        for (i64 j = r; j < r + kConvRows; ++j) packed.data[at++] = j < oc ? w.data[(g * oc + j) * k + i] : 0;
  i64 pixels = volume(s.out);
  Collected c(s.batch * s.out_channels * pixels);
  split(conv_pad_units(s), [&](i64 u0, i64 u1) { conv_pad(s, u0, u1, x.data, scratch.data); });
  split(conv_units(s), [&](i64 u0, i64 u1) {
    conv(s, u0, u1, x.data, packed.data, scratch.data, [&](i64 n, i64 channel, i64 pixel, auto lanes, auto v) {
      c.put(lanes, (n * s.out_channels + channel) * pixels + pixel, v);
    });
  });
  compare("conv", s, c, x.data, w.data);
  check_pixels<PixelShape<>>(s, x.data, w.data);
  if (ic != 1) return;
  Collected d(c.n);
  split(conv_depthwise_units(s), [&](i64 u0, i64 u1) {
    conv_depthwise(s, u0, u1, x.data, w.data, [&](i64 n, i64 channel, i64 pixel, auto lanes, auto v) {
      d.put(lanes, (n * s.out_channels + channel) * pixels + pixel, v);
    });
  });
  compare("depthwise", s, d, x.data, w.data);
}

template <class Sum, int W, class T> static void check_any(const ConvShape &s) {
  Guarded<T> x(s.batch * s.in_channels * volume(s.in));
  Guarded<T> w(s.out_channels * (s.in_channels / s.groups) * volume(s.kernel));
  check_fill(x), check_fill(w);
  i64 pixels = volume(s.out);
  Collected c(s.batch * s.out_channels * pixels);
  split(conv_any_units(s), [&](i64 u0, i64 u1) {
    conv_any<Sum, W>(s, u0, u1, x.data, w.data, [&](i64 n, i64 channel, i64 pixel, auto lanes, auto v) {
      c.put(lanes, (n * s.out_channels + channel) * pixels + pixel, v);
    });
  });
  compare("any", s, c, x.data, w.data);
}

static void compare_all(const char *what, const ConvShape &s, const Collected &c, const double *want) {
  ++check_cases;
  for (i64 i = 0; i < c.n; ++i)
    if (!check_same(c, i, want[i])) return fail(what, s, c, i, want[i]);
}

static void run_transposed(const ConvShape &s, const f32 *x, const f32 *w, Collected &c) {
  i64 ic = s.in_channels / s.groups, rows = s.out_channels / s.groups * volume(s.kernel), pixels = volume(s.out);
  Guarded<f32> packed(s.groups * ceil_div(rows, kConvRows) * ic * kConvRows, true);
  Guarded<char> scratch(conv_transposed_scratch_bytes(s), true);
  for (i64 g = 0, at = 0; g < s.groups; ++g)
    for (i64 r = 0; r < rows; r += kConvRows)
      for (i64 i = 0; i < ic; ++i)
        for (i64 j = r; j < r + kConvRows; ++j) packed.data[at++] = j < rows ? w[(g * ic + i) * rows + j] : 0;
  split(conv_transposed_product_units(s), [&](i64 u0, i64 u1) {
    conv_transposed_products(s, u0, u1, x, packed.data, scratch.data);
  });
  split(conv_transposed_units(s), [&](i64 u0, i64 u1) {
    conv_transposed_gather(s, u0, u1, scratch.data, [&](i64 n, i64 channel, i64 pixel, auto lanes, auto v) {
      c.put(lanes, (n * s.out_channels + channel) * pixels + pixel, v);
    });
  });
}

template <class Sum, int W, class T> static void check_transposed(ConvShape s, int output_padding) {
  for (int d = 0; d < 3; ++d)
    s.out[d] = max_i64(
        (s.in[d] - 1) * s.stride[d] - 2 * s.padding[d] + s.dilation[d] * (s.kernel[d] - 1) + 1 + output_padding, 1);
  Guarded<T> x(s.batch * s.in_channels * volume(s.in));
  Guarded<T> w(s.in_channels * (s.out_channels / s.groups) * volume(s.kernel));
  check_fill(x), check_fill(w);
  i64 pixels = volume(s.out);
  Collected c(s.batch * s.out_channels * pixels);
  split(conv_any_units(s), [&](i64 u0, i64 u1) {
    conv_transposed_any<Sum, W>(s, u0, u1, x.data, w.data, [&](i64 n, i64 channel, i64 pixel, auto lanes, auto v) {
      c.put(lanes, (n * s.out_channels + channel) * pixels + pixel, v);
    });
  });
  double *want = (double *)calloc(size_t(c.n), sizeof(double));
  transpose(s, x.data, w.data, want);
  compare_all("transposed any", s, c, want);
  if constexpr (is_same<T, f32>) {
    Collected d(c.n);
    run_transposed(s, x.data, w.data, d);
    compare_all("transposed", s, d, want);
  }
  free(want);
}

// A 2-D shape; the end padding follows from the output size.
static ConvShape shape(i64 n, i64 ic, i64 oc, i64 g, i64 h, i64 w, i64 kh, i64 kw, i64 s, i64 d, i64 p, i64 end) {
  ConvShape c{n, ic, oc, g, {1, h, w}, {1, kh, kw}, {1, s, s}, {1, d, d}, {0, p, p}, {1, 0, 0}};
  for (int i = 1; i < 3; ++i) {
    i64 room = c.in[i] + p + end - d * (c.kernel[i] - 1) - 1;
    c.out[i] = room < 0 ? 0 : room / s + 1;
  }
  return c;
}

// Channels that fill one vector, several, half of one more, all of a unit, or leave some behind units; lines as long as a tile, a
// bit longer, and not what was said.
static void check_known_shapes() {
  check_known<6, 16, 10>(shape(1, 6, 16, 1, 14, 14, 5, 5, 1, 1, 0, 0));
  check_known<1, 6, 28>(shape(2, 1, 6, 1, 28, 28, 5, 5, 1, 1, 2, 2));
  check_known<16, 32, 8>(shape(3, 16, 32, 1, 8, 8, 3, 3, 1, 1, 1, 1));
  check_known<3, 16, 21>(shape(1, 3, 16, 1, 37, 41, 3, 3, 2, 1, 1, 1));
  check_known<5, 24, 9>(shape(1, 5, 24, 1, 9, 9, 3, 3, 1, 1, 1, 1));
  check_known<5, 24, 0>(shape(1, 5, 24, 1, 9, 20, 3, 3, 1, 1, 1, 1));
  check_known<40, 88, 49>(shape(1, 40, 88, 1, 7, 7, 1, 1, 1, 1, 0, 0));
  check_known<5, 48, 15>(shape(1, 5, 48, 1, 4, 15, 3, 3, 1, 1, 1, 1));
  check_known<5, 56, 17>(shape(1, 5, 56, 1, 4, 17, 3, 3, 1, 1, 1, 1));
  check_known<7, 40, 0>(shape(1, 7, 40, 1, 12, 3, 3, 3, 1, 1, 1, 1));
  check_known<9, 128, 5>(shape(1, 9, 128, 1, 6, 5, 3, 3, 1, 1, 1, 1));
  check_known<9, 80, 113>(shape(1, 9, 80, 1, 2, 113, 1, 3, 1, 1, 1, 1));
  check_known<9, 72, 1>(shape(1, 9, 72, 1, 1, 1, 1, 1, 1, 1, 0, 0));
  check_known<4, 4, 3>(shape(1, 4, 4, 1, 3, 3, 3, 3, 1, 1, 1, 1));
  check_known<48, 72, 8, true>(shape(2, 48, 144, 2, 9, 15, 3, 3, 2, 1, 1, 1));
  check_known<6, 16, 10>(shape(1, 6, 16, 1, 3, 6, 1, 1, 1, 1, 0, 0));
  check_known<3, 20, 4>(shape(1, 3, 20, 1, 3, 4100, 1, 3, 1024, 1, 0, 0));
}

static void check_random_shapes() {
  const i64 sizes[] = {1, 2, 3, 5, 7, 8, 14, 17, 31, 33, 40};
  for (int i = 0; i < 500; ++i) {
    i64 g = check_random(0, 3) ? 1 : check_random(1, 5);
    i64 ic = g * (check_random(0, 3) ? check_random(1, 9) : 1), oc = g * check_random(1, 19);
    ConvShape s = shape(check_random(1, 2), ic, oc, g, sizes[check_random(0, 10)], sizes[check_random(0, 10)],
                        check_random(1, 4), check_random(1, 4), check_random(1, 3), check_random(1, 3),
                        check_random(0, 3), check_random(0, 2));
    if (check_random(0, 5) == 0) { // one dimension, or three
      s.in[0] = check_random(1, 6), s.kernel[0] = check_random(1, 3), s.stride[0] = check_random(1, 2);
      s.padding[0] = check_random(0, 1), s.dilation[0] = check_random(1, 2);
      i64 room = s.in[0] + 2 * s.padding[0] - s.dilation[0] * (s.kernel[0] - 1) - 1;
      s.out[0] = room < 0 ? 0 : room / s.stride[0] + 1;
    }
    check_conv(s);
    if (volume(s.out) * ic * oc > 40000) continue;
    check_any<f64, 8, f64>(s), check_any<i32, 1, i8>(s), check_any<f32, 4, f16>(s);
    check_transposed<f32, kLanes, f32>(s, 0), check_transposed<i64, 1, i64>(s, check_random(0, 1));
  }
}

// Sums of equal products drift in one direction, and one chain of them drifts in proportion to its length: by 2e-4 here.
static void check_long_sums(const ConvShape &s) {
  i64 k = s.in_channels * volume(s.kernel);
  Guarded<f32> x(s.in_channels * volume(s.in)), packed(ceil_div(s.out_channels, kConvRows) * kConvRows * k, true);
  Guarded<char> scratch(conv_scratch_bytes(s), true);
  for (i64 i = 0; i < x.n; ++i) x.data[i] = 0.1f;
  for (i64 i = 0; i < packed.n; ++i) packed.data[i] = 0.1f;
  i64 pixels = volume(s.out);
  Collected c(s.out_channels * pixels);
  conv_pad(s, 0, conv_pad_units(s), x.data, scratch.data);
  conv(s, 0, conv_units(s), x.data, packed.data, scratch.data, [&](i64, i64 channel, i64 pixel, auto lanes, auto v) {
    c.put(lanes, channel * pixels + pixel, v);
  });
  ++check_cases;
  double want = double(k) * 0.1f * 0.1f;
  for (i64 i = 0; i < c.n; ++i)
    if (__builtin_fabs(c.value[i] / want - 1) > 5e-5)
      return CHECK_FAIL("a sum of %ld products is off by %g", (long)k, c.value[i] / want - 1);
}

int main() {
  check_conv(shape(1, 64, 64, 1, 56, 56, 3, 3, 1, 1, 1, 1)), check_conv(shape(2, 3, 20, 1, 64, 60, 7, 7, 2, 1, 3, 3));
  check_conv(shape(1, 200, 30, 1, 7, 7, 1, 1, 1, 1, 0, 0)), check_conv(shape(3, 70, 9, 1, 1, 1, 1, 1, 1, 1, 0, 0));
  check_conv(shape(2, 37, 70, 1, 15, 9, 3, 3, 1, 1, 1, 1)), check_conv(shape(1, 1, 65, 1, 1, 30, 3, 3, 1, 1, 2, 2));
  check_conv(shape(1, 40, 16, 1, 3, 3, 3, 3, 1, 1, 0, 0)), check_conv(shape(1, 3, 12, 1, 64, 64, 16, 16, 16, 1, 0, 0));
  check_conv(shape(1, 6, 6, 6, 200, 210, 3, 3, 1, 1, 1, 1)), check_conv(shape(1, 2, 2, 2, 1, 9000, 1, 5, 1, 1, 2, 2));
  check_conv(shape(1, 6, 16, 1, 14, 14, 5, 5, 1, 1, 0, 0)), check_conv(shape(1, 3, 16, 1, 37, 41, 3, 3, 2, 1, 1, 1));
  check_known_shapes();
  // Windows of each size and stride that depthwise kernels know, at borders and between, in channels that fill vectors or not.
  check_conv(shape(2, 40, 40, 40, 9, 20, 3, 3, 1, 1, 1, 1)), check_conv(shape(1, 33, 33, 33, 12, 39, 3, 3, 2, 1, 1, 1));
  check_conv(shape(1, 16, 16, 16, 17, 33, 5, 5, 1, 1, 2, 2)), check_conv(shape(1, 72, 72, 72, 14, 40, 5, 5, 2, 1, 2, 1));
  check_conv(shape(2, 24, 24, 24, 11, 27, 7, 7, 1, 1, 3, 3)), check_conv(shape(1, 20, 20, 20, 9, 3, 3, 5, 1, 1, 2, 2));
  check_conv(shape(1, 32, 32, 4, 20, 28, 3, 3, 1, 1, 1, 1)), check_conv(shape(2, 48, 144, 2, 9, 15, 3, 3, 2, 1, 1, 1));
  ConvShape wide = shape(1, 2, 4, 2, 1, 12000, 1, 3, 1, 9000, 9000, 9000);
  wide.padding[1] = 0, wide.out[1] = 1;
  check_conv(wide);
  check_conv(shape(1, 2, 2, 2, 100, 100, 3, 3, 2, 1, 1, 1));
  ConvShape far = shape(1, 1, 2, 1, 1, 3, 1, 3, 300, 1, 0, 0);
  check_transposed<f32, kLanes, f32>(far, 0);
  far.stride[1] = 1, far.stride[2] = 1500, check_transposed<f32, kLanes, f32>(far, 0);
  check_transposed<f32, kLanes, f32>(shape(1, 2, 3, 1, 9, 700, 2, 4, 2, 1, 1, 1), 0);
  check_random_shapes();
  check_winograd_bytes();
  check_groups();
  check_long_sums(shape(1, 5000, 9, 1, 5, 6, 3, 3, 1, 1, 0, 0));
  check_long_sums(shape(1, 40000, 3, 1, 5, 8, 1, 1, 1, 1, 0, 0));
  return check_end();
}
