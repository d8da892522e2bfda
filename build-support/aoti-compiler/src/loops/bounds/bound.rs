//! Bounds of an expression over all values of some of its symbols, as expressions in the others.

use crate::symbolic::{Expr, Node, Ranges, Symbol};
use std::collections::BTreeSet;

/// Which end of the values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// At most every value.
    Low,
    /// At least every value.
    High,
}

impl End {
    fn other(self) -> End {
        match self {
            End::Low => End::High,
            End::High => End::Low,
        }
    }
}

/// The smallest and largest value of a symbol that is to go; `None` where it stays.
pub(super) type Span<'a> = &'a dyn Fn(Symbol) -> Option<(Expr, Expr)>;

/// A bound of `expr` without the symbols that have a span: exact where it is affine in them. `None` where none is known,
/// such as for quotients by what may be zero.
pub(super) fn bound(expr: &Expr, end: End, span: Span, ranges: &dyn Ranges) -> Option<Expr> {
    let mut symbols = BTreeSet::new();
    expr.collect_symbols(&mut symbols);
    let mut result = expr.clone();
    for symbol in symbols {
        let Some((low, high)) = span(symbol) else { continue };
        let Some((coefficient, rest)) = result.affine_in(symbol) else { continue };
        let sign = coefficient.interval(ranges);
        let at = match end {
            _ if coefficient.is(0) => continue,
            _ if low == high => low,
            End::Low if sign.min >= 0 => low,
            End::High if sign.max <= 0 => low,
            End::Low if sign.max <= 0 => high,
            End::High if sign.min >= 0 => high,
            End::Low | End::High => continue,
        };
        result = &rest + &(&coefficient * &at);
    }
    if mentions_any(&result, span) { of_parts(&result, end, span, ranges) } else { Some(result) }
}

fn mentions_any(expr: &Expr, span: Span) -> bool {
    let mut symbols = BTreeSet::new();
    expr.collect_symbols(&mut symbols);
    symbols.into_iter().any(|symbol| span(symbol).is_some())
}

/// Each part bounded by itself, which forgets that they move together.
fn of_parts(expr: &Expr, end: End, span: Span, ranges: &dyn Ranges) -> Option<Expr> {
    let of = |part: &Expr| bound(part, end, span, ranges);
    match expr.node() {
        Node::Int(_) => Some(expr.clone()),
        Node::Sym(symbol) => Some(match (span(*symbol), end) {
            (None, _) => expr.clone(),
            (Some((low, _)), End::Low) => low,
            (Some((_, high)), End::High) => high,
        }),
        Node::Sum { constant, terms } => {
            terms.iter().try_fold(Expr::int(*constant), |sum, (term, coefficient)| {
                let end = if *coefficient < 0 { end.other() } else { end };
                Some(&sum + &(&bound(term, end, span, ranges)? * *coefficient))
            })
        }
        Node::Product(factors) => {
            if factors.iter().any(|factor| !factor.never_negative(ranges)) {
                return None;
            }
            factors.iter().try_fold(Expr::int(1), |product, factor| Some(&product * &of(factor)?))
        }
        Node::FloorDiv(a, b) => {
            let steady = b.interval(ranges).min > 0 && !mentions_any(b, span);
            Some(of(a).filter(|_| steady)?.floor_div_in(b, ranges))
        }
        Node::Mod(a, b) => {
            if b.interval(ranges).min <= 0 {
                return None;
            }
            if end == End::Low {
                return Some(Expr::int(0));
            }
            let most = of(b)? - 1;
            let whole = if a.never_negative(ranges) { of(a) } else { None };
            Some(whole.map_or(most.clone(), |whole| most.minimum_in(&whole, ranges)))
        }
        Node::Min(a, b) => Some(of(a)?.minimum_in(&of(b)?, ranges)),
        Node::Max(a, b) => {
            let larger = of(a)?.maximum_in(&of(b)?, ranges);
            if end == End::High {
                return Some(larger);
            }
            // Reflections are the larger of two that move against each other: never below half of their sum.
            let half = of(&(a + b))?.floor_div_in(&Expr::int(2), ranges);
            Some(larger.maximum_in(&half, ranges))
        }
    }
}
