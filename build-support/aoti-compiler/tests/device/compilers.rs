//! Compilers of device code take the goldens' graphs, and HIP's headers have the numbers that host code knows.

use super::{LIBRARY, NAMES, compiled, is_installed, kernels, manifest, run, scratch};
use aoti_compiler::target::GpuTarget;
use std::process::Command;

/// Compiles the goldens' graphs for the device only: each for one of the architectures, by turns.
fn compiles(tool: &str, names: &[&str], architectures: &[&str], arguments: &dyn Fn(&str) -> Vec<String>) {
    compiles_some((tool, names), &NAMES, architectures, arguments);
}

fn compiles_some(
    (tool, names): (&str, &[&str]),
    graphs: &[&str],
    architectures: &[&str],
    arguments: &dyn Fn(&str) -> Vec<String>,
) {
    let Some(compiler) = is_installed(tool, names) else { return };
    for (name, architecture) in graphs.iter().zip(architectures.iter().cycle()) {
        let folder = scratch(&format!("device-{tool}-{architecture}"));
        let input = folder.join(format!("{name}.cu"));
        std::fs::write(&input, kernels(&compiled(name, architecture))).expect("the folder is writable");
        run(Command::new(&compiler)
            .args(["-std=c++17", "-O3", "-I"])
            .arg(manifest("include"))
            .args(arguments(architecture))
            .arg(&input)
            .arg("-o")
            .arg(folder.join(format!("{name}.out"))));
    }
}

/// Arguments of a compiler, and those that name the architecture.
fn with(all: &[&str], own: String) -> Vec<String> {
    all.iter().map(|argument| (*argument).to_owned()).chain([own]).collect()
}

pub(super) const CLANG: [&str; 2] = ["clang++-19", "clang++"];
pub(super) const ALONE: [&str; 8] = [
    "-nostdinc++",
    "--cuda-device-only",
    "-fno-exceptions",
    "-ffp-contract=off",
    "-Wall",
    "-Werror",
    // Of an index that is the same in all lanes, loads read the first alone.
    "-Wno-unused-variable",
    "-Wno-unknown-cuda-version",
];

/// Arguments of clang for HIP without anything of ROCm.
fn clang_hip(architecture: &str) -> Vec<String> {
    let own = ["-x", "hip", "-nogpuinc", "-nogpulib", "--no-gpu-bundle-output", "-fno-gpu-rdc", "-c"];
    with(&[&own[..], &ALONE].concat(), format!("--offload-arch={architecture}"))
}

#[test]
fn clang_alone_compiles_for_nvidia() {
    let own = ["-x", "cuda", "-nocudainc", "-nocudalib", "-S"];
    compiles("clang", &CLANG, &["sm_90a"], &|name| {
        with(&[&own[..], &ALONE].concat(), format!("--cuda-gpu-arch={name}"))
    });
}

/// For wavefronts of 64 threads and of 32: most graphs have one text for both.
#[test]
fn clang_alone_compiles_for_amd() {
    compiles("clang", &CLANG, &["gfx90a", "gfx1201", "gfx1100", "gfx942"], &clang_hip);
}

/// Arguments of nvcc.
fn cubin(architecture: &str) -> Vec<String> {
    with(&["-x", "cu", "--fmad=false", "-cubin"], format!("-arch={architecture}"))
}

#[test]
fn nvcc_compiles() {
    let nvcc = std::env::var("NVCC").unwrap_or_else(|_| "nvcc".to_owned());
    compiles("nvcc", &[&nvcc], &["sm_90a"], &cubin);
}

#[test]
fn hipcc_compiles() {
    let own = [
        "-x",
        "hip",
        "--cuda-device-only",
        "--no-gpu-bundle-output",
        "-fno-gpu-rdc",
        "-c",
        "-ffp-contract=off",
    ];
    // Its clang has taken the others' text without ROCm's headers already.
    let graphs: Vec<&str> = NAMES.into_iter().step_by(2).collect();
    let arguments = |name: &str| with(&own, format!("--offload-arch={name}"));
    compiles_some(("hipcc", &["hipcc"]), &graphs, &["gfx90a"], &arguments);
}

/// What a compiler lists, such as `nvcc --list-gpu-arch`: words that begin so.
fn listed(compiler: &std::path::Path, arguments: &[&str], prefix: &str) -> Vec<String> {
    let output = Command::new(compiler).args(arguments).output().expect("the compiler starts");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut names: Vec<String> =
        text.split_whitespace().filter(|word| word.starts_with(prefix)).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    assert!(!names.is_empty(), "no name begins with `{prefix}`: {text}");
    names
}

/// A few products for an architecture, by a compiler that lists it.
fn compiles_for(compiler: &std::path::Path, architecture: &str, arguments: &[String]) {
    let folder = scratch(&format!("device-listed-{architecture}"));
    let input = folder.join("kernels.cu");
    std::fs::write(&input, kernels(&compiled(LIBRARY, architecture))).expect("the folder is writable");
    run(Command::new(compiler)
        .args(["-std=c++17", "-O3", "-I"])
        .arg(manifest("include"))
        .args(arguments)
        .arg(&input)
        .arg("-o")
        .arg(folder.join("kernels.out")));
}

#[test]
fn nvcc_compiles_for_every_architecture_that_it_lists() {
    let nvcc = std::env::var("NVCC").unwrap_or_else(|_| "nvcc".to_owned());
    let Some(nvcc) = is_installed("nvcc", &[&nvcc]) else { return };
    for name in listed(&nvcc, &["--list-gpu-code"], "sm_") {
        compiles_for(&nvcc, &name, &cubin(&name));
    }
}

#[test]
fn clang_alone_compiles_for_every_processor_of_amd_that_is_known() {
    let Some(clang) = is_installed("clang", &CLANG) else { return };
    for name in listed(&clang, &["--target=amdgcn", "--print-supported-cpus"], "gfx") {
        // Older ones, and names that stand for several processors.
        if GpuTarget::named(&name).is_none() || name.ends_with("generic") {
            continue;
        }
        compiles_for(&clang, &name, &clang_hip(&name));
    }
}

/// What host code has to know of HIP and cannot include stands there as numbers.
#[test]
fn numbers_of_hip_are_those_of_its_headers() {
    let Some(hipcc) = is_installed("hipcc", &["hipcc"]) else { return };
    let arguments = ["-std=c++17", "-fsyntax-only", "-x", "hip", "--cuda-host-only", "-I"];
    run(Command::new(hipcc)
        .args(arguments)
        .args([manifest("include"), manifest("tests/device/hip_numbers.cpp")]));
}
