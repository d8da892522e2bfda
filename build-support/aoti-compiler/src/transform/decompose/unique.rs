//! Runs of equal elements: the distinct values of a tensor, how often each occurs, and the most frequent one.

use super::masks::linear_hits;
use super::registry::rules;
use super::support::lowest;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Combine, Coord, IntBinary, Relation, ScanOp, ValueId};
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
pub(super) fn run_starts(cx: &mut Context, x: ValueId, axis: usize) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(x);
    let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
    coords[axis] = &coords[axis] - 1;
    let before = cx.b.padded_view(x, &shape, coords, lowest(cx.b.dtype(x)))?;
    let differs = cx.binary(Relation::Ne, x, before)?;
    let first = cx.index_is(Relation::Eq, Expr::axis(axis), &shape)?;
    cx.binary(IntBinary::Or, differs, first)
}

/// The first element of each run; for each element the number of its run; the lengths of the runs. Sorted first, unless
/// runs are wanted as they come. How many there are follows from the data.
fn unique(cx: &mut Context, a: &Args, sorted: bool) -> Rule {
    let x = a.tensor("self")?;
    if a.has("dim") && cx.b.rank(x) != 1 {
        return Err(RuleError::unsupported("distinct slices along an axis"));
    }
    let size = a.output_meta(0).and_then(|meta| meta.sizes.first()).cloned();
    let size = size.ok_or_else(|| RuleError::unsupported("the size of the result is not described"))?;
    let shape = cx.b.shape(x);
    let flat = cx.flattened(x)?;
    let (values, places) = if sorted {
        let (values, places) = cx.b.sort(flat, 0, false)?;
        (values, Some(places))
    } else {
        (flat, None)
    };
    let starts = run_starts(cx, values, 0)?;
    let (positions, _) = linear_hits(cx, starts, &size, true)?;
    let distinct = super::embedding::rows(cx, values, positions)?;

    let steps = cx.b.cast(starts, DType::I64);
    let number = cx.b.scan(ScanOp::Sum, steps, 0)?[0];
    let number = cx.with_number(BinaryOp::Sub, number, 1i64)?;
    let inverse = match places {
        Some(places) => {
            let base = cx.b.full_like(0i64, number);
            cx.b.scatter(base, number, &[places], vec![Coord::Indirect(0)], Combine::Set)?
        }
        None => number,
    };
    let inverse = cx.b.reshape(inverse, &shape)?;
    let (base, ones) = (cx.b.full(0i64, DType::I64, &[size]), cx.b.full_like(1i64, number));
    let counts = cx.b.scatter(base, ones, &[number], vec![Coord::Indirect(0)], Combine::Add)?;
    // Where they are not asked for, PyTorch gives empty tensors, which nobody uses.
    let asked = |name: &str| a.bool_or(name, false);
    let inverse = asked("return_inverse")?.then_some(inverse);
    let counts = asked("return_counts")?.then_some(counts);
    Ok(Outputs::Many(vec![Some(distinct), inverse, counts]))
}
