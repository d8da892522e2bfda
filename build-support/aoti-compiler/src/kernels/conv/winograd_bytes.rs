//! As [`super::winograd`], of numbers of one byte, exactly: in integers of 16 bits, which processors multiply twice as many of at once
//! as floats. Those that have an instruction for words of bytes take these, tap by tap, which is as fast: which of both weights are is
//! known when a model is created.

use super::pixels::known;
use super::winograd::{is_of_three_taps, whole_tiles};
use super::{
    BEGIN, Calls, Code, END, EPILOGUE, OnProcessors, Operand, Results, SHAPE, Site, fixed, one_order, typical,
};
use crate::constants;
use crate::cost::{Cost, WorkKind};
use crate::kernels::scratch::{PANEL, aligned, round_up};
use crate::kernels::{self, Algorithm, Call, Expansion, Form, Scratch};
use crate::loops::ConvShape;
use crate::symbolic::Expr;
use crate::target::Target;
use crate::target::templates::WORD;

pub(crate) static WINOGRAD_BYTES: Algorithm = Algorithm {
    word: "conv.winograd-bytes",
    version: 1,
    description: "Winograd convolution of bytes, tiles of 2 x 2 pixels, channels last",
    headers: |_| &["winograd_bytes.h"],
    code: kernels::Code::Convolution(Code {
        applies: |site| site.is_of_bytes() && site.may_split_words() && byte_panels(&site.shape).is_some(),
        cost,
        weights: |site| byte_panels(&site.shape),
        scratch: |site| scratch(&site.shape, site.target),
        processors: Some(OnProcessors { orders: one_order, call: |site, _, _| calls(site) }),
        gpus: None,
    }),
};

/// Points of a tile, and tiles of a work unit at most (`kWinogradPoints` of `winograd.h`, `kWinogradByteTiles` of
/// `winograd_bytes.h`).
const POINTS: i64 = constants::WINOGRAD_POINTS;
const TILES: i64 = constants::WINOGRAD_BYTE_TILES;
/// Input channels of which four times a pixel fits 32 bits whatever the numbers are.
const MOST_CHANNELS: i64 = (1 << 31) / (4 * 9 * 255 * 128);
/// Rows of a register tile (`kPairRows` of `winograd_bytes.h`).
const ROWS: f64 = constants::PAIR_ROWS as f64;
/// What this must save for each image, as it needs code of its own.
const CODE: f64 = 100_000.0;

fn calls(site: &Site) -> Calls {
    let own = Operand::Worker(Expr::int(0));
    let operands = [SHAPE, BEGIN, END, Operand::Input, Operand::WeightsAs("i32"), own, EPILOGUE];
    Calls {
        shape: site.shape.clone(),
        before: None,
        results: Results::Channels,
        units: Call::new("conv_winograd_bytes_units", [SHAPE, Operand::WeightsAs("i32")]),
        call: Call::new("conv_winograd_bytes", operands).with([known(site, &site.shape_in_words()).into()]),
    }
}

/// Weights of 3 x 3 taps whose sums stay in range, of images that have what is around them.
fn byte_panels(shape: &ConvShape) -> Option<Form> {
    let fits = is_of_three_taps(shape) && shape.groups == 1 && shape.padding == [0; 3];
    let is_in_range = |channels: &i64| channels % WORD == 0 && *channels <= MOST_CHANNELS;
    shape.in_channels.as_int().filter(is_in_range)?;
    let (channels, in_channels) = (fixed(&shape.out_channels)?, fixed(&shape.in_channels)?);
    fits.then_some(Form::Expanded(Expansion::WinogradBytes { channels, in_channels }))
}

/// Pairs of numbers in place of floats, for points of the input and for weights.
fn cost(site: &Site) -> Cost {
    let shape = &site.shape;
    let image: f64 = shape.output.iter().map(|size| (typical(size) / 2.0).ceil()).product();
    let tiles = whole_tiles(image * typical(&shape.batch), ROWS, 1.0);
    let (ins, outs) = (typical(&shape.in_channels), typical(&shape.out_channels));
    Cost::of(WorkKind::VectorFma, 16.0 * tiles * ins / 2.0 * outs + CODE)
        .and(WorkKind::WinogradTransform, 16.0 * tiles * (ins / 2.0 + outs))
        .and(site.weight(), 16.0 * ins / 2.0 * outs)
}

/// The points of a block of tiles, their products with a group of output channels, and a pixel beside the image: sizes of
/// `winograd_bytes.h`.
fn scratch(shape: &ConvShape, target: &Target) -> Scratch {
    let whole = round_up(&shape.in_channels, 32);
    let pitch = match whole.as_int() {
        Some(numbers) if numbers % 128 == 0 => &whole + 32,
        Some(_) | None => whole,
    };
    let of_tiles = &(&(&pitch * 2) + 4 * 2 * PANEL) * (POINTS * TILES);
    Scratch::of_worker(aligned(&(&of_tiles + &round_up(&shape.in_channels, 64)), target))
}
