//! Threads, vector lanes and blocks: the ways to lay a kernel over a processor, what is taken without a record first.

use super::{Laid, contiguous, conv};
use crate::cost::Shares;
use crate::cost::{Cost, Item, Prices};
use crate::loops::{Access, Attention, Axis, Kernel, KernelKind, MatMul, Nest, Program, Stage};
use crate::schedule::mapping::{Block, CpuMapping, Grain, Lanes, Mapping, Split};
use crate::schedule::scatter::Scatter;
use crate::select::{Choice, Gemm, Template};
use crate::symbolic::{Expr, NoRanges, Symbol};
use crate::target::CpuTarget;
use std::collections::BTreeSet;

/// Rows of a matrix product from which on blocks of rows keep all threads busy.
const MANY_ROWS: i64 = 64;
/// Elements that are so many apart share cache lines, or are in lines that come one after the other.
const FEW_APART: i64 = 32;
/// A vector axis shorter than this leaves most lanes empty.
const FEW_ELEMENTS: i64 = 4;

/// Rows of a matrix product that are always enough, or never, to be split over threads.
const ALWAYS_ROWS: i64 = 1;
const NEVER_ROWS: i64 = 1 << 40;
/// Largest register tiles of a matrix product, beside those that the template takes by itself.
const TILE_ROWS: [i64; 2] = [8, 4];
/// Rows of the register tiles that there are, largest first (`kTileRows` of `gemm.h`, with the widest vectors).
const TILES: [i64; 6] = [14, 13, 8, 4, 2, 1];
/// Rows up to which the best tiles are planned, and as how many a tile counts at least (`kPlannedRows`, `kTileLeast`).
const PLANNED_ROWS: i64 = 56;
const TILE_LEAST: i64 = 6;
/// Rows that a register tile costs at least: sums of fewer wait for each other.
const LEAST_ROWS: f64 = 4.0;
/// Positions along an axis whose extent is not known.
const TYPICAL_EXTENT: f64 = 64.0;
/// Columns of which one thread does all updates of a scatter, at least: what a few lines of the cache hold.
const COLUMNS: i64 = 32;
/// Threads that a machine may have.
const MANY_THREADS: i64 = 64;

/// The ways to lay a kernel over threads and lanes.
pub(super) fn map(program: &Program, kernel: &Kernel, choice: &Choice, target: &CpuTarget) -> Vec<Laid> {
    let (mut all, total) = map_kind(program, kernel, choice, target);
    all.iter_mut().for_each(|laid| laid.shares = shares(kernel, laid, &total));
    all
}

/// How threads share all the work, where it is known: of units each is one thread's.
fn shares(kernel: &Kernel, laid: &Laid, total: &Expr) -> Option<Shares> {
    let Mapping::Cpu(CpuMapping { split, grain, .. }) = &laid.mapping else { return None };
    let unit = match split {
        Split::Serial => return Some(Shares::none()),
        Split::Axes(_) | Split::Chunks(_) => grain.unit.as_int()?,
        // The unit is all there is.
        Split::RowsFrom(_) | Split::Template => 1,
    };
    let is_loop = matches!(kernel.kind, KernelKind::Nest(_));
    Some(Shares { work: total.as_int()?, enough: grain.enough, unit, is_loop })
}

/// The ways to lay a kernel of some kind, and all its work.
fn map_kind(program: &Program, kernel: &Kernel, choice: &Choice, target: &CpuTarget) -> (Vec<Laid>, Expr) {
    match &kernel.kind {
        KernelKind::Nest(nest) if nest.serial => map_serial(program, nest, target),
        KernelKind::Nest(nest) => map_nest(nest, kernel.rows(program).is_empty(), target),
        KernelKind::MatMul(matmul) => map_product(matmul, choice, target),
        KernelKind::Convolution(own) => conv::map(program, own, choice, target),
        KernelKind::Attention(own) => map_attention(own, target),
        // The function shares its work among threads itself.
        KernelKind::Extern(_) => {
            let grain = Grain { enough: target.thread_work, unit: Expr::int(1) };
            let (split, lanes, block) = (Split::Template, Lanes::One, Block::Typical);
            (vec![Laid::of(CpuMapping { split, lanes, grain, block, rows: None })], Expr::int(1))
        }
        KernelKind::Rows(rows) => {
            let unit = &rows.length * &rows.inner;
            let total = &unit * &rows.outer;
            let grain = Grain { enough: target.thread_work, unit };
            let (lanes, block) = (Lanes::One, Block::Typical);
            let mapping = CpuMapping { split: Split::Template, lanes, grain, block, rows: None };
            (costing(with_grains(&mapping, &total), Item::Access, &total), total)
        }
    }
}

/// A mapping, and the same with more or less work that is worth a thread, where that changes anything.
pub(super) fn with_grains(typical: &CpuMapping, total: &Expr) -> Vec<Laid> {
    let enough = typical.grain.enough;
    let mut all = vec![Laid::of(typical.clone())];
    for other in [enough / 4, enough * 4, enough * 16] {
        let (least, most) = (enough.min(other), enough.max(other));
        // Where either way all of it is one thread's, or all threads have enough, nothing changes.
        if total.as_int().is_none_or(|total| total >= least && total / MANY_THREADS < most) {
            let grain = Grain { enough: other, unit: typical.grain.unit.clone() };
            all.push(Laid { is_shared: true, ..Laid::of(CpuMapping { grain, ..typical.clone() }) });
        }
    }
    all
}

/// Ways of a kernel whose template has no cost of its own: so much work of a kind.
fn costing(mut all: Vec<Laid>, item: Item, total: &Expr) -> Vec<Laid> {
    let typical = |_| Some(Expr::int(TYPICAL_EXTENT as i64));
    let total = total.substitute(&typical, &NoRanges).as_int().unwrap_or(1) as f64;
    all.iter_mut().for_each(|laid| laid.extra = Cost::of(item, total));
    all
}

fn map_attention(own: &Attention, target: &CpuTarget) -> (Vec<Laid>, Expr) {
    let columns = own.axes.last().map_or(Expr::int(1), |axis| axis.extent.clone());
    let work = &Expr::product(own.score_axes().iter().map(|axis| &axis.extent)) * &(&own.depth + &columns);
    let grain = Grain { enough: target.thread_products, unit: work.clone() };
    let (split, lanes, block) = (Split::Template, Lanes::Outer, Block::Typical);
    let all = with_grains(&CpuMapping { split, lanes, grain, block, rows: None }, &work);
    (costing(all, Item::Multiply, &work), work)
}

fn map_nest(nest: &Nest, keeps_no_rows: bool, target: &CpuTarget) -> (Vec<Laid>, Expr) {
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
        all.push(Laid { extra: lanes_cost(nest, other), ..Laid::of(nest_along(nest, other, target).0) });
    }
    if let Split::Chunks(elements) = typical.split {
        for elements in [elements / 4, elements * 4] {
            let unit = &position_work(nest) * elements;
            let grain = Grain { unit, ..typical.grain.clone() };
            let mapping = CpuMapping { split: Split::Chunks(elements), grain, ..typical.clone() };
            if total.as_int().is_none_or(|total| total > target.thread_work) {
                all.push(Laid { is_shared: true, extra, ..Laid::of(mapping) });
            }
        }
    }
    (all, total)
}

/// Loops whose positions must run in order, but for those along axes that keep them apart.
fn map_serial(program: &Program, nest: &Nest, target: &CpuTarget) -> (Vec<Laid>, Expr) {
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
pub(in crate::schedule) fn nest_cost(nest: &Nest, prices: &Prices) -> Cost {
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
pub(in crate::schedule) fn epilogue_cost(epilogue: &Stage, axes: &[Axis]) -> Cost {
    let vector = axes.last().map(|axis| axis.symbol);
    vector.map_or_else(Cost::default, |vector| stage_cost(epilogue, vector, size_of(axes)))
}

/// Positions along axes, those that are not counted as typical ones.
fn size_of(axes: &[Axis]) -> f64 {
    axes.iter().map(|axis| axis.extent.as_int().map_or(TYPICAL_EXTENT, |extent| extent as f64)).product()
}

/// What an access is with lanes along an axis, or with none.
fn item_along(access: &Access, vector: Option<Symbol>) -> Item {
    match vector.map(|vector| access.offset.affine_in(vector)) {
        None => Item::Access,
        Some(Some((step, _))) if step.is(1) || step.is(0) => Item::Access,
        Some(Some((step, _))) if step.as_int().is_some_and(|step| step.abs() <= FEW_APART) => Item::Strided,
        Some(_) => Item::Gather,
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
            return cost.and(Item::Gather, size_of(&nest.axes) * stage.accesses().count() as f64);
        };
        let positions = size_of(&nest.axes) * size_of(&stage.axes) * empty_lanes(vector);
        cost.plus(&stage_cost(stage, vector.symbol, positions))
    };
    let cost = nest.stages.iter().fold(Cost::default(), of_stage);
    // A nest that reads and writes nothing still runs.
    if cost == Cost::default() { Cost::of(Item::Access, 1.0) } else { cost }
}

/// How many times as long accesses take because lanes are empty along an axis.
fn empty_lanes(vector: &Axis) -> f64 {
    /// Lanes of the widest vectors.
    const LANES: f64 = 16.0;
    let extent = size_of(std::slice::from_ref(vector)).max(1.0);
    (extent / LANES).ceil() * LANES / extent
}

/// Terms that are computed at one position of the outer axes.
fn position_work(nest: &Nest) -> Expr {
    nest.stages.iter().fold(Expr::int(1), |work, stage| {
        let size = Expr::product(stage.axes.iter().map(|axis| &axis.extent));
        &work + &(&size * i64::try_from(stage.terms.len()).expect("few terms"))
    })
}

/// Whether loops over the rows of a product may run where a row has just been computed: along vectors within a row, and with no
/// less work for each thread than the product has.
pub(in crate::schedule) fn suits_rows(rows: &Nest, matmul: &MatMul, target: &CpuTarget) -> bool {
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
    if keeps_no_rows && (outer(last.symbol) > inner_score || (inner_few && !few(&last.extent))) {
        Lanes::Outer
    } else {
        Lanes::Inner
    }
}

fn map_product(matmul: &MatMul, choice: &Choice, target: &CpuTarget) -> (Vec<Laid>, Expr) {
    let rank = matmul.axes.len();
    let (m, n) = (&matmul.axes[rank - 2].extent, &matmul.axes[rank - 1].extent);
    let row = n * &matmul.depth;
    let whole = m * &row;
    let batches = Expr::product(matmul.axes[..rank - 2].iter().map(|axis| &axis.extent));
    if choice.library().is_some() {
        let whole = &batches * &whole;
        let grain = Grain { enough: target.thread_products, unit: whole };
        let (split, lanes, block) = (Split::Template, Lanes::Outer, Block::Typical);
        let total = grain.unit.clone();
        return (vec![Laid::of(CpuMapping { split, lanes, grain, block, rows: None })], total);
    }
    let by_row = choice.template == Template::Gemm(Gemm::Any);
    let (split, unit) = match (batches.is(1), by_row) {
        (false, _) => (Split::Axes(rank - 2), whole.clone()),
        (true, true) => (Split::Axes(rank - 1), row),
        (true, false) => (Split::RowsFrom(MANY_ROWS), whole.clone()),
    };
    let grain = Grain { enough: target.thread_products, unit };
    let (lanes, block) = (Lanes::Outer, Block::Typical);
    let rows = matmul.row_epilogue.as_ref();
    let rows = rows.map(|rows| Grain { enough: target.thread_work, unit: position_work(rows) });
    let typical = CpuMapping { split, lanes, grain, block, rows };
    let total = &batches * &whole;
    let mut all = with_grains(&typical, &total);
    // On matrix units tiles are of one size, and the template splits what is cheaper to split.
    if by_row || matches!(choice.template, Template::Gemm(Gemm::PackedOnUnits | Gemm::GeneralOnUnits)) {
        return (all, total);
    }
    let blocks = TILE_ROWS.into_iter().filter(|rows| m.as_int().is_none_or(|m| m > *rows)).map(Block::Rows);
    let splits = other_splits(split, m);
    for block in std::iter::once(Block::Typical).chain(blocks) {
        let (factor, extra) = tiles_cost(m, block);
        let mapping = CpuMapping { block, ..typical.clone() };
        if block == Block::Typical {
            all.iter_mut().for_each(|laid| (laid.factor, laid.extra) = (factor, extra));
        } else {
            all.push(Laid { factor, extra, ..Laid::of(mapping.clone()) });
        }
        for split in &splits {
            let read = read_by_two(matmul, *split) / read_by_two(matmul, typical.split) - 1.0;
            let extra = extra.and(Item::ReadTwice, read);
            let laid = Laid::of(CpuMapping { split: *split, ..mapping.clone() });
            all.push(Laid { factor, extra, is_shared: true, ..laid });
        }
    }
    (all, total)
}

/// The other ways to split one product over threads.
fn other_splits(typical: Split, m: &Expr) -> Vec<Split> {
    match (typical, m.as_int()) {
        (Split::RowsFrom(from), Some(m)) if m >= from => vec![Split::RowsFrom(NEVER_ROWS)],
        (Split::RowsFrom(_), Some(m)) if m > 1 => vec![Split::RowsFrom(ALWAYS_ROWS)],
        (Split::RowsFrom(_), None) => vec![Split::RowsFrom(ALWAYS_ROWS), Split::RowsFrom(NEVER_ROWS)],
        (Split::RowsFrom(_) | Split::Serial | Split::Axes(_) | Split::Chunks(_) | Split::Template, _) => {
            vec![]
        }
    }
}

/// Elements that two threads read of both operands.
fn read_by_two(matmul: &MatMul, split: Split) -> f64 {
    let size = |expr: &Expr| expr.as_int().map_or(MANY_ROWS as f64, |size| size.max(1) as f64);
    let (m, n) = (&matmul.axes[matmul.axes.len() - 2].extent, &matmul.axes[matmul.axes.len() - 1].extent);
    match split {
        Split::RowsFrom(from) if size(m) < from as f64 => 2.0 * size(m) + size(n),
        Split::RowsFrom(_) | Split::Serial | Split::Axes(_) | Split::Chunks(_) | Split::Template => {
            size(m) + 2.0 * size(n)
        }
    }
}

/// What register tiles of so many rows at most cost: the part of a row's multiply-adds that they do for each row, and what
/// they load.
fn tiles_cost(m: &Expr, block: Block) -> (f64, Cost) {
    let most = match block {
        Block::Rows(rows) => rows,
        Block::Typical | Block::WeightsOnce | Block::PixelsOnce => TILES[0],
    };
    // Of rows that are not counted there are many tiles of the largest kind.
    let all = m.as_int().unwrap_or(most).max(1);
    let tiles = tiles_of(all, most);
    let rows: f64 = tiles.iter().map(|tile| (*tile as f64).max(LEAST_ROWS)).sum();
    let all = all as f64;
    (rows / all, Cost::of(Item::Panel, tiles.len() as f64 / all))
}

/// The tiles of at most `most` rows that so many rows are computed in (`TilePlan` of `gemm.h`, with the widest vectors).
fn tiles_of(rows: i64, most: i64) -> Vec<i64> {
    let largest = (rows - PLANNED_ROWS + most - 1).max(0) / most;
    let left = usize::try_from(rows - largest * most).unwrap_or(0);
    // For each number of rows what its tiles cost, and the first of them.
    let mut plan: Vec<(i64, i64)> = vec![(0, 0)];
    for rows in 1..=left {
        let fitting = TILES.iter().filter(|tile| **tile <= most && **tile <= rows as i64);
        let costs =
            fitting.map(|tile| (plan[rows - *tile as usize].0 + 4 * tile.max(&TILE_LEAST) + 1, *tile));
        plan.extend(costs.min_by_key(|(cost, _)| *cost));
    }
    let mut tiles = vec![most; usize::try_from(largest).unwrap_or(0)];
    let mut at = left;
    while at > 0 && at < plan.len() {
        tiles.push(plan[at].1);
        at -= plan[at].1 as usize;
    }
    tiles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::headers::numbers::{number, numbers};

    #[test]
    fn register_tiles_are_those_of_the_header() {
        assert_eq!(TILES.to_vec(), numbers("gemm.h", "kTileRows"));
        assert_eq!(PLANNED_ROWS, number("gemm.h", "kPlannedRows"));
        assert_eq!(TILE_LEAST, number("gemm.h", "kTileLeast"));
    }

    #[test]
    fn tiles_cover_all_rows_and_are_large_where_that_can_be() {
        for (rows, most) in (0..200).flat_map(|rows| [4, 8, 14].map(|most| (rows, most))) {
            let tiles = tiles_of(rows, most);
            assert_eq!(tiles.iter().sum::<i64>(), rows);
            assert!(tiles.iter().all(|tile| *tile <= most && TILES.contains(tile)), "{tiles:?}");
        }
        assert_eq!(tiles_of(49, 14), [14, 14, 13, 8]);
        assert_eq!(tiles_of(16, 14), [8, 8]);
        assert!(tiles_of(197, 14).iter().all(|tile| *tile >= 8));
    }
}
