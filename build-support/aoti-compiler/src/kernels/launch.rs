//! How a kernel is launched on a device, as data: its grid, its blocks, what they have, and when the next kernel may come.
//! The row of each algorithm says how its mappings are launched; a printer prints that and decides nothing.

use super::gemm::tensor_map::TensorMap;
use crate::loops::BufferId;
use crate::symbolic::{Expr, NoRanges};

/// One launch of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// Which of the functions of its kernel it is of: launches of one have the same code.
    pub entry: i64,
    /// Blocks. Where there are none nothing is launched.
    pub grid: Expr,
    /// Threads of a block.
    pub threads: i64,
    /// Threads of a block beside these, which only copy what the others compute with, where the code of a device has such a role; or 0.
    pub producer_threads: i64,
    /// Blocks that run as a cluster, where the device has such.
    pub cluster: i64,
    /// Blocks for which a multiprocessor is to have enough registers at once.
    pub resident: i64,
    /// Bytes of shared memory beside what the kernel declares.
    pub shared: Expr,
    /// Whether it is given the kernel's scratch.
    pub takes_scratch: bool,
    /// Whether there are no more blocks than multiprocessors, where the code of a device has the role of producers: a block then
    /// has what it needs next brought while it finishes.
    pub persistent: bool,
    /// When the launch that depends on it may begin.
    pub trigger: Trigger,
    /// Maps of tensors by which the copy engine finds boxes of operands, in their order.
    pub maps: Vec<MapArgument>,
}

/// When a kernel lets the launch begin that depends on it. That waits until the kernel has ended before it reads what it wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// When a block has done its work.
    AtEnd,
    /// When a block begins.
    AtStart,
    /// Where its template says, which also waits for earlier kernels behind what does not depend on them.
    InTemplate,
}

/// A map of a tensor by which the copy engine finds boxes of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapArgument {
    /// The buffer.
    pub buffer: BufferId,
    /// The map, from the buffer's first element on.
    pub map: TensorMap,
    /// Elements of a box along the first axes; one along the others.
    pub extents: Vec<i64>,
}

impl MapArgument {
    /// Whether it is of a matrix whose columns come interleaved: [`TensorMap::interleaved`].
    pub(crate) fn is_interleaved(&self) -> bool {
        self.extents.len() > 2
    }
}

/// All launches of a kernel, in order. They are given the same, and one scratch.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Launches {
    pub(crate) all: Vec<Launch>,
    /// Bytes of scratch in device memory.
    pub(crate) scratch: Option<Expr>,
}

/// Blocks of a launch at most; what is beyond is done by the same blocks in turn.
pub(super) const MAX_BLOCKS: i64 = 1 << 20;
/// Blocks of a launch at most that let the next kernel come when they begin: that many leave room on all multiprocessors alike.
const SMALL_LAUNCH: i64 = 8;

impl Launch {
    /// So many units, of which a block takes `per_block` at a time, by no more blocks than `most`.
    pub(super) fn of(units: &Expr, per_block: i64, threads: i64, most: i64) -> Launch {
        let grid = units.ceil_div(&Expr::int(per_block), &NoRanges).minimum(&Expr::int(most));
        Launch {
            entry: 0,
            trigger: at_end_of(&grid),
            grid,
            threads,
            producer_threads: 0,
            cluster: 1,
            resident: 1,
            shared: Expr::int(0),
            takes_scratch: false,
            persistent: false,
            maps: vec![],
        }
    }
}

/// When a kernel of so many blocks lets the next one begin that has no reason to do so early.
pub(super) fn at_end_of(grid: &Expr) -> Trigger {
    let is_small = grid.as_int().is_some_and(|blocks| blocks <= SMALL_LAUNCH);
    if is_small { Trigger::AtStart } else { Trigger::AtEnd }
}

impl Launches {
    /// Launches that have this scratch, each of a function of its own.
    pub(super) fn with_scratch(mut all: Vec<Launch>, scratch: Option<Expr>) -> Launches {
        for (entry, launch) in (0..).zip(&mut all) {
            (launch.entry, launch.takes_scratch) = (entry, scratch.is_some());
        }
        Launches { all, scratch }
    }
}

impl From<Launch> for Launches {
    fn from(launch: Launch) -> Launches {
        Launches { all: vec![launch], scratch: None }
    }
}
