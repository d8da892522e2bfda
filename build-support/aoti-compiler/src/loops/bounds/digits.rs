//! Axes that are read by quotient and remainder, as two axes: `i // s` and `i % s` move together, and a bound of each by itself
//! forgets that.

use super::goals::{self, Goal};
use crate::loops::Guard;
use crate::symbolic::{Expr, Node, RangeTable, Symbol};

/// First number of the fresh axes that stand for quotients and remainders.
const FIRST: usize = 2048;
/// How many axes of one goal are taken apart, one after the other.
pub(super) const MOST: usize = 4;

/// A goal with an axis `i` that it divides by `s` as `q*s + r`, for all `q` and all `r < s`. That is every position of the
/// axis, and a few more where `s` does not divide its extent.
pub(super) fn apart(goal: &Goal, number: usize, ranges: &RangeTable) -> Option<Goal> {
    let mut found = Vec::new();
    divided(&goal.expr, &mut found);
    goal.guards.iter().for_each(|guard| divided(&guard.coordinate, &mut found));
    let is_split = |(symbol, divisor): &(Symbol, Expr)| {
        divisor.interval(ranges).min > 0
            && goal.axes.iter().any(|axis| axis.symbol == *symbol)
            && goal.axes.iter().all(|axis| !divisor.mentions(axis.symbol))
    };
    // By the lowest digit first: quotients by multiples of it divide what is left.
    let lowest = |(_, divisor): &(Symbol, Expr)| (divisor.factors().len(), divisor.as_int());
    let (symbol, divisor) = found.into_iter().filter(is_split).min_by_key(lowest)?;
    let position = goal.axes.iter().position(|axis| axis.symbol == symbol)?;
    let mut axes = goal.axes.clone();
    let whole = axes.remove(position);
    let high = goals::fresh(FIRST + 2 * number, whole.extent.ceil_div(&divisor, ranges));
    let low = goals::fresh(FIRST + 2 * number + 1, divisor.clone());
    let mut ranges = ranges.clone();
    [&high, &low].iter().for_each(|axis| ranges.set_extent(axis.symbol, axis.extent.clone()));
    let value = &(&Expr::sym(high.symbol) * &divisor) + &Expr::sym(low.symbol);
    let replace = |other: Symbol| (other == symbol).then(|| value.clone());
    let replaced = |expr: &Expr| expr.substitute(&replace, &ranges);
    let guards = goal
        .guards
        .iter()
        .map(|guard| Guard { coordinate: replaced(&guard.coordinate), size: guard.size.clone() });
    axes.extend([high, low]);
    Some(Goal { expr: replaced(&goal.expr), guards: guards.collect(), axes, ..*goal })
}

/// Symbols that an expression divides, and by what.
fn divided(expr: &Expr, found: &mut Vec<(Symbol, Expr)>) {
    match expr.node() {
        Node::Int(_) | Node::Sym(_) => {}
        Node::Sum { terms, .. } => terms.iter().for_each(|(term, _)| divided(term, found)),
        Node::Product(factors) => factors.iter().for_each(|factor| divided(factor, found)),
        Node::FloorDiv(a, b) | Node::Mod(a, b) => {
            if let Node::Sym(symbol) = a.node() {
                found.push((*symbol, b.clone()));
            }
            divided(a, found);
            divided(b, found);
        }
        Node::Min(a, b) | Node::Max(a, b) => {
            divided(a, found);
            divided(b, found);
        }
    }
}
