//! Cleans up after fusion: removes dead stores and the terms that only they used, and turns buffers that are live only
//! inside one kernel into rows of its workers' scratch.

use super::fuse::is_flat;
use crate::loops::{
    Access, BufferId, Effect, Index, Kernel, KernelClass, KernelId, KernelKind, Nest, Program, Stage, Step,
    Storage, Term, TermId,
};
use crate::symbolic::{Expr, Ranges};
use crate::target::Target;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use std::collections::{BTreeMap, BTreeSet};

/// Removes stores to temporary buffers that nothing reads, until nothing more goes.
///
/// Last kernels first: what a kernel no longer reads is then dead where it is made. Only loops, whose iterations read
/// what later kernels of them write, need more than one pass.
pub(super) fn remove_dead(program: &mut Program) {
    program.number_kernels();
    let mut readers: SecondaryMap<BufferId, usize> = SecondaryMap::new();
    Step::walk(&program.steps, &mut |step| {
        step_reads(program, step).into_iter().for_each(|buffer| readers[buffer] += 1);
    });
    let buffers = &program.buffers;
    let mut changed = true;
    while changed {
        changed = false;
        for kernel in program.kernels.values_mut().rev().filter(|kernel| does_something(kernel)) {
            let before = kernel_reads(kernel);
            let dead =
                |buffer: BufferId| buffers[buffer].storage == Storage::Temporary && readers[buffer] == 0;
            changed |= drop_stores(kernel, &dead);
            let after = if does_something(kernel) { kernel_reads(kernel) } else { BTreeSet::new() };
            before.difference(&after).for_each(|buffer| readers[*buffer] -= 1);
        }
    }
    remove_empty(&mut program.steps, &program.kernels);
    program.number_kernels();
}

/// Buffers that a step itself reads, apart from the steps inside it.
fn step_reads(program: &Program, step: &Step) -> BTreeSet<BufferId> {
    match step {
        Step::Kernel(id) => kernel_reads(&program.kernels[*id]),
        Step::Read { buffer, .. } | Step::Assert(buffer, _) => BTreeSet::from([*buffer]),
        Step::Require(_) => BTreeSet::new(),
        Step::If { predicate, .. } | Step::Loop { predicate, .. } => BTreeSet::from([*predicate]),
    }
}

fn kernel_reads(kernel: &Kernel) -> BTreeSet<BufferId> {
    // A store that combines reads its buffer, but that alone keeps nothing alive.
    let mut read: BTreeSet<BufferId> = kernel.stages().flat_map(Stage::reads).collect();
    read.extend(kernel.kind.operands());
    read
}

fn drop_stores(kernel: &mut Kernel, dead: &dyn Fn(BufferId) -> bool) -> bool {
    let mut changed = false;
    for stage in kernel.stages_mut() {
        let before = stage.effects.len();
        stage.effects.retain(|effect| match effect {
            Effect::Store { access, .. } => !dead(access.buffer),
            Effect::Accumulate { .. } => true,
        });
        changed |= stage.effects.len() != before;
    }
    match &mut kernel.kind {
        KernelKind::Nest(nest) => prune_nest(nest),
        KernelKind::MatMul(matmul) => {
            let _ = prune_stage(&mut matmul.epilogue, &BTreeSet::new());
            matmul.row_epilogue.iter_mut().for_each(prune_nest);
        }
        KernelKind::Convolution(conv) => {
            let _ = prune_stage(&mut conv.epilogue, &BTreeSet::new());
        }
        KernelKind::Attention(own) => {
            for stage in &mut own.stages {
                let _ = prune_stage(stage, &BTreeSet::new());
            }
        }
        KernelKind::AxisOp(_) | KernelKind::Extern(_) => {}
    }
    changed
}

/// Removes terms that no effect, later stage or accumulator needs; and dead accumulators.
fn prune_nest(nest: &mut Nest) {
    let mut used_accumulators = BTreeSet::new();
    for typed in nest.stages.iter().flat_map(|stage| &stage.terms) {
        if let Term::Accumulated(accumulator) = typed.term {
            used_accumulators.insert(accumulator);
        }
    }
    for stage in &mut nest.stages {
        stage.effects.retain(|effect| match effect {
            Effect::Accumulate { accumulator, .. } => used_accumulators.contains(accumulator),
            Effect::Store { .. } => true,
        });
    }
    let mut wanted: BTreeMap<usize, BTreeSet<TermId>> = BTreeMap::new();
    for index in (0..nest.stages.len()).rev() {
        let own = wanted.remove(&index).unwrap_or_default();
        let numbers = prune_stage(&mut nest.stages[index], &own);
        for typed in &nest.stages[index].terms {
            if let Term::Earlier { stage, term } = typed.term {
                wanted.entry(stage).or_default().insert(term);
            }
        }
        for later in &mut nest.stages[index + 1..] {
            for typed in &mut later.terms {
                if let Term::Earlier { stage, term } = &mut typed.term
                    && *stage == index
                {
                    *term = numbers[term];
                }
            }
        }
    }
    renumber_accumulators(nest, &used_accumulators);
}

fn renumber_accumulators(nest: &mut Nest, used: &BTreeSet<usize>) {
    if used.len() == nest.accumulators.len() {
        return;
    }
    let numbers: BTreeMap<usize, usize> = used.iter().enumerate().map(|(new, old)| (*old, new)).collect();
    let mut index = 0;
    nest.accumulators.retain(|_| {
        index += 1;
        used.contains(&(index - 1))
    });
    for stage in &mut nest.stages {
        for typed in &mut stage.terms {
            if let Term::Accumulated(accumulator) = &mut typed.term {
                *accumulator = numbers[accumulator];
            }
        }
        for effect in &mut stage.effects {
            if let Effect::Accumulate { accumulator, .. } = effect {
                *accumulator = numbers[accumulator];
            }
        }
    }
}

/// Keeps the terms that effects and `wanted` need; gives their new numbers.
fn prune_stage(stage: &mut Stage, wanted: &BTreeSet<TermId>) -> BTreeMap<TermId, TermId> {
    let mut live: Vec<bool> = vec![false; stage.terms.len()];
    wanted.iter().for_each(|term| live[*term] = true);
    for effect in &stage.effects {
        match effect {
            Effect::Store { access, value, .. } => {
                live[*value] = true;
                access.indirect.iter().for_each(|(term, _)| live[*term] = true);
            }
            Effect::Accumulate { value, .. } => live[*value] = true,
        }
    }
    for index in (0..stage.terms.len()).rev() {
        if live[index] {
            stage.terms[index].term.operands().into_iter().for_each(|operand| live[operand] = true);
        }
    }
    let numbers: BTreeMap<TermId, TermId> =
        (0..live.len()).filter(|index| live[*index]).enumerate().map(|(new, old)| (old, new)).collect();
    let mut index = 0;
    stage.terms.retain(|_| {
        index += 1;
        live[index - 1]
    });
    for typed in &mut stage.terms {
        typed.term.renumber(&|old| numbers[&old]);
    }
    for effect in &mut stage.effects {
        match effect {
            Effect::Store { access, value, .. } => {
                access.renumber(&|old| numbers[&old]);
                *value = numbers[value];
            }
            Effect::Accumulate { value, .. } => *value = numbers[value],
        }
    }
    numbers
}

fn does_something(kernel: &Kernel) -> bool {
    match kernel.kind.class() {
        KernelClass::Whole => true,
        // Scores are for the result alone.
        KernelClass::Attention(own) => !own.stages[1].effects.is_empty(),
        KernelClass::Loops(_) | KernelClass::Contraction { .. } => {
            kernel.stages().any(|stage| !stage.effects.is_empty())
        }
    }
}

/// Removes kernels that do nothing any more.
fn remove_empty(steps: &mut Vec<Step>, kernels: &PrimaryMap<KernelId, Kernel>) {
    steps.retain_mut(|step| {
        for list in step.lists_mut() {
            remove_empty(list, kernels);
        }
        match step {
            Step::Kernel(id) => does_something(&kernels[*id]),
            Step::Read { .. } | Step::Assert(..) | Step::Require(_) | Step::If { .. } | Step::Loop { .. } => {
                true
            }
        }
    });
}

/// Turns temporary buffers that one nest alone writes and reads, row by row, into its workers' scratch.
pub(super) fn keep_rows_local(program: &mut Program, ranges: &dyn Ranges, target: &Target) {
    let mut users: BTreeMap<BufferId, usize> = BTreeMap::new();
    Step::walk(&program.steps, &mut |step| {
        let mut touched = BTreeSet::new();
        match step {
            Step::Kernel(id) => {
                let kernel = &program.kernels[*id];
                touched.extend(kernel.reads().into_iter().chain(kernel.writes()));
            }
            Step::Read { buffer, .. } | Step::Assert(buffer, _) => {
                touched.insert(*buffer);
            }
            Step::Require(_) => {}
            Step::If { predicate, .. } | Step::Loop { predicate, .. } => {
                touched.insert(*predicate);
            }
        }
        touched.into_iter().for_each(|buffer| *users.entry(buffer).or_default() += 1);
    });
    let mut kernels = std::mem::take(&mut program.kernels);
    for kernel in kernels.values_mut() {
        let written = kernel.writes();
        let KernelKind::Nest(nest) = &mut kernel.kind else { continue };
        // A nest without outer axes has one row; its vector axis must stay an axis of the nest. Without inner ones each
        // position has a lane, and workers have one row for all of their lanes.
        if nest.serial || nest.axes.is_empty() || is_flat(nest) {
            continue;
        }
        for buffer in written {
            if users[&buffer] == 1
                && program.buffers[buffer].storage == Storage::Temporary
                && let Some(outer) = row_axes(program, nest, buffer, target)
            {
                make_row(program, nest, buffer, outer, ranges);
            }
        }
    }
    program.kernels = kernels;
}

/// How many leading axes of a buffer count rows, where every access names them as the nest's outer axes.
fn row_axes(program: &Program, nest: &Nest, buffer: BufferId, target: &Target) -> Option<usize> {
    let accesses: Vec<&Access> =
        nest.stages.iter().flat_map(Stage::accesses).filter(|access| access.buffer == buffer).collect();
    let first = accesses.first()?;
    let mut outer = 0;
    for axis in &nest.axes {
        let plain = Index::Expr(Expr::sym(axis.symbol));
        let position = first.coords.iter().position(|coord| *coord == plain)?;
        outer = outer.max(position + 1);
    }
    let shape = &program.buffers[buffer].shape;
    let leads = |access: &&Access| {
        access.coords.len() == shape.len() && access.coords[..outer] == first.coords[..outer]
    };
    let covered = first.coords[..outer].iter().zip(shape).all(|(coord, size)| {
        let is_axis = nest.axes.iter().any(|axis| *coord == Index::Expr(Expr::sym(axis.symbol)));
        // An index from data is checked where it is used, even if only one value passes.
        is_axis || (size.is(1) && matches!(coord, Index::Expr(_)))
    });
    let bytes = &Expr::product(&shape[outer..]) * i64::try_from(program.buffers[buffer].dtype.size()).ok()?;
    let small = bytes.as_int().is_some_and(|bytes| bytes <= target.row_bytes());
    (covered && small && accesses.iter().all(leads)).then_some(outer)
}

fn make_row(program: &mut Program, nest: &mut Nest, buffer: BufferId, outer: usize, ranges: &dyn Ranges) {
    let row_shape: Vec<Expr> = program.buffers[buffer].shape[outer..].to_vec();
    program.buffers[buffer].storage = Storage::Local { outer };
    let shorten = |access: &mut Access| {
        if access.buffer == buffer {
            let coords = access.coords.split_off(outer);
            *access = Access::with_shape(buffer, &row_shape, coords, ranges);
        }
    };
    for stage in &mut nest.stages {
        for typed in &mut stage.terms {
            if let Term::Load { access, .. } = &mut typed.term {
                shorten(access);
            }
        }
        for effect in &mut stage.effects {
            if let Effect::Store { access, .. } = effect {
                shorten(access);
            }
        }
    }
}
