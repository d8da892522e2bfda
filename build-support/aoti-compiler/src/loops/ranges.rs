//! What is known of the symbols of expressions over axes.

use super::Axis;
use crate::symbolic::{Expr, RangeTable, Ranges, SymbolKind};
use std::collections::BTreeSet;

/// Ranges of the size symbols among `exprs` and of the given axes.
pub(crate) fn ranges_over(ranges: &dyn Ranges, axes: &[&[Axis]], exprs: &[&Expr]) -> RangeTable {
    let mut table = RangeTable::default();
    let mut symbols = BTreeSet::new();
    for axis in axes.iter().copied().flatten() {
        axis.extent.collect_symbols(&mut symbols);
    }
    exprs.iter().for_each(|expr| expr.collect_symbols(&mut symbols));
    for symbol in symbols.into_iter().filter(|symbol| symbol.kind == SymbolKind::Size) {
        table.set(symbol, ranges.range(symbol));
    }
    for axis in axes.iter().copied().flatten() {
        table.set_extent(axis.symbol, axis.extent.clone());
    }
    table
}
