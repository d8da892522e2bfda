//! Takes one case through its stages.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aoti_build::{Error, Session, Silent};
use aoti_compiler::compile;
use tempfile::TempDir;

use super::child;
use super::outcome::{Outcome, Stage, Status};
use crate::bug;
use crate::case::{Case, Terms};
use crate::failure::Failure;
use crate::memory;
use crate::single;
use crate::tensors::{compare, file};

pub(super) struct Examiner {
    pub(super) session: Session,
    /// Why no case can be run.
    pub(super) refusal: Option<String>,
    pub(super) reference: bool,
    pub(super) timeout: Duration,
    pub(super) threads: u16,
    /// Runtime libraries of sanitizers.
    pub(super) preload: Vec<PathBuf>,
}

/// Where a case stopped, and why.
type Stopped = (Stage, String);

impl Examiner {
    pub(super) fn examine(&self, case: &Case) -> Outcome {
        let mut outcome = Outcome::new(case);
        let terms = case.terms();
        if let Ok(Terms { skip: Some(reason), .. }) = &terms {
            (outcome.status, outcome.message) = (Status::Skip, reason.clone());
            return outcome;
        }
        if let Some(refusal) = &self.refusal {
            (outcome.stage, outcome.message) = (Stage::Lower, refusal.clone());
            return outcome;
        }
        let result = bug::caught(|| self.stages(case, &mut outcome, terms));
        match result {
            Ok(Ok(())) => (outcome.status, outcome.stage) = (Status::Pass, Stage::Compare),
            Ok(Err((stage, message))) => (outcome.stage, outcome.message) = (stage, message),
            // The stage is the last that was entered.
            Err(panic) => outcome.message = panic,
        }
        outcome
    }

    fn stages(
        &self,
        case: &Case,
        outcome: &mut Outcome,
        terms: Result<Terms, Failure>,
    ) -> Result<(), Stopped> {
        let said = |stage| move |failure: Failure| (stage, failure.message().unwrap_or_default().to_owned());
        let terms = terms.map_err(said(Stage::Import))?;
        let temporary = self.session.environment().temporary_directory();
        let folder = tempfile::Builder::new().prefix("aoti-case-").tempdir_in(temporary);
        let folder: TempDir =
            folder.map_err(|error| (Stage::Run, format!("no temporary folder: {error}")))?;
        let outputs = folder.path().join("outputs.safetensors");

        let mut arguments = vec![OsString::from("--inputs"), case.inputs().into()];
        arguments.extend(["--outputs".into(), outputs.clone().into()]);
        arguments.extend(["--threads".into(), self.threads.to_string().into()]);
        // Lives until the run is over.
        let _single = if self.reference {
            outcome.stage = Stage::Import;
            arguments.extend(["--model".into(), case.model().into()]);
            None
        } else {
            let single = self.build(case, outcome)?;
            let library = single.built.library().map(|library| library.path.clone()).unwrap_or_default();
            arguments.extend(["--library".into(), library.into()]);
            arguments.extend(["--symbol".into(), single.built.symbol().into()]);
            Some(single)
        };
        outcome.stage = Stage::Run;
        let run = child::run(&arguments, folder.path(), &self.variables(), self.timeout);
        outcome.run_us = Some(run.map_err(|message| {
            let is_read = !self.reference || stage_of_rejection(&case.model()) == Stage::Lower;
            (if is_read { Stage::Run } else { Stage::Import }, message)
        })?);

        outcome.stage = Stage::Compare;
        let found = file::read(&outputs).map_err(said(Stage::Compare))?;
        let expected = file::read(&case.outputs()).map_err(said(Stage::Compare))?;
        let (distance, result) = compare::all(&found, &expected, terms.tolerance);
        outcome.distance = Some(distance);
        result.map_err(|message| (Stage::Compare, message))
    }

    fn build(&self, case: &Case, outcome: &mut Outcome) -> Result<single::Single, Stopped> {
        let path = case.model();
        outcome.stage = Stage::Lower;
        let built = single::build(&self.session, &path, vec!["native".to_owned()], &Silent);
        let single = built.map_err(|error| {
            let stage = if let Error::Unreadable { .. } = &error {
                Stage::Import
            } else if let Error::Model { .. } = &error {
                stage_of_rejection(&path)
            } else {
                Stage::Compile
            };
            (stage, error.to_string())
        })?;
        outcome.compile_ms = Some(single.built.compile_ms);
        Ok(single)
    }

    /// Sanitized libraries need the sanitizer's runtime before everything else in the process.
    fn variables(&self) -> Vec<(OsString, OsString)> {
        if self.preload.is_empty() {
            return Vec::new();
        }
        let preload: Vec<String> = self.preload.iter().map(|path| path.display().to_string()).collect();
        vec![
            ("LD_PRELOAD".into(), preload.join(" ").into()),
            // What leaks at the end of a process is not the model's affair.
            ("ASAN_OPTIONS".into(), "detect_leaks=0:abort_on_error=1".into()),
            ("UBSAN_OPTIONS".into(), "halt_on_error=1:print_stacktrace=1".into()),
        ]
    }
}

/// Which part of the compiler refuses a model: the one that reads it, or one behind it.
fn stage_of_rejection(path: &Path) -> Stage {
    let Ok(bytes) = memory::map(path) else { return Stage::Import };
    if compile::import("case", bytes).is_err() { Stage::Import } else { Stage::Lower }
}
