//! Reductions of segments: runs of neighbours along an axis, by their lengths or by where they begin and end.
//!
//! Every element is combined, in order, into the place of its segment. Elements of no segment have a place before the first
//! or behind the last, which is dropped.

use super::random::ops::all_hold;
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{Combine, Coord, Relation, Scalar, ScanOp, ValueId};
use crate::symbolic::Expr;

rules! {
    pure "aten.segment_reduce.default" => segment_reduce,
}

/// Where the segments of each row lie along an axis, which is the last one of both tensors.
struct Segments {
    /// Where each begins and the last one ends: one more than there are.
    bounds: ValueId,
    lengths: ValueId,
}

/// Checks them as PyTorch does; and that elements are within the axis, which PyTorch leaves to the caller.
fn segments(cx: &mut Context, a: &Args, axis: usize, size: &Expr) -> Result<Segments, RuleError> {
    let given = ["offsets", "lengths"].into_iter().find(|name| a.has(name));
    let name = given.ok_or_else(|| {
        RuleError::unsupported(
            "segments by anything but `lengths` or `offsets`, which PyTorch has not either",
        )
    })?;
    let x = a.tensor(name)?;
    if cx.b.rank(x) != axis + 1 || cx.b.dtype(x).is_float() {
        return Err(RuleError::Malformed(format!("`{name}` must be integers, with `axis` as the last axis")));
    }
    let x = cx.b.cast(x, DType::I64);
    let count = cx.b.shape(x)[axis].clone();
    let part =
        |cx: &mut Context, x, from: i64, length: &Expr| cx.b.slice(x, axis, &Expr::int(from), length, 1);
    let (bounds, lengths) = if name == "offsets" {
        let fewer = &count - 1;
        let (begins, ends) = (part(cx, x, 0, &fewer)?, part(cx, x, 1, &fewer)?);
        (x, cx.sub(ends, begins)?)
    } else {
        let ends = cx.b.scan(ScanOp::Sum, x, axis)?[0];
        let mut amounts = vec![(Expr::int(0), Expr::int(0)); axis + 1];
        amounts[axis].0 = Expr::int(1);
        (cx.b.pad(ends, &amounts, 0i64)?, x)
    };
    let is_length = cx.with_number(Relation::Ge, lengths, 0i64)?;
    all_hold(cx, a, is_length, "lengths of segments must not be negative")?;
    let first = part(cx, bounds, 0, &Expr::int(1))?;
    let begins = cx.with_number(Relation::Ge, first, 0i64)?;
    all_hold(cx, a, begins, "segments must be within the axis")?;
    let last = cx.b.shape(bounds)[axis].clone();
    let last = cx.b.slice(bounds, axis, &(&last - 1), &Expr::int(1), 1)?;
    let size = cx.b.index(size.clone(), &[]);
    if name == "lengths" && !a.bool_or("unsafe", false)? {
        let ends = cx.binary(Relation::Eq, last, size)?;
        all_hold(cx, a, ends, "lengths must sum to the size of the axis")?;
    } else {
        let ends = cx.binary(Relation::Le, last, size)?;
        all_hold(cx, a, ends, "segments must be within the axis")?;
    }
    Ok(Segments { bounds, lengths })
}

fn segment_reduce(cx: &mut Context, a: &Args) -> Result<Outputs, RuleError> {
    let x = a.tensor("data")?;
    let ty = cx.b.ty(x).clone();
    if !ty.dtype.is_float() {
        return Err(RuleError::unsupported(format!(
            "elements of {}, which PyTorch has not either",
            ty.dtype
        )));
    }
    let (combine, neutral) = match a.str_or("reduce", "sum")? {
        "sum" | "mean" => (Combine::Add, Scalar::Int(0)),
        "prod" => (Combine::Mul, Scalar::Int(1)),
        "max" => (Combine::Max, Scalar::lowest(ty.dtype)),
        "min" => (Combine::Min, Scalar::highest(ty.dtype)),
        other => return Err(RuleError::Malformed(format!("reduction `{other}`"))),
    };
    let axis = Context::axis(a.int_or("axis", 0)?, ty.rank())?;
    let size = &ty.shape[axis];
    let Segments { bounds, lengths } = segments(cx, a, axis, size)?;

    let own = cx.b.index(Expr::axis(axis), &ty.shape[..=axis]);
    // 0 before the first segment; of empty segments the next one that is not empty.
    let places = cx.b.search_sorted(bounds, own, true)?;
    let places = cx.trailing_ones(places, ty.rank())?;
    let count = cx.b.shape(lengths)[axis].clone();
    let mut shape = ty.shape.clone();
    shape[axis] = &count + 2;
    let base = cx.b.full(a.scalar_or("initial", neutral)?, ty.dtype, &shape);
    let coords = (0..ty.rank())
        .map(|k| if k == axis { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) })
        .collect();
    let all = cx.b.scatter(base, x, &[places], coords, combine)?;
    let combined = cx.b.slice(all, axis, &Expr::int(1), &count, 1)?;
    if a.str_or("reduce", "sum")? != "mean" {
        return Ok(combined.into());
    }
    // Of an empty segment the mean is what it begins with, or no number.
    let lengths = cx.trailing_ones(lengths, ty.rank())?;
    let is_empty = cx.with_number(Relation::Eq, lengths, 0i64)?;
    let divisor = cx.b.cast(lengths, ty.dtype);
    let mean = cx.div(combined, divisor)?;
    if !a.has("initial") {
        return Ok(mean.into());
    }
    let shape = cx.b.shape(combined);
    let is_empty = cx.b.expand(is_empty, &shape)?;
    Ok(cx.b.select(is_empty, combined, mean)?.into())
}
