//! Turns an element-wise nest so that it walks in the order in which another kernel makes what it reads, whatever order
//! it was written for itself.

use super::axes::{rebuild, symbol};
use crate::loops::{Access, Axis, BufferId, Effect, Index, Nest, Stage, ranges_over};
use crate::symbolic::{Expr, Node, Ranges, Symbol};
use std::collections::BTreeMap;

/// The nest over those of `axes` that run more than once, where `epilogue` stores at plain positions of all of them a buffer
/// of which every position of the nest loads one element of its own.
pub(super) fn reordered(nest: &Nest, epilogue: &Stage, axes: &[Axis], ranges: &dyn Ranges) -> Option<Nest> {
    let plain: Vec<Index> = axes.iter().map(|axis| Index::Expr(Expr::sym(axis.symbol))).collect();
    let stored = epilogue.effects.iter().find_map(|effect| match effect {
        Effect::Store { access, .. } if access.coords == plain => Some(access.buffer),
        Effect::Store { .. } | Effect::Accumulate { .. } => None,
    })?;
    let coords = loaded(nest, stored)?;
    let wanted: Vec<(&Axis, &Expr)> =
        axes.iter().zip(&coords).filter(|(axis, _)| !axis.extent.is(1)).collect();
    let mut map: BTreeMap<Symbol, Expr> = BTreeMap::new();
    for (position, (_, coordinate)) in wanted.iter().enumerate() {
        let (own, stride) = part(coordinate)?;
        let term = &Expr::axis(position) * &stride;
        let sum = map.entry(own).or_insert_with(|| Expr::int(0));
        *sum = &*sum + &term;
    }
    let outer: Vec<Axis> = wanted
        .iter()
        .enumerate()
        .map(|(k, (axis, _))| Axis { symbol: symbol(k), extent: axis.extent.clone() })
        .collect();
    let known = ranges_over(ranges, &[&outer], &[]);
    let comes_back = wanted.iter().enumerate().all(|(k, (_, coordinate))| {
        coordinate.substitute(&|symbol| map.get(&symbol).cloned(), &known) == Expr::axis(k)
    });
    let count = |axes: &[Axis]| Expr::product(axes.iter().map(|axis| &axis.extent));
    if !comes_back || map.len() != nest.axes.len() || count(&outer) != count(&nest.axes) {
        return None;
    }
    let mut turned = nest.clone();
    let stages = turned.stages.len();
    rebuild(&mut turned, outer, vec![vec![]; stages], &vec![map; stages], ranges);
    Some(turned)
}

/// The coordinates of the one element of a buffer that a nest loads at each position.
fn loaded(nest: &Nest, buffer: BufferId) -> Option<Vec<Expr>> {
    let loads = nest.stages.iter().flat_map(Stage::loads).map(|(access, _)| access);
    let loads: Vec<&Access> = loads.filter(|access| access.buffer == buffer).collect();
    let (first, others) = loads.split_first()?;
    if others.iter().any(|other| other.coords != first.coords) {
        return None;
    }
    let exprs = first.coords.iter().map(|coordinate| match coordinate {
        Index::Expr(expr) => Some(expr.clone()),
        Index::Term(_) => None,
    });
    exprs.collect()
}

/// The axis that a coordinate is a part of, and what a step of the coordinate is in the axis.
fn part(coordinate: &Expr) -> Option<(Symbol, Expr)> {
    match coordinate.node() {
        Node::Sym(symbol) => Some((*symbol, Expr::int(1))),
        Node::FloorDiv(of, by) => match of.node() {
            Node::Sym(symbol) => Some((*symbol, by.clone())),
            Node::Int(_)
            | Node::Sum { .. }
            | Node::Product(_)
            | Node::FloorDiv(..)
            | Node::Mod(..)
            | Node::Min(..)
            | Node::Max(..) => None,
        },
        Node::Mod(of, _) => part(of),
        Node::Int(_) | Node::Sum { .. } | Node::Product(_) | Node::Min(..) | Node::Max(..) => None,
    }
}
