//! What `tune` says: while it goes, and of what it found.

use aoti_compiler::schedule::TuningStage;
use serde_json::{Value, json};

use super::{Arguments, Subject};
use crate::commands::{Context, print, print_json};
use crate::progress::Shown;
use crate::table;
use aoti_tune::groups::Group;
use aoti_tune::log::parts;
use aoti_tune::outcome::{Knowledge, Outcome};
use aoti_tune::placement::PlacementFilter;
use aoti_tune::search::Listener;

/// Ways that `--verbose` shows of each kernel.
const SHOWN: usize = 10;

/// Shows how far a search is.
pub(super) struct Heard<'a> {
    pub(super) progress: &'a Shown,
    pub(super) model: &'a str,
}

impl Listener for Heard<'_> {
    fn making(&self, done: usize, all: usize) {
        self.progress.note(&format!("{}: libraries with candidates, {done} of {all}", self.model));
    }

    fn refused(&self, group: &Group, way: usize, reason: &str) {
        let (kernel, choice) = (&group.name, &group.candidates[way].setting);
        self.progress.warn(&format!("kernel `{kernel}` is not run as `{choice}`: {reason}"));
    }

    fn turn(&self, turn: usize, left: usize, part: f64) {
        let gain = (1.0 - part) * 100.0;
        self.progress.note(&format!(
            "{}: turn {turn}, {left} libraries, {gain:.1} % less in kernels so far",
            self.model
        ));
    }
}

/// What is measured that is decided at some time, in a word.
fn name_of(stage: TuningStage) -> &'static str {
    match stage {
        TuningStage::Graph => "reductions and layouts",
        TuningStage::Fusion => "pairs",
        TuningStage::Kernel => "kernels",
    }
}

/// What there is to try.
pub(super) fn dry_run(arguments: &Arguments, subject: &Subject<'_>) {
    let fitted = |text: String| table::fit(&text, arguments.output.width());
    for group in &subject.groups {
        if arguments.output.is_json() {
            let candidates = group.tried.iter().map(|way| &group.candidates[*way]);
            let candidates: Vec<Value> =
                candidates.map(|way| json!({ "choice": way.setting.to_string(), "predicted": way.cost, "parts": parts(way) })).collect();
            print_json(&json!({
                "reason": "aoti-candidates", "model": subject.model.name, "kernel": group.name,
                "key": group.key.to_string(), "default": group.candidates[0].setting.to_string(),
                "default_parts": parts(&group.candidates[0]), "candidates": candidates,
            }));
            continue;
        }
        let mut text =
            format!("{} ({}): {}\n", group.name, group.key, group.candidates[0].setting.sentence());
        for way in group.tried.iter().map(|way| &group.candidates[*way]) {
            text.push_str(&format!("  {:>6.2}  {}\n", way.cost, way.setting.sentence()));
        }
        print(&fitted(text));
    }
    if !arguments.output.is_json() {
        let candidates: usize = subject.groups.iter().map(|group| group.tried.len()).sum();
        let (count, model) = (subject.groups.len(), &subject.model.name);
        let of = name_of(subject.stage);
        print(&format!("{model}: {candidates} candidates for {count} {of} on {}\n", subject.machine));
    }
}

/// Says so where runs were left out.
pub(super) fn apart(context: &Context, subject: &Subject<'_>, outcome: &Outcome) {
    /// Of so many runs one that does not count is no news.
    const USUAL: usize = 10;
    let PlacementFilter { best, worst, runs, left_out } = outcome.apart;
    if left_out * USUAL > runs {
        let (name, best, worst) = (subject.named(), best / 1e3, worst / 1e3);
        context.terminal.warn(&format!(
            "{name}: {left_out} of {runs} runs do not count, as the processors of threads were far apart: a loop began and \
             ended in up to {worst:.1} us, at best in {best:.1} us; what was not measured otherwise stays as it is"
        ));
    }
}

/// What was found; gives the number of records that are slower than the first way.
pub(super) fn outcome(
    arguments: &Arguments,
    context: &Context,
    subject: &Subject<'_>,
    outcome: &Outcome,
) -> usize {
    let (mut slower, mut changed, mut told) = (0, 0, subject.planned.told.borrow_mut());
    let fitted = |text: String| table::fit(&text, arguments.output.width());
    for (position, group) in subject.groups.iter().enumerate() {
        let recorded = subject.recorded(group, arguments.threads);
        let winner = outcome.winners.0[position];
        let is_changed = recorded.is_some_and(|recorded| recorded != winner);
        changed += usize::from(is_changed);
        let first = outcome.timing(position, 0);
        let of_record = recorded.and_then(|way| outcome.timing(position, way));
        let is_slower = first.zip(of_record).is_some_and(|(first, own)| first.is_faster_than(own));
        slower += usize::from(is_slower && recorded != Some(0));
        let object = kernel_json(subject, outcome, position, recorded);
        if arguments.output.is_json() {
            print_json(&object);
        } else if winner != 0 || is_changed || context.terminal.is_verbose() {
            print(&fitted(kernel_text(subject, outcome, position, recorded, context.terminal.is_verbose())));
        }
        told.push(object);
    }
    let (good, measured) = outcome.good_defaults();
    let correlations = outcome.correlations(&subject.groups);
    let whole =
        outcome.whole.map(|[first, tuned]| json!({ "default_us": first.median, "tuned_us": tuned.median }));
    let tuned = json!({
            "reason": "aoti-tuned", "model": subject.model.name, "dims": dims_json(subject), "machine": subject.machine,
            "threads": arguments.threads, "of": name_of(subject.stage), "kernels": subject.groups.len(), "changed": changed, "slower": slower,
            "runs": outcome.apart.runs, "runs_left_out": outcome.apart.left_out,
            "whole": whole, "defaults_within_15_percent": good, "measured": measured,
            "rank_correlation": correlations.iter().map(|(name, mean, _)| (name.clone(), json!(mean))).collect::<serde_json::Map<_, _>>(),
    });
    told.push(tuned.clone());
    if arguments.output.is_json() {
        print_json(&tuned);
        return slower;
    }
    let name = &subject.named();
    match (outcome.whole, outcome.winners.pairs().len()) {
        (Some([first, tuned]), won) if won > 0 => {
            print(&fitted(format!(
                "{name}: {:.2} us -> {:.2} us ({}); {won} of {} {} changed\n",
                first.median,
                tuned.median,
                change(first.median, tuned.median),
                subject.groups.len(),
                name_of(subject.stage),
            )));
        }
        (Some([first, tuned]), _) => print(&format!(
            "{name}: {:.2} us -> {:.2} us ({}): nothing changes\n",
            first.median,
            tuned.median,
            change(first.median, tuned.median)
        )),
        (None, 0) => print(&format!("{name}: the defaults are the fastest\n")),
        (None, won) => {
            print(&format!("{name}: {won} of {} {} changed\n", subject.groups.len(), name_of(subject.stage)))
        }
    }
    if context.terminal.is_verbose() {
        print(&format!(
            "{name}: {good} of {measured} {} are within 15 % of their best without records\n",
            name_of(subject.stage)
        ));
        for (template, mean, count) in correlations {
            print(&format!(
                "{template}: rank correlation of predicted and measured cost {mean:.2}, mean of {count} kernels\n"
            ));
        }
    }
    if arguments.check {
        print(&format!("{name}: {changed} records would change, {slower} are slower than without\n"));
    }
    slower
}

/// How much one time differs from another, in words.
fn change(before: f64, after: f64) -> String {
    let percent = (after / before - 1.0) * 100.0;
    // What rounds to nothing is nothing.
    if percent.abs() < 0.05 {
        "no faster".to_owned()
    } else if percent < 0.0 {
        format!("{:.1} % faster", -percent)
    } else {
        format!("{percent:.1} % slower")
    }
}

/// The records that the cache had.
pub(super) fn known(arguments: &Arguments, context: &Context, subject: &Subject<'_>) {
    for (place, record) in &subject.known {
        if arguments.output.is_json() {
            print_json(&json!({
                "reason": "aoti-taken-over", "model": subject.model.name, "kernel": record.name,
                "key": place.kernel.to_string(), "choice": record.setting.to_string(),
                "us": record.micros, "default_us": record.default_micros,
            }));
        } else if context.terminal.is_verbose() {
            print(&format!("{}: as the cache has it: {}\n", record.name, record.setting.sentence()));
        }
    }
    let (count, name) = (subject.known.len(), &subject.named());
    let (kernels, were) = if count == 1 { ("kernel", "was") } else { ("kernels", "were") };
    let machines = &subject.machine;
    context.terminal.status(
        "Known",
        &format!("{name}: {count} {kernels} {were} measured before on {machines}; `--again` measures again"),
    );
}

/// The sizes that were asked for.
fn dims_json(subject: &Subject<'_>) -> Value {
    let dims = subject.point.dims.iter();
    Value::Object(dims.map(|(name, size)| (name.clone(), Value::from(*size))).collect())
}

fn kernel_text(
    subject: &Subject<'_>,
    outcome: &Outcome,
    position: usize,
    recorded: Option<usize>,
    is_verbose: bool,
) -> String {
    let group = &subject.groups[position];
    let winner = outcome.winners.0[position];
    let mut text = match (outcome.timing(position, 0), outcome.timing(position, winner)) {
        (Some(first), Some(own)) if winner != 0 => {
            let sentence = group.candidates[winner].setting.sentence();
            let change = change(first.median, own.median);
            format!("{}: {:.2} us -> {:.2} us ({change}): {sentence}\n", group.name, first.median, own.median)
        }
        (Some(first), _) => format!("{}: {:.2} us as without a record\n", group.name, first.median),
        (None, _) => format!("{}: not measured\n", group.name),
    };
    if let Some(recorded) = recorded.filter(|recorded| *recorded != winner) {
        text.push_str(&format!("  recorded was {}\n", group.candidates[recorded].setting.sentence()));
    }
    if is_verbose {
        for (way, timing) in outcome.ranked(position).into_iter().take(SHOWN) {
            let own = &group.candidates[way];
            let (median, spread, cost) = (timing.median, timing.spread, own.cost);
            text.push_str(&format!(
                "  {median:>10.2} us ± {spread:<8.2} predicted {cost:<5.2} {}\n",
                own.setting
            ));
        }
    }
    text
}

fn kernel_json(subject: &Subject<'_>, outcome: &Outcome, position: usize, recorded: Option<usize>) -> Value {
    let group = &subject.groups[position];
    let way = |(way, known): (usize, &Knowledge)| {
        let own = &group.candidates[way];
        let (choice, predicted) = (own.setting.to_string(), own.cost);
        match known {
            Knowledge::Untried => json!({ "choice": choice, "predicted": predicted }),
            Knowledge::Refused(reason) => {
                json!({ "choice": choice, "predicted": predicted, "refused": reason })
            }
            Knowledge::Timed(timing) => json!({
                "choice": choice, "predicted": predicted, "us": timing.median, "spread_us": timing.spread, "runs": timing.count,
            }),
        }
    };
    json!({
        "reason": "aoti-tuning", "model": subject.model.name, "dims": dims_json(subject),
        "kernel": group.name, "key": group.key.to_string(),
        "choice": group.candidates[outcome.winners.0[position]].setting.to_string(),
        "recorded": recorded.map(|recorded| group.candidates[recorded].setting.to_string()),
        "candidates": outcome.known[position].iter().enumerate().map(way).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_is_called_slower() {
        assert_eq!(change(14.35, 14.75), "2.8 % slower");
        assert_eq!(change(10.0, 9.0), "10.0 % faster");
        assert_eq!(change(10.0, 10.001), "no faster");
    }
}
