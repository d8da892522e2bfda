//! Time of each kernel of a model, beside what it has to do.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use aoti_compiler::loops::work::Work;
use aoti_runtime::{AnyView, DynTensor, Executor, KernelEvent, KernelInfo, KernelPhase, Model, Workspace};
use serde_json::{Value, json};

use crate::failure::Failure;

/// Runs before those that count.
const WARM_UPS: usize = 5;
const MOST_RUNS: usize = 100_000;

/// What was measured of one kernel.
struct Row<'a> {
    kernel: &'a KernelInfo,
    /// Median over the runs, all iterations of a loop together.
    micros: f64,
    /// Calls in one run.
    calls: usize,
    work: Option<Work>,
}

/// A model's kernels with their times.
pub(super) struct Profile<'a> {
    rows: Vec<Row<'a>>,
    runs: usize,
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
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); info.kernels.len()];
    let mut calls = vec![0; info.kernels.len()];
    let (mut begun, mut runs) = (Instant::now(), 0);
    for round in 0.. {
        if round == WARM_UPS {
            begun = Instant::now();
        }
        if round > WARM_UPS && (begun.elapsed() >= limit || runs >= MOST_RUNS) {
            break;
        }
        let mut state = if info.state_bytes > 0 { Some(model.state()?) } else { None };
        let mut micros = vec![0.0; info.kernels.len()];
        calls.fill(0);
        let mut since = Instant::now();
        let mut watch = |event: KernelEvent<'_>| match event.phase {
            KernelPhase::Begin => since = Instant::now(),
            KernelPhase::End(_) => {
                micros[event.index] += since.elapsed().as_nanos() as f64 / 1e3;
                calls[event.index] += 1;
            }
        };
        model.run_watched(views, &mut targets, state.as_mut(), &mut workspace, executor, &mut watch)?;
        if round >= WARM_UPS {
            runs += 1;
            samples.iter_mut().zip(micros).for_each(|(samples, micros)| samples.push(micros));
        }
    }
    let rows = info.kernels.iter().zip(samples).zip(calls).map(|((kernel, mut samples), calls)| {
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
    Ok(Profile { rows: rows.collect(), runs })
}

impl Profile<'_> {
    fn total(&self) -> f64 {
        self.rows.iter().map(|row| row.micros).sum()
    }

    /// The kernels, longest first, as a table.
    pub(super) fn table(&self) -> String {
        let total = self.total();
        let mut rows: Vec<&Row<'_>> = self.rows.iter().collect();
        rows.sort_by(|a, b| b.micros.total_cmp(&a.micros));
        let mut text = format!(
            "{:>10} {:>6} {:>10} {:>10} {:>9} {:>9}  kernel\n",
            "us", "%", "KB", "MFLOP", "GB/s", "GFLOP/s"
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
            let source = row.kernel.source.first().map_or("", String::as_str);
            let (micros, name) = (row.micros, &row.kernel.name);
            text.push_str(&format!("{micros:>10.2} {share:>6.1} {work}  {name}  {source}\n"));
        }
        text.push_str(&format!(
            "{total:.2} us in kernels, medians of {} runs with a clock around each kernel\n",
            self.runs
        ));
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
                "gflop_per_s": row.work.map(|work| round(rate(work.operations, row.micros))),
            })
        };
        json!({ "runs": self.runs, "us": round(self.total()), "kernels": self.rows.iter().map(row).collect::<Vec<_>>() })
    }
}

/// Billions a second.
fn rate(amount: f64, micros: f64) -> f64 {
    if micros > 0.0 { amount / micros / 1e3 } else { 0.0 }
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
