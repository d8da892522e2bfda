//! Mutable state of a model, behind the object that the C interface makes of it.

use super::{
    Api,
    abi::{AotiModel, AotiState},
    call,
};
use crate::{Error, ErrorCode, ModelInfo};
use std::{fmt, ptr};

/// The tensors that a program mutates, such as a key-value cache: one for each sequence of runs that belong together.
pub struct State {
    raw: ptr::NonNull<AotiState>,
    api: Api,
    bytes: usize,
}

// SAFETY: a state is memory that nothing but this value points to.
unsafe impl Send for State {}
// SAFETY: as above; a shared reference is only copied from.
unsafe impl Sync for State {}

impl State {
    /// # Safety
    ///
    /// `model` was created by this table and lives.
    pub(super) unsafe fn new(api: &Api, model: *const AotiModel, bytes: usize) -> Result<State, Error> {
        let create = api.table.create_state.expect("the table was checked");
        // SAFETY: the caller vouches for the model; the library allocates the memory.
        State::from_call(api, bytes, |raw| {
            call(|error| unsafe { create(model, ptr::null_mut(), raw, error) })
        })
    }

    /// A state with the same values, if there is memory for it.
    pub fn try_clone(&self) -> Result<State, Error> {
        let copy = self.api.table.copy_state.expect("the table was checked");
        // SAFETY: this state lives, and the library allocates the memory.
        State::from_call(&self.api, self.bytes, |raw| {
            call(|error| unsafe { copy(self.raw.as_ptr(), ptr::null_mut(), raw, error) })
        })
    }

    fn from_call(
        api: &Api,
        bytes: usize,
        make: impl FnOnce(*mut *mut AotiState) -> Result<(), Error>,
    ) -> Result<State, Error> {
        let mut raw = ptr::null_mut();
        make(&mut raw)?;
        let raw =
            ptr::NonNull::new(raw).ok_or_else(|| Error::new(ErrorCode::Null, "the state was not created"))?;
        Ok(State { raw, api: api.clone(), bytes })
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What runs of a model are given: the state that they need. What another library makes is another thing, however long.
    pub(super) fn of_model(
        state: Option<&mut State>,
        api: &Api,
        info: &ModelInfo,
    ) -> Result<*mut AotiState, Error> {
        let (name, wanted) = (&info.name, info.state_bytes as usize);
        match state {
            None if wanted == 0 => Ok(ptr::null_mut()),
            None => Err(Error::new(ErrorCode::Null, format!("`{name}` needs a state"))),
            Some(state) if state.api == *api => Ok(state.raw.as_ptr()),
            Some(state) if state.bytes != wanted => {
                let message = format!("a state of {} bytes is not one of `{name}`", state.bytes);
                Err(Error::new(ErrorCode::Size, message))
            }
            Some(_) => {
                let message = format!("a state of another library is not one of `{name}`");
                Err(Error::new(ErrorCode::Library, message))
            }
        }
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
