//! An executor on the threads of rayon, for programs that use rayon anyway.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};

use ::rayon::{Scope, ThreadPool};

use crate::Executor;

/// Parts for each worker, so that fast ones can take from slow ones.
const PARTS: i64 = 4;

/// Runs the parallel loops of models on rayon's threads. The thread that asks takes part.
///
/// For programs that use rayon anyway: one set of threads then serves both. [`ThreadPool`](crate::ThreadPool) answers
/// quicker, which matters where loops take microseconds, and does not allocate.
#[derive(Clone, Copy)]
pub struct Rayon<'p> {
    pool: Option<&'p ThreadPool>,
    threads: usize,
}

impl Rayon<'static> {
    /// Rayon's global pool, or, inside another one, that.
    pub fn current() -> Rayon<'static> {
        Rayon { pool: None, threads: ::rayon::current_num_threads() }
    }
}

impl<'p> Rayon<'p> {
    /// A pool of one's own.
    pub fn pool(pool: &'p ThreadPool) -> Rayon<'p> {
        Rayon { pool: Some(pool), threads: pool.current_num_threads() }
    }
}

// SAFETY: `next` hands out each part of the range once, until the range is exhausted. Worker numbers count the jobs of one
// call, of which there are at most as many as threads, and each job runs once. The scope ends when all jobs have.
#[expect(unsafe_code, reason = "the trait's contract is upheld")]
unsafe impl Executor for Rayon<'_> {
    fn threads(&self) -> usize {
        self.threads.max(1)
    }

    fn parallel_for(&self, n: i64, body: &(dyn Fn(Range<i64>, usize) + Sync)) {
        let threads = i64::try_from(self.threads()).unwrap_or(i64::MAX);
        let workers = threads.min(n);
        if workers <= 1 {
            return if n > 0 {
                body(0..n, 0)
            };
        }
        let part = (n / threads.saturating_mul(PARTS)).max(1);
        let next = AtomicI64::new(0);
        let after = |begin: i64| begin.saturating_add(part).min(n);
        let take = || {
            let more = |begin| (begin < n).then(|| after(begin));
            next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
        };
        let work = |worker: usize| {
            while let Some(begin) = take() {
                body(begin..after(begin), worker);
            }
        };
        match self.pool {
            Some(pool) => pool.in_place_scope(|scope| share(scope, workers as usize, &work)),
            None => ::rayon::in_place_scope(|scope| share(scope, workers as usize, &work)),
        }
    }
}

/// Has each worker do its part of the work, this thread as the first.
fn share<'s>(scope: &Scope<'s>, workers: usize, work: &'s (dyn Fn(usize) + Sync)) {
    for worker in 1..workers {
        scope.spawn(move |_| work(worker));
    }
    work(0);
}

impl fmt::Debug for Rayon<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rayon").field("threads", &self.threads).finish_non_exhaustive()
    }
}
