//! The fused modules of `torch.nn` that inference runs: multi-head attention with its projections, and a whole layer of
//! an encoder. Export writes them where gradients are off, the module is in evaluation and its fast path is on.

use super::attention::{hide, softmax};
use super::matmul::{linear_of, matmul};
use super::normalization::{Normal, normalised};
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten._native_multi_head_attention.default" => |cx, a| {
        let operands = [a.tensor("query")?, a.tensor("key")?, a.tensor("value")?];
        let (output, mut weights) = attention(cx, a, operands, a.int("num_head")?)?;
        if !a.bool_or("need_weights", true)? {
            return Ok(Outputs::Many(vec![Some(output), None]));
        }
        if a.bool_or("average_attn_weights", true)? {
            weights = cx.mean(weights, &[1], false)?;
        }
        Ok(Outputs::Many(vec![Some(output), Some(weights)]))
    },
    pure "aten._transformer_encoder_layer_fwd.default" => layer,
}

/// Attention of projections, projected once more, and its weights `[batch, heads, queries, keys]`.
fn attention(
    cx: &mut Context,
    a: &Args,
    operands: [ValueId; 3],
    heads: i64,
) -> Result<(ValueId, ValueId), RuleError> {
    let width = a.int("embed_dim")?;
    if heads <= 0 || width <= 0 || width % heads != 0 {
        return Err(RuleError::Malformed(format!("{heads} heads of {width} numbers together")));
    }
    let (weight, bias) = (a.tensor("qkv_weight")?, a.tensor("qkv_bias")?);
    let size = Expr::int(width);
    let mut parts = Vec::new();
    for (third, x) in operands.into_iter().enumerate() {
        if cx.b.rank(x) != 3 {
            return Err(RuleError::Malformed("queries, keys and values have three axes".to_owned()));
        }
        let start = &size * third as i64;
        let weight = cx.b.slice(weight, 0, &start, &size, 1)?;
        let bias = cx.b.slice(bias, 0, &start, &size, 1)?;
        let projected = linear_of(cx, x, weight, Some(bias))?;
        let split = cx.split_axis(projected, 2, &[Expr::int(heads), Expr::int(width / heads)])?;
        parts.push(cx.b.transpose(split, 1, 2)?);
    }
    let key = cx.b.transpose(parts[1], 2, 3)?;
    let query = cx.with_number(BinaryOp::Mul, parts[0], 1.0 / ((width / heads) as f64).sqrt())?;
    let dtype = cx.b.dtype(query);
    let product = matmul(cx, query, key)?;
    let scores = cx.b.cast(product, dtype.compute());
    let (scores, guarded) = masked(cx, a, scores)?;
    let (weights, _) = softmax(cx, scores, guarded)?;
    let weights = cx.b.cast(weights, dtype);
    let context = cx.b.matmul(weights, parts[2])?;
    let context = cx.b.transpose(context, 1, 2)?;
    let context = cx.merge_axes(context, 2, 4)?;
    let output = linear_of(cx, context, a.tensor("proj_weight")?, Some(a.tensor("proj_bias")?))?;
    Ok((output, weights))
}

/// Scores without those that the mask hides, and whether there is a mask. A mask of numbers hides where it is not zero,
/// whatever it says there: so do PyTorch's kernels.
fn masked(cx: &mut Context, a: &Args, scores: ValueId) -> Result<(ValueId, bool), RuleError> {
    let Some(mask) = a.opt_tensor("mask")? else { return Ok((scores, false)) };
    let (shape, full) = (cx.b.shape(mask), cx.b.shape(scores));
    let mask = match (a.opt_int("mask_type")?, shape.len()) {
        // Of queries and keys; of all.
        (Some(0), 2) => cx.required_shape(mask, &full[2..])?,
        (Some(2), 4) => cx.required_shape(mask, &full)?,
        // Of the keys of each sequence.
        (Some(1), 2) => {
            let mask = cx.required_shape(mask, &[full[0].clone(), full[3].clone()])?;
            let shape = [full[0].clone(), Expr::int(1), Expr::int(1), full[3].clone()];
            cx.b.reshape(mask, &shape)?
        }
        (kind, rank) => {
            return Err(RuleError::unsupported(format!("a mask of kind {kind:?} with {rank} axes")));
        }
    };
    let hidden = cx.b.cast(mask, DType::Bool);
    let visible = cx.with_number(Relation::Eq, hidden, false)?;
    Ok((hide(cx, scores, visible)?, true))
}

fn layer(cx: &mut Context, a: &Args) -> Rule {
    let source = a.tensor("src")?;
    let before = a.bool_or("norm_first", false)?;
    let mut x = source;
    if before {
        x = norm(cx, a, 1, x)?;
    }
    let (attended, _) = attention(cx, a, [x; 3], a.int("num_heads")?)?;
    x = cx.add(attended, source)?;
    if !before {
        x = norm(cx, a, 1, x)?;
    }
    let residual = x;
    if before {
        x = norm(cx, a, 2, x)?;
    }
    x = linear_of(cx, x, a.tensor("ffn_weight_1")?, Some(a.tensor("ffn_bias_1")?))?;
    x = if a.bool_or("use_gelu", false)? {
        cx.apply_float([x], |[x]| super::activation::exact_gelu(&x))?
    } else {
        cx.with_number(BinaryOp::Maximum, x, 0i64)?
    };
    x = linear_of(cx, x, a.tensor("ffn_weight_2")?, Some(a.tensor("ffn_bias_2")?))?;
    x = cx.add(x, residual)?;
    if !before {
        x = norm(cx, a, 2, x)?;
    }
    Ok(x.into())
}

/// The first or second normalisation of a layer.
fn norm(cx: &mut Context, a: &Args, which: usize, x: ValueId) -> Result<ValueId, RuleError> {
    let weight = a.opt_tensor(&format!("norm_weight_{which}"))?;
    let bias = a.opt_tensor(&format!("norm_bias_{which}"))?;
    let last = cx.b.rank(x) - 1;
    let Normal { result, .. } = normalised(cx, x, &[last], [weight, bias], a.float_or("eps", 1e-5)?)?;
    Ok(result)
}
