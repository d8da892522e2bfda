//! `man`: the manual page, in roff.

use clap::{Args, CommandFactory};
use clap_mangen::Man;

use super::print;
use crate::arguments::Cli;
use crate::failure::Failure;

/// Prints the manual page of `cargo aoti`, or of one of its commands, such as `cargo aoti man build | man -l -`
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A command
    command: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut cli = Cli::command();
    cli.build();
    let command = match &arguments.command {
        None => cli,
        Some(name) => {
            let found = cli.find_subcommand(name).filter(|command| !command.is_hide_set());
            let found = found.ok_or_else(|| Failure::Usage(format!("there is no command `{name}`")))?;
            found.clone()
        }
    };
    let title = match &arguments.command {
        None => "cargo-aoti".to_owned(),
        Some(name) => format!("cargo-aoti-{name}"),
    };
    let mut text = Vec::new();
    Man::new(command).title(title).render(&mut text).expect("memory takes everything");
    print(&String::from_utf8_lossy(&text));
    Ok(())
}
