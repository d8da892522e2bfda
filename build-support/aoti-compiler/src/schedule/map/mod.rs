//! Decides the [`Mapping`] of a kernel for a target. Knows the loops and the chosen template; knows no text.

mod attention;
mod cpu;
mod index;
mod simt;
mod tiles;

use super::mapping::Mapping;
use crate::loops::{Kernel, Program, Stage};
use crate::select::Choice;
use crate::symbolic::{Ranges, Symbol};
use crate::target::Target;

/// The mapping of a kernel that is computed as chosen.
pub(super) fn map(
    program: &Program,
    kernel: &Kernel,
    choice: &Choice,
    ranges: &dyn Ranges,
    target: &Target,
) -> Mapping {
    match target {
        Target::Cpu(cpu) => Mapping::Cpu(cpu::map(program, kernel, choice, cpu)),
        Target::Gpu(gpu) => Mapping::Gpu(simt::map(program, kernel, ranges, gpu)),
    }
}

/// Accesses that are contiguous along an axis.
fn contiguous(stage: &Stage, axis: Symbol) -> usize {
    let along =
        |access: &&crate::loops::Access| access.offset.affine_in(axis).is_some_and(|(step, _)| step.is(1));
    stage.accesses().filter(along).count()
}
