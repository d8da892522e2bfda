//! The text form of run plans: printed by `inspect --emit run`, parsed, and what tests are written in.
//!
//! ```text
//! run {
//!   arena [64*s0]
//!   failure e0 "the model requires batch <= 8"
//!   check e0 guard [s0] le [8]
//!   kernel k0 "relu" {
//!     note "aten.relu.default of relu" at "model.py:3 in forward" in "encoder.act"
//!     writes f32[s0, 16] "relu" in arena [0]
//!   }
//!   call k0 f0 (f32 input 0, f32 arena [0]) [s0]
//! }
//! ```
//!
//! Addresses are `input N`, `output N`, `state BYTES`, `weights BYTES`, `arena [BYTES]` and `late mN`, each behind the type of
//! what lies there. `allocate m0 [4*s1] e2` allocates memory when its size is known, with `threads [BYTES]` more for each thread,
//! `output N` where it is the caller's; `free m0` gives it back. Functions are numbered; their text is not part of a plan.

mod parse;
mod print;

pub use parse::parse;
pub use print::print;
