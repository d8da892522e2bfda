//! Conditions on sizes: comparisons of integer expressions, and both and either of them.
//!
//! A condition holds or does not; where its arithmetic leaves 64 bits, a comparison does not hold. Negation is pushed to
//! the comparisons, so that none occurs. Knows nothing of where conditions come from or when they are evaluated.

use super::Relation;
use crate::symbolic::{Expr, Facts, Interval, Node, Ranges, Symbol};
use std::collections::BTreeSet;

/// A condition on sizes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Condition {
    /// A relation of two expressions. Divisibility is a remainder that is equal to 0.
    Compare(Expr, Relation, Expr),
    /// The value of an expression and of everything in it is within 64 bits.
    Fits(Expr),
    /// All of them; of none, always.
    All(Vec<Condition>),
    /// At least one of them; of none, never.
    Any(Vec<Condition>),
}

impl Condition {
    /// Always.
    pub const TRUE: Condition = Condition::All(Vec::new());
    /// Never.
    pub const FALSE: Condition = Condition::Any(Vec::new());

    /// A relation of two expressions.
    pub fn compare(left: impl Into<Expr>, relation: Relation, right: impl Into<Expr>) -> Condition {
        Condition::Compare(left.into(), relation, right.into())
    }

    /// All of some; those that are parts of one are taken out of it.
    pub fn all(parts: impl IntoIterator<Item = Condition>) -> Condition {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Condition::All(inner) => flat.extend(inner),
                Condition::Any(inner) if inner.is_empty() => return Condition::FALSE,
                part @ (Condition::Compare(..) | Condition::Fits(_) | Condition::Any(_)) => flat.push(part),
            }
        }
        if flat.len() == 1 { flat.remove(0) } else { Condition::All(flat) }
    }

    /// At least one of some.
    pub fn any(parts: impl IntoIterator<Item = Condition>) -> Condition {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Condition::Any(inner) => flat.extend(inner),
                Condition::All(inner) if inner.is_empty() => return Condition::TRUE,
                part @ (Condition::Compare(..) | Condition::Fits(_) | Condition::All(_)) => flat.push(part),
            }
        }
        if flat.len() == 1 { flat.remove(0) } else { Condition::Any(flat) }
    }

    /// The same over other expressions.
    #[must_use]
    pub fn map(&self, replace: &dyn Fn(&Expr) -> Expr) -> Condition {
        let each = |parts: &[Condition]| parts.iter().map(|part| part.map(replace)).collect::<Vec<_>>();
        match self {
            Condition::Compare(a, relation, b) => Condition::Compare(replace(a), *relation, replace(b)),
            Condition::Fits(expr) => Condition::Fits(replace(expr)),
            Condition::All(parts) => Condition::all(each(parts)),
            Condition::Any(parts) => Condition::any(each(parts)),
        }
    }

    /// The opposite. That something does not fit is no condition of a program.
    pub fn negated(&self) -> Condition {
        match self {
            Condition::Compare(left, relation, right) => {
                Condition::Compare(left.clone(), relation.negated(), right.clone())
            }
            Condition::Fits(_) => Condition::FALSE,
            Condition::All(parts) => Condition::any(parts.iter().map(Condition::negated)),
            Condition::Any(parts) => Condition::all(parts.iter().map(Condition::negated)),
        }
    }

    /// 1 where it holds and 0 where it does not.
    pub fn indicator(&self, ranges: &dyn Ranges) -> Expr {
        let (zero, one) = (Expr::int(0), Expr::int(1));
        // 1 where the expression is above 0.
        let positive = |expr: &Expr| expr.maximum_in(&zero, ranges).minimum_in(&one, ranges);
        match self {
            Condition::Compare(left, relation, right) => {
                let gap = left - right;
                let differs = || {
                    // The distance is the larger of the gap and its negative.
                    let above = positive(&gap);
                    let below = positive(&-&gap);
                    &above + &below
                };
                match relation {
                    Relation::Gt => positive(&gap),
                    Relation::Ge => positive(&(&gap + 1)),
                    Relation::Lt => positive(&-&gap),
                    Relation::Le => positive(&(-&gap + 1)),
                    Relation::Ne => differs(),
                    Relation::Eq => &one - &differs(),
                }
            }
            Condition::Fits(_) => one,
            Condition::All(parts) => {
                parts.iter().fold(one, |all, part| all.minimum_in(&part.indicator(ranges), ranges))
            }
            Condition::Any(parts) => {
                parts.iter().fold(zero, |any, part| any.maximum_in(&part.indicator(ranges), ranges))
            }
        }
    }

    /// Its expressions, in order.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            Condition::Compare(left, _, right) => vec![left, right],
            Condition::Fits(expr) => vec![expr],
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().flat_map(Condition::expressions).collect()
            }
        }
    }

    /// The symbols that occur.
    pub fn symbols(&self) -> BTreeSet<Symbol> {
        let mut symbols = BTreeSet::new();
        self.expressions().into_iter().for_each(|expr| expr.collect_symbols(&mut symbols));
        symbols
    }

    /// What it comes to for these values of the symbols; a comparison of what cannot be computed does not hold.
    pub fn evaluate(&self, value_of: &dyn Fn(Symbol) -> Option<i64>) -> bool {
        match self {
            Condition::Compare(left, relation, right) => {
                let values = left.evaluate(value_of).zip(right.evaluate(value_of));
                values.is_some_and(|(left, right)| relation.holds(left, right))
            }
            Condition::Fits(expr) => expr.evaluate(value_of).is_some(),
            Condition::All(parts) => parts.iter().all(|part| part.evaluate(value_of)),
            Condition::Any(parts) => parts.iter().any(|part| part.evaluate(value_of)),
        }
    }

    /// Whether it always holds, or never, as far as can be told.
    pub fn decide(&self, facts: &Facts) -> Option<bool> {
        match self {
            Condition::Compare(left, relation, right) => compare(left, *relation, right, facts),
            Condition::Fits(expr) => fits(expr, facts).then_some(true),
            Condition::All(parts) => decide_all(parts, true, facts),
            Condition::Any(parts) => decide_all(parts, false, facts),
        }
    }

    /// Adds to what is known that it holds.
    pub fn assume(&self, facts: &mut Facts) {
        match self {
            Condition::Compare(left, relation, right) => assume(left, *relation, right, facts),
            Condition::All(parts) => parts.iter().for_each(|part| part.assume(facts)),
            // Neither tells anything of single expressions.
            Condition::Fits(_) | Condition::Any(_) => {}
        }
    }

    /// Prints it with other names for its symbols.
    pub fn display_with(&self, name: &dyn Fn(Symbol) -> String) -> String {
        match self {
            Condition::Compare(left, relation, right) => {
                format!("{} {} {}", left.display_with(name), relation.sign(), right.display_with(name))
            }
            Condition::Fits(expr) => format!("{} is within 64 bits", expr.display_with(name)),
            Condition::All(parts) => joined(parts, "and", "true", name),
            Condition::Any(parts) => joined(parts, "or", "false", name),
        }
    }
}

fn joined(parts: &[Condition], word: &str, none: &str, name: &dyn Fn(Symbol) -> String) -> String {
    if parts.is_empty() {
        return none.to_owned();
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|part| match part {
            Condition::Compare(..) | Condition::Fits(_) => part.display_with(name),
            Condition::All(_) | Condition::Any(_) => format!("({})", part.display_with(name)),
        })
        .collect();
    parts.join(&format!(" {word} "))
}

/// All parts must decide for one that is neutral; a single part of the other kind settles the whole.
fn decide_all(parts: &[Condition], neutral: bool, facts: &Facts) -> Option<bool> {
    let mut verdict = Some(neutral);
    for part in parts {
        match part.decide(facts) {
            Some(own) if own != neutral => return Some(own),
            Some(_) => {}
            None => verdict = None,
        }
    }
    verdict
}

fn compare(left: &Expr, relation: Relation, right: &Expr, facts: &Facts) -> Option<bool> {
    // What may leave 64 bits is computed, so that it fails where it does.
    if !fits(left, facts) || !fits(right, facts) {
        return None;
    }
    let gap = left - right;
    let at_least = |least: i64| facts.never_negative(&(&gap - least));
    let at_most = |most: i64| facts.never_negative(&-(&gap - most));
    let decided = |yes: bool, no: bool| if yes { Some(true) } else { no.then_some(false) };
    match relation {
        Relation::Ge => decided(at_least(0), at_most(-1)),
        Relation::Gt => decided(at_least(1), at_most(0)),
        Relation::Le => decided(at_most(0), at_least(1)),
        Relation::Lt => decided(at_most(-1), at_least(0)),
        Relation::Eq => decided(facts.is_zero(&gap), at_least(1) || at_most(-1)),
        Relation::Ne => decided(at_least(1) || at_most(-1), facts.is_zero(&gap)),
    }
}

/// Whether no step of computing `expr` leaves 64 bits. Sizes of inputs are counted as far below: they are in memory.
fn fits(expr: &Expr, facts: &Facts) -> bool {
    let interval = expr.interval(facts);
    let bounded = |interval: Interval| interval.min > i64::MIN && interval.max < i64::MAX;
    match expr.node() {
        Node::Int(_) | Node::Sym(_) => true,
        Node::Sum { terms, .. } => {
            bounded(interval) && terms.iter().all(|(term, _)| fits(term, facts)) || plain_sum(expr, facts)
        }
        Node::Product(factors) => bounded(interval) && factors.iter().all(|factor| fits(factor, facts)),
        Node::FloorDiv(a, b) | Node::Mod(a, b) => {
            b.interval(facts).min > 0 && fits(a, facts) && fits(b, facts)
        }
        Node::Min(a, b) | Node::Max(a, b) => fits(a, facts) && fits(b, facts),
    }
}

/// `symbol - small`, where the symbol is never negative: the only sum without bound that fits for sure.
fn plain_sum(expr: &Expr, facts: &Facts) -> bool {
    let (constant, terms) = expr.as_sum();
    let [(term, 1)] = terms.as_slice() else { return false };
    constant <= 0 && term.interval(facts).min >= 0 && matches!(term.node(), Node::Sym(_))
}

fn assume(left: &Expr, relation: Relation, right: &Expr, facts: &mut Facts) {
    let gap = left - right;
    let (at_least, at_most) = match relation {
        Relation::Ge => (Some(0), None),
        Relation::Gt => (Some(1), None),
        Relation::Le => (None, Some(0)),
        Relation::Lt => (None, Some(-1)),
        Relation::Eq => (Some(0), Some(0)),
        Relation::Ne => return,
    };
    if let Some(least) = at_least {
        facts.assume_never_negative(&(&gap - least));
    }
    if let Some(most) = at_most {
        facts.assume_never_negative(&-(&gap - most));
    }
    // A remainder of 0: the divisor times the quotient is the whole.
    if relation == Relation::Eq
        && right.is(0)
        && let Node::Mod(whole, divisor) = left.node()
    {
        let back = divisor * &whole.floor_div_in(divisor, facts);
        facts.assume_zero(&(&back - whole));
        if whole.interval(facts).min >= 1 && divisor.interval(facts).min >= 0 {
            facts.assume_never_negative(&(whole - divisor));
        }
    }
}
