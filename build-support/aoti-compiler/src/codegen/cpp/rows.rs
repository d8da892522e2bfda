//! Row operations: calls of the templates in `rows.h`, `linalg.h` and `fourier.h`.

use super::KernelText;
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::rows::call;
use crate::kernels::{Choice, axis_ops};
use crate::loops::RowOperation;

pub(super) fn print(parameters: &Parameters, rows: &RowOperation, choice: &Choice, text: &mut KernelText) {
    let own = axis_ops::call(choice.algorithm, rows);
    text.body = call(&own, parameters, rows, &choice.scratch);
}
