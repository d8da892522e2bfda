//! Whether our crates are made for other systems than this one: they are checked for each, and the runtime's tests run as wasm.
//!
//! Nothing is linked but the wasm: the rest needs Rust's own libraries for the target and nothing else.

use std::path::Path;

use xshell::cmd;

use crate::test::is_required;
use crate::workspace::Workspace;

/// All that users have: the workspace but for this task and the tests. The runtime's digests have the whole of BLAKE3 in Rust, so
/// that nothing asks for a C compiler.
const ALL: &[&str] = &[
    "-p",
    "aoti-build",
    "-p",
    "aoti-compiler",
    "-p",
    "aoti-runtime",
    "-p",
    "aoti-toolchain",
    "-p",
    "aoti-tune",
    "-p",
    "cargo-aoti",
    "--features",
    "aoti-runtime/digest",
];
/// What programs with models are linked with.
const RUNTIME: &[&str] = &["-p", "aoti-runtime", "--features", "digest,half,num-complex,safetensors"];

/// Systems whose compilers and tools differ, and targets that programs are built for.
const SYSTEMS: &[(&str, &[&str])] = &[
    ("x86_64-pc-windows-gnu", ALL),
    ("aarch64-apple-darwin", ALL),
    ("aarch64-linux-android", RUNTIME),
    ("wasm32-unknown-unknown", RUNTIME),
];

/// Where tests run too: pointers have 32 bits, panics end the program, and there are no threads.
const WASM: &str = "wasm32-wasip1";
const RUNNER: &str = "build-support/xtask/src/wasi.mjs";

/// What `AOTI_TEST_REQUIRE` calls the targets.
const NAME: &str = "rust-systems";

/// The step.
pub(crate) fn checks(workspace: &Workspace) -> anyhow::Result<()> {
    let cargo = &workspace.cargo;
    for (target, packages) in SYSTEMS.iter().copied() {
        if is_there(workspace, target)? {
            cmd!(workspace.shell, "{cargo} check --quiet {packages...} --target {target}")
                .env("RUSTFLAGS", "-D warnings")
                .quiet()
                .run()?;
        }
    }
    if !is_there(workspace, WASM)? || !has_node(workspace)? {
        return Ok(());
    }
    let runner = format!("node --no-warnings {}", workspace.root.join(RUNNER).display());
    Ok(cmd!(workspace.shell, "{cargo} test --quiet -p aoti-runtime --lib --target {WASM}")
        .env("CARGO_TARGET_WASM32_WASIP1_RUNNER", runner)
        .env("RUST_TEST_THREADS", "1")
        .quiet()
        .run()?)
}

/// Whether Rust's own libraries for a target are installed; an error where they must be.
fn is_there(workspace: &Workspace, target: &str) -> anyhow::Result<bool> {
    let sysroot = cmd!(workspace.shell, "rustc --print sysroot").quiet().read()?;
    let is_there = Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").is_dir();
    if !is_there {
        missing(workspace, NAME, &format!("{target}: rustup target add {target}"))?;
    }
    Ok(is_there)
}

fn has_node(workspace: &Workspace) -> anyhow::Result<bool> {
    let is_there =
        cmd!(workspace.shell, "node --version").quiet().ignore_stdout().ignore_stderr().run().is_ok();
    if !is_there {
        missing(workspace, "node", "node, which runs wasm")?;
    }
    Ok(is_there)
}

fn missing(workspace: &Workspace, name: &str, what: &str) -> anyhow::Result<()> {
    if is_required(workspace, name) {
        anyhow::bail!("AOTI_TEST_REQUIRE names {name}, and there is no {what}");
    }
    eprintln!("    skipped: there is no {what}");
    Ok(())
}
