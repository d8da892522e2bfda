//! Covariances, weight normalisation and whole-tensor tests.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, FloatUnary, ReduceOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.cov.default" => |cx, a| {
        let x = a.tensor("self")?;
        Ok(covariance(cx, a, x)?.into())
    },
    pure "aten.corrcoef.default" => correlation,
    pure "aten.norm_except_dim.default" => |cx, a| {
        let v = a.tensor("v")?;
        let order = a.float_or("pow", 2.0)?;
        let dim = a.int_or("dim", 0)?;
        Ok(cx.in_compute_type(v, |cx, v| norm_except(cx, v, order, dim))?.into())
    },
    pure "aten._weight_norm.default" => |cx, a| weight_norm(cx, a, false),
    pure "aten._weight_norm_interface.default" => |cx, a| weight_norm(cx, a, true),
    pure "aten._is_all_true.default" => |cx, a| every(cx, a, ReduceOp::All),
    pure "aten._is_any_true.default" => |cx, a| every(cx, a, ReduceOp::Any),
    pure "aten.equal.default" => |_, _| Err(RuleError::unsupported("a comparison that decides control flow")),
}

/// Weights of observations: those of frequency and of importance multiplied, in the type of `x`.
fn observation_weights(
    cx: &mut Context,
    a: &Args,
    dtype: DType,
) -> Result<(Option<ValueId>, Option<ValueId>), RuleError> {
    let mut weights = [None, None];
    for (slot, name) in weights.iter_mut().zip(["fweights", "aweights"]) {
        if let Some(weight) = a.opt_tensor(name)? {
            *slot = Some(cx.b.cast(weight, dtype));
        }
    }
    let [frequency, importance] = weights;
    let both = match (frequency, importance) {
        (Some(frequency), Some(importance)) => Some(cx.mul(frequency, importance)?),
        (one, other) => one.or(other),
    };
    Ok((both, importance))
}

/// Covariances of the rows of a matrix, observations along the last axis; of a vector, its variance.
fn covariance(cx: &mut Context, a: &Args, x: ValueId) -> Result<ValueId, RuleError> {
    let dtype = cx.float_type(cx.b.dtype(x));
    let wide = dtype.compute();
    let x = cx.b.cast(x, wide);
    let rank = cx.b.rank(x);
    let n = cx.b.shape(x).last().cloned().unwrap_or(Expr::int(1));
    let rows = if rank == 2 { x } else { cx.b.reshape(x, &[Expr::int(1), n])? };
    let correction = a.float_or("correction", 1.0)?;
    let (weights, importance) = observation_weights(cx, a, wide)?;
    let (mean, denominator) = match weights {
        None => {
            let mean = cx.mean(rows, &[1], true)?;
            let count = cx.element_count(rows, &[1], wide);
            (mean, cx.with_number(BinaryOp::Sub, count, correction)?)
        }
        Some(weights) => {
            let total = cx.sum(weights, &[0], false)?;
            let weighted = cx.mul(rows, weights)?;
            let sum = cx.sum(weighted, &[1], true)?;
            let mean = cx.div(sum, total)?;
            let denominator = match importance.filter(|_| correction != 0.0) {
                Some(importance) => {
                    let squares = cx.mul(weights, importance)?;
                    let squares = cx.sum(squares, &[0], false)?;
                    cx.apply([total, squares], wide, |[total, squares]| {
                        &total - squares * correction / &total
                    })?
                }
                None => cx.with_number(BinaryOp::Sub, total, correction)?,
            };
            (mean, denominator)
        }
    };
    let centred = cx.sub(rows, mean)?;
    let weighted = match weights {
        Some(weights) => cx.mul(centred, weights)?,
        None => centred,
    };
    let transposed = cx.b.transpose(weighted, 0, 1)?;
    let products = cx.b.matmul(centred, transposed)?;
    let result = cx.apply([products, denominator], wide, |[products, n]| products / n.max(0.0))?;
    let result = cx.b.cast(result, dtype);
    let single = cx.b.shape(result).iter().all(|size| size.is(1));
    if single { Ok(cx.b.reshape(result, &[])?) } else { Ok(result) }
}

fn correlation(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let covariance = covariance(cx, a, x)?;
    let dtype = cx.b.dtype(covariance);
    let shape = cx.b.shape(covariance);
    let [n, _] = shape.as_slice() else {
        #[expect(clippy::eq_op, reason = "one, and not a number where the variance is zero or not finite")]
        return Ok(cx.apply([covariance], dtype, |[c]| &c / &c)?.into());
    };
    let diagonal = cx.b.view(covariance, std::slice::from_ref(n), vec![Expr::axis(0), Expr::axis(0)])?;
    let deviation = cx.unary(FloatUnary::Sqrt, diagonal);
    let column = cx.b.unsqueeze(deviation, 1)?;
    let result = cx.apply([covariance, column, deviation], dtype, |[c, column, row]| {
        (c / column / row).max(-1.0).min(1.0)
    })?;
    Ok(result.into())
}

/// The norm over all axes but one, which stays; of everything for -1.
fn norm_except(cx: &mut Context, v: ValueId, order: f64, dim: i64) -> Result<ValueId, RuleError> {
    let rank = cx.b.rank(v);
    if dim == -1 {
        let axes: Vec<usize> = (0..rank).collect();
        return cx.vector_norm(v, order, &axes, false);
    }
    let kept = Context::axis(dim, rank)?;
    let axes: Vec<usize> = (0..rank).filter(|axis| *axis != kept).collect();
    cx.vector_norm(v, order, &axes, true)
}

/// `v * (g / norm(v))`.
fn weight_norm(cx: &mut Context, a: &Args, with_norm: bool) -> Rule {
    let (v, g) = (a.tensor("v")?, a.tensor("g")?);
    let dtype = cx.b.dtype(v);
    let dim = a.int_or("dim", 0)?;
    let wide = cx.b.cast(v, dtype.compute());
    let norm = norm_except(cx, wide, 2.0, dim)?;
    let weight = cx.apply([wide, g, norm], dtype.compute(), |[v, g, norm]| v * (g / norm))?;
    let weight = cx.b.cast(weight, dtype);
    if !with_norm {
        return Ok(weight.into());
    }
    let norm = match a.output_meta(1) {
        Some(meta) => cx.b.cast(norm, meta.dtype),
        None => norm,
    };
    Ok(Outputs::Many(vec![Some(weight), Some(norm)]))
}

fn every(cx: &mut Context, a: &Args, op: ReduceOp) -> Rule {
    let x = a.tensor("self")?;
    let axes: Vec<usize> = (0..cx.b.rank(x)).collect();
    Ok(cx.b.reduce(op, x, &axes, false)?.into())
}
