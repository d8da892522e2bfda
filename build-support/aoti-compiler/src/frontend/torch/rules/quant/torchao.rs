//! Affine quantisation as torchao's configurations write it: blocks of any shape share a scale and a zero point.
//!
//! A block is part of the tensor's shape: an axis that blocks divide becomes two, blocks and what is within one.

use super::super::registry::rules;
use super::super::{Args, Context, Outputs, RuleError};
use super::pt2e::numbers_of;
use crate::dtype::DType;
use crate::graph::{BinaryOp, FloatBinary, Relation, Rounding, Scalar, UnaryOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "torchao.quantize_affine.default" => quantize,
    pure "torchao.dequantize_affine.default" => dequantize,
    pure "torchao.choose_qparams_affine.default" => choose,
}

/// A tensor's shape with every axis that blocks divide as two, and which of the axes are within a block.
struct Blocks {
    shape: Vec<Expr>,
    within: Vec<usize>,
    /// How many blocks lie along each axis of the tensor.
    counts: Vec<Expr>,
}

impl Blocks {
    fn of(cx: &Context, a: &Args, x: ValueId) -> Result<Blocks, RuleError> {
        let (sizes, own) = (a.syms("block_size")?, cx.b.shape(x));
        if sizes.len() != own.len() {
            return Err(RuleError::Malformed(format!("a block of {sizes:?} in a tensor of {own:?}")));
        }
        let mut blocks = Blocks { shape: vec![], within: vec![], counts: vec![] };
        for (block, size) in sizes.iter().zip(&own) {
            if cx.b.same_size(block, size) {
                if !block.is(1) {
                    blocks.within.push(blocks.shape.len());
                }
                blocks.shape.push(size.clone());
                blocks.counts.push(Expr::int(1));
            } else if block.is(1) {
                blocks.shape.push(size.clone());
                blocks.counts.push(size.clone());
            } else {
                let count = size.floor_div_in(block, cx.b.ranges());
                blocks.within.push(blocks.shape.len() + 1);
                blocks.shape.extend([count.clone(), block.clone()]);
                blocks.counts.push(count);
            }
        }
        Ok(blocks)
    }

    /// Parameters, one a block, so that they broadcast.
    fn spread(&self, cx: &mut Context, parameters: ValueId) -> Result<ValueId, RuleError> {
        let size = |(axis, size): (usize, &Expr)| {
            if self.within.contains(&axis) { Expr::int(1) } else { size.clone() }
        };
        let shape: Vec<Expr> = self.shape.iter().enumerate().map(size).collect();
        Ok(cx.b.reshape(parameters, &shape)?)
    }
}

/// The limits that a call states, or else those of the type.
fn range(a: &Args, dtype: DType) -> Result<(Scalar, Scalar), RuleError> {
    let (low, high) = numbers_of(dtype);
    Ok((a.opt_scalar("quant_min")?.unwrap_or(low), a.opt_scalar("quant_max")?.unwrap_or(high)))
}

fn wanted(a: &Args, name: &str) -> Result<DType, RuleError> {
    let dtype = a.opt_dtype(name)?;
    dtype.ok_or_else(|| RuleError::Malformed(format!("argument `{name}` is missing")))
}

fn quantize(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("input")?;
    let (dtype, own) = (wanted(a, "output_dtype")?, cx.b.shape(x));
    let blocks = Blocks::of(cx, a, x)?;
    let x = cx.b.reshape(x, &blocks.shape)?;
    let scale = blocks.spread(cx, a.tensor("scale")?)?;
    let zero = blocks.spread(cx, a.tensor("zero_point")?)?;
    let result = cx.quantized(x, scale, zero, range(a, dtype)?)?;
    let result = cx.b.reshape(result, &own)?;
    Ok(cx.b.cast(result, dtype).into())
}

fn dequantize(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("input")?;
    let (dtype, own) = (a.opt_dtype("output_dtype")?.unwrap_or(DType::F32), cx.b.shape(x));
    let blocks = Blocks::of(cx, a, x)?;
    let x = cx.b.cast(x, dtype);
    let mut result = cx.b.reshape(x, &blocks.shape)?;
    if let Some(zero) = a.opt_tensor("zero_point")? {
        let zero = cx.b.cast(zero, dtype);
        let zero = blocks.spread(cx, zero)?;
        result = cx.promoting(BinaryOp::Sub, result, zero)?;
    }
    let scale = blocks.spread(cx, a.tensor("scale")?)?;
    let result = cx.promoting(BinaryOp::Mul, result, scale)?;
    let result = cx.b.reshape(result, &own)?;
    Ok(cx.b.cast(result, dtype).into())
}

fn choose(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("input")?;
    let own = cx.b.dtype(x);
    let (low, high) = range(a, wanted(a, "target_dtype")?)?;
    let (low, high) = (low.to_f64(), high.to_f64());
    let blocks = Blocks::of(cx, a, x)?;
    let x = cx.b.reshape(x, &blocks.shape)?;
    let keep = a.bool_or("keepdim", false)?;
    // To reduce no axis is to reduce all of them, as PyTorch has it.
    let all: Vec<usize> = (0..blocks.shape.len()).collect();
    let axes = if blocks.within.is_empty() { &all } else { &blocks.within };
    let (least, most) = cx.extent(x, axes, keep)?;
    let eps = a.float_or("eps", smallest_normal(own)?)?;
    let at_least = |cx: &mut Context, scale| cx.with_number(BinaryOp::Maximum, scale, eps);
    let (scale, zero, zero_type) = match a.str_or("mapping_type", "")? {
        "ASYMMETRIC" => {
            let reach = cx.promoting(BinaryOp::Sub, most, least)?;
            let scale = cx.beside(FloatBinary::Div, reach, high - low)?;
            let scale = at_least(cx, scale)?;
            let steps = cx.promoting(FloatBinary::Div, least, scale)?;
            let steps = cx.unary(Rounding::Round, steps);
            let start = cx.b.full_like(low, steps);
            let zero = cx.promoting(BinaryOp::Sub, start, steps)?;
            let zero = cx.clamped(zero, (Scalar::Float(low), Scalar::Float(high)))?;
            (scale, zero, DType::I32)
        }
        symmetric @ ("SYMMETRIC" | "SYMMETRIC_NO_CLIPPING_ERR") => {
            let scale = if symmetric == "SYMMETRIC" {
                let below = cx.unary(UnaryOp::Neg, least);
                let reach = cx.binary(BinaryOp::Maximum, below, most)?;
                cx.beside(FloatBinary::Div, reach, (high - low) / 2.0)?
            } else {
                let below = cx.beside(FloatBinary::Div, least, low)?;
                let above = cx.beside(FloatBinary::Div, most, high)?;
                let is_below = cx.binary(Relation::Gt, below, above)?;
                cx.b.select(is_below, below, above)?
            };
            let middle = ((high + low + 1.0) / 2.0).trunc();
            let zero = cx.b.full_like(middle, scale);
            (at_least(cx, scale)?, zero, own)
        }
        other => return Err(RuleError::unsupported(format!("the mapping `{other}`"))),
    };
    let zero_type = a.opt_dtype("zero_point_dtype")?.unwrap_or(zero_type);
    let scale = cx.b.cast(scale, a.opt_dtype("scale_dtype")?.unwrap_or(own));
    let mut results = vec![scale, cx.b.cast(zero, zero_type)];
    if keep {
        for result in &mut results {
            *result = cx.b.reshape(*result, &blocks.counts)?;
        }
    }
    Ok(Outputs::Many(results.into_iter().map(Some).collect()))
}

/// The smallest number of a type that has all its digits.
fn smallest_normal(dtype: DType) -> Result<f64, RuleError> {
    match dtype {
        DType::F16 => Ok(2f64.powi(-14)),
        DType::Bf16 | DType::F32 => Ok(f64::from(f32::MIN_POSITIVE)),
        DType::F64 => Ok(f64::MIN_POSITIVE),
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F8(_) => Err(RuleError::Malformed(format!("a tensor of {dtype} to quantise"))),
    }
}
