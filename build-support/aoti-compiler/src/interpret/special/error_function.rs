//! Relatives of the error function.

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

/// Finds where a function that rises with its argument reaches zero.
fn bisect(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (low, high);
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return middle;
        }
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
}

/// Inverse error function: by bisection, on the side where no digits cancel.
pub(crate) fn erfinv(y: f64) -> f64 {
    let size = y.abs();
    let positive = if size.is_nan() || size > 1.0 {
        return f64::NAN;
    } else if size == 1.0 {
        f64::INFINITY
    } else if size < 0.5 {
        // erf(x) lies between x and 1.13 x here.
        bisect(0.8 * size, size, |x| libm::erf(x) - size)
    } else {
        bisect(0.4, 6.5, |x| (1.0 - size) - libm::erfc(x))
    };
    positive.copysign(y)
}

/// Inverse of the normal distribution function.
pub(crate) fn ndtri(p: f64) -> f64 {
    if p.is_nan() || !(0.0..=1.0).contains(&p) {
        f64::NAN
    } else if p == 0.0 {
        f64::NEG_INFINITY
    } else if p == 1.0 {
        f64::INFINITY
    } else if p > 0.5 {
        -ndtri(1.0 - p)
    } else {
        bisect(-40.0, 0.0, |x| 0.5 * libm::erfc(-x * FRAC_1_SQRT_2) - p)
    }
}

/// e^(x^2) erfc(x): the product while both factors are in range, then the asymptotic expansion
/// (Abramowitz and Stegun 7.1.23).
pub(crate) fn erfcx(x: f64) -> f64 {
    if x < 10.0 {
        return (x * x).exp() * libm::erfc(x);
    }
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..12 {
        term *= -f64::from(2 * k - 1) / (2.0 * x * x);
        sum += term;
    }
    sum / (x * PI.sqrt())
}

/// Logarithm of the normal distribution function.
pub(crate) fn log_ndtr(x: f64) -> f64 {
    let t = x / SQRT_2;
    if x < -1.0 { (erfcx(-t) / 2.0).ln() - t * t } else { (-libm::erfc(t) / 2.0).ln_1p() }
}
