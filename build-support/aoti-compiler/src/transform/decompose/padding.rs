//! Padding: with a number, by reflection, by repeating the edge, and around.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::graph::{Condition, Relation, Scalar, ValueId};
use crate::symbolic::{Expr, RangeTable};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.constant_pad_nd.default" => |cx, a| constant(cx, a),
    pure "aten.pad.default" => pad,
    pure "aten._pad_circular.default" => |cx, a| indexed(cx, a, "pad", around, true),
    pure "aten.reflection_pad1d.default" => |cx, a| indexed(cx, a, "padding", reflect, false),
    pure "aten.reflection_pad2d.default" => |cx, a| indexed(cx, a, "padding", reflect, false),
    pure "aten.reflection_pad3d.default" => |cx, a| indexed(cx, a, "padding", reflect, false),
    pure "aten.replication_pad1d.default" => |cx, a| indexed(cx, a, "padding", replicate, false),
    pure "aten.replication_pad2d.default" => |cx, a| indexed(cx, a, "padding", replicate, false),
    pure "aten.replication_pad3d.default" => |cx, a| indexed(cx, a, "padding", replicate, false),
}

/// Amounts before and after each axis; the list begins with the last axis.
fn amounts(cx: &Context, a: &Args, x: ValueId, name: &str) -> Result<Vec<(Expr, Expr)>, RuleError> {
    let (list, rank) = (a.syms(name)?, cx.b.rank(x));
    if list.len() % 2 != 0 || list.len() > 2 * rank {
        return Err(RuleError::Malformed(format!("{} amounts for {rank} axes", list.len())));
    }
    let mut amounts = vec![(Expr::int(0), Expr::int(0)); rank];
    for (k, pair) in list.chunks_exact(2).enumerate() {
        amounts[rank - 1 - k] = (pair[0].clone(), pair[1].clone());
    }
    Ok(amounts)
}

fn constant(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let amounts = amounts(cx, a, x, "pad")?;
    let fill = a.scalar_or("value", Scalar::Int(0))?;
    let own = cx.b.shape(x);
    let zero = Expr::int(0);
    for (size, (low, high)) in own.iter().zip(&amounts) {
        // What is taken away is taken away first, and must be there.
        let ranges = cx.b.ranges();
        let left = &(size + &low.minimum_in(&zero, ranges)) + &high.minimum_in(&zero, ranges);
        let condition = Condition::compare(left, Relation::Ge, 0);
        cx.b.require(condition, "padding that takes away more than there is");
    }
    Ok(cx.b.pad(x, &amounts, fill)?.into())
}

fn pad(cx: &mut Context, a: &Args) -> Rule {
    match a.str_or("mode", "constant")? {
        "constant" => constant(cx, a),
        "reflect" => indexed(cx, a, "pad", reflect, false),
        "replicate" => indexed(cx, a, "pad", replicate, false),
        "circular" => indexed(cx, a, "pad", around, true),
        other => Err(RuleError::Malformed(format!("padding mode `{other}`"))),
    }
}

/// Where in an axis of a size the element for a position that may lie outside comes from.
type Source = fn(Expr, &Expr, &RangeTable) -> Expr;

fn reflect(position: Expr, size: &Expr, ranges: &RangeTable) -> Expr {
    let last = size - 1;
    let mirrored = |value: Expr| value.maximum_in(&-&value, ranges);
    let from_start = mirrored(position);
    &last - &mirrored(&last - &from_start)
}

fn replicate(position: Expr, size: &Expr, ranges: &RangeTable) -> Expr {
    position.maximum_in(&Expr::int(0), ranges).minimum_in(&(size - 1), ranges)
}

fn around(position: Expr, size: &Expr, ranges: &RangeTable) -> Expr {
    position.modulo_in(size, ranges)
}

/// What negative amounts take away, and amounts without them: wrapping around happens in what is left.
fn cropped(
    cx: &mut Context,
    x: ValueId,
    amounts: Vec<(Expr, Expr)>,
) -> Result<(ValueId, Vec<(Expr, Expr)>), RuleError> {
    let (zero, ranges) = (Expr::int(0), cx.b.ranges().clone());
    let part = |(low, high): &(Expr, Expr), positive: bool| {
        let side = |amount: &Expr| {
            if positive { amount.maximum_in(&zero, &ranges) } else { amount.minimum_in(&zero, &ranges) }
        };
        (side(low), side(high))
    };
    let away: Vec<(Expr, Expr)> = amounts.iter().map(|pair| part(pair, false)).collect();
    let more = amounts.iter().map(|pair| part(pair, true)).collect();
    Ok((cx.b.pad(x, &away, 0i64)?, more))
}

fn indexed(cx: &mut Context, a: &Args, name: &str, source: Source, wraps: bool) -> Rule {
    let x = a.tensor("self")?;
    let amounts = amounts(cx, a, x, name)?;
    let (x, amounts) = if wraps { cropped(cx, x, amounts)? } else { (x, amounts) };
    let own = cx.b.shape(x);
    let shape: Vec<Expr> = own.iter().zip(&amounts).map(|(size, (low, high))| &(size + low) + high).collect();
    let ranges = cx.b.axis_ranges(&shape);
    let coords = amounts
        .iter()
        .enumerate()
        .map(|(k, (low, high))| {
            if low.is(0) && high.is(0) {
                Expr::axis(k)
            } else {
                source(&Expr::axis(k) - low, &own[k], &ranges)
            }
        })
        .collect();
    Ok(cx.b.view(x, &shape, coords)?.into())
}
