//! `tune`: measures the ways to run the kernels of models on this machine, and writes the fastest to `aoti.lock`.

mod findings;
mod level;
mod page;
mod plan;
mod points;
mod records;
mod report;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aoti_build::{Choices, Lock, Machine, Model, Place, Record, Runner, Session, Settings, Silent, Sizes};
use aoti_compiler::compile::OpenKernel;
use aoti_compiler::cost::{MachineInfo, Rates};
use aoti_compiler::schedule::{Records, Setting, TuningStage};
use aoti_runtime::Device;
use aoti_toolchain::temporary_folder;
use clap::Args;

use super::Context;
use crate::arguments::{Output, Rounding};
use crate::dims;
use crate::failure::Failure;
use crate::progress::Shown;
use crate::project::Selection;
use aoti_tune::groups::{Group, groups, questions};
use aoti_tune::log::{self, Circumstances};
use aoti_tune::machine::{Comparison, Machine as Measuring};
use aoti_tune::outcome::Outcome;
use aoti_tune::peaks::Peaks as Reached;
use aoti_tune::search::Search;
use findings::Findings;
use plan::Planned;
use points::Point;

/// Measures the ways to run the kernels of models and writes the fastest to aoti.lock, which builds use
///
/// Each candidate is compiled as in a build, run in a process of its own with inputs of the model's sizes, and compared
/// with what the kernel should give before it may win. All measurements are appended to tuning.jsonl in the cache's folder.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Models of the project, by name, or model files and folders of cases; by default all models of the project
    model: Vec<String>,
    /// Time to spend on each model, compiling included
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = budget)]
    budget: Duration,
    /// Device to run on: `cpu`, `cuda`, or `cuda:1` for the second
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Device,
    /// Threads to run on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// Measure only this kernel; may be repeated
    #[arg(long, value_name = "KERNEL")]
    only: Vec<String>,
    /// Write nothing; report what would change, and fail if a recorded choice is slower than the default
    #[arg(long)]
    check: bool,
    /// Re-measure kernels even if the cache has results from machines of this class
    #[arg(long)]
    again: bool,
    /// List the candidates without measuring them
    #[arg(long, conflicts_with = "check")]
    dry_run: bool,
    /// Write a page about what was measured
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    html: Option<PathBuf>,
    /// Size of a dynamic dimension, for random inputs; if several are given, each is measured. By default the sizes that the
    /// manifest lists for the model, else the smallest
    #[arg(long, value_name = "NAME=SIZE", value_parser = dims::parse)]
    dim: Vec<(String, i64)>,
    /// Inputs under the keys "0", "1", … or their names, for one model
    #[arg(long, value_name = "FILE", conflicts_with = "dim")]
    inputs: Option<PathBuf>,
    #[command(flatten)]
    rounding: Rounding,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    selection: Selection,
}

/// Reads `90`, `90s`, `2m` or `1h`.
fn budget(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        _ => (text, 1.0),
    };
    let seconds =
        number.parse::<f64>().map_err(|_| "expected a time such as `60s` or `5m`".to_owned())? * unit;
    if (1.0..=86_400.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("not between a second and a day".to_owned())
    }
}

/// What is measured before the kernels that it makes, in order, the part of the budget that goes to it in one go, and how
/// often it does: where kernels stay apart, there may be further pairs.
const BEFORE: [(TuningStage, f64, usize); 2] = [(TuningStage::Graph, 0.2, 1), (TuningStage::Fusion, 0.25, 2)];

/// The time that there is for one model.
#[derive(Clone, Copy)]
struct Clock {
    begun: Instant,
    budget: Duration,
}

impl Clock {
    fn left(self) -> Duration {
        self.budget.saturating_sub(self.begun.elapsed())
    }

    /// Whether there may be no time to measure what is found now.
    fn is_half_over(self) -> bool {
        self.left() < self.budget / 2
    }
}

/// What one search is to do, and what time it has.
#[derive(Clone, Copy)]
struct Task<'a> {
    subject: &'a Subject<'a>,
    /// Of the budget of the model.
    share: Duration,
    clock: Clock,
    /// Where the model's weights lie.
    weights: &'a Path,
    /// The least nanoseconds that threads are known to take to begin and end a loop together.
    fork_join: Option<f64>,
}

impl Task<'_> {
    /// The first library had to be made whatever that takes.
    fn budget(&self) -> Duration {
        self.share.min(self.clock.left())
    }
}

/// What the measurements of one model are of.
struct Subject<'a> {
    planned: &'a Planned,
    /// When it is decided what is measured.
    stage: TuningStage,
    /// What is decided already, which is no more among the groups.
    decided: Records,
    /// The model as it is built for this machine alone.
    model: Model,
    machine: String,
    compiler: String,
    groups: Vec<Group>,
    /// What it is measured at.
    point: &'a Point,
    /// Records of this machine that there are, and what it reaches.
    lock: Lock,
    /// What builds price work by, once that is written.
    rates: Option<Rates>,
    /// What the cache knows of kernels that have no record, which are not among the groups.
    known: Vec<(Place, Record)>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let session = Session::new(&context.environment, Settings::default())?;
    let planned = plan::plan(arguments, context)?;
    if arguments.inputs.is_some() && planned.len() != 1 {
        return Err(Failure::Usage("`--inputs` is for one model".to_owned()));
    }
    let (mut slower, reached) = (0, reached(arguments, context));
    for planned in &planned {
        if !arguments.check && !arguments.dry_run {
            Lock::check_writable(&planned.lock)?;
        }
        slower += model(arguments, context, &session, planned, reached.as_ref())?;
    }
    if let Some(path) = &arguments.html {
        page::write(path, &planned.iter().flat_map(|own| own.told.take()).collect::<Vec<_>>())?;
        context.terminal.status("Wrote", &crate::project::shown(path, context));
    }
    if slower > 0 && arguments.check {
        let records = if slower == 1 { "record is" } else { "records are" };
        return Err(Failure::User(format!("{slower} {records} slower than the default")));
    }
    Ok(())
}

/// Tunes one model; gives the number of records that are slower than what is taken without.
fn model(
    arguments: &Arguments,
    context: &Context,
    session: &Session,
    planned: &Planned,
    reached: Option<&Reached>,
) -> Result<usize, Failure> {
    let fork_join = reached.map(|reached| reached.fork_join_ns);
    let facts = MachineInfo {
        has_units: Machine::here().has_units,
        more_threads: arguments.threads.saturating_sub(1),
        fork_join_ns: reached.map_or(0, Reached::fork_join_of_runs),
    };
    let rates = reached.map(Reached::for_builds).filter(Rates::are_possible);
    let rates = rates.as_ref();
    let clock = Clock { begun: Instant::now(), budget: arguments.budget };
    let alone = level::alone(session, &planned.model, arguments.device)?;
    // Most libraries have the same weights, whatever is measured: they are written once.
    let weights = temporary_folder("tune", session.environment());
    let weights =
        weights.map_err(|error| Failure::Machine(format!("cannot make a temporary folder: {error}")))?;
    let weights = weights.path();
    let points = points::points(arguments, session, planned, &alone, weights)?;
    let (mut slower, mut decided) = (0, Records::none());
    let goes = BEFORE.iter().flat_map(|(stage, part, goes)| {
        (0..if arguments.dry_run { 1 } else { *goes }).map(|_| (*stage, *part))
    });
    for (stage, part) in goes {
        let mut found = Findings::default();
        for point in &points {
            let what = What { planned, point, stage, decided: decided.clone(), rates, facts, clock };
            let subject = subject(arguments, context, session, what)?;
            if arguments.dry_run {
                report::dry_run(arguments, &subject);
            } else if !subject.is_empty() {
                let share = arguments.budget.mul_f64(part / points.len() as f64);
                let task = Task { subject: &subject, share, clock, weights, fork_join };
                slower += search(arguments, context, session, task, &mut found)?;
            }
        }
        found.settle(&mut decided);
    }
    for (position, point) in points.iter().enumerate() {
        let (stage, decided) = (TuningStage::Kernel, decided.clone());
        let is_all = decided.is_empty();
        let what = What { planned, point, stage, decided, rates, facts, clock };
        let subject = subject(arguments, context, session, what)?;
        if arguments.dry_run {
            report::dry_run(arguments, &subject);
        } else if !subject.is_empty() {
            let share = clock.left().div_f64((points.len() - position) as f64);
            let task = Task { subject: &subject, share, clock, weights, fork_join };
            slower += search(arguments, context, session, task, &mut Findings::default())?;
        } else if is_all {
            let name = &planned.model.name;
            context.terminal.status("Tuned", &format!("{name}: no kernel has alternatives"));
        }
    }
    Ok(slower)
}

/// Measures what there is, and writes what was found and what others found; adds it to the findings.
fn search(
    arguments: &Arguments,
    context: &Context,
    session: &Session,
    task: Task<'_>,
    findings: &mut Findings,
) -> Result<usize, Failure> {
    let subject = task.subject;
    if !subject.known.is_empty() {
        for (place, record) in &subject.known {
            findings.record(&place.kernel, record.clone());
        }
        records::write(context, subject, subject.known.clone())?;
        report::known(arguments, context, subject);
    }
    if subject.groups.is_empty() {
        return Ok(0);
    }
    let outcome = measure(arguments, context, session, task)?;
    let found = records::found(arguments.threads, subject, &outcome);
    for (position, group) in subject.groups.iter().enumerate() {
        findings.way(&group.key, &group.candidates[outcome.winners.0[position]].setting);
        let own = found.iter().find(|(own, ..)| *own == position).map(|(_, _, record)| record);
        // What has no time now may have had one.
        if let Some(record) = own.or_else(|| subject.record(group, arguments.threads)) {
            findings.record(&group.key, record.clone());
        }
    }
    report::apart(context, subject, &outcome);
    if outcome.is_empty() {
        let (name, share) = (subject.named(), task.share.as_secs_f64());
        let message = format!("{name}: no candidate is ready in {share:.0} s; give it more with `--budget`");
        // Else no run counted, which was said.
        if outcome.has_firsts() {
            context.terminal.warn(&message);
        }
        return Ok(0);
    }
    let slower = report::outcome(arguments, context, subject, &outcome);
    if !arguments.check {
        records::share(context, session, subject, &outcome, &found)?;
        let found = found.into_iter().map(|(_, place, record)| (place, record)).collect();
        records::write(context, subject, found)?;
    }
    Ok(slower)
}

/// What this machine reaches with the threads that are asked for. A tool that was compiled without optimisation cannot tell, and
/// GPUs have prices of their own.
fn reached(arguments: &Arguments, context: &Context) -> Option<Reached> {
    if cfg!(debug_assertions) || arguments.device != Device::Cpu {
        return None;
    }
    let folder = context.environment.cache_directory();
    Some(Reached::here(folder.as_deref(), arguments.threads.into(), false))
}

/// What is asked of a model: at what sizes, when it is decided, and what is known already.
struct What<'a> {
    planned: &'a Planned,
    point: &'a Point,
    stage: TuningStage,
    decided: Records,
    /// What this machine reaches.
    rates: Option<&'a Rates>,
    facts: MachineInfo,
    clock: Clock,
}

/// What there is to measure of a model.
fn subject<'a>(
    arguments: &Arguments,
    context: &Context,
    session: &Session,
    What { planned, point, stage, decided, rates, facts, clock }: What<'a>,
) -> Result<Subject<'a>, Failure> {
    let model = level::alone(session, &planned.model, arguments.device)?;
    let machines = session.machines(&model)?;
    let families: Vec<&str> = machines.iter().map(|machine| machine.family.as_str()).collect();
    let machine = level::class(session, &model, arguments.device, &families);
    let reading = Lock::read(&planned.lock)?;
    reading.notes.iter().for_each(|note| context.terminal.warn(note));
    let mut lock = reading.lock;
    let runner = Runner { machine: machine.clone(), threads: arguments.threads };
    let rates = records::rates(&mut lock, runner, rates, arguments.again);
    let open = |records: Records| {
        let choices = Choices::Given { records, rates: rates.clone() };
        session.tuning_points(&Model { choices, ..model.clone() }, facts)
    };
    let kernels = open(decided.clone())?;
    let (threads, only) = (arguments.threads, &arguments.only);
    let groups = match stage {
        TuningStage::Kernel => groups(&kernels, &families, threads, only),
        TuningStage::Graph | TuningStage::Fusion => {
            let undecided = |kernel: &OpenKernel| decided.get(&kernel.key).is_none();
            let kernels: Vec<OpenKernel> = kernels.iter().filter(|own| undecided(own)).cloned().collect();
            questions(&kernels, &families, (stage, threads), only, &|key, setting| {
                // What is not known to make other kernels is not tried.
                if !arguments.dry_run && clock.is_half_over() {
                    return Ok(kernels.clone());
                }
                let mut records = decided.clone();
                records.set(key.clone(), setting.clone());
                open(records)
            })?
        }
    };
    if let Some(unknown) = only.iter().find(|name| !kernels.iter().any(|kernel| kernel.name == **name)) {
        let near = aoti_build::suggest(unknown, kernels.iter().map(|kernel| kernel.name.as_str()));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(Failure::Usage(format!("model `{}` has no kernel `{unknown}`{near}", model.name)));
    }
    let compiler = machines.iter().find_map(|machine| machine.compiler.clone()).unwrap_or_default();
    let known = Vec::new();
    let mut subject =
        Subject { planned, stage, decided, model, machine, compiler, groups, point, lock, rates, known };
    if !(arguments.check || arguments.dry_run || arguments.again) {
        records::take_over(arguments.threads, context, session, &mut subject);
    }
    let recorded: Vec<Option<usize>> =
        subject.groups.iter().map(|group| subject.recorded(group, arguments.threads)).collect();
    for (group, way) in subject.groups.iter_mut().zip(recorded) {
        // What a kernel takes depends a little on the ways of those beside it: in the same company it is measured again.
        let Some(way) = way else { continue };
        if arguments.check {
            group.try_first(way);
        } else {
            group.try_this(way);
        }
    }
    Ok(subject)
}

impl Subject<'_> {
    /// Whether nothing of it is to be measured, and the cache knows nothing.
    fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.known.is_empty()
    }

    /// What is measured, for people.
    fn what(&self) -> String {
        match self.stage {
            TuningStage::Graph => format!("reductions and layouts of {}", self.named()),
            TuningStage::Fusion => {
                format!("kernel fusion of {}{}", self.model.name, self.point.text())
            }
            TuningStage::Kernel => format!("kernels of {}", self.named()),
        }
    }

    /// The model, with the sizes that were asked for.
    fn named(&self) -> String {
        format!("{}{}", self.model.name, self.point.text())
    }

    fn place(&self, group: &Group, threads: u16) -> Place {
        let sizes = Sizes::of(&group.sizes, &self.point.inputs);
        Place { kernel: group.key.clone(), machine: self.machine.clone(), threads, sizes }
    }

    /// The record of a group, if it is of code as it would be made now.
    fn record(&self, group: &Group, threads: u16) -> Option<&Record> {
        let record = self.lock.records.get(&self.place(group, threads))?;
        let is_current = record.compiler == self.compiler && record.template == record.setting.version();
        is_current.then_some(record)
    }

    /// The position of the way that a group's record names.
    fn recorded(&self, group: &Group, threads: u16) -> Option<usize> {
        let setting: &Setting = &self.record(group, threads)?.setting;
        let way = group.candidates.iter().position(|way| way.setting == *setting)?;
        Some(if group.candidates[0].is_same(&group.candidates[way]) { 0 } else { way })
    }
}

fn measure(
    arguments: &Arguments,
    context: &Context,
    session: &Session,
    task: Task<'_>,
) -> Result<Outcome, Failure> {
    let (subject, progress) = (task.subject, Shown::new(context.terminal));
    let result = measured(arguments, session, task, &progress);
    progress.finish();
    let outcome = result?;
    if let Some(folder) = context.environment.cache_directory() {
        // Threads may have come nearer since the search began.
        if task.fork_join.is_some_and(|known| outcome.apart.best < known) {
            Reached::saw_fork_join(Some(&folder), arguments.threads.into(), outcome.apart.best);
        }
        let (model, machine, compiler) = (&subject.model.name, &subject.machine, &subject.compiler);
        let (threads, inputs) = (arguments.threads, &subject.point.inputs[..]);
        let whole_runs = arguments.device != Device::Cpu;
        let circumstances = Circumstances { model, machine, threads, compiler, whole_runs, inputs };
        let path = folder.join(log::FILE);
        if let Err(failure) = log::append(&path, &circumstances, &subject.groups, &outcome) {
            context.terminal.warn(&failure.to_string());
        }
    }
    Ok(outcome)
}

fn measured(
    arguments: &Arguments,
    session: &Session,
    task: Task<'_>,
    progress: &Shown,
) -> Result<Outcome, Failure> {
    let subject = task.subject;
    progress.say("Tuning", &format!("{} on {}", subject.what(), subject.machine));
    let (groups, threads) = (&subject.groups, arguments.threads);
    let comparison = Comparison {
        groups,
        decided: &subject.decided,
        rates: subject.rates.as_ref(),
        device: arguments.device,
        threads,
        progress: &Silent,
        weights: task.weights,
    };
    let mut machine = Measuring::new(session, &subject.model, comparison)?;
    let file = subject.planned.file(arguments);
    let info = machine.first()?;
    machine.prepare(&super::run::inputs(&info, file, &subject.point.dims)?)?;
    let before = groups.iter().map(|group| subject.recorded(group, threads)).collect();
    let heard = report::Heard { progress, model: &subject.model.name };
    Ok(Search::new(groups, before, &mut machine, &heard, (task.budget(), task.fork_join)).run()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_times() {
        assert_eq!(budget("90"), Ok(Duration::from_secs(90)));
        assert_eq!(budget("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(budget("1h"), Ok(Duration::from_secs(3600)));
        for wrong in ["", "s", "0s", "-3s", "2d", "25h", "inf", "NaN"] {
            assert!(budget(wrong).is_err(), "{wrong}");
        }
    }
}
