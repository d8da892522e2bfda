//! Affine quantisation as PT2E and `torch.ao` write it: `quantized_decomposed.*` and ATen's fake quantisation.
//!
//! Whether a number falls on one integer or the next depends on every rounding before it, so each operator here
//! is the sequence of operations that PyTorch's implementation is, in the types that PyTorch promotes to.

use super::super::operand::Operand;
use super::super::registry::rules;
use super::super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::frontend::torch::aten::Arg;
use crate::graph::{BinaryOp, FloatBinary, ReduceOp, Relation, Rounding, Scalar, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "quantized_decomposed.quantize_per_tensor.default" => quantize_per_tensor,
    pure "quantized_decomposed.quantize_per_tensor.tensor" => quantize_per_tensor,
    pure "quantized_decomposed.quantize_per_tensor.tensor2" => quantize_per_tensor,
    pure "quantized_decomposed.dequantize_per_tensor.default" => dequantize_per_tensor,
    pure "quantized_decomposed.dequantize_per_tensor.tensor" => dequantize_per_tensor,
    pure "quantized_decomposed.dequantize_per_tensor.tensor2" => dequantize_per_tensor,
    pure "quantized_decomposed.quantize_per_channel.default" => quantize_per_channel,
    pure "quantized_decomposed.dequantize_per_channel.default" => dequantize_per_channel,
    pure "quantized_decomposed.quantize_per_token.default" => quantize_per_token,
    pure "quantized_decomposed.dequantize_per_token.default" => dequantize_per_token,
    pure "quantized_decomposed.quantize_per_channel_group.default" => quantize_per_group,
    pure "quantized_decomposed.dequantize_per_channel_group.default" => dequantize_per_group,
    pure "quantized_decomposed.convert_element_type.no_fuse" => |cx, a| {
        let x = a.tensor("input")?;
        let dtype = a.opt_dtype("dtype")?.unwrap_or(cx.b.dtype(x));
        Ok(cx.b.cast(x, dtype).into())
    },
    pure "aten._weight_int8pack_mm.default" => int8_weights,
}

impl Context {
    /// A function of two tensors, rounded to the type that they promote to.
    pub(crate) fn promoting(
        &mut self,
        op: impl Into<BinaryOp>,
        a: ValueId,
        b: ValueId,
    ) -> Result<ValueId, RuleError> {
        let dtype = self.result_type(&[a, b])?;
        let wide = dtype.compute();
        let (a, b) = (self.b.cast(a, dtype), self.b.cast(b, dtype));
        let (a, b) = (self.b.cast(a, wide), self.b.cast(b, wide));
        let result = self.binary(op, a, b)?;
        Ok(if self.b.dtype(result) == wide { self.b.cast(result, dtype) } else { result })
    }

    /// A function of a tensor and a number, as Python's arithmetic on tensors has it.
    pub(crate) fn beside(
        &mut self,
        op: impl Into<BinaryOp>,
        x: ValueId,
        number: impl Into<Scalar>,
    ) -> Result<ValueId, RuleError> {
        self.combine(op, &Operand::Tensor(x), &Operand::Number(number.into()))
    }

    /// `1 / x`.
    pub(crate) fn inverse(&mut self, x: ValueId) -> Result<ValueId, RuleError> {
        self.combine(FloatBinary::Div, &Operand::Number(Scalar::Float(1.0)), &Operand::Tensor(x))
    }

    /// Limits to a range of numbers; NaN stays.
    pub(crate) fn clamped(&mut self, x: ValueId, range: (Scalar, Scalar)) -> Result<ValueId, RuleError> {
        let low = self.with_number(BinaryOp::Maximum, x, range.0)?;
        self.with_number(BinaryOp::Minimum, low, range.1)
    }

    /// `round(x / scale) + zero`, within a range, in the type that the operands promote to.
    pub(crate) fn quantized(
        &mut self,
        x: ValueId,
        scale: ValueId,
        zero: ValueId,
        range: (Scalar, Scalar),
    ) -> Result<ValueId, RuleError> {
        let inverse = self.inverse(scale)?;
        let scaled = self.promoting(BinaryOp::Mul, x, inverse)?;
        let rounded = self.unary(Rounding::Round, scaled);
        let shifted = self.promoting(BinaryOp::Add, rounded, zero)?;
        self.clamped(shifted, range)
    }

    /// The smallest element, or 0, and the largest, or 0.
    pub(crate) fn extent(
        &mut self,
        x: ValueId,
        axes: &[usize],
        keep: bool,
    ) -> Result<(ValueId, ValueId), RuleError> {
        let least = self.b.reduce(ReduceOp::Min, x, axes, keep)?;
        let most = self.b.reduce(ReduceOp::Max, x, axes, keep)?;
        Ok((
            self.with_number(BinaryOp::Minimum, least, 0.0)?,
            self.with_number(BinaryOp::Maximum, most, 0.0)?,
        ))
    }
}

/// A parameter that the schema gives as a number, or as a tensor of one element that PyTorch reads.
pub(crate) fn parameter(cx: &mut Context, a: &Args, name: &str) -> Result<ValueId, RuleError> {
    let value = a.operand(&[name], 0)?.to_value(cx, DType::F64);
    Ok(cx.b.reshape(value, &[])?)
}

/// The limits of quantised numbers.
pub(crate) fn range(a: &Args) -> Result<(Scalar, Scalar), RuleError> {
    Ok((a.scalar("quant_min")?, a.scalar("quant_max")?))
}

/// The element type that quantised numbers are kept in.
fn kept_in(a: &Args) -> Result<DType, RuleError> {
    let dtype = a.opt_dtype("dtype")?.or(a.output_dtype());
    dtype.ok_or_else(|| RuleError::Malformed("argument `dtype` is missing".to_owned()))
}

/// What PyTorch's kernels take: half types are widened first.
fn wide(cx: &mut Context, a: &Args) -> Result<ValueId, RuleError> {
    let x = a.tensor("input")?;
    let dtype = cx.b.dtype(x).compute();
    Ok(cx.b.cast(x, dtype))
}

// --- per tensor ------------------------------------------------------------------------------------------------------

fn quantize_per_tensor(cx: &mut Context, a: &Args) -> Rule {
    let x = wide(cx, a)?;
    let dtype = cx.b.dtype(x);
    let scale = parameter(cx, a, "scale")?;
    if let Some(Arg::Tensor(_)) = a.raw("scale") {
        let divides = cx.with_number(Relation::Ne, scale, 0.0)?;
        cx.assert_all(divides, &format!("{}: the scale must not be zero", a.target()))?;
    }
    // PyTorch divides in Python, which is `f64`, and multiplies in the type of the tensor.
    let inverse = cx.inverse(scale)?;
    let inverse = cx.b.cast(inverse, dtype);
    let scaled = cx.mul(x, inverse)?;
    let rounded = cx.unary(Rounding::Round, scaled);
    let zero = parameter(cx, a, "zero_point")?;
    let zero = cx.b.cast(zero, dtype);
    let mut result = cx.add(rounded, zero)?;
    for (name, op) in [("quant_min", BinaryOp::Maximum), ("quant_max", BinaryOp::Minimum)] {
        let bound = parameter(cx, a, name)?;
        let bound = cx.b.cast(bound, dtype);
        result = cx.binary(op, result, bound)?;
    }
    Ok(cx.b.cast(result, kept_in(a)?).into())
}

fn dequantize_per_tensor(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.opt_dtype("out_dtype")?.unwrap_or(DType::F32);
    let mut result = cx.b.cast(a.tensor("input")?, dtype);
    for (name, op) in [("zero_point", BinaryOp::Sub), ("scale", BinaryOp::Mul)] {
        // Each operation rounds to the type of the result; numbers keep their digits beside a half type.
        let number = parameter(cx, a, name)?;
        let number = cx.b.cast(number, dtype.compute());
        let x = cx.b.cast(result, dtype.compute());
        let x = cx.binary(op, x, number)?;
        result = cx.b.cast(x, dtype);
    }
    Ok(result.into())
}

// --- per channel -----------------------------------------------------------------------------------------------------

/// Parameters of channels so that they broadcast along an axis.
pub(crate) fn along(
    cx: &mut Context,
    parameters: ValueId,
    axis: usize,
    rank: usize,
) -> Result<ValueId, RuleError> {
    let flat = cx.flattened(parameters)?;
    cx.trailing_ones(flat, rank - axis)
}

pub(crate) fn channel_axis(cx: &Context, a: &Args, x: ValueId) -> Result<usize, RuleError> {
    let rank = cx.b.rank(x);
    if rank == 0 {
        return Err(RuleError::Malformed("a tensor without axes has no channels".to_owned()));
    }
    Context::axis(a.int("axis")?, rank)
}

fn quantize_per_channel(cx: &mut Context, a: &Args) -> Rule {
    let x = wide(cx, a)?;
    let (axis, rank) = (channel_axis(cx, a, x)?, cx.b.rank(x));
    let scales = along(cx, a.tensor("scales")?, axis, rank)?;
    let zeros = along(cx, a.tensor("zero_points")?, axis, rank)?;
    let result = cx.quantized(x, scales, zeros, range(a)?)?;
    Ok(cx.b.cast(result, kept_in(a)?).into())
}

fn dequantize_per_channel(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("input")?;
    let (axis, rank) = (channel_axis(cx, a, x)?, cx.b.rank(x));
    let scales = along(cx, a.tensor("scales")?, axis, rank)?;
    let zeros = match a.opt_tensor("zero_points")? {
        Some(zeros) => Some(along(cx, zeros, axis, rank)?),
        None => None,
    };
    let result = dequantized(cx, x, scales, zeros)?;
    let dtype = a.opt_dtype("out_dtype")?.unwrap_or(DType::F32);
    Ok(cx.b.cast(result, dtype).into())
}

/// `(x - zero) * scale` in the types that the operands promote to.
pub(crate) fn dequantized(
    cx: &mut Context,
    x: ValueId,
    scale: ValueId,
    zero: Option<ValueId>,
) -> Result<ValueId, RuleError> {
    let centred = match zero {
        Some(zero) => cx.promoting(BinaryOp::Sub, x, zero)?,
        None => x,
    };
    cx.promoting(BinaryOp::Mul, centred, scale)
}

// --- per token and per group -----------------------------------------------------------------------------------------

/// As [`Context::quantized`], rounded after the zero point is added.
fn quantized_late(cx: &mut Context, a: &Args, x: ValueId, scale: ValueId, zero: ValueId) -> Rule {
    let inverse = cx.inverse(scale)?;
    let scaled = cx.promoting(BinaryOp::Mul, x, inverse)?;
    let shifted = cx.promoting(BinaryOp::Add, scaled, zero)?;
    let rounded = cx.unary(Rounding::Round, shifted);
    let limited = cx.clamped(rounded, range(a)?)?;
    Ok(cx.b.cast(limited, kept_in(a)?).into())
}

fn one(outputs: Outputs) -> Result<ValueId, RuleError> {
    let Outputs::One(value) = outputs else {
        return Err(RuleError::Malformed("a call with several results".to_owned()));
    };
    Ok(value)
}

fn quantize_per_token(cx: &mut Context, a: &Args) -> Rule {
    quantized_late(cx, a, a.tensor("input")?, a.tensor("scales")?, a.tensor("zero_points")?)
}

fn dequantize_per_token(cx: &mut Context, a: &Args) -> Rule {
    let (x, scales, zeros) = (a.tensor("input")?, a.tensor("scales")?, a.tensor("zero_points")?);
    let result = dequantized(cx, x, scales, Some(zeros))?;
    Ok(cx.b.cast(result, a.opt_dtype("output_dtype")?.unwrap_or(DType::F32)).into())
}

/// Rows of one group each, and parameters as a column beside them.
struct Groups {
    rows: ValueId,
    shape: Vec<Expr>,
}

impl Groups {
    fn of(cx: &mut Context, a: &Args, x: ValueId, scales: ValueId) -> Result<Groups, RuleError> {
        let shape = cx.b.shape(x);
        let [_, width] = shape.as_slice() else {
            return Err(RuleError::Malformed("groups are of a matrix".to_owned()));
        };
        let mut size = a.sym("group_size")?;
        let is_column = cx.b.shape(scales).last().is_none_or(|size| size.is(1));
        if let (Some(own), Some(width)) = (size.as_int(), width.as_int())
            && own > width
            && is_column
        {
            size = Expr::int(width);
        }
        let count = Expr::product(&shape).floor_div_in(&size, cx.b.ranges());
        let rows = cx.b.reshape(x, &[count, size])?;
        Ok(Groups { rows, shape })
    }

    fn column(cx: &mut Context, parameters: ValueId) -> Result<ValueId, RuleError> {
        let flat = cx.flattened(parameters)?;
        Ok(cx.b.unsqueeze(flat, 1)?)
    }
}

fn quantize_per_group(cx: &mut Context, a: &Args) -> Rule {
    let (x, scales) = (a.tensor("input")?, a.tensor("scales")?);
    let groups = Groups::of(cx, a, x, scales)?;
    let scales = Groups::column(cx, scales)?;
    let zeros = Groups::column(cx, a.tensor("zero_points")?)?;
    let result = one(quantized_late(cx, a, groups.rows, scales, zeros)?)?;
    Ok(cx.b.reshape(result, &groups.shape)?.into())
}

fn dequantize_per_group(cx: &mut Context, a: &Args) -> Rule {
    let (x, scales) = (a.tensor("input")?, a.tensor("scales")?);
    let groups = Groups::of(cx, a, x, scales)?;
    let scales = Groups::column(cx, scales)?;
    let zeros = match a.opt_tensor("zero_points")? {
        Some(zeros) => Groups::column(cx, zeros)?,
        None => cx.b.scalar(0i64, DType::I32),
    };
    let result = dequantized(cx, groups.rows, scales, Some(zeros))?;
    let result = cx.b.reshape(result, &groups.shape)?;
    Ok(cx.b.cast(result, a.opt_dtype("output_dtype")?.unwrap_or(DType::F32)).into())
}

// --- products --------------------------------------------------------------------------------------------------------

/// `self [m, k] x mat2 [n, k]^T`, times a scale for each row of the weight.
fn int8_weights(cx: &mut Context, a: &Args) -> Rule {
    let (x, weight, scales) = (a.tensor("self")?, a.tensor("mat2")?, a.tensor("scales")?);
    let dtype = cx.b.dtype(x);
    let wide = dtype.compute();
    let (x, weight, scales) = (cx.b.cast(x, wide), cx.b.cast(weight, wide), cx.b.cast(scales, wide));
    let weight = cx.b.transpose(weight, 0, 1)?;
    let product = cx.b.matmul(x, weight)?;
    let scaled = cx.mul(product, scales)?;
    Ok(cx.b.cast(scaled, dtype).into())
}

/// The numbers of an integer type, for operators that leave the limits to it.
pub(crate) fn numbers_of(dtype: DType) -> (Scalar, Scalar) {
    (Scalar::lowest(dtype), Scalar::highest(dtype))
}
