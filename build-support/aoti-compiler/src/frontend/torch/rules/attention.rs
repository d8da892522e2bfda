//! Scaled dot-product attention in all the forms in which programs call it.
//!
//! The result is a fixed shape of nodes - product, scale, mask, softmax, product - that later stages recognise.
//! Scores and softmax are kept in the compute type, weights are rounded to the operands' type before the second
//! product, as fused kernels do.

use super::operand::Operand;
use super::registry::rules;
use super::softmax::share;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, FloatUnary, ReduceOp, Relation, Scalar, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.scaled_dot_product_attention.default" => |cx, a| {
        let result = attention(cx, a, "attn_mask")?;
        Ok(result.output.into())
    },
    pure "aten._scaled_dot_product_attention_math.default" => |cx, a| {
        let result = attention(cx, a, "attn_mask")?;
        Ok(Outputs::Many(vec![Some(result.output), Some(result.weights)]))
    },
    pure "aten._scaled_dot_product_flash_attention_for_cpu.default" => |cx, a| {
        with_normalizer(cx, a, "attn_mask")
    },
    pure "aten._scaled_dot_product_efficient_attention.default" => |cx, a| with_normalizer(cx, a, "attn_bias"),
    pure "aten._scaled_dot_product_flash_attention.default" => |cx, a| with_normalizer(cx, a, "attn_mask"),
}

struct Attention {
    output: ValueId,
    /// Normalised weights, rounded to the operands' type.
    weights: ValueId,
    /// Logarithm of the sum of exponentials of each row of scores.
    normalizer: ValueId,
}

fn with_normalizer(cx: &mut Context, a: &Args, mask: &str) -> Rule {
    let result = attention(cx, a, mask)?;
    Ok(Outputs::Many(vec![Some(result.output), Some(result.normalizer)]))
}

fn attention(cx: &mut Context, a: &Args, mask_name: &str) -> Result<Attention, RuleError> {
    let (query, mut key, mut value) = (a.tensor("query")?, a.tensor("key")?, a.tensor("value")?);
    let dtype = cx.b.dtype(query);
    let q_shape = cx.b.shape(query);
    if q_shape.len() < 2 || cx.b.rank(key) < 2 {
        return Err(RuleError::Malformed("queries and keys need two axes".to_owned()));
    }
    if a.bool_or("enable_gqa", false)? {
        key = share_heads(cx, key, &q_shape)?;
        value = share_heads(cx, value, &q_shape)?;
    }
    let mask = a.opt_tensor(mask_name)?;
    let (scores, _) = scores_of(cx, a, query, key, mask)?;
    let (weights, normalizer) = softmax(cx, scores, mask.is_some())?;
    let weights = cx.b.cast(weights, dtype);
    let kept = cx.dropped_out(weights, a.float_or("dropout_p", 0.0)?)?;
    let output = cx.b.matmul(kept, value)?;
    Ok(Attention { output, weights, normalizer })
}

/// The scores of all keys for all queries in the type that they are computed in, and what they were scaled by.
pub(crate) fn scores_of(
    cx: &mut Context,
    a: &Args,
    query: ValueId,
    key: ValueId,
    mask: Option<ValueId>,
) -> Result<(ValueId, Operand), RuleError> {
    let scale = match cx.b.shape(query).last() {
        _ if a.has("scale") => a.number("scale")?,
        Some(width) => default_scale(cx, width)?,
        None => return Err(RuleError::Malformed("queries need two axes".to_owned())),
    };
    let wide = cx.b.dtype(query).compute();
    let (query, key) = (cx.b.cast(query, wide), cx.b.cast(key, wide));
    let keys = cx.b.rank(key);
    let key = cx.b.transpose(key, keys - 2, keys - 1)?;
    let scores = cx.b.matmul(query, key)?;
    let mut scores = scaled(cx, scores, &scale)?;
    if a.bool_or("is_causal", false)? {
        scores = causal(cx, scores)?;
    }
    if let Some(mask) = mask {
        scores = masked(cx, scores, mask)?;
    }
    Ok((scores, scale))
}

/// What scores are multiplied by where a program does not say, from the width of a query.
pub(crate) fn default_scale(cx: &mut Context, width: &Expr) -> Result<Operand, RuleError> {
    if let Some(width) = width.as_int() {
        let scale = if width == 0 { 1.0 } else { 1.0 / (width as f64).sqrt() };
        return Ok(Operand::Number(scale.into()));
    }
    let width = cx.b.larger(width, &Expr::int(1));
    let width = cx.b.index(width, &[]);
    let width = cx.b.cast(width, DType::F64);
    let root = cx.unary(FloatUnary::Sqrt, width);
    let one = cx.b.full_like(1.0, root);
    Ok(Operand::Computed(cx.div(one, root)?, Scalar::Float(0.0)))
}

/// Scores times what they are scaled by. A number stays a factor of the product, even where it is 1.
pub(crate) fn scaled(cx: &mut Context, scores: ValueId, scale: &Operand) -> Result<ValueId, RuleError> {
    match scale {
        Operand::Number(number) => cx.with_number(BinaryOp::Mul, scores, number.to_f64()),
        Operand::Tensor(_) | Operand::Size(_) | Operand::Truth(_) | Operand::Computed(..) => {
            cx.scaled(scores, scale)
        }
    }
}

/// Grouped queries: each key and value head serves several query heads in a row.
pub(crate) fn share_heads(cx: &mut Context, x: ValueId, query: &[Expr]) -> Result<ValueId, RuleError> {
    let mut shape = cx.b.shape(x);
    let rank = shape.len();
    if rank < 3 || query.len() < 3 {
        return Ok(x);
    }
    let heads = query[query.len() - 3].clone();
    let share = heads.floor_div(&shape[rank - 3]);
    shape[rank - 3] = heads;
    let mut coords: Vec<Expr> = (0..rank).map(Expr::axis).collect();
    coords[rank - 3] = Expr::axis(rank - 3).floor_div(&share);
    Ok(cx.b.view(x, &shape, coords)?)
}

/// Hides keys behind the query's own position, both counted from the start.
fn causal(cx: &mut Context, scores: ValueId) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(scores);
    let tail = &shape[shape.len() - 2..];
    let visible = cx.index_is(Relation::Ge, &Expr::axis(0) - &Expr::axis(1), tail)?;
    hide(cx, scores, visible)
}

pub(crate) fn hide(cx: &mut Context, scores: ValueId, visible: ValueId) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(scores);
    let hidden = cx.b.scalar(f64::NEG_INFINITY, dtype);
    Ok(cx.b.select(visible, scores, hidden)?)
}

fn masked(cx: &mut Context, scores: ValueId, mask: ValueId) -> Result<ValueId, RuleError> {
    if cx.b.dtype(mask) == DType::Bool {
        return hide(cx, scores, mask);
    }
    let dtype = cx.b.dtype(scores);
    let bias = cx.b.cast(mask, dtype);
    cx.add(scores, bias)
}

/// Softmax over the last axis and the logarithm of its denominator. With `guarded`, rows in which everything is
/// hidden give zeros instead of NaN.
pub(crate) fn softmax(cx: &mut Context, x: ValueId, guarded: bool) -> Result<(ValueId, ValueId), RuleError> {
    let ty = cx.b.ty(x).clone();
    let last = ty.rank() - 1;
    if ty.shape[last].is(0) {
        let normalizer = cx.b.full(f64::NEG_INFINITY, ty.dtype, &ty.shape[..last]);
        return Ok((x, normalizer));
    }
    let mut peak = cx.b.reduce(ReduceOp::Max, x, &[last], true)?;
    if guarded {
        let nothing = cx.with_number(Relation::Eq, peak, f64::NEG_INFINITY)?;
        let zero = cx.b.full_like(0.0, peak);
        peak = cx.b.select(nothing, zero, peak)?;
    }
    let shifted = cx.sub(x, peak)?;
    let powers = cx.unary(FloatUnary::Exp, shifted);
    let mut total = cx.sum(powers, &[last], true)?;
    let logarithm = cx.unary(FloatUnary::Log, total);
    let normalizer = cx.add(logarithm, peak)?;
    let normalizer = cx.b.squeeze(normalizer, &[last])?;
    if guarded {
        let nothing = cx.with_number(Relation::Eq, total, 0.0)?;
        let one = cx.b.full_like(1.0, total);
        total = cx.b.select(nothing, one, total)?;
    }
    Ok((share(cx, powers, total)?, normalizer))
}
