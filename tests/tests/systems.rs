//! Systems other than the one that tests run on: cases as programs of WebAssembly, of Windows under wine and of 64-bit RISC-V,
//! and shared libraries as they are linked for systems whose programs nothing here runs.

use std::fs;
use std::path::Path;

use aoti_tests::cases::{digits, scaled};
use aoti_tests::project::Project;
use aoti_tests::subcommand::Ended;
use aoti_tests::{models, tools};
use aoti_toolchain::audit;

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
