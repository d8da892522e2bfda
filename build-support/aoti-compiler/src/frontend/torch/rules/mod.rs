//! What the operators of PyTorch compute: a rule for each overload, in tables by family.
//!
//! A [`Rule`] builds what a call gives from the values of its arguments. It knows nothing of mutation and aliasing, which
//! `functionalize` handles once for all operators.
//!
//! A family of operators is a file or a folder, with a table of its rules; `registry` collects them, `aliases` has second names,
//! `data_checks` what operators require of elements. Rules are written with `context` (the builder, and PyTorch's conventions),
//! `args` (what a call is given), `operand` and `formula` (element-wise expressions) and `support`. What other
//! front ends need as well is a function of values and numbers beside its rule.

pub(crate) mod activation;
pub(crate) mod adaptive_pooling;
pub(crate) mod aliases;
mod args;
pub(crate) mod as_strided;
pub(crate) mod attention;
pub(crate) mod bitcast;
pub(crate) mod casts;
pub(crate) mod checks;
pub(crate) mod collective;
pub(crate) mod combinations;
pub(crate) mod complex;
pub(crate) mod concat;
pub(crate) mod context;
pub(crate) mod convolution;
pub(crate) mod creation;
pub(crate) mod cross_entropy;
pub(crate) mod ctc_loss;
pub(crate) mod custom_op;
pub(crate) mod data_checks;
pub(crate) mod deform_conv;
pub(crate) mod dropout;
pub(crate) mod dynamic_conv;
pub(crate) mod einsum;
pub(crate) mod embedding;
pub(crate) mod encoder_layer;
pub(crate) mod fft;
pub(crate) mod fft_primitive;
pub(crate) mod finite_differences;
pub(crate) mod float8;
pub(crate) mod formula;
pub(crate) mod gather;
pub(crate) mod gradients;
pub(crate) mod grid_sample;
pub(crate) mod grouped_mm;
pub(crate) mod histogram;
pub(crate) mod index;
pub(crate) mod interpolate;
pub(crate) mod interpolate_antialias;
pub(crate) mod linalg;
pub(crate) mod loss;
pub(crate) mod masked;
pub(crate) mod matmul;
pub(crate) mod matrices;
pub(crate) mod minmax;
pub(crate) mod nms;
pub(crate) mod norm;
pub(crate) mod normalization;
pub(crate) mod operand;
pub(crate) mod padding;
pub(crate) mod pointwise;
pub(crate) mod pooling;
pub(crate) mod quant;
pub(crate) mod random;
pub(crate) mod rearrange;
pub(crate) mod recurrent;
pub(crate) mod reduction;
pub(crate) mod registry;
pub(crate) mod roi_align;
pub(crate) mod roi_pool;
pub(crate) mod scan;
pub(crate) mod searchsorted;
pub(crate) mod segment_reduce;
pub(crate) mod shape;
pub(crate) mod signal;
pub(crate) mod slice;
pub(crate) mod softmax;
pub(crate) mod sort;
pub(crate) mod statistics;
pub(crate) mod stft;
pub(crate) mod support;
pub(crate) mod ternary;
pub(crate) mod unary;
pub(crate) mod unique;
pub(crate) mod unsupported;

#[cfg(test)]
pub(crate) mod tests;

pub use args::Args;
pub(crate) use context::DEFAULT_FLOAT;
pub use context::{Context, RuleError};
pub use data_checks::Check;
pub use formula::Formula;
pub use operand::Operand;
pub use registry::{Entry, Kind, Outputs, Registry, Rule, RuleFn};
pub use unsupported::{Refusal, is_structural};
