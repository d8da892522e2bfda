//! Prints planned models as source text. The only part of the compiler that knows C++ and Rust text.

pub mod bindings;
pub mod bundle;
mod docs;
pub mod header;
pub mod interface;
pub mod names;
pub mod pack;
