//! The text form of schedules: printed by `inspect --emit schedule`, parsed, and what tests are written in.
//!
//! ```text
//! schedule cpu "x86-64" "x86-64-v3" {
//!   loops "rows" {
//!     ...
//!     kernel "head_sum" {
//!       note "aten.sum.dim_IntList of sum_1" at "m.py:3" in "head"
//!       choose loops
//!       map split axes 1 lanes inner grain [16384, 8]
//!       call f0 of b0 [0] b3 [0] sizes [s0]
//!       for [i0 < s0] {
//!         ...
//!       }
//!     }
//!   }
//!   arena [64*s0]
//!   place b3 [0]
//! }
//! ```
//!
//! The program is in its own form, with four kinds of lines more in each kernel. `choose` names the template, what
//! it reads packed (`pack b1 product [0, 1, 64, 64, 32]`) and its scratch (`scratch [for all, for each worker]`); `map`
//! is the mapping; `call` names its functions, which several kernels may have, the buffers that they are given with the element from
//! which on, and sizes; and on a device `launch` is each of its launches
//! (`launch grid [32] threads 256 shared [4096] next end`). Behind the program stand the arena's bytes (`total` with what lies
//! behind its buffers) and the place of each buffer in it. The first line names the
//! libraries that products may be left to, each as `library "openblas"`.

mod launch;
mod parse;
mod print;
mod setting;
#[cfg(test)]
mod tests;

pub(super) use launch::call_line;
pub(crate) use launch::{parse_window, window_text};
pub use parse::parse;
pub(super) use print::{choice_lines, mapping_line};
pub use print::{print, print_short};
