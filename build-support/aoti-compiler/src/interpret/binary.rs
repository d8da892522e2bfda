//! Functions of two numbers: looked up once for an operator and a kind of lanes, then applied to every pair.

use super::error::EvalError;
use super::special::{gamma, polynomials};
use super::tensor::{Lanes, Tensor};
use crate::dtype::DType;
use crate::graph::{BinaryOp, FloatBinary, IntBinary, Relation, SpecialBinary};
use crate::symbolic::common_divisor;

/// Applies a function to every pair of elements.
pub(super) fn binary(op: BinaryOp, a: &Tensor, b: &Tensor) -> Result<Tensor, EvalError> {
    let dtype = a.dtype();
    let lanes = match (op, a.lanes(), b.lanes()) {
        (BinaryOp::Compare(op), Lanes::F32(a), Lanes::F32(b)) => compare(op, &a, &b),
        (BinaryOp::Compare(op), Lanes::F64(a), Lanes::F64(b)) => compare(op, &a, &b),
        (BinaryOp::Compare(op), Lanes::Int(a), Lanes::Int(b)) => compare(op, &a, &b),
        (BinaryOp::Compare(op), Lanes::Uint(a), Lanes::Uint(b)) => compare(op, &a, &b),
        (op, Lanes::F32(a), Lanes::F32(b)) => Lanes::F32(zip(&a, &b, defined(of_f32(op), op, dtype)?)),
        (op, Lanes::F64(a), Lanes::F64(b)) => Lanes::F64(zip(&a, &b, defined(of_f64(op), op, dtype)?)),
        (op, Lanes::Int(a), Lanes::Int(b)) => {
            Lanes::Int(zip(&a, &b, defined(of_integers(op, dtype), op, dtype)?))
        }
        (op, Lanes::Uint(a), Lanes::Uint(b)) => {
            Lanes::Uint(zip(&a, &b, defined(of_unsigned(op), op, dtype)?))
        }
        (op, Lanes::F32(_) | Lanes::F64(_) | Lanes::Int(_) | Lanes::Uint(_), _) => {
            return Err(EvalError::Malformed(format!("operands of `{}` differ in type", op.name())));
        }
    };
    Ok(Tensor::store(op.result(dtype), a.sizes().to_vec(), &lanes))
}

fn zip<T: Copy, R>(a: &[T], b: &[T], f: impl Fn(T, T) -> R) -> Vec<R> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

fn compare<T: PartialOrd + Copy>(op: Relation, a: &[T], b: &[T]) -> Lanes {
    Lanes::Int(zip(a, b, |a, b| i64::from(op.holds(a, b))))
}

/// The function, or that there is none for an element type.
pub(super) fn defined<F>(function: Option<F>, op: BinaryOp, dtype: DType) -> Result<F, EvalError> {
    function.ok_or_else(|| EvalError::Malformed(format!("`{}` of {dtype}", op.name())))
}

/// On integers and booleans, before wrapping to `dtype`.
pub(super) fn of_integers(op: BinaryOp, dtype: DType) -> Option<impl Fn(i64, i64) -> i64> {
    let width = 8 * dtype.size() as i64;
    let function: fn(i64, i64, i64) -> i64 = match op {
        BinaryOp::Add if dtype == DType::Bool => |a, b, _| a | b,
        BinaryOp::Add => |a, b, _| a.wrapping_add(b),
        BinaryOp::Sub => |a, b, _| a.wrapping_sub(b),
        BinaryOp::Mul => |a, b, _| a.wrapping_mul(b),
        BinaryOp::FloorDiv => |a, b, _| floor_div(a, b),
        BinaryOp::TruncDiv => |a, b, _| if b == 0 { 0 } else { a.wrapping_div(b) },
        BinaryOp::Remainder => |a, b, _| remainder(a, b),
        BinaryOp::Fmod => |a, b, _| if b == 0 { 0 } else { a.wrapping_rem(b) },
        BinaryOp::Pow => |a, b, _| int_pow(a, b),
        BinaryOp::Maximum | BinaryOp::Fmax => |a, b, _| a.max(b),
        BinaryOp::Minimum | BinaryOp::Fmin => |a, b, _| a.min(b),
        BinaryOp::Int(op) => match op {
            IntBinary::And => |a, b, _| a & b,
            IntBinary::Or => |a, b, _| a | b,
            IntBinary::Xor => |a, b, _| a ^ b,
            IntBinary::Shl => {
                |a, b, width| if (0..width).contains(&b) { a.wrapping_shl(b as u32) } else { 0 }
            }
            IntBinary::Shr => |a, b, width| if (0..width).contains(&b) { a >> b } else { a >> 63 },
            IntBinary::Gcd => |a, b, _| gcd(a, b),
            IntBinary::Philox => |a, b, _| philox(a as u64, b as u64) as i64,
        },
        BinaryOp::Compare(_) | BinaryOp::Float(_) | BinaryOp::Special(_) => return None,
    };
    Some(move |a, b| function(a, b, width))
}

/// On `u64`.
pub(super) fn of_unsigned(op: BinaryOp) -> Option<fn(u64, u64) -> u64> {
    Some(match op {
        BinaryOp::Add => u64::wrapping_add,
        BinaryOp::Sub => u64::wrapping_sub,
        BinaryOp::Mul => u64::wrapping_mul,
        BinaryOp::FloorDiv | BinaryOp::TruncDiv => |a, b| a.checked_div(b).unwrap_or(0),
        BinaryOp::Remainder | BinaryOp::Fmod => |a, b| a.checked_rem(b).unwrap_or(0),
        BinaryOp::Pow => unsigned_pow,
        BinaryOp::Maximum | BinaryOp::Fmax => u64::max,
        BinaryOp::Minimum | BinaryOp::Fmin => u64::min,
        BinaryOp::Int(op) => match op {
            IntBinary::And => |a, b| a & b,
            IntBinary::Or => |a, b| a | b,
            IntBinary::Xor => |a, b| a ^ b,
            IntBinary::Shl => |a, b| if b < 64 { a << b } else { 0 },
            IntBinary::Shr => |a, b| if b < 64 { a >> b } else { 0 },
            IntBinary::Gcd => common_divisor,
            IntBinary::Philox => return None,
        },
        BinaryOp::Compare(_) | BinaryOp::Float(_) | BinaryOp::Special(_) => return None,
    })
}

fn floor_div(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let inexact = a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
    a.wrapping_div(b) - i64::from(inexact)
}

fn remainder(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let rest = a.wrapping_rem(b);
    if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
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
    unsigned_pow(base.cast_unsigned(), exponent.cast_unsigned()).cast_signed()
}

fn unsigned_pow(base: u64, exponent: u64) -> u64 {
    let (mut result, mut square, mut rest) = (1u64, base, exponent);
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
    common_divisor(a.unsigned_abs(), b.unsigned_abs()).cast_signed()
}

/// The first two words of Philox 4x32-10 of a counter under a key, the constants of J. Salmon, M. Moraes, R. Dror and
/// D. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
fn philox(counter: u64, key: u64) -> u64 {
    const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
    const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
    let (mut x, mut k) = ([counter as u32, (counter >> 32) as u32, 0, 0], [key as u32, (key >> 32) as u32]);
    for _ in 0..10 {
        let [first, second] = [0, 1].map(|half| u64::from(MULTIPLIERS[half]) * u64::from(x[2 * half]));
        let high = |product: u64| (product >> 32) as u32;
        x = [high(second) ^ x[1] ^ k[0], second as u32, high(first) ^ x[3] ^ k[1], first as u32];
        k = [0, 1].map(|half| k[half].wrapping_add(WEYL[half]));
    }
    u64::from(x[0]) | u64::from(x[1]) << 32
}

/// Functions of a floating-point type; those that are not exact in `f64`, rounded.
macro_rules! of_floats {
    ($name:ident $float:ty, $next_after:path) => {
        pub(super) fn $name(op: BinaryOp) -> Option<fn($float, $float) -> $float> {
            macro_rules! wide {
                ($function:expr) => {
                    |a, b| $function(f64::from(a), f64::from(b)) as $float
                };
            }
            Some(match op {
                BinaryOp::Add => |a, b| a + b,
                BinaryOp::Sub => |a, b| a - b,
                BinaryOp::Mul => |a, b| a * b,
                BinaryOp::FloorDiv => |a, b| {
                    if b == 0.0 {
                        return a / b;
                    }
                    let rest = a % b;
                    let mut quotient = (a - rest) / b;
                    if rest != 0.0 && (b < 0.0) != (rest < 0.0) {
                        quotient -= 1.0;
                    }
                    if quotient == 0.0 {
                        return (0.0 as $float).copysign(a / b);
                    }
                    let floor = quotient.floor();
                    if quotient - floor > 0.5 { floor + 1.0 } else { floor }
                },
                BinaryOp::TruncDiv => |a, b| (a / b).trunc(),
                BinaryOp::Remainder => |a, b| {
                    let rest = a % b;
                    if rest != 0.0 && (b < 0.0) != (rest < 0.0) { rest + b } else { rest }
                },
                BinaryOp::Fmod => |a, b| a % b,
                BinaryOp::Pow => wide!(f64::powf),
                BinaryOp::Maximum => |a, b| if b.is_nan() || b > a { b } else { a },
                BinaryOp::Minimum => |a, b| if b.is_nan() || b < a { b } else { a },
                BinaryOp::Fmax => <$float>::max,
                BinaryOp::Fmin => <$float>::min,
                BinaryOp::Float(op) => match op {
                    FloatBinary::Div => |a, b| a / b,
                    FloatBinary::Atan2 => wide!(f64::atan2),
                    FloatBinary::Hypot => wide!(f64::hypot),
                    FloatBinary::CopySign => <$float>::copysign,
                    FloatBinary::NextAfter => $next_after,
                },
                BinaryOp::Special(op) => match op {
                    SpecialBinary::Igamma => wide!(gamma::igamma),
                    SpecialBinary::Igammac => wide!(gamma::igammac),
                    SpecialBinary::Zeta => wide!(gamma::zeta),
                    SpecialBinary::Polygamma => wide!(gamma::polygamma),
                    SpecialBinary::ChebyshevT => wide!(polynomials::chebyshev_t),
                    SpecialBinary::ChebyshevU => wide!(polynomials::chebyshev_u),
                    SpecialBinary::ChebyshevV => wide!(polynomials::chebyshev_v),
                    SpecialBinary::ChebyshevW => wide!(polynomials::chebyshev_w),
                    SpecialBinary::ShiftedChebyshevT => wide!(shifted(polynomials::chebyshev_t)),
                    SpecialBinary::ShiftedChebyshevU => wide!(shifted(polynomials::chebyshev_u)),
                    SpecialBinary::ShiftedChebyshevV => wide!(shifted(polynomials::chebyshev_v)),
                    SpecialBinary::ShiftedChebyshevW => wide!(shifted(polynomials::chebyshev_w)),
                    SpecialBinary::HermiteH => wide!(polynomials::hermite_h),
                    SpecialBinary::HermiteHe => wide!(polynomials::hermite_he),
                    SpecialBinary::LaguerreL => wide!(polynomials::laguerre_l),
                    SpecialBinary::LegendreP => wide!(polynomials::legendre_p),
                },
                BinaryOp::Compare(_) | BinaryOp::Int(_) => return None,
            })
        }
    };
}

of_floats!(of_f32 f32, libm::nextafterf);
of_floats!(of_f64 f64, libm::nextafter);

/// A polynomial on [0, 1] instead of [-1, 1].
fn shifted(polynomial: fn(f64, f64) -> f64) -> impl Fn(f64, f64) -> f64 {
    move |x, degree| polynomial(2.0 * x - 1.0, degree)
}
