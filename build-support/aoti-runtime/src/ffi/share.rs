//! Whether a run is faster on all threads or on one.
//!
//! It depends on the model, its sizes, the machine and where the system has put the threads, so runs are timed: a few on all
//! threads, a few on one, and again after many runs. Results are the same either way.

use std::time::Duration;

/// Runs that are timed of either kind, of which the fastest counts. One before them brings data and threads near.
const TIMED: u32 = 4;
/// Runs from one comparison to the next: few at first, as something else may have disturbed it, then more and more.
const FEWEST: u32 = 64;
const MOST: u32 = 4096;
/// A run that takes longer has loops that are worth threads wherever these are.
const LONG: Duration = Duration::from_millis(20);

/// Who computes a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    All,
    One,
}

/// The choice for one model, number of threads and list of sizes.
#[derive(Debug)]
pub(super) struct ShareChoice {
    share: Share,
    /// Runs until the next step, this one included.
    left: u32,
    is_timing: bool,
    /// The fastest run on all threads.
    all: Duration,
    /// The fastest run so far of those that are timed.
    best: Duration,
    /// Runs until the next comparison.
    period: u32,
}

impl Default for ShareChoice {
    fn default() -> ShareChoice {
        let all = Duration::ZERO;
        let mut own =
            ShareChoice { share: Share::All, left: 0, is_timing: true, all, best: all, period: FEWEST };
        own.time(Share::All);
        own
    }
}

impl ShareChoice {
    /// Who computes the next run.
    pub(super) fn share(&self) -> Share {
        self.share
    }

    /// Whether it matters how long the next run takes.
    pub(super) fn is_timing(&self) -> bool {
        self.is_timing
    }

    /// A run is done. `took` is asked for where it matters.
    pub(super) fn ran(&mut self, took: impl FnOnce() -> Duration) {
        if self.is_timing && self.left <= TIMED {
            self.best = self.best.min(took());
        }
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        match (self.is_timing, self.share) {
            (false, _) => self.time(Share::All),
            (true, Share::All) if self.best > LONG => self.hold(Share::All),
            (true, Share::All) => {
                self.all = self.best;
                self.time(Share::One);
            }
            (true, Share::One) => self.hold(if self.best < self.all { Share::One } else { Share::All }),
        }
    }

    fn time(&mut self, share: Share) {
        (self.share, self.left, self.is_timing, self.best) = (share, TIMED + 1, true, Duration::MAX);
    }

    fn hold(&mut self, share: Share) {
        (self.share, self.left, self.is_timing) = (share, self.period, false);
        self.period = (2 * self.period).min(MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who computed each of some runs, which take so many microseconds.
    fn runs(choice: &mut ShareChoice, count: usize, micros: impl Fn(usize, Share) -> u64) -> Vec<Share> {
        let run = |number| {
            let share = choice.share();
            choice.ran(|| Duration::from_micros(micros(number, share)));
            share
        };
        (0..count).map(run).collect()
    }

    const COMPARED: usize = 2 * (TIMED as usize + 1);

    #[test]
    fn runs_are_on_one_thread_where_that_is_faster() {
        let mut choice = ShareChoice::default();
        // Some runs are disturbed, and the first of each kind.
        let took = |number, share| match share {
            _ if number % 5 < 2 => 900,
            Share::All => 57,
            Share::One => 46,
        };
        let all = runs(&mut choice, 10_000, took);
        assert!(all[COMPARED..][..FEWEST as usize].iter().all(|share| *share == Share::One));
        let on_all = all.iter().filter(|share| **share == Share::All).count();
        assert!(on_all <= 60, "{on_all} of 10,000 runs");
    }

    #[test]
    fn runs_are_on_all_threads_where_that_is_faster_and_change_when_it_is_not_any_more() {
        let mut choice = ShareChoice::default();
        let all = runs(&mut choice, COMPARED + 64, |_, share| if share == Share::All { 60 } else { 100 });
        assert!(all[COMPARED..].iter().all(|share| *share == Share::All));
        let later = runs(&mut choice, COMPARED + 1, |_, share| if share == Share::All { 160 } else { 100 });
        assert_eq!(later[COMPARED], Share::One);
    }

    #[test]
    fn long_runs_are_not_tried_on_one_thread() {
        let mut choice = ShareChoice::default();
        let all = runs(&mut choice, 1000, |_, _| 30_000);
        assert!(all.iter().all(|share| *share == Share::All));
    }

    #[test]
    fn nobody_looks_at_the_clock_between_comparisons() {
        let mut choice = ShareChoice::default();
        runs(&mut choice, COMPARED, |_, _| 10);
        assert!(!choice.is_timing());
        choice.ran(|| unreachable!("it does not matter how long the run takes"));
    }
}
