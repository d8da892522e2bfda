//! Maps files that are only read.

use std::path::Path;

use bytes::Bytes;
use memmap2::Mmap;

use crate::Error;

/// The content of a file of the user's.
///
/// # Errors
/// [`Error::User`] where it is no file, or cannot be read.
pub fn map(path: &Path) -> Result<Bytes, Error> {
    let refuse = |error: std::io::Error| Error::User(format!("cannot read `{}`: {error}", path.display()));
    let file = std::fs::File::open(path).map_err(refuse)?;
    let metadata = file.metadata().map_err(refuse)?;
    if !metadata.is_file() {
        return Err(Error::User(format!("`{}` is not a file", path.display())));
    }
    if metadata.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the map is read-only and read as bytes only; a file that is cut meanwhile ends the process, no more.
    let map = unsafe { Mmap::map(&file) }.map_err(refuse)?;
    Ok(Bytes::from_owner(map))
}
