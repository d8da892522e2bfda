//! As [`super::depthwise_pixels`], of bytes: four taps at once where a processor has products of words, else widened where they are
//! read. Weights are floats.

use super::depthwise_pixels::{calls, depthwise_work, is_depthwise, tap_columns};
use super::{Code, OnProcessors, Operand, no_scratch, one_order};
use crate::kernels::{self, Algorithm};

pub(crate) static DEPTHWISE_BYTES: Algorithm = Algorithm {
    word: "conv.depthwise-bytes",
    version: 2,
    description: "depthwise convolution of bytes, channels last",
    headers: |_| &["depthwise_words.h"],
    code: kernels::Code::Convolution(Code {
        applies: |site| site.is_of_bytes() && is_depthwise(&site.shape),
        cost: |site| depthwise_work(&site.shape),
        weights: |site| tap_columns(&site.shape),
        scratch: no_scratch,
        processors: Some(OnProcessors {
            orders: one_order,
            call: |site, _, _| {
                calls(site, ["conv_depthwise_words_units", "conv_depthwise_words"], Operand::WeightsAs("f32"))
            },
        }),
        gpus: None,
    }),
};
