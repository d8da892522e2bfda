//! `collect`: programs with everything that they need to run elsewhere, in one folder.
//!
//! Cargo builds; what it says of its artefacts and of the build scripts' folders tells what there is to take. Programs look
//! for shared libraries and weights in the folder that they are in, so that is where these go.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aoti_toolchain::{FileAside, is_plain_file_name};
use cargo_metadata::{DependencyKind, Message, Metadata, MetadataCommand, Package, PackageId, TargetKind};
use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::{Context, tell};
use crate::arguments::Output;
use crate::failure::Failure;
use crate::project::{Selection, shown};

/// Builds the programs of a cargo project and puts them into a folder with what they need elsewhere: shared libraries and
/// weights of models beside them, C headers in `include/`, licences in `licenses/`
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The folder
    directory: PathBuf,
    /// This program only
    #[arg(long, value_name = "NAME")]
    bin: Vec<String>,
    /// Build for this target
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Build with the release profile
    #[arg(short, long, conflicts_with = "profile")]
    release: bool,
    /// Build with this profile
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What a build made.
#[derive(Default)]
struct Made {
    programs: Vec<(PackageId, PathBuf)>,
    /// Output folders of build scripts.
    folders: Vec<PathBuf>,
}

/// A model of a build script.
struct Model {
    /// The folder that all models of the build script share.
    folder: PathBuf,
    /// The model's own folder.
    own: PathBuf,
    told: Told,
    /// Whether a model of another package has a header of the same name.
    shares_header: bool,
}

impl Model {
    fn headers(&self) -> impl Iterator<Item = &String> {
        self.told.files.iter().filter(|file| file.kind == "header").map(|file| &file.file)
    }
}

/// The part of a model's `manifest.json` that says what there is.
#[derive(Deserialize)]
struct Told {
    /// The function that the library exports.
    symbol: String,
    files: Vec<File>,
}

impl Told {
    /// What tells the model from all others of a program, as in the name of its library.
    fn stem(&self) -> &str {
        self.symbol.strip_suffix("_api").unwrap_or(&self.symbol)
    }

    /// Whether all names are of files in one folder, as builds write them: they become paths.
    fn is_sound(&self) -> bool {
        is_plain_file_name(&self.symbol) && self.files.iter().all(|file| is_plain_file_name(&file.file))
    }
}

#[derive(Deserialize)]
struct File {
    kind: String,
    file: String,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let made = build(arguments, context)?;
    if made.programs.is_empty() {
        return Err(Failure::User("the selected packages have no programs to collect".to_owned()));
    }
    let root = context.environment.directory().join(&arguments.directory);
    for (_, program) in &made.programs {
        copy(program, &root)?;
    }
    for model in &models(&made.folders) {
        take(model, &root)?;
    }
    licenses(arguments, context, &made, &root.join("licenses"))?;
    let programs: Vec<_> =
        made.programs.iter().filter_map(|(_, program)| program.file_name()?.to_str()).collect();
    let object = json!({ "path": root, "programs": programs });
    tell(arguments.output, context, "Collected", &shown(&root, context), object);
    Ok(())
}

/// Has cargo build, and listens.
fn build(arguments: &Arguments, context: &Context) -> Result<Made, Failure> {
    let mut command = cargo(arguments, context, "build");
    command.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    // A program with bindings alone is of no use elsewhere.
    command.env("AOTI_BUILD", "full");
    let selection = &arguments.selection;
    command.args(selection.workspace.package.iter().flat_map(|name| ["--package", name]));
    command.args(selection.workspace.exclude.iter().flat_map(|name| ["--exclude", name]));
    command.args((selection.workspace.workspace || selection.workspace.all).then_some("--workspace"));
    command.args(arguments.bin.iter().flat_map(|name| ["--bin", name]));
    command.args(arguments.target.iter().flat_map(|triple| ["--target", triple]));
    command.args(arguments.release.then_some("--release"));
    command.args(arguments.profile.iter().flat_map(|name| ["--profile", name]));
    command.args(selection.manifest.target_dir.iter().flat_map(|path| [Path::new("--target-dir"), path]));
    let machine = |error: std::io::Error| Failure::Machine(format!("cannot run cargo: {error}"));
    let mut child = command.spawn().map_err(machine)?;
    let mut made = Made::default();
    if let Some(output) = child.stdout.take() {
        for message in Message::parse_stream(BufReader::new(output)).flatten() {
            match message {
                Message::CompilerArtifact(artifact) if artifact.target.kind.contains(&TargetKind::Bin) => {
                    let program = artifact.executable.map(|path| path.into_std_path_buf());
                    made.programs.extend(program.map(|program| (artifact.package_id, program)));
                }
                Message::BuildScriptExecuted(script) => made.folders.push(script.out_dir.into_std_path_buf()),
                Message::CompilerArtifact(_)
                | Message::CompilerMessage(_)
                | Message::BuildFinished(_)
                | Message::TextLine(_)
                | _ => {}
            }
        }
    }
    // Cargo has said why.
    if child.wait().map_err(machine)?.success() { Ok(made) } else { Err(Failure::Reported) }
}

fn cargo(arguments: &Arguments, context: &Context, subcommand: &str) -> Command {
    let mut command = Command::new(context.environment.variable("CARGO").unwrap_or("cargo".as_ref()));
    command.arg(subcommand).args(arguments.selection.manifest.flags());
    command.args(arguments.selection.feature_flags());
    command.args(context.overrides.iter().flat_map(|text| ["--config", text]));
    if let Some(path) = arguments.selection.manifest.path() {
        command.arg("--manifest-path").arg(path);
    }
    command
}

/// The models of all build scripts, of which most have none.
fn models(folders: &[PathBuf]) -> Vec<Model> {
    let mut found: Vec<Model> = Vec::new();
    for folder in folders.iter().map(|folder| folder.join("aoti")) {
        let Ok(listing) = fs_err::read_dir(&folder) else { continue };
        for own in listing.flatten().map(|entry| entry.path()) {
            let Ok(text) = fs_err::read(own.join("manifest.json")) else { continue };
            let Ok(told) = serde_json::from_slice::<Told>(&text) else { continue };
            if !told.is_sound() {
                continue;
            }
            found.push(Model { folder: folder.clone(), own, told, shares_header: false });
        }
    }
    // A package may have been built twice, for build scripts and for programs; that is one model all the same.
    let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for model in &found {
        for header in model.headers() {
            owners.entry(header.clone()).or_default().insert(model.told.symbol.clone());
        }
    }
    for model in &mut found {
        let shares = model.headers().any(|header| owners[header].len() > 1);
        model.shares_header = shares;
    }
    found
}

/// Takes what a model needs at run time, and its header.
fn take(model: &Model, root: &Path) -> Result<(), Failure> {
    for File { kind, file } in &model.told.files {
        match kind.as_str() {
            "library" if !file.ends_with(".a") => copy(&model.folder.join(file), root)?,
            "weights" => copy(&model.folder.join(file), root)?,
            "header" => {
                let include = root.join("include");
                // Neither of two packages' headers gets the plain name: it would not say whose it is.
                if model.shares_header {
                    copy_as(&model.own.join(file), &include, format!("{}.h", model.told.stem()))?;
                } else {
                    copy(&model.own.join(file), &include)?;
                }
                copy(&model.own.join("src/include/aoti/abi.h"), &include.join("aoti"))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Takes the licences of the programs and of all that is linked into them.
fn licenses(arguments: &Arguments, context: &Context, made: &Made, folder: &Path) -> Result<(), Failure> {
    let mut command = MetadataCommand::new();
    if let Some(cargo) = context.environment.variable("CARGO") {
        command.cargo_path(cargo);
    }
    if let Some(path) = arguments.selection.manifest.path() {
        command.manifest_path(path);
    }
    // Crates of other targets need not even be there.
    let host = context.environment.host().to_string();
    let target =
        arguments.target.clone().or_else(|| context.settings.targets.first().cloned()).unwrap_or(host);
    let platform = vec!["--filter-platform".to_owned(), target];
    let selection = &arguments.selection;
    command.other_options([selection.manifest.flags(), selection.feature_flags(), platform].concat());
    let metadata = command.exec().map_err(|error| Failure::Machine(format!("cannot ask cargo: {error}")))?;
    let mut index = String::from("What the programs of this folder are made of, with its licences.\n\n");
    for package in linked(&metadata, made) {
        let license = package.license.as_deref().unwrap_or("no licence stated");
        index.push_str(&format!("{} {}: {license}\n", package.name, package.version));
        let target = folder.join(format!("{}-{}", package.name, package.version));
        for text in license_files(package) {
            copy(&text, &target)?;
        }
    }
    index.push_str(
        "\nThe code of the models was generated by cargo-aoti, which puts it under MIT OR Apache-2.0.\n",
    );
    fs_err::create_dir_all(folder).map_err(Failure::machine("make", folder))?;
    let path = folder.join("index.txt");
    fs_err::write(&path, index).map_err(Failure::machine("write", &path))
}

/// The packages of the programs and those that they depend on at run time.
fn linked<'m>(metadata: &'m Metadata, made: &Made) -> Vec<&'m Package> {
    let nodes = metadata.resolve.as_ref().map(|resolve| resolve.nodes.as_slice()).unwrap_or_default();
    let mut wanted: Vec<&PackageId> = made.programs.iter().map(|(package, _)| package).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = wanted.pop() {
        if !seen.insert(id.repr.as_str()) {
            continue;
        }
        let node = nodes.iter().find(|node| node.id == *id);
        let is_run_time = |dependency: &&cargo_metadata::NodeDep| {
            dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal)
        };
        wanted.extend(
            node.iter().flat_map(|node| &node.deps).filter(is_run_time).map(|dependency| &dependency.pkg),
        );
    }
    metadata.packages.iter().filter(|package| seen.contains(package.id.repr.as_str())).collect()
}

/// Texts of licences in a package's folder, else in those around it as far as the workspace may reach.
fn license_files(package: &Package) -> Vec<PathBuf> {
    const NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];
    let folders = package.manifest_path.as_std_path().ancestors().skip(1).take(3);
    for folder in folders {
        let Ok(listing) = fs_err::read_dir(folder) else { continue };
        let is_text = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            path.is_file() && NAMES.iter().any(|start| name.starts_with(start))
        };
        let mut texts: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).filter(is_text).collect();
        texts.sort();
        if !texts.is_empty() {
            return texts;
        }
    }
    Vec::new()
}

/// Copies a file into a folder.
fn copy(file: &Path, folder: &Path) -> Result<(), Failure> {
    copy_as(file, folder, file.file_name().unwrap_or_default())
}

/// The same, under a name of its own there.
fn copy_as(file: &Path, folder: &Path, name: impl AsRef<Path>) -> Result<(), Failure> {
    fs_err::create_dir_all(folder).map_err(Failure::machine("make", folder))?;
    let target = folder.join(name);
    // Written aside, so that a link of this name is replaced and what it leads to is not written to.
    let replace = || -> std::io::Result<()> {
        let mut aside = FileAside::new_in(folder)?;
        let mut source = fs_err::File::open(file)?;
        std::io::copy(&mut source, aside.file())?;
        aside.file().set_permissions(source.metadata()?.permissions())?;
        aside.persist(&target)
    };
    replace().map_err(Failure::machine("write", &target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_not_collected() {
        let is_sound = |symbol: &str, file: &str| {
            let file = File { kind: "header".to_owned(), file: file.to_owned() };
            Told { symbol: symbol.to_owned(), files: vec![file] }.is_sound()
        };
        assert!(is_sound("aoti_digits_api", "digits.h"));
        for name in ["../x", "/etc/x", "a/b", "", ".."] {
            assert!(!is_sound("aoti_digits_api", name) && !is_sound(name, "digits.h"), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_replaced_and_not_written_through() {
        let here = tempfile::tempdir().unwrap();
        let [file, mine, target] = ["file", "mine", "target"].map(|name| here.path().join(name));
        fs_err::write(&file, "new").unwrap();
        fs_err::write(&mine, "mine").unwrap();
        std::os::unix::fs::symlink(&mine, &target).unwrap();
        copy_as(&file, here.path(), "target").unwrap();
        assert_eq!(fs_err::read_to_string(&mine).unwrap(), "mine");
        assert_eq!(fs_err::read_to_string(&target).unwrap(), "new");
    }
}
