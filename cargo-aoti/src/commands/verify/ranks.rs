//! Cases of several ranks: each folder has a case for every rank, and all run at one time.

use std::path::{Path, PathBuf};

use super::Arguments;
use super::outcome::{Outcome, Stage, Status};
use super::tally::Tally;
use crate::case;
use crate::commands::{Context, print_json};
use crate::failure::Failure;
use crate::ranks::{self, Rank};
use crate::tensors::file;
use aoti_tune::tensors::compare;

/// Runs the ranks of each case below the paths and compares what every one of them gives.
pub(super) fn examine_all(arguments: &Arguments, context: &Context) -> Result<[usize; 3], Failure> {
    let mut folders = Vec::new();
    for path in &arguments.path {
        walk(path, 0, &mut folders)?;
    }
    if folders.is_empty() {
        let message = "there are no cases with folders `rank0`, `rank1`, … at or below these paths";
        return Err(Failure::User(message.to_owned()));
    }
    let mut tally = Tally::new(folders.len(), context.terminal);
    for folder in folders {
        for outcome in of_case(arguments, &folder, context) {
            tally.add(&outcome, || {
                if arguments.output.is_json() {
                    print_json(&outcome.json());
                } else {
                    outcome.print(context.terminal.is_verbose());
                }
            });
        }
    }
    Ok(tally.finish())
}

/// The folders that have one for the first rank.
fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if folder.join("rank0").is_dir() {
        found.push(folder.to_owned());
        return Ok(());
    }
    if depth > 32 || !folder.is_dir() {
        return Ok(());
    }
    let listing = fs_err::read_dir(folder).map_err(Failure::machine("read", folder))?;
    let mut folders: Vec<PathBuf> =
        listing.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.iter().try_for_each(|child| walk(child, depth + 1, found))
}

/// What becomes of each rank of a case; of the first one where they do not get as far as running.
fn of_case(arguments: &Arguments, folder: &Path, context: &Context) -> Vec<Outcome> {
    let Arguments { count, device, rounding, threads, .. } = arguments;
    let loaded = ranks::load(folder, *count, *device, rounding, context);
    let ranks = match loaded {
        Ok(ranks) => ranks,
        Err(failure) => return first(folder, &failure).into_iter().collect(),
    };
    let results = ranks.each(|rank| Ok(one(rank, usize::from(*threads))));
    let outcomes = ranks.all.iter().zip(results).map(|(rank, result)| {
        let case = rank.case.as_ref()?;
        let mut outcome = Outcome::new(case);
        let result = result.unwrap_or_else(|failure| Err((Stage::Run, said(&failure))));
        match result {
            Ok(distance) => {
                (outcome.status, outcome.stage) = (Status::Pass, Stage::Compare);
                outcome.distance = Some(distance);
            }
            Err((stage, message)) => (outcome.stage, outcome.message) = (stage, message),
        }
        Some(outcome)
    });
    outcomes.flatten().collect()
}

fn first(folder: &Path, failure: &Failure) -> Option<Outcome> {
    let (_, case) = case::model_file(&ranks::path_of(folder, 0)).ok()?;
    let mut outcome = Outcome::new(&case?);
    (outcome.stage, outcome.message) = (Stage::Compile, said(failure));
    Some(outcome)
}

fn one(rank: &Rank, threads: usize) -> Result<compare::Distance, (Stage, String)> {
    let at = |stage: Stage| move |failure: Failure| (stage, said(&failure));
    let missing = || (Stage::Import, format!("rank {} has no case of its own", rank.number));
    let case = rank.case.as_ref().ok_or_else(missing)?;
    let tolerances = case.terms().map_err(at(Stage::Import))?.tolerances;
    let inputs =
        crate::commands::run::inputs(&rank.info, Some(&case.inputs()), &[]).map_err(at(Stage::Run))?;
    let found = ranks::run(rank, &inputs, threads).map_err(at(Stage::Run))?;
    let expected = file::read(&case.outputs()).map_err(at(Stage::Compare))?;
    let (distance, result) = compare::all(&found, &expected, &tolerances, None);
    result.map(|()| distance).map_err(|message| (Stage::Compare, message))
}

fn said(failure: &Failure) -> String {
    failure.message().unwrap_or_default().to_owned()
}
