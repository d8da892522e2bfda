//! Reads the text of `aoti.lock`. Whatever is in it, the result is records that make sense, or what is wrong and where.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use aoti_compiler::from_json;
use aoti_compiler::json::{FromJson, Map, Value};
use aoti_compiler::schedule::{Setting, TuningKey};

use super::{Lock, Place, Reading, Record, Sizes, VERSION, rates};
use crate::locate::Location;
use crate::problem::{Code, Problem};

/// More than any project has; a larger file is none of ours.
const MOST_BYTES: usize = 64 << 20;

const TIMES: [&str; 5] = ["us", "spread-us", "default-us", "runner-up-us", "predicted"];

/// A record as the file has it.
struct Raw {
    model: String,
    kernel: String,
    choice: String,
    us: f64,
    spread_us: f64,
    default_us: f64,
    runner_up: Option<String>,
    runner_up_us: Option<f64>,
    others: Vec<(String, f64)>,
    predicted: f64,
    template: u32,
    tool: String,
    compiler: String,
}

from_json!(Raw {
    choice, us, spread_us = "spread-us", default_us = "default-us", runner_up = "runner-up", runner_up_us = "runner-up-us",
    predicted, template, tool, compiler,
} or_default { model, kernel, others });

pub(crate) fn read(path: &Path, bytes: &[u8]) -> Result<Reading, Problem> {
    let problem = |message: String, location: Option<Location>, help: &str| Problem {
        code: Code::Lock,
        message,
        place: path.display().to_string(),
        location,
        help: Some(help.to_owned()),
    };
    let again = "remove the file and run `cargo aoti tune` to measure again";
    if bytes.len() > MOST_BYTES {
        return Err(problem("the file is too large to be a lock".to_owned(), None, again));
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(problem("the file is not text".to_owned(), None, again));
    };
    let shared: Arc<str> = text.into();
    let at = |range: Range<usize>| Location::new(path, &shared, range);
    if let Some(range) = conflict(text) {
        let help = "keep the records of both sides, or of either, and remove the marks";
        return Err(problem("a merge has left its marks in the file".to_owned(), at(range), help));
    }
    let table: Map<String, Value> = toml::from_str(text).map_err(|error: toml::de::Error| {
        let location = error.span().and_then(at);
        problem(format!("the file is not TOML: {}", error.message().trim()), location, again)
    })?;
    match table.get("version").map(Value::as_i64) {
        Some(Some(VERSION)) => {}
        Some(Some(version)) if version > VERSION => {
            let message = format!("the file is of version {version}, and this cargo-aoti knows {VERSION}");
            return Err(problem(message, at(position(text, "version")), "a newer cargo-aoti reads it"));
        }
        Some(_) => {
            return Err(problem(
                "the file's version is none".to_owned(),
                at(position(text, "version")),
                again,
            ));
        }
        None => return Err(problem("the file has no `version`".to_owned(), None, again)),
    }
    let (mut lock, mut notes) = (Lock::default(), Vec::new());
    for (name, value) in table.into_iter().filter(|(name, _)| name != "version") {
        match entry(&mut lock, &name, value) {
            Ok(()) => {}
            Err(reason) => {
                let line = text[..position(text, &name).start].matches('\n').count() + 1;
                let path = path.display();
                notes.push(format!(
                    "{path}:{line}: the record `{}` is ignored: {reason}",
                    name.escape_debug()
                ));
            }
        }
    }
    Ok(Reading { lock, notes })
}

/// Adds what a table says.
fn entry(lock: &mut Lock, name: &str, value: Value) -> Result<(), String> {
    if let Some(runner) = rates::runner(name) {
        lock.rates.insert(runner?, rates::read(value)?);
    } else {
        let (place, record) = record(name, value)?;
        lock.records.insert(place, record);
    }
    Ok(())
}

/// The first mark that a merge leaves.
fn conflict(text: &str) -> Option<Range<usize>> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let is_mark = ["<<<<<<<", "=======", ">>>>>>>", "|||||||"].iter().any(|mark| line.starts_with(mark));
        if is_mark {
            return Some(at..at + line.trim_end().len());
        }
        at += line.len();
    }
    None
}

/// Where a key first stands; the beginning where it is written in some other way.
fn position(text: &str, key: &str) -> Range<usize> {
    text.find(key).map_or(0..0, |at| at..at + key.len())
}

fn record(name: &str, value: Value) -> Result<(Place, Record), String> {
    let mut words = name.split(' ');
    let (Some(kernel), Some(machine), Some(threads), sizes, None) =
        (words.next(), words.next(), words.next(), words.next(), words.next())
    else {
        return Err("its name is not a kernel, a machine, a number of threads, and sizes if any".to_owned());
    };
    let kernel = TuningKey::parse(kernel).ok_or("its name does not begin with the key of a kernel")?;
    let threads = threads.parse::<u16>().ok().filter(|threads| *threads > 0);
    let threads = threads.ok_or("its name has no number of threads")?;
    let sizes = match sizes {
        None => Sizes::default(),
        Some(text) => Sizes::parse(text).ok_or("its name does not end with sizes")?,
    };
    let impossible = "it has a time that cannot be";
    // TOML's infinities and NaN, which are not numbers in JSON; TOML itself has no null.
    if TIMES.iter().any(|key| value.get(key).is_some_and(Value::is_null)) {
        return Err(impossible.to_owned());
    }
    let raw = Raw::from_json(value).map_err(|error| error.message)?;
    let times = [raw.us, raw.spread_us, raw.default_us, raw.predicted].into_iter().chain(raw.runner_up_us);
    // A candidate that failed has no time; an infinite one would be slow for ever after.
    let mut times = times.chain(raw.others.iter().map(|(_, micros)| *micros));
    if times.any(|time| !time.is_finite() || time < 0.0) {
        return Err(impossible.to_owned());
    }
    let setting = |text: &str| {
        text.parse::<Setting>().map_err(|_| format!("`{}` is no choice that is known", text.escape_debug()))
    };
    let runner_up = raw.runner_up.zip(raw.runner_up_us);
    let others = runner_up.into_iter().chain(raw.others);
    let others = others.map(|(text, micros)| Ok((setting(&text)?, micros))).collect::<Result<_, String>>()?;
    let record = Record {
        setting: setting(&raw.choice)?,
        model: raw.model,
        name: raw.kernel,
        template: raw.template,
        micros: raw.us,
        spread: raw.spread_us,
        default_micros: raw.default_us,
        others,
        predicted: raw.predicted,
        tool: raw.tool,
        compiler: raw.compiler,
    };
    Ok((Place { kernel, machine: machine.to_owned(), threads, sizes }, record))
}
