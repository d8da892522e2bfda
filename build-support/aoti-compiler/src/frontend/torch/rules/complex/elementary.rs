//! Elementary functions of complex numbers whose parts take more than a product: W. Kahan, "Branch cuts for complex elementary
//! functions" (1987).

use super::super::Formula;
use super::functions::{tanh, unit};
use super::parts::{Complex, cos};
use crate::graph::{FloatBinary, FloatUnary};

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
    let one = unit(z);
    (one.plus(&z.negated()).sqrt(), one.plus(z).sqrt())
}

pub(crate) fn tan(z: &Complex) -> Complex {
    turned_back(&tanh(&turned(z)))
}

pub(crate) fn asin(z: &Complex) -> Complex {
    let (minus, plus) = roots(z);
    let re = angle(&z.re, &minus.times(&plus).re);
    let im = minus.conjugate().times(&plus).imaginary().unary(FloatUnary::Asinh);
    Complex::new(re, im)
}

pub(crate) fn acos(z: &Complex) -> Complex {
    let (minus, plus) = roots(z);
    let im = plus.conjugate().times(&minus).imaginary().unary(FloatUnary::Asinh);
    Complex::new(angle(&minus.re, &plus.re) * 2.0, im)
}

pub(crate) fn atan(z: &Complex) -> Complex {
    turned_back(&atanh(&turned(z)))
}

pub(crate) fn asinh(z: &Complex) -> Complex {
    turned_back(&asin(&turned(z)))
}

pub(crate) fn acosh(z: &Complex) -> Complex {
    let one = unit(z);
    let (minus, plus) = (z.plus(&one.negated()).sqrt(), z.plus(&one).sqrt());
    let re = minus.conjugate().times(&plus).re.unary(FloatUnary::Asinh);
    Complex::new(re, angle(&minus.imaginary(), &plus.re) * 2.0)
}

pub(crate) fn atanh(z: &Complex) -> Complex {
    let (x, y) = (&z.re, z.imaginary());
    let square = y.square();
    let re = (x * 4.0 / ((1.0 - x).square() + &square)).log1p() * 0.25;
    let im = angle(&(&y * 2.0), &((1.0 - x) * (1.0 + x) - square)) * 0.5;
    Complex::new(re, im)
}

pub(crate) fn log1p(z: &Complex) -> Complex {
    let sum = unit(z).plus(z);
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
