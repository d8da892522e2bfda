//! Operators that were ONNX Runtime's own before the standard had them, and others that stand alone.

use super::matrix::standard;
use super::operators;
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::onnx::call::{Call, malformed, unsupported};
use crate::frontend::onnx::ops::{Rule, find, one};
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::{Coord, ValueId};
use crate::symbolic::Expr;

operators! { "com.microsoft";
    "CDist" => distances,
    "CausalConvWithState" => causal_convolution,
    "ExpandDims" => expand_dims,
    "GatherND" => |cx, c| one(standard(cx, c, "GatherND", c.inputs.clone())?),
    "GridSample" => as_standard,
    "Inverse" => |cx, c| {
        let x = cx.square(c.tensor(0)?)?;
        one(cx.matrix_inverse(x)?)
    },
    "LinearAttention" => linear_attention,
    // Its operands are those of the standard from version 11 on.
    "Pad" => |cx, c| as_standard(cx, &Call { node: c.node, version: 11, inputs: c.inputs.clone() }),
    "Range" => as_standard,
    "RelativePositionBias" => relative_position_bias,
    "SwiGLU" => swiglu,
    "Trilu" => |cx, c| one(standard(cx, c, "Trilu", c.inputs.clone())?),
    "UnfoldTensor" => unfold,
}

/// The rule of the standard's operator, for nodes that state nothing beyond it.
fn as_standard(cx: &mut Onnx, c: &Call) -> Rule {
    let name = c.node.op_type();
    let operator = find("", name).ok_or_else(|| malformed(format!("`{name}` has no rule")))?;
    (operator.run)(cx, c)
}

/// Of each row of one matrix from each of another.
fn distances(cx: &mut Onnx, c: &Call) -> Rule {
    let (a, b) = (cx.b.unsqueeze(c.tensor(0)?, 1)?, cx.b.unsqueeze(c.tensor(1)?, 0)?);
    let dtype = cx.b.dtype(a);
    let squares = cx.apply([a, b], dtype.compute(), |[a, b]| {
        let apart = a - b;
        &apart * &apart
    })?;
    let total = cx.sum(squares, &[2], false)?;
    one(match c.text("metric", "sqeuclidean")? {
        "sqeuclidean" => cx.b.cast(total, dtype),
        "euclidean" => cx.apply([total], dtype, |[total]| total.sqrt())?,
        other => return Err(unsupported(format!("the metric `{other}`"))),
    })
}

fn causal_convolution(cx: &mut Onnx, c: &Call) -> Rule {
    if c.int("ndim", 1)? != 1 || c.int("dilation", 1)? != 1 || c.flag("channels_last", false)? {
        return Err(unsupported("several spatial axes, a dilation, or channels behind"));
    }
    as_standard(cx, c)
}

fn linear_attention(cx: &mut Onnx, c: &Call) -> Rule {
    if c.int("state_window", 0)? != 0 {
        return Err(unsupported("the states of several steps"));
    }
    as_standard(cx, c)
}

fn expand_dims(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let axis = cx.fixed(c.tensor(1)?, "an axis")?;
    let [axis] = axis.as_slice() else { return Err(malformed("there is not one axis")) };
    let rank = cx.b.rank(x);
    one(cx.b.unsqueeze(x, axis_of(*axis, rank + 1)?)?)
}

fn unfold(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let axis = axis_of(c.int("dim", -1)?, cx.b.rank(x))?;
    let size = c.opt_int("size")?.ok_or_else(|| malformed("`size` is missing"))?;
    one(cx.b.windows(x, axis, size, c.int("step", 1)?, 1)?)
}

/// Gates and what they let through are two operands, or the halves of one.
fn swiglu(cx: &mut Onnx, c: &Call) -> Rule {
    let mut gate = c.tensor(0)?;
    let value = match c.opt_tensor(1)? {
        Some(value) => value,
        None => {
            let last = cx.b.rank(gate).checked_sub(1).ok_or_else(|| malformed("an operand without axes"))?;
            let half = cx.b.shape(gate)[last].floor_div_in(&Expr::int(2), cx.b.ranges());
            let value = cx.b.slice(gate, last, &half, &half, 1)?;
            gate = cx.b.slice(gate, last, &Expr::int(0), &half, 1)?;
            value
        }
    };
    let (alpha, beta) = (c.float("activation_alpha", 1.0)?, c.float("activation_beta", 0.0)?);
    let limit = c.float("limit", 0.0)?;
    let dtype = cx.b.dtype(gate);
    one(cx.apply([gate, value], dtype, |[gate, value]| {
        let (gate, value) =
            if limit > 0.0 { (gate.min(limit), value.max(-limit).min(limit)) } else { (gate, value) };
        &gate * (&gate * alpha).sigmoid() * (value + beta)
    })?)
}

/// Buckets of distances between queries and keys, as T5 has them: each of the near ones has one, of the far ones each range.
fn relative_position_bias(cx: &mut Onnx, c: &Call) -> Rule {
    let table = c.tensor(0)?;
    let (queries, keys) = (cx.size(c.tensor(1)?)?, cx.size(c.tensor(2)?)?);
    let most = c.opt_int("max_distance")?.ok_or_else(|| malformed("`max_distance` is missing"))?;
    let sizes = cx.b.shape(table);
    let [buckets, heads] = sizes.as_slice() else { return Err(malformed("a table has two axes")) };
    let buckets = buckets.as_int().ok_or_else(|| unsupported("a number of buckets that is not fixed"))?;
    let shape = [Expr::int(1), heads.clone(), queries, keys];
    // Distances are those of keys from queries.
    let distance = cx.b.index(&Expr::axis(3) - &Expr::axis(2), &shape);
    let bucket = bucket_of(cx, distance, buckets, most as f64, c.flag("is_bidirectional", false)?)?;
    // A table lies in memory as its transpose.
    let table = cx.b.reshape(table, &[heads.clone(), Expr::int(buckets)])?;
    let head = Coord::Expr(Expr::axis(1));
    one(cx.b.gather(table, &[bucket], vec![head, Coord::Indirect(0)], &shape)?)
}

fn bucket_of(
    cx: &mut Onnx,
    distance: ValueId,
    buckets: i64,
    most: f64,
    both_ways: bool,
) -> Result<ValueId, RuleError> {
    let own = if both_ways { buckets / 2 } else { buckets };
    let near = (own / 2) as f64;
    let steps = (own as f64) - near;
    let distance = Formula::from(cx.b.cast(distance, DType::F32));
    let ahead = distance.gt(0.0);
    let far = if both_ways { distance.abs() } else { (-&distance).max(0.0) };
    let range = ((far.max(1.0) / near).log() / (most / near).ln() * steps).trunc() + near;
    let bucket = far.lt(near).select(&far, range.min(own as f64 - 1.0));
    let bucket = if both_ways { ahead.select(&bucket + own as f64, &bucket) } else { bucket };
    let bucket = cx.formula(DType::F32, &bucket)?;
    Ok(cx.b.cast(bucket, DType::I64))
}
