//! The thread pool covers every range exactly once, whoever asks.

use aoti_runtime::{Executor, Rayon, ThreadPool};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

fn covers_once(pool: &dyn Executor, n: i64) {
    let seen: Vec<AtomicU32> = (0..n).map(|_| AtomicU32::new(0)).collect();
    let running: Vec<AtomicBool> = (0..pool.threads()).map(|_| AtomicBool::new(false)).collect();
    pool.parallel_for(n, &|part, worker| {
        assert!(!running[worker].swap(true, Ordering::SeqCst), "two parts with one worker number");
        for i in part {
            seen[i as usize].fetch_add(1, Ordering::Relaxed);
        }
        running[worker].store(false, Ordering::SeqCst);
    });
    assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{n}");
}

#[test]
fn every_range_is_covered_once() {
    for threads in [0, 1, 2, 3, 5] {
        let pool = ThreadPool::new(threads);
        assert_eq!(pool.threads(), threads.max(1));
        for n in [-1, 0, 1, 2, 3, 4, 7, 64, 1000] {
            (0..20).for_each(|_| covers_once(&pool, n));
        }
    }
}

#[test]
fn sleeping_workers_wake() {
    let pool = ThreadPool::new(2);
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(3));
        let both = AtomicI64::new(0);
        pool.parallel_for(2, &|part, _| {
            both.fetch_add(part.end - part.start, Ordering::SeqCst);
            let start = Instant::now();
            while both.load(Ordering::SeqCst) < 2 && start.elapsed() < Duration::from_secs(20) {
                std::thread::yield_now();
            }
        });
        assert_eq!(both.into_inner(), 2);
    }
}

#[test]
fn a_pool_knows_what_sharing_costs() {
    let alone = ThreadPool::new(1);
    assert_eq!((alone.fork_join(), alone.measure_fork_join()), (None, None));
    let pool = ThreadPool::new(2);
    let first = pool.fork_join().expect("it is measured when it is asked for");
    assert!(first.as_nanos().is_power_of_two(), "{first:?}");
    // From inside a loop, the pool is not free to measure; what is known stays.
    pool.parallel_for(2, &|_, _| {
        assert_eq!(pool.measure_fork_join(), None);
        assert!(pool.fork_join().is_some());
    });
    let now = pool.measure_fork_join().expect("nobody uses the pool");
    assert!(now > Duration::ZERO && now < Duration::from_secs(1), "{now:?}");
    covers_once(&pool, 1000);
}

#[test]
fn nested_and_concurrent_loops_are_whole() {
    let pool = ThreadPool::new(3);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let sum = AtomicI64::new(0);
                    pool.parallel_for(10, &|outer, _| {
                        for i in outer {
                            pool.parallel_for(10, &|inner, _| {
                                sum.fetch_add(inner.map(|j| i * 10 + j).sum(), Ordering::Relaxed);
                            });
                        }
                    });
                    assert_eq!(sum.into_inner(), (0..100).sum::<i64>());
                }
            });
        }
    });
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
    let pool = ThreadPool::new(2);
    for bad in 0..8 {
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.parallel_for(8, &|part, _| assert!(!part.contains(&bad), "part {bad}"));
        }));
        assert!(result.is_err());
        covers_once(&pool, 100);
    }
}

/// Not a bound that every machine keeps, so printed and not asserted: run with `--nocapture`.
#[test]
fn the_cost_of_a_loop_is_told() {
    let pool = ThreadPool::new(2);
    let mut times: Vec<Duration> = (0..2000)
        .map(|_| {
            let start = Instant::now();
            pool.parallel_for(2, &|part, _| {
                std::hint::black_box(part);
            });
            start.elapsed()
        })
        .collect();
    times.sort();
    println!("parallel_for of nothing on 2 threads: median {:?}", times[1000]);
}

#[test]
fn threads_of_rayon_cover_every_range_once() {
    for threads in [1, 2, 3, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let executor = Rayon::pool(&pool);
        assert_eq!(executor.threads(), threads);
        for n in [-1, 0, 1, 2, 3, 4, 7, 64, 1000] {
            (0..20).for_each(|_| covers_once(&executor, n));
            // From within too, where threads that wait help others.
            pool.install(|| covers_once(&Rayon::current(), n));
        }
        let ends = Mutex::new(Vec::new());
        executor.parallel_for(i64::MAX, &|part, _| ends.lock().unwrap().push((part.start, part.end)));
        let mut ends = ends.into_inner().unwrap();
        ends.sort_unstable();
        assert_eq!((ends[0].0, ends[ends.len() - 1].1), (0, i64::MAX));
        assert!(ends.is_sorted_by(|a, b| a.1 == b.0), "{ends:?}");
    }
}
