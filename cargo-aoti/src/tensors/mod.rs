//! Tensors outside of models: files of them, random ones, and how far two are apart.

pub(crate) mod compare;
pub(crate) mod complex;
pub(crate) mod file;
pub(crate) mod flat;
pub(crate) mod onnx;
pub(crate) mod random;
pub(crate) mod room;
