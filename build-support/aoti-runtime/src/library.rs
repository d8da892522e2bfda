//! Models in shared libraries that are opened at run time.

use crate::{Error, ErrorCode, LoadOptions, Model, ModelInfo, ffi};
use std::{path::Path, sync::Arc};

/// An open shared library with a compiled model in it.
#[derive(Clone, Debug)]
pub struct Library {
    api: ffi::Api,
}

impl Library {
    /// Opens a library and looks up a model by its exported symbol, such as `aoti_digits_api`.
    ///
    /// The file is trusted as an executable that one starts: opening runs its code, and the symbol must really be a
    /// model's. The interface version is checked.
    pub fn open(path: impl AsRef<Path>, symbol: &str) -> Result<Library, Error> {
        let path = path.as_ref();
        let api = ffi::open(path, symbol)?;
        Ok(Library { api })
    }

    /// What the model says about itself, before any weights are loaded.
    pub fn info(&self) -> Result<ModelInfo, Error> {
        self.api.info()
    }

    /// Loads the model. It keeps the library open for as long as it lives.
    pub fn load(&self, options: LoadOptions) -> Result<Model, Error> {
        Model::from_checked_api(self.api.clone(), options)
    }
}

/// The error for a library that could not be opened or lacks the symbol.
pub(crate) fn failed(path: &Path, error: &libloading::Error) -> Error {
    Error::new(ErrorCode::Library, format!("could not open `{}`: {error}", path.display()))
}

/// Shared ownership of an open library.
pub(crate) type Handle = Arc<libloading::Library>;
