//! Time of each kernel of a model, beside what it has to do.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use aoti_compiler::loops::work::Work;
use aoti_runtime::{AnyView, DynTensor, Executor, KernelEvent, KernelInfo, KernelPhase, Model, Workspace};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::table;
use aoti_tune::peaks::Peaks;

/// Kernels below this part of what can be reached are worth a look.
pub(super) const SLOW: f64 = 0.25;
/// Kernels that take less of the whole are added up where there is little room.
const LITTLE: f64 = 0.01;
/// No kernel exceeds by so much what its machine reaches.
const BEYOND: f64 = 1.05;
/// Microseconds below which a clock tells little.
const RESOLUTION: f64 = 1.0;
/// Runs before those that count.
const WARM_UPS: usize = 5;
const MOST_RUNS: usize = 100_000;

/// What was measured of one kernel.
pub(super) struct Row<'a> {
    pub(super) kernel: &'a KernelInfo,
    /// Median over the runs, all iterations of a loop together.
    pub(super) micros: f64,
    /// Calls in one run.
    pub(super) calls: usize,
    pub(super) work: Option<Work>,
}

impl Row<'_> {
    pub(super) fn gb_per_s(&self) -> Option<f64> {
        self.work.map(|work| rate(work.read + work.written, self.micros))
    }

    pub(super) fn gflop_per_s(&self) -> Option<f64> {
        self.work.map(|work| rate(work.operations, self.micros))
    }
}

/// A model's kernels with their times.
pub(super) struct Profile<'a> {
    rows: Vec<Row<'a>>,
    runs: usize,
    limit: Option<Limit>,
}

/// What times are held against.
pub(super) enum Limit {
    /// What the processor reaches on as many threads.
    Machine(Peaks),
    /// Of a device: billions of bytes that a large copy there reads and writes in a second, or why nobody knows.
    Copy(Result<f64, String>),
}

/// What one run took, for each kernel.
pub(super) struct Times {
    micros: Vec<f64>,
    calls: Vec<usize>,
}

impl Times {
    pub(super) fn add(&mut self, kernel: usize, micros: f64) {
        self.micros[kernel] += micros;
        self.calls[kernel] += 1;
    }
}

/// Times the kernels of runs one by one, for so long.
pub(super) fn measure<'a>(
    model: &'a Model,
    views: &[AnyView<'_>],
    executor: &dyn Executor,
    limit: Duration,
    work: &BTreeMap<String, Option<Work>>,
) -> Result<Profile<'a>, Failure> {
    let info = model.info();
    let mut outputs: Vec<DynTensor> =
        info.outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let mut targets: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    let mut workspace = Workspace::new();
    repeated(&info.kernels, limit, work, &mut |times| {
        let mut state = if info.state_bytes > 0 { Some(model.state()?) } else { None };
        let mut since = Instant::now();
        let mut watch = |event: KernelEvent<'_>| match event.phase {
            KernelPhase::Begin => since = Instant::now(),
            KernelPhase::End(_) => times.add(event.index, since.elapsed().as_nanos() as f64 / 1e3),
        };
        model.run_watched(views, &mut targets, state.as_mut(), &mut workspace, executor, &mut watch)?;
        Ok(())
    })
}

/// Runs `once` for so long, which adds the times of a run.
pub(super) fn repeated<'a>(
    kernels: &'a [KernelInfo],
    limit: Duration,
    work: &BTreeMap<String, Option<Work>>,
    once: &mut dyn FnMut(&mut Times) -> Result<(), Failure>,
) -> Result<Profile<'a>, Failure> {
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); kernels.len()];
    let mut calls = vec![0; kernels.len()];
    let (mut begun, mut runs) = (Instant::now(), 0);
    for round in 0.. {
        if round == WARM_UPS {
            begun = Instant::now();
        }
        if round > WARM_UPS && (begun.elapsed() >= limit || runs >= MOST_RUNS) {
            break;
        }
        let mut times = Times { micros: vec![0.0; kernels.len()], calls: vec![0; kernels.len()] };
        once(&mut times)?;
        calls = times.calls;
        if round >= WARM_UPS {
            runs += 1;
            samples.iter_mut().zip(times.micros).for_each(|(samples, micros)| samples.push(micros));
        }
    }
    let rows = kernels.iter().zip(samples).zip(calls).map(|((kernel, mut samples), calls)| {
        samples.sort_by(f64::total_cmp);
        let micros = samples.get(samples.len() / 2).copied().unwrap_or(0.0);
        // A kernel in a loop does its work once in each iteration.
        let repeat = |work: Work| Work {
            operations: work.operations * calls as f64,
            read: work.read * calls as f64,
            written: work.written * calls as f64,
        };
        Row { kernel, micros, calls, work: work.get(&kernel.name).copied().flatten().map(repeat) }
    });
    Ok(Profile { rows: rows.collect(), runs, limit: None })
}

impl<'a> Profile<'a> {
    /// The same, held against what can be reached.
    pub(super) fn against(self, limit: Limit) -> Profile<'a> {
        Profile { limit: Some(limit), ..self }
    }

    /// The same, held against what this machine reaches with so many threads; that is measured again where it is in doubt.
    pub(super) fn against_machine(self, cache: Option<&Path>, threads: usize) -> Profile<'a> {
        let profile = self.against(Limit::Machine(Peaks::here(cache, threads, false)));
        if profile.is_doubtful() {
            profile.against(Limit::Machine(Peaks::doubted(cache, threads)))
        } else {
            profile
        }
    }

    /// The part of a copy's rate that a kernel reads and writes at.
    fn of_copy(&self, row: &Row<'_>) -> Option<f64> {
        let Some(Limit::Copy(Ok(copy))) = &self.limit else { return None };
        row.work.map(|work| rate(work.read + work.written, row.micros) / copy)
    }

    /// The least time that the processor needs for a kernel's work, as a part of the time that it takes.
    fn of_limit(&self, row: &Row<'_>) -> Option<f64> {
        let Some(Limit::Machine(rates)) = &self.limit else { return None };
        let (work, calls) = (row.work?, row.calls.max(1) as f64);
        let once = Work {
            operations: work.operations / calls,
            read: work.read / calls,
            written: work.written / calls,
        };
        (row.micros > 0.0).then(|| rates.least_micros(once) * calls / row.micros)
    }

    /// The kernels, longest first.
    pub(super) fn sorted(&self) -> Vec<&Row<'a>> {
        let mut rows: Vec<&Row<'a>> = self.rows.iter().collect();
        rows.sort_by(|a, b| b.micros.total_cmp(&a.micros));
        rows
    }

    /// In the order of the run.
    pub(super) fn kernels(&self) -> Vec<&'a KernelInfo> {
        self.rows.iter().map(|row| row.kernel).collect()
    }

    pub(super) fn limit(&self) -> Option<&Limit> {
        self.limit.as_ref()
    }

    /// What times are held against, in two words.
    pub(super) fn limit_name(&self) -> &'static str {
        match self.limit {
            None => "",
            Some(Limit::Machine(_)) => "of limit",
            Some(Limit::Copy(_)) => "of copy",
        }
    }

    /// The part of the whole that a kernel takes.
    pub(super) fn share(&self, row: &Row<'_>) -> f64 {
        let total = self.total();
        if total > 0.0 { row.micros / total } else { 0.0 }
    }

    /// The times of a run, for one that was not watched itself.
    pub(super) fn times(&self) -> impl Iterator<Item = f64> + '_ {
        self.rows.iter().map(|row| row.micros)
    }

    fn total(&self) -> f64 {
        self.rows.iter().map(|row| row.micros).sum()
    }

    /// The part of what can be reached that a kernel reaches.
    pub(super) fn part(&self, row: &Row<'_>) -> Option<f64> {
        self.of_copy(row).or(self.of_limit(row))
    }

    /// Whether a kernel is faster than its machine can be: then what the machine reaches was measured in a bad moment.
    pub(super) fn is_doubtful(&self) -> bool {
        let is_faster =
            |row: &Row<'_>| row.micros > RESOLUTION && self.of_limit(row).is_some_and(|part| part > BEYOND);
        self.rows.iter().any(is_faster)
    }

    /// The kernels, longest first, as a table of so many columns; without a number, with all that is known.
    pub(super) fn table(&self, width: Option<usize>) -> String {
        let total = self.total();
        let rows = self.sorted();
        let mut text = match width {
            None => self.wide(&rows, total),
            Some(width) => self.narrow(&rows, total, width),
        };
        let how = match &self.limit {
            None => "with a clock around each kernel".to_owned(),
            Some(Limit::Machine(rates)) => {
                format!("with a clock around each kernel; this machine reaches {}", rates.text())
            }
            Some(Limit::Copy(copy)) => {
                let copy = match copy {
                    Ok(copy) => format!("a large copy goes at {copy:.0} GB/s, read and written"),
                    Err(reason) => format!("how fast a copy goes is not known: {reason}"),
                };
                format!("launched one by one between events of the device; {copy}")
            }
        };
        text.push_str(&self.verdict(total, width));
        let foot = format!("{total:.2} us in kernels, medians of {} runs {how}", self.runs);
        text.push_str(&width.map_or_else(|| foot.clone(), |width| table::wrap(&foot, width)));
        text.push('\n');
        text
    }

    /// What to make of it: how much of the time kernels take that are far from what can be reached.
    fn verdict(&self, total: f64, width: Option<usize>) -> String {
        let is_slow = |row: &&Row<'_>| self.part(row).is_some_and(|part| part < SLOW);
        let slow: f64 = self.rows.iter().filter(is_slow).map(|row| row.micros).sum();
        let mut text = String::new();
        if slow > 0.0 {
            text.push_str(&format!(
                "{slow:.2} of {total:.2} us are in kernels below a quarter of what this machine reaches\n"
            ));
        }
        if self.is_doubtful() {
            text.push_str("a part above 100 % says that this machine reaches more than was measured: `cargo aoti doctor --measure`\n");
        }
        table::fit(&text, width)
    }

    /// Time, share and part of the limit, with as much of each kernel's name and place as there is room for. Kernels that take
    /// little are added up.
    fn narrow(&self, rows: &[&Row<'_>], total: f64, width: usize) -> String {
        const FIRST: usize = 29;
        let limit = self.limit_name();
        let room = width.saturating_sub(FIRST).max(8);
        let places: Vec<String> = rows.iter().map(|row| place(row.kernel)).collect();
        let longest = places.iter().map(|place| place.chars().count()).max().unwrap_or(0);
        let at = longest.min(room / 3);
        let name = room.saturating_sub(at + 2);
        let line = |left: &str, kernel: &str, place: &str| {
            format!("{left}  {}  {}\n", table::cell(kernel, name), table::cut(place, at)).replace(" \n", "\n")
        };
        let mut text = line(&format!("{:>9} {:>6} {limit:>10}", "us", "share"), "kernel", "at");
        let shown = rows.iter().take_while(|row| row.micros >= LITTLE * total).count().max(rows.len().min(3));
        for (row, place) in rows.iter().zip(&places).take(shown) {
            let share = if total > 0.0 { 100.0 * row.micros / total } else { 0.0 };
            let (part, style) = match self.part(row) {
                _ if self.limit.is_none() => (String::new(), Style::new()),
                None => ("?    ".to_owned(), Style::new()),
                Some(part) => (
                    format!("{:.0} % {}", 100.0 * part, bar(part)),
                    if part < SLOW { AnsiColor::Red.on_default() } else { Style::new() },
                ),
            };
            let left = format!("{:>9.2} {share:>4.0} % {style}{part:>10}{style:#}", row.micros);
            text.push_str(&line(&left, &row.kernel.name, place));
        }
        let rest = &rows[shown..];
        if !rest.is_empty() {
            let micros: f64 = rest.iter().map(|row| row.micros).sum();
            let share = if total > 0.0 { 100.0 * micros / total } else { 0.0 };
            let more = format!("… {} more; `--wide` shows all", rest.len());
            text.push_str(&line(&format!("{micros:>9.2} {share:>4.0} % {:>10}", ""), &more, ""));
        }
        text
    }

    fn wide(&self, rows: &[&Row<'_>], total: f64) -> String {
        let mut text = format!(
            "{:>10} {:>6} {:>10} {:>10} {:>9} {:>9}{}  kernel\n",
            "us",
            "%",
            "KB",
            "MFLOP",
            "GB/s",
            "GFLOP/s",
            match self.limit {
                None => "",
                Some(Limit::Machine(_)) => " % of limit",
                Some(Limit::Copy(_)) => "  % of copy",
            }
        );
        for row in rows {
            let share = if total > 0.0 { 100.0 * row.micros / total } else { 0.0 };
            let work = match row.work {
                Some(work) => format!(
                    "{:>10.1} {:>10.3} {:>9.2} {:>9.2}",
                    (work.read + work.written) / 1e3,
                    work.operations / 1e6,
                    rate(work.read + work.written, row.micros),
                    rate(work.operations, row.micros)
                ),
                None => format!("{:>10} {:>10} {:>9} {:>9}", "?", "?", "?", "?"),
            };
            let part = match (&self.limit, self.part(row)) {
                (None, _) => String::new(),
                (Some(_), None) => format!(" {:>10}", "?"),
                (Some(_), Some(part)) => format!(" {:>10.1}", 100.0 * part),
            };
            let source = row.kernel.source.first().map_or("", String::as_str);
            let (micros, name) = (row.micros, &row.kernel.name);
            text.push_str(&format!("{micros:>10.2} {share:>6.1} {work}{part}  {name}  {source}\n"));
        }
        text
    }

    /// The kernels, in the order of the run.
    pub(super) fn json(&self) -> Value {
        let row = |row: &Row<'_>| {
            json!({
                "name": row.kernel.name, "calls": row.kernel.calls, "source": row.kernel.source,
                "module": row.kernel.module, "us": round(row.micros), "times": row.calls,
                "bytes_read": row.work.map(|work| work.read), "bytes_written": row.work.map(|work| work.written),
                "flops": row.work.map(|work| work.operations),
                "gb_per_s": row.work.map(|work| round(rate(work.read + work.written, row.micros))),
                "of_copy": self.of_copy(row).map(round), "of_limit": self.of_limit(row).map(round),
                "gflop_per_s": row.work.map(|work| round(rate(work.operations, row.micros))),
            })
        };
        let mut object = json!({
            "runs": self.runs, "us": round(self.total()), "kernels": self.rows.iter().map(row).collect::<Vec<_>>(),
        });
        match &self.limit {
            Some(Limit::Copy(Ok(copy))) => object["copy_gb_per_s"] = json!(round(*copy)),
            Some(Limit::Machine(rates)) => object["limits"] = rates.json(),
            Some(Limit::Copy(Err(_))) | None => {}
        }
        object
    }
}

/// File and line of a kernel's first call: neither the folders nor the code.
fn place(kernel: &KernelInfo) -> String {
    let Some(source) = kernel.source.first() else { return String::new() };
    let place = source.split_once(" in ").map_or(source.as_str(), |(place, _)| place);
    let place = place.split_once(": ").map_or(place, |(place, _)| place);
    place.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
}

/// A part as a bar of one character.
fn bar(part: f64) -> char {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    BARS[((part * 8.0) as usize).min(BARS.len() - 1)]
}

/// Billions a second.
fn rate(amount: f64, micros: f64) -> f64 {
    if micros > 0.0 { amount / micros / 1e3 } else { 0.0 }
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> KernelInfo {
        KernelInfo {
            name: name.to_owned(),
            calls: Vec::new(),
            source: vec!["m.py:3".to_owned()],
            module: String::new(),
            outputs: Vec::new(),
        }
    }

    fn profile(kernels: &[KernelInfo]) -> Profile<'_> {
        let work = Work { operations: 4e6, read: 1e6, written: 1e6 };
        let work = BTreeMap::from([("long".to_owned(), Some(work)), ("short".to_owned(), None)]);
        let mut runs = 0.0;
        let profile = repeated(kernels, Duration::ZERO, &work, &mut |times| {
            runs += 1.0;
            times.add(0, 1.0);
            times.add(1, 2.0);
            times.add(1, 2.0 + runs);
            Ok(())
        });
        profile.expect("nothing fails")
    }

    #[test]
    fn what_a_loop_runs_twice_is_added_up() {
        let kernels = [kernel("short"), kernel("long")];
        let json = profile(&kernels).json();
        // Warm-ups do not count: the one run that does is the sixth.
        assert_eq!((&json["runs"], &json["us"]), (&json!(1), &json!(11.0)));
        let long = &json["kernels"][1];
        assert_eq!(
            (&long["times"], &long["bytes_read"], &long["gb_per_s"]),
            (&json!(2), &json!(2e6), &json!(400.0))
        );
        assert_eq!((&long["of_copy"], &json["copy_gb_per_s"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn on_a_processor_times_are_held_against_what_it_reaches() {
        let kernels = [kernel("short"), kernel("long")];
        // Each of two calls computes for 0.8 us, and reads and writes for 2 us.
        let profile = profile(&kernels).against(Limit::Machine(Peaks::fixed(5000.0, 1000.0)));
        let json = profile.json();
        assert_eq!(json["kernels"][1]["of_limit"], json!(0.4));
        assert_eq!(
            (&json["kernels"][0]["of_limit"], &json["limits"]["gflop_per_s"]),
            (&Value::Null, &json!(5000.0))
        );
        let table = profile.table(None);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[1].contains("      40.0  long") && lines[2].contains("?  short"), "{table}");
        assert!(lines[3].ends_with("this machine reaches 5000 GFLOP/s, memory 1000 GB/s"), "{table}");
        assert!(!profile.is_doubtful());
    }

    #[test]
    fn what_is_faster_than_the_machine_is_doubted() {
        let kernels = [kernel("short"), kernel("long")];
        let profile = profile(&kernels).against(Limit::Machine(Peaks::fixed(500.0, 100.0)));
        assert!(profile.is_doubtful() && profile.table(None).contains("doctor --measure"));
    }

    #[test]
    fn tables_fit_the_terminal() {
        let long =
            "blocks_0_attention_scaled_dot_product_attention_default_and_more_of_it_that_goes_on_for_long";
        let mut kernels: Vec<KernelInfo> = vec![kernel("long"), kernel(long)];
        kernels[1].source = vec!["/home/me/models/export.py:41 in forward: x = self.up(x)".to_owned()];
        let profile = profile(&kernels).against(Limit::Machine(Peaks::fixed(50_000.0, 10_000.0)));
        for width in [80, 140] {
            let table = anstream::adapter::strip_str(&profile.table(Some(width))).to_string();
            let longest = table.lines().map(|line| line.chars().count()).max();
            assert!(longest.is_some_and(|longest| longest <= width), "{table}");
            assert!(table.contains("export.py:41\n") && !table.contains("/home"), "{table}");
            assert!(table.contains("are in kernels below a quarter"), "{table}");
        }
        assert!(profile.table(Some(80)).contains('…') && profile.table(None).contains(long));
    }

    #[test]
    fn on_a_device_rates_are_parts_of_a_copys() {
        let kernels = [kernel("short"), kernel("long")];
        let profile = profile(&kernels).against(Limit::Copy(Ok(500.0)));
        let json = profile.json();
        assert_eq!((&json["copy_gb_per_s"], &json["kernels"][1]["of_copy"]), (&json!(500.0), &json!(0.8)));
        let table = profile.table(None);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[1].contains("      80.0  long") && lines[2].contains("?  short"), "{table}");
        assert!(lines[3].ends_with("a large copy goes at 500 GB/s, read and written"), "{table}");
    }
}
