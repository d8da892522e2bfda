//! Everything that can go wrong with tools and the machine. Each of these is exit code 3 of the subcommand.

use std::io;
use std::path::PathBuf;

use crate::advice;
use crate::audit::AuditError;
use crate::definition::Device;
use crate::resolve::ResolveError;

/// A failure of a tool or of the machine; never of the user's model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No toolchain serves the request.
    #[error(transparent)]
    NotFound(#[from] Box<ResolveError>),
    /// Code was asked for the GPUs of this machine, and it has none.
    #[error(
        "`native` {} code is for the GPUs of this machine, and there is none: {}\n  help: name the architectures, such as `{}`",
        device.as_str(), looked_for.join("; "), device.example()
    )]
    NoDevice {
        /// The device.
        device: Device,
        /// Where was looked, and what was found there.
        looked_for: Vec<String>,
    },
    /// A tool ran and said no.
    #[error("`{label}` failed with {status}\n  command: {command}\n{stderr}{}", help_line(*.advice))]
    ToolFailed {
        /// What was being made.
        label: String,
        /// A line to paste into a shell; it enters the kept folder first.
        command: String,
        /// The folder with the inputs, kept for inspection.
        directory: PathBuf,
        /// Exit status in words.
        status: String,
        /// What the tool wrote to its standard error.
        stderr: String,
        /// What to do about it, if the failure is a known one.
        advice: Option<&'static str>,
    },
    /// A tool said yes but did not write what it was asked for.
    #[error("`{label}` succeeded without writing `{output}`\n  command: {command}")]
    OutputMissing {
        /// What was being made.
        label: String,
        /// The absent file.
        output: String,
        /// A line to paste into a shell.
        command: String,
        /// The folder with the inputs, kept for inspection.
        directory: PathBuf,
    },
    /// A tool could not be started.
    #[error("cannot start `{}`", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What compiles should be started through is no program.
    #[error("`AOTI_COMPILER_LAUNCHER` names `{value}`, which is not a program")]
    Launcher {
        /// The variable's value.
        value: String,
    },
    /// The folder in which a tool runs could not be prepared.
    #[error("cannot prepare `{}` for `{label}`", path.display())]
    Workspace {
        /// What was being made.
        label: String,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An input could not be used.
    #[error("input of `{label}` is unusable")]
    Input {
        /// What was being made.
        label: String,
        /// The input's trouble.
        source: InputError,
    },
    /// The cache could not be used. Builds go on without it; only explicit cache commands fail.
    #[error("cannot {action} `{}` in the cache", path.display())]
    Cache {
        /// What was tried, as a verb.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A produced file could not be read or copied.
    #[error("cannot {action} `{}`", path.display())]
    Output {
        /// What was tried, as a verb.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A toolchain definition is wrong.
    #[error("toolchain definition `{file}`: {message}")]
    Definition {
        /// The file's name.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// The toolchain does not know an instruction-set level.
    #[error("toolchain `{toolchain}` has no level `{level}` for `{target}`; it has {known}")]
    UnknownLevel {
        /// The toolchain.
        toolchain: String,
        /// The level asked for.
        level: String,
        /// The target.
        target: String,
        /// The levels that it has, comma-separated.
        known: String,
    },
    /// A compiler said yes and made code for another device.
    #[error("`{label}` became {found}, not {wanted}")]
    WrongDeviceCode {
        /// What was being made.
        label: String,
        /// What was asked for.
        wanted: String,
        /// What came.
        found: String,
    },
    /// The toolchain came without an archiver.
    #[error("toolchain `{toolchain}` has no archiver; install binutils or llvm, or set `AR`")]
    NoArchiver {
        /// The toolchain.
        toolchain: String,
    },
    /// A linked file needs more than it may.
    #[error(transparent)]
    Audit(#[from] AuditError),
}

fn help_line(advice: Option<&str>) -> String {
    advice.map(|advice| format!("\n  help: {advice}")).unwrap_or_default()
}

impl Error {
    /// What to do about it, where that is known: a full disk, a host compiler that nvcc does not take, …
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Error::ToolFailed { advice, .. } => *advice,
            Error::Spawn { source, .. }
            | Error::Workspace { source, .. }
            | Error::Cache { source, .. }
            | Error::Output { source, .. } => advice::for_io(source),
            Error::NotFound(_)
            | Error::NoDevice { .. }
            | Error::OutputMissing { .. }
            | Error::Launcher { .. }
            | Error::Input { .. }
            | Error::Definition { .. }
            | Error::UnknownLevel { .. }
            | Error::WrongDeviceCode { .. }
            | Error::NoArchiver { .. }
            | Error::Audit(_) => None,
        }
    }
}

/// Why an input of an action is unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// Names are relative, with `/` between parts that are neither empty, `.` nor `..`, and start with no `-` or `@`.
    #[error("`{name}` is not a plain relative name")]
    Name {
        /// The name.
        name: String,
    },
    /// Two inputs or outputs share a name.
    #[error("`{name}` is named twice")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is not the one whose digest was taken.
    #[error("`{}` changed while it was being used", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}
