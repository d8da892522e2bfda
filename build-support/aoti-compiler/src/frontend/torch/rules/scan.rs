//! Running reductions, differences and integrals along an axis.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{ScanOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.cumsum.default" => |cx, a| running(cx, a, ScanOp::Sum),
    pure "aten.cumprod.default" => |cx, a| running(cx, a, ScanOp::Prod),
    pure "aten.logcumsumexp.default" => |cx, a| running(cx, a, ScanOp::LogSumExp),
    pure "aten._logcumsumexp.default" => |cx, a| running(cx, a, ScanOp::LogSumExp),
    pure "aten.cummax.default" => |cx, a| with_positions(cx, a, ScanOp::Max),
    pure "aten.cummin.default" => |cx, a| with_positions(cx, a, ScanOp::Min),
    pure "aten.diff.default" => diff,
    pure "aten.trapezoid.*" => |cx, a| trapezoid(cx, a, false),
    pure "aten.trapz.*" => |cx, a| trapezoid(cx, a, false),
    pure "aten.cumulative_trapezoid.*" => |cx, a| trapezoid(cx, a, true),
}

fn running(cx: &mut Context, a: &Args, op: ScanOp) -> Rule {
    let x = a.tensor("self")?;
    let own = cx.b.dtype(x);
    let dtype = match a.opt_dtype("dtype")? {
        Some(dtype) => dtype,
        None if own.is_float() => own,
        None => DType::I64,
    };
    let x = cx.b.cast(x, dtype);
    let rank = cx.b.rank(x);
    let axis = Context::axis(a.int("dim")?, rank)?;
    if rank == 0 {
        return Ok(x.into());
    }
    let scan = |cx: &mut Context, x| Ok(cx.b.scan(op, x, axis)?[0]);
    Ok(cx.in_compute_type(x, scan)?.into())
}

fn with_positions(cx: &mut Context, a: &Args, op: ScanOp) -> Rule {
    let x = a.tensor("self")?;
    let rank = cx.b.rank(x);
    let axis = Context::axis(a.int("dim")?, rank)?;
    if rank == 0 {
        let first = cx.b.scalar(0i64, DType::I64);
        return Ok(Outputs::Many(vec![Some(x), Some(first)]));
    }
    let results = cx.b.scan(op, x, axis)?;
    Ok(Outputs::Many(results.into_iter().map(Some).collect()))
}

/// `x[from .. from + length]` along an axis.
fn part(cx: &mut Context, x: ValueId, axis: usize, from: i64, length: &Expr) -> Result<ValueId, RuleError> {
    Ok(cx.b.slice(x, axis, &Expr::int(from), length, 1)?)
}

/// Differences of neighbours along an axis; one element fewer. Booleans: whether they differ.
pub(crate) fn differences(cx: &mut Context, x: ValueId, axis: usize) -> Result<ValueId, RuleError> {
    let size = cx.b.shape(x)[axis].clone();
    let fewer = (&size - 1).maximum_in(&Expr::int(0), cx.b.ranges());
    // Of nothing there is nothing to take.
    let start = i64::from(!size.is(0));
    let next = part(cx, x, axis, start, &fewer)?;
    let this = part(cx, x, axis, 0, &fewer)?;
    if cx.b.dtype(x) == DType::Bool {
        return cx.binary(crate::graph::IntBinary::Xor, next, this);
    }
    cx.sub(next, this)
}

fn diff(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let axis = Context::axis(a.int_or("dim", -1)?, cx.b.rank(x))?;
    let times = a.int_or("n", 1)?;
    if times == 0 {
        // PyTorch looks at neither end then.
        return Ok(x.into());
    }
    let mut parts = vec![x];
    if let Some(before) = a.opt_tensor("prepend")? {
        parts.insert(0, before);
    }
    if let Some(after) = a.opt_tensor("append")? {
        parts.push(after);
    }
    let dtype = cx.result_type(&parts)?;
    let parts: Vec<ValueId> = parts.into_iter().map(|value| cx.b.cast(value, dtype)).collect();
    let mut result = cx.b.cat(&parts, axis)?;
    for _ in 0..times {
        result = differences(cx, result, axis)?;
    }
    Ok(result.into())
}

/// The distances between the points of `x` along the axis of integration.
fn point_steps(cx: &mut Context, a: &Args, points: ValueId, y: ValueId) -> Result<ValueId, RuleError> {
    let (rank, own_rank) = (cx.b.rank(y), cx.b.rank(points));
    let dim = a.int_or("dim", -1)?;
    if own_rank != 1 {
        return differences(cx, points, Context::axis(dim, own_rank)?);
    }
    let steps = differences(cx, points, 0)?;
    let mut shape = vec![Expr::int(1); rank];
    shape[Context::axis(dim, rank)?] = cx.b.shape(steps)[0].clone();
    Ok(cx.b.reshape(steps, &shape)?)
}

/// Integral by the trapezoidal rule over given points (`x`) or equal steps (`dx`). Neighbours are added in their own
/// type, as PyTorch does; halving makes integers floating-point.
fn trapezoid(cx: &mut Context, a: &Args, cumulative: bool) -> Rule {
    let y = a.tensor("y")?;
    let axis = Context::axis(a.int_or("dim", -1)?, cx.b.rank(y))?;
    let y = cx.at_least_1d(y)?;
    let size = cx.b.shape(y)[axis].clone();
    if !cumulative && a.opt_tensor("x")?.is_none() && size.interval(cx.b.ranges()).min >= 1 {
        // As PyTorch has it, which makes a difference to infinities: all of it, less half of both ends.
        let ends = [cx.b.pick(y, axis, &Expr::int(0))?, cx.b.pick(y, axis, &(&size - 1))?];
        let ends = cx.apply(ends, cx.b.dtype(y), |[first, last]| first + last)?;
        let (sum, dx) = (total(cx, y, axis, false)?, a.float_or("dx", 1.0)?);
        return Ok(cx.apply_float([sum, ends], |[sum, ends]| (sum - ends * 0.5) * dx)?.into());
    }
    let fewer = (&cx.b.shape(y)[axis] - 1).maximum_in(&Expr::int(0), cx.b.ranges());
    let start = i64::from(!cx.b.shape(y)[axis].is(0));
    let next = part(cx, y, axis, start, &fewer)?;
    let this = part(cx, y, axis, 0, &fewer)?;
    let dtype = cx.b.dtype(y);
    let sums = cx.apply([next, this], dtype, |[next, this]| next + this)?;
    let Some(points) = a.opt_tensor("x")? else {
        let half = a.float_or("dx", 1.0)? / 2.0;
        let totals = total(cx, sums, axis, cumulative)?;
        return Ok(cx.apply_float([totals], |[sum]| sum * half)?.into());
    };
    let steps = point_steps(cx, a, points, y)?;
    let dtype = cx.result_type(&[sums, steps])?;
    let areas = cx.apply([sums, steps], dtype, |[sum, step]| sum * step)?;
    let totals = total(cx, areas, axis, cumulative)?;
    Ok(cx.apply_float([totals], |[sum]| sum / 2.0)?.into())
}

/// Sum or running sum along an axis; integers in `i64`, half types in `f32`.
fn total(cx: &mut Context, x: ValueId, axis: usize, running: bool) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(x);
    let x = if dtype.is_float() { x } else { cx.b.cast(x, DType::I64) };
    cx.in_compute_type(x, |cx, x| {
        if running { Ok(cx.b.scan(ScanOp::Sum, x, axis)?[0]) } else { cx.sum(x, &[axis], false) }
    })
}
