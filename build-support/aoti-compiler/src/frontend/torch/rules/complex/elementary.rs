//! Elementary functions of complex numbers whose parts take more than a product: W. Kahan, "Branch cuts for complex elementary
//! functions" (1987).

use super::super::Formula;
use super::functions::tanh;
use super::parts::{Complex, cos};
use crate::graph::{FloatBinary, FloatUnary};
use std::f64::consts::FRAC_PI_2;

/// From here on adding one to a square changes nothing.
const LARGE: f64 = 1e15;

/// `i z`.
fn turned(z: &Complex) -> Complex {
    Complex::new(-z.imaginary(), z.re.clone())
}

/// `-i z`.
fn turned_back(z: &Complex) -> Complex {
    Complex::new(z.imaginary(), -&z.re)
}

fn angle(y: &Formula, x: &Formula) -> Formula {
    y.binary(FloatBinary::Atan2, x)
}

/// The roots of `1 - z` and `1 + z`.
fn roots(z: &Complex) -> (Complex, Complex) {
    let one = Complex::real(1.0);
    (one.plus(&z.negated()).sqrt(), one.plus(z).sqrt())
}

pub(crate) fn tan(z: &Complex) -> Complex {
    turned_back(&tanh(&turned(z)))
}

/// Far from zero `asin` and its kin are `log(2 z)`, but for the quarter that they are of: products of roots have no meaning where
/// parts are infinite.
struct Far {
    is_far: Formula,
    /// The real part of that logarithm.
    log: Formula,
}

impl Far {
    fn of(z: &Complex) -> Far {
        let size = z.magnitude();
        Far { is_far: size.gt(LARGE), log: size.log() + std::f64::consts::LN_2 }
    }
}

fn with_sign_of(size: &Formula, y: &Formula) -> Formula {
    size.binary(FloatBinary::CopySign, y)
}

pub(crate) fn asin(z: &Complex) -> Complex {
    let (x, y) = (&z.re, z.imaginary());
    let ((minus, plus), far) = (roots(z), Far::of(z));
    let re = far.is_far.select(angle(x, &y.abs()), angle(x, &minus.times(&plus).re));
    let im = minus.conjugate().times(&plus).imaginary().unary(FloatUnary::Asinh);
    Complex::new(x.equals(0.0).select(x, re), far.is_far.select(with_sign_of(&far.log, &y), im))
}

pub(crate) fn acos(z: &Complex) -> Complex {
    let (x, y) = (&z.re, z.imaginary());
    let ((minus, plus), far) = (roots(z), Far::of(z));
    let re = far.is_far.select(angle(&y.abs(), x), angle(&minus.re, &plus.re) * 2.0);
    let im = plus.conjugate().times(&minus).imaginary().unary(FloatUnary::Asinh);
    Complex::new(x.equals(0.0).select(FRAC_PI_2, re), far.is_far.select(-with_sign_of(&far.log, &y), im))
}

pub(crate) fn atan(z: &Complex) -> Complex {
    turned_back(&atanh(&turned(z)))
}

pub(crate) fn asinh(z: &Complex) -> Complex {
    turned_back(&asin(&turned(z)))
}

pub(crate) fn acosh(z: &Complex) -> Complex {
    let (one, far) = (Complex::real(1.0), Far::of(z));
    let (minus, plus) = (z.plus(&one.negated()).sqrt(), z.plus(&one).sqrt());
    let re = minus.conjugate().times(&plus).re.unary(FloatUnary::Asinh);
    let im = far.is_far.select(z.angle(), angle(&minus.imaginary(), &plus.re) * 2.0);
    Complex::new(
        far.is_far.select(&far.log, re),
        z.re.equals(0.0).select(with_sign_of(&FRAC_PI_2.into(), &z.imaginary()), im),
    )
}

pub(crate) fn atanh(z: &Complex) -> Complex {
    let (x, y) = (z.re.abs(), z.imaginary());
    let size = z.magnitude();
    let far = size.gt(LARGE);
    // Next to a pole the quotient is too large for a number, though its logarithm is not.
    let distance = (1.0 - &x).binary(FloatBinary::Hypot, &y);
    let at_pole = ((&x * 4.0).log() - distance.log() * 2.0) * 0.25;
    let re = (&x * 4.0 / &distance / &distance).log1p() * 0.25;
    let re = far.select(&x / &size / &size, distance.lt(1e-6).select(at_pole, re));
    let re = with_sign_of(&size.is_inf().select(0.0, re), &z.re);
    let im = angle(&(&y * 2.0), &((1.0 - &x) * (1.0 + &x) - y.square())) * 0.5;
    let edge = y.is_nan().select(&y, with_sign_of(&FRAC_PI_2.into(), &y));
    Complex::new(z.re.equals(0.0).select(&z.re, re), far.select(edge, im))
}

pub(crate) fn log1p(z: &Complex) -> Complex {
    let sum = Complex::real(1.0).plus(z);
    let square = &z.re * (&z.re + 2.0) + z.imaginary().square();
    let near = z.magnitude().lt(0.5);
    Complex::new(near.select(square.log1p() * 0.5, sum.magnitude().log()), sum.angle())
}

pub(crate) fn expm1(z: &Complex) -> Complex {
    let (x, y) = (&z.re, z.imaginary());
    let half = (&y * 0.5).sin();
    let re = x.expm1() * cos(&y) - half.square() * 2.0;
    Complex::new(re, x.exp() * y.sin())
}

pub(crate) fn sinc(z: &Complex) -> Complex {
    let scaled = z.scaled(&std::f64::consts::PI.into());
    let quotient = scaled.sin_cos().0.over(&scaled);
    let none = z.is_zero();
    let im = none.select(0.0, quotient.imaginary());
    Complex::new(none.select(1.0, &quotient.re), im)
}
