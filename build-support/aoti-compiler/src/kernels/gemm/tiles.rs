//! Tiles of contractions for GPUs: how many rows and columns a block computes at a time, and who multiplies.
//!
//! A large tile reads each operand less often; a small one leaves work for every multiprocessor. The largest that still
//! gives every multiprocessor a tile is taken.

mod times;

pub(crate) use times::{is_brought_convolution, is_brought_product};

use crate::constants;
use crate::kernels::GroupTiles;
use crate::kernels::gemm::group_tiles::of_few_rows;
use crate::kernels::gemm::kind::Kind;
use crate::kernels::gemm::loads::{has_whole_rows, is_of_whole_loads};
use crate::kernels::gemm::tensor_map::ROW_BYTES;
use crate::kernels::mapping::{IndexWidth, MathPath, Tile};
use crate::loops::{Channels, ConvShape, Convolution, MatMul, Program};
use crate::symbolic::Expr;
use crate::target::GpuTarget;

/// Rows of a product that is a matter of bandwidth.
const FEW_ROWS: i64 = GpuTarget::FEW_ROWS;
/// Rows or columns that large tiles would leave mostly empty.
const NARROW: i64 = GpuTarget::SKINNY_ROWS;
/// Columns that matrix units multiply by a few rows at a time: `gpu/skinny.h`.
const FEW_COLUMNS: i64 = constants::SKINNY_COLUMNS;
/// Tiles that keep the multiprocessors of a large GPU busy.
const ENOUGH_TILES: i64 = 96;
/// Threads of a block.
const THREADS: i64 = constants::SKINNY_THREADS;
/// Shared memory that is left to what templates declare.
const KEPT_FREE: i64 = 6 * 1024;
/// Neighbouring threads that make whole memory transactions.
const SIDE_BY_SIDE: i64 = 32;

/// Tiles of halves for matrix units, the first that keeps the device busy is taken. `gpu/units.h` can do these.
const UNITS: [UnitTile; 5] = [
    UnitTile { depth: 768, ..UnitTile::of(128, 256, 256, ENOUGH_TILES) },
    UnitTile { depth: 384, ..UnitTile::of(128, 128, 256, ENOUGH_TILES) },
    UnitTile { depth: 1024, most_blocks: 2, ..UnitTile::of(128, 128, 256, ENOUGH_TILES) },
    UnitTile::of(64, 64, 128, ENOUGH_TILES),
    UnitTile { depth: 256, most_blocks: 8, ..UnitTile::of(64, 64, 128, 60) },
];
/// Large tiles of products whose operands the copy engine brings (`gpu/unit_roles.h`), by threads with roles, before the others. What
/// they gain is that the next one is on its way while one is finished; where each multiprocessor has one, the largest gains nothing.
const BROUGHT_PRODUCTS: [UnitTile; 3] = [
    UnitTile { producer_threads: PRODUCER_THREADS, least: MULTIPROCESSORS + 1, ..UNITS[0] },
    UnitTile { producer_threads: PRODUCER_THREADS, least: 1, ..UNITS[1] },
    UnitTile { producer_threads: PRODUCER_THREADS, depth: 128, ..UnitTile::of(128, 64, 256, 1) },
];
/// Multiprocessors of an H100.
const MULTIPROCESSORS: i64 = GpuTarget::MULTIPROCESSORS;
/// Pieces of the depth that a block has at least where several share a tile.
const SHARED_PIECES: i64 = 3;
/// The same of `f32` that is rounded, and of convolutions: others multiply and gather them at less than half the speed, so that
/// fewer tiles are enough, measured on an H100.
const BROUGHT: [UnitTile; 3] = [
    UnitTile { producer_threads: PRODUCER_THREADS, ..UNITS[0] },
    UnitTile { producer_threads: PRODUCER_THREADS, least: 1, ..UNITS[1] },
    UnitTile { producer_threads: PRODUCER_THREADS, depth: 128, ..UnitTile::of(128, 64, 256, 1) },
];
/// Threads beside those that multiply, of which one has tiles brought (`kCopiers` of `gpu/roles.h`).
const PRODUCER_THREADS: i64 = constants::COPIERS;
/// Columns that a warp finishes at a time there (`kSpan`), and bytes of shared memory by way of which eight warps do, 16 rows each.
const SPAN: i64 = constants::SPAN;
const SPANS: i64 = 8 * 16 * (SPAN + RESULT_PAD) * 4;
/// Tiles of `f32` for matrix units, as `gpu/split_sums.h` has them and, where the units multiply it as it is, `gpu/wave_sums.h`. Where
/// they are fewer, the smaller ones of ordinary units end earlier, measured on an H100; so do more threads where a multiprocessor has one
/// block. 64 by 64 stands twice: as many blocks as give a hundred are asked for first, and sixty are taken where the sums are too short
/// to be shared by so many.
const WHOLE_UNITS: [UnitTile; 7] = [
    UnitTile::of(128, 128, 256, ENOUGH_TILES),
    UnitTile::of(64, 64, 128, 264),
    UnitTile { depth: 64, most_blocks: 8, ..UnitTile::of(64, 64, 256, 100) },
    UnitTile { depth: 64, most_blocks: 8, ..UnitTile::of(64, 64, 256, 60) },
    UnitTile::of(32, 32, 256, 140),
    UnitTile::of(32, 32, 512, 90),
    UnitTile { depth: 64, most_blocks: 8, ..UnitTile::of(32, 32, 256, 60) },
];
/// Sums from which on matrix units are worth it for a few columns: two pieces of halves.
const LONG_SUM: i64 = 128;
/// Of a tile of ordinary units that blocks share, the sums of each.
const PLAIN_DEPTH: i64 = 128;
/// The tile of matrix units where sizes are not known, by its number among those for its kind of numbers.
const TYPICAL_UNITS: usize = 1;
/// Bytes of a piece along the depth, and pieces in the ring of `gpu/unit_fill.h` (`kRing`).
const UNIT_BYTES: i64 = ROW_BYTES;
const RING: i64 = constants::PIECE_PLACES;
/// Rows and columns of `f32` up to which slices of a block share the depth of a longer piece.
const SLICED: i64 = 64;
/// Threads with roles have as many places.
const _: () = assert!(constants::RING == constants::PIECE_PLACES);
/// Bytes of results that are in shared memory at a time where a piece of the operands is (`gpu/staged_fill.h`).
const RESULT_BYTES: i64 = constants::RESULT_BYTES;
/// Floats between rows of results there, beside the columns (`kResultPad`).
const RESULT_PAD: i64 = constants::RESULT_PAD;
/// Rows and columns of tiles for ordinary units, the largest first. `gpu/contract.h` can do these.
const PLAIN: [(i64, i64); 4] = [(128, 128), (64, 64), (32, 32), (16, 32)];
/// The tile of ordinary units where sizes are not known.
const TYPICAL_PLAIN: (i64, i64) = (64, 64);

/// A tile for matrix units.
#[derive(Clone, Copy)]
struct UnitTile {
    rows: i64,
    columns: i64,
    threads: i64,
    /// The least length of the sums of a block: they hide how long a large tile takes to begin and to end, and how long blocks
    /// that share one wait for each other.
    depth: i64,
    /// The number of blocks from which on it is taken.
    least: i64,
    /// Blocks that may share a tile at most.
    most_blocks: i64,
    /// Threads beside these that have the operands brought; or 0. So many blocks as may share a tile then do.
    producer_threads: i64,
}

impl UnitTile {
    /// One that no blocks share, whatever the length of its sums.
    const fn of(rows: i64, columns: i64, threads: i64, least: i64) -> UnitTile {
        UnitTile { rows, columns, threads, depth: 0, least, most_blocks: 1, producer_threads: 0 }
    }

    /// How many blocks share a tile: as few as make enough of them, where the sums are long enough.
    fn blocks(&self, contraction: &Contraction, target: &GpuTarget) -> i64 {
        let most = self.most_blocks.min(target.cluster_blocks);
        if self.producer_threads > 0 {
            return most;
        }
        contraction.sharers((self.rows, self.columns), self.depth, most, self.least)
    }

    /// Whether that many keep the device busy.
    fn is_busy(&self, contraction: &Contraction, target: &GpuTarget) -> bool {
        let tiles = contraction.tiles(self.rows, self.columns);
        let long = contraction.depth.as_int().is_none_or(|depth| depth >= self.depth);
        long && tiles
            .is_some_and(|tiles| tiles.saturating_mul(self.blocks(contraction, target)) >= self.least)
    }

    /// Bytes of shared memory: the pieces of both operands that sums have at a time, and later the results, of which a few rows are
    /// there at a time where so is one piece. Where there is no instruction for them the same text is multiplied by threads, whose
    /// memory it declares itself.
    fn shared(&self, contraction: &Contraction, target: &GpuTarget) -> i64 {
        let Some(units) = target.matrix_units.filter(|units| contraction.kind.is_of(*units)) else {
            return 0;
        };
        let sliced = contraction.size == 4 && self.rows + self.columns <= SLICED;
        let piece = if sliced { self.threads } else { UNIT_BYTES };
        let depth = contraction.depth.as_int();
        let most = if units.copies_ahead { RING } else { 1 };
        let pieces =
            depth.map_or(most, |depth| ((depth * contraction.size + piece - 1) / piece).clamp(1, most));
        let results = |rows: i64| rows * (self.columns + RESULT_PAD) * 4;
        let mut together = self.rows;
        while !units.copies_ahead && results(together) > RESULT_BYTES {
            together /= 2;
        }
        // The ring of threads with roles holds pieces of the next tile too.
        let roles =
            if self.producer_threads > 0 { RING * (self.rows + self.columns) * piece + SPANS } else { 0 };
        (pieces * (self.rows + self.columns) * piece).max(results(together)).max(roles)
    }

    fn fits(&self, contraction: &Contraction, target: &GpuTarget) -> bool {
        self.shared(contraction, target) + KEPT_FREE <= target.max_shared_bytes
    }

    fn on(&self, contraction: &Contraction, index: IndexWidth, target: &GpuTarget) -> Tile {
        let UnitTile { rows, columns, threads, producer_threads, .. } = *self;
        let (blocks, shared) = (self.blocks(contraction, target), self.shared(contraction, target));
        let by = match contraction.kind {
            Kind::Rounded => MathPath::TensorCoreTf32,
            Kind::Halves | Kind::Whole | Kind::Other => MathPath::TensorCore,
        };
        Tile { by, rows, columns, threads, producer_threads, blocks, heads: 1, shared, index }
    }
}

/// A contraction as tiles see it: batches of `rows` by `columns`, sums of `depth`.
struct Contraction {
    batches: Expr,
    rows: Expr,
    columns: Expr,
    depth: Expr,
    /// Bytes of an element of both operands.
    size: i64,
    /// The kind of numbers that matrix units may know.
    kind: Kind,
    /// Whether neighbouring elements of the right operand lie along the depth.
    right_by_depth: bool,
    /// Whether matrix units can multiply a few rows with weights that are read once.
    few_on_units: bool,
    /// Of a right operand that is whole numbers in groups, the tile of a few rows.
    groups: Option<Tile>,
    /// Whether elements of an operand are gathered one by one, which many small blocks hide best.
    gathers: bool,
    /// Whether the device has an engine that copies tiles of both operands.
    is_brought: bool,
    /// Whether it is a convolution.
    is_convolution: bool,
}

pub(in crate::kernels) fn of_product(
    program: &Program,
    matmul: &MatMul,
    index: IndexWidth,
    target: &GpuTarget,
) -> Vec<Tile> {
    with_groups(program, (matmul, None), index, target)
}

/// The same of a product that may have weights in groups.
pub(super) fn with_groups(
    program: &Program,
    (matmul, groups): (&MatMul, Option<&GroupTiles>),
    index: IndexWidth,
    target: &GpuTarget,
) -> Vec<Tile> {
    candidates(&contraction_of(program, (matmul, groups), target, index), index, target)
}

/// Whether a product has few rows, by code whose time is that of reading the right operand once.
pub(crate) fn streams_right(program: &Program, matmul: &MatMul, target: &GpuTarget) -> bool {
    let index = IndexWidth::Wide;
    !contraction_of(program, (matmul, None), target, index).of_few_rows(index).is_empty()
}

fn contraction_of(
    program: &Program,
    (matmul, groups): (&MatMul, Option<&GroupTiles>),
    target: &GpuTarget,
    index: IndexWidth,
) -> Contraction {
    let own = Kind::of(matmul.dtype, target.tf32.matmul);
    let kind = kind_of_product(program, matmul, target);
    let (batch, matrix) = matmul.axes.split_at(matmul.axes.len() - 2);
    Contraction {
        batches: Expr::product(batch.iter().map(|axis| &axis.extent)),
        rows: matrix[0].extent.clone(),
        columns: matrix[1].extent.clone(),
        depth: matmul.depth.clone(),
        size: matmul.dtype.size() as i64,
        kind,
        right_by_depth: matmul.right_by_depth(),
        few_on_units: target.multiplies_by_warp()
            && if groups.is_some() {
                own != Kind::Other && has_whole_rows(program, matmul)
            } else {
                own == Kind::Halves && is_of_whole_loads(program, matmul)
            },
        groups: groups.map(|groups| of_few_rows(groups, index)),
        gathers: false,
        is_brought: groups.is_none() && is_brought_product(program, matmul, target),
        is_convolution: false,
    }
}

/// In large tiles matrix units take both operands as they are in memory.
fn kind_of_product(program: &Program, matmul: &MatMul, target: &GpuTarget) -> Kind {
    if matmul.widens(program) { Kind::Other } else { Kind::of(matmul.dtype, target.tf32.matmul) }
}

/// Output channels of a group by pixels of all images: what lies side by side in the result are columns.
pub(in crate::kernels) fn of_convolution(
    program: &Program,
    conv: &Convolution,
    index: IndexWidth,
    target: &GpuTarget,
) -> Vec<Tile> {
    let shape = ConvShape::new(program, conv);
    let groups = Expr::int(conv.conv.groups);
    let pixels = &conv.image().extent * &Expr::product(conv.spatial().iter().map(|axis| &axis.extent));
    let channels = conv.channel().extent.floor_div(&groups);
    let (rows, columns) = match conv.output_channels {
        Channels::First => (channels, pixels),
        Channels::Last => (pixels, channels),
    };
    let side_by_side = Expr::int(16 / conv.dtype.size() as i64);
    let contraction = Contraction {
        rows,
        columns,
        depth: &shape.taps() * &shape.in_channels.floor_div(&groups),
        batches: groups,
        size: conv.dtype.size() as i64,
        kind: Kind::of(conv.dtype, target.tf32.conv),
        right_by_depth: conv.depth_is_by_tap(),
        few_on_units: false,
        groups: None,
        gathers: !(conv.depth_is_by_tap() && shape.in_channels.modulo(&side_by_side).is(0)),
        is_brought: is_brought_convolution(program, conv, target),
        is_convolution: true,
    };
    candidates(&contraction, index, target)
}

/// The tiles that a contraction can have; the first is taken without a record, the others are of its kind.
fn candidates(contraction: &Contraction, index: IndexWidth, target: &GpuTarget) -> Vec<Tile> {
    let typical = choose(contraction, index, target);
    let units = || {
        let fitting = contraction.units(target).into_iter().filter(|tile| tile.fits(contraction, target));
        fitting.map(|tile| tile.on(contraction, index, target))
    };
    let plain = || {
        let tile = |(rows, columns)| contraction.by_threads(rows, columns, index, target);
        contraction.plain_tiles().map(tile)
    };
    let others: Vec<Tile> = match (typical.by, contraction.kind) {
        (MathPath::Simt, _) if !PLAIN.contains(&(typical.rows, typical.columns)) => vec![],
        (MathPath::Gemv | MathPath::SkinnyTensorCore | MathPath::SkinnyGroupQuantized, _) => {
            contraction.of_few_rows(index)
        }
        (_, Kind::Whole | Kind::Rounded | Kind::Other) => units().chain(plain()).collect(),
        (MathPath::Simt, Kind::Halves) => plain().collect(),
        (MathPath::TensorCore, Kind::Halves) if !contraction.gathers => units().collect(),
        (MathPath::TensorCore | MathPath::TensorCoreTf32, Kind::Halves) | (MathPath::DirectConv, _) => vec![],
    };
    let mut tiles = vec![typical];
    for tile in others {
        if !tiles.contains(&tile) {
            tiles.push(tile);
        }
    }
    tiles
}

/// A tile of ordinary units.
pub(in crate::kernels) fn plain(by: MathPath, rows: i64, columns: i64, index: IndexWidth) -> Tile {
    Tile { by, rows, columns, threads: THREADS, producer_threads: 0, blocks: 1, heads: 1, shared: 0, index }
}

fn choose(contraction: &Contraction, index: IndexWidth, target: &GpuTarget) -> Tile {
    if let [first, ..] = contraction.of_few_rows(index).as_slice() {
        return first.clone();
    }
    match (most(&contraction.rows, NARROW), most(&contraction.columns, NARROW)) {
        (true, _) => return contraction.by_threads(NARROW, 64, index, target),
        // Matrix units that are mostly idle are faster still, where a sum is long enough to begin them for.
        (false, true) if contraction.has_long_sums_of_halves(target) => {}
        (false, true) => return contraction.by_threads(64, NARROW, index, target),
        (false, false) => {}
    }
    if let Some(found) = choose_units(contraction, target) {
        return found.on(contraction, index, target);
    }
    let (rows, columns) = match contraction.tiles(1, 1) {
        None => TYPICAL_PLAIN,
        Some(_) => contraction
            .plain_tiles()
            .find(|(rows, columns)| contraction.tiles(*rows, *columns) >= Some(ENOUGH_TILES))
            .unwrap_or(PLAIN[PLAIN.len() - 1]),
    };
    contraction.by_threads(rows, columns, index, target)
}

/// The tile of matrix units that is best without a measurement; none where ordinary units are.
fn choose_units(contraction: &Contraction, target: &GpuTarget) -> Option<UnitTile> {
    let tiles = contraction.units(target);
    let fits = |tile: &&UnitTile| tile.fits(contraction, target);
    // Halves that nothing else multiplies as fast are left to the smallest tile.
    let smallest = (contraction.kind == Kind::Halves).then(|| tiles.last()).flatten();
    let found = if contraction.gathers {
        None
    } else if contraction.tiles(1, 1).is_none() {
        tiles.iter().skip(TYPICAL_UNITS).find(fits)
    } else {
        let busy = || tiles.iter().filter(fits).filter(|tile| tile.is_busy(contraction, target));
        let all = busy().chain(smallest).filter(|tile| contraction.is_brought && tile.times().is_some());
        all.min_by_key(|tile| tile.time(contraction, target)).or_else(|| busy().next())
    };
    found.or(smallest).copied()
}

/// Whether a size is known not to be more.
fn most(size: &Expr, limit: i64) -> bool {
    size.as_int().is_some_and(|size| size <= limit)
}

impl Contraction {
    /// Whether it has sums of halves that fill a few pieces of the ring of matrix units, in whole loads.
    fn has_long_sums_of_halves(&self, target: &GpuTarget) -> bool {
        let is_long = self.depth.as_int().is_some_and(|depth| depth >= LONG_SUM);
        self.kind == Kind::Halves && is_long && !self.gathers && !self.units(target).is_empty()
    }

    /// The ways to multiply a few rows whose right operand is read once, the best first; none where there are more.
    fn of_few_rows(&self, index: IndexWidth) -> Vec<Tile> {
        let rows = if most(&self.rows, 8) { 8 } else { NARROW };
        let on_units = most(&self.rows, NARROW) && self.few_on_units;
        let units = match &self.groups {
            Some(tile) => Tile { rows, ..tile.clone() },
            None => plain(MathPath::SkinnyTensorCore, rows, FEW_COLUMNS, index),
        };
        let on_units = on_units.then_some(units);
        let columns = match (self.right_by_depth, most(&self.depth, 64)) {
            (true, _) => THREADS / SIDE_BY_SIDE,
            (false, true) => THREADS,
            (false, false) => SIDE_BY_SIDE,
        };
        let by_threads = plain(MathPath::Gemv, FEW_ROWS, columns, index);
        let by_threads = most(&self.rows, FEW_ROWS).then_some(by_threads);
        match (on_units, by_threads) {
            (Some(units), Some(threads)) if most(&self.rows, 1) && self.groups.is_none() => {
                vec![threads, units]
            }
            (units, threads) => units.into_iter().chain(threads).collect(),
        }
    }

    /// The tiles for matrix units, where a device has such as multiply these numbers; those that are brought come first.
    fn units(&self, target: &GpuTarget) -> Vec<UnitTile> {
        let Some(units) = target.matrix_units.filter(|units| self.kind.is_of(*units)) else { return vec![] };
        let plain: &[UnitTile] = match self.kind {
            Kind::Halves => &UNITS,
            Kind::Whole | Kind::Rounded => &WHOLE_UNITS,
            Kind::Other => &[],
        };
        let brought: &[UnitTile] = match self.kind {
            _ if !self.is_brought => &[],
            Kind::Halves if !self.is_convolution => &BROUGHT_PRODUCTS,
            Kind::Halves | Kind::Rounded => &BROUGHT,
            Kind::Whole | Kind::Other => &[],
        };
        let has_room = |tile: &UnitTile| tile.rows * tile.columns <= tile.threads * units.thread_sums;
        let shared = self.shared_tiles(brought, target);
        [brought, &shared, plain].concat().into_iter().filter(has_room).collect()
    }

    /// The tiles that are brought, shared by blocks that each have some pieces of the depth.
    fn shared_tiles(&self, brought: &[UnitTile], target: &GpuTarget) -> Vec<UnitTile> {
        let piece = UNIT_BYTES / self.size;
        let of = |tile: &UnitTile, blocks: i64| {
            let tiles = self.count(tile.rows, tile.columns)?;
            let is_long = self.depth.as_int()? >= blocks * SHARED_PIECES * piece;
            let is_few = tiles.saturating_mul(blocks / 2) < MULTIPROCESSORS;
            (is_long && is_few && blocks <= target.cluster_blocks).then_some(UnitTile {
                most_blocks: blocks,
                least: 1,
                depth: 0,
                ..*tile
            })
        };
        let counts = [2, 4];
        brought.iter().flat_map(|tile| counts.into_iter().filter_map(|blocks| of(tile, blocks))).collect()
    }

    /// Blocks that share each tile of such a size: the fewest, by powers of two, that give the device `least` of them, each with
    /// sums of `depth` at least. One where sizes are not known.
    fn sharers(&self, (rows, columns): (i64, i64), depth: i64, most: i64, least: i64) -> i64 {
        let (Some(tiles), Some(own)) = (self.count(rows, columns), self.depth.as_int()) else { return 1 };
        let (mut blocks, is_busy) = (1, |blocks: i64| tiles.saturating_mul(blocks) >= least);
        while !is_busy(blocks) && blocks * 2 <= most && own >= blocks * 2 * depth {
            blocks *= 2;
        }
        blocks
    }

    /// A tile of ordinary units, shared where there are few.
    fn by_threads(&self, rows: i64, columns: i64, index: IndexWidth, target: &GpuTarget) -> Tile {
        let blocks = self.sharers((rows, columns), PLAIN_DEPTH, target.cluster_blocks, ENOUGH_TILES);
        Tile { blocks, ..plain(MathPath::Simt, rows, columns, index) }
    }

    /// The tiles for ordinary units whose sums fit registers.
    fn plain_tiles(&self) -> impl Iterator<Item = (i64, i64)> {
        let is_wide = self.size == 8;
        PLAIN.into_iter().filter(move |(rows, _)| !(is_wide && *rows == 128))
    }

    /// The number of tiles, where it is known and they are not mostly empty.
    fn tiles(&self, rows: i64, columns: i64) -> Option<i64> {
        let (m, n) = (self.rows.as_int()?, self.columns.as_int()?);
        // A tile that is mostly empty counts as none.
        let is_full = rows < 2 * m.max(1) && columns < 2 * n.max(1);
        if is_full { self.count(rows, columns) } else { None }
    }

    /// The number of tiles, where it is known.
    fn count(&self, rows: i64, columns: i64) -> Option<i64> {
        let (batches, m, n) = (self.batches.as_int()?, self.rows.as_int()?, self.columns.as_int()?);
        let count = |size: i64, step: i64| size.saturating_add(step - 1) / step;
        Some(batches.saturating_mul(count(m, rows)).saturating_mul(count(n, columns)))
    }
}

#[cfg(test)]
mod tests;
