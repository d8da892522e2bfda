//! Simpler loops: axes of one iteration go, and axes that every access walks through together become one.

use crate::loops::{Access, Axis, Effect, Nest, Stage, Term, ranges_over};
use crate::symbolic::{Expr, Node, Ranges, Symbol};
use std::collections::BTreeMap;

/// The symbol of axis number `index`.
pub(super) fn symbol(index: usize) -> Symbol {
    Symbol::axis(u32::try_from(index).expect("axes are few"))
}

/// Replaces the axes of one stage's terms and effects.
pub(super) fn substitute_stage(stage: &mut Stage, map: &BTreeMap<Symbol, Expr>, ranges: &dyn Ranges) {
    let replace = |symbol: Symbol| map.get(&symbol).cloned();
    for typed in &mut stage.terms {
        typed.term.substitute(&replace, ranges);
    }
    for effect in &mut stage.effects {
        if let Effect::Store { access, .. } = effect {
            access.substitute(&replace, ranges);
        }
    }
}

/// Rewrites a nest onto new axes: `outer` and `inner` (one list a stage) replace the old ones by the map of each stage.
pub(super) fn rebuild(
    nest: &mut Nest,
    outer: Vec<Axis>,
    inner: Vec<Vec<Axis>>,
    maps: &[BTreeMap<Symbol, Expr>],
    ranges: &dyn Ranges,
) {
    for (index, (stage, axes)) in nest.stages.iter_mut().zip(inner).enumerate() {
        let offsets: Vec<Expr> = stage.accesses().map(|access| access.offset.clone()).collect();
        let offsets: Vec<&Expr> = offsets.iter().collect();
        let table = ranges_over(ranges, &[&outer, &axes], &offsets);
        substitute_stage(stage, &maps[index], &table);
        for accumulator in nest.accumulators.iter_mut().filter(|accumulator| accumulator.stage == index) {
            if let Some(position) = &mut accumulator.position {
                *position = position.substitute(&|symbol| maps[index].get(&symbol).cloned(), &table);
            }
        }
        stage.axes = axes;
    }
    nest.axes = outer;
}

/// Takes away axes that run once, and numbers the rest anew.
pub(super) fn drop_unit_axes(nest: &mut Nest, ranges: &dyn Ranges) {
    let all_axes = nest.axes.iter().chain(nest.stages.iter().flat_map(|stage| &stage.axes));
    if !all_axes.clone().any(|axis| axis.extent.is(1)) {
        return;
    }
    let mut outer_map = BTreeMap::new();
    let outer = keep(&nest.axes, 0, &mut outer_map);
    let (mut inner, mut maps) = (Vec::new(), Vec::new());
    for stage in &nest.stages {
        let mut map = outer_map.clone();
        inner.push(keep(&stage.axes, outer.len(), &mut map));
        maps.push(map);
    }
    rebuild(nest, outer, inner, &maps, ranges);
}

fn keep(axes: &[Axis], first: usize, map: &mut BTreeMap<Symbol, Expr>) -> Vec<Axis> {
    let mut kept: Vec<Axis> = Vec::new();
    for axis in axes {
        if axis.extent.is(1) {
            map.insert(axis.symbol, Expr::int(0));
        } else {
            let new = symbol(first + kept.len());
            map.insert(axis.symbol, Expr::sym(new));
            kept.push(Axis { symbol: new, extent: axis.extent.clone() });
        }
    }
    kept
}

/// Cuts axes where index expressions divide them, so that blocks of a reshaped tensor become plain strides again.
fn split_axes(nest: &mut Nest, ranges: &dyn Ranges) {
    // Each cut makes an axis shorter; the bound only guards against a pathological expression.
    for _ in 0..8 {
        let Some((position, divisor)) = find_cut(nest) else { return };
        let mut map = BTreeMap::new();
        let mut outer = Vec::new();
        for (index, axis) in nest.axes.iter().enumerate() {
            let first = symbol(outer.len());
            if index == position {
                let blocks = axis.extent.floor_div_in(&divisor, ranges);
                outer.push(Axis { symbol: first, extent: blocks });
                let second = symbol(outer.len());
                outer.push(Axis { symbol: second, extent: divisor.clone() });
                map.insert(axis.symbol, &(&Expr::sym(first) * &divisor) + &Expr::sym(second));
            } else {
                map.insert(axis.symbol, Expr::sym(first));
                outer.push(Axis { symbol: first, extent: axis.extent.clone() });
            }
        }
        let (mut inner, mut maps) = (Vec::new(), Vec::new());
        for stage in &nest.stages {
            let mut own = map.clone();
            let axes: Vec<Axis> = stage
                .axes
                .iter()
                .enumerate()
                .map(|(k, axis)| Axis { symbol: symbol(outer.len() + k), extent: axis.extent.clone() })
                .collect();
            for (old, new) in stage.axes.iter().zip(&axes) {
                own.insert(old.symbol, Expr::sym(new.symbol));
            }
            inner.push(axes);
            maps.push(own);
        }
        rebuild(nest, outer, inner, &maps, ranges);
    }
}

/// Blocks of fewer elements than this are not worth a loop of their own along the lanes.
const MIN_BLOCK: i64 = 8;

/// An outer axis and a divisor of its extent by which some access divides it.
fn find_cut(nest: &Nest) -> Option<(usize, Expr)> {
    let last_is_vector = nest.stages.iter().all(|stage| stage.axes.is_empty());
    for (position, axis) in nest.axes.iter().enumerate() {
        let mut divisors = Vec::new();
        for access in nest.stages.iter().flat_map(Stage::accesses) {
            collect_divisors(&access.offset, axis.symbol, &mut divisors);
        }
        let vector = last_is_vector && position + 1 == nest.axes.len();
        let fits = |divisor: &&Expr| match (axis.extent.as_int(), divisor.as_int()) {
            (Some(extent), Some(divisor)) => {
                divisor < extent && extent % divisor == 0 && (!vector || divisor >= MIN_BLOCK)
            }
            _ => false,
        };
        if let Some(divisor) = divisors.iter().filter(fits).max_by_key(|divisor| divisor.as_int()) {
            return Some((position, divisor.clone()));
        }
    }
    None
}

/// Divisors `d` of `axis // d` and `axis % d` anywhere in an expression.
fn collect_divisors(expr: &Expr, axis: Symbol, divisors: &mut Vec<Expr>) {
    match expr.node() {
        Node::Int(_) | Node::Sym(_) => {}
        Node::Sum { terms, .. } => terms.iter().for_each(|(term, _)| collect_divisors(term, axis, divisors)),
        Node::Product(factors) => factors.iter().for_each(|factor| collect_divisors(factor, axis, divisors)),
        Node::FloorDiv(a, b) | Node::Mod(a, b) => {
            if a.node() == &Node::Sym(axis) && !divisors.contains(b) {
                divisors.push(b.clone());
            }
            collect_divisors(a, axis, divisors);
            collect_divisors(b, axis, divisors);
        }
        Node::Min(a, b) | Node::Max(a, b) => {
            collect_divisors(a, axis, divisors);
            collect_divisors(b, axis, divisors);
        }
    }
}

/// Joins neighbouring axes that all accesses walk through like one. Coordinates are not kept: this comes last.
pub(super) fn merge_axes(nest: &mut Nest, ranges: &dyn Ranges) {
    drop_unit_axes(nest, ranges);
    split_axes(nest, ranges);
    while let Some(position) = (1..nest.axes.len()).rev().find(|k| {
        let (a, b) = (&nest.axes[k - 1], &nest.axes[*k]);
        nest.stages.iter().all(|stage| joins(stage, a, b)) && positions_join(nest, a, b)
    }) {
        join(nest, None, position, ranges);
    }
    for index in 0..nest.stages.len() {
        while let Some(position) = (1..nest.stages[index].axes.len()).rev().find(|k| {
            let stage = &nest.stages[index];
            let (a, b) = (&stage.axes[k - 1], &stage.axes[*k]);
            joins(stage, a, b) && positions_join(nest, a, b)
        }) {
            join(nest, Some(index), position, ranges);
        }
    }
}

/// Whether every access of a stage moves along `a` as far as along all of `b`.
fn joins(stage: &Stage, a: &Axis, b: &Axis) -> bool {
    let mentions = |expr: &Expr| expr.mentions(a.symbol) || expr.mentions(b.symbol);
    let plain_terms = stage.terms.iter().all(|typed| match &typed.term {
        Term::Index(expr) => expr_joins(expr, a, b),
        Term::Load { guards, .. } | Term::Inside(guards) => {
            guards.iter().all(|guard| !mentions(&guard.coordinate))
        }
        Term::Literal(_)
        | Term::Unary(..)
        | Term::Binary(..)
        | Term::Select(..)
        | Term::Cast(_)
        | Term::CheckIndex { .. }
        | Term::Accumulated(_)
        | Term::Earlier { .. }
        | Term::Sum => true,
    });
    plain_terms && stage.accesses().all(|access| expr_joins(&access.offset, a, b))
}

fn positions_join(nest: &Nest, a: &Axis, b: &Axis) -> bool {
    nest.accumulators
        .iter()
        .filter_map(|accumulator| accumulator.position.as_ref())
        .all(|expr| expr_joins(expr, a, b))
}

pub(super) fn expr_joins(expr: &Expr, a: &Axis, b: &Axis) -> bool {
    let Some((a_step, rest)) = expr.affine_in(a.symbol) else { return false };
    let Some((b_step, _)) = rest.affine_in(b.symbol) else { return false };
    !a_step.mentions(b.symbol) && a_step == &b_step * &b.extent
}

/// Makes axes `position - 1` and `position` of the nest (or of one stage) one axis.
fn join(nest: &mut Nest, stage: Option<usize>, position: usize, ranges: &dyn Ranges) {
    let list = match stage {
        None => &nest.axes,
        Some(index) => &nest.stages[index].axes,
    };
    let (a, b) = (list[position - 1].clone(), list[position].clone());
    // The joined axis counts positions of b, so a's own part of every affine expression disappears into it.
    let pair = BTreeMap::from([(a.symbol, Expr::int(0)), (b.symbol, Expr::sym(b.symbol))]);
    let joined = Axis { symbol: b.symbol, extent: &a.extent * &b.extent };
    let mut replaced = list.clone();
    replaced.splice(position - 1..=position, [joined]);
    for (index, own) in nest.stages.iter_mut().enumerate() {
        if stage.is_none_or(|wanted| wanted == index) {
            substitute_stage(own, &pair, ranges);
            clear_coords(own);
        }
    }
    for accumulator in &mut nest.accumulators {
        if stage.is_none_or(|wanted| wanted == accumulator.stage)
            && let Some(at) = &mut accumulator.position
        {
            *at = at.substitute(&|symbol| pair.get(&symbol).cloned(), ranges);
        }
    }
    match stage {
        None => nest.axes = replaced,
        Some(index) => nest.stages[index].axes = replaced,
    }
}

pub(super) fn clear_coords(stage: &mut Stage) {
    let clear = |access: &mut Access| access.coords.clear();
    for typed in &mut stage.terms {
        if let Term::Load { access, .. } = &mut typed.term {
            clear(access);
        }
    }
    for effect in &mut stage.effects {
        if let Effect::Store { access, .. } = effect {
            clear(access);
        }
    }
}
