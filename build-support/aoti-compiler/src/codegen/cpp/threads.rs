//! Work that the threads of a run share: calls of `parallel` (`run.h`), and the memory of the thread that runs.

use crate::codegen::c_family::expr::{scalar, worker_bytes};
use crate::codegen::c_family::indent;
use crate::codegen::merging::size;
use crate::kernels::Scratch;
use crate::kernels::mapping::Grain;

/// Units of work on all threads: the body does those from `begin` to `end`, which are `grain` or more where there are as many,
/// on the thread `worker`.
pub(super) fn parallel(units: &str, grain: &str, body: &str) -> String {
    format!(
        "parallel(run, {units}, {grain}, [&](i64 begin, i64 end, i64 worker) {{\n  (void)worker;\n{}}});\n",
        indent(body, 1)
    )
}

/// The number of units that are worth a thread.
pub(super) fn grain(grain: &Grain) -> String {
    format!("grain(run, {}, {})", grain.enough, scalar(&grain.unit))
}

/// The same for loops over elements.
pub(super) fn loop_grain(grain: &Grain) -> String {
    format!("loop_{}", self::grain(grain))
}

/// Whether `parallel` gives so many units to one thread in every run, as `run.h` decides it: threads are never nearer than those that
/// `enough` is told for.
pub(super) fn is_never_shared(units: i64, grain: &Grain) -> bool {
    grain.unit.as_int().is_some_and(|unit| units < 2 * (grain.enough / unit.max(1)).max(1))
}

/// The same where the grain is known for the whole work only, which is so many units.
pub(super) fn grain_of(grain: &Grain, units: &str) -> String {
    format!("grain_of(run, {}, {units}, {})", grain.enough, size(&scalar(&grain.unit)))
}

/// The scratch of the worker that runs here.
pub(super) fn worker_scratch(scratch: &Scratch) -> String {
    if scratch.has_no_workers() {
        return "nullptr".to_owned();
    }
    format!("run.scratch + worker * ({})", size(&worker_bytes(scratch)))
}
