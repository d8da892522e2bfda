//! How work is cut into parts that threads get: as `parallel`, `grain` and `loop_grain` of `run.h` do it.

use super::MachineInfo;
use crate::constants;

/// Parts that each thread gets of long work (`kPartsOfThread` of `run.h`), and how much more than what is worth a thread is in
/// each where there are more parts than threads (`kGrainsOfPart`).
const PARTS_OF_THREAD: i64 = constants::PARTS_OF_THREAD;
const GRAINS_OF_PART: i64 = constants::GRAINS_OF_PART;
/// Nanoseconds that threads take to begin a loop together and end it, where nobody knows (`kForkJoin`).
pub(crate) const FORK_JOIN: u32 = constants::FORK_JOIN as u32;

/// Work of which threads get parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkSplit {
    /// All of it.
    pub work: i64,
    /// How much is worth a thread where these take [`FORK_JOIN`] to begin and end.
    pub enough: i64,
    /// How much is always one thread's.
    pub unit: i64,
    /// Whether it is a loop over elements (`loop_grain`).
    pub is_loop: bool,
}

impl WorkSplit {
    /// Work that is one thread's.
    pub fn none() -> WorkSplit {
        WorkSplit { work: 1, enough: 1, unit: 1, is_loop: false }
    }

    /// Parts, each of which is worth a thread.
    fn worth(self, facts: MachineInfo) -> i64 {
        let fork_join = if facts.fork_join_ns == 0 { FORK_JOIN } else { facts.fork_join_ns };
        let fork_join = if self.is_loop { fork_join.max(FORK_JOIN) } else { fork_join };
        let enough = i128::from(self.enough) * i128::from(fork_join) / i128::from(FORK_JOIN);
        (i128::from(self.work) / enough.max(self.unit.into()).max(1)).max(1) as i64
    }

    /// Threads that have a part.
    pub(crate) fn busy(self, facts: MachineInfo) -> f64 {
        self.worth(facts).min(facts.threads()) as f64
    }

    /// Parts that there are.
    pub(crate) fn parts(self, facts: MachineInfo) -> i64 {
        let (threads, worth) = (facts.threads(), self.worth(facts));
        if threads == 1 {
            return 1;
        }
        let parts = worth.min((worth / GRAINS_OF_PART).clamp(threads, PARTS_OF_THREAD * threads));
        if parts > threads { parts - parts % threads } else { parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_runs_cut_them() {
        let parts = |tenths: i64, more_threads| {
            let facts = MachineInfo { more_threads, ..MachineInfo::default() };
            WorkSplit { work: tenths * 100, enough: 1000, unit: 10, is_loop: false }.parts(facts)
        };
        let of_two = [5, 19, 20, 30, 70, 80, 120, 160, 230, 240, 1000].map(|tenths| parts(tenths, 1));
        assert_eq!(of_two, [1, 1, 2, 2, 2, 2, 2, 4, 4, 6, 8]);
        assert_eq!((parts(70, 2), parts(200, 2), parts(70, 0)), (3, 3, 1));
        assert_eq!(WorkSplit::none().parts(MachineInfo { more_threads: 3, ..MachineInfo::default() }), 1);
    }

    #[test]
    fn less_work_is_worth_a_thread_that_is_near() {
        let shares = WorkSplit { work: 4000, enough: 4096, unit: 10, is_loop: false };
        let parts = |fork_join_ns| {
            shares.parts(MachineInfo { more_threads: 3, fork_join_ns, ..MachineInfo::default() })
        };
        assert_eq!([0, 1024, 512, 256, 64, 8, 4096].map(parts), [1, 1, 1, 3, 4, 16, 1]);
        let of_loop = |fork_join_ns| {
            let facts = MachineInfo { more_threads: 3, fork_join_ns, ..MachineInfo::default() };
            WorkSplit { work: 40000, is_loop: true, ..shares }.parts(facts)
        };
        assert_eq!([0, 1024, 256, 8, 4096].map(of_loop), [4, 4, 4, 4, 2]);
        assert_eq!(
            WorkSplit { unit: 2000, ..shares }.busy(MachineInfo {
                more_threads: 3,
                fork_join_ns: 8,
                ..MachineInfo::default()
            }),
            2.0
        );
    }
}
