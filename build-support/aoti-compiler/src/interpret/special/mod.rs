//! Special functions in `f64`, by textbook methods chosen for being evidently right rather than fast.
//!
//! Poles, signs and arguments outside a function's domain follow `torch.special`.

pub(super) mod airy;
pub(super) mod bessel;
pub(super) mod error_function;
pub(super) mod gamma;
pub(super) mod polynomials;
