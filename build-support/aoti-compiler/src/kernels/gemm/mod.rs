//! Matrix products. An algorithm is a file with a row of [`ALGORITHMS`].

mod any;
mod dots;
mod general;
mod general_units;
pub(crate) mod group_tiles;
mod kind;
pub(super) mod launch;
pub(crate) mod library;
mod loads;
pub(crate) mod math_path;
mod packed;
mod packed_groups;
mod packed_narrow;
mod packed_units;
mod packed_words;
mod register_tiles;
mod stream;
pub(crate) mod tensor_map;
pub(crate) mod tiles;
mod units;

use super::launch::Launch;
use super::mapped::Mapped;
use super::mapping::{Block, IndexWidth, Tile};
use super::scratch::{PANEL, behind_rows};
use super::{
    Algorithm, Call, Candidate, Form, PackedOperand, Packing, Parameter, Scratch, Selection, kind_of_weights,
    typical,
};
use crate::constants;
use crate::cost::{Cost, WorkKind};
use crate::dtype::DType;
use crate::loops::{Kernel, MatMul, Program, Storage};
use crate::symbolic::Expr;
use crate::target::{CpuTarget, GpuTarget, MathLibrary, Target};

/// The algorithms; of those that cost the same the first is taken.
pub(super) static ALGORITHMS: &[&Algorithm] = &[
    &packed_words::PACKED_WORDS,
    &packed_groups::PACKED_GROUPS,
    &group_tiles::GROUP_TILES,
    &general::GENERAL,
    &general_units::GENERAL_ON_UNITS,
    &dots::DOTS,
    &stream::STREAM,
    &packed_narrow::PACKED_NARROW,
    &packed::PACKED,
    &packed_units::PACKED_ON_UNITS,
    &any::ANY,
    &library::CUBLASLT,
    &library::HIPBLASLT,
    &library::OPENBLAS,
    &library::ONEDNN,
];

/// What an algorithm for products does.
pub(crate) struct Code {
    /// Whether it computes this one on this target.
    pub(super) applies: fn(&Site) -> bool,
    /// What that costs.
    pub(super) cost: fn(&Site) -> Cost,
    /// The form in which it reads the right operand, where that is not the graph's.
    pub(super) weights: fn(&Site) -> Option<Form>,
    /// The memory that it needs behind the rows that a worker keeps.
    pub(super) scratch: fn(&Site) -> Scratch,
    /// How threads of a processor share it.
    pub(crate) tiling: Tiling,
    /// Whether it reads operands of other types than that which it multiplies.
    pub(super) widens: bool,
    /// The library that is asked first.
    pub(super) library: Option<MathLibrary>,
    /// Its call on processors, with register tiles as told.
    pub(super) processors: Option<fn(&MatMul, Block) -> Product>,
    /// Its part for GPUs.
    pub(super) gpus: Option<OnGpus>,
}

/// What an algorithm does on GPUs.
pub(crate) struct OnGpus {
    /// The tiles that a block of threads can have; the first is taken without a record.
    pub(super) tiles: fn(&Program, &MatMul, IndexWidth, &GpuTarget) -> Vec<Tile>,
    /// How one of them is launched.
    pub(super) launch: fn(&Program, &MatMul, &Tile) -> Launch,
}

/// Tiles of [`tiles`], by whoever multiplies them.
const BY_TILES: OnGpus = OnGpus { tiles: tiles::of_product, launch: launch::of_product };

/// What threads of a processor share of a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tiling {
    /// Register tiles of rows, or panels; how many rows tiles have at most can be told.
    Registers,
    /// Rows.
    Row,
    /// Blocks of tiles of matrix units, as the algorithm's own plan says.
    Units,
    /// Tiles that a library computes.
    Library,
}

/// The call that computes a part of a product on a processor.
pub(crate) struct Product {
    /// Whether the left operand is one of bytes that is read as words.
    pub(crate) is_of_words: bool,
    /// Whether the right operand is in panels.
    pub(crate) is_packed: bool,
    /// The call.
    pub(crate) call: Call<Operand>,
}

/// What a function for products is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operand {
    /// Something that generated code has a name for.
    Name(&'static str),
    /// The first row of a part and the row behind its last.
    Rows,
    /// The same of panels.
    Panels,
    /// The memory of the thread that runs.
    Worker,
    /// What is done to sums, and then to rows that are complete.
    Epilogue,
}

/// What functions for parts of rows and panels are given.
const PART: [Operand; 8] = [
    Operand::Rows,
    Operand::Panels,
    Operand::Name("n"),
    Operand::Name("k"),
    Operand::Name("a"),
    Operand::Name("b"),
    Operand::Worker,
    Operand::Epilogue,
];

/// Rows of the largest register tile of any level (`kMainRows` of `gemm.h`).
const TILE_ROWS: i64 = constants::MAIN_ROWS;
/// Bytes of the left operand that are worked on at a time (`kBlockBytes` of `gemm.h`).
const BLOCK_BYTES: i64 = constants::BLOCK_BYTES;
/// Products of a row that are worked on at a time (`kChain` of `tile.h`).
const CHAIN: i64 = constants::CHAIN;
/// Bytes of a cache line.
const LINE: i64 = 64;

/// A product that is to be computed, and what several algorithms ask of it.
pub(crate) struct Site<'a> {
    program: &'a Program,
    matmul: &'a MatMul,
    target: &'a Target,
    /// Rows, columns, depth.
    sizes: [&'a Expr; 3],
    /// The type that register tiles of a processor add up in; none where there are no such tiles.
    sum: Option<DType>,
}

impl<'a> Site<'a> {
    fn new(program: &'a Program, matmul: &'a MatMul, target: &'a Target) -> Site<'a> {
        let rank = matmul.axes.len();
        let sizes = [&matmul.axes[rank - 2].extent, &matmul.axes[rank - 1].extent, &matmul.depth];
        let sum = tile_sum(matmul.dtype).filter(|_| matches!(target, Target::Cpu(_)));
        Site { program, matmul, target, sizes, sum }
    }

    /// Whether a processor has register tiles for it.
    fn has_tiles(&self) -> bool {
        self.sum.is_some()
            && !packed_words::is_of_words(self)
            && !self.widens()
            && packed_groups::grouped(self).is_none()
    }

    /// Whether the right operand is of a narrower type than the product.
    fn widens(&self) -> bool {
        self.program.buffers[self.matmul.b.buffer].dtype != self.matmul.dtype
    }

    /// Whether register tiles widen the right operand as they read it.
    fn has_widening_tiles(&self) -> bool {
        let dtype = |buffer| self.program.buffers[buffer].dtype;
        let [left, right] = [dtype(self.matmul.a.buffer), dtype(self.matmul.b.buffer)];
        self.sum == Some(DType::F32)
            && left == self.matmul.dtype
            && (right == DType::I8 || (right.is_narrow() && left == DType::F32))
            && self.panels(true).is_some()
    }

    /// Whether it has, and the right operand can be packed when a model is compiled.
    fn is_packable(&self) -> bool {
        self.has_tiles() && self.panels(false).is_some()
    }

    /// Whether weights are of a half type, of which some forms are half as many bytes as others.
    fn is_of_halves(&self) -> bool {
        self.is_packable() && self.matmul.dtype.size() < self.sum_type().size()
    }

    /// The type of sums.
    fn sum_type(&self) -> DType {
        self.sum.unwrap_or(self.matmul.dtype)
    }

    /// Bytes of an element of a panel.
    fn element_bytes(&self) -> i64 {
        bytes(self.sum_type())
    }

    /// Products of all batches.
    fn multiply_adds(&self) -> f64 {
        let positions: f64 = self.matmul.axes.iter().map(|axis| typical(&axis.extent)).product();
        positions * typical(&self.matmul.depth)
    }

    fn batches(&self) -> f64 {
        self.matmul.axes[..self.matmul.axes.len() - 2].iter().map(|axis| typical(&axis.extent)).product()
    }

    /// How many floats an element of a panel counts as: prices are those of floats, and of wider numbers vectors hold fewer.
    fn floats(&self) -> f64 {
        self.sum_type().size() as f64 / DType::F32.size() as f64
    }

    /// What it takes to multiply on vectors.
    fn work(&self) -> Cost {
        Cost::of(WorkKind::VectorFma, self.multiply_adds() * self.floats())
    }

    /// Elements of the right operand.
    fn weights(&self) -> f64 {
        let [_, n, k] = self.sizes;
        typical(n) * typical(k)
    }

    /// What it takes to read this part of weights, where that depends on their form. Products of many rows hide that they are read.
    fn read(&self, part: f64) -> Cost {
        let exposed = (1.0 - typical(self.sizes[0]) / HIDING_ROWS).max(0.0);
        if self.is_of_halves() || self.has_widening_tiles() {
            Cost::of(kind_of_weights(self.program, self.target), self.weights() * part * exposed)
        } else {
            Cost::default()
        }
    }

    /// The part of the bytes of a panel of sums that the right operand's elements take as they are stored.
    fn stored_part(&self) -> f64 {
        self.program.buffers[self.matmul.b.buffer].dtype.size() as f64 / self.sum_type().size() as f64
    }

    /// What it takes to pack the right operand once in each run.
    fn packs(&self) -> Cost {
        Cost::of(WorkKind::PackElement, self.packed()).plus(&self.read(1.0))
    }

    /// Elements that are packed for all batches.
    fn packed(&self) -> f64 {
        let [_, n, k] = self.sizes;
        self.batches() * typical(n) * typical(k) * self.floats()
    }

    /// The packing of the right operand, where it can be packed, of wide or narrow elements.
    fn panels(&self, narrow: bool) -> Option<Packing> {
        panels(self.program, self.matmul, narrow)
    }

    /// What packed panels are multiplied in: nothing where rows of the left operand are read in place without loss, else a copied
    /// block of them.
    fn packed_scratch(&self) -> Scratch {
        let [m, _, k] = self.sizes;
        if packed::reads_rows_in_place(self) {
            Scratch::default()
        } else {
            packed::scratch(m, k, self.element_bytes(), self.target)
        }
    }

    /// What the cheapest algorithm that asks no library costs.
    fn cheapest(&self) -> Cost {
        let prices = self.target.prices();
        let codes = ALGORITHMS.iter().map(|algorithm| code(algorithm)).filter(|own| own.library.is_none());
        let costs = codes.filter(|own| (own.applies)(self)).map(|own| (own.cost)(self));
        costs.min_by(|a, b| prices.total(a).total_cmp(&prices.total(b))).unwrap_or_default()
    }
}

/// The packing of a constant right operand that is the same in every batch, of wide or narrow elements.
fn panels(program: &Program, matmul: &MatMul, narrow: bool) -> Option<Packing> {
    let b = &matmul.b;
    let is_constant = matches!(program.buffers[b.buffer].storage, Storage::Constant(_));
    let read_elsewhere =
        matmul.a.buffer == b.buffer || matmul.epilogue.reads().any(|buffer| buffer == b.buffer);
    if !is_constant || read_elsewhere {
        return None;
    }
    let (offset, row_stride, col_stride) = (size(&b.offset)?, size(&b.row_stride)?, size(&b.column_stride)?);
    let (k, n) = (size(&matmul.depth)?, size(&matmul.axes.last()?.extent)?);
    Some(Packing::Product { offset, row_stride, col_stride, k, n, narrow })
}

/// The ways to compute a matrix product.
pub(super) fn candidates(
    program: &Program,
    kernel: &Kernel,
    matmul: &MatMul,
    target: &Target,
) -> Vec<Candidate> {
    let site = Site::new(program, matmul, target);
    let candidate = |algorithm: &&'static Algorithm| {
        let own = code(algorithm);
        (own.applies)(&site).then(|| {
            let packed = (own.weights)(&site).map(|form| PackedOperand { buffer: matmul.b.buffer, form });
            let scratch = behind_rows(&(own.scratch)(&site), program, kernel, target);
            let choice = Selection { algorithm, packed: packed.into_iter().collect(), scratch };
            Candidate { choice, cost: (own.cost)(&site) }
        })
    };
    ALGORITHMS.iter().filter_map(candidate).collect()
}

/// What an algorithm for products does.
pub(crate) fn code(algorithm: &'static Algorithm) -> &'static Code {
    match &algorithm.code {
        super::Code::Product(code) => code,
        super::Code::Loops(_)
        | super::Code::Convolution(_)
        | super::Code::Attention(_)
        | super::Code::AxisOp(_)
        | super::Code::Extern => unreachable!("a verified choice is for kernels of its kind"),
    }
}

/// The ways to lay a product over the threads of a processor, and all its work.
pub(super) fn on_processor(
    matmul: &MatMul,
    algorithm: &'static Algorithm,
    target: &CpuTarget,
) -> (Vec<Mapped>, Expr) {
    register_tiles::map(matmul, code(algorithm), target)
}

/// The tiles of a product on a GPU.
pub(super) fn on_gpu(
    program: &Program,
    matmul: &MatMul,
    algorithm: &'static Algorithm,
    (index, target): (IndexWidth, &GpuTarget),
) -> Vec<Tile> {
    let own = code(algorithm).gpus.as_ref().expect("candidates for GPUs have tiles");
    (own.tiles)(program, matmul, index, target)
}

/// The call of a product on a processor.
pub(crate) fn product(algorithm: &'static Algorithm, matmul: &MatMul, block: Block) -> Product {
    let call = code(algorithm).processors.expect("a verified choice for a processor has a call");
    call(matmul, block)
}

/// Rows whose products take as long as weights take to come from far away.
const HIDING_ROWS: f64 = 28.0;

/// The rows of a product that never fill the largest register tile.
fn few_rows(rows: &Expr) -> Option<i64> {
    rows.as_int().filter(|rows| *rows < TILE_ROWS).map(|rows| rows.max(1))
}

/// The columns of a product that do not fill a panel of floats, which packs and computes only the vectors of those.
fn few_columns(columns: &Expr) -> Option<i64> {
    columns.as_int().filter(|columns| *columns < PANEL).map(|columns| columns.max(1))
}

/// Rows of the largest register tile, where it is not the largest that there is: tiles of more rows than there ever are need
/// no code.
pub(crate) fn most_rows(matmul: &MatMul, block: Block) -> Option<i64> {
    let few = few_rows(&matmul.axes[matmul.axes.len() - 2].extent);
    match block {
        Block::Rows(most) => Some(few.map_or(most, |few| few.min(most))),
        Block::Typical | Block::WeightsOnce | Block::PixelsOnce => few,
    }
}

/// The largest register tile as a template's argument; none for the largest that there is.
fn most_rows_parameter(matmul: &MatMul, block: Block) -> Option<Parameter> {
    most_rows(matmul, block).map(|most| most.to_string().into())
}

fn size(expr: &Expr) -> Option<usize> {
    expr.as_int().and_then(|value| usize::try_from(value).ok())
}

/// Bytes of an element.
fn bytes(dtype: DType) -> i64 {
    i64::try_from(dtype.size()).expect("a few bytes")
}

/// Rows of the left operand that are worked on at a time, of `k` numbers of `size` bytes: `least` where there are as many
/// (`gemm_block_rows` of `gemm.h`).
fn block_rows([m, k]: [&Expr; 2], size: i64, least: i64) -> Expr {
    let read = k.maximum(&Expr::int(1)).minimum(&Expr::int(CHAIN));
    m.minimum(&Expr::int(BLOCK_BYTES / size).floor_div(&read).maximum(&Expr::int(least)))
}

/// Bytes of a block of copied rows.
fn left_block(m: &Expr, k: &Expr, size: i64, least: i64) -> Expr {
    let stride = &super::scratch::round_up(k, LINE / size) + LINE / size;
    &(&block_rows([m, k], size, least) * &stride) * size
}

/// The right operand as the graph has it.
fn as_it_is(_: &Site) -> Option<Form> {
    None
}

/// The type that register tiles add products of elements of a type up in (`TileSum` of `tile.h`); none for those that have no
/// such tiles. Products of numbers of one byte are those of what they are converted to.
fn tile_sum(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F16 | DType::Bf16 | DType::F32 => Some(DType::F32),
        DType::F64 => Some(DType::F64),
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F8(_) => None,
    }
}
