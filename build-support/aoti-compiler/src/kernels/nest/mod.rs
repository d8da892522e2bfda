//! Loops as they stand: how they are laid over threads and lanes.

pub(crate) mod cpu;
pub(crate) mod scatter;
pub(crate) mod simt;

use super::{Algorithm, Code};
use crate::loops::{Access, Stage};
use crate::symbolic::Symbol;

pub(crate) static LOOPS: Algorithm =
    Algorithm { word: "loops", version: 1, description: "plain loops", headers: |_| &[], code: Code::Loops };

/// Accesses that are contiguous along an axis.
fn contiguous(stage: &Stage, axis: Symbol) -> usize {
    stage.accesses().filter(|access| is_along(access, axis)).count()
}

/// Whether neighbours along an axis are neighbours in memory.
fn is_along(access: &Access, axis: Symbol) -> bool {
    access.offset.affine_in(axis).is_some_and(|(step, _)| step.is(1))
}
