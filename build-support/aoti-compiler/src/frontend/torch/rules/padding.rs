//! Padding: with a number, by reflection, by repeating the edge, and around.

use super::gradients::added_at;
use super::operand::Operand;
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{Condition, Relation, Scalar, ValueId};
use crate::symbolic::{Expr, RangeTable};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.constant_pad_nd.default" => |cx, a| constant(cx, a),
    pure "aten.pad.default" => pad,
    pure "aten._pad_circular.default" => |cx, a| indexed(cx, a, "pad", Beyond::Around),
    pure "aten.reflection_pad1d.default" => |cx, a| indexed(cx, a, "padding", Beyond::Reflect),
    pure "aten.reflection_pad2d.default" => |cx, a| indexed(cx, a, "padding", Beyond::Reflect),
    pure "aten.reflection_pad3d.default" => |cx, a| indexed(cx, a, "padding", Beyond::Reflect),
    pure "aten.replication_pad1d.default" => |cx, a| indexed(cx, a, "padding", Beyond::Replicate),
    pure "aten.replication_pad2d.default" => |cx, a| indexed(cx, a, "padding", Beyond::Replicate),
    pure "aten.replication_pad3d.default" => |cx, a| indexed(cx, a, "padding", Beyond::Replicate),
    pure "aten.reflection_pad1d_backward.default" => |cx, a| backward(cx, a, Beyond::Reflect),
    pure "aten.reflection_pad2d_backward.default" => |cx, a| backward(cx, a, Beyond::Reflect),
    pure "aten.reflection_pad3d_backward.default" => |cx, a| backward(cx, a, Beyond::Reflect),
    pure "aten.replication_pad1d_backward.default" => |cx, a| backward(cx, a, Beyond::Replicate),
    pure "aten.replication_pad2d_backward.default" => |cx, a| backward(cx, a, Beyond::Replicate),
    pure "aten.replication_pad3d_backward.default" => |cx, a| backward(cx, a, Beyond::Replicate),
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
    let fill = a.number_or("value", Scalar::Int(0))?;
    let own = cx.b.shape(x);
    let zero = Expr::int(0);
    for (size, (low, high)) in own.iter().zip(&amounts) {
        // What is taken away is taken away first, and must be there.
        let ranges = cx.b.ranges();
        let left = &(size + &low.minimum_in(&zero, ranges)) + &high.minimum_in(&zero, ranges);
        let condition = Condition::compare(left, Relation::Ge, 0);
        cx.b.require(condition, "padding that takes away more than there is");
    }
    if let Operand::Number(fill) = fill {
        return Ok(cx.b.pad(x, &amounts, fill)?.into());
    }
    // Padding holds a number of the program: where that is known only when it runs, it is chosen where nothing else is.
    let fill = fill.to_element(cx, cx.b.dtype(x))?;
    let inside = cx.b.full(true, DType::Bool, &own);
    let (inside, padded) = (cx.b.pad(inside, &amounts, false)?, cx.b.pad(x, &amounts, 0i64)?);
    Ok(cx.b.select(inside, padded, fill)?.into())
}

fn pad(cx: &mut Context, a: &Args) -> Rule {
    match a.str_or("mode", "constant")? {
        "constant" => constant(cx, a),
        "reflect" => indexed(cx, a, "pad", Beyond::Reflect),
        "replicate" => indexed(cx, a, "pad", Beyond::Replicate),
        "circular" => indexed(cx, a, "pad", Beyond::Around),
        other => Err(RuleError::Malformed(format!("padding mode `{other}`"))),
    }
}

/// Where in an axis the element for a position that may lie outside comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beyond {
    Reflect,
    Replicate,
    Around,
}

impl Beyond {
    fn source(self, position: Expr, size: &Expr, ranges: &RangeTable) -> Expr {
        match self {
            Beyond::Reflect => reflect(position, size, ranges),
            Beyond::Replicate => replicate(position, size, ranges),
            Beyond::Around => position.modulo_in(size, ranges),
        }
    }

    /// What PyTorch demands of the amounts for an axis.
    fn require(self, cx: &mut Context, size: &Expr, (low, high): &(Expr, Expr)) {
        if self == Beyond::Around {
            for amount in [low, high] {
                let once = Condition::compare(amount.clone(), Relation::Le, size.clone());
                cx.b.require(once, "padding that wraps around more than once");
            }
            return;
        }
        if self == Beyond::Reflect {
            for amount in [low, high] {
                let fewer = Condition::compare(amount.clone(), Relation::Lt, size.clone());
                cx.b.require(fewer, "padding by reflection must be less than the size");
            }
        }
        cx.b.require(Condition::Fits(size + low), "padding that must be within 64 bits");
        let left = &(size + low) + high;
        cx.b.require(Condition::compare(left, Relation::Ge, 1), "padding that leaves nothing");
    }
}

fn reflect(position: Expr, size: &Expr, ranges: &RangeTable) -> Expr {
    let last = size - 1;
    let mirrored = |value: Expr| value.maximum_in(&-&value, ranges);
    let from_start = mirrored(position);
    &last - &mirrored(&last - &from_start)
}

fn replicate(position: Expr, size: &Expr, ranges: &RangeTable) -> Expr {
    position.maximum_in(&Expr::int(0), ranges).minimum_in(&(size - 1), ranges)
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

fn indexed(cx: &mut Context, a: &Args, name: &str, beyond: Beyond) -> Rule {
    let x = a.tensor("self")?;
    let amounts = amounts(cx, a, x, name)?;
    let (x, amounts) = if beyond == Beyond::Around { cropped(cx, x, amounts)? } else { (x, amounts) };
    let (shape, coords) = sources(cx, x, &amounts, beyond);
    Ok(cx.b.view(x, &shape, coords)?.into())
}

/// The shape of the padded tensor, and where each of its elements comes from.
fn sources(cx: &mut Context, x: ValueId, amounts: &[(Expr, Expr)], beyond: Beyond) -> (Vec<Expr>, Vec<Expr>) {
    let own = cx.b.shape(x);
    let shape: Vec<Expr> = own.iter().zip(amounts).map(|(size, (low, high))| &(size + low) + high).collect();
    let ranges = cx.b.axis_ranges(&shape);
    let mut coords = Vec::new();
    for (axis, (amount, size)) in amounts.iter().zip(&own).enumerate() {
        if amount.0.is(0) && amount.1.is(0) {
            coords.push(Expr::axis(axis));
            continue;
        }
        beyond.require(cx, size, amount);
        let source = beyond.source(&Expr::axis(axis) - &amount.0, size, &ranges);
        // What was required keeps a reflection within the axis, which is plain to see of a clamp only.
        let is_plain = beyond != Beyond::Reflect || !cx.b.is_chosen(&(&amount.0 + &amount.1));
        coords.push(if is_plain { source } else { replicate(source, size, &ranges) });
    }
    (shape, coords)
}

/// The gradient of a padded tensor, whose elements go back to where they came from.
fn backward(cx: &mut Context, a: &Args, beyond: Beyond) -> Rule {
    let (g, x) = (a.tensor("grad_output")?, a.tensor("self")?);
    let amounts = amounts(cx, a, x, "padding")?;
    let (_, coords) = sources(cx, x, &amounts, beyond);
    let own = cx.b.shape(x);
    Ok(added_at(cx, g, &own, coords)?.into())
}
