//! Largest and smallest elements and their positions.

use super::reduction::reduced;
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::graph::{Condition, ReduceOp, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.amax.default" => |cx, a| values(cx, a, ReduceOp::Max),
    pure "aten.amin.default" => |cx, a| values(cx, a, ReduceOp::Min),
    pure "aten.max.default" => |cx, a| values(cx, a, ReduceOp::Max),
    pure "aten.min.default" => |cx, a| values(cx, a, ReduceOp::Min),
    pure "aten.max.dim" => |cx, a| with_positions(cx, a, ReduceOp::Max, ReduceOp::ArgMax),
    pure "aten.min.dim" => |cx, a| with_positions(cx, a, ReduceOp::Min, ReduceOp::ArgMin),
    pure "aten.argmax.default" => |cx, a| positions(cx, a, ReduceOp::ArgMax),
    pure "aten.argmin.default" => |cx, a| positions(cx, a, ReduceOp::ArgMin),
    pure "aten.aminmax.default" => aminmax,
    pure "aten._aminmax.default" => aminmax,
    pure "aten._aminmax.dim" => aminmax,
}

/// The axes to reduce, and whether they stay. None may be empty: of nothing there is no largest element.
fn searched(cx: &mut Context, a: &Args, x: ValueId) -> Result<(Vec<usize>, bool), RuleError> {
    let (axes, keep) = reduced(cx, a, x)?;
    let shape = cx.b.shape(x);
    axes.iter().for_each(|axis| require_elements(cx, &shape[*axis]));
    Ok((axes, keep))
}

fn require_elements(cx: &mut Context, size: &Expr) {
    let condition = Condition::compare(size.clone(), Relation::Ge, 1);
    cx.b.require(condition, "an axis without elements has no largest and no smallest one");
}

fn values(cx: &mut Context, a: &Args, op: ReduceOp) -> Rule {
    let x = a.tensor("self")?;
    let (axes, keep) = searched(cx, a, x)?;
    Ok(cx.b.reduce(op, x, &axes, keep)?.into())
}

fn with_positions(cx: &mut Context, a: &Args, op: ReduceOp, arg: ReduceOp) -> Rule {
    let x = a.tensor("self")?;
    let (axes, keep) = searched(cx, a, x)?;
    let value = cx.b.reduce(op, x, &axes, keep)?;
    let position = cx.b.reduce(arg, x, &axes, keep)?;
    Ok(Outputs::Many(vec![Some(value), Some(position)]))
}

/// Without `dim`, the position in the flattened tensor; then `keepdim` keeps every axis with size 1.
fn positions(cx: &mut Context, a: &Args, op: ReduceOp) -> Rule {
    let x = a.tensor("self")?;
    if a.has("dim") {
        let (axes, keep) = searched(cx, a, x)?;
        return Ok(cx.b.reduce(op, x, &axes, keep)?.into());
    }
    let rank = cx.b.rank(x);
    let flat = cx.flattened(x)?;
    let numel = cx.b.shape(flat)[0].clone();
    require_elements(cx, &numel);
    let position: ValueId = cx.b.reduce(op, flat, &[0], false)?;
    if a.bool_or("keepdim", false)? {
        Ok(cx.trailing_ones(position, rank)?.into())
    } else {
        Ok(position.into())
    }
}

fn aminmax(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let (axes, keep) = searched(cx, a, x)?;
    let low = cx.b.reduce(ReduceOp::Min, x, &axes, keep)?;
    let high = cx.b.reduce(ReduceOp::Max, x, &axes, keep)?;
    Ok(Outputs::Many(vec![Some(low), Some(high)]))
}
