//! Attention: scores, softmax and the sums of values in one kernel.

pub(super) mod tiles;

use super::launch::Launch;
use super::mapped::{Mapped, costing, with_grains};
use super::mapping::{Block, CpuMapping, Grain, IndexWidth, Lanes, Split, Tile};
use super::scratch::{PANEL, aligned, round_up};
use super::{Algorithm, Call, Parameter, Scratch};
use crate::constants;
use crate::cost::WorkKind;
use crate::loops::{Attention, Program};
use crate::symbolic::Expr;
use crate::target::{CpuTarget, GpuTarget, Target};

pub(crate) static ATTENTION: Algorithm = Algorithm {
    word: "attention",
    version: 2,
    description: "attention in one kernel",
    headers: |_| &["attention.h"],
    code: super::Code::Attention(Code {
        processors: call,
        gpus: OnGpus {
            tiles: tiles::map,
            launch: tiles::launch,
            header: |tile| tiles::template(tile).header,
            call: tiles::call,
        },
    }),
};

/// What an algorithm for attention does.
pub(crate) struct Code {
    /// Its call for a block of queries on processors.
    pub(crate) processors: fn(&Attention) -> Call<Operand>,
    /// Its part for GPUs.
    pub(crate) gpus: OnGpus,
}

/// What an algorithm for attention does on GPUs.
pub(crate) struct OnGpus {
    /// The tiles that a block of threads can have; the first is taken without a record.
    pub(super) tiles: fn(&Program, &Attention, IndexWidth, &GpuTarget) -> Vec<Tile>,
    /// How one of them is launched.
    pub(super) launch: fn(&Attention, &Tile) -> Launch,
    /// The header of its code.
    pub(crate) header: fn(&Tile) -> &'static str,
    /// The call for a tile, up to the tables of queries, keys and values.
    pub(crate) call: fn(&Attention, &Tile) -> Call<Operand>,
}

/// What a function for attention is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operand {
    /// Something that generated code has a name for.
    Name(&'static str),
    /// The keys that the first query sees, where each sees one more than the one before it.
    Reach,
    /// The memory of the thread that runs.
    Worker,
}

/// Queries of a block (`kAttentionRows` of `attention.h`).
const ROWS: i64 = constants::ATTENTION_ROWS;

/// Panels of keys and of values, the scores of a block of queries, and a copy of these: sizes of `attention.h`.
pub(super) fn scratch(own: &Attention, target: &Target) -> Scratch {
    if matches!(target, Target::Gpu(_)) {
        return Scratch::default();
    }
    let (keys, depth) = (&own.key().extent, &own.depth);
    let columns = own.axes.last().map_or(Expr::int(1), |axis| axis.extent.clone());
    let panels = &(&round_up(keys, PANEL) * depth) + &(&round_up(&columns, PANEL) * keys);
    let pitch = &(&round_up(keys, 16) + 16) + &(&round_up(depth, 16) + 16);
    let floats = &(&panels + &(&pitch * ROWS)) + PANEL;
    Scratch::of_worker(aligned(&(&floats * 4), target))
}

/// The ways to lay it over the threads of a processor, and all its work.
pub(super) fn on_processor(own: &Attention, target: &CpuTarget) -> (Vec<Mapped>, Expr) {
    let columns = own.axes.last().map_or(Expr::int(1), |axis| axis.extent.clone());
    let work = &Expr::product(own.score_axes().iter().map(|axis| &axis.extent)) * &(&own.depth + &columns);
    let grain = Grain { enough: target.thread_products, unit: work.clone() };
    let (split, lanes, block) = (Split::Template, Lanes::Outer, Block::Typical);
    let all = with_grains(&CpuMapping { split, lanes, grain, block, rows: None }, &work);
    (costing(all, WorkKind::VectorFma, &work), work)
}

/// The tiles of one attention on a GPU.
pub(super) fn on_gpu(
    program: &Program,
    own: &Attention,
    algorithm: &'static Algorithm,
    (index, target): (IndexWidth, &GpuTarget),
) -> Vec<Tile> {
    (code(algorithm).gpus.tiles)(program, own, index, target)
}

/// What an algorithm for attention does.
pub(crate) fn code(algorithm: &'static Algorithm) -> &'static Code {
    match &algorithm.code {
        super::Code::Attention(code) => code,
        super::Code::Loops(_)
        | super::Code::Product(_)
        | super::Code::Convolution(_)
        | super::Code::AxisOp(_)
        | super::Code::Extern => unreachable!("a verified choice is for kernels of its kind"),
    }
}

/// Whether queries see other keys than all, and what a query is given that sees none.
fn sight(own: &Attention) -> [Parameter; 2] {
    [own.reach.is_some().to_string().into(), own.of_nothing.number().to_string().into()]
}

/// The call for a block of queries on a processor.
fn call(own: &Attention) -> Call<Operand> {
    let place = ["shape", "block % blocks * kAttentionRows", "packed != unit"].map(Operand::Name);
    let tensors = ["q", "k", "v"].map(Operand::Name);
    let operands = place.into_iter().chain([Operand::Reach]).chain(tensors).chain([Operand::Worker]);
    Call::new("attend", operands.chain(["score", "result"].map(Operand::Name))).with(sight(own))
}
