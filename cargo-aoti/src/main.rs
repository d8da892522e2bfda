//! The subcommand `cargo aoti`: arguments in, reports out. No compiler logic.
//!
//! stdout is data and stderr is talk. Exit codes: 0 done; 1 the model, the manifest or a case is at fault; 2 usage;
//! 3 a tool or the machine is at fault; 101 a mistake of ours.

mod arguments;
mod bug;
mod case;
mod commands;
mod dims;
mod failure;
mod memory;
mod progress;
mod project;
mod single;
mod tensors;
mod terminal;

use std::process::ExitCode;

use arguments::Cli;
use clap::Parser;

fn main() -> ExitCode {
    // First of all: the jobserver is inherited through file descriptors.
    let environment = aoti_toolchain::Environment::capture();
    bug::install_hook();
    let cli = Cli::parse_from(arguments::without_subcommand(std::env::args_os()));
    let terminal = terminal::Terminal::new(&cli.global, &environment);
    match commands::run(cli.command, &commands::Context { environment, terminal }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            terminal.failure(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}
