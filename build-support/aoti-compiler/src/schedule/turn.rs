//! Orders the axes of an element-wise nest as rows of another nest are walked through, which may be along any of its axes:
//! a softmax over channels has rows that cross the innermost axis.

use super::align::align;
use super::axes::{rebuild, symbol};
use crate::loops::{Access, Axis, BufferId, Effect, Nest};
use crate::symbolic::{Expr, Ranges};
use std::collections::BTreeMap;

/// Rows that keep a machine busy: fewer are better off beside a kernel that all threads share.
const MANY_ROWS: i64 = 64;

/// The element-wise nest with the outer axes of `rows` as its first axes; `None` where the sizes do not correspond.
pub(super) fn onto_rows(flat: &Nest, rows: &Nest, ranges: &dyn Ranges) -> Option<Nest> {
    let count = Expr::product(rows.axes.iter().map(|axis| &axis.extent)).as_int();
    let is_many = count.is_none_or(|count| count >= MANY_ROWS);
    match order(flat, rows).filter(|order| is_many && !order.is_sorted()) {
        Some(order) => align(&turned(flat, &order, ranges), &rows.axes, ranges),
        None => align(flat, &rows.axes, ranges),
    }
}

/// The axes of the element-wise nest that step through something as the outer axes of the other do, then all others.
fn order(flat: &Nest, rows: &Nest) -> Option<Vec<usize>> {
    let (stored, read) = (stores(flat), stores(rows));
    let mut pairs = accesses(flat).flat_map(|own| {
        let shared = stored.contains(&own.buffer) || read.contains(&own.buffer);
        accesses(rows)
            .filter(move |other| shared && other.buffer == own.buffer)
            .map(move |other| (own, other))
    });
    let mut first = pairs.find_map(|(own, other)| matched(flat, own, rows, other))?;
    let others: Vec<usize> = (0..flat.axes.len()).filter(|axis| !first.contains(axis)).collect();
    // What goes along other rows is better off with what walks as it does itself.
    let left = others.iter().map(|axis| &flat.axes[*axis].extent);
    let is_local =
        rows.stages.iter().any(|stage| left.clone().eq(stage.axes.iter().map(|axis| &axis.extent)));
    first.extend(others);
    is_local.then_some(first)
}

fn accesses(nest: &Nest) -> impl Iterator<Item = &Access> {
    nest.stages.iter().flat_map(|stage| stage.accesses()).filter(|access| access.is_direct())
}

fn stores(nest: &Nest) -> Vec<BufferId> {
    let effects = nest.stages.iter().flat_map(|stage| &stage.effects);
    let stored = effects.filter_map(|effect| match effect {
        Effect::Store { access, .. } => Some(access.buffer),
        Effect::Accumulate { .. } => None,
    });
    stored.collect()
}

/// For each outer axis of `rows` the axis of `flat` of this size with the same step.
fn matched(flat: &Nest, own: &Access, rows: &Nest, other: &Access) -> Option<Vec<usize>> {
    let mut found = vec![];
    for axis in &rows.axes {
        let step = step_along(other, axis)?;
        let position = (0..flat.axes.len()).find(|position| {
            let candidate = &flat.axes[*position];
            !found.contains(position)
                && candidate.extent == axis.extent
                && step_along(own, candidate).is_some_and(|own| own == step)
        })?;
        found.push(position);
    }
    Some(found)
}

/// How far neighbours along an axis are apart in memory, if they are.
fn step_along(access: &Access, axis: &Axis) -> Option<Expr> {
    access.offset.affine_in(axis.symbol).map(|(step, _)| step).filter(|step| !step.is(0))
}

/// The same nest with its axes in this order.
fn turned(flat: &Nest, order: &[usize], ranges: &dyn Ranges) -> Nest {
    let mut nest = flat.clone();
    let axes = order
        .iter()
        .enumerate()
        .map(|(new, old)| Axis { symbol: symbol(new), extent: flat.axes[*old].extent.clone() });
    let axes: Vec<Axis> = axes.collect();
    let map: BTreeMap<_, _> =
        order.iter().zip(&axes).map(|(old, new)| (flat.axes[*old].symbol, Expr::sym(new.symbol))).collect();
    let stages = nest.stages.len();
    rebuild(&mut nest, axes, vec![vec![]; stages], &vec![map; stages], ranges);
    nest
}
