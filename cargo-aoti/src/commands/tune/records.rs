//! What was found becomes records: those of the lock, and those that machines of one class share through the cache.

use aoti_build::{Lock, Place, Progress, Question, Record, Runner, Session};
use aoti_compiler::cost::Rates;
use aoti_compiler::schedule::Setting;
use aoti_toolchain::Event;

use super::Subject;
use crate::commands::Context;
use crate::failure::Failure;
use crate::terminal::Terminal;
use aoti_tune::groups::Group;
use aoti_tune::outcome::{Knowledge, Outcome};
use aoti_tune::statistics::Timing;

/// Hears of the cache only what went wrong with it.
struct Warned<'a>(&'a Terminal);

impl Progress for Warned<'_> {
    fn model(&self, _: &aoti_build::ModelEvent<'_>) {}

    fn tool(&self, event: &Event<'_>) {
        if let Event::Warning { message, .. } = event {
            self.0.warn(message);
        }
    }
}

/// Ways that a record keeps beside its choice, where other sizes may want another.
const OTHERS: usize = 8;

/// The ways of a group that are compared: the first, and those that are tried.
fn compared(group: &Group) -> Vec<&Setting> {
    let mut candidates: Vec<usize> = group.tried.clone();
    candidates.push(0);
    // The order in which they are tried is no part of the question.
    candidates.sort_unstable();
    candidates.into_iter().map(|way| &group.candidates[way].setting).collect()
}

/// Takes the records that the cache has of kernels of which the lock has none; these are not measured.
pub(super) fn take_over(threads: u16, context: &Context, session: &Session, subject: &mut Subject<'_>) {
    let progress = Warned(&context.terminal);
    for group in std::mem::take(&mut subject.groups) {
        let place = subject.place(&group, threads);
        let has_own = subject.record(&group, threads).is_some();
        let question = Question { place: &place, compiler: &subject.compiler, candidates: &compared(&group) };
        let shared = if has_own { None } else { session.shared_record(&question, &progress) };
        match shared {
            Some(shared) => {
                let (model, name) = (subject.model.name.clone(), group.name.clone());
                subject.known.push((place, Record { model, name, ..shared }));
            }
            None => subject.groups.push(group),
        }
    }
}

/// Notes in a lock what a machine reaches, unless it says so already and that is not asked `again`. Gives what builds for such
/// machines price work by then.
pub(super) fn rates(lock: &mut Lock, runner: Runner, reached: Option<&Rates>, again: bool) -> Option<Rates> {
    let family = runner.family().to_owned();
    if let Some(reached) = reached.filter(|_| again || !lock.rates.contains_key(&runner)) {
        lock.rates.insert(runner, reached.clone());
    }
    lock.rates_for(&family).cloned()
}

/// Puts records into the lock, and what the machine reaches.
pub(super) fn write(
    context: &Context,
    subject: &Subject<'_>,
    found: Vec<(Place, Record)>,
) -> Result<(), Failure> {
    let (path, is_new) = (&subject.planned.lock, !subject.planned.lock.is_file());
    let count = found.len();
    let rates = subject.lock.rates.iter().filter(|(runner, _)| runner.machine == subject.machine);
    Lock::update(path, |lock| {
        lock.records.extend(found);
        lock.rates.extend(rates.map(|(runner, rates)| (runner.clone(), rates.clone())));
    })?;
    // Build scripts run again when a file changes that they know of; of a lock that was not there they know nothing.
    if let (true, Some(manifest)) = (is_new, &subject.planned.manifest) {
        let touched = std::fs::File::options().append(true).open(manifest);
        let touched = touched.and_then(|file| file.set_modified(std::time::SystemTime::now()));
        if let Err(error) = touched {
            let manifest = manifest.display();
            context
                .terminal
                .warn(&format!("cannot touch `{manifest}`, so that build scripts see the lock: {error}"));
        }
    }
    let (records, shown) =
        (if count == 1 { "record" } else { "records" }, crate::project::shown(path, context));
    context.terminal.status("Wrote", &format!("{count} {records} to {shown}"));
    Ok(())
}

/// The records of the groups whose first way was measured, with the positions of these.
pub(super) fn found(threads: u16, subject: &Subject<'_>, outcome: &Outcome) -> Vec<(usize, Place, Record)> {
    let record = |(position, group): (usize, &Group)| {
        let place = subject.place(group, threads);
        let way = outcome.winners.0[position];
        // What won before and was not measured now is still the best that is known.
        if subject
            .recorded(group, threads)
            .is_some_and(|way| outcome.known[position][way] == Knowledge::Untried)
        {
            return None;
        }
        let (own, first) = (outcome.timing(position, way)?, outcome.timing(position, 0)?);
        let mut others = outcome.ranked(position);
        others.retain(|(other, _)| *other != way);
        let most = if place.sizes.is_empty() { 1 } else { OTHERS };
        // At all sizes one can go by what is taken without a record.
        let is_kept =
            |(rank, (other, _)): &(usize, (usize, Timing))| *rank < most || (*other == 0 && most > 1);
        let others = others.into_iter().enumerate().filter(is_kept);
        let others =
            others.map(|(_, (other, own))| (group.candidates[other].setting.clone(), own.median)).collect();
        let setting = group.candidates[way].setting.clone();
        let record = Record {
            model: subject.model.name.clone(),
            name: group.name.clone(),
            template: setting.version(),
            setting,
            micros: own.median,
            spread: own.spread,
            default_micros: first.median,
            others,
            predicted: group.candidates[way].cost,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            compiler: subject.compiler.clone(),
        };
        Some((position, place, record))
    };
    subject.groups.iter().enumerate().filter_map(record).collect()
}

/// Lets other machines of this class have the records for which all ways were measured or refused. One for which time ran
/// out would keep them from measuring the rest.
pub(super) fn share(
    context: &Context,
    session: &Session,
    subject: &Subject<'_>,
    outcome: &Outcome,
    found: &[(usize, Place, Record)],
) -> Result<(), Failure> {
    let progress = Warned(&context.terminal);
    for (position, place, record) in found {
        let group = &subject.groups[*position];
        let is_whole = group.tried.iter().all(|way| outcome.known[*position][*way] != Knowledge::Untried);
        if is_whole {
            let question = Question { place, compiler: &subject.compiler, candidates: &compared(group) };
            session.share_record(&question, record, &progress)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_reaches_stays_until_it_is_measured_again() {
        let reaches =
            |mflop_per_s: u64| Rates { mflop_per_s, caches: vec![(1 << 15, 9)], memory_mb_per_s: 7 };
        let runner = |threads: u16| Runner { machine: "x86_64.v4.intel".to_owned(), threads };
        let mut lock = Lock::default();
        assert_eq!(rates(&mut lock, runner(2), None, false), None, "nobody knows");
        assert_eq!(rates(&mut lock, runner(2), Some(&reaches(20)), false), Some(reaches(20)));
        assert_eq!(rates(&mut lock, runner(2), Some(&reaches(21)), false), Some(reaches(20)), "as recorded");
        assert_eq!(rates(&mut lock, runner(2), None, true), Some(reaches(20)), "not measured");
        assert_eq!(rates(&mut lock, runner(2), Some(&reaches(22)), true), Some(reaches(22)));
        // As a build will that has records of both.
        assert_eq!(rates(&mut lock, runner(1), Some(&reaches(11)), false), Some(reaches(22)));
        assert_eq!(lock.rates.len(), 2);
    }
}
