// Where a convolution, seen as a product of weights and pixels, finds its operands. Up to three spatial dimensions; missing
// leading ones have size 1.
#pragma once

#include "contract.h"

AOTI_NAMESPACE_BEGIN

template <class I> struct ConvSizes {
  I batch, in_channels, out_channels, groups;
  I in[3], kernel[3], stride[3], dilation[3], padding[3], out[3];

  AOTI_INLINE I taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  AOTI_INLINE I depth() const { return in_channels / groups * taps(); }

  // The element of the input for a tap and channel (depth) and a pixel of an image (column), or -1 in the padding.
  AOTI_INLINE I direct(I group, I depth, I column) const {
    I k[3], o[3], at[3];
    split(depth, column, k, o);
    for (int d = 0; d < 3; ++d) {
      at[d] = o[d] * stride[d] + k[d] * dilation[d] - padding[d];
      if (at[d] < 0 || at[d] >= in[d]) return -1;
    }
    return element(group, depth, column, at);
  }
  // The same for a transposed one: which input pixel reaches the output pixel through the tap.
  AOTI_INLINE I transposed(I group, I depth, I column) const {
    I k[3], o[3], at[3];
    split(depth, column, k, o);
    for (int d = 0; d < 3; ++d) {
      I reach = o[d] + padding[d] - k[d] * dilation[d];
      if (reach < 0 || reach % stride[d] != 0) return -1;
      at[d] = reach / stride[d];
      if (at[d] >= in[d]) return -1;
    }
    return element(group, depth, column, at);
  }
  // Weights are [out_channels][in_channels / groups][taps], those of a transposed one [in_channels][out_channels / groups][taps].
  AOTI_INLINE I weight_direct(I group, I row, I depth) const {
    return (group * (out_channels / groups) + row) * this->depth() + depth;
  }
  AOTI_INLINE I weight_transposed(I group, I row, I depth) const {
    return ((group * (in_channels / groups) + depth / taps()) * (out_channels / groups) + row) * taps() + depth % taps();
  }

private:
  AOTI_INLINE void split(I depth, I column, I *k, I *o) const {
    I tap = depth % taps(), pixel = column % (out[0] * out[1] * out[2]);
    k[2] = tap % kernel[2], k[1] = tap / kernel[2] % kernel[1], k[0] = tap / kernel[2] / kernel[1];
    o[2] = pixel % out[2], o[1] = pixel / out[2] % out[1], o[0] = pixel / out[2] / out[1];
  }
  AOTI_INLINE I element(I group, I depth, I column, const I *at) const {
    I image = column / (out[0] * out[1] * out[2]), channel = group * (in_channels / groups) + depth / taps();
    return (((image * in_channels + channel) * in[0] + at[0]) * in[1] + at[1]) * in[2] + at[2];
  }
};

AOTI_NAMESPACE_END
