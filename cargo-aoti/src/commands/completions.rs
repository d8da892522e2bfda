//! `completions`: a script that completes the command line.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::print;
use crate::arguments::Cli;
use crate::failure::Failure;

/// Prints a completion script for `cargo-aoti`
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "cargo-aoti", &mut script);
    print(&String::from_utf8_lossy(&script));
    Ok(())
}
