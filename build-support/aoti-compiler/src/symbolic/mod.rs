//! Integer expressions over dimension symbols and loop axes.
//!
//! Owns: canonical construction, simplification under ranges, substitution, bounds and evaluation. Division and
//! remainder round towards negative infinity, as Python's do. Knows nothing of tensors.
//!
//! Every [`Expr`] is kept in a canonical form: a sum of products with integer coefficients, terms sorted, so that
//! structural equality decides most questions. What needs to know the range of a symbol takes a [`Ranges`].

mod divide;
mod expr;
mod facts;
pub(crate) mod inhabited;
mod interval;
mod text;

pub(crate) use divide::common_divisor;
pub use expr::{Expr, Node, Symbol, SymbolKind};
pub use facts::{Extremes, Facts};
pub use interval::{Interval, NoRanges, RangeTable, Ranges};
pub use text::{ParseError, parse};

#[cfg(test)]
mod tests;
