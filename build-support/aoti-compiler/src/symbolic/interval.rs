//! Closed integer intervals and where the ranges of symbols come from.

use super::{Expr, Node, Symbol, SymbolKind};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A closed interval; `i64::MIN` and `i64::MAX` stand for no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
}

impl Interval {
    /// All integers.
    pub const ALL: Interval = Interval { min: i64::MIN, max: i64::MAX };

    /// From `min` to `max`, both included.
    pub fn new(min: i64, max: i64) -> Interval {
        Interval { min, max }
    }

    /// One value.
    pub fn point(value: i64) -> Interval {
        Interval { min: value, max: value }
    }

    /// Whether some value is in both.
    pub fn meets(self, other: Interval) -> bool {
        self.min <= other.max && other.min <= self.max
    }

    /// The smallest interval that holds both.
    #[must_use]
    pub fn hull(self, other: Interval) -> Interval {
        Interval { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    fn add(self, other: Interval) -> Interval {
        Interval { min: low_add(self.min, other.min), max: high_add(self.max, other.max) }
    }

    fn mul(self, other: Interval) -> Interval {
        let corners = [
            bound_mul(self.min, other.min),
            bound_mul(self.min, other.max),
            bound_mul(self.max, other.min),
            bound_mul(self.max, other.max),
        ];
        Interval { min: fold(&corners, i64::min), max: fold(&corners, i64::max) }
    }

    fn floor_div(self, other: Interval) -> Interval {
        if other.min <= 0 {
            return Interval::ALL;
        }
        let corners = [
            bound_div(self.min, other.min),
            bound_div(self.min, other.max),
            bound_div(self.max, other.min),
            bound_div(self.max, other.max),
        ];
        Interval { min: fold(&corners, i64::min), max: fold(&corners, i64::max) }
    }

    fn modulo(self, other: Interval) -> Interval {
        if other.min <= 0 {
            return Interval::ALL;
        }
        if self.min >= 0 && self.max < other.min {
            return self;
        }
        let max = if other.max == i64::MAX { i64::MAX } else { other.max - 1 };
        Interval { min: 0, max: if self.min >= 0 { max.min(self.max) } else { max } }
    }
}

fn fold(values: &[i64; 4], pick: fn(i64, i64) -> i64) -> i64 {
    values.iter().copied().reduce(pick).expect("four corners")
}

fn low_add(a: i64, b: i64) -> i64 {
    if a == i64::MIN || b == i64::MIN { i64::MIN } else { a.saturating_add(b) }
}

fn high_add(a: i64, b: i64) -> i64 {
    if a == i64::MAX || b == i64::MAX { i64::MAX } else { a.saturating_add(b) }
}

fn bound_mul(a: i64, b: i64) -> i64 {
    a.saturating_mul(b)
}

fn bound_div(a: i64, b: i64) -> i64 {
    match (a, b) {
        (i64::MIN | i64::MAX, i64::MAX) => 0,
        (i64::MIN | i64::MAX, _) => a,
        _ => a.div_euclid(b),
    }
}

/// Where the ranges of symbols come from.
pub trait Ranges {
    /// The values that `symbol` can take.
    fn range(&self, symbol: Symbol) -> Interval;

    /// For a loop axis, the number of values it takes, `0 .. extent`, where it is known as an expression.
    fn extent(&self, symbol: Symbol) -> Option<&Expr> {
        let _ = symbol;
        None
    }
}

/// Knows nothing: every symbol can be anything.
pub struct NoRanges;

impl Ranges for NoRanges {
    fn range(&self, _: Symbol) -> Interval {
        Interval::ALL
    }
}

/// Ranges and extents in a table; a symbol that is not in it can be anything. Cheap to clone: there is one for each
/// loop nest, with axes of its own and the sizes of the whole program.
#[derive(Clone, Default, Debug)]
pub struct RangeTable {
    sizes: Arc<BTreeMap<Symbol, Interval>>,
    axes: BTreeMap<Symbol, Interval>,
    extents: BTreeMap<Symbol, Expr>,
}

impl RangeTable {
    /// States the range of a symbol.
    pub fn set(&mut self, symbol: Symbol, range: Interval) {
        match symbol.kind {
            SymbolKind::Size => Arc::make_mut(&mut self.sizes).insert(symbol, range),
            SymbolKind::Axis => self.axes.insert(symbol, range),
        };
    }

    /// States that `axis` runs over `0 .. extent`.
    pub fn set_extent(&mut self, axis: Symbol, extent: Expr) {
        let max = extent.interval(self).max;
        let max = if max == i64::MAX { i64::MAX } else { max.saturating_sub(1).max(0) };
        self.set(axis, Interval::new(0, max));
        self.extents.insert(axis, extent);
    }
}

impl Ranges for RangeTable {
    fn range(&self, symbol: Symbol) -> Interval {
        let known = match symbol.kind {
            SymbolKind::Size => &*self.sizes,
            SymbolKind::Axis => &self.axes,
        };
        known.get(&symbol).copied().unwrap_or(Interval::ALL)
    }

    fn extent(&self, symbol: Symbol) -> Option<&Expr> {
        self.extents.get(&symbol)
    }
}

impl Expr {
    /// An interval that holds every value of the expression.
    pub fn interval(&self, ranges: &dyn Ranges) -> Interval {
        match self.node() {
            Node::Int(value) => Interval::point(*value),
            Node::Sym(symbol) => ranges.range(*symbol),
            Node::Sum { constant, terms } => {
                terms.iter().fold(Interval::point(*constant), |sum, (term, coefficient)| {
                    sum.add(term.interval(ranges).mul(Interval::point(*coefficient)))
                })
            }
            Node::Product(factors) => factors
                .iter()
                .fold(Interval::point(1), |product, factor| product.mul(factor.interval(ranges))),
            Node::FloorDiv(a, b) => a.interval(ranges).floor_div(b.interval(ranges)),
            Node::Mod(a, b) => a.interval(ranges).modulo(b.interval(ranges)),
            Node::Min(a, b) => {
                let (a, b) = (a.interval(ranges), b.interval(ranges));
                Interval { min: a.min.min(b.min), max: a.max.min(b.max) }
            }
            Node::Max(a, b) => {
                let (a, b) = (a.interval(ranges), b.interval(ranges));
                Interval { min: a.min.max(b.min), max: a.max.max(b.max) }
            }
        }
    }
}
