//! Draws against the distributions that they are of, by the tests of Kolmogorov and Smirnov and of Pearson. `AOTI_DRAWS` is how
//! many numbers of each are drawn.

use super::decompose;
use crate::aten::text::parse;
use crate::graph::InputRole;
use crate::interpret::{Tensor, evaluate};

pub(super) fn count() -> usize {
    std::env::var("AOTI_DRAWS").ok().and_then(|value| value.parse().ok()).unwrap_or(20_000)
}

/// What a program gives with a seed and an offset.
pub(super) fn drawn(statements: &str, inputs: &[Tensor], seed: i64, offset: i64) -> Vec<f64> {
    let text = format!("program {{ {} output %y }}", statements.replace('N', &count().to_string()));
    let graph = decompose(&parse(&text).expect("the text parses")).expect("it is supported");
    assert_eq!(graph.inputs.last().map(|input| input.role), Some(InputRole::Generator));
    let generator = Tensor::from_i64(&[2], &[seed, offset]);
    let inputs = [inputs, &[generator]].concat();
    evaluate(&graph, &inputs).expect("it runs")[0].to_f64()
}

/// The largest distance between the distribution of the numbers and a continuous one stays below what one set in a million
/// reaches.
pub(super) fn follows(mut numbers: Vec<f64>, distribution: impl Fn(f64) -> f64) {
    numbers.sort_by(f64::total_cmp);
    let n = numbers.len() as f64;
    let distance = |(k, x): (usize, &f64)| {
        let at = distribution(*x);
        (at - k as f64 / n).abs().max((at - (k + 1) as f64 / n).abs())
    };
    let largest = numbers.iter().enumerate().map(distance).fold(0.0, f64::max);
    assert!(largest * n.sqrt() < 2.7, "{largest} of {n} numbers");
}

/// Pearson's sum for counts of integers from 0 on stays within six deviations of its mean.
pub(super) fn counts_follow(numbers: &[f64], probabilities: &[f64]) {
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
    assert!((sum - freedom).abs() < 6.0 * (2.0 * freedom).sqrt() + 6.0, "{sum} of {freedom}");
}

/// By a power series and a continued fraction of the complement.
pub(super) fn normal_distribution(x: f64) -> f64 {
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

#[test]
fn uniform_numbers_are_uniform() {
    let numbers = drawn("%y: f32[N] = aten.rand.default(size = [N], dtype = f32)", &[], 1, 0);
    assert!(numbers.iter().all(|x| (0.0..1.0).contains(x)));
    follows(numbers, |x| x.clamp(0.0, 1.0));
    follows(drawn("%y: f64[N] = aten.rand.default(size = [N], dtype = f64)", &[], 2, 0), |x| {
        x.clamp(0.0, 1.0)
    });
}

#[test]
fn neighbouring_numbers_draws_seeds_and_offsets_are_independent() {
    let text = "%y: f64[N] = aten.rand.default(size = [N], dtype = f64)";
    let first = drawn(text, &[], 7, 0);
    let correlation = |a: &[f64], b: &[f64]| {
        let sum: f64 = a.iter().zip(b).map(|(x, y)| (x - 0.5) * (y - 0.5)).sum();
        12.0 * sum / (a.len() as f64).sqrt()
    };
    assert!(correlation(&first[1..], &first).abs() < 6.0);
    for other in [drawn(text, &[], 8, 0), drawn(text, &[], 7, 1), drawn(text, &[], 0, 7)] {
        assert!(correlation(&first, &other).abs() < 6.0);
    }
    let second = drawn(
        "%x: f64[N] = aten.rand.default(size = [N], dtype = f64) %y: f64[N] = aten.rand.default(size = [N], dtype = f64)",
        &[],
        7,
        0,
    );
    assert!(correlation(&first, &second).abs() < 6.0);
    assert_eq!(first, drawn(text, &[], 7, 0));
}

#[test]
fn normal_numbers_are_normal() {
    follows(
        drawn("%y: f32[N] = aten.randn.default(size = [N], dtype = f32)", &[], 3, 0),
        normal_distribution,
    );
    follows(
        drawn("%y: f64[N] = aten.randn.default(size = [N], dtype = f64)", &[], 4, 0),
        normal_distribution,
    );
}

#[test]
fn exponential_numbers_are_exponential() {
    let x = Tensor::from_f32(&[count()], &vec![0.0; count()]);
    let text = "input %x: f32[N] %y: f32[N] = aten.exponential.default(self = %x, lambd = 1.0)";
    follows(drawn(text, &[x], 5, 0), |x| 1.0 - (-x).exp());
}

#[test]
fn integers_are_equally_likely() {
    let text = "%y: i64[N] = aten.randint.default(high = 10, size = [N])";
    counts_follow(&drawn(text, &[], 6, 0), &[0.1; 10]);
}

#[test]
fn poisson_numbers_have_their_probabilities() {
    for rate in [0.7f64, 4.0, 12.0] {
        let x = Tensor::from_f64(&[count()], &vec![rate; count()]);
        let numbers = drawn("input %x: f64[N] %y: f64[N] = aten.poisson.default(self = %x)", &[x], 8, 0);
        let mut probabilities = vec![(-rate).exp()];
        while probabilities.iter().sum::<f64>() < 0.99 {
            let k = probabilities.len();
            probabilities.push(probabilities[k - 1] * rate / k as f64);
        }
        counts_follow(&numbers, &probabilities);
    }
}

#[test]
fn gamma_numbers_of_shape_one_are_exponential() {
    let x = Tensor::from_f64(&[count()], &vec![1.0; count()]);
    let text = "input %x: f64[N] %y: f64[N] = aten._standard_gamma.default(self = %x)";
    follows(drawn(text, &[x], 9, 0), |x| 1.0 - (-x).exp());
}

#[test]
fn weighted_categories_have_their_probabilities() {
    let weights = Tensor::from_f32(&[4], &[1.0, 0.5, 0.0, 2.5]);
    let text = "input %w: f32[4]
        %y: i64[N] = aten.multinomial.default(self = %w, num_samples = N, replacement = true)";
    let numbers = drawn(text, &[weights], 10, 0);
    assert!(numbers.iter().all(|k| *k != 2.0));
    let kept: Vec<f64> = numbers.into_iter().map(|k| if k == 3.0 { 2.0 } else { k }).collect();
    counts_follow(&kept, &[0.25, 0.125, 0.625]);
}

#[test]
fn hits_have_their_probability() {
    for p in [0.3, 0.001, 0.999] {
        let text = format!("input %x: f32[N] %y: f32[N] = aten.bernoulli.p(self = %x, p = {p:?})");
        let x = Tensor::from_f32(&[count()], &vec![0.0; count()]);
        counts_follow(&drawn(&text, &[x], 11, 0), &[1.0 - p, p]);
    }
}

#[test]
fn permutations_are_equally_likely() {
    let n = count();
    let numbers = drawn("%y: i64[N] = aten.randperm.default(n = N)", &[], 12, 0);
    let mut seen = vec![false; n];
    numbers.iter().for_each(|k| seen[*k as usize] = true);
    assert!(seen.iter().all(|seen| *seen), "each number is there once");
    // The order of three neighbours is one of six.
    let orders = numbers.chunks_exact(3).map(|own| {
        let [a, b, c] = [own[0], own[1], own[2]];
        f64::from(4 * u8::from(a < b) + 2 * u8::from(b < c) + u8::from(a < c))
    });
    // Not `a < b < c` with `c < a`, and not the reverse.
    let orders: Vec<f64> = orders.map(|order| if order == 7.0 { 1.0 } else { order }).collect();
    counts_follow(&orders, &[1.0 / 6.0; 6]);
    // And each tenth of the numbers is spread over all tenths of the places.
    let tenths = |k: usize| 10 * k / n;
    let pairs: Vec<f64> =
        numbers.iter().enumerate().map(|(k, x)| (10 * tenths(k) + tenths(*x as usize)) as f64).collect();
    counts_follow(&pairs, &[0.01; 100]);
}
