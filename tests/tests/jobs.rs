//! Many models at once use no more processors than they were given: by `-j`, or by the jobserver of the cargo whose build
//! scripts they are built in.

#![cfg(unix)]

use aoti_tests::models;
use aoti_tests::project::Project;
use aoti_tests::subcommand::{Ended, cargo, workspace};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const MODELS: usize = 12;
/// Kernels for one level, the wrapper, and the weights.
const COMPILES: usize = 3;

/// A compiler that notes how many of it run at the same moment.
struct Counting {
    folder: tempfile::TempDir,
}

impl Counting {
    fn new() -> Counting {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display();
        // A call that starts counts itself and all that have not ended, so the largest count is exact.
        let text = format!(
            "#!/bin/sh\ncase \" $* \" in *\" -c \"*) ;; *) exec g++ \"$@\";; esac\n\
             mkdir {here}/running.$$\nls -d {here}/running.* | wc -l >> {here}/counts\n\
             g++ \"$@\" -O0\nstatus=$?\nrmdir {here}/running.$$\nexit $status\n"
        );
        let counting = Counting { folder };
        fs::write(counting.program(), text).unwrap();
        fs::set_permissions(counting.program(), fs::Permissions::from_mode(0o755)).unwrap();
        counting
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("counting-g++")
    }

    /// The number of compiles, and how many there were at once at most.
    fn counts(&self) -> (usize, usize) {
        let text = fs::read_to_string(self.folder.path().join("counts")).unwrap();
        let counts: Vec<usize> = text.lines().map(|line| line.trim().parse().unwrap()).collect();
        (counts.len(), counts.into_iter().max().unwrap())
    }
}

/// A model that no other has the code or the weights of.
fn model(index: usize) -> String {
    let text = models::SCALED.replace("f32[s0, 3]", &format!("f32[s0, {}]", index + 3));
    let weights: Vec<String> = (0..index + 3).map(|weight| format!("{weight}.5")).collect();
    text.replace("f32[3]", &format!("f32[{}]", index + 3)).replace("1.0, 2.0, 3.0", &weights.join(", "))
}

#[test]
fn twelve_models_keep_to_the_number_of_jobs() {
    for jobs in [1, 2] {
        let project = Project::new("");
        for index in 0..MODELS {
            project.write(&format!("models/m{index}.aoti"), model(index));
        }
        let compiler = Counting::new();
        let mut build = project.aoti(&["build", "-v", "-j", &jobs.to_string()]);
        let ended = Ended::of(build.env("CXX", compiler.program())).succeeded();
        let libraries = ended.tools().iter().filter(|tool| tool.ends_with(": library")).count();
        assert_eq!(libraries, MODELS, "{}", ended.stderr);
        let (compiles, most) = compiler.counts();
        println!("-j{jobs}: {compiles} compiles, at most {most} at once");
        assert_eq!((compiles, most), (MODELS * COMPILES, jobs));
    }
}

/// A workspace of four packages with three models each, built by their build scripts.
fn packages(folder: &Path) {
    let write = |name: &str, content: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    let table =
        "[workspace]\nmembers = [\"p*\"]\nresolver = \"3\"\n[workspace.metadata.aoti]\ncpu = [\"native\"]\n";
    write("Cargo.toml", table);
    fs::copy(workspace().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    for package in 0..4 {
        let manifest = format!(
            "[package]\nname = \"p{package}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
             [build-dependencies]\naoti-build = {{ path = {:?} }}\n",
            workspace().join("build-support/aoti-build"),
        );
        write(&format!("p{package}/Cargo.toml"), &manifest);
        let script =
            "fn main() -> Result<(), aoti_build::Error> { aoti_build::Builder::from_manifest()?.build() }\n";
        write(&format!("p{package}/build.rs"), script);
        write(&format!("p{package}/src/lib.rs"), "");
        for index in package * 3..package * 3 + 3 {
            write(&format!("p{package}/models/m{index}.aoti"), &model(index));
        }
    }
}

#[test]
fn build_scripts_side_by_side_share_the_tokens_of_their_cargo() {
    for jobs in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        packages(folder.path());
        let compiler = Counting::new();
        let mut cargo = cargo(folder.path(), &folder.path().join("cache"));
        cargo.args(["build", "--workspace", "-j", &jobs.to_string()]).env("CXX", compiler.program());
        Ended::of(&mut cargo).succeeded();
        let (compiles, most) = compiler.counts();
        println!("cargo -j{jobs}: {compiles} compiles, at most {most} at once");
        assert_eq!(compiles, MODELS * COMPILES);
        assert!(most <= jobs, "{most} compilers at once under {jobs} tokens");
    }
}
