//! The text form of programs of ATen calls: printed by `inspect --emit aten`, parsed, and what tests are written in.
//!
//! ```text
//! program "mlp" {
//!   symbol s0 "batch" in 1..4096 from input 0 axis 0
//!   const "fc.weight": f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
//!   input %p_fc_weight: f32[2, 3] constant "fc.weight"
//!   input %x: f32[s0, 3]
//!   int sym_size: [s0] = aten.sym_size.int(self = %x, dim = 0)
//!   %linear: f32[s0, 2] = aten.linear.default(input = %x, weight = %p_fc_weight) @ "linear" "m.py:8" "fc"
//!   [%a: f32[s0, 1] strides [2, 1], none] = aten.split.Tensor(self = %linear, split_size = 1, dim = -1)
//!   output %a
//! }
//! ```
//!
//! A tensor is `%` and its name; what is said of it stands where it is defined: type, then strides and offset where
//! they are not those of a contiguous tensor. `int`, `truth` and `number` define symbolic numbers. Arguments are numbers,
//! `{expressions}`, `[lists]`, `floats [...]`, `bools [...]`, element types, `"text"`, `truth NAME`, `other "cpu"`,
//! `none`, and `program "body" { ... }`. Places are node, line and module behind `@`. Names that are no words stand in
//! quotes. Printing and parsing again gives an equal program.

mod parse;
mod print;
#[cfg(test)]
mod tests;

use crate::symbolic::Expr;

pub use parse::parse;
pub use print::{print, print_short};

/// The strides of a contiguous tensor.
fn contiguous(sizes: &[Expr]) -> Vec<Expr> {
    (0..sizes.len()).map(|axis| Expr::product(&sizes[axis + 1..])).collect()
}

/// Words with a meaning where a name could stand: a name that is one of them stands in quotes.
const KEYWORDS: [&str; 16] = [
    "symbol",
    "guard",
    "const",
    "let",
    "tensor",
    "input",
    "output",
    "int",
    "truth",
    "number",
    "none",
    "fixed",
    "constant",
    "strides",
    "offset",
    "overwrites",
];

/// Whether a name can stand without quotes.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
}
