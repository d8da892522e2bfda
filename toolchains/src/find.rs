//! Finds programs that may be a toolchain's compiler or archiver: variables by `cc`'s conventions, then `PATH`, then
//! installation folders. Runs nothing and believes no name: what a program is, the probe finds out.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::definition::Definition;
use crate::environment::Environment;
use crate::target::Target;

/// How to start a tool: an absolute program and the words that always come first (`ccache g++` has one).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Absolute path. Links are not resolved: many compilers act on the name they were called by.
    pub program: PathBuf,
    /// Words before all others.
    pub arguments: Vec<String>,
}

/// Where a candidate was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundBy {
    /// In this variable: the user asked for it.
    Variable(String),
    /// On `PATH`, under this name.
    Path(String),
    /// In an installation folder.
    Place(PathBuf),
}

impl FoundBy {
    /// Whether the user asked for exactly this one.
    pub fn is_explicit(&self) -> bool {
        matches!(self, FoundBy::Variable(_))
    }
}

impl std::fmt::Display for FoundBy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FoundBy::Variable(name) => write!(formatter, "variable `{name}`"),
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
    found.extend(on_path(&find.programs, environment));
    let homes = find
        .home_variables
        .iter()
        .filter_map(|name| environment.variable(name))
        .map(|home| environment.directory().join(home))
        .chain(find.places.iter().map(PathBuf::from));
    for home in homes {
        for program in &find.programs {
            let path = home.join("bin").join(program);
            if let Some(program) = program_named(path.as_os_str(), environment) {
                let launch = Ok(Launch { program, arguments: find.arguments.clone() });
                found.push(Candidate { found_by: FoundBy::Place(path), launch });
            }
        }
    }
    for candidate in &mut found {
        if let (Ok(launch), false) = (&mut candidate.launch, matches!(candidate.found_by, FoundBy::Place(_)))
        {
            launch.arguments.extend(find.arguments.iter().cloned());
        }
    }
    each_once(found)
}

/// Candidates for the archiver of a definition, best first.
pub(crate) fn archivers(
    definition: &Definition,
    environment: &Environment,
    target: &Target,
) -> Vec<Candidate> {
    let mut found = in_variables(&definition.find.archiver_variables, environment, target);
    found.extend(on_path(&definition.find.archivers, environment));
    each_once(found)
}

/// The names under which a variable is looked up, most particular first, as the `cc` crate has them.
fn variable_names(base: &str, environment: &Environment, target: &Target) -> [String; 4] {
    let side = if target == environment.host() { "HOST" } else { "TARGET" };
    [
        format!("{base}_{target}"),
        format!("{base}_{}", target.underscored()),
        format!("{side}_{base}"),
        base.to_owned(),
    ]
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
fn launch_of(value: &OsStr, environment: &Environment) -> Option<Launch> {
    if let Some(program) = program_named(value, environment) {
        return Some(Launch { program, arguments: Vec::new() });
    }
    let mut words = value.to_str()?.split_whitespace();
    let program = program_named(OsStr::new(words.next()?), environment)?;
    Some(Launch { program, arguments: words.map(str::to_owned).collect() })
}

fn on_path(programs: &[String], environment: &Environment) -> Vec<Candidate> {
    let found = programs.iter().filter_map(|name| {
        let program = program_named(OsStr::new(name), environment)?;
        let launch = Ok(Launch { program, arguments: Vec::new() });
        Some(Candidate { found_by: FoundBy::Path(name.clone()), launch })
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
    fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned())
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
    fn a_variable_may_hold_a_wrapper_and_its_compiler() {
        let environment =
            Environment::from_variables([("PATH", "/bin:/usr/bin"), ("CXX", "env  g++ -m64")], "/");
        let found = in_variables(&["CXX".to_owned()], &environment, &Target::host());
        let launch = found[0].launch.as_ref().unwrap();
        assert!(launch.program.ends_with("env"));
        assert_eq!(launch.arguments, ["g++", "-m64"]);
    }
}
