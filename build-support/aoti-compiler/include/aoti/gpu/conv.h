// The sizes of a convolution. Up to three spatial dimensions; missing leading ones have size 1.
#pragma once

#include "../base.h"

AOTI_NAMESPACE_BEGIN

template <class I> struct ConvSizes {
  I batch, in_channels, out_channels, groups;
  I in[3], kernel[3], stride[3], dilation[3], padding[3], out[3];

  AOTI_INLINE I taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  AOTI_INLINE I depth() const { return in_channels / groups * taps(); }
};

AOTI_NAMESPACE_END
