//! Locks between processes: of results that are being made, of models that are being built, of files that are changed.
//!
//! The system frees them when a process ends, however it does.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::system;

/// Something that one process at a time may have.
#[derive(Debug)]
pub struct FileLock(fd_lock::RwLock<File>);

/// It is had until this is dropped.
#[derive(Debug)]
pub struct FileLockGuard<'l> {
    _guard: fd_lock::RwLockWriteGuard<'l, File>,
}

impl FileLock {
    /// The lock of an open file. Nothing is written to it.
    pub fn of(file: File) -> FileLock {
        FileLock(fd_lock::RwLock::new(file))
    }

    /// The lock of a folder, in which it leaves nothing.
    ///
    /// # Errors
    /// What the system says when it opens the folder.
    pub fn of_folder(folder: &Path) -> io::Result<FileLock> {
        system::open_folder_to_lock(folder).map(FileLock::of)
    }

    /// Takes it if nobody has it.
    ///
    /// # Errors
    /// What the system says, such as that the file cannot be locked.
    pub fn try_take(&mut self) -> io::Result<Option<FileLockGuard<'_>>> {
        match self.0.try_write() {
            Ok(guard) => Ok(Some(FileLockGuard { _guard: guard })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes it, and waits for it if somebody has it.
    ///
    /// # Errors
    /// What the system says: that the file cannot be locked, or [`io::ErrorKind::Interrupted`] when a signal ended the wait.
    pub fn take(&mut self) -> io::Result<FileLockGuard<'_>> {
        self.0.write().map(|guard| FileLockGuard { _guard: guard })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let open =
            || FileLock::of(File::options().create(true).truncate(false).write(true).open(&path).unwrap());
        let (mut first, mut second) = (open(), open());
        let held = first.try_take().unwrap();
        assert!(held.is_some() && second.try_take().unwrap().is_none());
        drop(held);
        drop(second.take().unwrap());
        assert!(first.try_take().unwrap().is_some());
    }

    #[test]
    fn a_folder_is_locked_and_stays_empty() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = FileLock::of_folder(folder.path()).unwrap();
        let mut second = FileLock::of_folder(folder.path()).unwrap();
        let held = first.take().unwrap();
        assert!(second.try_take().unwrap().is_none());
        drop(held);
        assert!(second.try_take().unwrap().is_some());
        drop((first, second));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
