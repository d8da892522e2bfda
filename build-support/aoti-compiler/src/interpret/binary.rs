//! Functions of two numbers.

use super::error::EvalError;
use super::special::{gamma, polynomials};
use super::tensor::{Lanes, Tensor};
use crate::dtype::DType;
use crate::graph::{BinaryOp, ResultType};

/// Applies a function to every pair of elements.
pub(super) fn binary(op: BinaryOp, a: &Tensor, b: &Tensor) -> Result<Tensor, EvalError> {
    let is_comparison = op.result() == ResultType::Bool;
    let dtype = if is_comparison { DType::Bool } else { a.dtype() };
    let lanes = match (a.lanes(), b.lanes()) {
        (Lanes::F32(a), Lanes::F32(b)) if is_comparison => Lanes::Int(zip(&a, &b, |a, b| compare(op, a, b))),
        (Lanes::F64(a), Lanes::F64(b)) if is_comparison => Lanes::Int(zip(&a, &b, |a, b| compare(op, a, b))),
        (Lanes::Int(a), Lanes::Int(b)) if is_comparison => Lanes::Int(zip(&a, &b, |a, b| compare(op, a, b))),
        (Lanes::F32(a), Lanes::F32(b)) => Lanes::F32(zip(&a, &b, |a, b| f32_op(op, a, b))),
        (Lanes::F64(a), Lanes::F64(b)) => Lanes::F64(zip(&a, &b, |a, b| f64_op(op, a, b))),
        (Lanes::Int(x), Lanes::Int(y)) => {
            let results: Result<Vec<i64>, EvalError> =
                x.iter().zip(&y).map(|(x, y)| int_op(op, *x, *y, a.dtype())).collect();
            Lanes::Int(results?)
        }
        _ => return Err(EvalError::Malformed(format!("operands of `{}` differ in type", op.name()))),
    };
    Ok(Tensor::store(dtype, a.sizes().to_vec(), &lanes))
}

fn zip<T: Copy, R>(a: &[T], b: &[T], f: impl Fn(T, T) -> R) -> Vec<R> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

/// 1 where the relation holds.
pub(super) fn compare<T: PartialOrd>(op: BinaryOp, a: T, b: T) -> i64 {
    i64::from(match op {
        BinaryOp::Eq => a == b,
        BinaryOp::Ne => a != b,
        BinaryOp::Lt => a < b,
        BinaryOp::Le => a <= b,
        BinaryOp::Gt => a > b,
        BinaryOp::Ge => a >= b,
        _ => false,
    })
}

/// On integers and booleans, before wrapping to `dtype`.
pub(super) fn int_op(op: BinaryOp, a: i64, b: i64, dtype: DType) -> Result<i64, EvalError> {
    let width = 8 * dtype.size() as i64;
    Ok(match op {
        BinaryOp::Add if dtype == DType::Bool => a | b,
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::FloorDiv | BinaryOp::TruncDiv | BinaryOp::Remainder | BinaryOp::Fmod if b == 0 => 0,
        BinaryOp::FloorDiv => {
            let inexact = a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
            a.wrapping_div(b) - i64::from(inexact)
        }
        BinaryOp::TruncDiv => a.wrapping_div(b),
        BinaryOp::Remainder => {
            let rest = a.wrapping_rem(b);
            if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
        }
        BinaryOp::Fmod => a.wrapping_rem(b),
        BinaryOp::Pow => int_pow(a, b),
        BinaryOp::Maximum | BinaryOp::Fmax => a.max(b),
        BinaryOp::Minimum | BinaryOp::Fmin => a.min(b),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => {
            if (0..width).contains(&b) {
                a.wrapping_shl(b as u32)
            } else {
                0
            }
        }
        BinaryOp::Shr => {
            if (0..width).contains(&b) {
                a >> b
            } else {
                a >> 63
            }
        }
        BinaryOp::Gcd => gcd(a, b),
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
            compare(op, a, b)
        }
        _ => return Err(EvalError::Malformed(format!("`{}` of {dtype}", op.name()))),
    })
}

fn int_pow(base: i64, exponent: i64) -> i64 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 => {
                if exponent % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        };
    }
    let (mut result, mut square, mut rest) = (1i64, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest >>= 1;
    }
    result
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i64
}

macro_rules! float_arithmetic {
    ($name:ident $ty:ty, $next_after:path, $op:ident $a:ident $b:ident, $otherwise:expr) => {
        /// On floating-point numbers.
        pub(super) fn $name($op: BinaryOp, $a: $ty, $b: $ty) -> $ty {
            let (a, b) = ($a, $b);
            match $op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div => a / b,
                BinaryOp::FloorDiv => {
                    if b == 0.0 {
                        return a / b;
                    }
                    let rest = a % b;
                    let mut quotient = (a - rest) / b;
                    if rest != 0.0 && (b < 0.0) != (rest < 0.0) {
                        quotient -= 1.0;
                    }
                    if quotient == 0.0 {
                        return (0.0 as $ty).copysign(a / b);
                    }
                    let floor = quotient.floor();
                    if quotient - floor > 0.5 { floor + 1.0 } else { floor }
                }
                BinaryOp::TruncDiv => (a / b).trunc(),
                BinaryOp::Remainder => {
                    let rest = a % b;
                    if rest != 0.0 && (b < 0.0) != (rest < 0.0) { rest + b } else { rest }
                }
                BinaryOp::Fmod => a % b,
                BinaryOp::Pow => a.powf(b),
                BinaryOp::Maximum => {
                    if a.is_nan() || a > b {
                        a
                    } else {
                        b
                    }
                }
                BinaryOp::Minimum => {
                    if a.is_nan() || a < b {
                        a
                    } else {
                        b
                    }
                }
                BinaryOp::Fmax => a.max(b),
                BinaryOp::Fmin => a.min(b),
                BinaryOp::Atan2 => a.atan2(b),
                BinaryOp::Hypot => a.hypot(b),
                BinaryOp::CopySign => a.copysign(b),
                BinaryOp::NextAfter => $next_after(a, b),
                _ => $otherwise,
            }
        }
    };
}

float_arithmetic!(f32_op f32, libm::nextafterf, op a b, special(op, f64::from(a), f64::from(b)) as f32);
float_arithmetic!(f64_op f64, libm::nextafter, op a b, special(op, a, b));

fn special(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Igamma => gamma::igamma(a, b),
        BinaryOp::Igammac => gamma::igammac(a, b),
        BinaryOp::Zeta => gamma::zeta(a, b),
        BinaryOp::Polygamma => gamma::polygamma(a, b),
        BinaryOp::ChebyshevT => polynomials::chebyshev_t(a, b),
        BinaryOp::ChebyshevU => polynomials::chebyshev_u(a, b),
        BinaryOp::ChebyshevV => polynomials::chebyshev_v(a, b),
        BinaryOp::ChebyshevW => polynomials::chebyshev_w(a, b),
        BinaryOp::ShiftedChebyshevT => polynomials::chebyshev_t(2.0 * a - 1.0, b),
        BinaryOp::ShiftedChebyshevU => polynomials::chebyshev_u(2.0 * a - 1.0, b),
        BinaryOp::ShiftedChebyshevV => polynomials::chebyshev_v(2.0 * a - 1.0, b),
        BinaryOp::ShiftedChebyshevW => polynomials::chebyshev_w(2.0 * a - 1.0, b),
        BinaryOp::HermiteH => polynomials::hermite_h(a, b),
        BinaryOp::HermiteHe => polynomials::hermite_he(a, b),
        BinaryOp::LaguerreL => polynomials::laguerre_l(a, b),
        BinaryOp::LegendreP => polynomials::legendre_p(a, b),
        // For integers only, or of other result: handled by the callers or refused by the verifier.
        _ => f64::NAN,
    }
}
