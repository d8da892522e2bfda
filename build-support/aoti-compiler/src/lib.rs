//! The compiler: a pure function from model bytes, options and tuning records to a bundle of source text.
//!
//! It starts no process, reads no environment and keeps no global state: equal arguments give equal bytes.

pub mod codegen;
pub mod compile;
pub(crate) mod constants;
pub mod cost;
pub mod diagnostic;
pub mod dtype;
pub mod float8;
pub mod fourier;
pub mod frontend;
pub mod graph;
pub mod halves;
pub mod interpret;
pub mod json;
pub mod kernels;
pub mod loops;
pub mod lower;
pub mod names;
pub mod origin;
pub mod passes;
pub mod random;
pub mod runplan;
pub mod schedule;
pub mod symbolic;
pub mod target;
mod text;
pub mod tuning;
