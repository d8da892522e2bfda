//! Turns ATen programs into core graphs: makes mutation explicit and replaces every call by core operators.
//!
//! An operator overload has a [`Rule`]; rules are registered in tables, one file a family. Mutation and aliasing are
//! handled here once, for all operators: a tensor value is a window (coordinates) onto a storage, an in-place call
//! computes its result functionally and writes it back through the window, and other windows onto that storage are
//! read anew. The technique is functionalisation by replaying views (PyTorch's `functorch` notes describe it); views
//! being index maps, writing back is a scatter.

mod args;
mod context;
mod control;
mod registry;
mod run;

pub use args::Args;
#[cfg(feature = "onnx")]
pub(crate) use attention::{default_scale, hide, scaled, share_heads, softmax as attention_softmax};
pub use context::{Context, RuleError};
pub use data_checks::Check;
pub use formula::Formula;
#[cfg(feature = "onnx")]
pub(crate) use fourier::{Direction, Signal};
#[cfg(feature = "onnx")]
pub(crate) use masks::hits_of;
pub use operand::Operand;
#[cfg(feature = "onnx")]
#[cfg(feature = "onnx")]
pub(crate) use project::{Given, Taken, default_as, none_of, number_as, numbers_as, taken};
pub use refused::Refusal;
pub use registry::{Entry, Kind, Outputs, Registry, Rule, RuleFn};
pub use run::{decompose, decompose_with};
#[cfg(feature = "onnx")]
pub(crate) use steps::{Carried, Step, repeat, repeat_while_any, rows_at, with_row};
#[cfg(feature = "onnx")]
pub(crate) use support::read_size;
#[cfg(feature = "onnx")]
pub(crate) use unique::{in_order, run_starts};
pub use unsupported::is_structural;

mod activation;
mod adaptive;
mod affine;
mod aliases;
mod antialias;
mod attention;
mod autocast;
mod bits;
mod casts;
mod checks;
mod class_loss;
mod complex;
mod complex_arranged;
mod complex_elementary;
mod complex_factored;
mod complex_factors;
mod complex_functions;
mod complex_ldl;
mod complex_ldl_solve;
mod complex_lu;
mod complex_matrices;
mod complex_products;
mod complex_reflections;
mod complex_table;
mod contraction;
mod convolution;
mod copies;
mod create;
mod data_checks;
mod deformable;
mod demands;
mod detection;
mod draws;
mod dropout;
mod einsum;
mod embedding;
mod encoder_layer;
mod extremum;
mod factor;
mod fake_quantized;
mod float8;
mod foreach;
mod formula;
mod fourier;
mod functionalized;
mod gather;
mod gradients;
mod grid;
mod grouped;
mod hints;
mod histogram;
mod index;
mod inline;
mod join;
mod ldl;
mod linalg;
mod loss;
mod masks;
mod matrices;
mod norm;
mod normalization;
mod numbers;
mod operand;
mod order;
mod padding;
mod pairs;
mod parts;
mod pointwise;
mod poison;
mod pooling;
mod project;
mod project_sizes;
mod quantization_parameters;
mod quantized;
mod random;
mod rearrange;
mod recurrent;
mod reduction;
mod refused;
mod region_pools;
mod regions;
mod rejection;
mod resample;
mod scan;
mod search;
mod segments;
mod sequence_loss;
mod shape;
mod short_time;
mod signal;
mod slice;
mod sliding;
mod slopes;
mod softmax;
mod solve;
mod spectra;
mod statistics;
mod steps;
mod strided;
mod support;
mod tensor_systems;
mod ternary;
mod unary;
mod unify;
mod unique;
mod unsupported;
mod vmap;
mod windows;

#[cfg(test)]
mod project_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod window_tests;
