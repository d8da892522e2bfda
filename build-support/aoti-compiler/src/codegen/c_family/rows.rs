//! Calls of functions on rows, which are printed alike for processors and GPUs.

use super::expr::{scalar, worker_bytes};
use super::function::Parameters;
use super::terms::type_name;
use crate::kernels::axis_ops::Operand;
use crate::kernels::{Call, Scratch, Types};
use crate::loops::AxisKernel;

/// A call as a statement.
pub(in crate::codegen) fn call(
    own: &Call<Operand>,
    parameters: &Parameters,
    rows: &AxisKernel,
    scratch: &Scratch,
) -> String {
    let element = type_name(rows.dtype);
    let call = own.print(Types { element, sum: element }, |operand| match operand {
        Operand::Name(name) => (*name).to_owned(),
        Operand::Input(position) => parameters.buffer(rows.inputs[*position]).to_owned(),
        Operand::Output(position) => parameters.buffer(rows.outputs[*position]).to_owned(),
        Operand::Size(size) => scalar(size),
        Operand::Number(value) => format!("{element}({value:e})"),
        Operand::WorkerBytes => worker_bytes(scratch),
    });
    call + ";\n"
}
