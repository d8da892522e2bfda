//! Where Python environments keep packages. Runs no Python: folders are enough.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::environment::Environment;

/// The `site-packages` folders of the active virtual environment, of conda's, of the `python3` on `PATH`, and of the
/// user, in this order.
pub(super) fn site_packages(environment: &Environment) -> Vec<PathBuf> {
    let mut prefixes = Vec::new();
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        prefixes.extend(environment.variable(name).map(|prefix| environment.directory().join(prefix)));
    }
    for name in ["python3", "python"] {
        let python = super::program_named(OsStr::new(name), environment);
        // Links are followed twice: an environment's own `python3` is a link out of it.
        let resolved = python.as_ref().and_then(|path| std::fs::canonicalize(path).ok());
        let prefix = |path: PathBuf| Some(path.parent()?.parent()?.to_owned());
        prefixes.extend(python.into_iter().chain(resolved).filter_map(prefix));
    }
    prefixes.extend(environment.variable("HOME").map(|home| Path::new(home).join(".local")));
    let mut folders = Vec::new();
    for prefix in prefixes {
        for python in super::matching(&prefix.join("lib").join("python3*")) {
            for packages in ["site-packages", "dist-packages"].map(|name| python.join(name)) {
                if packages.is_dir() && !folders.contains(&packages) {
                    folders.push(packages);
                }
            }
        }
    }
    folders
}
