//! Activations, some with a bias before them.

use super::operators;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::onnx::call::{Call, malformed};
use crate::frontend::onnx::ops::{Rule, one};
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::activation::{Gelu, gelu};
use crate::frontend::torch::rules::softmax::{Form, softmax_over};
use crate::graph::ValueId;
use crate::symbolic::Expr;

operators! { "com.microsoft";
    "BiasAdd" => bias_add,
    "BiasGelu" => |cx, c| biased_gelu(cx, c, Gelu::Exact),
    "BiasSoftmax" => bias_softmax,
    "BiasSplitGelu" => bias_split_gelu,
    "FastGelu" => |cx, c| biased_gelu(cx, c, Gelu::Tanh),
    "Gelu" => |cx, c| biased_gelu(cx, c, Gelu::Exact),
    "QuickGelu" => quick_gelu,
    "ScaledSiLU" => scaled_silu,
}

/// The function of a sum with a bias, where there is one.
fn biased_gelu(cx: &mut Onnx, c: &Call, form: Gelu) -> Rule {
    let x = c.tensor(0)?;
    let x = match c.opt_tensor(1)? {
        Some(bias) => sum(cx, &[x, bias])?,
        None => x,
    };
    one(gelu(cx, x, form)?)
}

fn quick_gelu(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let (alpha, dtype) = (c.float("alpha", 1.702)?, cx.b.dtype(x));
    one(cx.apply([x], dtype, |[x]| &x * (&x * alpha).sigmoid())?)
}

/// The scale is an operand or a number of the node; what is scaled is rounded.
fn scaled_silu(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let dtype = cx.b.dtype(x);
    let alpha = c.float("alpha", 1.0)?;
    let scaled = match c.opt_tensor(1)? {
        Some(scale) => {
            let scale = cx.b.reshape(scale, &[])?;
            cx.apply([x, scale], dtype, |[x, scale]| x * scale)?
        }
        None => cx.apply([x], dtype, |[x]| x * alpha)?,
    };
    one(cx.apply([scaled], dtype, |[x]| &x * x.sigmoid())?)
}

/// A sum in the type of the first operand, rounded once.
pub(super) fn sum(cx: &mut Onnx, values: &[ValueId]) -> Result<ValueId, RuleError> {
    let mut values = values.iter();
    let first = *values.next().ok_or_else(|| malformed("there is nothing to add"))?;
    let mut total = cx.wide(first);
    for value in values {
        let value = cx.typed_like(*value, total);
        total = cx.add(total, value)?;
    }
    Ok(cx.typed_like(total, first))
}

fn bias_add(cx: &mut Onnx, c: &Call) -> Rule {
    let all = c.tensors()?;
    one(sum(cx, &all)?)
}

/// The left half of the columns times the function of the right half.
fn bias_split_gelu(cx: &mut Onnx, c: &Call) -> Rule {
    let x = sum(cx, &[c.tensor(0)?, c.tensor(1)?])?;
    let last = cx.b.rank(x) - 1;
    let half = cx.b.shape(x)[last].floor_div_in(&Expr::int(2), cx.b.ranges());
    let left = cx.b.slice(x, last, &Expr::int(0), &half, 1)?;
    let right = cx.b.slice(x, last, &half, &half, 1)?;
    let right = gelu(cx, right, Gelu::Exact)?;
    let dtype = cx.b.dtype(x);
    one(cx.apply([left, right], dtype, |[left, right]| left * right)?)
}

/// Everything from the axis on is one row. The bias broadcasts over the axes before it, or over some right before the axis.
fn bias_softmax(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, bias) = (c.tensor(0)?, c.tensor(1)?);
    let shape = cx.b.shape(x);
    let axis = axis_of(c.int("axis", 1)?, shape.len())?;
    let own = cx.b.shape(bias);
    let missing = shape.len().saturating_sub(own.len());
    let bias = if c.flag("is_inner_broadcast", true)? && missing > 0 {
        // Its rows are those of the first axes.
        let first = axis.saturating_sub(missing);
        let padded = [&own[..first], &vec![Expr::int(1); missing], &own[first..]].concat();
        cx.b.reshape(bias, &padded)?
    } else {
        bias
    };
    let scores = sum(cx, &[x, bias])?;
    let flat = cx.b.reshape(scores, &[Expr::product(&shape[..axis]), Expr::product(&shape[axis..])])?;
    let value = softmax_over(cx, flat, 1, Form::Plain)?;
    one(cx.b.reshape(value, &shape)?)
}
