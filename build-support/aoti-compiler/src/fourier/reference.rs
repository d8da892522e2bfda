//! Transforms in `f64`, plainly: what the evaluators compute, and the spectra of chirps.

use super::roots::root;

/// A complex number.
pub(crate) type Number = (f64, f64);

/// Above, a prime length is transformed as a convolution.
const LARGE_PRIME: usize = 64;

fn times(a: Number, b: Number) -> Number {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// The transform of numbers; with a positive exponent if it is the inverse one, which is not normalised.
pub(crate) fn transform(x: &[Number], is_inverse: bool) -> Vec<Number> {
    let exchanged = |x: &[Number]| x.iter().map(|x| (x.1, x.0)).collect::<Vec<Number>>();
    if is_inverse { exchanged(&transform(&exchanged(x), false)) } else { forward(x) }
}

/// By the smallest prime factor (Cooley and Tukey, 1965).
fn forward(x: &[Number]) -> Vec<Number> {
    let n = x.len();
    let Some(p) = (2..).take_while(|p| p * p <= n).find(|p| n.is_multiple_of(*p)).or((n > 1).then_some(n))
    else {
        return x.to_vec();
    };
    if p > LARGE_PRIME {
        return convolved(x);
    }
    let m = n / p;
    let columns: Vec<Vec<Number>> = (0..p)
        .map(|column| forward(&x.iter().skip(column).step_by(p).copied().collect::<Vec<_>>()))
        .collect();
    let roots: Vec<Number> = (0..n).map(|k| root(k, n)).collect();
    let sum = |k: usize| {
        columns.iter().enumerate().fold((0.0, 0.0), |sum: Number, (column, part)| {
            let term = times(part[k % m], roots[column * k % n]);
            (sum.0 + term.0, sum.1 + term.1)
        })
    };
    (0..n).map(sum).collect()
}

/// `e^(-pi i k^2 / n)` for k below n.
pub(super) fn chirp(n: usize) -> Vec<Number> {
    let square = |k: usize| {
        let (k, n) = (k as u128, n as u128);
        usize::try_from(k * k % (2 * n)).expect("below a length")
    };
    (0..n).map(|k| root(square(k), 2 * n)).collect()
}

/// The transform of the conjugate of a chirp around position 0 of a circle of `m`.
pub(super) fn spectrum(chirp: &[Number], m: usize) -> Vec<Number> {
    let mut circle = vec![(0.0, 0.0); m];
    for (k, (re, im)) in chirp.iter().enumerate() {
        circle[k] = (*re, -im);
        circle[(m - k) % m] = (*re, -im);
    }
    forward(&circle)
}

/// As a convolution with a chirp (Bluestein, 1970).
fn convolved(x: &[Number]) -> Vec<Number> {
    let n = x.len();
    let m = (2 * n - 1).next_power_of_two();
    let chirp = chirp(n);
    let mut turned: Vec<Number> = x.iter().zip(&chirp).map(|(x, by)| times(*x, *by)).collect();
    turned.resize(m, (0.0, 0.0));
    let filter = spectrum(&chirp, m);
    let product: Vec<Number> = forward(&turned).into_iter().zip(filter).map(|(a, b)| times(a, b)).collect();
    let back = transform(&product, true);
    let scaled = |x: Number| (x.0 / m as f64, x.1 / m as f64);
    back.into_iter().zip(&chirp).map(|(x, by)| times(scaled(x), *by)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Number, root, times, transform};

    fn by_definition(x: &[Number]) -> Vec<Number> {
        let n = x.len();
        let sum = |k: usize| {
            x.iter().enumerate().fold((0.0, 0.0), |sum: Number, (j, x)| {
                let term = times(*x, root(j * k % n, n));
                (sum.0 + term.0, sum.1 + term.1)
            })
        };
        (0..n).map(sum).collect()
    }

    #[test]
    fn every_length_is_transformed_as_the_sum_says() {
        for n in [1, 2, 3, 4, 12, 35, 67, 128, 131, 263] {
            let x: Vec<Number> = (0..n).map(|k| ((k as f64 * 0.7).sin(), (k as f64 * 1.3).cos())).collect();
            let (got, wanted) = (transform(&x, false), by_definition(&x));
            for (a, b) in got.iter().zip(&wanted) {
                assert!((a.0 - b.0).hypot(a.1 - b.1) < 1e-11, "length {n}: {a:?} where {b:?} is right");
            }
            let back = transform(&got, true);
            for (a, b) in back.iter().zip(&x) {
                let n = n as f64;
                assert!((a.0 / n - b.0).hypot(a.1 / n - b.1) < 1e-12, "length {n}: {a:?} is not {b:?}");
            }
        }
    }
}
