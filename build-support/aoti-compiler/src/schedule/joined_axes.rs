//! Axes of element-wise loops that are joined for the sake of lanes: where the last is too short for them, or rows along it are out
//! of step with wide accesses, lanes go on in the row behind it, for the price of a quotient and a remainder.

use super::axes::{clear_coords, expr_joins};
use crate::dtype::DType;
use crate::loops::{Access, Axis, BufferId, Effect, KernelKind, Nest, Program, Term};
use crate::symbolic::{Expr, Ranges};
use crate::target::JoinedAxes;
use std::collections::BTreeMap;

/// Elements of an axis that leave most lanes of any vector empty.
const SHORT: i64 = 4;

/// Joins axes of all element-wise nests, where that fills lanes.
pub(super) fn join(program: &mut Program, which: JoinedAxes, ranges: &dyn Ranges) {
    for kernel in program.kernels.values_mut() {
        let KernelKind::Nest(nest) = &mut kernel.kind else { continue };
        if nest.serial || nest.stages.iter().any(|stage| !stage.axes.is_empty()) {
            continue;
        }
        let joined = match which {
            JoinedAxes::Short => short(nest),
            JoinedAxes::Uneven { bytes, lanes, positions } => {
                let dtype = |buffer: BufferId| program.buffers[buffer].dtype;
                uneven(nest, &dtype, (bytes, lanes), positions)
            }
        };
        (1..joined).for_each(|_| join_apart(nest, ranges));
    }
}

/// How many of the last axes are joined while what they make up is too short for lanes and results lie side by side.
fn short(nest: &Nest) -> usize {
    let (mut count, mut extent) = (0, 1);
    for axis in nest.axes.iter().rev().take(1 + joinable(nest)) {
        let is_short = (2..=SHORT).contains(&extent);
        if count > 0 && !is_short {
            break;
        }
        extent = axis.extent.as_int().map_or(i64::MAX, |own| own.saturating_mul(extent));
        count += 1;
    }
    count
}

/// How many of the last axes are joined so that rows begin at whole accesses, or there is one: few accesses would be whole otherwise.
fn uneven(
    nest: &Nest,
    dtype: &dyn Fn(BufferId) -> DType,
    (bytes, lanes): (i64, i64),
    positions: i64,
) -> usize {
    let sizes: Option<Vec<i64>> = nest.axes.iter().map(|axis| axis.extent.as_int()).collect();
    let Some(sizes) = sizes else { return 1 };
    let widest = stores(nest).map(|access| dtype(access.buffer).size()).max().unwrap_or(1);
    let lanes = (bytes / i64::try_from(widest).expect("elements are small")).min(lanes);
    let all = sizes.iter().try_fold(1, |all: i64, size| all.checked_mul(*size));
    if all.is_none_or(|all| all < positions) || !reads_along(nest) {
        return 1;
    }
    let most = 1 + joinable(nest);
    let is_even = |count: &usize| {
        *count == sizes.len() || sizes[sizes.len() - count..].iter().product::<i64>() % lanes == 0
    };
    (1..=most.min(sizes.len())).find(is_even).unwrap_or(1)
}

fn stores(nest: &Nest) -> impl Iterator<Item = &Access> {
    nest.stages.iter().flat_map(|stage| &stage.effects).filter_map(|effect| match effect {
        Effect::Store { access, .. } => Some(access),
        Effect::Accumulate { .. } => None,
    })
}

/// How many times the last axis can be joined with the one before it, as results lie side by side.
fn joinable(nest: &Nest) -> usize {
    let pairs = nest.axes.windows(2).rev();
    let is_whole = |pair: &&[Axis]| {
        let [a, b] = pair else { return false };
        stores(nest).all(|access| access.is_direct() && expr_joins(&access.offset, a, b))
    };
    pairs.take_while(is_whole).count()
}

/// Whether what is read along the last axis lies side by side there, if only in parts, and no index comes from data.
fn reads_along(nest: &Nest) -> bool {
    let Some(last) = nest.axes.last() else { return false };
    let mut loads = nest.stages.iter().flat_map(|stage| stage.loads());
    loads.all(|(access, _)| {
        let step = access.offset.affine_in(last.symbol).map(|(step, _)| step);
        access.is_direct() && step.is_none_or(|step| step.is(0) || step.is(1))
    })
}

/// Makes the last two axes one, of which the position in each is a quotient and a remainder where they are not walked like one.
fn join_apart(nest: &mut Nest, ranges: &dyn Ranges) {
    let (Some(b), Some(a)) = (nest.axes.pop(), nest.axes.pop()) else { return };
    let joined = Axis { symbol: a.symbol, extent: &a.extent * &b.extent };
    let position = Expr::sym(joined.symbol);
    let like_one = BTreeMap::from([(a.symbol, Expr::int(0)), (b.symbol, position.clone())]);
    let apart = BTreeMap::from([
        (a.symbol, position.floor_div_in(&b.extent, ranges)),
        (b.symbol, position.modulo_in(&b.extent, ranges)),
    ]);
    nest.axes.push(joined);
    for stage in &mut nest.stages {
        for typed in &mut stage.terms {
            let offset =
                if let Term::Load { access, .. } = &typed.term { Some(&access.offset) } else { None };
            let is_one = typed.term.exprs().into_iter().chain(offset).all(|expr| expr_joins(expr, &a, &b));
            let map = if is_one { &like_one } else { &apart };
            typed.term.substitute(&|symbol| map.get(&symbol).cloned(), ranges);
        }
        for effect in &mut stage.effects {
            if let Effect::Store { access, .. } = effect {
                access.substitute(&|symbol| like_one.get(&symbol).cloned(), ranges);
            }
        }
        clear_coords(stage);
    }
}
