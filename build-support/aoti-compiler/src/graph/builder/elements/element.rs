//! One element, and what operations make of elements.

use crate::dtype::DType;
use crate::graph::{BinaryOp, FloatBinary, IntBinary, Rounding, Scalar, UnaryOp};
use crate::halves::{Bf16, F16};
use crate::symbolic::Expr;

/// The largest denominator of a fraction.
pub(super) const LARGEST_DENOMINATOR: i64 = 1 << 40;

/// An element: `top / bottom`, where `bottom` is positive.
#[derive(Clone, Debug)]
pub(super) struct Element {
    pub(super) top: Expr,
    pub(super) bottom: i64,
    /// Where it is no such fraction: the number.
    pub(super) number: Option<f64>,
}

impl Element {
    pub(super) fn int(top: Expr) -> Element {
        Element::fraction(top, 1)
    }

    pub(super) fn fraction(top: Expr, bottom: i64) -> Element {
        Element { top, bottom, number: None }
    }

    pub(super) fn truth(value: bool) -> Element {
        Element::int(Expr::int(i64::from(value)))
    }

    pub(super) fn integer(&self) -> Option<&Expr> {
        (self.bottom == 1 && self.number.is_none()).then_some(&self.top)
    }

    /// A number: a fraction if its denominator is small.
    pub(super) fn real(number: f64) -> Element {
        let mut bottom = 1i64;
        let mut top = number;
        while top.fract() != 0.0 && bottom < LARGEST_DENOMINATOR {
            (top, bottom) = (top * 2.0, bottom * 2);
        }
        if top.fract() == 0.0 && top.abs() < 9e15 {
            Element::fraction(Expr::int(top as i64), bottom)
        } else {
            Element { top: Expr::int(0), bottom: 1, number: Some(number) }
        }
    }

    /// Its value, if it is a constant.
    pub(super) fn value(&self) -> Option<f64> {
        self.number.or_else(|| Some(self.top.as_int()? as f64 / self.bottom as f64))
    }

    /// Both over one denominator.
    pub(super) fn common(a: &Element, b: &Element) -> Option<(Expr, Expr, i64)> {
        if a.number.is_some() || b.number.is_some() {
            return None;
        }
        let bottom = a.bottom.checked_mul(b.bottom).filter(|bottom| *bottom <= LARGEST_DENOMINATOR)?;
        if a.bottom == b.bottom {
            return Some((a.top.clone(), b.top.clone(), a.bottom));
        }
        Some((&a.top * b.bottom, &b.top * a.bottom, bottom))
    }
}

/// Of constants, as the program computes them.
pub(super) fn of_numbers(op: BinaryOp, a: f64, b: f64) -> Option<Element> {
    match op {
        BinaryOp::Add => Some(Element::real(a + b)),
        BinaryOp::Sub => Some(Element::real(a - b)),
        BinaryOp::Mul => Some(Element::real(a * b)),
        BinaryOp::Maximum => Some(Element::real(a.max(b))),
        BinaryOp::Minimum => Some(Element::real(a.min(b))),
        BinaryOp::Compare(relation) => Some(Element::truth(relation.holds(a, b))),
        BinaryOp::Float(FloatBinary::Div) => Some(Element::real(a / b)),
        BinaryOp::FloorDiv
        | BinaryOp::TruncDiv
        | BinaryOp::Remainder
        | BinaryOp::Fmod
        | BinaryOp::Pow
        | BinaryOp::Fmax
        | BinaryOp::Fmin
        | BinaryOp::Int(_)
        | BinaryOp::Float(_)
        | BinaryOp::Special(_) => None,
    }
}

/// A fraction in lowest terms, where the numerator is a constant.
pub(super) fn reduced_fraction(top: Expr, bottom: i64) -> Element {
    if bottom == 1 {
        return Element::fraction(top, bottom);
    }
    let (constant, terms) = top.as_sum();
    let mut common = i64::try_from(gcd(constant.unsigned_abs(), bottom.unsigned_abs())).unwrap_or(1);
    for (_, coefficient) in &terms {
        common = i64::try_from(gcd(coefficient.unsigned_abs(), common.unsigned_abs())).unwrap_or(1);
    }
    if common <= 1 {
        return Element::fraction(top, bottom);
    }
    let mut smaller = Expr::int(constant / common);
    for (term, coefficient) in &terms {
        smaller = &smaller + &(term * (coefficient / common));
    }
    Element::fraction(smaller, bottom / common)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

pub(super) fn unary(op: UnaryOp, x: &Element) -> Option<Element> {
    if let Some(number) = x.number {
        return match op {
            UnaryOp::Neg => Some(Element::real(-number)),
            UnaryOp::Abs => Some(Element::real(number.abs())),
            UnaryOp::Round(Rounding::Floor) => Some(Element::real(number.floor())),
            UnaryOp::Round(Rounding::Ceil) => Some(Element::real(number.ceil())),
            UnaryOp::Round(Rounding::Trunc) => Some(Element::real(number.trunc())),
            UnaryOp::Round(Rounding::Round) => Some(Element::real(number.round_ties_even())),
            UnaryOp::Not
            | UnaryOp::Sign
            | UnaryOp::Test(_)
            | UnaryOp::Bits(_)
            | UnaryOp::Float(_)
            | UnaryOp::Special(_) => None,
        };
    }
    let quotient = |top: &Expr| top.floor_div(&Expr::int(x.bottom));
    match op {
        UnaryOp::Neg => Some(Element::fraction(&Expr::int(0) - &x.top, x.bottom)),
        UnaryOp::Abs => Some(Element::fraction(Expr::int(x.top.as_int()?.checked_abs()?), x.bottom)),
        UnaryOp::Not => {
            let value = x.integer()?.as_int().filter(|value| (0..=1).contains(value))?;
            Some(Element::truth(value == 0))
        }
        UnaryOp::Round(Rounding::Floor) => Some(Element::int(quotient(&x.top))),
        UnaryOp::Round(Rounding::Ceil) => Some(Element::int(quotient(&(&x.top + (x.bottom - 1))))),
        UnaryOp::Round(Rounding::Trunc | Rounding::Round) => x.integer().cloned().map(Element::int),
        UnaryOp::Sign | UnaryOp::Test(_) | UnaryOp::Bits(_) | UnaryOp::Float(_) | UnaryOp::Special(_) => None,
    }
}

/// Of truth values, for which the functions of bits are those of logic, and of integers.
pub(super) fn of_bits(op: IntBinary, a: i64, b: i64) -> Option<Element> {
    Some(Element::int(Expr::int(match op {
        IntBinary::And => a & b,
        IntBinary::Or => a | b,
        IntBinary::Xor => a ^ b,
        IntBinary::Shl | IntBinary::Shr | IntBinary::Gcd | IntBinary::Philox => return None,
    })))
}

pub(super) fn of_scalar(number: Scalar) -> Option<Element> {
    match number {
        Scalar::Bool(value) => Some(Element::truth(value)),
        Scalar::Int(value) => Some(Element::int(Expr::int(i64::try_from(value).ok()?))),
        Scalar::Float(value) => Some(Element::real(value)),
    }
}

pub(super) fn of_bytes(dtype: DType, bytes: &[u8]) -> Option<Element> {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    let integer = match dtype {
        DType::Bool | DType::U8 | DType::U16 | DType::U32 => i64::try_from(bits).ok()?,
        DType::I8 => i64::from(bits as u8 as i8),
        DType::I16 => i64::from(bits as u16 as i16),
        DType::I32 => i64::from(bits as u32 as i32),
        DType::I64 => bits as i64,
        DType::U64 => i64::try_from(bits).ok()?,
        DType::F16 => return Some(Element::real(F16::from_le_bytes([bytes[0], bytes[1]]).to_f32().into())),
        DType::Bf16 => return Some(Element::real(Bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32().into())),
        DType::F32 => return Some(Element::real(f64::from(f32::from_bits(bits as u32)))),
        DType::F64 => return Some(Element::real(f64::from_bits(bits))),
        DType::F8(_) => return None,
    };
    Some(Element::int(Expr::int(integer)))
}
