//! Rotary embeddings, whose tables are looked up by positions.

use super::operators;
use crate::dtype::DType;
use crate::frontend::onnx::call::{Call, malformed, unsupported};
use crate::frontend::onnx::ops::rotary::Turn;
use crate::frontend::onnx::ops::{Rule, many, one};
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::RuleError;
use crate::graph::ValueId;
use crate::symbolic::Expr;

operators! { "com.microsoft";
    "GemmaRotaryEmbedding" => gemma,
    "RotaryEmbedding" => rotary,
}

/// Positions are of all rows, or the one of the first row.
fn rotary(cx: &mut Onnx, c: &Call) -> Rule {
    if c.flag("is_packed_batching", false)? || c.float("scale", 1.0)? != 1.0 {
        return Err(unsupported("packed batches or a scale of rotary embeddings"));
    }
    let x = c.tensor(0)?;
    let (cos, sin) = (c.tensor(2)?, c.tensor(3)?);
    let table = cx.b.shape(cos);
    let pairs = table.get(1).cloned().ok_or_else(|| malformed("a table of fewer than two axes"))?;
    let is_flat = cx.b.rank(x) == 3;
    let own = if is_flat {
        let heads = match c.int("num_heads", 0)? {
            0 => heads_of(cx, x, &pairs)?,
            heads => heads,
        };
        cx.with_heads(x, heads)?
    } else {
        x
    };
    let shape = cx.b.shape(own);
    let given = cx.b.cast(c.tensor(1)?, DType::I64);
    let positions = if cx.b.rank(given) < 2 {
        let first = cx.b.reshape(given, &[])?;
        let row = cx.b.index(Expr::axis(1), &[Expr::int(1), shape[2].clone()]);
        cx.add(row, first)?
    } else {
        given
    };
    let turn = turn_at(cx, cos, sin, positions, c.flag("interleaved", false)?)?;
    let value = cx.turned(own, &turn)?;
    one(if is_flat { cx.without_heads(value)? } else { value })
}

/// Heads, where each is as wide as the tables turn.
fn heads_of(cx: &Onnx, x: ValueId, pairs: &Expr) -> Result<i64, RuleError> {
    let width = cx.b.shape(x)[2].as_int().zip(pairs.as_int());
    match width {
        Some((width, pairs)) if pairs > 0 => Ok(width / (2 * pairs)),
        Some(_) | None => Err(unsupported("heads of which neither the number nor the width is known")),
    }
}

/// How rows at positions are turned.
pub(super) fn turn_at(
    cx: &mut Onnx,
    cos: ValueId,
    sin: ValueId,
    positions: ValueId,
    interleaved: bool,
) -> Result<Turn, RuleError> {
    Ok(Turn { cos: cx.table_rows(cos, positions)?, sin: cx.table_rows(sin, positions)?, interleaved })
}

/// Queries and keys with angles that are given.
fn gemma(cx: &mut Onnx, c: &Call) -> Rule {
    let angles = cx.b.unsqueeze(c.tensor(0)?, 1)?;
    let mut results = Vec::new();
    for (plain, turned) in [(1, 2), (3, 4)] {
        let (plain, turned) = (c.tensor(plain)?, c.tensor(turned)?);
        let wide = cx.wide(angles);
        let sin = cx.b.unary(crate::graph::FloatUnary::Sin, wide);
        let cos = cx.b.unary(crate::graph::FloatUnary::Cos, wide);
        let dtype = cx.b.dtype(plain);
        results.push(
            cx.apply([plain, turned, cos, sin], dtype, |[x, turned, cos, sin]| x * cos + turned * sin)?,
        );
    }
    many(results)
}
