//! The process in which candidates run, so that a crash, a hang or damaged memory is its own affair. Reads requests from
//! stdin, one JSON object a line, and answers each with one on stdout.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use aoti_runtime::{
    AnyView, DType, Device, DeviceTensor, DynTensor, ErrorCode, KernelEvent, KernelPhase, Library,
    LoadOptions, Model, Prepared, Stream, ThreadPool, Weights, Workspace,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::bench::{LibraryId, Sample};
use super::crash_marker::CrashMarker;
use crate::error::Error;
use crate::peaks::fork_join;
use crate::system;
use crate::tensors::compare::{self, Tolerance, Tolerances};
use crate::tensors::{flat, room};

/// Bytes of kernels' outputs that are kept for comparison; of those beyond, the model's own outputs tell.
const MOST_KEPT: usize = 2 << 30;
/// What memory is filled with before a run that is checked: no number that a model would give.
const FILLED: u8 = 0xC7;
/// Runs back to back on a device whose time is taken as one.
const STREAK: usize = 20;
/// Runs of a library on a processor that are timed in a row, behind one that is not.
const IN_A_ROW: usize = 2;

/// The hidden command by which a program serves as a worker: it does nothing but [`run`].
pub const COMMAND: &str = "__candidates";

/// What a worker is told first.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct Settings {
    /// Inputs of all candidates.
    pub(crate) inputs: PathBuf,
    /// What the evaluator gives, where the model is small enough for it.
    pub(crate) expected: Option<PathBuf>,
    /// Where it says what runs.
    pub(crate) marker: PathBuf,
    /// The device, as on command lines.
    pub(crate) device: String,
    pub(crate) threads: u16,
    /// Whether products of `f32` may be rounded as TF32.
    pub(crate) tf32: bool,
}

/// What is asked of the process.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Request {
    /// Load a library, whose kernels are those of the first or others.
    Open { id: usize, library: PathBuf, symbol: String, weights: Option<PathBuf>, same_kernels: bool },
    /// Run a library twice and compare with what the first one gave.
    Check { id: usize },
    /// Run libraries by turns.
    Time { ids: Vec<usize>, rounds: usize },
}

/// What it says.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Response {
    /// It is done.
    Done,
    /// There is no memory for one more library.
    Full,
    /// A library gives something else.
    Wrong { reason: String, kernel: Option<usize> },
    /// For each library its runs.
    Times(Vec<Vec<Sample>>),
}

/// Serves the requests on stdin until there are no more.
///
/// # Errors
/// [`Error::Usage`] for what is no request, and what goes wrong with files and libraries.
pub fn run() -> Result<(), Error> {
    system::end_with_parent();
    let mut lines = std::io::stdin().lock().lines();
    let Some(first) = lines.next() else { return Ok(()) };
    let settings: Settings = request(first)?;
    let device = settings.device.parse();
    let device = device.map_err(|_| Error::Usage(format!("`{}` is no device", settings.device)))?;
    let inputs = flat::read(&settings.inputs)?;
    let mut worker = Worker {
        device,
        inputs: &inputs,
        pool: ThreadPool::new(settings.threads.into()),
        marker: CrashMarker::open(&settings.marker)?,
        loaded: BTreeMap::new(),
        weights: BTreeMap::new(),
        expected: Expected::default(),
        least: inputs
            .iter()
            .map(|input| rounding(input.dtype()))
            .fold(if settings.tf32 { TF32 } else { 0.0 }, f64::max),
        reference: settings.expected.as_deref().map(flat::read).transpose()?,
    };
    for line in lines {
        let response = worker.serve(&request(line)?)?;
        let mut text = serde_json::to_string(&response).expect("responses have text keys only");
        text.push('\n');
        let mut stdout = std::io::stdout().lock();
        if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err() {
            // Whoever asked has gone.
            return Ok(());
        }
    }
    Ok(())
}

/// What a line says.
fn request<T: DeserializeOwned>(line: std::io::Result<String>) -> Result<T, Error> {
    let line = line.map_err(|error| Error::Machine(format!("the requests cannot be read: {error}")))?;
    serde_json::from_str(&line).map_err(|error| Error::Usage(format!("this is no request: {error}")))
}

/// What the first library gives.
#[derive(Default)]
struct Expected {
    /// What kernels write, by position and by how many times the kernel has run before.
    kernels: BTreeMap<(usize, usize), Vec<DynTensor>>,
    outputs: Option<Vec<DynTensor>>,
    bytes: usize,
}

/// A library that is loaded. Its model lives as long as the process: what lies on a device refers to it.
struct Loaded {
    model: &'static Model,
    outputs: Vec<DynTensor>,
    workspace: Workspace,
    on_device: Option<OnDevice>,
    /// Whether each kernel writes what the first library's does; else the model's own outputs tell.
    same_kernels: bool,
}

/// What runs on a device go over, without copies between.
struct OnDevice {
    inputs: Vec<DeviceTensor<'static>>,
    outputs: Vec<DeviceTensor<'static>>,
    runs: Vec<Prepared<'static>>,
}

struct Worker<'a> {
    device: Device,
    inputs: &'a [DynTensor],
    pool: ThreadPool,
    marker: CrashMarker,
    loaded: BTreeMap<usize, Loaded>,
    /// Files of weights by their paths: most libraries have the same, which lie in memory once.
    weights: BTreeMap<PathBuf, Weights>,
    expected: Expected,
    /// What even the first kernel may be off by.
    least: f64,
    /// What the evaluator gives.
    reference: Option<Vec<DynTensor>>,
}

impl Worker<'_> {
    fn serve(&mut self, request: &Request) -> Result<Response, Error> {
        match request {
            Request::Open { id, library, symbol, weights, same_kernels } => {
                self.marker.enter(LibraryId(*id), None);
                // SAFETY: the process that asks has built the library, in a folder of its own.
                let library = unsafe { Library::open(library, symbol) }?;
                let weights =
                    weights.as_deref().map(|path| self.mapped(path)).transpose()?.unwrap_or_default();
                let options = LoadOptions { weights, device: self.device, ..LoadOptions::default() };
                let model = match library.load(options) {
                    Err(error) if error.code() == ErrorCode::Memory => return Ok(Response::Full),
                    model => model?,
                };
                let model: &'static Model = Box::leak(Box::new(model));
                let outputs =
                    model.info().outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
                let (workspace, same_kernels) = (Workspace::new(), *same_kernels);
                let loaded = Loaded { model, outputs, workspace, on_device: None, same_kernels };
                self.loaded.insert(*id, loaded);
                Ok(Response::Done)
            }
            Request::Check { id } => {
                for _ in 0..2 {
                    if let Some((reason, kernel)) = self.check(*id)? {
                        return Ok(Response::Wrong { reason, kernel });
                    }
                }
                Ok(Response::Done)
            }
            Request::Time { ids, rounds } => {
                let mut times: Vec<Vec<Sample>> = vec![Vec::new(); ids.len()];
                // What is timed on a GPU is a streak by itself.
                let (unmeasured, in_a_row) = if self.device.is_cpu() { (1, IN_A_ROW) } else { (0, 1) };
                for round in 0..rounds.div_ceil(in_a_row) {
                    for position in 0..ids.len() {
                        // Each follows each other one, not always the same.
                        let position = (position + round) % ids.len();
                        // What caches hold, and what threads wait for, is as in a program that runs one library.
                        for _ in 0..unmeasured {
                            self.time(ids[position])?;
                        }
                        let fork_join = fork_join(&self.pool);
                        for _ in 0..in_a_row.min(rounds - round * in_a_row) {
                            let (whole, kernels) = self.time(ids[position])?;
                            times[position].push(Sample { whole, kernels, fork_join });
                        }
                    }
                }
                Ok(Response::Times(times))
            }
        }
    }

    /// A file of weights, mapped once.
    fn mapped(&mut self, path: &Path) -> Result<Weights, Error> {
        if let Some(known) = self.weights.get(path) {
            return Ok(known.clone());
        }
        // SAFETY: the process that asks has written the file in a folder of its own, and never changes it.
        let weights = unsafe { Weights::map(path) }?;
        self.weights.insert(path.to_owned(), weights.clone());
        Ok(weights)
    }

    fn loaded(&mut self, id: usize) -> Result<&mut Loaded, Error> {
        self.loaded.get_mut(&id).ok_or_else(|| Error::Usage(format!("library {id} was not opened")))
    }

    /// One run, watched. What is wrong first, with the kernel that wrote it.
    fn check(&mut self, id: usize) -> Result<Option<(String, Option<usize>)>, Error> {
        let is_first = self.expected.outputs.is_none();
        let Worker { inputs, pool, marker, loaded, expected, least, reference, .. } = self;
        let loaded =
            loaded.get_mut(&id).ok_or_else(|| Error::Usage(format!("library {id} was not opened")))?;
        let views: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
        let mut state = if loaded.model.info().state_bytes > 0 { Some(loaded.model.state()?) } else { None };
        if loaded.workspace.bytes() == 0 {
            // Then there is memory to fill.
            let mut enter = |event: KernelEvent<'_>| marker.enter(LibraryId(id), Some(event.index));
            let mut targets: Vec<&mut DynTensor> = loaded.outputs.iter_mut().collect();
            let mut state =
                if loaded.model.info().state_bytes > 0 { Some(loaded.model.state()?) } else { None };
            let workspace = &mut loaded.workspace;
            loaded.model.run_watched(&views, &mut targets, state.as_mut(), workspace, pool, &mut enter)?;
        }
        // What a kernel leaves as an earlier run wrote it must show; what it is not to write is the same in all libraries.
        loaded.workspace.fill(FILLED);
        for output in &mut loaded.outputs {
            let bytes = vec![1; output.bytes().len()];
            *output = DynTensor::from_bytes(output.dtype(), output.sizes(), &bytes)?;
        }
        let mut targets: Vec<&mut DynTensor> = loaded.outputs.iter_mut().collect();
        let (mut wrong, same_kernels) = (None, loaded.same_kernels);
        let mut calls = vec![0; loaded.model.info().kernels.len()];
        // What an earlier kernel rounded is off in what the later ones make of it too.
        let mut coarsest = *least;
        let mut watch = |event: KernelEvent<'_>| match event.phase {
            KernelPhase::Begin => marker.enter(LibraryId(id), Some(event.index)),
            KernelPhase::End(written) => {
                let call = (event.index, calls[event.index]);
                calls[event.index] += 1;
                coarsest = written.iter().map(|view| rounding(view.dtype())).fold(coarsest, f64::max);
                if is_first && expected.bytes < MOST_KEPT {
                    let kept: Vec<DynTensor> =
                        written.iter().filter_map(|view| view.to_tensor().ok()).collect();
                    expected.bytes += kept.iter().map(|tensor| tensor.bytes().len()).sum::<usize>();
                    expected.kernels.insert(call, kept);
                } else if same_kernels && let (None, Some(wanted)) = (&wrong, expected.kernels.get(&call)) {
                    let found: Vec<DynTensor> =
                        written.iter().filter_map(|view| view.to_tensor().ok()).collect();
                    let difference = differs(&found, wanted, coarsest);
                    wrong = difference
                        .map(|text| (format!("kernel `{}`: {text}", event.kernel.name), Some(event.index)));
                }
            }
        };
        loaded.model.run_watched(
            &views,
            &mut targets,
            state.as_mut(),
            &mut loaded.workspace,
            pool,
            &mut watch,
        )?;
        marker.enter(LibraryId(id), None);
        let differs = |wanted: &[DynTensor]| differs(&loaded.outputs, wanted, coarsest);
        if is_first {
            expected.outputs = Some(loaded.outputs.clone());
            let difference = reference.as_deref().and_then(differs);
            return Ok(difference.map(|text| (format!("the evaluator gives something else: {text}"), None)));
        }
        let wanted = expected.outputs.as_deref().unwrap_or_default();
        Ok(wrong.or_else(|| differs(wanted).map(|text| (text, None))))
    }

    /// The time of a run, and of each kernel where there is a clock between them.
    fn time(&mut self, id: usize) -> Result<(f64, Vec<f64>), Error> {
        self.marker.enter(LibraryId(id), None);
        if self.device.is_cpu() {
            self.time_kernels(id)
        } else {
            self.time_streak(id).map(|micros| (micros, Vec::new()))
        }
    }

    fn time_kernels(&mut self, id: usize) -> Result<(f64, Vec<f64>), Error> {
        let Worker { inputs, pool, marker, loaded, .. } = self;
        let loaded =
            loaded.get_mut(&id).ok_or_else(|| Error::Usage(format!("library {id} was not opened")))?;
        let views: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
        let mut state = if loaded.model.info().state_bytes > 0 { Some(loaded.model.state()?) } else { None };
        let mut targets: Vec<&mut DynTensor> = loaded.outputs.iter_mut().collect();
        let mut kernels = vec![0.0; loaded.model.info().kernels.len()];
        let begun = Instant::now();
        let mut since = begun;
        let mut watch = |event: KernelEvent<'_>| match event.phase {
            KernelPhase::Begin => {
                marker.enter(LibraryId(id), Some(event.index));
                since = Instant::now();
            }
            KernelPhase::End(_) => kernels[event.index] += since.elapsed().as_nanos() as f64 / 1e3,
        };
        loaded.model.run_watched(
            &views,
            &mut targets,
            state.as_mut(),
            &mut loaded.workspace,
            pool,
            &mut watch,
        )?;
        Ok((begun.elapsed().as_nanos() as f64 / 1e3, kernels))
    }

    fn time_streak(&mut self, id: usize) -> Result<f64, Error> {
        let inputs = self.inputs;
        let loaded = self.loaded(id)?;
        if loaded.on_device.is_none() {
            loaded.on_device = Some(OnDevice::new(loaded.model, inputs)?);
        }
        let Loaded { model, on_device, .. } = loaded;
        let OnDevice { inputs, outputs, runs } = on_device.as_mut().expect("it was just made");
        let mut state = if model.info().state_bytes > 0 { Some(model.state()?) } else { None };
        let views: Vec<AnyView<'_>> = inputs.iter().map(DeviceTensor::view).collect();
        let begun = Instant::now();
        Prepared::run_back_to_back(runs, &views, outputs, state.as_mut(), Stream::default(), STREAK)?;
        Ok(begun.elapsed().as_nanos() as f64 / 1e3 / STREAK as f64)
    }
}

impl OnDevice {
    fn new(model: &'static Model, inputs: &[DynTensor]) -> Result<OnDevice, Error> {
        let here: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
        let sizes = room::for_outputs(model, inputs)?;
        let outputs = model.info().outputs.iter().zip(&sizes);
        let outputs = outputs.map(|(output, sizes)| model.device_tensor(output.dtype, sizes));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        let runs = (0..4).map(|_| model.prepare(&here, 1)).collect::<Result<Vec<_>, _>>()?;
        let inputs = inputs.iter().map(|input| model.upload(input)).collect::<Result<Vec<_>, _>>()?;
        Ok(OnDevice { inputs, outputs, runs })
    }
}

/// How tensors differ from what they should be, beyond what another order of sums makes of them where something before
/// them is rounded to this part.
fn differs(found: &[DynTensor], wanted: &[DynTensor], coarsest: f64) -> Option<String> {
    if found.len() != wanted.len() {
        return Some(format!("{} tensors instead of {}", found.len(), wanted.len()));
    }
    found.iter().zip(wanted).find_map(|(found, wanted)| {
        // To find the largest element of all takes longer than to see that nothing differs.
        if (found.dtype(), found.sizes(), found.bytes()) == (wanted.dtype(), wanted.sizes(), wanted.bytes()) {
            return None;
        }
        let part = rounding(wanted.dtype()).max(coarsest.min(HALVES));
        let tolerance = Tolerance { atol: part * compare::largest(wanted), rtol: 10.0 * part };
        let (found, wanted) = (std::slice::from_ref(found), std::slice::from_ref(wanted));
        compare::all(found, wanted, &Tolerances::Same(tolerance), None).1.err()
    })
}

/// What numbers of half types may be off by.
const HALVES: f64 = 2e-2;
/// What sums of products rounded as TF32 may be off by.
const TF32: f64 = 5e-3;

/// The part of the largest element that elements of this type may be off by.
fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::F16 | DType::Bf16 | DType::C32 => HALVES,
        DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E4M3Fnuz | DType::F8E5M2Fnuz | DType::F8E8M0Fnu => 0.25,
        DType::F32 | DType::C64 => 1e-4,
        DType::F64 | DType::C128 => 1e-9,
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64 => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_rounded_before_may_be_off_after() {
        let tensor = |values: [f32; 2]| {
            let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_ne_bytes).collect();
            DynTensor::from_bytes(DType::F32, &[2], &bytes).unwrap()
        };
        let (wanted, near, far) = (tensor([1.0, 0.5]), tensor([1.01, 0.5]), tensor([2.0, 0.5]));
        let differs = |found: &DynTensor, coarsest: f64| {
            differs(std::slice::from_ref(found), std::slice::from_ref(&wanted), coarsest)
        };
        assert_eq!(differs(&wanted, 0.0), None);
        assert!(differs(&near, 0.0).is_some(), "f32 alone is not rounded so");
        assert_eq!(differs(&near, rounding(DType::Bf16)), None);
        assert!(differs(&far, rounding(DType::F8E5M2)).is_some(), "beyond halves nothing is carried on");
    }
}
