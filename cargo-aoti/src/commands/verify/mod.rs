//! `verify`: compiles cases, runs each in a process of its own, and compares with what the case expects.

mod child;
mod examine;
mod outcome;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use aoti_build::{Session, Settings};
use clap::{Args, ValueEnum};

use super::bench::Device;
use super::{Context, print};
use crate::case::{self, Case, Format};
use crate::failure::Failure;
use examine::Examiner;
use outcome::{Outcome, Status};

/// Compiles and runs cases, and compares the results with those expected
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Folders of cases
    #[arg(required = true)]
    path: Vec<PathBuf>,
    /// Models of this format only
    #[arg(long, value_enum, value_name = "FORMAT")]
    only: Option<Format>,
    /// Device to run on; only `cpu` works yet
    #[arg(long, value_enum, default_value = "cpu")]
    device: Device,
    /// Build for this target (not yet: every case fails and says so)
    #[arg(long, value_name = "TRIPLE", requires = "runner")]
    target: Option<String>,
    /// Program that runs the target's programs here (not yet: every case fails and says so)
    #[arg(long, value_name = "COMMAND", requires = "target")]
    runner: Option<String>,
    /// So many cases at once; by default as many as there are processors
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Seconds after which a run has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Run the interpreter, not native code
    #[arg(long)]
    reference: bool,
    /// Compile with these sanitizers, comma-separated: address, undefined
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "reference")]
    sanitize: Vec<String>,
    /// Form of the report
    #[arg(long, value_enum, default_value = "human", value_name = "FORM")]
    format: ReportFormat,
    /// Threads that each model runs on
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
}

/// Form of the report.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum ReportFormat {
    /// A line for each case that did not pass
    Human,
    /// One object a line
    Json,
}

const SANITIZERS: [&str; 2] = ["address", "undefined"];

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    if let Some(unknown) = arguments.sanitize.iter().find(|name| !SANITIZERS.contains(&name.as_str())) {
        return Err(Failure::Usage(format!(
            "there is no sanitizer `{unknown}`; known are `address`, `undefined`"
        )));
    }
    let mut cases = Vec::new();
    for path in &arguments.path {
        cases.extend(case::find(path, arguments.only)?);
    }
    if cases.is_empty() {
        return Err(Failure::User("there are no cases at or below these paths".to_owned()));
    }
    let width = arguments
        .jobs
        .map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let counts = examine_all(arguments, context, &cases, width.min(cases.len()))?;
    let [passed, failed, skipped] = counts;
    print(&format!("{passed} passed, {failed} failed, {skipped} skipped\n"));
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
    let (next, mut counts) = (AtomicUsize::new(0), [0; 3]);
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
            counts[match outcome.status {
                Status::Pass => 0,
                Status::Fail => 1,
                Status::Skip => 2,
            }] += 1;
            match arguments.format {
                ReportFormat::Json => super::print_json(&outcome.json()),
                ReportFormat::Human => outcome.print(context.terminal.is_verbose()),
            }
        }
    });
    Ok(counts)
}

/// Each thread builds one case at a time with one tool at a time; the cases are what runs side by side.
fn examiner(arguments: &Arguments, context: &Context) -> Result<Examiner, Failure> {
    let mut settings = Settings { jobs: Some(1), ..Settings::default() };
    settings.mode.sanitize.clone_from(&arguments.sanitize);
    if !arguments.sanitize.is_empty() {
        // Its sanitizers are shared libraries, which a process that opens the model can load first.
        settings.toolchain = Some("gcc".to_owned());
    }
    let session = Session::new(&context.environment, settings)?;
    let preload = session.sanitizer_runtimes(&arguments.sanitize)?;
    if preload.len() != arguments.sanitize.len() {
        let message = "gcc has no shared libraries of these sanitizers; install them (libasan, libubsan)";
        return Err(Failure::Machine(message.to_owned()));
    }
    Ok(Examiner {
        session,
        refusal: refusal(arguments),
        reference: arguments.reference,
        timeout: Duration::from_secs(arguments.timeout),
        threads: arguments.threads,
        preload,
    })
}

/// Why no case can be run as asked for, if so. Cases then fail, each: what was to be proved has not been.
fn refusal(arguments: &Arguments) -> Option<String> {
    let target = arguments.target.as_ref();
    let of_target = || {
        target.map(|target| format!("cases cannot be run for another target (`{target}`) by this version"))
    };
    arguments.device.refusal().or_else(of_target)
}
