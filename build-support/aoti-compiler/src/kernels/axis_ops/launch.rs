//! How operations on rows are launched.

use super::{matrix_bytes, sorting};
use crate::graph::Routine;
use crate::kernels::launch::{Launch, Launches, MAX_BLOCKS};
use crate::loops::{RowOp, RowOperation, Sorting};
use crate::symbolic::{Expr, NoRanges};

/// Bytes of a line of the cache.
const LINE: i64 = 64;

/// What a block of so many threads does that has so many rows at a time.
pub(in crate::kernels) fn launches(rows: &RowOperation, (threads, at_once): (i64, i64)) -> Launches {
    let launch = |units: &Expr| Launch::of(units, at_once, threads, MAX_BLOCKS);
    match rows.op {
        RowOp::Sort(sorting) => sort(rows, &sorting, (threads, at_once)),
        RowOp::Matrices(routine) => {
            let bytes = bytes_of_matrix(routine, rows);
            let scratch = (!bytes.is(0)).then(|| &rows.outer * &bytes);
            Launches::with_scratch(vec![launch(&rows.outer)], scratch)
        }
        RowOp::Scan(_) | RowOp::SearchSorted { .. } | RowOp::Fourier(_) => {
            launch(&(&rows.outer * &rows.inner)).into()
        }
    }
}

/// Bytes that a routine works in for one matrix, which no two share a line of.
pub(crate) fn bytes_of_matrix(routine: Routine, rows: &RowOperation) -> Expr {
    &matrix_bytes(routine, rows).ceil_div(&Expr::int(LINE), &NoRanges) * LINE
}

/// Runs that are sorted by blocks, or merged by all threads.
fn sort(rows: &RowOperation, sorting: &Sorting, (threads, at_once): (i64, i64)) -> Launches {
    let count = &rows.outer * &rows.inner;
    if sorting.merged.is_some() && rows.inputs.len() > 1 {
        let chunks = rows.length.ceil_div(&Expr::int(sorting::results_of_block(threads)), &NoRanges);
        return Launch::of(&(&count * &chunks), at_once, threads, MAX_BLOCKS).into();
    }
    let run = run_length(rows, sorting);
    let runs = rows.length.ceil_div(&run.maximum(&Expr::int(1)), &NoRanges);
    let launch = Launch::of(&(&count * &runs), at_once, threads, MAX_BLOCKS);
    // Positions of a row are merged between two arrays.
    let scratch = (!fits_block(&run, (threads, at_once))).then(|| &(&count * &rows.length) * 16);
    Launches::with_scratch(vec![launch], scratch)
}

/// Elements that are sorted at a time.
pub(crate) fn run_length(rows: &RowOperation, sorting: &Sorting) -> Expr {
    sorting.run.map_or(rows.length.clone(), Expr::int)
}

/// Whether a block sorts runs of so many elements in shared memory, whatever sizes there are.
pub(crate) fn fits_block(run: &Expr, (threads, at_once): (i64, i64)) -> bool {
    let capacity = sorting::capacity(threads, at_once).unwrap_or_default();
    run.as_int().is_some_and(|run| run <= capacity)
}
