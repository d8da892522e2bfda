//! Likelihoods of several classes from those of each two: the second method of Wu, Lin and Weng, "Probability estimates for
//! multi-class classification by pairwise coupling" (2004). All rows go on together until the last one is close enough.

use super::super::call::malformed;
use super::super::walk::Onnx;
use crate::dtype::DType;
use crate::frontend::torch::rules::{Context, Formula, RuleError};
use crate::graph::steps::{Step, Values, repeat_while_any};
use crate::graph::{IntBinary, Relation, ValueId};

/// Steps after which the likelihoods are what they are.
const STEPS: i64 = 100;

/// Columns of rows as a matrix; `parts[first][second]` says how likely the first is of the two.
pub(super) fn coupled(cx: &mut Onnx, parts: &[Vec<ValueId>]) -> Result<ValueId, RuleError> {
    let classes = parts.len();
    let like = parts.first().and_then(|row| row.get(1)).copied();
    let like = like.ok_or_else(|| malformed("likelihoods of a single class"))?;
    let dtype = cx.b.dtype(like);
    let mut captured = Vec::new();
    for first in 0..classes {
        for second in 0..classes {
            let value = if first == second {
                let others = (0..classes).filter(|other| *other != first);
                let squares = others.map(|other| Formula::from(parts[other][first]).square());
                squares.reduce(|sum, square| sum + square).unwrap_or_else(|| 0.0.into())
            } else {
                -(Formula::from(parts[second][first]) * Formula::from(parts[first][second]))
            };
            captured.push(cx.formula(dtype, &value)?);
        }
    }
    let same = cx.b.full_like(1.0 / classes as f64, like);
    let shape = cx.b.shape(like);
    let open = cx.b.full(true, DType::Bool, &shape);
    let limit = STEPS.max(i64::try_from(classes).unwrap_or(STEPS));
    let found =
        repeat_while_any(&mut cx.cx, "couple", open, &vec![same; classes], &captured, &mut |cx, step| {
            improved(cx, &step, classes, limit)
        })?;
    let columns = found
        .into_iter()
        .map(|column| Ok(cx.b.unsqueeze(column, 1)?))
        .collect::<Result<Vec<_>, RuleError>>()?;
    Ok(cx.b.cat(&columns, 1)?)
}

/// One sweep over all classes, of the rows that are not close enough.
fn improved(cx: &mut Context, step: &Step<'_>, classes: usize, limit: i64) -> Values<Context> {
    let dtype = cx.b.dtype(step.carried[0]);
    let q = |first: usize, second: usize| Formula::from(step.captured[first * classes + second]);
    let mut p: Vec<Formula> = step.carried.iter().copied().map(Formula::from).collect();
    let dot =
        |terms: Vec<Formula>| terms.into_iter().reduce(|sum, term| sum + term).unwrap_or_else(|| 0.0.into());
    let mut products: Vec<Formula> =
        (0..classes).map(|t| dot((0..classes).map(|k| q(t, k) * &p[k]).collect())).collect();
    let mut total = dot((0..classes).map(|t| &p[t] * &products[t]).collect());
    let errors = products.iter().map(|product| (product - &total).abs());
    let error = errors.reduce(|largest, error| largest.max(error)).unwrap_or_else(|| 0.0.into());
    let is_far = cx.formula(dtype, &error.ge(0.005 / classes as f64))?;
    let open = cx.binary(IntBinary::And, step.open, is_far)?;
    for t in 0..classes {
        let diff = (&total - &products[t]) / q(t, t);
        let scale = &diff + 1.0;
        total = (total + &diff * (&diff * q(t, t) + &products[t] * 2.0)) / scale.square();
        p[t] = &p[t] + &diff;
        for k in 0..classes {
            p[k] = &p[k] / &scale;
            products[k] = (&products[k] + &diff * q(t, k)) / &scale;
        }
    }
    let mut next = Vec::new();
    for (own, better) in step.carried.iter().zip(p) {
        let better = cx.formula(dtype, &better)?;
        next.push(cx.b.select(open, better, *own)?);
    }
    let last = cx.with_number(Relation::Lt, step.number, limit - 1)?;
    let open = cx.binary(IntBinary::And, open, last)?;
    Ok([vec![open], next].concat())
}
