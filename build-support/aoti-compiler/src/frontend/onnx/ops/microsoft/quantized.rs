//! Operators of quantised tensors: what they stand for is computed, and quantised again.

use super::matrix::{channels_last, channels_second, standard};
use super::operators;
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::onnx::call::{Call, malformed};
use crate::frontend::onnx::ops::{Rule, one};
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::softmax::{Form, softmax_over};
use crate::frontend::torch::rules::{Context, Formula, RuleError};
use crate::graph::{BinaryOp, Scalar, ValueId};
use crate::symbolic::Expr;

operators! { "com.microsoft";
    "DequantizeLinear" => dequantize,
    "MulInteger" => mul_integer,
    "QLinearAdd" => |cx, c| pair(cx, c, |a, b| a + b),
    "QLinearAveragePool" => average_pool,
    "QLinearConcat" => concat,
    "QLinearGlobalAveragePool" => global_average_pool,
    "QLinearLeakyRelu" => leaky_relu,
    "QLinearMul" => |cx, c| pair(cx, c, |a, b| a * b),
    "QLinearReduceMean" => reduce_mean,
    "QLinearSigmoid" => |cx, c| single(cx, c, |x| x.sigmoid()),
    "QLinearSoftmax" => softmax,
    "QLinearWhere" => choose,
    "QuantizeLinear" => quantize,
    "ReduceSumInteger" => reduce_sum,
}

/// The quantisation of a tensor: numbers stand for their distance from `zero` times `scale`.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub(super) scale: ValueId,
    pub(super) zero: Option<ValueId>,
}

impl Scale {
    /// By the position of the scale among a node's operands, with the zero behind it.
    pub(super) fn at(c: &Call, position: usize) -> Result<Scale, RuleError> {
        Ok(Scale { scale: c.tensor(position)?, zero: c.opt_tensor(position + 1)? })
    }
}

/// One number without axes; a longer list stays.
fn single_number(cx: &mut Onnx, x: ValueId) -> Result<ValueId, RuleError> {
    if cx.b.ty(x).numel().is(1) { Ok(cx.b.reshape(x, &[])?) } else { Ok(x) }
}

/// Numbers as the integers that they are away from zero.
pub(super) fn centred(cx: &mut Onnx, x: ValueId, zero: Option<ValueId>) -> Result<ValueId, RuleError> {
    let x = cx.b.cast(x, DType::I32);
    let Some(zero) = zero else { return Ok(x) };
    let zero = single_number(cx, zero)?;
    let zero = cx.b.cast(zero, DType::I32);
    cx.sub(x, zero)
}

/// The product of quantised matrices, in integers.
pub(super) fn dot(
    cx: &mut Onnx,
    (a, a_zero): (ValueId, Option<ValueId>),
    (b, b_zero): (ValueId, Option<ValueId>),
) -> Result<ValueId, RuleError> {
    let a = centred(cx, a, a_zero)?;
    let b = centred(cx, b, b_zero)?;
    cx.matmul(a, b)
}

/// Integers times scales, in the type of the scales.
pub(super) fn dequantized(cx: &mut Onnx, x: ValueId, scales: &[ValueId]) -> Result<ValueId, RuleError> {
    let (first, rest) = scales.split_first().ok_or_else(|| malformed("there is no scale"))?;
    let dtype = cx.b.dtype(*first);
    let mut scale = single_number(cx, *first)?;
    for other in rest {
        let other = single_number(cx, *other)?;
        scale = cx.apply([scale, other], dtype.compute(), |[a, b]| a * b)?;
    }
    cx.apply([x, scale], dtype, |[x, scale]| x * scale)
}

/// What quantised numbers stand for.
pub(super) fn real(cx: &mut Onnx, x: ValueId, scale: Scale) -> Result<ValueId, RuleError> {
    let x = centred(cx, x, scale.zero)?;
    dequantized(cx, x, &[scale.scale])
}

/// Numbers quantised, in the type of the zero.
pub(super) fn quantized(cx: &mut Onnx, x: ValueId, to: Scale) -> Result<ValueId, RuleError> {
    let stored = to.zero.map_or(DType::U8, |zero| cx.b.dtype(zero));
    quantized_as(cx, x, to, stored)
}

/// Numbers quantised, in a type.
fn quantized_as(cx: &mut Onnx, x: ValueId, to: Scale, stored: DType) -> Result<ValueId, RuleError> {
    let scale = single_number(cx, to.scale)?;
    let dtype = cx.b.dtype(scale).compute();
    let zero = match to.zero {
        Some(zero) => single_number(cx, zero)?,
        None => cx.b.scalar(0i64, stored),
    };
    let (low, high) = (Scalar::lowest(stored).to_f64(), Scalar::highest(stored).to_f64());
    let value = cx
        .apply([x, scale, zero], dtype, |[x, scale, zero]| ((x / scale).round() + zero).max(low).min(high))?;
    Ok(cx.b.cast(value, stored))
}

fn pair(cx: &mut Onnx, c: &Call, of: impl FnOnce(Formula, Formula) -> Formula) -> Rule {
    let first = c.tensor(0)?;
    let a = real(cx, first, Scale::at(c, 1)?)?;
    let b = real(cx, c.tensor(3)?, Scale::at(c, 4)?)?;
    let dtype = cx.b.dtype(a);
    let value = cx.apply([a, b], dtype, |[a, b]| of(a, b))?;
    let stored = cx.b.dtype(first);
    one(quantized_as(cx, value, Scale::at(c, 6)?, stored)?)
}

fn single(cx: &mut Onnx, c: &Call, of: impl FnOnce(Formula) -> Formula) -> Rule {
    let first = c.tensor(0)?;
    let x = real(cx, first, Scale::at(c, 1)?)?;
    let dtype = cx.b.dtype(x);
    let value = cx.apply([x], dtype, |[x]| of(x))?;
    let stored = cx.b.dtype(first);
    one(quantized_as(cx, value, Scale::at(c, 3)?, stored)?)
}

fn leaky_relu(cx: &mut Onnx, c: &Call) -> Rule {
    let alpha = c.float("alpha", 0.01)?;
    single(cx, c, |x| x.lt(0.0).select(&x * alpha, &x))
}

/// An operator of the standard between both, maybe with the channels behind.
fn through(cx: &mut Onnx, c: &Call, last: bool, name: &str) -> Rule {
    let first = c.tensor(0)?;
    let mut x = real(cx, first, Scale::at(c, 1)?)?;
    if last {
        x = channels_second(cx, x)?;
    }
    let mut value = standard(cx, c, name, vec![x.into()])?;
    if last {
        value = channels_last(cx, value)?;
    }
    let stored = cx.b.dtype(first);
    one(quantized_as(cx, value, Scale::at(c, 3)?, stored)?)
}

fn average_pool(cx: &mut Onnx, c: &Call) -> Rule {
    through(cx, c, c.flag("channels_last", false)?, "AveragePool")
}

fn global_average_pool(cx: &mut Onnx, c: &Call) -> Rule {
    through(cx, c, c.flag("channels_last", false)?, "GlobalAveragePool")
}

/// Each operand has a scale and a zero of its own.
fn concat(cx: &mut Onnx, c: &Call) -> Rule {
    let mut parts = Vec::new();
    for position in (2..c.inputs.len()).step_by(3) {
        parts.push(real(cx, c.tensor(position)?, Scale::at(c, position + 1)?)?);
    }
    let rank = parts.first().map_or(0, |part| cx.b.rank(*part));
    let axis = axis_of(c.int("axis", 0)?, rank)?;
    let value = cx.b.cat(&parts, axis)?;
    one(quantized(cx, value, Scale::at(c, 0)?)?)
}

/// The attribute says whose version's softmax it is.
fn softmax(cx: &mut Onnx, c: &Call) -> Rule {
    let first = c.tensor(0)?;
    let x = real(cx, first, Scale::at(c, 1)?)?;
    let shape = cx.b.shape(x);
    let version = c.int("opset", 13)?;
    let axis = axis_of(c.int("axis", if version < 13 { 1 } else { -1 })?, shape.len())?;
    let value = if version < 13 {
        let flat = cx.b.reshape(x, &[Expr::product(&shape[..axis]), Expr::product(&shape[axis..])])?;
        let flat = softmax_over(cx, flat, 1, Form::Plain)?;
        cx.b.reshape(flat, &shape)?
    } else {
        softmax_over(cx, x, axis, Form::Plain)?
    };
    let stored = cx.b.dtype(first);
    one(quantized_as(cx, value, Scale::at(c, 3)?, stored)?)
}

fn choose(cx: &mut Onnx, c: &Call) -> Rule {
    let condition = cx.b.cast(c.tensor(0)?, DType::Bool);
    let (x, y) = (real(cx, c.tensor(1)?, Scale::at(c, 2)?)?, real(cx, c.tensor(4)?, Scale::at(c, 5)?)?);
    let value = cx.b.select(condition, x, y)?;
    one(quantized(cx, value, Scale::at(c, 7)?)?)
}

fn axes_of(cx: &Onnx, c: &Call, x: ValueId) -> Result<Vec<usize>, RuleError> {
    Context::axes(&c.opt_ints("axes")?.unwrap_or_default(), cx.b.rank(x))
}

fn reduce_mean(cx: &mut Onnx, c: &Call) -> Rule {
    let first = c.tensor(0)?;
    let x = real(cx, first, Scale::at(c, 1)?)?;
    let axes = axes_of(cx, c, x)?;
    let mut value = cx.mean(x, &axes, true)?;
    if !c.flag("keepdims", true)? {
        value = cx.drop_axes(value, &axes)?;
    }
    let stored = cx.b.dtype(first);
    one(quantized_as(cx, value, Scale::at(c, 3)?, stored)?)
}

fn reduce_sum(cx: &mut Onnx, c: &Call) -> Rule {
    let x = cx.b.cast(c.tensor(0)?, DType::I32);
    let axes = axes_of(cx, c, x)?;
    one(cx.sum(x, &axes, c.flag("keepdims", true)?)?)
}

fn mul_integer(cx: &mut Onnx, c: &Call) -> Rule {
    let a = centred(cx, c.tensor(0)?, c.opt_tensor(1)?)?;
    let b = centred(cx, c.tensor(2)?, c.opt_tensor(3)?)?;
    one(cx.binary(BinaryOp::Mul, a, b)?)
}

/// A list of numbers of an axis, so that it broadcasts against a tensor of so many axes.
fn along(cx: &mut Onnx, c: &Call, list: ValueId, rank: usize) -> Result<ValueId, RuleError> {
    if cx.b.rank(list) != 1 || cx.b.ty(list).numel().is(1) {
        return single_number(cx, list);
    }
    let axis = axis_of(c.int("axis", 1)?, rank)?;
    cx.trailing_ones(list, rank - axis)
}

fn along_axis(cx: &mut Onnx, c: &Call) -> Result<Scale, RuleError> {
    let rank = cx.b.rank(c.tensor(0)?);
    let scale = along(cx, c, c.tensor(1)?, rank)?;
    let zero = c.opt_tensor(2)?.map(|zero| along(cx, c, zero, rank)).transpose()?;
    Ok(Scale { scale, zero })
}

/// The standard's operators too, where that is known; these are of more types.
fn dequantize(cx: &mut Onnx, c: &Call) -> Rule {
    let scale = along_axis(cx, c)?;
    one(real(cx, c.tensor(0)?, scale)?)
}

fn quantize(cx: &mut Onnx, c: &Call) -> Rule {
    let scale = along_axis(cx, c)?;
    one(quantized(cx, c.tensor(0)?, scale)?)
}
