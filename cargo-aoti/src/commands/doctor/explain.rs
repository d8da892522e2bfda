//! `doctor --explain`: how the toolchains for a project are found. Asks the resolution that builds ask, and shows what it
//! says; decides nothing itself.

use aoti_build::BuildSettings;
use aoti_toolchain::{Device, Error, Requirements, Resolution, Target, Toolchain, Toolchains};
use serde_json::{Value, json};

use super::{Arguments, consideration_json};
use crate::commands::{Context, print, print_json};
use crate::failure::Failure;
use crate::project::Project;

/// What packages want; packages that want the same are together.
pub(super) struct Wanted {
    /// None where there is no project: the defaults are wanted.
    packages: Vec<String>,
    pub(super) settings: BuildSettings,
}

/// One request with what became of it.
struct Explained<'a> {
    wanted: &'a Wanted,
    requirements: Requirements,
    outcome: Result<Resolution, Error>,
}

/// Reads a device's name, for clap.
pub(super) fn device(name: &str) -> Result<Device, String> {
    Device::from_name(name).ok_or_else(|| {
        let names = Device::ALL.map(|device| format!("`{}`", device.as_str()));
        format!("expected {}", names.join(", "))
    })
}

/// What the selected packages want; without a project, the defaults.
pub(super) fn wanted(arguments: &Arguments, context: &Context) -> Result<Vec<Wanted>, Failure> {
    let defaults = || vec![Wanted { packages: Vec::new(), settings: BuildSettings::default() }];
    if !Project::is_there(&arguments.selection, context) {
        return Ok(defaults());
    }
    let project = Project::open(&arguments.selection, context)?;
    let mut all: Vec<Wanted> = Vec::new();
    for package in project.packages(&arguments.selection, context)? {
        let (name, settings) = (package.name.to_string(), project.settings(package)?);
        match all.iter_mut().find(|known| known.settings == settings) {
            Some(known) => known.packages.push(name),
            None => all.push(Wanted { packages: vec![name], settings }),
        }
    }
    Ok(if all.is_empty() { defaults() } else { all })
}

pub(super) fn run(arguments: &Arguments, wanted: &[Wanted], context: &Context) -> Result<(), Failure> {
    let explained = explained(arguments, wanted, context)?;
    if arguments.output.is_json() {
        print_json(&json!({
            "reason": "aoti-resolutions",
            "host": context.environment.host().as_str(),
            "resolutions": explained.iter().map(Explained::json).collect::<Vec<_>>(),
        }));
    } else {
        let texts: Vec<String> = explained.iter().map(Explained::text).collect();
        print(&texts.join("\n"));
    }
    let unserved: Vec<String> =
        explained.iter().filter(|one| one.toolchain().is_none()).map(Explained::title).collect();
    if unserved.is_empty() {
        return Ok(());
    }
    Err(Failure::Machine(format!("no toolchain for {}", unserved.join(", nor for "))))
}

fn explained<'a>(
    arguments: &Arguments,
    wanted: &'a [Wanted],
    context: &Context,
) -> Result<Vec<Explained<'a>>, Failure> {
    let environment = &context.environment;
    let cache = environment.cache_directory();
    let mut targets: Vec<Target> = arguments.target.iter().map(Target::new).collect();
    if targets.is_empty() {
        targets.push(environment.host().clone());
    }
    let mut all = Vec::new();
    for wanted in wanted {
        let own = &wanted.settings.toolchains;
        let toolchains = Toolchains::for_project(environment, cache.as_deref(), own)?;
        for target in &targets {
            for requirements in requirements(arguments, &wanted.settings, target) {
                let outcome = toolchains.resolution(&requirements);
                all.push(Explained { wanted, requirements, outcome });
            }
        }
    }
    Ok(all)
}

/// The requests of a project that are about the devices asked for; a device that it does not want is asked for as such.
fn requirements(arguments: &Arguments, settings: &BuildSettings, target: &Target) -> Vec<Requirements> {
    let all = settings.requirements(target);
    if arguments.device.is_empty() {
        return all;
    }
    let of_device = |device: &Device| {
        let known = all.iter().find(|one| one.device == *device).cloned();
        known.unwrap_or_else(|| Requirements { device: *device, ..Requirements::cpu(target.clone()) })
    };
    arguments.device.iter().map(of_device).collect()
}

impl Explained<'_> {
    fn toolchain(&self) -> Option<&Toolchain> {
        self.outcome.as_ref().ok().and_then(|resolution| resolution.serving.first())
    }

    /// `cuda (sm_80, sm_90a) on x86_64-unknown-linux-gnu`
    fn title(&self) -> String {
        let Requirements { device, target, levels, .. } = &self.requirements;
        let levels = if levels.is_empty() { String::new() } else { format!(" ({})", levels.join(", ")) };
        format!("{}{levels} on {target}", device.as_str())
    }

    fn text(&self) -> String {
        let mut text = self.title();
        if !self.wanted.packages.is_empty() {
            text.push_str(&format!(", for `{}`", self.wanted.packages.join("`, `")));
        }
        text.push('\n');
        let resolution = match &self.outcome {
            Ok(resolution) => resolution,
            Err(error) => return format!("{text}  {error}\n"),
        };
        if resolution.requirements.levels != self.requirements.levels {
            text.push_str(&format!("  native is {}\n", resolution.requirements.levels.join(", ")));
        }
        for (index, candidate) in resolution.considered.iter().enumerate() {
            text.push_str(&format!("  {}. {candidate}\n", index + 1));
            if let Some(program) = &candidate.program {
                text.push_str(&format!("     {}\n", program.display()));
            }
        }
        let lines = match self.toolchain() {
            Some(toolchain) => {
                let mut lines = vec![format!("taken: {}", toolchain.name())];
                lines.extend(toolchain.details());
                lines
            }
            None => resolution.help.iter().map(|help| format!("help: {help}")).collect(),
        };
        lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        text
    }

    fn json(&self) -> Value {
        let resolution = self.outcome.as_ref().ok();
        let considered = resolution.map(|found| found.considered.iter().map(consideration_json));
        let resolved = resolution.map_or(&self.requirements, |found| &found.requirements);
        json!({
            "packages": self.wanted.packages,
            "device": self.requirements.device.as_str(),
            "target": self.requirements.target.as_str(),
            "wanted": self.requirements.levels,
            "levels": resolved.levels,
            "taken": self.toolchain().map(Toolchain::name),
            "details": self.toolchain().map(Toolchain::details),
            "considered": considered.into_iter().flatten().collect::<Vec<_>>(),
            "help": resolution.map(|found| &found.help),
            "error": self.outcome.as_ref().err().map(ToString::to_string),
        })
    }
}
