//! What `doctor` shows: for every toolchain, what was found, what it can do, and how to install it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::device_class::Device;
use crate::find;
use crate::present::{PresentDevices, present_devices};
use crate::resolve::{Consideration, Requirements, Toolchain, Toolchains, Verdict};
use crate::target::Target;

/// The state of every known toolchain.
#[derive(Debug, Clone)]
pub struct Report {
    /// By priority.
    pub entries: Vec<ReportEntry>,
    /// The targets that CPU code can be for.
    pub targets: Vec<TargetEntry>,
    /// The GPUs of this machine; none are needed.
    pub devices: PresentDevices,
}

/// What compiles CPU code for one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetEntry {
    /// The target.
    pub target: Target,
    /// The name of the toolchain that a build takes, if one serves.
    pub toolchain: Option<String>,
    /// The levels that it knows.
    pub levels: Vec<String>,
    /// How to install one that serves on this machine, if none does.
    pub install: Option<String>,
}

/// The state of one toolchain.
#[derive(Debug, Clone)]
pub struct ReportEntry {
    /// Its name.
    pub name: String,
    /// What it is.
    pub summary: String,
    /// Every candidate for every target, each with its verdict.
    pub candidates: Vec<Consideration>,
    /// The (device, target) pairs that it serves here, with the levels it knows for each.
    pub serves: Vec<(Device, Target, Vec<String>)>,
    /// The toolchain as found for the first pair that it serves.
    pub toolchain: Option<Toolchain>,
    /// What it works with and what it lacks, one fact each: host compiler, `ptxas`, archiver.
    pub details: Vec<String>,
    /// How to install it on this machine, if it serves nothing.
    pub install: Option<String>,
}

impl Toolchains {
    /// Probes everything that can be found. Never fails: what is missing is what the report is about.
    pub fn report(&self) -> Report {
        let entries: Vec<_> = (0..self.definitions.len()).map(|index| self.report_entry(index)).collect();
        let targets = self.report_targets(&entries);
        Report { entries, targets, devices: present_devices(&self.environment) }
    }

    fn report_targets(&self, entries: &[ReportEntry]) -> Vec<TargetEntry> {
        let all = self.definitions.iter().flat_map(|definition| &definition.serves);
        let all = all.filter(|serves| serves.device == Device::Cpu).flat_map(|serves| &serves.targets);
        let mut targets: Vec<TargetEntry> = Vec::new();
        for target in all.map(Target::new) {
            if targets.iter().any(|known| known.target == target) {
                continue;
            }
            let of_target = |entry: &ReportEntry| {
                let mut serves = entry.serves.iter();
                let own = serves.find(|(device, own, _)| *device == Device::Cpu && *own == target);
                own.map(|(_, _, levels)| (entry.name.clone(), levels.clone()))
            };
            let (toolchain, levels) = entries.iter().find_map(of_target).unzip();
            let install = if toolchain.is_none() { self.install_for(&target) } else { None };
            targets.push(TargetEntry { target, toolchain, levels: levels.unwrap_or_default(), install });
        }
        targets
    }

    fn report_entry(&self, index: usize) -> ReportEntry {
        let definition = &self.definitions[index];
        let mut entry = ReportEntry {
            name: definition.name.clone(),
            summary: definition.summary.clone(),
            candidates: Vec::new(),
            serves: Vec::new(),
            toolchain: None,
            details: Vec::new(),
            install: None,
        };
        let mut told = BTreeSet::new();
        for serves in &definition.serves {
            for target in serves.targets.iter().map(Target::new) {
                let requirements =
                    Requirements { device: serves.device, ..Requirements::cpu(target.clone()) };
                let mut is_served = false;
                let definition = &Arc::new(definition.for_target(&target));
                for candidate in find::compilers(definition, &self.environment, &target) {
                    let (consideration, toolchain) = self.consider(definition, &candidate, &requirements);
                    if told.insert(consideration.to_string()) {
                        entry.candidates.push(consideration);
                    }
                    is_served |= toolchain.is_some();
                    entry.toolchain = entry.toolchain.or(toolchain);
                }
                if is_served {
                    let is_native = target == *self.environment.host();
                    let levels = match &entry.toolchain {
                        Some(toolchain) if serves.device != Device::Cpu => toolchain.architectures(),
                        _ => definition
                            .level_names(&target, is_native)
                            .into_iter()
                            .map(str::to_owned)
                            .collect(),
                    };
                    entry.serves.push((serves.device, target, levels));
                }
            }
        }
        // A candidate that serves one target says nothing by not serving another.
        let serves = |c: &Consideration| c.verdict == Verdict::Usable;
        let useful: BTreeSet<_> =
            entry.candidates.iter().filter(|c| serves(c)).map(|c| c.program.clone()).collect();
        entry.candidates.retain(|c| serves(c) || !useful.contains(&c.program));
        entry.details = entry.toolchain.as_ref().map(Toolchain::details).unwrap_or_default();
        if entry.serves.is_empty() {
            entry.install = definition.install_help(self.environment.distribution()).map(str::to_owned);
        }
        entry
    }
}

impl Toolchains {
    /// What to install for a target: what this distribution has, else what any system can have, of which the most general comes last.
    fn install_for(&self, target: &Target) -> Option<String> {
        let fitting = || self.definitions.iter().filter(|one| one.declares(Device::Cpu, target));
        let names = self.environment.distribution();
        let own = fitting().find_map(|one| names.iter().find_map(|name| one.install.get(name)));
        own.or_else(|| fitting().filter_map(|one| one.install.get("any")).next_back()).cloned()
    }
}

impl Toolchain {
    /// What it works with and what it lacks, one fact each: host compiler, `ptxas`, archiver.
    pub fn details(&self) -> Vec<String> {
        let mut facts = Vec::new();
        if let Some(host) = &self.compiler.host {
            facts.push(format!("host compiler `{}`", host.display()));
        }
        for name in &self.definition.find.helpers {
            facts.push(match self.compiler.helpers.get(name) {
                Some(helper) => format!("{name} `{}`", helper.program.display()),
                None if name == "ptxas" => {
                    "no ptxas: makes PTX only, which drivers compile when they load it".to_owned()
                }
                None => format!("no {name}: parts are not packed into one file"),
            });
        }
        match &self.archiver {
            Some(archiver) => facts.push(format!("archiver `{}`", archiver.launch.program.display())),
            None if self.definition.device.is_none() => {
                facts.push("no archiver: makes no static libraries".to_owned())
            }
            None => {}
        }
        facts
    }
}
