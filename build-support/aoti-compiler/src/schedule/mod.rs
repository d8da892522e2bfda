//! Decides how a program runs on one target: which kernels are fused, along which axes they loop, how they are laid over
//! the machine, and where their buffers lie. The result is a value, [`Schedule`], with a text form and a verifier.
//!
//! Works on loop-level programs, for one [`Target`]; knows no C++ and no device by name.

mod align;
mod axes;
pub mod calls;
mod copy_elision;
mod dead_stores;
mod fuse;
pub mod fusion_choice;
pub mod implementations;
mod joined_axes;
pub mod memory;
mod merge;
mod non_empty;
mod noted;
mod positions;
mod reduced_axes;
mod reorder;
pub mod row_cache;
mod rows;
pub mod setting;
#[cfg(test)]
mod tests;
pub mod text;
mod turn;
mod turned_products;
pub(crate) mod uses;
mod verify;

pub use crate::tuning::{Records, TuningKey};
pub use calls::{Argument, Call, FunctionId};
pub use fusion_choice::FusionChoice;
pub use implementations::{Implementation, implementations, question};
pub use row_cache::RowCaching;
pub use setting::{Setting, TuningStage};
pub use verify::verify;

use crate::kernels::launch::{Launch, Launches};
use crate::kernels::mapping::Mapping;
use crate::kernels::{self, Scratch, Selection};
use crate::loops::bounds::{self, OutOfBounds};
use crate::loops::{KernelId, KernelKind, Nest, Program, Step};
use crate::symbolic::Ranges;
use crate::target::Target;
use crate::tuning::Decisions;
use cranelift_entity::PrimaryMap;
use fuse::{Fusion, Reason};
use memory::MemoryPlan;
use std::fmt;

/// Why two kernels stay apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The kernel's kind takes no part in fusion.
    Kind,
    /// Its positions must run in order.
    Serial,
    /// Nothing that one reads or writes concerns the other.
    NothingShared,
    /// Their loops do not run over the same space.
    OtherSpace,
    /// The consumer reads what another position of the loops produces.
    OtherPosition,
    /// The producer writes the value in a way that cannot be followed (indirect, combining, or more than once).
    UnclearProducer,
    /// The consumer writes what the producer reads or writes.
    Overwrites,
    /// It would leave too little to run in parallel.
    LosesParallelism,
    /// A contraction's epilogue has no room for a reduction.
    NotElementWise,
    /// Its vectors do not lie in the rows of the product, or a row is more work than the product's.
    NotByRow,
    /// The joint kernel would be so large that its values do not fit in registers and it takes long to compile.
    TooLarge,
    /// A record says that they are faster apart.
    Measured,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Kind => "this kind of kernel is not fused",
            Refusal::Serial => "its positions must run in order",
            Refusal::NothingShared => "they share no data",
            Refusal::OtherSpace => "their loops run over different spaces",
            Refusal::OtherPosition => "it reads what another position of the loops produces",
            Refusal::UnclearProducer => "the value is written indirectly, in parts or more than once",
            Refusal::Overwrites => "it overwrites what the other uses",
            Refusal::LosesParallelism => "too little would be left to run in parallel",
            Refusal::NotElementWise => "an epilogue has no room for a reduction",
            Refusal::NotByRow => "it does not read the product's rows in order",
            Refusal::TooLarge => "the joint kernel would have too many terms",
            Refusal::Measured => "they were measured to be faster apart",
        })
    }
}

/// One decision whether two kernels become one, by their names.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// The earlier kernel.
    pub producer: String,
    /// The later kernel.
    pub consumer: String,
    /// Why they stay apart; none where they became one.
    pub refusal: Option<Refusal>,
    /// What they cost, where they could be one.
    pub costs: Option<Costs>,
}

/// What two kernels cost, in the units of the target's prices.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// As they are.
    pub apart: f64,
    /// As one.
    pub fused: f64,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { producer, consumer, refusal, costs } = self;
        write!(f, "{producer} + {consumer}: ")?;
        match refusal {
            None => f.write_str("one kernel")?,
            Some(refusal) => write!(f, "{refusal}")?,
        }
        let Some(Costs { apart, fused }) = costs else { return Ok(()) };
        let (apart, fused) = (apart / 1e3, fused / 1e3);
        let (before, after) = if refusal.is_none() { (apart, fused) } else { (fused, apart) };
        write!(f, "; costs {after:.1} k instead of {before:.1} k")
    }
}

/// A program with every decision about how it runs on one target. Code generation prints it and decides nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Schedule {
    /// What it is for.
    pub target: Target,
    /// The kernels, fused, in the order in which they run.
    pub program: Program,
    /// How each kernel is computed.
    pub choices: PrimaryMap<KernelId, Selection>,
    /// How the positions of each kernel are laid over the machine.
    pub mappings: PrimaryMap<KernelId, Mapping>,
    /// What the functions of each kernel are given, and which kernels have a function together.
    pub calls: PrimaryMap<KernelId, Call>,
    /// How each kernel is launched on a device, in order; not at all on the host.
    pub launches: PrimaryMap<KernelId, Vec<Launch>>,
    /// Where buffers and scratch lie.
    pub memory: MemoryPlan,
}

/// Schedules a program for one target, as measurements say where there are any; says what was not fused, and why.
pub fn schedule(
    mut program: Program,
    ranges: &dyn Ranges,
    target: &Target,
    questions: &mut Decisions,
) -> Result<(Schedule, Vec<Explanation>), OutOfBounds> {
    let explanations = fuse(&mut program, (ranges, target), questions);
    bounds::enforce_bounds(&mut program, "scheduling")?;
    if target.notes_assertions() {
        noted::note_assertions(&mut program);
    }
    let schedule = decide(program, ranges, target, questions.records());
    Ok((schedule, explanations))
}

/// Decides how the kernels of a program run, without fusing any.
pub fn decide(program: Program, ranges: &dyn Ranges, target: &Target, records: &Records) -> Schedule {
    let kernels = program.kernels.values();
    let decided: Vec<(Selection, Mapping)> =
        kernels.map(|kernel| implementations::decide(records, &program, kernel, ranges, target)).collect();
    let (mut choices, mut mappings, mut launches) = (PrimaryMap::new(), PrimaryMap::new(), PrimaryMap::new());
    for (kernel, (mut choice, mapping)) in program.kernels.values().zip(decided) {
        let launched = match &mapping {
            Mapping::Cpu(_) => vec![],
            Mapping::Gpu(mapping) => {
                let Launches { all, scratch } = choice.algorithm.launches(&program, kernel, mapping);
                choice.scratch = scratch.map_or_else(Scratch::default, Scratch::of_all);
                all
            }
        };
        choices.push(choice);
        mappings.push(mapping);
        launches.push(launched);
    }
    kernels::share_panels(&program, &mut choices);
    let calls = calls::of_kernels(&program, target, (&choices, &mappings), &launches);
    let memory = memory::plan(&program, &choices, ranges, target);
    Schedule { target: target.clone(), program, choices, mappings, calls, launches, memory }
}

/// Fuses kernels and simplifies their loops; gives what was not fused.
fn fuse(program: &mut Program, on: (&dyn Ranges, &Target), questions: &mut Decisions) -> Vec<Explanation> {
    let (mut explanations, (ranges, target)) = (Vec::new(), on);
    each_nest(program, &mut |nest| axes::drop_unit_axes(nest, ranges));
    fuse_for(Reason::Data, program, on, (questions, &mut explanations));
    // Before parts of one buffer depend on each other, and again when more loops are alike.
    share_launches(program, on, questions);
    copy_elision::elide_copies(program, ranges);
    dead_stores::remove_dead(program);
    dead_stores::keep_rows_local(program, ranges, target);
    if target.finishes_rows() {
        fuse_for(Reason::Rows, program, on, (questions, &mut explanations));
        program.number_kernels();
    }
    if target.reduces_along_memory() {
        each_nest(program, &mut |nest| reduced_axes::order(nest, ranges));
    }
    each_nest(program, &mut |nest| axes::merge_axes(nest, ranges));
    joined_axes::join(program, target.joined_axes(), ranges);
    turned_products::turn(program, target);
    share_launches(program, on, questions);
    row_cache::hold_rows(program, ranges, target, questions);
    explanations
}

/// Fuses small kernels that share nothing, where a launch takes time.
fn share_launches(program: &mut Program, on: (&dyn Ranges, &Target), questions: &mut Decisions) {
    if on.1.launch_elements() > 0 {
        // Why kernels that share nothing stay apart is of no interest.
        fuse_for(Reason::Launch, program, on, (questions, &mut Vec::new()));
    }
}

/// Fuses kernels for one reason.
fn fuse_for(
    reason: Reason,
    program: &mut Program,
    (ranges, target): (&dyn Ranges, &Target),
    (questions, explanations): (&mut Decisions, &mut Vec<Explanation>),
) {
    let mut steps = std::mem::take(&mut program.steps);
    fuse_lists(&mut steps, &mut Fusion { program, ranges, target, explanations, questions, reason });
    program.steps = steps;
}

/// Fuses within every list of steps, inner lists first.
fn fuse_lists(steps: &mut Vec<Step>, fusion: &mut Fusion<'_>) {
    for list in steps.iter_mut().flat_map(Step::lists_mut) {
        fuse_lists(list, fusion);
    }
    fuse::fuse_list(steps, fusion);
}

fn each_nest(program: &mut Program, visit: &mut dyn FnMut(&mut Nest)) {
    for kernel in program.kernels.values_mut() {
        if let KernelKind::Nest(nest) = &mut kernel.kind {
            visit(nest);
        }
    }
}
