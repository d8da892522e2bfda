//! Complex numbers as pairs: a tensor of them is a tensor of their parts, whose last axis, of two, has the real one and the
//! imaginary one.
//!
//! Of a value that was made of parts, these are remembered: computing goes on with them, and nothing is laid side by
//! side that nobody reads so. Knows arithmetic, and no operator.

use super::super::{Context, Formula, RuleError};
use crate::dtype::DType;
use crate::graph::{FloatBinary, FloatUnary, ValueId};
use crate::symbolic::Expr;

/// The real and the imaginary part of a tensor of complex numbers, of one type and shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) re: ValueId,
    pub(crate) im: ValueId,
}

impl Context {
    /// The parts of a complex value.
    pub(crate) fn split(&mut self, value: ValueId) -> Result<Parts, RuleError> {
        if let Some(parts) = self.parts.get(&value) {
            return Ok(*parts);
        }
        let rank = self.b.rank(value);
        let last = rank.checked_sub(1).filter(|axis| self.b.shape(value)[*axis].is(2));
        let last = last.ok_or_else(|| RuleError::Malformed("complex numbers have two parts".to_owned()))?;
        let (re, im) = (self.b.pick(value, last, &Expr::int(0))?, self.b.pick(value, last, &Expr::int(1))?);
        self.remember(value, Parts { re, im });
        Ok(Parts { re, im })
    }

    /// The complex value of two parts, which are brought to one shape.
    pub(crate) fn join(&mut self, parts: Parts) -> Result<ValueId, RuleError> {
        if let Some(whole) = self.wholes.get(&(parts.re, parts.im)) {
            return Ok(*whole);
        }
        let shape = self.b.broadcast_shapes(&[parts.re, parts.im])?;
        let parts = Parts { re: self.b.expand(parts.re, &shape)?, im: self.b.expand(parts.im, &shape)? };
        let axis = shape.len();
        let columns = [self.b.unsqueeze(parts.re, axis)?, self.b.unsqueeze(parts.im, axis)?];
        let value = self.b.cat(&columns, axis)?;
        self.remember(value, parts);
        Ok(value)
    }

    fn remember(&mut self, value: ValueId, parts: Parts) {
        self.parts.insert(value, parts);
        self.wholes.insert((parts.re, parts.im), value);
    }
}

/// A complex expression.
#[derive(Clone)]
pub(crate) struct Complex {
    pub(crate) re: Formula,
    /// `None` of a real number, with which less is to be computed.
    pub(crate) im: Option<Formula>,
}

impl Complex {
    pub(crate) fn new(re: Formula, im: Formula) -> Complex {
        Complex { re, im: Some(im) }
    }

    pub(crate) fn real(re: impl Into<Formula>) -> Complex {
        Complex { re: re.into(), im: None }
    }

    pub(crate) fn imaginary(&self) -> Formula {
        self.im.clone().unwrap_or_else(|| Formula::from(0.0))
    }

    pub(crate) fn is_real(&self) -> bool {
        self.im.is_none()
    }

    fn each(&self, f: impl Fn(&Formula) -> Formula) -> Complex {
        Complex { re: f(&self.re), im: self.im.as_ref().map(f) }
    }

    pub(crate) fn scaled(&self, factor: &Formula) -> Complex {
        self.each(|part| part * factor)
    }

    pub(crate) fn divided(&self, divisor: &Formula) -> Complex {
        self.each(|part| part / divisor)
    }

    pub(crate) fn negated(&self) -> Complex {
        self.each(|part| -part)
    }

    pub(crate) fn conjugate(&self) -> Complex {
        Complex { re: self.re.clone(), im: self.im.as_ref().map(|im| -im) }
    }

    pub(crate) fn plus(&self, other: &Complex) -> Complex {
        let im = match (&self.im, &other.im) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        Complex { re: &self.re + &other.re, im }
    }

    pub(crate) fn times(&self, other: &Complex) -> Complex {
        match (&self.im, &other.im) {
            (_, None) => self.scaled(&other.re),
            (None, _) => other.scaled(&self.re),
            (Some(a), Some(b)) => Complex::new(&self.re * &other.re - a * b, &self.re * b + a * &other.re),
        }
    }

    /// Quotient; the divisor is scaled first, so that its square neither overflows nor vanishes. By zero the parts are divided.
    pub(crate) fn over(&self, other: &Complex) -> Complex {
        let Some(d) = &other.im else { return self.divided(&other.re) };
        let c = &other.re;
        let largest = c.abs().max(d.abs());
        let (c_unit, d_unit) = (c / &largest, d / &largest);
        let norm = c * &c_unit + d * &d_unit;
        let (a, b) = (&self.re, self.imaginary());
        let re = (a * &c_unit + &b * &d_unit) / &norm;
        let im = (&b * &c_unit - a * &d_unit) / &norm;
        let none = largest.equals(0.0);
        Complex::new(none.select(a / &largest, re), none.select(&b / &largest, im))
    }

    pub(crate) fn magnitude(&self) -> Formula {
        match &self.im {
            Some(im) => self.re.binary(FloatBinary::Hypot, im),
            None => self.re.abs(),
        }
    }

    pub(crate) fn angle(&self) -> Formula {
        self.imaginary().binary(FloatBinary::Atan2, &self.re)
    }

    pub(crate) fn exp(&self) -> Complex {
        let (size, angle) = (self.re.exp(), self.imaginary());
        let im = angle.equals(0.0).select(&angle, &size * angle.sin());
        let re = self.is_far_anyhow().select(&size, &size * cos(&angle));
        // A size of nothing has no direction, whatever the angle says.
        let nothing = self.re.equals(f64::NEG_INFINITY);
        Complex::new(nothing.select(0.0, re), nothing.select(0.0, im))
    }

    /// Whether the real part is infinite and the other one no number to take a sine of: the size of a function is known then,
    /// and its direction is not.
    fn is_far_anyhow(&self) -> Formula {
        self.re.is_inf().and(self.imaginary().is_finite().not())
    }

    /// The quotient of one and this, as PyTorch computes it: nothing, where one part is infinite.
    pub(crate) fn reciprocal(&self) -> Complex {
        let quotient = Complex::real(1.0).over(self);
        let (c, d) = (&self.re, self.imaginary());
        let one_is_far = c.is_inf().differs(d.is_inf());
        let nothing = one_is_far.and(c.is_nan().or(d.is_nan()).not());
        Complex::new(nothing.select(0.0, &quotient.re), nothing.select(0.0, quotient.imaginary()))
    }

    pub(crate) fn log(&self) -> Complex {
        Complex::new(self.magnitude().log(), self.angle())
    }

    /// The root with a real part that is not negative.
    pub(crate) fn sqrt(&self) -> Complex {
        let (re, im) = (&self.re, self.imaginary());
        let larger = ((self.magnitude() + re.abs()) * 0.5).sqrt();
        let smaller = larger.equals(0.0).select(0.0, im.abs() / (&larger * 2.0));
        // An infinite imaginary part outdoes whatever the real one is.
        let far = im.is_inf();
        let (larger, smaller) = (far.select(f64::INFINITY, larger), far.select(f64::INFINITY, smaller));
        let right = re.ge(0.0);
        let root_im = right.select(&smaller, &larger);
        Complex::new(right.select(&larger, &smaller), root_im.binary(FloatBinary::CopySign, im))
    }

    /// `self ^ exponent`; of 0, 0 or 1.
    pub(crate) fn power(&self, exponent: &Complex) -> Complex {
        let result = exponent.times(&self.log()).exp();
        let is_zero = self.is_zero();
        let nothing = &self.re * 0.0;
        let at_zero = exponent.is_zero().select(&nothing + 1.0, &nothing);
        let im = result.imaginary();
        Complex::new(is_zero.select(&at_zero, &result.re), is_zero.select(0.0, im))
    }

    pub(crate) fn is_zero(&self) -> Formula {
        self.re.equals(0.0).and(self.imaginary().equals(0.0))
    }

    /// Sine and cosine: those of the hyperbola a quarter turn away.
    pub(crate) fn sin_cos(&self) -> (Complex, Complex) {
        let (sinh, cosh) = Complex::new(self.imaginary(), self.re.clone()).sinh_cosh();
        (Complex::new(sinh.imaginary(), sinh.re), Complex::new(cosh.re.clone(), -cosh.imaginary()))
    }

    /// Hyperbolic sine and cosine. A part that is zero on an axis stays so where the other factor is infinite.
    pub(crate) fn sinh_cosh(&self) -> (Complex, Complex) {
        let (a, b) = (&self.re, self.imaginary());
        let (sinh, cosh) = (a.unary(FloatUnary::Sinh), a.unary(FloatUnary::Cosh));
        let (far, on_axis) = (self.is_far_anyhow(), a.equals(0.0));
        let re = far.select(&cosh, on_axis.select(a, &sinh * cos(&b)));
        let im = b.equals(0.0).select(&b, &cosh * b.sin());
        let even = on_axis.or(b.equals(0.0)).select(0.0, &sinh * b.sin());
        (Complex::new(re, im), Complex::new(far.select(&cosh, &cosh * cos(&b)), even))
    }

    /// Of a tensor of complex numbers, in the type that its parts are computed in.
    pub(crate) fn of(cx: &mut Context, value: ValueId, dtype: DType) -> Result<Complex, RuleError> {
        let parts = cx.split(value)?;
        let (re, im) = (cx.b.cast(parts.re, dtype), cx.b.cast(parts.im, dtype));
        Ok(Complex::new(re.into(), im.into()))
    }
}

pub(crate) fn cos(x: &Formula) -> Formula {
    x.unary(FloatUnary::Cos)
}
