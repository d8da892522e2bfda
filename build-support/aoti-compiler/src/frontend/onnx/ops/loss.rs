//! Losses of classifications.

use super::super::call::{Call, axis_of, malformed};
use super::super::walk::Onnx;
use super::{Rule, many, one, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::softmax::{Form, softmax_over};
use crate::graph::{Coord, Relation, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "NegativeLogLikelihoodLoss" => negative_log_likelihood,
    "SoftmaxCrossEntropyLoss" => softmax_cross_entropy,
}

fn negative_log_likelihood(cx: &mut Onnx, c: &Call) -> Rule {
    one(loss(cx, c, c.tensor(0)?)?)
}

fn softmax_cross_entropy(cx: &mut Onnx, c: &Call) -> Rule {
    let scores = c.tensor(0)?;
    let axis = axis_of(1, cx.b.rank(scores))?;
    let logarithms = softmax_over(cx, scores, axis, Form::Log)?;
    many([loss(cx, c, logarithms)?, logarithms])
}

/// The loss of logarithms of probabilities, `[batch, classes, ...]`, of a node with targets and weights of classes.
fn loss(cx: &mut Onnx, c: &Call, logarithms: ValueId) -> Result<ValueId, RuleError> {
    let (target, weight) = (c.tensor(1)?, c.opt_tensor(2)?);
    let (shape, dtype) = (cx.b.shape(target), cx.b.dtype(logarithms));
    if cx.b.rank(logarithms) != shape.len() + 1 || shape.is_empty() {
        return Err(malformed("targets have the axes of the scores but the second"));
    }
    let target = cx.b.cast(target, DType::I64);
    let mut classes = target;
    // Targets that do not count may be of no class.
    let ignored = match c.opt_int("ignore_index")? {
        Some(number) => {
            let is_ignored = cx.with_number(Relation::Eq, target, number)?;
            let first = cx.b.full_like(0i64, target);
            classes = cx.b.select(is_ignored, first, target)?;
            Some(is_ignored)
        }
        None => None,
    };
    let coord = |axis: usize| match axis {
        0 => Coord::Expr(Expr::axis(0)),
        1 => Coord::Wrapped(0),
        other => Coord::Expr(Expr::axis(other - 1)),
    };
    let picked = cx.b.gather(logarithms, &[classes], (0..=shape.len()).map(coord).collect(), &shape)?;
    let wide = dtype.compute();
    let mut share = match weight {
        Some(weight) => {
            let own = cx.b.gather(weight, &[classes], vec![Coord::Wrapped(0)], &shape)?;
            cx.b.cast(own, wide)
        }
        None => cx.b.full(1.0, wide, &shape),
    };
    if let Some(ignored) = ignored {
        let none = cx.b.full(0.0, wide, &[]);
        share = cx.b.select(ignored, none, share)?;
    }
    let mut losses = cx.apply([picked, share], wide, |[picked, share]| -(picked * share))?;
    if let Some(ignored) = ignored {
        // Not even of an infinite one.
        let none = cx.b.full(0.0, wide, &[]);
        losses = cx.b.select(ignored, none, losses)?;
    }
    let axes: Vec<usize> = (0..shape.len()).collect();
    let value = match c.text("reduction", "mean")? {
        "none" => losses,
        "sum" => cx.sum(losses, &axes, false)?,
        "mean" => {
            let (total, count) = (cx.sum(losses, &axes, false)?, cx.sum(share, &axes, false)?);
            cx.div(total, count)?
        }
        other => return Err(malformed(format!("the reduction `{other}` is unknown"))),
    };
    Ok(cx.b.cast(value, dtype))
}

#[cfg(test)]
mod tests {
    use crate::frontend::onnx::testing::{Model, int, text};
    use crate::interpret::Tensor;

    fn loss(targets: &[i64], attributes: &[crate::frontend::onnx::proto::AttributeProto]) -> Vec<f64> {
        Model::new(13)
            .input("x", Tensor::from_f32(&[2, 2], &[-1.0, -2.0, -3.0, -4.0]))
            .input("target", Tensor::from_i64(&[2], targets))
            .constant("weight", &Tensor::from_f32(&[2], &[1.0, 3.0]))
            .node("NegativeLogLikelihoodLoss", &["x", "target", "weight"], &["y"], attributes)
            .numbers()
    }

    #[test]
    fn the_mean_is_by_weights() {
        assert_eq!(loss(&[1, 0], &[]), [2.25]);
        assert_eq!(loss(&[1, 0], &[text("reduction", "sum")]), [9.0]);
    }

    #[test]
    fn what_is_ignored_may_be_of_no_class() {
        assert_eq!(loss(&[1, 7], &[int("ignore_index", 7)]), [2.0]);
        assert_eq!(loss(&[1, 7], &[int("ignore_index", 7), text("reduction", "none")]), [6.0, 0.0]);
    }
}
