//! What a build spent its time on, as a table.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use aoti_build::{ModelEvent, Progress};
use aoti_toolchain::Event;

/// One action that is done.
struct Line {
    label: String,
    cached: bool,
    millis: u64,
}

/// Passes on what it hears, and keeps how long each tool took.
pub(crate) struct Timings<'a> {
    next: &'a dyn Progress,
    lines: Mutex<Vec<Line>>,
}

impl<'a> Timings<'a> {
    pub(crate) fn new(next: &'a dyn Progress) -> Timings<'a> {
        Timings { next, lines: Mutex::default() }
    }

    /// The longest first, then what all of them took.
    pub(crate) fn table(self) -> String {
        let mut lines = self.lines.into_inner().unwrap_or_else(PoisonError::into_inner);
        lines.sort_by(|a, b| b.millis.cmp(&a.millis).then_with(|| a.label.cmp(&b.label)));
        let mut text = format!("{:>9}  {:<6}  action\n", "seconds", "");
        for Line { label, cached, millis } in &lines {
            let how = if *cached { "cached" } else { "ran" };
            writeln!(text, "{:>9}  {how:<6}  {label}", seconds(*millis)).expect("text takes text");
        }
        for (how, is_cached) in [("ran", false), ("cached", true)] {
            let own = || lines.iter().filter(|line| line.cached == is_cached);
            let (count, sum) = (own().count(), own().map(|line| line.millis).sum());
            let actions = if count == 1 { "action" } else { "actions" };
            writeln!(text, "{:>9}  {how:<6}  {count} {actions}", seconds(sum)).expect("text takes text");
        }
        text
    }
}

fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

impl Progress for Timings<'_> {
    fn model(&self, event: &ModelEvent<'_>) {
        self.next.model(event);
    }

    fn planned(&self, actions: usize) {
        self.next.planned(actions);
    }

    fn tool(&self, event: &Event<'_>) {
        if let Event::Finished { label, cached, millis } = event {
            let line = Line { label: (*label).to_owned(), cached: *cached, millis: *millis };
            self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
        self.next.tool(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_comes_first_and_caches_are_told_apart() {
        let timings = Timings::new(&aoti_build::Silent);
        for (label, cached, millis) in
            [("a: run", true, 7), ("a: kernels", false, 12_045), ("b: run", false, 300)]
        {
            timings.tool(&Event::Started { label });
            timings.tool(&Event::Finished { label, cached, millis });
        }
        let expected = "  seconds          action\n   12.045  ran     a: kernels\n    0.300  ran     b: run\n    0.007  cached  a: run\n   \
                        12.345  ran     2 actions\n    0.007  cached  1 action\n";
        assert_eq!(timings.table(), expected);
    }
}
