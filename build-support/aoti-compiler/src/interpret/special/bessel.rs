//! Modified and spherical Bessel functions.

use std::f64::consts::PI;

/// `f(x)`, but NaN at infinity, where PyTorch's Bessel functions of the first and second kind have no limit.
pub(crate) fn finite(f: fn(f64) -> f64, x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { f(x) }
}

/// I of order 0.
pub(crate) fn i0(x: f64) -> f64 {
    unscaled(i0e(x), x)
}

/// `scaled` times e^|x|, as two factors that overflow only where the product does; at infinity PyTorch gives NaN.
fn unscaled(scaled: f64, x: f64) -> f64 {
    if x.is_infinite() {
        return f64::NAN;
    }
    let half = (x.abs() / 2.0).exp();
    scaled * half * half
}

/// I of order 0, scaled by e^-|x|.
pub(crate) fn i0e(x: f64) -> f64 {
    scaled_i(0, x.abs())
}

/// I of order 1.
pub(crate) fn i1(x: f64) -> f64 {
    unscaled(i1e(x), x)
}

/// I of order 1, scaled by e^-|x|.
pub(crate) fn i1e(x: f64) -> f64 {
    scaled_i(1, x.abs()) * if x < 0.0 { -1.0 } else { 1.0 }
}

/// e^-x I_order(x) for x >= 0: power series, whose terms all have one sign, then the asymptotic expansion
/// (Abramowitz and Stegun 9.6.10, 9.7.1).
fn scaled_i(order: u32, x: f64) -> f64 {
    if x.is_infinite() {
        return 0.0;
    }
    let n = f64::from(order);
    if x < 30.0 {
        let quarter = x * x / 4.0;
        let mut term = if order == 0 { 1.0 } else { x / 2.0 };
        let mut sum = term;
        for k in 1..200 {
            let k = f64::from(k);
            term *= quarter / (k * (k + n));
            sum += term;
        }
        return sum * (-x).exp();
    }
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..25 {
        let odd = f64::from(2 * k - 1);
        term *= -(4.0 * n * n - odd * odd) / (f64::from(k) * 8.0 * x);
        sum += term;
    }
    sum / ((2.0 * PI).sqrt() * x.sqrt())
}

/// K of order 0 or 1, optionally scaled by e^x.
pub(crate) fn k(order: u32, x: f64, scaled: bool) -> f64 {
    if x == 0.0 {
        return f64::INFINITY;
    }
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x.is_infinite() {
        return 0.0;
    }
    let value = scaled_k(f64::from(order), x);
    if scaled { value } else { value * (-x).exp() }
}

/// e^x K_order(x) for x > 0, by the integral of exp(-x (cosh t - 1)) cosh(order t) (Abramowitz and Stegun 9.6.24).
/// The trapezoidal rule converges exponentially for such integrands.
pub(crate) fn scaled_k(order: f64, x: f64) -> f64 {
    let step = f64::min(0.05, 0.25 / x.sqrt());
    let mut sum = 0.5;
    for k in 1..1_000_000 {
        let t = f64::from(k) * step;
        let half = (t / 2.0).sinh();
        let exponent = -2.0 * x * half * half;
        let term = exponent.exp() * (order * t).cosh();
        // The factor cosh(order t) can exceed the range while the product is negligible.
        if exponent < -800.0 || !term.is_finite() {
            break;
        }
        sum += term;
    }
    sum * step
}

/// sin(x) / x.
pub(crate) fn spherical_j0(x: f64) -> f64 {
    if x.is_infinite() {
        return 0.0;
    }
    if x.abs() < 1e-4 { 1.0 - x * x / 6.0 } else { x.sin() / x }
}
