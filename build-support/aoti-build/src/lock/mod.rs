//! `aoti.lock`: the choices that `cargo aoti tune` measured, beside the package's manifest, to be committed.
//!
//! A table for each kernel, class of machines, number of threads and, where the kernel's key leaves sizes open, sizes, in
//! order, so that what people tune apart merges without conflicts; behind them one for each class of machines and number of
//! threads, of what these reach. The file is replaced in one step under a lock on its folder, so that it is a valid one at any moment
//! and two processes lose nothing. What is wrong with the file as a whole is an error with its place; a record that makes
//! no sense is passed over with a note, as builds only ever choose among ways that are right.

mod rates;
pub(crate) mod read;
mod sizes;
#[cfg(test)]
pub(crate) mod tests;
mod usable;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use aoti_compiler::cost::Rates;
use aoti_compiler::schedule::{Setting, TuningKey};
use aoti_toolchain::FileLock;

use crate::error::Error;
use crate::files;
use crate::problem::Problems;

pub use rates::Runner;
pub use sizes::Sizes;
pub use usable::{ApplicableRecords, Machines};

/// The name of the file, in the folder of the package.
pub const FILE: &str = "aoti.lock";

/// The form of the file.
const VERSION: i64 = 1;

const HEAD: &str = "\
# Choices that `cargo aoti tune` measured; builds use them and measure nothing. Commit this file.
# Take both sides of a conflict, or either: records that do not apply are ignored, and `cargo aoti tune` measures again.
";

/// What a record is of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The kernel.
    pub kernel: TuningKey,
    /// The class of machines.
    pub machine: String,
    /// Threads that a run had.
    pub threads: u16,
    /// The sizes that the kernel's key leaves open.
    pub sizes: Sizes,
}

/// What was measured of one kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// The model that it was measured in.
    pub model: String,
    /// The kernel's name there.
    pub name: String,
    /// The fastest way to run it that gives what it should.
    pub setting: Setting,
    /// The version of its template.
    pub template: u32,
    /// Microseconds that it takes: the median.
    pub micros: f64,
    /// Half the distance between the quartiles of these, in microseconds.
    pub spread: f64,
    /// Microseconds that the way takes that is chosen without a record.
    pub default_micros: f64,
    /// Other ways that were measured, with their microseconds, the fastest first: the runner-up, and where sizes are open as
    /// many as tell which way is best at all of them.
    pub others: Vec<(Setting, f64)>,
    /// What it was thought to cost, as a multiple of the default.
    pub predicted: f64,
    /// The version of this tool.
    pub tool: String,
    /// The native compiler.
    pub compiler: String,
}

/// The records of a project, and what the machines reach that they are of.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Lock {
    /// By what they are of.
    pub records: BTreeMap<Place, Record>,
    /// By what they are of; builds price work by them.
    pub rates: BTreeMap<Runner, Rates>,
}

/// A lock with what is to be said about its file.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Reading {
    /// What could be read.
    pub lock: Lock,
    /// Records that were passed over, and why.
    pub notes: Vec<String>,
}

impl Lock {
    /// Reads the file; one that is not there has no records.
    ///
    /// # Errors
    /// [`Error::File`] when it cannot be read, [`Error::Manifest`] with the place of what is wrong in it.
    pub fn read(path: &Path) -> Result<Reading, Error> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Reading::default()),
            Err(error) => return Err(files::file_error("read", path)(error)),
        };
        read::read(path, &bytes).map_err(|problem| Error::Manifest(Problems(vec![problem])))
    }

    /// Finds out whether the file could be written now, with room for some more records: better before hours of measuring
    /// than after them.
    ///
    /// # Errors
    /// As [`Lock::update`].
    pub fn check_writable(path: &Path) -> Result<(), Error> {
        const ROOM: usize = 16 << 10;
        let mut text = Lock::read(path)?.lock.to_string();
        text.push_str(&"\n".repeat(ROOM));
        files::check_replaceable(path, text.as_bytes())
    }

    /// Reads the file, changes the records, and replaces the file by the result in one step, with no other process at it
    /// between. Gives what is to be said about the old file.
    ///
    /// # Errors
    /// As [`Lock::read`], and when the file cannot be written. Then it is as it was.
    pub fn update(path: &Path, change: impl FnOnce(&mut Lock)) -> Result<Vec<String>, Error> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The folder, so that no file is left behind; where it cannot be locked, the last one to write wins.
        let mut folder = FileLock::of_folder(folder).ok();
        let _held = folder.as_mut().and_then(|folder| folder.take().ok());
        let Reading { mut lock, notes } = Lock::read(path)?;
        change(&mut lock);
        files::write(path, lock.to_string().as_bytes())?;
        Ok(notes)
    }
}

/// A string as TOML has it. What JSON escapes, and how, is a part of that, except for one character.
fn quoted(text: &dyn std::fmt::Display) -> String {
    serde_json::Value::String(text.to_string()).to_string().replace('\x7f', "\\u007F")
}

impl std::fmt::Display for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{HEAD}version = {VERSION}")?;
        for (Place { kernel, machine, threads, sizes }, record) in &self.records {
            let mut others = String::new();
            if let Some((setting, micros)) = record.others.first() {
                let _ = write!(others, "runner-up = {}\nrunner-up-us = {micros:.3}\n", quoted(setting));
            }
            let more = record.others.iter().skip(1);
            let more: Vec<_> = more.map(|(own, micros)| format!("[{}, {micros:.3}]", quoted(own))).collect();
            if !more.is_empty() {
                let _ = writeln!(others, "others = [{}]", more.join(", "));
            }
            let sizes = if sizes.is_empty() { String::new() } else { format!(" {sizes}") };
            write!(
                f,
                "\n[\"{kernel} {machine} {threads}{sizes}\"]\nmodel = {}\nkernel = {}\nchoice = {}\nus = {:.3}\nspread-us = {:.3}\n\
                 default-us = {:.3}\n{others}predicted = {:.3}\ntemplate = {}\ntool = {}\ncompiler = {}\n",
                quoted(&record.model),
                quoted(&record.name),
                quoted(&record.setting),
                record.micros,
                record.spread,
                record.default_micros,
                record.predicted,
                record.template,
                quoted(&record.tool),
                quoted(&record.compiler),
            )?;
        }
        self.rates.iter().try_for_each(|(runner, rates)| f.write_str(&rates::print(runner, rates)))
    }
}
