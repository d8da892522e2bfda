//! `compile`: one model, named tools, named outputs. The action of other build systems: it looks for nothing, keeps nothing,
//! and what it writes follows from what it is given.

use std::path::{Path, PathBuf};

use aoti_build::{Job, Layout, Model, Session, Settings};
use aoti_toolchain::{
    Definition, Device, Environment, Target, definitions, place_variable, temporary_folder,
};
use clap::{Args, FromArgMatches};

use super::Context;
use crate::code::{Code, check_portable};
use crate::failure::Failure;
use crate::progress::Shown;
use crate::timings::Timings;

/// Compiles one model with the given tools and writes the given files; the command for rules of other build systems, such as
/// Bazel, CMake and make. It reads no manifest of its own accord, no cache and no environment variables, and searches no PATH
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The model's file
    model: PathBuf,
    /// Write an output to a file, as `KIND=PATH`: `library`, `bindings` (the Rust module), `header`, `abi` (aoti/abi.h, which
    /// the header includes), `weights` or `manifest`; may be repeated
    #[arg(long, value_name = "KIND=PATH", value_parser = emit, required = true)]
    emit: Vec<Emit>,
    /// Write the files that the outputs depend on to this file, as a rule of make
    #[arg(long, value_name = "PATH")]
    depfile: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Tools")]
    tools: Tools,
    /// Target; by default the machine that compiles
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    #[command(flatten, next_help_heading = "Code")]
    code: Code,
    /// Run at most N tools at once; by default as many as there are processors
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

/// The programs that are started, all of them.
#[derive(Args, Debug)]
struct Tools {
    /// C++ compiler
    #[arg(long, value_name = "PROGRAM")]
    cxx: PathBuf,
    /// Archiver; by default the one in the compiler's folder
    #[arg(long, value_name = "PROGRAM")]
    ar: Option<PathBuf>,
    #[command(flatten)]
    gpus: GpuCompilers,
    /// Folder with programs that compilers start, such as the assembler, besides the compilers' own; may be repeated
    #[arg(long, value_name = "FOLDER")]
    tool_folder: Vec<PathBuf>,
}

/// Compilers of code for GPUs: an option for each toolchain that makes such code, by its name.
#[derive(Debug)]
struct GpuCompilers(Vec<(Definition, PathBuf)>);

/// The toolchains of GPUs, in order of priority.
fn gpu_toolchains() -> impl Iterator<Item = Definition> {
    definitions().into_iter().filter(|definition| definition.gpu().is_some())
}

impl Args for GpuCompilers {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(gpu_toolchains().map(|Definition { name, summary, .. }| {
            let option = clap::Arg::new(name.clone()).long(name).help(summary);
            option.value_name("PROGRAM").value_parser(clap::value_parser!(PathBuf))
        }))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        GpuCompilers::augment_args(command)
    }
}

impl FromArgMatches for GpuCompilers {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<GpuCompilers, clap::Error> {
        let given = |definition: Definition| {
            let program = matches.get_one::<PathBuf>(&definition.name)?.clone();
            Some((definition, program))
        };
        Ok(GpuCompilers(gpu_toolchains().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = GpuCompilers::from_arg_matches(matches)?;
        Ok(())
    }
}

impl GpuCompilers {
    /// Fails where there is none for a device that code is asked for.
    fn check(&self, devices: &[String]) -> Result<(), Failure> {
        for device in Device::GPUS.into_iter().filter(|own| devices.iter().any(|name| name == own.as_str())) {
            let is_for = |definition: &Definition| definition.gpu() == Some(device);
            if !self.0.iter().any(|(definition, _)| is_for(definition)) {
                let flags = gpu_toolchains().filter(is_for).map(|own| format!("`--{} PROGRAM`", own.name));
                let (device, flags) = (device.as_str(), flags.collect::<Vec<_>>().join(" or "));
                return Err(Failure::Usage(format!("`--devices {device}` needs a compiler: {flags}")));
            }
        }
        Ok(())
    }

    /// The variables that name them, and the host compiler that some of them call.
    fn variables<'a>(&'a self, host: &'a PathBuf) -> impl Iterator<Item = (String, Option<&'a PathBuf>)> {
        self.0.iter().flat_map(move |(definition, program)| {
            let of = |variables: &[String], program| Some((variables.first()?.clone(), Some(program)));
            let find = &definition.find;
            of(&find.variables, program).into_iter().chain(of(&find.host_variables, host))
        })
    }
}

/// One output: what it is, as artefacts are called, and where it goes.
#[derive(Clone, Debug)]
struct Emit {
    kind: &'static str,
    path: PathBuf,
}

const KINDS: [&str; 6] = ["library", "bindings", "header", "abi", "weights", "manifest"];

/// Reads `KIND=PATH`, for clap.
fn emit(text: &str) -> Result<Emit, String> {
    let known = || format!("expected KIND=PATH with one of the kinds `{}`", KINDS.join("`, `"));
    let (kind, path) = text.split_once('=').ok_or_else(known)?;
    let kind = KINDS.into_iter().find(|known| *known == kind).ok_or_else(known)?;
    if path.is_empty() { Err(known()) } else { Ok(Emit { kind, path: PathBuf::from(path) }) }
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let directory = context.environment.directory();
    // Beside what it becomes: nothing else need be writable.
    let first = directory.join(&arguments.emit[0].path);
    let beside = first.parent().unwrap_or(directory);
    fs_err::create_dir_all(beside).map_err(Failure::machine("make the folder", beside))?;
    let environment = sealed(arguments, &context.environment, beside)?;
    let of_zig =
        temporary_folder("model", &environment).map_err(Failure::machine("make a folder in", beside))?;
    let environment = environment.with_zig_cache(of_zig.path());
    let model = arguments.code.model_of_file(&arguments.model, directory)?;
    check_portable(&model)?;
    let settings = Settings {
        target: arguments.target.clone().map(Target::new),
        jobs: arguments.jobs.map(usize::from),
        cache: false,
        links_elsewhere: true,
        ..Settings::default()
    };
    let folder =
        temporary_folder("model", &environment).map_err(Failure::machine("make a folder in", beside))?;
    let progress = Shown::new(context.terminal);
    let timings = Timings::new(&progress);
    let session = Session::new(&environment, settings)?;
    let job = Job { model: model.clone(), layout: Layout::flat(folder.path()), incremental: false };
    let built = session.build(&[job], &timings).remove(0);
    progress.finish();
    let built = built?;
    for emit in &arguments.emit {
        let path = directory.join(&emit.path);
        let made = built.artefact(emit.kind).map(|artefact| artefact.path.clone());
        let made = match emit.kind {
            "manifest" => Some(folder.path().join("manifest.json")),
            "abi" => Some(folder.path().join("src/include/aoti/abi.h")),
            _ => made,
        };
        deliver(made.as_deref(), &path)?;
    }
    match &arguments.depfile {
        Some(path) => write_rule(path, arguments, &model, directory),
        None => Ok(()),
    }
}

/// An environment with the given tools only. A compiler's own programs are looked for in its folder, as it would on its PATH.
fn sealed(
    arguments: &Arguments,
    environment: &Environment,
    temporary: &Path,
) -> Result<Environment, Failure> {
    let Arguments { tools, code, .. } = arguments;
    tools.gpus.check(&code.devices)?;
    let target = arguments.target.clone().unwrap_or_else(|| environment.host().to_string());
    let named = [
        (place_variable(&tools.cxx).unwrap_or_else(|| format!("CXX_{target}")), Some(&tools.cxx)),
        (format!("AR_{target}"), tools.ar.as_ref()),
    ];
    let directory = environment.directory();
    let (mut variables, mut folders) = (Vec::new(), Vec::new());
    for (name, tool) in named.into_iter().chain(tools.gpus.variables(&tools.cxx)) {
        let Some(tool) = tool else { continue };
        let tool = directory.join(tool);
        if !tool.is_file() {
            return Err(Failure::Usage(format!("there is no program `{}`", tool.display())));
        }
        folders.extend(tool.parent().map(Path::to_owned));
        variables.push((name, tool.into_os_string()));
    }
    folders.extend(tools.tool_folder.iter().map(|folder| directory.join(folder)));
    let path = std::env::join_paths(folders).map_err(|error| Failure::Usage(error.to_string()))?;
    variables.push(("PATH".to_owned(), path));
    variables.push(("TMPDIR".to_owned(), temporary.as_os_str().to_owned()));
    Ok(environment.sealed(variables))
}

/// Puts an output where it was asked for. One that this model has no use for is empty, so that rules may name it always.
fn deliver(made: Option<&Path>, path: &Path) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder).map_err(Failure::machine("make the folder", folder))?;
    }
    match made {
        Some(made) => fs_err::copy(made, path).map(drop),
        None => fs_err::write(path, ""),
    }
    .map_err(Failure::machine("write", path))
}

/// Writes what the outputs depend on, as make and ninja read it.
fn write_rule(path: &Path, arguments: &Arguments, model: &Model, directory: &Path) -> Result<(), Failure> {
    let escaped = |path: &Path| {
        let text = path.display().to_string();
        text.replace('\\', "\\\\").replace(' ', "\\ ").replace('#', "\\#").replace('$', "$$")
    };
    let relative = |path: &PathBuf| escaped(path.strip_prefix(directory).unwrap_or(path));
    let outputs: Vec<String> = arguments.emit.iter().map(|emit| escaped(&emit.path)).collect();
    let mut inputs: Vec<String> = model.files().iter().map(relative).collect();
    inputs.extend(arguments.code.operators.iter().map(|path| escaped(path)));
    let text = format!("{}: \\\n  {}\n", outputs.join(" "), inputs.join(" \\\n  "));
    let path = directory.join(path);
    fs_err::write(&path, text).map_err(Failure::machine("write", &path))
}
