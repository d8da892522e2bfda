//! Distributions without parameters, or with one that matters.

use crate::program::{Drawn, count, drawn, filled, of};
use crate::statistics::{
    counts_follow, follows, gamma_distribution, integers_follow, log_gamma, normal_distribution,
};
use aoti_runtime::DType;

#[test]
fn uniform_numbers_are_uniform() {
    for (dtype, seed) in [("f32", 1), ("f64", 2)] {
        let own =
            drawn(&format!("%y: {dtype}[N] = aten.rand.default(size = [N], dtype = {dtype})"), &[], seed);
        assert!(own.numbers.iter().all(|x| (0.0..1.0).contains(x)));
        follows(own, |x| x.clamp(0.0, 1.0));
    }
    // Half types have few numbers, each as likely.
    for (dtype, seed, few) in [("f16", 3, 2048), ("bf16", 4, 256)] {
        let own =
            drawn(&format!("%y: {dtype}[N] = aten.rand.default(size = [N], dtype = {dtype})"), &[], seed);
        let places = own.map(|numbers| numbers.iter().map(|x| x * f64::from(few)).collect());
        counts_follow(&places, &vec![1.0 / f64::from(few); few as usize]);
    }
}

#[test]
fn normal_numbers_are_normal() {
    for (dtype, seed) in [("f32", 3), ("f64", 4)] {
        let text = format!("%y: {dtype}[N] = aten.randn.default(size = [N], dtype = {dtype})");
        follows(drawn(&text, &[], seed), normal_distribution);
    }
}

#[test]
fn exponential_numbers_are_exponential() {
    for (name, dtype, seed) in [("f32", DType::F32, 5), ("f64", DType::F64, 6)] {
        let text =
            format!("input %x: {name}[N] %y: {name}[N] = aten.exponential.default(self = %x, lambd = 1.0)");
        follows(drawn(&text, &[filled(dtype, 0.0)], seed), |x| 1.0 - (-x).exp());
    }
}

#[test]
fn integers_are_equally_likely() {
    counts_follow(&drawn("%y: i64[N] = aten.randint.default(high = 10, size = [N])", &[], 6), &[0.1; 10]);
    let from_zero = drawn("%y: i64[N] = aten.randint.low(low = -3, high = 98, size = [N])", &[], 37)
        .map(|numbers| numbers.iter().map(|x| x + 3.0).collect());
    counts_follow(&from_zero, &[1.0 / 101.0; 101]);
    let text = "input %x: f32[N] %y: f32[N] = aten.random.to(self = %x, to = 64)";
    counts_follow(&drawn(text, &[filled(DType::F32, 0.0)], 38), &[1.0 / 64.0; 64]);
}

#[test]
fn poisson_numbers_have_their_probabilities() {
    let text = "input %x: f64[N] %y: f64[N] = aten.poisson.default(self = %x)";
    for (seed, rate) in [(7, 0.7f64), (8, 4.0), (9, 12.0), (26, 0.05), (27, 9.9), (28, 10.1), (29, 300.0)] {
        let own = drawn(text, &[filled(DType::F64, rate)], seed);
        let what = format!("{} rate {rate}", own.what);
        let probability = |k: f64| (k * rate.ln() - rate - log_gamma(k + 1.0)).exp();
        integers_follow(Drawn { what, ..own }, probability);
    }
}

#[test]
fn gamma_numbers_follow_their_shape() {
    let text =
        |dtype| format!("input %x: {dtype}[N] %y: {dtype}[N] = aten._standard_gamma.default(self = %x)");
    let shapes =
        [(9, 1.0), (21, 0.3), (22, 2.5), (23, 40.0)].map(|(seed, shape)| ("f64", DType::F64, seed, shape));
    for (name, dtype, seed, shape) in shapes.into_iter().chain([("f32", DType::F32, 24, 2.5)]) {
        let own = drawn(&text(name), &[filled(dtype, shape)], seed);
        let what = format!("{} shape {shape}", own.what);
        follows(Drawn { what, ..own }, |x| gamma_distribution(shape, x));
    }
}

#[test]
fn weighted_categories_have_their_probabilities() {
    let weights = of(DType::F32, &[4], &[1.0, 0.5, 0.0, 2.5]);
    let text = "input %w: f32[4]
        %y: i64[N] = aten.multinomial.default(self = %w, num_samples = N, replacement = true)";
    let own = drawn(text, &[weights], 10);
    assert!(own.numbers.iter().all(|k| *k != 2.0));
    let kept = own.map(|numbers| numbers.into_iter().map(|k| if k == 3.0 { 2.0 } else { k }).collect());
    counts_follow(&kept, &[0.25, 0.125, 0.625]);
}

#[test]
fn hits_have_their_probability() {
    for p in [0.3, 0.001, 0.999] {
        let text = format!("input %x: f32[N] %y: f32[N] = aten.bernoulli.p(self = %x, p = {p:?})");
        counts_follow(&drawn(&text, &[filled(DType::F32, 0.0)], 11), &[1.0 - p, p]);
    }
    let text = "input %x: f64[N] %y: f64[N] = aten.bernoulli.default(self = %x)";
    counts_follow(&drawn(text, &[filled(DType::F64, 0.7)], 12), &[0.3, 0.7]);
}

#[test]
fn dropout_keeps_its_part() {
    for (call, kept) in [
        ("dropout.default(self = %x, p = 0.2, train = true)", 1.25),
        ("native_dropout.default(self = %x, p = 0.2, train = true)", 1.25),
    ] {
        let outputs = if call.starts_with("native") { "%y: f32[N], %m: bool[N]" } else { "%y: f32[N]" };
        let own = drawn(&format!("input %x: f32[N] {outputs} = aten.{call}"), &[filled(DType::F32, 1.0)], 13);
        let places = own.map(|numbers| {
            assert!(numbers.iter().all(|x| *x == 0.0 || *x == kept), "they are zero or scaled");
            numbers.iter().map(|x| x / kept).collect()
        });
        counts_follow(&places, &[0.2, 0.8]);
    }
}

#[test]
fn permutations_are_equally_likely() {
    let n = count();
    let Drawn { numbers, what } = drawn("%y: i64[N] = aten.randperm.default(n = N)", &[], 12);
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
    counts_follow(&Drawn { numbers: orders, what: format!("{what}, orders of three") }, &[1.0 / 6.0; 6]);
    // And each tenth of the numbers is spread over all tenths of the places.
    let tenths = |k: usize| 10 * k / n;
    let pair = |(k, x): (usize, &f64)| (10 * tenths(k) + tenths(*x as usize)) as f64;
    let pairs = numbers.iter().enumerate().map(pair).collect();
    counts_follow(&Drawn { numbers: pairs, what: format!("{what}, tenths") }, &[0.01; 100]);
}
