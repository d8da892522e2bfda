//! Where an installed `cargo-aoti` is.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The program that cargo starts for `cargo aoti`.
pub(crate) const PROGRAM: &str = "cargo-aoti";

/// The program where cargo looks for subcommands: among those of the search path, then among those that cargo installs.
/// `variable` reads the environment.
pub fn installed(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let name = format!("{PROGRAM}{}", env::consts::EXE_SUFFIX);
    let search = variable("PATH").unwrap_or_default();
    let of_cargo = variable("CARGO_HOME").map(PathBuf::from);
    let of_user =
        variable("HOME").or_else(|| variable("USERPROFILE")).map(|home| Path::new(&home).join(".cargo"));
    let of_cargo = of_cargo.or(of_user).map(|home| home.join("bin"));
    let programs = env::split_paths::<OsStr>(&search).chain(of_cargo).map(|folder| folder.join(&name));
    programs.into_iter().find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_search_path_go_before_those_that_cargo_installs() {
        let folder = env::temp_dir().join(format!("aoti-build-{}", std::process::id()));
        let (path, home) = (folder.join("path"), folder.join("home"));
        let name = format!("{PROGRAM}{}", env::consts::EXE_SUFFIX);
        let find = || {
            installed(|name| match name {
                "PATH" => Some(path.clone().into()),
                "CARGO_HOME" => Some(home.clone().into()),
                _ => None,
            })
        };
        assert_eq!(find(), None);
        for bin in [home.join("bin"), path.clone()] {
            std::fs::create_dir_all(&bin).unwrap();
            std::fs::write(bin.join(&name), "").unwrap();
            assert_eq!(find(), Some(bin.join(&name)));
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
