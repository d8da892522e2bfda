//! Ways to compute a convolution.

use super::scratch::PANEL;
use super::windows::window_blocks;
use super::{
    Candidate, Choice, Conv, Expansion, Form, PackedOperand, Packing, Scratch, Template, kind_of_weights,
    scratch, typical, words,
};
use crate::cost::{Cost, Item};
use crate::dtype::DType;
use crate::loops::{Channels, ConvShape, Convolution, Program, Storage};
use crate::symbolic::Expr;
use crate::target::Target;
use crate::target::templates::{GROUP_CHANNELS, MAX_TAPS, WORD};

/// Bytes that panels must waste for a model to make them when it is created: the code that does takes some hundred itself.
const WASTED_BYTES: usize = 2048;
/// What an element that is read or written across the order in which it lies costs beside an access of a lane by itself.
const TURNED: f64 = 0.8;
/// Output channels of a register tile, `kConvRows` of `tile.h`.
const TILE_CHANNELS: f64 = 8.0;
/// Output pixels of a register tile: of the smallest that any level has.
const TILE_PIXELS: f64 = 8.0;

/// The ways to compute a convolution.
pub(super) fn candidates(program: &Program, conv: &Convolution, target: &Target) -> Vec<Candidate> {
    let shape = ConvShape::new(program, conv);
    if words::is_of_words(program, conv) && conv.input_channels == Channels::Last {
        return vec![of_words(program, conv, &words::shape_in_words(&shape), target)];
    }
    of_numbers(program, conv, &shape, target)
}

/// The ways to compute a convolution of numbers that are multiplied one by one.
fn of_numbers(program: &Program, conv: &Convolution, shape: &ConvShape, target: &Target) -> Vec<Candidate> {
    let packable = is_packable(program, conv, shape) && matches!(target, Target::Cpu(_));
    let mut all = vec![];
    let mut add = |template: Conv, form: Option<Form>, scratch: Scratch, cost: Cost| {
        let packed = form.map(|form| PackedOperand { buffer: conv.weight, form });
        let choice =
            Choice { template: Template::Conv(template), packed: packed.into_iter().collect(), scratch };
        all.push(Candidate { choice, cost });
    };
    let products = multiply_adds(shape);
    let weight = kind_of_weights(program, target);
    let work = Cost::of(Item::Multiply, products);
    let is_f32 = program.buffers[conv.weight].dtype == DType::F32;
    let is_last = [conv.input_channels, conv.output_channels].contains(&Channels::Last);
    let has_tiles = packable && shape.taps().as_int().is_some_and(|taps| taps <= MAX_TAPS);
    let tiled = work.times(tile_waste(shape)).and(weight, weights(shape));
    // Vectors of pixels read channels that are first, and may write them to where they are last.
    let is_first = conv.input_channels == Channels::First || shape.in_channels.is(1);
    let turns = is_last && is_first && has_tiles && shape.groups == 1;
    let empty = if turns { empty_lanes(shape) } else { 1.0 };
    if is_last && matches!(target, Target::Cpu(_)) {
        if shape.groups == 1 || !shape.in_channels.is(shape.groups) {
            let in_order = shape.input_channels(conv) == Channels::Last;
            let scratch = scratch::conv_pixels(shape, in_order, target);
            let of_vectors = work.times(empty).and(weight, weights(shape));
            add(Conv::Pixels, tap_panels(shape, is_f32), scratch, of_vectors);
            if turns {
                let cost = tiled.and(Item::Gather, TURNED * outputs(shape));
                add(Conv::Tiled, channel_panels(shape), scratch::conv(shape, target), cost);
            }
            if let Some(form) = winograd_panels(shape).filter(|_| shape.groups == 1) {
                let scratch = scratch::conv_winograd(shape, in_order, target);
                add(Conv::Winograd, Some(form), scratch, winograd_work(conv, shape, weight, empty));
            }
        } else {
            add(Conv::DepthwisePixels, tap_columns(shape), Scratch::default(), depthwise_work(shape));
        }
        return all;
    }
    if matches!(target, Target::Gpu(_)) && !window_blocks(program, conv).is_empty() {
        // Ordinary units multiply, and tiles of groups that are so small are mostly empty.
        add(Conv::Windows, None, Scratch::default(), Cost::of(Item::Loaded, products));
        let form = if conv.depth_is_by_tap() { by_tap(shape) } else { None };
        add(Conv::Any, form, Scratch::default(), Cost::of(Item::Single, products));
        return all;
    }
    if conv.depth_is_by_tap() {
        add(Conv::Any, by_tap(shape), Scratch::default(), work);
        return all;
    }
    let slow = Cost::of(Item::Single, products);
    if conv.conv.transposed {
        add(Conv::TransposedAny, None, Scratch::default(), slow);
        if packable {
            add(Conv::Transposed, transposed_panels(shape), scratch::conv_transposed(shape, target), work);
        }
        return all;
    }
    add(Conv::Any, None, Scratch::default(), slow);
    if packable {
        if shape.groups == 1 && shape.covers_input() {
            add(Conv::Product, product_panels(shape), Scratch::default(), work);
        }
        if shape.in_channels.is(shape.groups) {
            add(Conv::Depthwise, None, Scratch::default(), Cost::of(Item::Loaded, products));
        }
        if has_tiles {
            add(Conv::Tiled, channel_panels(shape), scratch::conv(shape, target), tiled);
        }
        if shape.groups == 1
            && let Some(form) = winograd_panels(shape)
        {
            let scratch = scratch::conv_winograd(shape, false, target);
            add(Conv::Winograd, Some(form), scratch, winograd_work(conv, shape, weight, empty));
        }
    }
    all
}

/// The way to compute a convolution of words.
fn of_words(program: &Program, conv: &Convolution, shape: &ConvShape, target: &Target) -> Candidate {
    let form = tap_panels(shape, false).and_then(|form| match form {
        Form::Packed(Packing::TapPanels { groups, channels, in_channels, taps }) => {
            let in_channels = in_channels * usize::try_from(WORD).ok()?;
            Some(Packing::TapWords { groups, channels, in_channels, taps }.into())
        }
        Form::Packed(_) | Form::Expanded(_) => None,
    });
    let packed = form.map(|form| PackedOperand { buffer: conv.weight, form });
    let cost =
        Cost::of(Item::Multiply, multiply_adds(shape)).and(kind_of_weights(program, target), weights(shape));
    let (template, scratch) = (Template::Conv(Conv::PixelWords), scratch::conv_pixels(shape, true, target));
    Candidate { choice: Choice { template, packed: packed.into_iter().collect(), scratch }, cost }
}

/// Whether the weight is a constant that this kernel alone reads, of sizes that are known.
fn is_packable(program: &Program, conv: &Convolution, shape: &ConvShape) -> bool {
    let is_constant = matches!(program.buffers[conv.weight].storage, Storage::Constant(_));
    let read_elsewhere =
        conv.input == conv.weight || conv.epilogue.reads().any(|buffer| buffer == conv.weight);
    let padded = shape.padding.iter().all(|padding| *padding >= 0);
    is_constant && !read_elsewhere && conv.dtype == DType::F32 && shape.has_fixed_weight() && padded
}

fn multiply_adds(shape: &ConvShape) -> f64 {
    let sizes = [&shape.batch, &shape.out_channels, &shape.in_channels];
    let spatial = shape.output.iter().chain(&shape.kernel);
    sizes.into_iter().chain(spatial).map(typical).product::<f64>() / shape.groups.max(1) as f64
}

/// How much more a register tile computes than is asked for.
fn tile_waste(shape: &ConvShape) -> f64 {
    let waste = |size: f64, tile: f64| (size / tile).ceil().max(1.0) * tile / size.max(1.0);
    let channels = typical(&shape.out_channels) / shape.groups.max(1) as f64;
    let pixels: f64 = shape.output.iter().map(typical).product();
    waste(channels, TILE_CHANNELS) * waste(pixels, TILE_PIXELS)
}

/// How much longer vectors of channels take than full ones where half of the widest is enough: lanes are empty, or sums of one vector
/// are too few to overlap.
fn empty_lanes(shape: &ConvShape) -> f64 {
    let (most, channels) = (GROUP_CHANNELS as f64, typical(&shape.out_channels));
    if channels <= most { 2.0 * most / channels.max(1.0) } else { 1.0 }
}

/// Elements of the output.
fn outputs(shape: &ConvShape) -> f64 {
    [&shape.batch, &shape.out_channels].into_iter().chain(&shape.output).map(typical).product()
}

fn size(value: i64) -> Option<usize> {
    usize::try_from(value).ok()
}

fn fixed(expr: &Expr) -> Option<usize> {
    expr.as_int().and_then(size)
}

fn product_panels(shape: &ConvShape) -> Option<Form> {
    let k = size(shape.k()?)?;
    let n = fixed(&shape.out_channels)?;
    Some(Packing::Product { offset: 0, row_stride: 1, col_stride: k, k, n, narrow: false }.into())
}

fn channel_panels(shape: &ConvShape) -> Option<Form> {
    let (groups, channels) = (size(shape.groups)?, fixed(&shape.out_channels)?);
    Some(Packing::Conv { groups, channels, k: size(shape.k()?)? }.into())
}

fn by_tap(shape: &ConvShape) -> Option<Form> {
    let (channels, groups) = (fixed(&shape.out_channels)?, size(shape.groups)?);
    let in_channels = fixed(&shape.in_channels)? / groups.max(1);
    Some(Packing::ByTap { channels, in_channels, taps: fixed(&shape.taps())? }.into())
}

fn tap_panels(shape: &ConvShape, is_f32: bool) -> Option<Form> {
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

/// Weights of 3 x 3 taps that meet the pixels of images one by one, of convolutions that [`may_round`].
fn winograd_panels(shape: &ConvShape) -> Option<Form> {
    let sizes =
        |of: &[Expr; 3], wanted: [i64; 3]| of.iter().zip(wanted).all(|(size, wanted)| size.is(wanted));
    let is_plain = shape.stride == [1; 3] && shape.dilation == [1; 3] && shape.padding[0] == 0;
    let fits = is_plain && sizes(&shape.kernel, [1, 3, 3]) && shape.input[0].is(1);
    let (channels, in_channels) = (fixed(&shape.out_channels)?, fixed(&shape.in_channels)?);
    fits.then_some(Form::Expanded(Expansion::Winograd { channels, in_channels }))
}

/// Tiles that are multiplied at once (`kPixelRows` of `pixels.h`, with the widest vectors), and as how many the last
/// ones count at least.
const WINOGRAD_ROWS: f64 = 14.0;
const WINOGRAD_LEAST_ROWS: f64 = 4.0;

/// Multiply-adds that this must save for each image, as it needs code of its own: a small network's library stays small.
const WINOGRAD_CODE: f64 = 100_000.0;

/// Products at 16 points of each tile of 2 x 2 pixels, the sums and differences that lead there and back, and, where channels
/// are first, elements that are read or written across that order. Tiles are multiplied by rows of registers, and those of one
/// image are where the batch is not known, because it may be the only one.
fn winograd_work(conv: &Convolution, shape: &ConvShape, weight: Item, empty: f64) -> Cost {
    let whole = |tiles: f64| {
        let rest = tiles % WINOGRAD_ROWS;
        tiles - rest + if rest > 0.0 { rest.max(WINOGRAD_LEAST_ROWS) } else { 0.0 }
    };
    let image: f64 = shape.output.iter().map(|size| (typical(size) / 2.0).ceil()).product();
    let batch = typical(&shape.batch);
    let images = if shape.batch.as_int().is_some() { 1.0 } else { batch };
    let tiles = whole(image * batch / images) * images;
    let (ins, outs) = (typical(&shape.in_channels), typical(&shape.out_channels));
    let turned = |channels: Channels| f64::from(u8::from(channels == Channels::First)) * TURNED;
    Cost::of(Item::Multiply, 16.0 * tiles * ins * outs * empty + WINOGRAD_CODE * images)
        .and(Item::Transformed, 16.0 * tiles * (ins + outs))
        .and(
            Item::Gather,
            4.0 * tiles * (turned(conv.input_channels) * ins + turned(conv.output_channels) * outs),
        )
        .and(weight, 16.0 * ins * outs)
}

/// A multiply-add of one channel reuses nothing: elements are loaded for each of them, and those of the input and the output come
/// and go for few of them.
fn depthwise_work(shape: &ConvShape) -> Cost {
    let elements = |channels: &Expr, sizes: &[Expr; 3]| {
        [&shape.batch, channels].into_iter().chain(sizes).map(typical).product::<f64>()
    };
    let accesses = elements(&shape.in_channels, &shape.input) + elements(&shape.out_channels, &shape.output);
    Cost::of(Item::Loaded, multiply_adds(shape)).and(Item::Access, accesses)
}

/// Elements of the weights.
fn weights(shape: &ConvShape) -> f64 {
    let channels = [&shape.in_channels, &shape.out_channels];
    shape.kernel.iter().chain(channels).map(typical).product::<f64>() / shape.groups.max(1) as f64
}

/// A row for each tap of weights of one channel each.
fn tap_columns(shape: &ConvShape) -> Option<Form> {
    let (k, n) = (fixed(&shape.taps())?, fixed(&shape.out_channels)?);
    Some(Packing::Product { offset: 0, row_stride: 1, col_stride: k, k, n, narrow: false }.into())
}

fn transposed_panels(shape: &ConvShape) -> Option<Form> {
    let groups = size(shape.groups)?;
    let rows = fixed(&shape.out_channels)? / groups.max(1) * fixed(&shape.taps())?;
    Some(Packing::ConvTransposed { groups, in_channels: fixed(&shape.in_channels)?, rows }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::headers::numbers::number;
    use crate::target::templates::MAX_DEPTHWISE_TAPS;

    #[test]
    fn sizes_are_those_of_the_headers() {
        assert_eq!(MAX_TAPS, number("conv.h", "kMaxTaps"));
        assert_eq!(MAX_DEPTHWISE_TAPS, number("depthwise_pixels.h", "kDepthwiseTaps"));
        assert_eq!(TILE_CHANNELS, number("tile.h", "kConvRows") as f64);
        assert_eq!(WINOGRAD_ROWS, number("pixels.h", "kPixelRows") as f64);
    }
}
