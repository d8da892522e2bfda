//! Row operations: calls of the templates in `rows.h`, `linalg.h` and `fourier.h`.

use super::KernelText;
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::rows::call;
use crate::kernels::{Selection, axis_ops};
use crate::loops::AxisKernel;

pub(super) fn print(parameters: &Parameters, rows: &AxisKernel, choice: &Selection, text: &mut KernelText) {
    let own = axis_ops::call(choice.algorithm, rows);
    text.body = call(&own, parameters, rows, &choice.scratch);
}
