//! `cargo xtask test`: everything that must hold before a change goes in. Runs all steps, then says which failed.

use anyhow::bail;
use std::fs;
use std::path::{Path, PathBuf};
use xshell::cmd;

use crate::clock::{self, Clock};
use crate::workspace::{Workspace, step};
use crate::{examples, queue, setup, systems};

/// The build library as those have it who leave the compiler to `cargo-aoti`.
const WITHOUT_COMPILER: [&str; 3] = ["--package", "aoti-build", "--no-default-features"];

/// One step: its title and what it does.
type Step = (&'static str, fn(&Workspace) -> anyhow::Result<()>);

const STEPS: &[Step] = &[
    ("set-up", |workspace| setup::tools_for_tests(&workspace.shell)),
    ("formatting: cargo fmt --check", formatting),
    ("what tests consist of: cargo test --workspace --no-run", programs),
    ("tests: cargo test --workspace", tests),
    (
        "caches on servers: cargo test --workspace --features aoti-toolchain/remote --test suite servers",
        servers,
    ),
    ("the examples: cargo run --locked, make run, cargo test --locked", examples::tests),
    ("lints: cargo clippy", lints),
    (
        "other systems: cargo check --target (Windows, macOS, Android, wasm), the runtime's tests as wasm",
        systems::checks,
    ),
    ("generated files: cargo xtask regenerate --check", generated),
];

/// Entry point of the task.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let wanted = match arguments {
        [] => "",
        [wanted] if STEPS.iter().any(|(title, _)| title.contains(wanted.as_str())) => wanted,
        _ => bail!("usage: cargo xtask test [WORD]; steps whose titles contain the word are run"),
    };
    let clock = Clock::start();
    let workspace = Workspace::open()?;
    let _ = fs::remove_file(times(&workspace)?);
    let (mut failed, mut rows) = (Vec::new(), Vec::new());
    let steps: Vec<&Step> = STEPS.iter().filter(|(title, _)| title.contains(wanted)).collect();
    for (title, run) in &steps {
        let clock = Clock::start();
        if let Err(error) = step(title, || run(&workspace)) {
            eprintln!("error: {error:#}");
            failed.push(*title);
        }
        rows.push(((*title).to_owned(), clock.spent()));
    }
    let programs = clock::rows(&fs::read_to_string(times(&workspace)?).unwrap_or_default());
    println!("\n{}\n{}", clock::table(&programs), clock::table(&rows));
    let spent = clock.spent();
    if failed.is_empty() {
        println!("all steps passed in {spent}");
        return Ok(());
    }
    bail!("{} of {} steps failed after {spent}: {}", failed.len(), steps.len(), failed.join("; "))
}

/// Where programs of tests leave what they took.
fn times(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    Ok(workspace.target_directory()?.join("tmp").join("times"))
}

fn formatting(workspace: &Workspace) -> anyhow::Result<()> {
    let cargo = &workspace.cargo;
    if !has_component(workspace, "fmt") {
        eprintln!("    skipped: rustfmt is not installed (rustup component add rustfmt)");
        return Ok(());
    }
    cmd!(workspace.shell, "{cargo} fmt --all --check").quiet().run()?;
    examples::formatting(workspace)
}

fn lints(workspace: &Workspace) -> anyhow::Result<()> {
    let cargo = &workspace.cargo;
    if !has_component(workspace, "clippy") {
        eprintln!("    skipped: clippy is not installed (rustup component add clippy)");
        return Ok(());
    }
    for packages in [&["--workspace"][..], &WITHOUT_COMPILER] {
        cmd!(workspace.shell, "{cargo} clippy --quiet {packages...} --all-targets -- -D warnings")
            .quiet()
            .run()?;
    }
    Ok(())
}

/// Before the tests, so that it is told apart what compiling them takes.
fn programs(workspace: &Workspace) -> anyhow::Result<()> {
    let cargo = &workspace.cargo;
    cmd!(workspace.shell, "{cargo} test --quiet {WITHOUT_COMPILER...} --no-run").quiet().run()?;
    Ok(cmd!(workspace.shell, "{cargo} test --quiet --workspace --no-run").quiet().run()?)
}

fn tests(workspace: &Workspace) -> anyhow::Result<()> {
    let cargo = &workspace.cargo;
    let times = times(workspace)?;
    if let Some(folder) = times.parent() {
        fs::create_dir_all(folder)?;
    }
    let queue = times.with_file_name("queue");
    let _ = fs::remove_file(&queue);
    cmd!(workspace.shell, "{cargo} test --quiet {WITHOUT_COMPILER...}").quiet().run()?;
    // Said on the command line and not by a variable: cargo, when tests run it, knows nothing of it.
    let runner = serde_json::to_string(&[&workspace.program, Path::new("queued"), &queue])?;
    let runner = format!("target.'cfg(all())'.runner = {runner}");
    let programs = ["--workspace", "--lib", "--bins", "--tests"];
    cmd!(workspace.shell, "{cargo} test --quiet --config {runner} {programs...}").quiet().run()?;
    let programs = queue::run(&queue, &[&workspace.program, Path::new("timed"), &times]);
    let documents = cmd!(workspace.shell, "{cargo} test --workspace --doc --no-fail-fast").quiet().run();
    programs.and(documents.map_err(Into::into))
}

/// Not with the others: what these tests need takes minutes to compile.
fn servers(workspace: &Workspace) -> anyhow::Result<()> {
    if !is_required(workspace, "redis") {
        eprintln!("    skipped: AOTI_TEST_REQUIRE does not name redis");
        return Ok(());
    }
    let cargo = &workspace.cargo;
    // `--workspace`, though one package has this test: features of dependencies are those of the other tests.
    let arguments =
        ["test", "--workspace", "--features", "aoti-toolchain/remote", "--test", "suite", "servers"];
    Ok(cmd!(workspace.shell, "{cargo} {arguments...}").quiet().run()?)
}

fn generated(workspace: &Workspace) -> anyhow::Result<()> {
    if !is_required(workspace, "libclang") {
        eprintln!("    skipped: AOTI_TEST_REQUIRE does not name libclang, which bindgen needs");
        return Ok(());
    }
    crate::regenerate::run(&["--check".to_owned()])
}

pub(crate) fn is_required(workspace: &Workspace, tool: &str) -> bool {
    let required = workspace.shell.var("AOTI_TEST_REQUIRE").unwrap_or_default();
    required.split(',').any(|name| name.trim() == tool)
}

fn has_component(workspace: &Workspace, name: &str) -> bool {
    let cargo = &workspace.cargo;
    cmd!(workspace.shell, "{cargo} {name} --version").quiet().ignore_stdout().ignore_stderr().run().is_ok()
}
