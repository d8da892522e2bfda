//! Finds programs that may be a toolchain's compiler, archiver or helper: variables by `cc`'s conventions, then `PATH`,
//! then installation folders and the packages of Python environments. Runs nothing and believes no name: what a program
//! is, the probe finds out.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::definition::{Definition, Find};
use crate::environment::Environment;
use crate::target::Target;

mod conventions;
mod python;

use conventions::variable_names;

/// How to start a tool: an absolute program and the words that always come first (`ccache g++` has one).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Absolute path. Links are not resolved: many compilers act on the name they were called by.
    pub program: PathBuf,
    /// Words before all others.
    pub arguments: Vec<String>,
    /// Words after those that only say where something is (`-ccbin /usr/bin/g++`): not part of keys, which have the
    /// identity of what is there instead.
    pub places: Vec<String>,
}

impl Launch {
    /// A program that is started without further words.
    pub fn of(program: impl Into<PathBuf>) -> Self {
        Launch { program: program.into(), arguments: Vec::new(), places: Vec::new() }
    }

    fn with(program: PathBuf, arguments: &[String]) -> Self {
        Launch { program, arguments: arguments.to_vec(), places: Vec::new() }
    }
}

/// Where a candidate was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundBy {
    /// In this variable: the user asked for it.
    Variable(String),
    /// In the installation that this variable names.
    Home(String),
    /// On `PATH`, under this name.
    Path(String),
    /// In an installation folder.
    Place(PathBuf),
}

impl FoundBy {
    /// Whether the user asked for exactly this one.
    pub fn is_explicit(&self) -> bool {
        matches!(self, FoundBy::Variable(_) | FoundBy::Home(_))
    }
}

impl std::fmt::Display for FoundBy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FoundBy::Variable(name) => write!(formatter, "variable `{name}`"),
            FoundBy::Home(name) => write!(formatter, "variable `{name}`"),
            FoundBy::Path(name) => write!(formatter, "`{name}` on PATH"),
            FoundBy::Place(place) => write!(formatter, "`{}`", place.display()),
        }
    }
}

/// One place where a tool was looked for with success, or a variable that names nothing.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) found_by: FoundBy,
    /// `Err` holds the variable's value, which is no program.
    pub(crate) launch: Result<Launch, String>,
}

/// Candidates for the compiler of a definition, best first, each program once.
pub(crate) fn compilers(
    definition: &Definition,
    environment: &Environment,
    target: &Target,
) -> Vec<Candidate> {
    let find = &definition.find;
    let mut found = in_variables(&find.variables, environment, target);
    let arguments = conventions::arguments(&find.arguments, &find.variables, environment, target);
    found.extend(by_name(find, &find.programs, &find.subcommand, environment, target));
    for launch in found.iter_mut().filter_map(|candidate| candidate.launch.as_mut().ok()) {
        launch.arguments.extend(arguments.iter().cloned());
    }
    each_once(found)
}

/// Programs that are found by their names, with the words that make them the tool that is looked for.
fn by_name(
    find: &Find,
    programs: &[String],
    subcommand: &[String],
    environment: &Environment,
    target: &Target,
) -> Vec<Candidate> {
    let mut found = in_homes(find, programs, environment, true);
    for mut candidate in in_variables(&find.place_variables, environment, target) {
        if let Ok(launch) = &candidate.launch {
            candidate.found_by = FoundBy::Place(launch.program.clone());
            found.push(candidate);
        }
    }
    found.extend(on_path(programs, environment));
    found.extend(in_homes(find, programs, environment, false));
    for launch in found.iter_mut().filter_map(|candidate| candidate.launch.as_mut().ok()) {
        launch.arguments.extend(subcommand.iter().cloned());
    }
    found
}

/// Programs in the installations that variables name, or else in usual places and Python packages.
fn in_homes(
    find: &Find,
    programs: &[String],
    environment: &Environment,
    by_variable: bool,
) -> Vec<Candidate> {
    let mut homes = Vec::new();
    if by_variable {
        for name in &find.home_variables {
            let Some(home) = environment.variable(name) else { continue };
            let home = environment.directory().join(home);
            let folders = find.home_folders.iter().flat_map(|folder| matching(&home.join(folder)));
            homes.extend(folders.map(|folder| (Some(name), folder)).collect::<Vec<_>>());
            if find.home_folders.is_empty() {
                homes.push((Some(name), home));
            }
        }
    } else {
        let mut places = find.places.iter().flat_map(|place| matching(Path::new(place))).collect::<Vec<_>>();
        if !find.python_packages.is_empty() {
            for folder in python::site_packages(environment) {
                places
                    .extend(find.python_packages.iter().flat_map(|package| matching(&folder.join(package))));
            }
        }
        homes.extend(places.into_iter().map(|home| (None, home)));
    }
    let mut found = Vec::new();
    for (variable, home) in homes {
        let in_package = find.python_packages.iter().any(|package| home.ends_with(package));
        let folders = [Some(home.join("bin")), in_package.then_some(home)];
        let paths =
            folders.iter().flatten().flat_map(|folder| programs.iter().map(|program| folder.join(program)));
        for path in paths.collect::<Vec<_>>() {
            let Some(program) = program_named(path.as_os_str(), environment) else { continue };
            let found_by = variable.map_or(FoundBy::Place(path), |name| FoundBy::Home(name.clone()));
            found.push(Candidate { found_by, launch: Ok(Launch::of(program)) });
        }
    }
    found
}

/// A program that works for the compiler: beside it, or where it might itself have been found.
pub(crate) fn helper(
    name: &str,
    definition: &Definition,
    beside: &[PathBuf],
    environment: &Environment,
) -> Option<PathBuf> {
    let find = &definition.find;
    let named = in_variables(&find.helper_variables, environment, environment.host());
    let programs = named.into_iter().filter_map(|named| Some(named.launch.ok()?.program));
    let folders = programs.filter_map(|program| Some(program.parent()?.to_owned()));
    let mut places = beside.iter().cloned().chain(folders).map(|folder| folder.join(name));
    let near = places.find(|path| path.is_file());
    let names = [name.to_owned()];
    let elsewhere = || {
        let mut found = in_homes(find, &names, environment, true);
        found.extend(on_path(&names, environment));
        found.extend(in_homes(find, &names, environment, false));
        found.into_iter().find_map(|candidate| Some(candidate.launch.ok()?.program))
    };
    near.or_else(elsewhere)
}

/// Host compilers that a definition's compiler may call: what a variable names, or else all on `PATH`.
pub(crate) fn host_compilers(definition: &Definition, environment: &Environment) -> Vec<Candidate> {
    let explicit = in_variables(&definition.find.host_variables, environment, environment.host());
    if explicit.is_empty() {
        each_once(on_path(&definition.find.host_programs, environment))
    } else {
        explicit
    }
}

/// The folders that a path stands for whose parts may hold one `*` each; the newest version first.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let split = part.as_os_str().to_str().and_then(|name| name.split_once('*'));
        found = match split {
            Some((before, after)) => {
                found.iter().flat_map(|folder| children(folder, before, after)).collect()
            }
            None => found.into_iter().map(|folder| folder.join(part)).collect(),
        };
    }
    found
}

/// What a folder holds with such names; the newest version first.
fn children(folder: &Path, before: &str, after: &str) -> Vec<PathBuf> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = names.filter_map(|child| child.file_name().into_string().ok());
    let mut names = names
        .filter(|name| {
            name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
        })
        .collect::<Vec<_>>();
    names.sort_by_key(|name| std::cmp::Reverse(version_in(name)));
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// The numbers in a name, for comparing versions; a name without any is a link to the one that the user prefers.
fn version_in(name: &str) -> (bool, Vec<u32>, String) {
    let numbers =
        name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect::<Vec<u32>>();
    (numbers.is_empty(), numbers, name.to_owned())
}

/// Candidates for the archiver of a definition, best first.
pub(crate) fn archivers(
    definition: &Definition,
    environment: &Environment,
    target: &Target,
) -> Vec<Candidate> {
    let find = &definition.find;
    let mut found = in_variables(&find.archiver_variables, environment, target);
    // One that comes with the compiler is wherever that may be.
    found.extend(by_name(find, &find.archivers, &find.archiver_subcommand, environment, target));
    each_once(found)
}

fn in_variables(bases: &[String], environment: &Environment, target: &Target) -> Vec<Candidate> {
    let mut found = Vec::new();
    for base in bases {
        let names = variable_names(base, environment, target);
        let set = names.into_iter().find_map(|name| environment.variable(&name).map(|value| (name, value)));
        if let Some((name, value)) = set {
            let launch = launch_of(value, environment).ok_or_else(|| value.to_string_lossy().into_owned());
            found.push(Candidate { found_by: FoundBy::Variable(name), launch });
        }
    }
    found
}

/// A variable's value is a program, or a program with arguments.
pub(crate) fn launch_of(value: &OsStr, environment: &Environment) -> Option<Launch> {
    if let Some(program) = program_named(value, environment) {
        return Some(Launch::of(program));
    }
    let mut words = value.to_str()?.split_whitespace();
    let program = program_named(OsStr::new(words.next()?), environment)?;
    Some(Launch::with(program, &words.map(str::to_owned).collect::<Vec<_>>()))
}

fn on_path(programs: &[String], environment: &Environment) -> Vec<Candidate> {
    let found = programs.iter().filter_map(|name| {
        let program = program_named(OsStr::new(name), environment)?;
        // A user's own toolchain may be given by its path.
        let is_path = Path::new(name).components().count() > 1;
        let found_by = if is_path { FoundBy::Place(program.clone()) } else { FoundBy::Path(name.clone()) };
        Some(Candidate { found_by, launch: Ok(Launch::of(program)) })
    });
    found.collect()
}

/// The absolute path of a program given as a name on `PATH` or as a path.
pub(crate) fn program_named(name: &OsStr, environment: &Environment) -> Option<PathBuf> {
    let found = which::which_in(name, environment.variable("PATH"), environment.directory()).ok()?;
    // Tools run in other folders, and `PATH` may have relative entries.
    Some(environment.directory().join(found))
}

/// Distributions link one compiler under several names; the first name stands for all.
fn each_once(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for candidate in candidates {
        let first_time = match &candidate.launch {
            Ok(launch) => seen.insert((resolved(&launch.program), launch.arguments.clone())),
            Err(_) => true,
        };
        if first_time {
            kept.push(candidate);
        }
    }
    kept
}

fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn particular_variables_come_first() {
        let environment = Environment::from_variables([("PATH", "/bin")], "/");
        let names = variable_names("CXX", &environment, &Target::new("thumbv7em-none-eabi.x"));
        assert_eq!(names, ["CXX_thumbv7em-none-eabi.x", "CXX_thumbv7em_none_eabi_x", "TARGET_CXX", "CXX"]);
        let host = environment.host().clone();
        assert_eq!(variable_names("AR", &environment, &host)[2], "HOST_AR");
    }

    #[test]
    fn the_newest_of_several_installations_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["cuda-9.2", "cuda-13.1", "cuda-12.10", "cuda-12.9", "other"] {
            fs_err::create_dir(folder.path().join(name)).unwrap();
        }
        let names = |pattern: &str| {
            let found = matching(&folder.path().join(pattern));
            found
                .iter()
                .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("cuda*"), ["cuda-13.1", "cuda-12.10", "cuda-12.9", "cuda-9.2"]);
        fs_err::create_dir(folder.path().join("cuda")).unwrap();
        assert_eq!(names("cuda*")[0], "cuda");
        assert_eq!(names("nothing*"), [""; 0]);
    }

    #[test]
    fn a_variable_may_hold_a_wrapper_and_its_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let wrapper = folder.path().join(format!("wrap{}", std::env::consts::EXE_SUFFIX));
        // Any program.
        fs_err::copy(std::env::current_exe().unwrap(), &wrapper).unwrap();
        let variables = [("PATH", folder.path().as_os_str()), ("CXX", OsStr::new("wrap  g++ -m64"))];
        let environment = Environment::from_variables(variables, "/");
        let found = in_variables(&["CXX".to_owned()], &environment, &Target::host());
        let launch = found[0].launch.as_ref().unwrap();
        assert_eq!(launch.program, wrapper);
        assert_eq!(launch.arguments, ["g++", "-m64"]);
    }
}
