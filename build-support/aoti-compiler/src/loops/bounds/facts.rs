//! What is known about sizes besides their ranges, and what follows from it.

use super::bound::{End, bound};
use crate::symbolic::{Expr, Node, Ranges, common_divisor};
use std::cell::Cell;
use std::collections::BTreeSet;

/// How many facts one proof may combine.
const DEPTH: usize = 3;
/// How many facts about the same symbols one proof looks at.
const WIDTH: usize = 24;
/// Ways to go on that one proof may try.
const MAX_TRIES: usize = 4096;

/// A bound below every value that an expression takes in its loops.
pub(super) fn at_lowest(expr: &Expr, ranges: &dyn Ranges) -> Option<Expr> {
    bound(expr, End::Low, &|symbol| Some((Expr::int(0), ranges.extent(symbol)? - 1)), ranges)
}

/// Expressions that are never negative where control has come.
#[derive(Clone, Default, Debug)]
pub(super) struct Facts {
    never_negative: Vec<Expr>,
}

impl Facts {
    /// How many there are; [`Facts::forget`] goes back to that.
    pub(super) fn count(&self) -> usize {
        self.never_negative.len()
    }

    /// Forgets what was stated after there were `count`.
    pub(super) fn forget(&mut self, count: usize) {
        self.never_negative.truncate(count);
    }

    /// States that an expression is never negative.
    pub(super) fn assume(&mut self, expr: Expr) {
        if expr.as_int().is_none_or(|value| value < 0) && !self.never_negative.contains(&expr) {
            self.never_negative.push(expr);
        }
    }

    /// Where one side of a maximum is always negative, what is stated of the maximum holds for the other: states that, and
    /// gives whether there was any. Conditions of loops that may have no position are of this kind.
    pub(super) fn decide(&mut self, ranges: &dyn Ranges) -> bool {
        let known = self.count();
        for number in 0..known {
            let mut fact = self.never_negative[number].clone();
            let mut was_decided = false;
            while let Some(Choices { parts: [a, b], both: false }) = choices(&fact) {
                let is_negative = |part: &Expr| self.prove(&(&-part - 1), ranges);
                fact = match (is_negative(&a), is_negative(&b)) {
                    (true, _) => b,
                    (_, true) => a,
                    (false, false) => break,
                };
                was_decided = true;
            }
            if was_decided {
                self.assume(fact);
            }
        }
        self.count() > known
    }

    /// Whether an expression is never negative, whatever the values of its symbols, as far as can be told.
    ///
    /// Axes are replaced by the ends of what they run over; what is left is compared with facts, a few at a time.
    pub(super) fn prove(&self, expr: &Expr, ranges: &dyn Ranges) -> bool {
        if expr.never_negative(ranges) || self.are_impossible(ranges) {
            return true;
        }
        Proof { facts: self, ranges, tries: Cell::new(MAX_TRIES) }.without_axes(expr, DEPTH)
    }

    /// Whether control never comes here: what is guarded by an axis of no elements, say.
    fn are_impossible(&self, ranges: &dyn Ranges) -> bool {
        self.never_negative.iter().any(|fact| fact.interval(ranges).max < 0)
    }
}

/// One proof, which gives up when it has tried too much: programs are not ours, and the ways grow with the power of their
/// lengths.
struct Proof<'a> {
    facts: &'a Facts,
    ranges: &'a dyn Ranges,
    tries: Cell<usize>,
}

impl Proof<'_> {
    fn without_axes(&self, expr: &Expr, depth: usize) -> bool {
        let low = at_lowest(expr, self.ranges);
        if low.is_some_and(|low| self.follows(&low, DEPTH)) {
            return true;
        }
        let at_ends = |ends: Vec<Expr>| ends.iter().all(|end| self.without_axes(end, depth));
        if self.tries.get() > 0 && self.at_ends(expr).is_some_and(at_ends) {
            return true;
        }
        // Axes that occur in both of two choices are the same in each of them.
        let proves = |part: &Expr| self.without_axes(part, depth - 1);
        depth > 0 && choices(expr).is_some_and(|choices| choices.prove(&proves))
    }

    /// An expression at both ends of an axis in which it is affine, with a slope whose sign its range does not tell: one of
    /// them is its lowest. Only that one, where facts tell which.
    fn at_ends(&self, expr: &Expr) -> Option<Vec<Expr>> {
        let mut symbols = BTreeSet::new();
        expr.collect_symbols(&mut symbols);
        symbols.into_iter().find_map(|symbol| {
            let last = self.ranges.extent(symbol)? - 1;
            let (slope, rest) = expr.affine_in(symbol)?;
            let sign = slope.interval(self.ranges);
            if sign.min >= 0 || sign.max <= 0 {
                return None;
            }
            // One fact has to do: a longer search leaves nothing to try of what the proof is about.
            if self.follows(&slope, 1) {
                return Some(vec![rest]);
            }
            Some(vec![&rest + &(&slope * &last), rest])
        })
    }

    fn follows(&self, goal: &Expr, depth: usize) -> bool {
        let ranges = self.ranges;
        if goal.never_negative(ranges) {
            return true;
        }
        let Some(tries) = self.tries.get().checked_sub(1) else { return false };
        self.tries.set(tries);
        if let Some(smaller) = without_common_factor(goal, ranges).or_else(|| without_common_number(goal)) {
            return self.follows(&smaller, depth);
        }
        if depth == 0 {
            return false;
        }
        let mut symbols = BTreeSet::new();
        goal.collect_symbols(&mut symbols);
        let concerns = |fact: &&Expr| symbols.iter().any(|symbol| fact.mentions(*symbol));
        let own = of_quotients(goal, ranges);
        let related = own.iter().chain(self.facts.never_negative.iter().filter(concerns).take(WIDTH));
        let proves = |goal: &Expr| self.follows(goal, depth - 1);
        let by_cases = choices(goal).is_some_and(|choices| choices.prove(&proves));
        // The goal has no common number any more; a multiple of it may be what is stated.
        let follows_from = |fact: &Expr| {
            proves(&(goal - fact))
                || without_common_number(fact).is_some_and(|smaller| proves(&(goal - &smaller)))
        };
        by_cases || related.into_iter().any(follows_from)
    }
}

/// What every quotient in a sum obeys: `0 <= a - b * (a // b) < b`.
fn of_quotients(goal: &Expr, ranges: &dyn Ranges) -> Vec<Expr> {
    let (_, terms) = goal.as_sum();
    let quotients = terms.iter().flat_map(|(term, _)| term.factors());
    let mut facts = Vec::new();
    for factor in quotients {
        if let Node::FloorDiv(a, b) = factor.node()
            && b.interval(ranges).min > 0
        {
            let rest = a - &(&factor * b);
            facts.push(&(b - 1) - &rest);
            facts.push(rest);
        }
    }
    facts
}

/// What a sum with a minimum or a maximum in it can be.
struct Choices {
    parts: [Expr; 2],
    /// Whether it is the smaller of the two, so that both must be shown; else one will do.
    both: bool,
}

impl Choices {
    fn prove(&self, proves: &dyn Fn(&Expr) -> bool) -> bool {
        let [a, b] = &self.parts;
        if self.both { proves(a) && proves(b) } else { proves(a) || proves(b) }
    }
}

fn choices(goal: &Expr) -> Option<Choices> {
    let (_, terms) = goal.as_sum();
    terms.iter().find_map(|(term, coefficient)| {
        let (a, b, smaller) = match term.node() {
            Node::Min(a, b) => (a, b, true),
            Node::Max(a, b) => (a, b, false),
            Node::Int(_)
            | Node::Sym(_)
            | Node::Sum { .. }
            | Node::Product(_)
            | Node::FloorDiv(..)
            | Node::Mod(..) => return None,
        };
        let rest = goal - &(term * *coefficient);
        let parts = [&rest + &(a * *coefficient), &rest + &(b * *coefficient)];
        // The negative of a minimum is the larger of the negatives.
        Some(Choices { parts, both: smaller == (*coefficient > 0) })
    })
}

/// `goal / n`, rounded down, for a number `n > 1` that divides every term: negative where the goal is.
fn without_common_number(goal: &Expr) -> Option<Expr> {
    let (constant, terms) = goal.as_sum();
    let all = terms.iter().map(|(_, coefficient)| coefficient.unsigned_abs());
    let common = all.fold(0, common_divisor);
    let common = i64::try_from(common).ok().filter(|common| *common > 1)?;
    let whole = Expr::int(constant.div_euclid(common));
    Some(terms.iter().fold(whole, |sum, (term, coefficient)| &sum + &(term * (coefficient / common))))
}

/// `goal / f` for a factor `f > 0` of every term: of the same sign.
fn without_common_factor(goal: &Expr, ranges: &dyn Ranges) -> Option<Expr> {
    let (constant, terms) = goal.as_sum();
    let (first, rest) = terms.split_first()?;
    if constant != 0 || rest.is_empty() {
        return None;
    }
    let factor = first.0.factors().into_iter().find(|factor| {
        factor.as_int().is_none()
            && factor.never_negative(ranges)
            && rest.iter().all(|(term, _)| term.factors().contains(factor))
    })?;
    let divided = terms.into_iter().fold(Expr::int(0), |sum, (term, coefficient)| {
        let mut factors = term.factors();
        if let Some(position) = factors.iter().position(|other| *other == factor) {
            factors.remove(position);
        }
        &sum + &(&Expr::product(&factors) * coefficient)
    });
    Some(divided)
}
