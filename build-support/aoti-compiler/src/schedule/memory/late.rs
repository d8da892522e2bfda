//! Memory that nobody can set aside before a run: of buffers whose sizes are read from data and have no bound, or one that is
//! far above what a run will find. Such memory is allocated during the run, once the sizes are known.

use super::{MemoryPlan, most};
use crate::dtype::DType;
use crate::graph::{SymbolInfo, extremes_of};
use crate::kernels::{Scratch, Selection};
use crate::loops::{BufferId, KernelId, Program, Storage};
use crate::symbolic::{Expr, Ranges};
use cranelift_entity::{PrimaryMap, entity_impl};
use std::collections::{BTreeMap, BTreeSet};

/// A piece of memory that is allocated during a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LateId(u32);
entity_impl!(LateId, "m");

/// As many bytes are set aside for a buffer whose size is read from data: memory that a run does not touch costs little.
const MOST_SET_ASIDE: i64 = 1 << 32;

/// Whether a size is read from data.
pub fn is_of_data(symbols: &[SymbolInfo], size: &Expr) -> bool {
    let mut mentioned = BTreeSet::new();
    size.collect_symbols(&mut mentioned);
    mentioned.into_iter().any(|symbol| extremes_of(symbols, symbol).is_some())
}

/// Whether memory for a tensor is allocated once its sizes have been read.
pub fn is_late(symbols: &[SymbolInfo], shape: &[Expr], dtype: DType, ranges: &dyn Ranges) -> bool {
    let element = i64::try_from(dtype.size()).expect("elements are small");
    shape.iter().any(|size| is_of_data(symbols, size))
        && is_too_much(shape.iter().map(|size| most(symbols, size, ranges)), element)
}

/// The same for the scratch of a kernel.
pub fn is_late_scratch(symbols: &[SymbolInfo], scratch: &Scratch, ranges: &dyn Ranges) -> bool {
    let Scratch { shared, worker, units } = scratch;
    [shared, worker]
        .into_iter()
        .chain(units)
        .any(|bytes| is_of_data(symbols, bytes) && is_too_much([most(symbols, bytes, ranges)].into_iter(), 1))
}

/// Whether even the least of the sizes that are known when a run begins make a product that is not set aside. What grows with
/// an input is in proportion to it.
fn is_too_much(mut sizes: impl Iterator<Item = Expr>, element: i64) -> bool {
    let bytes = sizes.try_fold(element, |bytes, size| bytes.checked_mul(size.evaluate(&|_| Some(1))?.max(1)));
    bytes.is_none_or(|bytes| bytes > MOST_SET_ASIDE)
}

/// Gives numbers to what is allocated during a run: tensors in the order of `buffers`, then the scratch of kernels.
pub(super) fn number(
    program: &Program,
    buffers: impl Iterator<Item = BufferId>,
    choices: &PrimaryMap<KernelId, Selection>,
    ranges: &dyn Ranges,
    plan: &mut MemoryPlan,
) {
    let mut numbers = 0u32;
    let mut next = || {
        numbers += 1;
        LateId(numbers - 1)
    };
    plan.late = buffers.map(|buffer| (buffer, next())).collect();
    let scratch =
        choices.iter().filter(|(_, choice)| is_late_scratch(&program.symbols, &choice.scratch, ranges));
    plan.late_scratch = scratch.map(|(kernel, _)| (kernel, next())).collect();
}

/// Whether a buffer of a program is allocated during a run.
pub(super) fn is_late_buffer(program: &Program, id: BufferId, ranges: &dyn Ranges) -> bool {
    let buffer = &program.buffers[id];
    matches!(buffer.storage, Storage::Temporary | Storage::Output(_))
        && is_late(&program.symbols, &buffer.shape, buffer.dtype, ranges)
}

/// Numbers of memory by what it is for.
pub type Late<Key> = BTreeMap<Key, LateId>;
