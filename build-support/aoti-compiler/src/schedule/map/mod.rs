//! Decides the [`Mapping`] of a kernel for a target. Knows the loops and the chosen template; knows no text.

mod attention;
mod cpu;
mod index;
mod simt;
mod tiles;

use super::mapping::{CpuMapping, GpuMapping, Mapping};
use crate::loops::{Kernel, Program, Stage};
use crate::select::Choice;
use crate::symbolic::{Ranges, Symbol};
use crate::target::Target;

/// A kernel laid over a machine.
pub(super) struct Laid {
    pub(super) mapping: Mapping,
    /// What it is thought to cost, as a multiple of what is taken without a record.
    pub(super) cost: f64,
    /// Whether there is another mapping from which it differs only in what several threads share.
    pub(super) is_shared: bool,
}

impl Laid {
    fn of(mapping: CpuMapping) -> Laid {
        Laid { mapping: Mapping::Cpu(mapping), cost: 1.0, is_shared: false }
    }
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
            let laid =
                |mapping: GpuMapping| Laid { mapping: Mapping::Gpu(mapping), cost: 1.0, is_shared: false };
            simt::map(program, kernel, ranges, gpu).into_iter().map(laid).collect()
        }
    }
}

/// Accesses that are contiguous along an axis.
fn contiguous(stage: &Stage, axis: Symbol) -> usize {
    let along =
        |access: &&crate::loops::Access| access.offset.affine_in(axis).is_some_and(|(step, _)| step.is(1));
    stage.accesses().filter(along).count()
}
