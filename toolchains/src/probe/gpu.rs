//! Probes of compilers of GPU code: which architectures they make code for, with which host compiler and helpers, and
//! whether one small kernel really compiles.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Facts, Helper, compiler_facts, folder_with, identity, output, outputs, stamps_of, version_text};
use crate::definition::{Definition, DeviceArguments, Family};
use crate::device_class::Device;
use crate::environment::Environment;
use crate::find::{self, Launch};
use crate::gpu::{GpuArchitecture, Scope, gpu_architectures};
use crate::probe_cache::Stamp;

type Answer = Result<(Facts, Vec<Stamp>), String>;

const NVCC_KERNEL: &str = "extern \"C\" __global__ void aoti_probe(float* x) { *x = 1.0f; }\n";
const CLANG_KERNEL: &str = "extern \"C\" __attribute__((global)) void aoti_probe(float* x) { *x = 1.0f; }\n";

/// Asks nvcc, and tries host compilers until it accepts one.
pub(super) fn nvcc_facts(definition: &Definition, launch: &Launch, environment: &Environment) -> Answer {
    let folder = folder_with("probe.cu", NVCC_KERNEL, environment)?;
    let here = folder.path();
    let version = version_text(launch, environment, here)?;
    let (major, minor, told) = release_in(&version).ok_or("is not nvcc")?;
    let listed = output(launch, &["--list-gpu-arch"], here, environment)
        .map_err(|reason| format!("does not list its architectures: {reason}"))?;
    let architectures = nvcc_architectures(&listed, (major, minor));
    let oldest = architectures.first().ok_or("lists no architecture")?;

    let host = host_compiler(definition, launch, here, environment)?;
    let mut with_host = launch.clone();
    with_host.places = vec!["-ccbin".to_owned(), host.program.to_string_lossy().into_owned()];
    let architecture = format!("-arch={oldest}");
    let arguments = ["-cubin", &architecture, "probe.cu", "-o", "probe.cubin"];
    output(&with_host, &arguments, here, environment).map_err(|reason| incomplete(&reason))?;

    let (_, plan) = outputs(&with_host, &["--dryrun", "-cubin", "probe.cu", "-o", "x"], here, environment)?;
    let folders = ["_HERE_=", "CICC_PATH=", "NVVMIR_LIBRARY_DIR="].map(|name| folder_in_plan(&plan, name));
    let beside = folders.iter().flatten().cloned().collect::<Vec<_>>();
    let parts = ["cicc", "ptxas", "cudafe++", "fatbinary", "nvlink", "libdevice.10.bc"];
    let parts = parts
        .iter()
        .filter_map(|part| beside.iter().map(|folder| folder.join(part)).find(|path| path.is_file()));
    let mut stamps = stamps_of(launch, &parts.collect::<Vec<_>>())?;
    // The host compiler preprocesses device code too.
    let machine = host.identity.as_str();
    let identity = identity(&version, machine, &stamps)?;
    let helpers = helpers(definition, &beside, environment, &mut stamps)?;
    stamps.extend(host.stamps);
    let mut facts = Facts::new(Some(Family::Nvcc), major, told, identity);
    facts.machine = "nvptx64-nvidia-cuda".to_owned();
    facts.architectures = architectures;
    facts.host = Some(host.program);
    facts.helpers = helpers;
    Ok((facts, stamps))
}

struct Host {
    program: PathBuf,
    identity: super::Identity,
    stamps: Vec<Stamp>,
}

/// The first host compiler that nvcc accepts. `Err` names each with nvcc's own words.
fn host_compiler(
    definition: &Definition,
    launch: &Launch,
    here: &Path,
    environment: &Environment,
) -> Result<Host, String> {
    let mut reasons = Vec::new();
    for candidate in find::host_compilers(definition, environment) {
        let found = match candidate.launch {
            Ok(found) => found,
            Err(value) => {
                reasons.push(format!("{} names `{value}`, which is not a program", candidate.found_by));
                continue;
            }
        };
        let name = found.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut with_host = launch.clone();
        with_host.places = vec!["-ccbin".to_owned(), found.program.to_string_lossy().into_owned()];
        if let Err(reason) = output(&with_host, &["-E", "probe.cu", "-o", "probe.ii"], here, environment) {
            if missing_part(&reason).is_some() {
                return Err(incomplete(&reason));
            }
            reasons.push(format!("`{name}`: {}", refusal(&reason)));
            continue;
        }
        match compiler_facts(&found, environment) {
            Ok((facts, stamps)) => {
                return Ok(Host { program: found.program, identity: facts.identity, stamps });
            }
            Err(reason) => reasons.push(format!("`{name}` {reason}")),
        }
    }
    let reasons = if reasons.is_empty() { "none is on PATH".to_owned() } else { reasons.join("; ") };
    Err(format!("accepts no host compiler ({reasons}); install one that it supports or set `NVCC_CCBIN`"))
}

/// The sentence of an `#error` line without the file that it stands in.
fn refusal(reason: &str) -> &str {
    let sentence =
        reason.split_once("#error").map_or(reason, |(_, text)| text.trim_start_matches([' ', '-']));
    // It goes on to recommend an override that may compile wrongly.
    sentence.split_once(" The nvcc flag").map_or(sentence, |(text, _)| text)
}

/// The package that brings what a message misses.
fn missing_part(reason: &str) -> Option<&'static str> {
    const PARTS: [(&str, &str); 6] = [
        ("cicc", "nvidia-nvvm (with pip) or cuda-nvvm"),
        ("libdevice", "nvidia-nvvm (with pip) or cuda-nvvm"),
        ("crt/", "nvidia-cuda-crt (with pip) or cuda-crt"),
        ("cuda_runtime.h", "nvidia-cuda-runtime (with pip) or cuda-cudart-dev"),
        ("nv/target", "nvidia-cuda-cccl (with pip) or cuda-cccl"),
        ("ptxas", "nvidia-cuda-nvcc (with pip) or cuda-nvcc"),
    ];
    let is_missing =
        reason.contains("No such file") || reason.contains("not found") || reason.contains("Could not open");
    PARTS.iter().find(|(part, _)| is_missing && reason.contains(part)).map(|(_, package)| *package)
}

fn incomplete(reason: &str) -> String {
    match missing_part(reason) {
        Some(package) => format!("is incomplete: {reason}; install {package}"),
        None => format!("does not compile an empty kernel: {reason}"),
    }
}

/// Release and its line in nvcc's version text.
fn release_in(version: &str) -> Option<(u32, u32, String)> {
    let line = version.lines().find(|line| line.starts_with("Cuda compilation tools"))?;
    let (_, release) = line.split_once("release ")?;
    let number = release.split(',').next()?;
    let (major, minor) = number.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?, line.to_owned()))
}

/// What `--list-gpu-arch` lists, with the suffixes that the release understands.
fn nvcc_architectures(listed: &str, release: (u32, u32)) -> Vec<String> {
    let mut numbers = listed
        .split_whitespace()
        .filter_map(|name| name.strip_prefix("compute_")?.parse::<u32>().ok())
        .collect::<Vec<_>>();
    numbers.sort_unstable();
    numbers.dedup();
    let mut names = Vec::new();
    for number in numbers {
        names.push(format!("sm_{number}"));
        for known in gpu_architectures(Device::Cuda) {
            let GpuArchitecture::Cuda { number: of, scope } = &known else { continue };
            let understood = match scope {
                Scope::Portable => false,
                Scope::Specific => release >= (12, 0),
                Scope::Family => release >= (12, 9),
            };
            if *of == number && understood {
                names.push(known.to_string());
            }
        }
    }
    names
}

fn folder_in_plan(plan: &str, name: &str) -> Option<PathBuf> {
    let value = plan.lines().find_map(|line| line.strip_prefix("#$ ")?.strip_prefix(name))?;
    std::fs::canonicalize(value.trim()).ok()
}

/// Asks clang, or a driver around it, for one GPU.
pub(super) fn clang_facts(
    definition: &Definition,
    device: &DeviceArguments,
    launch: &Launch,
    environment: &Environment,
) -> Answer {
    let gpu = definition.gpu().ok_or("serves no GPU")?;
    let class = gpu.gpu().ok_or("serves no GPU")?;
    let file = format!("probe.{}", device.suffix);
    let folder = folder_with(&file, CLANG_KERNEL, environment)?;
    let here = folder.path();
    let (mut facts, mut stamps) = match definition.kind {
        Family::Hipcc => hipcc_version(launch, here, environment)?,
        Family::Gcc | Family::Clang | Family::Nvcc => compiler_facts(launch, environment)?,
    };
    if facts.family != Some(definition.kind) {
        return Ok((facts, stamps));
    }
    // Without an architecture: the plan names the compiler itself, which knows the others.
    let sample = gpu.common_architectures().first().and_then(|name| GpuArchitecture::parse(gpu, name));
    let sample = sample.ok_or("serves no GPU")?;
    let arguments = compile_arguments(device, &sample, &file);
    let mut planned = vec!["-###"];
    planned.extend(arguments.iter().map(String::as_str));
    let (_, plan) = outputs(launch, &planned, here, environment)
        .map_err(|reason| format!("does not plan a compile: {reason}"))?;
    let parts = files_in_plan(&plan, here);
    let real = parts
        .iter()
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains("clang")));
    let real = Launch::of(real.cloned().unwrap_or_else(|| launch.program.clone()));
    let target = format!("--target={}", class.triple.split('-').next().unwrap_or_default());
    let (out, error) = outputs(&real, &["--print-supported-cpus", &target], here, environment)
        .map_err(|reason| format!("does not list its GPUs: {reason}"))?;
    facts.architectures = listed_architectures(gpu, &(out + &error));
    facts.architectures.retain(|name| has_device_library(&parts, name));
    let known = |one: &GpuArchitecture| facts.architectures.contains(&one.to_string());
    let sample =
        gpu_architectures(gpu).into_iter().find(known).ok_or("lists no GPU that is in our tables")?;
    let arguments = compile_arguments(device, &sample, &file);
    let arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    output(launch, &arguments, here, environment).map_err(|reason| clang_incomplete(&reason))?;

    stamps.extend(parts.iter().filter_map(|path| Stamp::of(path)));
    facts.identity = identity(facts.identity.as_str(), gpu.as_str(), &stamps)?;
    facts.machine = class.triple.to_owned();
    facts.helpers = helpers(definition, &[], environment, &mut stamps)?;
    Ok((facts, stamps))
}

fn compile_arguments(device: &DeviceArguments, sample: &GpuArchitecture, file: &str) -> Vec<String> {
    let mut arguments = device.compile.clone();
    let last = device.binary.as_ref().or(device.text.as_ref());
    arguments.extend(last.into_iter().flatten().map(|word| crate::device::filled(word, sample)));
    arguments.extend(device.last.iter().cloned());
    arguments.extend([file.to_owned(), "-o".to_owned(), "probe.out".to_owned()]);
    arguments
}

fn clang_incomplete(reason: &str) -> String {
    if reason.contains("lld") || reason.contains("unable to execute command") {
        format!("cannot link code objects: {reason}; install lld of the same version")
    } else if reason.contains("ROCm device library") || reason.contains("oclc") {
        format!("has no device libraries: {reason}; install rocm-device-libs")
    } else {
        format!("does not compile an empty kernel: {reason}")
    }
}

fn hipcc_version(launch: &Launch, here: &Path, environment: &Environment) -> Answer {
    let version = version_text(launch, environment, here)?;
    let line = version.lines().find(|line| line.starts_with("HIP version:")).ok_or("is not hipcc")?;
    let number = line.trim_start_matches("HIP version:").trim();
    let major = number.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    let told = format!("HIP {number}");
    let stamps = stamps_of(launch, &[])?;
    let identity = identity(&version, "", &stamps)?;
    Ok((Facts::new(Some(Family::Hipcc), major, told, identity), stamps))
}

/// The files outside the folder of the probe that a plan (`-###`) names: compiler, linker, device libraries.
fn files_in_plan(plan: &str, here: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for word in plan.split('"').filter(|word| word.starts_with('/')) {
        let path = PathBuf::from(word);
        if !path.starts_with(here) && path.is_file() && !files.contains(&path) {
            files.push(path);
        }
    }
    files
}

fn listed_architectures(gpu: Device, text: &str) -> Vec<String> {
    let is_one = |word: &&str| GpuArchitecture::parse(gpu, word).is_some();
    text.split_whitespace().filter(is_one).map(str::to_owned).collect()
}

/// Where a plan links device libraries, an architecture needs one of its own beside those of the plan.
fn has_device_library(parts: &[PathBuf], architecture: &str) -> bool {
    let prefix = "oclc_isa_version_";
    let is_version =
        |path: &&PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    let Some(version) = parts.iter().find(is_version) else { return true };
    version.with_file_name(format!("{prefix}{}.bc", architecture.trim_start_matches("gfx"))).is_file()
}

/// The helpers that are there, each with an identity of its own.
fn helpers(
    definition: &Definition,
    beside: &[PathBuf],
    environment: &Environment,
    stamps: &mut Vec<Stamp>,
) -> Result<BTreeMap<String, Helper>, String> {
    let mut found = BTreeMap::new();
    for name in &definition.find.helpers {
        let Some(program) = find::helper(name, definition, beside, environment) else { continue };
        let launch = Launch::of(program.clone());
        let Ok(version) = version_text(&launch, environment, Path::new("/")) else { continue };
        let listed = if name == "ptxas" {
            output(&launch, &["--list-arch"], Path::new("/"), environment).unwrap_or_default()
        } else {
            String::new()
        };
        let own = stamps_of(&launch, &[])?;
        let identity = identity(&version, name, &own)?;
        stamps.extend(own);
        let architectures = listed.split_whitespace().map(str::to_owned).collect();
        found.insert(name.clone(), Helper { program, identity, architectures });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_and_suffixes_are_understood() {
        let text =
            "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.4, V12.4.131\nBuild x";
        let (major, minor, told) = release_in(text).unwrap();
        assert_eq!((major, minor), (12, 4));
        assert!(told.ends_with("V12.4.131"));
        assert_eq!(release_in("clang version 19"), None);
        let names = nvcc_architectures("compute_80 compute_90 compute_100", (12, 4));
        assert_eq!(names, ["sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a"]);
        assert!(nvcc_architectures("compute_100", (13, 0)).contains(&"sm_100f".to_owned()));
        assert_eq!(nvcc_architectures("compute_90", (11, 8)), ["sm_90"]);
    }

    #[test]
    fn refusals_are_cut_down_to_the_sentence() {
        let text = "exit status: 1: host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later \
                    than 15 are not supported! The nvcc flag '-allow-unsupported-compiler' can be used";
        assert_eq!(refusal(text), "unsupported GNU version! gcc versions later than 15 are not supported!");
    }
}
