//! Attention of transformers as ONNX Runtime's optimiser fuses it.

use super::activation::sum;
use super::operators;
use super::quantized::{Scale, dequantized, dot};
use crate::dtype::DType;
use crate::frontend::onnx::call::{Call, malformed, unsupported};
use crate::frontend::onnx::ops::Rule;
use crate::frontend::onnx::ops::attention_core::Attend;
use crate::frontend::onnx::value::Val;
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::RuleError;
use crate::graph::{IntBinary, Relation, ValueId};
use crate::symbolic::Expr;

operators! { "com.microsoft";
    "Attention" => attention,
    "DecoderMaskedMultiHeadAttention" => decoder,
    "MultiHeadAttention" => multi_head,
    "QAttention" => quantized_attention,
}

/// Heads of a node.
fn heads(c: &Call) -> Result<i64, RuleError> {
    c.opt_int("num_heads")?.ok_or_else(|| malformed("`num_heads` is missing"))
}

/// The scale of a node; 0 stands for the default.
pub(super) fn scale(c: &Call) -> Result<Option<f64>, RuleError> {
    Ok(c.opt_float("scale")?.filter(|scale| *scale != 0.0))
}

/// What attention is of, apart from queries, keys and values.
struct Masks {
    mask: Option<ValueId>,
    bias: Option<ValueId>,
    /// Keys of the past, where each query sees those up to its own position.
    past: Option<Expr>,
}

/// `[batch, rows, queries + keys + values]` as heads of each; all are as wide unless the node says so.
fn split(cx: &mut Onnx, c: &Call, x: ValueId) -> Result<[ValueId; 3], RuleError> {
    let total = cx.b.shape(x)[2].clone();
    let third = total.floor_div_in(&Expr::int(3), cx.b.ranges());
    let sizes = match c.opt_ints("qkv_hidden_sizes")? {
        Some(sizes) if sizes.len() == 3 => sizes.into_iter().map(Expr::int).collect(),
        Some(_) => return Err(malformed("`qkv_hidden_sizes` has not three entries")),
        None => vec![third; 3],
    };
    let heads = heads(c)?;
    let mut start = Expr::int(0);
    let mut parts = Vec::new();
    for size in &sizes {
        let part = cx.b.slice(x, 2, &start, size, 1)?;
        parts.push(cx.with_heads(part, heads)?);
        start = &start + size;
    }
    Ok([parts[0], parts[1], parts[2]])
}

fn attention(cx: &mut Onnx, c: &Call) -> Rule {
    refuse_buffers(c)?;
    let projected = cx.matmul(c.tensor(0)?, c.tensor(1)?)?;
    let projected = match c.opt_tensor(2)? {
        Some(bias) => sum(cx, &[projected, bias])?,
        None => projected,
    };
    of_projected(cx, c, projected, [3, 4, 5])
}

/// Attention of projected rows; positions are those of the mask, the past and the bias.
fn of_projected(cx: &mut Onnx, c: &Call, projected: ValueId, [mask, past, bias]: [usize; 3]) -> Rule {
    let [query, mut key, mut value] = split(cx, c, projected)?;
    let mut before = Expr::int(0);
    if let Some(past) = c.opt_tensor(past)? {
        let [keys, values] = [0, 1].map(|part| cx.b.pick(past, 0, &Expr::int(part)));
        before = cx.b.shape(past)[3].clone();
        key = cx.b.cat(&[keys?, key], 2)?;
        value = cx.b.cat(&[values?, value], 2)?;
    }
    let past = c.flag("unidirectional", false)?.then_some(before);
    let bias = if bias < c.inputs.len() { c.opt_tensor(bias)? } else { None };
    let masks = Masks { mask: c.opt_tensor(mask)?, bias, past };
    let own = attend_of(cx, c, [query, key, value], masks)?;
    let done = cx.attend(&own)?;
    let output = cx.without_heads(done.output)?;
    let present: Val = if c.wants(1) {
        if cx.b.shape(key)[3] != cx.b.shape(value)[3] {
            return Err(unsupported("a present of keys and values that differ in width"));
        }
        let both = [cx.b.unsqueeze(key, 0)?, cx.b.unsqueeze(value, 0)?];
        cx.b.cat(&both, 0)?.into()
    } else {
        Val::Absent
    };
    Ok(vec![output.into(), present])
}

fn refuse_buffers(c: &Call) -> Result<(), RuleError> {
    if c.flag("past_present_share_buffer", false)? {
        return Err(unsupported("a past and a present in one buffer"));
    }
    if c.flag("do_rotary", false)? {
        return Err(unsupported("rotary embeddings inside of attention"));
    }
    Ok(())
}

fn attend_of(
    cx: &mut Onnx,
    c: &Call,
    [query, key, value]: [ValueId; 3],
    masks: Masks,
) -> Result<Attend, RuleError> {
    let mut own = Attend::new(query, key, value);
    own.scale = scale(c)?;
    if let Some(mask) = masks.mask {
        let visible = visible(cx, mask, query, key)?;
        let filter = c.float("mask_filter_value", -10000.0)?;
        let dtype = cx.b.dtype(query).compute();
        let (none, hidden) = (cx.b.scalar(0.0, dtype), cx.b.scalar(filter, dtype));
        // What is masked is of little weight, not of none.
        own.masks.push(cx.b.select(visible, none, hidden)?);
    }
    own.masks.extend(masks.bias);
    own.causal = masks.past;
    Ok(own)
}

/// Where a mask lets queries see keys, `[batch, 1, queries or 1, keys]`.
fn visible(cx: &mut Onnx, mask: ValueId, query: ValueId, key: ValueId) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(mask);
    let (batch, queries) = (cx.b.shape(query)[0].clone(), cx.b.shape(query)[2].clone());
    let keys = cx.b.shape(key)[2].clone();
    let mask = cx.b.cast(mask, DType::I64);
    let shown = |cx: &mut Onnx, mask: ValueId| cx.with_number(Relation::Gt, mask, 0i64);
    match shape.as_slice() {
        [count] if cx.b.same_size(count, &(&batch * 2)) => {
            let ends = cx.b.slice(mask, 0, &Expr::int(0), &batch, 1)?;
            let starts = cx.b.slice(mask, 0, &batch, &batch, 1)?;
            let before_end = cx.first_keys(ends, &keys)?;
            let before_start = cx.first_keys(starts, &keys)?;
            let behind_start = cx.b.unary(crate::graph::UnaryOp::Not, before_start);
            cx.binary(IntBinary::And, before_end, behind_start)
        }
        [_] => {
            let ends = cx.required_shape(mask, std::slice::from_ref(&batch))?;
            cx.first_keys(ends, &keys)
        }
        [_, _] => {
            let mask = cx.b.unsqueeze(mask, 1)?;
            let mask = cx.b.unsqueeze(mask, 1)?;
            shown(cx, mask)
        }
        [_, _, _] => {
            let mask = cx.b.unsqueeze(mask, 1)?;
            shown(cx, mask)
        }
        [_, _, _, _] => {
            // A square of all positions: rows are those of the last keys.
            let rows = cx.b.slice(mask, 2, &(&keys - &queries), &queries, 1)?;
            let mask = cx.b.slice(rows, 3, &Expr::int(0), &keys, 1)?;
            shown(cx, mask)
        }
        other => Err(malformed(format!("a mask of {} axes", other.len()))),
    }
}

/// Queries, keys and values that are projected already.
fn multi_head(cx: &mut Onnx, c: &Call) -> Rule {
    if c.opt_tensor(8)?.is_some() || c.opt_tensor(9)?.is_some() {
        return Err(unsupported("a past and a present in one buffer"));
    }
    let heads = heads(c)?;
    let [query, mut key, mut value] = projections(cx, c, heads)?;
    let mut before = Expr::int(0);
    if let (Some(past_key), Some(past_value)) = (c.opt_tensor(6)?, c.opt_tensor(7)?) {
        before = cx.b.shape(past_key)[2].clone();
        key = cx.b.cat(&[past_key, key], 2)?;
        value = cx.b.cat(&[past_value, value], 2)?;
    }
    let past = match c.flag("unidirectional", false)? {
        true => Some(seen_before(cx, before, query, key)),
        false => None,
    };
    let masks = Masks { mask: c.opt_tensor(4)?, bias: c.opt_tensor(5)?, past };
    let own = attend_of(cx, c, [query, key, value], masks)?;
    let done = cx.attend(&own)?;
    let output = cx.without_heads(done.output)?;
    let scores: Val = if c.wants(3) { cx.typed_like(done.masked, query).into() } else { Val::Absent };
    Ok(vec![output.into(), key.into(), value.into(), scores])
}

/// Keys that the first query sees beside its own, after so many of a past. A single query sees all of them, also where keys come from
/// elsewhere and are more than the past and the query.
fn seen_before(cx: &Onnx, past: Expr, query: ValueId, key: ValueId) -> Expr {
    let [queries, keys] = [query, key].map(|value| cx.b.shape(value)[2].clone());
    let more = &(&keys - &past) - &queries;
    if more.is(0) {
        return past;
    }
    let is_single = cx.b.larger(&(&Expr::int(2) - &queries), &Expr::int(0));
    &past + &(&more * &is_single)
}

/// One query for each sequence, as a search asks for them.
fn decoder(cx: &mut Onnx, c: &Call) -> Rule {
    refuse_buffers(c)?;
    if c.opt_tensor(9)?.is_some() {
        return Err(unsupported("keys and values that are those of other beams"));
    }
    // The standard's order, with the bias of projections before masks.
    let order = [0, 1, 2, 10, 3, 4, 5, 6];
    let inputs = order.into_iter().map(|position| c.input(position)).collect();
    multi_head(cx, &Call { node: c.node, version: c.version, inputs })
}

/// Heads of queries, keys and values, which may be packed, and may have a bias.
fn projections(cx: &mut Onnx, c: &Call, heads: i64) -> Result<[ValueId; 3], RuleError> {
    let query = c.tensor(0)?;
    let mut parts: Vec<ValueId> = match (c.opt_tensor(1)?, c.opt_tensor(2)?) {
        (None, _) => unpacked(cx, query, 3)?,
        (Some(both), None) => [vec![query], unpacked(cx, both, 2)?].concat(),
        (Some(key), Some(value)) => vec![query, key, value],
    };
    let mut start = Expr::int(0);
    for part in &mut parts {
        // Keys and values of another sequence are in heads already, and have no bias.
        if cx.b.rank(*part) == 4 {
            continue;
        }
        let width = cx.b.shape(*part)[2].clone();
        if let Some(bias) = c.opt_tensor(3)? {
            let own = cx.b.slice(bias, 0, &start, &width, 1)?;
            *part = sum(cx, &[*part, own])?;
        }
        start = &start + &width;
        *part = cx.with_heads(*part, heads)?;
    }
    match parts.as_slice() {
        [query, key, value] => Ok([*query, *key, *value]),
        _ => Err(malformed("packed operands have other parts")),
    }
}

/// `[batch, rows, heads, parts, width]` as so many parts of `[batch, rows, heads * width]`.
fn unpacked(cx: &mut Onnx, x: ValueId, count: i64) -> Result<Vec<ValueId>, RuleError> {
    if cx.b.rank(x) != 5 {
        return Err(malformed("packed operands have five axes"));
    }
    (0..count)
        .map(|part| {
            let part = cx.b.pick(x, 3, &Expr::int(part))?;
            cx.merge_axes(part, 2, 4)
        })
        .collect()
}

/// Attention whose projection is of quantised numbers.
fn quantized_attention(cx: &mut Onnx, c: &Call) -> Rule {
    refuse_buffers(c)?;
    let x = Scale { scale: c.tensor(3)?, zero: c.opt_tensor(6)? };
    let weight = Scale { scale: c.tensor(4)?, zero: c.opt_tensor(7)? };
    let product = dot(cx, (c.tensor(0)?, x.zero), (c.tensor(1)?, weight.zero))?;
    let projected = dequantized(cx, product, &[x.scale, weight.scale])?;
    let projected = sum(cx, &[projected, c.tensor(2)?])?;
    of_projected(cx, c, projected, [5, 8, usize::MAX])
}
