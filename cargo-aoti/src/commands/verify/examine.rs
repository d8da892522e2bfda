//! Takes one case through its stages.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use aoti_build::{Error, LinkKind, Model, Session, Silent, WeightsType};
use aoti_compiler::frontend::{self, ModelFile};
use aoti_compiler::graph::{Graph, InputRole, OutputRole};
use aoti_runtime::{Device, DynTensor};
use aoti_toolchain::temporary_folder;

use super::child;
use super::outcome::{Outcome, Stage, Status};
use super::place::{Place, Program};
use crate::arguments::Numerics;
use crate::bug;
use crate::case::{Case, Format, Reference, Terms};
use crate::failure::Failure;
use crate::memory;
use crate::single;
use crate::tensors::file;
use aoti_tune::tensors::{compare, flat};

pub(super) struct Examiner {
    pub(super) session: Session,
    pub(super) device: Device,
    pub(super) place: Place,
    /// CPU levels, or architectures of GPUs; none for the target's defaults.
    pub(super) levels: Vec<String>,
    /// What GPUs may round.
    pub(super) numerics: Numerics,
    pub(super) timeout: Duration,
    pub(super) threads: u16,
    /// Say which value is the first that differs.
    pub(super) bisect: bool,
}

/// A finding ends the process at once, with the code that says that the process itself told why. What is not given back at
/// the end of a process is no finding.
const SANITIZER_OPTIONS: [(&str, &str); 3] = [
    ("ASAN_OPTIONS", "exitcode=1:detect_leaks=0"),
    ("UBSAN_OPTIONS", "exitcode=1:print_stacktrace=1"),
    ("TSAN_OPTIONS", "exitcode=1:halt_on_error=1"),
];

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
        let terms = terms.map_err(said(Stage::Import))?;
        let folder = temporary_folder("case", self.session.environment());
        let folder = folder.map_err(|error| (Stage::Run, format!("no temporary folder: {error}")))?;
        let found = match &self.place {
            Place::Interpreter => self.in_interpreter(case, outcome, folder.path()),
            Place::Library => self.as_library(case, outcome, folder.path()),
            Place::Program(program) => self.as_program(program, case, outcome, folder.path()),
        }?;
        outcome.stage = Stage::Compare;
        let mut expected = file::read(&case.outputs()).map_err(said(Stage::Compare))?;
        let found = self.as_many(case, found, expected.len());
        if case.format == Format::Onnx && self.draws(case) {
            // Whoever stored the outputs drew other numbers: of these, types and sizes are compared.
            for (expected, found) in expected.iter_mut().zip(&found) {
                if expected.dtype() == found.dtype() && expected.sizes() == found.sizes() {
                    expected.clone_from(found);
                }
            }
        }
        let reference = terms.reference.as_ref().map(|reference| file::read(&reference.path)).transpose();
        let reference = reference.map_err(said(Stage::Compare))?;
        let exact = reference.as_deref().zip(terms.reference.as_ref());
        let exact = exact.map(|(outputs, Reference { times, .. })| compare::Exact { outputs, times: *times });
        let weights = self.weights(case);
        if weights != WeightsType::Own {
            return of_rounded_weights(weights, &found, &expected, outcome)
                .map_err(|message| (Stage::Compare, message));
        }
        let (distance, result) = compare::all(&found, &expected, &terms.tolerances, exact);
        outcome.distance = Some(distance);
        result.map_err(|message| {
            let first = self.bisect.then(|| self.first_difference(case, &terms.tolerances));
            let first = first.map(|first| first.unwrap_or_else(|failure| format!("{failure:?}")));
            (Stage::Compare, first.map_or(message.clone(), |first| format!("{message}\n{first}")))
        })
    }

    fn in_interpreter(
        &self,
        case: &Case,
        outcome: &mut Outcome,
        folder: &Path,
    ) -> Result<Vec<DynTensor>, Stopped> {
        outcome.stage = Stage::Import;
        let outputs = folder.join("outputs.safetensors");
        let mut command = self.run_case(case, &outputs)?;
        command.arg("--model").arg(case.model());
        let shapes = case.shapes().map_err(said(Stage::Import))?;
        for (name, shape) in &shapes {
            command.args(["--shape", &format!("{name}={shape}")]);
        }
        let stage = if self.stage_of_rejection(case) == Stage::Lower { Stage::Run } else { Stage::Import };
        self.run(command, outcome, folder).map_err(|(_, message)| (stage, message))?;
        file::read(&outputs).map_err(said(Stage::Compare))
    }

    fn as_library(
        &self,
        case: &Case,
        outcome: &mut Outcome,
        folder: &Path,
    ) -> Result<Vec<DynTensor>, Stopped> {
        let single = self.build(case, LinkKind::Dylib, outcome)?;
        let outputs = folder.join("outputs.safetensors");
        let mut command = self.run_case(case, &outputs)?;
        let library = single.built.library().map(|library| library.path.clone()).unwrap_or_default();
        command.arg("--library").arg(library).arg("--symbol").arg(&single.built.symbol);
        command.args(["--device", &self.device.to_string()]);
        if let Some(weights) = single.weights() {
            command.arg("--weights").arg(weights);
        }
        self.run(command, outcome, folder)?;
        file::read(&outputs).map_err(said(Stage::Compare))
    }

    fn as_program(
        &self,
        program: &Program,
        case: &Case,
        outcome: &mut Outcome,
        folder: &Path,
    ) -> Result<Vec<DynTensor>, Stopped> {
        let single = self.build(case, LinkKind::Static, outcome)?;
        let harness = self.session.target().platform().executable("harness");
        let [path, inputs, outputs] = [harness.as_str(), "inputs", "outputs"].map(|name| folder.join(name));
        let made = self.session.harness(&single.built, program.linking, &path);
        made.map_err(|error| (Stage::Compile, error.to_string()))?;
        let given = file::read(&case.inputs()).map_err(said(Stage::Run))?;
        flat::write(&inputs, &given).map_err(Failure::from).map_err(said(Stage::Run))?;
        let mut words = program.runner.iter().cloned().chain([path.into_os_string()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).arg(inputs).arg(&outputs);
        command.args([self.threads, program.callers].map(|number| number.to_string()));
        command.envs(SANITIZER_OPTIONS);
        self.run(command, outcome, folder)?;
        flat::read(&outputs).map_err(Failure::from).map_err(said(Stage::Compare))
    }

    /// This program as the process that runs a case.
    fn run_case(&self, case: &Case, outputs: &Path) -> Result<Command, Stopped> {
        let program = std::env::current_exe();
        let program = program.map_err(|error| (Stage::Run, format!("cannot find this program: {error}")))?;
        let mut command = Command::new(program);
        command.arg("__run-case").arg("--inputs").arg(case.inputs()).arg("--outputs").arg(outputs);
        command.args(["--threads", &self.threads.to_string()]);
        Ok(command)
    }

    fn run(&self, command: Command, outcome: &mut Outcome, folder: &Path) -> Result<(), Stopped> {
        outcome.stage = Stage::Run;
        let micros = child::run(command, folder, self.timeout);
        outcome.run_us = Some(micros.map_err(|message| (Stage::Run, message))?);
        Ok(())
    }

    pub(super) fn build(
        &self,
        case: &Case,
        link: LinkKind,
        outcome: &mut Outcome,
    ) -> Result<single::Single, Stopped> {
        outcome.stage = Stage::Import;
        let shapes = case.shapes().map_err(said(Stage::Import))?;
        outcome.stage = Stage::Lower;
        let levels = self.levels.clone();
        let numerics = Numerics { weights: self.weights(case), ..self.numerics.clone() };
        let built = single::model(&case.model(), self.session.environment()).and_then(|model| {
            let model = Model { shapes, ..model };
            single::build(&self.session, &model, link, self.device, levels, numerics, &Silent)
        });
        let single = built.map_err(|error| {
            let stage = if let Error::Unreadable { .. } = &error {
                Stage::Import
            } else if let Error::Model { .. } = &error {
                self.stage_of_rejection(case)
            } else {
                Stage::Compile
            };
            (stage, error.to_string())
        })?;
        outcome.compile_ms = Some(single.built.compile_ms);
        Ok(single)
    }

    /// What the weights of a case are rounded to.
    fn weights(&self, case: &Case) -> WeightsType {
        if self.numerics.weights == WeightsType::Own { case.weights } else { self.numerics.weights }
    }

    /// Which part of the compiler refuses a model: the one that reads it, or one behind it.
    fn stage_of_rejection(&self, case: &Case) -> Stage {
        if self.import(case).is_some() { Stage::Lower } else { Stage::Import }
    }

    pub(super) fn import(&self, case: &Case) -> Option<Graph> {
        let operators = single::read_operators(self.session.environment()).ok()?;
        let file = ModelFile { shapes: case.shapes().ok()?, ..memory::model_file(&case.model()).ok()? };
        frontend::read("case", file, &operators).ok()
    }

    /// Whether the model of a case draws random numbers.
    fn draws(&self, case: &Case) -> bool {
        let graph = self.import(case);
        graph.is_some_and(|graph| graph.inputs.iter().any(|input| input.role == InputRole::Generator))
    }

    /// The outputs that a case has expectations of. What a program makes of its inputs comes after the user's outputs, and
    /// cases may leave it out.
    fn as_many(&self, case: &Case, mut found: Vec<DynTensor>, expected: usize) -> Vec<DynTensor> {
        if found.len() > expected {
            let graph = self.import(case);
            let users = graph
                .map(|graph| graph.outputs.iter().filter(|output| output.role == OutputRole::User).count());
            if users.is_some_and(|users| expected >= users) {
                found.truncate(expected);
            }
        }
        found
    }
}

/// A failure as the reason why a case stopped.
fn said(stage: Stage) -> impl Fn(Failure) -> Stopped {
    move |failure| (stage, failure.message().unwrap_or_default().to_owned())
}

/// Compares results of weights that were rounded when the model was built: how far they are is told, and it is not more than rounding
/// explains.
fn of_rounded_weights(
    weights: WeightsType,
    found: &[DynTensor],
    expected: &[DynTensor],
    outcome: &mut Outcome,
) -> Result<(), String> {
    let (word, most) = match weights {
        WeightsType::Own => return Ok(()),
        WeightsType::Int8 => ("int8", 0.05),
        WeightsType::Int4 => ("int4", 0.5),
        WeightsType::Bf16 => ("bf16", 0.02),
    };
    let any = compare::Tolerance { atol: f64::INFINITY, rtol: 0.0 };
    let (distance, result) = compare::all(found, expected, &compare::Tolerances::Same(any), None);
    outcome.distance = Some(distance);
    result?;
    let apart = compare::apart(found, expected);
    let message = format!(
        "weights as {word}: the error is {:.3} % of the outputs (root mean square), {:.3e} at most",
        apart * 100.0,
        distance.max_abs
    );
    if apart > most {
        return Err(format!("{message}; {:.0} % are what rounding explains", most * 100.0));
    }
    outcome.message = message;
    Ok(())
}
