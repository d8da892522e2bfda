//! Softmax and its relatives, stable for large numbers.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{FloatTest, FloatUnary, ReduceOp, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.softmax.int" => |cx, a| over(cx, a, Form::Plain),
    pure "aten.special_softmax.default" => |cx, a| over(cx, a, Form::Plain),
    pure "aten._softmax.default" => |cx, a| over(cx, a, Form::Plain),
    pure "aten._safe_softmax.default" => |cx, a| over(cx, a, Form::ZeroOfNothing),
    pure "aten.log_softmax.int" => |cx, a| over(cx, a, Form::Log),
    pure "aten.special_log_softmax.default" => |cx, a| over(cx, a, Form::Log),
    pure "aten._log_softmax.default" => |cx, a| over(cx, a, Form::Log),
    pure "aten._softmax_backward_data.default" => |cx, a| backward(cx, a, false),
    pure "aten._log_softmax_backward_data.default" => |cx, a| backward(cx, a, true),
    pure "aten.logsumexp.default" => logsumexp,
}

/// What is computed from the exponentials.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Form {
    /// Exponentials over their sum.
    Plain,
    /// The same, but rows that are negative infinity throughout give zeros.
    ZeroOfNothing,
    /// Logarithm of the softmax.
    Log,
}

fn over(cx: &mut Context, a: &Args, form: Form) -> Rule {
    let x = a.tensor("self")?;
    // `half_to_float` says the same as `dtype=float32`.
    let widens = a.bool_or("half_to_float", false)?;
    let dtype = match a.opt_dtype("dtype")? {
        Some(dtype) => dtype,
        None if widens => DType::F32,
        None => cx.float_type(cx.b.dtype(x)),
    };
    let axis = Context::axis(a.int("dim")?, cx.b.rank(x))?;
    let x = if widens || !dtype.is_half() { cx.b.cast(x, dtype) } else { x };
    Ok(rounded(cx, x, axis, dtype, form)?.into())
}

/// Softmax of a tensor of any type over one axis, rounded once.
fn rounded(
    cx: &mut Context,
    x: ValueId,
    axis: usize,
    dtype: DType,
    form: Form,
) -> Result<ValueId, RuleError> {
    let wide = cx.b.cast(x, dtype.compute());
    let result = softmax(cx, wide, axis, form)?;
    Ok(cx.b.cast(result, dtype))
}

/// Softmax of a tensor over one axis, in its own type where that is a floating-point type.
#[cfg(feature = "onnx")]
pub(crate) fn softmax_over(
    cx: &mut Context,
    x: ValueId,
    axis: usize,
    form: Form,
) -> Result<ValueId, RuleError> {
    let x = cx.to_float(x);
    let dtype = cx.b.dtype(x);
    rounded(cx, x, axis, dtype, form)
}

/// Softmax of an `f32` or `f64` tensor over one axis.
pub(crate) fn softmax(cx: &mut Context, x: ValueId, axis: usize, form: Form) -> Result<ValueId, RuleError> {
    let axes = if cx.b.rank(x) == 0 { vec![] } else { vec![axis] };
    if axes.iter().any(|axis| cx.b.shape(x)[*axis].is(0)) {
        return Ok(x);
    }
    let largest = cx.b.reduce(ReduceOp::Max, x, &axes, true)?;
    let shifted = cx.sub(x, largest)?;
    let exponentials = cx.unary(FloatUnary::Exp, shifted);
    let total = cx.sum(exponentials, &axes, true)?;
    match form {
        Form::Plain => share(cx, exponentials, total),
        Form::Log => {
            let log = cx.unary(FloatUnary::Log, total);
            cx.sub(shifted, log)
        }
        Form::ZeroOfNothing => {
            let quotient = share(cx, exponentials, total)?;
            let nothing = cx.with_number(Relation::Eq, largest, f64::NEG_INFINITY)?;
            let zero = cx.b.full_like(0.0, quotient);
            Ok(cx.b.select(nothing, zero, quotient)?)
        }
    }
}

/// What parts are of the total of their row, which is at least 1: one quotient a row, and a product for each part.
pub(crate) fn share(cx: &mut Context, parts: ValueId, total: ValueId) -> Result<ValueId, RuleError> {
    let inverse = cx.unary(FloatUnary::Reciprocal, total);
    cx.mul(parts, inverse)
}

fn backward(cx: &mut Context, a: &Args, log: bool) -> Rule {
    let (grad, y) = (a.tensor("grad_output")?, a.tensor("output")?);
    let dtype = a.opt_dtype("input_dtype")?.unwrap_or(cx.b.dtype(grad));
    let wide = cx.b.dtype(grad).compute();
    let (grad, y) = (cx.b.cast(grad, wide), cx.b.cast(y, wide));
    let rank = cx.b.rank(y);
    let axis = Context::axis(a.int("dim")?, rank)?;
    let axes = if rank == 0 { vec![] } else { vec![axis] };
    let result = if log {
        let total = cx.sum(grad, &axes, true)?;
        let exponentials = cx.unary(FloatUnary::Exp, y);
        let shared = cx.mul(exponentials, total)?;
        cx.sub(grad, shared)?
    } else {
        let weighted = cx.mul(grad, y)?;
        let total = cx.sum(weighted, &axes, true)?;
        let centred = cx.sub(grad, total)?;
        cx.mul(centred, y)?
    };
    Ok(cx.b.cast(result, dtype).into())
}

fn logsumexp(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let axes = Context::axes(&a.ints_or("dim", &[])?, cx.b.rank(x))?;
    Ok(log_sum_exp_over(cx, x, &axes, a.bool_or("keepdim", false)?)?.into())
}

/// Logarithm of the sum of exponentials over axes, of a tensor of any type.
pub(crate) fn log_sum_exp_over(
    cx: &mut Context,
    x: ValueId,
    axes: &[usize],
    keep: bool,
) -> Result<ValueId, RuleError> {
    let x = cx.to_float(x);
    cx.in_compute_type(x, |cx, x| log_sum_exp(cx, x, axes, keep))
}

/// What is taken from elements before their exponentials, so that no sum of them overflows. Keeps the axes.
pub(crate) fn shift(cx: &mut Context, x: ValueId, axes: &[usize]) -> Result<ValueId, RuleError> {
    let mut shape = cx.b.shape(x);
    if axes.iter().any(|axis| shape[*axis].is(0)) {
        axes.iter().for_each(|axis| shape[*axis] = Expr::int(1));
        return Ok(cx.b.full(0.0, cx.b.dtype(x), &shape));
    }
    let largest = cx.b.reduce(ReduceOp::Max, x, axes, true)?;
    // An infinite maximum would give infinity minus infinity.
    let infinite = cx.unary(FloatTest::IsInf, largest);
    let zero = cx.b.full_like(0.0, largest);
    Ok(cx.b.select(infinite, zero, largest)?)
}

/// Logarithm of the sum of exponentials over axes.
pub(crate) fn log_sum_exp(
    cx: &mut Context,
    x: ValueId,
    axes: &[usize],
    keep: bool,
) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(x);
    let shift = shift(cx, x, axes)?;
    let shifted = cx.sub(x, shift)?;
    let exponentials = cx.unary(FloatUnary::Exp, shifted);
    let total = cx.sum(exponentials, axes, true)?;
    let log = cx.unary(FloatUnary::Log, total);
    let result = cx.add(log, shift)?;
    if keep {
        return Ok(result);
    }
    let kept: Vec<_> =
        shape.iter().enumerate().filter(|(k, _)| !axes.contains(k)).map(|(_, size)| size.clone()).collect();
    Ok(cx.b.reshape(result, &kept)?)
}
