//! A safe model over the C interface.

use super::{
    Api,
    abi::{AotiApi, AotiCommunicator, AotiCreateOptions, AotiModel, AotiParallelBody, AotiTensor},
    call,
    communicator::Connection,
    described::narrow,
    run::Run,
    state::State,
    view::AnyView,
    watch::Watch,
    workspace::{Places, Plan as SizePlan, Workspace},
};
use crate::{
    Device, DynTensor, Error, ErrorCode, Executor, Generator, KernelEvent, ModelInfo, ThreadPool, ValueInfo,
    Weights, trace,
};
use arc_swap::ArcSwap;
use std::{
    ffi::c_void,
    fmt, ptr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// How to load a model.
#[derive(Clone, Default, Debug)]
pub struct LoadOptions {
    /// Where the weights are.
    pub weights: Weights,
    /// Which of the compiled CPU levels to run, lowest first; `None` for the best that the processor runs.
    pub cpu_level: Option<u16>,
    /// Where the model runs. The library must have code for it.
    pub device: Device,
}

/// A loaded model. Threads share it freely; each run brings its own [`Workspace`]. Nothing about it changes but its
/// weights, and those only as a whole ([`Model::update_weights`]).
pub struct Model {
    pub(super) api: Api,
    pub(super) info: ModelInfo,
    pub(super) cpu_level: Option<u16>,
    pub(super) device: Device,
    /// What runs that begin now use. One that is replaced lives until its last run has ended.
    native: ArcSwap<Native>,
    /// Workspaces of [`Model::run_shared`] that no run uses at present.
    idle: Mutex<Vec<Workspace>>,
    /// Of the next run of [`Model::run_shared`].
    generator: Mutex<Generator>,
    /// To the other ranks of a model that has them.
    pub(super) connection: Mutex<Option<Arc<Connection>>>,
}

/// A native model with one set of weights.
pub(super) struct Native {
    pub(super) raw: ptr::NonNull<AotiModel>,
    /// No other native model of the process has or had it; addresses come again.
    number: u64,
    api: Api,
    /// Borrowed by the native model for as long as it lives.
    weights: Weights,
}

// SAFETY: the interface makes every function but `create` and `destroy` re-entrant on one model, and has no state that
// belongs to a thread.
unsafe impl Send for Native {}
// SAFETY: as above.
unsafe impl Sync for Native {}

impl Native {
    fn new(
        api: &Api,
        info: &ModelInfo,
        weights: Weights,
        cpu_level: Option<u16>,
        device: Device,
    ) -> Result<Native, Error> {
        let bytes = weights.as_bytes();
        if let Some(found) = bytes.map(<[u8]>::len).filter(|&found| found as u64 != info.weights_bytes) {
            let (name, wanted) = (&info.name, info.weights_bytes);
            let message = format!("the weights given to `{name}` have {found} bytes instead of {wanted}");
            return Err(Error::new(ErrorCode::Weights, message));
        }
        let create = api.table.create.expect("the table was checked");
        let options = AotiCreateOptions {
            weights: bytes.map_or(ptr::null(), |bytes| bytes.as_ptr().cast()),
            weights_bytes: bytes.map_or(0, |bytes| bytes.len() as i64),
            cpu_level: cpu_level.map_or(-1, i32::from),
            reserved: 0,
            device: device.raw(),
            device_context: ptr::null_mut(),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: all pointers are valid for the call; the weights are kept as long as the model.
        call(|error| unsafe { create(&options, &mut raw, error) })?;
        let raw =
            ptr::NonNull::new(raw).ok_or_else(|| Error::new(ErrorCode::Null, "the model was not created"))?;
        static CREATED: AtomicU64 = AtomicU64::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        Ok(Native { raw, number, api: api.clone(), weights })
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let destroy = self.api.table.destroy.expect("the table was checked");
        // SAFETY: made by this table's `create` and destroyed once.
        unsafe { destroy(self.raw.as_ptr()) };
    }
}

impl Model {
    /// Loads a model that is linked into the program. Generated modules call this, with the digests of the library and of
    /// the weights inside it that they were generated with.
    ///
    /// # Safety
    ///
    /// `api` is null or what an `aoti_<name>_api` function of a compiled model returned.
    pub unsafe fn from_api(api: *const AotiApi, library: &str, options: LoadOptions) -> Result<Model, Error> {
        // SAFETY: the caller vouches for the pointer; what is linked into the program stays loaded.
        let api = unsafe { Api::new(api) }?;
        api.info()?.check_library(library)?;
        Model::from_checked_api(api, options)
    }

    /// What a model that is linked into the program says about itself, before any weights are there to load it with.
    ///
    /// # Safety
    ///
    /// As for [`Model::from_api`].
    pub unsafe fn info_of(api: *const AotiApi, library: &str) -> Result<ModelInfo, Error> {
        // SAFETY: the caller vouches for the pointer.
        let info = unsafe { Api::new(api) }?.info()?;
        info.check_library(library)?;
        Ok(info)
    }

    pub(crate) fn from_checked_api(api: Api, options: LoadOptions) -> Result<Model, Error> {
        let info = api.info()?;
        let LoadOptions { weights, cpu_level, device } = options;
        let native = ArcSwap::from_pointee(Native::new(&api, &info, weights, cpu_level, device)?);
        let model = Model {
            api,
            info,
            cpu_level,
            device,
            native,
            idle: Mutex::default(),
            generator: Mutex::default(),
            connection: Mutex::default(),
        };
        trace::loaded(&model);
        Ok(model)
    }

    /// Replaces the weights, even while runs are in progress: each run sees either the old or the new ones, never a mix. The
    /// old ones are freed when the last run with them has ended. Weights that do not fit change nothing. For a model on a GPU
    /// they are uploaded before this returns, so that for a while both lie there.
    ///
    /// Takes what [`LoadOptions::weights`] takes. A [`State`] that was made before keeps its values, and a run that was
    /// prepared ([`Model::prepare`]) keeps the weights of that time.
    pub fn update_weights(&self, weights: Weights) -> Result<(), Error> {
        let native = Native::new(&self.api, &self.info, weights, self.cpu_level, self.device)?;
        self.native.store(Arc::new(native));
        Ok(())
    }

    /// The weights of runs that begin now.
    pub fn weights(&self) -> Weights {
        self.native.load().weights.clone()
    }

    /// The native model of this moment, for something that must not see another.
    pub(super) fn native(&self) -> Arc<Native> {
        self.native.load_full()
    }

    /// What the model says about itself.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// Where the model runs.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Checks the inputs and gives the sizes of each output: of what depends on data its bound, and `usize::MAX` where there is none
    /// that memory could be set aside for.
    pub fn output_sizes(&self, inputs: &[AnyView<'_>]) -> Result<Vec<Vec<usize>>, Error> {
        let mut workspace = Workspace::new();
        let Workspace { inputs: staging, plan, .. } = &mut workspace;
        self.plan_sizes(&self.native.load(), staging.contiguous(inputs)?, plan)?;
        let mut rest = plan.sizes.as_slice();
        let mut next = |output: &ValueInfo| take(&mut rest, output.dims.len()).iter().map(narrow).collect();
        Ok(self.info.outputs.iter().map(&mut next).collect())
    }

    /// Bytes of workspace that a run on `threads` threads needs for such inputs.
    pub fn workspace_bytes(&self, inputs: &[AnyView<'_>], threads: usize) -> Result<usize, Error> {
        let mut workspace = Workspace::new();
        self.plan_arena(&self.native.load(), workspace.inputs.contiguous(inputs)?, threads)
    }

    /// A new state with the values that the program starts from. Empty where the program mutates nothing.
    pub fn state(&self) -> Result<State, Error> {
        State::new(self)
    }

    /// Runs the model. Outputs are resized as the inputs need it; they must have the model's element types. `state` is
    /// needed exactly when the program mutates tensors. Allocates nothing when `workspace` and `outputs` have served
    /// such sizes before.
    pub fn run(
        &self,
        inputs: &[AnyView<'_>],
        outputs: &mut [&mut DynTensor],
        state: Option<&mut State>,
        workspace: &mut Workspace,
        executor: &dyn Executor,
    ) -> Result<(), Error> {
        self.run_told(inputs, outputs, state, workspace, executor, None)
    }

    /// The same, telling `watch` of every kernel as it begins and ends, on the calling thread: for profiles, and to see
    /// what kernels write. A panic of `watch` goes on when the run has ended; it is told of nothing more.
    pub fn run_watched(
        &self,
        inputs: &[AnyView<'_>],
        outputs: &mut [&mut DynTensor],
        state: Option<&mut State>,
        workspace: &mut Workspace,
        executor: &dyn Executor,
        watch: &mut dyn FnMut(KernelEvent<'_>),
    ) -> Result<(), Error> {
        let mut watch = Watch::new(watch, &self.info.kernels);
        let done = self.run_told(inputs, outputs, state, workspace, executor, Some(&mut watch));
        watch.finish();
        done
    }

    pub(super) fn run_with(
        &self,
        inputs: &[AnyView<'_>],
        outputs: &mut [&mut DynTensor],
        state: Option<&mut State>,
        workspace: &mut Workspace,
        (executor, communicator): (&dyn Executor, *const AotiCommunicator),
        watch: Option<&mut Watch<'_>>,
    ) -> Result<(), Error> {
        self.check_outputs(outputs)?;
        let state = State::for_run(state, self)?;
        let threads = executor.threads().clamp(1, i32::MAX as usize);
        let Workspace { arena, inputs: staging, outputs: descriptors, plan, generator } = workspace;
        // One set of weights for all that follows.
        let native = self.native.load();
        let given = inputs;
        let known = plan.is_for(native.number, threads, given);
        let inputs = staging.contiguous(given)?;
        let watch = watch.map_or(ptr::null_mut(), |watch| ptr::from_mut(watch).cast());
        let mut run = Run {
            model: self,
            native: &native,
            inputs,
            outputs,
            descriptors,
            arena,
            state,
            threads,
            executor,
            watch,
            communicator,
            generator: generator.take(),
            began: false,
        };
        if known {
            match run.execute(plan) {
                // Sizes depend on more than sizes: plan anew.
                Err(error) if is_about_sizes(error.code()) && !run.ran_out(&error) => {}
                done => return done,
            }
        }
        plan.key.clear();
        self.plan_sizes(&native, inputs, plan)?;
        plan.arena_bytes = self.plan_arena(&native, inputs, threads)?;
        plan.set_key(native.number, threads, given);
        run.execute(plan)
    }

    /// Runs the model on [`ThreadPool::global`], in a workspace that the model keeps for the next such run: as many as
    /// there were runs at one time. For full control, use [`Model::run`].
    pub fn run_shared(
        &self,
        inputs: &[AnyView<'_>],
        outputs: &mut [&mut DynTensor],
        state: Option<&mut State>,
    ) -> Result<(), Error> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut workspace = idle().pop().unwrap_or_default();
        workspace.generator = self.generator.lock().unwrap_or_else(PoisonError::into_inner).take();
        let done = self.run(inputs, outputs, state, &mut workspace, ThreadPool::global());
        idle().push(workspace);
        done
    }

    /// Sets what the random numbers of the next [`Model::run_shared`] follow from, which the `run` of generated modules
    /// calls; before that, a seed and an offset of 0. Where several threads run the model, who draws first is open.
    pub fn set_generator(&self, generator: Generator) {
        *self.generator.lock().unwrap_or_else(PoisonError::into_inner) = generator;
    }

    fn check_outputs(&self, outputs: &[&mut DynTensor]) -> Result<(), Error> {
        let wanted = &self.info.outputs;
        if outputs.len() != wanted.len() {
            let message =
                format!("the model has {} output(s), but {} were given", wanted.len(), outputs.len());
            return Err(Error::new(ErrorCode::Count, message));
        }
        match outputs.iter().zip(wanted).find(|(given, wanted)| given.dtype() != wanted.dtype) {
            None => Ok(()),
            Some((given, wanted)) => {
                let message = format!("output `{}` is {}, not {}", wanted.name, wanted.dtype, given.dtype());
                Err(Error::new(ErrorCode::DType, message))
            }
        }
    }

    fn plan_sizes(&self, native: &Native, inputs: &[AotiTensor], plan: &mut SizePlan) -> Result<(), Error> {
        let SizePlan { sizes, places, .. } = plan;
        sizes.clear();
        sizes.resize(self.info.outputs.iter().map(|output| output.dims.len()).sum(), 0);
        self.point_at(sizes, places);
        let output_sizes = self.api.table.output_sizes.expect("the table was checked");
        let n_inputs = count(inputs.len());
        // SAFETY: inputs are valid descriptors; each output has a place for as many sizes as its rank.
        call(|error| unsafe {
            output_sizes(native.raw.as_ptr(), inputs.as_ptr(), n_inputs, places.0.as_ptr(), error)
        })
    }

    /// Makes `places` point at each output's sizes in the list of all sizes.
    pub(super) fn point_at(&self, sizes: &mut [i64], places: &mut Places) {
        places.0.clear();
        let mut next = sizes.as_mut_ptr();
        for output in &self.info.outputs {
            places.0.push(next);
            // SAFETY: the list has as many places as all outputs have dimensions.
            next = unsafe { next.add(output.dims.len()) };
        }
    }

    fn plan_arena(&self, native: &Native, inputs: &[AotiTensor], threads: usize) -> Result<usize, Error> {
        let workspace_bytes = self.api.table.workspace_bytes.expect("the table was checked");
        let (n_inputs, threads, mut bytes) = (count(inputs.len()), count(threads), 0);
        // SAFETY: inputs are valid descriptors.
        call(|error| unsafe {
            workspace_bytes(native.raw.as_ptr(), inputs.as_ptr(), n_inputs, threads, &mut bytes, error)
        })?;
        usize::try_from(bytes).map_err(|_| Error::memory(usize::MAX))
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("name", &self.info.name).finish_non_exhaustive()
    }
}

/// Connects the C side's parallel loops to an executor: `pool` is a `&dyn Executor` on the stack of `execute`.
///
/// An executor that unwinds in spite of its contract ends the process here, as nothing may unwind through C.
pub(super) unsafe extern "C" fn parallel_for(
    pool: *mut c_void,
    n: i64,
    body: AotiParallelBody,
    arg: *mut c_void,
) {
    struct Body(AotiParallelBody, *mut c_void);
    // SAFETY: the interface lets parts run at the same time on several threads, with this one argument.
    unsafe impl Sync for Body {}
    impl Body {
        fn call(&self, part: std::ops::Range<i64>, worker: usize) {
            if let Some(body) = self.0 {
                // SAFETY: the C side gave both; the executor keeps to ranges and worker numbers by its contract.
                unsafe { body(self.1, part.start, part.end, count(worker)) }
            }
        }
    }
    // SAFETY: `pool` comes from the context of a run that is under way.
    let executor = unsafe { *pool.cast::<&dyn Executor>() };
    let body = Body(body, arg);
    executor.parallel_for(n, &|part, worker| body.call(part, worker));
}

/// Whether a plan for other inputs could have caused it.
fn is_about_sizes(code: ErrorCode) -> bool {
    use ErrorCode::{Count, DType, Guard, Memory, Range, Rank, Size, Workspace};
    matches!(code, Count | DType | Rank | Size | Range | Guard | Workspace | Memory)
}

pub(super) fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// What a run with some threads is told of how long these take to begin a loop together and end it.
pub(super) fn fork_join_ns(executor: &dyn Executor, threads: i32) -> i32 {
    let known = if threads > 1 { executor.fork_join() } else { None };
    known.map_or(0, |known| i32::try_from(known.as_nanos()).unwrap_or(i32::MAX))
}

/// Splits the first `n` off `rest`.
pub(super) fn take<'a>(rest: &mut &'a [i64], n: usize) -> &'a [i64] {
    let (first, others) = rest.split_at(n);
    *rest = others;
    first
}
