//! Finds out what a program really is: its family by preprocessing a tiny file, its version, what it targets, and
//! an identity that is the same wherever the same compiler is installed.
//!
//! Believes the compiler, not its name. Does not decide whether it will do: [`resolve`](crate::resolve) does.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::definition::{Definition, Family};
use crate::environment::Environment;
use crate::fields::{read_fields, text_type, write_fields};
use crate::find::{Launch, program_named};
use crate::gpu::GpuArchitecture;
use crate::probe_cache::{ProbeCache, Stamp};
use crate::process;
use crate::temporary::{TemporaryFolder, temporary_folder};

mod gpu;

/// A digest that changes when a tool does and not when it moves: over its version text, its binary and those of its
/// helpers (`cc1plus`, `as`, `ld`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(pub(crate) String);

text_type!(Identity);

impl Identity {
    /// An identity that the caller vouches for, for tools that are not found by this crate.
    pub fn from_text(text: &str) -> Self {
        Identity(blake3::hash(text.as_bytes()).to_hex().to_string())
    }

    /// Hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What a probe found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) family: Option<Family>,
    pub(crate) major: u32,
    pub(crate) version: String,
    pub(crate) machine: String,
    pub(crate) has_libc_headers: bool,
    pub(crate) identity: Identity,
    /// GPU architectures that it makes code for, verbatim.
    pub(crate) architectures: Vec<String>,
    /// The host compiler that it calls.
    pub(crate) host: Option<PathBuf>,
    pub(crate) helpers: BTreeMap<String, Helper>,
}

read_fields!(Facts { major, version, machine, has_libc_headers, identity, architectures, helpers } or_default { family, host });
write_fields!(Facts {
    family,
    major,
    version,
    machine,
    has_libc_headers,
    identity,
    architectures,
    host,
    helpers
});

/// A program that works for a compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Helper {
    pub(crate) program: PathBuf,
    pub(crate) identity: Identity,
    /// GPU architectures that it makes code for, where it was asked.
    pub(crate) architectures: Vec<String>,
}

read_fields!(Helper { program, identity, architectures });
write_fields!(Helper { program, identity, architectures });

/// A compiler that answered.
#[derive(Debug, Clone)]
pub struct Compiler {
    /// How it is started.
    pub launch: Launch,
    /// What it is.
    pub family: Family,
    /// Major version.
    pub major: u32,
    /// First line of its version text.
    pub version: String,
    /// The triple that it says it makes code for.
    pub machine: String,
    /// Whether it finds the C library's headers for that machine.
    pub has_libc_headers: bool,
    /// What stands for it in keys.
    pub identity: Identity,
    /// GPU architectures that it makes code for; empty for compilers of CPU code.
    pub architectures: Vec<String>,
    /// The host compiler that it calls, if it needs one.
    pub host: Option<PathBuf>,
    pub(crate) helpers: BTreeMap<String, Helper>,
}

impl Compiler {
    /// Whether it makes code for a GPU architecture.
    pub fn supports(&self, architecture: &GpuArchitecture) -> bool {
        self.architectures.contains(&architecture.listed())
    }
}

/// Expands to facts in quotes-free lines; a compiler that cannot do C++ fails here already.
const QUESTION: &str = "\
#if defined(__NVCC__)
aoti_family nvcc __CUDACC_VER_MAJOR__
#elif defined(__clang__)
aoti_family clang __clang_major__
#elif defined(__GNUC__) && !defined(__INTEL_COMPILER)
aoti_family gcc __GNUC__
#else
aoti_family unknown 0
#endif
#if __has_include(<math.h>) && __has_include(<stdlib.h>)
aoti_headers
#endif
";

/// Programs behind the driver whose replacement changes objects.
const HELPERS: [&str; 3] = ["cc1plus", "as", "ld"];

/// Asks a program what it is. `Err` is a reason in words.
pub(crate) fn compiler(
    definition: &Definition,
    launch: &Launch,
    environment: &Environment,
    cache: &ProbeCache,
) -> Result<Compiler, String> {
    let kind = match &definition.device {
        None => "compiler".to_owned(),
        // What is asked depends on the declaration, which a user may have changed.
        Some(device) => format!("{} {device:?} {:?}", definition.kind.as_str(), definition.find),
    };
    let facts =
        remembered(launch, &kind, environment, cache, || match (&definition.device, definition.kind) {
            (None, _) => compiler_facts(launch, environment),
            (Some(_), Family::Nvcc) => gpu::nvcc_facts(definition, launch, environment),
            (Some(device), Family::Gcc | Family::Clang | Family::Hipcc) => {
                gpu::clang_facts(definition, device, launch, environment)
            }
        })?;
    let family = facts.family.ok_or("is neither gcc nor clang")?;
    let mut launch = launch.clone();
    if let Some(host) = &facts.host {
        launch.places = vec!["-ccbin".to_owned(), host.to_string_lossy().into_owned()];
    }
    Ok(Compiler {
        launch,
        family,
        major: facts.major,
        version: facts.version,
        machine: facts.machine,
        has_libc_headers: facts.has_libc_headers,
        identity: facts.identity,
        architectures: facts.architectures,
        host: facts.host,
        helpers: facts.helpers,
    })
}

/// Asks an archiver for its identity and version.
pub(crate) fn archiver(
    launch: &Launch,
    environment: &Environment,
    cache: &ProbeCache,
) -> Result<(Identity, String), String> {
    let facts = remembered(launch, "archiver", environment, cache, || {
        let version = version_text(launch, environment, Path::new("/"))?;
        let stamps = stamps_of(launch, &[])?;
        let identity = identity(&version, "", &stamps)?;
        let version = first_line(&version).to_owned();
        Ok((Facts::new(None, 0, version, identity), stamps))
    })?;
    Ok((facts.identity, facts.version))
}

fn remembered(
    launch: &Launch,
    kind: &str,
    environment: &Environment,
    cache: &ProbeCache,
    ask: impl FnOnce() -> Result<(Facts, Vec<Stamp>), String>,
) -> Result<Facts, String> {
    let question = format!(
        "{kind} {} {:?}\n{}{}",
        launch.program.display(),
        launch.arguments,
        environment.finding(),
        environment.influences(),
    );
    if let Some(facts) = cache.get(&question) {
        return Ok(facts);
    }
    let (facts, stamps) = ask()?;
    cache.put(&question, stamps, &facts);
    Ok(facts)
}

fn compiler_facts(launch: &Launch, environment: &Environment) -> Result<(Facts, Vec<Stamp>), String> {
    let folder = folder_with("probe.cpp", QUESTION, environment)?;
    let here = folder.path();

    let answer = output(launch, &["-E", "-P", "probe.cpp"], here, environment)
        .map_err(|reason| format!("does not preprocess C++: {reason}"))?;
    let (family, major) = family_in(&answer);
    let has_libc_headers = answer.lines().any(|line| line.trim() == "aoti_headers");
    let machine = output(launch, &["-dumpmachine"], here, environment).unwrap_or_default().trim().to_owned();
    let version = version_text(launch, environment, here)?;

    let mut helpers = Vec::new();
    for helper in HELPERS {
        let argument = format!("-print-prog-name={helper}");
        let named = output(launch, &[&argument], here, environment).unwrap_or_default();
        helpers.extend(program_named(OsStr::new(named.trim()), environment));
    }
    let stamps = stamps_of(launch, &helpers)?;
    let identity = identity(&version, &machine, &stamps)?;
    let version = first_line(&version).to_owned();
    Ok((Facts { machine, has_libc_headers, ..Facts::new(family, major, version, identity) }, stamps))
}

impl Facts {
    fn new(family: Option<Family>, major: u32, version: String, identity: Identity) -> Self {
        Facts {
            family,
            major,
            version,
            machine: String::new(),
            has_libc_headers: false,
            identity,
            architectures: Vec::new(),
            host: None,
            helpers: BTreeMap::new(),
        }
    }
}

/// How the reason begins where there is no folder to try a compiler in.
pub(crate) const CANNOT: &str = "cannot be probed";

fn folder_with(file: &str, text: &str, environment: &Environment) -> Result<TemporaryFolder, String> {
    let cannot = |error: std::io::Error| format!("{CANNOT}: {error}");
    let folder = temporary_folder("probe", environment).map_err(cannot)?;
    std::fs::write(folder.path().join(file), text).map_err(cannot)?;
    Ok(folder)
}

fn family_in(answer: &str) -> (Option<Family>, u32) {
    let line = answer.lines().find_map(|line| line.trim().strip_prefix("aoti_family "));
    let mut words = line.unwrap_or_default().split_whitespace();
    let family = match words.next() {
        Some("gcc") => Some(Family::Gcc),
        Some("clang") => Some(Family::Clang),
        Some("nvcc") => Some(Family::Nvcc),
        _ => None,
    };
    (family, words.next().and_then(|word| word.parse().ok()).unwrap_or(0))
}

/// The version text less what depends on the name or the place that the program was called by.
fn version_text(launch: &Launch, environment: &Environment, directory: &Path) -> Result<String, String> {
    let text = output(launch, &["--version"], directory, environment)
        .map_err(|reason| format!("does not tell its version: {reason}"))?;
    let placeless =
        |line: &&str| !line.starts_with("InstalledDir:") && !line.starts_with("Configuration file:");
    let mut lines = text.lines().filter(placeless).map(str::trim_end).collect::<Vec<_>>();
    // GNU tools begin with the name they were called by.
    if let Some(first) = lines.first_mut()
        && let Some((_, rest)) = first.split_once(' ')
        && rest.starts_with('(')
    {
        *first = rest;
    }
    Ok(lines.join("\n"))
}

fn output(
    launch: &Launch,
    arguments: &[&str],
    directory: &Path,
    environment: &Environment,
) -> Result<String, String> {
    Ok(outputs(launch, arguments, directory, environment)?.0)
}

/// Both streams of a call that succeeds, or why it does not: the first line that names an error.
fn outputs(
    launch: &Launch,
    arguments: &[&str],
    directory: &Path,
    environment: &Environment,
) -> Result<(String, String), String> {
    let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>();
    let ended =
        process::run(launch, &arguments, directory, environment).map_err(|error| error.to_string())?;
    let output = &ended.output;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    if ended.is_success() {
        return Ok((stdout, stderr));
    }
    let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
    let first = lines.clone().next().unwrap_or_default();
    let why = lines.find(|line| line.contains("error") || line.contains("fatal")).unwrap_or(first);
    Err(format!("{}: {}", ended.status(), why.trim()))
}

fn stamps_of(launch: &Launch, helpers: &[PathBuf]) -> Result<Vec<Stamp>, String> {
    let stamp = |path: &Path| Stamp::of(path).ok_or_else(|| format!("cannot be read: `{}`", path.display()));
    std::iter::once(launch.program.as_path()).chain(helpers.iter().map(PathBuf::as_path)).map(stamp).collect()
}

fn identity(version: &str, machine: &str, stamps: &[Stamp]) -> Result<Identity, String> {
    let mut hasher = blake3::Hasher::new();
    for text in [version, machine] {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    for stamp in stamps {
        let mut of_file = blake3::Hasher::new();
        let file = std::fs::File::open(stamp.path());
        file.and_then(|file| of_file.update_reader(file).map(|_| ()))
            .map_err(|error| format!("cannot be read: {error}"))?;
        hasher.update(of_file.finalize().as_bytes());
    }
    Ok(Identity(hasher.finalize().to_hex().to_string()))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_read_from_preprocessed_text() {
        assert_eq!(family_in("\naoti_family gcc 12\naoti_headers\n"), (Some(Family::Gcc), 12));
        assert_eq!(family_in(" aoti_family clang 19"), (Some(Family::Clang), 19));
        assert_eq!(family_in("aoti_family unknown 0"), (None, 0));
        assert_eq!(family_in(""), (None, 0));
    }
}
