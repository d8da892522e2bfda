//! Build scripts that have no compiler of their own: what `cargo-aoti` makes for them is what the others make.
//!
//! The libraries are compiled in a target folder that later runs of the tests use again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use aoti_tests::models::SCALED;
use aoti_tests::subcommand::{Ended, aoti, cargo, program, projects};

/// A project whose build script has the compiler, until it is told otherwise.
struct Project {
    _root: tempfile::TempDir,
    folder: PathBuf,
    name: &'static str,
}

impl Project {
    fn new(name: &'static str) -> Project {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("Größe und Maß");
        let mut new = aoti(root.path(), &root.path().join("cache"));
        Ended::of(new.args(["new", "Größe und Maß", "--name", name])).succeeded();
        let project = Project { _root: root, folder, name };
        let manifest = project.read("Cargo.toml") + "\n[package.metadata.aoti]\ncpu = [\"native\"]\n";
        project.write("Cargo.toml", &manifest);
        project.write("models/my-net.aoti", SCALED);
        project.write("src/main.rs", MAIN);
        project
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    fn leave_the_compiler_to_the_subcommand(&self) {
        let manifest = self.read("Cargo.toml");
        let changed = manifest
            .replace("build-support/aoti-build\"", "build-support/aoti-build\", default-features = false");
        assert_ne!(manifest, changed);
        self.write("Cargo.toml", &changed);
    }

    /// Cargo in this project, with a tool that the scripts find; this one by default.
    fn cargo(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = cargo(&self.folder, &self.folder.join("../cache"));
        command.args(arguments).env("CARGO_AOTI", program());
        command
    }

    /// The folders of its build script.
    fn scripts(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(projects().join("debug/build")).into_iter().flatten();
        let folders = folders.map(|entry| entry.unwrap().path());
        let is_ours = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.rsplit_once('-').is_some_and(|(name, _)| name == self.name)
        };
        folders.filter(is_ours).collect()
    }

    /// Runs the program anew: what it prints, what cargo was told, and what was made.
    fn run(&self) -> (String, BTreeSet<String>, BTreeMap<PathBuf, Vec<u8>>) {
        for folder in self.scripts() {
            fs::remove_dir_all(folder).unwrap();
        }
        let printed = Ended::of(&mut self.cargo(&["run", "--quiet"])).succeeded().stdout;
        let ran = self.scripts().into_iter().find(|folder| folder.join("out/aoti").is_dir());
        let ran = ran.expect("the script ran");
        let here = ran.display().to_string();
        let told = fs::read_to_string(ran.join("output")).unwrap();
        let told = told.lines().map(|line| line.replace(&here, "HERE")).collect();
        let mut made = BTreeMap::new();
        collect(&ran.join("out"), Path::new(""), &mut made);
        (printed, told, made)
    }
}

fn collect(root: &Path, inside: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(root.join(inside)).unwrap() {
        let inside = inside.join(entry.unwrap().file_name());
        let path = root.join(&inside);
        if path.is_dir() {
            collect(root, &inside, files);
        // The record of what is up to date has times.
        } else if inside.file_name().is_some_and(|name| name != "state.json") {
            files.insert(inside, fs::read(path).unwrap());
        }
    }
}

#[test]
fn the_subcommand_makes_what_a_script_with_the_compiler_makes() {
    let project = Project::new("stands-in");
    let (printed, told, made) = project.run();
    assert_eq!(printed, "[1.0, 4.0, 9.0]\n");
    assert!(made.len() > 3, "{:?}", made.keys());
    project.write("models/second.aoti", "graph {");
    let failed = || Ended::of(&mut project.cargo(&["build", "--quiet"])).stderr;
    let error = |said: &str| -> Vec<String> { said.lines().map(str::to_owned).collect() };
    let said = error(&failed());
    fs::remove_file(project.folder.join("models/second.aoti")).unwrap();

    project.leave_the_compiler_to_the_subcommand();
    let (printed_by_it, told_by_it, made_by_it) = project.run();
    assert_eq!(printed_by_it, printed);
    assert_eq!(made_by_it.keys().collect::<Vec<_>>(), made.keys().collect::<Vec<_>>());
    assert!(made_by_it == made, "files of one name differ");
    // It watches the program besides, and whatever the other watches.
    let more: BTreeSet<_> = told_by_it.difference(&told).cloned().collect();
    let watched = ["Cargo.toml".to_owned(), program().display().to_string()];
    assert_eq!(more, watched.map(|path| format!("cargo::rerun-if-changed={path}")).into());
    assert_eq!(told.difference(&told_by_it).collect::<Vec<_>>(), Vec::<&String>::new());

    project.write("models/second.aoti", "graph {");
    assert_eq!(error(&failed()), said);
    // Once, and nothing of what the script says to cargo.
    assert!(said[0].starts_with("error: stands-in@0.1.0: model `second` ("), "{said:?}");
    assert_eq!((said.len(), said[1].as_str()), (2, "error: build script logged errors"), "{said:?}");
}

#[test]
fn scripts_without_the_compiler_check_and_refuse_as_others_do() {
    let project = Project::new("asks-first");
    project.leave_the_compiler_to_the_subcommand();
    let with = |arguments: &[&str], name: &str, value: &Path| {
        let mut cargo = project.cargo(arguments);
        Ended::of(cargo.arg("--quiet").env(name, value))
    };
    // A check runs no native tool, though another program does the work than the one that cargo started.
    with(&["check"], "CXX", Path::new("/nowhere/c++")).succeeded();
    let said = with(&["run"], "AOTI_BUILD", Path::new("bindings")).stderr;
    assert!(said.contains("only the bindings of `my-net` were built"), "{said}");
    let said = with(&["build"], "AOTI_BUILD", Path::new("binding")).stderr;
    assert!(
        said.contains("error: asks-first@0.1.0: the variable `AOTI_BUILD` cannot be `binding`"),
        "{said}"
    );

    let said = with(&["build"], "CARGO_AOTI", Path::new("/nowhere/cargo-aoti")).stderr;
    assert!(said.contains("error: asks-first@0.1.0: cannot run `/nowhere/cargo-aoti`: "), "{said}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let other = project.folder.join("another version");
        fs::write(&other, "#!/bin/sh\necho cargo-aoti 0.0.9\n").unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
        let said = with(&["build"], "CARGO_AOTI", &other).stderr;
        assert!(said.contains("is version 0.0.9, and this build script needs 0.1.0"), "{said}");
        assert!(said.contains("= help: `cargo install --path "), "{said}");
    }
}

/// The subcommand that cargo finds makes projects whose scripts find it too; another makes them independent of it.
#[test]
fn projects_of_an_installed_subcommand_leave_the_compiler_to_it() {
    let root = tempfile::tempdir().unwrap();
    let cache = root.path().join("cache");
    let folder = program().parent().unwrap().to_owned();
    let search = std::env::var_os("PATH").unwrap_or_default();
    let search = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&search))).unwrap();
    let with = |mut command: std::process::Command| {
        Ended::of(command.env("PATH", &search).env_remove("CARGO_AOTI")).succeeded()
    };
    let new = |name: &str| {
        let mut new = aoti(root.path(), &cache);
        new.args(["new", name]);
        new
    };
    let is_lean = |name: &str| {
        let manifest = fs::read_to_string(root.path().join(name).join("Cargo.toml")).unwrap();
        manifest.contains("build-support/aoti-build\", default-features = false }")
    };
    with(new("lean"));
    assert!(is_lean("lean"));
    let project = root.path().join("lean");
    fs::write(project.join("models/my-net.aoti"), SCALED).unwrap();
    fs::write(project.join("src/main.rs"), MAIN).unwrap();
    let mut run = cargo(&project, &cache);
    run.args(["run", "--quiet"]);
    assert_eq!(with(run).stdout, "[1.0, 4.0, 9.0]\n");

    let home = root.path().join("home");
    let mut elsewhere = new("whole");
    elsewhere.env("PATH", &home).env("CARGO_HOME", &home).env("CARGO", env!("CARGO"));
    Ended::of(&mut elsewhere).succeeded();
    assert!(!is_lean("whole"));

    // Whoever builds a library's dependents need not have the program.
    let library = root.path().join("library");
    fs::create_dir_all(library.join("src")).unwrap();
    fs::write(library.join("src/lib.rs"), "").unwrap();
    fs::write(library.join("Cargo.toml"), "[package]\nname = \"library\"\n").unwrap();
    let mut init = aoti(root.path(), &cache);
    init.args(["init", "library"]);
    with(init);
    assert!(!is_lean("library"));
}

const MAIN: &str = "\
aoti_runtime::include_model!(\"my-net\");

fn main() -> Result<(), aoti_runtime::Error> {
    let x = [[1.0_f32, 2.0, 3.0]];
    println!(\"{:?}\", my_net::Model::load()?.run(&my_net::Inputs { x: (&x).into() })?.y.as_slice());
    Ok(())
}
";
