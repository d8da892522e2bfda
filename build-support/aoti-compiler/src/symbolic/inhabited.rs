//! Sizes that are not zero where loops have a position at all.

use super::Axis;
use crate::symbolic::{Expr, Interval, NoRanges, RangeTable, Ranges, Symbol, SymbolKind};
use std::collections::BTreeSet;

/// The sizes without which loops over these axes are empty: the factors of their extents.
pub(crate) fn factors(axes: &[Axis]) -> BTreeSet<Symbol> {
    let mut sizes = BTreeSet::new();
    for axis in axes {
        let mut own = BTreeSet::new();
        axis.extent.collect_symbols(&mut own);
        let is_factor = |symbol: &Symbol| {
            let none = |other: Symbol| (other == *symbol).then(|| Expr::int(0));
            symbol.kind == SymbolKind::Size && axis.extent.substitute(&none, &NoRanges).is(0)
        };
        sizes.extend(own.into_iter().filter(is_factor));
    }
    sizes
}

/// The range of a size that is not zero; none where that says nothing. A product of negative numbers is positive too.
pub(crate) fn positive(range: Interval) -> Option<Interval> {
    (range.min == 0 && range.max >= 1).then(|| Interval::new(1, range.max))
}

/// States in `ranges` what holds at every position of loops over these axes.
pub(super) fn assume(axes: &[Axis], ranges: &mut RangeTable) {
    for size in factors(axes) {
        if let Some(range) = positive(ranges.range(size)) {
            ranges.set(size, range);
        }
    }
}
