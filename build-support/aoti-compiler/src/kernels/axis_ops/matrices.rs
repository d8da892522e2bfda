//! Routines on single matrices.

use super::{Code, OnGpus, Operand, RUN, RowBlock, element_bytes, sizes};
use crate::constants;
use crate::graph::Routine;
use crate::kernels::launch::{Launch, Launches, MAX_BLOCKS};
use crate::kernels::scratch::aligned;
use crate::kernels::{self, Algorithm, Call, Scratch};
use crate::loops::{AxisKernel, AxisOp};
use crate::symbolic::{Expr, NoRanges, Ranges};

pub(crate) static MATRICES: Algorithm = Algorithm {
    word: "rows.matrices",
    version: 1,
    description: "matrices one by one",
    headers: |_| &["linalg.h"],
    code: kernels::Code::AxisOp(Code {
        scratch: |rows, target| Scratch::of_worker(aligned(&bytes(rows), target)),
        processors: Some(|rows| call("matrices", rows, [Operand::Name("run.scratch"), Operand::WorkerBytes])),
        gpus: Some(OnGpus {
            headers: &["linalg.h"],
            block,
            fits: |_, block| {
                block.is_apart() || (block.is_together() && block.threads <= constants::MATRIX_THREADS)
            },
            launches,
            calls: |rows, block| {
                let bytes = bytes_in_lines(rows);
                let memory = Operand::Name(if bytes.is(0) { "nullptr" } else { "scratch" });
                let function = if block.is_together() { "matrices_of_blocks" } else { "matrices" };
                call(function, rows, [memory, Operand::Size(bytes)]).into()
            },
        }),
    }),
};

/// Up to so many elements, a thread has a matrix for itself.
const SMALL: i64 = 64;
/// Bytes of a line of the cache.
const LINE: i64 = 64;

/// The block for matrices of so many elements: small ones have a thread each.
fn block(rows: &AxisKernel, ranges: &dyn Ranges) -> RowBlock {
    let together = |threads| RowBlock { threads, rows: 1 };
    match (&rows.length * &rows.inner).interval(ranges).max {
        ..=SMALL => RowBlock::ROW_EACH,
        65..=1024 => together(64),
        1025..=16384 => together(256),
        _ => together(constants::MATRIX_THREADS),
    }
}

fn launches(rows: &AxisKernel, RowBlock { threads, rows: at_once }: RowBlock) -> Launches {
    let bytes = bytes_in_lines(rows);
    let scratch = (!bytes.is(0)).then(|| &rows.outer * &bytes);
    Launches::with_scratch(vec![Launch::of(&rows.outer, at_once, threads, MAX_BLOCKS)], scratch)
}

/// The routine.
fn routine(rows: &AxisKernel) -> Routine {
    match rows.op {
        AxisOp::Matrices(routine) => routine,
        AxisOp::Scan(_)
        | AxisOp::Sort(_)
        | AxisOp::NthElement { .. }
        | AxisOp::SearchSorted { .. }
        | AxisOp::Fourier(_)
        | AxisOp::Recurrent(_) => {
            unreachable!("its rows are matrices")
        }
    }
}

/// Bytes that a routine works in for one matrix, which no two share a line of.
fn bytes_in_lines(rows: &AxisKernel) -> Expr {
    &bytes(rows).ceil_div(&Expr::int(LINE), &NoRanges) * LINE
}

/// Bytes that a routine works in, before they are aligned: the sizes are those of `linalg_*.h`.
fn bytes(rows: &AxisKernel) -> Expr {
    let (m, n) = (&rows.length, &rows.inner);
    let elements = match routine(rows) {
        Routine::Lu
        | Routine::Cholesky
        | Routine::Exchange
        | Routine::SolveLower
        | Routine::SolveUpper
        | Routine::Ldl
        | Routine::LdlSolve => Expr::int(0),
        Routine::Qr | Routine::Reflections => n.clone(),
        Routine::Eigh => n * n,
        Routine::Svd => &(m * n) + &(n * n),
        // Two complex matrices, a vector, and a real and a complex number for each rotation.
        Routine::Eig => &(&(n * n) * 4) + &(n * 5),
        // Positions, as wide as two numbers of `f32`.
        Routine::Mode => n * 2,
    };
    &elements * element_bytes(rows)
}

/// The call of `linalg.h` for a batch of matrices, which work in so many bytes each of some memory.
fn call(function: &'static str, rows: &AxisKernel, memory: [Operand; 2]) -> Call<Operand> {
    let name = match routine(rows) {
        Routine::Lu => "linalg::Lu",
        Routine::Cholesky => "linalg::Cholesky",
        Routine::Exchange => "linalg::Exchange",
        Routine::SolveLower => "linalg::SolveLower",
        Routine::SolveUpper => "linalg::SolveUpper",
        Routine::Ldl => "linalg::Ldl",
        Routine::LdlSolve => "linalg::LdlSolve",
        Routine::Qr => "linalg::Qr",
        Routine::Reflections => "linalg::Reflections",
        Routine::Eigh => "linalg::Eigh",
        Routine::Svd => "linalg::Svd",
        Routine::Eig => "linalg::Eig",
        Routine::Mode => "linalg::Mode",
    };
    let inputs = (0..rows.inputs.len()).map(Operand::Input);
    let outputs = (0..rows.outputs.len()).map(Operand::Output);
    let operands = [RUN].into_iter().chain(memory).chain(sizes(rows)).chain(inputs).chain(outputs);
    Call::new(function, operands).with([name.into()])
}
