//! How fast this machine computes and reads: measured once, kept in the cache's folder, and what times of kernels are held against.

mod measure;
mod vectors;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use aoti_build::Machine;
use aoti_compiler::cost;
use aoti_compiler::loops::work::Work;
use aoti_runtime::ThreadPool;
use aoti_toolchain::FileAside;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The file's name, in the cache's folder.
const FILE: &str = "machine.json";

/// What a number of threads reach together.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Peaks {
    /// Billions of multiplications and additions of `f32` a second.
    pub gflop_per_s: f64,
    /// Caches, nearest first, and memory.
    pub levels: Vec<Level>,
    /// Nanoseconds that they take at best to begin and end a loop together; nothing where there is one.
    #[serde(default)]
    pub fork_join_ns: f64,
    /// How often they were measured, where the best of them is kept.
    #[serde(default)]
    times: u32,
}

/// Measurements of which the best is kept, one in each process that asks: what else runs takes from a rate for seconds.
const TIMES: u32 = 4;

/// When a machine is measured that was measured before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Again {
    /// As long as that was not often enough.
    Usual,
    /// Now, and what was measured before counts too.
    Better,
    /// Now, and what was measured before is forgotten.
    Anew,
}

/// Nanoseconds that the threads of a pool take now to begin a loop together and end it; nothing where there is one.
pub fn fork_join(pool: &ThreadPool) -> f64 {
    pool.measure_fork_join().map_or(0.0, |took| took.as_nanos() as f64)
}

/// How a machine is measured.
struct Measures<'a> {
    rates: &'a dyn Fn(&Machine, usize) -> Peaks,
    fork_join: &'a dyn Fn(usize) -> f64,
}

/// A cache, or memory.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Level {
    name: String,
    /// Bytes that it holds for all of the threads; none for memory.
    bytes: Option<u64>,
    /// Billions of bytes a second that are read from it.
    gb_per_s: f64,
}

/// What is kept: of each class of machines, which may share a folder, rates by number of threads.
type Kept = BTreeMap<String, BTreeMap<usize, Peaks>>;

impl Peaks {
    /// Those of this machine, from the cache's folder if they were measured before on one like it and not `again`.
    pub fn here(folder: Option<&Path>, threads: usize, again: bool) -> Peaks {
        let fork_join = |threads| fork_join(&ThreadPool::new(threads));
        let measures = Measures { rates: &measure::rates, fork_join: &fork_join };
        let again = if again { Again::Anew } else { Again::Usual };
        Peaks::of(&Machine::here(), folder, (threads, again), &measures)
    }

    /// Those of this machine, where a kernel was faster than they allow: the best of what was measured and of a new measurement.
    pub fn doubted(folder: Option<&Path>, threads: usize) -> Peaks {
        let fork_join = |threads| fork_join(&ThreadPool::new(threads));
        let measures = Measures { rates: &measure::rates, fork_join: &fork_join };
        Peaks::of(&Machine::here(), folder, (threads, Again::Better), &measures)
    }

    /// The best of both.
    fn better(self, other: &Peaks) -> Peaks {
        let best = |level: Level| {
            let others = other.levels.iter().filter(|own| own.name == level.name);
            let gb_per_s = others.fold(level.gb_per_s, |best, own| best.max(own.gb_per_s));
            Level { gb_per_s, ..level }
        };
        Peaks {
            gflop_per_s: self.gflop_per_s.max(other.gflop_per_s),
            levels: self.levels.into_iter().map(best).collect(),
            fork_join_ns: self.fork_join_ns,
            times: self.times + other.times,
        }
    }

    /// Keeps that threads of this machine took no longer than so many nanoseconds to begin and end a loop together.
    pub fn saw_fork_join(folder: Option<&Path>, threads: usize, nanoseconds: f64) {
        let measures = Measures { rates: &measure::rates, fork_join: &|_| nanoseconds };
        Peaks::of(&Machine::here(), folder, (threads, Again::Usual), &measures);
    }

    /// What runs are told of how long threads take to begin a loop together and end it, where that is as short as it ever is; 0
    /// where there is one.
    pub fn fork_join_of_runs(&self) -> u32 {
        let rounded = ThreadPool::rounded_fork_join(Duration::from_nanos(self.fork_join_ns as u64));
        if self.fork_join_ns > 0.0 { rounded.as_nanos() as u32 } else { 0 }
    }

    fn of(
        machine: &Machine,
        folder: Option<&Path>,
        (threads, again): (usize, Again),
        measures: &Measures<'_>,
    ) -> Peaks {
        let (path, class) = (folder.map(|folder| folder.join(FILE)), class(machine));
        let text = path.as_ref().and_then(|path| std::fs::read(path).ok());
        let mut kept: Kept = text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let own = kept.entry(class).or_default();
        let known = own.get(&threads).filter(|rates| rates.are_rates()).cloned();
        let measured = || Peaks { times: 1, ..(measures.rates)(machine, threads) };
        let mut rates = match (&known, again) {
            (Some(known), Again::Usual) if known.times >= TIMES => known.clone(),
            (Some(known), Again::Usual | Again::Better) => measured().better(known),
            (Some(_), Again::Anew) | (None, _) => measured(),
        };
        // Where threads are changes from minute to minute: the best that was ever seen counts, and is looked for each time.
        let seen = known.iter().map(|known| known.fork_join_ns).chain([(measures.fork_join)(threads)]);
        rates.fork_join_ns = seen.filter(|seen| *seen > 0.0).reduce(f64::min).unwrap_or(0.0);
        if known.as_ref() != Some(&rates) {
            own.insert(threads, rates.clone());
            // Where nothing can be kept, it is measured anew each time.
            let _ = path.map(|path| keep(&path, &kept));
        }
        rates
    }

    /// What was kept may have been edited.
    fn are_rates(&self) -> bool {
        let mut all = self.levels.iter().map(|level| level.gb_per_s).chain([self.gflop_per_s]);
        let is_time = self.fork_join_ns.is_finite() && self.fork_join_ns >= 0.0;
        is_time && !self.levels.is_empty() && all.all(|rate| rate.is_finite() && rate > 0.0)
    }

    /// Microseconds that work takes at least: for its operations, or for its bytes, from the nearest cache that holds them.
    pub fn least_micros(&self, work: Work) -> f64 {
        let bytes = work.read + work.written;
        let holds = |level: &&Level| level.bytes.is_none_or(|own| bytes <= own as f64);
        let level = self.levels.iter().find(holds).or(self.levels.last());
        let reading = level.map_or(0.0, |level| bytes / level.gb_per_s);
        (work.operations / self.gflop_per_s).max(reading) / 1e3
    }

    /// As locks have them, and builds price work by them.
    pub fn for_builds(&self) -> cost::Rates {
        let millions = |billions: f64| (billions * 1e3).round() as u64;
        let cache = |level: &Level| Some((level.bytes?, millions(level.gb_per_s)));
        let memory = self.levels.iter().find(|level| level.bytes.is_none());
        cost::Rates {
            mflop_per_s: millions(self.gflop_per_s),
            caches: self.levels.iter().filter_map(cache).collect(),
            memory_mb_per_s: memory.map_or(0, |memory| millions(memory.gb_per_s)),
        }
    }

    /// A machine without caches that reaches so much.
    pub fn fixed(gflop_per_s: f64, gb_per_s: f64) -> Peaks {
        let levels = vec![Level { name: "memory".to_owned(), bytes: None, gb_per_s }];
        Peaks { gflop_per_s, levels, fork_join_ns: 0.0, times: 1 }
    }

    /// In a line, for people.
    pub fn text(&self) -> String {
        let levels = self.levels.iter().map(|level| format!(", {} {:.0} GB/s", level.name, level.gb_per_s));
        let together = match self.fork_join_ns {
            0.0 => String::new(),
            nanoseconds => format!(", fork and join {:.2} us", nanoseconds / 1e3),
        };
        format!("{:.0} GFLOP/s{}{together}", self.gflop_per_s, levels.collect::<String>())
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let levels = self.levels.iter().map(
            |level| json!({ "name": level.name, "bytes": level.bytes, "gb_per_s": level.gb_per_s.round() }),
        );
        json!({
            "gflop_per_s": self.gflop_per_s.round(), "levels": levels.collect::<Vec<_>>(),
            "fork_join_ns": self.fork_join_ns.round(),
        })
    }
}

/// Machines of one class are equally fast, as this program was compiled.
fn class(machine: &Machine) -> String {
    let caches: Vec<String> = machine.caches.iter().map(|(level, kib)| format!("{level}:{kib}k")).collect();
    let optimised = if cfg!(debug_assertions) { ".unoptimised" } else { "" };
    let model = machine.class(std::env::consts::ARCH, "");
    format!("{model}.{}.{}{optimised}", machine.processors, caches.join("-"))
}

fn keep(path: &Path, kept: &Kept) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut aside = FileAside::new_in(folder)?;
    aside.file().write_all(&serde_json::to_vec_pretty(kept)?)?;
    aside.persist(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(gflop_per_s: f64) -> Peaks {
        let level =
            |name: &str, bytes: Option<u64>, gb_per_s: f64| Level { name: name.to_owned(), bytes, gb_per_s };
        Peaks {
            gflop_per_s,
            levels: vec![level("level 1 cache", Some(1000), 100.0), level("memory", None, 10.0)],
            fork_join_ns: 0.0,
            times: 1,
        }
    }

    #[test]
    fn work_takes_as_long_as_what_it_has_most_of() {
        let micros =
            |operations: f64, read: f64| rates(50.0).least_micros(Work { operations, read, written: 0.0 });
        assert_eq!(micros(1e6, 1.0), 20.0);
        assert_eq!(micros(1.0, 1000.0), 0.01, "as the nearest cache holds it");
        assert_eq!(micros(1.0, 2000.0), 0.2);
    }

    #[test]
    fn builds_are_told_in_whole_numbers() {
        let found = rates(271.466).for_builds();
        let own =
            cost::Rates { mflop_per_s: 271_466, caches: vec![(1000, 100_000)], memory_mb_per_s: 10_000 };
        assert_eq!(found, own);
        assert!(found.are_possible() && !rates(0.0001).for_builds().are_possible());
    }

    #[test]
    fn the_best_of_a_few_measurements_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (Machine { processors: 2, ..Machine::default() }, Machine::default());
        let next = std::cell::Cell::new(0.0);
        let measured = |machine: &Machine, threads: usize, again: Again, value: f64| {
            next.set(value);
            let measures = Measures { rates: &|_, _| rates(next.get()), fork_join: &|_| 0.0 };
            Peaks::of(machine, Some(folder.path()), (threads, again), &measures).gflop_per_s
        };
        let here = |threads: usize, value: f64| measured(&own, threads, Again::Usual, value);
        assert_eq!((here(1, 3.0), here(1, 2.0), here(1, 5.0)), (3.0, 3.0, 5.0), "a bad moment goes by");
        assert_eq!((here(1, 4.0), here(1, 9.0)), (5.0, 5.0), "that is often enough");
        assert_eq!(here(2, 1.0), 1.0, "with more threads it is another matter");
        assert_eq!(measured(&other, 1, Again::Usual, 7.0), 7.0, "of another kind");
        assert_eq!(here(1, 9.0), 5.0, "beside another");
        assert_eq!(measured(&own, 1, Again::Better, 4.0), 5.0, "what was doubted was right");
        assert_eq!(measured(&own, 1, Again::Better, 6.0), 6.0, "or it was not");
        assert_eq!((measured(&own, 1, Again::Anew, 2.0), here(1, 1.0)), (2.0, 2.0), "as asked");
        for broken in ["", "{}", "{\"machine\": 1}", "\u{feff}no JSON"] {
            std::fs::write(folder.path().join(FILE), broken).unwrap();
            assert_eq!(here(1, 0.5), 0.5, "{broken}");
        }
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        let zero = text.replace("\"gflop_per_s\": 0.5", "\"gflop_per_s\": 0.0");
        assert_ne!(zero, text);
        std::fs::write(folder.path().join(FILE), zero).unwrap();
        assert_eq!(here(1, 0.25), 0.25, "nothing takes for ever");
    }

    #[test]
    fn without_a_folder_it_is_measured_each_time() {
        let measures = Measures { rates: &|_, _| rates(5.0), fork_join: &|_| 0.0 };
        assert_eq!(Peaks::of(&Machine::default(), None, (1, Again::Usual), &measures), rates(5.0));
    }

    #[test]
    fn of_what_threads_took_to_begin_and_end_a_loop_the_least_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let seen = |nanoseconds: f64, again: bool| {
            let again = if again { Again::Anew } else { Again::Usual };
            let measures = Measures { rates: &|_, _| rates(1.0), fork_join: &|_| nanoseconds };
            Peaks::of(&Machine::default(), Some(folder.path()), (2, again), &measures).fork_join_ns
        };
        assert_eq!((seen(500.0, false), seen(400.0, false), seen(2000.0, false)), (500.0, 400.0, 400.0));
        assert_eq!(
            (seen(2000.0, true), seen(300.0, true)),
            (400.0, 300.0),
            "rates are what is measured again"
        );
        let path = folder.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        let old = text.replace("\"fork_join_ns\": 300.0", "\"another\": 1");
        assert_ne!(old, text);
        std::fs::write(&path, old).unwrap();
        assert_eq!(seen(600.0, false), 600.0, "nobody had looked");
    }

    #[test]
    fn what_is_measured_is_above_nothing() {
        let machine = Machine { caches: vec![(1, 32), (2, 256)], ..Machine::default() };
        let found = measure::rates(&machine, 2);
        assert!(found.are_rates(), "{found:?}");
        assert_eq!(
            found.levels.iter().map(|level| level.bytes).collect::<Vec<_>>(),
            [Some((2 * 32) << 10), Some((2 * 256) << 10), None]
        );
        assert!(
            found.text().contains("GFLOP/s, level 1 cache ") && found.text().ends_with("GB/s"),
            "{}",
            found.text()
        );
    }
}
