//! Channels last: register tiles of channels and pixels.

use super::depthwise_pixels::is_depthwise;
use super::orders::{once, other_orders};
use super::{
    BEGIN, Before, Calls, Code, END, EPILOGUE, OnProcessors, Operand, Results, SHAPE, SHARED, Site, fixed,
    size, weight_elements,
};
use crate::constants;
use crate::dtype::DType;
use crate::kernels::mapping::Block;
use crate::kernels::scratch::{PAGE, PANEL, aligned};
use crate::kernels::{self, Algorithm, Call, Expansion, Form, Packing, Parameter, Scratch, typical};
use crate::loops::{Channels, ConvShape};
use crate::symbolic::Expr;
use crate::target::Target;
use crate::target::templates::GROUP_CHANNELS;

pub(crate) static PIXELS: Algorithm = Algorithm {
    word: "conv.pixels",
    version: 6,
    description: "direct convolution, channels last",
    headers: |_| &["pixels.h"],
    code: kernels::Code::Convolution(Code {
        applies: |site| site.is_last() && !site.is_of_bytes() && !is_depthwise(&site.shape),
        cost: |site| site.work().times(site.empty()).and(site.weight(), weight_elements(&site.shape)),
        weights: |site| {
            let is_f32 = site.program.buffers[site.conv.weight].dtype == DType::F32;
            tap_panels(&site.shape, is_f32)
        },
        scratch: |site| conv_pixels(&site.shape, site.order() == Channels::Last, site.target),
        processors: Some(OnProcessors {
            orders: |site| other_orders(&site.shape, false),
            call: |site, block, _| calls(site, block, site.shape.clone(), [Operand::Input, Operand::Weights]),
        }),
        gpus: None,
    }),
};

/// Bytes that panels must waste for a model to make them when it is created: the code that does takes some hundred itself.
const WASTED_BYTES: usize = 2048;
/// Channels that units of work have at most (`kPixelColumns` of `pixel_kernels.h`).
const GROUP: i64 = 2 * PANEL;
/// Floats of a page.
const SET_FLOATS: i64 = PAGE / 4;
/// Floats between pixels that would share a cache set otherwise (`kPixelSlack` of `pixels.h`).
const PIXEL_SLACK: i64 = constants::PIXEL_SLACK;

/// The calls for pixels and weights of these sizes.
pub(super) fn calls(site: &Site, block: Block, shape: ConvShape, [input, weights]: [Operand; 2]) -> Calls {
    let order = order(site.order());
    let own = [Operand::Name(order), BEGIN, END, input.clone(), weights, SHARED, EPILOGUE];
    let call = Call::new("conv_pixels", [SHAPE].into_iter().chain(own));
    let parameters = [once(block).into(), known(site, &shape).into()];
    let (results, call) = match site.writes_planes() {
        true => {
            let first = self::order(Channels::First);
            (Results::Pixels, call.with(parameters.into_iter().chain([first.into()])))
        }
        false => (Results::Channels, call.with(parameters)),
    };
    Calls {
        before: Some(padded_copy(&shape, order, input)),
        results,
        units: Call::new("conv_pixels_units", [SHAPE, Operand::Name(order)]),
        call,
        shape,
    }
}

/// Where the algorithm finds the channels of its input.
pub(super) fn order(channels: Channels) -> &'static str {
    match channels {
        Channels::First => "ChannelOrder::First",
        Channels::Last => "ChannelOrder::Last",
    }
}

/// A size as a template's parameter, where 0 is any.
fn or_open(size: &Expr) -> i64 {
    size.as_int().unwrap_or(0)
}

/// What its tiles follow from: more than one whole group of channels are as good as one, and lines matter where channels are left over.
/// So convolutions that differ in sizes have one text, and are compiled once.
pub(super) fn known(site: &Site, shape: &ConvShape) -> String {
    let channels = or_open(&shape.out_channels.floor_div(&Expr::int(shape.groups.max(1))));
    let rest = channels % GROUP;
    let line = if channels > 0 && rest == 0 { 0 } else { or_open(&pixel_line(shape, site.order())) };
    let channels = if channels >= GROUP { GROUP + rest } else { channels };
    format!("PixelShape<{channels}, {line}, {}>", shape.groups > 1)
}

/// The padded copy of the input, in memory that all workers share.
pub(super) fn padded_copy(shape: &ConvShape, order: &'static str, input: Operand) -> Before {
    // Three channels that are first have code of their own.
    let three = (order == self::order(Channels::First) && shape.in_channels.is(3)).then_some("3");
    let parameters = [order].into_iter().chain(three).map(Parameter::from);
    Before {
        units: Call::new("conv_pixels_pad_units", [SHAPE, Operand::Name(order)]),
        grain: Some(8),
        call: Call::new("conv_pixels_pad", [SHAPE, BEGIN, END, input, SHARED]).with(parameters),
    }
}

/// How much longer vectors of channels take than full ones where half of the widest is enough: lanes are empty, or sums of one vector
/// are too few to overlap.
pub(super) fn empty_lanes(shape: &ConvShape) -> f64 {
    let (most, channels) = (GROUP_CHANNELS as f64, typical(&shape.out_channels));
    if channels <= most { 2.0 * most / channels.max(1.0) } else { 1.0 }
}

pub(super) fn tap_panels(shape: &ConvShape, is_f32: bool) -> Option<Form> {
    let groups = size(shape.groups)?;
    let (channels, in_channels) = (fixed(&shape.out_channels)?, fixed(&shape.in_channels)? / groups.max(1));
    let taps = fixed(&shape.taps())?;
    // Panels that hold a quarter more than the weights are worth memory of each model's own.
    let (own, rows) = (channels / groups.max(1), groups.saturating_mul(in_channels).saturating_mul(taps));
    let empty = own.next_multiple_of(PANEL as usize) - own;
    let grows = is_f32 && empty > own / 4 && empty.saturating_mul(rows).saturating_mul(4) > WASTED_BYTES;
    Some(match grows {
        true => Form::Expanded(Expansion::Panels { groups, channels, in_channels, taps }),
        false => Packing::TapPanels { groups, channels, in_channels, taps }.into(),
    })
}

/// Pixels that some tap reads, along each dimension.
fn reach(shape: &ConvShape) -> [Expr; 3] {
    std::array::from_fn(|d| {
        let taps = &(&shape.kernel[d] - 1) * shape.dilation[d];
        &(&(&shape.output[d] - 1) * shape.stride[d]) + &(&taps + 1)
    })
}

/// Whether pixels so far apart would share a cache set, or may.
fn shares_a_set(shape: &ConvShape) -> bool {
    let channels = shape.in_channels.as_int();
    channels.is_none_or(|channels| shape.stride[2] * channels % SET_FLOATS == 0)
}

/// Whether pixels are read where they lie.
fn pixels_in_place(shape: &ConvShape, is_last: bool) -> bool {
    let reach = reach(shape);
    let lies_inside = |d: usize| {
        let rest = (&shape.input[d] - &reach[d]).as_int();
        shape.padding[d] == 0 && rest.is_some_and(|rest| rest >= 0)
    };
    is_last && !shares_a_set(shape) && (0..3).all(lies_inside)
}

/// The padded copy of an input whose channels are last, or become last in it; none where it is read in place.
pub(super) fn conv_pixels(shape: &ConvShape, is_last: bool, target: &Target) -> Scratch {
    if pixels_in_place(shape, is_last) {
        return Scratch::default();
    }
    let pitch =
        if shares_a_set(shape) { &shape.in_channels + PIXEL_SLACK } else { shape.in_channels.clone() };
    let pixels = reach(shape).into_iter().map(|size| size.maximum(&Expr::int(0)));
    let floats = pixels.fold(&shape.batch * &pitch, |floats, size| &floats * &size);
    Scratch::of_all(aligned(&(&floats * 4), target))
}

/// Output pixels that are equally far apart in what `conv_pixels` reads, the `length` of its plan. Tiles follow from it, and
/// are right whatever it is.
fn pixel_line(shape: &ConvShape, channels: Channels) -> Expr {
    let in_place = pixels_in_place(shape, channels == Channels::Last);
    let [slices, rows, columns] = if in_place { shape.input.clone() } else { reach(shape) };
    let slice = &rows * &columns;
    let apart = [&slices * &slice, &slice * shape.stride[0], &columns * shape.stride[1]];
    let counts = [&shape.batch, &shape.output[0], &shape.output[1]];
    let (mut length, mut step) = (shape.output[2].clone(), Expr::int(shape.stride[2]));
    // Rows, slices and images whose pixels follow on from each other are one line.
    for (count, apart) in counts.into_iter().zip(apart).rev().filter(|(count, _)| !count.is(1)) {
        if length.is(1) {
            step = apart.clone();
        }
        if &length * &step != apart {
            break;
        }
        length = &length * count;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_long_as_pixels_are_equally_far_apart() {
        let line = |sizes: [i64; 3], kernel: i64, stride: i64, padding: i64, channels: Channels| {
            let spatial = |size: i64| [1, size, size].map(Expr::int);
            let shape = ConvShape {
                batch: Expr::sym(crate::symbolic::Symbol::size(0)),
                in_channels: Expr::int(sizes[0]),
                out_channels: Expr::int(16),
                groups: 1,
                input: spatial(sizes[1]),
                kernel: spatial(kernel),
                stride: [1, stride, stride],
                dilation: [1; 3],
                padding: [0, padding, padding],
                output: spatial(sizes[2]),
            };
            let one = ConvShape { batch: Expr::int(1), ..shape.clone() };
            [pixel_line(&one, channels).as_int(), pixel_line(&shape, channels).as_int()]
        };
        assert_eq!(line([6, 14, 10], 5, 1, 0, Channels::Last), [Some(10), Some(10)], "rows lie apart");
        assert_eq!(line([6, 14, 14], 1, 1, 0, Channels::Last), [Some(196), None], "images follow on");
        assert_eq!(line([6, 14, 14], 1, 1, 0, Channels::First), [Some(196), None], "in a copy too");
        assert_eq!(line([6, 8, 8], 3, 1, 1, Channels::Last), [Some(8), Some(8)], "there is padding between");
        assert_eq!(
            line([6, 14, 7], 2, 2, 0, Channels::Last),
            [Some(7), Some(7)],
            "every second row is left out"
        );
        assert_eq!(line([6, 5, 1], 5, 1, 0, Channels::Last), [Some(1), None], "one pixel of each image");
    }
}
