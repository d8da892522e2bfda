//! Channels last, few channels a group, or one.

use super::depthwise_pixels::{depthwise_work, is_depthwise};
use super::{
    BEGIN, Calls, Code, END, EPILOGUE, OnProcessors, Operand, Results, SHAPE, Site, fixed, no_scratch,
    one_order, weight_elements,
};
use crate::kernels::{self, Algorithm, Call, Form, Packing};
use crate::loops::{Channels, ConvShape};
use crate::symbolic::Expr;
use crate::target::templates::{Groups, WIDEST_VECTOR};

pub(crate) static GROUP_PIXELS: Algorithm = Algorithm {
    word: "conv.group_pixels",
    version: 1,
    description: "convolution of few channels a group, channels last",
    headers: |_| &["group_pixels.h"],
    code: kernels::Code::Convolution(Code {
        applies: |site| {
            site.is_last()
                && site.order() == Channels::Last
                && !site.is_of_bytes()
                && groups(&site.shape).is_some_and(|groups| groups.has_template())
                && !(is_depthwise(&site.shape) && has_streams(&site.shape))
        },
        cost: |site| match is_depthwise(&site.shape) {
            true => depthwise_work(&site.shape),
            false => site.work().and(site.weight(), weight_elements(&site.shape)),
        },
        weights: |site| columns_of_taps(&site.shape),
        scratch: no_scratch,
        processors: Some(OnProcessors { orders: one_order, call: |site, _, _| calls(site) }),
        gpus: None,
    }),
};

/// Channels of a pixel from which on it is so many cache lines that each pixel of a tile is a stream of them.
const STREAMED: i64 = 128;

/// Whether each pixel is a stream of cache lines, of which processors follow few: where a vector reads little of a pixel, tiles have
/// fewer of them, and depthwise convolutions are left to [`super::depthwise_pixels`].
fn has_streams(shape: &ConvShape) -> bool {
    shape.in_channels.as_int().is_none_or(|channels| channels >= STREAMED)
}

/// What is asked of the groups of a convolution, where that is known.
fn groups(shape: &ConvShape) -> Option<Groups> {
    let count = shape.groups.max(1);
    let kernel = [0, 1, 2].map(|d| shape.kernel[d].as_int());
    let [Some(slices), Some(rows), Some(taps)] = kernel else { return None };
    Some(Groups {
        count,
        own: shape.in_channels.as_int()? / count,
        each: shape.out_channels.as_int()? / count,
        rows: slices.checked_mul(rows)?,
        taps,
        stride: shape.stride[2],
        dilation: shape.dilation[2],
    })
}

fn calls(site: &Site) -> Calls {
    let shape = &site.shape;
    let operands = [SHAPE, BEGIN, END, Operand::Input, Operand::Weights, EPILOGUE];
    let known = [known(shape).into()];
    Calls {
        shape: shape.clone(),
        before: None,
        results: Results::Channels,
        units: Call::new("conv_group_pixels_units", [SHAPE]).with(known.clone()),
        call: Call::new("conv_group_pixels", operands).with(known),
    }
}

/// What its tiles follow from.
fn known(shape: &ConvShape) -> String {
    let Groups { own, each, taps, stride, .. } = groups(shape).expect("sizes of a candidate are known");
    let has_streams = each < WIDEST_VECTOR && has_streams(shape);
    let width = shape.output[2].as_int().filter(|_| !has_streams).unwrap_or(0);
    let whole =
        &shape.out_channels.floor_div(&Expr::int(WIDEST_VECTOR)) * WIDEST_VECTOR == shape.out_channels;
    format!("GroupShape<{own}, {each}, {taps}, {stride}, {width}, {whole}>")
}

/// A row for each input channel of a group and tap.
fn columns_of_taps(shape: &ConvShape) -> Option<Form> {
    let own = fixed(&shape.in_channels)? / usize::try_from(shape.groups).ok()?.max(1);
    let (k, n) = (own * fixed(&shape.taps())?, fixed(&shape.out_channels)?);
    Some(Packing::Product { offset: 0, row_stride: 1, col_stride: k, k, n, narrow: false }.into())
}
