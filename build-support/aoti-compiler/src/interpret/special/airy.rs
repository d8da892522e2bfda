//! The Airy function.

use std::f64::consts::PI;

/// Ai(x): by K of order 1/3 for positive arguments (Abramowitz and Stegun 10.4.14), by its power series down to -7
/// (10.4.2), below that by the asymptotic expansion (10.4.60).
pub(crate) fn airy_ai(x: f64) -> f64 {
    if x.is_nan() || x.is_infinite() {
        return f64::NAN;
    }
    if x > 1.0 {
        let zeta = 2.0 / 3.0 * x * x.sqrt();
        return (x / 3.0).sqrt() / PI * super::bessel::scaled_k(1.0 / 3.0, zeta) * (-zeta).exp();
    }
    if x > -7.0 { series(x) } else { oscillation(-x) }
}

fn series(x: f64) -> f64 {
    // Ai(0) and -Ai'(0).
    const C1: f64 = 0.355_028_053_887_817_2;
    const C2: f64 = 0.258_819_403_792_806_8;
    let cube = x * x * x;
    let (mut f, mut g) = (1.0, x);
    let (mut f_term, mut g_term) = (1.0, x);
    for k in 1..100 {
        let n = 3.0 * f64::from(k);
        f_term *= cube / (n * (n - 1.0));
        g_term *= cube / (n * (n + 1.0));
        f += f_term;
        g += g_term;
    }
    C1 * f - C2 * g
}

fn oscillation(x: f64) -> f64 {
    let zeta = 2.0 / 3.0 * x * x.sqrt();
    let (mut even, mut odd) = (0.0, 0.0);
    let mut term = 1.0;
    for k in 0..20 {
        match k % 4 {
            0 => even += term,
            1 => odd += term,
            2 => even -= term,
            _ => odd -= term,
        }
        // c(k+1) / c(k) = (6k + 5)(6k + 3)(6k + 1) / (216 (k + 1)(2k + 1)).
        let n = f64::from(k);
        let ratio = (6.0 * n + 5.0) * (6.0 * n + 3.0) * (6.0 * n + 1.0)
            / (216.0 * (n + 1.0) * (2.0 * n + 1.0))
            / zeta;
        if ratio >= 1.0 {
            break;
        }
        term *= ratio;
    }
    let angle = zeta + PI / 4.0;
    (angle.sin() * even - angle.cos() * odd) / (PI.sqrt() * x.powf(0.25))
}
