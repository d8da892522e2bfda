//! Normalisations of sums.

use super::activation::sum;
use super::operators;
use super::quantized::{Scale, real};
use crate::dtype::DType;
use crate::frontend::onnx::call::{Call, malformed};
use crate::frontend::onnx::ops::normalization::grouped;
use crate::frontend::onnx::ops::{Rule, many, one};
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::RuleError;
use crate::graph::{Relation, ValueId};
use crate::symbolic::Expr;

operators! { "com.microsoft";
    "EmbedLayerNormalization" => |cx, c| embed_layer_norm(cx, c, false),
    "GatedRMSNorm" => gated_rms_norm,
    "GroupNorm" => |cx, c| {
        let x = c.tensor(0)?;
        one(group_norm(cx, c, x)?)
    },
    "QEmbedLayerNormalization" => |cx, c| embed_layer_norm(cx, c, true),
    "SkipGroupNorm" => skip_group_norm,
    "SkipLayerNormalization" => skip_layer_norm,
    "SkipSimplifiedLayerNormalization" => skip_rms_norm,
}

/// What is added before an operator divides by a deviation, where it does not say.
const EPSILON: f64 = 1e-12;

/// The sum of the operand, the one beside it, and a bias.
fn skipped(cx: &mut Onnx, c: &Call, bias: usize) -> Result<ValueId, RuleError> {
    let mut all = vec![c.tensor(0)?, c.tensor(1)?];
    all.extend(c.opt_tensor(bias)?);
    sum(cx, &all)
}

fn skip_layer_norm(cx: &mut Onnx, c: &Call) -> Rule {
    let total = skipped(cx, c, 4)?;
    let last = cx.b.rank(total) - 1;
    let normal = cx.normal(total, &[last], c.float("epsilon", EPSILON)?)?;
    let value = cx.affine(normal.value, Some(c.tensor(2)?), c.opt_tensor(3)?)?;
    many([cx.typed_like(value, total), normal.mean, normal.inverse, total])
}

fn skip_rms_norm(cx: &mut Onnx, c: &Call) -> Rule {
    let total = skipped(cx, c, 3)?;
    let last = cx.b.rank(total) - 1;
    let (normal, inverse) = cx.unit_squares(total, &[last], c.float("epsilon", EPSILON)?)?;
    let value = cx.affine(normal, Some(c.tensor(2)?), None)?;
    many([cx.typed_like(value, total), inverse, inverse, total])
}

/// Of rows as long as the scale, which are parts of the last axis; each element is let through as its gate says.
fn gated_rms_norm(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, scale, gate) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
    let (shape, row) = (cx.b.shape(x), cx.b.shape(scale));
    let ([outer @ .., last], [row]) = (shape.as_slice(), row.as_slice()) else {
        return Err(malformed("it takes rows, and a scale of one axis"));
    };
    let parts = last.floor_div_in(row, cx.b.ranges());
    let parts = [outer, &[parts, row.clone()]].concat();
    let rows = cx.b.reshape(x, &parts)?;
    let (normal, _) = cx.unit_squares(rows, &[outer.len() + 1], c.float("epsilon", 1e-5)?)?;
    let normal = cx.affine(normal, Some(scale), None)?;
    let normal = cx.b.reshape(normal, &shape)?;
    let is_swish = match c.text("activation", "silu")? {
        "silu" | "swish" => true,
        "sigmoid" => false,
        other => return Err(malformed(format!("the activation `{other}` is unknown"))),
    };
    let gate = cx.wide(gate);
    let wide = cx.b.dtype(normal);
    let value = cx.apply([normal, gate], wide, |[x, gate]| {
        x * if is_swish { &gate * gate.sigmoid() } else { gate.sigmoid() }
    })?;
    one(cx.typed_like(value, x))
}

/// The sum of the embeddings of words, positions and segments, normalised. Quantised tables have their scales and zeros behind all
/// of them.
fn embed_layer_norm(cx: &mut Onnx, c: &Call, is_quantized: bool) -> Rule {
    let real = |cx: &mut Onnx, position: usize, x: ValueId| -> Result<ValueId, RuleError> {
        if !is_quantized {
            return Ok(x);
        }
        let (scale, zero) = (c.tensor(position + 6)?, c.opt_tensor(position + 11)?);
        real(cx, x, Scale { scale, zero })
    };
    let rows = |cx: &mut Onnx, table: usize, at: ValueId| -> Result<ValueId, RuleError> {
        let rows = cx.table_rows(c.tensor(table)?, at)?;
        real(cx, table, rows)
    };
    let words = c.tensor(0)?;
    let shape = cx.b.shape(words);
    let [batch, length] = shape.as_slice() else { return Err(malformed("words have two axes")) };
    let mut all = vec![rows(cx, 2, words)?];
    let positions = match c.opt_tensor(8)? {
        Some(positions) if !is_quantized => positions,
        Some(_) | None => cx.b.index(Expr::axis(1), &[Expr::int(1), length.clone()]),
    };
    all.push(rows(cx, 3, positions)?);
    if let (Some(segments), Some(_)) = (c.opt_tensor(1)?, c.opt_tensor(4)?) {
        all.push(rows(cx, 4, segments)?);
    }
    let total = sum(cx, &all)?;
    let normal = cx.normal(total, &[2], c.float("epsilon", EPSILON)?)?;
    let (scale, shift) = (real(cx, 5, c.tensor(5)?)?, real(cx, 6, c.tensor(6)?)?);
    let value = cx.affine(normal.value, Some(scale), Some(shift))?;
    let count = match c.opt_tensor(7)? {
        Some(mask) => {
            let mask = cx.b.cast(mask, DType::I32);
            let counts = cx.with_number(Relation::Ne, mask, 0i64)?;
            let counts = cx.b.cast(counts, DType::I32);
            cx.sum(counts, &[1], false)?
        }
        None => cx.b.full(0i64, DType::I32, std::slice::from_ref(batch)),
    };
    many([cx.typed_like(value, total), count, total])
}

fn group_norm(cx: &mut Onnx, c: &Call, x: ValueId) -> Result<ValueId, RuleError> {
    let groups = c.opt_int("groups")?.ok_or_else(|| malformed("`groups` is missing"))?;
    let rank = cx.b.rank(x);
    let channels_last = c.flag("channels_last", true)?;
    let inner = if channels_last { cx.move_axis(x, rank - 1, 1)? } else { x };
    let (normal, shape) = grouped(cx, inner, groups, c.float("epsilon", 1e-5)?)?;
    let normal = cx.b.reshape(normal, &shape)?;
    let (scale, shift) = (cx.per_channel(c.tensor(1)?, &shape)?, cx.per_channel(c.tensor(2)?, &shape)?);
    let mut value = cx.affine(normal, Some(scale), Some(shift))?;
    if c.flag("activation", false)? {
        let wide = cx.b.dtype(value);
        value = cx.apply([value], wide, |[x]| &x * x.sigmoid())?;
    }
    let value = cx.typed_like(value, x);
    if channels_last { cx.move_axis(value, 1, rank - 1) } else { Ok(value) }
}

fn skip_group_norm(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let (rank, channels_last) = (cx.b.rank(x), c.flag("channels_last", true)?);
    let mut all = vec![x];
    for position in [3, 4] {
        let Some(mut other) = c.opt_tensor(position)? else { continue };
        let shape = cx.b.shape(other);
        if shape.len() < rank {
            // One number for each channel, of each element of the batch or of all.
            let channels = shape.last().cloned().ok_or_else(|| malformed("an operand without axes"))?;
            let mut target = vec![Expr::int(1); rank];
            if shape.len() > 1 {
                target[0] = shape[0].clone();
            }
            target[if channels_last { rank - 1 } else { 1 }] = channels;
            other = cx.b.reshape(other, &target)?;
        }
        all.push(other);
    }
    let total = sum(cx, &all)?;
    many([group_norm(cx, c, total)?, total])
}
