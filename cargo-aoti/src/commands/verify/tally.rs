//! What became of all cases: the counts, and on a terminal how far it is and what took longest.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::outcome::{Outcome, Status};
use crate::terminal::Terminal;

/// So many of the slowest cases are named.
const SLOWEST: usize = 5;

pub(super) struct Tally {
    terminal: Terminal,
    bar: ProgressBar,
    counts: [usize; 3],
    /// The slowest so far, slowest first, with what compiling and running took in milliseconds.
    slowest: Vec<(f64, String)>,
}

impl Tally {
    pub(super) fn new(cases: usize, terminal: Terminal) -> Tally {
        let bar = ProgressBar::new(cases as u64);
        // Hidden by itself where stderr is no terminal.
        bar.set_draw_target(if terminal.has_progress() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        });
        let style = ProgressStyle::with_template("   Verifying [{bar:27}] {pos}/{len} {elapsed} {wide_msg}");
        bar.set_style(style.expect("the template is a constant").progress_chars("=> "));
        bar.enable_steady_tick(Duration::from_millis(200));
        Tally { terminal, bar, counts: [0; 3], slowest: Vec::new() }
    }

    /// Counts a case and has it reported above the bar.
    pub(super) fn add(&mut self, outcome: &Outcome, report: impl FnOnce()) {
        self.counts[match outcome.status {
            Status::Pass => 0,
            Status::Fail => 1,
            Status::Skip => 2,
        }] += 1;
        let millis = outcome.compile_ms.unwrap_or(0) as f64 + outcome.run_us.unwrap_or(0.0) / 1e3;
        let at = self.slowest.partition_point(|(other, _)| *other >= millis);
        if at < SLOWEST && millis > 0.0 {
            self.slowest.insert(at, (millis, outcome.name.clone()));
            self.slowest.truncate(SLOWEST);
        }
        self.bar.suspend(report);
        let failed = self.counts[1];
        self.bar.set_message(if failed > 0 { format!("{failed} failed") } else { String::new() });
        self.bar.inc(1);
    }

    /// Names the slowest cases, if somebody is there to read it, and gives how many passed, failed and were skipped.
    pub(super) fn finish(self) -> [usize; 3] {
        self.bar.finish_and_clear();
        let is_seen = stderr().is_terminal() || self.terminal.is_verbose();
        if is_seen && self.counts.iter().sum::<usize>() > 1 {
            for (millis, name) in &self.slowest {
                self.terminal.status("Slowest", &format!("{name}: {millis:.0} ms"));
            }
        }
        self.counts
    }
}
