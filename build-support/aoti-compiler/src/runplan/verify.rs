//! Checks that a run plan is well formed and does what its schedule says. A finding is a bug of the compiler, never of a model.
//!
//! * Every kernel is called, launched as often as its schedule says, or exchanged; by its own functions, in their order.
//! * A call has as many tensors and sizes as its function takes, of the same types in every call of the function.
//! * A tensor is where the memory plan, the layout of the weights or the caller has its buffer; nothing writes to inputs,
//!   weights or the generator.
//! * Sizes are known where they are used: those read from data only behind the read, in the same list or a list inside it.
//! * Failures exist; what a run reads or asks is an `i64`, a boolean or a report.
//! * Weights, their expanded forms and states lie within their regions, and none overlaps another.
//! * For sizes at the ends of their ranges and between (`sizes.rs`), the memory of a run holds what is read from it (`memory.rs`).

mod calls;
mod memory;
mod sizes;
#[cfg(test)]
mod tests;

use super::{
    Action, Allocate, Assert, Condition, Exchange, FailureId, Launch, LaunchPart, Place, Planned, Pointer,
    Read, RunPlan, late,
};
use crate::dtype::DType;
use crate::graph::SymbolSource;
use crate::loops::KernelId;
use crate::schedule::{FunctionId, Schedule};
use crate::symbolic::{Expr, Symbol};
use cranelift_entity::SecondaryMap;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that is wrong, one sentence each; empty where the plan is well formed.
pub(crate) fn verify(schedule: &Schedule, planned: &Planned) -> Vec<String> {
    let mut verifier = Verifier {
        schedule,
        planned,
        run: &planned.run,
        called: SecondaryMap::new(),
        signatures: BTreeMap::new(),
        findings: vec![],
    };
    verifier.regions();
    let mut known = verifier.known_at_first();
    for check in &planned.run.checks {
        verifier.fails(check.failure);
        verifier.knows(check.holds.condition.symbols(), &known, "a check");
    }
    verifier.actions(&planned.run.actions, &mut known);
    verifier.all_are_called();
    if verifier.findings.is_empty() {
        verifier.findings.extend(memory::verify(schedule, &planned.run));
    }
    verifier.findings
}

/// What a function takes: the types of its tensors, and the number of its sizes.
type Signature = (Vec<DType>, usize);

struct Verifier<'a> {
    schedule: &'a Schedule,
    planned: &'a Planned,
    run: &'a RunPlan,
    /// How often each kernel has been called so far.
    called: SecondaryMap<KernelId, usize>,
    /// What each function was given when it was called first.
    signatures: BTreeMap<FunctionId, Signature>,
    findings: Vec<String>,
}

impl Verifier<'_> {
    fn find(&mut self, finding: String) {
        self.findings.push(finding);
    }

    /// The sizes that are known before anything runs.
    fn known_at_first(&self) -> BTreeSet<Symbol> {
        let symbols = (0..).map(Symbol::size).zip(&self.schedule.program.symbols);
        symbols.filter(|(_, info)| info.source != SymbolSource::Data).map(|(symbol, _)| symbol).collect()
    }

    fn fails(&mut self, failure: FailureId) {
        if !self.run.failures.is_valid(failure) {
            self.find(format!("{failure} is no failure of the plan"));
        }
    }

    fn knows(&mut self, used: impl IntoIterator<Item = Symbol>, known: &BTreeSet<Symbol>, by: &str) {
        for symbol in used {
            if !known.contains(&symbol) {
                self.find(format!("{by} needs {symbol}, which is not known there"));
            }
        }
    }

    fn knows_of<'e>(
        &mut self,
        sizes: impl IntoIterator<Item = &'e Expr>,
        known: &BTreeSet<Symbol>,
        by: &str,
    ) {
        let mut used = BTreeSet::new();
        sizes.into_iter().for_each(|size| size.collect_symbols(&mut used));
        self.knows(used, known, by);
    }

    fn is_of(&mut self, pointer: &Pointer, dtype: DType, by: &str) {
        if pointer.dtype != dtype {
            self.find(format!("{by} reads {} where it needs {dtype}", pointer.dtype));
        }
    }

    fn actions(&mut self, actions: &[Action], known: &mut BTreeSet<Symbol>) {
        let mut before = None;
        for action in actions {
            self.action(action, before, known);
            before = Some(action);
        }
    }

    fn action(&mut self, action: &Action, before: Option<&Action>, known: &mut BTreeSet<Symbol>) {
        match action {
            Action::Call(call) => self.call(call, None, known),
            Action::Launch(launch) => {
                self.part(launch, before);
                self.call(&launch.call, Some(launch), known);
            }
            Action::Exchange(own) => self.exchange(own, known),
            Action::Read(Read { from, symbol, failure, .. }) => {
                self.fails(*failure);
                self.is_of(from, DType::I64, "a size");
                known.insert(*symbol);
            }
            Action::Assert(Assert { condition, failure }) => {
                self.fails(*failure);
                match condition {
                    Condition::Holds(flag) => self.is_of(flag, DType::Bool, "an assertion"),
                    Condition::Sizes(guard) => self.knows(guard.condition.symbols(), known, "an assertion"),
                    Condition::Succeeded(report) => self.is_of(report, DType::U8, "a report"),
                }
            }
            Action::Allocate(Allocate { bytes, failure, late, .. }) => {
                self.fails(*failure);
                let mut used = BTreeSet::new();
                late::symbols_of_scratch(bytes, &mut used);
                self.knows(used, known, &format!("the allocation of {late}"));
            }
            Action::Free(_) => {}
            Action::If { predicate, then, otherwise } => {
                self.is_of(predicate, DType::Bool, "a branch");
                self.actions(then, &mut known.clone());
                self.actions(otherwise, &mut known.clone());
            }
            Action::Loop { condition, predicate, body } => {
                let mut inside = known.clone();
                self.actions(condition, &mut inside);
                self.is_of(predicate, DType::Bool, "a loop");
                self.actions(body, &mut inside);
            }
        }
    }

    /// The launches of a kernel follow each other, and each says which of them it is.
    fn part(&mut self, launch: &Launch, before: Option<&Action>) {
        let id = launch.call.kernel;
        let (number, Some(all)) = (self.called[id], self.schedule.launches.get(id)) else { return };
        let expected = match (number + 1 == all.len(), number) {
            (true, 0) => LaunchPart::Whole,
            (true, _) => LaunchPart::Last,
            (false, 0) => LaunchPart::First,
            (false, _) => LaunchPart::Middle,
        };
        let follows = matches!(before, Some(Action::Launch(own)) if own.call.kernel == id
            && own.call.tensors == launch.call.tensors && own.call.sizes == launch.call.sizes);
        if launch.part != expected || (number > 0 && !follows) {
            let name = self.name(id);
            self.find(format!("{name} is launched out of order"));
        }
    }

    fn exchange(&mut self, own: &Exchange, known: &BTreeSet<Symbol>) {
        let Exchange { kernel, collective, input, given, output, made, failure } = own;
        self.fails(*failure);
        let Some(of) = self.schedule.program.kernels.get(*kernel) else {
            return self.find(format!("{kernel} is exchanged, which is no kernel"));
        };
        self.called[*kernel] += 1;
        let name = self.name(*kernel);
        self.knows_of(collective.kind.sizes().chain([given, made]), known, &name);
        let (reads, writes) = (of.reads(), of.writes());
        for (buffer, pointer) in reads.iter().chain(&writes).zip([input, output]) {
            self.tensor(&name, *buffer, pointer);
        }
    }

    /// Every kernel is called as often as it has launches, or once.
    fn all_are_called(&mut self) {
        for id in self.schedule.program.kernels.keys() {
            let launches = self.schedule.launches.get(id).map_or(0, Vec::len);
            let (wanted, called) = (launches.max(1), self.called[id]);
            if called != wanted {
                let name = self.name(id);
                self.find(format!("{name} is called {called} times and not {wanted}"));
            }
        }
        if self.run.kernels.len() != self.schedule.program.kernels.len() {
            self.find(format!("the plan describes {} kernels", self.run.kernels.len()));
        }
    }

    /// Weights, expanded forms and states are within their regions, each in a place of its own.
    fn regions(&mut self) {
        let weights = self.planned.layout.bytes();
        let mut end = 0;
        for own in &self.run.states {
            if own.offset < end || own.value.checked_add(own.bytes).is_none_or(|last| last > weights) {
                self.find(format!("the state at {} overlaps another or starts from no weights", own.offset));
            }
            end = own.offset.saturating_add(own.bytes);
        }
        end = 0;
        for own in &self.run.expansions {
            if own.to < end || own.from >= weights {
                self.find(format!("the form at {} overlaps another or is made of no weights", own.to));
            }
            end = own.to + super::weights::expanded_bytes(&own.form);
        }
    }

    /// Whether a place of the weights, or of what is made of them, is that of a constant.
    fn is_placed(&self, place: &Place) -> bool {
        match place {
            Place::Weights(offset) => {
                let mut placed = self.planned.layout.placed().iter();
                placed
                    .any(|own| own.offset == *offset && own.offset + own.bytes <= self.planned.layout.bytes())
            }
            Place::Expanded(offset) => self.planned.is_expanded_at(*offset),
            Place::Input(_)
            | Place::Output(_)
            | Place::State(_)
            | Place::Generator
            | Place::Arena(_)
            | Place::Late(_) => false,
        }
    }

    fn name(&self, id: KernelId) -> String {
        let kernel = self.schedule.program.kernels.get(id);
        kernel.map_or_else(|| format!("{id}"), |kernel| format!("kernel `{}`", kernel.name))
    }
}
