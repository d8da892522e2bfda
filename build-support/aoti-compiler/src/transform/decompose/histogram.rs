//! Histograms: how many elements, or how much weight, is between edges.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::graph::{BinaryOp, Combine, Coord, ReduceOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.histogram.bin_ct" => |cx, a| { let edges = equal_edges(cx, a)?; histogram(cx, a, edges) },
    pure "aten.histogram.bins_tensor" => |cx, a| { let edges = a.tensor("bins")?; histogram(cx, a, edges) },
}

/// The edges of so many intervals of equal length: over `range`, or over the data.
fn equal_edges(cx: &mut Context, a: &Args) -> Result<ValueId, RuleError> {
    let x = a.tensor("self")?;
    let (dtype, bins) = (cx.b.dtype(x), a.int_or("bins", 100)?);
    let flat = cx.flattened(x)?;
    let range = if a.has("range") { a.floats("range")? } else { vec![] };
    let bounds = match range.as_slice() {
        [low, high] => [cx.b.scalar(*low, dtype), cx.b.scalar(*high, dtype)],
        _ => data_bounds(cx, flat)?,
    };
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

/// Counts (or sums of weights) of the elements between neighbouring edges, and the edges. The last interval is closed.
fn histogram(cx: &mut Context, a: &Args, edges: ValueId) -> Rule {
    let x = a.tensor("self")?;
    let dtype = cx.b.dtype(x);
    let flat = cx.flattened(x)?;
    let bins = &cx.b.shape(edges)[0] - 1;
    let ends = [cx.b.pick(edges, 0, &Expr::int(0))?, cx.b.pick(edges, 0, &bins)?];
    let inside = cx.apply([flat, ends[0], ends[1]], dtype, |[x, low, high]| x.ge(low).and(x.le(high)))?;
    let above = cx.b.search_sorted(edges, flat, true)?;
    let bin = cx.with_number(BinaryOp::Sub, above, 1i64)?;
    let last = cx.b.index(&bins - 1, &[]);
    let bin = cx.binary(BinaryOp::Minimum, bin, last)?;
    // Where the element is outside (or NaN), bin 0 is incremented by 0.
    let zero = cx.b.full_like(0i64, bin);
    let bin = cx.b.select(inside, bin, zero)?;
    let weight = match a.opt_tensor("weight")? {
        Some(weight) => cx.flattened(weight)?,
        None => cx.b.full_like(1.0, flat),
    };
    let nothing = cx.b.full_like(0.0, weight);
    let weight = cx.b.select(inside, weight, nothing)?;
    let base = cx.b.full(0i64, dtype, std::slice::from_ref(&bins));
    let mut counts = cx.b.scatter(base, weight, &[bin], vec![Coord::Indirect(0)], Combine::Add)?;
    if a.bool_or("density", false)? {
        let all = cx.b.reduce(ReduceOp::Sum, counts, &[0], false)?;
        let low = cx.b.slice(edges, 0, &Expr::int(0), &bins, 1)?;
        let high = cx.b.slice(edges, 0, &Expr::int(1), &bins, 1)?;
        counts =
            cx.apply([counts, all, low, high], dtype, |[count, all, low, high]| count / all / (high - low))?;
    }
    Ok(Outputs::List(vec![counts, edges]))
}
