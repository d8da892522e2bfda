//! Systems other than the one that tests run on: cases as programs of WebAssembly, of Windows under wine and of 64-bit RISC-V,
//! and shared libraries as they are linked for systems whose programs nothing here runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use aoti_tests::cases::{digits, scaled};
use aoti_tests::project::Project;
use aoti_tests::subcommand::{Ended, cargo, program, workspace};
use aoti_tests::{models, tools};
use aoti_toolchain::audit;

/// What a user has: a Rust program with a model, built by cargo for a target and run there. Its build script has `cargo-aoti` do the
/// work.
fn assert_program_runs(project: &Project, target: &str, linker: &str, runner: &str) {
    let mut cargo = cargo(project.folder(), &project.folder().join("cache"));
    cargo.args(["run", "--quiet", "--target", target]).env("CARGO_AOTI", program());
    let variable = target.replace('-', "_").to_uppercase();
    cargo.env(format!("CARGO_TARGET_{variable}_LINKER"), linker);
    cargo.env(format!("CARGO_TARGET_{variable}_RUNNER"), runner);
    cargo.env("WINEPREFIX", project.folder().join("wine")).env("WINEDEBUG", "-all");
    let ended = Ended::of(&mut cargo).succeeded();
    assert_eq!(ended.stdout.replace('\r', ""), "[2.0, 8.0, 18.0]\n", "{target}");
}

/// What Rust's library asks of Windows, and older wine has not: random bytes, here from a function of the system that it has.
const PRNG: &str = "\
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T bytes) {
  return SystemFunction036(data, (ULONG)bytes);
}
";

const PROGRAM: &str = "\
aoti_runtime::include_model!(\"scaled\");

fn main() -> Result<(), aoti_runtime::Error> {
    let x = aoti_runtime::TensorView::new(&[2.0, 4.0, 6.0], &[1, 3])?;
    println!(\"{:?}\", scaled::Model::load()?.run(&scaled::Inputs { x })?.y.as_slice());
    Ok(())
}
";

fn program_project() -> Project {
    let crates = workspace().join("build-support");
    let [runtime, build] = ["aoti-runtime", "aoti-build"].map(|name| crates.join(name).display().to_string());
    let manifest = format!(
        "[dependencies]\naoti-runtime = {{ path = {runtime:?} }}\n[build-dependencies]\n\
         aoti-build = {{ path = {build:?}, default-features = false }}\n"
    );
    let project = Project::new(&manifest);
    project.write("models/scaled.aoti", models::SCALED);
    project.write("build.rs", "fn main() -> Result<(), aoti_build::Error> {\n    aoti_build::Builder::from_manifest()?.build()\n}\n");
    project.write("src/main.rs", PROGRAM);
    project
}

#[test]
fn a_rust_program_runs_on_windows_as_wine_has_it() {
    let there = tools::zig() && tools::rust_target("rust-systems", "x86_64-pc-windows-gnu");
    let linker = "x86_64-w64-mingw32-gcc";
    let Some(wine) = tools::wine().filter(|_| there && tools::are_there("wine", &[linker])) else { return };
    let project = program_project();
    project.write("prng.c", PRNG);
    let mut compile = Command::new(linker);
    compile.args(["-shared", "prng.c", "-o", "bcryptprimitives.dll", "-ladvapi32"]);
    Ended::of(compile.current_dir(project.folder())).succeeded();
    assert_program_runs(&project, "x86_64-pc-windows-gnu", linker, &wine);
}

#[test]
fn a_rust_program_runs_on_risc_v_in_an_emulator() {
    let (target, linker) = ("riscv64gc-unknown-linux-gnu", "riscv64-linux-gnu-gcc");
    let there = tools::zig() && tools::rust_target("rust-systems", target);
    if there && tools::are_there("qemu", &["qemu-riscv64", linker]) {
        assert_program_runs(&program_project(), target, linker, "qemu-riscv64 -L /usr/riscv64-linux-gnu");
    }
}

/// The level with vectors, on a processor that has them and on one that has not.
#[test]
fn vectors_of_risc_v_are_used_where_the_processor_has_them() {
    if !tools::zig() || !tools::are_there("qemu", &["qemu-riscv64"]) {
        return;
    }
    let target = "riscv64gc-unknown-linux-gnu";
    let project = Project::new("");
    digits(&project);
    let verify = |runner: &str| {
        let arguments = ["verify", "cases", "--timeout", "300", "--target", target, "--level", "rv64gcv"];
        Ended::of(&mut project.aoti(&[&arguments[..], &["--toolchain", "zig", "--runner", runner]].concat()))
    };
    let ended = verify("qemu-riscv64 -cpu rv64,v=true");
    assert_eq!(ended.stdout, "1 passed, 0 failed, 0 skipped\n", "{}", ended.stderr);
    let ended = verify("qemu-riscv64 -cpu rv64,v=false");
    assert!(ended.stdout.contains("this processor runs none of the compiled levels"), "{}", ended.stdout);
}

/// As in a container, which has no home for Zig's cache.
#[test]
fn one_model_is_compiled_by_zig_without_a_home() {
    let Some(zig) = std::env::var_os("CARGO_ZIGBUILD_ZIG_PATH").filter(|_| tools::zig()) else { return };
    let project = Project::new("");
    project.write("scaled.aoti", models::SCALED);
    let mut command = project.aoti(&["compile", "scaled.aoti", "--emit", "library=out/libscaled.a", "--cxx"]);
    command.arg(zig).args(["--target", "riscv64gc-unknown-linux-gnu", "--cpu", "rv64gc,rv64gcv"]);
    let ended = Ended::of(command.env_clear().env("PATH", "/usr/bin:/bin")).succeeded();
    let made = fs::read_dir(project.folder().join("out")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(made.collect::<Vec<_>>(), ["libscaled.a"], "{}", ended.stderr);
}

/// Runs two cases for a target; both must pass.
fn assert_passes(target: &str, runner: &str) {
    let project = Project::new("");
    scaled(&project, "scaled", models::SCALED, &[1.0, 2.0, 3.0]);
    digits(&project);
    let arguments = ["verify", "cases", "--jobs", "2", "--timeout", "300"];
    let mut command = project.aoti(&[&arguments[..], &["--target", target, "--runner", runner]].concat());
    // Wine keeps what it sets up for a user there.
    command.env("WINEPREFIX", project.folder().join("wine")).env("WINEDEBUG", "-all");
    let ended = Ended::of(&mut command);
    assert_eq!(ended.stdout, "2 passed, 0 failed, 0 skipped\n", "{target}: {}", ended.stderr);
}

#[test]
fn cases_pass_as_web_assembly() {
    if !tools::zig() || !tools::are_there("node", &["node"]) {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("wasi.mjs");
    assert_passes("wasm32-wasip1", &format!("node --no-warnings {}", script.display()));
}

#[test]
fn cases_pass_on_windows_as_wine_has_it() {
    let Some(wine) = tools::wine().filter(|_| tools::zig()) else { return };
    assert_passes("x86_64-pc-windows-gnu", &wine);
}

#[test]
fn cases_pass_on_risc_v_in_an_emulator() {
    if !tools::zig() || !tools::are_there("qemu", &["qemu-riscv64"]) {
        return;
    }
    assert_passes("riscv64gc-unknown-linux-gnu", "qemu-riscv64");
}

#[test]
fn shared_libraries_are_linked_for_every_system_and_export_one_symbol() {
    if !tools::zig() {
        return;
    }
    let project = Project::new(
        "[package.metadata.aoti]\n[package.metadata.aoti.models]\nscaled = { path = \"models/scaled.aoti\", link = \"dylib\" }\n",
    );
    project.write("models/scaled.aoti", models::SCALED);
    // Zig makes the libraries of Windows on Arm first, for longer than all other tests take.
    for target in ["x86_64-pc-windows-gnu", "x86_64-apple-darwin", "aarch64-apple-darwin"] {
        Ended::of(&mut project.aoti(&["build", "--target", target])).succeeded();
        let found = library(project.folder()).unwrap_or_else(|| panic!("no library for {target}"));
        let bytes = fs::read(&found).unwrap();
        let mut exported = audit::exported_symbols(&bytes).unwrap();
        // Zig's linker gives these to every library of Apple's.
        exported.retain(|name| !["__dso_handle", "_mh_dylib_header"].contains(&name.as_str()));
        assert_eq!(exported.len(), 1, "{target}: {exported:?}");
        assert!(exported[0].starts_with("aoti_scaled"), "{target}: {exported:?}");
        fs::remove_file(found).unwrap();
    }
    let ended = Ended::of(&mut project.aoti(&["build", "--target", "wasm32-wasip1"]));
    assert!(ended.stderr.contains("`wasm32-wasip1` has no shared libraries"), "{}", ended.stderr);
}

/// The shared library that lies below a folder.
fn library(folder: &Path) -> Option<std::path::PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    for path in entries {
        if path.is_dir() {
            if let Some(found) = library(&path) {
                return Some(found);
            }
        } else if path.extension().is_some_and(|end| end == "dll" || end == "dylib") {
            return Some(path);
        }
    }
    None
}
