//! Attention on the threads of a GPU: how many queries a block has, and how many of their keys it looks at at a time.

use crate::loops::{Attention, Program};
use crate::schedule::mapping::{IndexWidth, Multiplier, Tile};
use crate::select;
use crate::symbolic::Expr;
use crate::target::GpuTarget;

/// Threads of a block on matrix units: four warps, so that two blocks with large heads fit a multiprocessor.
const UNITS_THREADS: i64 = 128;
/// Keys of a tile on matrix units.
const UNITS_KEYS: i64 = 64;
/// Threads of a block elsewhere.
const THREADS: i64 = 256;
/// Keys of a tile elsewhere: one for each of the threads that share a query.
const KEYS: i64 = 32;
/// Blocks from which on a large GPU is busy.
const MANY_BLOCKS: i64 = 256;
/// Heads up to this width leave room in registers for twice the queries.
const NARROW: i64 = 128;

/// Tile and threads of one attention.
pub(super) fn map(program: &Program, own: &Attention, index: IndexWidth, target: &GpuTarget) -> Tile {
    let tile = |by, rows, columns, threads| Tile { by, rows, columns, threads, shared: 0, index };
    let [batch @ .., query, column] = own.axes.as_slice() else {
        return tile(Multiplier::Threads, 16, KEYS, THREADS);
    };
    let width = own.depth.as_int().unwrap_or(0).max(column.extent.as_int().unwrap_or(0));
    let queries = query.extent.as_int().unwrap_or(i64::MAX);
    let batches = Expr::product(batch.iter().map(|axis| &axis.extent)).as_int().unwrap_or(1);
    let blocks = |rows: i64| batches.saturating_mul(queries.saturating_add(rows - 1) / rows);
    match select::attention_on(program, own, target) {
        select::Attention::FewQueries => tile(Multiplier::Few, queries, KEYS, THREADS),
        select::Attention::MatrixUnits => {
            let rows = if width <= NARROW && blocks(128) >= MANY_BLOCKS { 128 } else { 64 };
            tile(Multiplier::Units, rows, UNITS_KEYS, UNITS_THREADS)
        }
        select::Attention::Tiled => {
            let rows = if width <= NARROW && blocks(32) >= MANY_BLOCKS { 32 } else { 16 };
            tile(Multiplier::Threads, rows, KEYS, THREADS)
        }
    }
}
