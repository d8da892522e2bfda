//! Which runs count where threads are near each other at times and far apart at others.
//!
//! What a kernel takes that shares its work, and every kernel that reads what another thread wrote, depends on where the
//! threads are. Runs of both kinds are not of one machine: those count in which threads were as near as they ever are.

use super::bench::Sample;

/// How many times as long as at best it takes to begin and end a loop together where threads are far apart.
const FAR: f64 = 2.0;
/// Runs of which something is concluded, at least.
pub const FEW: usize = 5;

/// Where the threads were in the runs of a search, by the time that they took to begin and end a loop together.
#[derive(Clone, PartialEq, Debug)]
pub struct PlacementFilter {
    /// The least nanoseconds that were ever seen; infinite where nobody looked.
    pub best: f64,
    /// The most of runs that were left out.
    pub worst: f64,
    /// Runs.
    pub runs: usize,
    /// Those that do not count.
    pub left_out: usize,
}

impl PlacementFilter {
    /// Before any run; with the least that is known. One thread takes no time for it.
    pub fn new(known: Option<f64>) -> PlacementFilter {
        let best = known.filter(|known| *known > 0.0).unwrap_or(f64::INFINITY);
        PlacementFilter { best, worst: 0.0, runs: 0, left_out: 0 }
    }

    /// Looks at further runs. Says whether they show that those before were all of threads far apart.
    pub fn see(&mut self, samples: &[Sample]) -> bool {
        let before = self.best;
        let all = samples.iter().map(|sample| sample.fork_join);
        self.best = all.clone().filter(|own| *own > 0.0).fold(before, f64::min);
        self.runs += samples.len();
        let far = all.filter(|own| *own > FAR * self.best);
        self.worst = far.clone().fold(self.worst, f64::max);
        self.left_out += far.count();
        before.is_finite() && before > FAR * self.best
    }

    /// Whether a run counts.
    pub fn is_near(&self, sample: &Sample) -> bool {
        sample.fork_join <= FAR * self.best
    }

    /// The runs that count; none if they are too few.
    pub fn near<'a>(&self, samples: &'a [Sample]) -> Vec<&'a Sample> {
        let near: Vec<&Sample> = samples.iter().filter(|sample| self.is_near(sample)).collect();
        if near.len() >= FEW { near } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(fork_joins: &[f64]) -> Vec<Sample> {
        fork_joins.iter().map(|&fork_join| Sample { whole: 1.0, kernels: vec![], fork_join }).collect()
    }

    #[test]
    fn runs_count_in_which_threads_were_near() {
        let mut apart = PlacementFilter::new(None);
        let mixed = samples(&[100.0, 110.0, 500.0, 120.0, 130.0, 190.0, 210.0]);
        assert!(!apart.see(&mixed));
        assert_eq!(apart, PlacementFilter { best: 100.0, worst: 500.0, runs: 7, left_out: 2 });
        assert_eq!(apart.near(&mixed).len(), 5);
        assert!(apart.near(&mixed[1..]).is_empty(), "four say nothing");
    }

    #[test]
    fn what_was_near_may_turn_out_to_be_far() {
        let mut apart = PlacementFilter::new(Some(500.0));
        assert!(!apart.see(&samples(&[490.0, 600.0])));
        assert!(apart.see(&samples(&[100.0])));
        assert!(!apart.see(&samples(&[100.0])) && !apart.is_near(&samples(&[490.0])[0]));
    }

    #[test]
    fn a_thread_alone_is_near() {
        let (mut apart, alone) = (PlacementFilter::new(None), samples(&[0.0; FEW]));
        assert!(!apart.see(&alone));
        assert_eq!((apart.near(&alone).len(), apart.left_out), (FEW, 0));
    }
}
