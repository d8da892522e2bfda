//! Operations on whole rows: running reductions, sorting, elements by rank, searches, routines on single matrices, Fourier transforms,
//! recurrent layers. An algorithm is a file with a row of [`ALGORITHMS`].

pub(crate) mod fourier;
mod matrices;
mod nth_element;
pub(crate) mod recurrent;
mod scan;
mod search;
pub(crate) mod sorting;

use super::launch::Launches;
use super::mapped::{Mapped, costing, with_grains};
use super::mapping::{Block, CpuMapping, GpuMapping, Grain, IndexWidth, Lanes, Split};
use super::{Algorithm, Call, Parameter, Scratch};
use crate::cost::WorkKind;
use crate::loops::{AxisKernel, AxisOp};
use crate::symbolic::{Expr, Ranges};
use crate::target::{CpuTarget, Target};

/// The algorithms: one for each kind of operation.
pub(super) static ALGORITHMS: &[&Algorithm] = &[
    &scan::SCAN,
    &sorting::SORT,
    &nth_element::NTH_ELEMENT,
    &search::SEARCH,
    &matrices::MATRICES,
    &fourier::FOURIER,
    &recurrent::RECURRENT,
];

/// What an algorithm for rows does.
pub(crate) struct Code {
    /// The memory that it needs on processors.
    pub(super) scratch: fn(&AxisKernel, &Target) -> Scratch,
    /// Its call on processors, if it is for these.
    pub(super) processors: Option<fn(&AxisKernel) -> Call<Operand>>,
    /// Its part for GPUs, if it is for these.
    pub(super) gpus: Option<OnGpus>,
}

/// What an algorithm for rows does on GPUs.
pub(crate) struct OnGpus {
    /// The headers of its code.
    pub(crate) headers: &'static [&'static str],
    /// The block that is taken.
    pub(super) block: fn(&AxisKernel, &dyn Ranges) -> RowBlock,
    /// Whether it works with such a block.
    fits: fn(&AxisKernel, RowBlock) -> bool,
    /// How it is launched.
    pub(super) launches: fn(&AxisKernel, RowBlock) -> Launches,
    /// What is called.
    pub(crate) calls: fn(&AxisKernel, RowBlock) -> Calls,
}

/// A block of threads that works on rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RowBlock {
    /// Its threads.
    pub(crate) threads: i64,
    /// Rows that it works on at a time: one, all its threads together, or several.
    pub(crate) rows: i64,
}

impl RowBlock {
    /// Of which each thread has rows of its own.
    const ROW_EACH: RowBlock = RowBlock { threads: 64, rows: 64 };

    /// All threads work on one row together.
    fn is_together(self) -> bool {
        self.rows == 1
    }

    /// Each thread works on a row of its own.
    fn is_apart(self) -> bool {
        self.rows == self.threads
    }
}

/// What is called for rows.
pub(crate) struct Calls {
    /// The call.
    pub(crate) call: Call<Operand>,
    /// What is called instead for rows of more elements than so many, where there may be such.
    pub(crate) longer: Option<(i64, Call<Operand>)>,
}

impl From<Call<Operand>> for Calls {
    fn from(call: Call<Operand>) -> Calls {
        Calls { call, longer: None }
    }
}

/// What a function for rows is given.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Operand {
    /// Something that generated code has a name for.
    Name(&'static str),
    /// The input at this position.
    Input(usize),
    /// The output at this position.
    Output(usize),
    /// A size.
    Size(Expr),
    /// A number of the elements' type.
    Number(f64),
    /// The bytes of a worker's memory.
    WorkerBytes,
}

/// The run.
const RUN: Operand = Operand::Name("run");

/// Rows, elements of each, and elements between these.
fn sizes(rows: &AxisKernel) -> [Operand; 3] {
    [&rows.outer, &rows.length, &rows.inner].map(|size| Operand::Size(size.clone()))
}

/// The algorithm for an operation.
pub(super) fn algorithm(op: &AxisOp) -> &'static Algorithm {
    match op {
        AxisOp::Scan(_) => &scan::SCAN,
        AxisOp::Sort(_) => &sorting::SORT,
        AxisOp::NthElement { .. } => &nth_element::NTH_ELEMENT,
        AxisOp::SearchSorted { .. } => &search::SEARCH,
        AxisOp::Matrices(_) => &matrices::MATRICES,
        AxisOp::Fourier(_) => &fourier::FOURIER,
        AxisOp::Recurrent(_) => &recurrent::RECURRENT,
    }
}

/// What an algorithm for rows does.
pub(crate) fn code(algorithm: &'static Algorithm) -> &'static Code {
    match &algorithm.code {
        super::Code::AxisOp(code) => code,
        super::Code::Loops(_)
        | super::Code::Product(_)
        | super::Code::Convolution(_)
        | super::Code::Attention(_)
        | super::Code::Extern => unreachable!("a verified choice is for kernels of its kind"),
    }
}

/// The memory that an operation needs.
pub(super) fn scratch(rows: &AxisKernel, target: &Target) -> Scratch {
    (code(algorithm(&rows.op)).scratch)(rows, target)
}

/// The ways to lay rows over the threads of a processor, and all their work.
pub(super) fn on_processor(rows: &AxisKernel, target: &CpuTarget) -> (Vec<Mapped>, Expr) {
    let unit = &rows.length * &rows.inner;
    let total = &unit * &rows.outer;
    let grain = Grain { enough: target.thread_work, unit };
    let (lanes, block) = (Lanes::One, Block::Typical);
    let mapping = CpuMapping { split: Split::Template, lanes, grain, block, rows: None };
    (costing(with_grains(&mapping, &total), WorkKind::Access, &total), total)
}

/// How rows are laid over blocks of threads.
pub(super) fn on_gpu(
    rows: &AxisKernel,
    algorithm: &'static Algorithm,
    index: IndexWidth,
    ranges: &dyn Ranges,
) -> GpuMapping {
    let block = code(algorithm).gpus.as_ref().map_or(RowBlock::ROW_EACH, |own| (own.block)(rows, ranges));
    GpuMapping::Template { threads: block.threads, rows: block.rows, index }
}

/// The call for rows on a processor.
pub(crate) fn call(algorithm: &'static Algorithm, rows: &AxisKernel) -> Call<Operand> {
    let call = code(algorithm).processors.expect("kernels of a processor have an algorithm for it");
    call(rows)
}

/// What an algorithm does on GPUs.
pub(crate) fn gpus(algorithm: &'static Algorithm) -> &'static OnGpus {
    code(algorithm).gpus.as_ref().expect("kernels of a GPU have an algorithm for it")
}

/// Whether an algorithm does an operation on a GPU, by such blocks.
pub(crate) fn fits(algorithm: &'static Algorithm, rows: &AxisKernel, block: RowBlock) -> bool {
    let own = if algorithm == self::algorithm(&rows.op) { code(algorithm).gpus.as_ref() } else { None };
    own.is_some_and(|own| (own.fits)(rows, block))
}

/// No memory.
fn no_scratch(_: &AxisKernel, _: &Target) -> Scratch {
    Scratch::default()
}

/// A template argument that is true or false.
fn flag(value: bool) -> Parameter {
    value.to_string().into()
}

/// A template argument that is a number.
fn number(value: i64) -> Parameter {
    value.to_string().into()
}

/// Bytes of an element.
fn element_bytes(rows: &AxisKernel) -> i64 {
    i64::try_from(rows.dtype.size()).expect("a few bytes")
}

/// Whether each thread of a block has a row.
fn is_row_each(_: &AxisKernel, block: RowBlock) -> bool {
    block.is_apart()
}
