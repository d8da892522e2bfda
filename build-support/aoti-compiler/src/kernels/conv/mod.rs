//! Convolutions. An algorithm is a file with a row of [`ALGORITHMS`].

mod any;
pub(crate) mod brought;
mod depthwise;
mod depthwise_bytes;
mod depthwise_pixels;
mod group_pixels;
mod orders;
mod pixel_words;
mod pixels;
mod product;
mod tiled;
mod transposed;
mod transposed_any;
pub(crate) mod windows;
mod winograd;
mod winograd_bytes;

pub(super) use orders::on_processor;

use super::launch::Launch;
use super::mapping::{Block, IndexWidth, Tile};
use super::{Algorithm, Call, Candidate, Form, PackedOperand, Scratch, Selection, kind_of_weights, typical};
use crate::cost::{Cost, WorkKind};
use crate::dtype::DType;
use crate::loops::{Access, Channels, ConvShape, Convolution, Effect, Program, Storage};
use crate::symbolic::{Expr, Symbol};
use crate::target::templates::{MAX_TAPS, in_words};
use crate::target::{GpuTarget, Target};

/// The algorithms; of those that cost the same the first is taken.
pub(super) static ALGORITHMS: &[&Algorithm] = &[
    &pixel_words::PIXEL_WORDS,
    &depthwise_bytes::DEPTHWISE_BYTES,
    &group_pixels::GROUP_PIXELS,
    &pixels::PIXELS,
    &depthwise_pixels::DEPTHWISE_PIXELS,
    &windows::WINDOWS,
    &any::ANY,
    &transposed_any::TRANSPOSED_ANY,
    &transposed::TRANSPOSED,
    &product::PRODUCT,
    &depthwise::DEPTHWISE,
    &tiled::TILED,
    &winograd::WINOGRAD,
    &winograd_bytes::WINOGRAD_BYTES,
];

/// What an algorithm for convolutions does.
pub(crate) struct Code {
    /// Whether it computes this one on this target.
    pub(super) applies: fn(&Site) -> bool,
    /// What that costs.
    pub(super) cost: fn(&Site) -> Cost,
    /// The form in which it reads weights, where that is not the graph's.
    pub(super) weights: fn(&Site) -> Option<Form>,
    /// The memory that it needs.
    pub(super) scratch: fn(&Site) -> Scratch,
    /// Its part for processors.
    pub(crate) processors: Option<OnProcessors>,
    /// Its part for GPUs.
    pub(crate) gpus: Option<OnGpus>,
}

/// What an algorithm does on processors.
pub(crate) struct OnProcessors {
    /// The orders in which it can go over weights and pixels other than its own, which is over the larger of the two once.
    pub(super) orders: fn(&Site) -> Vec<Block>,
    /// What is called, in one of these orders or in its own.
    pub(crate) call: fn(&Site, Block, &Scratch) -> Calls,
}

/// What an algorithm does on GPUs.
pub(crate) struct OnGpus {
    /// The tiles that a block of threads can have; the first is taken without a record.
    pub(super) tiles: fn(&Site, IndexWidth, &GpuTarget) -> Vec<Tile>,
    /// How one of them is launched.
    pub(super) launch: fn(&Program, &Convolution, &Tile) -> Launch,
}

/// The calls that compute a convolution on a processor.
pub(crate) struct Calls {
    /// The sizes that the functions are told.
    pub(crate) shape: ConvShape,
    /// What threads do before they compute.
    pub(crate) before: Option<Before>,
    /// How sums are handed to the epilogue.
    pub(crate) results: Results,
    /// The number of units of work.
    pub(crate) units: Call<Operand>,
    /// The call for some of these.
    pub(crate) call: Call<Operand>,
}

/// What threads do before they compute: the call for some of so many units of work.
pub(crate) struct Before {
    /// The units.
    pub(crate) units: Call<Operand>,
    /// Units that are worth a thread; as many as of the work itself where none are given.
    pub(crate) grain: Option<i64>,
    /// The call.
    pub(crate) call: Call<Operand>,
}

/// How an algorithm hands sums to the epilogue.
pub(crate) enum Results {
    /// By vectors of pixels.
    Pixels,
    /// By vectors of channels.
    Channels,
    /// By vectors of channels of the only pixel of an image, as the product with a matrix `a` of so many columns.
    Rows(Expr),
}

/// What a function for convolutions is given.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Operand {
    /// Something that generated code has a name for.
    Name(&'static str),
    /// The input's first element.
    Input,
    /// The weights' first element.
    Weights,
    /// The input's first element as one of another type.
    InputAs(&'static str),
    /// The weights' first element as one of another type, which they are packed in.
    WeightsAs(&'static str),
    /// The memory of the thread that runs, behind so many bytes that all threads share.
    Worker(Expr),
}

/// The sizes of a convolution.
pub(crate) const SHAPE: Operand = Operand::Name("shape");
/// The memory that all threads share.
const SHARED: Operand = Operand::Name("run.scratch");
/// What is done to sums.
const EPILOGUE: Operand = Operand::Name("epilogue");
/// The units that a thread does.
const BEGIN: Operand = Operand::Name("begin");
const END: Operand = Operand::Name("end");

/// A convolution that is to be computed, and what several algorithms ask of it.
pub(crate) struct Site<'a> {
    program: &'a Program,
    conv: &'a Convolution,
    target: &'a Target,
    /// Its sizes.
    shape: ConvShape,
}

impl<'a> Site<'a> {
    pub(crate) fn new(program: &'a Program, conv: &'a Convolution, target: &'a Target) -> Site<'a> {
        Site { program, conv, target, shape: ConvShape::new(program, conv) }
    }

    fn is_on_processor(&self) -> bool {
        matches!(self.target, Target::Cpu(_))
    }

    /// Whether channels are last in the input or the output, which only some algorithms for processors read and write.
    fn is_last(&self) -> bool {
        let channels = [self.conv.input_channels, self.conv.output_channels];
        self.is_on_processor() && channels.contains(&Channels::Last)
    }

    /// Whether it is one of bytes: unsigned ones times signed weights.
    fn is_of_bytes(&self) -> bool {
        let is_of_bytes =
            self.conv.dtype == DType::I32 && self.program.buffers[self.conv.input].dtype == DType::U8;
        self.is_on_processor() && is_of_bytes && self.conv.input_channels == Channels::Last
    }

    /// Whether a processor that runs this may split words of bytes into numbers of 16 bits, as it has no instruction for them.
    fn may_split_words(&self) -> bool {
        match self.target {
            Target::Cpu(target) => target.may_split_words(),
            Target::Gpu(_) => false,
        }
    }

    /// The sizes in words.
    fn shape_in_words(&self) -> ConvShape {
        ConvShape { in_channels: in_words(&self.shape.in_channels), ..self.shape.clone() }
    }

    /// Whether a processor reads its channels where they are first, or need not, and weights of `f32` that it alone reads, of sizes
    /// that are known.
    fn is_packable(&self) -> bool {
        let (conv, shape) = (self.conv, &self.shape);
        let is_constant = matches!(self.program.buffers[conv.weight].storage, Storage::Constant(_));
        let read_elsewhere =
            conv.input == conv.weight || conv.epilogue.reads().any(|buffer| buffer == conv.weight);
        let padded = shape.padding.iter().all(|padding| *padding >= 0);
        let fits = conv.dtype == DType::F32 && shape.has_fixed_weight() && padded;
        self.is_on_processor() && is_constant && !read_elsewhere && fits
    }

    /// Whether weights are packable, and channels first.
    fn is_packable_first(&self) -> bool {
        !self.is_last() && !self.conv.depth_is_by_tap() && !self.conv.conv.transposed && self.is_packable()
    }

    /// Whether register tiles of pixels have taps for it.
    fn has_tiles(&self) -> bool {
        self.is_packable() && self.shape.taps().as_int().is_some_and(|taps| taps <= MAX_TAPS)
    }

    /// Whether vectors of pixels can read channels that are first, and write them to where they are last.
    fn turns(&self) -> bool {
        let is_first = self.conv.input_channels == Channels::First || self.shape.in_channels.is(1);
        self.is_last() && is_first && self.has_tiles() && self.shape.groups == 1
    }

    /// Where an algorithm for channels that are last finds those of the input.
    fn order(&self) -> Channels {
        self.shape.input_channels(self.conv)
    }

    /// Whether the epilogue writes planes of channels: pixels that follow each other are neighbours in memory, and channels are not.
    fn writes_planes(&self) -> bool {
        let (channel, spatial) = (self.conv.channel().symbol, self.conv.spatial());
        let mut stores = self.conv.epilogue.effects.iter().filter_map(|effect| match effect {
            Effect::Store { access, .. } => Some(access),
            Effect::Accumulate { .. } => None,
        });
        let follows = |access: &Access| {
            let mut apart = Expr::int(1);
            spatial.iter().rev().all(|axis| {
                let step = access.offset.affine_in(axis.symbol).map(|(step, _)| step);
                let is_next = axis.extent.is(1) || step.as_ref() == Some(&apart);
                apart = &apart * &axis.extent;
                is_next
            })
        };
        stores.all(|access| access.is_direct() && !is_along(access, channel) && follows(access))
    }

    fn multiply_adds(&self) -> f64 {
        multiply_adds(&self.shape)
    }

    /// What it takes to multiply on vectors.
    fn work(&self) -> Cost {
        Cost::of(WorkKind::VectorFma, self.multiply_adds())
    }

    /// Where its weights are.
    fn weight(&self) -> WorkKind {
        kind_of_weights(self.program, self.target)
    }

    /// How much longer vectors of channels take than full ones where vectors of pixels could be taken instead.
    fn empty(&self) -> f64 {
        if self.turns() { pixels::empty_lanes(&self.shape) } else { 1.0 }
    }
}

/// The ways to compute a convolution.
pub(super) fn candidates(program: &Program, conv: &Convolution, target: &Target) -> Vec<Candidate> {
    let site = Site::new(program, conv, target);
    let candidate = |algorithm: &&'static Algorithm| {
        let code = code(algorithm);
        (code.applies)(&site).then(|| {
            let form = (code.weights)(&site);
            let packed = form.map(|form| PackedOperand { buffer: conv.weight, form });
            let scratch = (code.scratch)(&site);
            let choice = Selection { algorithm, packed: packed.into_iter().collect(), scratch };
            Candidate { choice, cost: (code.cost)(&site) }
        })
    };
    ALGORITHMS.iter().filter_map(candidate).collect()
}

/// What an algorithm for convolutions does.
fn code(algorithm: &'static Algorithm) -> &'static Code {
    match &algorithm.code {
        super::Code::Convolution(code) => code,
        super::Code::Loops(_)
        | super::Code::Product(_)
        | super::Code::Attention(_)
        | super::Code::AxisOp(_)
        | super::Code::Extern => unreachable!("a verified choice is for kernels of its kind"),
    }
}

/// The tiles of a convolution on a GPU.
pub(super) fn on_gpu(
    site: &Site,
    algorithm: &'static Algorithm,
    (index, target): (IndexWidth, &GpuTarget),
) -> Vec<Tile> {
    let own = code(algorithm).gpus.as_ref().expect("candidates for GPUs have tiles");
    (own.tiles)(site, index, target)
}

/// The calls of a convolution on a processor.
pub(crate) fn calls(site: &Site, choice: &Selection, block: Block) -> Calls {
    let own = code(choice.algorithm).processors.as_ref();
    let own = own.expect("a verified choice for a processor has calls");
    (own.call)(site, block, &choice.scratch)
}

fn multiply_adds(shape: &ConvShape) -> f64 {
    let sizes = [&shape.batch, &shape.out_channels, &shape.in_channels];
    let spatial = shape.output.iter().chain(&shape.kernel);
    sizes.into_iter().chain(spatial).map(typical).product::<f64>() / shape.groups.max(1) as f64
}

/// Elements of the weights.
fn weight_elements(shape: &ConvShape) -> f64 {
    let channels = [&shape.in_channels, &shape.out_channels];
    shape.kernel.iter().chain(channels).map(typical).product::<f64>() / shape.groups.max(1) as f64
}

fn size(value: i64) -> Option<usize> {
    usize::try_from(value).ok()
}

fn fixed(expr: &Expr) -> Option<usize> {
    expr.as_int().and_then(size)
}

/// Whether neighbours along an axis are neighbours in memory.
fn is_along(access: &Access, axis: Symbol) -> bool {
    access.offset.affine_in(axis).is_some_and(|(step, _)| step.is(1))
}

/// Weights as the graph has them.
fn as_they_are(_: &Site) -> Option<Form> {
    None
}

fn no_scratch(_: &Site) -> Scratch {
    Scratch::default()
}

/// An algorithm that has one order.
fn one_order(_: &Site) -> Vec<Block> {
    vec![]
}
