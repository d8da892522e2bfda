//! Gradients: what programs that train hold beside their forward pass.
//!
//! Each rule is the derivative that PyTorch's operator states, not one that is derived here. Where an operator reads elements
//! at positions, its gradient adds to the elements at these positions.

mod activation;
mod attention;
mod convolution;
mod lookup;
mod loss;
mod normalization;
mod pooling;
mod resample;

use super::registry::{Rule, rules};
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::graph::{Combine, Coord, ValueId};
use crate::symbolic::Expr;

/// The rules of all its families.
pub(crate) const RULES: &[&[Rule]] = &[
    activation::RULES,
    attention::RULES,
    convolution::RULES,
    loss::RULES,
    lookup::RULES,
    normalization::RULES,
    pooling::RULES,
    resample::RULES,
];

/// The gradient of a view: each element of `gradient` is added to the element of a tensor of `shape` that it was read from.
pub(crate) fn added_at(
    cx: &mut Context,
    gradient: ValueId,
    shape: &[Expr],
    coords: Vec<Expr>,
) -> Result<ValueId, RuleError> {
    let base = cx.b.full(0i64, cx.b.dtype(gradient), shape);
    let coords = coords.into_iter().map(Coord::Expr).collect();
    Ok(cx.b.scatter(base, gradient, &[], coords, Combine::Add)?)
}

/// Results of a call in the types that the program states; what it does not name is not wanted.
fn stated(cx: &mut Context, a: &Args, results: &[Option<ValueId>]) -> Outputs {
    let as_stated = |(index, value): (usize, &Option<ValueId>)| {
        let meta = a.output_meta(index)?;
        value.map(|value| cx.b.cast(value, meta.dtype))
    };
    Outputs::Many(results.iter().enumerate().map(as_stated).collect())
}
