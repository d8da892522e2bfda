//! Attention on the threads of a GPU: who multiplies, how many queries a block has, and how many of their keys it looks at
//! at a time.

use crate::loops::{Attention, Program};
use crate::schedule::mapping::{IndexWidth, Multiplier, Tile};
use crate::symbolic::Expr;
use crate::target::{GpuTarget, MatrixShape};

/// Queries that are few: all threads of a block go over their keys, and each holds a part of the mean of every one.
const FEW_QUERIES: i64 = 4;
/// Threads of a block for them: the more, the more keys are on their way.
const FEW_THREADS: i64 = 512;
/// The matrix instruction that the template for matrix units is made of.
const INSTRUCTION: MatrixShape = MatrixShape { m: 16, n: 8, k: 16 };
/// Threads of a block on matrix units: four warps, so that two blocks with large heads fit a multiprocessor.
const UNITS_THREADS: i64 = 128;
/// Keys of a tile on matrix units.
const UNITS_KEYS: i64 = 64;
/// Elements by which rows in shared memory are longer than heads there, so that eight of them lie in different banks.
const UNITS_PADDING: i64 = 8;
/// Threads of a block elsewhere.
const THREADS: i64 = 256;
/// Keys of a tile elsewhere: one for each of the threads that share a query.
const KEYS: i64 = 32;
/// Bytes of a tile up to which keys and values lie apart there.
const APART: i64 = 48 * 1024;
/// Blocks from which on a large GPU is busy.
const MANY_BLOCKS: i64 = 256;
/// Heads up to this width leave room in registers for twice the queries.
const NARROW: i64 = 128;

/// The tiles of one attention, of which rows are queries and columns keys; the first is taken without a record.
pub(super) fn map(program: &Program, own: &Attention, index: IndexWidth, target: &GpuTarget) -> Vec<Tile> {
    let (outer, column) = own.axes.split_at(own.axes.len() - 1);
    let (batch, query) = outer.split_at(outer.len() - 1);
    let [width, columns] = [&own.depth, &column[0].extent].map(|size| size.as_int().unwrap_or(0));
    let queries = query[0].extent.as_int();
    let batches = Expr::product(batch.iter().map(|axis| &axis.extent)).as_int().unwrap_or(1);
    // A size that is not known is taken to be large.
    let blocks = |rows: i64| {
        queries.map_or(i64::MAX, |count| count.saturating_add(rows - 1) / rows).saturating_mul(batches)
    };
    // Twice the queries where registers hold them; first where that keeps the device busy.
    let sizes = |small: i64| -> Vec<i64> {
        let is_narrow = width.max(columns) <= NARROW;
        match (is_narrow, blocks(2 * small) >= MANY_BLOCKS) {
            (true, true) => vec![2 * small, small],
            (true, false) => vec![small, 2 * small],
            (false, _) => vec![small],
        }
    };
    if let Some(rows) = queries.filter(|count| (1..=FEW_QUERIES).contains(count)) {
        return vec![Tile {
            by: Multiplier::Few,
            rows,
            columns: KEYS,
            threads: FEW_THREADS,
            shared: 0,
            index,
        }];
    }
    if has_units(program, own, target) {
        let pitch = |size: i64| (size + 15) / 16 * 16 + UNITS_PADDING;
        let shared = |rows: i64| 2 * ((rows + UNITS_KEYS) * pitch(width) + UNITS_KEYS * pitch(columns));
        let (by, threads) = (Multiplier::Units, UNITS_THREADS);
        let tile = |rows| Tile { by, rows, columns: UNITS_KEYS, threads, shared: shared(rows), index };
        return sizes(64).into_iter().map(tile).collect();
    }
    let (by, threads) = (Multiplier::Threads, THREADS);
    let shared = |rows: i64| shared_by_threads(rows, width, columns);
    let tile = |rows| Tile { by, rows, columns: KEYS, threads, shared: shared(rows), index };
    sizes(16).into_iter().map(tile).collect()
}

/// Whether matrix units multiply the operands as they are, and the weights as the program rounds them.
fn has_units(program: &Program, own: &Attention, target: &GpuTarget) -> bool {
    let operands = [&own.queries, &own.keys, &own.values];
    own.dtype.is_half()
        && operands.iter().all(|operand| program.buffers[operand.buffer].dtype == own.dtype)
        && target.matrix_shapes.contains(&INSTRUCTION)
}

/// Bytes of tiles in `f32`, as `AttendTile` of the header lays them out.
fn shared_by_threads(rows: i64, width: i64, columns: i64) -> i64 {
    let depth = (width + 3) / 4 * 4;
    let pitch = ((depth / 4) | 1) * 4;
    let bytes = |right: i64| 4 * (rows * (depth + KEYS) + KEYS * right);
    let apart = bytes(pitch + columns);
    if apart <= APART { apart } else { bytes(pitch.max(columns)) }
}
