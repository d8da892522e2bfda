//! `doctor`: each toolchain, where it was found, what it can do, and how to get it.

use aoti_build::VARIABLES;
use aoti_toolchain::{Device, ReportEntry, Toolchains, Verdict};
use clap::Args;
use serde_json::json;

use super::{Context, print, print_json};
use crate::failure::Failure;

/// Shows the native toolchains: where they were found, which version, for what, and what is missing
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let environment = &context.environment;
    let cache = environment.cache_directory();
    let toolchains = Toolchains::for_project(environment, cache.as_deref(), environment.directory());
    let report = toolchains.map_err(|error| Failure::Machine(error.to_string()))?.report();
    // Code for GPUs needs a compiler for the host too.
    let serves_host = |entry: &ReportEntry| {
        entry.serves.iter().any(|(device, target, _)| *device == Device::Cpu && target == environment.host())
    };
    let is_ready = report.entries.iter().any(serves_host);
    if arguments.json {
        print_json(&json!({
            "host": environment.host().as_str(),
            "ready": is_ready,
            "cache": environment.cache_directory(),
            "devices": report.devices.iter().map(|found| json!({
                "device": found.device.as_str(),
                "architecture": found.architecture,
                "count": found.count,
            })).collect::<Vec<_>>(),
            "toolchains": report.entries.iter().map(entry_json).collect::<Vec<_>>(),
        }));
    } else {
        let mut text = format!("host {}\n", environment.host());
        match environment.cache_directory() {
            Some(cache) => text.push_str(&format!("cache {}\n", cache.display())),
            None => text.push_str("cache none: set `AOTI_CACHE_DIR`\n"),
        }
        for found in &report.devices {
            text.push_str(&format!(
                "device {} {} x {}\n",
                found.device.as_str(),
                found.count,
                found.architecture
            ));
        }
        report.entries.iter().for_each(|entry| describe(entry, &mut text));
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

fn entry_json(entry: &ReportEntry) -> serde_json::Value {
    let candidates = entry.candidates.iter().map(|candidate| {
        json!({
            "program": candidate.program,
            "found_by": candidate.found_by.as_ref().map(ToString::to_string),
            "version": candidate.version,
            "refused": match &candidate.verdict {
                Verdict::Taken => None,
                Verdict::Refused(reason) => Some(reason),
            },
        })
    });
    let serves = entry.serves.iter().map(|(device, target, levels)| {
        json!({ "device": device.as_str(), "target": target.as_str(), "levels": levels })
    });
    json!({
        "name": entry.name,
        "summary": entry.summary,
        "candidates": candidates.collect::<Vec<_>>(),
        "serves": serves.collect::<Vec<_>>(),
        "details": entry.details,
        "install": entry.install,
    })
}
