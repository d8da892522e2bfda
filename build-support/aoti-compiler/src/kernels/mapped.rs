//! Lays a kernel over a machine: the ways to do so with a chosen algorithm, what is taken without a record first.

use super::mapping::Block;
use super::mapping::{CpuMapping, GpuMapping, Grain, Lanes, Mapping, Rows, Split, Tile};
use super::{Selection, attention, axis_ops, conv, gemm, index_width, nest};
use crate::cost::{Cost, WorkKind, WorkSplit};
use crate::loops::{Kernel, KernelKind, Program};
use crate::symbolic::{Expr, NoRanges, Ranges};
use crate::target::{CpuTarget, GpuTarget, Target};

/// Positions along an axis whose extent is not known.
pub(super) const TYPICAL_EXTENT: f64 = 64.0;
/// Threads that a machine may have.
const MANY_THREADS: i64 = 64;

/// A kernel laid over a machine.
pub(crate) struct Mapped {
    pub(crate) mapping: Mapping,
    /// How many times the choice's multiply-adds of register tiles these take.
    pub(super) factor: f64,
    /// Work beside that: for each of the choice's multiply-adds, or by itself where the choice has no cost.
    pub(super) extra: Cost,
    /// Whether there is another mapping from which it differs only in what several threads share.
    pub(crate) is_shared: bool,
    /// How threads share it, where that is known.
    pub(crate) shares: Option<WorkSplit>,
}

impl Mapped {
    pub(super) fn of(mapping: CpuMapping) -> Mapped {
        Mapped::plain(Mapping::Cpu(mapping))
    }

    /// A mapping that adds nothing to what the choice costs.
    fn plain(mapping: Mapping) -> Mapped {
        Mapped { mapping, factor: 1.0, extra: Cost::default(), is_shared: false, shares: None }
    }

    /// What a choice costs that is laid so.
    pub(crate) fn cost(&self, choice: &Cost) -> Cost {
        let products = choice.amount(WorkKind::VectorFma);
        let times = if products > 0.0 { products } else { 1.0 };
        choice.and(WorkKind::VectorFma, products * (self.factor - 1.0)).plus(&self.extra.times(times))
    }
}

/// Whether the rows of a nest stay in registers of the threads that write them.
pub(crate) fn keeps_rows_in_registers(
    program: &Program,
    kernel: &Kernel,
    ranges: &dyn Ranges,
    target: &GpuTarget,
) -> bool {
    let KernelKind::Nest(own) = &kernel.kind else { return false };
    let index = index_width::width(program, kernel, ranges);
    let mappings = nest::simt::map(program, (kernel, own), index, ranges, target);
    matches!(mappings.first(), Some(GpuMapping::Teams(teams)) if teams.rows == Rows::Registers)
}

/// The mappings of a kernel that is computed as chosen; the first is taken without a record.
pub(crate) fn map(
    program: &Program,
    kernel: &Kernel,
    choice: &Selection,
    ranges: &dyn Ranges,
    target: &Target,
) -> Vec<Mapped> {
    match target {
        Target::Cpu(cpu) => {
            let (mut all, total) = on_processor(program, kernel, choice, (target, cpu));
            all.iter_mut().for_each(|laid| laid.shares = shares(kernel, laid, &total));
            all
        }
        Target::Gpu(gpu) => {
            let laid = |mapping| {
                let extra = nest::simt::cost(program, kernel, &mapping);
                Mapped { extra, ..Mapped::plain(Mapping::Gpu(mapping)) }
            };
            on_gpu(program, kernel, choice, ranges, (target, gpu)).into_iter().map(laid).collect()
        }
    }
}

/// The ways to lay a kernel over the threads and lanes of a processor, and all its work.
fn on_processor(
    program: &Program,
    kernel: &Kernel,
    choice: &Selection,
    (target, cpu): (&Target, &CpuTarget),
) -> (Vec<Mapped>, Expr) {
    match &kernel.kind {
        KernelKind::Nest(own) => nest::cpu::map(program, kernel, own, cpu),
        KernelKind::MatMul(matmul) => gemm::on_processor(matmul, choice.algorithm, cpu),
        KernelKind::Convolution(conv) => conv::on_processor(program, conv, choice.algorithm, (target, cpu)),
        KernelKind::Attention(own) => attention::on_processor(own, cpu),
        // The function shares its work among threads itself.
        KernelKind::Extern(_) => {
            let grain = Grain { enough: cpu.thread_work, unit: Expr::int(1) };
            let (split, lanes, block) = (Split::Template, Lanes::One, Block::Typical);
            (vec![Mapped::of(CpuMapping { split, lanes, grain, block, rows: None })], Expr::int(1))
        }
        KernelKind::AxisOp(rows) => axis_ops::on_processor(rows, cpu),
    }
}

/// The ways to lay a kernel over blocks of threads.
fn on_gpu(
    program: &Program,
    kernel: &Kernel,
    choice: &Selection,
    ranges: &dyn Ranges,
    (target, gpu): (&Target, &GpuTarget),
) -> Vec<GpuMapping> {
    let tiles = |tiles: Vec<Tile>| tiles.into_iter().map(GpuMapping::Tiles).collect();
    let index = index_width::width(program, kernel, ranges);
    match &kernel.kind {
        KernelKind::Nest(own) => nest::on_gpu(program, (kernel, own), choice.algorithm, ranges, (index, gpu)),
        KernelKind::MatMul(matmul) => tiles(gemm::on_gpu(program, matmul, choice.algorithm, (index, gpu))),
        KernelKind::Convolution(conv) => {
            tiles(conv::on_gpu(&conv::Site::new(program, conv, target), choice.algorithm, (index, gpu)))
        }
        KernelKind::Attention(own) => tiles(attention::on_gpu(program, own, choice.algorithm, (index, gpu))),
        KernelKind::AxisOp(own) => vec![axis_ops::on_gpu(own, choice.algorithm, index, ranges)],
        KernelKind::Extern(_) => {
            // Functions are refused for GPUs, and who computes a collective lays it out.
            vec![GpuMapping::Template { threads: 1, rows: 1, index }]
        }
    }
}

/// How threads share all the work, where it is known: of units each is one thread's.
fn shares(kernel: &Kernel, laid: &Mapped, total: &Expr) -> Option<WorkSplit> {
    let Mapping::Cpu(CpuMapping { split, grain, .. }) = &laid.mapping else { return None };
    let unit = match split {
        Split::Serial => return Some(WorkSplit::none()),
        Split::Axes(_) | Split::Chunks(_) => grain.unit.as_int()?,
        // The unit is all there is.
        Split::RowsFrom(_) | Split::Template => 1,
    };
    let is_loop = matches!(kernel.kind, KernelKind::Nest(_));
    Some(WorkSplit { work: total.as_int()?, enough: grain.enough, unit, is_loop })
}

/// A mapping, and the same with more or less work that is worth a thread, where that changes anything.
pub(super) fn with_grains(typical: &CpuMapping, total: &Expr) -> Vec<Mapped> {
    let enough = typical.grain.enough;
    let mut all = vec![Mapped::of(typical.clone())];
    for other in [enough / 4, enough * 4, enough * 16] {
        let (least, most) = (enough.min(other), enough.max(other));
        // Where either way all of it is one thread's, or all threads have enough, nothing changes.
        if total.as_int().is_none_or(|total| total >= least && total / MANY_THREADS < most) {
            let grain = Grain { enough: other, unit: typical.grain.unit.clone() };
            all.push(Mapped { is_shared: true, ..Mapped::of(CpuMapping { grain, ..typical.clone() }) });
        }
    }
    all
}

/// Ways of a kernel whose template has no cost of its own: so much work of a kind.
pub(super) fn costing(mut all: Vec<Mapped>, item: WorkKind, total: &Expr) -> Vec<Mapped> {
    let typical = |_| Some(Expr::int(TYPICAL_EXTENT as i64));
    let total = total.substitute(&typical, &NoRanges).as_int().unwrap_or(1) as f64;
    all.iter_mut().for_each(|laid| laid.extra = Cost::of(item, total));
    all
}
