//! Runs the programs of tests beside each other, which cargo runs one after another: many hold one or two tests, and leave
//! processors idle.
//!
//! Cargo tells which they are and how it would run them: it is given a runner, `cargo xtask queued FILE PROGRAM ARGUMENTS…`, that
//! writes this down and runs nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail};
use serde_json::{Value, json};

/// So many programs run at once, on a share of the processors each.
const AT_ONCE: usize = 2;
/// What takes longest comes first, so that nothing long is left for the end.
const FIRST: [&str; 7] = ["families", "device", "contractions", "weights", "tune", "guide", "headers"];

/// A program as cargo would run it.
struct Entry {
    program: String,
    arguments: Vec<String>,
    folder: PathBuf,
    variables: BTreeMap<String, String>,
}

/// The runner: adds a line to the file.
pub(crate) fn queued(arguments: &[String]) -> anyhow::Result<()> {
    let [file, program, rest @ ..] = arguments else {
        bail!("usage: cargo xtask queued FILE PROGRAM [ARGUMENTS]");
    };
    let folder = std::env::current_dir()?;
    let texts = |(name, value): (OsString, OsString)| name.into_string().ok().zip(value.into_string().ok());
    let variables: BTreeMap<String, String> = std::env::vars_os().filter_map(texts).collect();
    let entry = json!({ "program": program, "arguments": rest, "folder": folder, "variables": variables });
    let mut file = fs::OpenOptions::new().append(true).create(true).open(file)?;
    Ok(file.write_all(format!("{entry}\n").as_bytes())?)
}

/// Runs what is in the file, with these words before each program, and says which failed.
pub(crate) fn run(file: &Path, runner: &[&Path]) -> anyhow::Result<()> {
    let mut entries = read(&fs::read_to_string(file)?)?;
    entries.sort_by_key(|entry| FIRST.iter().position(|first| entry.name() == *first).unwrap_or(FIRST.len()));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = format!("--test-threads={}", (processors / AT_ONCE).max(1));
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let (next, failed_ones, entries) = (&next, &failed, &entries);
    std::thread::scope(|scope| {
        for worker in 0..AT_ONCE.min(processors) {
            let (threads, output) = (&threads, file.with_extension(format!("{worker}.log")));
            scope.spawn(move || {
                while let Some(entry) = entries.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = entry.run(runner, threads, &output);
                    let mut failed = failed_ones.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    // Under the lock, so that what two of them say is not mixed.
                    eprintln!("     Running {}", entry.program);
                    let said = fs::read(&output).unwrap_or_default();
                    eprintln!("{}", String::from_utf8_lossy(&said));
                    if let Err(error) = result {
                        eprintln!("error: {error:#}");
                        failed.push(entry.name().to_owned());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{} of {} programs failed: {}", failed.len(), entries.len(), failed.join(", "))
}

fn read(text: &str) -> anyhow::Result<Vec<Entry>> {
    let entry = |line: &str| {
        let entry: Value = serde_json::from_str(line).ok()?;
        let variables = entry["variables"].as_object()?.iter();
        Some(Entry {
            program: entry["program"].as_str()?.to_owned(),
            arguments: entry["arguments"].as_array()?.iter().filter_map(text_of).collect(),
            folder: entry["folder"].as_str()?.into(),
            variables: variables.filter_map(|(name, value)| Some((name.clone(), text_of(value)?))).collect(),
        })
    };
    text.lines().map(entry).collect::<Option<_>>().context("the queue is damaged")
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

impl Entry {
    /// The program's name, without cargo's hash of what it was built of.
    fn name(&self) -> &str {
        name(&self.program)
    }

    /// Runs it; what it says comes into a file.
    fn run(&self, runner: &[&Path], threads: &str, output: &Path) -> anyhow::Result<()> {
        let file = File::create(output)?;
        let (first, rest) = runner.split_first().context("there is a runner")?;
        let mut command = Command::new(first);
        command.args(rest).arg(&self.program).args(&self.arguments).arg(threads);
        command.current_dir(&self.folder).env_clear().envs(&self.variables);
        let status = command.stdout(file.try_clone()?).stderr(file).status()?;
        if status.success() { Ok(()) } else { bail!("{} ended with {status}", self.name()) }
    }
}

/// A program's name in cargo's target folder, without the hash.
pub(crate) fn name(program: &str) -> &str {
    let file = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    file.rsplit_once('-').map_or(file, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_run_as_they_were_queued_and_all_failures_are_told() {
        let folder = std::env::temp_dir().join(format!("xtask-queue-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("queue");
        let entry = |script: &str, value: &str| {
            let entry = json!({
                "program": "sh", "arguments": ["-c", script], "folder": folder,
                "variables": { "PATH": std::env::var("PATH").unwrap(), "VALUE": value },
            });
            format!("{entry}\n")
        };
        let good = entry("echo $VALUE > made", "seven");
        fs::write(&file, format!("{good}{}{}", entry("exit 1", ""), entry("exit 3", ""))).unwrap();
        let error = run(&file, &[Path::new("env")]).unwrap_err().to_string();
        assert_eq!(error, "2 of 3 programs failed: sh, sh");
        assert_eq!(fs::read_to_string(folder.join("made")).unwrap(), "seven\n");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn names_have_no_hash() {
        assert_eq!(name("/t/debug/deps/random_graphs-e72d064f75110907"), "random_graphs");
        assert_eq!(name("sh"), "sh");
    }
}
