//! What is known of symbols at one place of a program: their ranges, and expressions that are never negative there.
//!
//! Owns the proofs that need more than ranges: a goal is non-negative where it is a sum of known expressions, each times
//! something that is never negative, and a rest whose interval is. Knows neither conditions nor programs.

use super::{Expr, Interval, RangeTable, Ranges, Symbol};
use std::collections::BTreeSet;

/// Known expressions that one proof may add up.
const MAX_STEPS: usize = 3;
/// Expressions with more terms are not worth a search.
const MAX_TERMS: usize = 24;
/// Numbers beyond this may be saturated.
const LARGEST: u64 = 1 << 53;
/// Ways to go on that one proof may try.
const MAX_TRIES: usize = 2048;

/// Ranges, and expressions that are never negative.
#[derive(Clone, Default, Debug)]
pub struct Facts {
    ranges: RangeTable,
    never_negative: Vec<Expr>,
}

impl Facts {
    /// Ranges alone.
    pub fn new(ranges: RangeTable) -> Facts {
        Facts { ranges, never_negative: Vec::new() }
    }

    /// The ranges of symbols and the extents of axes, to add to.
    pub fn table(&mut self) -> &mut RangeTable {
        &mut self.ranges
    }

    /// What is never negative here and does not follow from ranges.
    pub fn known(&self) -> &[Expr] {
        &self.never_negative
    }

    /// States that `expr` is never negative here.
    pub fn assume_never_negative(&mut self, expr: &Expr) {
        if expr.interval(&self.ranges).min < 0 && !self.never_negative.contains(expr) {
            self.never_negative.push(expr.clone());
        }
    }

    /// States that `expr` is zero here.
    pub fn assume_zero(&mut self, expr: &Expr) {
        self.assume_never_negative(expr);
        self.assume_never_negative(&-expr);
    }

    /// Whether `expr` is never negative, as far as can be told.
    pub fn never_negative(&self, expr: &Expr) -> bool {
        let mut tries = MAX_TRIES;
        expr.interval(&self.ranges).min >= 0 || self.follows(expr, MAX_STEPS, &mut tries)
    }

    /// Whether `expr` is always zero, as far as can be told.
    pub fn is_zero(&self, expr: &Expr) -> bool {
        expr.is(0) || (self.never_negative(expr) && self.never_negative(&-expr))
    }

    /// Whether `self` is never negative by adding up known expressions.
    fn follows(&self, goal: &Expr, steps: usize, tries: &mut usize) -> bool {
        let (constant, terms) = goal.as_sum();
        // Arithmetic at compile time saturates; far from there it is exact.
        let is_exact = |value: i64| value.unsigned_abs() < LARGEST;
        if terms.len() > MAX_TERMS || !is_exact(constant) || !terms.iter().all(|(_, scale)| is_exact(*scale))
        {
            return false;
        }
        // `min(a, b)` is never negative where both are, `max(a, b)` where one is; so for a sum with one of them.
        for (term, coefficient) in &terms {
            if let Some((first, second, both)) = self.branches(goal, term, *coefficient) {
                if steps == 0 {
                    return false;
                }
                let prove = |part: &Expr, tries: &mut usize| {
                    part.interval(&self.ranges).min >= 0 || self.follows(part, steps - 1, tries)
                };
                let first = prove(&first, tries);
                if both && !first {
                    continue;
                }
                if (first && !both) || prove(&second, tries) {
                    return true;
                }
            }
        }
        self.by_sum(goal, steps, tries)
    }

    /// `goal` with the smaller or larger of two replaced by each of them, and whether both must hold.
    fn branches(&self, goal: &Expr, term: &Expr, coefficient: i64) -> Option<(Expr, Expr, bool)> {
        use super::Node::{FloorDiv, Int, Max, Min, Mod, Product, Sum, Sym};
        let (a, b, smaller) = match term.node() {
            Min(a, b) => (a, b, true),
            Max(a, b) => (a, b, false),
            Int(_) | Sym(_) | Sum { .. } | Product(_) | FloorDiv(..) | Mod(..) => return None,
        };
        let rest = goal - &(term * coefficient);
        let with = |part: &Expr| &rest + &(part * coefficient);
        // `-min` is the larger of the negated ones.
        Some((with(a), with(b), smaller == (coefficient > 0)))
    }

    fn by_sum(&self, goal: &Expr, steps: usize, tries: &mut usize) -> bool {
        let (_, terms) = goal.as_sum();
        for known in &self.never_negative {
            let mut seen = BTreeSet::new();
            for (term, coefficient) in known.as_sum().1 {
                for (wanted, amount) in &terms {
                    let Some(scale) = self.scale(wanted, *amount, &term, coefficient) else { continue };
                    if !seen.insert(scale.clone()) {
                        continue;
                    }
                    if *tries == 0 {
                        return false;
                    }
                    *tries -= 1;
                    let rest = goal - &(known * &scale);
                    if rest.interval(&self.ranges).min >= 0
                        || (steps > 1 && self.follows(&rest, steps - 1, tries))
                    {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// What `coefficient * term` must be multiplied by to give `amount * wanted`, if that is never negative.
    fn scale(&self, wanted: &Expr, amount: i64, term: &Expr, coefficient: i64) -> Option<Expr> {
        if amount.checked_rem(coefficient)? != 0 || (amount < 0) != (coefficient < 0) {
            return None;
        }
        let mut factors = wanted.factors();
        for factor in term.factors() {
            let position = factors.iter().position(|own| *own == factor)?;
            factors.swap_remove(position);
        }
        let scale = &Expr::product(&factors) * (amount / coefficient);
        (scale.interval(&self.ranges).min >= 0).then_some(scale)
    }
}

impl Ranges for Facts {
    fn range(&self, symbol: Symbol) -> Interval {
        self.ranges.range(symbol)
    }

    fn extent(&self, symbol: Symbol) -> Option<&Expr> {
        self.ranges.extent(symbol)
    }
}

/// The smallest and the largest value of a symbol, as expressions over other ones.
pub struct Extremes {
    /// Never above it.
    pub least: Expr,
    /// Never below it.
    pub most: Expr,
}

impl Expr {
    /// Expressions without the symbols that `replace` knows, between which the value always lies; `None` where nothing
    /// bounds it.
    pub fn extremes(
        &self,
        replace: &dyn Fn(Symbol) -> Option<Extremes>,
        ranges: &dyn Ranges,
    ) -> Option<Extremes> {
        use super::Node::{FloorDiv, Int, Max, Min, Mod, Product, Sum, Sym};
        let exact = |expr: &Expr| Extremes { least: expr.clone(), most: expr.clone() };
        let of = |expr: &Expr| expr.extremes(replace, ranges);
        let bounds = match self.node() {
            Int(_) => Some(exact(self)),
            Sym(symbol) => Some(replace(*symbol).unwrap_or_else(|| exact(self))),
            Sum { constant, terms } => {
                terms.iter().try_fold(exact(&Expr::int(*constant)), |sum, (term, coefficient)| {
                    let Extremes { least, most } = of(term)?;
                    let (low, high) = if *coefficient < 0 { (most, least) } else { (least, most) };
                    Some(Extremes {
                        least: &sum.least + &(&low * *coefficient),
                        most: &sum.most + &(&high * *coefficient),
                    })
                })
            }
            Product(factors) => factors.iter().try_fold(exact(&Expr::int(1)), |all, factor| {
                let own = of(factor)?;
                own.least
                    .never_negative(ranges)
                    .then(|| Extremes { least: &all.least * &own.least, most: &all.most * &own.most })
            }),
            FloorDiv(a, b) => of(a)
                .zip(of(b))
                .and_then(|(a, b)| (b.least.interval(ranges).min > 0).then(|| quotient(&a, &b, ranges))),
            Mod(a, b) => of(a).zip(of(b)).and_then(|(a, b)| {
                let below = &b.most - 1;
                let most =
                    if a.least.never_negative(ranges) { a.most.minimum_in(&below, ranges) } else { below };
                (b.least.interval(ranges).min > 0).then(|| Extremes { least: Expr::int(0), most })
            }),
            Min(a, b) => match (of(a), of(b)) {
                (Some(a), Some(b)) => Some(Extremes {
                    least: a.least.minimum_in(&b.least, ranges),
                    most: a.most.minimum_in(&b.most, ranges),
                }),
                _ => None,
            },
            Max(a, b) => of(a).zip(of(b)).map(|(a, b)| Extremes {
                least: a.least.maximum_in(&b.least, ranges),
                most: a.most.maximum_in(&b.most, ranges),
            }),
        };
        let interval = self.interval(ranges);
        bounds.or_else(|| {
            let is_bounded = interval.min != i64::MIN && interval.max != i64::MAX;
            is_bounded.then(|| Extremes { least: Expr::int(interval.min), most: Expr::int(interval.max) })
        })
    }
}

/// The extremes of a quotient whose divisor is positive: a negative dividend is farthest down over the smallest divisor, any
/// other over the largest.
fn quotient(dividend: &Extremes, divisor: &Extremes, ranges: &dyn Ranges) -> Extremes {
    let zero = Expr::int(0);
    let over = |dividend: &Expr, divisor: &Expr| dividend.floor_div_in(divisor, ranges);
    let Extremes { least: smallest, most: largest } = divisor;
    let (least, most) = if smallest == largest {
        (over(&dividend.least, smallest), over(&dividend.most, smallest))
    } else if dividend.least.never_negative(ranges) {
        (over(&dividend.least, largest), over(&dividend.most, smallest))
    } else {
        let below = dividend.least.minimum_in(&zero, ranges);
        let above = dividend.most.maximum_in(&zero, ranges);
        (over(&below, smallest), over(&above, smallest))
    };
    Extremes { least, most }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolic::parse;

    fn expr(text: &str) -> Expr {
        let resolve = |name: &str| Some(Expr::sym(Symbol::size(name[1..].parse().ok()?)));
        parse(text, &resolve).unwrap()
    }

    /// Four sizes that are at least 0, and what is stated of them.
    fn facts(stated: &[&str]) -> Facts {
        let mut table = RangeTable::default();
        (0..4).for_each(|k| table.set(Symbol::size(k), Interval::new(0, i64::MAX)));
        let mut facts = Facts::new(table);
        stated.iter().for_each(|text| facts.assume_never_negative(&expr(text)));
        facts
    }

    #[test]
    fn relations_are_added_up() {
        let chain = facts(&["s1 - s0", "s2 - s1"]);
        assert!(chain.never_negative(&expr("s2 - s0")));
        assert!(chain.never_negative(&expr("3*s2 - 3*s0")));
        assert!(chain.never_negative(&expr("s3*s2 - s3*s0")));
        assert!(!chain.never_negative(&expr("s0 - s2")));
        assert!(!chain.never_negative(&expr("s2 - s0 - 1")));
    }

    #[test]
    fn clamps_are_looked_into() {
        let known = facts(&["s1 - s0"]);
        assert!(known.never_negative(&expr("s1 - min(s0, s2)")));
        assert!(
            known.never_negative(&expr("min(s1, s3) - min(s0, s3)"))
                || known.never_negative(&expr("max(s1, s0) - s0"))
        );
        assert!(!known.never_negative(&expr("s1 - max(s0, s2)")));
    }

    #[test]
    fn divisibility_makes_products_equal() {
        let mut known = facts(&[]);
        known.table().set(Symbol::size(1), Interval::new(1, i64::MAX));
        known.assume_zero(&expr("s1*(s0 // s1) - s0"));
        assert!(known.is_zero(&expr("3*s1*(s0 // s1) - 3*s0")));
    }

    #[test]
    fn bounds_go_through_differences_and_quotients() {
        let known = facts(&[]);
        let replace =
            |symbol: Symbol| (symbol.index == 0).then(|| Extremes { least: Expr::int(0), most: expr("s1") });
        let most = |text: &str| expr(text).extremes(&replace, &known).map(|bounds| bounds.most.to_string());
        assert_eq!(most("s1 - s0").unwrap(), "s1");
        assert_eq!(most("2*s0 + 1").unwrap(), "2*s1 + 1");
        assert_eq!(most("s0 // 2").unwrap(), "s1 // 2");
        assert_eq!(most("s0*s2").unwrap(), "s1*s2");
        assert_eq!(most("min(s0, 5)").unwrap(), "min(5, s1)");
        assert_eq!(most("s2 // s0"), None);
        // The dividend may be negative.
        assert_eq!(most("(s2 - s0 + 1) // 2").unwrap(), "(s2 + 1) // 2");
        assert_eq!(most("-(-s2 // (s0 + 1))").unwrap(), "s2");
    }
}
