//! Runs that are prepared for inputs of certain sizes, and tensors where the model runs.

use super::{
    abi::{AotiCommunicator, AotiContext, AotiError, AotiRun, AotiState, AotiTensor},
    call,
    communicator::Connection,
    described::Described,
    model::{Model, Native, count},
    state::State,
    view::AnyView,
    watch::{Clock, on_time},
};
use crate::{DType, DynTensor, Error, ErrorCode, Generator, tensor::count_elements};
use std::{ffi::c_void, fmt, marker::PhantomData, ptr, ptr::NonNull, sync::Arc};

/// A stream of the device that a model runs on, as its driver has it: a `CUstream` or a `hipStream_t`. By default the device's
/// default stream.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'s> {
    raw: *mut c_void,
    lifetime: PhantomData<&'s ()>,
}

impl Default for Stream<'_> {
    fn default() -> Self {
        Stream { raw: ptr::null_mut(), lifetime: PhantomData }
    }
}

impl Stream<'_> {
    /// A stream that some other code made, such as cudarc.
    ///
    /// # Safety
    ///
    /// `raw` is a stream of the device that the runs it is given to run on, in the context that their model works in. It stays one
    /// for as long as this value or a copy of it lives, and until every run that was submitted on it is waited for.
    pub unsafe fn from_raw(raw: *mut c_void) -> Self {
        Stream { raw, lifetime: PhantomData }
    }

    /// What a run on this stream is told.
    pub(super) fn context(self, generator: Generator, communicator: *const AotiCommunicator) -> AotiContext {
        AotiContext {
            parallel_for: None,
            pool: ptr::null_mut(),
            threads: 1,
            fork_join_ns: 0,
            stream: self.raw,
            on_kernel: None,
            on_kernel_arg: ptr::null_mut(),
            seed: generator.seed,
            offset: generator.offset,
            on_time: None,
            on_time_arg: ptr::null_mut(),
            allocate_output: None,
            allocate_output_arg: ptr::null_mut(),
            communicator,
        }
    }
}

/// A row-major tensor in memory of the device that a model runs on.
pub struct DeviceTensor<'m> {
    model: &'m Model,
    data: NonNull<c_void>,
    dtype: DType,
    sizes: Vec<usize>,
}

// SAFETY: the memory belongs to this value alone, and the interface's functions may be called on every thread.
unsafe impl Send for DeviceTensor<'_> {}
// SAFETY: as above; a shared reference only reads.
unsafe impl Sync for DeviceTensor<'_> {}

impl<'m> DeviceTensor<'m> {
    fn new(model: &'m Model, dtype: DType, sizes: &[usize]) -> Result<DeviceTensor<'m>, Error> {
        let bytes = (count_elements(sizes, dtype.size())? * dtype.size()) as i64;
        let allocate = model.entry(model.api.table.allocate)?;
        let mut data = ptr::null_mut();
        // SAFETY: the model is alive and of this table.
        call(|error| unsafe { allocate(model.native().raw.as_ptr(), bytes, &mut data, error) })?;
        let data = NonNull::new(data).ok_or_else(|| Error::memory(bytes as usize))?;
        Ok(DeviceTensor { model, data, dtype, sizes: sizes.to_vec() })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes, outermost first.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The first element, at an address of the device.
    pub fn as_ptr(&self) -> *const c_void {
        self.data.as_ptr()
    }

    /// The tensor as an input of runs.
    pub fn view(&self) -> AnyView<'_> {
        // SAFETY: the memory holds as many elements, and lives as long as the borrow.
        unsafe { AnyView::on_device(self.model.device(), self.dtype, &self.sizes, self.data.as_ptr()) }
    }

    /// A copy in memory of the processor.
    pub fn download(&self) -> Result<DynTensor, Error> {
        let mut tensor = DynTensor::zeros(self.dtype, &self.sizes)?;
        let (here, bytes) = (crate::Device::Cpu.raw(), tensor.bytes().len() as i64);
        let copy = self.model.entry(self.model.api.table.copy)?;
        let (to, from) = (tensor.data_mut_ptr().cast(), self.data.as_ptr());
        // SAFETY: both sides have so many bytes, and the target is borrowed mutably.
        call(|error| unsafe {
            copy(self.model.native().raw.as_ptr(), to, here, from, self.model.device().raw(), bytes, error)
        })?;
        tensor.settle_bools();
        Ok(tensor)
    }

    /// Takes the elements of another tensor of this type and these sizes, and returns when they are there.
    ///
    /// # Errors
    /// Tensors that differ in one of the two, and what the driver reports.
    pub fn copy_from(&mut self, other: &DeviceTensor<'_>) -> Result<(), Error> {
        let code = if self.dtype != other.dtype { ErrorCode::DType } else { ErrorCode::Size };
        if (self.dtype, &self.sizes) != (other.dtype, &other.sizes) {
            let message = format!(
                "expected a tensor {} {:?}, got {} {:?}",
                self.dtype, self.sizes, other.dtype, other.sizes
            );
            return Err(Error::new(code, message));
        }
        let bytes = self.sizes.iter().product::<usize>() * self.dtype.size();
        let copy = self.model.entry(self.model.api.table.copy)?;
        let (to, from) = (self.model.device().raw(), other.model.device().raw());
        // SAFETY: both have so many bytes, and the target is borrowed mutably.
        call(|error| unsafe {
            let (model, data) = (self.model.native().raw.as_ptr(), self.data.as_ptr());
            copy(model, data, to, other.data.as_ptr(), from, bytes as i64, error)
        })
    }

    /// The tensors for the C interface.
    pub(super) fn described<'a, 'b: 'a>(
        tensors: impl IntoIterator<Item = &'a DeviceTensor<'b>>,
    ) -> Described {
        let mut described = Described::default();
        tensors.into_iter().for_each(|tensor| tensor.view().describe(&mut described));
        described.finish();
        described
    }
}

impl Drop for DeviceTensor<'_> {
    fn drop(&mut self) {
        if let Some(deallocate) = self.model.api.table.deallocate {
            // SAFETY: allocated by this table and freed once.
            unsafe { deallocate(self.model.native().raw.as_ptr(), self.data.as_ptr()) };
        }
    }
}

impl fmt::Debug for DeviceTensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("DeviceTensor");
        debug.field("dtype", &self.dtype).field("sizes", &self.sizes).finish_non_exhaustive()
    }
}

impl Model {
    /// A tensor of zeros in memory of the device that the model runs on.
    pub fn device_tensor(&self, dtype: DType, sizes: &[usize]) -> Result<DeviceTensor<'_>, Error> {
        DeviceTensor::new(self, dtype, sizes)
    }

    /// A copy of a tensor in memory of the device that the model runs on.
    pub fn upload(&self, tensor: &DynTensor) -> Result<DeviceTensor<'_>, Error> {
        let made = DeviceTensor::new(self, tensor.dtype(), tensor.sizes())?;
        let copy = self.entry(self.api.table.copy)?;
        let (here, bytes) = (crate::Device::Cpu.raw(), tensor.bytes().len() as i64);
        let (to, from) = (made.data.as_ptr(), tensor.data_ptr().cast());
        // SAFETY: both sides have so many bytes, and nothing else knows the target yet.
        call(|error| unsafe {
            copy(self.native().raw.as_ptr(), to, self.device().raw(), from, here, bytes, error)
        })?;
        Ok(made)
    }

    /// Prepares a run for inputs of these sizes, on at most so many threads where it runs on the processor. It keeps all memory
    /// that it needs, and the weights of the time when it was prepared.
    pub fn prepare(&self, inputs: &[AnyView<'_>], threads: usize) -> Result<Prepared<'_>, Error> {
        let prepare = self.entry(self.api.table.prepare)?;
        let (submit, wait) = (self.entry(self.api.table.submit)?, self.entry(self.api.table.wait)?);
        let inputs = contiguous(inputs)?;
        let inputs = inputs.as_slice();
        let mut raw = ptr::null_mut();
        let native = self.native();
        // SAFETY: inputs are valid descriptors; the run gets memory of its own.
        call(|error| unsafe {
            let (model, n_inputs) = (native.raw.as_ptr(), count(inputs.len()));
            prepare(
                model,
                inputs.as_ptr(),
                n_inputs,
                count(threads.max(1)),
                ptr::null_mut(),
                0,
                &mut raw,
                error,
            )
        })?;
        let raw = NonNull::new(raw).ok_or_else(|| Error::new(ErrorCode::Null, "the run was not prepared"))?;
        let connection = self.connection().map(|connection| (connection.raw(), connection));
        let connection = connection.map(Box::new);
        Ok(Prepared {
            model: self,
            _native: native,
            raw,
            submit,
            wait,
            generator: Generator::default(),
            connection,
        })
    }

    /// An entry that tables by hand may leave out.
    fn entry<F>(&self, entry: Option<F>) -> Result<F, Error> {
        entry.ok_or_else(|| {
            Error::new(ErrorCode::Version, "the library's function table is missing required functions")
        })
    }
}

/// A run that is prepared for inputs of certain sizes.
pub struct Prepared<'m> {
    pub(super) model: &'m Model,
    pub(super) raw: NonNull<AotiRun>,
    /// Read by the run for as long as it lives.
    _native: Arc<Native>,
    pub(super) submit: Submit,
    wait: Wait,
    pub(super) generator: Generator,
    /// To the other ranks, where there are any: read by the run from `submit` to `wait`.
    connection: Option<Box<(AotiCommunicator, Arc<Connection>)>>,
}

type Submit = unsafe extern "C" fn(
    *mut AotiRun,
    *const AotiTensor,
    i32,
    *const AotiTensor,
    i32,
    *mut AotiState,
    *const AotiContext,
    *mut AotiError,
) -> i32;
type Wait = unsafe extern "C" fn(*mut AotiRun, *const *mut i64, *mut AotiError) -> i32;

// SAFETY: a run has no state that belongs to a thread.
unsafe impl Send for Prepared<'_> {}

impl Prepared<'_> {
    /// Sets what the random numbers of the next run follow from; before that, a seed and an offset of 0.
    pub fn set_generator(&mut self, generator: Generator) {
        self.generator = generator;
    }

    /// Runs on tensors where the model runs, and waits.
    pub fn run(
        &mut self,
        inputs: &[AnyView<'_>],
        outputs: &mut [DeviceTensor<'_>],
        state: Option<&mut State>,
        stream: Stream<'_>,
    ) -> Result<(), Error> {
        Prepared::run_back_to_back(std::slice::from_mut(self), inputs, outputs, state, stream, 1)
    }

    /// Submits `times` runs round-robin over the prepared runs, waiting only when all of them are in flight; then waits for
    /// all. They read the same inputs and write the same outputs.
    pub fn run_back_to_back(
        runs: &mut [Prepared<'_>],
        inputs: &[AnyView<'_>],
        outputs: &mut [DeviceTensor<'_>],
        state: Option<&mut State>,
        stream: Stream<'_>,
        times: usize,
    ) -> Result<(), Error> {
        let inputs = contiguous(inputs)?;
        let targets = DeviceTensor::described(outputs.iter());
        let state = states_of(runs, state)?;
        let mut done = Ok(());
        let n_runs = runs.len().max(1);
        for number in 0..times {
            let Some(run) = runs.get_mut(number % n_runs) else { break };
            if number >= n_runs {
                done = done.and(run.wait());
            }
            let context = stream.context(run.generator.take(), run.communicator());
            // SAFETY: descriptors are valid; everything that they borrow lasts until all runs were waited for, which is below
            // whatever goes wrong. Outputs and state are borrowed mutably.
            let submitted = unsafe { run.start(inputs.as_slice(), targets.as_slice(), state, &context) };
            if done.is_ok() && submitted.is_err() {
                // Those before it are still under way.
                for earlier in number.saturating_sub(n_runs - 1)..number {
                    let _ = runs[earlier % n_runs].wait();
                }
                return submitted;
            }
        }
        for number in times.saturating_sub(n_runs)..times {
            if let Some(run) = runs.get_mut(number % n_runs) {
                done = done.and(run.wait());
            }
        }
        done
    }

    /// Runs kernel by kernel on tensors where the model runs, and waits. Tells of each kernel, by its position in
    /// [`ModelInfo::kernels`](crate::ModelInfo::kernels) and in the order of the run, how many microseconds it took there by
    /// the device's own clock; of none where the model runs on the processor. A panic of `tell` goes on when the run has ended.
    pub fn run_timed(
        &mut self,
        inputs: &[AnyView<'_>],
        outputs: &mut [DeviceTensor<'_>],
        state: Option<&mut State>,
        stream: Stream<'_>,
        tell: &mut dyn FnMut(usize, f64),
    ) -> Result<(), Error> {
        let inputs = contiguous(inputs)?;
        let targets = DeviceTensor::described(outputs.iter());
        let state = State::for_run(state, self.model)?;
        let mut clock = Clock::new(tell);
        let mut context = stream.context(self.generator.take(), self.communicator());
        context.on_time = Some(on_time);
        context.on_time_arg = ptr::from_mut(&mut clock).cast();
        // SAFETY: descriptors are valid, and what they borrow lasts until the run was waited for; outputs, state and the clock
        // are borrowed mutably.
        let submitted = unsafe { self.start(inputs.as_slice(), targets.as_slice(), state, &context) };
        let done = submitted.and_then(|()| self.wait());
        clock.finish();
        done
    }

    /// What the C side is told of the other ranks.
    pub(super) fn communicator(&self) -> *const AotiCommunicator {
        self.connection.as_ref().map_or(ptr::null(), |own| &raw const own.0)
    }

    /// Has no other run between its collectives, and tells other ranks where it does not get to its end.
    pub(super) fn in_turn(&self, function: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let Some((_, connection)) = self.connection.as_deref() else { return function() };
        let _turn = connection.take_turn();
        connection.tell(function())
    }

    /// Submits the run.
    ///
    /// # Safety
    /// Everything behind the arguments outlives the run, and nobody else uses the targets, the state and what the context names.
    unsafe fn start(
        &mut self,
        inputs: &[AotiTensor],
        targets: &[AotiTensor],
        state: *mut AotiState,
        context: &AotiContext,
    ) -> Result<(), Error> {
        let (submit, n_inputs, n_outputs) = (self.submit, count(inputs.len()), count(targets.len()));
        // SAFETY: as the caller says; the run is alive and of this table.
        let submitted = || {
            call(|error| unsafe {
                let (run, inputs, targets) = (self.raw.as_ptr(), inputs.as_ptr(), targets.as_ptr());
                submit(run, inputs, n_inputs, targets, n_outputs, state, context, error)
            })
        };
        self.in_turn(submitted)
    }

    pub(super) fn wait(&mut self) -> Result<(), Error> {
        let wait = self.wait;
        // SAFETY: the run is alive; nobody asks for sizes.
        let done = call(|error| unsafe { wait(self.raw.as_ptr(), ptr::null(), error) });
        match self.connection.as_deref() {
            Some((_, connection)) => connection.tell(done),
            None => done,
        }
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        if let Some(release) = self.model.api.table.release {
            // SAFETY: prepared by this table and released once.
            unsafe { release(self.raw.as_ptr()) };
        }
    }
}

impl fmt::Debug for Prepared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("model", &self.model).finish_non_exhaustive()
    }
}

/// The state that all of these runs are given, which is one of each of their models.
fn states_of(runs: &[Prepared<'_>], mut state: Option<&mut State>) -> Result<*mut AotiState, Error> {
    runs.iter().try_fold(ptr::null_mut(), |_, run| State::for_run(state.as_deref_mut(), run.model))
}

/// Inputs of prepared runs are given as they are, so that they must be row-major contiguous.
fn contiguous(views: &[AnyView<'_>]) -> Result<Described, Error> {
    match views.iter().position(|view| view.strides().is_some()) {
        None => {
            let mut described = Described::default();
            views.iter().for_each(|view| view.describe(&mut described));
            described.finish();
            Ok(described)
        }
        Some(position) => {
            let message = format!("input {position} of a prepared run is not row-major contiguous");
            Err(Error::new(ErrorCode::Stride, message))
        }
    }
}
