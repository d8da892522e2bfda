//! Gradients of activation functions, element by element. Of NaN they are what PyTorch's vectors give, which differ
//! from what is behind the last whole vector.

use super::{Args, Context, Formula, Outputs, RuleError, rules};
use crate::graph::ValueId;
use crate::symbolic::Expr;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.silu_backward.default" => |cx, a| slope(cx, a, |g, x| {
        let s = x.sigmoid();
        g * &s * (1.0 + x * (1.0 - &s))
    }),
    pure "aten.gelu_backward.default" => gelu,
    pure "aten.mish_backward.default" => |cx, a| slope(cx, a, |g, x| {
        let (t, s) = (x.exp().log1p().tanh(), x.sigmoid());
        g * (&t + x * s * (1.0 - t.square()))
    }),
    pure "aten.hardtanh_backward.default" => |cx, a| {
        let (low, high) = (a.float_or("min_val", -1.0)?, a.float_or("max_val", 1.0)?);
        slope(cx, a, |g, x| x.gt(low).and(x.lt(high)).select(g, 0.0))
    },
    pure "aten.hardsigmoid_backward.default" => |cx, a| {
        // PyTorch has the sixth in single precision, for `f64` too.
        let sixth = f64::from(1.0f32 / 6.0);
        slope(cx, a, |g, x| x.gt(-3.0).and(x.lt(3.0)).select(g * sixth, 0.0))
    },
    pure "aten.hardswish_backward.default" => |cx, a| slope(cx, a, |g, x| {
        let between = x.ge(3.0).select(g, g * (x / 3.0 + 0.5));
        x.le(-3.0).select(0.0, between)
    }),
    pure "aten.elu_backward.default" => elu,
    pure "aten.leaky_relu_backward.default" => |cx, a| {
        let negative = a.float_or("negative_slope", 0.01)?;
        slope(cx, a, |g, x| x.gt(0.0).select(g, g * negative))
    },
    pure "aten.rrelu_with_noise_backward.default" => rrelu,
    pure "aten.softplus_backward.default" => |cx, a| {
        let (beta, threshold) = (a.float_or("beta", 1.0)?, a.float_or("threshold", 20.0)?);
        slope(cx, a, |g, x| {
            let scaled = x * beta;
            let z = scaled.exp();
            scaled.gt(threshold).select(g, g * &z / (&z + 1.0))
        })
    },
    pure "aten.log_sigmoid_backward.default" => |cx, a| slope(cx, a, |g, x| {
        let z = (-x.abs()).exp();
        let share = &z / (1.0 + &z);
        g * x.lt(0.0).select(1.0 - &share, share)
    }),
    pure "aten.softshrink_backward.default" => |cx, a| shrunk(cx, a, "grad_output"),
    pure "aten.hardshrink_backward.default" => |cx, a| shrunk(cx, a, "grad_out"),
    pure "aten.logit_backward.default" => logit,
    pure "aten.glu_backward.default" => glu,
    pure "aten._prelu_kernel_backward.default" => prelu,
}

/// A formula of the gradient and the operand.
fn slope(cx: &mut Context, a: &Args, build: impl FnOnce(&Formula, &Formula) -> Formula) -> Rule {
    let operands = [a.tensor("grad_output")?, a.tensor("self")?];
    Ok(cx.apply_float(operands, |[g, x]| build(&g, &x))?.into())
}

fn gelu(cx: &mut Context, a: &Args) -> Rule {
    match a.str_or("approximate", "none")? {
        "none" => slope(cx, a, |g, x| {
            let share = (1.0 + (x * FRAC_1_SQRT_2).erf()) * 0.5;
            let density = (x.square() * -0.5).exp() * (FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * 0.5);
            g * (share + x * density)
        }),
        "tanh" => slope(cx, a, |g, x| {
            let beta = SQRT_2 * FRAC_2_SQRT_PI * 0.5;
            let t = ((x + x.square() * x * 0.044_715) * beta).tanh();
            let inner = (1.0 + x.square() * (3.0 * 0.044_715)) * beta;
            g * ((1.0 + &t) * 0.5 + x * 0.5 * (1.0 - t.square()) * inner)
        }),
        other => Err(RuleError::unsupported(format!("approximation `{other}`"))),
    }
}

/// Of the operand, or of what the function made of it.
fn elu(cx: &mut Context, a: &Args) -> Rule {
    let (alpha, scale) = (a.float_or("alpha", 1.0)?, a.float_or("scale", 1.0)?);
    let input_scale = a.float_or("input_scale", 1.0)?;
    let of_result = a.bool_or("is_result", false)?;
    let operands = [a.tensor("grad_output")?, a.tensor("self_or_result")?];
    let result = cx.apply_float(operands, |[g, x]| {
        let rising = if of_result { &x + alpha * scale } else { (&x * input_scale).exp() * (alpha * scale) };
        x.le(0.0).select(&g * input_scale * rising, g * scale)
    })?;
    Ok(result.into())
}

/// With the slopes that the forward pass drew where it trains, else their mean.
fn rrelu(cx: &mut Context, a: &Args) -> Rule {
    let (low, high) = (a.float_or("lower", 0.125)?, a.float_or("upper", 1.0 / 3.0)?);
    if a.bool_or("training", false)? && high - low > 1e-6 {
        let operands = [a.tensor("grad_output")?, a.tensor("noise")?];
        return Ok(cx.apply_float(operands, |[g, noise]| g * noise)?.into());
    }
    slope(cx, a, |g, x| x.gt(0.0).select(g, g * ((low + high) / 2.0)))
}

fn shrunk(cx: &mut Context, a: &Args, gradient: &str) -> Rule {
    let bound = a.float_or("lambd", 0.5)?;
    let operands = [a.tensor(gradient)?, a.tensor("self")?];
    Ok(cx.apply_float(operands, |[g, x]| x.lt(-bound).or(x.gt(bound)).select(g, 0.0))?.into())
}

/// Outside of what `eps` bounds nothing changes; without it the function has no values there.
fn logit(cx: &mut Context, a: &Args) -> Rule {
    let eps = if a.has("eps") { Some(a.float_or("eps", 0.0)?) } else { None };
    let (low, outside) = eps.map_or((0.0, f64::NAN), |eps| (eps, 0.0));
    slope(cx, a, |g, x| x.lt(low).or(x.gt(1.0 - low)).select(outside, g / (x * (1.0 - x))))
}

fn glu(cx: &mut Context, a: &Args) -> Rule {
    let (g, x) = (a.tensor("grad_output")?, a.tensor("self")?);
    let axis = Context::axis(a.int_or("dim", -1)?, cx.b.rank(x))?;
    let Some(size) = cx.b.shape(x).get(axis).cloned() else {
        return Err(RuleError::Malformed("a tensor without axes has no halves".to_owned()));
    };
    let half = size.floor_div_in(&Expr::int(2), cx.b.ranges());
    let first = cx.b.slice(x, axis, &Expr::int(0), &half, 1)?;
    let second = cx.b.slice(x, axis, &half, &half, 1)?;
    // PyTorch keeps the sigmoid in the element type.
    let gate = cx.apply_float([second], |[x]| x.sigmoid())?;
    let of_first = cx.apply_float([g, gate], |[g, s]| g * s)?;
    let of_second = cx.apply_float([g, first, gate], |[g, x, s]| (1.0 - &s) * s * x * g)?;
    Ok(cx.b.cat(&[of_first, of_second], axis)?.into())
}

/// Of the operand and of the weight, element by element.
fn prelu(cx: &mut Context, a: &Args) -> Rule {
    let (g, x): (ValueId, ValueId) = (a.tensor("grad_output")?, a.tensor("self")?);
    let of_x = cx.apply_float([g, x, a.tensor("weight")?], |[g, x, w]| x.gt(0.0).select(&g, w * &g))?;
    let of_weight = cx.apply_float([g, x], |[g, x]| x.gt(0.0).select(0.0, &x * g))?;
    Ok(Outputs::Many(vec![Some(of_x), Some(of_weight)]))
}
