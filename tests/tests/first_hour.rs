//! What a new user does in the first hour, in a folder whose name has blanks and umlauts: a project from nothing, a model
//! in it, a run.
//!
//! Nothing is downloaded, and the libraries are compiled in a target folder that later runs of the tests use again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use aoti_tests::models;
use aoti_tests::subcommand::{Ended, aoti, cargo};

/// A folder of a user's, with the subcommand and cargo in it.
struct Home {
    _root: tempfile::TempDir,
    folder: PathBuf,
}

impl Home {
    fn new() -> Home {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("Größe und Maß");
        fs::create_dir(&folder).unwrap();
        Home { _root: root, folder }
    }

    fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

    fn aoti(&self, arguments: &[&str]) -> Command {
        let mut command = aoti(&self.folder, &self.cache());
        command.args(arguments);
        command
    }

    /// Cargo in a project of this folder.
    fn cargo(&self, project: &str, arguments: &[&str]) -> Command {
        let mut command =
            cargo(&self.folder.join(project), &self.cache(), Path::new(env!("CARGO_TARGET_TMPDIR")));
        command.args(arguments);
        command
    }
}

#[test]
fn a_new_project_builds_and_runs_at_once() {
    let home = Home::new();
    fs::copy(models::digits(), home.folder.join("digits.pt2")).unwrap();
    Ended::of(&mut home.aoti(&["new", "ziffern", "--model", "digits.pt2"])).succeeded();
    let ended = Ended::of(&mut home.cargo("ziffern", &["run", "--quiet"])).succeeded();
    assert!(ended.stdout.starts_with("softmax: [1, 10] [0."), "{}", ended.stdout);
}

#[test]
fn a_new_project_without_a_model_builds_too() {
    let home = Home::new();
    Ended::of(&mut home.aoti(&["new", "leer"])).succeeded();
    let ended = Ended::of(&mut home.cargo("leer", &["run", "--quiet"])).succeeded();
    assert!(ended.stdout.contains("models/"), "{}", ended.stdout);
}
