//! `new` and `init`: a cargo project that compiles a model in its build script and runs it.
//!
//! Cargo itself makes the package; this adds what a model needs. Everything that can be wrong is looked at before
//! anything is written.

mod crates;
mod program;

use std::path::{Path, PathBuf};
use std::process::Command;

use aoti_build::{Operator, OperatorCode, operators_of_project};
use aoti_compiler::codegen::interface::Interface;
use aoti_compiler::diagnostic::{Code, Diagnostics};
use aoti_compiler::{compile, frontend::torch::custom};
use clap::Args;
use serde_json::json;
use toml_edit::{DocumentMut, InlineTable, Item, Table};

use super::{Context, tell};
use crate::arguments::Output;
use crate::failure::Failure;
use crate::project::shown;
use crate::{case, memory, single};
use crates::Crates;

/// Makes a cargo project that compiles a model in its build script and runs it
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Folder of the project
    path: PathBuf,
    #[command(flatten)]
    pub(crate) options: Options,
}

/// Makes a cargo project of a folder, or adds to a cargo project what it needs to compile models
#[derive(Args, Debug)]
pub(crate) struct InitArguments {
    /// Folder of the project
    #[arg(default_value = ".")]
    path: PathBuf,
    #[command(flatten)]
    pub(crate) options: Options,
}

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// A model to copy into it: a file, or a case's folder
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Name of the package; by default the folder's
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Folder or git repository (a URL) of the sources of cargo-aoti [default: where this program was built]
    #[arg(long, value_name = "FOLDER|URL")]
    sources: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

const BUILD: &str = "\
fn main() -> Result<(), aoti_build::Error> {
    aoti_build::Builder::from_manifest()?.build()
}
";

/// A model that goes into the project.
struct Chosen {
    path: PathBuf,
    /// Name of the copy in `models/`.
    file: String,
    identifier: String,
    interface: Interface,
    /// Functions of operators that the program has to define, up to their bodies.
    functions: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let path = context.environment.directory().join(&arguments.path);
    if path.join("Cargo.toml").exists() {
        let path = arguments.path.display();
        let message =
            format!("`{path}` is a cargo project already; `cargo aoti init {path}` adds models to it");
        return Err(Failure::Usage(message));
    }
    make(&path, &arguments.options, context)
}

pub(crate) fn init(arguments: &InitArguments, context: &Context) -> Result<(), Failure> {
    make(&context.environment.directory().join(&arguments.path), &arguments.options, context)
}

fn make(path: &Path, options: &Options, context: &Context) -> Result<(), Failure> {
    let crates = Crates::find(options.sources.as_deref())?;
    let chosen = options.model.as_deref().map(|model| choose(model, path)).transpose()?;
    let is_new_folder = !path.exists();
    let is_project = path.join("Cargo.toml").is_file();
    let has_program = ["src/main.rs", "src/lib.rs"].iter().any(|file| path.join(file).exists());
    if !is_project {
        package(path, options, is_new_folder, context)?;
    }
    let filled = fill(path, &crates, chosen.as_ref(), has_program, context);
    if filled.is_err() && is_new_folder {
        // Nothing of the user's can be in a folder that was not there; what stays does no harm.
        let _ = fs_err::remove_dir_all(path);
    }
    filled?;
    let verb = if is_project { "Prepared" } else { "Created" };
    tell(options.output, context, verb, &shown(path, context), json!({ "path": path }));
    Ok(())
}

/// Reads the model to its interface: one that does not compile goes into no project.
/// Operators are those that the project's manifest declares, or that of the workspace around it.
fn choose(given: &Path, project: &Path) -> Result<Chosen, Failure> {
    let (path, _) = case::model_file(given)?;
    let model = memory::model_file(&path)?;
    let name = single::name_of(&path);
    let declared = operators_of_project(project)?;
    let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
    let identifier = aoti_build::Model::new(&name, &path).identifier();
    let operators = declared.iter().map(Operator::read).collect::<Result<_, _>>()?;
    let options = compile::Options::new(&*name, [""; 0]).with_operators(operators);
    let bundle =
        compile::compile(model, &options).map_err(|diagnostics| declare_first(diagnostics, project))?;
    let functions = functions(&declared, &options.operators);
    let file = format!("{name}.{extension}");
    Ok(Chosen { path, file, identifier, interface: bundle.interface, functions })
}

/// The functions of the project's operators that no C++ file defines.
fn functions(declared: &[Operator], read: &[custom::Operator]) -> Vec<String> {
    let is_own = |operator: &Operator| matches!(operator.code, OperatorCode::Function { source: None, .. });
    let own = declared.iter().zip(read).filter(|(operator, _)| is_own(operator));
    own.filter_map(|(_, operator)| custom::declaration(operator).ok().flatten()).collect()
}

/// Of operators that are not supported, those of the project's own can be declared: in a manifest, which has to be there first.
fn declare_first(mut diagnostics: Diagnostics, project: &Path) -> Failure {
    let project = project.file_name().unwrap_or(project.as_os_str()).to_string_lossy().into_owned();
    let unknown = diagnostics.0.iter_mut().filter(|diagnostic| diagnostic.code == Code::Operator);
    for diagnostic in unknown {
        diagnostic.notes.push(format!(
            "for an operator of your own, make the project without the model, declare the operator in its `Cargo.toml` and \
             add the model with `cargo aoti init {project} --model FILE`"
        ));
    }
    diagnostics.into()
}

/// Has cargo make the package: names, the workspace around it and version control are its affair.
fn package(path: &Path, options: &Options, is_new_folder: bool, context: &Context) -> Result<(), Failure> {
    let cargo = context.environment.variable("CARGO").map_or_else(|| "cargo".into(), ToOwned::to_owned);
    let mut command = Command::new(cargo);
    command.arg(if is_new_folder { "new" } else { "init" }).arg("--quiet");
    if let Some(name) = &options.name {
        command.args(["--name", name]);
    }
    let output = command.arg("--").arg(path).output();
    let output = output.map_err(|error| Failure::Machine(format!("cannot start cargo: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::Usage(said.trim_start_matches("error: ").trim_end().to_owned()))
}

/// Without it, cargo gives crates that the program has in common with its build script the program's debug information in
/// a build and none in a check, and so compiles the build library for each of the two.
const PROFILE: &str = "
# So that `cargo check` and `cargo build` share what the build script is made of.
[profile.dev.build-override]
debug = false
";

/// What the build script is made of, which is not seen until somebody else builds the project.
fn compiler_note(has_compiler: bool, is_installed: bool) -> &'static str {
    match (has_compiler, is_installed) {
        (false, _) => {
            "building this project takes an installed `cargo-aoti`; for people without one, remove \
             `default-features = false` from `aoti-build`"
        }
        (true, false) => {
            "the build script compiles the compiler itself, because this `cargo-aoti` is not the one on `PATH`"
        }
        (true, true) => "the build script compiles the compiler itself, for those who depend on this library",
    }
}

/// Adds what a model needs.
fn fill(
    path: &Path,
    crates: &Crates,
    chosen: Option<&Chosen>,
    has_program: bool,
    context: &Context,
) -> Result<(), Failure> {
    let manifest = path.join("Cargo.toml");
    let text = fs_err::read_to_string(&manifest).map_err(Failure::machine("read", &manifest))?;
    let half: &[&str] =
        if chosen.is_some_and(|chosen| program::needs_half(&chosen.interface)) { &["half"] } else { &[] };
    // A package that others depend on is built by people who need not have the program.
    let is_installed = is_installed(context);
    let has_compiler = path.join("src/lib.rs").exists() || !is_installed;
    if !text.contains("aoti-build") {
        context.terminal.status("Note", compiler_note(has_compiler, is_installed));
    }
    if let Some(note) = crates.note().filter(|_| !text.contains("aoti-runtime")) {
        context.terminal.status("Note", &note);
    }
    let is_onnx = chosen.is_some_and(|chosen| chosen.file.ends_with(".onnx"));
    let compiler = has_compiler.then_some(if is_onnx { &["onnx"][..] } else { &[] });
    let text = depend(&text, crates, half, compiler);
    let text = text.and_then(|text| match chosen {
        Some(chosen) => list(text, &chosen.file),
        None => Ok(text),
    });
    let text = text.map_err(|error| {
        Failure::User(format!("`{}` is not a manifest that can be changed: {error}", manifest.display()))
    })?;
    let is_member = path.ancestors().skip(1).any(|folder| folder.join("Cargo.toml").is_file());
    let is_new = !has_program && !is_member;
    // Cargo reads profiles where the workspace begins.
    write(&manifest, &if is_new { shared(text) } else { text })?;
    write_absent(&path.join(".gitignore"), "/target\n")?;
    let models = path.join("models");
    fs_err::create_dir_all(&models).map_err(Failure::machine("make", &models))?;
    if let Some(chosen) = chosen {
        let target = models.join(&chosen.file);
        if !is_same(&chosen.path, &target) {
            fs_err::copy(&chosen.path, &target).map_err(Failure::machine("write", &target))?;
            copy_beside(&chosen.path, &models)?;
        }
    }
    let lock = path.join("Cargo.lock");
    if let Some(known) = crates.lock().filter(|_| is_new && !lock.exists()) {
        fs_err::copy(known, &lock).map_err(Failure::machine("write", &lock))?;
    }
    let line = "aoti_build::Builder::from_manifest()?.build()";
    let build = path.join("build.rs");
    if fs_err::read_to_string(&build).is_ok_and(|text| !text.contains("aoti_build")) {
        context.terminal.warn(&format!("there is a `build.rs` already; let it call `{line}`"));
    }
    write_absent(&build, BUILD)?;
    let program =
        chosen.map(|chosen| program::text(&chosen.interface, &chosen.identifier, &chosen.functions));
    if !has_program {
        return write(&path.join("src/main.rs"), program.as_deref().unwrap_or(program::EMPTY));
    }
    if let Some(chosen) = chosen {
        let line = format!("aoti_runtime::include_model!(\"{}\");", chosen.identifier);
        context.terminal.status("Note", &format!("to use the model, say `{line}`"));
    }
    Ok(())
}

/// Whether a build script finds this program where it looks for one that compiles for it.
fn is_installed(context: &Context) -> bool {
    let found = aoti_build::installed(|name| context.environment.variable(name).map(ToOwned::to_owned));
    found.is_some_and(|found| std::env::current_exe().is_ok_and(|program| is_same(&found, &program)))
}

/// The manifest with the crates among its dependencies, where they are not yet; `compiler` are the features of the compiler that the
/// build script gets, if it gets one of its own.
fn depend(
    text: &str,
    crates: &Crates,
    features: &[&str],
    compiler: Option<&[&str]>,
) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    for (table, name, features, has_defaults) in [
        ("dependencies", "aoti-runtime", features, true),
        ("build-dependencies", "aoti-build", compiler.unwrap_or_default(), compiler.is_some()),
    ] {
        let table = document.entry(table).or_insert_with(|| Item::Table(Table::new()));
        let table = table.as_table_like_mut().ok_or("its dependencies are not a table")?;
        if !table.contains_key(name) {
            table.insert(name, Item::Value(crates.dependency(name, features, has_defaults)));
        }
    }
    Ok(document.to_string())
}

/// The manifest with a file of `models/` among its models, where it lists them: then no others are.
fn list(text: String, file: &str) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let keys = ["package", "metadata", "aoti", "models"];
    let models = keys.iter().try_fold(document.as_item_mut(), |item, key| item.get_mut(*key));
    let Some(models) = models.and_then(Item::as_table_like_mut) else { return Ok(text) };
    let path = format!("models/{file}");
    let is_it = |model: &Item| model.get("path").and_then(Item::as_str) == Some(path.as_str());
    if models.iter().any(|(_, model)| is_it(model)) {
        return Ok(text);
    }
    let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if models.contains_key(&name) {
        return Err(format!("it has another model `{name}`"));
    }
    let mut model = InlineTable::new();
    model.insert("path", path.into());
    models.insert(&name, Item::Value(model.into()));
    Ok(document.to_string())
}

/// Copies the files beside a model that a part of its data is in.
fn copy_beside(model: &Path, models: &Path) -> Result<(), Failure> {
    let folder = model.parent().unwrap_or(Path::new(""));
    for name in memory::model_file(model)?.beside.keys() {
        let target = models.join(name);
        if let Some(parent) = target.parent() {
            fs_err::create_dir_all(parent).map_err(Failure::machine("make", parent))?;
        }
        fs_err::copy(folder.join(name), &target).map_err(Failure::machine("write", &target))?;
    }
    Ok(())
}

/// The manifest of a workspace with the profile, where it has none of its own.
fn shared(text: String) -> String {
    let has_profiles = text.parse().is_ok_and(|document: DocumentMut| document.contains_key("profile"));
    if has_profiles { text } else { text + PROFILE }
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((fs_err::canonicalize(a), fs_err::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

fn write_absent(path: &Path, text: &str) -> Result<(), Failure> {
    if path.exists() { Ok(()) } else { write(path, text) }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs_err::create_dir_all(folder).map_err(Failure::machine("make", folder))?;
    fs_err::write(path, text).map_err(Failure::machine("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_keeps_what_is_in_it() {
        let text = "# mine\n[package]\nname = \"p\"\n\n[dependencies]\naoti-runtime = \"9\" # chosen\n";
        let changed = depend(text, &Crates::Registry, &[], Some(&[])).unwrap();
        assert!(changed.starts_with(text.trim_end()), "{changed}");
        assert!(changed.contains("[build-dependencies]\naoti-build = "), "{changed}");
        // Only scripts that read ONNX models compile what reads them.
        let onnx = depend(text, &Crates::Registry, &[], Some(&["onnx"])).unwrap();
        assert!(onnx.contains("features = [\"onnx\"]") && !changed.contains("onnx"), "{onnx}");
        assert_eq!(depend(&changed, &Crates::Registry, &[], Some(&[])).unwrap(), changed);
        assert!(depend("dependencies = 1\n", &Crates::Registry, &[], Some(&[])).is_err());
        // Where models are listed, a new one is listed too.
        let table = format!("{changed}\n[package.metadata.aoti.models.a]\npath = \"models/a.pt2\" # mine\n");
        let listed = list(table.clone(), "b.pt2").unwrap();
        let document: DocumentMut = listed.parse().unwrap();
        let models = &document["package"]["metadata"]["aoti"]["models"];
        assert_eq!(models["b"]["path"].as_str(), Some("models/b.pt2"), "{listed}");
        assert!(listed.contains("path = \"models/a.pt2\" # mine"), "{listed}");
        for (text, file) in [(&changed, "b.pt2"), (&table, "a.pt2"), (&listed, "b.pt2")] {
            assert_eq!(list(text.clone(), file).unwrap(), *text);
        }
        assert!(list(table, "a.aoti").is_err(), "another model has the name");
        let changed = shared("[package]\nname = \"p\"\n".to_owned());
        let document: DocumentMut = changed.parse().unwrap();
        assert_eq!(document["profile"]["dev"]["build-override"]["debug"].as_bool(), Some(false));
        assert_eq!(shared(changed.clone()), changed);
    }
}
