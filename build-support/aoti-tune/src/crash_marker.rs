//! Where a worker process is: which library it runs and which kernel, in memory that outlives it.

use std::path::Path;

use memmap2::MmapMut;

use super::bench::LibraryId;
use crate::error::Error;

const BYTES: usize = 16;

/// Memory that two processes share through a file.
pub(crate) struct CrashMarker(MmapMut);

impl CrashMarker {
    /// The memory behind a file, which is made where it is not there.
    pub(crate) fn open(path: &Path) -> Result<CrashMarker, Error> {
        let refuse =
            |error: std::io::Error| Error::Machine(format!("cannot share `{}`: {error}", path.display()));
        let file = std::fs::File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(refuse)?;
        file.set_len(BYTES as u64).map_err(refuse)?;
        // SAFETY: the file is in a private folder, keeps its length, and its bytes mean something in any order.
        let map = unsafe { MmapMut::map_mut(&file) }.map_err(refuse)?;
        Ok(CrashMarker(map))
    }

    /// Notes that a kernel of a library begins; none for what is not a kernel.
    pub(crate) fn enter(&mut self, library: LibraryId, kernel: Option<usize>) {
        let kernel = kernel.map_or(0, |kernel| kernel as u64 + 1);
        self.0[..8].copy_from_slice(&(library.0 as u64 + 1).to_le_bytes());
        self.0[8..].copy_from_slice(&kernel.to_le_bytes());
    }

    /// Where the other process was last.
    pub(crate) fn last(&self) -> Option<(LibraryId, Option<usize>)> {
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default() as usize;
        let library = number(&self.0[..8]).checked_sub(1)?;
        Some((LibraryId(library), number(&self.0[8..]).checked_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sees_where_the_other_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("place");
        let (mut own, other) = (CrashMarker::open(&path).unwrap(), CrashMarker::open(&path).unwrap());
        assert_eq!(other.last(), None);
        own.enter(LibraryId(3), Some(0));
        assert_eq!(other.last(), Some((LibraryId(3), Some(0))));
        own.enter(LibraryId(0), None);
        assert_eq!(other.last(), Some((LibraryId(0), None)));
    }
}
