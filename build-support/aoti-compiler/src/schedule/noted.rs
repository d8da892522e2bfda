//! Has kernels note where a condition of the program fails, as they note indices that are outside, so that a run does not wait for what
//! they wrote and launches the same each time.
//!
//! What comes behind a condition that failed runs all the same, with whatever data there is; its results are given to nobody, as the
//! run fails when it is waited for, and a state that it changed has changed, as where an index was outside. So nothing may rely on the condition for what it touches, nor for coming to an end:
//!
//! * Indices that are data are checked one by one where they are used, whatever was asked before (`Term::CheckIndex`).
//! * `loops/bounds` believes conditions over sizes ([`bounds::enforce_bounds`](crate::loops::bounds::enforce_bounds)): its own, and those
//!   of the program that it understands. Neither reads any data, and those are still waited for.
//! * Sizes that are read from data, branches and loops follow what kernels wrote, and routines on matrices go on until numbers
//!   converge; functions of the project may take for granted what the program asks before. With any of these, all are waited for.

use crate::dtype::DType;
use crate::graph::{BinaryOp, Combine, Relation, Scalar};
use crate::loops::{
    AxisOp, BufferId, Effect, KernelId, KernelKind, Program, Site, Stage, Step, Term, TermId,
};
use crate::symbolic::Expr;

/// Replaces assertions on what loops compute of data by checks in these.
pub(super) fn note_assertions(program: &mut Program) {
    if !program.steps.iter().all(|step| goes_on(program, step)) {
        return;
    }
    for step in std::mem::take(&mut program.steps) {
        if let Step::Assert(buffer, message) = &step
            && let Some(place) = place_of(program, *buffer)
        {
            let site = program.site(Site::Assertion(message.clone()));
            note(program, place, site);
        } else {
            program.steps.push(step);
        }
    }
}

/// Whether a step comes to an end, and touches nothing else, whatever it is given.
fn goes_on(program: &Program, step: &Step) -> bool {
    match step {
        Step::Kernel(id) => match &program.kernels[*id].kind {
            KernelKind::Nest(_)
            | KernelKind::MatMul(_)
            | KernelKind::Convolution(_)
            | KernelKind::Attention(_) => true,
            KernelKind::AxisOp(rows) => !matches!(rows.op, AxisOp::Matrices(_)),
            KernelKind::Extern(_) => false,
        },
        Step::Assert(..) => true,
        Step::Read { .. } | Step::Require(_) | Step::If { .. } | Step::Loop { .. } => false,
    }
}

/// Where a kernel stores a boolean.
#[derive(Clone, Copy)]
struct StoredAt {
    kernel: KernelId,
    stage: usize,
    effect: usize,
}

/// Where loops store a boolean that follows from data, if that is the only place that writes it.
fn place_of(program: &Program, buffer: BufferId) -> Option<StoredAt> {
    let mut writers = program.kernels.iter().filter(|(_, kernel)| kernel.writes().contains(&buffer));
    let (Some((id, kernel)), None) = (writers.next(), writers.next()) else { return None };
    let KernelKind::Nest(nest) = &kernel.kind else { return None };
    let stores = nest.stages.iter().enumerate().flat_map(|(stage, own)| {
        own.effects.iter().enumerate().map(move |(effect, own)| (stage, effect, own))
    });
    let mut own = stores.filter(|(.., effect)| match effect {
        Effect::Store { access, .. } => access.buffer == buffer,
        Effect::Accumulate { .. } => false,
    });
    let (Some((stage, effect, store)), None) = (own.next(), own.next()) else { return None };
    let Effect::Store { access, value, combine: Combine::Set } = store else { return None };
    let is_plain = access.is_direct() && nest.stages[stage].terms[*value].dtype == DType::Bool;
    (is_plain && is_of_data(&nest.stages[stage], *value)).then_some(StoredAt { kernel: id, stage, effect })
}

/// Whether a term follows from an element of a buffer. Conditions over sizes, which `loops/bounds` believes, do not.
fn is_of_data(stage: &Stage, id: TermId) -> bool {
    let term = &stage.terms[id].term;
    matches!(term, Term::Load { .. } | Term::Accumulated(_))
        || term.operands().into_iter().any(|operand| is_of_data(stage, operand))
}

/// Has a kernel check what it stores: true is the index 0 of one place, false is outside.
fn note(program: &mut Program, place: StoredAt, site: usize) {
    let KernelKind::Nest(nest) = &mut program.kernels[place.kernel].kind else { return };
    let stage = &mut nest.stages[place.stage];
    let Effect::Store { value: holds, .. } = stage.effects[place.effect] else { return };
    let [zero, one] = [0, 1].map(|number| stage.term(Term::Literal(Scalar::Int(number)), DType::I64));
    let index = stage.term(Term::Select(holds, zero, one), DType::I64);
    let checked = Term::CheckIndex { index, size: Expr::int(1), wraps: false, site };
    let checked = stage.term(checked, DType::I64);
    // What is stored is the same; an index that is outside becomes 0.
    let same = Term::Binary(BinaryOp::Compare(Relation::Eq), index, checked);
    let same = stage.term(same, DType::Bool);
    if let Effect::Store { value, .. } = &mut stage.effects[place.effect] {
        *value = same;
    }
}
