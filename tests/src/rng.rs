//! Random choices from a seed: equal everywhere.

use aoti_compiler::random::SplitMix64;

/// Makes choices.
pub struct Rng(SplitMix64);

impl Rng {
    /// From a seed; different seeds give unrelated sequences.
    pub fn new(seed: u64) -> Rng {
        // Seeds count up by one, as states of one sequence do.
        Rng(SplitMix64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678)))
    }

    fn next(&mut self) -> u64 {
        self.0.draw()
    }

    /// Uniform in `0 .. bound`; 0 where there is nothing to choose.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.next() % bound as u64) as usize }
    }

    /// Uniform in `low ..= high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of some.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}
