//! Sorting. How rows are sorted on GPUs: what a block of threads of a GPU sorts at a time, and in how many passes longer rows are.
//!
//! A block sorts runs in shared memory. Longer rows are runs that are sorted by themselves first; then pairs of runs become
//! one, again and again (`gpu/sort.h`). Of rows of which only a few elements are asked for, as many
//! of each run are kept, until what is left is one run.

use super::{Calls, Code, OnGpus, Operand, RUN, RowBlock, flag, number, sizes};
use crate::constants;
use crate::dtype::DType;
use crate::kernels::launch::{Launch, Launches, MAX_BLOCKS};
use crate::kernels::scratch::aligned;
use crate::kernels::{self, Algorithm, Call, Parameter, Scratch};
use crate::loops::{AxisKernel, AxisOp, Sorting};
use crate::symbolic::{Expr, NoRanges, Ranges};

pub(crate) static SORT: Algorithm = Algorithm {
    word: "rows.sort",
    version: 3,
    description: "sorted rows",
    headers: |_| &["rows.h"],
    code: kernels::Code::AxisOp(Code {
        // Two arrays of elements with their places that are moved into each other.
        scratch: |rows, target| {
            Scratch::of_worker(aligned(&(&rows.length * (2 * item_bytes(rows.dtype))), target))
        },
        processors: Some(call),
        gpus: Some(OnGpus {
            headers: &["rows.h", "gpu/scan.h", "gpu/sort.h"],
            block,
            fits: |rows, block| match sorting(rows) {
                Sorting { merged: Some(_), .. } => block == RowBlock { threads: MERGING, rows: 1 },
                _ => capacity(block).is_some(),
            },
            launches,
            calls,
        }),
    }),
};

/// Elements that a thread of a block has (`kSorted` of `gpu/sort.h`).
const SORTED_AT_ONCE: i64 = constants::SORTED;
/// Elements that a block has at least, of several short rows.
const FEWEST: i64 = 512;
/// Threads of a block that merges.
const MERGING: i64 = 512;

/// Whether elements are compared as 64 bits.
fn is_wide(dtype: DType) -> bool {
    dtype.compute().size() > 4
}

/// Bytes of an element with its place (`SortItem` of `rows.h`).
fn item_bytes(dtype: DType) -> i64 {
    if is_wide(dtype) { 16 } else { 8 }
}

/// Elements that a block sorts in shared memory at most.
fn most_of_block(dtype: DType) -> i64 {
    if is_wide(dtype) { 2048 } else { 4096 }
}

/// How rows are sorted.
fn sorting(rows: &AxisKernel) -> Sorting {
    match rows.op {
        AxisOp::Sort(sorting) => sorting,
        AxisOp::Scan(_)
        | AxisOp::NthElement { .. }
        | AxisOp::SearchSorted { .. }
        | AxisOp::Matrices(_)
        | AxisOp::Fourier(_)
        | AxisOp::Recurrent(_) => {
            unreachable!("its rows are sorted")
        }
    }
}

/// The block that sorts or merges.
fn block(rows: &AxisKernel, ranges: &dyn Ranges) -> RowBlock {
    let sorting = sorting(rows);
    if sorting.merged.is_some() {
        return RowBlock { threads: MERGING, rows: 1 };
    }
    let length = rows.length.interval(ranges).max;
    block_of(rows.dtype, sorting.run.map_or(length, |run| run.min(length)))
}

/// The block that sorts runs of up to so many elements.
fn block_of(dtype: DType, length: i64) -> RowBlock {
    let capacity = length.clamp(SORTED_AT_ONCE, most_of_block(dtype)).unsigned_abs().next_power_of_two();
    let capacity = capacity.cast_signed();
    let rows = (FEWEST / capacity).max(1);
    RowBlock { threads: rows * capacity / SORTED_AT_ONCE, rows }
}

/// Results of a block that merges.
fn results_of_block(threads: i64) -> i64 {
    threads * SORTED_AT_ONCE
}

/// Elements of a run at most where a block of so many threads sorts so many at a time.
fn capacity(RowBlock { threads, rows }: RowBlock) -> Option<i64> {
    let elements = threads.checked_mul(SORTED_AT_ONCE)?;
    let capacity = elements.checked_div(rows).filter(|own| own * rows == elements)?;
    (capacity.count_ones() == 1 && threads.count_ones() == 1 && threads <= 1024).then_some(capacity)
}

/// Elements that are sorted at a time.
fn run_length(rows: &AxisKernel) -> Expr {
    sorting(rows).run.map_or(rows.length.clone(), Expr::int)
}

/// Whether a block sorts runs of so many elements in shared memory, whatever sizes there are.
fn fits_block(run: &Expr, block: RowBlock) -> bool {
    run.as_int().is_some_and(|run| run <= capacity(block).unwrap_or_default())
}

/// Runs that are sorted by blocks, or merged by all threads.
fn launches(rows: &AxisKernel, block: RowBlock) -> Launches {
    let count = &rows.outer * &rows.inner;
    let launch = |units: &Expr| Launch::of(units, block.rows, block.threads, MAX_BLOCKS);
    if sorting(rows).merged.is_some() && rows.inputs.len() > 1 {
        let chunks = rows.length.ceil_div(&Expr::int(results_of_block(block.threads)), &NoRanges);
        return launch(&(&count * &chunks)).into();
    }
    let run = run_length(rows);
    let runs = rows.length.ceil_div(&run.maximum(&Expr::int(1)), &NoRanges);
    // Positions of a row are merged between two arrays.
    let scratch = (!fits_block(&run, block)).then(|| &(&count * &rows.length) * 16);
    Launches::with_scratch(vec![launch(&(&count * &runs))], scratch)
}

/// Values and places of results.
const RESULTS: [Operand; 2] = [Operand::Output(0), Operand::Output(1)];

/// Elements of a row that are asked for.
fn results(rows: &AxisKernel) -> Operand {
    Operand::Size(sorting(rows).results(&rows.length))
}

fn call(rows: &AxisKernel) -> Call<Operand> {
    let Sorting { descending, run, merged, .. } = sorting(rows);
    debug_assert!(run.is_none() && merged.is_none(), "processors sort whole rows");
    let operands = [RUN, Operand::Input(0)].into_iter().chain(RESULTS).chain(sizes(rows));
    Call::new("sort_rows", operands.chain([results(rows)])).with([Parameter::Element, flag(descending)])
}

/// What blocks of threads call for runs that are sorted, or merged by all threads.
fn calls(rows: &AxisKernel, block: RowBlock) -> Calls {
    let Sorting { descending, merged, kept, .. } = sorting(rows);
    let [threads, descending] = [number(block.threads), flag(descending)];
    let input = Operand::Input(0);
    let has_places = rows.inputs.len() > 1;
    let places = if has_places { Operand::Input(1) } else { Operand::Name("NoPlaces{}") };
    if let (Some(merged), true) = (merged, has_places) {
        let operands = [input, places].into_iter().chain(RESULTS).chain(sizes(rows));
        let operands = operands.chain([results(rows), Operand::Size(Expr::int(merged))]);
        return Call::new("merge_runs", operands).with([threads, Parameter::Element, descending]).into();
    }
    let run = run_length(rows);
    let kept = kept.map_or(run.clone(), Expr::int);
    let fits = fits_block(&run, block);
    let parameters = [threads.clone(), number(block.rows), Parameter::Element, descending.clone()];
    let operands = [input.clone(), places].into_iter().chain(RESULTS).chain(sizes(rows));
    let call = Call::new("sort_runs", operands.chain([run, kept].map(Operand::Size))).with(parameters);
    let longer = (!fits).then(|| {
        let operands = [input].into_iter().chain(RESULTS).chain([Operand::Name("scratch")]);
        let call = Call::new("sort_long_rows", operands.chain(sizes(rows)).chain([results(rows)]));
        (capacity(block).unwrap_or_default(), call.with([threads, Parameter::Element, descending]))
    });
    Calls { call, longer }
}

/// What a GPU does one after the other to sort rows of so many elements.
pub(crate) fn passes(dtype: DType, length: &Expr, descending: bool, kept: Option<i64>) -> Vec<Sorting> {
    let whole = Sorting { descending, run: None, merged: None, kept };
    let most = most_of_block(dtype);
    let Some(length) = length.as_int().filter(|length| *length > most) else { return vec![whole] };
    let mut passes = vec![];
    if let Some(kept) = kept.filter(|kept| *kept <= most / 4) {
        let mut left = length;
        while left > most {
            let pass = Sorting { run: Some(most), ..whole };
            left = left / most * kept + kept.min(left % most);
            passes.push(pass);
        }
        passes.push(whole);
        return passes;
    }
    passes.push(Sorting { run: Some(most), kept: None, ..whole });
    let mut run = most;
    while run < length {
        let merged = Some(run);
        run = run.saturating_mul(2);
        passes.push(if run < length {
            Sorting { run: Some(run), merged, kept: None, ..whole }
        } else {
            Sorting { merged, ..whole }
        });
    }
    passes
}

/// The type of places in rows of so many elements between two passes.
pub(crate) fn places(length: &Expr) -> DType {
    if length.as_int().is_some_and(|length| i32::try_from(length).is_ok()) { DType::I32 } else { DType::I64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rows_share_a_block() {
        let block = |threads, rows| RowBlock { threads, rows };
        assert_eq!(block_of(DType::F32, 3), block(128, 128));
        assert_eq!(block_of(DType::F32, 100), block(128, 4));
        assert_eq!(block_of(DType::F32, 4000), block(1024, 1));
        assert_eq!(block_of(DType::F64, 1 << 20), block(512, 1));
        assert_eq!(capacity(block(128, 4)), Some(128));
        assert_eq!(capacity(block(96, 4)), None);
    }

    #[test]
    fn long_rows_are_sorted_in_passes() {
        let of = |length: i64, kept| passes(DType::F32, &Expr::int(length), false, kept);
        assert_eq!(of(4096, None).len(), 1);
        assert_eq!(of(8192, None).len(), 2);
        assert_eq!(of(20_000, None).len(), 4);
        assert_eq!(of(1 << 20, Some(5)).len(), 2);
        let merged: Vec<_> = of(10_000, Some(5000)).iter().map(|pass| (pass.merged, pass.kept)).collect();
        assert_eq!(merged, [(None, None), (Some(4096), None), (Some(8192), Some(5000))]);
    }
}
