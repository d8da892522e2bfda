//! Why a command failed, and with which exit code.

use aoti_build::{Error, Fault, Problem, Problems};
use aoti_compiler::diagnostic::{Diagnostic, Diagnostics};
use serde_json::{Value, json};

/// A failure that the user is told of.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The model, the manifest or a file of the user's is at fault.
    User(String),
    /// The command line is at fault.
    Usage(String),
    /// A tool or the machine is at fault.
    Machine(String),
    /// As `User`, with an object for each finding.
    Diagnosed {
        /// All of it, for people.
        text: String,
        /// The findings, as `--format json` prints them.
        findings: Vec<Value>,
    },
    /// As `User`, where everything has been said already.
    Reported,
    /// As `Machine`, where everything has been said already.
    ReportedMachine,
}

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::User(_) | Failure::Diagnosed { .. } | Failure::Reported => 1,
            Failure::Usage(_) => 2,
            Failure::Machine(_) | Failure::ReportedMachine => 3,
        }
    }

    /// What to tell; nothing if that has been done.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Failure::User(text)
            | Failure::Usage(text)
            | Failure::Machine(text)
            | Failure::Diagnosed { text, .. } => Some(text),
            Failure::Reported | Failure::ReportedMachine => None,
        }
    }

    /// What `--format json` prints of it: an object for each finding.
    pub(crate) fn findings(&self) -> Vec<Value> {
        match self {
            Failure::Diagnosed { findings, .. } => findings.clone(),
            Failure::User(text) | Failure::Usage(text) | Failure::Machine(text) => vec![of_text(text)],
            Failure::Reported | Failure::ReportedMachine => Vec::new(),
        }
    }

    /// The failure that a build's error is.
    pub(crate) fn from_reference(error: &Error) -> Failure {
        match error.fault() {
            Fault::User => Failure::Diagnosed { text: error.to_string(), findings: of_error(error) },
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

/// The findings of a build's error, as objects.
pub(crate) fn of_error(error: &Error) -> Vec<Value> {
    match error {
        Error::Model { diagnostics, .. } => diagnostics.0.iter().map(of_model).collect(),
        Error::Manifest(problems) => problems.0.iter().map(of_manifest).collect(),
        Error::Several(errors) => errors.iter().flat_map(of_error).collect(),
        Error::Unreadable { .. }
        | Error::Tool(_)
        | Error::File { .. }
        | Error::NoCargo(_)
        | Error::Variable { .. }
        | _ => vec![of_text(&error.to_string())],
    }
}

/// All findings have the same keys, of which those that nothing is known of are null.
fn finding(code: Value, message: &str, (file, line): (Value, Value), help: Value, rendered: &str) -> Value {
    json!({
        "reason": "aoti-diagnostic", "level": "error", "code": code, "message": message, "file": file,
        "line": line, "column": null, "help": help, "rendered": rendered,
    })
}

fn of_text(text: &str) -> Value {
    let nowhere = (Value::Null, Value::Null);
    finding(Value::Null, text.lines().next().unwrap_or_default(), nowhere, Value::Null, text)
}

fn of_model(diagnostic: &Diagnostic) -> Value {
    let place =
        diagnostic.place().map_or((Value::Null, Value::Null), |(file, line)| (json!(file), json!(line)));
    let (code, help) = (json!(diagnostic.code.to_string()), json!(diagnostic.help));
    finding(code, &diagnostic.message, place, help, &diagnostic.to_string())
}

fn of_manifest(problem: &Problem) -> Value {
    let location = problem.location.as_ref();
    let place = location.map_or((Value::Null, Value::Null), |at| (json!(at.file), json!(at.line)));
    let (code, help) = (json!(problem.code.to_string()), json!(problem.help));
    let mut object = finding(code, &problem.message, place, help, &problem.to_string());
    object["column"] = json!(location.map(|at| at.column));
    object
}

/// An error of the system without the path and the action that were put before it: the caller names them.
fn plain(error: std::io::Error, path: &std::path::Path) -> std::io::Error {
    let text = error.to_string();
    match text.split_once(&format!("`{}`: ", path.display())) {
        Some((_, cause)) => std::io::Error::new(error.kind(), cause),
        None => error,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::from_reference(&error)
    }
}

impl From<aoti_toolchain::Error> for Failure {
    fn from(error: aoti_toolchain::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Error::from(problems).into()
    }
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Self {
        let findings = diagnostics.0.iter().map(of_model).collect();
        Failure::Diagnosed { text: diagnostics.to_string(), findings }
    }
}

impl From<aoti_tune::Error> for Failure {
    fn from(error: aoti_tune::Error) -> Self {
        match error {
            aoti_tune::Error::User(text) => Failure::User(text),
            aoti_tune::Error::Usage(text) => Failure::Usage(text),
            aoti_tune::Error::Machine(text) => Failure::Machine(text),
            aoti_tune::Error::Build(error) => error.into(),
        }
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
