//! A user's own toolchains: a table for each in `.cargo/aoti.toml` or, with the same keys, in a manifest
//! (`[package.metadata.aoti.toolchain.<name>]`), laid over a built-in definition.
//!
//! ```toml
//! [toolchain.board]
//! base = "gcc-aarch64"                      # whose arguments it takes over
//! program = "/opt/board/bin/aarch64-g++"    # a path, or a name on PATH
//! archiver = "aarch64-ar"
//! sysroot = "/opt/board/sysroot"
//! flags = ["-mcpu=neoverse-n1"]             # added to every compile, after ours
//! link-flags = ["-Wl,-z,now"]               # added to every link, after ours
//! targets = ["aarch64-unknown-linux-gnu"]   # by default the base's
//! ```
//! Paths are relative to the folder above `.cargo`, or to the manifest's. All go before the built-in ones: those of
//! `.cargo/aoti.toml`, which are a person's, before those of a build script or a manifest, which are a project's, each in
//! the order of their names. Where two places have a name, the first one's is meant.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::definition::{Definition, Find, Serves, definitions};
use crate::environment::Environment;
use crate::error::Error;
use crate::fields::read_fields;

/// One toolchain of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserToolchain {
    /// The built-in definition that it is laid over.
    pub base: String,
    /// The compiler: a path, or a name on `PATH`. By default found as the base is.
    pub program: Option<String>,
    /// The archiver, likewise.
    pub archiver: Option<String>,
    /// Where headers and libraries of the target are.
    pub sysroot: Option<String>,
    /// Added to every compile, after all other arguments, so that they can change those.
    pub flags: Vec<String>,
    /// Added to every link, likewise.
    pub link_flags: Vec<String>,
    /// Rust target triples; by default the base's.
    pub targets: Vec<String>,
}

read_fields!(UserToolchain { base } or_default { program, archiver, sysroot, flags, link_flags = "link-flags", targets });

impl UserToolchain {
    /// The keys of a table.
    pub const KEYS: [&'static str; 7] =
        ["base", "program", "archiver", "sysroot", "flags", "link-flags", "targets"];

    /// One that is its base in all, until told otherwise.
    pub fn new(base: impl Into<String>) -> UserToolchain {
        UserToolchain {
            base: base.into(),
            program: None,
            archiver: None,
            sysroot: None,
            flags: Vec::new(),
            link_flags: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// Its compiler: `program` of a table.
    #[must_use]
    pub fn program(mut self, program: impl Into<String>) -> UserToolchain {
        self.program = Some(program.into());
        self
    }

    /// Its archiver: `archiver` of a table.
    #[must_use]
    pub fn archiver(mut self, archiver: impl Into<String>) -> UserToolchain {
        self.archiver = Some(archiver.into());
        self
    }

    /// Where headers and libraries of the target are: `sysroot` of a table.
    #[must_use]
    pub fn sysroot(mut self, folder: impl Into<String>) -> UserToolchain {
        self.sysroot = Some(folder.into());
        self
    }

    /// Adds to every compile: `flags` of a table.
    #[must_use]
    pub fn flags(mut self, flags: impl IntoIterator<Item = impl Into<String>>) -> UserToolchain {
        self.flags = flags.into_iter().map(Into::into).collect();
        self
    }

    /// Adds to every link: `link-flags` of a table.
    #[must_use]
    pub fn link_flags(mut self, flags: impl IntoIterator<Item = impl Into<String>>) -> UserToolchain {
        self.link_flags = flags.into_iter().map(Into::into).collect();
        self
    }

    /// Rust target triples that it serves, in place of the base's: `targets` of a table.
    #[must_use]
    pub fn targets(mut self, targets: impl IntoIterator<Item = impl Into<String>>) -> UserToolchain {
        self.targets = targets.into_iter().map(Into::into).collect();
        self
    }
}

/// Toolchains from one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserToolchains {
    /// The file with the tables, for messages.
    pub file: PathBuf,
    /// What paths are relative to.
    pub folder: PathBuf,
    /// The tables by name.
    pub tables: BTreeMap<String, UserToolchain>,
}

struct File {
    toolchain: BTreeMap<String, UserToolchain>,
}

read_fields!(File {} or_default { toolchain });

/// The definitions that the tables of these places make, those of the first place first, and behind them the built-in ones.
fn with_built_in(places: &[&UserToolchains]) -> Result<Vec<Definition>, Error> {
    let built_in = definitions();
    let mut all: Vec<Definition> = Vec::new();
    for UserToolchains { file, folder, tables } in places {
        for (name, own) in tables {
            let fail = |message: String| Error::Definition { file: file.display().to_string(), message };
            if built_in.iter().any(|known| known.name == *name) {
                return Err(fail(format!("the toolchain `{name}` is built in; give yours another name")));
            }
            let base = built_in.iter().find(|known| known.name == own.base).ok_or_else(|| {
                let known = built_in.iter().map(|known| known.name.as_str()).collect::<Vec<_>>().join("`, `");
                fail(format!("the toolchain `{name}` is based on `{}`, which is none of `{known}`", own.base))
            })?;
            let made = laid_over(base, name, own, folder);
            made.check().map_err(fail)?;
            // Those of the places before go before these of the same name.
            if !all.iter().any(|known| known.name == *name) {
                all.push(made);
            }
        }
    }
    all.extend(built_in);
    Ok(all)
}

fn laid_over(base: &Definition, name: &str, own: &UserToolchain, folder: &Path) -> Definition {
    let mut made = base.clone();
    made.name = name.to_owned();
    made.summary = format!("{}, as `{name}` of the user", base.summary);
    made.priority = 0;
    let at = |program: &String| {
        let is_path = program.contains('/');
        if is_path { folder.join(program).to_string_lossy().into_owned() } else { program.clone() }
    };
    if let Some(program) = &own.program {
        made.find = Find {
            variables: Vec::new(),
            place_variables: Vec::new(),
            programs: vec![at(program)],
            home_variables: Vec::new(),
            places: Vec::new(),
            python_packages: Vec::new(),
            ..made.find
        };
    }
    if let Some(archiver) = &own.archiver {
        made.find.archiver_variables.clear();
        made.find.archivers = vec![at(archiver)];
        made.find.archiver_subcommand.clear();
    }
    if let Some(sysroot) = &own.sysroot {
        made.find.arguments.push(format!("--sysroot={}", folder.join(sysroot).display()));
    }
    made.arguments.last.extend(own.flags.iter().cloned());
    made.arguments.link_last.extend(own.link_flags.iter().cloned());
    if let Some(device) = &mut made.device {
        device.last.extend(own.flags.iter().cloned());
    }
    if !own.targets.is_empty() {
        let with_targets = |serves: &Serves| Serves { targets: own.targets.clone(), ..serves.clone() };
        made.serves = base.serves.iter().map(with_targets).collect();
    }
    made
}

/// The nearest `.cargo/aoti.toml`, as cargo looks for its own configuration: in the working directory and above. A sealed
/// environment has none.
pub fn user_file(environment: &Environment) -> Option<PathBuf> {
    if environment.is_sealed() {
        return None;
    }
    let folders = environment.directory().ancestors();
    folders.map(|folder| folder.join(".cargo").join("aoti.toml")).find(|file| file.is_file())
}

/// The definitions for a project: the user's from [`user_file`], the project's from these places, the built-in ones.
///
/// # Errors
/// [`Error::Definition`] when that file cannot be read, or a table is wrong.
pub(crate) fn project_definitions(
    environment: &Environment,
    own: &[Arc<UserToolchains>],
) -> Result<Vec<Definition>, Error> {
    let persons = user_file(environment).map(read).transpose()?;
    let places: Vec<&UserToolchains> = persons.iter().chain(own.iter().map(Arc::as_ref)).collect();
    with_built_in(&places)
}

fn read(file: PathBuf) -> Result<UserToolchains, Error> {
    let fail = |message: String| Error::Definition { file: file.display().to_string(), message };
    let text = std::fs::read_to_string(&file).map_err(|error| fail(error.to_string()))?;
    let File { toolchain: tables } = toml::from_str(&text).map_err(|error| fail(error.to_string()))?;
    let folder = file.parent().and_then(Path::parent).map_or_else(|| PathBuf::from("/"), Path::to_owned);
    Ok(UserToolchains { file, folder, tables })
}
