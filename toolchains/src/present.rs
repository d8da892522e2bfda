//! The GPUs of this machine, for `native`. Nothing depends on there being any.

use std::path::Path;

use crate::definition::Device;
use crate::environment::Environment;
use crate::find::{Launch, program_named};
use crate::process;

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

/// The GPUs that the drivers of this machine tell of; none where there is no driver.
pub fn present_devices(environment: &Environment) -> Vec<PresentDevice> {
    let mut names = nvidia(environment).into_iter().map(|name| (Device::Cuda, name)).collect::<Vec<_>>();
    names.extend(
        amd(Path::new("/sys/class/kfd/kfd/topology/nodes")).into_iter().map(|name| (Device::Rocm, name)),
    );
    names.sort();
    let mut found: Vec<PresentDevice> = Vec::new();
    for (device, architecture) in names {
        match found.last_mut().filter(|last| last.architecture == architecture) {
            Some(last) => last.count += 1,
            None => found.push(PresentDevice { device, architecture, count: 1 }),
        }
    }
    found
}

fn nvidia(environment: &Environment) -> Vec<String> {
    let Some(program) = program_named("nvidia-smi".as_ref(), environment) else { return Vec::new() };
    let arguments = ["--query-gpu=compute_cap", "--format=csv,noheader"].map(str::to_owned);
    match process::run(&Launch::of(program), &arguments, Path::new("/"), environment) {
        Ok(output) if output.status.success() => capabilities(&String::from_utf8_lossy(&output.stdout)),
        Ok(_) | Err(_) => Vec::new(),
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
fn amd(nodes: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for node in fs_err::read_dir(nodes).into_iter().flatten().flatten() {
        let text = fs_err::read_to_string(node.path().join("properties")).unwrap_or_default();
        let version = text.lines().find_map(|line| line.strip_prefix("gfx_target_version "));
        names.extend(version.and_then(|version| version.trim().parse().ok()).and_then(processor));
    }
    names
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
}
