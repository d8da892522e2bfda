//! Executors, which run the parts of a parallel loop: the trait that connects a model to threads, and the
//! implementation without threads.

use std::ops::Range;
use std::time::Duration;

/// Runs the parallel loops of a model. Implement it to make models share the threads of a program. Runs of a few milliseconds
/// or less are timed now and then, and stay on the calling thread where they are faster there.
///
/// # Safety
///
/// Generated code relies on what follows to stay inside its buffers. For each call, `parallel_for` must
/// * call `body` on ranges that cover `0..n` exactly once;
/// * pass a worker number below [`Executor::threads`], the same to no two calls that run at one time;
/// * return normally, and only when every call of `body` has returned.
///
/// `threads` must be at least 1 and must not change. `parallel_for` must work when called from several threads at
/// once, because one executor may serve several runs.
#[expect(unsafe_code, reason = "what implementations promise, generated code relies on for memory safety")]
pub unsafe trait Executor: Sync {
    /// How many worker numbers there are.
    fn threads(&self) -> usize;

    /// Fork-join latency, if known; queried once per run. A loop is split only if each thread gets at least about this much
    /// work; if unknown, about a microsecond.
    fn fork_join(&self) -> Option<Duration> {
        None
    }

    /// Runs `body(part, worker)` over parts of `0..n`, returning when all are done.
    fn parallel_for(&self, n: i64, body: &(dyn Fn(Range<i64>, usize) + Sync));
}

/// Runs everything on the calling thread.
#[derive(Clone, Copy, Default, Debug)]
pub struct Inline;

// SAFETY: one call covers the whole range as worker 0, and ends before this does.
#[expect(unsafe_code, reason = "the trait's contract is upheld")]
unsafe impl Executor for Inline {
    fn threads(&self) -> usize {
        1
    }

    fn parallel_for(&self, n: i64, body: &(dyn Fn(Range<i64>, usize) + Sync)) {
        if n > 0 {
            body(0..n, 0);
        }
    }
}
