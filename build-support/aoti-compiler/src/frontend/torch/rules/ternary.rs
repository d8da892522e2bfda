//! Element-wise operators of three operands: choice, clamping, interpolation, scaled products.

use super::operand::Operand;
use super::registry::rules;
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, ValueId};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.where.self" => choose,
    pure "aten.where.ScalarOther" => choose,
    pure "aten.where.ScalarSelf" => choose,
    pure "aten.where.Scalar" => choose,
    pure "aten.masked_fill.*" => masked_fill,
    pure "aten.clamp.*" => clamp,
    pure "aten.clamp_min.*" => clamp,
    pure "aten.clamp_max.*" => clamp,
    pure "aten.lerp.*" => lerp,
    pure "aten.addcmul.default" => |cx, a| add_combined(cx, a, |x, y| x * y),
    pure "aten.addcdiv.default" => |cx, a| add_combined(cx, a, |x, y| x / y),
    pure "aten.threshold_backward.default" => threshold_backward,
    pure "aten.sigmoid_backward.default" => |cx, a| backward(cx, a, |y| (1.0 - &y) * y),
    pure "aten.tanh_backward.default" => |cx, a| backward(cx, a, |y| 1.0 - y.square()),
}

fn choose(cx: &mut Context, a: &Args) -> Rule {
    let condition = a.tensor("condition")?;
    let condition = cx.b.cast(condition, DType::Bool);
    let (x, y) = (a.operand(&["self"], 1)?, a.operand(&["other"], 2)?);
    let dtype = cx.operands_type(&[&x, &y])?;
    for number in [&x, &y] {
        cx.require_element(number, dtype.compute())?;
    }
    let (x, y) = (x.to_value(cx, dtype), y.to_value(cx, dtype));
    Ok(cx.b.select(condition, x, y)?.into())
}

fn masked_fill(cx: &mut Context, a: &Args) -> Rule {
    let (x, mask) = (a.tensor("self")?, a.tensor("mask")?);
    let dtype = cx.b.dtype(x);
    let value = a.operand(&["value"], 2)?.to_element(cx, dtype)?;
    let mask = cx.b.cast(mask, DType::Bool);
    Ok(cx.b.select(mask, value, x)?.into())
}

/// `clamp`, `clamp_min` and `clamp_max` with bounds that are numbers, tensors or absent. NaN stays.
fn clamp(cx: &mut Context, a: &Args) -> Rule {
    let x = a.left()?;
    let bound = |name: &str| a.has(name).then(|| a.operand(&[name], 1)).transpose();
    let (low, high) = (bound("min")?, bound("max")?);
    let all: Vec<&Operand> = [Some(&x), low.as_ref(), high.as_ref()].into_iter().flatten().collect();
    let dtype = cx.operands_type(&all)?;
    let mut result = x.to_value(cx, dtype);
    for (bound, op) in [(low, BinaryOp::Maximum), (high, BinaryOp::Minimum)] {
        if let Some(bound) = bound {
            let bound = cx.bound(bound, dtype, op == BinaryOp::Maximum)?;
            result = cx.combine_as(op, &Operand::Tensor(result), &bound, dtype)?;
        }
    }
    Ok(result.into())
}

/// Linear interpolation by the formula that is exact at both ends.
pub(crate) fn interpolate(from: &Formula, to: &Formula, weight: &Formula) -> Formula {
    let difference = to - from;
    let near = weight.abs().lt(0.5);
    near.select(from + weight * &difference, to - &difference * (1.0 - weight))
}

fn lerp(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.tensor("self")?, a.tensor("end")?);
    let dtype = cx.b.dtype(x);
    let weight = a.operand(&["weight"], 2)?.to_element(cx, dtype.compute())?;
    Ok(cx.apply([x, y, weight], dtype, |[x, y, weight]| interpolate(&x, &y, &weight))?.into())
}

fn add_combined(cx: &mut Context, a: &Args, combine: impl FnOnce(Formula, Formula) -> Formula) -> Rule {
    let operands = [a.tensor("self")?, a.tensor("tensor1")?, a.tensor("tensor2")?];
    let value = a.number_or("value", 1i64)?;
    let dtype = cx.result_type(&operands)?;
    cx.require_element(&value, dtype.compute())?;
    let plain = value.is(1.0);
    let value = value.formula(cx, dtype.compute());
    let result = cx.apply(operands, dtype, |[x, y, z]| {
        let term = combine(y, z);
        x + if plain { term } else { term * value }
    })?;
    Ok(result.into())
}

fn threshold_backward(cx: &mut Context, a: &Args) -> Rule {
    let operands: [ValueId; 2] = [a.tensor("grad_output")?, a.tensor("self")?];
    let dtype = cx.result_type(&operands)?;
    let threshold = a.number("threshold")?.formula(cx, dtype.compute());
    Ok(cx.apply(operands, dtype, |[grad, x]| x.le(threshold).select(0.0, grad))?.into())
}

fn backward(cx: &mut Context, a: &Args, slope: impl FnOnce(Formula) -> Formula) -> Rule {
    let operands = [a.tensor("grad_output")?, a.tensor("output")?];
    Ok(cx.apply_float(operands, |[grad, y]| grad * slope(y))?.into())
}
