//! Everything that can go wrong in a build, and whose fault it is.

use aoti_compiler::diagnostic::{Diagnostic, Diagnostics};
use std::{
    error, fmt, io,
    path::{Path, PathBuf},
};

use crate::problem::{Problem, Problems};

/// Who can put an error right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Whoever wrote the model or the manifest.
    User,
    /// Whoever runs the machine: a tool, a disk, a permission.
    Machine,
}

/// A failed build.
///
/// `Debug` prints the same text as `Display`: it is what a user sees when `main` of a build script returns the error.
#[non_exhaustive]
pub enum Error {
    /// The metadata table or the project is at fault.
    Manifest(Problems),
    /// A model does not compile.
    Model {
        /// The model's name.
        name: String,
        /// Its file.
        path: PathBuf,
        /// Everything found.
        diagnostics: Diagnostics,
    },
    /// A model's file cannot be read.
    Unreadable {
        /// The model's name.
        name: String,
        /// Its file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A native tool or the cache.
    Tool(Box<aoti_toolchain::Error>),
    /// A file of the build.
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A variable that cargo sets for build scripts is not set.
    NoCargo(&'static str),
    /// A variable of the environment has a value that it cannot have.
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it can be.
        help: String,
    },
    /// More than one model failed.
    Several(Vec<Error>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Manifest(inner) => write!(f, "{inner}"),
            Error::Model { name, path, diagnostics } => write!(f, "{}", of_model(name, path, diagnostics)),
            Error::Unreadable { path, source, .. } => {
                write!(f, "error[AOTI0012]: cannot read the model `{}`\n  = note: {source}", path.display())
            }
            Error::Tool(inner) => write!(f, "{}", chain(inner)),
            Error::File { action, path, source } => {
                write!(f, "cannot {action} `{}`: {source}", path.display())
            }
            Error::NoCargo(inner) => {
                write!(f, "`{inner}` is not set: `Builder` is for build scripts, which cargo runs")
            }
            Error::Variable { name, value, help } => {
                write!(f, "the variable `{name}` cannot be `{value}`; {help}")
            }
            Error::Several(inner) => {
                write!(f, "{}", inner.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
            }
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Error::Manifest(inner) => Some(inner),
            Error::Unreadable { source, .. } => Some(source),
            Error::File { source, .. } => Some(source),
            Error::Model { .. }
            | Error::Tool(_)
            | Error::NoCargo(_)
            | Error::Variable { .. }
            | Error::Several(_) => None,
        }
    }
}

impl From<Problems> for Error {
    fn from(error: Problems) -> Error {
        Error::Manifest(error)
    }
}

impl Error {
    /// Who can put it right; of several errors, the first says.
    pub fn fault(&self) -> Fault {
        match self {
            Error::Manifest(_) | Error::Model { .. } | Error::Unreadable { .. } | Error::Variable { .. } => {
                Fault::User
            }
            Error::Tool(_) | Error::File { .. } | Error::NoCargo(_) => Fault::Machine,
            Error::Several(errors) => errors.first().map_or(Fault::Machine, Error::fault),
        }
    }

    /// Each finding on a line of its own, with the model or the place in the manifest that it is about.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Error::Manifest(problems) => problems.0.iter().map(Problem::line).collect(),
            Error::Model { name, path, diagnostics } => {
                let one = |diagnostic: &Diagnostic| {
                    let place = diagnostic.origin.as_ref().map(|origin| origin.source.as_str());
                    let place = place.filter(|place| !place.is_empty());
                    let place = place.map(|place| format!(", at {place}")).unwrap_or_default();
                    let help = diagnostic.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
                    let (message, code) = (&diagnostic.message, diagnostic.code);
                    format!("model `{name}` ({}): {message}{place}{help} [{code}]", path.display())
                };
                diagnostics.0.iter().map(one).collect()
            }
            Error::Unreadable { name, path, source } => {
                vec![format!("model `{name}` ({}): cannot be read: {source}", path.display())]
            }
            Error::Several(errors) => errors.iter().flat_map(Error::lines).collect(),
            Error::Tool(_) | Error::File { .. } | Error::NoCargo(_) | Error::Variable { .. } => {
                vec![self.to_string().lines().next().unwrap_or_default().to_owned()]
            }
        }
    }

    /// Keeps one error as it is and several as one.
    pub(crate) fn all(mut errors: Vec<Error>) -> Result<(), Error> {
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => Err(Error::Several(errors)),
        }
    }
}

impl From<aoti_toolchain::Error> for Error {
    fn from(error: aoti_toolchain::Error) -> Error {
        Error::Tool(Box::new(error))
    }
}

/// Build scripts return this error, and clippy warns of larger ones.
const _: () = assert!(size_of::<Error>() <= 128);

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Diagnostics, each with the model that it is about.
fn of_model(name: &str, path: &Path, diagnostics: &Diagnostics) -> String {
    let one = |diagnostic| format!("{diagnostic}\n  = model: `{name}` (`{}`)", path.display());
    diagnostics.0.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// An error with its causes on one line.
fn chain(error: &dyn error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}
