//! The gamma function's relatives: digamma, polygamma, Hurwitz zeta and the incomplete gamma functions.

use std::f64::consts::PI;

/// B_2, B_4, ... : Bernoulli numbers of the Euler-Maclaurin formula.
const BERNOULLI: [f64; 10] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
    -174611.0 / 330.0,
];

/// Digamma: reflection, recurrence up to 16, then the asymptotic expansion (Abramowitz and Stegun 6.3.18).
pub(crate) fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.trunc() {
            return f64::NAN;
        }
        return digamma(1.0 - x) - PI / (PI * x.fract()).tan();
    }
    let (mut x, mut result) = (x, 0.0);
    while x < 16.0 {
        result -= 1.0 / x;
        x += 1.0;
    }
    let inverse_square = 1.0 / (x * x);
    let mut power = 1.0;
    let mut tail = 0.0;
    for (k, bernoulli) in BERNOULLI.iter().enumerate() {
        power *= inverse_square;
        tail += bernoulli / (2.0 * (k as f64 + 1.0)) * power;
    }
    result + x.ln() - 0.5 / x - tail
}

/// Derivative of order `n` of digamma.
pub(crate) fn polygamma(n: f64, x: f64) -> f64 {
    if n == 0.0 {
        return digamma(x);
    }
    if n == 1.0 {
        return trigamma(x);
    }
    let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
    sign * libm::lgamma(n + 1.0).exp() * zeta(n + 1.0, x)
}

/// For negative arguments by reflection (Abramowitz and Stegun 6.4.7).
fn trigamma(x: f64) -> f64 {
    if x < 0.5 {
        let sine = (PI * x).sin();
        return PI * PI / (sine * sine) - zeta(2.0, 1.0 - x);
    }
    zeta(2.0, x)
}

/// Hurwitz zeta: sum of (q + k)^-x over k >= 0, by Euler-Maclaurin after the first terms.
pub(crate) fn zeta(x: f64, q: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x.is_nan() || q.is_nan() || x < 1.0 {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return f64::INFINITY;
        }
        if x != x.floor() {
            return f64::NAN;
        }
    }
    let (mut sum, mut at) = (0.0, q);
    // Terms are added one by one until the expansion in 1 / at converges.
    let mut count = 0;
    while count < 12 || at < 12.0 {
        sum += at.powf(-x);
        at += 1.0;
        count += 1;
        if count > 1_000_000 {
            break;
        }
    }
    sum += at.powf(1.0 - x) / (x - 1.0) + 0.5 * at.powf(-x);
    let (mut rising, mut power, mut factorial) = (x, at.powf(-x - 1.0), 2.0);
    for (k, bernoulli) in BERNOULLI.iter().enumerate() {
        sum += bernoulli / factorial * rising * power;
        let next = 2.0 * k as f64 + 1.0;
        rising *= (x + next) * (x + next + 1.0);
        power /= at * at;
        factorial *= (next + 2.0) * (next + 3.0);
    }
    sum
}

/// Regularised lower incomplete gamma function P(a, x).
pub(crate) fn igamma(a: f64, x: f64) -> f64 {
    match edge(a, x) {
        Some(upper) => 1.0 - upper,
        None if x < a + 1.0 => series(a, x),
        None => 1.0 - fraction(a, x),
    }
}

/// Regularised upper incomplete gamma function Q(a, x).
pub(crate) fn igammac(a: f64, x: f64) -> f64 {
    match edge(a, x) {
        Some(upper) => upper,
        None if x < a + 1.0 => 1.0 - series(a, x),
        None => fraction(a, x),
    }
}

/// Q at the edges of the domain and outside it.
fn edge(a: f64, x: f64) -> Option<f64> {
    if a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 {
        Some(f64::NAN)
    } else if a == 0.0 {
        Some(if x > 0.0 { 0.0 } else { f64::NAN })
    } else if x == 0.0 {
        Some(1.0)
    } else if a.is_infinite() {
        Some(if x.is_infinite() { f64::NAN } else { 1.0 })
    } else if x.is_infinite() {
        Some(0.0)
    } else {
        None
    }
}

/// x^a e^-x / gamma(a + 1).
fn prefactor(a: f64, x: f64) -> f64 {
    (a * x.ln() - x - libm::lgamma(a + 1.0)).exp()
}

/// P by its series (Abramowitz and Stegun 6.5.29).
fn series(a: f64, x: f64) -> f64 {
    let (mut sum, mut term, mut n) = (1.0, 1.0, a);
    for _ in 0..1_000_000 {
        n += 1.0;
        term *= x / n;
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum * prefactor(a, x)
}

/// Q by its continued fraction (Abramowitz and Stegun 6.5.31), evaluated by Lentz's method.
fn fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut value = d;
    for k in 1..1_000_000 {
        let k = f64::from(k);
        let numerator = -k * (k - a);
        b += 2.0;
        d = numerator * d + b;
        d = 1.0 / if d.abs() < TINY { TINY } else { d };
        c = b + numerator / c;
        c = if c.abs() < TINY { TINY } else { c };
        let factor = d * c;
        value *= factor;
        if (factor - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value * prefactor(a, x) * a
}
