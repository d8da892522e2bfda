//! How the functions of kernels are called: what each is given and where that begins, and which kernels have a function
//! together.
//!
//! Kernels are given the first element that they touch and count from there, so that those that differ only in places, such
//! as the steps of an unrolled recurrence, are one function. What a function does is known by a text, in which
//! buffers have roles for names (`calls/key.rs`).

mod key;

use super::uses::{operands, takes_whole};
use crate::graph::ranges_of;
use crate::kernels::launch::Launch;
use crate::kernels::mapping::Mapping;
use crate::kernels::{PackedOperand, Selection, read_panels};
use crate::loops::{BufferId, Kernel, KernelId, KernelKind, Program, Storage};
use crate::symbolic::{Expr, Ranges, Symbol, SymbolKind};
use crate::target::Target;
use cranelift_entity::{PrimaryMap, entity_impl};
use std::collections::{BTreeMap, BTreeSet};

/// A function of a program, on the host or on a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(u32);
entity_impl!(FunctionId, "f");

/// How the functions of a kernel are called.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Call {
    /// The function of each launch on a device, one on the host; none where the run does something else. Kernels that do the
    /// same have one.
    pub functions: Vec<FunctionId>,
    /// Buffers, in the order of the parameters.
    pub arguments: Vec<Argument>,
    /// Sizes, which come after the buffers.
    pub sizes: Vec<Symbol>,
}

/// A buffer that a function is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Argument {
    /// The buffer.
    pub buffer: BufferId,
    /// The element from which on it is given, that is counted as the first.
    pub start: Expr,
}

/// The calls of all kernels.
pub(super) fn of_kernels(
    program: &Program,
    target: &Target,
    (choices, mappings): (&PrimaryMap<KernelId, Selection>, &PrimaryMap<KernelId, Mapping>),
    launches: &PrimaryMap<KernelId, Vec<Launch>>,
) -> PrimaryMap<KernelId, Call> {
    let kernels = program.kernels.iter();
    let mut calls =
        kernels.map(|(id, kernel)| Call::of(program, kernel, &choices[id].packed, target)).collect();
    key::number(program, (choices, mappings), launches, &mut calls);
    calls
}

impl Call {
    /// What a kernel's functions are given; which these are is not said.
    fn of(program: &Program, kernel: &Kernel, packed: &[PackedOperand], target: &Target) -> Call {
        // Elements that threads of a GPU load at a time must stay where they can.
        let bytes = match target {
            Target::Cpu(_) => 1,
            Target::Gpu(gpu) => gpu.load_bytes,
        };
        let starts = starts(program, kernel, packed, bytes);
        let argument = |buffer: BufferId| {
            let start = starts.get(&buffer).cloned().unwrap_or_default();
            Argument { buffer, start }
        };
        let arguments: Vec<Argument> = buffers(program, kernel).into_iter().map(argument).collect();
        let sizes = sizes(program, &rebased(program, kernel, packed, &arguments));
        Call { functions: vec![], arguments, sizes }
    }

    /// A kernel that counts from the elements that its functions are given.
    pub(crate) fn rebased(&self, program: &Program, kernel: &Kernel, packed: &[PackedOperand]) -> Kernel {
        rebased(program, kernel, packed, &self.arguments)
    }
}

/// The buffers that a kernel is given, in the order in which it meets them, what it reads first.
fn buffers(program: &Program, kernel: &Kernel) -> Vec<BufferId> {
    let mut all = Vec::new();
    for buffer in kernel.reads().into_iter().chain(kernel.writes()) {
        if !program.buffers[buffer].storage.is_local() && !all.contains(&buffer) {
            all.push(buffer);
        }
    }
    all
}

fn rebased(program: &Program, kernel: &Kernel, packed: &[PackedOperand], arguments: &[Argument]) -> Kernel {
    let mut kernel = kernel.clone();
    if let KernelKind::Nest(nest) = &mut kernel.kind {
        read_panels(program, nest, packed);
    }
    let starts = arguments.iter().filter(|argument| !argument.start.is(0));
    let starts: BTreeMap<BufferId, &Expr> = starts.map(|own| (own.buffer, &own.start)).collect();
    let from_start = |buffer: BufferId, offset: &mut Expr| {
        if let Some(start) = starts.get(&buffer) {
            *offset = &*offset - *start;
        }
    };
    kernel.kind.matrices_mut().into_iter().for_each(|own| from_start(own.buffer, &mut own.offset));
    let accesses = kernel.stages_mut().flat_map(|stage| stage.accesses_mut());
    accesses.for_each(|access| from_start(access.buffer, &mut access.offset));
    kernel
}

/// The first element of each buffer that a kernel touches, as far as that does not depend on its loops.
fn starts(
    program: &Program,
    kernel: &Kernel,
    packed: &[PackedOperand],
    bytes: i64,
) -> BTreeMap<BufferId, Expr> {
    let ranges = ranges_of(&program.symbols);
    let whole: BTreeSet<BufferId> =
        takes_whole(kernel).into_iter().chain(packed.iter().map(|operand| operand.buffer)).collect();
    let mut offsets: BTreeMap<BufferId, Vec<Expr>> = BTreeMap::new();
    let of_operands =
        operands(kernel).into_iter().map(|placed| (placed.operand.buffer, &placed.operand.offset));
    let accesses = kernel.stages().flat_map(|stage| stage.accesses());
    for (buffer, offset) in of_operands.chain(accesses.map(|access| (access.buffer, &access.offset))) {
        if !whole.contains(&buffer) && !program.buffers[buffer].storage.is_local() {
            let size = i64::try_from(program.buffers[buffer].dtype.size()).expect("elements are small");
            let step = (bytes / size).max(1);
            offsets.entry(buffer).or_default().push(outside_loops(offset, step));
        }
    }
    let first = |offsets: Vec<Expr>| first(offsets, &ranges);
    offsets.into_iter().filter_map(|(buffer, all)| Some((buffer, first(all)?))).collect()
}

/// The part of an offset that is the same all over a kernel, in multiples of a step.
fn outside_loops(offset: &Expr, step: i64) -> Expr {
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

/// The sizes that the text of a kernel mentions, in their order.
fn sizes(program: &Program, kernel: &Kernel) -> Vec<Symbol> {
    let mut all = BTreeSet::new();
    let mut add = |expr: &Expr| expr.collect_symbols(&mut all);
    for stage in kernel.stages() {
        stage.axes.iter().for_each(|axis| add(&axis.extent));
        stage.accesses().for_each(|access| {
            add(&access.offset);
            access.indirect.iter().for_each(|(_, stride)| add(stride));
        });
        stage.terms.iter().flat_map(|typed| typed.term.exprs()).for_each(&mut add);
    }
    match &kernel.kind {
        KernelKind::Nest(nest) => {
            nest.axes.iter().for_each(|axis| add(&axis.extent));
            nest.accumulators.iter().filter_map(|acc| acc.position.as_ref()).for_each(add);
        }
        KernelKind::MatMul(matmul) => {
            matmul.axes.iter().for_each(|axis| add(&axis.extent));
            add(&matmul.depth);
            let accumulators = matmul.row_epilogue.iter().flat_map(|rows| &rows.accumulators);
            accumulators.filter_map(|acc| acc.position.as_ref()).for_each(&mut add);
            for operand in [&matmul.a, &matmul.b] {
                [&operand.offset, &operand.row_stride, &operand.column_stride].into_iter().for_each(&mut add);
            }
        }
        KernelKind::Convolution(conv) => {
            conv.axes.iter().for_each(|axis| add(&axis.extent));
            for buffer in [conv.input, conv.weight] {
                program.buffers[buffer].shape.iter().for_each(&mut add);
            }
        }
        KernelKind::Attention(own) => {
            own.axes.iter().for_each(|axis| add(&axis.extent));
            own.reach.iter().for_each(&mut add);
            add(&own.depth);
            for operand in [&own.queries, &own.keys, &own.values] {
                [&operand.offset, &operand.row_stride, &operand.column_stride].into_iter().for_each(&mut add);
            }
        }
        KernelKind::AxisOp(rows) => [&rows.outer, &rows.length, &rows.inner].into_iter().for_each(&mut add),
        KernelKind::Extern(own) => own.sizes().for_each(&mut add),
    }
    for buffer in kernel.reads().into_iter().chain(kernel.writes()) {
        if let Storage::Local { outer } = program.buffers[buffer].storage {
            program.buffers[buffer].shape[outer..].iter().for_each(|size| size.collect_symbols(&mut all));
        }
    }
    all.into_iter().filter(|symbol| symbol.kind == SymbolKind::Size).collect()
}
