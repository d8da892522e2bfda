//! The log of all measurements: a JSON object a line, for whoever wants to refit the cost model or see what was tried.

use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use aoti_build::Sizes;
use aoti_compiler::compile::TuningCandidate;
use serde_json::{Value, json};

use super::groups::Group;
use super::outcome::{Knowledge, Outcome};
use crate::error::Error;

/// The file's name, in the cache's folder.
pub const FILE: &str = "tuning.jsonl";

/// What all measurements of a search have in common.
pub struct Circumstances<'a> {
    /// The model's name.
    pub model: &'a str,
    /// The class of machines.
    pub machine: &'a str,
    /// Threads of a run.
    pub threads: u16,
    /// The native compiler with its version.
    pub compiler: &'a str,
    /// Whether times are those of whole runs, as where there is no clock between kernels.
    pub whole_runs: bool,
    /// The sizes of the inputs.
    pub inputs: &'a [Vec<i64>],
}

/// Work by kind, each with its amount and price.
pub fn parts(way: &TuningCandidate) -> Value {
    let parts = way.parts.iter().map(|(name, amount, price)| ((*name).to_owned(), json!([amount, price])));
    Value::Object(parts.collect())
}

/// Appends what a search found.
pub fn append(
    path: &Path,
    circumstances: &Circumstances<'_>,
    groups: &[Group],
    outcome: &Outcome,
) -> Result<(), Error> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut text = String::new();
    for (position, group) in groups.iter().enumerate() {
        // What a question costs is said of all that it makes, what a kernel costs of one of those that are alike.
        let kernels = if group.makes_kernels() { 1 } else { group.kernels.len() };
        let sizes = Sizes::of(&group.sizes, circumstances.inputs).to_string();
        for (way, known) in outcome.known[position].iter().enumerate() {
            let (timing, refused) = match known {
                Knowledge::Untried => continue,
                Knowledge::Timed(timing) => (Some(timing), None),
                Knowledge::Refused(reason) => (None, Some(reason)),
            };
            let own = &group.candidates[way];
            let line = json!({
                "seconds": seconds, "tool": env!("CARGO_PKG_VERSION"), "compiler": circumstances.compiler,
                "machine": circumstances.machine, "threads": circumstances.threads, "model": circumstances.model,
                "kernel": group.name, "key": group.key.to_string(), "sizes": sizes, "choice": own.setting.to_string(),
                "predicted": own.cost, "parts": parts(own), "kernels": kernels, "whole_runs": circumstances.whole_runs, "us": timing.map(|timing| timing.median),
                "spread_us": timing.map(|timing| timing.spread), "runs": timing.map(|timing| timing.count),
                "refused": refused, "wins": outcome.winners.0[position] == way,
            });
            text.push_str(&format!("{line}\n"));
        }
    }
    let refuse =
        |error: std::io::Error| Error::Machine(format!("cannot write `{}`: {error}", path.display()));
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder).map_err(refuse)?;
    }
    // One write, so that lines of two processes do not mix.
    let file = std::fs::File::options().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(refuse)
}
