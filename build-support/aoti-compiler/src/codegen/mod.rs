//! Prints planned models as source text. The only part of the compiler that knows C++ and Rust text.

pub mod bundle;
pub mod interface;
