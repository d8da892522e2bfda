//! The subcommand `cargo aoti`: arguments in, reports out. No compiler logic.
//!
//! stdout is data and stderr is talk. Exit codes: 0 done; 1 the model, the manifest or a case is at fault; 2 usage;
//! 3 a tool or the machine is at fault; 101 a bug in cargo-aoti; 130 interrupted.

mod arguments;
mod bug;
mod case;
mod chosen;
mod code;
mod commands;
mod dims;
mod failure;
mod memory;
mod page;
mod progress;
mod project;
mod ranks;
mod settings;
mod single;
mod table;
mod tensors;
mod terminal;
mod timings;

use std::process::ExitCode;

use arguments::Cli;
use clap::Parser;

fn main() -> ExitCode {
    // First of all: the jobserver is inherited through file descriptors.
    let environment = aoti_toolchain::Environment::capture();
    bug::install_hook();
    let cli = Cli::parse_from(arguments::without_subcommand(std::env::args_os()));
    let settings = settings::Settings::read(environment.directory(), &cli.global.config);
    let terminal =
        terminal::Terminal::new(&cli.global, settings.as_ref().unwrap_or(&settings::Settings::default()));
    let _ = ctrlc::set_handler(|| {
        // Native tools are of the same group, and were told too.
        progress::interrupted();
        std::process::exit(130);
    });
    let (overrides, is_json) = (cli.global.config, cli.command.reports_failures_as_json());
    let result = settings.and_then(|settings| {
        commands::run(cli.command, &commands::Context { environment, terminal, settings, overrides })
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if is_json {
                failure.findings().iter().for_each(commands::print_json);
            }
            terminal.failure(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}
