//! What a new user does in the first hour, in a folder whose name has blanks and umlauts: a project from nothing, a model
//! in it, a run.
//!
//! Nothing is downloaded, and the libraries are compiled in a target folder that later runs of the tests use again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use aoti_tests::models::{self, SCALED};
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

/// Projects of one test share a package, so that cargo sees one project that changes.
#[test]
fn a_project_grows_from_nothing() {
    let home = Home::new();
    let write = |name: &str, text: &str| {
        let path = home.folder.join("wächst").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let run = || Ended::of(&mut home.cargo("wächst", &["run", "--quiet"]));
    Ended::of(&mut home.aoti(&["new", "wächst", "--name", "grows"])).succeeded();
    fs::remove_dir(home.folder.join("wächst/models")).unwrap();
    assert!(run().succeeded().stdout.contains("put a model into `models/`"));

    // A folder that appears is noticed; a name is looked up among those there are.
    write("models/my-net.aoti", SCALED);
    write("src/main.rs", "aoti_runtime::include_model!(\"mynet\");\nfn main() {}\n");
    let said = run().stderr;
    let expected = "there is no model `mynet`; the models of this package: `my-net` (module `my_net`)";
    assert!(said.contains(expected), "{said}");

    // What only checks needs no compiler, and a build after it is whole.
    write("src/main.rs", MAIN);
    let check = |arguments: &[&str]| {
        let mut cargo = home.cargo("wächst", arguments);
        cargo.arg("--quiet").env("CXX", "/nowhere/c++");
        Ended::of(&mut cargo)
    };
    check(&["check"]).succeeded();
    check(&["check"]).succeeded();
    let mut clippy = home.cargo("wächst", &["clippy", "--quiet", "--", "-D", "warnings"]);
    Ended::of(clippy.env("CXX", "/nowhere/c++")).succeeded();
    assert_eq!(run().succeeded().stdout, "[1.0, 4.0, 9.0]\n");
    // What is built stays where nothing has changed, and is not missed.
    check(&["check"]).succeeded();
    assert_eq!(run().succeeded().stdout, "[1.0, 4.0, 9.0]\n");

    // Bindings say so when they are run, and a choice that there is not is refused.
    let with = |value: &str| {
        let mut cargo = home.cargo("wächst", &["run", "--quiet"]);
        cargo.env("AOTI_BUILD", value);
        Ended::of(&mut cargo)
    };
    let ended = with("bindings");
    assert!(ended.stderr.contains("only the bindings of `my-net` were built"), "{}", ended.stderr);
    let said = with("binding").stderr;
    assert!(said.contains("`AOTI_BUILD` cannot be `binding`; did you mean `bindings`?"), "{said}");
}

/// Linted as strictly as can be.
const MAIN: &str = "\
#![forbid(unsafe_code)]
#![deny(warnings, clippy::all, clippy::pedantic)]
aoti_runtime::include_model!(\"my-net\");

fn main() -> Result<(), aoti_runtime::Error> {
    let x = [[1.0_f32, 2.0, 3.0]];
    let y = my_net::Model::load()?.run(&my_net::Inputs { x: (&x).into() })?.y;
    println!(\"{:?}\", y.as_slice());
    Ok(())
}
";
