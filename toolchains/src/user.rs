//! A user's own toolchains: a table for each in `.cargo/aoti.toml` (or, with the same keys, in a manifest), laid over a
//! built-in definition.
//!
//! ```toml
//! [toolchain.board]
//! base = "gcc-aarch64"                      # whose arguments it takes over
//! program = "/opt/board/bin/aarch64-g++"    # a path, relative to this file's folder, or a name on PATH
//! archiver = "aarch64-ar"
//! sysroot = "/opt/board/sysroot"
//! flags = ["-mcpu=neoverse-n1"]             # added to every compile
//! link-flags = ["-Wl,-z,now"]               # added to every link
//! targets = ["aarch64-unknown-linux-gnu"]   # by default the base's
//! ```
//! They go before the built-in ones, in the order of their names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::definition::{Definition, Find, Serves, definitions};
use crate::environment::Environment;
use crate::error::Error;

/// One toolchain of a user.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UserToolchain {
    /// The built-in definition that it is laid over.
    pub base: String,
    /// The compiler: a path, or a name on `PATH`. By default found as the base is.
    #[serde(default)]
    pub program: Option<String>,
    /// The archiver, likewise.
    #[serde(default)]
    pub archiver: Option<String>,
    /// Where headers and libraries of the target are.
    #[serde(default)]
    pub sysroot: Option<String>,
    /// Added to every compile.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Added to every link.
    #[serde(default)]
    pub link_flags: Vec<String>,
    /// Rust target triples; by default the base's.
    #[serde(default)]
    pub targets: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    toolchain: BTreeMap<String, UserToolchain>,
}

/// The built-in definitions with a user's before them. Paths are relative to `folder`; `file` is for messages.
///
/// # Errors
/// [`Error::Definition`] for an unknown base, or a name that is taken.
pub fn with_user_toolchains(
    own: &BTreeMap<String, UserToolchain>,
    folder: &Path,
    file: &str,
) -> Result<Vec<Definition>, Error> {
    let built_in = definitions();
    let mut all = Vec::new();
    for (name, own) in own {
        let fail = |message: String| Error::Definition { file: file.to_owned(), message };
        if built_in.iter().any(|known| known.name == *name) {
            return Err(fail(format!("the toolchain `{name}` is built in; give yours another name")));
        }
        let base = built_in.iter().find(|known| known.name == own.base).ok_or_else(|| {
            let known = built_in.iter().map(|known| known.name.as_str()).collect::<Vec<_>>().join("`, `");
            fail(format!("the toolchain `{name}` is based on `{}`, which is none of `{known}`", own.base))
        })?;
        all.push(laid_over(base, name, own, folder));
        all.last().map_or(Ok(()), Definition::check).map_err(fail)?;
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
    }
    if let Some(sysroot) = &own.sysroot {
        made.find.arguments.push(format!("--sysroot={}", folder.join(sysroot).display()));
    }
    made.arguments.compile.extend(own.flags.iter().cloned());
    made.arguments.compile_c.extend(own.flags.iter().cloned());
    made.arguments.link.extend(own.link_flags.iter().cloned());
    if let Some(device) = &mut made.device {
        device.compile.extend(own.flags.iter().cloned());
    }
    if !own.targets.is_empty() {
        let with_targets = |serves: &Serves| Serves { targets: own.targets.clone(), ..serves.clone() };
        made.serves = base.serves.iter().map(with_targets).collect();
    }
    made
}

/// The definitions for a project: the user's from the nearest `.cargo/aoti.toml` at or above its folder, then the
/// built-in ones.
///
/// # Errors
/// [`Error::Definition`] when that file cannot be read or is wrong.
pub fn project_definitions(project: &Path, environment: &Environment) -> Result<Vec<Definition>, Error> {
    let project = environment.directory().join(project);
    let file =
        project.ancestors().map(|folder| folder.join(".cargo").join("aoti.toml")).find(|file| file.is_file());
    let Some(file) = file else { return Ok(definitions()) };
    let shown = file.display().to_string();
    let fail = |message: String| Error::Definition { file: shown.clone(), message };
    let text = fs_err::read_to_string(&file).map_err(|error| fail(error.to_string()))?;
    let parsed: File = toml::from_str(&text).map_err(|error| fail(error.to_string()))?;
    let folder = file.parent().and_then(Path::parent).map_or_else(|| PathBuf::from("/"), Path::to_owned);
    with_user_toolchains(&parsed.toolchain, &folder, &shown)
}
