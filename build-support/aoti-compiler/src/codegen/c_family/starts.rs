//! Where in its buffers a kernel begins. Kernels are given the first element that they touch and count from there, so that
//! those that differ only in places, such as the steps of an unrolled recurrence, have one text.

use crate::graph::ranges_of;
use crate::kernels::{PackedOperand, read_panels};
use crate::loops::{BufferId, Kernel, KernelKind, Program};
use crate::schedule::uses::{operands, operands_mut, takes_whole};
use crate::symbolic::{Expr, Ranges};
use std::collections::{BTreeMap, BTreeSet};

/// A kernel that counts from the elements that it is given.
pub(in crate::codegen) struct Started {
    pub(in crate::codegen) kernel: Kernel,
    /// What each buffer is given at, in elements; its beginning where it is not here.
    starts: BTreeMap<BufferId, Expr>,
}

impl Started {
    /// The elements given are so many bytes or a multiple of that from the beginnings of their buffers.
    pub(in crate::codegen) fn new(
        program: &Program,
        kernel: &Kernel,
        packed: &[PackedOperand],
        bytes: usize,
    ) -> Started {
        let starts = starts(program, kernel, packed, bytes);
        let mut kernel = kernel.clone();
        if let KernelKind::Nest(nest) = &mut kernel.kind {
            read_panels(program, nest, packed);
        }
        let from_start = |buffer: BufferId, offset: &mut Expr| {
            if let Some(start) = starts.get(&buffer) {
                *offset = &*offset - start;
            }
        };
        operands_mut(&mut kernel).into_iter().for_each(|own| from_start(own.buffer, &mut own.offset));
        let accesses = kernel.stages_mut().flat_map(|stage| stage.accesses_mut());
        accesses.for_each(|access| from_start(access.buffer, &mut access.offset));
        Started { kernel, starts }
    }

    /// Where a buffer is given, in elements from its beginning.
    pub(in crate::codegen) fn start(&self, buffer: BufferId) -> Expr {
        self.starts.get(&buffer).cloned().unwrap_or_default()
    }
}

/// The first element of each buffer that a kernel touches, as far as that does not depend on its loops.
fn starts(
    program: &Program,
    kernel: &Kernel,
    packed: &[PackedOperand],
    bytes: usize,
) -> BTreeMap<BufferId, Expr> {
    let ranges = ranges_of(&program.symbols);
    let whole: BTreeSet<BufferId> =
        takes_whole(kernel).into_iter().chain(packed.iter().map(|operand| operand.buffer)).collect();
    let mut offsets: BTreeMap<BufferId, Vec<Expr>> = BTreeMap::new();
    let of_operands =
        operands(kernel).into_iter().map(|placed| (placed.operand.buffer, &placed.operand.offset));
    let accesses = kernel.stages().flat_map(|stage| stage.accesses());
    for (buffer, offset) in of_operands.chain(accesses.map(|access| (access.buffer, &access.offset))) {
        if !whole.contains(&buffer) && !program.buffers[buffer].storage.is_row() {
            let step = (bytes / program.buffers[buffer].dtype.size()).max(1);
            offsets.entry(buffer).or_default().push(outside_loops(offset, step));
        }
    }
    let first = |offsets: Vec<Expr>| first(offsets, &ranges);
    offsets.into_iter().filter_map(|(buffer, all)| Some((buffer, first(all)?))).collect()
}

/// The part of an offset that is the same all over a kernel, in multiples of a step.
fn outside_loops(offset: &Expr, step: usize) -> Expr {
    let step = i64::try_from(step).expect("accesses are of a few bytes");
    let (constant, terms) = offset.as_sum();
    let outside = terms.into_iter().filter(|(term, factor)| factor % step == 0 && term.is_of_sizes());
    outside
        .fold(Expr::int(constant - constant.rem_euclid(step)), |sum, (term, factor)| &sum + &(&term * factor))
}

/// The least of some offsets, where it is known which that is and that it lies behind the beginning.
fn first(mut offsets: Vec<Expr>, ranges: &dyn Ranges) -> Option<Expr> {
    let mut least = offsets.pop()?;
    for other in &offsets {
        if !(other - &least).never_negative(ranges) {
            least = other.clone();
        }
    }
    let is_least = offsets.iter().all(|other| (other - &least).never_negative(ranges));
    (is_least && !least.is(0) && least.never_negative(ranges)).then_some(least)
}
