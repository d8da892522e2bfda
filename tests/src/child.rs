//! A test that runs itself as a child process over a range of seeds, and what the child tells it through files.
//!
//! The child writes which seed it is at before it goes there, so that one that crashes, hangs or is killed says where.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Where a child is told its folder, its first seed and how many there are.
const FOLDER: &str = "AOTI_CHILD_FOLDER";
const FIRST: &str = "AOTI_CHILD_FIRST";
const COUNT: &str = "AOTI_CHILD_COUNT";
/// The first seed of the first child.
const ORIGIN: &str = "AOTI_CHILD_ORIGIN";

/// What one seed may take: a thousand times what most do.
const PATIENCE: Duration = Duration::from_secs(60);
/// Resident memory that no seed may reach.
const MOST_MEMORY: u64 = 1 << 30;

/// What a run of a program may take of a processor whose loops are its own: machines have other things to do as well.
const RUN_PATIENCE: Duration = Duration::from_secs(3);
/// How a child exits that gave up on such a run.
const ENDLESS: i32 = 77;

/// What the variable says, if it is set.
pub fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("the variable holds a number"))
}

/// What a test found.
#[derive(Default, Debug)]
pub struct Outcome {
    /// One text a finding, with its seed.
    pub findings: Vec<String>,
    counts: BTreeMap<String, u64>,
    /// Seeds of runs that were given up.
    endless: Vec<u64>,
    seconds: f64,
}

impl Outcome {
    /// Says what was counted; fails where there are findings.
    #[track_caller]
    pub fn report(&self, what: &str) {
        eprintln!("{what}: {self}");
        assert!(self.findings.is_empty(), "{}", self.findings.join("\n"));
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count) in &self.counts {
            write!(f, "{count} {what}, ")?;
        }
        if !self.endless.is_empty() {
            write!(f, "{} without an end (seeds {:?}), ", self.endless.len(), self.endless)?;
        }
        write!(f, "{} findings, {:.0} s", self.findings.len(), self.seconds)
    }
}

/// A test to run again.
#[derive(Debug)]
pub struct Child {
    /// Its name.
    pub test: String,
    /// The library that the child needs loaded before all others.
    pub preload: Option<PathBuf>,
    /// The first seed.
    pub first: u64,
    /// How many there are.
    pub count: u64,
}

impl Child {
    /// Runs children until every seed has had its turn.
    pub fn run(&self) -> Outcome {
        let start = Instant::now();
        let folder = tempfile::tempdir().expect("a folder for what children tell");
        let (mut outcome, mut next, end) = (Outcome::default(), self.first, self.first + self.count);
        while next < end {
            let output =
                self.command(folder.path(), next, end - next).output().expect("a test can be started");
            let log = fs::read_to_string(folder.path().join("findings")).unwrap_or_default();
            outcome.findings.extend(log.split_terminator("\0").map(str::to_owned));
            let _ = fs::remove_file(folder.path().join("findings"));
            let at = seed_in(folder.path()).unwrap_or(next);
            next = if output.status.success() { end } else { at + 1 };
            if output.status.code() == Some(ENDLESS) {
                outcome.endless.push(at);
            } else if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                let said: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(40).collect();
                outcome.findings.push(format!("seed {at}: {}\n{}", output.status, said.join("\n")));
            }
            outcome.add_counts(folder.path());
        }
        outcome.seconds = start.elapsed().as_secs_f64();
        outcome
    }

    fn command(&self, folder: &Path, first: u64, count: u64) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("a test knows where it lies"));
        command.args(["--exact", &self.test, "--nocapture", "--test-threads", "1"]);
        command.env(FOLDER, folder).env(ORIGIN, self.first.to_string());
        command.env(FIRST, first.to_string()).env(COUNT, count.to_string());
        if let Some(library) = &self.preload {
            // The harness leaks; a size that no memory holds is an error of the run.
            command.env("LD_PRELOAD", library);
            command.env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=16");
            command.env("UBSAN_OPTIONS", "print_stacktrace=1");
        }
        command
    }
}

fn seed_in(folder: &Path) -> Option<u64> {
    fs::read_to_string(folder.join("seed")).ok()?.parse().ok()
}

impl Outcome {
    fn add_counts(&mut self, folder: &Path) {
        let counts = fs::read_to_string(folder.join("counts")).unwrap_or_default();
        for line in counts.lines() {
            *self.counts.entry(line.to_owned()).or_default() += 1;
        }
        let _ = fs::remove_file(folder.join("counts"));
    }
}

/// The child's side: where it is, for the watch that is kept over it.
#[derive(Debug)]
pub struct Turn {
    folder: PathBuf,
    counts: fs::File,
    origin: u64,
}

static BEGUN: Mutex<Option<Begun>> = Mutex::new(None);

/// When a seed had its turn, and what the process had taken of processors by then.
#[derive(Clone, Copy)]
struct Begun {
    at: Instant,
    taken: Duration,
}
static SEED: AtomicU64 = AtomicU64::new(0);
/// Whether a program runs, which may go on for ever by its own fault.
static RUNNING: AtomicBool = AtomicBool::new(false);

impl Turn {
    /// The batches that seeds up to `end` come in, whichever child begins at `first`: those that hold seeds of its own.
    pub fn batches(&self, first: u64, end: u64, size: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let batches = (self.origin..end).step_by(usize::try_from(size).expect("batches are small"));
        batches.map(move |start| start..(start + size).min(end)).filter(move |batch| batch.end > first)
    }

    /// Does something in the folder that a name stands for, in which the next child finds what this one left, should it end
    /// before that is done.
    pub fn in_folder<T>(&self, name: &str, work: impl FnOnce(&Path) -> T) -> T {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).expect("the parent made the folder above");
        let result = work(&folder);
        let _ = fs::remove_dir_all(&folder);
        result
    }

    /// Goes to the next seed.
    pub fn at(&self, seed: u64) {
        fs::write(self.folder.join("seed"), seed.to_string()).expect("the parent made the folder");
        SEED.store(seed, Ordering::Relaxed);
        *BEGUN.lock().expect("nobody panics while holding it") =
            Some(Begun { at: Instant::now(), taken: processor_time() });
    }

    /// Does what takes long for many seeds, such as calling a compiler.
    pub fn untimed<T>(&self, work: impl FnOnce() -> T) -> T {
        *BEGUN.lock().expect("nobody panics while holding it") = None;
        work()
    }

    /// Goes to the next seed, of which a program is run.
    pub fn runs<T>(&self, seed: u64, run: impl FnOnce() -> T) -> T {
        self.at(seed);
        RUNNING.store(true, Ordering::Relaxed);
        let result = run();
        RUNNING.store(false, Ordering::Relaxed);
        result
    }

    /// Counts something that the parent tells at the end.
    pub fn count(&self, what: &str) {
        writeln!(&self.counts, "{what}").expect("the parent made the folder");
    }

    /// Tells of something that must not be.
    pub fn finding(&self, seed: u64, text: &str) {
        let path = self.folder.join("findings");
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        write!(file.expect("the parent made the folder"), "seed {seed}: {text}\0")
            .expect("it can be written");
    }

    /// Does something with a seed that may panic or need too much memory, which are findings.
    pub fn guarded<T>(&self, seed: u64, work: impl FnOnce() -> T) -> Option<T> {
        self.at(seed);
        reset_peak();
        let result = catch_unwind(AssertUnwindSafe(work));
        if let Some(peak) = peak().filter(|peak| *peak > MOST_MEMORY) {
            self.finding(seed, &format!("needs {peak} bytes"));
        }
        if result.is_err() {
            let said = PANIC.lock().expect("nobody panics while holding it").clone();
            self.finding(seed, &said);
        }
        result.ok()
    }
}

static PANIC: Mutex<String> = Mutex::new(String::new());

/// Where this process is a child, does its work and ends.
pub fn here(work: impl FnOnce(&mut Turn, u64, u64)) {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = PathBuf::from(folder);
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        *PANIC.lock().expect("nobody panics while holding it") = text;
    }));
    std::thread::spawn(watch);
    let counts = fs::OpenOptions::new().create(true).append(true).open(folder.join("counts"));
    let counts = counts.expect("the parent made the folder");
    let mut turn = Turn { folder, counts, origin: number(ORIGIN, 0) };
    work(&mut turn, number(FIRST, 0), number(COUNT, 0));
    std::process::exit(0);
}

/// Ends the process where one seed takes too long, by the processor's time where that is told: as endless where a
/// program runs, whose loops are its own.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let Some(begun) = *BEGUN.lock().expect("nobody panics while holding it") else { continue };
        let taken = processor_time().saturating_sub(begun.taken);
        let runs = RUNNING.load(Ordering::Relaxed);
        if runs && taken > RUN_PATIENCE {
            std::process::exit(ENDLESS);
        }
        // What is kept waiting goes on when others are done.
        let waits = !taken.is_zero() && taken < PATIENCE;
        if begun.at.elapsed() > PATIENCE && !waits {
            eprintln!("seed {} takes more than {PATIENCE:?}", SEED.load(Ordering::Relaxed));
            std::process::abort();
        }
    }
}

/// What this process has taken of processors; Linux alone tells, in hundredths of a second. Elsewhere none, so that a run may
/// take as long as all else.
pub fn processor_time() -> Duration {
    let line = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold blanks: the state, ten numbers, and the time in programs and in the system.
    let numbers = line.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().skip(11).take(2);
    Duration::from_millis(10 * numbers.filter_map(|number| number.parse::<u64>().ok()).sum::<u64>())
}

/// Forgets the most memory that this process had; Linux alone tells.
fn reset_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn processor_time_passes_with_work_and_not_with_waiting() {
        let begun = processor_time();
        std::thread::sleep(Duration::from_millis(100));
        let waited = processor_time();
        while processor_time() < waited + Duration::from_millis(100) {}
        assert!(waited.saturating_sub(begun) < Duration::from_millis(100));
    }
}
