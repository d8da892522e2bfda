//! Memory that kernels need while they run.

use super::weight_form::PANEL_BYTES;
use crate::loops::{Kernel, Nest, Program, Storage};
use crate::symbolic::Expr;
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
    pub(super) fn of_worker(worker: Expr) -> Scratch {
        Scratch { worker, ..Scratch::default() }
    }

    /// So much for all together.
    pub(crate) fn of_all(shared: Expr) -> Scratch {
        Scratch { shared, ..Scratch::default() }
    }

    /// With each size changed.
    pub(crate) fn map(&self, change: impl Fn(&Expr) -> Expr) -> Scratch {
        let Scratch { shared, worker, units } = self;
        Scratch { shared: change(shared), worker: change(worker), units: units.as_ref().map(change) }
    }
}

/// Bytes of a page: what is as far apart shares a cache set.
pub(super) const PAGE: i64 = 4096;
/// Floats in a row of a panel.
pub(super) const PANEL: i64 = PANEL_BYTES / 4;

pub(super) fn round_up(value: &Expr, to: i64) -> Expr {
    &(value + (to - 1)).floor_div(&Expr::int(to)) * to
}

/// Bytes, aligned.
pub(super) fn aligned(bytes: &Expr, target: &Target) -> Expr {
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
        Storage::Local { outer } => outer,
        Storage::Input(_)
        | Storage::Output(_)
        | Storage::State(_)
        | Storage::Constant(_)
        | Storage::Generator
        | Storage::Temporary => 0,
    };
    &Expr::product(&buffer.shape[outer..]) * i64::try_from(buffer.dtype.size()).expect("small")
}
