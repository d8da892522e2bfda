//! Distributions with parameters, and samples without replacement.

use crate::program::{Drawn, Program, count, drawn, filled, rows};
use crate::statistics::{counts_follow, follows, integers_follow, normal_distribution};
use aoti_runtime::DType;

/// What a call draws into numbers of `f64`.
fn of_call(call: &str, seed: i64) -> Drawn {
    drawn(&format!("input %x: f64[N] %y: f64[N] = aten.{call}"), &[filled(DType::F64, 0.0)], seed)
}

#[test]
fn located_and_scaled_numbers_follow_their_parameters() {
    let uniform = of_call("uniform.default(self = %x, from = -2.0, to = 5.0)", 31);
    follows(uniform, |x| ((x + 2.0) / 7.0).clamp(0.0, 1.0));
    let normal = of_call("normal.default(self = %x, mean = -1.5, std = 0.25)", 30);
    follows(normal, |x| normal_distribution((x + 1.5) / 0.25));
    let log_normal = of_call("log_normal.default(self = %x, mean = 0.5, std = 2.0)", 32);
    follows(log_normal, |x| normal_distribution((x.ln() - 0.5) / 2.0));
    let cauchy = of_call("cauchy.default(self = %x, median = 1.0, sigma = 3.0)", 33);
    follows(cauchy, |x| 0.5 + ((x - 1.0) / 3.0).atan() / std::f64::consts::PI);
    follows(of_call("exponential.default(self = %x, lambd = 4.0)", 34), |x| 1.0 - (-4.0 * x).exp());
    for (seed, p) in [(35, 0.3f64), (36, 0.02)] {
        let from_zero = of_call(&format!("geometric.default(self = %x, p = {p:?})"), seed)
            .map(|numbers| numbers.iter().map(|x| x - 1.0).collect());
        integers_follow(from_zero, |k| p * (1.0 - p).powf(k));
    }
}

#[test]
fn parts_of_a_whole_follow_dirichlet() {
    let text = "input %x: f64[N, 2] %y: f64[N, 2] = aten._sample_dirichlet.default(self = %x)";
    let own = drawn(text, &[rows(DType::F64, &[2.0, 1.0])], 25);
    assert!(own.numbers.chunks_exact(2).all(|own| (own[0] + own[1] - 1.0).abs() < 1e-12));
    let first = own.map(|numbers| numbers.chunks_exact(2).map(|own| own[0]).collect());
    follows(first, |x| x.clamp(0.0, 1.0).powi(2));
}

#[test]
fn what_is_drawn_without_replacement_is_drawn_in_turn() {
    let p = [0.5, 0.3, 0.2];
    let text = "input %w: f64[N, 3]
        %y: i64[N, 2] = aten.multinomial.default(self = %w, num_samples = 2, replacement = false)";
    // Without the pairs of one category, which are none.
    let places = [1, 2, 3, 5, 6, 7];
    let place = |own: &[f64]| {
        let pair = 3.0 * own[0] + own[1];
        let place = places.iter().position(|own| f64::from(*own) == pair);
        place.expect("two categories") as f64
    };
    let pairs =
        drawn(text, &[rows(DType::F64, &p)], 41).map(|numbers| numbers.chunks_exact(2).map(place).collect());
    let probability = |own: i32| {
        let (first, second) = (p[own as usize / 3], p[own as usize % 3]);
        first * second / (1.0 - first)
    };
    counts_follow(&pairs, &places.map(probability));
}

#[test]
fn every_order_of_a_few_numbers_is_as_likely() {
    // Each run draws one, so there are fewer.
    let runs = (count() / 8).min(1_000_000);
    let program = Program::new("%y: i64[4] = aten.randperm.default(n = 4)");
    let order = |offset: usize| {
        let own = program.drawn(&[], 42, offset as i64);
        let before = |k: usize| own[k + 1..].iter().filter(|other| **other < own[k]).count();
        (before(0) * 6 + before(1) * 2 + before(2)) as f64
    };
    let orders = Drawn { numbers: (0..runs).map(order).collect(), what: "orders of four".to_owned() };
    counts_follow(&orders, &[1.0 / 24.0; 24]);
}
