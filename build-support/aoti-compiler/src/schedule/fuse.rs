//! Decides which kernels become one: a consumer joins a producer (or a reader of the same data) where every position of
//! the joint loops reads only what the same position has produced, and nothing in between depends on the order.

use super::align::align;
use super::axes::rebuild;
use super::fusion_choice::{Case, FusionChoice};
use super::merge::{append, store_site};
use super::non_empty::Inhabited;
use super::positions::{check_positions, reads_alike};
use super::reorder::reordered;
use super::rows;
use super::turn::onto_rows;
use super::{Explanation, Refusal};
use crate::graph::Origin;
use crate::loops::{
    Axis, BufferId, Channels, Effect, Index, Kernel, KernelId, KernelKind, Nest, Program, Stage, Step,
    ranges_over,
};
use crate::symbolic::{Expr, Ranges};
use crate::target::Target;
use crate::tuning::{Decisions, TuningKey};
use cranelift_entity::PrimaryMap;
use std::collections::BTreeSet;

/// How far back a partner is looked for.
const WINDOW: usize = 24;
/// Terms of a kernel of several that share nothing.
const MAX_INDEPENDENT_TERMS: usize = 64;
/// Terms of a fused kernel. Registers are exhausted long before; without a bound, a chain of element-wise operators
/// would become one kernel whose cost to the compiler grows with the square of its length.
const MAX_TERMS: usize = 512;

/// What fusion asks while it works on a program, whose steps it is given one list after the other.
pub(super) struct Fusion<'a> {
    pub(super) program: &'a mut Program,
    pub(super) ranges: &'a dyn Ranges,
    pub(super) target: &'a Target,
    pub(super) explanations: &'a mut Vec<Explanation>,
    pub(super) questions: &'a mut Decisions,
    pub(super) reason: Reason,
}

/// Why kernels are to become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    /// One reads what the other reads or writes.
    Data,
    /// One reads the rows of a product that the other computes.
    Rows,
    /// Launching another costs more than what it does.
    Launch,
}

/// Fuses what can be fused in one list of steps.
pub(super) fn fuse_list(steps: &mut Vec<Step>, fusion: &mut Fusion<'_>) {
    let mut done: Vec<Step> = Vec::with_capacity(steps.len());
    for step in std::mem::take(steps) {
        let fused = match step {
            Step::Kernel(id) => place(&mut done, id, fusion),
            Step::Read { .. } | Step::Assert(..) | Step::Require(_) | Step::If { .. } | Step::Loop { .. } => {
                false
            }
        };
        if !fused {
            done.push(step);
        }
    }
    *steps = done;
}

/// The steps between a kernel and a possible partner, as far as they matter for moving the kernel up to it.
#[derive(Default)]
struct Between {
    /// Positions of steps that make what the kernel (or another of these) reads: they would move up with it.
    needed: Vec<usize>,
    /// What the kernel and the needed steps read.
    reads: BTreeSet<BufferId>,
    /// What they write.
    writes: BTreeSet<BufferId>,
    /// What the needed steps alone read and write.
    needed_reads: BTreeSet<BufferId>,
    needed_writes: BTreeSet<BufferId>,
    /// What the steps that stay read and write.
    passed_reads: BTreeSet<BufferId>,
    passed_writes: BTreeSet<BufferId>,
}

impl Between {
    /// Takes one more step, upwards, into account.
    fn pass(&mut self, position: usize, reads: &BTreeSet<BufferId>, writes: &BTreeSet<BufferId>) {
        if writes.is_disjoint(&self.reads) {
            self.passed_reads.extend(reads);
            self.passed_writes.extend(writes);
        } else {
            self.needed.push(position);
            self.reads.extend(reads);
            self.writes.extend(writes);
            self.needed_reads.extend(reads);
            self.needed_writes.extend(writes);
        }
    }

    /// Whether the kernel and what it needs can move above everything that stays.
    fn can_move(&self) -> bool {
        self.writes.is_disjoint(&self.passed_reads)
            && self.writes.is_disjoint(&self.passed_writes)
            && self.reads.is_disjoint(&self.passed_writes)
    }

    /// Whether what the kernel needs does not itself depend on the partner.
    fn is_free_of(&self, reads: &BTreeSet<BufferId>, writes: &BTreeSet<BufferId>) -> bool {
        self.needed_reads.is_disjoint(writes)
            && self.needed_writes.is_disjoint(reads)
            && self.needed_writes.is_disjoint(writes)
    }
}

/// Joins a kernel with an earlier one; says whether it did.
fn place(done: &mut Vec<Step>, id: KernelId, fusion: &mut Fusion<'_>) -> bool {
    let kernel = &fusion.program.kernels[id];
    let KernelKind::Nest(consumer) = &kernel.kind else { return false };
    let mut between = Between {
        reads: kernel.reads().into_iter().collect(),
        writes: kernel.writes().into_iter().collect(),
        ..Between::default()
    };
    for position in (0..done.len()).rev().take(WINDOW) {
        // What is read there may decide what the kernel touches, and what is required there may be why it may.
        let is_barrier = matches!(done[position], Step::Read { .. } | Step::Require(_));
        if is_barrier || !between.can_move() {
            break;
        }
        let (reads, writes) = effects_of(&fusion.program.kernels, &done[position]);
        if let Step::Kernel(partner) = done[position]
            && between.is_free_of(&reads, &writes)
        {
            let producer = &fusion.program.kernels[partner];
            let inside = Inhabited::of(producer, consumer, fusion.ranges);
            let mut costs = None;
            let as_is_better = |fused: KernelKind| {
                let consumer = (kernel, consumer);
                let case = Case::new((fusion.program, fusion.target), producer, consumer, &fused);
                costs = case.costs();
                agree(&case, fusion.questions).map(|()| fused)
            };
            let fused = match fusion.reason {
                Reason::Data => fuse(producer, consumer, &inside).and_then(as_is_better),
                Reason::Rows => {
                    rows::behind(producer, consumer, &inside, fusion.target).and_then(as_is_better)
                }
                Reason::Launch => put_together(producer, consumer, fusion.ranges, fusion.target),
            };
            let refusal = fused.as_ref().err().copied();
            if refusal != Some(Refusal::NothingShared) {
                let (producer, consumer) = (producer.name.clone(), kernel.name.clone());
                if fusion.reason == Reason::Rows && refusal.is_none() {
                    // An epilogue had no room for it.
                    fusion.explanations.retain(|own| own.producer != producer || own.consumer != consumer);
                }
                fusion.explanations.push(Explanation { producer, consumer, refusal, costs });
            }
            if let Ok(fused) = fused {
                let origins = kernel.origins.clone();
                absorb(&mut fusion.program.kernels[partner], origins, fused);
                lift(done, position, &between.needed);
                return true;
            }
        }
        between.pass(position, &reads, &writes);
    }
    false
}

/// Whether two kernels that may become one do, as a record says or as is thought to be better.
fn agree(case: &Case<'_>, questions: &mut Decisions) -> Result<(), Refusal> {
    let (fusion_choice, answers) = case.answers();
    let recorded = answers.and_then(|answers| {
        let key = TuningKey::with_sizes(case.program, &[case.producer, case.consumer.0], case.target);
        questions.ask(key, answers, || format!("{} + {}", case.producer.name, case.consumer.0.name))
    });
    match (fusion_choice[recorded.unwrap_or(0)], recorded) {
        (FusionChoice::Fuse, _) => Ok(()),
        (FusionChoice::Separate, None) => Err(Refusal::LosesParallelism),
        (FusionChoice::Separate, Some(_)) => Err(Refusal::Measured),
    }
}

/// The producer becomes the fused kernel.
fn absorb(producer: &mut Kernel, origins: Vec<Origin>, fused: KernelKind) {
    producer.kind = fused;
    for origin in origins {
        if !producer.origins.contains(&origin) {
            producer.origins.push(origin);
        }
    }
}

/// Moves the steps at `needed` (descending positions, all behind `position`) in front of `position`.
fn lift(done: &mut Vec<Step>, position: usize, needed: &[usize]) {
    for (moved, from) in needed.iter().rev().enumerate() {
        let step = done.remove(*from);
        done.insert(position + moved, step);
    }
}

/// Buffers that a step reads and writes, inner steps included.
fn effects_of(
    kernels: &PrimaryMap<KernelId, Kernel>,
    step: &Step,
) -> (BTreeSet<BufferId>, BTreeSet<BufferId>) {
    let (mut reads, mut writes) = (BTreeSet::new(), BTreeSet::new());
    let mut add = |steps: &[Step]| {
        for step in steps {
            let (r, w) = effects_of(kernels, step);
            reads.extend(r);
            writes.extend(w);
        }
    };
    match step {
        Step::Kernel(id) => {
            reads.extend(kernels[*id].reads());
            writes.extend(kernels[*id].writes());
        }
        Step::Read { buffer, .. } | Step::Assert(buffer, _) => {
            reads.insert(*buffer);
        }
        Step::Require(_) => {}
        Step::If { predicate, then, otherwise } => {
            add(then);
            add(otherwise);
            reads.insert(*predicate);
        }
        Step::Loop { condition, predicate, body } => {
            add(condition);
            add(body);
            reads.insert(*predicate);
        }
    }
    (reads, writes)
}

/// What must hold for a nest to become a part of the kernel before it, whichever part.
pub(super) fn may_join(producer: &Kernel, consumer: &Nest) -> Result<(), Refusal> {
    if consumer.serial {
        return Err(Refusal::Serial);
    }
    let (reads, produced) = (producer.reads(), producer.writes());
    let mut writes = consumer.stages.iter().flat_map(Stage::writes);
    if writes.any(|buffer| produced.contains(&buffer) || reads.contains(&buffer)) {
        return Err(Refusal::Overwrites);
    }
    if producer.stages().chain(&consumer.stages).map(|stage| stage.terms.len()).sum::<usize>() > MAX_TERMS {
        return Err(Refusal::TooLarge);
    }
    Ok(())
}

/// The fusion of two kernels.
fn fuse(producer: &Kernel, consumer: &Nest, ranges: &dyn Ranges) -> Result<KernelKind, Refusal> {
    let reads: Vec<BufferId> = consumer.stages.iter().flat_map(Stage::reads).collect();
    let produced = producer.writes();
    let shares = reads.iter().any(|buffer| produced.contains(buffer));
    let reads_same = producer.reads().iter().any(|buffer| reads.contains(buffer));
    if !shares && !reads_same {
        return Err(Refusal::NothingShared);
    }
    may_join(producer, consumer)?;
    match &producer.kind {
        KernelKind::Nest(nest) if nest.serial => Err(Refusal::Serial),
        KernelKind::Nest(nest) => fuse_nests(nest, consumer, shares, ranges).map(KernelKind::Nest),
        KernelKind::MatMul(matmul) if shares => {
            let mut matmul = matmul.clone();
            // Rows of results may lie anywhere, as those of a head do between those of the others.
            let turned = reordered(consumer, &matmul.epilogue, &matmul.axes, ranges)
                .filter(|turned| stores_rows(turned, &matmul.axes));
            let consumer = turned.as_ref().unwrap_or(consumer);
            fuse_epilogue(&matmul.axes, &mut matmul.epilogue, consumer, ranges)?;
            Ok(KernelKind::MatMul(matmul))
        }
        KernelKind::Convolution(conv) if shares => {
            let mut conv = conv.clone();
            // What is written with channels first is computed where they are last.
            let turned = match conv.output_channels {
                Channels::First => None,
                Channels::Last => reordered(consumer, &conv.epilogue, &conv.axes, ranges),
            };
            let consumer = turned.as_ref().unwrap_or(consumer);
            fuse_epilogue(&conv.axes, &mut conv.epilogue, consumer, ranges)?;
            Ok(KernelKind::Convolution(conv))
        }
        KernelKind::Attention(attention) if shares => {
            let mut attention = attention.clone();
            // Its template writes rows of columns wherever they are.
            let turned = reordered(consumer, &attention.stages[1], &attention.axes, ranges);
            let consumer = turned.as_ref().unwrap_or(consumer);
            fuse_epilogue(&attention.axes, &mut attention.stages[1], consumer, ranges)?;
            Ok(KernelKind::Attention(attention))
        }
        KernelKind::MatMul(_)
        | KernelKind::Convolution(_)
        | KernelKind::Attention(_)
        | KernelKind::AxisOp(_)
        | KernelKind::Extern(_) => Err(Refusal::Kind),
    }
}

/// Two small kernels over one space that have nothing to do with each other, as one.
fn put_together(
    producer: &Kernel,
    consumer: &Nest,
    ranges: &dyn Ranges,
    target: &Target,
) -> Result<KernelKind, Refusal> {
    let KernelKind::Nest(nest) = &producer.kind else { return Err(Refusal::Kind) };
    if nest.serial || consumer.serial {
        return Err(Refusal::Serial);
    }
    let extents = |nest: &Nest| nest.axes.iter().map(|axis| axis.extent.clone()).collect::<Vec<_>>();
    if !is_flat(nest) || !is_flat(consumer) || extents(nest) != extents(consumer) {
        return Err(Refusal::NothingShared);
    }
    let count = Expr::product(nest.axes.iter().map(|axis| &axis.extent)).as_int();
    if count.is_none_or(|count| count > target.launch_elements()) {
        return Err(Refusal::NothingShared);
    }
    let touches = |reads: Vec<BufferId>, writes: &[BufferId]| reads.iter().any(|own| writes.contains(own));
    let (produced, written) =
        (producer.writes(), consumer.stages.iter().flat_map(Stage::writes).collect::<Vec<_>>());
    let read = consumer.stages.iter().flat_map(Stage::reads).collect();
    if touches(read, &produced) || touches(producer.reads(), &written) || touches(produced, &written) {
        return Err(Refusal::Overwrites);
    }
    let terms = |stages: &[Stage]| stages.iter().map(|stage| stage.terms.len()).sum::<usize>();
    if terms(&nest.stages) + terms(&consumer.stages) > MAX_INDEPENDENT_TERMS {
        return Err(Refusal::TooLarge);
    }
    // Axes that were joined before keep one of their names, which may be another in each kernel.
    let names =
        consumer.axes.iter().zip(&nest.axes).map(|(own, joint)| (own.symbol, Expr::sym(joint.symbol)));
    let (names, stages) = (names.collect(), consumer.stages.len());
    let (mut nest, mut consumer) = (nest.clone(), consumer.clone());
    rebuild(&mut consumer, nest.axes.clone(), vec![vec![]; stages], &vec![names; stages], ranges);
    append(&mut nest, &consumer);
    Ok(KernelKind::Nest(nest))
}

/// Whether nothing happens in inner loops.
pub(super) fn is_flat(nest: &Nest) -> bool {
    nest.accumulators.is_empty() && nest.stages.iter().all(|stage| stage.axes.is_empty())
}

/// Whether one unit of parallel work, which is worth so many positions, does a flat nest as well as several.
pub(super) fn is_small(nest: &Nest, worth: i64) -> bool {
    let count = Expr::product(nest.axes.iter().map(|axis| &axis.extent));
    count.as_int().is_some_and(|count| count <= worth)
}

/// A flat nest with only `outer` axes outside; the others become the inner axes of its stages.
fn with_inner(nest: &Nest, outer: usize) -> Nest {
    let mut nest = nest.clone();
    let inner = nest.axes.split_off(outer);
    for stage in &mut nest.stages {
        stage.axes.clone_from(&inner);
    }
    nest
}

fn fuse_nests(producer: &Nest, consumer: &Nest, shares: bool, ranges: &dyn Ranges) -> Result<Nest, Refusal> {
    let (mut first, second) = match (is_flat(producer), is_flat(consumer)) {
        (true, true) => {
            let aligned = align(consumer, &producer.axes, ranges).ok_or(Refusal::OtherSpace)?;
            if aligned.axes.len() != producer.axes.len() {
                return Err(Refusal::OtherSpace);
            }
            (producer.clone(), aligned)
        }
        (true, false) => {
            let aligned = onto_rows(producer, consumer, ranges).ok_or(Refusal::OtherSpace)?;
            (with_inner(&aligned, consumer.axes.len()), consumer.clone())
        }
        (false, true) => {
            let aligned = onto_rows(consumer, producer, ranges).ok_or(Refusal::OtherSpace)?;
            (producer.clone(), with_inner(&aligned, producer.axes.len()))
        }
        (false, false) => {
            let extents = |nest: &Nest| nest.axes.iter().map(|axis| axis.extent.clone()).collect::<Vec<_>>();
            if extents(producer) != extents(consumer) {
                return Err(Refusal::OtherSpace);
            }
            (producer.clone(), consumer.clone())
        }
    };
    if !shares && !reads_alike(&first, &second) {
        return Err(Refusal::NothingShared);
    }
    check_positions(&first, &second)?;
    append(&mut first, &second);
    Ok(first)
}

/// Whether a nest that walks over a product's results stores side by side what the product has side by side.
fn stores_rows(nest: &Nest, axes: &[Axis]) -> bool {
    let (Some(column), Some(own)) = (axes.last(), nest.axes.last()) else { return false };
    let mut stores = nest.stages.iter().flat_map(|stage| &stage.effects);
    !column.extent.is(1)
        && stores.all(|effect| match effect {
            Effect::Store { access, .. } => {
                access.is_direct() && access.offset.affine_in(own.symbol).is_some_and(|(step, _)| step.is(1))
            }
            Effect::Accumulate { .. } => false,
        })
}

/// Puts an element-wise consumer into the epilogue of a contraction.
fn fuse_epilogue(
    axes: &[Axis],
    epilogue: &mut Stage,
    consumer: &Nest,
    ranges: &dyn Ranges,
) -> Result<(), Refusal> {
    if !is_flat(consumer) {
        return Err(Refusal::NotElementWise);
    }
    // The consumer has no axes of one iteration; the contraction's own ones stay at 0.
    let wanted: Vec<Axis> = axes.iter().filter(|axis| !axis.extent.is(1)).cloned().collect();
    let numbered: Vec<Axis> = wanted
        .iter()
        .enumerate()
        .map(|(k, axis)| Axis { symbol: super::axes::symbol(k), extent: axis.extent.clone() })
        .collect();
    let mut aligned = align(consumer, &numbered, ranges).ok_or(Refusal::OtherSpace)?;
    if aligned.axes.len() != numbered.len() {
        return Err(Refusal::OtherSpace);
    }
    let map = numbered.iter().zip(&wanted).map(|(from, to)| (from.symbol, Expr::sym(to.symbol))).collect();
    let table = ranges_over(ranges, &[axes], &[]);
    let mut nest =
        Nest { axes: wanted.clone(), stages: vec![epilogue.clone()], accumulators: vec![], serial: false };
    for stage in &mut aligned.stages {
        super::axes::substitute_stage(stage, &map, &table);
    }
    aligned.axes = wanted;
    unit_coordinates(&mut nest, axes);
    let produced: BTreeSet<BufferId> = epilogue.writes().collect();
    for (access, _) in aligned.stages.iter().flat_map(Stage::loads) {
        if produced.contains(&access.buffer) {
            // A sum that is added where an index says is not there before all of them are.
            let site = store_site(&nest, access.buffer).ok_or(Refusal::UnclearProducer)?;
            if !site.access.is_same_element(access) {
                return Err(Refusal::OtherPosition);
            }
        }
    }
    append(&mut nest, &aligned);
    match <[Stage; 1]>::try_from(nest.stages) {
        Ok([stage]) => {
            *epilogue = stage;
            Ok(())
        }
        Err(_) => Err(Refusal::OtherPosition),
    }
}

/// Writes 0 for coordinates along axes of one iteration, as consumers do.
fn unit_coordinates(nest: &mut Nest, axes: &[Axis]) {
    for axis in axes.iter().filter(|axis| axis.extent.is(1)) {
        let plain = Index::Expr(Expr::sym(axis.symbol));
        for stage in &mut nest.stages {
            for effect in &mut stage.effects {
                if let Effect::Store { access, .. } = effect {
                    for coord in access.coords.iter_mut().filter(|coord| **coord == plain) {
                        *coord = Index::Expr(Expr::int(0));
                    }
                }
            }
        }
    }
}
