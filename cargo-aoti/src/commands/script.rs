//! `__script`: the work of a build script that has no compiler of its own. Started by `aoti-build`.
//!
//! stdout is for cargo, but for lines of the error, which are for the script.

use aoti_build::Builder;
use clap::Args;

use super::{Context, print};
use crate::failure::Failure;

/// Does a build script's work in its environment
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The process of the cargo that runs the script
    #[arg(long)]
    cargo: Option<u32>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let builder = Builder::for_script(context.environment.clone(), arguments.cargo);
    builder.and_then(Builder::build).map_err(|error| {
        let text = error.to_string();
        print(&text.lines().map(|line| format!("aoti-error={line}\n")).collect::<String>());
        Failure::Reported
    })
}
