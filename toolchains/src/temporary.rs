//! Temporary folders and files, and the removal of those whose process was killed.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{io, mem};

use crate::cache::is_abandoned;
use crate::environment::Environment;
use crate::system;

/// What our folders in the system's folder for temporary files are called: nothing else there is ever touched. The folder
/// of a failure is kept for the person who is told of it, as long as the others.
const PREFIXES: [&str; 7] = [
    "aoti-action-",
    "aoti-case-",
    "aoti-failed-",
    "aoti-model-",
    "aoti-probe-",
    "aoti-remote-",
    "aoti-tune-",
];

/// A folder that is removed when it is dropped, with all that is in it.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    /// A new folder in this one that no other user can read. Its name is the prefix and random digits.
    pub(crate) fn new_in(folder: &Path, prefix: &str) -> io::Result<Self> {
        let (path, ()) = at_new_name(folder, prefix, system::create_private_folder)?;
        Ok(TemporaryFolder { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is, for good: it is not removed.
    pub(crate) fn keep(mut self) -> PathBuf {
        let path = mem::take(&mut self.path);
        mem::forget(self);
        path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // What is left behind is swept up later.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A file that is written beside the place where it is to be, so that nobody sees half of it. It is removed when it is dropped.
#[derive(Debug)]
pub struct FileAside {
    file: File,
    path: PathBuf,
}

impl FileAside {
    /// A new, empty file in this folder.
    ///
    /// # Errors
    /// What the system says, without the path.
    pub fn new_in(folder: &Path) -> io::Result<Self> {
        let (path, file) = at_new_name(folder, ".aoti-", |path| File::create_new(path))?;
        Ok(FileAside { file, path })
    }

    /// The file, to be written.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file its place in one step, instead of the file that is there.
    ///
    /// # Errors
    /// What the system says, without the path. The file is removed then.
    pub fn persist(self, destination: &Path) -> io::Result<()> {
        // Its name is free afterwards, so there is nothing to be removed.
        system::rename(&self.path, destination)
    }
}

impl Drop for FileAside {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Creates something under a name that nothing else has, and gives its path.
fn at_new_name<T>(
    folder: &Path,
    prefix: &str,
    create: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    const ATTEMPTS: u64 = 1000;
    let keys = RandomState::new();
    for attempt in 0..ATTEMPTS {
        let path = folder.join(format!("{prefix}{:016x}", keys.hash_one(attempt)));
        match create(&path) {
            Ok(made) => return Ok((path, made)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no name for a temporary file is free"))
}

/// A folder that is removed when it is dropped; `what` is one of `action`, `case`, `model`, `probe`, `remote`
/// and `tune`.
///
/// # Errors
/// What the system says, without the path: it is that of [`Environment::temporary_directory`], which the caller names.
pub fn temporary_folder(what: &str, environment: &Environment) -> io::Result<TemporaryFolder> {
    let prefix = format!("aoti-{what}-");
    debug_assert!(PREFIXES.contains(&prefix.as_str()), "{prefix} would not be swept up");
    TemporaryFolder::new_in(&environment.temporary_directory(), &prefix)
}

/// Removes our temporary folders that are older than a day: their processes died, or told somebody of a failure who has
/// had the time to look. Returns how many there were; what cannot be removed waits for the next time.
pub fn sweep_temporaries(environment: &Environment) -> usize {
    let listing = std::fs::read_dir(environment.temporary_directory()).into_iter().flatten().flatten();
    let now = SystemTime::now();
    let is_ours = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    let paths = listing.map(|entry| entry.path());
    // Links are not followed: they are not ours.
    let is_folder = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let abandoned = paths.filter(|path| is_ours(path) && is_folder(path) && is_abandoned(path, now));
    abandoned.filter(|path| std::fs::remove_dir_all(path).is_ok()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_leave_the_path_to_the_caller() {
        let environment = Environment::from_variables([("TMPDIR", "/nowhere/at/all")], "/");
        let error = temporary_folder("action", &environment).unwrap_err();
        let of_system = std::fs::create_dir("/nowhere/at/all/x").unwrap_err();
        assert_eq!(error.to_string(), of_system.to_string());
    }

    #[test]
    fn folders_go_away_unless_they_are_kept() {
        let here = tempfile::tempdir().unwrap();
        let first = TemporaryFolder::new_in(here.path(), "aoti-").unwrap();
        let second = TemporaryFolder::new_in(here.path(), "aoti-").unwrap();
        assert_ne!(first.path(), second.path());
        fs_err::write(first.path().join("file"), "content").unwrap();
        let (gone, kept) = (first.path().to_owned(), second.keep());
        drop(first);
        assert!(!gone.exists());
        assert!(kept.is_dir());
    }

    #[test]
    fn a_file_takes_its_place_or_goes_away() {
        let here = tempfile::tempdir().unwrap();
        let place = here.path().join("place");
        fs_err::write(&place, "old").unwrap();
        let mut aside = FileAside::new_in(here.path()).unwrap();
        io::Write::write_all(aside.file(), b"new").unwrap();
        assert_eq!(fs_err::read_to_string(&place).unwrap(), "old");
        aside.persist(&place).unwrap();
        drop(FileAside::new_in(here.path()).unwrap());
        assert!(FileAside::new_in(here.path()).unwrap().persist(&here.path().join("no/where")).is_err());
        assert_eq!(fs_err::read_to_string(&place).unwrap(), "new");
        assert_eq!(fs_err::read_dir(here.path()).unwrap().count(), 1);
    }
}
