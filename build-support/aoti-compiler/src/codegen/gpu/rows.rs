//! Row operations: calls of the templates in `rows.h` and `gpu/sort.h`.

use super::{Launch, MAX_BLOCKS, Printed, index_type};
use crate::codegen::c_family::expr::scalar;
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::matrices::{matrices, matrix_scratch};
use crate::codegen::c_family::terms::type_name;
use crate::graph::ScanOp;
use crate::loops::{RowOp, RowOperation};
use crate::schedule::mapping::IndexWidth;

/// Threads of a block where each thread has a row of its own.
const ROWS: i64 = 64;

pub(super) fn print(
    parameters: &Parameters,
    rows: &RowOperation,
    threads: i64,
    index: IndexWidth,
) -> Printed {
    debug_assert_eq!(index_type(index), "i64", "the templates count in 64 bits");
    let name = |index: usize| parameters.buffer(rows.inputs[index]);
    let output = |index: usize| parameters.buffer(rows.outputs[index]);
    let element = type_name(rows.dtype);
    let (outer, length, inner) = (scalar(&rows.outer), scalar(&rows.length), scalar(&rows.inner));
    let count = &rows.outer * &rows.inner;
    let sizes = format!("{outer}, {length}, {inner}");
    let by_rows = Launch::of(&count, ROWS, ROWS, MAX_BLOCKS);
    let (body, launch) = match &rows.op {
        RowOp::Scan(op) => {
            let combine = match op {
                ScanOp::Sum => "ScanSum",
                ScanOp::Prod => "ScanProd",
                ScanOp::LogSumExp => "ScanLogSumExp",
                ScanOp::Max => "ScanMax",
                ScanOp::Min => "ScanMin",
            };
            let body = if op.has_indices() {
                format!(
                    "scan_extreme<{combine}, {element}>(run, {}, {}, {}, {sizes});\n",
                    name(0),
                    output(0),
                    output(1)
                )
            } else {
                format!("scan<{combine}, {element}>(run, {}, {}, {sizes});\n", name(0), output(0))
            };
            (body, by_rows)
        }
        RowOp::Sort { descending } => {
            let body = format!(
                "sort_rows<{threads}, {element}, {descending}>({}, {}, {}, scratch, {sizes});\n",
                name(0),
                output(0),
                output(1)
            );
            // Positions of a row are merged between two arrays.
            let launch = Launch::of(&count, 1, threads, MAX_BLOCKS);
            (body, Launch { scratch: Some(&(&count * &rows.length) * 16), ..launch })
        }
        RowOp::Matrices(routine) => {
            let bytes = matrix_scratch(*routine, rows);
            let memory = if bytes.is(0) { "nullptr" } else { "scratch" };
            let body = matrices(parameters, rows, *routine, (memory, &scalar(&bytes)));
            let launch = Launch::of(&rows.outer, ROWS, ROWS, MAX_BLOCKS);
            let scratch = (!bytes.is(0)).then(|| &rows.outer * &bytes);
            return Printed { body, launch: Launch { scratch, ..launch }, headers: vec!["linalg.h"] };
        }
        RowOp::Fourier(_) => unreachable!("products have taken its place"),
        RowOp::SearchSorted { right } => {
            let body = format!(
                "search_sorted<{element}, {right}>(run, {}, {}, {}, {sizes});\n",
                name(0),
                name(1),
                output(0)
            );
            (body, Launch::of(&(&rows.outer * &rows.inner), ROWS, ROWS, MAX_BLOCKS))
        }
    };
    Printed { body, launch, headers: vec!["rows.h", "gpu/sort.h"] }
}
