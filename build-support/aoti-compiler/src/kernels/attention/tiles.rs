//! Attention on the threads of a GPU: who multiplies, how many queries a block has, and how many of their keys it looks at
//! at a time.

use super::{Operand, sight};
use crate::constants;
use crate::kernels::Call;
use crate::kernels::launch::{Launch, MAX_BLOCKS, Trigger};
use crate::kernels::mapping::{IndexWidth, MathPath, Tile};
use crate::loops::{Attention, Program};
use crate::symbolic::{Expr, NoRanges};
use crate::target::{GpuTarget, MatrixUnits};

/// Queries that are few: all threads of a block go over their keys, and each holds a part of the mean of every one.
const FEW_QUERIES: i64 = 4;
/// Threads of a block for them: the more, the more keys are on their way.
const FEW_THREADS: i64 = 512;
/// Keys that such a block looks at at a time.
const FEW_KEYS: i64 = 128;
/// Blocks of them that keep a large GPU busy.
const FEW_BLOCKS: i64 = 160;
/// Threads of a block on matrix units for each query, whatever its warps are.
const UNITS_THREADS: i64 = 2;
/// Heads up to this width are multiplied by one instruction of a warpgroup at most.
const UNITS_WIDTH: i64 = 256;
/// Threads of the two warpgroups that compute where a third only copies, and threads of that (`kComputers` and
/// `kCopiers` of `gpu/roles.h`).
const COMPUTERS: i64 = constants::COMPUTERS;
const PRODUCER_THREADS: i64 = constants::COPIERS;
/// Columns of a block of shared memory there, which rows are rounded up to.
const UNITS_COLUMNS: i64 = 64;
/// Columns of values that are rounded up to where there is one tile of them.
const LEAST_VALUES: i64 = 32;
/// Threads of a block elsewhere.
const THREADS: i64 = 256;
/// Keys of a tile elsewhere (`kScoreKeys` of `gpu/attention.h`): one for each of the threads that share a query.
const KEYS: i64 = constants::SCORE_KEYS;
/// Bytes of a tile up to which keys and values lie apart there.
const APART: i64 = 48 * 1024;
/// Blocks from which on a large GPU is busy.
const MANY_BLOCKS: i64 = 256;
/// The part of the cache that keys and values may fill, the rest being for queries and results; a half is as good on an H200.
const CACHE_PART: i64 = 3;
/// Heads up to this width leave room in registers for more queries.
const NARROW: i64 = 128;

/// How the tiles of one attention are launched: a block for each tile of queries, or as many as share its keys.
pub(super) fn launch(own: &Attention, tile: &Tile) -> Launch {
    let [batch @ .., query, _] = own.axes.as_slice() else {
        unreachable!("attention has an axis of queries and one of columns")
    };
    let batches = Expr::product(batch.iter().map(|axis| &axis.extent));
    let tiles = query.extent.ceil_div(&Expr::int(tile.rows), &NoRanges);
    let launch = Launch::of(&(&(&batches * &tiles) * tile.blocks), 1, tile.threads, MAX_BLOCKS);
    // A few queries are a link in a chain of small kernels.
    let trigger = if tile.by == MathPath::Gemv { Trigger::AtStart } else { launch.trigger };
    Launch {
        shared: Expr::int(tile.shared),
        producer_threads: tile.producer_threads,
        cluster: tile.blocks,
        trigger,
        ..launch
    }
}

/// The code for a tile.
pub(super) struct Template {
    /// Its header.
    pub(super) header: &'static str,
    function: &'static str,
    /// Its template arguments before the sizes of heads.
    parameters: [i64; 2],
}

/// The code for a tile, by who multiplies.
pub(super) fn template(tile: &Tile) -> Template {
    match tile.by {
        MathPath::Gemv | MathPath::SkinnyTensorCore | MathPath::SkinnyGroupQuantized => Template {
            header: "gpu/attention_few.h",
            function: "attend_few",
            parameters: [tile.rows, tile.blocks],
        },
        MathPath::Simt | MathPath::DirectConv => {
            Template { header: "gpu/attention.h", function: "attend", parameters: [tile.threads, tile.rows] }
        }
        MathPath::TensorCore | MathPath::TensorCoreTf32 => Template {
            header: "gpu/attention_units.h",
            function: "attend_halves",
            parameters: [tile.rows, tile.columns],
        },
    }
}

/// The call for a tile, up to the tables of queries, keys and values.
pub(super) fn call(own: &Attention, tile: &Tile) -> Call<Operand> {
    let Template { function, parameters, .. } = template(tile);
    let columns = own.axes.last().map(|column| &column.extent);
    let heads = [Some(&own.depth), columns]
        .map(|size| size.and_then(Expr::as_int).expect("lowering makes attention of heads of known sizes"));
    let numbers = parameters.into_iter().chain(heads).map(|number| number.to_string().into());
    let role = (tile.producer_threads > 0).then_some(Operand::Name("role"));
    let place = ["shared", "row0", "m", "n"].map(Operand::Name);
    let operands = role.into_iter().chain(place).chain([Operand::Reach]);
    Call::new(function, operands).with(numbers.chain(sight(own)))
}

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
    if let Some(rows) = queries.filter(|count| (1..=FEW_QUERIES).contains(count)) {
        let keys = own.key().extent.as_int().unwrap_or(i64::MAX);
        let tile = |sharers: i64| Tile {
            by: MathPath::Gemv,
            rows,
            columns: KEYS,
            threads: FEW_THREADS,
            producer_threads: 0,
            blocks: sharers,
            heads: 1,
            shared: 0,
            index,
        };
        let sharers = sharers(blocks(rows), keys / FEW_KEYS, target);
        return if sharers == 1 { vec![tile(1)] } else { vec![tile(sharers), tile(1)] };
    }
    let widest = width.max(columns);
    let heads = heads_by_turns(program, own, width + columns, target).min(batches.max(1));
    if let Some(units) = matrix_units(program, own, target).filter(|_| widest <= UNITS_WIDTH) {
        let threads = |rows: i64| rows * UNITS_THREADS;
        let has_roles = |rows: i64| units.copies_ahead && threads(rows) == COMPUTERS;
        let tile = |(rows, keys)| Tile {
            by: MathPath::TensorCore,
            rows,
            columns: keys,
            threads: threads(rows),
            producer_threads: if has_roles(rows) { PRODUCER_THREADS } else { 0 },
            blocks: 1,
            heads,
            shared: shared_by_units((rows, keys), (width, columns), units),
            index,
        };
        let tiles = units_sizes(widest, blocks(128) >= MANY_BLOCKS).iter().copied().map(tile);
        let fitting: Vec<Tile> = tiles.filter(|tile| tile.shared <= target.max_shared_bytes).collect();
        if !fitting.is_empty() {
            return fitting;
        }
    }
    // More queries where registers hold them; first the most that keep the device busy.
    let rows: &[i64] = match (widest <= NARROW, blocks(64) >= MANY_BLOCKS, blocks(32) >= MANY_BLOCKS) {
        (true, true, _) => &[64, 32, 16],
        (true, false, true) => &[32, 16, 64],
        (true, false, false) => &[16, 32],
        (false, ..) => &[16],
    };
    let (by, threads) = (MathPath::Simt, THREADS);
    let shared = |rows: i64| shared_by_threads(rows, width, columns);
    let tile = |&rows: &i64| Tile {
        by,
        rows,
        columns: KEYS,
        threads,
        producer_threads: 0,
        blocks: 1,
        heads,
        shared: shared(rows),
        index,
    };
    rows.iter().map(tile).collect()
}

/// How many blocks share the keys of a few queries, so many of them at a time: as many as keep the device busy.
fn sharers(blocks: i64, pieces: i64, target: &GpuTarget) -> i64 {
    let fits = |sharers: &i64| {
        *sharers <= pieces
            && blocks.saturating_mul(*sharers) <= FEW_BLOCKS
            && *sharers <= target.cluster_blocks
    };
    [8, 4, 2].into_iter().find(fits).unwrap_or(1)
}

/// Heads whose tiles are computed by turns. Where later queries see more keys, those of all heads that see the most begin first,
/// so that blocks are through at about one time; but no more heads than have their keys and values in the cache together.
fn heads_by_turns(program: &Program, own: &Attention, columns: i64, target: &GpuTarget) -> i64 {
    let size =
        i64::try_from(program.buffers[own.keys.buffer].dtype.size()).expect("sizes of elements are small");
    let keys = own.reach.as_ref().and_then(|_| own.key().extent.as_int());
    let bytes = keys.and_then(|keys| keys.checked_mul(columns * size)).unwrap_or(i64::MAX);
    (target.cache_bytes / CACHE_PART / bytes.max(1)).max(1)
}

/// Queries and keys of a tile on matrix units, the first of them taken without a record. Measured on an H100: narrow heads leave
/// room for three blocks on a multiprocessor, which hide each other's softmax; wide ones want keys to be read for many queries.
fn units_sizes(widest: i64, is_busy: bool) -> &'static [(i64, i64)] {
    match (widest, is_busy) {
        (..=64, _) => &[(64, 64), (128, 128), (64, 128), (128, 64)],
        (65..=NARROW, true) => &[(128, 128), (64, 64), (128, 64)],
        (65..=NARROW, false) => &[(64, 64), (128, 128), (128, 64)],
        (_, true) => &[(128, 64), (64, 64)],
        (_, false) => &[(64, 64), (128, 64)],
    }
}

/// Bytes of a tile of queries, and of two of keys and of values each, one of which is multiplied while the other comes; of one, whose
/// sizes are powers of two, where the other is in registers (`gpu/attention_waves.h`).
fn shared_by_units((rows, keys): (i64, i64), (width, columns): (i64, i64), units: MatrixUnits) -> i64 {
    if !units.copies_ahead {
        let doubled = |size: i64, least: i64| {
            std::iter::successors(Some(least), |tile| Some(tile * 2))
                .find(|tile| *tile >= size)
                .unwrap_or(size)
        };
        return 2 * ((rows + keys) * doubled(width, UNITS_COLUMNS) + keys * doubled(columns, LEAST_VALUES));
    }
    let [width, columns] =
        [width, columns].map(|size| (size + UNITS_COLUMNS - 1) / UNITS_COLUMNS * UNITS_COLUMNS);
    2 * (rows * width + 2 * keys * (width + columns))
}

/// The matrix units of the target, where they multiply the operands as they are, and the weights as the program rounds them.
fn matrix_units(program: &Program, own: &Attention, target: &GpuTarget) -> Option<MatrixUnits> {
    let operands = [&own.queries, &own.keys, &own.values];
    let is_of_halves = own.dtype.is_half()
        && operands.iter().all(|operand| program.buffers[operand.buffer].dtype == own.dtype);
    target.matrix_units.filter(|_| is_of_halves)
}

/// Bytes of tiles in `f32`, as `AttendTile` of the header lays them out.
fn shared_by_threads(rows: i64, width: i64, columns: i64) -> i64 {
    let depth = (width + 3) / 4 * 4;
    let pitch = ((depth / 4) | 1) * 4;
    let bytes = |right: i64| 4 * (rows * (depth + KEYS) + KEYS * right);
    let apart = bytes(pitch + columns);
    if apart <= APART { apart } else { bytes(pitch.max(columns)) }
}
