//! What steps and programs take: seconds by the clock, and of processors, which another program beside them hardly changes.
//!
//! Processors' time is read where Linux tells it; elsewhere it is left out.

use std::fmt::{self, Write as _};
use std::fs;
use std::io::Write as _;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::queue;

/// What something took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Spent {
    pub(crate) seconds: f64,
    pub(crate) processor: Option<f64>,
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.seconds)?;
        self.processor.map_or(Ok(()), |seconds| write!(f, ", {seconds:.1} s of processors"))
    }
}

/// A moment from which to measure.
pub(crate) struct Clock {
    begun: Instant,
    processor: Option<f64>,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { begun: Instant::now(), processor: processor() }
    }

    /// Since the start, by this process and by the processes that it has waited for.
    pub(crate) fn spent(&self) -> Spent {
        let processor = processor().zip(self.processor).map(|(now, then)| now - then);
        Spent { seconds: self.begun.elapsed().as_secs_f64(), processor }
    }
}

/// Seconds of processors, of this process and those that it has waited for.
fn processor() -> Option<f64> {
    of_stat(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// The four times of `/proc/self/stat`, whose ticks Linux tells in hundredths of a second.
fn of_stat(text: &str) -> Option<f64> {
    // The name of the program comes before, in parentheses, and may hold anything.
    let (_, fields) = text.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).take(4).map(str::parse::<f64>);
    let mut sum = 0.0;
    for _ in 0..4 {
        sum += times.next()?.ok()?;
    }
    Some(sum / 100.0)
}

/// A line for each.
pub(crate) fn table(rows: &[(String, Spent)]) -> String {
    let mut text = String::from("  processor      clock\n");
    for (name, Spent { seconds, processor }) in rows {
        let processor = processor.map_or_else(|| "?".to_owned(), |seconds| format!("{seconds:.1} s"));
        let _ = writeln!(text, "{processor:>11} {:>10}  {name}", format!("{seconds:.1} s"));
    }
    text
}

/// A program of tests, as a row of the file that [`rows`] reads: `cargo xtask timed FILE PROGRAM ARGUMENTS…`. Ends as the program
/// does.
pub(crate) fn timed(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let [file, program, rest @ ..] = arguments else {
        bail!("usage: cargo xtask timed FILE PROGRAM [ARGUMENTS]");
    };
    let clock = Clock::start();
    let status = Command::new(program).args(rest).status().with_context(|| format!("`{program}`"))?;
    let Spent { seconds, processor } = clock.spent();
    let name = queue::name(program);
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let line = format!("{seconds}\t{}\t{package}: {name}\n", processor.unwrap_or(f64::NAN));
    let mut file = fs::OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(line.as_bytes())?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(101)))
}

/// The rows that [`timed`] wrote, those that took longest first.
pub(crate) fn rows(text: &str) -> Vec<(String, Spent)> {
    let row = |line: &str| {
        let mut fields = line.splitn(3, '\t');
        let mut number = || fields.next()?.parse::<f64>().ok();
        let (seconds, processor) = (number()?, number()?);
        let processor = (!processor.is_nan()).then_some(processor);
        Some((fields.next()?.to_owned(), Spent { seconds, processor }))
    };
    let mut rows: Vec<_> = text.lines().filter_map(row).collect();
    let weight = |spent: &Spent| spent.processor.unwrap_or(spent.seconds);
    rows.sort_by(|(_, a), (_, b)| weight(b).total_cmp(&weight(a)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_children_count_and_names_do_not() {
        let text = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 100 20 3000 400 20 0 1\n";
        assert_eq!(of_stat(text), Some(35.2));
        assert_eq!(of_stat("7 (a) S 1 2 3"), None);
    }

    #[test]
    fn a_tables_first_row_took_longest() {
        let rows = rows("1.5\t0.25\tp: short\n2\t3.5\tp: long\n9\tNaN\tp: unknown\nrubbish\n");
        assert_eq!(
            table(&rows),
            "  processor      clock\n          ?      9.0 s  p: unknown\n      3.5 s      2.0 s  p: long\n      0.2 s      1.5 s  p: short\n"
        );
    }
}
