//! Random numbers: bits, distributions, and the operators that draw them.

pub(crate) mod distributions;
pub(crate) mod ops;
pub(crate) mod rejection_sampling;
