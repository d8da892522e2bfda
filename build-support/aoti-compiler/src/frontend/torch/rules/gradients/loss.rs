//! Gradients of losses with respect to predictions.

use super::{Args, Context, Formula, Outputs, RuleError, rules};
use crate::dtype::DType;
use crate::frontend::torch::rules::cross_entropy;
use crate::graph::ValueId;
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.mse_loss_backward.default" => |cx, a| pair(cx, a, |x, y| (x - y) * 2.0),
    pure "aten.smooth_l1_loss_backward.default" => |cx, a| {
        let beta = a.float_or("beta", 1.0)?;
        pair(cx, a, |x, y| {
            let d = x - y;
            // With a bound of zero there is nothing between the two sides.
            let inside = if beta == 0.0 { d.sign() } else { &d / beta };
            clipped(&d, beta, &inside, 1.0)
        })
    },
    pure "aten.huber_loss_backward.default" => |cx, a| {
        let delta = a.float_or("delta", 1.0)?;
        pair(cx, a, |x, y| {
            let d = x - y;
            clipped(&d, delta, &d, delta)
        })
    },
    pure "aten.soft_margin_loss_backward.default" => |cx, a| pair(cx, a, |x, y| {
        let z = (-(x * y)).exp();
        -(y * &z) / (&z + 1.0)
    }),
    pure "aten.binary_cross_entropy_backward.default" => binary_cross_entropy,
    pure "aten.nll_loss_backward.default" => nll,
    pure "aten.nll_loss2d_backward.default" => nll,
}

/// `inside` within a bound, and `most` with the difference's sign beyond it.
fn clipped(d: &Formula, bound: f64, inside: &Formula, most: f64) -> Formula {
    d.le(-bound).select(-most, d.ge(bound).select(most, inside))
}

/// One number that each loss counts with: what `reduction` (0 none, 1 mean, 2 sum) makes of one loss.
fn share(cx: &mut Context, a: &Args, x: ValueId, dtype: DType) -> Result<ValueId, RuleError> {
    let axes: Vec<usize> = (0..cx.b.rank(x)).collect();
    Ok(match a.int_or("reduction", 1)? {
        1 => cx.element_count(x, &axes, dtype),
        _ => cx.b.scalar(1.0, dtype),
    })
}

/// The slope of a loss of two operands, times the gradient.
fn pair(cx: &mut Context, a: &Args, build: impl FnOnce(&Formula, &Formula) -> Formula) -> Rule {
    let (g, x, y) = (a.tensor("grad_output")?, a.tensor("self")?, a.tensor("target")?);
    let dtype = cx.result_type(&[x, y])?;
    let count = share(cx, a, x, dtype.compute())?;
    Ok(cx.apply([g, x, y, count], dtype, |[g, x, y, n]| build(&x, &y) * g / n)?.into())
}

fn binary_cross_entropy(cx: &mut Context, a: &Args) -> Rule {
    let (g, x, y) = (a.tensor("grad_output")?, a.tensor("self")?, a.tensor("target")?);
    let dtype = cx.b.dtype(x);
    let count = share(cx, a, x, dtype.compute())?;
    let weight = match a.opt_tensor("weight")? {
        Some(weight) => weight,
        None => cx.b.scalar(1.0, dtype),
    };
    let result = cx.apply([g, x, y, weight, count], dtype, |[g, x, y, weight, n]| {
        // Predictions of exactly 0 and 1 have a slope, too.
        let spread = ((1.0 - &x) * &x).max(1e-12);
        g * (&x - y) / spread * weight / n
    })?;
    Ok(result.into())
}

/// Where the class is that of the target, minus its weight; elsewhere zero.
fn nll(cx: &mut Context, a: &Args) -> Rule {
    let (g, x, target) = (a.tensor("grad_output")?, a.tensor("self")?, a.tensor("target")?);
    let (dtype, shape) = (cx.b.dtype(x), cx.b.shape(x));
    let wide = dtype.compute();
    let axis = cross_entropy::class_axis(cx, x);
    let (counts, class) = cross_entropy::targets(cx, a, target)?;
    let weights = cross_entropy::target_weights(cx, a, counts, class, wide)?;
    let total =
        if a.int_or("reduction", 1)? == 1 { a.tensor("total_weight")? } else { cx.b.scalar(1.0, wide) };
    let slope = cx.apply([g, weights, total], wide, |[g, w, total]| -(w * g) / total)?;
    let number = cx.b.index(Expr::axis(axis), &shape);
    let mut whole = |value| {
        let beside = cx.b.unsqueeze(value, axis)?;
        cx.b.expand(beside, &shape)
    };
    let [slope, class, counts] = [whole(slope)?, whole(class)?, whole(counts)?].map(Formula::from);
    let hit = Formula::from(number).equals(class).and(counts);
    let result = cx.formula(wide, &hit.select(slope, 0.0))?;
    Ok(cx.b.cast(result, dtype).into())
}
