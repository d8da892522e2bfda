//! What machines reach, beside the records of kernels: a table for each class of machines and number of threads.

use std::fmt::Write;

use aoti_compiler::cost::Rates;
use aoti_compiler::from_json;
use aoti_compiler::json::{FromJson, Value};

use super::usable::family;

/// What the names of such tables begin with, where those of records have the key of a kernel.
const WORD: &str = "rates";

/// What rates are of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Runner {
    /// The class of machines.
    pub machine: String,
    /// Threads that computed and read at the same time.
    pub threads: u16,
}

impl Runner {
    /// The architecture that such machines are of.
    pub fn family(&self) -> &str {
        family(&self.machine)
    }
}

/// Rates as the file has them.
struct Raw {
    mflop_per_s: u64,
    caches: Vec<(u64, u64)>,
    memory_mb_per_s: u64,
}

from_json!(Raw { mflop_per_s = "mflop-per-s", caches, memory_mb_per_s = "memory-mb-per-s" });

/// The runner in the name of a table, if it is one of rates.
pub(super) fn runner(name: &str) -> Option<Result<Runner, String>> {
    let mut words = name.split(' ');
    if words.next() != Some(WORD) {
        return None;
    }
    let (Some(machine), Some(threads), None) = (words.next(), words.next(), words.next()) else {
        return Some(Err("its name is not of a machine and a number of threads".to_owned()));
    };
    let threads = threads.parse::<u16>().ok().filter(|threads| *threads > 0);
    let runner = threads.map(|threads| Runner { machine: machine.to_owned(), threads });
    Some(runner.ok_or_else(|| "its name has no number of threads".to_owned()))
}

/// The rates in a table.
pub(super) fn read(value: Value) -> Result<Rates, String> {
    let Raw { mflop_per_s, caches, memory_mb_per_s } =
        Raw::from_json(value).map_err(|error| error.message)?;
    let rates = Rates { mflop_per_s, caches, memory_mb_per_s };
    let is_possible = rates.are_possible();
    is_possible.then_some(rates).ok_or_else(|| "no machine is so fast, or so slow".to_owned())
}

/// A table.
pub(super) fn print(Runner { machine, threads }: &Runner, rates: &Rates) -> String {
    let caches: Vec<String> = rates.caches.iter().map(|(bytes, rate)| format!("[{bytes}, {rate}]")).collect();
    let mut text = format!("\n[\"{WORD} {machine} {threads}\"]\n");
    let _ = write!(
        text,
        "mflop-per-s = {}\ncaches = [{}]\nmemory-mb-per-s = {}\n",
        rates.mflop_per_s,
        caches.join(", "),
        rates.memory_mb_per_s
    );
    text
}
