//! Measures how fast this machine computes and reads.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use aoti_build::Machine;

use super::vectors;
use super::{Level, Peaks};

/// Times that each rate is measured: the best counts, as everything else that runs only takes time away.
const TRIES: usize = 6;
/// How long a try takes at least.
const LEAST: Duration = Duration::from_millis(3);
/// Rounds of computation between looks at the clock.
const ROUNDS: usize = 4096;
/// Bytes that are read between looks at the clock.
const LOOK: usize = 1 << 20;
/// Bytes that each thread reads at least, however small its part of a cache is.
const LEAST_BYTES: u64 = 16 << 10;
/// Bytes that are read from memory: so many times the largest cache, but no fewer and no more than these.
const TIMES: u64 = 4;
const FAR: u64 = 64 << 20;
const MOST_FAR: u64 = 512 << 20;
/// Bytes of a cache line, which what is read begins with.
const LINE: usize = 64;

/// Measures with so many threads.
pub(crate) fn rates(machine: &Machine, threads: usize) -> Peaks {
    let mut levels = Vec::new();
    for (level, kib) in &machine.caches {
        // Larger caches are shared: each thread has its part of them.
        let (count, bytes) = (threads as u64, kib << 10);
        let (own, all) = if *level > 2 { (bytes / count, bytes) } else { (bytes, bytes * count) };
        let (name, gb_per_s) = (format!("level {level} cache"), reading(threads, (own / 2).max(LEAST_BYTES)));
        levels.push(Level { name, bytes: Some(all), gb_per_s });
    }
    let largest = machine.caches.iter().map(|(_, kib)| kib << 10).max();
    let far = largest.map_or(FAR, |bytes| (bytes * TIMES).clamp(FAR, MOST_FAR));
    let memory = reading(threads, far / threads as u64);
    levels.push(Level { name: "memory".to_owned(), bytes: None, gb_per_s: memory });
    let gflop_per_s = rate(threads, 0, &|_| vectors::multiply_adds(ROUNDS));
    Peaks { gflop_per_s, levels, fork_join_ns: 0.0, times: 1 }
}

/// Billions of bytes a second that threads read, each from memory of its own of this length.
fn reading(threads: usize, bytes: u64) -> f64 {
    let count = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<f32>();
    rate(threads, count, &|data| {
        let times = LOOK.div_ceil(size_of_val(data).max(1));
        (0..times).for_each(|_| vectors::read(data));
        (times * size_of_val(data)) as f64
    })
}

/// Billions a second of what `once` gives the amount of, by threads that begin together, each with so many numbers.
fn rate(threads: usize, count: usize, once: &(dyn Fn(&[f32]) -> f64 + Sync)) -> f64 {
    let barrier = Barrier::new(threads);
    let own = || -> Vec<f64> {
        let data = vec![1.0f32; count + LINE / size_of::<f32>()];
        let data = &data[data.as_ptr().align_offset(LINE)..][..count];
        let one = |_| {
            barrier.wait();
            let (begun, mut amount) = (Instant::now(), 0.0);
            while begun.elapsed() < LEAST {
                amount += once(data);
            }
            amount / begun.elapsed().as_nanos().max(1) as f64
        };
        (0..TRIES).map(one).collect()
    };
    let all: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(own)).collect();
        started.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let of_try = |number: usize| all.iter().filter_map(|own| own.get(number)).sum::<f64>();
    (0..TRIES).map(of_try).fold(0.0, f64::max)
}
