//! `bench --compare`: this measurement beside an earlier one, with how sure the difference is.
//!
//! Runs one after the other are not independent: what else the machine does lasts longer than a run. So the medians of
//! consecutive parts are compared, by the interval that belongs to Wilcoxon's rank-sum test (Hodges and Lehmann): it assumes no
//! distribution, and a few parts that are far off move it little.

use std::path::Path;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::memory;

/// Parts that a measurement is cut into.
pub(super) const PARTS: usize = 20;
/// Parts below which nothing is said of how sure a difference is.
const LEAST: usize = 5;

/// The medians of consecutive parts of runs, in the order in which they were measured.
pub(super) fn parts(micros: &[f64]) -> Vec<f64> {
    let count = PARTS.min(micros.len());
    let part = |number: usize| {
        let mut part = micros[number * micros.len() / count..(number + 1) * micros.len() / count].to_vec();
        part.sort_by(f64::total_cmp);
        part[part.len() / 2]
    };
    (0..count).map(part).collect()
}

/// How a measurement differs from an earlier one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Change {
    /// The earlier median, in microseconds.
    old: f64,
    new: f64,
    /// How many times as long it takes now: what is most likely, and between what it is with 95 % certainty.
    ratio: f64,
    interval: Option<(f64, f64)>,
}

impl Change {
    pub(super) fn new(old: &[f64], new: &[f64]) -> Option<Change> {
        let median = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            sorted.get(sorted.len() / 2).copied()
        };
        let mut ratios: Vec<f64> = new.iter().flat_map(|new| old.iter().map(move |old| new / old)).collect();
        ratios.sort_by(f64::total_cmp);
        let (m, n) = (old.len() as f64, new.len() as f64);
        // The normal approximation of the test's distribution, good from a handful of values on.
        let spread = 1.96 * (m * n * (m + n + 1.0) / 12.0).sqrt();
        let low = (m * n / 2.0 - spread).floor();
        let is_enough = old.len().min(new.len()) >= LEAST && low >= 0.0;
        let interval = is_enough.then(|| {
            let low = low as usize;
            (ratios[low], ratios[ratios.len() - 1 - low])
        });
        Some(Change { old: median(old)?, new: median(new)?, ratio: median(&ratios)?, interval })
    }

    fn verdict(self) -> &'static str {
        match self.interval {
            Some((_, high)) if high < 1.0 => "faster",
            Some((low, _)) if low > 1.0 => "slower",
            Some(_) | None => "no certain difference",
        }
    }

    pub(super) fn json(self) -> Value {
        json!({
            "old_us": self.old, "new_us": self.new, "ratio": self.ratio, "verdict": self.verdict(),
            "ratio_low": self.interval.map(|(low, _)| low), "ratio_high": self.interval.map(|(_, high)| high),
        })
    }

    pub(super) fn text(self) -> String {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let interval = match self.interval {
            Some((low, high)) => {
                format!("between {:+.1} % and {:+.1} % with 95 % certainty", percent(low), percent(high))
            }
            None => "too few runs to say how certain".to_owned(),
        };
        format!(
            "{:.2} us -> {:.2} us: {} ({:+.1} %, {interval})",
            self.old,
            self.new,
            self.verdict(),
            percent(self.ratio)
        )
    }
}

/// The parts of an earlier measurement: what `bench --format json` printed.
pub(super) fn read(path: &Path) -> Result<Vec<f64>, Failure> {
    let refuse = |reason: &str| {
        let path = path.display();
        Failure::User(format!("`{path}` is not what `cargo aoti bench --format json` prints: {reason}"))
    };
    let text = memory::map(path)?;
    let text = std::str::from_utf8(&text).map_err(|_| refuse("it is no text"))?;
    let mut lines = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let found = lines.find(|line| line["reason"] == "aoti-bench");
    let found = found.ok_or_else(|| refuse("no object has the reason `aoti-bench`"))?;
    let parts = found["us_parts"].as_array().ok_or_else(|| refuse("it has no `us_parts`"))?;
    let parts: Vec<f64> =
        parts.iter().filter_map(Value::as_f64).filter(|us| us.is_finite() && *us > 0.0).collect();
    if parts.is_empty() { Err(refuse("its `us_parts` are no times")) } else { Ok(parts) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(middle: f64) -> Vec<f64> {
        (0..20).map(|k| middle * (1.0 + 0.01 * f64::from((k * 7) % 11 - 5) / 5.0)).collect()
    }

    #[test]
    fn differences_are_called_so_where_they_are_certain() {
        let change = |old: f64, new: f64| Change::new(&noisy(old), &noisy(new)).unwrap();
        assert_eq!(change(100.0, 100.1).verdict(), "no certain difference");
        assert_eq!(change(100.0, 103.0).verdict(), "slower");
        assert_eq!(change(100.0, 90.0).verdict(), "faster");
        let (low, high) = change(100.0, 110.0).interval.unwrap();
        assert!(low < 1.1 && 1.1 < high && high - low < 0.02, "{low} {high}");
        let few = Change::new(&[1.0, 1.0], &[2.0, 2.0]).unwrap();
        assert!(few.interval.is_none() && few.text().contains("too few runs"));
        assert_eq!(Change::new(&[], &[1.0]), None);
    }

    #[test]
    fn one_part_that_is_far_off_changes_little() {
        let mut old = noisy(100.0);
        old[3] = 1e6;
        assert_eq!(Change::new(&old, &noisy(100.0)).unwrap().verdict(), "no certain difference");
    }

    #[test]
    fn parts_are_consecutive() {
        let micros: Vec<f64> = (0..40).map(f64::from).collect();
        let found = parts(&micros);
        assert_eq!((found.len(), found[0], found[19]), (20, 1.0, 39.0));
        assert_eq!(parts(&[5.0]), [5.0]);
    }

    #[test]
    fn files_that_are_no_measurement_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.json");
        for (text, reason) in [
            ("", "no object"),
            ("{}", "no object"),
            ("{\"reason\": \"aoti-bench\"}", "us_parts"),
            ("{\"reason\": \"aoti-bench\", \"us_parts\": [\"x\", -1]}", "no times"),
        ] {
            std::fs::write(&path, text).unwrap();
            let Err(Failure::User(said)) = read(&path) else { panic!("{text}") };
            assert!(said.contains(reason), "{said}");
        }
        std::fs::write(&path, "talk\n{\"reason\": \"aoti-bench\", \"us_parts\": [1.5, 2.0]}\n").unwrap();
        assert_eq!(read(&path).unwrap(), [1.5, 2.0]);
    }
}
