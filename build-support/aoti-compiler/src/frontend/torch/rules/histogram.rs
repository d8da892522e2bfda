//! Histograms: how many elements or points, or how much weight, is between edges.

use super::registry::rules;
use super::support::{count, fixed, length};
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Combine, Coord, ReduceOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.histogram.bin_ct" => |cx, a| {
        let bins = a.int_or("bins", 100)?;
        let edges = equal_edges(cx, a, &[bins])?;
        let counts = histogram(cx, a, &edges)?;
        Ok(Outputs::List(vec![counts, edges[0]]))
    },
    pure "aten.histogram.bins_tensor" => |cx, a| {
        let edges = a.tensor("bins")?;
        let counts = histogram(cx, a, &[edges])?;
        Ok(Outputs::List(vec![counts, edges]))
    },
    pure "aten.histogramdd.default" => |cx, a| { let bins = a.ints("bins")?; of_equal_bins(cx, a, &bins) },
    pure "aten.histogramdd.int_bins" => |cx, a| {
        let bins = vec![a.int("bins")?; columns(cx, a)?];
        of_equal_bins(cx, a, &bins)
    },
    pure "aten.histogramdd.TensorList_bins" => |cx, a| {
        let edges = a.tensors("bins")?;
        with_edges(cx, a, edges)
    },
    pure "aten._histogramdd_bin_edges.default" => |cx, a| {
        let edges = equal_edges(cx, a, &a.ints("bins")?)?;
        Ok(Outputs::List(edges))
    },
    pure "aten._histogramdd_from_bin_cts.default" => |cx, a| {
        let edges = equal_edges(cx, a, &a.ints("bins")?)?;
        Ok(histogram(cx, a, &edges)?.into())
    },
    pure "aten._histogramdd_from_bin_tensors.default" => |cx, a| {
        let edges = a.tensors("bins")?;
        Ok(histogram(cx, a, &edges)?.into())
    },
}

/// The number of axes of the histogram of points: their coordinates are the last axis.
fn columns(cx: &Context, a: &Args) -> Result<usize, RuleError> {
    let shape = cx.b.shape(a.tensor("self")?);
    let last = fixed(shape.last().map(std::slice::from_ref).unwrap_or_default(), "a histogram of points")?;
    let last = last.first().ok_or_else(|| RuleError::Malformed("points have an axis".to_owned()))?;
    count(*last)
}

fn of_equal_bins(cx: &mut Context, a: &Args, bins: &[i64]) -> Rule {
    let edges = equal_edges(cx, a, bins)?;
    with_edges(cx, a, edges)
}

/// The counts, and the edges of each axis.
fn with_edges(cx: &mut Context, a: &Args, edges: Vec<ValueId>) -> Rule {
    let counts = histogram(cx, a, &edges)?;
    Ok(Outputs::List([vec![counts], edges].concat()))
}

/// The coordinates of all points along each of so many axes.
fn coordinates(cx: &mut Context, a: &Args, axes: usize) -> Result<Vec<ValueId>, RuleError> {
    let x = a.tensor("self")?;
    if axes == 1 && !a.target().contains("histogramdd") {
        return Ok(vec![cx.flattened(x)?]);
    }
    if columns(cx, a)? != axes {
        return Err(RuleError::Malformed(format!("{axes} lists of edges for points of other sizes")));
    }
    let last = cx.b.rank(x) - 1;
    (0..length(axes))
        .map(|k| {
            let column = cx.b.pick(x, last, &Expr::int(k))?;
            cx.flattened(column)
        })
        .collect()
}

/// The edges of so many intervals of equal length, along each axis: over `range`, or over the data.
fn equal_edges(cx: &mut Context, a: &Args, bins: &[i64]) -> Result<Vec<ValueId>, RuleError> {
    let dtype = cx.b.dtype(a.tensor("self")?);
    let range = if a.has("range") { a.floats("range")? } else { vec![] };
    let points = coordinates(cx, a, bins.len())?;
    let mut edges = Vec::new();
    for (k, (own, bins)) in points.into_iter().zip(bins).enumerate() {
        let bounds = match range.get(2 * k..2 * k + 2) {
            Some([low, high]) => [cx.b.scalar(*low, dtype), cx.b.scalar(*high, dtype)],
            _ => data_bounds(cx, own)?,
        };
        edges.push(between(cx, bounds, *bins)?);
    }
    Ok(edges)
}

/// Edges of so many intervals between two bounds; of equal bounds, around them.
fn between(cx: &mut Context, bounds: [ValueId; 2], bins: i64) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(bounds[0]);
    let spread = cx.apply(bounds, dtype, |[low, high]| low.equals(high).select(0.5, 0.0))?;
    let place = cx.b.index(Expr::axis(0), &[Expr::int(bins + 1)]);
    let place = cx.b.cast(place, dtype);
    // From either end to the middle, as PyTorch divides a range.
    cx.apply([bounds[0], bounds[1], spread, place], dtype, |[low, high, spread, place]| {
        let (low, high) = (low - &spread, high + spread);
        let step = (&high - &low) / bins as f64;
        let middle = ((bins + 1) / 2) as f64;
        let from_end = (&place * -1.0) + bins as f64;
        place.lt(middle).select(low + &step * &place, high - step * from_end)
    })
}

/// The least and the largest element; of none, 0 and 1.
fn data_bounds(cx: &mut Context, x: ValueId) -> Result<[ValueId; 2], RuleError> {
    let dtype = cx.b.dtype(x);
    if cx.b.ty(x).numel().is(0) {
        return Ok([cx.b.scalar(0.0, dtype), cx.b.scalar(1.0, dtype)]);
    }
    let ends = [cx.b.reduce(ReduceOp::Min, x, &[0], false)?, cx.b.reduce(ReduceOp::Max, x, &[0], false)?];
    let finite = cx.apply(ends, dtype, |[least, most]| {
        // Of no element, the least is above the most.
        least.is_finite().and(most.is_finite()).or(least.gt(most))
    })?;
    cx.b.assert(finite, "a histogram of what is not finite")?;
    let low = cx.apply(ends, dtype, |[least, most]| least.gt(most).select(0.0, least))?;
    let high = cx.apply(ends, dtype, |[least, most]| least.gt(&most).select(1.0, most))?;
    Ok([low, high])
}

/// Whether each coordinate is within the edges, and its interval: that of the last edge is closed, that of what is outside
/// (or NaN) the first.
fn interval(cx: &mut Context, x: ValueId, edges: ValueId) -> Result<[ValueId; 2], RuleError> {
    let dtype = cx.b.dtype(x);
    let bins = &cx.b.shape(edges)[0] - 1;
    let ends = [cx.b.pick(edges, 0, &Expr::int(0))?, cx.b.pick(edges, 0, &bins)?];
    let inside = cx.apply([x, ends[0], ends[1]], dtype, |[x, low, high]| x.ge(low).and(x.le(high)))?;
    let above = cx.b.search_sorted(edges, x, true)?;
    let bin = cx.with_number(BinaryOp::Sub, above, 1i64)?;
    let last = cx.b.index(&bins - 1, &[]);
    let bin = cx.binary(BinaryOp::Minimum, bin, last)?;
    let zero = cx.b.full_like(0i64, bin);
    Ok([inside, cx.b.select(inside, bin, zero)?])
}

/// Counts (or sums of weights) of the points between neighbouring edges of each axis.
fn histogram(cx: &mut Context, a: &Args, edges: &[ValueId]) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(a.tensor("self")?);
    let points = coordinates(cx, a, edges.len())?;
    // Counts are integers, which may be added in any order.
    let mut weight = match a.opt_tensor("weight")? {
        Some(weight) => cx.flattened(weight)?,
        None => cx.b.full(1i64, DType::I64, &cx.b.shape(points[0]).to_vec()),
    };
    let summed = cx.b.dtype(weight);
    let nothing = cx.b.full_like(0i64, weight);
    let (mut places, mut shape) = (Vec::new(), Vec::new());
    for (x, edges) in points.into_iter().zip(edges) {
        let [inside, place] = interval(cx, x, *edges)?;
        // What is outside along any axis adds nothing.
        weight = cx.b.select(inside, weight, nothing)?;
        places.push(place);
        shape.push(&cx.b.shape(*edges)[0] - 1);
    }
    let base = cx.b.full(0i64, summed, &shape);
    let coords = (0..places.len()).map(Coord::Indirect).collect();
    let counts = cx.b.scatter(base, weight, &places, coords, Combine::Add)?;
    let counts = cx.b.cast(counts, dtype);
    if a.bool_or("density", false)? { densities(cx, counts, edges) } else { Ok(counts) }
}

/// Shares of the sum of all, over the volumes between edges.
fn densities(cx: &mut Context, counts: ValueId, edges: &[ValueId]) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(counts);
    let axes: Vec<usize> = (0..edges.len()).collect();
    let all = cx.b.reduce(ReduceOp::Sum, counts, &axes, false)?;
    let mut shares = cx.div(counts, all)?;
    for (axis, edges) in edges.iter().enumerate() {
        let bins = &cx.b.shape(*edges)[0] - 1;
        let low = cx.b.slice(*edges, 0, &Expr::int(0), &bins, 1)?;
        let high = cx.b.slice(*edges, 0, &Expr::int(1), &bins, 1)?;
        let width = cx.apply([low, high], dtype, |[low, high]| high - low)?;
        let width = cx.trailing_ones(width, axes.len() - axis)?;
        shares = cx.div(shares, width)?;
    }
    Ok(shares)
}
