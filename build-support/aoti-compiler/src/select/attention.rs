//! Ways to compute attention.

use super::{Attention, Candidate, Scratch, Template, only};
use crate::loops;
use crate::loops::Program;
use crate::target::{GpuTarget, MatrixShape, Target};

/// Queries that are few: a block goes over their keys with all its threads, and holds a mean of each in every thread.
const FEW_QUERIES: i64 = 4;

/// The matrix instruction that the template for matrix units is made of.
const INSTRUCTION: MatrixShape = MatrixShape { m: 16, n: 8, k: 16 };

/// The ways to compute attention.
pub(super) fn candidates(program: &Program, own: &loops::Attention, target: &Target) -> Vec<Candidate> {
    let algorithm = match target {
        Target::Gpu(gpu) => on(program, own, gpu),
        Target::Cpu(_) => Attention::Tiled,
    };
    vec![only(Template::Attention(algorithm), Scratch::default())]
}

/// The algorithm on a GPU. There is one for each case, none of which another would win.
pub(crate) fn on(program: &Program, own: &loops::Attention, gpu: &GpuTarget) -> Attention {
    let few = own.axes.iter().rev().nth(1).is_some_and(|query| query.extent.as_int().is_some_and(is_few));
    match (few, has_units(program, own, gpu)) {
        (true, _) => Attention::FewQueries,
        (false, true) => Attention::MatrixUnits,
        (false, false) => Attention::Tiled,
    }
}

fn is_few(queries: i64) -> bool {
    queries <= FEW_QUERIES
}

/// Whether matrix units multiply the operands as they are, and the weights as the program rounds them.
fn has_units(program: &Program, own: &loops::Attention, gpu: &GpuTarget) -> bool {
    let operands = [&own.queries, &own.keys, &own.values];
    own.dtype.is_half()
        && operands.iter().all(|operand| program.buffers[operand.buffer].dtype == own.dtype)
        && gpu.matrix_shapes.contains(&INSTRUCTION)
}
