//! Where a new project finds `aoti-runtime` and `aoti-build`.

use std::path::{Path, PathBuf};

use toml_edit::{InlineTable, Value};

use crate::failure::Failure;

/// The workspace that this program was built in; empty for one that was built from a package of its own.
const WORKSPACE: &str = env!("AOTI_WORKSPACE");
/// Where the sources are published, if the packages say.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// A source of the crates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Crates {
    /// The folder of the workspace.
    Folder(PathBuf),
    /// Its repository.
    Repository(String),
    /// The registry that this program came from too.
    Registry,
}

impl Crates {
    /// What the command line names, else where this program itself came from.
    pub(super) fn find(given: Option<&Path>) -> Result<Crates, Failure> {
        if let Some(given) = given {
            if let Some(url) = given.to_str().filter(|given| given.contains("://")) {
                return Ok(Crates::Repository(url.to_owned()));
            }
            let folder = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
            return if is_workspace(&folder) {
                Ok(Crates::Folder(folder))
            } else {
                let message = format!("`{}` does not hold the sources of cargo-aoti", given.display());
                Err(Failure::Usage(message))
            };
        }
        Crates::of_program(WORKSPACE, REPOSITORY)
    }

    fn of_program(workspace: &str, repository: &str) -> Result<Crates, Failure> {
        if workspace.is_empty() {
            return Ok(Crates::Registry);
        }
        let folder = PathBuf::from(workspace);
        // Cargo's own checkouts come and go.
        let is_checkout = workspace.replace('\\', "/").contains("/git/checkouts/");
        if is_workspace(&folder) && (!is_checkout || repository.is_empty()) {
            return Ok(Crates::Folder(folder));
        }
        if !repository.is_empty() {
            return Ok(Crates::Repository(repository.to_owned()));
        }
        Err(Failure::User(format!(
            "the crates that a project needs are not published yet, and the sources of this program are no longer at \
             `{workspace}`; say where they are with `--sources FOLDER`"
        )))
    }

    /// What to know of the manifest that is made, where it is good for this machine alone.
    pub(super) fn note(&self) -> Option<String> {
        let Crates::Folder(root) = self else { return None };
        let root = root.display();
        Some(format!(
            "the project takes `aoti-runtime` and `aoti-build` from `{root}`; for use on other machines, change these paths in \
             its `Cargo.toml`, or name a git repository with `--sources URL`"
        ))
    }

    /// The value of a dependency on a crate with these features, beside the default ones or without them.
    pub(super) fn dependency(&self, name: &str, features: &[&str], has_defaults: bool) -> Value {
        let mut table = InlineTable::new();
        match self {
            Crates::Folder(root) => {
                let path = root.join("build-support").join(name);
                table.insert("path", Value::from(path.to_string_lossy().into_owned()));
            }
            Crates::Repository(url) => drop(table.insert("git", Value::from(url.as_str()))),
            Crates::Registry if features.is_empty() && has_defaults => {
                return Value::from(env!("CARGO_PKG_VERSION"));
            }
            Crates::Registry => {
                table.insert("version", Value::from(env!("CARGO_PKG_VERSION")));
            }
        }
        if !has_defaults {
            table.insert("default-features", Value::from(false));
        }
        if !features.is_empty() {
            table.insert("features", Value::Array(features.iter().copied().collect()));
        }
        Value::InlineTable(table)
    }

    /// The versions of other crates that this program was built and tested with, where they can be known.
    pub(super) fn lock(&self) -> Option<PathBuf> {
        let Crates::Folder(root) = self else { return None };
        Some(root.join("Cargo.lock")).filter(|lock| lock.is_file())
    }
}

fn is_workspace(folder: &Path) -> bool {
    folder.join("build-support/aoti-build/Cargo.toml").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_come_from_where_the_program_came_from() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_str().unwrap();
        assert_eq!(Crates::of_program(here, "").unwrap(), Crates::Folder(here.into()));
        assert_eq!(Crates::of_program(here, "https://x").unwrap(), Crates::Folder(here.into()));
        assert_eq!(Crates::of_program("", "https://x").unwrap(), Crates::Registry);
        let gone = "/gone/git/checkouts/a";
        assert_eq!(
            Crates::of_program(gone, "https://x").unwrap(),
            Crates::Repository("https://x".to_owned())
        );
        let Err(Failure::User(message)) = Crates::of_program("/gone", "") else { panic!("it is gone") };
        assert!(message.contains("/gone") && message.contains("--sources"), "{message}");
    }

    #[test]
    fn sources_may_be_a_repository() {
        let given = "https://example.org/cargo-aoti.git";
        let crates = Crates::find(Some(Path::new(given))).unwrap();
        assert_eq!(crates, Crates::Repository(given.to_owned()));
        assert_eq!((crates.note(), Crates::Registry.note()), (None, None));
        assert!(Crates::Folder("/a".into()).note().unwrap().contains("`/a`"));
    }

    #[test]
    fn dependencies_are_as_cargo_reads_them() {
        let text = |crates: &Crates, features: &[&str]| {
            crates.dependency("aoti-build", features, true).to_string().trim().to_owned()
        };
        let folder = Crates::Folder("/a \"b\"".into());
        assert_eq!(text(&folder, &[]), r#"{ path = '/a "b"/build-support/aoti-build' }"#);
        assert_eq!(
            text(&Crates::Repository("u".to_owned()), &["half"]),
            r#"{ git = "u", features = ["half"] }"#
        );
        assert_eq!(text(&Crates::Registry, &[]), concat!("\"", env!("CARGO_PKG_VERSION"), "\""));
        let lean = Crates::Registry.dependency("aoti-build", &[], false).to_string();
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(lean.trim(), format!("{{ version = \"{version}\", default-features = false }}"));
    }
}
