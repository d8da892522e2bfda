//! The subcommand as a user runs it: a process with arguments, a folder, and an environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Variables that cargo or whoever runs the tests may have set, and that mean something to the subcommand.
const FOREIGN: &[&str] = &[
    "AOTI_BUILD",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_MAKEFLAGS",
    "CARGO_TARGET_DIR",
    "DOCS_RS",
    "MAKEFLAGS",
    "OUT_DIR",
    "RUSTFLAGS",
    "TARGET",
];

/// The root of the repository.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie below the root")
}

/// The program, built first if it is not up to date.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(build)
}

/// Where the tests were built: `<target>/<profile>`.
fn profile() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it lies");
    test.ancestors().nth(2).expect("tests lie in <target>/<profile>/deps").to_owned()
}

fn build() -> PathBuf {
    let profile = profile();
    let target = profile.parent().expect("tests lie in <target>/<profile>/deps");
    let mut command = Command::new(env!("CARGO"));
    // All members are named so that features are resolved as they were for this test.
    command.args(["build", "--quiet", "--offline", "--workspace", "--bin", "cargo-aoti", "--target-dir"]);
    command.arg(target).current_dir(workspace());
    if profile.ends_with("release") {
        command.arg("--release");
    }
    let output = command.output().expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    profile.join("cargo-aoti")
}

/// `cargo-aoti aoti`, to be run in a folder with a cache of its own.
pub fn aoti(folder: &Path, cache: &Path) -> Command {
    let mut command = Command::new(program());
    command.arg("aoti").current_dir(folder).env("AOTI_CACHE_DIR", cache);
    for name in FOREIGN {
        command.env_remove(name);
    }
    command
}

/// Cargo, to be run offline in a user's project. All projects of the tests share the folder [`projects`], so that the
/// libraries are compiled once.
pub fn cargo(folder: &Path, cache: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(folder).env("AOTI_CACHE_DIR", cache);
    for name in FOREIGN {
        command.env_remove(name);
    }
    command.env("CARGO_TARGET_DIR", projects()).env("CARGO_NET_OFFLINE", "true");
    // Cargo's default depends on what the project itself has in common with its build script, so that the build library
    // would be compiled once for each kind of project, and for `check` and `build`.
    command.env("CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG", "0");
    command
}

/// A shell in a user's folder, who has `cargo-aoti` on `PATH`; else as [`cargo`].
pub fn bash(folder: &Path, cache: &Path) -> Command {
    let command = cargo(folder, cache);
    let programs = program().parent().expect("a program lies in a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let python = std::env::var_os("AOTI_TEST_PYTHON").map(PathBuf::from);
    let python = python.as_ref().and_then(|python| python.parent()).map(Path::to_owned);
    let folders = std::iter::once(programs.to_owned()).chain(python).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders);
    let mut shell = Command::new("bash");
    shell.current_dir(folder).env("PATH", path.expect("no folder of `PATH` has a colon in its name"));
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// The target folder of the projects that tests build, which later runs of the tests use again. Its name has blanks and
/// umlauts, as folders of users have. `cargo xtask test` builds the examples there too.
pub fn projects() -> PathBuf {
    profile().with_file_name("tmp").join("Projekte für Tests")
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; none after a signal.
    pub code: Option<i32>,
    /// What was printed as data.
    pub stdout: String,
    /// What was said.
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("programs print UTF-8");
        Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ended {
    /// How a command ends.
    pub fn of(command: &mut Command) -> Ended {
        command.output().expect("a program can be started").into()
    }

    /// The same, of a command that must succeed.
    #[track_caller]
    pub fn succeeded(self) -> Ended {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    /// The native tools that ran, as a verbose build names them: `model: object`.
    pub fn tools(&self) -> Vec<&str> {
        let lines = self.stderr.lines().filter_map(|line| line.trim_start().strip_prefix("Ran "));
        lines.map(|line| line.rsplit_once(" in ").map_or(line, |(name, _)| name)).collect()
    }
}
