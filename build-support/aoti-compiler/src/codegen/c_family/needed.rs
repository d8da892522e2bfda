//! Which terms of a stage have a variable in its text, and what the text of each reads.

use super::quantised::Quantised;
use super::terms::Context;
use crate::graph::Combine;
use crate::loops::{Effect, Term, TermId};

impl Context<'_> {
    /// Which terms have a variable: all but those that are only rounded for a store, which rounds too, and those that a function
    /// of the headers has in it.
    pub(super) fn needed(&self) -> Vec<bool> {
        let stage = self.stage;
        let mut needed = vec![true; stage.terms.len()];
        for effect in &stage.effects {
            if let Effect::Store { value, .. } = effect {
                needed[*value] = self.stored(effect) == Some(*value);
            }
        }
        let within = (0..stage.terms.len()).filter_map(|id| Quantised::of(stage, id));
        within.flat_map(|own| own.within).for_each(|id| needed[id] = false);
        let by_effects = stage.effects.iter().flat_map(|effect| self.effect_operands(effect));
        by_effects.chain(self.read_later.iter().copied()).for_each(|id| needed[id] = true);
        for id in (0..stage.terms.len()).rev() {
            if needed[id] {
                self.operands(id).into_iter().for_each(|operand| needed[operand] = true);
            }
        }
        needed
    }

    /// The terms that the text of a term reads.
    pub(super) fn operands(&self, id: TermId) -> Vec<TermId> {
        Quantised::of(self.stage, id)
            .map_or_else(|| self.stage.terms[id].term.operands().to_vec(), |own| vec![own.x])
    }

    /// The term that a store is given: before it is rounded to the type of the memory, as stores round.
    pub(super) fn stored(&self, effect: &Effect) -> Option<TermId> {
        let Effect::Store { access, value, combine } = effect else { return None };
        let (rounded, dtype) = (&self.stage.terms[*value], self.parameters.dtype(access.buffer));
        let Term::Cast(exact) = rounded.term else { return Some(*value) };
        let is_rounded = dtype.is_float() && dtype.compute() != dtype && rounded.dtype == dtype;
        let is_computed_alike = self.stage.terms[exact].dtype.compute() == dtype.compute();
        let is_stored = is_rounded && is_computed_alike && *combine == Combine::Set;
        Some(if is_stored { exact } else { *value })
    }

    pub(super) fn effect_operands(&self, effect: &Effect) -> Vec<TermId> {
        match effect {
            Effect::Store { access, value, .. } => {
                let value = self.stored(effect).unwrap_or(*value);
                access.indirect.iter().map(|(term, _)| *term).chain([value]).collect()
            }
            Effect::Accumulate { value, .. } => vec![*value],
        }
    }
}
