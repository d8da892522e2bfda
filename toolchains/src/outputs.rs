//! The files that an action made, wherever they are now: in the cache, or in a temporary folder that lives as long as
//! this value does.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::action::{FileContent, Input};
use crate::beneath;
use crate::cache::Manifest;
use crate::error::{Error, InputError};
use crate::temporary::{FileAside, TemporaryFolder};

/// One file that was made.
#[derive(Debug, Clone)]
pub struct OutputFile {
    /// Relative name, as the action has it.
    pub name: String,
    /// Where it is. Not to be written to.
    pub path: PathBuf,
    /// BLAKE3 digest, in hexadecimal digits.
    pub digest: String,
    /// Length.
    pub bytes: u64,
}

/// The files that an action made.
#[derive(Debug, Clone)]
pub struct Outputs {
    /// In the order in which the action names them.
    pub files: Vec<OutputFile>,
    /// Whether they were there already.
    pub cached: bool,
    /// Wall time of getting them in milliseconds, waits included.
    pub millis: u64,
    /// What the store that they came from knows of them.
    pub(crate) manifest: Option<Arc<Manifest>>,
    _folder: Option<Arc<TemporaryFolder>>,
}

impl Outputs {
    pub(crate) fn new(files: Vec<OutputFile>, cached: bool, folder: Option<TemporaryFolder>) -> Self {
        Outputs { files, cached, millis: 0, manifest: None, _folder: folder.map(Arc::new) }
    }

    /// The file with this name.
    pub fn file(&self, name: &str) -> Option<&OutputFile> {
        self.files.iter().find(|file| file.name == name)
    }

    /// The first file; most actions make one.
    pub fn first(&self) -> &OutputFile {
        self.files.first().expect("actions without outputs are refused before they run")
    }

    /// The first file as an input of a later action, under another name. Keep `self` until that action has run.
    ///
    /// # Errors
    /// [`InputError::Unreadable`] when somebody removed it.
    pub fn as_input(&self, name: impl Into<String>) -> Result<Input, InputError> {
        let file = self.first();
        Ok(Input::file(name, FileContent::with_digest(&file.path, &file.digest)?))
    }
}

impl OutputFile {
    /// Its content.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        std::fs::read(&self.path).map_err(|source| Error::Output {
            action: "read",
            path: self.path.clone(),
            source,
        })
    }

    /// Puts a copy at a path, in one step, so that nobody ever sees half of it. A file that already has this content
    /// is left alone, with its times.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn copy_to(&self, destination: &Path) -> Result<(), Error> {
        let fail = |source| Error::Output { action: "write", path: destination.to_owned(), source };
        if digest_of(destination).is_ok_and(|(digest, _)| digest == self.digest) {
            return Ok(());
        }
        let folder = destination.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(fail)?;
        let mut aside = FileAside::new_in(folder).map_err(fail)?;
        let mut source = std::fs::File::open(&self.path).map_err(fail)?;
        std::io::copy(&mut source, aside.file()).map_err(fail)?;
        // The file's own mode: programs stay executable.
        let mode = source.metadata().map_err(fail)?.permissions();
        aside.file().set_permissions(mode).map_err(fail)?;
        aside.persist(destination).map_err(fail)
    }
}

/// Digest and length of a regular file.
pub(crate) fn digest_of(path: &Path) -> std::io::Result<(String, u64)> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(beneath::open_file(path)?)?;
    Ok((hasher.finalize().to_hex().to_string(), hasher.count()))
}
