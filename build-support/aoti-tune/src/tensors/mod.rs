//! Tensors outside of models: how far two are apart, how large outputs are, and files that the harness reads.

pub mod compare;
pub mod complex;
pub mod flat;
pub mod room;
