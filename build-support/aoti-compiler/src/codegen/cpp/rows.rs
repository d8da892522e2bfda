//! Row operations: calls of the templates in `rows.h`.

use super::KernelText;
use crate::codegen::c_family::expr::scalar;
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::matrices::{matrices, matrix_scratch};
use crate::codegen::c_family::terms::type_name;
use crate::graph::ScanOp;
use crate::loops::{RowOp, RowOperation};

pub(super) fn print(parameters: &Parameters, rows: &RowOperation, text: &mut KernelText) {
    let name = |index: usize| parameters.buffer(rows.inputs[index]);
    let output = |index: usize| parameters.buffer(rows.outputs[index]);
    let element = type_name(rows.dtype);
    let (outer, length, inner) = (scalar(&rows.outer), scalar(&rows.length), scalar(&rows.inner));
    text.body = match &rows.op {
        RowOp::Scan(op) => {
            let combine = match op {
                ScanOp::Sum => "ScanSum",
                ScanOp::Prod => "ScanProd",
                ScanOp::LogSumExp => "ScanLogSumExp",
                ScanOp::Max => "ScanMax",
                ScanOp::Min => "ScanMin",
            };
            if op.has_indices() {
                format!(
                    "scan_extreme<{combine}, {element}>(run, {}, {}, {}, {outer}, {length}, {inner});\n",
                    name(0),
                    output(0),
                    output(1)
                )
            } else {
                format!(
                    "scan<{combine}, {element}>(run, {}, {}, {outer}, {length}, {inner});\n",
                    name(0),
                    output(0)
                )
            }
        }
        RowOp::Sort { descending } => {
            format!(
                "sort_rows<{element}, {descending}>(run, {}, {}, {}, {outer}, {length}, {inner});\n",
                name(0),
                output(0),
                output(1)
            )
        }
        RowOp::Matrices(routine) => {
            let bytes = scalar(&matrix_scratch(*routine, rows));
            matrices(parameters, rows, *routine, ("run.scratch", &bytes))
        }
        RowOp::SearchSorted { right } => {
            format!(
                "search_sorted<{element}, {right}>(run, {}, {}, {}, {outer}, {length}, {inner});\n",
                name(0),
                name(1),
                output(0)
            )
        }
    };
}
