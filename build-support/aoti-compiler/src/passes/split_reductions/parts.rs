//! A reduction as reductions of parts of an axis, and one of what these give.

use super::Cut;
use super::first_axis::arranged;
use crate::dtype::DType;
use crate::graph::{BinaryOp, Builder, Coord, ReduceOp, ValueId};
use crate::symbolic::Expr;

/// A reduction of axes, one of them in parts, and of what these give. `shape` is that of `x` with some axes as one.
pub(super) fn split_reduction(
    builder: &mut Builder,
    x: ValueId,
    op: ReduceOp,
    (shape, axes): (&[i64], &[(usize, i64)]),
    cut: Cut,
) -> Option<ValueId> {
    let (x, axes, cut) = arranged(builder, x, (shape, axes), cut)?;
    let axes = axes.as_slice();
    match op {
        ReduceOp::ArgMax => position(builder, x, (ReduceOp::Max, op), cut),
        ReduceOp::ArgMin => position(builder, x, (ReduceOp::Min, op), cut),
        ReduceOp::Sum | ReduceOp::Prod => {
            // Narrow numbers are rounded once, at the end.
            let dtype = builder.dtype(x);
            let wide = builder.cast(x, dtype.compute());
            let (partial, own) = of_parts(builder, wide, op, axes, cut)?;
            let whole = builder.reduce(op, partial, &cut.axes(own), false).ok()?;
            Some(builder.cast(whole, dtype))
        }
        ReduceOp::Max | ReduceOp::Min | ReduceOp::Any | ReduceOp::All | ReduceOp::Xor => {
            let (partial, own) = of_parts(builder, x, op, axes, cut)?;
            builder.reduce(op, partial, &cut.axes(own), false).ok()
        }
    }
}

/// What each part gives, the last and shorter one included, and the axis of parts.
fn of_parts(
    builder: &mut Builder,
    x: ValueId,
    op: ReduceOp,
    axes: &[usize],
    cut: Cut,
) -> Option<(ValueId, usize)> {
    let own = cut.axis - axes.iter().filter(|other| **other < cut.axis).count();
    let each = each_part(builder, x, axes, cut, &mut |builder, part| {
        builder.reduce(op, part.x, part.inside, false).ok()
    })?;
    Some((joined(builder, &each, own)?, own))
}

/// Parts of one length.
pub(super) struct Part<'a> {
    /// The elements, with an axis of parts before the one that was cut.
    pub(super) x: ValueId,
    /// The axis of parts.
    pub(super) axis: usize,
    /// The axes that are reduced within a part.
    pub(super) inside: &'a [usize],
}

/// What `of` gives of the parts of one length, and of the shorter one behind them.
pub(super) fn each_part(
    builder: &mut Builder,
    x: ValueId,
    axes: &[usize],
    Cut { axis, parts, length, .. }: Cut,
    of: &mut dyn FnMut(&mut Builder, &Part) -> Option<ValueId>,
) -> Option<Vec<ValueId>> {
    let size = builder.shape(x)[axis].as_int()?;
    let inside: Vec<usize> = axes.iter().map(|own| if *own < axis { *own } else { *own + 1 }).collect();
    let mut results = vec![];
    for (start, parts, length) in [(0, parts, length), (parts * length, 1, size - parts * length)] {
        if length == 0 {
            continue;
        }
        let piece = builder.slice(x, axis, &Expr::int(start), &Expr::int(parts * length), 1).ok()?;
        let mut shape = builder.shape(piece);
        shape.splice(axis..=axis, [Expr::int(parts), Expr::int(length)]);
        let x = builder.reshape(piece, &shape).ok()?;
        results.push(of(builder, &Part { x, axis, inside: &inside })?);
    }
    Some(results)
}

/// What parts gave as one tensor.
pub(super) fn joined(builder: &mut Builder, each: &[ValueId], axis: usize) -> Option<ValueId> {
    if let [one] = each { Some(*one) } else { builder.cat(each, axis).ok() }
}

/// The first position of an extreme: that of the first part that has it, and that in this part.
fn position(
    builder: &mut Builder,
    x: ValueId,
    (extreme, place): (ReduceOp, ReduceOp),
    cut: Cut,
) -> Option<ValueId> {
    let axes = [cut.axis];
    let (values, own) = of_parts(builder, x, extreme, &axes, cut)?;
    let (places, _) = of_parts(builder, x, place, &axes, cut)?;
    let part = builder.reduce(place, values, &[own], false).ok()?;
    let shape = builder.shape(part);
    let coords = (0..builder.rank(places)).map(|axis| match axis.cmp(&own) {
        std::cmp::Ordering::Less => Coord::Expr(Expr::axis(axis)),
        std::cmp::Ordering::Equal => Coord::Indirect(0),
        std::cmp::Ordering::Greater => Coord::Expr(Expr::axis(axis - 1)),
    });
    let inside = builder.gather(places, &[part], coords.collect(), &shape).ok()?;
    let length = builder.full(cut.length, DType::I64, &shape);
    let before = builder.binary(BinaryOp::Mul, part, length).ok()?;
    builder.binary(BinaryOp::Add, before, inside).ok()
}
