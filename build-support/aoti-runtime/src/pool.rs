//! A pool of persistent threads, fast enough that parallel loops of a few microseconds are worth splitting.
//!
//! Owns how a range is split and who wakes whom. The protocol by which borrowed work crosses threads, and with it all
//! `unsafe`, is [`Gate`]'s.
//!
//! Each worker first takes its own share of the range, the same share of the same range every time, so that the data
//! of one loop is still in its cache for the next; then it helps the others. A worker that has not woken by then is
//! not waited for. Workers spin for a moment after each loop, then sleep.

mod fork_join;

use self::fork_join::{ForkJoin, LONGEST};
use crate::{
    Executor,
    ffi::{gate::Gate, operator::keep_first},
};
use std::{
    any::Any,
    hint,
    num::NonZero,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Parts that each worker's share is cut into, so that fast workers can take from slow ones.
const PARTS_PER_SHARE: i64 = 4;
/// The most threads of a pool: more than processors have, and fewer than a [`Gate`] counts.
const MOST_THREADS: usize = 4096;
/// How long an idle worker looks for work before it sleeps: longer than the gap between two loops of one run.
const SPIN: Duration = Duration::from_micros(100);

/// Threads that run the parallel loops of models; the thread that asks takes part as worker 0.
///
/// One loop runs on the pool at a time. A loop asked for meanwhile, by another thread or from inside a loop, runs
/// whole on the thread that asks.
pub struct ThreadPool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    fork_join: ForkJoin,
}

struct Shared {
    gate: Gate,
    busy: AtomicBool,
    shares: Box<[Share]>,
    asleep: Box<[AtomicBool]>,
    stop: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    spin: Duration,
}

/// What is left of one worker's share of the range. On a cache line of its own, as each worker writes its own most.
#[repr(align(128))]
#[derive(Default)]
struct Share {
    next: AtomicI64,
    end: AtomicI64,
}

impl ThreadPool {
    /// A pool of `threads` in all, the asking thread included: 1 at least, and 4096 at most. Where the system refuses a thread,
    /// the pool is smaller.
    pub fn new(threads: usize) -> ThreadPool {
        let threads = threads.clamp(1, MOST_THREADS);
        // More threads than processors would spin in each other's way.
        let spin = if threads <= available() { SPIN } else { Duration::ZERO };
        let mut shares = Vec::new();
        shares.resize_with(threads, Share::default);
        let shared = Arc::new(Shared {
            gate: Gate::new(),
            busy: AtomicBool::new(false),
            asleep: shares.iter().map(|_| AtomicBool::new(false)).collect(),
            shares: shares.into(),
            stop: AtomicBool::new(false),
            panic: Mutex::new(None),
            spin,
        });
        let spawn = |worker: usize| {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name(format!("aoti-{worker}")).spawn(move || shared.work(worker)).ok()
        };
        let workers = (1..threads).map_while(spawn).collect();
        ThreadPool { shared, workers, fork_join: ForkJoin::new() }
    }

    /// The pool that generated `run` functions use, with a thread for each processor that this process may use. Made
    /// on first use and never ended.
    pub fn global() -> &'static ThreadPool {
        static GLOBAL: OnceLock<ThreadPool> = OnceLock::new();
        GLOBAL.get_or_init(|| ThreadPool::new(available()))
    }

    /// How long the threads take now to begin a loop together and end it: the middle of 15 loops. Waits for threads that do
    /// not come for two milliseconds at most. `None` for one thread, and where another thread uses the pool.
    pub fn measure_fork_join(&self) -> Option<Duration> {
        if self.workers.is_empty() || self.shared.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        let found = fork_join::measure(|| self.meet());
        self.shared.busy.store(false, Ordering::Release);
        self.fork_join.saw(found);
        Some(found)
    }

    /// What [`Executor::fork_join`] says of a pool where [`ThreadPool::measure_fork_join`] found this first.
    pub fn rounded_fork_join(found: Duration) -> Duration {
        fork_join::rounded(found)
    }
}

fn available() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

// SAFETY: `Shared::split` and `Shared::take` cover the range exactly once; worker numbers are those of the threads, of
// which there are `threads()`; `Gate::run` returns when every thread that joined has left, and none is left to join.
#[expect(unsafe_code, reason = "the trait's contract is upheld")]
unsafe impl Executor for ThreadPool {
    fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    fn fork_join(&self) -> Option<Duration> {
        if !self.workers.is_empty() && self.fork_join.is_due() {
            self.measure_fork_join();
        }
        self.fork_join.known()
    }

    fn parallel_for(&self, n: i64, body: &(dyn Fn(Range<i64>, usize) + Sync)) {
        let shared = &*self.shared;
        // Claims may overshoot a share by a part for each thread, so ranges near the end of i64 are not split.
        let splits = n > 1 && n < i64::MAX / 2 && !self.workers.is_empty();
        if !splits || shared.busy.swap(true, Ordering::Acquire) {
            if n > 0 {
                body(0..n, 0);
            }
            return;
        }
        let threads = self.threads() as i64;
        let part = shared.split(n, threads);
        let helpers = self.workers.len().min(n as usize - 1);
        shared.gate.run(&|worker| shared.take(worker, threads as usize, part, body), || self.wake(helpers));
        let panic = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        shared.busy.store(false, Ordering::Release);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl ThreadPool {
    /// A loop that ends when all threads have arrived, not when its work is done.
    fn meet(&self) -> Duration {
        let (threads, arrived) = (self.threads(), AtomicUsize::new(0));
        let begun = Instant::now();
        let arrive = |worker: usize| {
            arrived.fetch_add(1, Ordering::AcqRel);
            // The caller alone waits.
            while worker == 0 && arrived.load(Ordering::Acquire) < threads && begun.elapsed() < LONGEST {
                for _ in 0..64 {
                    if arrived.load(Ordering::Acquire) >= threads {
                        break;
                    }
                    hint::spin_loop();
                }
            }
        };
        self.shared.gate.run(&arrive, || self.wake(threads - 1));
        begun.elapsed()
    }

    fn wake(&self, helpers: usize) {
        for (handle, asleep) in self.workers.iter().zip(&self.shared.asleep[1..]).take(helpers) {
            if asleep.load(Ordering::SeqCst) && asleep.swap(false, Ordering::SeqCst) {
                handle.thread().unpark();
            }
        }
    }
}

impl Shared {
    /// Gives each worker its share of `0..n`; returns the length of the parts to take at a time.
    fn split(&self, n: i64, threads: i64) -> i64 {
        let (each, more) = (n / threads, n % threads);
        let mut begin = 0;
        for (worker, share) in self.shares.iter().take(threads as usize).enumerate() {
            let end = begin + each + i64::from((worker as i64) < more);
            share.next.store(begin, Ordering::Relaxed);
            share.end.store(end, Ordering::Relaxed);
            begin = end;
        }
        each / PARTS_PER_SHARE + 1
    }

    /// Runs parts until none is left: the worker's own first, then those of the workers after it.
    fn take(&self, worker: usize, threads: usize, part: i64, body: &(dyn Fn(Range<i64>, usize) + Sync)) {
        let run = || {
            for victim in (worker..threads).chain(0..worker) {
                let Share { next, end } = &self.shares[victim];
                let end = end.load(Ordering::Relaxed);
                while next.load(Ordering::Relaxed) < end {
                    let begin = next.fetch_add(part, Ordering::Relaxed);
                    if begin < end {
                        body(begin..end.min(begin + part), worker);
                    }
                }
            }
        };
        // The other threads still finish the range; the first panic goes on at the caller when they have.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
            keep_first(&self.panic, payload);
        }
    }

    /// The life of a worker thread.
    fn work(&self, worker: usize) {
        let mut seen = 0;
        loop {
            if self.spin_for_work(worker, &mut seen) {
                continue;
            }
            self.asleep[worker].store(true, Ordering::SeqCst);
            // Looked at again after saying so: whoever opened the gate before that saw us awake.
            if !self.stop.load(Ordering::SeqCst) && !self.gate.is_open_since(seen) {
                thread::park();
            }
            self.asleep[worker].store(false, Ordering::SeqCst);
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    /// Looks for work for a while; whether there was some.
    fn spin_for_work(&self, worker: usize, seen: &mut u64) -> bool {
        let start = Instant::now();
        loop {
            for _ in 0..64 {
                if self.gate.join(seen, worker) {
                    return true;
                }
                hint::spin_loop();
            }
            if start.elapsed() >= self.spin || self.stop.load(Ordering::Relaxed) {
                return false;
            }
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // Workers catch what the work panics with; there is nothing to learn from their end.
            drop(worker.join());
        }
    }
}

impl std::fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThreadPool").field("threads", &self.threads()).finish_non_exhaustive()
    }
}
