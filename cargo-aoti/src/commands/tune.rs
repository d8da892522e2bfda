//! `tune`: measures the ways to run the kernels of models on this machine, and writes the fastest to `aoti.lock`.

mod level;
mod plan;
mod records;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use aoti_build::{Lock, Model, Place, Record, Session, Settings, Silent};
use aoti_compiler::schedule::Setting;
use aoti_runtime::Device;
use clap::Args;

use super::Context;
use crate::arguments::Output;
use crate::dims;
use crate::failure::Failure;
use crate::progress::Shown;
use crate::project::Selection;
use crate::tune::groups::{Group, groups};
use crate::tune::log::{self, Circumstances};
use crate::tune::machine::Machine;
use crate::tune::outcome::Outcome;
use crate::tune::search::Search;
use plan::Planned;

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
    /// Measure this kernel alone; may be given more than once
    #[arg(long, value_name = "KERNEL")]
    only: Vec<String>,
    /// Write nothing; say what would change, and fail if a record is slower than what is taken without one
    #[arg(long)]
    check: bool,
    /// Measure also what the cache has records of that were measured on machines like this one
    #[arg(long)]
    again: bool,
    /// Only list what there is to try
    #[arg(long, conflicts_with = "check")]
    dry_run: bool,
    /// Size of an open dimension, for random inputs; by default the smallest
    #[arg(long, value_name = "NAME=SIZE", value_parser = dims::parse)]
    dim: Vec<(String, i64)>,
    /// Inputs under the keys "0", "1", … or their names, for one model
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
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

/// What the measurements of one model are of.
struct Subject<'a> {
    planned: &'a Planned,
    /// The model as it is built for this machine alone.
    model: Model,
    machine: String,
    compiler: String,
    groups: Vec<Group>,
    /// Records of this machine that there are.
    lock: Lock,
    /// What the cache knows of kernels that have no record, which are not among the groups.
    known: Vec<(Place, Record)>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let session = Session::new(&context.environment, Settings::default())?;
    let planned = plan::plan(arguments, context)?;
    if arguments.inputs.is_some() && planned.len() != 1 {
        return Err(Failure::Usage("`--inputs` is for one model".to_owned()));
    }
    let mut slower = 0;
    for planned in &planned {
        if !arguments.check && !arguments.dry_run {
            Lock::check_writable(&planned.lock)?;
        }
        let subject = subject(arguments, context, &session, planned)?;
        if arguments.dry_run {
            report::dry_run(arguments, &subject);
            continue;
        }
        if !subject.known.is_empty() {
            records::write(context, &subject, subject.known.clone())?;
            report::known(arguments, context, &subject);
        }
        if subject.groups.is_empty() && !subject.known.is_empty() {
            continue;
        }
        if subject.groups.is_empty() {
            context.terminal.status("Tuned", &format!("{}: no kernel has another way", planned.model.name));
            continue;
        }
        let outcome = measure(arguments, context, &session, &subject)?;
        if outcome.is_empty() {
            let (name, budget) = (&planned.model.name, arguments.budget.as_secs_f64());
            let message =
                format!("{name}: no candidate is ready in {budget:.0} s; give it more with `--budget`");
            context.terminal.warn(&message);
            continue;
        }
        slower += report::outcome(arguments, context, &subject, &outcome);
        if !arguments.check {
            let found = records::found(arguments.threads, &subject, &outcome);
            records::share(context, &session, &subject, &outcome, &found)?;
            let found = found.into_iter().map(|(_, place, record)| (place, record)).collect();
            records::write(context, &subject, found)?;
        }
    }
    if slower > 0 && arguments.check {
        let records = if slower == 1 { "record is" } else { "records are" };
        return Err(Failure::User(format!("{slower} {records} slower than what is taken without one")));
    }
    Ok(())
}

/// What there is to measure of a model.
fn subject<'a>(
    arguments: &Arguments,
    context: &Context,
    session: &Session,
    planned: &'a Planned,
) -> Result<Subject<'a>, Failure> {
    let model = level::alone(session, &planned.model, arguments.device)?;
    let machines = session.machines(&model)?;
    let families: Vec<&str> = machines.iter().map(|machine| machine.family.as_str()).collect();
    let kernels = session.open_kernels(&model)?;
    let groups = groups(&kernels, &families, arguments.threads, &arguments.only);
    if let Some(unknown) =
        arguments.only.iter().find(|name| !kernels.iter().any(|kernel| kernel.name == **name))
    {
        let near = aoti_build::suggest(unknown, kernels.iter().map(|kernel| kernel.name.as_str()));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(Failure::Usage(format!("model `{}` has no kernel `{unknown}`{near}", model.name)));
    }
    let machine = level::class(session, &model, arguments.device, &families);
    let compiler = machines.iter().find_map(|machine| machine.compiler.clone()).unwrap_or_default();
    let reading = Lock::read(&planned.lock)?;
    reading.notes.iter().for_each(|note| context.terminal.warn(note));
    let mut subject =
        Subject { planned, model, machine, compiler, groups, lock: reading.lock, known: Vec::new() };
    if !(arguments.check || arguments.dry_run || arguments.again) {
        records::take_over(arguments.threads, context, session, &mut subject);
    }
    let recorded: Vec<Option<usize>> =
        subject.groups.iter().map(|group| subject.recorded(group, arguments.threads)).collect();
    for (group, way) in subject.groups.iter_mut().zip(recorded) {
        way.into_iter().for_each(|way| group.try_first(way));
    }
    Ok(subject)
}

impl Subject<'_> {
    fn place(&self, group: &Group, threads: u16) -> Place {
        Place { kernel: group.key.clone(), machine: self.machine.clone(), threads }
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
        group.ways.iter().position(|way| way.setting == *setting)
    }
}

fn measure(
    arguments: &Arguments,
    context: &Context,
    session: &Session,
    subject: &Subject<'_>,
) -> Result<Outcome, Failure> {
    let progress = Shown::new(context.terminal);
    let result = measured(arguments, context, session, subject, &progress);
    progress.finish();
    let outcome = result?;
    if let Some(folder) = context.environment.cache_directory() {
        let (model, machine, compiler) = (&subject.model.name, &subject.machine, &subject.compiler);
        let circumstances = Circumstances { model, machine, threads: arguments.threads, compiler };
        let path = folder.join(log::FILE);
        if let Err(failure) = log::append(&path, &circumstances, &subject.groups, &outcome) {
            context.terminal.warn(failure.message().unwrap_or_default());
        }
    }
    Ok(outcome)
}

fn measured(
    arguments: &Arguments,
    context: &Context,
    session: &Session,
    subject: &Subject<'_>,
    progress: &Shown,
) -> Result<Outcome, Failure> {
    context.terminal.status("Tuning", &format!("{} on {}", subject.model.name, subject.machine));
    let (groups, threads) = (&subject.groups, arguments.threads);
    let mut machine = Machine::new(session, &subject.model, groups, (arguments.device, threads), &Silent)?;
    let file = arguments.inputs.as_deref().or(subject.planned.inputs.as_deref());
    machine.prepare(&|info| super::run::inputs(info, file, &arguments.dim))?;
    let before = groups.iter().map(|group| subject.recorded(group, threads)).collect();
    let heard = report::Heard { progress, model: &subject.model.name };
    Search::new(groups, before, &mut machine, &heard, arguments.budget).run()
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
