//! Transformations of programs and graphs, each a function between values.

pub mod decompose;
