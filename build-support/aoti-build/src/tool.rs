//! Build scripts without the compiler in them: `cargo-aoti`, which is installed, does the work.
//!
//! The program runs in the script's folder and environment, so it finds what a build in the script itself would find, and
//! writes the same files. A script hands on what it says, and knows nothing of models; it has no dependencies. That the two
//! are of one version is checked first, as modules and the crate `aoti-runtime` belong together.

mod error;

use std::env;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use error::Error;

use crate::installed::{PROGRAM, installed};
use crate::system;

/// Names the program where it is not among the programs of the user.
const VARIABLE: &str = "CARGO_AOTI";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What lines of the program begin with that are not for cargo but for the script's own error.
const ERROR: &str = "aoti-error=";

/// Has the models built of the package whose build script runs.
///
/// The installed `cargo-aoti` does what the feature `compiler` does in the script itself: it reads the manifest, writes
/// under `OUT_DIR` and the cache, and tells cargo what to link and watch.
#[derive(Debug)]
pub struct Builder {
    program: PathBuf,
}

impl Builder {
    /// Finds the program: what `CARGO_AOTI` names, else `cargo-aoti` as cargo finds it. It reads
    /// `[package.metadata.aoti]` of the package, else the workspace's table.
    ///
    /// # Errors
    /// [`Error::NoCargo`] outside a build script; [`Error::Absent`], [`Error::Version`] and [`Error::Start`] where there is
    /// no such program of this version.
    pub fn from_manifest() -> Result<Builder, Error> {
        Builder::find().map_err(told)
    }

    fn find() -> Result<Builder, Error> {
        for name in ["CARGO_MANIFEST_DIR", "OUT_DIR", "TARGET"] {
            env::var_os(name).ok_or(Error::NoCargo(name))?;
        }
        // Whatever goes wrong, cargo runs the script again when it is put right.
        println!("cargo::rerun-if-env-changed={VARIABLE}");
        println!("cargo::rerun-if-changed=Cargo.toml");
        let named = env::var_os(VARIABLE).filter(|path| !path.is_empty());
        let program = match named {
            Some(path) => PathBuf::from(path),
            None => installed(|name| env::var_os(name)).ok_or_else(Error::absent)?,
        };
        println!("cargo::rerun-if-changed={}", program.display());
        let found = version(&program)?;
        if found.as_deref() != Some(VERSION) {
            return Err(Error::Version { program, found });
        }
        Ok(Builder { program })
    }

    /// Builds the models and tells cargo where they are.
    ///
    /// # Errors
    /// [`Error::Build`] with everything found in all models; [`Error::Start`] and [`Error::Ended`] where the program did
    /// not come to an end.
    pub fn build(self) -> Result<(), Error> {
        self.run()
    }

    fn run(&self) -> Result<(), Error> {
        let mut command = Command::new(&self.program);
        command.args(["aoti", "__script"]);
        if let Some(cargo) = system::parent() {
            command.args(["--cargo", &cargo.to_string()]);
        }
        let start = |source| Error::Start { program: self.program.clone(), source };
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(start)?;
        let said = child.stdout.take().map(hand_on).transpose();
        let status = child.wait().map_err(start)?;
        let errors = said.map_err(start)?.unwrap_or_default();
        match (status.success(), errors.is_empty()) {
            (true, _) => Ok(()),
            // The program has told cargo.
            (false, false) => Err(Error::Build(errors.join("\n"))),
            (false, true) => Err(told(Error::Ended { program: self.program.clone(), status })),
        }
    }
}

/// Passes on what is for cargo, and gives the lines of the error.
fn hand_on(output: impl io::Read) -> io::Result<Vec<String>> {
    let mut errors = Vec::new();
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        match line.strip_prefix(ERROR) {
            Some(error) => errors.push(error.to_owned()),
            None => println!("{line}"),
        }
    }
    Ok(errors)
}

/// Tells cargo what is wrong; the error goes on to the script's `main`.
fn told(error: Error) -> Error {
    println!("cargo::error={}", error.to_string().replace(['\n', '\r'], " "));
    error
}

/// The version that a program says it is; none where it is another program.
fn version(program: &Path) -> Result<Option<String>, Error> {
    let start = |source| Error::Start { program: program.to_owned(), source };
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().map_err(start)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().strip_prefix(PROGRAM).map(|version| version.trim().to_owned());
    Ok(version.filter(|_| output.status.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_cargo_is_passed_on_and_the_error_kept() {
        let said = "cargo::rerun-if-changed=a\naoti-error=error[AOTI0001]: it\naoti-error=  = help: so\n";
        assert_eq!(hand_on(said.as_bytes()).unwrap(), ["error[AOTI0001]: it", "  = help: so"]);
        assert_eq!(hand_on(&b"\xff\n"[..]).unwrap(), Vec::<String>::new());
    }
}
