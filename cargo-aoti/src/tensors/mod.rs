//! Tensors outside of models: files of them and random ones.

pub(crate) mod file;
pub(crate) mod onnx;
pub(crate) mod random;
