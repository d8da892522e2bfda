//! Distributions with parameters, orders and samples without replacement, and that draws say nothing of each other: by
//! the tests of `draws_tests.rs`, with as many numbers.

use super::draws_tests::{count, counts_follow, drawn, follows, normal_distribution};
use crate::interpret::Tensor;

/// Operands of one number.
fn filled(value: f64) -> Tensor {
    Tensor::from_f64(&[count()], &vec![value; count()])
}

/// Integers from 0 on, in cells that each have a thousandth of all at least, the last one being all that are larger.
fn integers_follow(numbers: &[f64], probability: impl Fn(f64) -> f64) {
    assert!(numbers.iter().all(|x| *x >= 0.0 && x.fract() == 0.0), "they are integers");
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
    let places: Vec<f64> =
        numbers.iter().map(|x| ends.partition_point(|end| end < x).min(last) as f64).collect();
    counts_follow(&places, &cells);
}

fn log_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// The gamma distribution of a shape: the regularised lower incomplete gamma function, by its series and by Legendre's
/// continued fraction of the rest.
fn gamma_distribution(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let front = (shape * x.ln() - x - log_gamma(shape)).exp();
    if x < shape + 1.0 {
        let (mut term, mut sum) = (1.0 / shape, 1.0 / shape);
        for k in 1..1000 {
            term *= x / (shape + f64::from(k));
            sum += term;
        }
        return front * sum;
    }
    let rest = (1..1000).rev().fold(0.0, |rest, k| {
        let k = f64::from(k);
        k * (shape - k) / (x + 2.0 * k + 1.0 - shape + rest)
    });
    1.0 - front / (x + 1.0 - shape + rest)
}

#[test]
fn gamma_numbers_follow_their_shape() {
    for (seed, shape) in [(21, 0.3), (22, 2.5), (23, 40.0)] {
        let text = "input %x: f64[N] %y: f64[N] = aten._standard_gamma.default(self = %x)";
        follows(drawn(text, &[filled(shape)], seed, 0), |x| gamma_distribution(shape, x));
    }
    let text = "input %x: f32[N] %y: f32[N] = aten._standard_gamma.default(self = %x)";
    let x = Tensor::from_f32(&[count()], &vec![2.5; count()]);
    follows(drawn(text, &[x], 24, 0), |x| gamma_distribution(2.5, x));
}

#[test]
fn parts_of_a_whole_follow_dirichlet() {
    let x = Tensor::from_f64(&[count(), 2], &[2.0, 1.0].repeat(count()));
    let text = "input %x: f64[N, 2] %y: f64[N, 2] = aten._sample_dirichlet.default(self = %x)";
    let numbers = drawn(text, &[x], 25, 0);
    assert!(numbers.chunks_exact(2).all(|own| (own[0] + own[1] - 1.0).abs() < 1e-12));
    follows(numbers.chunks_exact(2).map(|own| own[0]).collect(), |x| x.clamp(0.0, 1.0).powi(2));
}

#[test]
fn poisson_numbers_of_any_rate_follow_it() {
    for (seed, rate) in [(26, 0.05), (27, 9.9), (28, 10.1), (29, 300.0)] {
        let text = "input %x: f64[N] %y: f64[N] = aten.poisson.default(self = %x)";
        let numbers = drawn(text, &[filled(rate)], seed, 0);
        integers_follow(&numbers, |k| (k * f64::ln(rate) - rate - log_gamma(k + 1.0)).exp());
    }
}

#[test]
fn located_and_scaled_numbers_follow_their_parameters() {
    let of = |call: &str, seed: i64| {
        let text = format!("input %x: f64[N] %y: f64[N] = aten.{call}");
        drawn(&text, &[filled(0.0)], seed, 0)
    };
    follows(of("uniform.default(self = %x, from = -2.0, to = 5.0)", 31), |x| {
        ((x + 2.0) / 7.0).clamp(0.0, 1.0)
    });
    follows(of("log_normal.default(self = %x, mean = 0.5, std = 2.0)", 32), |x| {
        normal_distribution((x.ln() - 0.5) / 2.0)
    });
    follows(of("cauchy.default(self = %x, median = 1.0, sigma = 3.0)", 33), |x| {
        0.5 + ((x - 1.0) / 3.0).atan() / std::f64::consts::PI
    });
    follows(of("exponential.default(self = %x, lambd = 4.0)", 34), |x| 1.0 - (-4.0 * x).exp());
    for (seed, p) in [(35, 0.3f64), (36, 0.02)] {
        let numbers = of(&format!("geometric.default(self = %x, p = {p:?})"), seed);
        let from_zero: Vec<f64> = numbers.iter().map(|x| x - 1.0).collect();
        integers_follow(&from_zero, |k| p * (1.0 - p).powf(k));
    }
    let text = "%y: i64[N] = aten.randint.low(low = -3, high = 98, size = [N])";
    let from_zero: Vec<f64> = drawn(text, &[], 37, 0).iter().map(|x| x + 3.0).collect();
    counts_follow(&from_zero, &[1.0 / 101.0; 101]);
}

#[test]
fn what_is_drawn_without_replacement_is_drawn_in_turn() {
    let p = [0.5, 0.3, 0.2];
    let weights = Tensor::from_f64(&[count(), 3], &p.repeat(count()));
    let text = "input %w: f64[N, 3]
        %y: i64[N, 2] = aten.multinomial.default(self = %w, num_samples = 2, replacement = false)";
    let pairs: Vec<f64> =
        drawn(text, &[weights], 41, 0).chunks_exact(2).map(|own| 3.0 * own[0] + own[1]).collect();
    // Without the pairs of one category, which are none.
    let places = [1, 2, 3, 5, 6, 7];
    let place = |pair: &f64| places.iter().position(|own| f64::from(*own) == *pair).expect("two categories");
    let pairs: Vec<f64> = pairs.iter().map(|pair| place(pair) as f64).collect();
    counts_follow(
        &pairs,
        &places.map(|own: i32| {
            let (first, second) = (p[own as usize / 3], p[own as usize % 3]);
            first * second / (1.0 - first)
        }),
    );
}

#[test]
fn every_order_of_a_few_numbers_is_as_likely() {
    // Each run draws one, so there are fewer.
    let runs = (count() / 8).min(50_000);
    let mut orders = Vec::new();
    for offset in 0..runs {
        let own = drawn("%y: i64[4] = aten.randperm.default(n = 4)", &[], 42, offset as i64);
        let before = |k: usize| own[k + 1..].iter().filter(|other| **other < own[k]).count();
        orders.push((before(0) * 6 + before(1) * 2 + before(2)) as f64);
    }
    counts_follow(&orders, &[1.0 / 24.0; 24]);
}

/// Pairs of numbers lie in each of a hundred squares as often.
fn tell_nothing(pairs: impl Iterator<Item = (f64, f64)>) {
    let squares: Vec<f64> = pairs.map(|(a, b)| (a * 10.0).floor() * 10.0 + (b * 10.0).floor()).collect();
    counts_follow(&squares, &[0.01; 100]);
}

#[test]
fn neighbours_at_any_distance_tell_nothing_of_each_other() {
    for (dtype, seed) in [("f32", 51), ("f64", 52)] {
        let text = format!("%y: {dtype}[N] = aten.rand.default(size = [N], dtype = {dtype})");
        let numbers = drawn(&text, &[], seed, 0);
        // Of one block of the generator, of blocks side by side, and of those that lanes and threads have.
        for distance in [1, 2, 3, 4, 8, 16, 64, 1000, 4096] {
            let apart = numbers.chunks_exact(2 * distance).flat_map(|own| {
                let (first, second) = own.split_at(distance);
                first.iter().copied().zip(second.iter().copied())
            });
            tell_nothing(apart);
        }
        // Nor do their last digits follow another distribution than the first.
        follows(numbers.iter().map(|x| (x * 1024.0).fract()).collect(), |x| x.clamp(0.0, 1.0));
    }
}

#[test]
fn offsets_seeds_and_draws_tell_nothing_of_each_other() {
    let text = "%y: f64[N] = aten.rand.default(size = [N], dtype = f64)";
    let first = drawn(text, &[], 53, 0);
    let both = |other: Vec<f64>| tell_nothing(first.iter().copied().zip(other));
    for (seed, offset) in [(53, 1), (53, 2), (53, 1 << 32), (54, 0), (53 + (1 << 32), 0), (0, 53), (-53, 0)] {
        both(drawn(text, &[], seed, offset));
    }
    for before in ["rand.default(size = [N], dtype = f64)", "randn.default(size = [N], dtype = f64)"] {
        let second = format!("%x: f64[N] = aten.{before} {text}");
        both(drawn(&second, &[], 53, 0));
    }
    // What one run draws in the next: the same position at a hundred offsets.
    let of_runs: Vec<f64> = (0..100)
        .flat_map(|offset| {
            drawn("%y: f64[200] = aten.rand.default(size = [200], dtype = f64)", &[], 55, offset)
        })
        .collect();
    tell_nothing(of_runs.chunks_exact(400).flat_map(|own| {
        let (first, second) = own.split_at(200);
        first.iter().copied().zip(second.iter().copied())
    }));
    follows(of_runs, |x| x.clamp(0.0, 1.0));
}
