//! `conform [--filter SUBSTR] [--failures-only] [--text] PATH...`: runs conformance cases on the reference evaluator.
//!
//! A case is a folder with `model.pt2`, `inputs.safetensors` and `outputs.safetensors` (keys "0", "1", ...) and
//! perhaps `case.json` (`atol`, `rtol`). Each is imported, decomposed, verified, evaluated and compared; no native code
//! is made. With `--text` the graph is printed and parsed too, and must come back equal.
//! A development aid: `cargo aoti verify` is the tool for users.

mod case;
mod compare;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Cases run side by side.
const THREADS: usize = 2;

/// Bodies of control flow nest on the stack of the thread that runs a case.
const STACK_BYTES: usize = 64 << 20;

#[derive(Default)]
struct Options {
    filter: String,
    failures_only: bool,
    text: bool,
    paths: Vec<PathBuf>,
}

/// What became of a case.
#[derive(Clone)]
struct Outcome {
    name: String,
    seconds: f64,
    failure: Option<case::Failure>,
}

fn main() -> ExitCode {
    let Some(options) = parse(std::env::args().skip(1)) else {
        eprintln!("usage: conform [--filter SUBSTR] [--failures-only] [--text] PATH...");
        return ExitCode::from(2);
    };
    let mut cases = Vec::new();
    for path in &options.paths {
        collect(path, &mut cases);
    }
    cases.retain(|path| path.to_string_lossy().contains(&options.filter));
    cases.sort();
    // A panic is a failure of its case and is reported there.
    std::panic::set_hook(Box::new(|_| {}));
    let outcomes = run_all(&cases, &options);
    summarise(&outcomes);
    if outcomes.iter().all(|outcome| outcome.failure.is_none()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn parse(arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options::default();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--filter" => options.filter = arguments.next()?,
            "--failures-only" => options.failures_only = true,
            "--text" => options.text = true,
            _ if argument.starts_with('-') => return None,
            _ => options.paths.push(PathBuf::from(argument)),
        }
    }
    (!options.paths.is_empty()).then_some(options)
}

fn collect(path: &Path, cases: &mut Vec<PathBuf>) {
    if path.join("model.pt2").is_file() {
        cases.push(path.to_owned());
        return;
    }
    let Ok(entries) = std::fs::read_dir(path) else {
        eprintln!("cannot read {}", path.display());
        return;
    };
    for entry in entries.flatten() {
        if entry.path().is_dir() {
            collect(&entry.path(), cases);
        }
    }
}

fn run_all(cases: &[PathBuf], options: &Options) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            let work = || {
                while let Some(path) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = run_one(path, options.text);
                    print(&outcome, options.failures_only);
                    outcomes.lock().expect("no holder panics").push(outcome);
                }
            };
            std::thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, work)
                .expect("the system has two threads");
        }
    });
    let mut outcomes = outcomes.into_inner().expect("no holder panics");
    outcomes.sort_by(|a: &Outcome, b: &Outcome| a.name.cmp(&b.name));
    outcomes
}

fn run_one(path: &Path, text: bool) -> Outcome {
    let name = path.file_name().map_or_else(|| "?".to_owned(), |name| name.to_string_lossy().into_owned());
    let start = Instant::now();
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| case::run(&name, path, text)));
    let failure = match result {
        Ok(result) => result.err(),
        Err(payload) => Some(case::Failure::new("panic", panic_text(&*payload))),
    };
    Outcome { name, seconds: start.elapsed().as_secs_f64(), failure }
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

fn print(outcome: &Outcome, failures_only: bool) {
    let (name, seconds) = (&outcome.name, outcome.seconds);
    match &outcome.failure {
        Some(failure) => {
            println!(
                "fail {} {name} ({seconds:.2} s): {}",
                failure.stage,
                failure.reason.replace('\n', "\n    ")
            );
        }
        None if failures_only => {}
        None => println!("pass {name} ({seconds:.2} s)"),
    }
}

fn summarise(outcomes: &[Outcome]) {
    let mut stages: BTreeMap<&str, usize> = BTreeMap::new();
    let mut operators: BTreeMap<&str, usize> = BTreeMap::new();
    for failure in outcomes.iter().filter_map(|outcome| outcome.failure.as_ref()) {
        *stages.entry(failure.stage).or_default() += 1;
        for operator in &failure.unsupported {
            *operators.entry(operator).or_default() += 1;
        }
    }
    let mut operators: Vec<(&str, usize)> = operators.into_iter().collect();
    operators.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    if !operators.is_empty() {
        println!("\nunsupported operators, by cases:");
        for (operator, cases) in operators {
            println!("{cases:6} {operator}");
        }
    }
    let failed: usize = stages.values().sum();
    let stages: Vec<String> = stages.iter().map(|(stage, count)| format!("{count} {stage}")).collect();
    println!("\n{} passed, {failed} failed [{}]", outcomes.len() - failed, stages.join(", "));
}
