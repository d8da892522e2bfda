//! What a run must obey so that the nodes mean what they say: conditions of the program, and those that operators have for
//! sizes and positions. What can be decided is decided here; the rest becomes guards.

use super::{Builder, Built, ensure};
use crate::graph::{Condition, Guard, LARGEST_SIZE, Op, Relation, SymbolSource};
use crate::symbolic::{Expr, Node, RangeTable, Ranges, Symbol, SymbolKind};
use std::collections::BTreeSet;

impl Builder {
    /// The run fails with the message where the condition does not hold. What always holds costs nothing; what is over
    /// symbols that are known when a run begins is checked then, if it is checked in every run.
    pub fn require(&mut self, condition: Condition, message: &str) {
        if self.required.contains(&condition) || condition.decide(&self.facts) == Some(true) {
            return;
        }
        condition.assume(&mut self.facts);
        self.required.push(condition.clone());
        let guard = Guard { condition, message: self.placed(message) };
        let is_early = !self.is_body && !guard.condition.symbols().iter().any(|symbol| self.is_data(*symbol));
        if !is_early {
            self.push(Op::Require(guard), &[], vec![]);
        } else if !self.graph.guards.contains(&guard) {
            self.graph.guards.push(guard);
        }
    }

    /// A message with the place in the program that is translated.
    pub(super) fn placed(&self, message: &str) -> String {
        crate::graph::placed(message, self.graph.origins[self.origin].place())
    }

    /// A size as users know it.
    pub fn size_text(&self, size: &Expr) -> String {
        crate::graph::size_text(&self.graph.symbols, size)
    }

    /// Whether a symbol is read from data.
    pub fn is_data(&self, symbol: Symbol) -> bool {
        symbol.kind == SymbolKind::Size
            && self.sources.get(symbol.index as usize) == Some(&SymbolSource::Data)
    }

    /// Whether the value of a symbol has been read.
    pub fn is_read(&self, symbol: Symbol) -> bool {
        self.read.contains(&symbol)
    }

    /// Whether an expression mentions a number that someone chose, rather than the size of a tensor that exists.
    pub fn is_chosen(&self, expr: &Expr) -> bool {
        let mut symbols = BTreeSet::new();
        expr.collect_symbols(&mut symbols);
        symbols.into_iter().filter(|symbol| symbol.kind == SymbolKind::Size).any(|symbol| {
            let source = self.sources.get(symbol.index as usize);
            !matches!(source, Some(SymbolSource::InputDim { .. }))
        })
    }

    /// Requires two sizes to be the same; an error where they never are.
    pub fn require_same(&mut self, a: &Expr, b: &Expr) -> Built<()> {
        if self.same_size(a, b) {
            return Ok(());
        }
        let condition = Condition::compare(a.clone(), Relation::Eq, b.clone());
        ensure!(condition.decide(&self.facts) != Some(false), "sizes {a} and {b} differ");
        self.require(condition, "sizes that must be the same");
        Ok(())
    }

    /// Requires a size to be 1 or the same as another, as broadcasting does.
    pub(super) fn require_one_or(&mut self, size: &Expr, other: &Expr) {
        let same = Condition::compare(size.clone(), Relation::Eq, other.clone());
        let one = Condition::compare(size.clone(), Relation::Eq, 1);
        self.require(Condition::any([one, same]), "a size that must be 1 or that of the other");
    }

    /// Requires that a window fits into what it goes over, with so much left over; an error where it never does.
    pub(super) fn require_room(&mut self, room: &Expr) -> Built<()> {
        let fits = Condition::compare(room.clone(), Relation::Ge, 0);
        ensure!(fits.decide(&self.facts) != Some(false), "a window is larger than what it goes over");
        self.require(fits, "a window that is larger than what it goes over");
        Ok(())
    }

    /// Requires that there are as many elements as are taken; an error where there never are.
    pub(super) fn require_at_least(&mut self, size: &Expr, taken: &Expr) -> Built<()> {
        let are = Condition::compare(size - taken, Relation::Ge, 0);
        ensure!(are.decide(&self.facts) != Some(false), "{taken} elements of {size}");
        self.require(are, "a size that is less than what is taken of it");
        Ok(())
    }

    /// A size is not negative and can be computed.
    pub(super) fn require_size(&mut self, size: &Expr) {
        if size.interval(&self.ranges).min < 0 || self.is_chosen(size) {
            let condition = Condition::compare(size.clone(), Relation::Ge, 0);
            self.require(condition, "a size that must not be negative");
        }
        // Fused into what sums it, such a tensor would take no memory, but years.
        if self.is_chosen(size) {
            let condition = Condition::compare(size.clone(), Relation::Le, LARGEST_SIZE);
            self.require(condition, "a size that no memory holds");
        }
    }

    /// The values of an expression over the axes of `shape` can be computed.
    pub(super) fn require_fits(&mut self, expr: &Expr, shape: &[Expr]) {
        if !self.is_chosen(expr) {
            return;
        }
        let ranges = self.extents(shape);
        let ends = [end(expr, &ranges, true), end(expr, &ranges, false)];
        // What is not linear in its axes is built by the compiler from parts that are.
        for end in ends.into_iter().flatten() {
            self.require(Condition::Fits(end), "a number that must be within 64 bits");
        }
    }

    /// The coordinates over the axes of `shape` are within a tensor of the sizes `own`: the one place where a window onto
    /// a storage is made. Coordinates over sizes of tensors alone are within bounds by the rules that make them.
    pub(super) fn require_within(&mut self, own: &[Expr], shape: &[Expr], coords: &[Expr]) -> Built<()> {
        if self.is_checked || shape.iter().any(|size| size.is(0)) {
            return Ok(());
        }
        let ranges = self.extents(shape);
        for (coord, size) in coords.iter().zip(own) {
            let inside = coord.never_negative(&ranges) && coord.always_less(size, &ranges);
            let mut symbols = BTreeSet::new();
            coord.collect_symbols(&mut symbols);
            // Whatever the other axes are, they have no part in it.
            let axes = symbols.into_iter().filter(|symbol| symbol.kind == SymbolKind::Axis);
            let mut own_axes = axes.filter_map(|axis| shape.get(axis.index as usize));
            let chosen = self.is_chosen(coord) || self.is_chosen(size) || own_axes.any(|s| self.is_chosen(s));
            // A remainder by the size is within, and where the size is 0 there is nothing to read.
            if let Node::Mod(position, divisor) = coord.node()
                && divisor == size
            {
                self.require_fits(position, shape);
                continue;
            }
            if inside {
                // So is the whole of a clamp, whatever comes of the position that it clamps.
                self.require_fits(coord, shape);
                continue;
            }
            if !chosen {
                continue;
            }
            if is_clamp(coord, size, &ranges) {
                self.require_fits(coord, shape);
                let some = Condition::compare(size.clone(), Relation::Ge, 1);
                self.require(some, "a position that must be within its axis");
                continue;
            }
            let (Some(low), Some(high)) = (end(coord, &ranges, false), end(coord, &ranges, true)) else {
                return Err(super::ShapeError(format!(
                    "whether `{coord}` is within an axis of {size} cannot be checked"
                )));
            };
            let at_least = Condition::compare(low, Relation::Ge, 0);
            self.require(at_least, "a position that must be within its axis");
            let below = Condition::compare(&high + 1, Relation::Le, size.clone());
            self.require(below, "a position that must be within its axis");
        }
        Ok(())
    }

    /// The smaller of two, decided where what is known allows.
    pub fn smaller(&self, a: &Expr, b: &Expr) -> Expr {
        if self.facts.never_negative(&(b - a)) {
            return a.clone();
        }
        if self.facts.never_negative(&(a - b)) { b.clone() } else { a.minimum_in(b, &self.ranges) }
    }

    /// The larger of two, decided where what is known allows.
    pub fn larger(&self, a: &Expr, b: &Expr) -> Expr {
        if self.facts.never_negative(&(b - a)) {
            return b.clone();
        }
        if self.facts.never_negative(&(a - b)) { a.clone() } else { a.maximum_in(b, &self.ranges) }
    }

    /// A position along an axis of `size`, negative ones counted from the end.
    pub fn wrapped(&self, position: &Expr, size: &Expr) -> Expr {
        if self.facts.never_negative(position) {
            return position.clone();
        }
        let negative = Condition::compare(position.clone(), Relation::Lt, 0);
        if negative.decide(&self.facts) == Some(true) {
            return position + size;
        }
        position + &(size * &negative.indicator(&self.ranges))
    }
}

/// Whether a position is kept between the first and the last of an axis, if that has any.
fn is_clamp(coord: &Expr, size: &Expr, ranges: &RangeTable) -> bool {
    let Node::Min(a, b) = coord.node() else { return false };
    let last = size - 1;
    (*a == last && b.never_negative(ranges)) || (*b == last && a.never_negative(ranges))
}

/// The value of an expression where its axes make it largest, or smallest; `None` where that is not plain to see.
fn end(expr: &Expr, ranges: &RangeTable, largest: bool) -> Option<Expr> {
    linear_end(expr, ranges, largest).or_else(|| monotone_end(expr, ranges, largest))
}

fn axes(expr: &Expr) -> impl Iterator<Item = Symbol> {
    let mut symbols = BTreeSet::new();
    expr.collect_symbols(&mut symbols);
    symbols.into_iter().filter(|symbol| symbol.kind == SymbolKind::Axis)
}

fn linear_end(expr: &Expr, ranges: &RangeTable, largest: bool) -> Option<Expr> {
    let mut result = expr.clone();
    for symbol in axes(expr) {
        let (coefficient, rest) = result.affine_in(symbol)?;
        let sign = coefficient.interval(ranges);
        let last = ranges.extent(symbol)? - 1;
        let rises = if sign.min >= 0 {
            true
        } else if sign.max <= 0 {
            false
        } else {
            return None;
        };
        result = if rises == largest { &rest + &(&coefficient * &last) } else { rest };
    }
    Some(result)
}

/// Of a sum whose terms have no axis in common, so that all are at their ends at once.
fn monotone_end(expr: &Expr, ranges: &RangeTable, largest: bool) -> Option<Expr> {
    let (constant, terms) = expr.as_sum();
    let mut seen = BTreeSet::new();
    if !terms.iter().flat_map(|(term, _)| axes(term)).all(|axis| seen.insert(axis)) {
        return None;
    }
    terms.iter().try_fold(Expr::int(constant), |sum, (term, coefficient)| {
        let own = term_end(term, ranges, largest == (*coefficient > 0))?;
        Some(&sum + &(&own * *coefficient))
    })
}

/// Of what is linear in its axes, a quotient by what has none, or the smaller or larger of two.
fn term_end(term: &Expr, ranges: &RangeTable, largest: bool) -> Option<Expr> {
    let has_axes = |expr: &Expr| axes(expr).next().is_some();
    let side = |side: &Expr| end(side, ranges, largest);
    match term.node() {
        // Where it is a quotient by zero there must be no position.
        Node::FloorDiv(a, b) if !has_axes(b) && b.never_negative(ranges) => {
            Some(side(a)?.floor_div_in(&b.maximum_in(&Expr::int(1), ranges), ranges))
        }
        Node::Min(a, b) if !has_axes(a) || !has_axes(b) => Some(side(a)?.minimum_in(&side(b)?, ranges)),
        Node::Max(a, b) if !has_axes(a) || !has_axes(b) => Some(side(a)?.maximum_in(&side(b)?, ranges)),
        Node::FloorDiv(..)
        | Node::Min(..)
        | Node::Max(..)
        | Node::Mod(..)
        | Node::Int(_)
        | Node::Sym(_)
        | Node::Sum { .. }
        | Node::Product(_) => linear_end(term, ranges, largest),
    }
}
