//! The command line as a whole; each command's own arguments are with the command.

use std::ffi::OsString;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands::{
    bench, build, cache, clean, completions, doctor, explain, inspect, new, run, run_case, verify,
};

/// Compiles deep-learning models (torch.export .pt2, ONNX) ahead of time into native libraries with Rust bindings
#[derive(Parser, Debug)]
#[command(name = "cargo-aoti", bin_name = "cargo aoti", version, styles = styles())]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Global {
    /// Say nothing but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say more
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Colours on the terminal
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    pub(crate) color: Option<Color>,
}

/// When there are colours.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Compile the models of a cargo project
    Build(build::Arguments),
    /// Compile a model and run it once
    Run(run::Arguments),
    /// Compile and run cases, and compare with their expected outputs
    Verify(verify::Arguments),
    /// Measure the latency of a model
    Bench(bench::Arguments),
    /// Show a model's signature and what it is compiled to
    Inspect(inspect::Arguments),
    /// Show the native toolchains: where, which version, for what
    Doctor(doctor::Arguments),
    /// Remove the artefacts of a cargo project's models
    Clean(clean::Arguments),
    /// Look after the cache of native tools' results
    Cache(cache::Arguments),
    /// Explain a diagnostic's code
    Explain(explain::Arguments),
    /// Make a cargo project that runs a model
    New(new::Arguments),
    /// Add to the cargo project in a folder, or to one made there, what models need
    Init(new::InitArguments),
    /// Print a completion script for a shell
    Completions(completions::Arguments),
    /// One case in a process of its own
    #[command(name = "__run-case", hide = true)]
    RunCase(run_case::Arguments),
}

/// Drops the `aoti` that cargo passes before the user's arguments.
pub(crate) fn without_subcommand(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_some_and(|first| first == "aoti") {
        arguments.remove(1);
    }
    arguments
}

/// Cargo's colours.
fn styles() -> Styles {
    Styles::styled()
        .header(AnsiColor::Green.on_default().bold())
        .usage(AnsiColor::Green.on_default().bold())
        .literal(AnsiColor::Cyan.on_default().bold())
        .placeholder(AnsiColor::Cyan.on_default())
        .error(AnsiColor::Red.on_default().bold())
        .valid(AnsiColor::Cyan.on_default().bold())
        .invalid(AnsiColor::Yellow.on_default().bold())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn cargo_passes_its_own_name() {
        let given = |words: &[&str]| without_subcommand(words.iter().map(OsString::from)).len();
        assert_eq!(given(&["cargo-aoti", "aoti", "doctor"]), 2);
        assert_eq!(given(&["cargo-aoti", "doctor"]), 2);
    }
}
