//! Loops on a processor: threads, vector lanes and chunks, what is taken without a record first.

use super::{contiguous, short_rows};
use crate::cost::{Cost, CostModel, WorkKind};
use crate::kernels::mapped::{Mapped, TYPICAL_EXTENT, with_grains};
use crate::kernels::mapping::{Block, CpuMapping, Grain, Lanes, Split};
use crate::loops::scatter::Scatter;
use crate::loops::{Access, Axis, Kernel, MatMul, Nest, Program, Stage};
use crate::symbolic::{Expr, NoRanges, Symbol};
use crate::target::CpuTarget;
use std::collections::BTreeSet;

/// Elements that are so many apart share cache lines, or are in lines that come one after the other.
pub(super) const FEW_APART: i64 = 32;
/// A vector axis shorter than this leaves most lanes empty.
const FEW_ELEMENTS: i64 = 4;
/// Columns of which one thread does all updates of a scatter, at least: what a few lines of the cache hold.
const COLUMNS: i64 = 32;

/// The ways to lay loops over threads and lanes, and all their work.
pub(in crate::kernels) fn map(
    program: &Program,
    kernel: &Kernel,
    nest: &Nest,
    target: &CpuTarget,
) -> (Vec<Mapped>, Expr) {
    if nest.serial {
        map_serial(program, nest, target)
    } else {
        map_nest(nest, kernel.rows(program).is_empty(), target)
    }
}

fn map_nest(nest: &Nest, keeps_no_rows: bool, target: &CpuTarget) -> (Vec<Mapped>, Expr) {
    let lanes = choose_lanes(nest, keeps_no_rows);
    let (typical, total) = nest_along(nest, lanes, target);
    let mut all = with_grains(&typical, &total);
    let extra = lanes_cost(nest, lanes);
    all.iter_mut().for_each(|laid| laid.extra = extra);
    let both =
        keeps_no_rows && !nest.axes.is_empty() && nest.stages.iter().any(|stage| !stage.axes.is_empty());
    let other = match lanes {
        Lanes::Inner if both => Some(Lanes::Outer),
        Lanes::Outer if both => Some(Lanes::Inner),
        Lanes::Inner | Lanes::Outer | Lanes::One => None,
    };
    if let Some(other) = other {
        all.push(Mapped { extra: lanes_cost(nest, other), ..Mapped::of(nest_along(nest, other, target).0) });
    }
    if let Split::Chunks(elements) = typical.split {
        for elements in [elements / 4, elements * 4] {
            let unit = &position_work(nest) * elements;
            let grain = Grain { unit, ..typical.grain.clone() };
            let mapping = CpuMapping { split: Split::Chunks(elements), grain, ..typical.clone() };
            if total.as_int().is_none_or(|total| total > target.thread_work) {
                all.push(Mapped { is_shared: true, extra, ..Mapped::of(mapping) });
            }
        }
    }
    (all, total)
}

/// Loops whose positions must run in order, but for those along axes that keep them apart.
fn map_serial(program: &Program, nest: &Nest, target: &CpuTarget) -> (Vec<Mapped>, Expr) {
    let apart = Scatter::of(program, nest, &NoRanges).map(|own| own.apart()).unwrap_or_default();
    let count = nest.axes.len();
    let last = nest.axes.last().filter(|axis| {
        let few = axis.extent.as_int().is_some_and(|extent| extent < FEW_ELEMENTS);
        apart.contains(&(count - 1)) && !few
    });
    let lanes = if last.is_some() { Lanes::Outer } else { Lanes::One };
    let leading = (0..count - usize::from(last.is_some())).take_while(|axis| apart.contains(axis)).count();
    let work = position_work(nest);
    let of = |axes: &[Axis]| &work * &Expr::product(axes.iter().map(|axis| &axis.extent));
    let total = of(&nest.axes);
    let (split, unit) = match last {
        _ if leading > 0 => (Split::Axes(leading), of(&nest.axes[leading..])),
        Some(_) => (Split::Chunks(COLUMNS), &of(&nest.axes[..count - 1]) * COLUMNS),
        None => (Split::Serial, total.clone()),
    };
    let grain = Grain { enough: target.thread_work, unit };
    let all = with_grains(&CpuMapping { split, lanes, grain, block: Block::Typical, rows: None }, &total);
    (all, total)
}

/// A nest with these lanes, and the work of all of it.
fn nest_along(nest: &Nest, lanes: Lanes, target: &CpuTarget) -> (CpuMapping, Expr) {
    let vector = if lanes == Lanes::Outer { nest.axes.last() } else { None };
    let loops = nest.axes.len() - usize::from(vector.is_some());
    let mut unit = position_work(nest);
    let total = &unit * &Expr::product(nest.axes.iter().map(|axis| &axis.extent));
    let split = match (loops, vector) {
        (0, None) => Split::Serial,
        (0, Some(_)) => {
            unit = &unit * target.chunk;
            Split::Chunks(target.chunk)
        }
        (_, None) => Split::Axes(loops),
        (_, Some(axis)) => {
            unit = &unit * &axis.extent;
            Split::Axes(loops)
        }
    };
    let grain = Grain { enough: target.thread_work, unit };
    (CpuMapping { split, lanes, grain, block: Block::Typical, rows: None }, total)
}

/// What a nest costs that keeps no rows, along the lanes that suit it better: its accesses, of which those to what an
/// earlier stage has just read or written are cheap.
pub(crate) fn nest_cost(nest: &Nest, prices: &CostModel) -> Cost {
    /// The part of an access to what is near.
    const NEAR: f64 = 0.5;
    let along = |outer: Option<Symbol>| {
        let (mut cost, mut near) = (Cost::default(), BTreeSet::new());
        for stage in &nest.stages {
            let positions = size_of(&nest.axes) * size_of(&stage.axes);
            let vector = outer.or_else(|| stage.axes.last().map(|axis| axis.symbol));
            for access in stage.accesses() {
                let part = if near.contains(&access.buffer) { NEAR } else { 1.0 };
                cost = cost.and(item_along(access, vector), positions * part);
            }
            near.extend(stage.accesses().map(|access| access.buffer));
        }
        cost
    };
    let (inner, outer) = (along(None), along(nest.axes.last().map(|axis| axis.symbol)));
    if prices.total(&inner) < prices.total(&outer) { inner } else { outer }
}

/// What the accesses of a contraction's epilogue cost.
pub(crate) fn epilogue_cost(epilogue: &Stage, axes: &[Axis]) -> Cost {
    let vector = axes.last().map(|axis| axis.symbol);
    vector.map_or_else(Cost::default, |vector| stage_cost(epilogue, vector, size_of(axes)))
}

/// Positions along axes, those that are not counted as typical ones.
pub(super) fn size_of(axes: &[Axis]) -> f64 {
    axes.iter().map(|axis| axis.extent.as_int().map_or(TYPICAL_EXTENT, |extent| extent as f64)).product()
}

/// What an access is with lanes along an axis, or with none.
fn item_along(access: &Access, vector: Option<Symbol>) -> WorkKind {
    match vector.map(|vector| access.offset.affine_in(vector)) {
        None => WorkKind::Access,
        Some(Some((step, _))) if step.is(1) || step.is(0) => WorkKind::Access,
        Some(Some((step, _))) if step.as_int().is_some_and(|step| step.abs() <= FEW_APART) => {
            WorkKind::Strided
        }
        Some(_) => WorkKind::Gather,
    }
}

/// What the accesses of a stage cost at so many positions, with lanes along an axis.
fn stage_cost(stage: &Stage, vector: Symbol, positions: f64) -> Cost {
    let add = |cost: Cost, access: &Access| cost.and(item_along(access, Some(vector)), positions);
    stage.accesses().fold(Cost::default(), add)
}

/// What the accesses of a nest cost with lanes along an axis.
fn lanes_cost(nest: &Nest, lanes: Lanes) -> Cost {
    let outer = nest.axes.last().filter(|_| lanes == Lanes::Outer);
    let of_stage = |cost: Cost, stage: &Stage| -> Cost {
        let Some(vector) = outer.or_else(|| stage.axes.last()) else {
            // Without lanes each element is an access by itself.
            return cost.and(WorkKind::Gather, size_of(&nest.axes) * stage.accesses().count() as f64);
        };
        let positions = size_of(&nest.axes) * size_of(&stage.axes) * empty_lanes(vector);
        cost.plus(&stage_cost(stage, vector.symbol, positions))
    };
    let cost = nest.stages.iter().fold(Cost::default(), of_stage);
    // A nest that reads and writes nothing still runs.
    if cost == Cost::default() { Cost::of(WorkKind::Access, 1.0) } else { cost }
}

/// How many times as long accesses take because lanes are empty along an axis.
fn empty_lanes(vector: &Axis) -> f64 {
    /// Lanes of the widest vectors.
    const LANES: f64 = 16.0;
    let extent = size_of(std::slice::from_ref(vector)).max(1.0);
    (extent / LANES).ceil() * LANES / extent
}

/// Terms that are computed at one position of the outer axes.
pub(in crate::kernels) fn position_work(nest: &Nest) -> Expr {
    nest.stages.iter().fold(Expr::int(1), |work, stage| {
        let size = Expr::product(stage.axes.iter().map(|axis| &axis.extent));
        &work + &(&size * i64::try_from(stage.terms.len()).expect("few terms"))
    })
}

/// Whether loops over the rows of a product may run where a row has just been computed: along vectors within a row, and with no
/// less work for each thread than the product has.
pub(crate) fn suits_rows(rows: &Nest, matmul: &MatMul, target: &CpuTarget) -> bool {
    let work = |work: Expr, enough: i64| {
        let typical = |_| Some(Expr::int(TYPICAL_EXTENT as i64));
        work.substitute(&typical, &NoRanges).as_int().map(|work| work as f64 / enough as f64)
    };
    let column = &matmul.axes[matmul.axes.len() - 1].extent;
    let products = work(column * &matmul.depth, target.thread_products);
    let own = work(position_work(rows), target.thread_work);
    choose_lanes(rows, true) == Lanes::Inner
        && own.zip(products).is_some_and(|(own, products)| own <= products)
}

/// A worker has one of each row, so positions that keep rows do not run side by side in lanes.
fn choose_lanes(nest: &Nest, keeps_no_rows: bool) -> Lanes {
    let has_inner = nest.stages.iter().any(|stage| !stage.axes.is_empty());
    let Some(last) = nest.axes.last() else {
        return if has_inner { Lanes::Inner } else { Lanes::One };
    };
    if !has_inner {
        return if keeps_no_rows { Lanes::Outer } else { Lanes::One };
    }
    let inner = |stage: &crate::loops::Stage| Some(contiguous(stage, stage.axes.last()?.symbol));
    let inner_score: usize = nest.stages.iter().filter_map(inner).sum();
    let outer =
        |symbol: Symbol| nest.stages.iter().map(move |stage| contiguous(stage, symbol)).sum::<usize>();
    let few = |extent: &Expr| extent.as_int().is_some_and(|size| size < FEW_ELEMENTS);
    let inner_few = nest.stages.iter().filter_map(|stage| stage.axes.last()).all(|axis| few(&axis.extent));
    let is_far_along = outer(last.symbol) > inner_score || (inner_few && !few(&last.extent));
    if keeps_no_rows && (is_far_along || short_rows::suit_lanes_across(nest)) {
        Lanes::Outer
    } else {
        Lanes::Inner
    }
}
