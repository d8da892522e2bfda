//! `doctor`: each toolchain, where it was found, what it can do, and how to get it.

use std::collections::BTreeSet;
use std::path::Path;

use aoti_build::{Machine, MathLibrary, VARIABLES};
use aoti_toolchain::{Consideration, Device, PresentDevices, ReportEntry, TargetEntry, Toolchains, Verdict};
use clap::Args;
use serde_json::{Value, json};

use super::{Context, print, print_json};
use crate::arguments::Output;
use crate::failure::Failure;
use crate::project::Selection;
use aoti_tune::peaks::Peaks;

mod explain;

/// Shows the native toolchains: where they were found, which version, for what, and what is missing
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) output: Output,
    /// Show for each device and target that the project wants which toolchains were considered, in which order, and why
    /// each was taken or refused
    #[arg(long)]
    explain: bool,
    /// Measure the machine's peak FLOP/s and memory bandwidth again; otherwise a cached result is used
    #[arg(long, conflicts_with = "explain")]
    measure: bool,
    /// With --explain: for this device only
    #[arg(long, value_name = "DEVICE", value_parser = explain::device, requires = "explain")]
    device: Vec<Device>,
    /// With --explain: for this target instead of the host
    #[arg(long, value_name = "TRIPLE", requires = "explain")]
    target: Vec<String>,
    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let environment = &context.environment;
    let wanted = explain::wanted(arguments, context);
    if arguments.explain {
        return explain::run(arguments, &wanted?, context);
    }
    // A project that cannot be read is no reason not to say what this machine has.
    let wanted = wanted.unwrap_or_else(|failure| {
        context.terminal.warn(failure.message().unwrap_or_default());
        Vec::new()
    });
    let cache = environment.cache_directory();
    let machine = Machine::here();
    let rates = rates(&machine, cache.as_deref(), arguments.measure);
    // Where packages bring toolchains of their own, those of the first that does are shown.
    let own = wanted.iter().map(|wanted| wanted.settings.toolchains.as_slice()).find(|own| !own.is_empty());
    let own = own.unwrap_or_default();
    let report = Toolchains::for_project(environment, cache.as_deref(), own)?.report();
    // Code for GPUs needs a compiler for the host too.
    let serves_host = |entry: &ReportEntry| {
        entry.serves.iter().any(|(device, target, _)| *device == Device::Cpu && target == environment.host())
    };
    let is_ready = report.entries.iter().any(serves_host);
    if arguments.output.is_json() {
        print_json(&json!({
            "reason": "aoti-toolchains",
            "host": environment.host().as_str(),
            "machine": machine_json(&machine, &rates),
            "ready": is_ready,
            "cache": environment.cache_directory(),
            "devices": devices_json(&report.devices),
            "libraries": libraries(&wanted).iter().map(|library| library.name()).collect::<Vec<_>>(),
            "toolchains": report.entries.iter().map(entry_json).collect::<Vec<_>>(),
            "targets": report.targets.iter().map(target_json).collect::<Vec<_>>(),
        }));
    } else {
        let mut text = format!("host {}\n{}", environment.host(), describe_machine(&machine, &rates));
        match environment.cache_directory() {
            Some(cache) => text.push_str(&format!("cache {}\n", cache.display())),
            None => text.push_str("cache none: set `AOTI_CACHE_DIR`\n"),
        }
        for found in &report.devices.found {
            let device = found.device.as_str();
            text.push_str(&format!("{device} devices: {} x {}\n", found.count, found.architecture));
        }
        for (device, looked_for) in &report.devices.absent {
            text.push_str(&format!("{} devices: none ({})\n", device.as_str(), looked_for.join("; ")));
        }
        for library in libraries(&wanted) {
            let (name, files) = (library.name(), library.files().join("` or `"));
            text.push_str(&format!(
                "{name}: `{files}`, loaded with the model if present; otherwise cargo-aoti's own kernels are used\n"
            ));
        }
        report.entries.iter().for_each(|entry| describe(entry, &mut text));
        text.push_str("\ntargets\n");
        report.targets.iter().for_each(|entry| describe_target(entry, &mut text));
        text.push_str("\nvariables\n");
        for variable in VARIABLES {
            let value = environment.variable(variable.name);
            let value = value.map(|value| format!(" = {}", value.to_string_lossy())).unwrap_or_default();
            text.push_str(&format!("  {}{value}: {}\n", variable.name, variable.meaning));
        }
        print(&text);
    }
    if is_ready {
        return Ok(());
    }
    Err(Failure::Machine(format!("no toolchain builds for this machine, `{}`", environment.host())))
}

/// Libraries of products that packages of the project name.
fn libraries(wanted: &[explain::Wanted]) -> BTreeSet<MathLibrary> {
    wanted.iter().flat_map(|wanted| wanted.settings.libraries.iter().copied()).collect()
}

/// How fast one thread is, and as many as there are processors.
fn rates(machine: &Machine, cache: Option<&Path>, again: bool) -> Vec<(usize, Peaks)> {
    let mut counts = vec![1, machine.processors.max(1)];
    counts.dedup();
    counts.into_iter().map(|threads| (threads, Peaks::here(cache, threads, again))).collect()
}

/// What choices of kernels depend on, and what their times are held against.
fn describe_machine(machine: &Machine, rates: &[(usize, Peaks)]) -> String {
    let caches = machine.caches.iter().map(|(level, kib)| format!(", level {level} cache {kib} KiB"));
    let model = if machine.model.is_empty() { "unknown" } else { &machine.model };
    let mut text =
        format!("processor {model}, {} hardware threads{}\n", machine.processors, caches.collect::<String>());
    for (threads, rates) in rates {
        text.push_str(&format!("  on {threads} thread(s): {}\n", rates.text()));
    }
    text
}

fn machine_json(machine: &Machine, rates: &[(usize, Peaks)]) -> Value {
    let caches = machine.caches.iter().map(|(level, kib)| json!({ "level": level, "kib": kib }));
    let rates = rates.iter().map(|(threads, rates)| json!({ "threads": threads, "limits": rates.json() }));
    json!({
        "model": machine.model, "processors": machine.processors, "caches": caches.collect::<Vec<_>>(),
        "rates": rates.collect::<Vec<_>>(),
    })
}

fn describe(entry: &ReportEntry, text: &mut String) {
    let state = if entry.serves.is_empty() { "missing" } else { "ready" };
    text.push_str(&format!("\n{}: {state} ({})\n", entry.name, entry.summary));
    for candidate in &entry.candidates {
        text.push_str(&format!("  {candidate}\n"));
        if let Some(program) = &candidate.program {
            text.push_str(&format!("    {}\n", program.display()));
        }
    }
    for detail in &entry.details {
        text.push_str(&format!("  {detail}\n"));
    }
    // Targets with the same levels share a line.
    for group in entry.serves.chunk_by(|a, b| (a.0, &a.2) == (b.0, &b.2)) {
        let Some((device, _, levels)) = group.first() else { continue };
        let targets = group.iter().map(|(_, target, _)| target.as_str()).collect::<Vec<_>>().join(", ");
        text.push_str(&format!("  {} on {targets}: {}\n", device.as_str(), levels.join(", ")));
    }
    if let Some(install) = &entry.install {
        text.push_str(&format!("  install: {install}\n"));
    }
}

/// What compiles models for a target, or the command that gets it.
fn describe_target(entry: &TargetEntry, text: &mut String) {
    let state = match (&entry.toolchain, &entry.install) {
        (Some(toolchain), _) => format!("{toolchain} ({})", entry.levels.join(", ")),
        (None, Some(install)) => format!("missing: {install}"),
        (None, None) => "missing".to_owned(),
    };
    text.push_str(&format!("  {:<30} {state}\n", entry.target.as_str()));
}

fn target_json(entry: &TargetEntry) -> Value {
    json!({
        "target": entry.target.as_str(), "toolchain": entry.toolchain, "levels": entry.levels,
        "install": entry.install,
    })
}

fn devices_json(devices: &PresentDevices) -> Value {
    let found = devices.found.iter().map(|found| {
        json!({
            "device": found.device.as_str(),
            "architecture": found.architecture,
            "count": found.count,
        })
    });
    let absent = devices.absent.iter().map(
        |(device, looked_for)| json!({ "device": device.as_str(), "count": 0, "looked_for": looked_for }),
    );
    found.chain(absent).collect()
}

fn consideration_json(candidate: &Consideration) -> Value {
    let (verdict, reason) = match &candidate.verdict {
        Verdict::Taken => ("taken", None),
        Verdict::Usable => ("usable", None),
        Verdict::Refused(reason) => ("refused", Some(reason)),
        Verdict::NotTried(reason) => ("not tried", Some(reason)),
    };
    json!({
        "toolchain": candidate.toolchain,
        "program": candidate.program,
        "found_by": candidate.found_by.as_ref().map(ToString::to_string),
        "version": candidate.version,
        "verdict": verdict,
        "reason": reason,
    })
}

fn entry_json(entry: &ReportEntry) -> Value {
    let serves = entry.serves.iter().map(|(device, target, levels)| {
        json!({ "device": device.as_str(), "target": target.as_str(), "levels": levels })
    });
    json!({
        "name": entry.name,
        "summary": entry.summary,
        "candidates": entry.candidates.iter().map(consideration_json).collect::<Vec<_>>(),
        "serves": serves.collect::<Vec<_>>(),
        "details": entry.details,
        "install": entry.install,
    })
}
