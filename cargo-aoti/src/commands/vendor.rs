//! `vendor`: a model as a folder of sources that builds with a C++ compiler alone.

pub(crate) mod files;

use std::path::PathBuf;

use aoti_build::{Job, Layout, Session, Settings};
use aoti_toolchain::{Target, temporary_folder};
use clap::Args;
use serde_json::json;

use super::{Context, tell};
use crate::arguments::Output;
use crate::code::{Code, check_portable};
use crate::failure::Failure;
use crate::progress::Shown;
use crate::project::{Selection, shown};
use crate::timings::Timings;
use files::Folder;

/// Writes a model's generated sources into a folder, with weights, header, Makefile and a small Rust crate. It builds with a
/// C++ compiler and no cargo-aoti, to the same bytes as a build here with that compiler
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The model's file, or the name of a model of the project, whose manifest then says what code is made
    model: PathBuf,
    /// The folder; one that is there must be empty or written by this command
    directory: PathBuf,
    /// Target; by default this machine
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    #[command(flatten, next_help_heading = "Code")]
    code: Code,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let model = arguments.code.model(&arguments.model, &arguments.selection, context)?;
    check_portable(&model)?;
    let folder = Folder::new(&context.environment.directory().join(&arguments.directory))?;
    let settings = Settings { target: arguments.target.clone().map(Target::new), ..Settings::default() };
    let session = Session::new(&context.environment, settings)?;
    let place = context.environment.temporary_directory();
    let made = temporary_folder("model", &context.environment)
        .map_err(Failure::machine("make a folder in", &place))?;
    let progress = Shown::new(context.terminal);
    let timings = Timings::new(&progress);
    let job = Job { model, layout: Layout::flat(made.path()), incremental: false };
    let vendored = session.vendor(&job, &folder.sources()?, &timings);
    progress.finish();
    let vendored = vendored?;
    folder.fill(&vendored, made.path(), session.target().as_str())?;
    let object = json!({
        "folder": arguments.directory, "model": job.model.name, "library": vendored.library, "objects": vendored.objects.len(),
    });
    tell(arguments.output, context, "Vendored", &shown(&arguments.directory, context), object);
    Ok(())
}
