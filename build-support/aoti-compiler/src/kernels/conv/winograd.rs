//! 3 x 3 taps by Winograd's algorithm: register tiles of channels and tiles of 2 x 2 pixels, with fewer products than taps.

use super::pixels::{conv_pixels, order, padded_copy};
use super::tiled::TURNED;
use super::{
    BEGIN, Calls, Code, END, EPILOGUE, OnProcessors, Operand, Results, SHAPE, SHARED, Site, fixed, one_order,
};
use crate::constants;
use crate::cost::{Cost, WorkKind};
use crate::kernels::scratch::{PANEL, aligned, round_up};
use crate::kernels::{self, Algorithm, Call, Expansion, Form, Scratch, typical};
use crate::loops::{Channels, ConvShape, Convolution};
use crate::symbolic::Expr;
use crate::target::Target;

pub(crate) static WINOGRAD: Algorithm = Algorithm {
    word: "conv.winograd",
    version: 2,
    description: "Winograd convolution, tiles of 2 x 2 pixels, channels last",
    headers: |_| &["winograd.h"],
    code: kernels::Code::Convolution(Code {
        applies: |site| {
            let is_readable = (site.is_last() && !site.is_of_bytes()) || site.is_packable_first();
            is_readable && site.shape.groups == 1 && winograd_panels(&site.shape).is_some()
        },
        cost: |site| winograd_work(site.conv, &site.shape, site.weight(), site.empty()),
        weights: |site| winograd_panels(&site.shape),
        scratch: |site| {
            let in_order = site.is_last() && site.order() == Channels::Last;
            conv_winograd(&site.shape, in_order, site.target)
        },
        processors: Some(OnProcessors { orders: one_order, call: |site, _, scratch| calls(site, scratch) }),
        gpus: None,
    }),
};

/// Points of a tile, and tiles of a work unit (`kWinogradPoints` and `kWinogradTiles` of `winograd.h`).
const WINOGRAD_POINTS: i64 = constants::WINOGRAD_POINTS;
const WINOGRAD_TILES: i64 = constants::WINOGRAD_TILES;
/// Floats of the pixels of a work unit (`kWinogradPlanes` of `winograd.h`).
const WINOGRAD_PLANES: i64 = 4 * PANEL * (2 * WINOGRAD_TILES + 8) + 64;
/// Tiles that are multiplied at once (`kPixelRows` of `pixel_kernels.h`, with the widest vectors), and as how many the last
/// ones count at least.
const WINOGRAD_ROWS: f64 = constants::PIXEL_ROWS as f64;
const WINOGRAD_LEAST_ROWS: f64 = 4.0;
/// Multiply-adds that this must save for each image, as it needs code of its own: a small network's library stays small.
const WINOGRAD_CODE: f64 = 100_000.0;

fn calls(site: &Site, scratch: &Scratch) -> Calls {
    let order = order(site.order());
    let is_copied = !scratch.shared.is(0);
    let (to, results) = match site.conv.output_channels {
        Channels::First => ("ChannelOrder::First", Results::Pixels),
        Channels::Last => ("ChannelOrder::Last", Results::Channels),
    };
    let pixels = if is_copied { SHARED } else { Operand::Name("nullptr") };
    let own = Operand::Worker(scratch.shared.clone());
    let operands =
        [SHAPE, Operand::Name(order), BEGIN, END, Operand::Input, Operand::Weights, pixels, own, EPILOGUE];
    Calls {
        shape: site.shape.clone(),
        before: is_copied.then(|| padded_copy(&site.shape, order, Operand::Input)),
        results,
        units: Call::new("conv_winograd_units", [SHAPE]),
        call: Call::new("conv_winograd", operands).with([to.into()]),
    }
}

/// Weights of 3 x 3 taps that meet the pixels of images one by one, of convolutions that [`may_round`].
fn winograd_panels(shape: &ConvShape) -> Option<Form> {
    let fits = is_of_three_taps(shape);
    let (channels, in_channels) = (fixed(&shape.out_channels)?, fixed(&shape.in_channels)?);
    fits.then_some(Form::Expanded(Expansion::Winograd { channels, in_channels }))
}

/// Whether 3 x 3 taps meet the pixels of images one by one.
pub(super) fn is_of_three_taps(shape: &ConvShape) -> bool {
    let sizes =
        |of: &[Expr; 3], wanted: [i64; 3]| of.iter().zip(wanted).all(|(size, wanted)| size.is(wanted));
    let is_plain = shape.stride == [1; 3] && shape.dilation == [1; 3] && shape.padding[0] == 0;
    is_plain && sizes(&shape.kernel, [1, 3, 3]) && shape.input[0].is(1)
}

/// As how many tiles some count that are multiplied by rows of registers, of which the last ones count as `least` at least.
pub(super) fn whole_tiles(tiles: f64, rows: f64, least: f64) -> f64 {
    let rest = tiles % rows;
    tiles - rest + if rest > 0.0 { rest.max(least) } else { 0.0 }
}

/// Products at 16 points of each tile of 2 x 2 pixels, the sums and differences that lead there and back, and, where channels
/// are first, elements that are read or written across that order. Tiles are multiplied by rows of registers, and those of one
/// image are where the batch is not known, because it may be the only one.
fn winograd_work(conv: &Convolution, shape: &ConvShape, weight: WorkKind, empty: f64) -> Cost {
    let image: f64 = shape.output.iter().map(|size| (typical(size) / 2.0).ceil()).product();
    let batch = typical(&shape.batch);
    let images = if shape.batch.as_int().is_some() { 1.0 } else { batch };
    let tiles = whole_tiles(image * batch / images, WINOGRAD_ROWS, WINOGRAD_LEAST_ROWS) * images;
    let (ins, outs) = (typical(&shape.in_channels), typical(&shape.out_channels));
    let turned = |channels: Channels| f64::from(u8::from(channels == Channels::First)) * TURNED;
    Cost::of(WorkKind::VectorFma, 16.0 * tiles * ins * outs * empty + WINOGRAD_CODE * images)
        .and(WorkKind::WinogradTransform, 16.0 * tiles * (ins + outs))
        .and(
            WorkKind::Gather,
            4.0 * tiles * (turned(conv.input_channels) * ins + turned(conv.output_channels) * outs),
        )
        .and(weight, 16.0 * ins * outs)
}

/// The points of a block of tiles, their products with a group of output channels, and a pixel of zeros: sizes of `winograd.h`.
/// Where channels are not last, a padded copy in which they are.
fn conv_winograd(shape: &ConvShape, is_last: bool, target: &Target) -> Scratch {
    let whole = round_up(&shape.in_channels, 16);
    let pitch = match whole.as_int() {
        Some(floats) if floats % 256 == 0 => &whole + 16,
        Some(_) | None => whole,
    };
    let floats = &(&(&pitch + 2 * PANEL) * (WINOGRAD_POINTS * WINOGRAD_TILES)) + &(&pitch + WINOGRAD_PLANES);
    let copy = if is_last { Scratch::default() } else { conv_pixels(shape, false, target) };
    Scratch { shared: copy.shared, ..Scratch::of_worker(aligned(&(&floats * 4), target)) }
}
