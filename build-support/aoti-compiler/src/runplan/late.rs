//! Where a run allocates memory and where it frees it: around the steps that touch it, where its sizes are known.

use super::{Action, Allocate};
use crate::graph::{SymbolSource, size_text};
use crate::kernels::Scratch;
use crate::loops::{BufferId, KernelId, Program, Step, Storage};
use crate::schedule::memory::{LateId, MemoryPlan};
use crate::symbolic::{Expr, Symbol};
use std::collections::{BTreeMap, BTreeSet};

/// What is allocated in a list of steps that run one after the other.
#[derive(Default)]
pub(super) struct Placed {
    /// Before a step, by its position.
    pub(super) before: BTreeMap<usize, Vec<LateId>>,
    /// What is freed behind it.
    pub(super) behind: BTreeMap<usize, Vec<LateId>>,
    /// What the lists inside a step allocate.
    pub(super) inside: BTreeMap<usize, BTreeSet<LateId>>,
}

/// A tensor that is allocated: one of the buffers that take turns in it, all of one type and shape.
pub(super) fn tensors(memory: &MemoryPlan) -> BTreeMap<LateId, BufferId> {
    memory.late.iter().rev().map(|(buffer, late)| (*late, *buffer)).collect()
}

/// Places what is allocated for tensors in the innermost list that has all steps that touch it: outside of loops where its
/// sizes are known there.
pub(super) fn place(
    program: &Program,
    memory: &MemoryPlan,
    steps: &[Step],
    wanted: &BTreeSet<LateId>,
    known: &BTreeSet<Symbol>,
) -> Placed {
    let mut placed = Placed::default();
    if wanted.is_empty() {
        return placed;
    }
    let tensors = tensors(memory);
    let touched: Vec<BTreeSet<LateId>> = steps.iter().map(|step| touched(program, memory, step)).collect();
    for late in wanted {
        let Some(first) = touched.iter().position(|own| own.contains(late)) else { continue };
        let last = touched.iter().rposition(|own| own.contains(late)).unwrap_or(first);
        let shape = &program.buffers[tensors[late]].shape;
        let is_known = || {
            let mut read = known.clone();
            read.extend(steps[..first].iter().filter_map(read_by));
            sizes_are_known(program, shape, &read)
        };
        let is_inside = first == last
            && match &steps[first] {
                Step::If { .. } => true,
                Step::Loop { .. } => !is_known(),
                Step::Kernel(_) | Step::Read { .. } | Step::Assert(..) | Step::Require(_) => false,
            };
        if is_inside {
            placed.inside.entry(first).or_default().insert(*late);
        } else {
            placed.before.entry(first).or_default().push(*late);
            if program.buffers[tensors[late]].storage == Storage::Temporary {
                placed.behind.entry(last).or_default().push(*late);
            }
        }
    }
    placed
}

/// The symbol that is known from a step on.
pub(super) fn read_by(step: &Step) -> Option<Symbol> {
    match step {
        Step::Read { symbol, .. } => Some(*symbol),
        Step::Kernel(_) | Step::Assert(..) | Step::Require(_) | Step::If { .. } | Step::Loop { .. } => None,
    }
}

fn sizes_are_known(program: &Program, shape: &[Expr], read: &BTreeSet<Symbol>) -> bool {
    let mut symbols = BTreeSet::new();
    shape.iter().for_each(|size| size.collect_symbols(&mut symbols));
    symbols.iter().all(|symbol| {
        let info = program.symbols.get(symbol.index as usize);
        read.contains(symbol) || info.is_none_or(|info| info.source != SymbolSource::Data)
    })
}

fn touched(program: &Program, memory: &MemoryPlan, step: &Step) -> BTreeSet<LateId> {
    let of = |buffer: &BufferId| memory.late.get(buffer).copied();
    let all = |steps: &[Step]| -> BTreeSet<LateId> {
        steps.iter().flat_map(|step| touched(program, memory, step)).collect()
    };
    match step {
        Step::Kernel(id) => {
            let kernel = &program.kernels[*id];
            kernel.reads().iter().chain(&kernel.writes()).filter_map(of).collect()
        }
        Step::Read { buffer, .. } | Step::Assert(buffer, _) => of(buffer).into_iter().collect(),
        Step::Require(_) => BTreeSet::new(),
        Step::If { predicate, then, otherwise } => {
            of(predicate).into_iter().chain(all(then)).chain(all(otherwise)).collect()
        }
        Step::Loop { condition, predicate, body } => {
            of(predicate).into_iter().chain(all(condition)).chain(all(body)).collect()
        }
    }
}

/// What is said where there is no memory for a tensor.
pub(super) fn tensor_text(program: &Program, buffer: BufferId) -> String {
    let buffer = &program.buffers[buffer];
    let sizes: Vec<String> =
        buffer.sizes_outside().iter().map(|size| size_text(&program.symbols, size)).collect();
    let name = if buffer.name.is_empty() { String::new() } else { format!(" `{}`", buffer.name) };
    format!("out of memory for the tensor{name} of sizes [{}]", sizes.join(", "))
}

/// The same for what a kernel needs while it runs.
pub(super) fn scratch_text(program: &Program, kernel: KernelId) -> String {
    format!("out of memory for what `{}` needs", program.kernels[kernel].name)
}

/// Pieces of memory that a run allocates.
pub(super) fn count(actions: &[Action]) -> usize {
    let mut count = 0;
    Action::walk(actions, &mut |action| {
        if let Action::Allocate(Allocate { late, .. }) = action {
            count = count.max(late.as_u32() as usize + 1);
        }
    });
    count
}

/// Symbols that an amount of memory depends on.
pub(crate) fn symbols_of_scratch(scratch: &Scratch, symbols: &mut BTreeSet<Symbol>) {
    let Scratch { shared, worker, units } = scratch;
    [shared, worker].into_iter().chain(units).for_each(|bytes| bytes.collect_symbols(symbols));
}
