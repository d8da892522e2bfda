//! `cargo xtask demo`: the main job, shown. Compiles the example's trained model ahead of time, by the subcommand and
//! by plain cargo, reads pictures with it, and tells what was built.

use anyhow::{Context, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Instant;
use xshell::cmd;

use crate::setup;
use crate::workspace::{Workspace, step};

const EXAMPLE: &str = "examples/digits";
const MODEL: &str = "models/digits.pt2";

/// Entry point of the task.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    if !arguments.is_empty() {
        bail!("usage: cargo xtask demo");
    }
    let begun = Instant::now();
    let workspace = Workspace::open()?;
    let example = workspace.inside(EXAMPLE);
    let cargo = &workspace.cargo;
    step("set-up", || setup::compiler(&workspace.shell))?;
    step("the subcommand: cargo build --release -p cargo-aoti", || {
        Ok(cmd!(workspace.shell, "{cargo} build --release --package cargo-aoti").quiet().run()?)
    })?;
    let subcommand = workspace.target_directory()?.join("release/cargo-aoti");
    let messages = step("models to native code: cargo aoti build --release (in examples/digits)", || {
        let arguments = ["aoti", "build", "--release", "--message-format", "json"];
        Ok(cmd!(example.shell, "{subcommand} {arguments...}").quiet().read()?)
    })?;
    step("the program: cargo run --release (in examples/digits)", || {
        Ok(cmd!(example.shell, "{cargo} run --release").quiet().run()?)
    })?;
    let latency = step("its latency: cargo aoti bench", || {
        let arguments = ["aoti", "bench", MODEL, "--json"];
        Ok(cmd!(example.shell, "{subcommand} {arguments...}").quiet().read()?)
    })?;
    println!("\n{}", summary(&messages, &latency)?);
    println!("demo finished in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// What was built, as a table.
fn summary(messages: &str, latency: &str) -> anyhow::Result<String> {
    let built = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|message| message["reason"] == "aoti-artifact")
        .context("the build told of no model")?;
    let files = built["files"].as_array().context("the build told of no files")?;
    let library = files.iter().find(|file| file["kind"] == "library").context("the build made no library")?;
    let path = Path::new(library["path"].as_str().context("the library has no path")?);
    let folder = path.parent().context("the library lies in no folder")?;
    let manifest: Value = serde_json::from_str(&fs::read_to_string(folder.join("manifest.json"))?)?;
    let bench: Value = serde_json::from_str(latency)?;
    let kib = |value: &Value| format!("{:.0} KiB", value.as_f64().unwrap_or_default() / 1024.0);
    let levels: Vec<&str> =
        manifest["levels"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let lines = [
        ("model", format!("{EXAMPLE}/{MODEL}")),
        ("compiler", text(&manifest["toolchain"]["name"]) + " " + &text(&manifest["toolchain"]["version"])),
        ("kernels", format!("{}, each for {}", manifest["kernels"], levels.join(", "))),
        (
            "library",
            format!("{}, weights of {} included", kib(&library["bytes"]), kib(&manifest["weights_bytes"])),
        ),
        ("compile time", format!("{} ms", built["compile_ms"])),
        (
            "latency",
            format!(
                "{} us for one picture, median of {} runs, {} thread",
                bench["us_med"], bench["n"], bench["threads"]
            ),
        ),
    ];
    Ok(lines.map(|(name, value)| format!("{name:<13} {value}")).join("\n"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
