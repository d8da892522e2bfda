//! Register tiles of pixels and channels over a padded copy of the input, whose channels are first.

use super::orders::{once, other_orders};
use super::{
    BEGIN, Before, Calls, Code, END, EPILOGUE, OnProcessors, Operand, Results, SHAPE, SHARED, Site, fixed,
    size, weight_elements,
};
use crate::constants;
use crate::cost::WorkKind;
use crate::kernels::mapping::Block;
use crate::kernels::scratch::{aligned, round_up};
use crate::kernels::{self, Algorithm, Call, Form, Packing, Scratch, typical};
use crate::loops::ConvShape;
use crate::symbolic::{Expr, NoRanges, common_divisor};
use crate::target::Target;

pub(crate) static TILED: Algorithm = Algorithm {
    word: "conv.tiled",
    version: 1,
    description: "direct convolution, tiles of pixels and channels",
    headers: |_| &["conv.h"],
    code: kernels::Code::Convolution(Code {
        applies: |site| site.turns() || (site.is_packable_first() && site.has_tiles()),
        cost: |site| {
            let cost = site.work().times(tile_waste(&site.shape));
            let cost = cost.and(site.weight(), weight_elements(&site.shape));
            if site.turns() { cost.and(WorkKind::Gather, TURNED * outputs(&site.shape)) } else { cost }
        },
        weights: |site| channel_panels(&site.shape),
        scratch: |site| conv(&site.shape, site.target),
        processors: Some(OnProcessors {
            orders: |site| other_orders(&site.shape, true),
            call: |site, block, _| calls(site, block),
        }),
        gpus: None,
    }),
};

/// What an element that is read or written across the order in which it lies costs beside an access of a lane by itself.
pub(super) const TURNED: f64 = 0.8;
/// Output channels of a register tile, `kConvRows` of `tile.h`.
const TILE_CHANNELS: f64 = constants::CONV_ROWS as f64;
/// Output pixels of a register tile: of the smallest that any level has.
const TILE_PIXELS: f64 = 8.0;
/// Floats that a channel of a padded input may have beside its planes (`conv_plan` of `conv.h`).
const CHANNEL_SLACK: i64 = 528;

fn calls(site: &Site, block: Block) -> Calls {
    let operands = [SHAPE, BEGIN, END, Operand::Input, Operand::Weights, SHARED, EPILOGUE];
    Calls {
        shape: site.shape.clone(),
        before: Some(Before {
            units: Call::new("conv_pad_units", [SHAPE]),
            grain: Some(8),
            call: Call::new("conv_pad", [SHAPE, BEGIN, END, Operand::Input, SHARED]),
        }),
        results: Results::Pixels,
        units: Call::new("conv_units", [SHAPE]),
        call: Call::new("conv", operands).with([once(block).into()]),
    }
}

/// How much more a register tile computes than is asked for.
fn tile_waste(shape: &ConvShape) -> f64 {
    let waste = |size: f64, tile: f64| (size / tile).ceil().max(1.0) * tile / size.max(1.0);
    let channels = typical(&shape.out_channels) / shape.groups.max(1) as f64;
    let pixels: f64 = shape.output.iter().map(typical).product();
    waste(channels, TILE_CHANNELS) * waste(pixels, TILE_PIXELS)
}

/// Elements of the output.
fn outputs(shape: &ConvShape) -> f64 {
    [&shape.batch, &shape.out_channels].into_iter().chain(&shape.output).map(typical).product()
}

fn channel_panels(shape: &ConvShape) -> Option<Form> {
    let (groups, channels) = (size(shape.groups)?, fixed(&shape.out_channels)?);
    Some(Packing::Conv { groups, channels, k: size(shape.k()?)? }.into())
}

/// The padded copy of the input; none where it is read in place.
fn conv(shape: &ConvShape, target: &Target) -> Scratch {
    let in_place = shape.taps().is(1)
        && (0..3).all(|d| shape.stride[d] == 1 && shape.padding[d] == 0 && shape.output[d] == shape.input[d]);
    if in_place {
        return Scratch::default();
    }
    let mut channel = Expr::int(1);
    for d in 0..3 {
        let (stride, dilation) = (shape.stride[d].max(1), shape.dilation[d].max(1));
        let common = common_divisor(stride.unsigned_abs(), dilation.unsigned_abs()).cast_signed();
        let phases = shape.kernel[d].minimum(&Expr::int(stride / common));
        let reach = (&(&shape.kernel[d] - 1) * dilation).floor_div_in(&Expr::int(stride), &NoRanges);
        channel = &channel * &(&phases * &(&shape.output[d] + &reach));
    }
    let channel = match channel.as_int() {
        // Channels a page apart would share a cache set.
        Some(floats) if floats >= 512 && floats % 512 < 16 => &round_up(&channel, 512) + 16,
        Some(_) => channel,
        None => &channel + CHANNEL_SLACK,
    };
    let floats = &(&(&shape.batch * &shape.in_channels) * &channel) + 64;
    Scratch::of_all(aligned(&(&floats * 4), target))
}
