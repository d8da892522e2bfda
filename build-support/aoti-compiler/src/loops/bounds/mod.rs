//! Ensures that every access of a program is within its buffer: proven, or checked at run time.
//!
//! A coordinate is shown to be within its axis from the extents of the loops around it, the ranges of sizes, the
//! guards of its term, the conditions that the run checked before, and checks of indices. [`verify`] says what cannot
//! be shown.

mod bound;
mod copies;
mod digits;
mod enforce;
mod facts;
mod goals;
#[cfg(test)]
mod tests;

pub use enforce::enforce;

use super::guard::inside;
use super::{Guard, KernelId, Program, Step};
use crate::graph::Condition;
use crate::symbolic::{self, Expr, RangeTable, Symbol};
use facts::Facts;
use goals::Goal;
pub(super) use goals::fresh;
use std::fmt;

/// What a pass made of a program that can neither be shown to stay within its buffers, or to read what has been written there,
/// nor be checked: a bug of the compiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutOfBounds {
    pass: &'static str,
    fault: &'static str,
    findings: Vec<String>,
}

impl OutOfBounds {
    /// A pass, what it made of a program, and where that is seen; nothing where it is not.
    pub(crate) fn none(
        pass: &'static str,
        fault: &'static str,
        findings: Vec<String>,
    ) -> Result<(), OutOfBounds> {
        if findings.is_empty() { Ok(()) } else { Err(OutOfBounds { pass, fault, findings }) }
    }
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} made a program that {}:\n{}", self.pass, self.fault, self.findings.join("\n"))
    }
}

/// Shows every access to be within its buffer or gives it a check, in every build. Where neither can be done, no access may be
/// printed.
pub fn enforce_bounds(program: &mut Program, pass: &'static str) -> Result<(), OutOfBounds> {
    enforce(program).or_else(|findings| OutOfBounds::none(pass, "leaves its buffers", findings))
}

/// What cannot be shown to stay within its buffer, one sentence each; empty where everything is.
pub fn verify(program: &Program) -> Vec<String> {
    let mut prover = Prover::new(program);
    let mut findings = Vec::new();
    Step::walk(&program.steps, &mut |step| {
        let Step::Kernel(id) = step else { return };
        for goal in goals::of_kernel(program, &program.kernels[*id], &prover.ranges) {
            if !prover.proves(&goal) {
                findings.push(finding(program, &Unproven { kernel: *id, goal }));
            }
        }
    });
    findings
}

/// A goal that was not shown.
struct Unproven {
    kernel: KernelId,
    goal: Goal,
}

fn finding(program: &Program, unproven: &Unproven) -> String {
    let Unproven { kernel, goal } = unproven;
    let shape = crate::graph::text::bracketed(&program.buffers[goal.buffer].shape);
    format!(
        "kernel `{}`: {} {}{shape} outside its bounds where `{}` is negative",
        program.kernels[*kernel].name,
        goal.place.verb(),
        goal.buffer,
        goal.expr
    )
}

/// What is known at one place of a program.
struct Prover {
    ranges: RangeTable,
    facts: Facts,
}

impl Prover {
    fn new(program: &Program) -> Prover {
        let mut ranges = RangeTable::default();
        for (index, symbol) in program.symbols.iter().enumerate() {
            ranges.set(Symbol::size(u32::try_from(index).expect("symbols are few")), symbol.range);
        }
        let mut prover = Prover { ranges, facts: Facts::default() };
        // Bounds of what is read from data are checked where it is read.
        for known in crate::graph::facts_of(&program.symbols).known() {
            prover.facts.assume(known.clone());
        }
        program.guards.iter().for_each(|guard| prover.require(&guard.condition));
        prover
    }

    /// A condition that the run has checked.
    fn require(&mut self, condition: &Condition) {
        let mut facts = symbolic::Facts::new(self.ranges.clone());
        condition.assume(&mut facts);
        for known in facts.known() {
            self.facts.assume(known.clone());
        }
    }

    /// Whether a goal holds at every position of its loops where its guards hold.
    fn proves(&mut self, goal: &Goal) -> bool {
        let known = self.facts.count();
        let ranges = self.within(goal);
        let mut proven = self.proves_in(goal, &ranges);
        let mut parts = digits::apart(goal, 0, &ranges);
        for number in 1..=digits::MOST {
            let Some(goal) = parts.filter(|_| !proven) else { break };
            let ranges = self.within(&goal);
            proven = self.proves_in(&goal, &ranges);
            parts = digits::apart(&goal, number, &ranges);
        }
        self.facts.forget(known);
        proven
    }

    /// What the loops around a goal tell of sizes and positions.
    fn within(&mut self, goal: &Goal) -> RangeTable {
        let mut ranges = self.ranges.clone();
        for axis in &goal.axes {
            // Where a loop has no position nothing is accessed.
            self.facts.assume(&axis.extent - 1);
            ranges.set_extent(axis.symbol, axis.extent.clone());
        }
        ranges.assume_inhabited(goal.axes.iter().map(|axis| &axis.extent));
        ranges
    }

    fn proves_in(&mut self, goal: &Goal, ranges: &RangeTable) -> bool {
        self.facts.prove(&goal.expr, ranges)
            || (self.facts.decide(ranges) && self.facts.prove(&goal.expr, ranges))
            || (!goal.guards.is_empty() && self.proves_guarded(goal, ranges.clone()))
    }

    /// With each guarded coordinate as an axis of its own.
    fn proves_guarded(&mut self, goal: &Goal, mut ranges: RangeTable) -> bool {
        let mut may_hold = |guard: &Guard, ranges: &RangeTable| {
            let Guard { coordinate, size } = guard;
            let outside = [coordinate - size, &Expr::int(-1) - coordinate];
            let never = outside.iter().any(|outside| self.facts.prove(outside, ranges));
            self.facts.assume(size - 1);
            !never
        };
        // What is always outside is never read.
        let inside = inside(goal.expr.clone(), &goal.guards, &goal.axes, &mut ranges, &mut may_hold);
        inside.is_none_or(|expr| self.facts.prove(&expr, &ranges))
    }
}
