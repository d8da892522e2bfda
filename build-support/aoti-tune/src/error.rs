//! What goes wrong while a model is measured.

use std::fmt;
use std::io;
use std::path::Path;

use aoti_compiler::diagnostic::Diagnostics;

/// Why a model cannot be measured.
#[derive(Debug)]
pub enum Error {
    /// The model or a file of the user's is at fault.
    User(String),
    /// What is asked for makes no sense.
    Usage(String),
    /// The machine is at fault, or what runs on it.
    Machine(String),
    /// The model cannot be built.
    Build(aoti_build::Error),
}

impl Error {
    /// For a failure of the machine while doing this to a file.
    pub fn machine(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
        let text = format!("cannot {what} `{}`", path.display());
        move |error| Error::Machine(format!("{text}: {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::User(text) | Error::Usage(text) | Error::Machine(text) => f.write_str(text),
            Error::Build(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<aoti_build::Error> for Error {
    fn from(error: aoti_build::Error) -> Self {
        Error::Build(error)
    }
}

impl From<Diagnostics> for Error {
    fn from(diagnostics: Diagnostics) -> Self {
        Error::User(diagnostics.to_string())
    }
}

impl From<aoti_runtime::Error> for Error {
    /// Libraries are opened after they were built: what fails then are the given inputs, memory, or a device that this
    /// machine does not have.
    fn from(error: aoti_runtime::Error) -> Self {
        if error.code() == aoti_runtime::ErrorCode::Device {
            return Error::Machine(error.to_string());
        }
        Error::User(error.to_string())
    }
}
