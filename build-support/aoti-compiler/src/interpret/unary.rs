//! Functions of one number: looked up once for an operator and a kind of lanes, then applied to every element.

use super::error::EvalError;
use super::special::{airy, bessel, error_function, gamma};
use super::tensor::{Lanes, Tensor};
use crate::dtype::DType;
use crate::graph::{Bits, FloatTest, FloatUnary, Rounding, SpecialUnary, UnaryOp};

/// Applies a function to every element.
pub(super) fn unary(op: UnaryOp, x: &Tensor) -> Result<Tensor, EvalError> {
    let dtype = x.dtype();
    let lanes = match (op, x.lanes()) {
        (UnaryOp::Test(op), Lanes::F32(v)) => {
            Lanes::Int(v.into_iter().map(|v| test(op, f64::from(v))).collect())
        }
        (UnaryOp::Test(op), Lanes::F64(v)) => Lanes::Int(v.into_iter().map(|v| test(op, v)).collect()),
        (UnaryOp::Bits(Bits::OfFloat), Lanes::F32(v)) => {
            Lanes::Int(v.into_iter().map(|v| i64::from(v.to_bits() as i32)).collect())
        }
        (UnaryOp::Bits(Bits::OfFloat), Lanes::F64(v)) => {
            Lanes::Int(v.into_iter().map(|v| v.to_bits() as i64).collect())
        }
        (UnaryOp::Bits(Bits::ToFloat), Lanes::Int(v)) if dtype == DType::I32 => {
            Lanes::F32(v.into_iter().map(|v| f32::from_bits(v as u32)).collect())
        }
        (UnaryOp::Bits(Bits::ToFloat), Lanes::Int(v)) if dtype == DType::I64 => {
            Lanes::F64(v.into_iter().map(|v| f64::from_bits(v as u64)).collect())
        }
        (op, Lanes::F32(v)) => Lanes::F32(each(v, of_f32(op), op, dtype)?),
        (op, Lanes::F64(v)) => Lanes::F64(each(v, of_f64(op), op, dtype)?),
        (op, Lanes::Int(v)) => Lanes::Int(each(v, of_integers(op, dtype), op, dtype)?),
        (op, Lanes::Uint(v)) => Lanes::Uint(each(v, of_unsigned(op), op, dtype)?),
    };
    Ok(Tensor::store(op.result(dtype), x.sizes().to_vec(), &lanes))
}

fn each<T>(
    values: Vec<T>,
    function: Option<fn(T) -> T>,
    op: UnaryOp,
    dtype: DType,
) -> Result<Vec<T>, EvalError> {
    let undefined = || EvalError::Malformed(format!("`{}` of {dtype}", op.name()));
    Ok(values.into_iter().map(function.ok_or_else(undefined)?).collect())
}

fn test(op: FloatTest, x: f64) -> i64 {
    i64::from(match op {
        FloatTest::IsNan => x.is_nan(),
        FloatTest::IsInf => x.is_infinite(),
        FloatTest::SignBit => x.is_sign_negative(),
    })
}

fn of_integers(op: UnaryOp, dtype: DType) -> Option<fn(i64) -> i64> {
    Some(match op {
        UnaryOp::Abs => i64::wrapping_abs,
        UnaryOp::Neg => i64::wrapping_neg,
        UnaryOp::Sign => i64::signum,
        UnaryOp::Not if dtype == DType::Bool => |x| i64::from(x == 0),
        UnaryOp::Not => |x| !x,
        UnaryOp::Round(_) => |x| x,
        UnaryOp::Test(FloatTest::IsNan | FloatTest::IsInf) => |_| 0,
        UnaryOp::Test(FloatTest::SignBit) => |x| i64::from(x < 0),
        UnaryOp::Bits(_) | UnaryOp::Float(_) | UnaryOp::Special(_) => return None,
    })
}

/// On `u64`.
fn of_unsigned(op: UnaryOp) -> Option<fn(u64) -> u64> {
    Some(match op {
        UnaryOp::Abs | UnaryOp::Round(_) => |x| x,
        UnaryOp::Neg => u64::wrapping_neg,
        UnaryOp::Sign => |x| x.min(1),
        UnaryOp::Not => |x| !x,
        UnaryOp::Test(FloatTest::IsNan | FloatTest::IsInf | FloatTest::SignBit) => |_| 0,
        UnaryOp::Bits(_) | UnaryOp::Float(_) | UnaryOp::Special(_) => return None,
    })
}

/// Functions of a floating-point type: its own where they are exact, else those of `f64`, rounded. The bits of a constant
/// then hang on no platform's own `f32` functions.
macro_rules! of_floats {
    ($name:ident $float:ty) => {
        pub(super) fn $name(op: UnaryOp) -> Option<fn($float) -> $float> {
            macro_rules! wide {
                ($function:expr) => {
                    |x| $function(f64::from(x)) as $float
                };
            }
            Some(match op {
                UnaryOp::Abs => <$float>::abs,
                UnaryOp::Neg => |x| -x,
                UnaryOp::Sign => wide!(|x: f64| f64::from(i8::from(x > 0.0) - i8::from(x < 0.0))),
                UnaryOp::Round(Rounding::Floor) => <$float>::floor,
                UnaryOp::Round(Rounding::Ceil) => <$float>::ceil,
                UnaryOp::Round(Rounding::Trunc) => <$float>::trunc,
                UnaryOp::Round(Rounding::Round) => <$float>::round_ties_even,
                UnaryOp::Float(op) => match op {
                    FloatUnary::Sqrt => <$float>::sqrt,
                    FloatUnary::Rsqrt => |x| 1.0 / x.sqrt(),
                    FloatUnary::Reciprocal => |x| 1.0 / x,
                    FloatUnary::Exp => wide!(f64::exp),
                    FloatUnary::Exp2 => wide!(f64::exp2),
                    FloatUnary::Expm1 => wide!(f64::exp_m1),
                    FloatUnary::Log => wide!(f64::ln),
                    FloatUnary::Log2 => wide!(f64::log2),
                    FloatUnary::Log10 => wide!(f64::log10),
                    FloatUnary::Log1p => wide!(f64::ln_1p),
                    FloatUnary::Sin => wide!(f64::sin),
                    FloatUnary::Cos => wide!(f64::cos),
                    FloatUnary::Tan => wide!(f64::tan),
                    FloatUnary::Asin => wide!(f64::asin),
                    FloatUnary::Acos => wide!(f64::acos),
                    FloatUnary::Atan => wide!(f64::atan),
                    FloatUnary::Sinh => wide!(f64::sinh),
                    FloatUnary::Cosh => wide!(f64::cosh),
                    FloatUnary::Tanh => wide!(f64::tanh),
                    FloatUnary::Asinh => wide!(libm::asinh),
                    FloatUnary::Acosh => wide!(|x| {
                        // The library's formula loses the sign of large negative numbers.
                        if x < 1.0 { f64::NAN } else { libm::acosh(x) }
                    }),
                    FloatUnary::Atanh => wide!(libm::atanh),
                    FloatUnary::Erf => wide!(libm::erf),
                    FloatUnary::Erfc => wide!(libm::erfc),
                    FloatUnary::Erfinv => wide!(error_function::erfinv),
                    FloatUnary::Sigmoid => wide!(|x: f64| 1.0 / (1.0 + (-x).exp())),
                },
                UnaryOp::Special(op) => match op {
                    SpecialUnary::Lgamma => wide!(libm::lgamma),
                    SpecialUnary::Digamma => wide!(gamma::digamma),
                    SpecialUnary::I0 | SpecialUnary::ModifiedBesselI0 => wide!(bessel::i0),
                    SpecialUnary::I0e => wide!(bessel::i0e),
                    SpecialUnary::I1 | SpecialUnary::ModifiedBesselI1 => wide!(bessel::i1),
                    SpecialUnary::I1e => wide!(bessel::i1e),
                    SpecialUnary::Erfcx => wide!(error_function::erfcx),
                    SpecialUnary::Ndtri => wide!(error_function::ndtri),
                    SpecialUnary::LogNdtr => wide!(error_function::log_ndtr),
                    SpecialUnary::BesselJ0 => wide!(|x| bessel::finite(libm::j0, x)),
                    SpecialUnary::BesselJ1 => wide!(|x| bessel::finite(libm::j1, x)),
                    SpecialUnary::BesselY0 => wide!(|x| bessel::finite(libm::y0, x)),
                    SpecialUnary::BesselY1 => wide!(|x| bessel::finite(libm::y1, x)),
                    SpecialUnary::ModifiedBesselK0 => wide!(|x| bessel::k(0, x, false)),
                    SpecialUnary::ModifiedBesselK1 => wide!(|x| bessel::k(1, x, false)),
                    SpecialUnary::ScaledModifiedBesselK0 => wide!(|x| bessel::k(0, x, true)),
                    SpecialUnary::ScaledModifiedBesselK1 => wide!(|x| bessel::k(1, x, true)),
                    SpecialUnary::SphericalBesselJ0 => wide!(bessel::spherical_j0),
                    SpecialUnary::AiryAi => wide!(airy::airy_ai),
                    SpecialUnary::FrexpMantissa => wide!(frexp_mantissa),
                    SpecialUnary::FrexpExponent => wide!(frexp_exponent),
                },
                UnaryOp::Not | UnaryOp::Test(_) | UnaryOp::Bits(_) => return None,
            })
        }
    };
}

of_floats!(of_f32 f32);
of_floats!(of_f64 f64);

fn frexp_mantissa(x: f64) -> f64 {
    if x.is_finite() { libm::frexp(x).0 } else { x }
}

fn frexp_exponent(x: f64) -> f64 {
    if x.is_finite() { f64::from(libm::frexp(x).1) } else { 0.0 }
}
