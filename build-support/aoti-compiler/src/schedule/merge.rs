//! Puts the stages of one nest behind those of another: joins stages with equal loops, and replaces loads of what was
//! just stored by the stored terms.

use crate::graph::Combine;
use crate::loops::{Access, BufferId, Effect, Nest, Stage, Term, TermId};

/// Where a nest stores a buffer.
pub(super) struct StoreSite<'n> {
    pub(super) stage: usize,
    pub(super) value: TermId,
    pub(super) access: &'n Access,
}

/// The only plain store of a buffer in a nest.
pub(super) fn store_site(nest: &Nest, buffer: BufferId) -> Option<StoreSite<'_>> {
    let mut found = None;
    for (index, stage) in nest.stages.iter().enumerate() {
        for effect in &stage.effects {
            let Effect::Store { access, value, combine } = effect else { continue };
            if access.buffer != buffer {
                continue;
            }
            if *combine != Combine::Set || !access.is_direct() || found.is_some() {
                return None;
            }
            found = Some(StoreSite { stage: index, value: *value, access });
        }
    }
    found
}

/// Appends the stages of `consumer` to `nest`; both loop over the same outer axes and legality is settled.
pub(super) fn append(nest: &mut Nest, consumer: &Nest) {
    let first_accumulator = nest.accumulators.len();
    let mut places = Vec::new();
    for (index, stage) in consumer.stages.iter().enumerate() {
        let stage = renumbered(stage, first_accumulator, &places);
        let place = place_stage(nest, stage);
        places.push(place);
        for accumulator in consumer.accumulators.iter().filter(|accumulator| accumulator.stage == index) {
            let mut accumulator = accumulator.clone();
            accumulator.stage = places[index].stage;
            nest.accumulators.push(accumulator);
        }
    }
}

/// Where a stage of the consumer went, and what its terms are there.
struct Place {
    stage: usize,
    terms: Vec<TermId>,
}

/// References to accumulators and earlier stages as they are in the joint nest.
fn renumbered(stage: &Stage, first_accumulator: usize, places: &[Place]) -> Stage {
    let mut stage = stage.clone();
    for typed in &mut stage.terms {
        if let Term::Accumulated(accumulator) = &mut typed.term {
            *accumulator += first_accumulator;
        }
        if let Term::Earlier { stage, term } = &mut typed.term {
            let place = &places[*stage];
            *term = place.terms[*term];
            *stage = place.stage;
        }
    }
    for effect in &mut stage.effects {
        if let Effect::Accumulate { accumulator, .. } = effect {
            *accumulator += first_accumulator;
        }
    }
    stage
}

fn place_stage(nest: &mut Nest, stage: Stage) -> Place {
    let target = (first_possible(nest, &stage)..nest.stages.len()).find(|t| can_join(nest, *t, &stage));
    let target = target.unwrap_or_else(|| {
        nest.stages.push(Stage { axes: stage.axes.clone(), terms: vec![], effects: vec![] });
        nest.stages.len() - 1
    });
    let terms = move_into(nest, target, stage);
    Place { stage: target, terms }
}

/// The first stage that comes late enough for everything that `stage` needs.
fn first_possible(nest: &Nest, stage: &Stage) -> usize {
    let mut first = 0;
    for typed in &stage.terms {
        let needed = match &typed.term {
            Term::Accumulated(accumulator) => {
                nest.accumulators.get(*accumulator).map_or(nest.stages.len(), |a| a.stage + 1)
            }
            Term::Earlier { stage: earlier, .. } => earlier + 1,
            // In the storing stage itself if the very same element is read, else after it.
            Term::Load { access, .. } => match store_site(nest, access.buffer) {
                Some(site) => site.stage,
                None => behind_last(nest, |stage| stage.writes().any(|buffer| buffer == access.buffer)),
            },
            Term::Literal(_)
            | Term::Index(_)
            | Term::Unary(..)
            | Term::Binary(..)
            | Term::Select(..)
            | Term::Cast(_)
            | Term::Inside(_)
            | Term::CheckIndex { .. }
            | Term::Sum => 0,
        };
        first = first.max(needed);
    }
    // What is read before it is overwritten, and what is written several times, stays in order.
    let overwritten: Vec<BufferId> = stage.writes().collect();
    first.max(behind_last(nest, |earlier| {
        earlier.accesses().any(|access| overwritten.contains(&access.buffer))
    }))
}

/// The stage behind the last one of a kind; the first where there is none.
fn behind_last(nest: &Nest, is_one: impl Fn(&Stage) -> bool) -> usize {
    nest.stages.iter().rposition(is_one).map_or(0, |last| last + 1)
}

fn can_join(nest: &Nest, target: usize, stage: &Stage) -> bool {
    let extents = |stage: &Stage| stage.axes.iter().map(|axis| axis.extent.clone()).collect::<Vec<_>>();
    extents(&nest.stages[target]) == extents(stage)
        && stage.loads().all(|(access, guards)| match store_site(nest, access.buffer) {
            Some(site) if site.stage == target => guards.is_empty() && access.is_same_element(site.access),
            Some(site) => site.stage < target,
            None => true,
        })
}

/// Moves terms and effects; gives the new numbers of the terms.
fn move_into(nest: &mut Nest, target: usize, stage: Stage) -> Vec<TermId> {
    let mut numbers: Vec<TermId> = Vec::with_capacity(stage.terms.len());
    for typed in stage.terms {
        let mut term = typed.term;
        term.renumber(&|old| numbers[old]);
        let number = match replacement(nest, target, &term) {
            Some(Replacement::Term(number)) => number,
            Some(Replacement::Earlier(term)) => nest.stages[target].term(term, typed.dtype),
            None => nest.stages[target].term(term, typed.dtype),
        };
        numbers.push(number);
    }
    for mut effect in stage.effects {
        match &mut effect {
            Effect::Store { access, value, .. } => {
                access.renumber(&|old| numbers[old]);
                *value = numbers[*value];
            }
            Effect::Accumulate { value, .. } => *value = numbers[*value],
        }
        nest.stages[target].effects.push(effect);
    }
    numbers
}

enum Replacement {
    Term(TermId),
    Earlier(Term),
}

/// What a load of a stored element is replaced by.
fn replacement(nest: &Nest, target: usize, term: &Term) -> Option<Replacement> {
    let Term::Load { access, guards, .. } = term else { return None };
    let site = store_site(nest, access.buffer)?;
    if !guards.is_empty() || !access.is_same_element(site.access) {
        return None;
    }
    if site.stage == target {
        return Some(Replacement::Term(site.value));
    }
    nest.stages[site.stage]
        .axes
        .is_empty()
        .then_some(Replacement::Earlier(Term::Earlier { stage: site.stage, term: site.value }))
}
