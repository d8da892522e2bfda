//! Which calls of operators that may give a window give a copy instead, as the strides of their operand decide.
//!
//! `reshape` and its relatives give a window where strides allow one and a copy elsewhere; writing to the result then
//! does not reach the operand.

use crate::frontend::torch::aten::{Arg, Call, Output, Program, TensorMeta};
use crate::symbolic::Expr;

fn reshapes(call: &Call) -> bool {
    matches!(
        call.target.as_str(),
        "aten.reshape.default" | "aten.reshape_as.default" | "aten.flatten.using_ints" | "aten.ravel.default"
    )
}

/// Whether strides decide if a call's result is a window.
pub(crate) fn depends_on_strides(call: &Call) -> bool {
    reshapes(call) || call.target == "aten.contiguous.default"
}

/// Whether the result of a call of a view operator is a tensor of its own.
pub(crate) fn copies(call: &Call, program: &Program) -> bool {
    let meta = |name: &String| program.tensors.get(name);
    let (Some((_, Arg::Tensor(operand))), Some(Output::Tensor(result))) =
        (call.args.first(), call.outputs.first())
    else {
        return false;
    };
    let (Some(operand), Some(result)) = (meta(operand), meta(result)) else { return false };
    match call.target.as_str() {
        "aten.contiguous.default" => operand.strides != result.strides,
        _ => reshapes(call) && !viewable(operand, &result.sizes),
    }
}

/// Whether a tensor can be seen under other sizes without moving elements: axes are taken in runs that lie densely in
/// memory, and each run must be split and merged within itself. PyTorch's rule (`computeStride`).
fn viewable(tensor: &TensorMeta, sizes: &[Expr]) -> bool {
    let (own, strides) = (&tensor.sizes, &tensor.strides);
    let Some(last) = strides.last() else { return true };
    if own.iter().any(|size| size.is(0)) {
        return true;
    }
    let mut base = last.clone();
    let (mut elements, mut seen) = (Expr::int(1), Expr::int(1));
    let mut left = sizes.len();
    for axis in (0..own.len()).rev() {
        elements = &elements * &own[axis];
        let run_ends = axis == 0 || (!own[axis - 1].is(1) && strides[axis - 1] != &elements * &base);
        if !run_ends {
            continue;
        }
        while left > 0 && (seen != elements || sizes[left - 1].is(1)) {
            seen = &seen * &sizes[left - 1];
            left -= 1;
        }
        if seen != elements {
            return false;
        }
        if axis > 0 {
            base = strides[axis - 1].clone();
            elements = Expr::int(1);
            seen = Expr::int(1);
        }
    }
    left == 0
}

#[cfg(test)]
mod tests {
    use super::viewable;
    use crate::dtype::DType;
    use crate::frontend::torch::aten::TensorMeta;
    use crate::symbolic::Expr;

    fn exprs(values: &[i64]) -> Vec<Expr> {
        values.iter().copied().map(Expr::int).collect()
    }

    fn tensor(sizes: &[i64], strides: &[i64]) -> TensorMeta {
        TensorMeta {
            is_complex: false,
            dtype: DType::F32,
            sizes: exprs(sizes),
            strides: exprs(strides),
            storage_offset: Expr::int(0),
        }
    }

    #[test]
    fn strides_decide_what_is_a_view() {
        assert!(viewable(&tensor(&[3, 4], &[4, 1]), &exprs(&[12])));
        assert!(!viewable(&tensor(&[4, 3], &[1, 4]), &exprs(&[12])));
        assert!(viewable(&tensor(&[2, 4], &[8, 1]), &exprs(&[2, 2, 2])));
        assert!(!viewable(&tensor(&[2, 2], &[4, 1]), &exprs(&[4])));
        assert!(viewable(&tensor(&[2, 1, 4], &[4, 99, 1]), &exprs(&[8])));
    }
}
