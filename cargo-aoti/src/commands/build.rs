//! `build`: compiles the models of a cargo project.

use std::collections::BTreeSet;
use std::time::Instant;

use aoti_build::{Built, Error, Job, Layout, Session, Settings};
use aoti_toolchain::Target;
use cargo_metadata::Package;
use clap::{Args, ValueEnum};
use serde_json::json;

use super::{Context, print_json};
use crate::arguments::Output;
use crate::failure::{self, Failure};
use crate::progress::Shown;
use crate::project::{Project, Selection, profile_folder, shown};
use crate::timings::Timings;

/// Compiles the models of a cargo project into target/aoti/<profile>/<triple>/<package>/<model>/
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Build for this target; by default for those of cargo's `build.target`, else for the host
    #[arg(long, value_name = "TRIPLE")]
    target: Vec<String>,
    /// Build for the release profile (kernels are optimised in every profile)
    #[arg(short, long, conflicts_with = "profile")]
    release: bool,
    /// Build for this profile
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Run at most N native tools at once; if negative, N fewer than there are processors; or `default`
    #[arg(short, long, value_name = "N", value_parser = jobs, allow_hyphen_values = true)]
    jobs: Option<Jobs>,
    /// Accepted for compatibility with cargo: a failed model never stops the others
    #[arg(long)]
    keep_going: bool,
    /// Message format; `json` prints one object per line on stdout, the last with the reason `build-finished`
    #[arg(long, value_enum, default_value = "human", value_name = "FORM")]
    message_format: MessageFormat,
    /// Say how long each tool took and whether its result was in the cache, and write a page about it (target/aoti/timings.html)
    #[arg(long)]
    timings: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    selection: Selection,
}

/// How many tools at once; none for as many as there are processors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Jobs(Option<i64>);

/// Reads a number of jobs, for clap.
fn jobs(text: &str) -> Result<Jobs, String> {
    match text.parse::<i64>() {
        Ok(0) => Err("there must be at least one".to_owned()),
        Ok(number) => Ok(Jobs(Some(number))),
        Err(_) if text == "default" => Ok(Jobs(None)),
        Err(_) => Err("neither a number nor `default`".to_owned()),
    }
}

impl Jobs {
    fn tools(self) -> Option<usize> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let tools = |number: i64| match usize::try_from(number) {
            Ok(number) => number,
            Err(_) => processors.saturating_sub(usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX)),
        };
        self.0.map(|number| tools(number).max(1))
    }
}

impl Arguments {
    fn is_json(&self) -> bool {
        self.message_format == MessageFormat::Json || self.output.is_json()
    }

    /// The targets: those of the command line, else of cargo's configuration, else the host.
    fn targets(&self, context: &Context) -> Vec<Option<Target>> {
        let named = if self.target.is_empty() { &context.settings.targets } else { &self.target };
        let host = context.environment.host().to_string();
        let mut targets: Vec<String> =
            named.iter().map(|name| if name == "host-tuple" { host.clone() } else { name.clone() }).collect();
        targets.dedup();
        if targets.is_empty() {
            vec![None]
        } else {
            targets.into_iter().map(|name| Some(Target::new(name))).collect()
        }
    }
}

/// The page about the last build with `--timings`, beside the artefacts.
const TIMINGS: &str = "timings.html";

/// Form of messages.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum MessageFormat {
    Human,
    Short,
    Json,
}

/// One model with the package that it is of.
struct Planned<'a> {
    package: &'a Package,
    job: Job,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let begun = Instant::now();
    let result = build(arguments, context, begun);
    if arguments.is_json() {
        result
            .as_ref()
            .err()
            .into_iter()
            .flat_map(Failure::findings)
            .for_each(|finding| print_json(&finding));
        print_json(&json!({ "reason": "build-finished", "success": result.is_ok() }));
    }
    result
}

fn build(arguments: &Arguments, context: &Context, begun: Instant) -> Result<(), Failure> {
    let project = Project::open(&arguments.selection, context)?;
    let jobs = arguments.jobs.unwrap_or(Jobs(context.settings.jobs)).tools();
    let (mut planned, mut results) = (Vec::new(), Vec::new());
    let progress = Shown::new(context.terminal);
    let timings = Timings::new(&progress);
    for note in notes(arguments, context, &project)? {
        context.terminal.warn(&note);
    }
    for target in arguments.targets(context) {
        let locked = arguments.selection.is_locked();
        let settings = Settings { target, jobs, locked, ..Settings::default() };
        let session = Session::new(&context.environment, settings)?;
        let models = plan(arguments, context, &project, &session)?;
        let jobs: Vec<Job> = models.iter().map(|planned| planned.job.clone()).collect();
        results.extend(session.build(&jobs, &timings));
        planned.extend(models);
    }
    progress.finish();
    let timings = timings.done();
    if arguments.timings {
        let page = project.target_directory.join("aoti").join(TIMINGS);
        timings.write(&page)?;
        if arguments.is_json() {
            timings.json().iter().for_each(print_json);
        } else {
            anstream::eprint!("{}", timings.table());
        }
        context.terminal.status("Timing", &format!("report saved to {}", shown(&page, context)));
    }
    if planned.is_empty() {
        let help = "put a model into `models/` or name one in `[package.metadata.aoti.models]`";
        context.terminal.warn(&format!("there are no models to build; {help}"));
        return Ok(());
    }
    report(arguments, context, &planned, results, begun)
}

/// What the owners of the packages should know of their manifests; a table of the workspace is read once for each package.
fn notes(arguments: &Arguments, context: &Context, project: &Project) -> Result<BTreeSet<String>, Failure> {
    let packages = project.packages(&arguments.selection, context)?.into_iter();
    let manifests = packages.filter_map(|package| project.manifest(package).ok());
    Ok(manifests.flat_map(|manifest| manifest.notes).collect())
}

/// What is to be built; every problem of every manifest at once.
fn plan<'a>(
    arguments: &Arguments,
    context: &Context,
    project: &'a Project,
    session: &Session,
) -> Result<Vec<Planned<'a>>, Failure> {
    let profile = match (&arguments.profile, arguments.release) {
        (Some(profile), _) => profile.as_str(),
        (None, true) => "release",
        (None, false) => "dev",
    };
    let is_plain = profile.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if profile.is_empty() || !is_plain {
        return Err(Failure::Usage(format!("`{profile}` is not the name of a profile")));
    }
    let (mut planned, mut problems) = (Vec::new(), Vec::new());
    for package in project.packages(&arguments.selection, context)? {
        match project.manifest(package) {
            Err(found) => problems.extend(found.0),
            Ok(manifest) => planned.extend(manifest.models.into_iter().map(|model| {
                let layout = Layout::of_target(
                    &project.target_directory,
                    profile_folder(profile),
                    session.target().as_str(),
                    &package.name,
                    &model.identifier(),
                );
                Planned { package, job: Job { model, layout, incremental: true } }
            })),
        }
    }
    // A table of the workspace is read once for each package.
    problems.dedup();
    if problems.is_empty() {
        return Ok(planned);
    }
    Err(aoti_build::Problems(problems).into())
}

fn report(
    arguments: &Arguments,
    context: &Context,
    planned: &[Planned<'_>],
    results: Vec<Result<Built, Error>>,
    begun: Instant,
) -> Result<(), Failure> {
    let json = arguments.is_json();
    let (mut failures, mut fresh, count) = (Vec::new(), 0, results.len());
    for (planned, result) in planned.iter().zip(results) {
        match result {
            Ok(built) => {
                fresh += usize::from(built.fresh);
                if json {
                    artifact(planned, &built);
                } else {
                    if built.name != built.identifier {
                        let (name, module) = (&built.name, &built.identifier);
                        context.terminal.status("Named", &format!("model `{name}` is the module `{module}`"));
                    }
                    let folder = shown(&planned.job.layout.folder, context);
                    context.terminal.detail("Artefacts", &folder);
                }
            }
            Err(error) => failures.push((planned, error)),
        }
    }
    let millis = begun.elapsed().as_millis();
    if failures.is_empty() {
        let models = if count == 1 { "model" } else { "models" };
        let done = match fresh {
            all if all == count => "nothing to do".to_owned(),
            0 => String::from("all built"),
            some => format!("{some} up to date"),
        };
        context.terminal.status("Finished", &format!("{count} {models} in {millis} ms ({done})"));
        return Ok(());
    }
    let (mut all_machine, mut told) = (true, Vec::new());
    for (planned, error) in &failures {
        let failure = Failure::from_reference(error);
        all_machine &= failure.exit_code() == 3;
        if json {
            diagnostics(planned, error);
        }
        let (name, path) = (&planned.job.model.name, shown(&planned.job.model.path, context));
        if arguments.message_format == MessageFormat::Short {
            let first = error.to_string().lines().next().unwrap_or_default().to_owned();
            context.terminal.failure(&Failure::User(format!("{path}: {first}")));
        } else {
            context.terminal.status("Failed", &format!("{name} ({path})"));
            // One cause, such as a missing compiler, is told once.
            let text = failure.message().map(str::to_owned);
            if !told.contains(&text) {
                context.terminal.failure(&failure);
                told.push(text);
            }
        }
    }
    Err(if all_machine { Failure::ReportedMachine } else { Failure::Reported })
}

fn artifact(planned: &Planned<'_>, built: &Built) {
    let files = built.artefacts.iter().map(|artefact| {
        json!({ "kind": artefact.kind, "path": artefact.path, "bytes": artefact.bytes, "digest": artefact.digest })
    });
    print_json(&json!({
        "reason": "aoti-artifact",
        "package_id": planned.package.id,
        "manifest_path": planned.package.manifest_path,
        "model": built.name,
        "identifier": built.identifier,
        "symbol": built.symbol,
        "fresh": built.fresh,
        "compile_ms": built.compile_ms,
        "files": files.collect::<Vec<_>>(),
    }));
}

/// The findings, each with the model that it is of.
fn diagnostics(planned: &Planned<'_>, error: &Error) {
    let model = &planned.job.model;
    for mut finding in failure::of_error(error) {
        finding["package_id"] = json!(planned.package.id);
        (finding["model"], finding["path"]) = (json!(model.name), json!(model.path));
        print_json(&finding);
    }
}
