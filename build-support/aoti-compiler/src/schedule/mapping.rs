//! How the positions of a kernel are laid over a machine: the types. `map/` decides them.

use crate::loops::BufferId;
use crate::symbolic::Expr;

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
}

/// The units of work of a kernel on CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Split {
    /// One thread does everything, in order.
    Serial,
    /// The positions of this many leading axes.
    Axes(usize),
    /// So many elements of the only axis, which is the one along the lanes.
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

/// Units of work that are worth a thread: as many as make `enough` of work.
#[derive(Clone, PartialEq, Debug)]
pub struct Grain {
    /// Work that is worth a thread.
    pub enough: i64,
    /// Work of one unit; of the whole kernel where a template lays out the units.
    pub unit: Expr,
}

impl Grain {
    /// The number of units, where the work of one is fixed.
    pub fn units(&self) -> Option<i64> {
        self.unit.as_int().map(|unit| (self.enough / unit.max(1)).max(1))
    }
}

/// Over blocks of threads.
#[derive(Clone, PartialEq, Debug)]
pub struct GpuMapping {
    /// What one block computes.
    pub block: Block,
    /// Threads of a block.
    pub threads: i64,
    /// Consecutive elements that a thread takes at once.
    pub vector: i64,
    /// Rows that a block keeps in shared memory.
    pub shared: Vec<BufferId>,
    /// Into how many parts a reduction is split, each for a block of its own; 1 is not at all.
    pub parts: i64,
    /// Bits of index arithmetic: 32 where every offset provably fits, else 64.
    pub index_bits: u32,
}

/// What one block of threads computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Block {
    /// One position of the outer axes; its threads go through the inner axes of each stage together.
    Position,
    /// As many positions of the outer axes as there are threads, one each.
    Positions,
    /// Everything, one thread, in order.
    Serial,
    /// What the template lays out itself.
    Template,
}
