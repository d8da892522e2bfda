//! Loops as they stand: how they are laid over threads and lanes.

pub(crate) mod cpu;
pub(crate) mod scatter;
pub(crate) mod simt;

use super::Algorithm;
use super::launch::Launches;
use super::mapping::GpuMapping;
use crate::loops::{Access, Kernel, Nest, Program, Stage};
use crate::symbolic::Symbol;

pub(crate) static LOOPS: Algorithm = Algorithm {
    word: "loops",
    version: 1,
    description: "plain loops",
    headers: |_| &[],
    code: super::Code::Loops(Code { launches }),
};

/// What an algorithm for loops does.
pub(crate) struct Code {
    /// How a device launches them.
    pub(super) launches: fn(&Program, &Kernel, &Nest, &GpuMapping) -> Launches,
}

fn launches(program: &Program, kernel: &Kernel, nest: &Nest, mapping: &GpuMapping) -> Launches {
    match mapping {
        GpuMapping::Teams(teams) => simt::launches(program, kernel, nest, teams),
        GpuMapping::Scatter(own) => scatter::Plan::new(program, nest, own).launches(),
        GpuMapping::Tiles(_) | GpuMapping::Template { .. } => unreachable!("loops are mapped to teams"),
    }
}

/// Accesses that are contiguous along an axis.
fn contiguous(stage: &Stage, axis: Symbol) -> usize {
    stage.accesses().filter(|access| is_along(access, axis)).count()
}

/// Whether neighbours along an axis are neighbours in memory.
fn is_along(access: &Access, axis: Symbol) -> bool {
    access.offset.affine_in(axis).is_some_and(|(step, _)| step.is(1))
}
