//! Row operations: calls of the templates in `rows.h`.

use super::KernelText;
use crate::codegen::c_family::expr::{scalar, worker_bytes};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::matrices::matrices;
use crate::codegen::c_family::terms::type_name;
use crate::fourier::{Form, Fourier, Plan, Way};
use crate::graph::ScanOp;
use crate::kernels::Scratch;
use crate::loops::{RowOp, RowOperation};

pub(super) fn print(parameters: &Parameters, rows: &RowOperation, scratch: &Scratch, text: &mut KernelText) {
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
        RowOp::Sort(sorting) => {
            debug_assert!(sorting.run.is_none() && sorting.merged.is_none(), "processors sort whole rows");
            let kept = scalar(&sorting.results(&rows.length));
            format!(
                "sort_rows<{element}, {}>(run, {}, {}, {}, {outer}, {length}, {inner}, {kept});\n",
                sorting.descending,
                name(0),
                output(0),
                output(1)
            )
        }
        RowOp::Matrices(routine) => {
            matrices("matrices", parameters, rows, *routine, ("run.scratch", &worker_bytes(scratch)))
        }
        RowOp::Fourier(own) => fourier(parameters, rows, own, scratch),
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

/// The call of `fourier.h`.
fn fourier(parameters: &Parameters, rows: &RowOperation, own: &Fourier, scratch: &Scratch) -> String {
    let plan = Plan::of(own, rows.dtype);
    let form = match own.form {
        Form::Forward => "kForward",
        Form::Inverse => "kInverse",
        Form::ToHalf => "kToHalf",
        Form::FromHalf => "kFromHalf",
    };
    let way = match plan.way {
        Way::Plain => "kPlain",
        Way::Halved => "kHalved",
        Way::Convolved => "kConvolved",
        Way::Product => unreachable!("products have taken its place"),
    };
    let radices = plan.radices.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let bytes = worker_bytes(scratch);
    let [x, roots, y] =
        [rows.inputs[0], rows.inputs[1], rows.outputs[0]].map(|buffer| parameters.buffer(buffer));
    let (n, element, rows, scale) = (own.length, type_name(rows.dtype), scalar(&rows.outer), own.scale());
    format!(
        "fourier_rows<fourier::{form}, fourier::{way}, {n}, fourier::Radices<{radices}>>(\n    run, {bytes}, {rows}, {x}, {roots}, {y}, {element}({scale:e}));\n"
    )
}
