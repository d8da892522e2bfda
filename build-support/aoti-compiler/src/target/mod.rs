//! What a model is compiled for, as tables of facts.
//!
//! Lowering, scheduling and selection take a [`Target`] and ask it; none of them matches on the name of a level or an
//! architecture. A new level or architecture is one line in [`cpu`] or [`gpu`]. How code for it is built is the
//! toolchains' business.

pub mod backend;
mod cpu;
pub mod gpu;
mod library;
pub(crate) mod templates;

pub(crate) use backend::Backend;
pub use backend::Vendor;
pub use cpu::{CpuLevel, CpuTarget};
pub use gpu::{GpuTarget, MatrixUnits, Tf32};
pub use library::MathLibrary;

use crate::cost::{CostModel, WorkKind};
use crate::dtype::DType;

/// From where on, and into how many parts, long sums with few results are split.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SplitPolicy {
    /// Elements from which on a second step costs less than it saves.
    pub elements: i64,
    /// Elements of one result from which on it is split although something else reads them as well; none where it never is.
    pub shared: Option<i64>,
    /// Elements of a part at least.
    pub part: i64,
    /// Results of the first step that keep the device busy, where neighbours in memory are added up,
    pub rows: i64,
    /// and chunks of results, where neighbours are results of their own.
    pub columns: i64,
    /// Neighbouring results that are one unit of work.
    pub chunk: i64,
    /// Results side by side up to which a unit is all of them, whose rows are read as one stretch of memory by as many threads as
    /// several units have otherwise; 0 where none is.
    pub few: i64,
    /// Parts with fewer of which a second step costs more than it saves.
    pub fewest: i64,
    /// Rows of which blocks that meet keep one together; none where they cannot.
    pub near: Option<NearPolicy>,
    /// Matrix products; none where their template splits them.
    pub products: Option<SplitKPolicy>,
}

/// Rows that are read again once they are added up: several blocks share one, keep it near, and meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NearPolicy {
    /// Blocks that share a row at most.
    pub blocks: i64,
    /// Blocks that keep the device busy.
    pub busy: i64,
    /// Rows that give enough blocks work.
    pub rows: i64,
    /// Elements that a block keeps at most.
    pub elements: i64,
}

impl NearPolicy {
    /// Blocks that share each of so many rows: as many as keep the device busy.
    pub fn blocks_of(&self, rows: i64) -> i64 {
        let mut blocks = 1;
        while blocks * 2 <= self.blocks && rows.saturating_mul(blocks * 2) <= self.busy {
            blocks *= 2;
        }
        blocks
    }

    /// Whether so many rows of such a length stay near.
    pub fn keeps(&self, rows: i64, length: i64) -> bool {
        rows >= self.rows && length <= self.elements * self.blocks_of(rows)
    }
}

/// The same of matrix products.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SplitKPolicy {
    /// Multiply-adds from which on it pays.
    pub products: i64,
    /// Multiply-adds of one result and part at least.
    pub depth: i64,
    /// Rows from which on blocks of `block` rows are units of work; with fewer, panels of `panel` columns are.
    pub many_rows: i64,
    /// Rows of a block.
    pub block: i64,
    /// Columns of a panel.
    pub panel: i64,
    /// Units that are enough without.
    pub enough: i64,
    /// Units that keep the device busy.
    pub units: i64,
}

/// Which last axes of element-wise loops are joined with those before them, so that lanes go on along these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinedAxes {
    /// Those too short for most lanes of a vector.
    Short,
    /// Those that are no multiple of so many bytes, or of so many lanes if these are fewer, in loops over at least so many
    /// positions: every other row would be out of step with wide accesses.
    Uneven {
        /// Bytes of an access that is wide enough.
        bytes: i64,
        /// Lanes that are enough.
        lanes: i64,
        /// Positions of the loops.
        positions: i64,
    },
}

/// What a model is compiled for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// One schedule for a set of CPU levels, among which the library picks when it is loaded.
    Cpu(CpuTarget),
    /// One GPU architecture.
    Gpu(GpuTarget),
}

impl Target {
    /// CPUs by the names of their levels.
    pub fn cpu<S: AsRef<str>>(levels: &[S]) -> Target {
        Target::Cpu(CpuTarget::new(levels))
    }

    /// Queries from which on attention is one kernel. Fewer do not pay for the packing of keys and values.
    pub fn attention_queries(&self) -> i64 {
        match self {
            Target::Cpu(cpu) => cpu.attention_queries,
            Target::Gpu(_) => 1,
        }
    }

    /// Whether it costs anything that counts to read or write elements across the order in which they lie.
    pub fn pays_for_turning(&self) -> bool {
        match self {
            Target::Cpu(_) => true,
            Target::Gpu(_) => false,
        }
    }

    /// Whether halves that were widened are kept in memory as they were: where reading it is all that takes time.
    pub fn keeps_halves(&self) -> bool {
        match self {
            Target::Cpu(_) => false,
            Target::Gpu(_) => true,
        }
    }

    /// What work costs.
    pub fn prices(&self) -> CostModel {
        match self {
            Target::Cpu(cpu) => cpu.prices(),
            Target::Gpu(_) => CostModel::TYPICAL,
        }
    }

    /// Bytes that temporary memory is aligned to.
    pub fn alignment(&self) -> i64 {
        match self {
            Target::Cpu(cpu) => cpu.cache_line,
            Target::Gpu(gpu) => gpu.allocation_alignment,
        }
    }

    /// Bytes of one row that a kernel may keep to itself between its stages: scratch near a core, or shared memory.
    pub fn row_bytes(&self) -> i64 {
        match self {
            Target::Cpu(cpu) => cpu.row_bytes,
            Target::Gpu(gpu) => gpu.shared_bytes,
        }
    }

    /// Operations of one expression before it is cut by a buffer: more would not stay in registers.
    pub fn inline_operations(&self) -> usize {
        match self {
            Target::Cpu(cpu) => cpu.inline_operations,
            Target::Gpu(gpu) => gpu.inline_operations,
        }
    }

    /// What it is to read an element of a program's weights, of which there are so many bytes: few stay near a core from run to run.
    pub fn weight(&self, bytes: usize) -> WorkKind {
        match self {
            Target::Cpu(cpu) => cpu.weight(bytes),
            Target::Gpu(_) => WorkKind::DramWeight,
        }
    }

    /// Elements up to which one unit of parallel work does as well as several.
    pub fn serial_elements(&self) -> i64 {
        match self {
            Target::Cpu(cpu) => cpu.thread_work,
            Target::Gpu(gpu) => gpu.block_elements,
        }
    }

    /// Units of parallel work up to which much of the machine idles.
    pub fn few_units(&self) -> i64 {
        match self {
            Target::Cpu(_) => 1,
            Target::Gpu(_) => GpuTarget::FEW_BLOCKS,
        }
    }

    /// The same of rows: where blocks meet, several share one.
    pub fn few_rows(&self) -> i64 {
        let few = self.few_units();
        match self {
            Target::Cpu(_) => few,
            Target::Gpu(gpu) => gpu.splits.near.as_ref().map_or(few, |near| few.min(near.rows - 1)),
        }
    }

    /// When long sums are split.
    pub fn splits(&self) -> SplitPolicy {
        match self {
            Target::Cpu(cpu) => cpu.splits.clone(),
            Target::Gpu(gpu) => gpu.splits.clone(),
        }
    }

    /// Rows up to which a product of such numbers takes as long as reading its right operand does, so that it is read in the type
    /// and the order that are read fastest. None where weights are packed in a form of their own.
    pub fn skinny_rows(&self, dtype: DType) -> i64 {
        match self {
            Target::Cpu(_) => 0,
            Target::Gpu(_) if dtype.is_half() => GpuTarget::SKINNY_ROWS,
            Target::Gpu(_) => GpuTarget::FEW_ROWS,
        }
    }

    /// Rows up to which such a product gains from reading numbers of a narrower type, which it widens for every row.
    pub fn widening_rows(&self, dtype: DType) -> i64 {
        match self {
            Target::Cpu(_) => 0,
            Target::Gpu(_) if dtype.is_half() => GpuTarget::SKINNY_ROWS,
            Target::Gpu(_) => 1,
        }
    }

    /// Whether weights of products of so many rows are stored otherwise than the program has them.
    pub fn stores_weights(&self, rows: Option<i64>, dtype: DType) -> bool {
        match self {
            Target::Cpu(_) => self.widens(rows, dtype, DType::I8),
            Target::Gpu(_) => self.reads_in_order(rows, dtype),
        }
    }

    /// Whether products of so many rows read their right operand in an order of their own: so do few rows, and all whose operands are
    /// brought, as the columns of such then come in the order in which threads finish them.
    pub fn reads_in_order(&self, rows: Option<i64>, dtype: DType) -> bool {
        let is_brought = matches!(self, Target::Gpu(gpu) if gpu.has_tma && dtype.is_half());
        is_brought || rows.is_some_and(|rows| (1..=self.skinny_rows(dtype)).contains(&rows))
    }

    /// Whether a product of so many rows, if that is known, reads a constant right operand in a narrower type than its own.
    pub fn widens(&self, rows: Option<i64>, wide: DType, narrow: DType) -> bool {
        match self {
            Target::Cpu(_) if narrow == DType::I8 => wide == DType::F32 || wide.is_half(),
            Target::Cpu(_) => wide == DType::F32 && (narrow.is_half() || matches!(narrow, DType::F8(_))),
            Target::Gpu(_) => {
                let is_few = rows.is_some_and(|rows| (1..=self.widening_rows(wide)).contains(&rows));
                is_few && !matches!(narrow, DType::F8(_))
            }
        }
    }

    /// Operands up to which a concatenation is read where its operands lie, by a choice for each element. Vectors would be
    /// full of choices: on processors, loops over one operand each are better.
    pub fn inline_operands(&self) -> usize {
        match self {
            Target::Cpu(_) => 0,
            Target::Gpu(gpu) => gpu.inline_operands,
        }
    }

    /// Whether a product may go on with whole rows of its results: on GPUs several blocks compute parts of a row. Libraries
    /// compute parts too, so a product that goes on with rows is left to none; a record may keep the two apart.
    pub fn finishes_rows(&self) -> bool {
        match self {
            Target::Cpu(_) => true,
            Target::Gpu(_) => false,
        }
    }

    /// Whether a run goes on where a condition of the program fails, as it does where an index does: a GPU would have to wait for it.
    pub fn notes_assertions(&self) -> bool {
        match self {
            Target::Cpu(_) => false,
            Target::Gpu(_) => true,
        }
    }

    /// Whether the axes of reductions are ordered as what they read lies in memory. Threads of GPUs share them out among themselves.
    pub fn reduces_along_memory(&self) -> bool {
        match self {
            Target::Cpu(_) => true,
            Target::Gpu(_) => false,
        }
    }

    /// Of which element-wise loops the last axis is joined with those before it, for the price of a quotient and a remainder.
    pub fn joined_axes(&self) -> JoinedAxes {
        match self {
            Target::Cpu(_) => JoinedAxes::Short,
            Target::Gpu(_) => JoinedAxes::Uneven { bytes: 8, lanes: 4, positions: GpuTarget::MANY_POSITIONS },
        }
    }

    /// Elements up to which kernels that have nothing to do with each other become one, as starting one costs more than its
    /// work.
    pub fn launch_elements(&self) -> i64 {
        match self {
            Target::Cpu(_) => 0,
            Target::Gpu(gpu) => gpu.launch_elements,
        }
    }
}
