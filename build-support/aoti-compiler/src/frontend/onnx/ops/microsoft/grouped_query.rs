//! Attention of decoders: heads of keys are shared, rows of a batch have pasts of their own lengths in a cache.

use super::attention::scale;
use super::operators;
use super::rotary::turn_at;
use crate::dtype::DType;
use crate::frontend::onnx::call::{Call, malformed, unsupported};
use crate::frontend::onnx::ops::Rule;
use crate::frontend::onnx::ops::attention_core::{Attend, Start};
use crate::frontend::onnx::value::Val;
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::RuleError;
use crate::graph::{BinaryOp, Combine, Coord, Scalar, ValueId};
use crate::symbolic::Expr;

operators! { "com.microsoft";
    "GroupQueryAttention" => grouped_query,
}

fn refuse(c: &Call) -> Result<(), RuleError> {
    if c.flag("sliding_window_cache", false)? {
        return Err(unsupported("a cache of a window"));
    }
    let quantized =
        ["k_quant_type", "v_quant_type"].map(|name| c.text(name, "NONE").map(|kind| kind != "NONE"));
    if quantized.into_iter().collect::<Result<Vec<_>, _>>()?.contains(&true) {
        return Err(unsupported("a quantised cache"));
    }
    if c.opt_tensor(16)?.is_some() {
        return Err(unsupported("numbers of queries for each sequence"));
    }
    Ok(())
}

fn grouped_query(cx: &mut Onnx, c: &Call) -> Rule {
    refuse(c)?;
    let needed = |name: &str| c.opt_int(name)?.ok_or_else(|| malformed(format!("`{name}` is missing")));
    let (heads, own_heads) = (needed("num_heads")?, needed("kv_num_heads")?);
    let [mut query, mut key, value] = operands(cx, c, heads, own_heads)?;
    if let (Some(of_query), Some(of_key)) = (c.opt_tensor(14)?, c.opt_tensor(15)?) {
        let both = c.float("qk_norm_epsilon", 1e-6)?;
        query = unit(cx, query, of_query, c.float("q_norm_epsilon", both)?)?;
        key = unit(cx, key, of_key, c.float("k_norm_epsilon", both)?)?;
    }
    let (batch, rows) = (cx.b.shape(query)[0].clone(), cx.b.shape(query)[2].clone());
    let counts = cx.b.cast(c.tensor(5)?, DType::I64);
    let counts = cx.b.reshape(counts, std::slice::from_ref(&batch))?;
    let counts = cx.with_number(BinaryOp::Add, counts, 1i64)?;
    // New rows are the last ones of what is there.
    let new = cx.b.index(rows.clone(), &[]);
    let starts = cx.sub(counts, new)?;
    let starts = cx.with_number(BinaryOp::Maximum, starts, 0i64)?;
    if c.flag("do_rotary", false)? {
        let positions = match c.opt_tensor(9)? {
            Some(given) => cx.b.cast(given, DType::I64),
            None => positions(cx, starts, &rows)?,
        };
        let turn = turn_at(cx, c.tensor(7)?, c.tensor(8)?, positions, c.flag("rotary_interleaved", false)?)?;
        (query, key) = (cx.turned(query, &turn)?, cx.turned(key, &turn)?);
    }
    let total = cx.size(c.tensor(6)?)?;
    let key = cached(cx, c.opt_tensor(3)?, key, starts, &total)?;
    let value = cached(cx, c.opt_tensor(4)?, value, starts, &total)?;
    let own = attend(cx, c, [query, key, value], (counts, starts))?;
    let done = cx.attend(&own)?;
    let output = cx.without_heads(done.output)?;
    let scores: Val = match c.int("qk_output", 0)? {
        1 if c.wants(3) => cx.typed_like(done.masked, query).into(),
        2 if c.wants(3) => cx.typed_like(done.weights, query).into(),
        _ => Val::Absent,
    };
    Ok(vec![output.into(), key.into(), value.into(), scores])
}

/// Heads of queries, keys and values, which may be packed side by side.
fn operands(cx: &mut Onnx, c: &Call, heads: i64, own: i64) -> Result<[ValueId; 3], RuleError> {
    let query = c.tensor(0)?;
    if let (Some(key), Some(value)) = (c.opt_tensor(1)?, c.opt_tensor(2)?) {
        return Ok([cx.with_heads(query, heads)?, cx.with_heads(key, own)?, cx.with_heads(value, own)?]);
    }
    let all = cx.with_heads(query, heads + 2 * own)?;
    let mut part = |first: i64, count: i64| cx.b.slice(all, 1, &Expr::int(first), &Expr::int(count), 1);
    Ok([part(0, heads)?, part(heads, own)?, part(heads + own, own)?])
}

/// Each head with a mean of squares of 1.
fn unit(cx: &mut Onnx, x: ValueId, weight: ValueId, eps: f64) -> Result<ValueId, RuleError> {
    let (normal, _) = cx.unit_squares(x, &[3], eps)?;
    let value = cx.affine(normal, Some(weight), None)?;
    Ok(cx.typed_like(value, x))
}

/// Positions of the rows behind the starts, `[batch, rows]`.
fn positions(cx: &mut Onnx, starts: ValueId, rows: &Expr) -> Result<ValueId, RuleError> {
    let row = cx.b.index(Expr::axis(1), &[Expr::int(1), rows.clone()]);
    let starts = cx.trailing_ones(starts, 2)?;
    cx.add(row, starts)
}

/// A cache with new rows in it, from the start of each sequence on. It is as long as it was, or as what is there.
fn cached(
    cx: &mut Onnx,
    past: Option<ValueId>,
    new: ValueId,
    starts: ValueId,
    total: &Expr,
) -> Result<ValueId, RuleError> {
    let mut shape = cx.b.shape(new);
    let dtype = cx.b.dtype(new);
    let zero = Scalar::Float(0.0);
    let base = match past {
        Some(past) => {
            shape[2] = cx.b.larger(&cx.b.shape(past)[2], total);
            cx.b.padded_view(past, &shape, (0..4).map(Expr::axis).collect(), zero)?
        }
        None => {
            shape[2] = total.clone();
            cx.b.full(zero, dtype, &shape)
        }
    };
    let own = cx.b.shape(new);
    if past.is_none() && cx.b.same_size(&own[2], total) {
        // A first prompt fills it.
        return Ok(new);
    }
    let at = cx.b.index(Expr::axis(2), &own);
    let starts = cx.trailing_ones(starts, 4)?;
    let at = cx.add(at, starts)?;
    let coords = (0..4).map(|k| if k == 2 { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) });
    let coords = coords.collect();
    Ok(cx.b.scatter(base, new, &[at], coords, Combine::Set)?)
}

fn attend(
    cx: &mut Onnx,
    c: &Call,
    [query, key, value]: [ValueId; 3],
    (counts, starts): (ValueId, ValueId),
) -> Result<Attend, RuleError> {
    let mut own = Attend::new(query, key, value);
    own.scale = scale(c)?;
    own.cap = c.float("softcap", 0.0)?;
    let (rows, keys) = (cx.b.shape(query)[2].clone(), cx.b.shape(key)[2].clone());
    if let Some(bias) = c.opt_tensor(10)? {
        // Of the positions that there are; those of the cache behind them are hidden anyway.
        let mut shape = cx.b.shape(bias);
        if let Some(last) = shape.last_mut().filter(|last| !cx.b.same_size(last, &keys)) {
            *last = keys.clone();
        }
        let coords = (0..shape.len()).map(Expr::axis).collect();
        own.masks.push(cx.b.padded_view(bias, &shape, coords, Scalar::Float(0.0))?);
    }
    own.masks.push(cx.first_keys(counts, &keys)?);
    if c.flag("causal", true)? {
        let window = c.int("local_window_size", -1)?;
        let left = (window > 0).then_some(window - 1);
        let distance = cx.distance(&Start::Each(starts), &rows, &keys)?;
        own.masks.extend(cx.in_window(distance, left, Some(0))?);
    }
    own.sink = c.opt_tensor(11)?;
    if own.sink.is_none() && c.flag("smooth_softmax", false)? {
        let heads = cx.b.shape(query)[1].clone();
        let dtype = cx.b.dtype(query);
        own.sink = Some(cx.b.full(0.0, dtype, &[heads]));
    }
    Ok(own)
}
