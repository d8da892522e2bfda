//! Everything that can go wrong with tools and the machine. Each of these is exit code 3 of the subcommand.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::advice;
use crate::audit::AuditError;
use crate::device_class::Device;
use crate::resolve::ResolveError;

/// A failure of a tool or of the machine; never of the user's model.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No toolchain serves the request.
    NotFound(Box<ResolveError>),
    /// Code was asked for the GPUs of this machine, and it has none.
    NoDevice {
        /// The device.
        device: Device,
        /// Where was looked, and what was found there.
        looked_for: Vec<String>,
    },
    /// A tool ran and said no.
    ToolFailed {
        /// What was being made.
        label: String,
        /// A line to paste into a shell; it enters the kept folder first.
        command: String,
        /// The folder with the inputs, kept for inspection.
        directory: PathBuf,
        /// Exit status in words.
        status: String,
        /// What the tool wrote to its standard output, where some report errors.
        stdout: String,
        /// What the tool wrote to its standard error.
        stderr: String,
        /// What to do about it, if the failure is a known one.
        advice: Option<&'static str>,
    },
    /// A tool said yes but did not write what it was asked for.
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
    Spawn {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The limit for the time of a tool is no number of seconds.
    TimeLimit {
        /// The variable's value.
        value: String,
    },
    /// What compiles should be started through is no program.
    Launcher {
        /// The variable's value.
        value: String,
    },
    /// The folder in which a tool runs could not be prepared.
    Workspace {
        /// What was being made.
        label: String,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An input could not be used.
    Input {
        /// What was being made.
        label: String,
        /// The input's trouble.
        source: InputError,
    },
    /// The cache could not be used. Builds go on without it; only explicit cache commands fail.
    Cache {
        /// What was tried, as a verb.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A produced file could not be read or copied.
    Output {
        /// What was tried, as a verb.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A toolchain definition is wrong.
    Definition {
        /// The file's name.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// The toolchain does not know an instruction-set level.
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
    WrongDeviceCode {
        /// What was being made.
        label: String,
        /// What was asked for.
        wanted: String,
        /// What came.
        found: String,
    },
    /// The toolchain came without an archiver.
    NoArchiver {
        /// The toolchain.
        toolchain: String,
    },
    /// The target has no shared libraries.
    NoSharedLibraries {
        /// The target.
        target: String,
    },
    /// A linked file needs more than it may.
    Audit(AuditError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound(inner) => inner.fmt(f),
            Error::NoDevice { device, looked_for } => write!(
                f,
                "`native` {} code is for the GPUs of this machine, and there is none: {}\n  help: name the architectures, such as `{}`",
                device.as_str(),
                looked_for.join("; "),
                device.example()
            ),
            Error::ToolFailed { label, command, status, stdout, stderr, advice, .. } => write!(
                f,
                "`{label}` failed with {status}\n  command: {command}\n{}{stderr}{}",
                whole_lines(stdout),
                help_line(*advice)
            ),
            Error::OutputMissing { label, output, command, .. } => {
                write!(f, "`{label}` succeeded without writing `{output}`\n  command: {command}")
            }
            Error::Spawn { program, .. } => write!(f, "cannot start `{}`", program.display()),
            Error::TimeLimit { value } => {
                write!(f, "`AOTI_TOOL_TIMEOUT` is `{value}`, which is no number of seconds from 1 on")
            }
            Error::Launcher { value } => {
                write!(f, "`AOTI_COMPILER_LAUNCHER` names `{value}`, which is not a program")
            }
            Error::Workspace { label, path, .. } => {
                write!(f, "cannot prepare `{}` for `{label}`", path.display())
            }
            Error::Input { label, .. } => write!(f, "input of `{label}` is unusable"),
            Error::Cache { action, path, .. } => {
                write!(f, "cannot {action} `{}` in the cache", path.display())
            }
            Error::Output { action, path, .. } => write!(f, "cannot {action} `{}`", path.display()),
            Error::Definition { file, message } => write!(f, "toolchain definition `{file}`: {message}"),
            Error::UnknownLevel { toolchain, level, target, known } => {
                write!(f, "toolchain `{toolchain}` has no level `{level}` for `{target}`; it has {known}")
            }
            Error::WrongDeviceCode { label, wanted, found } => {
                write!(f, "`{label}` became {found}, not {wanted}")
            }
            Error::NoArchiver { toolchain } => {
                write!(f, "toolchain `{toolchain}` has no archiver; install binutils or llvm, or set `AR`")
            }
            Error::NoSharedLibraries { target } => {
                write!(f, "`{target}` has no shared libraries; leave `link = \"dylib\"` out")
            }
            Error::Audit(inner) => inner.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::NotFound(inner) => inner.source(),
            Error::Spawn { source, .. } => Some(source),
            Error::Workspace { source, .. } => Some(source),
            Error::Input { source, .. } => Some(source),
            Error::Cache { source, .. } => Some(source),
            Error::Output { source, .. } => Some(source),
            Error::Audit(inner) => inner.source(),
            Error::NoDevice { .. }
            | Error::ToolFailed { .. }
            | Error::OutputMissing { .. }
            | Error::TimeLimit { .. }
            | Error::Launcher { .. }
            | Error::Definition { .. }
            | Error::UnknownLevel { .. }
            | Error::WrongDeviceCode { .. }
            | Error::NoArchiver { .. }
            | Error::NoSharedLibraries { .. } => None,
        }
    }
}

impl From<Box<ResolveError>> for Error {
    fn from(error: Box<ResolveError>) -> Error {
        Error::NotFound(error)
    }
}

impl From<AuditError> for Error {
    fn from(error: AuditError) -> Error {
        Error::Audit(error)
    }
}

/// A tool's words, so that more can follow on a line of its own.
fn whole_lines(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() { String::new() } else { format!("{text}\n") }
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
            | Error::TimeLimit { .. }
            | Error::Launcher { .. }
            | Error::Input { .. }
            | Error::Definition { .. }
            | Error::UnknownLevel { .. }
            | Error::WrongDeviceCode { .. }
            | Error::NoArchiver { .. }
            | Error::NoSharedLibraries { .. }
            | Error::Audit(_) => None,
        }
    }
}

/// Why an input of an action is unusable.
#[derive(Debug)]
#[non_exhaustive]
pub enum InputError {
    /// Names are relative, with `/` between parts that are neither empty, `.` nor `..`, and start with no `-` or `@`.
    Name {
        /// The name.
        name: String,
    },
    /// Two inputs or outputs share a name.
    Duplicate {
        /// The name.
        name: String,
    },
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is not the one whose digest was taken.
    Changed {
        /// The file.
        path: PathBuf,
    },
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputError::Name { name } => write!(f, "`{name}` is not a plain relative name"),
            InputError::Duplicate { name } => write!(f, "`{name}` is named twice"),
            InputError::Unreadable { path, .. } => write!(f, "cannot read `{}`", path.display()),
            InputError::Changed { path } => write!(f, "`{}` changed while it was being used", path.display()),
        }
    }
}

impl std::error::Error for InputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            InputError::Unreadable { source, .. } => Some(source),
            InputError::Name { .. } | InputError::Duplicate { .. } | InputError::Changed { .. } => None,
        }
    }
}
