//! The examples, built and run as users do, and what they print compared with what PyTorch or ONNX Runtime said of the same inputs.
//!
//! Knows how each example is run; what it needs to compile a model is the subcommand, which the tests have built.

use anyhow::{Context, bail};
use std::fs;
use std::path::Path;
use xshell::cmd;

use crate::workspace::Workspace;

/// How an example is tried.
enum Kind {
    /// `cargo run`, whose output is in `expected.txt`.
    Runs,
    /// `cargo test`.
    Tested,
    /// `make run`, whose output is in `expected.txt`.
    Made,
    /// `cargo check`: needs a GPU to run.
    Checked,
    /// Not here: `tests/tests/browser.rs` builds it for another target and loads it in a browser.
    InBrowser,
}

/// Folders in `examples/`.
const EXAMPLES: &[(&str, Kind)] = &[
    ("digits", Kind::Runs),
    ("operators", Kind::Runs),
    ("cuda-inference", Kind::Checked),
    ("onnx-import", Kind::Runs),
    ("two-models", Kind::Runs),
    ("c-program", Kind::Made),
    ("text-embeddings", Kind::Runs),
    ("image-classifier", Kind::Tested),
    ("speech-features", Kind::Runs),
    ("text-generation", Kind::Runs),
    ("browser", Kind::InBrowser),
];

/// Looks at the layout of those in Rust.
pub(crate) fn formatting(workspace: &Workspace) -> anyhow::Result<()> {
    let cargo = &workspace.cargo;
    for (name, kind) in EXAMPLES {
        if !matches!(kind, Kind::Made) {
            let example = workspace.inside(&format!("examples/{name}"));
            cmd!(example.shell, "{cargo} fmt --check").quiet().run()?;
        }
    }
    Ok(())
}

/// Runs them all. They are built where `aoti-tests` builds its projects, and with its setting: as their lock files agree with the
/// workspace's, the build library, which takes minutes, is there already.
pub(crate) fn tests(workspace: &Workspace) -> anyhow::Result<()> {
    let target = workspace.target_directory()?;
    let cargo = &workspace.cargo;
    // All members are named so that features are resolved as they were for the tests.
    cmd!(workspace.shell, "{cargo} build --quiet --workspace --bin cargo-aoti").quiet().run()?;
    for (name, kind) in EXAMPLES {
        eprintln!("    {name}");
        let Some(printed) = run(workspace, name, kind, &target)? else { continue };
        let path = workspace.root.join("examples").join(name).join("expected.txt");
        let expected =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if printed.trim_end() != expected.trim_end() {
            bail!("the example {name} prints\n{printed}\nand its expected.txt says\n{expected}");
        }
    }
    Ok(())
}

/// Runs one and gives what it prints, if that is known beforehand.
fn run(workspace: &Workspace, name: &str, kind: &Kind, target: &Path) -> anyhow::Result<Option<String>> {
    let cargo = &workspace.cargo;
    let shell = workspace.inside(&format!("examples/{name}")).shell;
    let subcommand = target.join("debug/cargo-aoti");
    let _setting = shell.push_env("CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG", "0");
    let _subcommand = shell.push_env("CARGO_AOTI", &subcommand);
    let _target = shell.push_env("CARGO_TARGET_DIR", target.join("tmp").join("Projekte für Tests"));
    match kind {
        Kind::Runs => Ok(Some(cmd!(shell, "{cargo} run --quiet --locked").quiet().read()?)),
        Kind::Tested => {
            cmd!(shell, "{cargo} test --quiet --locked").quiet().run()?;
            Ok(None)
        }
        Kind::Made => {
            let out = format!("OUT={}", target.join("tmp").join(name).display());
            let compiler = format!("CARGO_AOTI={} aoti", subcommand.display());
            Ok(Some(cmd!(shell, "make --silent run {out} {compiler}").quiet().read()?))
        }
        Kind::Checked => {
            cmd!(shell, "{cargo} check --quiet --locked").quiet().run()?;
            Ok(None)
        }
        Kind::InBrowser => Ok(None),
    }
}
