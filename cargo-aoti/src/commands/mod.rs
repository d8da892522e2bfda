//! The commands, one file each.

pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod cache;
pub(crate) mod clean;
pub(crate) mod collect;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod man;
pub(crate) mod new;
pub(crate) mod package;
pub(crate) mod run;
pub(crate) mod run_case;
pub(crate) mod script;
pub(crate) mod tune;
pub(crate) mod vendor;
pub(crate) mod verify;

use std::io::Write;

use aoti_toolchain::Environment;
use serde::Serialize;
use serde_json::{Value, json};

use crate::arguments::{Command, Output};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::terminal::Terminal;

/// What every command may use.
pub(crate) struct Context {
    pub(crate) environment: Environment,
    pub(crate) terminal: Terminal,
    /// What cargo's configuration says.
    pub(crate) settings: Settings,
    /// What the command line puts over it, for cargo when it is asked.
    pub(crate) overrides: Vec<String>,
}

/// Runs a command.
pub(crate) fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Build(arguments) => build::run(&arguments, context),
        Command::Run(arguments) => run::run(&arguments, context),
        Command::Verify(arguments) => verify::run(&arguments, context),
        Command::Bench(arguments) => bench::run(&arguments, context),
        Command::Inspect(arguments) => inspect::run(&arguments, context),
        Command::Doctor(arguments) => doctor::run(&arguments, context),
        Command::Clean(arguments) => clean::run(&arguments, context),
        Command::Cache(arguments) => cache::run(&arguments, context),
        Command::Collect(arguments) => collect::run(&arguments, context),
        Command::Compile(arguments) => compile::run(&arguments, context),
        Command::Vendor(arguments) => vendor::run(&arguments, context),
        Command::Package(arguments) => package::run(&arguments, context),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::New(arguments) => new::run(&arguments, context),
        Command::Init(arguments) => new::init(&arguments, context),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
        Command::RunCase(arguments) => run_case::run(&arguments, context),
        Command::Script(arguments) => script::run(&arguments, context),
        Command::Tune(arguments) => tune::run(&arguments, context),
        Command::TuneWorker => Ok(aoti_tune::worker::run()?),
    }
}

/// Writes text to stdout, in colours where it has any and the terminal shows them. A reader that has gone away, as `head`
/// does, is no failure.
pub(crate) fn print(text: &str) {
    let mut stdout = anstream::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Tells what was done where, or to what: in words on stderr, or as an object on stdout.
pub(crate) fn tell(output: Output, context: &Context, verb: &str, what: &str, mut object: Value) {
    if output.is_json() {
        object["reason"] = json!(format!("aoti-{}", verb.to_lowercase()));
        print_json(&object);
    } else {
        context.terminal.status(verb, what);
    }
}

/// Writes one JSON object on a line of stdout.
pub(crate) fn print_json(value: &impl Serialize) {
    let mut line = serde_json::to_string(value).expect("reports have text keys only");
    line.push('\n');
    print(&line);
}
