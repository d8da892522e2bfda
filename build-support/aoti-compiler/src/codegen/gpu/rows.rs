//! Row operations: calls of the templates in `rows.h`, `gpu/scan.h` and `gpu/sort.h`.

use super::{Printed, index_type};
use crate::codegen::c_family::expr::scalar;
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::matrices::matrices;
use crate::codegen::c_family::terms::type_name;
use crate::graph::ScanOp;
use crate::kernels::axis_ops::launch::{bytes_of_matrix, fits_block, run_length};
use crate::kernels::axis_ops::sorting;
use crate::kernels::mapping::IndexWidth;
use crate::loops::{RowOp, RowOperation, Sorting};
use crate::symbolic::Expr;

/// Runs that are sorted by blocks, or merged by all threads.
fn sort(
    parameters: &Parameters,
    rows: &RowOperation,
    sorting: &Sorting,
    (threads, at_once): (i64, i64),
) -> String {
    let element = type_name(rows.dtype);
    let (outer, length, inner) = (scalar(&rows.outer), scalar(&rows.length), scalar(&rows.inner));
    let input = parameters.buffer(rows.inputs[0]);
    let outputs = format!("{}, {}", parameters.buffer(rows.outputs[0]), parameters.buffer(rows.outputs[1]));
    let places = rows.inputs.get(1).map(|own| parameters.buffer(*own));
    let run = run_length(rows, sorting);
    let kept = sorting.kept.map_or(run.clone(), Expr::int);
    let sizes = format!("{outer}, {length}, {inner}, {}, {}", scalar(&run), scalar(&kept));
    let descending = sorting.descending;
    if let (Some(merged), Some(places)) = (sorting.merged, &places) {
        let kept = scalar(&sorting.results(&rows.length));
        return format!(
            "merge_runs<{threads}, {element}, {descending}>({input}, {places}, {outputs}, {outer}, {length}, {inner}, {kept}, {merged});\n"
        );
    }
    let capacity = sorting::capacity(threads, at_once).unwrap_or_default();
    let places = places.unwrap_or("NoPlaces{}");
    let in_block = format!(
        "sort_runs<{threads}, {at_once}, {element}, {descending}>({input}, {places}, {outputs}, {sizes});\n"
    );
    if fits_block(&run, (threads, at_once)) {
        return in_block;
    }
    let kept = scalar(&sorting.results(&rows.length));
    format!(
        "if ({length} <= {capacity})\n  {in_block}else\n  sort_long_rows<{threads}, {element}, {descending}>({input}, {outputs}, scratch, {outer}, {length}, {inner}, {kept});\n"
    )
}

pub(super) fn print(
    parameters: &Parameters,
    rows: &RowOperation,
    (threads, at_once): (i64, i64),
    index: IndexWidth,
) -> Printed {
    debug_assert_eq!(index_type(index), "i64", "the templates count in 64 bits");
    let name = |index: usize| parameters.buffer(rows.inputs[index]);
    let output = |index: usize| parameters.buffer(rows.outputs[index]);
    let element = type_name(rows.dtype);
    let (outer, length, inner) = (scalar(&rows.outer), scalar(&rows.length), scalar(&rows.inner));
    let sizes = format!("{outer}, {length}, {inner}");
    let body = match &rows.op {
        RowOp::Scan(op) => {
            let combine = match op {
                ScanOp::Sum => "ScanSum",
                ScanOp::Prod => "ScanProd",
                ScanOp::LogSumExp => "ScanLogSumExp",
                ScanOp::Max => "ScanMax",
                ScanOp::Min => "ScanMin",
            };
            let mut arguments = vec![name(0), output(0)];
            let function = if op.has_indices() {
                arguments.push(output(1));
                "scan_extreme"
            } else {
                "scan"
            };
            let arguments = arguments.join(", ");
            if at_once == 1 {
                format!("{function}_rows<{threads}, {combine}, {element}>({arguments}, {sizes});\n")
            } else {
                format!("{function}<{combine}, {element}>(run, {arguments}, {sizes});\n")
            }
        }
        RowOp::Sort(sorting) => sort(parameters, rows, sorting, (threads, at_once)),
        RowOp::Matrices(routine) => {
            let bytes = bytes_of_matrix(*routine, rows);
            let memory = if bytes.is(0) { "nullptr" } else { "scratch" };
            let function = if at_once == 1 { "matrices_of_blocks" } else { "matrices" };
            let body = matrices(function, parameters, rows, *routine, (memory, &scalar(&bytes)));
            return Printed { body, headers: vec!["linalg.h"] };
        }
        RowOp::Fourier(_) => unreachable!("products have taken its place"),
        RowOp::SearchSorted { right } => {
            format!(
                "search_sorted<{element}, {right}>(run, {}, {}, {}, {sizes});\n",
                name(0),
                name(1),
                output(0)
            )
        }
    };
    Printed { body, headers: vec!["rows.h", "gpu/scan.h", "gpu/sort.h"] }
}
