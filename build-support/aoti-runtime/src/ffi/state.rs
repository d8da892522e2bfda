//! Mutable state of a model, behind the object that the C interface makes of it.

use super::abi::{AotiState, AotiStatePart};
use super::{Api, call, model::Model};
use crate::{AnyView, DType, Device, DynTensor, Error, ErrorCode};
use std::{fmt, ops::Range, ptr, sync::Arc};

/// The tensors that a program mutates, such as a key-value cache: one for each sequence of runs that belong together.
///
/// It serves every model of the library that made it, all programs of a library that has several, on the device where it was
/// made, and may outlive them. Other models refuse it.
pub struct State {
    raw: ptr::NonNull<AotiState>,
    api: Api,
    /// Where the memory is.
    device: Device,
    bytes: usize,
    tensors: Arc<[StateTensor]>,
}

/// One of the tensors of a [`State`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateTensor {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) sizes: Vec<usize>,
    pub(super) offset: usize,
}

impl StateTensor {
    /// The program's own name for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its sizes, outermost first.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The part with these positions along an axis, and its sizes.
    fn part(&self, axis: usize, range: Range<usize>) -> Result<(AotiStatePart, Vec<usize>), Error> {
        let Some(&size) = self.sizes.get(axis) else {
            let message = format!(
                "`{}` of the state has {} axes, there is no axis {axis}",
                self.name,
                self.sizes.len()
            );
            return Err(Error::new(ErrorCode::Rank, message));
        };
        if range.start > range.end || range.end > size {
            let message =
                format!("axis {axis} of `{}` has {size} positions, {range:?} are not among them", self.name);
            return Err(Error::new(ErrorCode::Range, message));
        }
        let within: usize = self.sizes[axis + 1..].iter().product::<usize>() * self.dtype.size();
        let mut sizes = self.sizes.clone();
        sizes[axis] = range.len();
        let part = AotiStatePart {
            begin: (self.offset + range.start * within) as i64,
            bytes: (range.len() * within) as i64,
            stride: (size * within) as i64,
            count: self.sizes[..axis].iter().product::<usize>() as i64,
        };
        Ok((part, sizes))
    }

    /// All of it.
    fn whole(&self) -> AotiStatePart {
        let bytes = (self.sizes.iter().product::<usize>() * self.dtype.size()) as i64;
        AotiStatePart { begin: self.offset as i64, bytes, stride: bytes, count: 1 }
    }
}

// SAFETY: a state is memory that nothing but this value points to.
unsafe impl Send for State {}
// SAFETY: as above; a shared reference is only copied from.
unsafe impl Sync for State {}

impl State {
    pub(super) fn new(model: &Model) -> Result<State, Error> {
        let create = model.api.table.create_state.expect("the table was checked");
        let (native, bytes) = (model.native(), model.info().state_bytes as usize);
        // SAFETY: the native model is alive and of this table; the library allocates the memory.
        let tensors = model.info().state_tensors.clone();
        State::from_call(&model.api, model.device(), (bytes, tensors), |raw| {
            call(|error| unsafe { create(native.raw.as_ptr(), ptr::null_mut(), raw, error) })
        })
    }

    /// What a run of this model is given for a state: the library takes any address for one of its own, so that every way to
    /// run a model asks here first.
    pub(super) fn for_run(state: Option<&mut State>, model: &Model) -> Result<*mut AotiState, Error> {
        let name = &model.info().name;
        match state {
            None if model.info().state_bytes == 0 => Ok(ptr::null_mut()),
            None => Err(Error::new(ErrorCode::Null, format!("`{name}` needs a state"))),
            Some(state) if !state.api.is_of_library(&model.api) => {
                let message = format!("this state was not created by a model of the library of `{name}`");
                Err(Error::new(ErrorCode::Library, message))
            }
            Some(state) if state.device != model.device() => {
                let (there, here) = (state.device, model.device());
                let message = format!("the state lies on {there}, the model runs on {here}");
                Err(Error::new(ErrorCode::Device, message))
            }
            Some(state) => Ok(state.raw.as_ptr()),
        }
    }

    /// A state with the same values, if there is memory for it.
    pub fn try_clone(&self) -> Result<State, Error> {
        let copy = self.api.table.copy_state.expect("the table was checked");
        // SAFETY: this state lives, and the library allocates the memory.
        State::from_call(&self.api, self.device, (self.bytes, self.tensors.clone()), |raw| {
            call(|error| unsafe { copy(self.raw.as_ptr(), ptr::null_mut(), raw, error) })
        })
    }

    fn from_call(
        api: &Api,
        device: Device,
        (bytes, tensors): (usize, Arc<[StateTensor]>),
        make: impl FnOnce(*mut *mut AotiState) -> Result<(), Error>,
    ) -> Result<State, Error> {
        let mut raw = ptr::null_mut();
        make(&mut raw)?;
        let raw =
            ptr::NonNull::new(raw).ok_or_else(|| Error::new(ErrorCode::Null, "the state was not created"))?;
        Ok(State { raw, api: api.clone(), device, bytes, tensors })
    }

    /// Gives it the values of another, such as one that was cloned before a few steps that are to be undone. Allocates nothing.
    ///
    /// # Errors
    /// A state of another library or on another device.
    pub fn assign(&mut self, from: &State) -> Result<(), Error> {
        if !self.api.is_of_library(&from.api) || self.bytes != from.bytes {
            return Err(Error::new(ErrorCode::Library, "the states were made by models of two libraries"));
        }
        if self.device != from.device {
            let message = format!("one state lies on {}, the other on {}", self.device, from.device);
            return Err(Error::new(ErrorCode::Device, message));
        }
        let assign = self.api.table.assign_state.expect("the table was checked");
        // SAFETY: both states live, and are of one library.
        call(|error| unsafe { assign(self.raw.as_ptr(), from.raw.as_ptr(), error) })
    }

    /// Its tensors.
    pub fn tensors(&self) -> &[StateTensor] {
        &self.tensors
    }

    /// The values of a tensor.
    ///
    /// # Errors
    /// A name that none has, and what goes wrong on a device.
    pub fn read(&self, tensor: &str) -> Result<DynTensor, Error> {
        let tensor = self.tensor(tensor)?;
        self.read_part(tensor, &tensor.whole(), &tensor.sizes)
    }

    /// The values of a tensor at some positions along one of its axes: the first steps of a cache, or one sequence of a batch.
    ///
    /// # Errors
    /// As for [`State::read`], and positions that there are not.
    pub fn read_slice(&self, tensor: &str, axis: usize, range: Range<usize>) -> Result<DynTensor, Error> {
        let tensor = self.tensor(tensor)?;
        let (part, sizes) = tensor.part(axis, range)?;
        self.read_part(tensor, &part, &sizes)
    }

    fn read_part(
        &self,
        tensor: &StateTensor,
        part: &AotiStatePart,
        sizes: &[usize],
    ) -> Result<DynTensor, Error> {
        let mut values = DynTensor::zeros(tensor.dtype, sizes)?;
        let read = self.api.table.read_state.expect("the table was checked");
        let to = values.bytes_mut().as_mut_ptr().cast();
        // SAFETY: the state lives, and there is room for the part.
        call(|error| unsafe { read(self.raw.as_ptr(), part, to, error) })?;
        values.settle_bools();
        Ok(values)
    }

    /// Gives a tensor other values.
    ///
    /// # Errors
    /// A name that none has, values of another element type or other sizes, and what goes wrong on a device.
    pub fn write(&mut self, tensor: &str, values: &AnyView<'_>) -> Result<(), Error> {
        let tensor = self.tensor(tensor)?;
        let (part, sizes) = (tensor.whole(), tensor.sizes.clone());
        self.write_part(&part, (&tensor.name, tensor.dtype, &sizes), values)
    }

    /// Gives a tensor other values at some positions along one of its axes.
    ///
    /// # Errors
    /// As for [`State::write`], and positions that there are not.
    pub fn write_slice(
        &mut self,
        tensor: &str,
        axis: usize,
        range: Range<usize>,
        values: &AnyView<'_>,
    ) -> Result<(), Error> {
        let tensor = self.tensor(tensor)?;
        let (part, sizes) = tensor.part(axis, range)?;
        self.write_part(&part, (&tensor.name, tensor.dtype, &sizes), values)
    }

    fn write_part(
        &self,
        part: &AotiStatePart,
        (name, dtype, sizes): (&str, DType, &[usize]),
        values: &AnyView<'_>,
    ) -> Result<(), Error> {
        if values.dtype() != dtype {
            let message = format!("`{name}` of the state is {dtype}, the values are {}", values.dtype());
            return Err(Error::new(ErrorCode::DType, message));
        }
        if values.sizes() != sizes {
            let message =
                format!("values of sizes {:?} for {sizes:?} of `{name}` of the state", values.sizes());
            return Err(Error::new(ErrorCode::Size, message));
        }
        let values = values.to_tensor()?;
        let write = self.api.table.write_state.expect("the table was checked");
        // SAFETY: nobody else uses the state, and the values are as many as the part has.
        call(|error| unsafe { write(self.raw.as_ptr(), part, values.data_ptr().cast(), error) })
    }

    /// The values of positions along one axis that the program starts from, again: of the steps of a cache beyond some length, to
    /// roll it back, or of one sequence of a batch, to begin another in its place. `model` is one of those that the state serves.
    ///
    /// # Errors
    /// As for [`State::read_slice`], and a model that refuses the state.
    pub fn reset_slice(
        &mut self,
        model: &Model,
        tensor: &str,
        axis: usize,
        range: Range<usize>,
    ) -> Result<(), Error> {
        let (part, _) = self.tensor(tensor)?.part(axis, range)?;
        let (native, reset) = (model.native(), model.api.table.reset_state_part);
        let raw = State::for_run(Some(self), model)?;
        let reset = reset.expect("the table was checked");
        // SAFETY: the native model and the state are alive and of one library.
        call(|error| unsafe { reset(native.raw.as_ptr(), raw, &part, error) })
    }

    /// The values that the program starts from, again. `model` is one of those that the state serves.
    ///
    /// # Errors
    /// A model that refuses the state.
    pub fn reset(&mut self, model: &Model) -> Result<(), Error> {
        let (native, reset) = (model.native(), model.api.table.reset_state);
        let raw = State::for_run(Some(self), model)?;
        let reset = reset.expect("the table was checked");
        // SAFETY: as above.
        call(|error| unsafe { reset(native.raw.as_ptr(), raw, error) })
    }

    fn tensor(&self, name: &str) -> Result<&StateTensor, Error> {
        self.tensors.iter().find(|tensor| tensor.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
            let message = format!("the state has no tensor `{name}`, but `{}`", known.join("`, `"));
            Error::new(ErrorCode::Null, message)
        })
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Clone for State {
    /// Ends the program where there is no memory, as a `Vec` does; [`State::try_clone`] does not.
    fn clone(&self) -> State {
        match self.try_clone() {
            Ok(state) => state,
            Err(_) => std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; 64]>()),
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let destroy = self.api.table.destroy_state.expect("the table was checked");
        // SAFETY: made by this table and destroyed once.
        unsafe { destroy(self.raw.as_ptr()) };
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
