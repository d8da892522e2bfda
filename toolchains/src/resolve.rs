//! Toolchain resolution: (device, target, requirements) to the toolchains that serve it, best first, with a reason for
//! every candidate that was taken or refused.
//!
//! Order: what a variable names (the user asked for it), then by the definitions' priority. A variable that is meant
//! for the target and names something unusable is an error, not a reason to take something else behind the user's back.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::action::Tool;
use crate::definition::{Definition, definitions};
use crate::device_class::Device;
use crate::environment::Environment;
use crate::error::Error;
use crate::find::{self, Candidate, FoundBy};
use crate::gpu::GpuArchitecture;
use crate::present::without_native;
use crate::probe::{self, Compiler};
use crate::probe_cache::ProbeCache;
use crate::target::Target;
use crate::user::{UserToolchains, project_definitions};

mod outcome;

pub use outcome::{Consideration, Resolution, ResolveError, Verdict};

/// What a toolchain is wanted for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirements {
    /// The device that code is for.
    pub device: Device,
    /// The target of the host side.
    pub target: Target,
    /// Levels that it must know; for a GPU its architectures, of which `native` stands for those of this machine.
    pub levels: Vec<String>,
    /// It must be able to make static libraries.
    pub archive: bool,
    /// Only the toolchain with this name will do.
    pub toolchain: Option<String>,
}

impl Requirements {
    /// CPU code for a target, at any level.
    pub fn cpu(target: Target) -> Self {
        Requirements { device: Device::Cpu, target, levels: Vec::new(), archive: false, toolchain: None }
    }

    /// Code for a GPU at these architectures, for programs of a target.
    pub fn gpu(device: Device, target: Target, architectures: &[&str]) -> Self {
        let levels = architectures.iter().map(|&name| name.to_owned()).collect();
        Requirements { device, levels, ..Requirements::cpu(target) }
    }
}

/// A toolchain that serves a request.
#[derive(Debug, Clone)]
pub struct Toolchain {
    /// Its declaration.
    pub definition: Arc<Definition>,
    /// Its compiler, also the linker's driver.
    pub compiler: Compiler,
    /// Its archiver, if there is one.
    pub archiver: Option<Tool>,
    /// The target that it was resolved for.
    pub target: Target,
    /// The levels that it was resolved for; for a GPU with this machine's in the place of `native`.
    pub levels: Vec<String>,
    /// How its compiler was found.
    pub found_by: FoundBy,
    /// The target is the machine that the build runs on.
    pub(crate) is_native: bool,
}

impl Toolchain {
    /// The name of its definition.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// A digest of everything but sources that results for these levels depend on: the programs, what they are always
    /// called with, the variables that they obey, and for `native` the processor.
    pub fn fingerprint(&self, wanted: &[String], environment: &Environment) -> String {
        let programs = [Some(&self.compiler.identity), self.archiver.as_ref().map(|tool| &tool.identity)];
        let Definition { arguments, device, levels, .. } = &*self.definition;
        let called = (&self.compiler.launch.arguments, arguments, device, levels);
        let host_only = |name: &String| self.definition.levels.get(name).is_some_and(|level| level.host_only);
        let processor = if wanted.iter().any(host_only) { environment.host_processor() } else { "" };
        let text = format!("{programs:?}\n{called:?}\n{}\n{processor}", environment.influences());
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }
}

/// The known toolchains in an environment.
#[derive(Debug, Clone)]
pub struct Toolchains {
    pub(crate) definitions: Vec<Arc<Definition>>,
    pub(crate) environment: Environment,
    pub(crate) probes: ProbeCache,
}

impl Toolchains {
    /// The embedded definitions in an environment; probes are remembered in the cache folder, if there is one.
    pub fn new(environment: &Environment, cache: Option<&Path>) -> Self {
        Self::with_definitions(definitions(), environment, cache)
    }

    /// The definitions for a project: the user's own from `.cargo/aoti.toml`, those of its manifest, the built-in ones.
    ///
    /// # Errors
    /// [`Error::Definition`] when one of them is wrong.
    pub fn for_project(
        environment: &Environment,
        cache: Option<&Path>,
        own: &[Arc<UserToolchains>],
    ) -> Result<Self, Error> {
        let definitions = project_definitions(environment, own)?;
        Ok(Self::with_definitions(definitions, environment, cache))
    }

    /// Whether any of them is declared for this pair.
    pub fn declare(&self, device: Device, target: &Target) -> bool {
        self.definitions.iter().any(|definition| definition.declares(device, target))
    }

    /// These definitions in an environment.
    pub fn with_definitions(
        definitions: Vec<Definition>,
        environment: &Environment,
        cache: Option<&Path>,
    ) -> Self {
        Toolchains {
            definitions: definitions.into_iter().map(Arc::new).collect(),
            environment: environment.clone(),
            probes: ProbeCache::new(cache),
        }
    }

    /// The best toolchain for a request.
    ///
    /// # Errors
    /// [`Error::NotFound`] with every candidate and the reason against it; [`Error::NoDevice`].
    pub fn resolve(&self, requirements: &Requirements) -> Result<Toolchain, Error> {
        self.resolution(requirements)?.into_toolchain()
    }

    /// All candidates for a request, each with what became of it, and the toolchains that serve it.
    ///
    /// # Errors
    /// [`Error::NoDevice`] when it is for the `native` GPU and there is none. That nothing serves is no error here.
    pub fn resolution(&self, requirements: &Requirements) -> Result<Resolution, Error> {
        let requirements = without_native(requirements, &self.environment)?;
        let (mut serving, mut considered) = (Vec::new(), Vec::new());
        for definition in &self.definitions {
            if let Some(reason) = not_asked(definition, &requirements) {
                considered.push(refused(definition, None, reason));
                continue;
            }
            let definition = &Arc::new(definition.for_target(&requirements.target));
            let found = find::compilers(definition, &self.environment, &requirements.target);
            if found.is_empty() {
                considered.push(refused(definition, None, "not found".to_owned()));
            }
            let mut first: Option<String> = None;
            for candidate in found {
                if let Some(first) = &first {
                    considered.push(not_tried(definition, candidate, first));
                    continue;
                }
                let (consideration, toolchain) = self.consider(definition, &candidate, &requirements);
                first = toolchain.is_some().then(|| candidate.found_by.to_string());
                considered.push(consideration);
                serving.extend(toolchain);
            }
        }
        let is_explicit = |found_by: &FoundBy| found_by.is_explicit();
        serving.sort_by_key(|toolchain| !is_explicit(&toolchain.found_by));
        considered.sort_by_key(|one| !one.found_by.as_ref().is_some_and(is_explicit));
        let unmet = self.unmet_wish(&requirements, &considered);
        if unmet {
            serving.clear();
        }
        let help = if serving.is_empty() { self.help(&requirements, unmet, &considered) } else { Vec::new() };
        let best = considered.iter_mut().find(|one| one.verdict == Verdict::Usable);
        if let (Some(best), false) = (best, unmet) {
            best.verdict = Verdict::Taken;
        }
        Ok(Resolution { requirements, serving, considered, help })
    }

    /// Judges one candidate for one definition.
    pub(crate) fn consider(
        &self,
        definition: &Arc<Definition>,
        candidate: &Candidate,
        requirements: &Requirements,
    ) -> (Consideration, Option<Toolchain>) {
        let mut consideration = refused(definition, Some(candidate.found_by.clone()), String::new());
        let mut refuse = |reason: String| consideration.verdict = Verdict::Refused(reason);
        let launch = match &candidate.launch {
            Ok(launch) => launch,
            Err(value) => {
                refuse(format!("names `{value}`, which is not a program"));
                return (consideration, None);
            }
        };
        let compiler = match probe::compiler(definition, launch, &self.environment, &self.probes) {
            Ok(compiler) => compiler,
            Err(reason) => {
                refuse(reason);
                consideration.program = Some(launch.program.clone());
                return (consideration, None);
            }
        };
        consideration.program = Some(launch.program.clone());
        consideration.version = Some(compiler.version.clone());
        if let Some(reason) = unsuitable(definition, &compiler, requirements) {
            consideration.verdict = Verdict::Refused(reason);
            return (consideration, None);
        }
        let archiver = self.archiver(definition, &requirements.target);
        if requirements.archive && archiver.is_none() {
            let names = definition.find.archivers.join("`, `");
            consideration.verdict = Verdict::Refused(format!("has no archiver; looked for `{names}`"));
            return (consideration, None);
        }
        consideration.verdict = Verdict::Usable;
        let toolchain = Toolchain {
            definition: Arc::clone(definition),
            compiler,
            archiver,
            target: requirements.target.clone(),
            levels: requirements.levels.clone(),
            found_by: candidate.found_by.clone(),
            is_native: requirements.target == *self.environment.host(),
        };
        (consideration, Some(toolchain))
    }

    fn archiver(&self, definition: &Definition, target: &Target) -> Option<Tool> {
        find::archivers(definition, &self.environment, target).into_iter().find_map(|candidate| {
            let launch = candidate.launch.ok()?;
            let (identity, _) = probe::archiver(&launch, &self.environment, &self.probes).ok()?;
            Some(Tool { launch, identity })
        })
    }

    /// Whether a variable that is meant for this target was refused by every definition.
    fn unmet_wish(&self, requirements: &Requirements, considered: &[Consideration]) -> bool {
        if requirements.toolchain.is_some() {
            return false; // a toolchain asked for by name goes before the variables
        }
        let is_host = requirements.target == *self.environment.host();
        // The variables of GPU compilers say nothing of the host's side.
        let is_for_gpu = requirements.device != Device::Cpu;
        let wishes = considered.iter().filter(|consideration| match &consideration.found_by {
            // The bare variable is about the host; for other targets it may well not apply.
            Some(FoundBy::Variable(name)) => is_host || is_for_gpu || name.contains('_'),
            // Installations are named for many programs, not for us alone.
            Some(FoundBy::Home(_) | FoundBy::Path(_) | FoundBy::Place(_)) | None => false,
        });
        let mut verdicts = wishes.map(|wish| &wish.verdict).peekable();
        verdicts.peek().is_some() && verdicts.all(|verdict| *verdict != Verdict::Usable)
    }

    fn help(&self, requirements: &Requirements, unmet: bool, considered: &[Consideration]) -> Vec<String> {
        let mut help = Vec::new();
        let is_unprobed = |one: &Consideration| matches!(&one.verdict, Verdict::Refused(reason) if reason.starts_with(probe::CANNOT));
        if considered.iter().any(is_unprobed) {
            let folder = self.environment.temporary_directory();
            return vec![format!(
                "compilers are tried in `{}`; set `TMPDIR` to a folder for that",
                folder.display()
            )];
        }
        if unmet {
            help.push("a variable names a compiler that does not serve; correct or unset it".to_owned());
        }
        let fitting =
            self.definitions.iter().filter(|definition| not_asked(definition, requirements).is_none());
        for definition in fitting {
            if let Some(install) = definition.install_help(self.environment.distribution()) {
                help.push(format!("for {}: {install}", definition.name));
            }
        }
        if help.is_empty() && requirements.device == Device::Cpu {
            help.push(format!(
                "models can be compiled for `{}`",
                self.targets(requirements.device).join("`, `")
            ));
        }
        help
    }
}

impl Toolchains {
    /// The targets that some toolchain compiles for.
    fn targets(&self, device: Device) -> Vec<String> {
        let serves = self.definitions.iter().flat_map(|definition| &definition.serves);
        let targets = serves.filter(|serves| serves.device == device).flat_map(|serves| &serves.targets);
        let targets: BTreeSet<String> = targets.cloned().collect();
        targets.into_iter().collect()
    }
}

/// Why a definition has nothing to do with a request.
fn not_asked(definition: &Definition, requirements: &Requirements) -> Option<String> {
    let wanted = requirements.toolchain.as_deref();
    if let Some(wanted) = wanted.filter(|wanted| *wanted != definition.name) {
        return Some(format!("`{wanted}` was asked for"));
    }
    if !definition.declares(requirements.device, &requirements.target) {
        let device = requirements.device.as_str();
        return Some(format!("{} {device} on `{}`", outcome::NOT_SERVED, requirements.target));
    }
    None
}

/// Why a compiler that answered will not do.
fn unsuitable(definition: &Definition, compiler: &Compiler, requirements: &Requirements) -> Option<String> {
    let target = &requirements.target;
    if compiler.family != definition.kind {
        return Some(format!("is {}, not {}", compiler.family.as_str(), definition.kind.as_str()));
    }
    if compiler.major < definition.minimum_version {
        return Some(format!("is older than version {}", definition.minimum_version));
    }
    if definition.device.is_some() {
        return without_architecture(compiler, requirements);
    }
    if !target.is_served_by(&compiler.machine) {
        return Some(format!("makes code for `{}`, not for `{target}`", compiler.machine));
    }
    if !compiler.has_libc_headers {
        return Some(format!("finds no C library headers for `{}`", compiler.machine));
    }
    let is_unknown = |level: &&String| definition.level_for(level, target, true).is_none();
    let unknown = requirements.levels.iter().find(is_unknown)?;
    Some(format!("has no level `{unknown}`"))
}

/// The first GPU architecture asked for that is none, or that the compiler does not know.
fn without_architecture(compiler: &Compiler, requirements: &Requirements) -> Option<String> {
    for name in &requirements.levels {
        match GpuArchitecture::parse(requirements.device, name) {
            None => return Some(format!("`{name}` is no {} architecture", requirements.device.as_str())),
            Some(architecture) if !compiler.supports(&architecture) => {
                return Some(format!(
                    "makes no code for `{name}`; it knows {}",
                    compiler.architectures.join(", ")
                ));
            }
            Some(_) => {}
        }
    }
    None
}

/// A candidate behind one of the same definition that serves.
fn not_tried(definition: &Definition, candidate: Candidate, first: &str) -> Consideration {
    let verdict = Verdict::NotTried(format!("{first} goes first"));
    let program = candidate.launch.ok().map(|launch| launch.program);
    let found_by = Some(candidate.found_by);
    Consideration { toolchain: definition.name.clone(), found_by, program, version: None, verdict }
}

fn refused(definition: &Definition, found_by: Option<FoundBy>, reason: String) -> Consideration {
    Consideration {
        toolchain: definition.name.clone(),
        found_by,
        program: None,
        version: None,
        verdict: Verdict::Refused(reason),
    }
}
