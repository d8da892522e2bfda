//! How the rows of a product are cut into register tiles, and shared by threads.

use super::{Code, Tiling};
use crate::constants;
use crate::cost::{Cost, WorkKind};
use crate::kernels::mapped::{Mapped, with_grains};
use crate::kernels::mapping::{Block, CpuMapping, Grain, Lanes, Split};
use crate::kernels::nest::cpu::position_work;
use crate::loops::MatMul;
use crate::symbolic::Expr;
use crate::target::CpuTarget;

/// Rows of a matrix product from which on blocks of rows keep all threads busy.
const MANY_ROWS: i64 = 64;
/// Rows of a matrix product that are always enough, or never, to be split over threads.
const ALWAYS_ROWS: i64 = 1;
const NEVER_ROWS: i64 = 1 << 40;
/// Largest register tiles of a matrix product, beside those that the template takes by itself.
const TILE_ROWS: [i64; 2] = [8, 4];
/// Rows of the register tiles that there are, largest first (`kTileRows` of `gemm.h`, with the widest vectors).
const TILES: [i64; 6] = constants::TILE_ROWS;
/// Rows up to which the best tiles are planned, and as how many a tile counts at least (`kPlannedRows`, `kTileLeast`).
const PLANNED_ROWS: i64 = constants::PLANNED_ROWS;
const TILE_LEAST: i64 = constants::TILE_LEAST;
/// Rows that a register tile costs at least: sums of fewer wait for each other.
const LEAST_ROWS: f64 = 4.0;

/// The ways to lay a product over the threads of a processor, and all its work.
pub(super) fn map(matmul: &MatMul, code: &Code, target: &CpuTarget) -> (Vec<Mapped>, Expr) {
    let rank = matmul.axes.len();
    let (m, n) = (&matmul.axes[rank - 2].extent, &matmul.axes[rank - 1].extent);
    let row = n * &matmul.depth;
    let whole = m * &row;
    let batches = Expr::product(matmul.axes[..rank - 2].iter().map(|axis| &axis.extent));
    if code.tiling == Tiling::Library {
        let whole = &batches * &whole;
        let grain = Grain { enough: target.thread_products, unit: whole };
        let (split, lanes, block) = (Split::Template, Lanes::Outer, Block::Typical);
        let total = grain.unit.clone();
        return (vec![Mapped::of(CpuMapping { split, lanes, grain, block, rows: None })], total);
    }
    let by_row = code.tiling == Tiling::Row;
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
    if by_row || code.tiling == Tiling::Units {
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
            all.push(Mapped { factor, extra, ..Mapped::of(mapping.clone()) });
        }
        for split in &splits {
            let read = read_by_two(matmul, *split) / read_by_two(matmul, typical.split) - 1.0;
            let extra = extra.and(WorkKind::RereadOperand, read);
            let laid = Mapped::of(CpuMapping { split: *split, ..mapping.clone() });
            all.push(Mapped { factor, extra, is_shared: true, ..laid });
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
    (rows / all, Cost::of(WorkKind::PanelLoad, tiles.len() as f64 / all))
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
