//! Temporary folders, and the removal of those whose process was killed.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use tempfile::TempDir;

use crate::cache::is_abandoned;
use crate::environment::Environment;

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

/// A folder that is removed when it is dropped; `what` is one of `action`, `case`, `model`, `probe`, `remote`
/// and `tune`.
///
/// # Errors
/// What the system says, without the path: it is that of [`Environment::temporary_directory`], which the caller names.
pub fn temporary_folder(what: &str, environment: &Environment) -> io::Result<TempDir> {
    let prefix = format!("aoti-{what}-");
    debug_assert!(PREFIXES.contains(&prefix.as_str()), "{prefix} would not be swept up");
    let made = tempfile::Builder::new().prefix(&prefix).tempdir_in(environment.temporary_directory());
    made.map_err(|error| match error.to_string().split_once(" at path ") {
        Some((cause, _)) => io::Error::new(error.kind(), cause),
        None => error,
    })
}

/// Removes our temporary folders that are older than a day: their processes died, or told somebody of a failure who has
/// had the time to look. Returns how many there were; what cannot be removed waits for the next time.
pub fn sweep_temporaries(environment: &Environment) -> usize {
    let listing = fs_err::read_dir(environment.temporary_directory()).into_iter().flatten().flatten();
    let now = SystemTime::now();
    let is_ours = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    let paths = listing.map(|entry| entry.path());
    // Links are not followed: they are not ours.
    let is_folder = |path: &Path| fs_err::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let abandoned = paths.filter(|path| is_ours(path) && is_folder(path) && is_abandoned(path, now));
    abandoned.filter(|path| fs_err::remove_dir_all(path).is_ok()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_leave_the_path_to_the_caller() {
        let environment = Environment::from_variables([("TMPDIR", "/nowhere/at/all")], "/");
        let error = temporary_folder("action", &environment).unwrap_err();
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
    }
}
