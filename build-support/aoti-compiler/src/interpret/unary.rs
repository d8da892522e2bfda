//! Functions of one number.

use super::error::EvalError;
use super::special::{airy, bessel, error_function, gamma};
use super::tensor::{Lanes, Tensor};
use crate::dtype::DType;
use crate::graph::UnaryOp;

/// Applies a function to every element.
pub(super) fn unary(op: UnaryOp, x: &Tensor) -> Result<Tensor, EvalError> {
    let is_boolean = matches!(op, UnaryOp::IsNan | UnaryOp::IsInf | UnaryOp::SignBit);
    let dtype = if is_boolean { DType::Bool } else { x.dtype() };
    let lanes = match x.lanes() {
        Lanes::F32(v) if is_boolean => Lanes::Int(v.into_iter().map(|v| test(op, f64::from(v))).collect()),
        Lanes::F64(v) if is_boolean => Lanes::Int(v.into_iter().map(|v| test(op, v)).collect()),
        Lanes::F32(v) => Lanes::F32(v.into_iter().map(|v| f32_op(op, v)).collect()),
        Lanes::F64(v) => Lanes::F64(v.into_iter().map(|v| f64_op(op, v)).collect()),
        Lanes::Int(v) => {
            Lanes::Int(v.into_iter().map(|v| int_op(op, v, x.dtype())).collect::<Result<_, _>>()?)
        }
    };
    Ok(Tensor::store(dtype, x.sizes().to_vec(), &lanes))
}

fn test(op: UnaryOp, x: f64) -> i64 {
    i64::from(match op {
        UnaryOp::IsNan => x.is_nan(),
        UnaryOp::IsInf => x.is_infinite(),
        _ => x.is_sign_negative(),
    })
}

fn int_op(op: UnaryOp, x: i64, dtype: DType) -> Result<i64, EvalError> {
    Ok(match op {
        UnaryOp::Abs => x.wrapping_abs(),
        UnaryOp::Neg => x.wrapping_neg(),
        UnaryOp::Sign => x.signum(),
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::Round => x,
        UnaryOp::IsNan | UnaryOp::IsInf => 0,
        UnaryOp::SignBit => i64::from(x < 0),
        UnaryOp::Not if dtype == DType::Bool => i64::from(x == 0),
        UnaryOp::Not => !x,
        _ => return Err(EvalError::Malformed(format!("`{}` of {dtype}", op.name()))),
    })
}

/// In `f32` where the standard library has the function, else in `f64` and rounded.
pub(super) fn f32_op(op: UnaryOp, x: f32) -> f32 {
    match op {
        UnaryOp::Abs => x.abs(),
        UnaryOp::Neg => -x,
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Trunc => x.trunc(),
        UnaryOp::Round => x.round_ties_even(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Rsqrt => 1.0 / x.sqrt(),
        UnaryOp::Reciprocal => 1.0 / x,
        UnaryOp::Exp => x.exp(),
        UnaryOp::Exp2 => x.exp2(),
        UnaryOp::Expm1 => x.exp_m1(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Log10 => x.log10(),
        UnaryOp::Log1p => x.ln_1p(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tan => x.tan(),
        UnaryOp::Asin => x.asin(),
        UnaryOp::Acos => x.acos(),
        UnaryOp::Atan => x.atan(),
        UnaryOp::Sinh => x.sinh(),
        UnaryOp::Cosh => x.cosh(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        _ => f64_op(op, f64::from(x)) as f32,
    }
}

/// In `f64`.
pub(super) fn f64_op(op: UnaryOp, x: f64) -> f64 {
    match op {
        UnaryOp::Abs => x.abs(),
        UnaryOp::Neg => -x,
        UnaryOp::Sign => f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Trunc => x.trunc(),
        UnaryOp::Round => x.round_ties_even(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Rsqrt => 1.0 / x.sqrt(),
        UnaryOp::Reciprocal => 1.0 / x,
        UnaryOp::Exp => x.exp(),
        UnaryOp::Exp2 => x.exp2(),
        UnaryOp::Expm1 => x.exp_m1(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Log10 => x.log10(),
        UnaryOp::Log1p => x.ln_1p(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tan => x.tan(),
        UnaryOp::Asin => x.asin(),
        UnaryOp::Acos => x.acos(),
        UnaryOp::Atan => x.atan(),
        UnaryOp::Sinh => x.sinh(),
        UnaryOp::Cosh => x.cosh(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Asinh => libm::asinh(x),
        UnaryOp::Acosh => libm::acosh(x),
        UnaryOp::Atanh => libm::atanh(x),
        UnaryOp::Erf => libm::erf(x),
        UnaryOp::Erfc => libm::erfc(x),
        UnaryOp::Erfinv => error_function::erfinv(x),
        UnaryOp::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        UnaryOp::Lgamma => libm::lgamma(x),
        UnaryOp::Digamma => gamma::digamma(x),
        UnaryOp::I0 | UnaryOp::ModifiedBesselI0 => bessel::i0(x),
        UnaryOp::I0e => bessel::i0e(x),
        UnaryOp::I1 | UnaryOp::ModifiedBesselI1 => bessel::i1(x),
        UnaryOp::I1e => bessel::i1e(x),
        UnaryOp::Erfcx => error_function::erfcx(x),
        UnaryOp::Ndtri => error_function::ndtri(x),
        UnaryOp::LogNdtr => error_function::log_ndtr(x),
        UnaryOp::BesselJ0 => bessel::finite(libm::j0, x),
        UnaryOp::BesselJ1 => bessel::finite(libm::j1, x),
        UnaryOp::BesselY0 => bessel::finite(libm::y0, x),
        UnaryOp::BesselY1 => bessel::finite(libm::y1, x),
        UnaryOp::ModifiedBesselK0 => bessel::k(0, x, false),
        UnaryOp::ModifiedBesselK1 => bessel::k(1, x, false),
        UnaryOp::ScaledModifiedBesselK0 => bessel::k(0, x, true),
        UnaryOp::ScaledModifiedBesselK1 => bessel::k(1, x, true),
        UnaryOp::SphericalBesselJ0 => bessel::spherical_j0(x),
        UnaryOp::AiryAi => airy::airy_ai(x),
        UnaryOp::FrexpMantissa => {
            if x.is_finite() {
                libm::frexp(x).0
            } else {
                x
            }
        }
        UnaryOp::FrexpExponent => {
            if x.is_finite() {
                f64::from(libm::frexp(x).1)
            } else {
                0.0
            }
        }
        // Of other result or for integers only: handled by the callers or refused by the verifier.
        UnaryOp::IsNan | UnaryOp::IsInf | UnaryOp::SignBit | UnaryOp::Not => f64::NAN,
    }
}
