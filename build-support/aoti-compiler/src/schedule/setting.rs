//! What distinguishes the ways of a kernel from each other: the template and its parameters, without what follows from
//! them; and of two kernels whether they are one. A record of a measurement holds one as text (`text/setting.rs`).

use super::hold::Held;
use super::joints::Joint;
use super::mapping::{Block, GpuMapping, Lanes, Mapping, Meeting, Multiplier, Rows, Split, Tile};
use crate::loops::Channels;
use crate::select::{Choice, Conv, Gemm, Template};
use crate::tuning::Config;
use std::fmt;

/// What a record decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setting {
    /// How a kernel is run.
    Kernel {
        /// The code that computes it.
        template: Template,
        /// How it is laid over the machine.
        layout: Layout,
    },
    /// Whether two kernels are one.
    Pair(Joint),
    /// Whether a kernel keeps the rows that several of its stages read.
    Held(Held),
    /// Into how many parts a long sum is split.
    Parts(i64),
    /// Where the values of a part of a network have their channels.
    Channels(Channels),
}

/// When something is decided: there are other questions later where something has another answer earlier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Decided {
    /// Before there are kernels.
    InGraph,
    /// Which kernels there are, and what each reads and writes.
    OfKernels,
    /// How a kernel runs.
    InKernel,
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
        by: Multiplier,
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
        /// Threads that work on one position.
        size: i64,
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
    pub fn of(choice: &Choice, mapping: &Mapping) -> Setting {
        let layout = match mapping {
            Mapping::Cpu(own) => {
                let (split, lanes, enough, block) = (own.split, own.lanes, own.grain.enough, own.block);
                Layout::Cpu { split, lanes, enough, block }
            }
            Mapping::Gpu(GpuMapping::Tiles(Tile { by, rows, columns, threads, blocks, .. })) => {
                Layout::Tile { by: *by, rows: *rows, columns: *columns, threads: *threads, blocks: *blocks }
            }
            Mapping::Gpu(GpuMapping::Teams(teams)) => Layout::Teams { size: teams.size, rows: teams.rows },
            Mapping::Gpu(GpuMapping::Scatter(own)) => Layout::Scatter(own.by),
            Mapping::Gpu(GpuMapping::Template { .. }) => Layout::Fixed,
        };
        Setting::Kernel { template: choice.template, layout }
    }

    /// Whether it is another in all but the work that is worth a thread.
    pub fn is_but_for_grain(&self, other: &Setting) -> bool {
        let beside_grain = |own: &Setting| match own {
            Setting::Kernel { template, layout: Layout::Cpu { split, lanes, enough: _, block } } => {
                Some((*template, *split, *lanes, *block))
            }
            Setting::Kernel { .. }
            | Setting::Pair(_)
            | Setting::Held(_)
            | Setting::Parts(_)
            | Setting::Channels(_) => None,
        };
        beside_grain(self).is_some_and(|own| beside_grain(other) == Some(own))
    }

    /// When it is decided.
    pub fn decided(&self) -> Decided {
        match self {
            Setting::Kernel { .. } => Decided::InKernel,
            Setting::Pair(_) | Setting::Held(_) => Decided::OfKernels,
            Setting::Parts(_) | Setting::Channels(_) => Decided::InGraph,
        }
    }

    /// The version of the template's code: a record of another one says nothing of this.
    pub fn version(&self) -> u32 {
        let template = match self {
            Setting::Kernel { template, .. } => *template,
            Setting::Pair(Joint::Fused | Joint::Apart) => return 1,
            Setting::Held(Held::Kept | Held::ReadAgain) => return 1,
            Setting::Parts(_) | Setting::Channels(Channels::First | Channels::Last) => return 1,
        };
        match template {
            Template::Loops | Template::Rows | Template::Extern => 1,
            Template::Attention => 2,
            Template::Gemm(Gemm::General) => 4,
            Template::Gemm(Gemm::Packed) => 3,
            Template::Gemm(Gemm::PackedNarrow | Gemm::PackedWords) => 1,
            Template::Gemm(Gemm::PackedOnUnits | Gemm::GeneralOnUnits) => 2,
            Template::Gemm(Gemm::Any | Gemm::Library(_)) => 1,
            Template::Conv(Conv::Product | Conv::Depthwise | Conv::Tiled | Conv::Windows | Conv::Any) => 1,
            Template::Conv(Conv::Pixels) => 5,
            Template::Conv(Conv::Winograd | Conv::DepthwisePixels) => 2,
            Template::Conv(Conv::PixelWords | Conv::Transposed | Conv::TransposedAny) => 1,
        }
    }

    /// A sentence for people.
    pub fn sentence(&self) -> String {
        let (template, layout) = match self {
            Setting::Kernel { template, layout } => (template, layout),
            Setting::Pair(Joint::Fused) => return "one fused kernel".to_owned(),
            Setting::Pair(Joint::Apart) => return "two kernels".to_owned(),
            Setting::Held(Held::Kept) => {
                return "rows that several stages read are kept in local memory".to_owned();
            }
            Setting::Held(Held::ReadAgain) => return "rows are reloaded by each stage".to_owned(),
            Setting::Channels(Channels::First) => return "channels first".to_owned(),
            Setting::Channels(Channels::Last) => return "channels last".to_owned(),
            Setting::Parts(1) => return "one-pass reduction".to_owned(),
            Setting::Parts(parts) => return format!("reduction split into {parts} parts"),
        };
        let by_library;
        let template = match template {
            Template::Loops => "plain loops",
            Template::Gemm(Gemm::Packed) => "GEMM, weights prepacked",
            Template::Gemm(Gemm::PackedNarrow) => "GEMM, narrow weights prepacked",
            Template::Gemm(Gemm::PackedWords) => "GEMM of bytes, weights prepacked in words",
            Template::Gemm(Gemm::General) => "GEMM, operands packed in each run",
            Template::Gemm(Gemm::PackedOnUnits) => "GEMM, weights prepacked, on matrix units if present",
            Template::Gemm(Gemm::GeneralOnUnits) => {
                "GEMM, operands packed in each run, on matrix units if present"
            }
            Template::Gemm(Gemm::Any) => "product row by row",
            Template::Gemm(Gemm::Library(library)) => {
                by_library = format!("GEMM by {}, and without it", library.name());
                &by_library
            }
            Template::Conv(Conv::Product) => "convolution as one GEMM",
            Template::Conv(Conv::Depthwise) => "depthwise convolution",
            Template::Conv(Conv::Tiled) => "direct convolution, tiles of pixels and channels",
            Template::Conv(Conv::Pixels) => "direct convolution, channels last",
            Template::Conv(Conv::PixelWords) => "direct convolution of bytes, channels last",
            Template::Conv(Conv::Winograd) => "Winograd convolution, tiles of 2 x 2 pixels, channels last",
            Template::Conv(Conv::DepthwisePixels) => "depthwise convolution, channels last",
            Template::Conv(Conv::Windows) => "grouped convolution with few channels per group",
            Template::Conv(Conv::Any) => "generic convolution",
            Template::Conv(Conv::Transposed) => "transposed convolution as GEMM",
            Template::Conv(Conv::TransposedAny) => "generic transposed convolution",
            Template::Attention => "attention in one kernel",
            Template::Rows => "rows one by one",
            Template::Extern => "custom operator",
        };
        format!("{template}{layout}")
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
                Meeting::Last => ", the last update of each element",
                Meeting::Ranked => ", updates by rank",
                Meeting::Sorted => ", updates sorted",
            }),
            Layout::Teams { size, rows } => {
                let rows = match rows {
                    Rows::Shared => "shared memory",
                    Rows::Registers => "registers",
                    Rows::Scratch => "device memory",
                };
                write!(f, ", {size} threads per position, rows in {rows}")
            }
            Layout::Tile { by, rows, columns, threads, blocks } => {
                let by = match by {
                    Multiplier::Few => "threads that share a row",
                    Multiplier::FewUnits => "matrix units, weights read once",
                    Multiplier::Threads => "threads",
                    Multiplier::Windows => "threads with windows",
                    Multiplier::Units => "matrix units",
                    Multiplier::RoundedUnits => "matrix units as TF32",
                };
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
