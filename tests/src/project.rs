//! A cargo project with models, in a folder that goes away.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

use crate::subcommand::{Ended, aoti};

/// A cargo project.
#[derive(Debug)]
pub struct Project {
    folder: TempDir,
}

impl Project {
    /// A project whose manifest ends with this text. Kernels are for this machine's processor only, which is quicker;
    /// say otherwise in `table` under `[package.metadata.aoti]`.
    pub fn new(table: &str) -> Project {
        let levels = if table.contains("[package.metadata.aoti]") {
            ""
        } else {
            "[package.metadata.aoti]\ncpu = [\"native\"]\n"
        };
        let project = Project { folder: tempfile::tempdir().expect("there is room for a folder") };
        let package = "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
        project.write("Cargo.toml", format!("{package}{levels}{table}"));
        project.write("src/main.rs", "fn main() {}\n");
        project
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.folder().join(name);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("folders can be made");
        fs::write(path, content).expect("files can be written");
    }

    /// Copies a model into `models/`.
    pub fn with_model(self, name: &str, from: &Path) -> Project {
        self.write(&format!("models/{name}"), fs::read(from).expect("the model can be read"));
        self
    }

    /// The subcommand in this project.
    pub fn aoti(&self, arguments: &[&str]) -> Command {
        let mut command = aoti(self.folder(), &self.folder().join("cache"));
        command.args(arguments);
        command
    }

    /// Builds all models and says which tools ran.
    #[track_caller]
    pub fn build(&self) -> Ended {
        Ended::of(&mut self.aoti(&["build", "-v"])).succeeded()
    }

    /// The folder of a model's artefacts.
    #[track_caller]
    pub fn artefacts(&self, model: &str) -> PathBuf {
        let targets = fs::read_dir(self.folder().join("target/aoti/debug")).expect("something was built");
        let mut folders = targets.map(|entry| entry.expect("it can be listed").path().join("p").join(model));
        folders.find(|folder| folder.is_dir()).expect("the model was built")
    }

    /// The library of a model.
    #[track_caller]
    pub fn library(&self, model: &str) -> PathBuf {
        let files = self.manifest(model)["files"].clone();
        let mut files = files.as_array().expect("it lists files").iter();
        let library = files.find(|file| file["kind"] == "library").expect("a library was made");
        self.artefacts(model).join(library["file"].as_str().expect("files have names"))
    }

    /// The function that the library of a model exports.
    #[track_caller]
    pub fn symbol(&self, model: &str) -> String {
        self.manifest(model)["symbol"].as_str().expect("it names the symbol").to_owned()
    }

    /// What a build says of what it made.
    #[track_caller]
    pub fn manifest(&self, model: &str) -> serde_json::Value {
        let text = fs::read(self.artefacts(model).join("manifest.json")).expect("there is a manifest");
        serde_json::from_slice(&text).expect("a manifest is JSON")
    }

    /// Every file below the output folder, with its content, by relative path.
    pub fn outputs(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let root = self.folder().join("target");
        let mut files = Vec::new();
        collect(&root, &root, &mut files);
        files.sort();
        files
    }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    let Ok(listing) = fs::read_dir(folder) else { return };
    for entry in listing {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let relative = path.strip_prefix(root).expect("it lies below").to_owned();
            files.push((relative, fs::read(&path).expect("it can be read")));
        }
    }
}
