//! Loops as they stand: how they are laid over threads and lanes.

pub(crate) mod cpu;
pub(super) mod scatter;
pub(crate) mod simt;

use super::{Algorithm, Code};
use crate::loops::Stage;
use crate::symbolic::Symbol;

pub(crate) static LOOPS: Algorithm =
    Algorithm { word: "loops", version: 1, description: "plain loops", headers: |_| &[], code: Code::Loops };

/// Accesses that are contiguous along an axis.
fn contiguous(stage: &Stage, axis: Symbol) -> usize {
    let along =
        |access: &&crate::loops::Access| access.offset.affine_in(axis).is_some_and(|(step, _)| step.is(1));
    stage.accesses().filter(along).count()
}
