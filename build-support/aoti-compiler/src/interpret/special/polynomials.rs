//! Orthogonal polynomials by their three-term recurrences; degrees are truncated to integers, negative ones give 0.

/// Degrees beyond this take the trigonometric form inside (-1, 1), where the recurrence would only be slow.
const LONG: i64 = 8;

/// Evaluates `p(k+1) = step(k, p(k), p(k-1))` up to degree `n`.
fn recur(n: f64, first: f64, second: f64, step: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let n = n as i64;
    match n {
        ..0 => 0.0,
        0 => first,
        _ => {
            let (mut before, mut current) = (first, second);
            let mut k = 1;
            // Once a value is NaN every later one is.
            while k < n && !current.is_nan() {
                (before, current) = (current, step(k as f64, current, before));
                k += 1;
            }
            current
        }
    }
}

fn parity(n: i64) -> f64 {
    if n % 2 == 0 { 1.0 } else { -1.0 }
}

/// Degree as an integer, where closed forms apply: long recurrences and the ends of the interval.
fn chebyshev(x: f64, n: f64, second: f64, ends: (f64, f64), inside: impl Fn(f64) -> f64) -> f64 {
    let degree = n as i64;
    if degree >= 0 && x.abs() == 1.0 {
        return if x > 0.0 { ends.0 } else { ends.1 * parity(degree) };
    }
    if degree > LONG && x.abs() < 1.0 {
        return inside(x.acos());
    }
    recur(n, 1.0, second, |_, current, before| 2.0 * x * current - before)
}

/// Chebyshev polynomial of the first kind.
pub(crate) fn chebyshev_t(x: f64, n: f64) -> f64 {
    chebyshev(x, n, x, (1.0, 1.0), |angle| (n.trunc() * angle).cos())
}

/// Second kind.
pub(crate) fn chebyshev_u(x: f64, n: f64) -> f64 {
    let next = n.trunc() + 1.0;
    chebyshev(x, n, 2.0 * x, (next, next), |angle| (next * angle).sin() / angle.sin())
}

/// Third kind.
pub(crate) fn chebyshev_v(x: f64, n: f64) -> f64 {
    let odd = 2.0 * n.trunc() + 1.0;
    chebyshev(x, n, 2.0 * x - 1.0, (1.0, odd), |angle| (odd * angle / 2.0).cos() / (angle / 2.0).cos())
}

/// Fourth kind.
pub(crate) fn chebyshev_w(x: f64, n: f64) -> f64 {
    let odd = 2.0 * n.trunc() + 1.0;
    chebyshev(x, n, 2.0 * x + 1.0, (odd, 1.0), |angle| (odd * angle / 2.0).sin() / (angle / 2.0).sin())
}

/// Physicist's Hermite polynomial.
pub(crate) fn hermite_h(x: f64, n: f64) -> f64 {
    recur(n, 1.0, 2.0 * x, |k, current, before| 2.0 * (x * current - k * before))
}

/// Probabilist's Hermite polynomial.
pub(crate) fn hermite_he(x: f64, n: f64) -> f64 {
    recur(n, 1.0, x, |k, current, before| x * current - k * before)
}

/// Laguerre polynomial.
pub(crate) fn laguerre_l(x: f64, n: f64) -> f64 {
    if n as i64 >= 0 && x == 0.0 {
        return 1.0;
    }
    recur(n, 1.0, 1.0 - x, |k, current, before| ((2.0 * k + 1.0 - x) * current - k * before) / (k + 1.0))
}

/// Legendre polynomial.
pub(crate) fn legendre_p(x: f64, n: f64) -> f64 {
    let degree = n as i64;
    if degree >= 0 && x.abs() == 1.0 {
        return if x > 0.0 { 1.0 } else { parity(degree) };
    }
    recur(n, 1.0, x, |k, current, before| ((2.0 * k + 1.0) * x * current - k * before) / (k + 1.0))
}
