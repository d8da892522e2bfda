//! Routines on matrices as calls of `linalg.h`, which are the same on processors and GPUs.

use super::expr::scalar;
use super::function::Parameters;
use crate::graph::Routine;
use crate::loops::RowOperation;

/// The call of `linalg.h` for a batch of matrices, which work in so many bytes each of some memory.
pub(in crate::codegen) fn matrices(
    function: &str,
    parameters: &Parameters,
    rows: &RowOperation,
    routine: Routine,
    (memory, bytes): (&str, &str),
) -> String {
    let sizes = [&rows.outer, &rows.length, &rows.inner].map(scalar).join(", ");
    let tensors: Vec<&str> =
        rows.inputs.iter().chain(&rows.outputs).map(|buffer| parameters.buffer(*buffer)).collect();
    let name = match routine {
        Routine::Lu => "Lu",
        Routine::Cholesky => "Cholesky",
        Routine::Exchange => "Exchange",
        Routine::SolveLower => "SolveLower",
        Routine::SolveUpper => "SolveUpper",
        Routine::Ldl => "Ldl",
        Routine::LdlSolve => "LdlSolve",
        Routine::Qr => "Qr",
        Routine::Reflections => "Reflections",
        Routine::Eigh => "Eigh",
        Routine::Svd => "Svd",
        Routine::Eig => "Eig",
        Routine::Select => "Select",
        Routine::Mode => "Mode",
    };
    format!("{function}<linalg::{name}>(run, {memory}, {bytes}, {sizes}, {});\n", tensors.join(", "))
}
