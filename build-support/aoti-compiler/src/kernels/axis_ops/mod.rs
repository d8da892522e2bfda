//! Operations on whole rows: sorting, running reductions, searches, routines on single matrices, Fourier transforms.

pub(crate) mod launch;
pub(crate) mod sorting;

use super::laid::{Laid, costing, with_grains};
use super::mapping::{Block, CpuMapping, Grain, Lanes, Split};
use super::scratch::aligned;
use super::{Algorithm, Code, Scratch};
use crate::cost::Item;
use crate::fourier::Plan;
use crate::graph::Routine;
use crate::loops::{Kernel, KernelKind, RowOp, RowOperation};
use crate::symbolic::Expr;
use crate::target::{CpuTarget, Target};

pub(crate) static ROWS: Algorithm =
    Algorithm { word: "rows", version: 1, description: "rows one by one", headers, code: Code::Rows };

fn headers(kernel: &Kernel) -> &'static [&'static str] {
    let KernelKind::Rows(rows) = &kernel.kind else { return &[] };
    match rows.op {
        RowOp::Matrices(_) => &["linalg.h"],
        RowOp::Fourier(_) => &["fourier.h"],
        RowOp::Scan(_) | RowOp::Sort(_) | RowOp::SearchSorted { .. } => &["rows.h"],
    }
}

/// What a worker has for one row: two arrays of elements with their places that are moved into each other, or what a routine or a
/// transform works in.
pub(super) fn scratch(rows: &RowOperation, target: &Target) -> Scratch {
    let bytes = match rows.op {
        RowOp::Sort(_) => &rows.length * (2 * sorting::item_bytes(rows.dtype)),
        RowOp::Matrices(routine) => matrix_bytes(routine, rows),
        RowOp::Fourier(fourier) => fourier_bytes(&Plan::of(&fourier, rows.dtype), rows),
        RowOp::Scan(_) | RowOp::SearchSorted { .. } => return Scratch::default(),
    };
    Scratch::of_worker(aligned(&bytes, target))
}

/// Bytes that a row of a transform is worked on in.
fn fourier_bytes(plan: &Plan, rows: &RowOperation) -> Expr {
    Expr::int(plan.work() * i64::try_from(rows.dtype.size()).expect("a few bytes"))
}

/// Bytes that a routine works in, before they are aligned: the sizes are those of `linalg_*.h`.
pub(crate) fn matrix_bytes(routine: Routine, rows: &RowOperation) -> Expr {
    let (m, n) = (&rows.length, &rows.inner);
    let elements = match routine {
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
        Routine::Select | Routine::Mode => n * 2,
    };
    &elements * i64::try_from(rows.dtype.size()).expect("a few bytes")
}

/// The ways to lay rows over the threads of a processor, and all their work.
pub(super) fn on_processor(rows: &RowOperation, target: &CpuTarget) -> (Vec<Laid>, Expr) {
    let unit = &rows.length * &rows.inner;
    let total = &unit * &rows.outer;
    let grain = Grain { enough: target.thread_work, unit };
    let (lanes, block) = (Lanes::One, Block::Typical);
    let mapping = CpuMapping { split: Split::Template, lanes, grain, block, rows: None };
    (costing(with_grains(&mapping, &total), Item::Access, &total), total)
}
