//! Running reductions, differences and integrals along an axis.

use super::registry::rules;
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::aten::Arg;
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
    pure "aten.gradient.*" => gradient,
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
fn differences(cx: &mut Context, x: ValueId, axis: usize) -> Result<ValueId, RuleError> {
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
    for _ in 0..a.int_or("n", 1)? {
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

/// Derivatives along axes by central differences, one-sided at the ends.
fn gradient(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let x = cx.to_float(x);
    let rank = cx.b.rank(x);
    let axes = if a.has("dim") { Context::axes(&a.ints("dim")?, rank)? } else { (0..rank).collect() };
    let order = a.int_or("edge_order", 1)?;
    let mut results = Vec::new();
    for (k, axis) in axes.iter().enumerate() {
        let (points, step) = grid(cx, a, k, x, *axis)?;
        let slope = derivative(cx, x, *axis, points, order)?;
        let dtype = cx.b.dtype(x);
        results.push(match step {
            Some(step) => cx.apply([slope], dtype, |[slope]| slope / step)?,
            None => slope,
        });
    }
    Ok(Outputs::List(results))
}

/// The coordinates of the samples along one axis, broadcastable against the tensor, and what they are to be scaled by: a
/// step may be zero.
fn grid(
    cx: &mut Context,
    a: &Args,
    k: usize,
    x: ValueId,
    axis: usize,
) -> Result<(ValueId, Option<Formula>), RuleError> {
    let dtype = cx.b.dtype(x);
    let mut shape = vec![Expr::int(1); cx.b.rank(x)];
    shape[axis] = cx.b.shape(x)[axis].clone();
    let step = match a.raw("spacing") {
        Some(Arg::Tensors(_)) => {
            let points = a.tensors("spacing")?;
            let Some(points) = points.get(k) else {
                return Err(RuleError::Malformed("fewer spacings than axes".to_owned()));
            };
            let points = cx.b.cast(*points, dtype);
            return Ok((cx.b.reshape(points, &shape)?, None));
        }
        Some(Arg::Floats(_) | Arg::Ints(_)) => {
            let steps = a.floats("spacing")?;
            Formula::from(*steps.get(k).or(steps.first()).unwrap_or(&1.0))
        }
        Some(_) | None => a.number_or("spacing", 1.0)?.formula(cx, dtype),
    };
    let index = cx.b.index(Expr::axis(axis), &shape);
    Ok((cx.b.cast(index, dtype), Some(step)))
}

fn derivative(
    cx: &mut Context,
    x: ValueId,
    axis: usize,
    points: ValueId,
    order: i64,
) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(x);
    let size = cx.b.shape(x)[axis].clone();
    let inner = &size - 2;
    let (slopes, steps) = (differences(cx, x, axis)?, differences(cx, points, axis)?);
    let slopes = cx.apply([slopes, steps], dtype, |[dy, dx]| dy / dx)?;
    let one = Expr::int(1);
    let mut at = |value, from: &Expr, length: &Expr| cx.b.slice(value, axis, from, length, 1);
    let zero = Expr::int(0);
    let (left, right) = (at(slopes, &zero, &inner)?, at(slopes, &one, &inner)?);
    let (left_step, right_step) = (at(steps, &zero, &inner)?, at(steps, &one, &inner)?);
    let (first, last) = (at(slopes, &zero, &one)?, at(slopes, &(&size - 2), &one)?);
    let (mut start, mut end) = (first, last);
    if order == 2 {
        // A parabola through the three outermost samples.
        let (second, before) = (at(slopes, &one, &one)?, at(slopes, &(&size - 3), &one)?);
        let (step_0, step_1) = (at(steps, &zero, &one)?, at(steps, &one, &one)?);
        let (step_y, step_z) = (at(steps, &(&size - 3), &one)?, at(steps, &(&size - 2), &one)?);
        start = cx.apply([first, second, step_0, step_1], dtype, |[first, second, h, next]| {
            &first - (second - &first) * &h / (&h + next)
        })?;
        end = cx.apply([last, before, step_z, step_y], dtype, |[last, before, h, previous]| {
            &last + (&last - before) * &h / (&h + previous)
        })?;
    }
    let middle = cx.apply([left, right, left_step, right_step], dtype, |[left, right, h, next]| {
        (left * &next + right * &h) / (&h + &next)
    })?;
    Ok(cx.b.cat(&[start, middle, end], axis)?)
}
