//! As [`super::depthwise_pixels`], of bytes that are widened where they are read: weights are floats, and so are sums, which are
//! exact.

use super::depthwise_pixels::{calls, depthwise_work, is_depthwise, tap_columns};
use super::{Code, OnProcessors, Operand, no_scratch, one_order};
use crate::kernels::{self, Algorithm};

pub(crate) static DEPTHWISE_BYTES: Algorithm = Algorithm {
    word: "conv.depthwise-bytes",
    version: 1,
    description: "depthwise convolution of bytes, channels last",
    headers: |_| &["depthwise_pixels.h"],
    code: kernels::Code::Convolution(Code {
        applies: |site| site.is_of_bytes() && is_depthwise(&site.shape),
        cost: |site| depthwise_work(&site.shape),
        weights: |site| tap_columns(&site.shape),
        scratch: no_scratch,
        processors: Some(OnProcessors {
            orders: one_order,
            call: |site, _, _| calls(site, Operand::WeightsAs("f32")),
        }),
        gpus: None,
    }),
};
