//! Convolutions of few channels a group on GPUs, as `gpu/windows.h` computes them: which there are, how they are laid over
//! blocks, what they cost.

use super::{Code, OnGpus, Site, as_they_are, no_scratch};
use crate::constants;
use crate::cost::{Cost, WorkKind};
use crate::dtype::DType;
use crate::graph::{self, TensorType};
use crate::kernels::gemm::tiles::plain;
use crate::kernels::launch::{Launch, MAX_BLOCKS};
use crate::kernels::mapping::{IndexWidth, MathPath, Tile};
use crate::kernels::{self, Algorithm};
use crate::loops::{Channels, ConvShape, Convolution, Program};
use crate::symbolic::{Expr, NoRanges};

pub(crate) static WINDOWS: Algorithm = Algorithm {
    word: "conv.windows",
    version: 1,
    description: "grouped convolution with few channels per group",
    headers: |_| &[],
    code: kernels::Code::Convolution(Code {
        applies: suits,
        // Ordinary units multiply.
        cost: |site| Cost::of(WorkKind::StreamedFma, site.multiply_adds()),
        weights: as_they_are,
        scratch: no_scratch,
        processors: None,
        gpus: Some(OnGpus { tiles: |site, index, _| tiles(site.program, site.conv, index), launch }),
    }),
};

/// Whether a GPU computes a convolution so.
pub(super) fn suits(site: &Site) -> bool {
    !site.is_on_processor() && !window_blocks(site.program, site.conv).is_empty()
}

/// Channels of a group up to which this is faster than matrix units, which mostly empty tiles keep waiting.
const MOST_CHANNELS: i64 = 16;
/// Bytes of shared memory that a block may declare, less than all that there are without asking.
const SHARED_BYTES: i64 = 40 * 1024;
/// Bytes of shared memory of a tile of planes, so that a multiprocessor has several, and of the weights of a block, which are copied
/// before anything is computed.
const TILE_BYTES: i64 = 32 * 1024;
const WEIGHT_BYTES: i64 = 16 * 1024;
/// Taps of a row whose elements are in registers at a time (`kRowTaps`), and neighbouring outputs of a thread where channels are
/// first (`kRun`).
const ROW_TAPS: i64 = constants::ROW_TAPS;
const RUN: i64 = constants::RUN;
/// Numbers that a thread has in registers at most for the outputs of a row and for what they read, where channels are last.
const WINDOW: i64 = 96;
/// Taps of a row above which threads have fewer channels and more outputs, and elements from the first to the last of a row that any
/// have.
const LONG_ROW: i64 = 5;
const LONGEST_SPAN: i64 = 256;
/// Threads of a block.
const PIXEL_THREADS: i64 = 128;
const PLANE_THREADS: i64 = 128;
/// Items of a tile of planes, and as many at least where there are few tiles.
const ITEMS: i64 = 2 * PLANE_THREADS;
const LEAST_ITEMS: i64 = 32;
/// Blocks that give every multiprocessor of a large GPU some.
const ENOUGH_BLOCKS: i64 = 264;
/// Neighbouring threads whose loads make whole memory transactions, where there are as many channels.
const SIDE_BY_SIDE: i64 = 16;
/// How often a block computes outputs with the weights that it copies, at most.
const MOST_TIMES: i64 = 8;
/// Columns of a tile of planes where rows are longer, or their length is not known.
const COLUMNS: i64 = 64;
const UNKNOWN: (i64, i64) = (8, 32);

/// A convolution of few channels a group.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Windows {
    /// Input and output channels of a group.
    pub(crate) own: i64,
    pub(crate) each: i64,
    /// Taps, and how they move, along three axes.
    pub(crate) kernel: [i64; 3],
    pub(crate) stride: [i64; 3],
    pub(crate) dilation: [i64; 3],
    /// Groups.
    groups: i64,
    /// Bytes of an element, and of a sum.
    size: i64,
    sum: i64,
}

/// How a block computes one whose channels are last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PixelBlock {
    /// Channels of a thread.
    pub(crate) lanes: i64,
    /// Threads side by side.
    pub(crate) side: i64,
    /// Neighbouring outputs of a thread.
    pub(crate) outputs: i64,
}

/// How a block computes one whose channels are first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PlaneBlock {
    /// Groups of a block.
    pub(crate) groups: i64,
    /// Outputs of a tile along the last two axes.
    pub(crate) rows: i64,
    pub(crate) columns: i64,
    /// Rows and channels of a thread.
    pub(crate) own: i64,
    pub(crate) channels: i64,
}

impl Windows {
    /// A convolution as this, if it is one.
    pub(crate) fn of(conv: &graph::Conv, weight: &TensorType) -> Option<Windows> {
        let sizes: Vec<i64> = weight.shape.iter().map(Expr::as_int).collect::<Option<_>>()?;
        let [channels, own, kernel @ ..] = sizes.as_slice() else { return None };
        let (rank, groups) = (kernel.len(), conv.groups);
        let is_float = matches!(weight.dtype, DType::F16 | DType::Bf16 | DType::F32 | DType::F64);
        let fits = is_float && !conv.transposed && groups > 1 && (1..=3).contains(&rank);
        if !fits || *own < 1 || *channels < groups || kernel.iter().any(|taps| *taps < 1) {
            return None;
        }
        let lead = 3 - rank;
        let three = |list: &[i64]| std::array::from_fn(|d| if d < lead { 1 } else { list[d - lead] });
        let size = i64::try_from(weight.dtype.size()).ok()?;
        let each = channels / groups;
        let (kernel, stride, dilation) = (three(kernel), three(&conv.stride), three(&conv.dilation));
        let found = Windows { own: *own, each, kernel, stride, dilation, groups, size, sum: size.max(4) };
        (*own <= MOST_CHANNELS && each <= MOST_CHANNELS).then_some(found)
    }

    /// The same of a kernel.
    pub(crate) fn of_kernel(program: &Program, conv: &Convolution) -> Option<Windows> {
        let buffer = &program.buffers[conv.weight];
        let weight = TensorType { dtype: buffer.dtype, shape: buffer.shape.clone() };
        Windows::of(&conv.conv, &weight).filter(|_| buffer.dtype == conv.dtype)
    }

    fn taps(&self) -> Option<i64> {
        self.kernel.iter().try_fold(1i64, |taps, own| taps.checked_mul(*own))
    }

    /// Elements of a row that so many outputs read for so many taps.
    fn span(&self, outputs: i64, taps: i64) -> i64 {
        let far = |count: i64, step: i64| (count - 1).saturating_mul(step);
        far(outputs, self.stride[2]).saturating_add(far(taps, self.dilation[2])).saturating_add(1)
    }

    /// The ways to compute it with channels last, the best first; none where it cannot be.
    pub(crate) fn pixel_blocks(&self, shape: &ConvShape) -> Vec<PixelBlock> {
        let mut all = self.all_pixel_blocks();
        let is_busy = |block: &PixelBlock| {
            self.blocks_of_pixels(block, shape).is_none_or(|blocks| blocks >= ENOUGH_BLOCKS)
        };
        // Where there are few outputs, each thread has fewer.
        if let Some(first) = all.first().copied() {
            let shorter = all.iter().position(|block| block.outputs < first.outputs && is_busy(block));
            let shortest = all.iter().position(|block| block.outputs == 1);
            let best = if is_busy(&first) { None } else { shorter.or(shortest) };
            let best = all.remove(best.unwrap_or(0));
            all.insert(0, best);
        }
        all
    }

    /// Blocks that compute it so, where that is known.
    fn blocks_of_pixels(&self, block: &PixelBlock, shape: &ConvShape) -> Option<i64> {
        let runs = shape.output[2].as_int().map(|columns| (columns + block.outputs - 1) / block.outputs)?;
        let sizes = [&shape.batch, &shape.output[0], &shape.output[1]];
        let strips = sizes.into_iter().try_fold(runs, |all, size| all.checked_mul(size.as_int()?))?;
        let across = (self.groups * self.each / block.lanes + block.side - 1) / block.side;
        Some((strips / (PIXEL_THREADS / block.side)).saturating_mul(across))
    }

    fn all_pixel_blocks(&self) -> Vec<PixelBlock> {
        self.pixel_sides().map(|(lanes, side)| self.pixel_runs(lanes, side)).unwrap_or_default()
    }

    /// Channels of a thread, and threads side by side.
    fn pixel_sides(&self) -> Option<(i64, i64)> {
        let channels = self.groups * self.each;
        // Of long rows of taps, registers hold more outputs and fewer channels.
        let whole = if self.row_taps() > LONG_ROW { (16 / self.size).min(4) } else { 16 / self.size };
        let lanes = [8, 4, 2, 1].into_iter().find(|own| *own <= whole && channels % own == 0)?;
        let is_in_step =
            self.own == 1 || (self.own == self.each && (lanes % self.own == 0 || self.own % lanes == 0));
        let rows = self.taps()?.checked_mul(self.own).filter(|_| is_in_step)?;
        let vectors = channels / lanes;
        let fitting = |most: i64| -> Vec<i64> {
            let fits = |side: &i64| {
                let row = (side * lanes + 4) * self.sum;
                rows.checked_mul(row).is_some_and(|bytes| bytes <= most)
            };
            (1..=SIDE_BY_SIDE.min(vectors)).filter(fits).collect()
        };
        let fitting = [WEIGHT_BYTES, SHARED_BYTES].map(fitting).into_iter().find(|all| !all.is_empty())?;
        let most = *fitting.last()?;
        // Some threads without channels are worse than a few less side by side.
        let whole = fitting.into_iter().rev().find(|side| vectors % side == 0 && 2 * side > most);
        Some((lanes, whole.unwrap_or(most)))
    }

    /// Taps of a row whose elements are in registers at a time.
    fn row_taps(&self) -> i64 {
        self.kernel[2].min(ROW_TAPS)
    }

    /// The runs of outputs that threads can have, the best first.
    fn pixel_runs(&self, lanes: i64, side: i64) -> Vec<PixelBlock> {
        let taps = self.row_taps();
        // A window has no more elements than are read.
        let read = |outputs: i64| self.span(outputs, taps).min(outputs * taps);
        let registers = |outputs: i64| lanes * (read(outputs) + outputs) * self.sum / 4;
        let held = |outputs: &i64| {
            self.span(*outputs, taps) <= LONGEST_SPAN && (*outputs == 1 || registers(*outputs) <= WINDOW)
        };
        let most = if taps > LONG_ROW { 8 } else { 4 };
        let mut all: Vec<i64> = [8, 4, 2, 1].into_iter().filter(held).collect();
        // Runs that are longer than asked for come last.
        all.sort_by_key(|outputs| (*outputs > most, -*outputs));
        all.into_iter().map(|outputs| PixelBlock { lanes, side, outputs }).collect()
    }

    /// How often a block computes outputs with the weights that it has in shared memory.
    pub(crate) fn again(&self, block: &PixelBlock, shape: &ConvShape) -> i64 {
        let blocks = self.blocks_of_pixels(block, shape);
        // Where sizes are not known, outputs may be few.
        let enough = blocks.map_or(2, |blocks| blocks / (2 * ENOUGH_BLOCKS));
        [MOST_TIMES, 4, 2].into_iter().find(|times| *times <= enough).unwrap_or(1)
    }

    /// The ways to compute it with channels first, the best first; none where it cannot be.
    pub(crate) fn plane_blocks(&self, shape: &ConvShape) -> Vec<PlaneBlock> {
        let typical = self.plane_items(shape);
        let mut all: Vec<PlaneBlock> = vec![];
        for items in [typical, typical / 2, typical * 2] {
            let found = self.plane_block(shape, items);
            all.extend(found.filter(|block| !all.contains(block)));
        }
        all
    }

    /// Items of a tile: fewer where there are few tiles.
    fn plane_items(&self, shape: &ConvShape) -> i64 {
        let is_busy = |items: i64| {
            let block = self.plane_block(shape, items)?;
            let [deep, high, wide] = shape.output.each_ref().map(Expr::as_int);
            let pieces = |size: i64, step: i64| (size + step - 1) / step;
            let tiles = pieces(high?, block.rows).checked_mul(pieces(wide?, block.columns))?;
            let planes = pieces(shape.batch.as_int()?.checked_mul(self.groups)?, block.groups);
            Some(tiles.checked_mul(planes)?.checked_mul(deep?)? >= ENOUGH_BLOCKS)
        };
        let mut items = ITEMS;
        while is_busy(items) == Some(false) && items > LEAST_ITEMS {
            items /= 2;
        }
        items
    }

    fn plane_block(&self, shape: &ConvShape, items: i64) -> Option<PlaneBlock> {
        if self.span(RUN, self.row_taps()) > LONGEST_SPAN {
            return None;
        }
        let [_, high, wide] = shape.output.each_ref().map(Expr::as_int);
        let channels = [4, 2, 1].into_iter().find(|own| self.each % own == 0).unwrap_or(1);
        // Rows of many taps are worth keeping for another row of outputs, and so are the weights of several channels for none.
        let own = if self.kernel[1] > 3 && channels < 4 && high.is_none_or(|high| high > 1) { 2 } else { 1 };
        let parts = self.each / channels;
        let mut columns = match wide {
            Some(wide) if wide <= COLUMNS + COLUMNS / 2 => wide.max(1),
            Some(wide) if high == Some(1) => wide.min(RUN * PLANE_THREADS),
            Some(_) => COLUMNS,
            None => UNKNOWN.1,
        };
        let runs = |columns: i64| (columns + RUN - 1) / RUN;
        let filling = (items / (runs(columns) * parts)).max(1) * own;
        let mut rows = high.map_or(UNKNOWN.0, |high| even(high.max(1), filling));
        let fits = |groups: i64, rows: i64, columns: i64, most: i64| {
            self.plane_bytes(groups, rows, columns).is_some_and(|bytes| bytes <= most)
        };
        while !fits(1, rows, columns, TILE_BYTES) && rows > own {
            rows = (rows + 1) / 2;
        }
        while !fits(1, rows, columns, TILE_BYTES) && columns > 2 * RUN {
            columns = (columns / 2 + RUN - 1) / RUN * RUN;
        }
        // Planes that are smaller than a tile share one, and so do parts of rows that have no others beside them.
        let covers = high == Some(rows) && (wide == Some(columns) || rows == 1);
        let of_group = runs(columns) * ((rows + own - 1) / own) * parts;
        let mut groups = if covers { (items / of_group).clamp(1, self.groups) } else { 1 };
        while groups > 1 && !fits(groups, rows, columns, TILE_BYTES) {
            groups /= 2;
        }
        fits(groups, rows, columns, SHARED_BYTES).then_some(PlaneBlock {
            groups,
            rows,
            columns,
            own,
            channels,
        })
    }

    /// Bytes of shared memory of a tile and its weights.
    fn plane_bytes(&self, groups: i64, rows: i64, columns: i64) -> Option<i64> {
        let far = |count: i64, step: i64| (count - 1).checked_mul(step);
        let [deep, tall, broad] = self.kernel;
        // Threads of two rows may have one that is not asked for.
        let high =
            far(rows + 1, self.stride[1])?.checked_add(far(tall, self.dilation[1])?)?.checked_add(1)?;
        let runs = (columns + RUN - 1) / RUN;
        let wide = far(runs * RUN, self.stride[2])?.checked_add(far(broad, self.dilation[2])?)?;
        // What rows begin with and end with is rounded up.
        let wide = wide.checked_add(8)?;
        let tile = high.checked_mul(wide)?.checked_mul(self.own.checked_mul(deep)?)?;
        let taps = deep.checked_mul(tall)?.checked_mul((broad.checked_add(3)?) / 4 * 4)?;
        let weights = taps.checked_mul(self.own * self.each)?;
        tile.checked_add(weights)?.checked_mul(groups.checked_mul(self.sum)?)
    }

    /// Elements of a row of an input of known length that one load brings, where all are aligned.
    pub(crate) fn load(&self, length: &Expr) -> i64 {
        let whole = |own: &i64| own * self.size <= 16 && length.as_int().is_some_and(|size| size % own == 0);
        [8, 4, 2].into_iter().find(whole).unwrap_or(1)
    }
}

/// The size of pieces, of about a size, that are about equal and make up `all`.
fn even(all: i64, wanted: i64) -> i64 {
    let pieces = (all + wanted - 1) / wanted;
    (all + pieces - 1) / pieces
}

/// Whether GPUs have a template for a convolution with groups whose channels are last.
pub(crate) fn has_window_template(conv: &graph::Conv, weight: &TensorType) -> bool {
    Windows::of(conv, weight).is_some_and(|windows| !windows.all_pixel_blocks().is_empty())
}

/// How a block computes one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WindowBlock {
    /// Channels last.
    Pixels(PixelBlock),
    /// Channels first.
    Planes(PlaneBlock),
}

impl WindowBlock {
    /// Rows and columns by which it is known.
    pub(crate) fn tile(&self) -> [i64; 2] {
        match self {
            WindowBlock::Pixels(own) => [own.outputs, own.side * own.lanes],
            WindowBlock::Planes(own) => [own.groups * own.rows, own.columns],
        }
    }

    /// Threads of a block.
    pub(crate) const fn threads(&self) -> i64 {
        match self {
            WindowBlock::Pixels(_) => PIXEL_THREADS,
            WindowBlock::Planes(_) => PLANE_THREADS,
        }
    }
}

/// The ways to compute a kernel so, the best first; none where it cannot be.
pub(crate) fn window_blocks(program: &Program, conv: &Convolution) -> Vec<WindowBlock> {
    let Some(windows) = Windows::of_kernel(program, conv) else { return vec![] };
    let shape = ConvShape::new(program, conv);
    match conv.input_channels {
        Channels::Last => windows.pixel_blocks(&shape).into_iter().map(WindowBlock::Pixels).collect(),
        Channels::First => windows.plane_blocks(&shape).into_iter().map(WindowBlock::Planes).collect(),
    }
}

/// The one by which a tile is known.
pub(crate) fn block_of_tile(program: &Program, conv: &Convolution, tile: &Tile) -> Option<WindowBlock> {
    let is_own = |block: &WindowBlock| block.tile() == [tile.rows, tile.columns];
    window_blocks(program, conv).into_iter().find(is_own)
}

/// Its tiles, by threads with windows.
fn tiles(program: &Program, conv: &Convolution, index: IndexWidth) -> Vec<Tile> {
    let blocks = window_blocks(program, conv).into_iter();
    let tile = |block: WindowBlock| {
        let [rows, columns] = block.tile();
        Tile { threads: block.threads(), ..plain(MathPath::DirectConv, rows, columns, index) }
    };
    blocks.map(tile).collect()
}

/// How one is launched.
fn launch(program: &Program, conv: &Convolution, tile: &Tile) -> Launch {
    let own = Windows::of_kernel(program, conv).zip(block_of_tile(program, conv, tile));
    let Some((windows, block)) = own else { unreachable!("a tile is one of those that there are") };
    let shape = ConvShape::new(program, conv);
    let [deep, high, wide] = &shape.output;
    let pieces = |size: &Expr, step: i64| size.ceil_div(&Expr::int(step), &NoRanges);
    let threads = block.threads();
    let units = match block {
        WindowBlock::Pixels(own) => {
            let PixelBlock { lanes, side, outputs } = own;
            let again = windows.again(&own, &shape);
            let strips = &(&(&shape.batch * deep) * high) * &pieces(wide, outputs);
            &pieces(&shape.out_channels, lanes * side) * &pieces(&strips, threads / side * again)
        }
        WindowBlock::Planes(PlaneBlock { groups, rows, columns, .. }) => {
            let tiles = &(&pieces(high, rows) * &pieces(wide, columns)) * deep;
            &tiles * &pieces(&(&shape.batch * shape.groups), groups)
        }
    };
    Launch::of(&units, 1, tile.threads, MAX_BLOCKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(dtype: DType, [channels, own, taps]: [i64; 3], groups: i64, stride: i64) -> Option<Windows> {
        let conv = graph::Conv {
            stride: vec![stride; 2],
            padding: vec![(taps / 2, taps / 2); 2],
            dilation: vec![1, 1],
            groups,
            transposed: false,
            output_padding: vec![0, 0],
        };
        Windows::of(&conv, &TensorType { dtype, shape: [channels, own, taps, taps].map(Expr::int).to_vec() })
    }

    fn shape(batch: Expr, channels: i64, size: &Expr, taps: i64) -> ConvShape {
        ConvShape {
            batch,
            in_channels: Expr::int(channels),
            out_channels: Expr::int(channels),
            groups: channels,
            input: [Expr::int(1), size.clone(), size.clone()],
            kernel: [1, taps, taps].map(Expr::int),
            stride: [1; 3],
            dilation: [1; 3],
            padding: [0, taps / 2, taps / 2],
            output: [Expr::int(1), size.clone(), size.clone()],
        }
    }

    #[test]
    fn groups_of_few_channels_have_windows() {
        let is_one = |channels, own, groups| windows(DType::Bf16, [channels, own, 3], groups, 1).is_some();
        assert!(is_one(64, 1, 64) && is_one(64, 1, 32) && is_one(128, 4, 32) && is_one(256, 16, 16));
        assert!(!is_one(64, 64, 1) && !is_one(256, 32, 8), "matrix units multiply those");
        assert_eq!(windows(DType::I32, [64, 1, 3], 64, 1), None);
    }

    #[test]
    fn a_thread_has_as_many_channels_as_one_load_brings_and_registers_hold() {
        let first = |dtype, channels, own, taps, stride| {
            let windows =
                windows(dtype, [channels, own, taps], channels / own, stride).expect("few channels");
            let all = windows.pixel_blocks(&shape(Expr::int(32), channels, &Expr::int(56), taps));
            all.first().map(|block| (block.lanes, block.side, block.outputs))
        };
        assert_eq!(first(DType::Bf16, 144, 1, 3, 1), Some((8, 9, 4)));
        assert_eq!(first(DType::Bf16, 144, 1, 3, 2).map(|own| own.2), Some(2), "windows are longer");
        assert_eq!(first(DType::F32, 144, 1, 3, 1).map(|own| own.0), Some(4));
        assert_eq!(first(DType::F16, 96, 1, 7, 1).map(|own| (own.0, own.2)), Some((4, 8)));
        assert_eq!(first(DType::F16, 33, 1, 3, 1).map(|own| own.0), Some(1), "no two pixels begin alike");
        assert_eq!(first(DType::F16, 36, 3, 3, 1), None, "groups do not divide loads");
        assert_eq!(first(DType::F16, 64, 1, 64, 1), None, "there is no room for the weights");
    }

    #[test]
    fn tiles_of_planes_fit_shared_memory_and_make_enough_blocks() {
        for (own, taps, size) in [(1, 3, 56), (1, 7, 7), (1, 31, 64), (16, 3, 14), (8, 5, 200)] {
            let windows = windows(DType::F32, [64, own, taps], 64 / own, 1).expect("few channels");
            let blocks = windows.plane_blocks(&shape(Expr::int(8), 64, &Expr::int(size), taps));
            assert!(!blocks.is_empty(), "{own} {taps} {size}");
            for PlaneBlock { groups, rows, columns, .. } in blocks {
                let bytes = windows.plane_bytes(groups, rows, columns);
                assert!(bytes.is_some_and(|bytes| bytes <= SHARED_BYTES), "{own} {taps} {size}: {bytes:?}");
            }
        }
        let windows = windows(DType::Bf16, [576, 1, 3], 576, 1).expect("few channels");
        let groups = |batch| windows.plane_blocks(&shape(Expr::int(batch), 576, &Expr::int(14), 3))[0].groups;
        assert!(groups(32) > groups(1), "few planes are shared out among more blocks");
        let size = Expr::sym(crate::symbolic::Symbol::size(0));
        let unknown = windows.plane_blocks(&shape(Expr::int(1), 576, &size, 3))[0];
        assert_eq!((unknown.groups, unknown.rows, unknown.columns), (1, UNKNOWN.0, UNKNOWN.1));
    }
}
