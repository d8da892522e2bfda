//! `compile`: one model, named tools, named outputs. The action of other build systems: it looks for nothing, keeps nothing,
//! and what it writes follows from what it is given.

use std::path::{Path, PathBuf};

use aoti_build::{Choices, Job, Layout, Manifest, Model, Session, Settings, operators_of_project};
use aoti_toolchain::{Environment, Target, temporary_folder};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::Context;
use crate::arguments::Rounding;
use crate::failure::Failure;
use crate::progress::Shown;
use crate::single;
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
    /// Name of the model; by default that of its file
    #[arg(long)]
    name: Option<String>,
    /// What the model belongs to: part of its symbols, so that one program may have models of the same name
    #[arg(long, value_name = "NAME", default_value = "")]
    package: String,
    #[command(flatten, next_help_heading = "Tools")]
    tools: Tools,
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
    /// CUDA compiler
    #[arg(long, value_name = "PROGRAM")]
    nvcc: Option<PathBuf>,
    /// HIP compiler
    #[arg(long, value_name = "PROGRAM")]
    hipcc: Option<PathBuf>,
    /// Folder with programs that compilers start, such as the assembler, besides the compilers' own; may be repeated
    #[arg(long, value_name = "FOLDER")]
    tool_folder: Vec<PathBuf>,
}

/// What code is made: the keys of the manifest.
#[derive(Args, Debug)]
struct Code {
    /// Target; by default the machine that compiles
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Devices, comma-separated: `cpu`, `cuda`, `rocm` [default: cpu]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    devices: Vec<String>,
    /// Instruction-set levels of processors, comma-separated [default: the target's]
    #[arg(long, value_name = "LEVELS", value_delimiter = ',')]
    cpu: Vec<String>,
    /// Architectures of NVIDIA GPUs, comma-separated
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cuda: Vec<String>,
    /// Architectures of AMD GPUs, comma-separated
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    rocm: Vec<String>,
    /// Where the weights are: in the library, or in a file that the program loads
    #[arg(long, value_enum, default_value = "embed")]
    weights: Placement,
    /// The library also accepts other weights by name
    #[arg(long)]
    named_weights: bool,
    /// Kind of library
    #[arg(long, value_enum, default_value = "static")]
    link: Link,
    /// Names of the outputs, comma-separated
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    outputs: Vec<String>,
    /// Rename a dimension, as `PROGRAM'S=NAME`; may be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = renamed)]
    dims: Vec<(String, String)>,
    /// Tuning records, as `cargo aoti tune` writes them
    #[arg(long, value_name = "PATH")]
    lock: Option<PathBuf>,
    /// Cargo manifest that declares custom operators
    #[arg(long, value_name = "PATH")]
    operators: Option<PathBuf>,
    #[command(flatten)]
    rounding: Rounding,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Placement {
    Embed,
    External,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Link {
    Static,
    Dylib,
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

/// Reads `OLD=NEW`, for clap.
fn renamed(text: &str) -> Result<(String, String), String> {
    let (old, new) = text.split_once('=').ok_or("expected OLD=NEW")?;
    Ok((old.trim().to_owned(), new.trim().to_owned()))
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let directory = context.environment.directory();
    // Beside what it becomes: nothing else need be writable.
    let first = directory.join(&arguments.emit[0].path);
    let beside = first.parent().unwrap_or(directory);
    fs_err::create_dir_all(beside).map_err(Failure::machine("make the folder", beside))?;
    let environment = sealed(arguments, &context.environment, beside)?;
    let model = model(arguments, directory)?;
    let settings = Settings {
        target: arguments.code.target.clone().map(Target::new),
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
    for (device, flag, tool) in [("cuda", "--nvcc", &tools.nvcc), ("rocm", "--hipcc", &tools.hipcc)] {
        if tool.is_none() && code.devices.iter().any(|name| name == device) {
            return Err(Failure::Usage(format!("`--devices {device}` needs the compiler: `{flag} PROGRAM`")));
        }
    }
    let target = code.target.clone().unwrap_or_else(|| environment.host().to_string());
    let named = [
        (format!("CXX_{target}"), Some(&tools.cxx)),
        (format!("AR_{target}"), tools.ar.as_ref()),
        ("NVCC".to_owned(), tools.nvcc.as_ref()),
        ("NVCC_CCBIN".to_owned(), tools.nvcc.as_ref().map(|_| &tools.cxx)),
        ("HIPCC".to_owned(), tools.hipcc.as_ref()),
    ];
    let directory = environment.directory();
    let (mut variables, mut folders) = (Vec::new(), Vec::new());
    for (name, tool) in named {
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

/// The model, read and checked as a table of a manifest with the same keys.
fn model(arguments: &Arguments, directory: &Path) -> Result<Model, Failure> {
    let Arguments { model: path, name, package, code, .. } = arguments;
    if !directory.join(path).is_file() {
        return Err(Failure::Usage(format!("there is no model `{}`", path.display())));
    }
    if code.cpu.iter().any(|level| level == "native") {
        let help = "name the level, such as `x86-64-v3`";
        return Err(Failure::Usage(format!(
            "code for `native` depends on the machine that compiles; {help}"
        )));
    }
    let name = name.clone().unwrap_or_else(|| single::name_of(path));
    let mut own = Map::new();
    own.insert("path".to_owned(), json!(path));
    own.insert("weights".to_owned(), json!(word(code.weights)));
    own.insert("link".to_owned(), json!(word(code.link)));
    own.insert("named-weights".to_owned(), json!(code.named_weights));
    if !code.outputs.is_empty() {
        own.insert("outputs".to_owned(), json!(code.outputs));
    }
    let dims: Map<String, Value> = code.dims.iter().map(|(old, new)| (old.clone(), json!(new))).collect();
    own.insert("dims".to_owned(), Value::Object(dims));
    let mut table = json!({ "models": { name: own } });
    for (key, names) in
        [("devices", &code.devices), ("cpu", &code.cpu), ("cuda", &code.cuda), ("rocm", &code.rocm)]
    {
        if !names.is_empty() {
            table[key] = json!(names);
        }
    }
    // There is no such file; it says what paths are relative to.
    let place = directory.join("Cargo.toml");
    let manifest = Manifest::of_metadata(&place, &json!({ "aoti": table }), &place, &Value::Null);
    let manifest = manifest.map_err(|problems| {
        let text = |problem: &aoti_build::Problem| match &problem.help {
            Some(help) => format!("{}; {help}", problem.message),
            None => problem.message.clone(),
        };
        Failure::Usage(problems.0.iter().map(text).collect::<Vec<_>>().join("\n"))
    })?;
    let mut models = manifest.models.into_iter();
    let mut model = models.next().ok_or_else(|| Failure::Usage("there is no model".to_owned()))?;
    let numerics = code.rounding.or(aoti_build::Tf32::default());
    (model.tf32, model.libraries) = (Some(numerics.tf32), numerics.libraries);
    model.package.clone_from(package);
    model.choices = match &code.lock {
        Some(lock) if !directory.join(lock).is_file() => {
            return Err(Failure::Usage(format!("there is no file `{}`", lock.display())));
        }
        Some(lock) => Choices::Lock(directory.join(lock)),
        None => Choices::Predicted,
    };
    if let Some(manifest) = &code.operators {
        let manifest = directory.join(manifest);
        model.operators = operators_of_project(manifest.parent().unwrap_or(directory))?;
    }
    Ok(model)
}

/// The word for a value on the command line, which is the manifest's.
fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
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
