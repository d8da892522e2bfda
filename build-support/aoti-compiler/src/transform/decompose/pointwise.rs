//! Element-wise operators.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::graph::{BinaryOp, Scalar, UnaryOp, ValueId};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.relu.default" => relu,
    pure "aten.tanh.default" => |cx, a| float_unary(cx, a, UnaryOp::Tanh),
    pure "aten.add.Tensor" => add,
}

/// A function that gives floating-point results of any input.
fn float_unary(cx: &mut Context, a: &Args, op: UnaryOp) -> Rule {
    let x = a.tensor("self")?;
    let x = cx.to_float(x);
    Ok(cx.unary(op, x).into())
}

fn relu(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    Ok(cx.with_number(BinaryOp::Maximum, x, 0i64)?.into())
}

/// The second operand of a binary overload: a tensor (`Tensor` overloads may hold a number there too) or a number,
/// both operands converted to their common type.
pub(super) fn operands(cx: &mut Context, a: &Args) -> Result<(ValueId, ValueId), RuleError> {
    let x = a.tensor("self")?;
    if let Ok(y) = a.tensor("other") {
        return Ok(cx.promoted(x, y));
    }
    let number = a.scalar("other")?;
    let dtype = cx.result_type_with(&[x], number);
    Ok((cx.b.cast(x, dtype), cx.b.scalar(number, dtype)))
}

fn add(cx: &mut Context, a: &Args) -> Rule {
    let (x, mut y) = operands(cx, a)?;
    let alpha = a.scalar_or("alpha", 1i64)?;
    if alpha != Scalar::Int(1) {
        y = cx.with_number(BinaryOp::Mul, y, alpha)?;
    }
    Ok(cx.add(x, y)?.into())
}
