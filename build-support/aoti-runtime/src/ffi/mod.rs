//! Everything that touches raw pointers: the C interface, aligned memory, and work lent to other threads.
//!
//! Callers above see only safe functions; what each pointer must be is settled here.

#[expect(missing_docs, reason = "written by bindgen; the header documents it")]
#[expect(clippy::type_complexity, reason = "function pointers as the header has them")]
#[rustfmt::skip]
pub mod abi;
pub(crate) mod buffer;
mod communicator;
mod described;
pub(crate) mod dlpack;
pub(crate) mod gate;
mod late;
#[cfg(any(test, all(target_family = "wasm", target_os = "unknown")))]
mod libc;
pub(crate) mod model;
#[cfg(feature = "nccl")]
pub(crate) mod nccl;
pub(crate) mod operator;
pub(crate) mod prepare;
pub(crate) mod prepared;
mod program;
mod run;
mod share;
pub(crate) mod state;
pub(crate) mod submitted;
mod tables;
pub(crate) mod view;
mod watch;
pub(crate) mod workspace;

use crate::{Error, ErrorCode, ModelInfo};
use abi::{AotiApi, AotiError};
use std::ffi::CStr;

/// A model's function table that has been checked: of the right version and with every entry present.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    table: &'static AotiApi,
    /// Keeps the code of `table` in memory. Statically linked models need no keeping.
    #[cfg(feature = "dynamic")]
    _library: Option<crate::library::Handle>,
}

// SAFETY: the tables of a model never change, and its functions may be called from any thread.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// Two are equal if they are of one model in one library.
impl PartialEq for Api {
    fn eq(&self, other: &Api) -> bool {
        std::ptr::eq(self.table, other.table)
    }
}

impl Eq for Api {}

impl Api {
    /// Whether both are of one library: of one model, or of programs that share states.
    fn is_of_library(&self, other: &Api) -> bool {
        let is_shared = !self.table.programs.is_null() && self.table.programs == other.table.programs;
        self == other || is_shared
    }

    /// The program of this name in a library of several.
    pub(crate) fn program(&self, name: &str) -> Result<Api, Error> {
        // SAFETY: a model's tables are valid by the interface's contract.
        let programs = unsafe { tables::table(self.table.programs, self.table.n_programs) };
        let mut known = Vec::new();
        for program in programs {
            // SAFETY: as above.
            let own = unsafe { tables::text(program.name) };
            if own == name {
                // SAFETY: as above; the library stays loaded as long as this table does.
                let api = unsafe { Api::new(program.api) }?;
                #[cfg(feature = "dynamic")]
                let api = Api { _library: self._library.clone(), ..api };
                return Ok(api);
            }
            known.push(own);
        }
        let known =
            if known.is_empty() { "one program".to_owned() } else { format!("`{}`", known.join("`, `")) };
        Err(Error::new(ErrorCode::Library, format!("the library has no program `{name}`, but {known}")))
    }
}

impl Api {
    /// # Safety
    ///
    /// `table` is null or what an `aoti_<name>_api` function returned, and its library stays loaded.
    unsafe fn new(table: *const AotiApi) -> Result<Api, Error> {
        let refuse = |what: String| Err(Error::new(ErrorCode::Version, what));
        // SAFETY: the caller vouches for the pointer. The version and the length come first in every version of the
        // table, and nothing else is read before they are known to fit.
        let table = unsafe {
            if table.is_null() {
                return refuse("the library gives no function table".to_owned());
            }
            let version = (&raw const (*table).abi_version).read();
            let bytes = (&raw const (*table).struct_bytes).read();
            let ours = abi::AOTI_ABI_VERSION;
            if version != ours {
                let older = if version < ours { "cargo-aoti" } else { "aoti-runtime" };
                return refuse(format!(
                    "the library has interface version {version}; this crate supports {ours}: build the model with the \
                     cargo-aoti of the same version as this crate ({older} is the older one)"
                ));
            }
            // Functions may be added at the end within a version, so longer tables are fine.
            if (bytes as usize) < size_of::<AotiApi>() {
                return refuse(format!(
                    "the library's function table has {bytes} bytes, this crate needs {}: build the model with a newer \
                     cargo-aoti",
                    size_of::<AotiApi>()
                ));
            }
            &*table
        };
        let complete = !table.info.is_null()
            && table.create.is_some()
            && table.destroy.is_some()
            && table.output_sizes.is_some()
            && table.workspace_bytes.is_some()
            && table.create_state.is_some()
            && table.copy_state.is_some()
            && table.destroy_state.is_some()
            && table.run.is_some()
            && table.plan.is_some()
            && table.reset_state.is_some()
            && table.assign_state.is_some()
            && table.reset_state_part.is_some()
            && table.read_state.is_some()
            && table.write_state.is_some();
        if !complete {
            return refuse("the library's function table is missing required functions".to_owned());
        }
        Ok(Api {
            table,
            #[cfg(feature = "dynamic")]
            _library: None,
        })
    }

    /// What the model says about itself.
    pub(crate) fn info(&self) -> Result<ModelInfo, Error> {
        // SAFETY: `info` is not null, and a model's tables are valid by the interface's contract.
        unsafe { tables::read(&*self.table.info, self.clone()) }
    }
}

/// Opens a shared library and finds a model's function table in it.
///
/// # Safety
///
/// As for [`Library::open`](crate::Library::open).
#[cfg(feature = "dynamic")]
pub(crate) unsafe fn open(path: &std::path::Path, symbol: &str) -> Result<Api, Error> {
    use crate::library::failed;
    type Entry = unsafe extern "C" fn() -> *const AotiApi;
    // SAFETY: the caller vouches for the file and the symbol.
    unsafe {
        let library = libloading::Library::new(path).map_err(|e| failed(path, &e))?;
        let table = library.get::<Entry>(symbol).map_err(|e| failed(path, &e))?();
        let api = Api::new(table)?;
        Ok(Api { _library: Some(crate::library::Handle::new(library)), ..api })
    }
}

/// Calls a function of the interface that reports by status and message.
fn call(function: impl FnOnce(*mut AotiError) -> i32) -> Result<(), Error> {
    let mut error = AotiError { code: 0, message: [0; abi::AOTI_MESSAGE_BYTES as usize] };
    let status = function(&mut error);
    if status == abi::AOTI_OK as i32 {
        return Ok(());
    }
    // The last byte is ours, so that a message without an end is cut and not read past.
    error.message[abi::AOTI_MESSAGE_BYTES as usize - 1] = 0;
    // SAFETY: the message ends at the latest with the zero just written.
    let message = unsafe { CStr::from_ptr(error.message.as_ptr()) }.to_string_lossy();
    let message =
        if message.is_empty() { format!("the model gave status {status}") } else { message.into_owned() };
    Err(Error::new(ErrorCode::from_status(status), message))
}
