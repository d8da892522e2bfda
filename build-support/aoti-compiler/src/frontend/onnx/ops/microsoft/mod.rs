//! Operators of ONNX Runtime's own (`com.microsoft`), which its optimisers and quantisers write into models.

mod activation;
mod attention;
mod experts;
mod grouped_query;
mod matrix;
mod normalization;
mod packed_weights;
mod quantized;
mod quantized_matrix;
mod recurrent;
mod rotary;
#[cfg(test)]
mod tests;
mod various;

use super::{Operator, operators};

/// The operators by family.
pub(super) const FAMILIES: &[&[Operator]] = &[
    activation::OPERATORS,
    attention::OPERATORS,
    experts::OPERATORS,
    grouped_query::OPERATORS,
    matrix::OPERATORS,
    normalization::OPERATORS,
    packed_weights::OPERATORS,
    quantized::OPERATORS,
    quantized_matrix::OPERATORS,
    recurrent::OPERATORS,
    rotary::OPERATORS,
    various::OPERATORS,
];
