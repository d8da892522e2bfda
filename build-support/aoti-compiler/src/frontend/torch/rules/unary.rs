//! Element-wise operators of one tensor.

use super::registry::rules;
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{FloatTest, FloatUnary, Rounding, SpecialBinary, SpecialUnary, UnaryOp};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.acos.default" => |cx, a| float(cx, a, FloatUnary::Acos),
    pure "aten.acosh.default" => |cx, a| float(cx, a, FloatUnary::Acosh),
    pure "aten.asin.default" => |cx, a| float(cx, a, FloatUnary::Asin),
    pure "aten.asinh.default" => |cx, a| float(cx, a, FloatUnary::Asinh),
    pure "aten.atan.default" => |cx, a| float(cx, a, FloatUnary::Atan),
    pure "aten.atanh.default" => |cx, a| float(cx, a, FloatUnary::Atanh),
    pure "aten.cos.default" => |cx, a| float(cx, a, FloatUnary::Cos),
    pure "aten.cosh.default" => |cx, a| float(cx, a, FloatUnary::Cosh),
    pure "aten.digamma.default" => |cx, a| float(cx, a, SpecialUnary::Digamma),
    pure "aten.erf.default" => |cx, a| float(cx, a, FloatUnary::Erf),
    pure "aten.erfc.default" => |cx, a| float(cx, a, FloatUnary::Erfc),
    pure "aten.erfinv.default" => |cx, a| float(cx, a, FloatUnary::Erfinv),
    pure "aten.exp.default" => |cx, a| float(cx, a, FloatUnary::Exp),
    pure "aten.exp2.default" => |cx, a| float(cx, a, FloatUnary::Exp2),
    pure "aten.expm1.default" => |cx, a| float(cx, a, FloatUnary::Expm1),
    pure "aten.i0.default" => |cx, a| float(cx, a, SpecialUnary::I0),
    pure "aten.lgamma.default" => |cx, a| float(cx, a, SpecialUnary::Lgamma),
    pure "aten.log.default" => |cx, a| float(cx, a, FloatUnary::Log),
    pure "aten.log10.default" => |cx, a| float(cx, a, FloatUnary::Log10),
    pure "aten.log1p.default" => |cx, a| float(cx, a, FloatUnary::Log1p),
    pure "aten.log2.default" => |cx, a| float(cx, a, FloatUnary::Log2),
    pure "aten.reciprocal.default" => |cx, a| float(cx, a, FloatUnary::Reciprocal),
    pure "aten.rsqrt.default" => |cx, a| float(cx, a, FloatUnary::Rsqrt),
    pure "aten.sigmoid.default" => |cx, a| float(cx, a, FloatUnary::Sigmoid),
    pure "aten.sin.default" => |cx, a| float(cx, a, FloatUnary::Sin),
    pure "aten.sinh.default" => |cx, a| float(cx, a, FloatUnary::Sinh),
    pure "aten.sqrt.default" => |cx, a| float(cx, a, FloatUnary::Sqrt),
    pure "aten.tan.default" => |cx, a| float(cx, a, FloatUnary::Tan),
    pure "aten.tanh.default" => |cx, a| float(cx, a, FloatUnary::Tanh),
    pure "aten.special_airy_ai.default" => |cx, a| float(cx, a, SpecialUnary::AiryAi),
    pure "aten.special_bessel_j0.default" => |cx, a| float(cx, a, SpecialUnary::BesselJ0),
    pure "aten.special_bessel_j1.default" => |cx, a| float(cx, a, SpecialUnary::BesselJ1),
    pure "aten.special_bessel_y0.default" => |cx, a| float(cx, a, SpecialUnary::BesselY0),
    pure "aten.special_bessel_y1.default" => |cx, a| float(cx, a, SpecialUnary::BesselY1),
    pure "aten.special_erfcx.default" => |cx, a| float(cx, a, SpecialUnary::Erfcx),
    pure "aten.special_i0e.default" => |cx, a| float(cx, a, SpecialUnary::I0e),
    pure "aten.special_i1.default" => |cx, a| float(cx, a, SpecialUnary::I1),
    pure "aten.special_i1e.default" => |cx, a| float(cx, a, SpecialUnary::I1e),
    pure "aten.special_log_ndtr.default" => |cx, a| float(cx, a, SpecialUnary::LogNdtr),
    pure "aten.special_modified_bessel_i0.default" => |cx, a| float(cx, a, SpecialUnary::ModifiedBesselI0),
    pure "aten.special_modified_bessel_i1.default" => |cx, a| float(cx, a, SpecialUnary::ModifiedBesselI1),
    pure "aten.special_modified_bessel_k0.default" => |cx, a| float(cx, a, SpecialUnary::ModifiedBesselK0),
    pure "aten.special_modified_bessel_k1.default" => |cx, a| float(cx, a, SpecialUnary::ModifiedBesselK1),
    pure "aten.special_ndtri.default" => |cx, a| float(cx, a, SpecialUnary::Ndtri),
    pure "aten.special_scaled_modified_bessel_k0.default" => |cx, a| float(cx, a, SpecialUnary::ScaledModifiedBesselK0),
    pure "aten.special_scaled_modified_bessel_k1.default" => |cx, a| float(cx, a, SpecialUnary::ScaledModifiedBesselK1),
    pure "aten.special_spherical_bessel_j0.default" => |cx, a| float(cx, a, SpecialUnary::SphericalBesselJ0),
    pure "aten.abs.default" => |cx, a| same(cx, a, UnaryOp::Abs),
    pure "aten.neg.default" => |cx, a| same(cx, a, UnaryOp::Neg),
    pure "aten._neg_view.default" => |cx, a| same(cx, a, UnaryOp::Neg),
    pure "aten.sign.default" => sign,
    pure "aten.bitwise_not.default" => |cx, a| same(cx, a, UnaryOp::Not),
    pure "aten.floor.default" => |cx, a| rounding(cx, a, Rounding::Floor),
    pure "aten.ceil.default" => |cx, a| rounding(cx, a, Rounding::Ceil),
    pure "aten.trunc.default" => |cx, a| rounding(cx, a, Rounding::Trunc),
    pure "aten.round.default" => |cx, a| rounding(cx, a, Rounding::Round),
    pure "aten.round.decimals" => round_decimals,
    pure "aten.special_round.default" => round_decimals,
    pure "aten.isnan.default" => |cx, a| test(cx, a, false, |x| x.is_nan()),
    pure "aten.isinf.default" => |cx, a| test(cx, a, false, |x| x.is_inf()),
    pure "aten.isfinite.default" => |cx, a| test(cx, a, true, |x| x.is_finite()),
    pure "aten.isposinf.default" => |cx, a| test(cx, a, false, |x| x.equals(f64::INFINITY)),
    pure "aten.isneginf.default" => |cx, a| test(cx, a, false, |x| x.equals(f64::NEG_INFINITY)),
    pure "aten.isreal.default" => |cx, a| constant_bool(cx, a, true),
    pure "aten.signbit.default" => signbit,
    pure "aten.logical_not.default" => logical_not,
    pure "aten.square.default" => square,
    pure "aten.frac.default" => |cx, a| formula(cx, a, |x| &x - x.trunc()),
    pure "aten.deg2rad.default" => |cx, a| formula(cx, a, |x| x * (PI / 180.0)),
    pure "aten.rad2deg.default" => |cx, a| formula(cx, a, |x| x * (180.0 / PI)),
    pure "aten.sinc.default" => |cx, a| formula(cx, a, sinc),
    pure "aten.angle.default" => |cx, a| formula(cx, a, |x| {
        x.is_nan().select(&x, x.lt(0.0).select(PI, 0.0))
    }),
    pure "aten.logit.default" => logit,
    pure "aten.nan_to_num.default" => nan_to_num,
    pure "aten.special_entr.default" => |cx, a| formula(cx, a, |x| {
        let positive = -(&x * x.log());
        x.is_nan().select(&x, x.gt(0.0).select(positive, x.equals(0.0).select(0.0, f64::NEG_INFINITY)))
    }),
    pure "aten.special_ndtr.default" => |cx, a| formula(cx, a, |x| (x * -FRAC_1_SQRT_2).erfc() * 0.5),
    pure "aten.frexp.Tensor" => frexp,
    pure "aten.polygamma.default" => polygamma,
    pure "aten.mvlgamma.default" => mvlgamma,
}

/// A function that gives floating-point results of any input.
fn float(cx: &mut Context, a: &Args, op: impl Into<UnaryOp>) -> Rule {
    let x = a.only()?;
    let x = cx.to_float(x);
    Ok(cx.unary(op, x).into())
}

/// A function that keeps its operand's type.
fn same(cx: &mut Context, a: &Args, op: impl Into<UnaryOp>) -> Rule {
    let x = a.only()?;
    Ok(cx.unary(op, x).into())
}

/// Rounding, which changes no integer.
fn rounding(cx: &mut Context, a: &Args, op: Rounding) -> Rule {
    let x = a.only()?;
    Ok(if cx.b.dtype(x).is_float() { cx.unary(op, x) } else { x }.into())
}

/// A formula of one operand, which gives floating-point results of any input.
pub(crate) fn formula(cx: &mut Context, a: &Args, build: impl FnOnce(Formula) -> Formula) -> Rule {
    let x = a.only()?;
    Ok(cx.apply_float([x], |[x]| build(x))?.into())
}

fn constant_bool(cx: &mut Context, a: &Args, value: bool) -> Rule {
    let x = a.only()?;
    let shape = cx.b.shape(x);
    Ok(cx.b.full(value, DType::Bool, &shape).into())
}

/// A test of floating-point numbers that has one answer for all integers.
fn test(cx: &mut Context, a: &Args, of_integers: bool, build: impl FnOnce(Formula) -> Formula) -> Rule {
    let x = a.only()?;
    let dtype = cx.b.dtype(x);
    if !dtype.is_float() {
        return constant_bool(cx, a, of_integers);
    }
    Ok(cx.formula(dtype, &build(x.into()))?.into())
}

fn sign(cx: &mut Context, a: &Args) -> Rule {
    let x = a.only()?;
    // The sign of a truth value is itself.
    Ok(if cx.b.dtype(x) == DType::Bool { x } else { cx.unary(UnaryOp::Sign, x) }.into())
}

fn signbit(cx: &mut Context, a: &Args) -> Rule {
    let x = a.only()?;
    if matches!(cx.b.dtype(x), DType::Bool | DType::U8) {
        return constant_bool(cx, a, false);
    }
    Ok(cx.unary(FloatTest::SignBit, x).into())
}

fn logical_not(cx: &mut Context, a: &Args) -> Rule {
    let x = a.only()?;
    let x = cx.b.cast(x, DType::Bool);
    Ok(cx.unary(UnaryOp::Not, x).into())
}

fn square(cx: &mut Context, a: &Args) -> Rule {
    let x = a.only()?;
    let dtype = if cx.b.dtype(x) == DType::Bool { DType::I64 } else { cx.b.dtype(x) };
    Ok(cx.apply([x], dtype, |[x]| x.square())?.into())
}

fn sinc(x: Formula) -> Formula {
    let scaled = &x * PI;
    x.equals(0.0).select(1.0, scaled.sin() / &scaled)
}

/// Rounds to a number of decimals as PyTorch's kernel: scale, round, scale back, all in the operand's type.
fn round_decimals(cx: &mut Context, a: &Args) -> Rule {
    let x = a.only()?;
    let decimals = a.int_or("decimals", 0)?;
    if !cx.b.dtype(x).is_float() {
        return Ok(x.into());
    }
    let scale = 10f64.powi(i32::try_from(decimals.abs()).unwrap_or(i32::MAX));
    let round = |x: Formula| match decimals {
        0 => x.round(),
        1.. => (x * scale).round() / scale,
        _ => (x / scale).round() * scale,
    };
    Ok(cx.apply_float([x], |[x]| round(x))?.into())
}

fn logit(cx: &mut Context, a: &Args) -> Rule {
    let eps = a.opt_scalar("eps")?;
    formula(cx, a, |x| {
        let x = match eps {
            Some(eps) => {
                let (low, high) = (eps.to_f64(), 1.0 - eps.to_f64());
                // The lower bound comes first: beyond a half, the bounds are the wrong way round.
                x.lt(low).select(low, x.gt(high).select(high, &x))
            }
            None => x,
        };
        (&x / (1.0 - &x)).log()
    })
}

fn nan_to_num(cx: &mut Context, a: &Args) -> Rule {
    let x = a.only()?;
    let dtype = cx.b.dtype(x);
    let Some(limits) = dtype.limits() else { return Ok(x.into()) };
    let nan = a.float_or("nan", 0.0)?;
    let high = a.float_or("posinf", limits.largest)?;
    let low = a.float_or("neginf", -limits.largest)?;
    let result = cx.apply([x], dtype, |[x]| {
        let finite = x.equals(f64::NEG_INFINITY).select(low, &x);
        x.is_nan().select(nan, x.equals(f64::INFINITY).select(high, finite))
    })?;
    Ok(result.into())
}

fn frexp(cx: &mut Context, a: &Args) -> Rule {
    let x = a.only()?;
    let x = cx.to_float(x);
    let mantissa = cx.unary(SpecialUnary::FrexpMantissa, x);
    let exponent = cx.unary(SpecialUnary::FrexpExponent, x);
    let exponent = cx.b.cast(exponent, DType::I32);
    Ok(Outputs::Many(vec![Some(mantissa), Some(exponent)]))
}

fn polygamma(cx: &mut Context, a: &Args) -> Rule {
    let (x, order) = (a.tensor("self")?, a.int("n")?);
    let x = cx.to_float(x);
    if order == 0 {
        return Ok(cx.unary(SpecialUnary::Digamma, x).into());
    }
    let order = cx.b.full_like(order, x);
    Ok(cx.binary(SpecialBinary::Polygamma, order, x)?.into())
}

fn mvlgamma(cx: &mut Context, a: &Args) -> Rule {
    let p = a.int("p")?;
    if !(1..=1024).contains(&p) {
        return Err(RuleError::unsupported(format!("`p` is {p}")));
    }
    let dimension = p as f64;
    formula(cx, a, |x| {
        let constant = dimension * (dimension - 1.0) / 4.0 * PI.ln();
        (0..p)
            .fold(None, |sum: Option<Formula>, j| {
                let term = (&x - j as f64 / 2.0).lgamma();
                Some(match sum {
                    None => term + constant,
                    Some(sum) => sum + term,
                })
            })
            .unwrap_or(x)
    })
}
