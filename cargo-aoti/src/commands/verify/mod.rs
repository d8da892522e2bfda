//! `verify`: compiles cases, runs each in a process of its own, and compares with what the case expects.

mod bisect;
mod child;
mod examine;
mod outcome;
mod place;
mod ranks;
mod reproduce;
mod sample;
mod tally;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use aoti_build::{Session, Settings, Tf32};
use aoti_runtime::Device;
use aoti_toolchain::Target;
use clap::Args;
use serde_json::json;

use super::{Context, print, print_json};
use crate::arguments::{Output, Rounding};
use crate::case::{self, Case, Format};
use crate::chosen::Chosen;
use crate::failure::Failure;
use crate::single;
use examine::Examiner;
use outcome::Outcome;
use place::{Check, Place};
use tally::Tally;

/// Compiles and runs cases, and compares the results with those expected
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Folders of cases (`model.pt2`, `inputs.safetensors`, `outputs.safetensors`), model files, or models of the project by name. A model is compared with the samples beside it
    /// (`net.safetensors` for `net.pt2`), else with the reference evaluator on random inputs
    #[arg(required = true)]
    path: Vec<PathBuf>,
    /// One of the model's programs, where it has several; it is compiled alone
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Models of this format only
    #[arg(long, value_enum, value_name = "FORMAT")]
    only: Option<Format>,
    /// Device to run on: `cpu`, `cuda`, or `cuda:1` for the second
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Device,
    /// Build for this target
    #[arg(long, value_name = "TRIPLE", conflicts_with = "reference")]
    target: Option<String>,
    /// Command that runs the target's programs here, such as `qemu-aarch64`; by default what cargo's
    /// CARGO_TARGET_<TRIPLE>_RUNNER names
    #[arg(long, value_name = "COMMAND", conflicts_with = "reference")]
    runner: Option<String>,
    /// Compile for this instruction-set level, or architecture of a GPU; by default for this machine's processor or GPU, or
    /// the target's levels
    #[arg(long, value_name = "LEVEL", conflicts_with = "reference")]
    level: Option<String>,
    /// Compile with this toolchain only, as `cargo aoti doctor` names it
    #[arg(long, value_name = "NAME", conflicts_with = "reference")]
    toolchain: Option<String>,
    /// Run at most N cases at once; by default as many as there are processors
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Time limit for each run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Run the interpreter, not native code
    #[arg(long)]
    reference: bool,
    /// Where a result differs, name the first value of the program that does, with its line of Python
    #[arg(long, conflicts_with_all = ["reference", "target", "sanitize"])]
    bisect: bool,
    /// Run nothing; build each model twice, in different folders and without the cache, and compare all files
    #[arg(long, conflicts_with_all = ["reference", "sanitize", "bisect"])]
    reproduce: bool,
    /// Compile with sanitizers, comma-separated; a finding fails its case
    #[arg(long, value_enum, value_name = "NAMES", value_delimiter = ',', conflicts_with = "reference")]
    sanitize: Vec<Check>,
    #[command(flatten)]
    count: crate::ranks::Count,
    #[command(flatten)]
    rounding: Rounding,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Threads that each model runs on
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    if arguments.count.ranks.is_some() {
        let Arguments { reference, bisect, reproduce, sanitize, target, .. } = arguments;
        if *reference || *bisect || *reproduce || !sanitize.is_empty() || target.is_some() {
            let message =
                "`--ranks` compares what ranks compute on this machine, and takes no other way of running";
            return Err(Failure::Usage(message.to_owned()));
        }
        return report(arguments, ranks::examine_all(arguments, context)?);
    }
    let mut cases = Vec::new();
    // Samples that are made up go away with these.
    let mut made = Vec::new();
    for path in &arguments.path {
        if path.is_dir() {
            cases.extend(case::find(path, arguments.only)?);
        } else {
            let (case, folder) = sample::case(
                &Chosen::find(path, context)?.program(arguments.program.as_deref())?,
                arguments,
                context,
            )?;
            cases.push(case);
            made.push(folder);
        }
    }
    if cases.is_empty() {
        return Err(Failure::User("there are no cases at or below these paths".to_owned()));
    }
    if arguments.reproduce {
        return reproduce::run(arguments, context, &cases);
    }
    let width = arguments
        .jobs
        .map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let counts = examine_all(arguments, context, &cases, width.min(cases.len()))?;
    report(arguments, counts)
}

/// Says how many passed; an error where one did not.
fn report(arguments: &Arguments, [passed, failed, skipped]: [usize; 3]) -> Result<(), Failure> {
    let message = format!("{passed} passed, {failed} failed, {skipped} skipped");
    if arguments.output.is_json() {
        print_json(&json!({
            "reason": "aoti-summary", "passed": passed, "failed": failed, "skipped": skipped, "message": message,
        }));
    } else {
        print(&(message + "\n"));
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Reported) }
}

/// Examines all cases on so many threads and reports each as it is done.
fn examine_all(
    arguments: &Arguments,
    context: &Context,
    cases: &[Case],
    width: usize,
) -> Result<[usize; 3], Failure> {
    let examiners = (0..width).map(|_| examiner(arguments, context)).collect::<Result<Vec<_>, _>>()?;
    let (next, mut tally) = (AtomicUsize::new(0), Tally::new(cases.len(), context.terminal));
    let (sender, receiver) = mpsc::channel::<Outcome>();
    std::thread::scope(|scope| {
        for examiner in examiners {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if sender.send(examiner.examine(case)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for outcome in receiver {
            tally.add(&outcome, || {
                if arguments.output.is_json() {
                    print_json(&outcome.json());
                } else {
                    outcome.print(context.terminal.is_verbose());
                }
            });
        }
    });
    Ok(tally.finish())
}

/// Each thread builds one case at a time with one tool at a time; the cases are what runs side by side.
fn examiner(arguments: &Arguments, context: &Context) -> Result<Examiner, Failure> {
    let place = Place::of(arguments, &context.environment)?;
    let mut settings = Settings { jobs: Some(1), ..Settings::default() };
    settings.target = arguments.target.clone().map(Target::new);
    settings.toolchain.clone_from(&arguments.toolchain);
    settings.mode.sanitize = arguments.sanitize.iter().map(|check| check.sanitizer()).collect();
    let session = Session::new(&context.environment, settings)?;
    if place != Place::Interpreter {
        // Without one no case has a chance, and it is not the cases' fault.
        session.toolchain()?;
    }
    let levels = match &arguments.level {
        Some(level) => {
            single::check_level(&session, arguments.device, level)?;
            vec![level.clone()]
        }
        None if *session.target() == *context.environment.host() => vec!["native".to_owned()],
        None => Vec::new(),
    };
    Ok(Examiner {
        session,
        device: arguments.device,
        place,
        levels,
        // What cases expect was computed in `f32`.
        numerics: arguments.rounding.or(Tf32::NONE),
        timeout: Duration::from_secs(arguments.timeout),
        threads: arguments.threads,
        bisect: arguments.bisect,
    })
}
