//! The bench of this machine: libraries are made by a session, with the cache and under the jobserver, and run in a worker
//! process that is started again when a candidate has ended it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aoti_build::{
    Choices, Error as BuildError, Job, Layout, LinkKind, Model, Progress, Session, Silent, Weights,
};
use aoti_compiler::compile::{self, Options};
use aoti_compiler::cost::Rates;
use aoti_compiler::frontend::ModelFile;
use aoti_compiler::interpret;
use aoti_compiler::schedule::Records;
use aoti_compiler::target::Tf32;
use aoti_runtime::{DType, Device, DynTensor, Library, ModelInfo};
use aoti_toolchain::{TemporaryFolder, temporary_folder};

use super::bench::{Bench, Fault, LibraryId, Sample};
use super::groups::{Assignment, Group};
use super::worker::{Request, Response};
use super::worker_client::{Setting, WorkerClient};
use crate::error::Error;
use crate::tensors::{complex, flat};

/// How long a candidate may take beyond what the first ways take, and how many times as long.
const LIMIT: Duration = Duration::from_secs(5);
const TIMES: u32 = 50;
/// How long the first ways may take.
const FIRST_LIMIT: Duration = Duration::from_secs(300);
/// Operations of a run up to which the evaluator, which is slow, is asked too.
const EVALUATED: f64 = 2e7;

/// A library that was made.
struct Made {
    assignment: Assignment,
    path: PathBuf,
    symbol: String,
    /// None where the model has none.
    weights: Option<PathBuf>,
}

impl Made {
    fn open(&self) -> Result<Library, Error> {
        // SAFETY: this process has just built the library, in a folder of its own.
        Ok(unsafe { Library::open(&self.path, &self.symbol) }?)
    }
}

/// The bench of this machine, for one model.
pub struct Machine<'a> {
    session: &'a Session,
    /// As it is built for this machine alone.
    model: Model,
    of: Comparison<'a>,
    setting: Setting,
    made: Vec<Made>,
    client: Option<WorkerClient>,
    opened: BTreeSet<LibraryId>,
    limit: Duration,
    /// How long the first library took.
    making: Duration,
    folder: TemporaryFolder,
}

/// What is compared of a model, on what, and what its libraries have in common.
pub struct Comparison<'a> {
    /// The groups of kernels that have alternatives.
    pub groups: &'a [Group],
    /// What is decided about everything else.
    pub decided: &'a Records,
    /// What this machine reaches, where that is known.
    pub rates: Option<&'a Rates>,
    /// Where libraries run.
    pub device: Device,
    /// Threads of a run.
    pub threads: u16,
    /// Hears of builds.
    pub progress: &'a dyn Progress,
    /// Where files of weights lie, for all benches of one model.
    pub weights: &'a Path,
}

/// The inputs and outputs of a model, by its library.
///
/// # Errors
/// When the model does not compile.
pub fn signature(session: &Session, model: &Model, weights: &Path) -> Result<ModelInfo, Error> {
    let (groups, decided, rates, device, threads) = (&[][..], &Records::none(), None, Device::Cpu, 1);
    let comparison = Comparison { groups, decided, rates, device, threads, progress: &Silent, weights };
    Machine::new(session, model, comparison)?.first()
}

impl<'a> Machine<'a> {
    /// A bench for a model, which makes nothing yet.
    ///
    /// # Errors
    /// When there is no folder for temporary files.
    pub fn new(session: &'a Session, model: &Model, of: Comparison<'a>) -> Result<Machine<'a>, Error> {
        let folder = temporary_folder("tune", session.environment());
        let folder =
            folder.map_err(|error| Error::Machine(format!("cannot make a temporary folder: {error}")))?;
        let inputs = folder.path().join("inputs");
        let (device, threads) = (of.device, of.threads);
        let tf32 = device != Device::Cpu && model.tf32.unwrap_or_default() != Tf32::NONE;
        let setting =
            Setting { folder: folder.path().to_owned(), inputs, expected: None, device, threads, tf32 };
        // Most candidates have the same weights: they lie in one file, which no library is linked with.
        let model = Model { link: LinkKind::Dylib, weights: Weights::Sidecar, ..model.clone() };
        let (made, client, opened) = (Vec::new(), None, BTreeSet::new());
        Ok(Machine {
            session,
            model,
            of,
            setting,
            made,
            client,
            opened,
            limit: FIRST_LIMIT,
            making: Duration::ZERO,
            folder,
        })
    }

    /// Makes the first library, and gives the inputs that it takes.
    ///
    /// # Errors
    /// When the model does not compile.
    pub fn first(&mut self) -> Result<ModelInfo, Error> {
        let (first, begun) = (Assignment::first(self.of.groups), Instant::now());
        let id = self.make(&[first])?.remove(0).map_err(|fault| Error::Machine(fault.reason))?;
        self.making = begun.elapsed();
        Ok(self.made[id.0].open()?.info()?)
    }

    /// Takes inputs for all libraries, of which the first has been made.
    ///
    /// # Errors
    /// When they do not fit.
    pub fn prepare(&mut self, inputs: &[DynTensor]) -> Result<(), Error> {
        flat::write(&self.setting.inputs, inputs)?;
        if self.setting.device == Device::Cpu
            && let Some(expected) = self.evaluated(inputs)?
        {
            let path = self.folder.path().join("expected.safetensors");
            flat::write(&path, &expected)?;
            self.setting.expected = Some(path);
        }
        Ok(())
    }

    /// What the evaluator gives for the first ways, where that does not take long and it knows all that the model does.
    fn evaluated(&self, inputs: &[DynTensor]) -> Result<Option<Vec<DynTensor>>, Error> {
        let options = Options::new(&*self.model.name, &self.model.levels)
            .with_names(self.model.names.clone())
            .with_measurements(self.of.decided.clone(), self.of.rates.cloned())
            .with_operators(self.model.compiled_operators()?);
        let refuse = |error: aoti_compiler::diagnostic::Diagnostics| Error::User(error.to_string());
        let sizes: Vec<Vec<i64>> =
            inputs.iter().map(|input| input.sizes().iter().map(|size| *size as i64).collect()).collect();
        let work = compile::kernel_work(self.file()?, &options, &sizes).map_err(refuse)?;
        let operations: Option<f64> = work.iter().map(|(_, work)| work.map(|work| work.operations)).sum();
        if operations.is_none_or(|operations| operations > EVALUATED) {
            return Ok(None);
        }
        let into = |tensor: &DynTensor| {
            let tensor = complex::to_parts(tensor).ok()?;
            let dtype = aoti_compiler::dtype::DType::from_name(tensor.dtype().name())?;
            let bytes = bytes::Bytes::copy_from_slice(tensor.bytes());
            interpret::Tensor::new(dtype, tensor.sizes().to_vec(), bytes).ok()
        };
        let Some(inputs) = inputs.iter().map(into).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let Ok(outputs) = compile::evaluate(self.file()?, &options, &inputs).map_err(refuse)? else {
            return Ok(None);
        };
        let back = |tensor: &interpret::Tensor| {
            let dtype = DType::from_name(tensor.dtype().name())?;
            DynTensor::from_bytes(dtype, tensor.sizes(), tensor.bytes()).ok()
        };
        Ok(outputs.iter().map(back).collect())
    }

    /// The model's files.
    fn file(&self) -> Result<ModelFile, Error> {
        let path = &self.model.path;
        let file = aoti_build::model_file(path)
            .map_err(|error| Error::User(format!("cannot read `{}`: {error}", path.display())))?;
        Ok(ModelFile { shapes: self.model.shapes.clone(), ..file })
    }

    fn job(&self, number: usize, assignment: &Assignment) -> Job {
        let records = assignment.records(self.of.groups, self.of.decided.clone());
        let choices = Choices::Given { records, rates: self.of.rates.cloned() };
        let model = Model { choices, ..self.model.clone() };
        let folder = self.folder.path();
        let layout = Layout::flat(folder.join(number.to_string())).with_weights(self.of.weights);
        Job { model, layout, incremental: false }
    }

    /// Asks the worker, started and with these libraries open.
    fn ask(
        &mut self,
        libraries: &[LibraryId],
        request: &Request,
        limit: Duration,
    ) -> Result<Result<Response, Fault>, Error> {
        if self.client.is_none() {
            self.opened.clear();
            self.client = Some(WorkerClient::start(&self.setting)?);
            if let Err(fault) = self.open_first().and_then(|()| self.begin()) {
                self.client = None;
                return Err(Error::User(format!(
                    "without any record the model cannot be run: {}",
                    fault.reason
                )));
            }
        }
        for library in libraries {
            match self.open(*library) {
                Ok(true) => {}
                Ok(false) if can_make_room(&self.opened, libraries) => {
                    // A process ends with all that it has open: the next one opens only what is asked for.
                    self.client = None;
                    return self.ask(libraries, request, limit);
                }
                Ok(false) => {
                    self.client = None;
                    let reason = "there is no memory for it beside the others".to_owned();
                    return Ok(Err(Fault { reason, kernel: None, library: Some(*library), is_hang: false }));
                }
                Err(fault) => {
                    self.client = None;
                    return Ok(Err(fault));
                }
            }
        }
        let response = self.client.as_mut().expect("it was started").ask(request, limit);
        if response.is_err() {
            self.client = None;
        }
        Ok(response.map_err(|fault| self.placed(fault)))
    }

    /// A fault; of a library that has other kernels, their positions say nothing.
    fn placed(&self, fault: Fault) -> Fault {
        let is_known = fault.library.is_none_or(|library| self.has_same_kernels(library));
        Fault { kernel: fault.kernel.filter(|_| is_known), ..fault }
    }

    /// Whether the kernels of a library are those of the first.
    fn has_same_kernels(&self, library: LibraryId) -> bool {
        let pairs = self.made[library.0].assignment.pairs();
        !pairs.iter().any(|(group, _)| self.of.groups[*group].makes_kernels())
    }

    fn open_first(&mut self) -> Result<(), Fault> {
        let first = LibraryId(0);
        let reason = "there is no memory for it".to_owned();
        let full = Fault { reason, kernel: None, library: Some(first), is_hang: false };
        if self.open(first)? { Ok(()) } else { Err(full) }
    }

    /// Opens a library, which stays open; says whether there is memory for it.
    fn open(&mut self, library: LibraryId) -> Result<bool, Fault> {
        if self.opened.contains(&library) {
            return Ok(true);
        }
        let made = &self.made[library.0];
        let same_kernels = self.has_same_kernels(library);
        let request = Request::Open {
            id: library.0,
            library: made.path.clone(),
            symbol: made.symbol.clone(),
            weights: made.weights.clone(),
            same_kernels,
        };
        let limit = FIRST_LIMIT;
        let response = self.client.as_mut().expect("it was started").ask(&request, limit)?;
        let is_open = !matches!(response, Response::Full);
        if is_open {
            self.opened.insert(library);
        }
        Ok(is_open)
    }

    /// Has the first library say what is expected, and takes the time of that.
    fn begin(&mut self) -> Result<(), Fault> {
        let begun = Instant::now();
        let request = Request::Check { id: 0 };
        let response = self.client.as_mut().expect("it was started").ask(&request, FIRST_LIMIT)?;
        self.limit = LIMIT + begun.elapsed() * TIMES;
        match response {
            Response::Wrong { reason, kernel } => {
                Err(Fault { reason, kernel, library: Some(LibraryId(0)), is_hang: false })
            }
            Response::Done | Response::Times(_) | Response::Full => Ok(()),
        }
    }
}

/// Whether there is something open that is not asked for. The first library is always.
fn can_make_room(opened: &BTreeSet<LibraryId>, asked: &[LibraryId]) -> bool {
    opened.iter().any(|own| own.0 > 0 && !asked.contains(own))
}

impl Bench for Machine<'_> {
    fn times_kernels(&self) -> bool {
        self.setting.device == Device::Cpu
    }

    fn at_once(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    fn takes_to_make(&self) -> Duration {
        self.making
    }

    fn make(&mut self, assignments: &[Assignment]) -> Result<Vec<Result<LibraryId, Fault>>, Error> {
        let known = |made: &[Made], assignment: &Assignment| {
            made.iter().position(|made| made.assignment == *assignment).map(LibraryId)
        };
        let mut wanted: Vec<&Assignment> = Vec::new();
        for assignment in assignments {
            if known(&self.made, assignment).is_none() && !wanted.contains(&assignment) {
                wanted.push(assignment);
            }
        }
        let number = self.made.len();
        let jobs: Vec<Job> = wanted.iter().enumerate().map(|(k, own)| self.job(number + k, own)).collect();
        let mut faults: Vec<(&Assignment, Fault)> = Vec::new();
        for (assignment, built) in wanted.into_iter().zip(self.session.build(&jobs, self.of.progress)) {
            match built {
                Ok(built) => {
                    let path = built.library().map(|library| library.path.clone()).unwrap_or_default();
                    let weights = built.artefact("weights").filter(|weights| weights.bytes > 0);
                    let weights = weights.map(|weights| weights.path.clone());
                    let assignment = assignment.clone();
                    self.made.push(Made { assignment, path, symbol: built.symbol, weights });
                }
                Err(
                    error @ (BuildError::Model { .. }
                    | BuildError::Unreadable { .. }
                    | BuildError::Manifest(_)),
                ) => {
                    return Err(error.into());
                }
                // What one candidate's source does to a compiler is that candidate's fault.
                Err(error) if number > 0 => {
                    let reason = error.to_string().lines().next().unwrap_or_default().to_owned();
                    faults.push((assignment, Fault { reason, kernel: None, library: None, is_hang: false }));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let result = |assignment: &Assignment| match known(&self.made, assignment) {
            Some(id) => Ok(id),
            None => {
                let fault = faults.iter().find(|(own, _)| *own == assignment).map(|(_, fault)| fault.clone());
                Err(fault.expect("what was wanted was made or failed"))
            }
        };
        Ok(assignments.iter().map(result).collect())
    }

    fn check(&mut self, library: LibraryId) -> Result<Result<(), Fault>, Error> {
        let response = self.ask(&[library], &Request::Check { id: library.0 }, self.limit)?;
        Ok(match response {
            Ok(Response::Wrong { reason, kernel }) => {
                // Memory that it wrote to may be another's.
                self.client = None;
                Err(Fault { reason, kernel, library: Some(library), is_hang: false })
            }
            Ok(Response::Done | Response::Times(_) | Response::Full) => Ok(()),
            Err(fault) => Err(fault),
        })
    }

    fn time(
        &mut self,
        libraries: &[LibraryId],
        rounds: usize,
    ) -> Result<Result<Vec<Vec<Sample>>, Fault>, Error> {
        let request = Request::Time { ids: libraries.iter().map(|id| id.0).collect(), rounds };
        let runs = u32::try_from(libraries.len() * rounds).unwrap_or(u32::MAX);
        let limit =
            self.limit.saturating_add((self.limit.saturating_sub(LIMIT) / TIMES).saturating_mul(runs));
        Ok(match self.ask(libraries, &request, limit)? {
            Ok(Response::Times(times)) => Ok(times),
            Ok(Response::Done | Response::Wrong { .. } | Response::Full) => {
                let (reason, library) = ("the process gave no times".to_owned(), libraries.first().copied());
                Err(Fault { reason, kernel: None, library, is_hang: false })
            }
            Err(fault) => Err(fault),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_asked_for_makes_room() {
        let ids = |ids: &[usize]| ids.iter().copied().map(LibraryId).collect::<Vec<_>>();
        let can = |opened: &[usize], asked: &[usize]| {
            can_make_room(&ids(opened).into_iter().collect(), &ids(asked))
        };
        assert!(can(&[0, 1, 2], &[3]) && can(&[0, 1, 2], &[1, 3]));
        assert!(!can(&[0], &[1]) && !can(&[0, 1, 2], &[1, 2, 3]) && !can(&[], &[1]));
    }
}
