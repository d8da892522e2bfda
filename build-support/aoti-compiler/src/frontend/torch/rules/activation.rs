//! Activation functions.

use super::operand::Operand;
use super::registry::rules;
use super::unary::formula;
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, FloatUnary, Relation, ValueId};
use crate::symbolic::Expr;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.relu.default" => |cx, a| Ok(relu(cx, a.only()?)?.into()),
    pure "aten.relu6.default" => |cx, a| clipped(cx, a, Operand::Number(0i64.into()), Operand::Number(6i64.into())),
    pure "aten.hardtanh.default" => |cx, a| {
        clipped(cx, a, a.number_or("min_val", -1i64)?, a.number_or("max_val", 1i64)?)
    },
    pure "aten.gelu.default" => |cx, a| {
        let form = Gelu::named(a.str_or("approximate", "none")?)?;
        Ok(gelu(cx, a.only()?, form)?.into())
    },
    pure "aten.silu.default" => |cx, a| formula(cx, a, |x| &x * x.sigmoid()),
    pure "aten.mish.default" => |cx, a| Ok(mish(cx, a.only()?)?.into()),
    pure "aten.hardsigmoid.default" => |cx, a| formula(cx, a, |x| hard_sigmoid(&x)),
    // In PyTorch's order, which overflows for the largest numbers.
    pure "aten.hardswish.default" => |cx, a| formula(cx, a, |x| &x * (&x + 3.0).max(0.0).min(6.0) / 6.0),
    pure "aten.leaky_relu.default" => |cx, a| {
        let slope = setting(cx, a, &a.number_or("negative_slope", 0.01)?)?;
        formula(cx, a, |x| leaky(&x, slope))
    },
    pure "aten.rrelu.default" => rrelu,
    pure "aten.rrelu_with_noise.default" => rrelu,
    pure "aten.rrelu_with_noise_functional.default" => |cx, a| {
        let (y, noise) = randomly_leaky(cx, a)?;
        // In evaluation the noise stays as it is.
        let noise = noise.map_or_else(|| a.tensor("noise"), Ok)?;
        Ok(Outputs::Many(vec![Some(y), Some(noise)]))
    },
    pure "aten.elu.default" => |cx, a| {
        let [alpha, scale] = [a.number_or("alpha", 1.0)?, a.number_or("scale", 1.0)?];
        let negative_scale = match (&alpha, &scale) {
            // Rounded once, where both are known.
            (Operand::Number(alpha), Operand::Number(scale)) => (alpha.to_f64() * scale.to_f64()).into(),
            _ => setting(cx, a, &alpha)? * setting(cx, a, &scale)?,
        };
        let input_scale = a.number_or("input_scale", 1.0)?;
        let (scale, input_scale) = (setting(cx, a, &scale)?, setting(cx, a, &input_scale)?);
        exponential(cx, a, negative_scale, scale, input_scale)
    },
    pure "aten.celu.default" => celu,
    pure "aten.selu.default" => |cx, a| {
        let (alpha, scale) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
        exponential(cx, a, (alpha * scale).into(), scale.into(), 1.0.into())
    },
    pure "aten.softplus.default" => softplus,
    pure "aten.softshrink.default" => |cx, a| {
        let [low, high] = bounds(cx, a, Some(0))?;
        formula(cx, a, |x| {
            // Within the bounds the product keeps NaN.
            let below = x.lt(low).select(&x + &high, &x * 0.0);
            x.gt(&high).select(&x - &high, below)
        })
    },
    pure "aten.hardshrink.default" => |cx, a| {
        let [low, high] = bounds(cx, a, None)?;
        formula(cx, a, |x| x.ge(low).and(x.le(high)).select(0.0, &x))
    },
    pure "aten.threshold.default" => threshold,
    pure "aten.prelu.default" => prelu,
    pure "aten._prelu_kernel.default" => |cx, a| {
        let operands = [a.tensor("self")?, a.tensor("weight")?];
        Ok(cx.apply_float(operands, |[x, weight]| x.gt(0.0).select(&x, &x * weight))?.into())
    },
    pure "aten.glu.default" => glu,
    pure "aten.log_sigmoid.default" => |cx, a| formula(cx, a, |x| log_sigmoid(&x)),
    pure "aten.log_sigmoid_forward.default" => |cx, a| {
        let x = a.tensor("self")?;
        let y = cx.apply_float([x], |[x]| log_sigmoid(&x))?;
        // What the gradient on processors begins with; on devices there is none.
        let kept = match a.output_meta(1) {
            Some(meta) if meta.sizes.first().is_some_and(|size| size.is(0)) => cx.b.full(0i64, meta.dtype, &meta.sizes),
            _ => cx.apply_float([x], |[x]| (-x.abs()).exp())?,
        };
        Ok(Outputs::Many(vec![Some(y), Some(kept)]))
    },
}

pub(crate) fn relu(cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
    cx.with_number(BinaryOp::Maximum, x, 0i64)
}

pub(crate) fn mish(cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
    cx.apply_float([x], |[x]| &x * soft_plus(&x).tanh())
}

/// Clamps in the operand's own type.
fn clipped(cx: &mut Context, a: &Args, low: Operand, high: Operand) -> Rule {
    let mut x = a.only()?;
    let dtype = cx.b.dtype(x);
    for (bound, op) in [(low, BinaryOp::Maximum), (high, BinaryOp::Minimum)] {
        let bound = cx.bound(bound, dtype, op == BinaryOp::Maximum)?;
        x = cx.combine_as(op, &Operand::Tensor(x), &bound, dtype)?;
    }
    Ok(x.into())
}

/// How GELU is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gelu {
    /// By the error function.
    Exact,
    /// By a hyperbolic tangent that is close to it.
    Tanh,
}

impl Gelu {
    /// By the name that PyTorch and ONNX have for the approximation.
    pub(crate) fn named(approximation: &str) -> Result<Gelu, RuleError> {
        match approximation {
            "none" => Ok(Gelu::Exact),
            "tanh" => Ok(Gelu::Tanh),
            other => Err(RuleError::unsupported(format!("approximation `{other}`"))),
        }
    }
}

pub(crate) fn gelu(cx: &mut Context, x: ValueId, form: Gelu) -> Result<ValueId, RuleError> {
    cx.apply_float([x], |[x]| match form {
        Gelu::Exact => exact_gelu(&x),
        Gelu::Tanh => {
            let inner = (&x + &x * &x * &x * 0.044715) * (SQRT_2 * FRAC_2_SQRT_PI * 0.5);
            &x * 0.5 * (1.0 + inner.tanh())
        }
    })
}

pub(crate) fn exact_gelu(x: &Formula) -> Formula {
    x * 0.5 * (1.0 + (x * FRAC_1_SQRT_2).erf())
}

fn soft_plus(x: &Formula) -> Formula {
    // Beyond 20 the logarithm changes nothing in single precision, and the exponential would overflow.
    x.gt(20.0).select(x, x.exp().log1p())
}

fn hard_sigmoid(x: &Formula) -> Formula {
    (x + 3.0).max(0.0).min(6.0) * (1.0 / 6.0)
}

fn leaky(x: &Formula, slope: impl Into<Formula>) -> Formula {
    x.gt(0.0).select(x, x * slope)
}

/// Logarithm of the sigmoid, without overflow on either side.
pub(crate) fn log_sigmoid(x: &Formula) -> Formula {
    x.min(0.0) - (-x.abs()).exp().log1p()
}

/// A slope for negative numbers that is random for each element where the program trains, else the mean. The slopes, and
/// ones, are the noise that training keeps; in evaluation there is none.
fn randomly_leaky(cx: &mut Context, a: &Args) -> Result<(ValueId, Option<ValueId>), RuleError> {
    let x = a.tensor("self")?;
    let (low, high) = (a.float_or("lower", 0.125)?, a.float_or("upper", 1.0 / 3.0)?);
    if !a.bool_or("training", false)? {
        return Ok((cx.apply_float([x], |[x]| leaky(&x, (low + high) / 2.0))?, None));
    }
    let ty = cx.b.ty(x).clone();
    let u = cx.uniform(ty.dtype, &ty.shape)?;
    let noise = cx.apply([x, u], ty.dtype, |[x, u]| x.gt(0.0).select(1.0, u * (high - low) + low))?;
    Ok((cx.mul(x, noise)?, Some(noise)))
}

fn rrelu(cx: &mut Context, a: &Args) -> Rule {
    let (y, noise) = randomly_leaky(cx, a)?;
    if let Some(noise) = noise.filter(|_| a.has("noise")) {
        cx.overwrite("noise", noise);
    }
    Ok(y.into())
}

/// A parameter of the operator, perhaps known only at run time, in the type that the function is computed in.
fn setting(cx: &mut Context, a: &Args, number: &Operand) -> Result<Formula, RuleError> {
    let wide = cx.float_type(cx.b.dtype(a.only()?)).compute();
    cx.require_element(number, wide)?;
    Ok(number.formula(cx, wide))
}

/// The bounds of a shrinking function: a number that PyTorch wants to be one of the element type, perhaps at least another,
/// and its negative, which is first.
fn bounds(cx: &mut Context, a: &Args, least: Option<i64>) -> Result<[Formula; 2], RuleError> {
    let bound = a.number_or("lambd", 0.5)?;
    if let Operand::Number(number) = &bound {
        return Ok([Formula::from(-number.to_f64()), Formula::from(number.to_f64())]);
    }
    cx.require_element(&bound, cx.b.dtype(a.only()?))?;
    if let Some(least) = least {
        cx.require_number(&bound, Relation::Ge, least, "a bound that is less than zero")?;
    }
    let high = setting(cx, a, &bound)?;
    Ok([-&high, high])
}

fn exponential(
    cx: &mut Context,
    a: &Args,
    negative_scale: Formula,
    scale: Formula,
    input_scale: Formula,
) -> Rule {
    formula(cx, a, |x| {
        let negative = (&x * input_scale).expm1() * negative_scale;
        x.ge(0.0).select(&x * scale, negative)
    })
}

/// The reciprocal of `alpha` is rounded from `f64`, as PyTorch has it.
fn celu(cx: &mut Context, a: &Args) -> Rule {
    let alpha = a.number_or("alpha", 1.0)?;
    let reciprocal = match &alpha {
        Operand::Number(alpha) => Formula::from(1.0 / alpha.to_f64()),
        Operand::Tensor(_) | Operand::Size(_) | Operand::Truth(_) | Operand::Computed(..) => {
            cx.require_number(&alpha, Relation::Ne, 0, "celu divides by its `alpha`, which is zero")?;
            let wide = cx.float_type(cx.b.dtype(a.only()?)).compute();
            let alpha = alpha.to_value(cx, DType::F64);
            let reciprocal = cx.unary(FloatUnary::Reciprocal, alpha);
            Formula::from(cx.b.cast(reciprocal, wide))
        }
    };
    let alpha = setting(cx, a, &alpha)?;
    exponential(cx, a, alpha, 1.0.into(), reciprocal)
}

fn softplus(cx: &mut Context, a: &Args) -> Rule {
    let beta = setting(cx, a, &a.number_or("beta", 1.0)?)?;
    let threshold = setting(cx, a, &a.number_or("threshold", 20.0)?)?;
    formula(cx, a, |x| {
        let scaled = &x * &beta;
        scaled.gt(threshold).select(&x, scaled.exp().log1p() / beta)
    })
}

fn threshold(cx: &mut Context, a: &Args) -> Rule {
    let x = a.only()?;
    let (threshold, value) = (a.number("threshold")?, a.number("value")?);
    let dtype = cx.b.dtype(x);
    let wide = dtype.compute();
    for number in [&threshold, &value] {
        cx.require_element(number, wide)?;
    }
    let (threshold, value) = (threshold.formula(cx, wide), value.formula(cx, wide));
    Ok(cx.apply([x], dtype, |[x]| x.le(threshold).select(value, &x))?.into())
}

/// The weight belongs to axis 1, or is one number.
fn prelu(cx: &mut Context, a: &Args) -> Rule {
    let (x, weight) = (a.tensor("self")?, a.tensor("weight")?);
    let rank = cx.b.rank(x);
    let channels = cx.b.ty(weight).numel();
    let mut shape = vec![Expr::int(1); rank];
    if let Some(slot) = shape.get_mut(1).filter(|_| !channels.is(1)) {
        *slot = channels;
    }
    let weight = if rank == 1 && cx.b.rank(weight) == 1 { weight } else { cx.b.reshape(weight, &shape)? };
    Ok(cx.apply_float([x, weight], |[x, weight]| x.gt(0.0).select(&x, &x * weight))?.into())
}

/// The first half of an axis times the sigmoid of the second.
fn glu(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let axis = Context::axis(a.int_or("dim", -1)?, cx.b.rank(x))?;
    let Some(size) = cx.b.shape(x).get(axis).cloned() else {
        return Err(RuleError::Malformed("a tensor without axes has no halves".to_owned()));
    };
    let half = size.floor_div_in(&Expr::int(2), cx.b.ranges());
    let first = cx.b.slice(x, axis, &Expr::int(0), &half, 1)?;
    let second = cx.b.slice(x, axis, &half, &half, 1)?;
    Ok(cx.apply_float([first, second], |[x, gate]| x * gate.sigmoid())?.into())
}
