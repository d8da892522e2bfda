//! Sorting and what follows from it: selections by rank, quantiles, searches.

use super::registry::rules;
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{Coord, FloatTest, ReduceOp, Relation, Rounding, Routine, Scalar, Ties, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.sort.default" => sort,
    pure "aten.sort.stable" => sort,
    pure "aten.argsort.default" => argsort,
    pure "aten.argsort.stable" => argsort,
    pure "aten.msort.default" => msort,
    pure "aten.topk.default" => topk,
    pure "aten.kthvalue.default" => kth_value,
    pure "aten.median.default" => |cx, a| median(cx, a, false),
    pure "aten.median.dim" => |cx, a| median(cx, a, false),
    pure "aten.nanmedian.default" => |cx, a| median(cx, a, true),
    pure "aten.nanmedian.dim" => |cx, a| median(cx, a, true),
    pure "aten.mode.default" => mode,
    pure "aten.quantile.*" => |cx, a| quantile(cx, a, false),
    pure "aten.nanquantile.*" => |cx, a| quantile(cx, a, true),
}

/// The operand with at least one axis, and the axis that `dim` names in it.
fn along(cx: &mut Context, a: &Args, default: i64) -> Result<(ValueId, usize), RuleError> {
    let x = a.tensor("self")?;
    let axis = Context::axis(a.int_or("dim", default)?, cx.b.rank(x))?;
    Ok((cx.at_least_1d(x)?, axis))
}

/// Gives a result the shape of an operand without axes, where that is what `self` is.
fn like_operand(cx: &mut Context, a: &Args, value: ValueId) -> Result<ValueId, RuleError> {
    let rank = { cx.b.rank(a.tensor("self")?) };
    if rank == 0 { Ok(cx.b.reshape(value, &[])?) } else { Ok(value) }
}

/// As [`like_operand`] for both of a pair.
fn pair_like_operand(cx: &mut Context, a: &Args, values: ValueId, indices: ValueId) -> Rule {
    let (values, indices) = (like_operand(cx, a, values)?, like_operand(cx, a, indices)?);
    Ok(Outputs::Many(vec![Some(values), Some(indices)]))
}

fn sort(cx: &mut Context, a: &Args) -> Rule {
    let (x, axis) = along(cx, a, -1)?;
    let (values, indices) = cx.b.sort(x, axis, a.bool_or("descending", false)?)?;
    pair_like_operand(cx, a, values, indices)
}

fn argsort(cx: &mut Context, a: &Args) -> Rule {
    let (x, axis) = along(cx, a, -1)?;
    let (_, indices) = cx.b.sort(x, axis, a.bool_or("descending", false)?)?;
    Ok(like_operand(cx, a, indices)?.into())
}

fn msort(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let x = cx.at_least_1d(x)?;
    let (values, _) = cx.b.sort(x, 0, false)?;
    Ok(like_operand(cx, a, values)?.into())
}

fn topk(cx: &mut Context, a: &Args) -> Rule {
    let (x, axis) = along(cx, a, -1)?;
    let count = a.sym("k")?;
    let (values, indices) = cx.b.sort_first(x, axis, a.bool_or("largest", true)?, &count)?;
    if cx.b.rank(a.tensor("self")?) == 0 && count.is(0) {
        return Ok(Outputs::Many(vec![Some(values), Some(indices)]));
    }
    pair_like_operand(cx, a, values, indices)
}

/// Drops the axis of size 1 unless `keepdim` says otherwise.
fn finish_both(cx: &mut Context, a: &Args, values: ValueId, indices: ValueId, axis: usize) -> Rule {
    let scalar = cx.b.rank(a.tensor("self")?) == 0;
    let keep = a.bool_or("keepdim", false)? && !scalar;
    let finish = |cx: &mut Context, value| if keep { Ok(value) } else { cx.drop_axes(value, &[axis]) };
    let (values, indices) = (finish(cx, values)?, finish(cx, indices)?);
    Ok(Outputs::Many(vec![Some(values), Some(indices)]))
}

/// The number of a rank, and where it stands: of equal ones not the first, but the one that PyTorch's selection ends at.
fn kth_value(cx: &mut Context, a: &Args) -> Rule {
    let (x, axis) = along(cx, a, -1)?;
    let rank = &a.sym("k")? - 1;
    // Refuses ranks that there are not.
    let only = cx.b.slice(x, axis, &rank, &Expr::int(1), 1)?;
    let shape = cx.b.shape(only);
    let ranks = cx.b.index(rank, &shape);
    let (values, indices) = cx.b.nth_element(x, ranks, axis, Ties::Partitioned)?;
    finish_both(cx, a, values, indices, axis)
}

/// Numbers of `f32` or `f64` that are in the order in which the elements of the last axis are.
fn ranked(cx: &mut Context, x: ValueId, last: usize) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(x);
    Ok(match dtype {
        DType::F32 | DType::F64 => x,
        DType::Bf16 | DType::F16 | DType::F8(_) => cx.b.cast(x, DType::F32),
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::U16 => cx.b.cast(x, DType::F32),
        DType::I32 | DType::U32 => cx.b.cast(x, DType::F64),
        DType::I64 | DType::U64 => {
            // No float tells all of them apart: how many are less does.
            let (sorted, _) = cx.b.sort(x, last, false)?;
            let less = cx.b.search_sorted(sorted, x, false)?;
            cx.b.cast(less, DType::F64)
        }
    })
}

/// Elements of `x` at `position` (`i64`, the axis of any size) along an axis.
fn take(cx: &mut Context, x: ValueId, axis: usize, position: ValueId) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(position);
    let coords = (0..shape.len())
        .map(|k| if k == axis { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) })
        .collect();
    Ok(cx.b.gather(x, &[position], coords, &shape)?)
}

/// The lower median. NaN counts as the median of all it is among, unless it is ignored.
fn median(cx: &mut Context, a: &Args, ignore_nan: bool) -> Rule {
    let whole = !a.has("dim");
    let (x, axis) = if whole {
        let x = a.tensor("self")?;
        (cx.flattened(x)?, 0)
    } else {
        along(cx, a, -1)?
    };
    let size = cx.b.shape(x)[axis].clone();
    if size.is(0) {
        let nothing = median_of_nothing(cx, x);
        return if whole { Ok(nothing.into()) } else { Err(RuleError::unsupported("the median of nothing")) };
    }
    let is_float = cx.b.dtype(x).is_float();
    // Of what may be nothing, a row has one element more, behind the others.
    let can_be_empty = whole && size.interval(cx.b.ranges()).min <= 0;
    let rows = if can_be_empty {
        let dtype = cx.b.dtype(x);
        let last = if is_float { Scalar::Float(f64::NAN) } else { Scalar::highest(dtype) };
        let last = cx.b.full(last, dtype, &[Expr::int(1)]);
        cx.b.cat(&[x, last], axis)?
    } else {
        x
    };
    let ranks = median_ranks(cx, x, axis, ignore_nan)?;
    let (values, indices) = cx.b.nth_element(rows, ranks, axis, Ties::Stable)?;
    if !whole {
        return finish_both(cx, a, values, indices, axis);
    }
    let mut value = cx.b.reshape(values, &[])?;
    if can_be_empty {
        let (nothing, size) = (median_of_nothing(cx, x), cx.b.index(size, &[]));
        let zero = cx.b.scalar(Scalar::Int(0), DType::I64);
        let is_empty = cx.binary(Relation::Eq, size, zero)?;
        value = cx.b.select(is_empty, nothing, value)?;
    }
    Ok(value.into())
}

/// The rank of the median in each row along an axis.
fn median_ranks(cx: &mut Context, x: ValueId, axis: usize, ignore_nan: bool) -> Result<ValueId, RuleError> {
    let mut shape = cx.b.shape(x);
    let size = std::mem::replace(&mut shape[axis], Expr::int(1));
    let last = (&size - 1).maximum_in(&Expr::int(0), cx.b.ranges());
    let middle = last.floor_div_in(&Expr::int(2), cx.b.ranges());
    let middle = cx.b.index(middle, &shape);
    if !cx.b.dtype(x).is_float() {
        return Ok(middle);
    }
    let nan = cx.unary(FloatTest::IsNan, x);
    let nan = cx.b.cast(nan, DType::I64);
    let n_nan = cx.sum(nan, &[axis], true)?;
    let size = cx.b.index(size, &shape);
    cx.apply([middle, n_nan, size], DType::I64, |[middle, n_nan, size]| {
        if ignore_nan {
            (size - n_nan - 1.0).max(0.0).trunc_div(2.0)
        } else {
            // The first NaN, where there is one.
            n_nan.gt(0.0).select(size - &n_nan, middle)
        }
    })
}

/// What PyTorch says the median of no elements is: NaN, or what its conversion to integers gives.
fn median_of_nothing(cx: &mut Context, x: ValueId) -> ValueId {
    let dtype = cx.b.dtype(x);
    let wraps = matches!(dtype, DType::I32 | DType::I64);
    cx.b.scalar(if wraps { Scalar::lowest(dtype) } else { Scalar::Float(f64::NAN) }, dtype)
}

/// The most frequent value (of several usually the smallest) and a position of it, as PyTorch's sorting leaves it.
fn mode(cx: &mut Context, a: &Args) -> Rule {
    let (x, axis) = along(cx, a, -1)?;
    let last = cx.b.rank(x) - 1;
    let moved = cx.move_axis(x, axis, last)?;
    let numbers = ranked(cx, moved, last)?;
    let numbers = cx.b.unsqueeze(numbers, last)?;
    let position = cx.b.routine(Routine::Mode, &[numbers])?[0];
    let values = take(cx, moved, last, position)?;
    let (values, position) = (cx.move_axis(values, last, axis)?, cx.move_axis(position, last, axis)?);
    finish_both(cx, a, values, position, axis)
}

/// Quantiles between neighbouring elements in order; the axes of `q` come first in the result.
fn quantile(cx: &mut Context, a: &Args, ignore_nan: bool) -> Rule {
    let x = a.tensor("self")?;
    let dtype = cx.b.dtype(x);
    let rank = cx.b.rank(x);
    let keep = a.bool_or("keepdim", false)?;
    let q = a.operand(&["q"], 1)?.to_value(cx, dtype);
    let q_shape = cx.b.shape(q);
    // Rows to choose from along the last axis.
    let (rows, kept) = if a.has("dim") {
        let axis = Context::axis(a.int("dim")?, rank)?;
        let x = cx.at_least_1d(x)?;
        let last = cx.b.rank(x) - 1;
        let mut kept = cx.b.shape(x);
        if keep && rank > 0 {
            kept[axis] = Expr::int(1);
        } else {
            kept.remove(axis);
        }
        let rows = cx.move_axis(x, axis, last)?;
        (rows, kept)
    } else {
        let flat = cx.flattened(x)?;
        (flat, if keep { vec![Expr::int(1); rank] } else { vec![] })
    };
    let last = cx.b.rank(rows) - 1;
    let n_q = cx.b.ty(q).numel();
    let q = cx.b.reshape(q, std::slice::from_ref(&n_q))?;
    let result = quantile_rows(cx, a, rows, q, ignore_nan)?;
    // [rows..., q] to [q..., kept...].
    let moved = cx.move_axis(result, last, 0)?;
    let shape = [q_shape, kept].concat();
    Ok(cx.b.reshape(moved, &shape)?.into())
}

/// Quantiles `q` (one axis) of the last axis of `rows`, which becomes the axis of `q`.
fn quantile_rows(
    cx: &mut Context,
    a: &Args,
    rows: ValueId,
    q: ValueId,
    ignore_nan: bool,
) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(rows);
    let last = cx.b.rank(rows) - 1;
    let (values, _) = cx.b.sort(rows, last, false)?;
    let nan = cx.unary(FloatTest::IsNan, rows);
    let nan = cx.b.cast(nan, dtype);
    let n_nan = cx.sum(nan, &[last], true)?;
    let size = cx.element_count(rows, &[last], dtype);
    let ranks = cx.apply([q, n_nan, size], dtype, |[q, n_nan, size]| {
        let end = size - 1.0;
        if ignore_nan { ((&end - n_nan) * q).max(0.0) } else { n_nan.gt(0.0).select(&end, &end * q) }
    })?;
    let ranks = match a.str_or("interpolation", "linear")? {
        "lower" => cx.unary(Rounding::Floor, ranks),
        "higher" => cx.unary(Rounding::Ceil, ranks),
        "nearest" => cx.unary(Rounding::Round, ranks),
        "linear" | "midpoint" => ranks,
        other => return Err(RuleError::unsupported(format!("interpolation `{other}`"))),
    };
    let low = cx.b.cast(ranks, DType::I64);
    let below = take(cx, values, last, low)?;
    let high = cx.unary(Rounding::Ceil, ranks);
    let high = cx.b.cast(high, DType::I64);
    let above = take(cx, values, last, high)?;
    let midpoint = a.str_or("interpolation", "linear")? == "midpoint";
    cx.apply([below, above, ranks], dtype, |[below, above, ranks]| {
        let weight = if midpoint { &ranks * 0.0 + 0.5 } else { &ranks - ranks.floor() };
        // Equal neighbours stay exact, infinite ones included.
        let between: Formula = super::ternary::interpolate(&below, &above, &weight);
        below.equals(&above).select(&below, between)
    })
}

/// Adds an axis of size 1 at the end.
pub(crate) fn with_last_axis(cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
    let rank = cx.b.rank(x);
    Ok(cx.b.unsqueeze(x, rank)?)
}

/// Whether any of a comparison along the last axis holds.
pub(crate) fn any_equal(cx: &mut Context, x: ValueId, candidates: ValueId) -> Result<ValueId, RuleError> {
    let x = with_last_axis(cx, x)?;
    let equal = cx.binary(Relation::Eq, x, candidates)?;
    let last = cx.b.rank(equal) - 1;
    Ok(cx.b.reduce(ReduceOp::Any, equal, &[last], false)?)
}
