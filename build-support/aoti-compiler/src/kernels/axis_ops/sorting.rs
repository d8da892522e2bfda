//! How rows are sorted: what a block of threads of a GPU sorts at a time, and in how many passes longer rows are.
//!
//! A block sorts runs in shared memory. Longer rows are runs that are sorted by themselves first; then pairs of runs become
//! one, again and again (`gpu/sort.h`). Of rows of which only a few elements are asked for, as many
//! of each run are kept, until what is left is one run.

use crate::dtype::DType;
use crate::loops::Sorting;
use crate::symbolic::Expr;

/// Elements that a thread of a block has (`kSorted` of `gpu/sort.h`).
const SORTED_AT_ONCE: i64 = 4;
/// Elements that a block has at least, of several short rows.
const FEWEST: i64 = 512;
/// Threads of a block that merges.
pub(crate) const MERGING: i64 = 512;

/// Whether elements are compared as 64 bits.
fn is_wide(dtype: DType) -> bool {
    dtype.compute().size() > 4
}

/// Bytes of an element with its place (`SortItem` of `rows.h`).
pub(super) fn item_bytes(dtype: DType) -> i64 {
    if is_wide(dtype) { 16 } else { 8 }
}

/// Elements that a block sorts in shared memory at most.
fn most_of_block(dtype: DType) -> i64 {
    if is_wide(dtype) { 2048 } else { 4096 }
}

/// Threads of a block, and the runs of up to so many elements that it sorts at a time.
pub(crate) fn block_of(dtype: DType, length: i64) -> (i64, i64) {
    let capacity = length.clamp(SORTED_AT_ONCE, most_of_block(dtype)).unsigned_abs().next_power_of_two();
    let capacity = capacity.cast_signed();
    let rows = (FEWEST / capacity).max(1);
    (rows * capacity / SORTED_AT_ONCE, rows)
}

/// Results of a block that merges.
pub(crate) fn results_of_block(threads: i64) -> i64 {
    threads * SORTED_AT_ONCE
}

/// Elements of a run at most where a block of so many threads sorts so many at a time.
pub(crate) fn capacity(threads: i64, rows: i64) -> Option<i64> {
    let elements = threads.checked_mul(SORTED_AT_ONCE)?;
    let capacity = elements.checked_div(rows).filter(|own| own * rows == elements)?;
    (capacity.count_ones() == 1 && threads.count_ones() == 1 && threads <= 1024).then_some(capacity)
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
            Sorting { run: Some(run), merged, kept: None, descending }
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
    use crate::codegen::headers::numbers::number;

    #[test]
    fn sizes_are_those_of_the_headers() {
        assert_eq!(SORTED_AT_ONCE, number("gpu/sort.h", "kSorted"));
    }

    #[test]
    fn short_rows_share_a_block() {
        assert_eq!(block_of(DType::F32, 3), (128, 128));
        assert_eq!(block_of(DType::F32, 100), (128, 4));
        assert_eq!(block_of(DType::F32, 4000), (1024, 1));
        assert_eq!(block_of(DType::F64, 1 << 20), (512, 1));
        assert_eq!(capacity(128, 4), Some(128));
        assert_eq!(capacity(96, 4), None);
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
