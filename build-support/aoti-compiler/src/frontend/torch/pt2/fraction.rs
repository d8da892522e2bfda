//! Quotients of integer expressions, and arithmetic with them whose results stay small.

use crate::symbolic::{Expr, Node, Ranges};

/// Terms and factors that arithmetic may produce.
const MAX_TERMS: usize = 1024;

/// Denominator of a fraction by which sizes are multiplied.
const MAX_SCALE_DENOMINATOR: i32 = 1 << 12;
/// The bound of its numerator.
const MAX_SCALE_NUMERATOR: f64 = 1_048_576.0;

/// The fraction `p / q` by which a size is multiplied where its product with `scale`, in `f64`, is rounded to an integer
/// afterwards; none where that may be another number.
///
/// The product is off by at most as much as `scale` is from the fraction, which for sizes in memory matters only where the
/// exact product is an integer `n`. It is then rounded to `n` if `scale` is off by at most 2^-54 of itself, half the distance of
/// numbers next to `n`; otherwise it may be a neighbour of `n`, and does no harm on the side that is rounded to `n`.
pub(super) fn scale_of_sizes(scale: f64, is_floor: bool) -> Option<(i64, i64)> {
    let near = (1..=MAX_SCALE_DENOMINATOR).find_map(|q| {
        let p = (scale * f64::from(q)).round();
        let is_near = (1.0..MAX_SCALE_NUMERATOR).contains(&p) && p / f64::from(q) == scale;
        is_near.then_some((p as i64, i64::from(q)))
    });
    let (p, q) = near?;
    // scale == mantissa / 2^places
    let places = 52 - (i32::try_from((scale.to_bits() >> 52) & 0x7ff).ok()? - 1023);
    let mantissa = (scale.to_bits() & ((1 << 52) - 1)) | 1 << 52;
    let places = u32::try_from(places).ok().filter(|places| *places <= 72)?;
    let exact = i128::from(p) << places;
    let excess = i128::from(mantissa) * i128::from(q) - exact;
    let is_harmless = if is_floor { excess >= 0 } else { excess <= 0 };
    (is_harmless || excess.abs() <= exact >> 54).then_some((p, q))
}

/// A quotient that has not been rounded yet.
#[derive(Clone)]
pub(super) struct Fraction {
    pub(super) numerator: Expr,
    pub(super) denominator: Expr,
}

impl Fraction {
    pub(super) fn whole(numerator: Expr) -> Fraction {
        Fraction { numerator, denominator: Expr::int(1) }
    }

    pub(super) fn add(&self, other: &Fraction) -> Result<Fraction, String> {
        if self.denominator == other.denominator {
            let numerator = checked(&self.numerator + &other.numerator)?;
            return Ok(Fraction { numerator, denominator: self.denominator.clone() });
        }
        let left = product(&self.numerator, &other.denominator)?;
        let right = product(&other.numerator, &self.denominator)?;
        Ok(Fraction {
            numerator: checked(left + right)?,
            denominator: product(&self.denominator, &other.denominator)?,
        })
    }

    pub(super) fn multiply(&self, other: &Fraction) -> Result<Fraction, String> {
        Ok(Fraction {
            numerator: product(&self.numerator, &other.numerator)?,
            denominator: product(&self.denominator, &other.denominator)?,
        })
    }

    pub(super) fn divide(&self, other: &Fraction) -> Result<Fraction, String> {
        if other.numerator.is(0) {
            return Err("division by zero".to_owned());
        }
        self.multiply(&Fraction {
            numerator: other.denominator.clone(),
            denominator: other.numerator.clone(),
        })
    }

    pub(super) fn floor(&self, ranges: &dyn Ranges) -> Expr {
        self.numerator.floor_div_in(&self.denominator, ranges)
    }

    /// Two integers that relate as the fractions do.
    pub(super) fn over_common(&self, other: &Fraction, ranges: &dyn Ranges) -> Result<(Expr, Expr), String> {
        if self.denominator == other.denominator && self.denominator.interval(ranges).min > 0 {
            return Ok((self.numerator.clone(), other.numerator.clone()));
        }
        if let (Ok(left), Ok(right)) = (self.exact(ranges), other.exact(ranges)) {
            return Ok((left, right));
        }
        let positive = |fraction: &Fraction| fraction.denominator.interval(ranges).min > 0;
        if !positive(self) || !positive(other) {
            return Err("a quotient by what may not be positive is compared".to_owned());
        }
        Ok((product(&self.numerator, &other.denominator)?, product(&other.numerator, &self.denominator)?))
    }

    pub(super) fn exact(&self, ranges: &dyn Ranges) -> Result<Expr, String> {
        if self.denominator.is(1) {
            return Ok(self.numerator.clone());
        }
        if self.numerator.modulo_in(&self.denominator, ranges).is(0) {
            return Ok(self.floor(ranges));
        }
        Err(format!("`({}) / ({})` is not an integer", self.numerator, self.denominator))
    }
}

/// Multiplies unless the result would be huge or overflow.
pub(super) fn product(a: &Expr, b: &Expr) -> Result<Expr, String> {
    if weight(a).saturating_mul(weight(b)) > MAX_TERMS {
        return Err("the expression is too large".to_owned());
    }
    checked(a * b)
}

fn weight(expr: &Expr) -> usize {
    if let Node::Sum { terms, .. } = expr.node() {
        return 1 + terms.iter().map(|(term, _)| weight(term)).sum::<usize>();
    }
    if let Node::Product(factors) = expr.node() { factors.len() } else { 1 }
}

/// Constructors saturate; a saturated number is an overflow.
pub(super) fn checked(expr: Expr) -> Result<Expr, String> {
    let (constant, terms) = expr.as_sum();
    let saturated = |value: i64| value == i64::MAX || value == i64::MIN;
    if saturated(constant) || terms.iter().any(|(_, coefficient)| saturated(*coefficient)) {
        return Err("the expression overflows 63 bits".to_owned());
    }
    if terms.len() > MAX_TERMS {
        return Err("the expression is too large".to_owned());
    }
    Ok(expr)
}
