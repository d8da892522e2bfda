//! A tap at a time, for every element type; on GPUs as a product of weights and pixels, by tiles.

use super::{
    BEGIN, Calls, Code, END, EPILOGUE, OnGpus, OnProcessors, Operand, Results, SHAPE, Site, fixed,
    no_scratch, one_order, size, windows,
};
use crate::cost::{Cost, Item};
use crate::kernels::gemm::{launch, tiles};
use crate::kernels::{self, Algorithm, Call, Form, Packing, Parameter};
use crate::loops::ConvShape;

pub(crate) static ANY: Algorithm = Algorithm {
    word: "conv.any",
    version: 1,
    description: "generic convolution",
    headers: |_| &["conv.h", "contract_any.h"],
    code: kernels::Code::Convolution(Code {
        applies: |site| {
            let may_turn = site.conv.depth_is_by_tap() || windows::suits(site);
            !site.is_last() && !site.is_of_bytes() && (may_turn || !site.conv.conv.transposed)
        },
        cost: |site| {
            // Matrix units multiply channels that are last; tiles of groups that are small are mostly empty.
            let is_fast = site.conv.depth_is_by_tap() && !windows::suits(site);
            Cost::of(if is_fast { Item::Multiply } else { Item::Single }, site.multiply_adds())
        },
        weights: |site| if site.conv.depth_is_by_tap() { by_tap(&site.shape) } else { None },
        scratch: no_scratch,
        processors: Some(OnProcessors { orders: one_order, call: |site, _, _| calls(site, "conv_any") }),
        gpus: Some(BY_TILES),
    }),
};

/// Tiles of a product on GPUs.
pub(super) const BY_TILES: OnGpus = OnGpus {
    tiles: |site, index, target| tiles::of_convolution(site.program, site.conv, index, target),
    launch: launch::of_convolution,
};

/// The calls of a function that computes one pixel and channel after the other.
pub(super) fn calls(site: &Site, function: &'static str) -> Calls {
    let operands = [SHAPE, BEGIN, END, Operand::Input, Operand::Weights, EPILOGUE];
    Calls {
        shape: site.shape.clone(),
        before: None,
        results: Results::Pixels,
        units: Call::new("conv_any_units", [SHAPE]),
        call: Call::new(function, operands).with([Parameter::Sum, "AOTI_LANES".into()]),
    }
}

fn by_tap(shape: &ConvShape) -> Option<Form> {
    let (channels, groups) = (fixed(&shape.out_channels)?, size(shape.groups)?);
    let in_channels = fixed(&shape.in_channels)? / groups.max(1);
    Some(Packing::ByTap { channels, in_channels, taps: fixed(&shape.taps())? }.into())
}
