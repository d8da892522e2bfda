//! How far numbers are from the distribution that they must be of, and the distributions themselves.

use crate::program::Drawn;

/// At how many of the sorted numbers a distribution is computed.
const PLACES: usize = 200_000;

/// The largest distance between the distribution of the numbers and a continuous one stays below what one set in a million
/// reaches.
pub(crate) fn follows(drawn: Drawn, distribution: impl Fn(f64) -> f64) {
    let Drawn { mut numbers, what } = drawn;
    numbers.sort_unstable_by(f64::total_cmp);
    let count = numbers.len();
    let part = |k: usize| k as f64 / count as f64;
    // Neither falls between two places, so no distance there exceeds those across them.
    let (mut largest, mut passed, mut before) = (0.0f64, 0, 0.0);
    for k in (0..count).step_by(count.div_ceil(PLACES)) {
        let at = distribution(numbers[k]);
        largest = largest.max(at - part(passed)).max(part(k) - before);
        (passed, before) = (k + 1, at);
    }
    largest = largest.max(1.0 - part(passed)).max(1.0 - before);
    let limit = 2.7 / (count as f64).sqrt();
    println!("{what}: {count} numbers, D {largest:.2e}, limit {limit:.2e}");
    assert!(largest < limit, "{what}: {largest} of {count} numbers");
}

/// Pearson's sum for counts of integers from 0 on stays within six deviations of its mean.
pub(crate) fn counts_follow(drawn: &Drawn, probabilities: &[f64]) {
    let Drawn { numbers, what } = drawn;
    let n = numbers.len() as f64;
    let mut seen = vec![0.0; probabilities.len()];
    for x in numbers.iter().filter(|x| **x >= 0.0 && x.fract() == 0.0) {
        if let Some(seen) = seen.get_mut(*x as usize) {
            *seen += 1.0;
        }
    }
    let term = |(seen, p): (&f64, &f64)| (seen - n * p) * (seen - n * p) / (n * p);
    let sum: f64 = seen.iter().zip(probabilities).map(term).sum();
    let freedom = probabilities.len() as f64 - 1.0;
    let width = 6.0 * (2.0 * freedom).sqrt() + 6.0;
    println!("{what}: {n} numbers, chi-squared {sum:.1} of {freedom} +- {width:.1}");
    assert!((sum - freedom).abs() < width, "{what}: {sum} of {freedom}");
}

/// Integers from 0 on, in cells that each have a thousandth of all at least, the last one being all that are larger.
pub(crate) fn integers_follow(drawn: Drawn, probability: impl Fn(f64) -> f64) {
    assert!(drawn.numbers.iter().all(|x| *x >= 0.0 && x.fract() == 0.0), "they are integers");
    let (mut cells, mut ends, mut own, mut all) = (Vec::new(), Vec::new(), 0.0, 0.0);
    let mut k = 0.0;
    while all < 0.999 {
        own += probability(k);
        all += probability(k);
        if own > 0.001 {
            cells.push(std::mem::take(&mut own));
            ends.push(k);
        }
        k += 1.0;
    }
    let last = cells.len() - 1;
    cells[last] = 1.0 - cells[..last].iter().sum::<f64>();
    let place = |x: &f64| ends.partition_point(|end| end < x).min(last) as f64;
    counts_follow(&drawn.map(|numbers| numbers.iter().map(place).collect()), &cells);
}

/// Pairs of numbers lie in each of a hundred squares as often.
pub(crate) fn tell_nothing(what: String, pairs: impl Iterator<Item = (f64, f64)>) {
    let numbers = pairs.map(|(a, b)| (a * 10.0).floor() * 10.0 + (b * 10.0).floor()).collect();
    counts_follow(&Drawn { numbers, what }, &[0.01; 100]);
}

/// By a power series and a continued fraction of the complement.
pub(crate) fn normal_distribution(x: f64) -> f64 {
    let density = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    if x.abs() < 4.0 {
        let (mut term, mut sum) = (x, x);
        for k in 1..200 {
            term *= x * x / f64::from(2 * k + 1);
            sum += term;
        }
        return 0.5 + density * sum;
    }
    let tail = density / (1..60).rev().fold(x.abs(), |rest, k| x.abs() + f64::from(k) / rest);
    if x > 0.0 { 1.0 - tail } else { tail }
}

pub(crate) fn log_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// The gamma distribution of a shape: the regularised lower incomplete gamma function, by its series and by Legendre's
/// continued fraction of the rest.
pub(crate) fn gamma_distribution(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let front = (shape * x.ln() - x - log_gamma(shape)).exp();
    if x < shape + 1.0 {
        let (mut term, mut sum) = (1.0 / shape, 1.0 / shape);
        for k in 1..300 {
            term *= x / (shape + f64::from(k));
            sum += term;
        }
        return front * sum;
    }
    let rest = (1..300).rev().fold(0.0, |rest, k| {
        let k = f64::from(k);
        k * (shape - k) / (x + 2.0 * k + 1.0 - shape + rest)
    });
    1.0 - front / (x + 1.0 - shape + rest)
}
