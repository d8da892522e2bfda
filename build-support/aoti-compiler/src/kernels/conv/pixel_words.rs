//! As [`super::pixels`], of numbers of one byte: unsigned ones times signed weights, four channels at once.

use super::depthwise_pixels::is_depthwise;
use super::orders::other_orders;
use super::pixels::{calls, conv_pixels, tap_panels};
use super::{Code, OnProcessors, Operand, multiply_adds, weight_elements};
use crate::cost::{Cost, WorkKind};
use crate::kernels::{self, Algorithm, Form, Packing};
use crate::loops::ConvShape;
use crate::target::templates::WORD;

pub(crate) static PIXEL_WORDS: Algorithm = Algorithm {
    word: "conv.pixel-words",
    version: 2,
    description: "direct convolution of bytes, channels last",
    headers: |_| &["pixels.h"],
    code: kernels::Code::Convolution(Code {
        applies: |site| site.is_of_bytes() && !is_depthwise(&site.shape),
        cost: |site| {
            let shape = site.shape_in_words();
            let split = if site.may_split_words() { SPLIT_WORD } else { 1.0 };
            let work = Cost::of(WorkKind::VectorFma, split * multiply_adds(&shape));
            work.and(site.weight(), weight_elements(&shape))
        },
        weights: |site| tap_words(&site.shape_in_words()),
        scratch: |site| conv_pixels(&site.shape_in_words(), true, site.target),
        processors: Some(OnProcessors {
            orders: |site| other_orders(&site.shape, false),
            call: |site, block, _| {
                calls(
                    site,
                    block,
                    site.shape_in_words(),
                    [Operand::InputAs("i32"), Operand::WeightsAs("i32")],
                )
            },
        }),
        gpus: None,
    }),
};

/// Multiply-adds of floats that take as long as one of words that are split. An instruction for them takes as long as one, but all
/// ways to compute a convolution of bytes use that where it is there.
const SPLIT_WORD: f64 = 2.25;

/// As `tap_panels`, of weights whose input channels count as words.
fn tap_words(shape: &ConvShape) -> Option<Form> {
    let Form::Packed(Packing::TapPanels { groups, channels, in_channels, taps }) = tap_panels(shape, false)?
    else {
        return None;
    };
    let in_channels = in_channels * usize::try_from(WORD).ok()?;
    Some(Packing::TapWords { groups, channels, in_channels, taps }.into())
}
