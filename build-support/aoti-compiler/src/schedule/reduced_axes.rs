//! Orders the axes of reductions as what they read lies in memory: a sum over the channels and pixels of an image whose channels are
//! last walks along channels innermost, whatever the program lists first.

use super::axes::{rebuild, symbol};
use crate::loops::{Axis, Effect, Nest, Stage};
use crate::symbolic::{Expr, Ranges, Symbol};
use std::collections::BTreeMap;

/// Elements side by side from which on it is worth walking along them.
const LEAST_RUN: i64 = 8;

/// Moves the axis along which most of what a reduction reads lies side by side to the end of the stage's axes.
pub(super) fn order(nest: &mut Nest, ranges: &dyn Ranges) {
    let moved: Vec<Option<usize>> =
        (0..nest.stages.len()).map(|index| innermost(nest, index).filter(|_| !nest.serial)).collect();
    if moved.iter().all(Option::is_none) {
        return;
    }
    let (mut inner, mut maps) = (vec![], vec![]);
    for (stage, position) in nest.stages.iter().zip(moved) {
        let mut order: Vec<&Axis> = stage.axes.iter().collect();
        if let Some(position) = position {
            order[position..].rotate_left(1);
        }
        let numbered = order.iter().enumerate().map(|(k, axis)| (axis, symbol(nest.axes.len() + k)));
        let map: BTreeMap<Symbol, Expr> =
            numbered.clone().map(|(axis, new)| (axis.symbol, Expr::sym(new))).collect();
        inner.push(numbered.map(|(axis, new)| Axis { symbol: new, extent: axis.extent.clone() }).collect());
        maps.push(map);
    }
    rebuild(nest, nest.axes.clone(), inner, &maps, ranges);
}

/// The axis of a stage that had better be the last, if that is another than the last. Positions decide between equals among the
/// elements of which a reduction keeps the place, so these stay in order.
fn innermost(nest: &Nest, index: usize) -> Option<usize> {
    let stage = &nest.stages[index];
    let is_free = |effect: &Effect| match effect {
        Effect::Accumulate { accumulator, .. } => nest.accumulators[*accumulator].position.is_none(),
        Effect::Store { .. } => false,
    };
    let (last, others) = stage.axes.split_last()?;
    if !stage.effects.iter().all(is_free) {
        return None;
    }
    let own = side_by_side(stage, last);
    let is_long = |axis: &Axis| axis.extent.as_int().is_none_or(|extent| extent >= LEAST_RUN);
    let counts = others.iter().map(|axis| if is_long(axis) { side_by_side(stage, axis) } else { 0 });
    let (position, count) = counts.enumerate().max_by_key(|(_, count)| *count)?;
    (count > own).then_some(position)
}

/// How many of a stage's loads go to the next element with the next position of an axis.
fn side_by_side(stage: &Stage, axis: &Axis) -> usize {
    let step = |offset: &Expr| offset.affine_in(axis.symbol).is_some_and(|(step, _)| step.is(1));
    stage.loads().filter(|(access, _)| access.is_direct() && step(&access.offset)).count()
}
