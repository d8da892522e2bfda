//! Runs of equal elements or slices: the distinct ones of a tensor, how often each occurs, and the number of each.

use super::masked::linear_hits;
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::steps::repeat;
use crate::graph::{BinaryOp, Combine, Coord, IntBinary, ReduceOp, Relation, Scalar, ScanOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten._unique.default" => |cx, a| unique(cx, a, true),
    pure "aten._unique2.default" => |cx, a| unique(cx, a, true),
    pure "aten.unique_dim.default" => |cx, a| unique(cx, a, true),
    pure "aten.unique_consecutive.default" => |cx, a| unique(cx, a, false),
    pure "aten.unique_dim_consecutive.default" => |cx, a| unique(cx, a, false),
}

/// Whether each element along an axis differs from the one before it, as the first one does. No NaN equals another.
pub(crate) fn run_starts(cx: &mut Context, x: ValueId, axis: usize) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(x);
    let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
    coords[axis] = &coords[axis] - 1;
    let before = cx.b.padded_view(x, &shape, coords, Scalar::lowest(cx.b.dtype(x)))?;
    let differs = cx.binary(Relation::Ne, x, before)?;
    let first = cx.index_is(Relation::Eq, Expr::axis(axis), &shape)?;
    cx.binary(IntBinary::Or, differs, first)
}

/// What is compared: all elements, or the slices along an axis as rows.
struct Compared {
    /// `[n]`, or `[n, m]` where there are slices of more than one axis.
    rows: ValueId,
    /// The axis of the slices, and their shape.
    slices: Option<(usize, Vec<Expr>)>,
}

fn compared(cx: &mut Context, a: &Args) -> Result<Compared, RuleError> {
    let x = a.tensor("self")?;
    let rank = cx.b.rank(x);
    let Some(dim) = a.opt_int("dim")?.filter(|_| rank > 1) else {
        return Ok(Compared { rows: cx.flattened(x)?, slices: None });
    };
    let axis = Context::axis(dim, rank)?;
    let moved = cx.move_axis(x, axis, 0)?;
    let shape = cx.b.shape(moved);
    if shape[1..].iter().any(|size| size.is(0)) {
        return Err(RuleError::Malformed("slices without elements cannot be told apart".to_owned()));
    }
    let rows = cx.merge_axes(moved, 1, rank)?;
    Ok(Compared { rows, slices: Some((axis, shape[1..].to_vec())) })
}

/// The order of rows by their first elements, where these are equal by the second ones, and so on: sorted by one column
/// after the other, the first one last, since equal elements keep the order that they have.
fn row_order(cx: &mut Context, rows: ValueId) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(rows);
    let as_they_are = cx.b.index(Expr::axis(0), &shape[..1]);
    let columns = cx.b.index(shape[1].clone(), &[]);
    let sorted = repeat(cx, "row_order", columns, &[as_they_are], &[rows], &mut |cx, step, order, rows| {
        let (order, rows) = (order[0], rows[0]);
        let last = cx.b.index(&shape[1] - 1, &[]);
        let column = cx.sub(last, step)?;
        let column = cx.b.expand(column, &shape[..1])?;
        let coords = vec![Coord::Indirect(0), Coord::Indirect(1)];
        let keys = cx.b.gather(rows, &[order, column], coords, &shape[..1])?;
        let (_, places) = cx.b.sort(keys, 0, false)?;
        Ok(vec![cx.b.rows(order, places)?])
    })?;
    Ok(sorted[0])
}

/// The rows as runs are looked for in them, and where each was.
pub(crate) fn in_order(
    cx: &mut Context,
    rows: ValueId,
    sorted: bool,
) -> Result<(ValueId, Option<ValueId>), RuleError> {
    if !sorted {
        return Ok((rows, None));
    }
    if cx.b.rank(rows) == 1 {
        let (values, places) = cx.b.sort(rows, 0, false)?;
        return Ok((values, Some(places)));
    }
    let places = row_order(cx, rows)?;
    Ok((cx.b.rows(rows, places)?, Some(places)))
}

/// The first of each run; for each element or slice the number of its run; the lengths of the runs. Sorted first, unless
/// runs are wanted as they come. How many there are follows from the data.
fn unique(cx: &mut Context, a: &Args, sorted: bool) -> Rule {
    let Compared { rows, slices } = compared(cx, a)?;
    let size_axis = slices.as_ref().map_or(0, |(axis, _)| *axis);
    let size = a.output_meta(0).and_then(|meta| meta.sizes.get(size_axis)).cloned();
    let size = size.ok_or_else(|| RuleError::unsupported("the size of the result is not described"))?;
    let (values, places) = in_order(cx, rows, sorted)?;
    let mut starts = run_starts(cx, values, 0)?;
    if slices.is_some() {
        starts = cx.b.reduce(ReduceOp::Any, starts, &[1], false)?;
    }
    let (positions, _) = linear_hits(cx, starts, &size, true)?;
    let mut distinct = cx.b.rows(values, positions)?;
    if let Some((axis, shape)) = &slices {
        distinct = cx.split_axis(distinct, 1, shape)?;
        distinct = cx.move_axis(distinct, 0, *axis)?;
    }

    let steps = cx.b.cast(starts, DType::I64);
    let number = cx.b.scan(ScanOp::Sum, steps, 0)?[0];
    let number = cx.with_number(BinaryOp::Sub, number, 1i64)?;
    let mut inverse = match places {
        Some(places) => {
            let base = cx.b.full_like(0i64, number);
            cx.b.scatter(base, number, &[places], vec![Coord::Indirect(0)], Combine::Set)?
        }
        None => number,
    };
    if slices.is_none() {
        let shape = cx.b.shape(a.tensor("self")?);
        inverse = cx.b.reshape(inverse, &shape)?;
    }
    let (base, ones) = (cx.b.full(0i64, DType::I64, &[size]), cx.b.full_like(1i64, number));
    let counts = cx.b.scatter(base, ones, &[number], vec![Coord::Indirect(0)], Combine::Add)?;
    // Where they are not asked for, PyTorch gives empty tensors, which nobody uses.
    let asked = |name: &str| a.bool_or(name, false);
    let inverse = asked("return_inverse")?.then_some(inverse);
    let counts = asked("return_counts")?.then_some(counts);
    Ok(Outputs::Many(vec![Some(distinct), inverse, counts]))
}
