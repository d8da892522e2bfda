//! The GPUs of this machine, for `native`. No other architecture requires one.
//!
//! | device | asked | on machines without |
//! |---|---|---|
//! | cuda | `nvidia-smi` on `PATH`, or where WSL has it: compute capabilities | it is not there |
//! | rocm | the kernel driver's `gfx_target_version` of each node; where there is no such driver (WSL), `rocm_agent_enumerator` or clang's `amdgpu-arch` on `PATH` | neither is there |

use std::path::{Path, PathBuf};

use crate::device_class::Device;
use crate::environment::Environment;
use crate::error::Error;
use crate::find::{Launch, program_named};
use crate::process;
use crate::resolve::Requirements;

/// The level that stands for this machine.
const NATIVE: &str = "native";
/// Where AMD's kernel driver tells of processors and GPUs.
const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";
/// Programs that print the names of AMD processors, one a line.
const AMD_PROGRAMS: [&str; 2] = ["rocm_agent_enumerator", "amdgpu-arch"];

/// One GPU, or several of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PresentDevice {
    /// Its class.
    pub device: Device,
    /// The architecture to compile for, with the suffix that this very GPU may use: `sm_90a`.
    pub architecture: String,
    /// How many there are.
    pub count: usize,
}

/// The GPUs of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentDevices {
    /// In order of class and architecture.
    pub found: Vec<PresentDevice>,
    /// For each class without any: where was looked, and what was found there.
    pub absent: Vec<(Device, Vec<String>)>,
}

/// The GPUs that the drivers of this machine tell of; none where there is no driver.
pub fn present_devices(environment: &Environment) -> PresentDevices {
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    for device in Device::GPUS {
        let mut names = match architectures(device, environment) {
            Ok(names) => names,
            Err(looked_for) => {
                absent.push((device, looked_for));
                continue;
            }
        };
        names.sort();
        for group in names.chunk_by(|a, b| a == b) {
            found.push(PresentDevice { device, architecture: group[0].clone(), count: group.len() });
        }
    }
    PresentDevices { found, absent }
}

/// A request for a GPU with the architectures of this machine in the place of `native`.
///
/// # Errors
/// [`Error::NoDevice`] when there are none.
pub(crate) fn without_native(wish: &Requirements, environment: &Environment) -> Result<Requirements, Error> {
    let mut wish = wish.clone();
    // A processor's `native` is the compiler's business.
    if wish.device == Device::Cpu || !wish.levels.iter().any(|level| level == NATIVE) {
        return Ok(wish);
    }
    let present = architectures(wish.device, environment)
        .map_err(|looked_for| Error::NoDevice { device: wish.device, looked_for })?;
    let mut levels: Vec<String> = Vec::new();
    for level in wish.levels {
        let meant = if level == NATIVE { present.clone() } else { vec![level] };
        for level in meant {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
    }
    wish.levels = levels;
    Ok(wish)
}

/// The architecture of each GPU of a class, or what was looked for.
fn architectures(device: Device, environment: &Environment) -> Result<Vec<String>, Vec<String>> {
    device.gpu().map_or(Err(Vec::new()), |class| (class.present)(environment))
}

/// NVIDIA's GPUs.
pub(crate) fn nvidia(environment: &Environment) -> Result<Vec<String>, String> {
    let names = ["nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"];
    let program = names.iter().find_map(|name| program_named(name.as_ref(), environment));
    let program = program.ok_or("`nvidia-smi`, which comes with NVIDIA's driver, is not on PATH")?;
    let arguments = ["--query-gpu=compute_cap", "--format=csv,noheader"];
    let found = capabilities(&answer(&program, &arguments, environment)?);
    if found.is_empty() { Err("`nvidia-smi` tells of no GPU".to_owned()) } else { Ok(found) }
}

/// AMD's GPUs.
pub(crate) fn amd(environment: &Environment) -> Result<Vec<String>, Vec<String>> {
    nodes(Path::new(NODES)).or_else(|of_driver| {
        by_programs(environment).map_err(|of_programs| [vec![of_driver], of_programs].concat())
    })
}

/// What the first program tells that can; else why each cannot.
fn by_programs(environment: &Environment) -> Result<Vec<String>, Vec<String>> {
    let mut looked_for = Vec::new();
    for name in AMD_PROGRAMS {
        let Some(program) = program_named(name.as_ref(), environment) else {
            looked_for.push(format!("`{name}` is not on PATH"));
            continue;
        };
        match answer(&program, &[], environment) {
            Err(reason) => looked_for.push(reason),
            Ok(text) => {
                // `gfx000` is the processor.
                let is_gpu = |name: &&str| name.starts_with("gfx") && *name != "gfx000";
                let found: Vec<String> = text.split_whitespace().filter(is_gpu).map(str::to_owned).collect();
                if !found.is_empty() {
                    return Ok(found);
                }
                looked_for.push(format!("`{name}` tells of no GPU"));
            }
        }
    }
    Err(looked_for)
}

fn answer(program: &PathBuf, arguments: &[&str], environment: &Environment) -> Result<String, String> {
    let arguments = arguments.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    match process::run(&Launch::of(program), &arguments, Path::new("/"), environment) {
        Ok(ended) if ended.is_success() => Ok(String::from_utf8_lossy(&ended.output.stdout).into_owned()),
        Ok(ended) => {
            let status = ended.status();
            let said = [ended.output.stdout, ended.output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            // The last line of a script's traceback is its cause.
            let said = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
            Err(format!("`{}` failed with {status}: {said}", program.display()))
        }
        Err(error) => Err(format!("`{}` cannot be started: {error}", program.display())),
    }
}

/// `9.0` on a line is `sm_90a`.
fn capabilities(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let (major, minor) = line.trim().split_once('.')?;
        let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
        let suffix = if major >= 9 { "a" } else { "" };
        Some(format!("sm_{major}{minor}{suffix}"))
    };
    text.lines().filter_map(name).collect()
}

/// The kernel driver tells a version for each node, 0 for processors.
fn nodes(nodes: &Path) -> Result<Vec<String>, String> {
    let shown = nodes.display();
    let listing = std::fs::read_dir(nodes)
        .map_err(|_| format!("`{shown}`, which AMD's kernel driver makes, cannot be read"))?;
    let mut names = Vec::new();
    for node in listing.flatten() {
        let text = std::fs::read_to_string(node.path().join("properties")).unwrap_or_default();
        let version = text.lines().find_map(|line| line.strip_prefix("gfx_target_version "));
        names.extend(version.and_then(|version| version.trim().parse().ok()).and_then(processor));
    }
    if names.is_empty() { Err(format!("`{shown}` has no node with a GPU")) } else { Ok(names) }
}

/// 90010 is 9.0.10, gfx90a: the last two digits of the name are hexadecimal.
fn processor(version: u32) -> Option<String> {
    let (major, minor, stepping) = (version / 10000, version / 100 % 100, version % 100);
    (version != 0).then(|| format!("gfx{major}{minor:x}{stepping:x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_answers_become_architectures() {
        assert_eq!(capabilities("9.0\n8.6\n12.1\n[N/A]\n"), ["sm_90a", "sm_86", "sm_121a"]);
        let names = [0, 90010, 90402, 110000, 100300, 120001].map(processor);
        let names = names.iter().flatten().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(names, ["gfx90a", "gfx942", "gfx1100", "gfx1030", "gfx1201"]);
    }

    #[test]
    fn nodes_of_the_kernel_driver_are_gpus_or_processors() {
        let folder = tempfile::tempdir().unwrap();
        assert!(nodes(&folder.path().join("nodes")).unwrap_err().contains("cannot be read"));
        for (node, text) in [
            ("0", "cpu_cores_count 64\ngfx_target_version 0\n"),
            ("1", "cpu_cores_count 0\nsimd_count 416\ngfx_target_version 90010\n"),
            ("2", "gfx_target_version 90010"),
            ("3", "gfx_target_version nonsense"),
        ] {
            fs_err::create_dir_all(folder.path().join(node)).unwrap();
            fs_err::write(folder.path().join(node).join("properties"), text).unwrap();
        }
        assert_eq!(nodes(folder.path()).unwrap(), ["gfx90a", "gfx90a"]);
        for node in ["1", "2"] {
            fs_err::remove_dir_all(folder.path().join(node)).unwrap();
        }
        assert!(nodes(folder.path()).unwrap_err().contains("no node with a GPU"));
    }
}
