//! Memory that templates need while they run. The sizes are those of the headers, or more where levels differ.

use crate::dtype::DType;
use crate::fourier::{Fourier, Plan};
use crate::graph::Routine;
use crate::loops::{Attention, Channels, ConvShape, Kernel, Nest, Program, RowOperation, Storage};
use crate::symbolic::{Expr, NoRanges, common_divisor};
use crate::target::Target;

/// Memory of a kernel while it runs, in bytes over the size symbols.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Scratch {
    /// For all workers together.
    pub shared: Expr,
    /// For each worker.
    pub worker: Expr,
    /// For each worker of a processor that has matrix units, where the kernel uses them: no less than `worker`.
    pub units: Option<Expr>,
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch { shared: Expr::int(0), worker: Expr::int(0), units: None }
    }
}

impl Scratch {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.shared.is(0) && self.has_no_workers()
    }

    /// Whether workers need none of their own.
    pub fn has_no_workers(&self) -> bool {
        self.worker.is(0) && self.units.is_none()
    }

    /// So much for each worker.
    fn of_worker(worker: Expr) -> Scratch {
        Scratch { worker, ..Scratch::default() }
    }

    /// So much for all together.
    fn of_all(shared: Expr) -> Scratch {
        Scratch { shared, ..Scratch::default() }
    }

    /// With each size changed.
    pub(crate) fn map(&self, change: impl Fn(&Expr) -> Expr) -> Scratch {
        let Scratch { shared, worker, units } = self;
        Scratch { shared: change(shared), worker: change(worker), units: units.as_ref().map(change) }
    }
}

/// Rows of the largest register tile of any level (`kMainRows` of `gemm.h`).
pub(super) const TILE_ROWS: i64 = 14;

/// The rows of a product that never fill the largest register tile.
pub(crate) fn few_rows(rows: &Expr) -> Option<i64> {
    rows.as_int().filter(|rows| *rows < TILE_ROWS).map(|rows| rows.max(1))
}

/// The columns of a product that do not fill a panel of floats, which packs and computes only the vectors of those.
pub(crate) fn few_columns(columns: &Expr) -> Option<i64> {
    columns.as_int().filter(|columns| *columns < PANEL).map(|columns| columns.max(1))
}

/// Bytes of a row of a panel (`kPanelBytes` of `tile.h`), and the floats in it.
const PANEL_BYTES: i64 = 128;
pub(super) const PANEL: i64 = PANEL_BYTES / 4;
/// Panels that are packed together (`kGroup` of `gemm.h`).
const PANEL_GROUP: i64 = 4;
/// Bytes of the left operand that are worked on at a time (`kBlockBytes` of `gemm.h`).
const BLOCK_BYTES: i64 = 393_216;
/// Rows of it at least where the right operand is packed for each block anew (`kGeneralRows`).
const GENERAL_ROWS: i64 = 140;
/// Bytes of a cache line.
const LINE: i64 = 64;
/// Bytes of a page: what is as far apart shares a cache set.
pub(super) const PAGE: i64 = 4096;
/// Rows and depth of two tiles of matrix units (`kGemmUnitRows` and `kUnitDepth` of `gemm_units.h`).
const UNIT_ROWS: i64 = 32;
const UNIT_DEPTH: i64 = 32;
/// Rows from which on matrix units are used (`kUnitLeastRows` of `gemm_units.h`).
pub(super) const UNIT_LEAST_ROWS: i64 = 48;
/// Numbers of a block of rows whose planes are made at a time, and rows of it at least and at most (`kUnitBlock` and
/// `kUnitBlockRows`).
const UNIT_BLOCK: i64 = 196_608;
const UNIT_BLOCK_ROWS: [i64; 2] = [64, 256];
/// Bytes of the planes of a number.
const PLANE_BYTES: i64 = 6;
/// Rows and columns of the tiles of a library at most, and what their rows are multiples of (`gemm_blas.h`).
const BLAS_ROWS: i64 = 192;
const BLAS_COLUMNS: i64 = 1024;
const BLAS_STEP: i64 = 16;
/// Queries of a block of attention (`kAttentionRows` of `attention.h`).
const ATTENTION_ROWS: i64 = 28;
/// Floats of a page.
const SET_FLOATS: i64 = PAGE / 4;
/// Floats between pixels that would share a cache set otherwise (`kPixelSlack` of `pixels.h`).
const PIXEL_SLACK: i64 = 16;
/// Points of a tile, and tiles of a work unit (`kWinogradPoints` and `kWinogradTiles` of `winograd.h`).
const WINOGRAD_POINTS: i64 = 16;
const WINOGRAD_TILES: i64 = 28;
/// Floats of the pixels of a work unit (`kWinogradPlanes` of `winograd.h`).
const WINOGRAD_PLANES: i64 = 4 * PANEL * (2 * WINOGRAD_TILES + 8) + 64;
/// Floats that a channel of a padded input may have beside its planes (`conv_plan` of `conv.h`).
const CHANNEL_SLACK: i64 = 528;

fn round_up(value: &Expr, to: i64) -> Expr {
    &(value + (to - 1)).floor_div(&Expr::int(to)) * to
}

/// Bytes, aligned.
fn aligned(bytes: &Expr, target: &Target) -> Expr {
    round_up(bytes, target.alignment())
}

/// Bytes of the buffers of which a worker keeps one row, each aligned, in the order in which the kernel meets them.
pub(crate) fn all_rows_bytes(program: &Program, kernel: &Kernel, target: &Target) -> Expr {
    let rows = kernel.rows(program);
    let bytes = rows.iter().map(|id| aligned(&row_bytes(program, *id), target));
    bytes.fold(Expr::int(0), |sum, bytes| &sum + &bytes)
}

/// What a template needs behind the rows that the kernel keeps.
pub(super) fn behind_rows(own: &Scratch, program: &Program, kernel: &Kernel, target: &Target) -> Scratch {
    let rows = all_rows_bytes(program, kernel, target);
    Scratch { shared: own.shared.clone(), ..own.map(|bytes| &rows + bytes) }
}

/// Rows of buffers that live in one worker.
pub(super) fn rows_of(program: &Program, kernel: &Kernel, nest: &Nest, target: &Target) -> Scratch {
    let bytes = all_rows_bytes(program, kernel, target);
    // Without axes to split there is one worker.
    let alone = nest.serial || nest.axes.is_empty();
    if alone { Scratch::of_all(bytes) } else { Scratch::of_worker(bytes) }
}

/// Bytes of one row of a buffer that lives in a worker.
pub(crate) fn row_bytes(program: &Program, id: crate::loops::BufferId) -> Expr {
    let buffer = &program.buffers[id];
    let outer = match buffer.storage {
        Storage::Row { outer } => outer,
        Storage::Input(_)
        | Storage::Output(_)
        | Storage::State(_)
        | Storage::Constant(_)
        | Storage::Generator
        | Storage::Temporary => 0,
    };
    &Expr::product(&buffer.shape[outer..]) * i64::try_from(buffer.dtype.size()).expect("small")
}

/// Elements of one row that is sorted with their places, in two arrays that are moved into each other.
pub(super) fn sort(rows: &RowOperation, target: &Target) -> Scratch {
    Scratch::of_worker(aligned(&(&rows.length * (2 * super::sorting::item_bytes(rows.dtype))), target))
}

/// What a routine works in for one matrix.
pub(super) fn matrix(routine: Routine, rows: &RowOperation, target: &Target) -> Scratch {
    Scratch::of_worker(aligned(&matrix_bytes(routine, rows), target))
}

/// What a row of a transform is worked on in.
pub(super) fn fourier(fourier: &Fourier, rows: &RowOperation, target: &Target) -> Scratch {
    Scratch::of_worker(aligned(&fourier_bytes(&Plan::of(fourier, rows.dtype), rows), target))
}

/// Bytes that a row of a transform is worked on in.
fn fourier_bytes(plan: &Plan, rows: &RowOperation) -> Expr {
    Expr::int(plan.work() * i64::try_from(rows.dtype.size()).expect("a few bytes"))
}

/// Bytes that a routine works in, before they are aligned: the sizes are those of `linalg_*.h`.
pub(crate) fn matrix_bytes(routine: Routine, rows: &RowOperation) -> Expr {
    let (m, n) = (&rows.length, &rows.inner);
    let elements = match routine {
        Routine::Lu
        | Routine::Cholesky
        | Routine::Exchange
        | Routine::SolveLower
        | Routine::SolveUpper
        | Routine::Ldl
        | Routine::LdlSolve => Expr::int(0),
        Routine::Qr | Routine::Reflections => n.clone(),
        Routine::Eigh => n * n,
        Routine::Svd => &(m * n) + &(n * n),
        // Two complex matrices, a vector, and a real and a complex number for each rotation.
        Routine::Eig => &(&(n * n) * 4) + &(n * 5),
        // Positions, as wide as two numbers of `f32`.
        Routine::Select | Routine::Mode => n * 2,
    };
    &elements * i64::try_from(rows.dtype.size()).expect("a few bytes")
}

/// Bytes of an element.
pub(super) fn bytes(dtype: DType) -> i64 {
    i64::try_from(dtype.size()).expect("a few bytes")
}

/// A copied block of rows of the left operand, of numbers of `size` bytes.
pub(super) fn gemm_packed(m: &Expr, k: &Expr, size: i64, target: &Target) -> Scratch {
    Scratch::of_worker(aligned(&left_block(m, k, size, TILE_ROWS), target))
}

/// A copied block of rows of the left operand, and a group of packed panels of the right one.
pub(super) fn gemm_general([m, n, k]: [&Expr; 3], size: i64, target: &Target) -> Scratch {
    let columns = PANEL_BYTES / size;
    let panels = (n + (columns - 1)).floor_div(&Expr::int(columns)).minimum(&Expr::int(PANEL_GROUP));
    let bytes = &(&(&panels * k) * PANEL_BYTES) + &round_up(&left_block(m, k, size, GENERAL_ROWS), LINE);
    Scratch::of_worker(aligned(&bytes, target))
}

/// The sums of a tile that a library computes; no less than without one.
pub(super) fn gemm_library([m, n, k]: [&Expr; 3], size: i64, target: &Target) -> Scratch {
    let (rows, columns) = (m.minimum(&Expr::int(BLAS_ROWS)), n.minimum(&Expr::int(BLAS_COLUMNS)));
    let sums = &(&round_up(&rows, BLAS_STEP) * &round_up(&columns, PANEL)) * size;
    let plain = gemm_general([m, n, k], size, target).worker;
    Scratch::of_worker(aligned(&sums.maximum(&plain), target))
}

/// Rows of the left operand that share a packing of the right one.
pub(super) fn general_block_rows(k: f64, size: i64) -> f64 {
    ((BLOCK_BYTES / size) as f64 / k.max(1.0)).max(GENERAL_ROWS as f64)
}

/// Rows whose planes are made at a time.
pub(super) fn unit_block_rows(k: f64) -> f64 {
    (UNIT_BLOCK as f64 / k.max(1.0)).clamp(UNIT_BLOCK_ROWS[0] as f64, UNIT_BLOCK_ROWS[1] as f64)
}

/// Bytes of planes of rows and of a panel, of sums and those of a chain, and of rows that are copied: `unit_scratch`.
fn units(m: &Expr, k: &Expr) -> Expr {
    let most = Expr::int(UNIT_BLOCK).floor_div(&k.maximum(&Expr::int(1)));
    let most = most.maximum(&Expr::int(UNIT_BLOCK_ROWS[0])).minimum(&Expr::int(UNIT_BLOCK_ROWS[1]));
    let rows = round_up(m, UNIT_ROWS).minimum(&most);
    let depth = round_up(k, UNIT_DEPTH);
    let of_rows = &rows * &(&(&depth * (PLANE_BYTES + 4)) + 2 * 4 * PANEL);
    &of_rows + &(&depth * (PANEL * PLANE_BYTES))
}

/// The same for a packed right operand, beside what it takes without matrix units.
pub(super) fn gemm_packed_units(m: &Expr, k: &Expr, plain: Scratch, target: &Target) -> Scratch {
    on_units(plain, &units(m, k), target)
}

/// The same, and a panel of the right operand.
pub(super) fn gemm_general_units(m: &Expr, n: &Expr, k: &Expr, target: &Target) -> Scratch {
    let bytes = &units(m, k) + &(&round_up(k, UNIT_DEPTH) * (PANEL * 4));
    on_units(gemm_general([m, n, k], self::bytes(DType::F32), target), &bytes, target)
}

/// What a product takes that uses matrix units where there are some.
fn on_units(plain: Scratch, bytes: &Expr, target: &Target) -> Scratch {
    Scratch { units: Some(aligned(&bytes.maximum(&plain.worker), target)), ..plain }
}

/// Panels of keys and of values, the scores of a block of queries, and a copy of these: sizes of `attention.h`.
pub(super) fn attention(own: &Attention, target: &Target) -> Scratch {
    let (keys, depth) = (&own.key().extent, &own.depth);
    let columns = own.axes.last().map_or(Expr::int(1), |axis| axis.extent.clone());
    let panels = &(&round_up(keys, PANEL) * depth) + &(&round_up(&columns, PANEL) * keys);
    let pitch = &(&round_up(keys, 16) + 16) + &(&round_up(depth, 16) + 16);
    let floats = &(&panels + &(&pitch * ATTENTION_ROWS)) + PANEL;
    Scratch::of_worker(aligned(&(&floats * 4), target))
}

/// Bytes of a block of copied rows of numbers of `size` bytes, of `least` rows where there are as many.
fn left_block(m: &Expr, k: &Expr, size: i64, least: i64) -> Expr {
    let rows = Expr::int(BLOCK_BYTES / size).floor_div(&k.maximum(&Expr::int(1)));
    let stride = &round_up(k, LINE / size) + LINE / size;
    &(&m.minimum(&rows.maximum(&Expr::int(least))) * &stride) * size
}

/// The padded copy of the input; none where it is read in place.
pub(super) fn conv(shape: &ConvShape, target: &Target) -> Scratch {
    let in_place = shape.taps().is(1)
        && (0..3).all(|d| shape.stride[d] == 1 && shape.padding[d] == 0 && shape.output[d] == shape.input[d]);
    if in_place {
        return Scratch::default();
    }
    let mut channel = Expr::int(1);
    for d in 0..3 {
        let (stride, dilation) = (shape.stride[d].max(1), shape.dilation[d].max(1));
        let common = common_divisor(stride.unsigned_abs(), dilation.unsigned_abs()).cast_signed();
        let phases = shape.kernel[d].minimum(&Expr::int(stride / common));
        let reach = (&(&shape.kernel[d] - 1) * dilation).floor_div_in(&Expr::int(stride), &NoRanges);
        channel = &channel * &(&phases * &(&shape.output[d] + &reach));
    }
    let channel = match channel.as_int() {
        // Channels a page apart would share a cache set.
        Some(floats) if floats >= 512 && floats % 512 < 16 => &round_up(&channel, 512) + 16,
        Some(_) => channel,
        None => &channel + CHANNEL_SLACK,
    };
    let floats = &(&(&shape.batch * &shape.in_channels) * &channel) + 64;
    Scratch::of_all(aligned(&(&floats * 4), target))
}

/// Pixels that some tap reads, along each dimension.
fn reach(shape: &ConvShape) -> [Expr; 3] {
    std::array::from_fn(|d| {
        let taps = &(&shape.kernel[d] - 1) * shape.dilation[d];
        &(&(&shape.output[d] - 1) * shape.stride[d]) + &(&taps + 1)
    })
}

/// Whether pixels so far apart would share a cache set, or may.
fn shares_a_set(shape: &ConvShape) -> bool {
    let channels = shape.in_channels.as_int();
    channels.is_none_or(|channels| shape.stride[2] * channels % SET_FLOATS == 0)
}

/// Whether pixels are read where they lie.
fn pixels_in_place(shape: &ConvShape, is_last: bool) -> bool {
    let reach = reach(shape);
    let lies_inside = |d: usize| {
        let rest = (&shape.input[d] - &reach[d]).as_int();
        shape.padding[d] == 0 && rest.is_some_and(|rest| rest >= 0)
    };
    is_last && !shares_a_set(shape) && (0..3).all(lies_inside)
}

/// The padded copy of an input whose channels are last, or become last in it; none where it is read in place.
pub(super) fn conv_pixels(shape: &ConvShape, is_last: bool, target: &Target) -> Scratch {
    if pixels_in_place(shape, is_last) {
        return Scratch::default();
    }
    let pitch =
        if shares_a_set(shape) { &shape.in_channels + PIXEL_SLACK } else { shape.in_channels.clone() };
    let pixels = reach(shape).into_iter().map(|size| size.maximum(&Expr::int(0)));
    let floats = pixels.fold(&shape.batch * &pitch, |floats, size| &floats * &size);
    Scratch::of_all(aligned(&(&floats * 4), target))
}

/// Output pixels that are equally far apart in what `conv_pixels` reads, the `length` of its plan. Tiles follow from it, and
/// are right whatever it is.
pub(crate) fn pixel_line(shape: &ConvShape, channels: Channels) -> Expr {
    let in_place = pixels_in_place(shape, channels == Channels::Last);
    let [slices, rows, columns] = if in_place { shape.input.clone() } else { reach(shape) };
    let slice = &rows * &columns;
    let apart = [&slices * &slice, &slice * shape.stride[0], &columns * shape.stride[1]];
    let counts = [&shape.batch, &shape.output[0], &shape.output[1]];
    let (mut length, mut step) = (shape.output[2].clone(), Expr::int(shape.stride[2]));
    // Rows, slices and images whose pixels follow on from each other are one line.
    for (count, apart) in counts.into_iter().zip(apart).rev().filter(|(count, _)| !count.is(1)) {
        if length.is(1) {
            step = apart.clone();
        }
        if &length * &step != apart {
            break;
        }
        length = &length * count;
    }
    length
}

/// The points of a block of tiles, their products with a group of output channels, and a pixel of zeros: sizes of `winograd.h`.
/// Where channels are not last, a padded copy in which they are.
pub(super) fn conv_winograd(shape: &ConvShape, is_last: bool, target: &Target) -> Scratch {
    let whole = round_up(&shape.in_channels, 16);
    let pitch = match whole.as_int() {
        Some(floats) if floats % 256 == 0 => &whole + 16,
        Some(_) | None => whole,
    };
    let floats = &(&(&pitch + 2 * PANEL) * (WINOGRAD_POINTS * WINOGRAD_TILES)) + &(&pitch + WINOGRAD_PLANES);
    let copy = if is_last { Scratch::default() } else { conv_pixels(shape, false, target) };
    Scratch { shared: copy.shared, ..Scratch::of_worker(aligned(&(&floats * 4), target)) }
}

/// The products with every tap.
pub(super) fn conv_transposed(shape: &ConvShape, target: &Target) -> Scratch {
    let rows = &shape.out_channels * &shape.taps();
    let floats = &(&shape.batch * &rows) * &Expr::product(&shape.input);
    Scratch::of_all(aligned(&(&floats * 4), target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::headers::numbers::{number, numbers};

    #[test]
    fn lines_are_as_long_as_pixels_are_equally_far_apart() {
        let line = |sizes: [i64; 3], kernel: i64, stride: i64, padding: i64, channels: Channels| {
            let spatial = |size: i64| [1, size, size].map(Expr::int);
            let shape = ConvShape {
                batch: Expr::sym(crate::symbolic::Symbol::size(0)),
                in_channels: Expr::int(sizes[0]),
                out_channels: Expr::int(16),
                groups: 1,
                input: spatial(sizes[1]),
                kernel: spatial(kernel),
                stride: [1, stride, stride],
                dilation: [1; 3],
                padding: [0, padding, padding],
                output: spatial(sizes[2]),
            };
            let one = ConvShape { batch: Expr::int(1), ..shape.clone() };
            [pixel_line(&one, channels).as_int(), pixel_line(&shape, channels).as_int()]
        };
        assert_eq!(line([6, 14, 10], 5, 1, 0, Channels::Last), [Some(10), Some(10)], "rows lie apart");
        assert_eq!(line([6, 14, 14], 1, 1, 0, Channels::Last), [Some(196), None], "images follow on");
        assert_eq!(line([6, 14, 14], 1, 1, 0, Channels::First), [Some(196), None], "in a copy too");
        assert_eq!(line([6, 8, 8], 3, 1, 1, Channels::Last), [Some(8), Some(8)], "there is padding between");
        assert_eq!(
            line([6, 14, 7], 2, 2, 0, Channels::Last),
            [Some(7), Some(7)],
            "every second row is left out"
        );
        assert_eq!(line([6, 5, 1], 5, 1, 0, Channels::Last), [Some(1), None], "one pixel of each image");
    }

    #[test]
    fn sizes_are_those_of_the_headers() {
        assert_eq!(TILE_ROWS, number("gemm.h", "kMainRows"));
        assert_eq!(PANEL_BYTES, number("tile.h", "kPanelBytes"));
        assert_eq!(PANEL_GROUP, number("gemm.h", "kGroup"));
        assert_eq!(BLOCK_BYTES, number("gemm.h", "kBlockBytes"));
        assert_eq!(GENERAL_ROWS, number("gemm.h", "kGeneralRows"));
        assert_eq!(UNIT_ROWS, number("gemm_units.h", "kGemmUnitRows"));
        assert_eq!(UNIT_DEPTH, number("gemm_units.h", "kUnitDepth"));
        assert_eq!(UNIT_LEAST_ROWS, number("gemm_units.h", "kUnitLeastRows"));
        assert_eq!(UNIT_BLOCK, number("gemm_units.h", "kUnitBlock"));
        assert_eq!(UNIT_BLOCK_ROWS.to_vec(), numbers("gemm_units.h", "kUnitBlockRows"));
        assert_eq!(BLAS_ROWS, number("gemm_blas.h", "kBlasRows"));
        assert_eq!(BLAS_COLUMNS, number("gemm_blas.h", "kBlasColumns"));
        assert_eq!(BLAS_STEP, number("gemm_blas.h", "kBlasStep"));
        assert_eq!(ATTENTION_ROWS, number("attention.h", "kAttentionRows"));
        assert_eq!(PIXEL_SLACK, number("pixels.h", "kPixelSlack"));
        assert_eq!(WINOGRAD_POINTS, number("winograd.h", "kWinogradPoints"));
        assert_eq!(WINOGRAD_TILES, number("winograd.h", "kWinogradTiles"));
    }
}
