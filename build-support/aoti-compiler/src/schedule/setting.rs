//! What distinguishes the ways of a kernel from each other: the template and its parameters, without what follows from
//! them; and of two kernels whether they are one. A record of a measurement holds one as text (`text/setting.rs`).

use super::fusion_choice::FusionChoice;
use super::row_cache::RowCaching;
use crate::kernels::mapping::{
    Block, GpuMapping, Lanes, Mapping, MathPath, Meeting, Rows, Split, Teams, Tile,
};
use crate::kernels::{Algorithm, Selection};
use crate::loops::Channels;
use crate::tuning::Config;
use std::fmt;

/// What a record decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setting {
    /// How a kernel is run.
    Kernel {
        /// The code that computes it.
        algorithm: &'static Algorithm,
        /// How it is laid over the machine.
        layout: Layout,
    },
    /// Whether two kernels are one.
    Pair(FusionChoice),
    /// Whether a kernel keeps the rows that several of its stages read.
    RowCaching(RowCaching),
    /// Into how many parts a long sum is split.
    Parts(i64),
    /// Where the values of a part of a network have their channels.
    Channels(Channels),
}

/// When something is decided: there are other questions later where something has another answer earlier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TuningStage {
    /// Before there are kernels.
    Graph,
    /// Which kernels there are, and what each reads and writes.
    Fusion,
    /// How a kernel runs.
    Kernel,
}

/// The open parts of a mapping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Over threads and vector lanes.
    Cpu {
        /// What is a unit of work.
        split: Split,
        /// What runs along the lanes.
        lanes: Lanes,
        /// Work that is worth a thread.
        enough: i64,
        /// What the template computes at a time.
        block: Block,
    },
    /// A tile for a block of threads.
    Tile {
        /// Who multiplies.
        by: MathPath,
        /// Rows.
        rows: i64,
        /// Columns.
        columns: i64,
        /// Threads of a block.
        threads: i64,
        /// Blocks that share the depth of a tile.
        blocks: i64,
    },
    /// Teams of the threads of a block.
    Teams {
        /// Threads of a block that work on one position.
        size: i64,
        /// Blocks that work on one position together.
        blocks: i64,
        /// Where rows are kept.
        rows: Rows,
    },
    /// The updates of a scatter, over all threads.
    Scatter(Meeting),
    /// There is no other.
    Fixed,
}

impl From<Setting> for Config {
    fn from(setting: Setting) -> Config {
        Config::new(setting.to_string())
    }
}

impl Setting {
    /// What a configuration means, if anything.
    pub fn of_config(config: &Config) -> Option<Setting> {
        config.as_str().parse().ok()
    }

    /// What distinguishes a kernel that is computed and laid out so.
    pub fn of(choice: &Selection, mapping: &Mapping) -> Setting {
        let layout = match mapping {
            Mapping::Cpu(own) => {
                let (split, lanes, enough, block) = (own.split, own.lanes, own.grain.enough, own.block);
                Layout::Cpu { split, lanes, enough, block }
            }
            Mapping::Gpu(GpuMapping::Tiles(Tile { by, rows, columns, threads, blocks, .. })) => {
                Layout::Tile { by: *by, rows: *rows, columns: *columns, threads: *threads, blocks: *blocks }
            }
            Mapping::Gpu(GpuMapping::Teams(Teams { size, blocks, rows, .. })) => {
                Layout::Teams { size: *size, blocks: *blocks, rows: *rows }
            }
            Mapping::Gpu(GpuMapping::Scatter(own)) => Layout::Scatter(own.by),
            Mapping::Gpu(GpuMapping::Template { .. }) => Layout::Fixed,
        };
        Setting::Kernel { algorithm: choice.algorithm, layout }
    }

    /// Whether it is another in all but the work that is worth a thread.
    pub fn is_but_for_grain(&self, other: &Setting) -> bool {
        let beside_grain = |own: &Setting| match own {
            Setting::Kernel { algorithm, layout: Layout::Cpu { split, lanes, enough: _, block } } => {
                Some((*algorithm, *split, *lanes, *block))
            }
            Setting::Kernel { .. }
            | Setting::Pair(_)
            | Setting::RowCaching(_)
            | Setting::Parts(_)
            | Setting::Channels(_) => None,
        };
        beside_grain(self).is_some_and(|own| beside_grain(other) == Some(own))
    }

    /// When it is decided.
    pub fn decided(&self) -> TuningStage {
        match self {
            Setting::Kernel { .. } => TuningStage::Kernel,
            Setting::Pair(_) | Setting::RowCaching(_) => TuningStage::Fusion,
            Setting::Parts(_) | Setting::Channels(_) => TuningStage::Graph,
        }
    }

    /// The version of what it names: a record of another one says nothing of this.
    pub fn version(&self) -> u32 {
        match self {
            Setting::Kernel { algorithm, .. } => algorithm.version,
            Setting::Pair(FusionChoice::Fuse | FusionChoice::Separate)
            | Setting::RowCaching(RowCaching::Cached | RowCaching::Reloaded)
            | Setting::Parts(_)
            | Setting::Channels(Channels::First | Channels::Last) => 1,
        }
    }

    /// A sentence for people.
    pub fn sentence(&self) -> String {
        match self {
            Setting::Kernel { algorithm, layout } => format!("{}{layout}", algorithm.description),
            Setting::Pair(FusionChoice::Fuse) => "one fused kernel".to_owned(),
            Setting::Pair(FusionChoice::Separate) => "two kernels".to_owned(),
            Setting::RowCaching(RowCaching::Cached) => {
                "rows that several stages read are kept in local memory".to_owned()
            }
            Setting::RowCaching(RowCaching::Reloaded) => "rows are reloaded by each stage".to_owned(),
            Setting::Channels(Channels::First) => "channels first".to_owned(),
            Setting::Channels(Channels::Last) => "channels last".to_owned(),
            Setting::Parts(1) => "one-pass reduction".to_owned(),
            Setting::Parts(parts) => format!("reduction split into {parts} parts"),
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Fixed => Ok(()),
            Layout::Scatter(by) => f.write_str(match by {
                Meeting::Atomics => ", updates by atomic operations",
                Meeting::Bins(_) => ", updates by atomic operations in shared memory",
                Meeting::Fixed => ", updates added up in fixed point",
                Meeting::Columns => ", updates added up in fixed point in shared memory",
                Meeting::Last => ", the last update of each element",
                Meeting::Ranked => ", updates by rank",
                Meeting::Sorted => ", updates sorted",
            }),
            Layout::Teams { size, blocks, rows } => {
                let rows = match rows {
                    Rows::Shared => "shared memory",
                    Rows::Registers => "registers",
                    Rows::Scratch => "device memory",
                };
                let threads = size * blocks;
                write!(f, ", {threads} threads per position, rows in {rows}")?;
                if *blocks > 1 { write!(f, ", {blocks} blocks per position") } else { Ok(()) }
            }
            Layout::Tile { by, rows, columns, threads, blocks } => {
                let by = by.row().description;
                write!(f, ", tiles of {rows} x {columns} multiplied by {by}, {threads} threads per block")?;
                if *blocks > 1 { write!(f, ", {blocks} blocks per tile") } else { Ok(()) }
            }
            Layout::Cpu { split, lanes, enough, block } => {
                match lanes {
                    Lanes::One => {}
                    Lanes::Inner => f.write_str(", vectorised over the inner axis")?,
                    Lanes::Outer => f.write_str(", vectorised over the outer axis")?,
                }
                match block {
                    Block::Typical => {}
                    Block::Rows(rows) => write!(f, ", tiles of at most {rows} rows")?,
                    Block::WeightsOnce => f.write_str(", weights read once")?,
                    Block::PixelsOnce => f.write_str(", pixels read once")?,
                }
                match split {
                    Split::Serial => return f.write_str(", on one thread"),
                    Split::Template => {}
                    Split::Axes(axes) => write!(f, ", split over {axes} axes")?,
                    Split::Chunks(elements) => write!(f, ", split into chunks of {elements}")?,
                    Split::RowsFrom(..=1) => f.write_str(", split by rows")?,
                    Split::RowsFrom(rows) if *rows > i64::from(u32::MAX) => {
                        f.write_str(", split by columns")?
                    }
                    Split::RowsFrom(rows) => {
                        write!(f, ", split by rows if there are {rows}, else by columns")?
                    }
                }
                write!(f, ", at least {enough} operations per thread")
            }
        }
    }
}
