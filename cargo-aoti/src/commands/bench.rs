//! `bench`: measures the latency of a model.

mod compare;
mod on_device;
mod page;
mod profile;
mod trace;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use aoti_build::LinkKind;
use aoti_compiler::compile;
use aoti_compiler::loops::work::Work;
use aoti_runtime::{AnyView, Device, DynTensor, Executor, Inline, Model, ModelInfo, ThreadPool, Workspace};
use clap::Args;
use serde_json::json;

use self::trace::Trace;
use super::{Context, print, print_json};
use crate::arguments::{Numerics, Output, Rounding};
use crate::case;
use crate::chosen::Chosen;
use crate::dims;
use crate::failure::Failure;
use crate::progress::Shown;
use crate::project::shown;
use crate::ranks;
use crate::single;

/// Measures the latency of a model on this machine
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A model of the project by name, a model file, or a case's folder
    model: PathBuf,
    /// One of the model's programs, where it has several; it is compiled alone
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Threads to run on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// How long to measure
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    secs: f64,
    /// Device to run on: `cpu`, `cuda`, or `cuda:1` for the second; inputs and outputs are then kept on it
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Device,
    #[command(flatten)]
    count: ranks::Count,
    #[command(flatten)]
    rounding: Rounding,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Size of a dynamic dimension, for random inputs; by default the smallest
    #[arg(long, value_name = "NAME=SIZE", value_parser = dims::parse)]
    dim: Vec<(String, i64)>,
    /// Inputs under the keys "0", "1", … or their names
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    /// Instruction-set level, or architecture of a GPU
    #[arg(long, default_value = "native")]
    level: String,
    /// Ignore cached results, so that the compile time is that of a clean build
    #[arg(long)]
    no_cache: bool,
    /// Show each kernel's time, its place in the program, bytes and operations, and percentage of peak
    #[arg(long)]
    profile: bool,
    /// Write a page about the kernels: their times against what this machine reaches, and which thread did what and when
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write one run as a trace that Perfetto and Chrome's viewer read
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Say whether it is faster than in an earlier measurement: a file with what `--format json` printed
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
}

impl Arguments {
    /// Whether each kernel is timed.
    fn has_profile(&self) -> bool {
        self.profile || self.has_files()
    }

    fn has_files(&self) -> bool {
        self.html.is_some() || self.trace.is_some()
    }
}

const WARM_UPS: usize = 5;
const MOST_RUNS: usize = 2_000_000;

fn seconds(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().map_err(|error| error.to_string())?;
    if (0.0..=86_400.0).contains(&value) { Ok(value) } else { Err("not between 0 and a day".to_owned()) }
}

/// Measures all ranks in step: a run is as long as its slowest rank's.
fn bench_ranks(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    if arguments.has_profile() || arguments.compare.is_some() || arguments.level != "native" {
        let message =
            "`--ranks` measures whole runs at this machine's level, without a profile or a comparison";
        return Err(Failure::Usage(message.to_owned()));
    }
    let Arguments { model, count, device, rounding, .. } = arguments;
    let ranks = ranks::load(model, *count, *device, rounding, context)?;
    let mut inputs = Vec::new();
    for rank in &ranks.all {
        let own = arguments.inputs.as_deref().map(|path| ranks::path_of(path, rank.number));
        let from_case = || rank.case.as_ref().map(case::Case::inputs).filter(|path| path.is_file());
        inputs.push(super::run::inputs(&rank.info, own.or_else(from_case).as_deref(), &arguments.dim)?);
    }
    let (limit, threads) = (Duration::from_secs_f64(arguments.secs), usize::from(arguments.threads));
    let times = ranks::measure(&ranks, &inputs, threads, limit);
    let times = times.into_iter().collect::<Result<Vec<_>, _>>()?;
    let count = times.iter().map(Vec::len).min().unwrap_or(0);
    let slowest = |run: usize| times.iter().map(|rank| rank[run]).fold(0.0, f64::max);
    let mut micros: Vec<f64> = (0..count).map(slowest).collect();
    micros.sort_by(f64::total_cmp);
    let (Some(least), Some(median)) = (micros.first(), micros.get(count / 2)) else {
        return Err(Failure::Machine("no run was measured".to_owned()));
    };
    if arguments.output.is_json() {
        print_json(&json!({
            "reason": "aoti-bench", "us_med": round(*median), "us_min": round(*least), "n": count,
            "threads": threads, "ranks": ranks.all.len(), "device": device.to_string(),
        }));
    } else {
        let ranks = ranks.all.len();
        print(&format!(
            "{median:.2} us median, {least:.2} us least of {count} runs of {ranks} ranks on {device}\n"
        ));
    }
    Ok(())
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let measure = if arguments.count.ranks.is_some() { bench_ranks } else { bench };
    measure(arguments, context)
}

fn bench(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let session = single::session(context, !arguments.no_cache)?;
    let old = arguments.compare.as_deref().map(compare::read).transpose()?;
    // What is wrong with the command line is said before what is wrong with files.
    single::check_level(&session, arguments.device, &arguments.level)?;
    let chosen = Chosen::find(&arguments.model, context)?.program(arguments.program.as_deref())?;
    dims::check(&chosen, &arguments.dim)?;
    let progress = Shown::new(context.terminal);
    let begun = Instant::now();
    let (device, levels) = (arguments.device, vec![arguments.level.clone()]);
    let (numerics, model) = (arguments.rounding.or(chosen.numerics()), &chosen.model);
    let single = single::build(&session, model, LinkKind::Dylib, device, levels, numerics.clone(), &progress);
    progress.finish();
    let single = single?;
    let compile_ms = begun.elapsed().as_millis();
    let (model, info) = single.load()?;
    let from_case = || chosen.case.as_ref().map(case::Case::inputs).filter(|path| path.is_file());
    let file = arguments.inputs.clone().or_else(from_case);
    let inputs = super::run::inputs(&info, file.as_deref(), &arguments.dim)?;
    let views: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
    let threads = usize::from(arguments.threads);
    let executor: Box<dyn Executor> =
        if threads == 1 { Box::new(Inline) } else { Box::new(ThreadPool::new(threads)) };
    let executor = &*executor;
    let limit = Duration::from_secs_f64(arguments.secs);
    let (mut micros, others) = if device.is_cpu() {
        (measure(&model, &info, &views, executor, limit)?, None)
    } else {
        on_device::measure(&model, &info, &inputs, limit)?.apart()
    };
    let parts = compare::parts(&micros);
    let change = old.as_deref().and_then(|old| compare::Change::new(old, &parts));
    micros.sort_by(f64::total_cmp);
    let work = arguments.has_profile().then(|| {
        let compiled_for = if device.is_cpu() {
            (vec![arguments.level.clone()], Vec::new())
        } else {
            (Vec::new(), single.architectures.clone())
        };
        kernel_work(&chosen, compiled_for, numerics, &views)
    });
    let profiled = |work: BTreeMap<String, Option<Work>>| {
        if !device.is_cpu() {
            return on_device::profile(&model, &info, &inputs, limit, &work);
        }
        let measured = profile::measure(&model, &views, executor, limit, &work)?;
        Ok(measured.against_machine(context.environment.cache_directory().as_deref(), threads))
    };
    let profile = work.transpose()?.map(profiled).transpose()?;
    let report = Report {
        name: &single.built.name,
        level: model.level(),
        device,
        micros: &micros,
        others,
        compile_ms,
        library_bytes: single.bytes(),
        workspace_bytes: model.workspace_bytes(&views, threads)?,
        threads,
        profile,
        parts,
        change,
    };
    if let Some(profile) = report.profile.as_ref().filter(|_| arguments.has_files()) {
        let on_gpu = || Ok(Trace::of_times(profile.times()));
        let trace = if device.is_cpu() { trace::record(&model, &views, executor) } else { on_gpu() }?;
        files(arguments, context, &report, &trace, &info)?;
    }
    if arguments.output.is_json() {
        print_json(&report.json())
    } else {
        print(&report.text(arguments.output.width()));
    }
    Ok(())
}

/// Writes the files that are asked for.
fn files(
    arguments: &Arguments,
    context: &Context,
    report: &Report<'_>,
    trace: &Trace,
    info: &ModelInfo,
) -> Result<(), Failure> {
    if let Some(path) = &arguments.html {
        page::write(path, report, trace)?;
        context.terminal.status("Wrote", &shown(path, context));
    }
    if let Some(path) = &arguments.trace {
        crate::page::write(path, &trace.chrome(report.name, &info.kernels).to_string())?;
        context.terminal.status("Wrote", &shown(path, context));
    }
    Ok(())
}

/// What was measured.
struct Report<'a> {
    name: &'a str,
    level: String,
    device: Device,
    /// The times of runs, in order; at least one.
    micros: &'a [f64],
    /// On a device, that of a run back to back, and with other tensors each time.
    others: Option<(f64, f64)>,
    compile_ms: u128,
    library_bytes: u64,
    workspace_bytes: usize,
    threads: usize,
    profile: Option<profile::Profile<'a>>,
    /// Medians of consecutive parts of the measurement.
    parts: Vec<f64>,
    /// How it differs from an earlier one.
    change: Option<compare::Change>,
}

impl Report<'_> {
    fn median(&self) -> f64 {
        self.percentile(0.5)
    }

    /// The time that this part of the runs is below.
    fn percentile(&self, part: f64) -> f64 {
        self.micros[((self.micros.len() as f64 * part) as usize).min(self.micros.len() - 1)]
    }

    fn json(&self) -> serde_json::Value {
        let mut object = json!({
            "reason": "aoti-bench",
            "us_med": round(self.median()), "us_min": round(self.micros[0]), "us_p95": round(self.percentile(0.95)), "n": self.micros.len(),
            "us_parts": self.parts.iter().map(|us| round(*us)).collect::<Vec<_>>(),
            "compile_ms": self.compile_ms, "library_bytes": self.library_bytes,
            "workspace_bytes": self.workspace_bytes, "threads": self.threads, "level": self.level,
        });
        if let Some((stream_us, moved_us)) = self.others {
            object["stream_us"] = json!(round(stream_us));
            object["moved_us"] = json!(round(moved_us));
            object["device"] = json!(self.device.to_string());
        }
        if let Some(profile) = &self.profile {
            object["profile"] = profile.json();
        }
        if let Some(change) = self.change {
            object["change"] = change.json();
        }
        object
    }

    fn text(&self, width: Option<usize>) -> String {
        let Report { name, level, device, compile_ms, library_bytes, workspace_bytes, threads, .. } = self;
        let (median, least, n) = (self.median(), self.micros[0], self.micros.len());
        let (late, rate) = (self.percentile(0.95), 1e6 / median);
        let mut text = format!(
            "{name}: {median:.2} us median, {least:.2} us least of {n} runs on {threads} thread(s) at {level}\n\
             {late:.2} us at the 95th percentile, {rate:.0} runs a second\n\
             compiled in {compile_ms} ms, library {library_bytes} bytes, workspace {workspace_bytes} bytes\n"
        );
        if let Some((stream_us, moved_us)) = self.others {
            text.push_str(&format!(
                "{stream_us:.2} us a run back to back, tensors on {device}; {moved_us:.2} us with others each time\n"
            ));
        }
        if let Some(profile) = &self.profile {
            text.push_str(&profile.table(width));
        }
        if let Some(change) = self.change {
            text.push_str(&format!("{}\n", change.text()));
        }
        text
    }
}

/// How much each kernel does for inputs of these sizes: the compiler knows, as it is a function of the model and of the levels
/// or the GPUs that it is compiled for.
fn kernel_work(
    chosen: &Chosen,
    (levels, gpus): (Vec<String>, Vec<String>),
    numerics: Numerics,
    views: &[AnyView<'_>],
) -> Result<BTreeMap<String, Option<Work>>, Failure> {
    let options = chosen.options(levels, gpus, numerics)?;
    let sizes: Vec<Vec<i64>> =
        views.iter().map(|view| view.sizes().iter().map(|size| *size as i64).collect()).collect();
    let work = compile::kernel_work(chosen.file()?, &options, &sizes);
    Ok(work?.into_iter().collect())
}

/// Whether enough was run for the clocks and the caches to settle: a tenth of the time.
fn is_warm(done: usize, begun: Instant, limit: Duration) -> bool {
    done >= WARM_UPS && begun.elapsed() >= limit / 10
}

/// Times runs one by one, in microseconds; at least one.
fn measure(
    model: &Model,
    info: &ModelInfo,
    views: &[AnyView<'_>],
    executor: &dyn Executor,
    limit: Duration,
) -> Result<Vec<f64>, Failure> {
    let mut outputs: Vec<DynTensor> =
        info.outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let mut targets: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    let mut workspace = Workspace::new();
    let mut once = || -> Result<f64, Failure> {
        // Each run starts from the same state; making it is not what is measured.
        let mut state = if info.state_bytes > 0 { Some(model.state()?) } else { None };
        let begun = Instant::now();
        model.run(views, &mut targets, state.as_mut(), &mut workspace, executor)?;
        Ok(begun.elapsed().as_nanos() as f64 / 1e3)
    };
    let warm = Instant::now();
    for done in 0.. {
        once()?;
        if is_warm(done + 1, warm, limit) {
            break;
        }
    }
    let begun = Instant::now();
    let mut micros = Vec::with_capacity(1 << 16);
    while micros.is_empty() || (begun.elapsed() < limit && micros.len() < MOST_RUNS) {
        micros.push(once()?);
    }
    Ok(micros)
}

fn round(micros: f64) -> f64 {
    (micros * 1e3).round() / 1e3
}
