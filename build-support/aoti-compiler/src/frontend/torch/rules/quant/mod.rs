//! Quantisation: numbers as integers with a scale and a zero point.

pub(crate) mod fake_quant;
pub(crate) mod pt2e;
pub(crate) mod qparams;
pub(crate) mod torchao;
