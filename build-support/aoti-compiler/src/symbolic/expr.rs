//! The expression type and its canonical constructors.

use super::{NoRanges, Ranges};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Add, Mul, Neg, Sub};
use std::sync::Arc;

/// What a symbol stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum SymbolKind {
    /// A size or other integer known when a run begins, or read from data during it.
    Size,
    /// The position along one axis of a loop nest or index map.
    Axis,
}

/// A named integer unknown, identified by kind and number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Symbol {
    /// What it stands for.
    pub kind: SymbolKind,
    /// Its number within the kind.
    pub index: u32,
}

impl Symbol {
    /// Size symbol number `index`, printed `s<index>`.
    pub fn size(index: u32) -> Symbol {
        Symbol { kind: SymbolKind::Size, index }
    }

    /// Axis symbol number `index`, printed `i<index>`.
    pub fn axis(index: u32) -> Symbol {
        Symbol { kind: SymbolKind::Axis, index }
    }
}

/// An integer expression in canonical form. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expr(Arc<Node>);

/// The shape of an [`Expr`].
#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    /// A constant.
    Int(i64),
    /// A symbol.
    Sym(Symbol),
    /// `constant + sum of coefficient * term`; terms are sorted, distinct, neither sums nor constants.
    Sum {
        /// The constant part.
        constant: i64,
        /// (term, non-zero coefficient).
        terms: Vec<(Expr, i64)>,
    },
    /// Product of two or more factors, sorted; none is a constant, a sum or a product.
    Product(Vec<Expr>),
    /// Quotient, rounded down.
    FloorDiv(Expr, Expr),
    /// Remainder with the sign of the divisor.
    Mod(Expr, Expr),
    /// The smaller of two.
    Min(Expr, Expr),
    /// The larger of two.
    Max(Expr, Expr),
}

impl Expr {
    pub(super) fn new(node: Node) -> Expr {
        Expr(Arc::new(node))
    }

    /// Its outermost operation.
    pub fn node(&self) -> &Node {
        &self.0
    }

    /// A constant.
    pub fn int(value: i64) -> Expr {
        Expr::new(Node::Int(value))
    }

    /// A symbol.
    pub fn sym(symbol: Symbol) -> Expr {
        Expr::new(Node::Sym(symbol))
    }

    /// Axis `index`.
    pub fn axis(index: usize) -> Expr {
        Expr::sym(Symbol::axis(u32::try_from(index).expect("axes are few")))
    }

    /// The value, if it is a constant.
    pub fn as_int(&self) -> Option<i64> {
        let Node::Int(value) = self.node() else { return None };
        Some(*value)
    }

    /// Whether it is the constant `value`.
    pub fn is(&self, value: i64) -> bool {
        self.as_int() == Some(value)
    }

    /// The constant part and the terms with their coefficients, of any expression.
    pub fn as_sum(&self) -> (i64, Vec<(Expr, i64)>) {
        if let Node::Sum { constant, terms } = self.node() {
            return (*constant, terms.clone());
        }
        match self.as_int() {
            Some(value) => (value, Vec::new()),
            None => (0, vec![(self.clone(), 1)]),
        }
    }

    /// Builds a sum from a constant and terms that are neither sums nor constants, merging equal terms.
    /// Where a coefficient overflows `i64` it saturates; sizes are checked for overflow before they get here.
    pub(super) fn from_terms(constant: i64, terms: impl IntoIterator<Item = (Expr, i64)>) -> Expr {
        let mut merged: BTreeMap<Expr, i64> = BTreeMap::new();
        for (term, coefficient) in terms {
            let entry = merged.entry(term).or_insert(0);
            *entry = entry.saturating_add(coefficient);
        }
        merged.retain(|_, coefficient| *coefficient != 0);
        super::divide::join_quotients(&mut merged);
        let mut constant = constant;
        if merged.keys().any(|term| matches!(term.node(), Node::Int(_) | Node::Sum { .. })) {
            // Joining a quotient with its remainder gives back a whole expression: flatten once more.
            let mut flat = Vec::new();
            for (term, coefficient) in merged {
                let (inner_constant, inner_terms) = term.as_sum();
                constant = constant.saturating_add(inner_constant.saturating_mul(coefficient));
                flat.extend(inner_terms.into_iter().map(|(t, c)| (t, c.saturating_mul(coefficient))));
            }
            return Expr::from_terms(constant, flat);
        }
        let terms: Vec<(Expr, i64)> = merged.into_iter().collect();
        match terms.as_slice() {
            [] => Expr::int(constant),
            [(term, 1)] if constant == 0 => term.clone(),
            _ => Expr::new(Node::Sum { constant, terms }),
        }
    }

    /// What it is a product of: itself where it is none.
    pub(crate) fn factors(&self) -> Vec<Expr> {
        if let Node::Product(factors) = self.node() { factors.clone() } else { vec![self.clone()] }
    }

    fn multiply(&self, other: &Expr) -> Expr {
        let (a_constant, a_terms) = self.as_sum();
        let (b_constant, b_terms) = other.as_sum();
        let mut terms = Vec::new();
        for (term, coefficient) in &a_terms {
            terms.push((term.clone(), coefficient.saturating_mul(b_constant)));
        }
        for (term, coefficient) in &b_terms {
            terms.push((term.clone(), coefficient.saturating_mul(a_constant)));
            for (other_term, other_coefficient) in &a_terms {
                let mut factors = term.factors();
                factors.extend(other_term.factors());
                factors.sort();
                terms.push((
                    Expr::new(Node::Product(factors)),
                    coefficient.saturating_mul(*other_coefficient),
                ));
            }
        }
        Expr::from_terms(a_constant.saturating_mul(b_constant), terms)
    }

    /// The smaller of two.
    pub fn minimum(&self, other: &Expr) -> Expr {
        self.minimum_in(other, &NoRanges)
    }

    /// The smaller of two, decided where the ranges allow.
    pub fn minimum_in(&self, other: &Expr, ranges: &dyn Ranges) -> Expr {
        let difference = (self - other).interval(ranges);
        if difference.max <= 0 {
            return self.clone();
        }
        if difference.min >= 0 {
            return other.clone();
        }
        let (a, b) = if self <= other { (self, other) } else { (other, self) };
        Expr::new(Node::Min(a.clone(), b.clone()))
    }

    /// The larger of two.
    pub fn maximum(&self, other: &Expr) -> Expr {
        self.maximum_in(other, &NoRanges)
    }

    /// The larger of two, decided where the ranges allow.
    pub fn maximum_in(&self, other: &Expr, ranges: &dyn Ranges) -> Expr {
        let difference = (self - other).interval(ranges);
        if difference.max <= 0 {
            return other.clone();
        }
        if difference.min >= 0 {
            return self.clone();
        }
        let (a, b) = if self <= other { (self, other) } else { (other, self) };
        Expr::new(Node::Max(a.clone(), b.clone()))
    }

    /// Quotient rounded up.
    pub fn ceil_div(&self, other: &Expr, ranges: &dyn Ranges) -> Expr {
        -((-self).floor_div_in(other, ranges))
    }

    /// Product of many.
    pub fn product<'a>(factors: impl IntoIterator<Item = &'a Expr>) -> Expr {
        factors.into_iter().fold(Expr::int(1), |product, factor| &product * factor)
    }

    /// Replaces symbols and simplifies again.
    pub fn substitute(&self, replace: &dyn Fn(Symbol) -> Option<Expr>, ranges: &dyn Ranges) -> Expr {
        match self.node() {
            Node::Int(_) => self.clone(),
            Node::Sym(symbol) => replace(*symbol).unwrap_or_else(|| self.clone()),
            Node::Sum { constant, terms } => {
                terms.iter().fold(Expr::int(*constant), |sum, (term, coefficient)| {
                    &sum + &(&term.substitute(replace, ranges) * &Expr::int(*coefficient))
                })
            }
            Node::Product(factors) => factors
                .iter()
                .fold(Expr::int(1), |product, factor| &product * &factor.substitute(replace, ranges)),
            Node::FloorDiv(a, b) => {
                a.substitute(replace, ranges).floor_div_in(&b.substitute(replace, ranges), ranges)
            }
            Node::Mod(a, b) => {
                a.substitute(replace, ranges).modulo_in(&b.substitute(replace, ranges), ranges)
            }
            Node::Min(a, b) => {
                a.substitute(replace, ranges).minimum_in(&b.substitute(replace, ranges), ranges)
            }
            Node::Max(a, b) => {
                a.substitute(replace, ranges).maximum_in(&b.substitute(replace, ranges), ranges)
            }
        }
    }

    /// The same value, simplified with what the ranges tell.
    pub fn simplify(&self, ranges: &dyn Ranges) -> Expr {
        self.substitute(&|_| None, ranges)
    }

    /// The value, given the values of its symbols; `None` on overflow, division by zero or an unknown symbol.
    pub fn evaluate(&self, value_of: &dyn Fn(Symbol) -> Option<i64>) -> Option<i64> {
        match self.node() {
            Node::Int(value) => Some(*value),
            Node::Sym(symbol) => value_of(*symbol),
            Node::Sum { constant, terms } => terms.iter().try_fold(*constant, |sum, (term, coefficient)| {
                sum.checked_add(term.evaluate(value_of)?.checked_mul(*coefficient)?)
            }),
            Node::Product(factors) => factors
                .iter()
                .try_fold(1i64, |product, factor| product.checked_mul(factor.evaluate(value_of)?)),
            Node::FloorDiv(a, b) => floor_div(a.evaluate(value_of)?, b.evaluate(value_of)?),
            Node::Mod(a, b) => modulo(a.evaluate(value_of)?, b.evaluate(value_of)?),
            Node::Min(a, b) => Some(a.evaluate(value_of)?.min(b.evaluate(value_of)?)),
            Node::Max(a, b) => Some(a.evaluate(value_of)?.max(b.evaluate(value_of)?)),
        }
    }

    /// Whether it has more than so many operations and operands, each counted where it is written.
    pub fn is_longer_than(&self, limit: usize) -> bool {
        fn count(own: &Expr, left: usize) -> Option<usize> {
            let left = left.checked_sub(1)?;
            match own.node() {
                Node::Int(_) | Node::Sym(_) => Some(left),
                Node::Sum { terms, .. } => terms.iter().try_fold(left, |left, (term, _)| count(term, left)),
                Node::Product(factors) => factors.iter().try_fold(left, |left, factor| count(factor, left)),
                Node::FloorDiv(a, b) | Node::Mod(a, b) | Node::Min(a, b) | Node::Max(a, b) => {
                    count(b, count(a, left)?)
                }
            }
        }
        count(self, limit).is_none()
    }

    /// Adds every symbol that occurs to `symbols`.
    pub fn collect_symbols(&self, symbols: &mut BTreeSet<Symbol>) {
        match self.node() {
            Node::Int(_) => {}
            Node::Sym(symbol) => {
                symbols.insert(*symbol);
            }
            Node::Sum { terms, .. } => terms.iter().for_each(|(term, _)| term.collect_symbols(symbols)),
            Node::Product(factors) => factors.iter().for_each(|factor| factor.collect_symbols(symbols)),
            Node::FloorDiv(a, b) | Node::Mod(a, b) | Node::Min(a, b) | Node::Max(a, b) => {
                a.collect_symbols(symbols);
                b.collect_symbols(symbols);
            }
        }
    }

    /// Whether it is the same all over a kernel: no axis occurs.
    pub fn is_of_sizes(&self) -> bool {
        let mut symbols = BTreeSet::new();
        self.collect_symbols(&mut symbols);
        symbols.iter().all(|symbol| symbol.kind == SymbolKind::Size)
    }

    /// How often symbols of a kind occur, counted up to a limit: expressions share parts, and written out they may be
    /// exponentially longer.
    pub fn occurrences(&self, kind: SymbolKind, limit: usize) -> usize {
        let all = |parts: &mut dyn Iterator<Item = &Expr>| {
            let mut sum = 0;
            for part in parts {
                if sum >= limit {
                    break;
                }
                sum += part.occurrences(kind, limit - sum);
            }
            sum
        };
        match self.node() {
            Node::Int(_) => 0,
            Node::Sym(symbol) => usize::from(symbol.kind == kind),
            Node::Sum { terms, .. } => all(&mut terms.iter().map(|(term, _)| term)),
            Node::Product(factors) => all(&mut factors.iter()),
            Node::FloorDiv(a, b) | Node::Mod(a, b) | Node::Min(a, b) | Node::Max(a, b) => {
                all(&mut [a, b].into_iter())
            }
        }
    }

    /// Whether `symbol` occurs.
    pub fn mentions(&self, symbol: Symbol) -> bool {
        match self.node() {
            Node::Int(_) => false,
            Node::Sym(other) => *other == symbol,
            Node::Sum { terms, .. } => terms.iter().any(|(term, _)| term.mentions(symbol)),
            Node::Product(factors) => factors.iter().any(|factor| factor.mentions(symbol)),
            Node::FloorDiv(a, b) | Node::Mod(a, b) | Node::Min(a, b) | Node::Max(a, b) => {
                a.mentions(symbol) || b.mentions(symbol)
            }
        }
    }

    /// Splits `self` into `coefficient * symbol + rest` where neither part mentions `symbol`; `None` if it is not
    /// affine in `symbol`.
    pub fn affine_in(&self, symbol: Symbol) -> Option<(Expr, Expr)> {
        let (constant, terms) = self.as_sum();
        let (mut coefficient, mut rest) = (Expr::int(0), Expr::int(constant));
        for (term, scale) in terms {
            let scale = Expr::int(scale);
            if !term.mentions(symbol) {
                rest = &rest + &(&term * &scale);
                continue;
            }
            let mut others = Expr::int(1);
            let mut found = 0;
            for factor in term.factors() {
                if factor.node() == &Node::Sym(symbol) {
                    found += 1;
                } else if factor.mentions(symbol) {
                    return None;
                } else {
                    others = &others * &factor;
                }
            }
            if found != 1 {
                return None;
            }
            coefficient = &coefficient + &(&others * &scale);
        }
        Some((coefficient, rest))
    }
}

/// Quotient rounded down; `None` for division by zero or overflow.
pub(super) fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    let inexact = a.checked_rem(b)? != 0;
    Some(if inexact && ((a < 0) != (b < 0)) { quotient - 1 } else { quotient })
}

/// Remainder with the sign of the divisor; `None` for division by zero or overflow.
pub(super) fn modulo(a: i64, b: i64) -> Option<i64> {
    let rest = a.checked_rem(b)?;
    Some(if rest != 0 && ((rest < 0) != (b < 0)) { rest + b } else { rest })
}

impl Default for Expr {
    fn default() -> Expr {
        Expr::int(0)
    }
}

impl From<i64> for Expr {
    fn from(value: i64) -> Expr {
        Expr::int(value)
    }
}

impl From<Symbol> for Expr {
    fn from(symbol: Symbol) -> Expr {
        Expr::sym(symbol)
    }
}

impl Add for &Expr {
    type Output = Expr;
    fn add(self, other: &Expr) -> Expr {
        let (a_constant, mut terms) = self.as_sum();
        let (b_constant, b_terms) = other.as_sum();
        terms.extend(b_terms);
        Expr::from_terms(a_constant.saturating_add(b_constant), terms)
    }
}

impl Neg for &Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        self.multiply(&Expr::int(-1))
    }
}

impl Sub for &Expr {
    type Output = Expr;
    fn sub(self, other: &Expr) -> Expr {
        self + &-other
    }
}

impl Mul for &Expr {
    type Output = Expr;
    fn mul(self, other: &Expr) -> Expr {
        self.multiply(other)
    }
}

macro_rules! owned_operators {
    ($($trait:ident $method:ident),*) => {$(
        impl $trait<Expr> for Expr {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr { $trait::$method(&self, &other) }
        }
        impl $trait<&Expr> for Expr {
            type Output = Expr;
            fn $method(self, other: &Expr) -> Expr { $trait::$method(&self, other) }
        }
        impl $trait<Expr> for &Expr {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr { $trait::$method(self, &other) }
        }
        impl $trait<i64> for Expr {
            type Output = Expr;
            fn $method(self, other: i64) -> Expr { $trait::$method(&self, &Expr::int(other)) }
        }
        impl $trait<i64> for &Expr {
            type Output = Expr;
            fn $method(self, other: i64) -> Expr { $trait::$method(self, &Expr::int(other)) }
        }
    )*};
}
owned_operators!(Add add, Sub sub, Mul mul);

impl Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        -&self
    }
}
