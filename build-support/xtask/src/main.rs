//! Development tasks of this repository, run as `cargo xtask <task>`.
//!
//! Owns the list of tasks only: each task is a module that reads its own arguments.

mod clock;
mod demo;
mod dist;
mod examples;
mod queue;
mod refit;
mod regenerate;
mod replay;
mod setup;
mod systems;
mod test;
mod workspace;

use std::process::ExitCode;

/// One task: its name, what it does, and the function that does it.
struct Task {
    name: &'static str,
    summary: &'static str,
    run: fn(&[String]) -> anyhow::Result<()>,
}

const TASKS: &[Task] = &[
    Task { name: "demo", summary: "compile the example's model and read pictures with it", run: demo::run },
    Task { name: "test", summary: "formatting, tests, the examples, lints", run: test::run },
    Task {
        name: "dist",
        summary: "make the archive of a release; with --target, for another system",
        run: dist::run,
    },
    Task {
        name: "refit",
        summary: "fit the prices of the cost model to the log that `tune` keeps",
        run: refit::run,
    },
    Task {
        name: "regenerate",
        summary: "rewrite generated files that are committed; with --check, only say whether they are fresh",
        run: regenerate::run,
    },
    Task {
        name: "replay",
        summary: "compare what the compiler prints at two commits, byte for byte",
        run: replay::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        usage();
        return ExitCode::from(2);
    };
    // What `test` has cargo and the system run for it.
    match name.as_str() {
        "queued" => return queue::queued(rest).map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS),
        "timed" => return clock::timed(rest).unwrap_or_else(|error| failed(&error)),
        _ => {}
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprintln!("error: no task is named `{name}`\n");
        usage();
        return ExitCode::from(2);
    };
    match (task.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}

fn usage() {
    eprintln!("usage: cargo xtask <task> [arguments]\n");
    for task in TASKS {
        eprintln!("  {:<12} {}", task.name, task.summary);
    }
}
