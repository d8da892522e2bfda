//! The command line as a whole; each command's own arguments are with the command.

use std::ffi::OsString;

use aoti_build::{MathLibrary, Tf32, WeightsType};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::commands::{
    bench, build, cache, clean, collect, compile, completions, doctor, explain, inspect, man, new, package,
    run, run_case, script, tune, vendor, verify,
};
use crate::table;

/// Compiles deep-learning models (torch.export's .pt2, ONNX) ahead of time into native libraries with Rust bindings
#[derive(Parser, Debug)]
#[command(name = "cargo-aoti", bin_name = "cargo aoti", version, styles = clap_cargo::style::CLAP_STYLING)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the model, the manifest or a case is at fault; 2 usage; 3 a tool or the machine is at fault;
101 a bug in cargo-aoti; 130 interrupted.";

/// What every command takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Print errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print more; repeat for even more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// When to use colours
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    pub(crate) color: Option<Color>,
    /// Override a setting of cargo's configuration, or read a file of them
    #[arg(long, global = true, value_name = "KEY=VALUE|PATH")]
    pub(crate) config: Vec<String>,
}

/// What products of `f32` may be besides our own.
#[derive(Args, Clone, Debug)]
pub(crate) struct Rounding {
    /// Operations on f32 that may use TF32 on a GPU, comma-separated [default: `conv`, as in PyTorch; in `verify` `none`, in `inspect` what the manifest says]
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    allow_tf32: Vec<Rounded>,
    /// Vendor library that may compute matrix products if a tuning record selects it: `cublaslt`, `hipblaslt`, `openblas` or `onednn`
    #[arg(long, value_name = "NAME", value_parser = library)]
    library: Vec<MathLibrary>,
    /// Type that the weights of large matrix products are rounded to when the model is built [default: what the manifest says]
    #[arg(long, value_enum, value_name = "TYPE")]
    weights_type: Option<WeightsWord>,
}

/// A type that weights are rounded to.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum WeightsWord {
    /// None: as the program has them
    Own,
    /// 8 bits, a scale for each column
    Int8,
    /// 4 bits, a scale for each group of 32 or so
    Int4,
    /// bfloat16
    Bf16,
}

impl From<WeightsWord> for WeightsType {
    fn from(word: WeightsWord) -> WeightsType {
        match word {
            WeightsWord::Own => WeightsType::Own,
            WeightsWord::Int8 => WeightsType::Int8,
            WeightsWord::Int4 => WeightsType::Int4,
            WeightsWord::Bf16 => WeightsType::Bf16,
        }
    }
}

fn library(name: &str) -> Result<MathLibrary, String> {
    let known = MathLibrary::ALL.map(MathLibrary::name).join("`, `");
    let found = MathLibrary::ALL.into_iter().find(|library| library.name() == name);
    found.ok_or_else(|| format!("there are `{known}`"))
}

/// A kind of products.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Rounded {
    /// Matrix products
    Matmul,
    /// Convolutions
    Conv,
    /// Nothing
    None,
}

/// The same, decided.
#[derive(Clone, Debug)]
pub(crate) struct Numerics {
    pub(crate) tf32: Tf32,
    pub(crate) libraries: Vec<MathLibrary>,
    /// What the weights of large products are stored in.
    pub(crate) weights: WeightsType,
}

impl Rounding {
    /// The given values, with these defaults.
    pub(crate) fn or(&self, default: impl Into<Numerics>) -> Numerics {
        let default = default.into();
        let has = |kind| self.allow_tf32.contains(&kind);
        let said = Tf32 { matmul: has(Rounded::Matmul), conv: has(Rounded::Conv) };
        let tf32 = if self.allow_tf32.is_empty() { default.tf32 } else { said };
        let libraries = if self.library.is_empty() { default.libraries } else { self.library.clone() };
        let weights = self.weights_type.map_or(default.weights, WeightsType::from);
        Numerics { tf32, libraries, weights }
    }
}

impl From<Tf32> for Numerics {
    fn from(tf32: Tf32) -> Numerics {
        Numerics { tf32, libraries: Vec::new(), weights: WeightsType::Own }
    }
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
    #[command(visible_alias = "b")]
    Build(build::Arguments),
    /// Compile one model with given tools, for other build systems
    Compile(compile::Arguments),
    /// Compile a model and run it once
    Run(run::Arguments),
    /// Compile and run cases, and compare with their expected outputs
    Verify(verify::Arguments),
    /// Measure the latency of a model
    Bench(bench::Arguments),
    /// Benchmark the implementations of each kernel and record the fastest
    Tune(tune::Arguments),
    /// Show the signature of a model and what it is compiled to
    Inspect(inspect::Arguments),
    /// Show which native toolchains were found, and what they compile for
    Doctor(doctor::Arguments),
    /// Build the programs of a cargo project and collect everything that they need in one folder
    Collect(collect::Arguments),
    /// Write a model's sources into a folder that builds with a C++ compiler alone
    Vendor(vendor::Arguments),
    /// Build a model for one or more targets and put everything about it into one archive
    Package(package::Arguments),
    /// Remove the artefacts of a cargo project's models
    Clean(clean::Arguments),
    /// Inspect and clean the cache of compiled code
    Cache(cache::Arguments),
    /// Explain the code of a diagnostic
    Explain(explain::Arguments),
    /// Create a cargo project that runs a model
    New(new::Arguments),
    /// Add what models need to the cargo project in a folder; create one if there is none
    Init(new::InitArguments),
    /// Print a completion script for a shell
    Completions(completions::Arguments),
    /// Print the manual page
    Man(man::Arguments),
    /// The work of a build script that has no compiler of its own
    #[command(name = "__script", hide = true)]
    Script(script::Arguments),
    /// One case in a process of its own
    #[command(name = "__run-case", hide = true)]
    RunCase(run_case::Arguments),
    /// The process in which candidates run
    #[command(name = aoti_tune::worker::COMMAND, hide = true)]
    TuneWorker,
}

impl Command {
    /// Whether what goes wrong is told on stdout too, as objects.
    pub(crate) fn reports_failures_as_json(&self) -> bool {
        match self {
            Command::Run(arguments) => arguments.printed.is_json(),
            Command::Verify(arguments) => arguments.output.is_json(),
            Command::Bench(arguments) => arguments.output.is_json(),
            Command::Tune(arguments) => arguments.output.is_json(),
            Command::Inspect(arguments) => arguments.output.is_json(),
            Command::Doctor(arguments) => arguments.output.is_json(),
            Command::Collect(arguments) => arguments.output.is_json(),
            Command::Vendor(arguments) => arguments.output.is_json(),
            Command::Package(arguments) => arguments.output.is_json(),
            Command::Clean(arguments) => arguments.output.is_json(),
            Command::Cache(arguments) => arguments.is_json(),
            Command::Explain(arguments) => arguments.output.is_json(),
            Command::New(arguments) => arguments.options.output.is_json(),
            Command::Init(arguments) => arguments.options.output.is_json(),
            // It does so itself, before the object that ends a build.
            Command::Build(_)
            | Command::Compile(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::Script(_)
            | Command::RunCase(_)
            | Command::TuneWorker => false,
        }
    }
}

/// Drops the `aoti` that cargo passes before the user's arguments.
pub(crate) fn without_subcommand(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_some_and(|first| first == "aoti") {
        arguments.remove(1);
    }
    arguments
}

/// How a command prints its results.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Output format; `json` prints one object per line
    #[arg(long, value_enum, default_value = "human", value_name = "FORM")]
    format: Form,
    /// As `--format json`
    #[arg(long, hide = true)]
    json: bool,
    /// Do not shorten lines to the terminal's width, and show all columns
    #[arg(long)]
    wide: bool,
}

/// A form of results.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Human,
    Json,
}

impl Output {
    pub(crate) fn is_json(self) -> bool {
        self.json || self.format == Form::Json
    }

    /// Columns that lines may have; none where they may be of any length.
    pub(crate) fn width(self) -> Option<usize> {
        if self.wide { None } else { table::terminal_width() }
    }
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
