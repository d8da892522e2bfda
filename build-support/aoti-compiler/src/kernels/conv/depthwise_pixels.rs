//! Channels last, one output channel for each input channel.

use super::{
    BEGIN, Calls, Code, END, EPILOGUE, OnProcessors, Operand, Results, SHAPE, Site, fixed, multiply_adds,
    no_scratch, one_order,
};
use crate::cost::{Cost, WorkKind};
use crate::kernels::{self, Algorithm, Call, Form, Packing, typical};
use crate::loops::ConvShape;
use crate::symbolic::Expr;

pub(crate) static DEPTHWISE_PIXELS: Algorithm = Algorithm {
    word: "conv.depthwise_pixels",
    version: 2,
    description: "depthwise convolution, channels last",
    headers: |_| &["depthwise_pixels.h"],
    code: kernels::Code::Convolution(Code {
        applies: |site| site.is_last() && !site.is_of_bytes() && is_depthwise(&site.shape),
        cost: |site| depthwise_work(&site.shape),
        weights: |site| tap_columns(&site.shape),
        scratch: no_scratch,
        processors: Some(OnProcessors {
            orders: one_order,
            call: |site, _, _| {
                calls(site, ["conv_depthwise_pixels_units", "conv_depthwise_pixels"], Operand::Weights)
            },
        }),
        gpus: None,
    }),
};

/// Whether each group is of one input channel and one output channel.
pub(super) fn is_depthwise(shape: &ConvShape) -> bool {
    let is_one = |channels: &Expr| channels.is(shape.groups);
    shape.groups != 1 && is_one(&shape.in_channels) && is_one(&shape.out_channels)
}

/// Of two functions: units of work, and what computes them.
pub(super) fn calls(site: &Site, [units, call]: [&'static str; 2], weights: Operand) -> Calls {
    let operands = [SHAPE, BEGIN, END, Operand::Input, weights, EPILOGUE];
    Calls {
        shape: site.shape.clone(),
        before: None,
        results: Results::Channels,
        units: Call::new(units, [SHAPE]),
        call: Call::new(call, operands),
    }
}

/// A multiply-add of one channel reuses nothing: elements are loaded for each of them, and those of the input and the output come
/// and go for few of them.
pub(super) fn depthwise_work(shape: &ConvShape) -> Cost {
    let elements = |channels: &Expr, sizes: &[Expr; 3]| {
        [&shape.batch, channels].into_iter().chain(sizes).map(typical).product::<f64>()
    };
    let accesses = elements(&shape.in_channels, &shape.input) + elements(&shape.out_channels, &shape.output);
    Cost::of(WorkKind::StreamedFma, multiply_adds(shape)).and(WorkKind::Access, accesses)
}

/// A row for each tap of weights of one channel each.
pub(super) fn tap_columns(shape: &ConvShape) -> Option<Form> {
    let (k, n) = (fixed(&shape.taps())?, fixed(&shape.out_channels)?);
    Some(Packing::Product { offset: 0, row_stride: 1, col_stride: k, k, n, narrow: false }.into())
}
