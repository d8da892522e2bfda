//! How long threads take to begin and end a loop together: what it costs to share work.
//!
//! It depends on where the system, or a hypervisor, has put the threads: processors that share a cache hand over a line
//! several times as fast as others. That may change from minute to minute, and with it which way of a small kernel is the
//! fastest.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use aoti_runtime::{Executor, ThreadPool};

/// Loops of which the middle one counts.
const LOOPS: usize = 15;
/// Loops before those at most, in which threads start or wake up.
const WAKING: usize = 50;
/// How long a thread is waited for that others keep from its processor.
const LONGEST: Duration = Duration::from_micros(200);
/// Looks at what has arrived between looks at the clock.
const LOOKS: usize = 64;

/// Nanoseconds from the beginning of a loop, of which each thread has one part, to its end; nothing where there is one thread.
pub(crate) fn fork_join(pool: &ThreadPool) -> f64 {
    if pool.threads() < 2 {
        return 0.0;
    }
    let _ = (0..WAKING).find(|_| once(pool) < LONGEST);
    let mut all: Vec<Duration> = (0..LOOPS).map(|_| once(pool)).collect();
    all.sort_unstable();
    all[LOOPS / 2].as_nanos() as f64
}

/// A loop that ends when all threads have arrived, not when its work is done.
fn once(pool: &ThreadPool) -> Duration {
    let (threads, arrived) = (pool.threads() as i64, AtomicI64::new(0));
    let begun = Instant::now();
    pool.parallel_for(threads, &|part, worker| {
        arrived.fetch_add(part.end - part.start, Ordering::AcqRel);
        // The caller alone waits: the others are free to take what a late one leaves.
        while worker == 0 && arrived.load(Ordering::Acquire) < threads && begun.elapsed() < LONGEST {
            for _ in 0..LOOKS {
                if arrived.load(Ordering::Acquire) >= threads {
                    break;
                }
                std::hint::spin_loop();
            }
        }
    });
    begun.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharing_takes_time_and_a_thread_alone_shares_nothing() {
        assert_eq!(fork_join(&ThreadPool::new(1)), 0.0);
        let found = fork_join(&ThreadPool::new(2));
        assert!(found > 0.0 && found < 1e9, "{found}");
    }
}
