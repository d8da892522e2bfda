//! The reference evaluator: computes a core graph slowly and in the most direct way.
//!
//! It is what constant folding, `verify --reference` and numeric tests rely on, so each operator is written from its
//! documentation in [`crate::graph::Op`], with no shortcut shared with code generation. Half types are held as stored
//! and computed in `f32`; sums of floating-point numbers are accumulated in `f64`. `schedule/` evaluates what the later
//! stages made of a graph, with the same functions of numbers.

mod binary;
mod contract;
mod convert;
mod error;
mod fourier;
mod index;
mod matrices;
mod movement;
mod order;
mod recurrent;
mod reduce;
mod run;
mod schedule;
mod special;
mod tensor;
#[cfg(test)]
mod tests;
mod unary;

pub(crate) use convert::cast;
pub use error::EvalError;
pub use run::{evaluate, evaluate_watched};
pub use schedule::{Evaluated, evaluate_schedule};
pub use tensor::{Tensor, TensorError};
