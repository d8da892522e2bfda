//! What a build spent its time on: as a table, as objects, and as a page beside the artefacts, as cargo has one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use aoti_build::{ModelEvent, Progress};
use aoti_toolchain::Event;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::page::chart::{self, Span};
use crate::page::{Cell, Page, Table};

/// One action that is done.
struct Line {
    label: String,
    cached: bool,
    millis: u64,
    /// Milliseconds from the beginning of the build to its end.
    until: u64,
}

/// Passes on what it hears, and keeps how long each tool took.
pub(crate) struct Timings<'a> {
    next: &'a dyn Progress,
    begun: Instant,
    lines: Mutex<Vec<Line>>,
}

impl<'a> Timings<'a> {
    pub(crate) fn new(next: &'a dyn Progress) -> Timings<'a> {
        Timings { next, begun: Instant::now(), lines: Mutex::default() }
    }

    pub(crate) fn done(self) -> Done {
        let lines = self.lines.into_inner().unwrap_or_else(PoisonError::into_inner);
        Done { lines, millis: millis(self.begun) }
    }
}

fn millis(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The timings of a build that is over.
pub(crate) struct Done {
    lines: Vec<Line>,
    millis: u64,
}

impl Done {
    fn sorted(&self) -> Vec<&Line> {
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort_by(|a, b| b.millis.cmp(&a.millis).then_with(|| a.label.cmp(&b.label)));
        lines
    }

    /// How many actions ran or were in the cache, and the milliseconds of all of them.
    fn sum(&self, is_cached: bool) -> (usize, u64) {
        let own = || self.lines.iter().filter(|line| line.cached == is_cached);
        (own().count(), own().map(|line| line.millis).sum())
    }

    /// The longest first, then what all of them took.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("{:>9}  {:<6}  action\n", "seconds", "");
        for Line { label, cached, millis, .. } in self.sorted() {
            writeln!(text, "{:>9}  {:<6}  {label}", seconds(*millis), how(*cached)).expect("text takes text");
        }
        for is_cached in [false, true] {
            let (count, sum) = self.sum(is_cached);
            let actions = if count == 1 { "action" } else { "actions" };
            writeln!(text, "{:>9}  {:<6}  {count} {actions}", seconds(sum), how(is_cached))
                .expect("text takes text");
        }
        text
    }

    /// An object for each action, in the order in which they ended.
    pub(crate) fn json(&self) -> Vec<Value> {
        let object = |line: &Line| {
            json!({
                "reason": "aoti-timing", "action": line.label, "cached": line.cached, "ms": line.millis,
                "start_ms": line.until.saturating_sub(line.millis), "end_ms": line.until,
            })
        };
        self.lines.iter().map(object).collect()
    }

    /// Writes the page.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        self.page().write(path, &json!({ "ms": self.millis, "actions": self.json() }))
    }

    fn page(&self) -> Page {
        let [(ran, ran_ms), (cached, cached_ms)] = [self.sum(false), self.sum(true)];
        let lead = format!("{} actions: {ran} ran, {cached} were in the cache.", self.lines.len());
        let mut page = Page::new("Build timings", &lead);
        page.fact("wall time", &format!("{} s", seconds(self.millis)));
        page.fact("in tools", &format!("{} s", seconds(ran_ms)));
        page.fact("looking into the cache", &format!("{} s", seconds(cached_ms)));
        page.fact("most at once", &self.most_at_once().to_string());
        if self.lines.is_empty() {
            return page;
        }
        let (rows, spans) = self.spans();
        let text = "Each row is a slot in which one tool runs at a time, in seconds from the beginning of the build. What is blank at \
                    the beginning is the compiler itself, which works before its tools.";
        let drawn = chart::timeline("Tools over time", &rows, &spans, "s");
        let legend = chart::legend(&[(0, "ran"), (2, "taken from the cache")]);
        page.section("Tools over time", text, &(drawn + &legend));
        let columns =
            [("action", false), ("seconds", true), ("share", true), ("begun at", true), ("", false)];
        let mut table = Table::new("Actions, longest first", &columns);
        for line in self.sorted() {
            let from = line.until.saturating_sub(line.millis);
            table.row(&[
                Cell::Text(line.label.clone()),
                Cell::Number(Some(line.millis as f64 / 1e3), 3),
                Cell::Part(Some(line.millis as f64 / (ran_ms + cached_ms).max(1) as f64), false),
                Cell::Number(Some(from as f64 / 1e3), 3),
                Cell::Text(how(line.cached).to_owned()),
            ]);
        }
        page.section("Actions", "", &table.html());
        page
    }

    fn most_at_once(&self) -> usize {
        let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
        for line in &self.lines {
            *changes.entry(line.until.saturating_sub(line.millis)).or_default() += 1;
            *changes.entry(line.until.max(line.until.saturating_sub(line.millis) + 1)).or_default() -= 1;
        }
        let (mut now, mut most) = (0, 0);
        for change in changes.values() {
            now += change;
            most = most.max(now);
        }
        usize::try_from(most).unwrap_or(0)
    }

    /// The actions in rows, of which each has one at a time.
    fn spans(&self) -> (Vec<String>, Vec<Span>) {
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort_by_key(|line| (line.until.saturating_sub(line.millis), line.until));
        let (mut ends, mut spans): (Vec<u64>, Vec<Span>) = (Vec::new(), Vec::new());
        for line in lines {
            let from = line.until.saturating_sub(line.millis);
            let row = ends.iter().position(|end| *end <= from).unwrap_or(ends.len());
            if row == ends.len() {
                ends.push(0);
            }
            ends[row] = line.until.max(from + 1);
            spans.push(Span {
                row,
                from: from as f64 / 1e3,
                to: line.until as f64 / 1e3,
                colour: if line.cached { 2 } else { 0 },
                label: format!("{}: {} s, {}", line.label, seconds(line.millis), how(line.cached)),
                name: line.label.clone(),
            });
        }
        ((1..=ends.len()).map(|row| row.to_string()).collect(), spans)
    }
}

fn how(is_cached: bool) -> &'static str {
    if is_cached { "cached" } else { "ran" }
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
        if let Event::Finished { label, cached, millis: took } = event {
            let until = millis(self.begun).max(*took);
            let line = Line { label: (*label).to_owned(), cached: *cached, millis: *took, until };
            self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
        self.next.tool(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timings() -> Done {
        let timings = Timings::new(&aoti_build::Silent);
        for (label, cached, millis) in
            [("a: run", true, 7), ("a: kernels", false, 12_045), ("b: run", false, 300)]
        {
            timings.tool(&Event::Started { label });
            timings.tool(&Event::Finished { label, cached, millis });
        }
        timings.done()
    }

    #[test]
    fn the_longest_comes_first_and_caches_are_told_apart() {
        let expected = "  seconds          action\n   12.045  ran     a: kernels\n    0.300  ran     b: run\n    0.007  cached  a: run\n   \
                        12.345  ran     2 actions\n    0.007  cached  1 action\n";
        assert_eq!(timings().table(), expected);
    }

    #[test]
    fn the_page_has_what_the_objects_have() {
        let timings = timings();
        let html = timings.page().html(&json!(timings.json()));
        crate::page::tests::check(&html);
        for text in ["12.045", "a: kernels", "12.345 s", "<td>cached</td>"] {
            assert!(html.contains(text), "{text}");
        }
        let json = timings.json();
        assert_eq!((&json[1]["ms"], &json[1]["reason"]), (&json!(12_045), &json!("aoti-timing")));
        // Two that run at once are in two rows.
        assert!(timings.spans().0.len() >= 2 && timings.most_at_once() >= 2);
    }
}
