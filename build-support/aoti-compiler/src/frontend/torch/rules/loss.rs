//! Losses between predictions and targets, element by element.

use super::activation::log_sigmoid;
use super::registry::rules;
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::ValueId;
use std::f64::consts::PI;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.mse_loss.default" => |cx, a| pair(cx, a, |x, y| (x - y).square()),
    pure "aten.l1_loss.default" => |cx, a| pair(cx, a, |x, y| (x - y).abs()),
    pure "aten.smooth_l1_loss.default" => |cx, a| {
        let beta = a.float_or("beta", 1.0)?;
        pair(cx, a, |x, y| {
            let d = (x - y).abs();
            if beta == 0.0 { d } else { d.lt(beta).select(d.square() * 0.5 / beta, &d - 0.5 * beta) }
        })
    },
    pure "aten.huber_loss.default" => |cx, a| {
        let delta = a.float_or("delta", 1.0)?;
        pair(cx, a, |x, y| {
            let d = (x - y).abs();
            d.le(delta).select(d.square() * 0.5, (&d - 0.5 * delta) * delta)
        })
    },
    pure "aten.soft_margin_loss.default" => soft_margin,
    pure "aten.binary_cross_entropy.default" => binary_cross_entropy,
    pure "aten.binary_cross_entropy_with_logits.default" => with_logits,
    pure "aten.kl_div.default" => kl_div,
    pure "aten.poisson_nll_loss.default" => poisson,
    pure "aten.hinge_embedding_loss.default" => hinge_embedding,
    pure "aten.margin_ranking_loss.default" => margin_ranking,
}

/// Applies `reduction` (0 none, 1 mean, 2 sum) to losses in a computing type and rounds to `dtype`.
pub(crate) fn reduce(cx: &mut Context, a: &Args, losses: ValueId, dtype: DType) -> Rule {
    let axes: Vec<usize> = (0..cx.b.rank(losses)).collect();
    let result = match a.int_or("reduction", 1)? {
        0 => losses,
        1 if cx.b.dtype(losses).is_float() => cx.mean(losses, &axes, false)?,
        2 => cx.sum(losses, &axes, false)?,
        other => return Err(RuleError::unsupported(format!("reduction {other} of {dtype}"))),
    };
    Ok(cx.b.cast(result, dtype).into())
}

/// A loss of two operands in their common type.
fn of<const N: usize>(
    cx: &mut Context,
    a: &Args,
    operands: [ValueId; N],
    build: impl FnOnce([Formula; N]) -> Formula,
) -> Rule {
    let dtype = cx.result_type(&operands)?;
    let losses = cx.apply(operands, dtype.compute(), build)?;
    // Integers that meet a fractional parameter are not supported by PyTorch either; theirs stay integers.
    reduce(cx, a, losses, dtype)
}

fn pair(cx: &mut Context, a: &Args, build: impl FnOnce(&Formula, &Formula) -> Formula) -> Rule {
    let operands = [a.tensor("self")?, a.tensor("target")?];
    of(cx, a, operands, |[x, y]| build(&x, &y))
}

/// Multiplies losses by an optional weight tensor, then reduces.
fn weighted(cx: &mut Context, a: &Args, losses: ValueId, dtype: DType) -> Rule {
    let losses = match a.opt_tensor("weight")? {
        Some(weight) => {
            let weight = cx.b.cast(weight, cx.b.dtype(losses));
            cx.mul(losses, weight)?
        }
        None => losses,
    };
    reduce(cx, a, losses, dtype)
}

/// `log(1 + e^(-target * x))`, every step in the operands' type as PyTorch has it: large products overflow.
fn soft_margin(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.tensor("self")?, a.tensor("target")?);
    let (x, y) = cx.promoted(x, y)?;
    let dtype = cx.b.dtype(x);
    let product = Formula::from(x) * Formula::from(y);
    let losses = cx.formula(dtype, &(-product).exp().log1p())?;
    let losses = cx.b.cast(losses, dtype.compute());
    reduce(cx, a, losses, dtype)
}

fn binary_cross_entropy(cx: &mut Context, a: &Args) -> Rule {
    let operands = [a.tensor("self")?, a.tensor("target")?];
    let dtype = cx.b.dtype(operands[0]);
    let losses = cx.apply(operands, dtype.compute(), |[x, y]| {
        // Logarithms are bounded, so that a certain and wrong prediction costs 100.
        let miss = (-&x).log1p().max(-100.0);
        (&y - 1.0) * miss - &y * x.log().max(-100.0)
    })?;
    weighted(cx, a, losses, dtype)
}

fn with_logits(cx: &mut Context, a: &Args) -> Rule {
    let operands = [a.tensor("self")?, a.tensor("target")?];
    let dtype = cx.result_type(&operands)?;
    let wide = dtype.compute();
    let losses = match a.opt_tensor("pos_weight")? {
        Some(positive) => cx.apply([operands[0], operands[1], positive], wide, |[x, y, positive]| {
            let scale = (positive - 1.0) * &y + 1.0;
            (1.0 - &y) * &x - scale * log_sigmoid(&x)
        })?,
        None => cx.apply(operands, wide, |[x, y]| (1.0 - &y) * &x - log_sigmoid(&x))?,
    };
    weighted(cx, a, losses, dtype)
}

/// `x * log(x)`, 0 at 0.
fn x_log_x(x: &Formula) -> Formula {
    x.equals(0.0).select(0.0, x * x.log())
}

fn kl_div(cx: &mut Context, a: &Args) -> Rule {
    let logarithmic = a.bool_or("log_target", false)?;
    pair(cx, a, |x, y| if logarithmic { y.exp() * (y - x) } else { x_log_x(y) - y * x })
}

fn poisson(cx: &mut Context, a: &Args) -> Rule {
    let (log_input, full) = (a.bool_or("log_input", true)?, a.bool_or("full", false)?);
    let eps = a.float_or("eps", 1e-8)?;
    let operands = [a.tensor("input")?, a.tensor("target")?];
    let dtype = cx.float_type(cx.result_type(&operands)?);
    let losses = cx.apply(operands, dtype.compute(), |[x, y]| {
        let loss = if log_input { x.exp() - &y * &x } else { &x - &y * (&x + eps).log() };
        if !full {
            return loss;
        }
        let stirling = &y * y.log() - &y + (&y * (2.0 * PI)).log() * 0.5;
        loss + y.le(1.0).select(0.0, stirling)
    })?;
    reduce(cx, a, losses, dtype)
}

fn hinge_embedding(cx: &mut Context, a: &Args) -> Rule {
    let margin = a.float_or("margin", 1.0)?;
    pair(cx, a, |x, y| {
        let far = (margin - x).max(0.0);
        y.differs(1.0).select(far, 0.0) + y.differs(-1.0).select(x, 0.0)
    })
}

fn margin_ranking(cx: &mut Context, a: &Args) -> Rule {
    let margin = a.float_or("margin", 0.0)?;
    let operands = [a.tensor("input1")?, a.tensor("input2")?, a.tensor("target")?];
    let common = cx.result_type(&operands)?;
    // Integers are subtracted and multiplied as integers; the fractional margin makes them floating-point.
    let product = cx.apply(operands, common, |[x, y, target]| -target * (x - y))?;
    let dtype = cx.float_type(common);
    let losses = cx.apply([product], dtype.compute(), |[product]| (product + margin).max(0.0))?;
    reduce(cx, a, losses, dtype)
}
