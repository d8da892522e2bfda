//! Decides the [`Mapping`] of a kernel for a target. Knows the loops and the chosen template; knows no text.

mod attention;
mod conv;
mod cpu;
mod index;
mod scatter;
mod simt;
mod tiles;

pub(super) use cpu::{epilogue_cost, nest_cost, suits_rows};
pub(super) use simt::{MOST_OF_A_MATRIX, memory_cost};
pub(super) use tiles::{brings, is_of_whole_loads};

use super::mapping::{CpuMapping, GpuMapping, Mapping, Rows};
use crate::cost::Shares;
use crate::cost::{Cost, Item};
use crate::loops::{Kernel, Program, Stage};
use crate::select::{Choice, Conv, Template};
use crate::symbolic::{Ranges, Symbol};
use crate::target::{GpuTarget, Target};

/// A kernel laid over a machine.
pub(super) struct Laid {
    pub(super) mapping: Mapping,
    /// How many times the choice's multiply-adds of register tiles these take.
    pub(super) factor: f64,
    /// Work beside that: for each of the choice's multiply-adds, or by itself where the choice has no cost.
    pub(super) extra: Cost,
    /// Whether there is another mapping from which it differs only in what several threads share.
    pub(super) is_shared: bool,
    /// How threads share it, where that is known.
    pub(super) shares: Option<Shares>,
}

impl Laid {
    fn of(mapping: CpuMapping) -> Laid {
        Laid::plain(Mapping::Cpu(mapping))
    }

    /// A mapping that adds nothing to what the choice costs.
    fn plain(mapping: Mapping) -> Laid {
        Laid { mapping, factor: 1.0, extra: Cost::default(), is_shared: false, shares: None }
    }

    /// What a choice costs that is laid so.
    pub(super) fn cost(&self, choice: &Cost) -> Cost {
        let products = choice.amount(Item::Multiply);
        let times = if products > 0.0 { products } else { 1.0 };
        choice.and(Item::Multiply, products * (self.factor - 1.0)).plus(&self.extra.times(times))
    }
}

/// Whether the rows of a kernel stay in registers of the threads that write them.
pub(super) fn keeps_rows_in_registers(
    program: &Program,
    kernel: &Kernel,
    ranges: &dyn Ranges,
    target: &GpuTarget,
) -> bool {
    let mappings = simt::map(program, kernel, false, ranges, target);
    matches!(mappings.first(), Some(GpuMapping::Teams(teams)) if teams.rows == Rows::Registers)
}

/// The mappings of a kernel that is computed as chosen; the first is taken without a record.
pub(super) fn map(
    program: &Program,
    kernel: &Kernel,
    choice: &Choice,
    ranges: &dyn Ranges,
    target: &Target,
) -> Vec<Laid> {
    match target {
        Target::Cpu(cpu) => cpu::map(program, kernel, choice, cpu),
        Target::Gpu(gpu) => {
            let by_windows = choice.template == Template::Conv(Conv::Windows);
            let mappings = simt::map(program, kernel, by_windows, ranges, gpu).into_iter();
            let laid = |mapping| {
                let extra = simt::cost(program, kernel, &mapping);
                Laid { extra, ..Laid::plain(Mapping::Gpu(mapping)) }
            };
            mappings.map(laid).collect()
        }
    }
}

/// Accesses that are contiguous along an axis.
fn contiguous(stage: &Stage, axis: Symbol) -> usize {
    let along =
        |access: &&crate::loops::Access| access.offset.affine_in(axis).is_some_and(|(step, _)| step.is(1));
    stage.accesses().filter(along).count()
}
