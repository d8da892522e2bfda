//! Mutable state of a model, behind the object that the C interface makes of it.

use super::{Api, abi::AotiState, call, model::Model};
use crate::{Device, Error, ErrorCode};
use std::{fmt, ptr};

/// The tensors that a program mutates, such as a key-value cache: one for each sequence of runs that belong together.
///
/// It serves every model of the library that made it, on the device where it was made, and may outlive them. Other models
/// refuse it.
pub struct State {
    raw: ptr::NonNull<AotiState>,
    api: Api,
    /// Where the memory is.
    device: Device,
    bytes: usize,
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
        State::from_call(&model.api, model.device(), bytes, |raw| {
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
            Some(state) if state.api != model.api => {
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
        State::from_call(&self.api, self.device, self.bytes, |raw| {
            call(|error| unsafe { copy(self.raw.as_ptr(), ptr::null_mut(), raw, error) })
        })
    }

    fn from_call(
        api: &Api,
        device: Device,
        bytes: usize,
        make: impl FnOnce(*mut *mut AotiState) -> Result<(), Error>,
    ) -> Result<State, Error> {
        let mut raw = ptr::null_mut();
        make(&mut raw)?;
        let raw =
            ptr::NonNull::new(raw).ok_or_else(|| Error::new(ErrorCode::Null, "the state was not created"))?;
        Ok(State { raw, api: api.clone(), device, bytes })
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
