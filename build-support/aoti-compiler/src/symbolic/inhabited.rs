//! Sizes that are not zero where axes have a position at all.

use super::{Expr, Interval, NoRanges, RangeTable, Ranges, Symbol, SymbolKind};
use std::collections::BTreeSet;

/// The sizes without which axes of these extents have no position: the factors of the extents.
pub(crate) fn factors<'a>(extents: impl IntoIterator<Item = &'a Expr>) -> BTreeSet<Symbol> {
    let mut sizes = BTreeSet::new();
    for extent in extents {
        let mut own = BTreeSet::new();
        extent.collect_symbols(&mut own);
        let is_factor = |symbol: &Symbol| {
            let none = |other: Symbol| (other == *symbol).then(|| Expr::int(0));
            symbol.kind == SymbolKind::Size && extent.substitute(&none, &NoRanges).is(0)
        };
        sizes.extend(own.into_iter().filter(is_factor));
    }
    sizes
}

/// The range of a size that is not zero; none where that says nothing. A product of negative numbers is positive too.
pub(crate) fn positive(range: Interval) -> Option<Interval> {
    (range.min == 0 && range.max >= 1).then(|| Interval::new(1, range.max))
}

impl RangeTable {
    /// States what holds at every position of axes of these extents.
    pub(crate) fn assume_inhabited<'a>(&mut self, extents: impl IntoIterator<Item = &'a Expr>) {
        for size in factors(extents) {
            if let Some(range) = positive(self.range(size)) {
                self.set(size, range);
            }
        }
    }
}
