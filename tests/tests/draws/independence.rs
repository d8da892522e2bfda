//! Draws say nothing of each other: neighbours, draws of one program, runs and seeds.

use crate::program::{Drawn, Program, count, drawn};
use crate::statistics::{follows, tell_nothing};

const UNIFORM: &str = "%y: f64[N] = aten.rand.default(size = [N], dtype = f64)";

#[test]
fn neighbouring_numbers_draws_seeds_and_offsets_are_uncorrelated() {
    let program = Program::new(UNIFORM);
    let first = program.drawn(&[], 7, 0);
    let is_uncorrelated = |a: &[f64], b: &[f64], what: &str| {
        let sum: f64 = a.iter().zip(b).map(|(x, y)| (x - 0.5) * (y - 0.5)).sum();
        let deviations = 12.0 * sum / (a.len() as f64).sqrt();
        println!("correlation of {what}: {deviations:.2} deviations of {} numbers", a.len());
        assert!(deviations.abs() < 6.0, "{what}: {deviations}");
    };
    is_uncorrelated(&first[1..], &first, "neighbours");
    for (seed, offset) in [(8, 0), (7, 1), (0, 7)] {
        let other = program.drawn(&[], seed, offset);
        is_uncorrelated(&first, &other, &format!("seed 7 offset 0 and seed {seed} offset {offset}"));
    }
    let two = Program::new(&format!("%x: f64[N] = aten.rand.default(size = [N], dtype = f64) {UNIFORM}"));
    is_uncorrelated(&first, &two.drawn(&[], 7, 0), "the first draw and the second");
    assert_eq!(first, program.drawn(&[], 7, 0));
}

#[test]
fn neighbours_at_any_distance_tell_nothing_of_each_other() {
    for (dtype, seed) in [("f32", 51), ("f64", 52)] {
        let text = format!("%y: {dtype}[N] = aten.rand.default(size = [N], dtype = {dtype})");
        let own = drawn(&text, &[], seed);
        // Of one block of the generator, of blocks side by side, and of those that lanes and threads have.
        for distance in [1, 2, 3, 4, 8, 16, 64, 1000, 4096] {
            let apart = own.numbers.chunks_exact(2 * distance).flat_map(|own| {
                let (first, second) = own.split_at(distance);
                first.iter().copied().zip(second.iter().copied())
            });
            tell_nothing(format!("{dtype}, distance {distance}"), apart);
        }
        // Nor do their last digits follow another distribution than the first.
        let digits = own.map(|numbers| numbers.iter().map(|x| (x * 1024.0).fract()).collect());
        follows(digits, |x| x.clamp(0.0, 1.0));
    }
}

#[test]
fn offsets_seeds_and_draws_tell_nothing_of_each_other() {
    let program = Program::new(UNIFORM);
    let first = program.drawn(&[], 53, 0);
    let both = |what: String, other: Vec<f64>| tell_nothing(what, first.iter().copied().zip(other));
    for (seed, offset) in [(53, 1), (53, 2), (53, 1 << 32), (54, 0), (53 + (1 << 32), 0), (0, 53), (-53, 0)] {
        both(format!("seed {seed}, offset {offset}"), program.drawn(&[], seed, offset));
    }
    for before in ["rand.default(size = [N], dtype = f64)", "randn.default(size = [N], dtype = f64)"] {
        let second = Program::new(&format!("%x: f64[N] = aten.{before} {UNIFORM}"));
        both(format!("after {before}"), second.drawn(&[], 53, 0));
    }
}

#[test]
fn runs_that_follow_each_other_tell_nothing_of_each_other() {
    let program = Program::new("%y: f64[200] = aten.rand.default(size = [200], dtype = f64)");
    let runs = (count() / 200) as i64;
    let numbers: Vec<f64> = (0..runs).flat_map(|offset| program.drawn(&[], 55, offset)).collect();
    let pairs = numbers.chunks_exact(400).flat_map(|own| {
        let (first, second) = own.split_at(200);
        first.iter().copied().zip(second.iter().copied())
    });
    tell_nothing("runs that follow each other".to_owned(), pairs);
    follows(Drawn { numbers, what: "runs of 200".to_owned() }, |x| x.clamp(0.0, 1.0));
}
