//! How the positions of a kernel are laid over a machine: the types. `mapped.rs` decides them.

pub use super::gemm::math_path::MathPath;
use crate::constants;
use crate::dtype::DType;
use crate::loops::{Access, Axis, BufferId, Nest, Program, Stage};
use crate::symbolic::{Expr, NoRanges};
use std::collections::BTreeSet;

/// How the positions of a kernel are laid over a machine.
#[derive(Clone, PartialEq, Debug)]
pub enum Mapping {
    /// Over threads and vector lanes.
    Cpu(CpuMapping),
    /// Over blocks of threads.
    Gpu(GpuMapping),
}

/// Over threads and vector lanes.
#[derive(Clone, PartialEq, Debug)]
pub struct CpuMapping {
    /// What is a unit of work, to be given to a thread.
    pub split: Split,
    /// What runs along the lanes of a vector.
    pub lanes: Lanes,
    /// How many units are worth a thread.
    pub grain: Grain,
    /// What the template computes at a time.
    pub block: Block,
    /// How many rows of a row epilogue are worth a thread, where rows are not finished by the threads that compute them.
    pub rows: Option<Grain>,
}

/// What a contraction's template for CPUs computes at a time, where it can be told.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Block {
    /// What suits most sizes.
    #[default]
    Typical,
    /// Register tiles of a matrix product have at most so many rows.
    Rows(i64),
    /// A convolution goes over its weights once, and over the pixels again for each block of them.
    WeightsOnce,
    /// A convolution goes over its pixels once, and over the weights again for each block of them.
    PixelsOnce,
}

/// The units of work of a kernel on CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Split {
    /// One thread does everything, in order.
    Serial,
    /// The positions of this many leading axes.
    Axes(usize),
    /// So many elements of the axis along the lanes, which is the only one; or the only one whose positions need no order, and
    /// each part runs all positions of the others.
    Chunks(i64),
    /// Of a matrix product: blocks of rows where there are at least so many rows, else panels of columns.
    RowsFrom(i64),
    /// Blocks that the template lays out itself.
    Template,
}

/// What runs along the lanes of a vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lanes {
    /// Nothing: one lane.
    One,
    /// The last axis of each stage that has axes.
    Inner,
    /// The last of the kernel's own axes.
    Outer,
}

/// Units of work that are worth a thread: as many as make `enough` of work, where threads take about a microsecond to begin a
/// loop together and end it; in proportion where they take more or, but for loops over elements, less.
#[derive(Clone, PartialEq, Debug)]
pub struct Grain {
    /// Work that is worth a thread.
    pub enough: i64,
    /// Work of one unit; of the whole kernel where a template lays out the units.
    pub unit: Expr,
}

/// Over blocks of threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GpuMapping {
    /// The loops of a nest, over teams of threads.
    Teams(Teams),
    /// Tiles of a contraction, or of queries and keys.
    Tiles(Tile),
    /// The updates of a scatter, which may meet, over all threads.
    Scatter(Scattering),
    /// Rows by a template.
    Template {
        /// Threads of a block.
        threads: i64,
        /// Rows that a block works on at a time: one, all its threads together, or one each.
        rows: i64,
        /// The type of index expressions.
        index: IndexWidth,
    },
}

/// How a scatter whose updates may meet is laid over threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scattering {
    /// How updates of one destination meet.
    pub by: Meeting,
    /// Columns that a thread takes at once.
    pub lanes: i64,
    /// The type that counts updates and destinations.
    pub words: IndexWidth,
    /// The type of index expressions.
    pub index: IndexWidth,
}

/// How updates of one destination meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meeting {
    /// By atomic operations on it.
    Atomics,
    /// By atomic operations on so many sums of each block, which are added to it at the end.
    Bins(i64),
    /// By atomic operations on sums of fixed point, whose order makes no difference.
    Fixed,
    /// The same in the shared memory of a block, which has a column.
    Columns,
    /// The last one is found first.
    Last,
    /// They are side by side once each has counted those before it.
    Ranked,
    /// They are side by side once they are sorted.
    Sorted,
}

impl Scattering {
    /// Threads of a block (`kKeySorters` and `kRanked * kRankers` of `gpu/scatter.h`).
    pub const THREADS: i64 = 256;
    /// Those of a block that has all updates of a column.
    pub const COLUMN_THREADS: i64 = 1024;

    /// Threads of a block.
    pub fn threads(&self) -> i64 {
        match self.by {
            Meeting::Columns => Scattering::COLUMN_THREADS,
            Meeting::Atomics
            | Meeting::Bins(_)
            | Meeting::Fixed
            | Meeting::Last
            | Meeting::Ranked
            | Meeting::Sorted => Scattering::THREADS,
        }
    }
}

/// The part of a contraction that a block computes at a time; of attention, queries and the keys it looks at at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tile {
    /// Who multiplies.
    pub by: MathPath,
    /// Rows.
    pub rows: i64,
    /// Columns.
    pub columns: i64,
    /// Threads of a block.
    pub threads: i64,
    /// Threads of a block beside these, which only copy what the others compute with, where the code of a device has such a role; or 0.
    pub producer_threads: i64,
    /// Neighbouring blocks that share the depth of a tile, each adding up a part of it.
    pub blocks: i64,
    /// Heads of attention whose tiles are computed by turns, while their keys and values stay in the cache.
    pub heads: i64,
    /// Bytes of shared memory beside what the template declares itself.
    pub shared: i64,
    /// The type of index expressions.
    pub index: IndexWidth,
}

/// A nest over teams of threads. A team of one thread does a whole position by itself; a larger one shares out the inner
/// axes of every stage, and meets where a stage reads what another wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Teams {
    /// Threads of a block that work on one position.
    pub size: i64,
    /// Neighbouring blocks that work on one position together.
    pub blocks: i64,
    /// Positions that a block works on at a time.
    pub places: i64,
    /// Whether neighbouring threads take neighbouring positions; else they are members of one team.
    pub across: bool,
    /// What runs along the lanes.
    pub along: Along,
    /// Consecutive elements that a thread takes at once.
    pub lanes: i64,
    /// An outer axis other than the last along which something is read: a block then has a tile of both axes, part of which goes
    /// through shared memory, and reads and writes whole memory transactions.
    pub turned: Option<usize>,
    /// The type of index expressions.
    pub index: IndexWidth,
    /// Where rows that live inside the nest are kept.
    pub rows: Rows,
    /// Outer axes, by position, that one thread runs in order, because effects at their positions may meet.
    pub in_order: Vec<usize>,
}

/// What runs along the lanes of one thread of a GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Along {
    /// The last outer axis: a thread computes neighbouring positions.
    Outer,
    /// The last axis of each stage that has axes.
    Inner,
}

/// The type of index expressions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexWidth {
    /// Every index and every part of one fits 32 bits.
    Narrow,
    /// 64 bits.
    Wide,
}

/// Where rows that live inside a kernel are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rows {
    /// In the shared memory of a block.
    Shared,
    /// In registers: every element is used by the thread alone that wrote it.
    Registers,
    /// In device memory, so much for each block.
    Scratch,
}

impl GpuMapping {
    /// Threads of a block.
    pub fn threads(&self) -> i64 {
        match self {
            GpuMapping::Teams(teams) => teams.threads(),
            GpuMapping::Tiles(tile) => tile.threads,
            GpuMapping::Scatter(own) => own.threads(),
            GpuMapping::Template { threads, .. } => *threads,
        }
    }

    /// The type of index expressions.
    pub fn index(&self) -> IndexWidth {
        match self {
            GpuMapping::Teams(teams) => teams.index,
            GpuMapping::Tiles(tile) => tile.index,
            GpuMapping::Scatter(own) => own.index,
            GpuMapping::Template { index, .. } => *index,
        }
    }
}

impl Teams {
    /// Threads of a block.
    pub fn threads(&self) -> i64 {
        self.size * self.places
    }

    /// Threads that work on one position, those of all its blocks.
    pub fn members(&self) -> i64 {
        self.size * self.blocks
    }

    /// Units of work, of which a block takes [`Teams::per_block`] at a time.
    pub fn units(&self, nest: &Nest) -> Expr {
        let free: Vec<&Axis> = self.free_axes(nest).collect();
        if let (Some(turned), Some(last)) = (self.turned, nest.axes.len().checked_sub(1)) {
            let tiles = nest.axes.iter().enumerate().map(|(k, axis)| match k {
                _ if k == last || k == turned => axis.extent.ceil_div(&Expr::int(Teams::TILE), &NoRanges),
                _ => axis.extent.clone(),
            });
            return Expr::product(&tiles.collect::<Vec<_>>());
        }
        match (self.along, free.split_last()) {
            (Along::Outer, Some((last, others))) => {
                let step = self.lanes * if self.across { self.places } else { 1 };
                let last = last.extent.ceil_div(&Expr::int(step), &NoRanges);
                &Expr::product(others.iter().map(|axis| &axis.extent)) * &last
            }
            (Along::Outer | Along::Inner, _) => Expr::product(free.iter().map(|axis| &axis.extent)),
        }
    }

    /// Positions of each axis in a tile of two axes.
    pub const TILE: i64 = constants::TILE_SIDE;

    /// Such tiles in shared memory at most.
    pub const STAGED: usize = 4;

    /// Units that a block takes at a time.
    pub fn per_block(&self) -> i64 {
        if self.across { 1 } else { self.places }
    }

    /// The outer axes that are shared out.
    pub fn free_axes<'a>(&'a self, nest: &'a Nest) -> impl Iterator<Item = &'a Axis> {
        nest.axes.iter().enumerate().filter(|(k, _)| !self.in_order.contains(k)).map(|(_, axis)| axis)
    }

    /// Whether several threads work on one position.
    pub fn is_shared(&self) -> bool {
        self.members() > 1
    }

    /// Whether the threads of several blocks can be one team: what they hand each other lies in no block's memory.
    pub fn can_be_of_blocks(&self, nest: &Nest, has_rows: bool) -> bool {
        self.along == Along::Inner
            && !self.across
            && self.places == 1
            && self.in_order.is_empty()
            && !nest.serial
            && (!has_rows || self.rows == Rows::Registers)
    }

    /// Whether the members of a team must meet behind a stage: it writes what another stage touches.
    pub fn meets_after(&self, program: &Program, nest: &Nest, stage: usize) -> bool {
        let is_own =
            |buffer: &BufferId| self.rows == Rows::Registers && program.buffers[*buffer].storage.is_local();
        let writes: Vec<BufferId> = nest.stages[stage].writes().filter(|buffer| !is_own(buffer)).collect();
        let others = nest.stages.iter().enumerate().filter(|(other, _)| *other != stage);
        self.is_shared()
            && others.flat_map(|(_, other)| other.accesses()).any(|access| writes.contains(&access.buffer))
    }

    /// Elements of so long a row that one thread has at most, by the number of times that it takes [`Teams::lanes`] of them.
    pub fn steps(&self, length: i64) -> i64 {
        let at_once = self.members() * self.lanes;
        (length + at_once - 1) / at_once
    }

    /// The length of the rows of a nest, where every element of them is used at its own position alone, and the loops over
    /// them are axes of that length together, one behind the other: then the member of a team that writes an element is the one
    /// that reads it.
    pub fn length_of_own_rows(program: &Program, nest: &Nest) -> Option<i64> {
        let mut lengths = BTreeSet::new();
        for stage in
            nest.stages.iter().filter(|stage| stage.accesses().any(|access| is_local(program, access)))
        {
            let own = in_order(&stage.axes)?;
            let is_own = |access: &Access| access.is_direct() && access.offset == own;
            let guarded = |stage: &Stage| {
                stage.loads().any(|(access, guards)| is_local(program, access) && !guards.is_empty())
            };
            if guarded(stage) || !stage.accesses().all(|access| !is_local(program, access) || is_own(access))
            {
                return None;
            }
            lengths.insert(Expr::product(stage.axes.iter().map(|axis| &axis.extent)).as_int()?);
        }
        let length = lengths.pop_first()?;
        (lengths.is_empty() && !nest.serial).then_some(length)
    }
}

/// The number of a position among those of axes, where there are axes.
fn in_order(axes: &[Axis]) -> Option<Expr> {
    let number = |number: Expr, axis: &Axis| &(&number * &axis.extent) + &Expr::sym(axis.symbol);
    (!axes.is_empty()).then(|| axes.iter().fold(Expr::int(0), number))
}

/// Whether what is accessed lives inside the kernel.
pub fn is_local(program: &Program, access: &Access) -> bool {
    program.buffers[access.buffer].storage.is_local()
}

/// Bytes of one row in shared memory or scratch, rounded up so that what follows is aligned for wide loads.
pub fn row_bytes(shape: &[Expr], dtype: DType) -> Expr {
    let bytes = &Expr::product(shape) * i64::try_from(dtype.size()).expect("sizes of elements are small");
    &bytes.ceil_div(&Expr::int(16), &NoRanges) * 16
}
