//! What it costs to share work: how long threads take to begin a loop together and end it.
//!
//! It depends on where the system, or a hypervisor, has put the threads: processors that share a cache hand over a line
//! several times as fast as others. As that may change from minute to minute, it is measured now and then.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Loops of which the middle one counts.
const LOOPS: usize = 15;
/// Loops before those at most, in which threads start or wake up.
const WAKING: usize = 5;
/// How long a thread is waited for that others keep from its processor.
pub(super) const LONGEST: Duration = Duration::from_micros(200);
/// How long what was measured is taken to hold: so long that measuring, which takes two milliseconds where a thread does not
/// come, costs next to nothing.
const PERIOD: Duration = Duration::from_millis(100);

/// What the last measurement found, and when the next is due.
pub(super) struct ForkJoin {
    /// When it was asked for the first time: where there are no threads there may be no clock either.
    begun: OnceLock<Instant>,
    /// Nanoseconds after `begun`.
    due: AtomicU64,
    /// Nanoseconds, rounded; 0 before the first measurement.
    known: AtomicU32,
}

impl ForkJoin {
    pub(super) fn new() -> ForkJoin {
        ForkJoin { begun: OnceLock::new(), due: AtomicU64::new(0), known: AtomicU32::new(0) }
    }

    /// Whether it is time to measure again, which is said to one of those who ask.
    pub(super) fn is_due(&self) -> bool {
        let (now, due) = (self.begun.get_or_init(Instant::now).elapsed(), self.due.load(Ordering::Relaxed));
        let next = (now + PERIOD).as_nanos() as u64;
        now.as_nanos() as u64 >= due
            && self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// What was measured last.
    pub(super) fn known(&self) -> Option<Duration> {
        let known = self.known.load(Ordering::Relaxed);
        (known > 0).then(|| Duration::from_nanos(known.into()))
    }

    /// Takes note of a measurement. What is about as long as what is known leaves it: how work is shared should not change
    /// from run to run.
    pub(super) fn saw(&self, found: Duration) {
        let is_about = |known: Duration| known * 2 <= found * 3 && found * 2 <= known * 3;
        if !self.known().is_some_and(is_about) {
            self.known.store(rounded(found).as_nanos() as u32, Ordering::Relaxed);
        }
    }
}

/// The power of two, in nanoseconds, that is the nearest by its ratio.
pub(super) fn rounded(found: Duration) -> Duration {
    let found = (found.as_nanos() as u64).clamp(1, 1 << 30);
    let above = found.next_power_of_two();
    Duration::from_nanos(if 2 * found * found < above * above { above / 2 } else { above })
}

/// The middle of some loops, each of which `meet` times; [`LONGEST`] where threads do not come.
pub(super) fn measure(meet: impl Fn() -> Duration) -> Duration {
    if (0..WAKING).all(|_| meet() >= LONGEST) {
        return LONGEST;
    }
    let mut all = [Duration::ZERO; LOOPS];
    let mut late = 0;
    for took in &mut all {
        *took = meet();
        late += usize::from(*took >= LONGEST);
        // The middle one is late, whatever comes.
        if late > LOOPS / 2 {
            return LONGEST;
        }
    }
    all.sort_unstable();
    all[LOOPS / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const fn nanos(nanoseconds: u64) -> Duration {
        Duration::from_nanos(nanoseconds)
    }

    #[test]
    fn the_nearest_power_of_two_is_the_one_with_the_least_ratio() {
        for (found, expected) in
            [(0, 1), (1, 1), (3, 4), (181, 128), (182, 256), (256, 256), (362, 256), (363, 512)]
        {
            assert_eq!(rounded(nanos(found)), nanos(expected), "{found}");
        }
        assert_eq!(rounded(Duration::MAX / 2).as_nanos(), 1 << 30);
    }

    #[test]
    fn what_is_about_the_same_changes_nothing() {
        let own = ForkJoin::new();
        assert_eq!(own.known(), None);
        for (found, expected) in
            [(250, 256), (380, 256), (171, 256), (1100, 1024), (700, 1024), (260, 256), (500, 512)]
        {
            own.saw(nanos(found));
            assert_eq!(own.known(), Some(nanos(expected)), "{found}");
        }
    }

    #[test]
    fn one_of_those_who_ask_measures() {
        let own = ForkJoin::new();
        assert!(own.is_due() && !own.is_due());
        own.due.store(0, Ordering::Relaxed);
        assert!(own.is_due());
    }

    #[test]
    fn the_middle_counts_and_threads_that_do_not_come_are_not_waited_for_long() {
        let meetings = Cell::new(0);
        let after = |took: fn(u32) -> Duration| {
            meetings.set(0);
            let found = measure(|| {
                meetings.set(meetings.get() + 1);
                took(meetings.get())
            });
            (found, meetings.get())
        };
        assert_eq!(after(|_| LONGEST), (LONGEST, 5));
        // Wakes at the third; some of the others are disturbed.
        assert_eq!(
            after(|k| if k < 3 || k % 3 == 0 { LONGEST } else { nanos(300) }),
            (nanos(300), 3 + 15 + 1)
        );
        assert_eq!(after(|k| if k == 1 { nanos(300) } else { LONGEST }), (LONGEST, 1 + 8));
    }
}
