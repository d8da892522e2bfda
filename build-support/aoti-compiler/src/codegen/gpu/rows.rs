//! Row operations as device code: calls of the templates in `rows.h`, `gpu/scan.h`, `gpu/sort.h` and `linalg.h`.

use super::{Printed, index_type};
use crate::codegen::c_family::expr::scalar;
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::rows::call;
use crate::kernels::Selection;
use crate::kernels::axis_ops::{self, Calls, RowBlock};
use crate::kernels::mapping::IndexWidth;
use crate::loops::AxisKernel;

pub(super) fn print(
    parameters: &Parameters,
    rows: &AxisKernel,
    (choice, block): (&Selection, RowBlock),
    index: IndexWidth,
) -> Printed {
    debug_assert_eq!(index_type(index), "i64", "the templates count in 64 bits");
    let gpus = axis_ops::gpus(choice.algorithm);
    let print = |own| call(own, parameters, rows, &choice.scratch);
    let Calls { call, longer } = (gpus.calls)(rows, block);
    let body = match longer {
        None => print(&call),
        Some((most, longer)) => {
            let (call, longer) = (print(&call), print(&longer));
            format!("if ({} <= {most})\n  {call}else\n  {longer}", scalar(&rows.length))
        }
    };
    Printed { body, headers: gpus.headers.to_vec() }
}
