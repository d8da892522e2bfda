//! What became of a case.

use serde_json::{Value, json};

use super::super::print;
use crate::case::Case;
use aoti_tune::tensors::compare::Distance;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    Pass,
    Fail,
    Skip,
}

/// The step at which a case stopped; of one that passed, the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Reading the model.
    Import,
    /// Compiling it to source.
    Lower,
    /// Native tools.
    Compile,
    /// The run.
    Run,
    /// The comparison.
    Compare,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) format: &'static str,
    pub(super) status: Status,
    pub(super) stage: Stage,
    pub(super) message: String,
    pub(super) distance: Option<Distance>,
    pub(super) compile_ms: Option<u64>,
    pub(super) run_us: Option<f64>,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Status::Pass => "pass",
            Status::Fail => "fail",
            Status::Skip => "skip",
        }
    }
}

impl Stage {
    fn as_str(self) -> &'static str {
        match self {
            Stage::Import => "import",
            Stage::Lower => "lower",
            Stage::Compile => "compile",
            Stage::Run => "run",
            Stage::Compare => "compare",
        }
    }
}

impl Outcome {
    /// A case that has come to nothing yet.
    pub(super) fn new(case: &Case) -> Outcome {
        Outcome {
            name: case.name.clone(),
            format: case.format.as_str(),
            status: Status::Fail,
            stage: Stage::Import,
            message: String::new(),
            distance: None,
            compile_ms: None,
            run_us: None,
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "reason": "case",
            "name": self.name,
            "format": self.format,
            "status": self.status.as_str(),
            "stage": self.stage.as_str(),
            "message": self.message,
            "max_abs": self.distance.map(|distance| distance.max_abs),
            "max_rel": self.distance.map(|distance| distance.max_rel),
            "compile_ms": self.compile_ms,
            "run_us": self.run_us,
        })
    }

    /// One line; passes only if asked for. Long messages go on, indented.
    pub(super) fn print(&self, passes_too: bool) {
        if self.status == Status::Pass && !passes_too && self.message.is_empty() {
            return;
        }
        let (status, name, format) = (self.status.as_str(), &self.name, self.format);
        let mut line = format!("{status} {name} ({format})");
        if self.status != Status::Pass {
            let message = self.message.trim_end().replace('\n', "\n    ");
            line.push_str(&format!(" at {}: {message}", self.stage.as_str()));
        } else if !self.message.is_empty() {
            line.push_str(&format!(": {}", self.message));
        }
        line.push('\n');
        print(&line);
    }
}
