//! What can go wrong where another program builds.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::{error, fmt, io};

use super::{VARIABLE, VERSION};
use crate::installed::PROGRAM;

/// A failed build.
///
/// `Debug` prints the same text as `Display`: it is what a user sees when `main` of a build script returns the error.
#[non_exhaustive]
pub enum Error {
    /// A variable that cargo sets for build scripts is not set.
    NoCargo(&'static str),
    /// The program is not installed.
    Absent {
        /// How to install it.
        help: String,
    },
    /// The program is of another version than this crate.
    Version {
        /// The program.
        program: PathBuf,
        /// Its version, if it has one.
        found: Option<String>,
    },
    /// The program cannot be started or listened to.
    Start {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The program ended and did not say why.
    Ended {
        /// The program.
        program: PathBuf,
        /// How it ended.
        status: ExitStatus,
    },
    /// Everything found in all models.
    Build(String),
}

impl Error {
    pub(super) fn absent() -> Error {
        Error::Absent { help: install() }
    }
}

/// The command that installs the program of this version: from the sources around this crate where there are any.
fn install() -> String {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(|root| root.join(PROGRAM));
    match sources.filter(|sources| sources.join("Cargo.toml").is_file()) {
        Some(sources) => format!("cargo install --path {:?}", sources.display().to_string()),
        None => format!("cargo install {PROGRAM}@{VERSION}"),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoCargo(name) => {
                write!(f, "`{name}` is not set: `Builder` is for build scripts, which cargo runs")
            }
            Error::Absent { help } => write!(
                f,
                "`{PROGRAM}` is not installed, and this build script has no compiler of its own\n  = help: `{help}` \
                 installs it, `{VARIABLE}` names it where it lies elsewhere, and the feature `compiler` of `aoti-build` \
                 does without it"
            ),
            Error::Version { program, found } => {
                let found = found
                    .as_deref()
                    .map_or("not `cargo-aoti`".to_owned(), |found| format!("version {found}"));
                let program = program.display();
                write!(
                    f,
                    "`{program}` is {found}, and this build script needs {VERSION}\n  = help: `{}` installs it",
                    install()
                )
            }
            Error::Start { program, source } => {
                write!(f, "cannot run `{}`: {source}", program.display())
            }
            Error::Ended { program, status } => {
                write!(f, "`{}` ended with {status} and did not say why", program.display())
            }
            Error::Build(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Error::Start { source, .. } => Some(source),
            Error::NoCargo(_)
            | Error::Absent { .. }
            | Error::Version { .. }
            | Error::Ended { .. }
            | Error::Build(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named_with_how_to_get_it() {
        let said = Error::absent().to_string();
        assert!(said.starts_with("`cargo-aoti` is not installed, "), "{said}");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("cargo-aoti");
        let help = format!("= help: `cargo install --path {:?}` installs it", folder.display().to_string());
        assert!(said.contains(&help), "{said}");
        let other = Error::Version { program: "/bin/true".into(), found: None }.to_string();
        assert!(other.starts_with("`/bin/true` is not `cargo-aoti`, and this"), "{other}");
    }
}
