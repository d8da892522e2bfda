//! The text form of programs at loop level: printed by `inspect --emit loops` and `--emit schedule`, parsed, and what
//! tests are written in.
//!
//! ```text
//! loops "rows" {
//!   symbol s0 "batch" in 1..4096 from input 0 axis 0
//!   buffer b0 "x": f32[s0, 3] input 0
//!   buffer b1 "y": f32[s0] output 0
//!   inputs [b0]
//!   graph_inputs [b0]
//!   outputs [b1]
//!   kernel "y" {
//!     note "aten.sum.dim_IntList of sum_1" at "m.py:3" in "head"
//!     for [i0 < s0] {
//!       accumulator acc0: sum f32 in stage 0
//!       stage [i1 < 3] {
//!         t0: f32 = load b0[i0, i1]
//!         accumulate acc0 t0
//!       }
//!       stage [] {
//!         t0: f32 = result acc0
//!         store b1[i0] = t0
//!       }
//!     }
//!   }
//! }
//! ```
//!
//! Coordinates are expressions, or terms. The place in memory follows from them and the buffer's sizes; where it is
//! another expression, that stands behind `at`, and strides of terms behind `by`: joined axes have no coordinates. `if
//! [c < n] else f` are the guards of a load: `0 <= c < n`, and `f` where not. Printing and parsing again gives an equal
//! program.

mod parse;
mod print;
mod stage;
#[cfg(test)]
mod tests;

use super::{Access, Buffer, BufferId, Index};
use crate::symbolic::{Expr, NoRanges};

pub use parse::parse;
pub(crate) use parse::parse_with;
pub use print::{print, print_short};
pub(crate) use print::{print_kernel, print_with};

/// The access that coordinates alone stand for: of the first element, where they are not one for each axis.
fn plain_access(id: BufferId, buffer: &Buffer, coords: Vec<Index>) -> Access {
    if coords.len() == buffer.shape.len() {
        return Access::new(id, buffer, coords, &NoRanges);
    }
    Access { buffer: id, coords, offset: Expr::int(0), indirect: vec![] }
}
