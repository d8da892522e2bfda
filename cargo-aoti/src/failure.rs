//! Why a command failed, and with which exit code.

use aoti_build::Fault;

/// A failure that the user is told of.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The model, the manifest or a file of the user's is at fault.
    User(String),
    /// The command line is at fault.
    Usage(String),
    /// A tool or the machine is at fault.
    Machine(String),
    /// As `User`, where everything has been said already.
    Reported,
    /// As `Machine`, where everything has been said already.
    ReportedMachine,
}

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::User(_) | Failure::Reported => 1,
            Failure::Usage(_) => 2,
            Failure::Machine(_) | Failure::ReportedMachine => 3,
        }
    }

    /// What to tell; nothing if that has been done.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Failure::User(text) | Failure::Usage(text) | Failure::Machine(text) => Some(text),
            Failure::Reported | Failure::ReportedMachine => None,
        }
    }

    /// The failure that a build's error is.
    pub(crate) fn from_reference(error: &aoti_build::Error) -> Failure {
        match error.fault() {
            Fault::User => Failure::User(error.to_string()),
            Fault::Machine => Failure::Machine(error.to_string()),
        }
    }

    /// For a failure of the machine while doing this.
    pub(crate) fn machine(
        what: &str,
        path: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Failure + use<> {
        let (text, path) = (format!("cannot {what} `{}`", path.display()), path.to_owned());
        move |error| Failure::Machine(format!("{text}: {}", plain(error, &path)))
    }
}

/// An error of the system without the path and the action that were put before it: the caller names them.
fn plain(error: std::io::Error, path: &std::path::Path) -> std::io::Error {
    let text = error.to_string();
    match text.split_once(&format!("`{}`: ", path.display())) {
        Some((_, cause)) => std::io::Error::new(error.kind(), cause),
        None => error,
    }
}

impl From<aoti_build::Error> for Failure {
    fn from(error: aoti_build::Error) -> Self {
        Failure::from_reference(&error)
    }
}

impl From<aoti_toolchain::Error> for Failure {
    fn from(error: aoti_toolchain::Error) -> Self {
        aoti_build::Error::from(error).into()
    }
}

impl From<aoti_build::Problems> for Failure {
    fn from(problems: aoti_build::Problems) -> Self {
        Failure::User(problems.to_string())
    }
}

impl From<aoti_runtime::Error> for Failure {
    /// Libraries are opened after they were built: what fails then are the given inputs, memory, or a device that this
    /// machine does not have.
    fn from(error: aoti_runtime::Error) -> Self {
        if error.code() == aoti_runtime::ErrorCode::Device {
            return Failure::Machine(error.to_string());
        }
        Failure::User(error.to_string())
    }
}
