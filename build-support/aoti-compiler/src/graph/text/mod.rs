//! The text form of graphs, `.aoti`: printed, parsed, and what tests are written in.
//!
//! ```text
//! graph "mlp" {
//!   symbol s0 "batch" in 1..4096 from input 0 axis 0
//!   guard [2*s0] le [4096]
//!   origin o0 = "aten.linear.default of linear" "model.py:8 in forward: return self.fc(x)" "fc"
//!   const c0 "fc.weight": f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
//!   input %0 "x": f32[s0, 2]
//!   %1: f32[2, 3] = constant c0 @ o0
//!   %2 "y": f32[s0, 3] = matmul %0, %1 @ o0
//!   output %2 "y"
//! }
//! ```
//!
//! One statement a line; `#` starts a comment. A value is `%` and a number or a word; its type stands where it is
//! defined. Expressions over sizes and axes stand in brackets, `$k` there is index operand `k` of a gather or scatter.
//! The data of a constant is a list, `splat NUMBER`, `hex "..."`, or `random SEED` (uniform in -1 .. 1, integers in
//! 0 .. 9, by a fixed generator). `weight` before the `=` says that other elements may be given at run time, `from K
//! graph {...}` behind the data that they are output K of a graph over weights. Printing and parsing again gives an
//! equal graph.
//!
//! Symbols, guards, constants and calls occur in the text forms of programs, loops and schedules too, which use what stands
//! in `statements.rs`, `grammar.rs`, `data.rs` and `extern_call.rs` here.

mod collective;
mod data;
mod extern_call;
mod grammar;
mod ops;
mod parse;
mod print;
mod statements;
#[cfg(test)]
mod tests;

pub(crate) use collective::collective_text;
pub(crate) use data::{clip, parse_scalar, print_scalar};
pub(crate) use extern_call::extern_text;
pub(crate) use statements::{
    Detail, bracketed, condition_text, constant_text, conv_text, guard_line, guard_text, note_line,
    origin_text, quoted, quoted_name, range_text, symbol_line,
};

pub use parse::parse;
pub(crate) use parse::parse_nested;
pub(crate) use print::print_part;
pub use print::{print, print_short};
