//! The cargo project that a command is about: asks cargo, selects packages, reads their tables.

use std::path::{Path, PathBuf};

use aoti_build::{Manifest, Problems, Wishes, suggest};
use cargo_metadata::{Metadata, MetadataCommand, Package};
use clap::Args;

use crate::commands::Context;
use crate::failure::Failure;

/// Cargo's own flags for what is built.
#[derive(Args, Clone, Debug)]
pub(crate) struct Selection {
    /// Package to build the models of
    #[arg(short, long, value_name = "SPEC")]
    pub(crate) package: Vec<String>,
    /// All packages of the workspace
    #[arg(long)]
    pub(crate) workspace: bool,
    /// With --workspace: all packages but these
    #[arg(long, value_name = "SPEC", requires = "workspace")]
    pub(crate) exclude: Vec<String>,
    /// Path to Cargo.toml
    #[arg(long, value_name = "PATH")]
    pub(crate) manifest_path: Option<PathBuf>,
    /// Folder for all artefacts
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) target_dir: Option<PathBuf>,
    /// Require Cargo.lock to be up to date
    #[arg(long)]
    pub(crate) locked: bool,
    /// Do not use the network
    #[arg(long)]
    pub(crate) offline: bool,
    /// As --locked --offline
    #[arg(long)]
    pub(crate) frozen: bool,
}

/// A project as cargo sees it.
pub(crate) struct Project {
    metadata: Metadata,
    pub(crate) target_directory: PathBuf,
}

impl Project {
    /// Asks cargo.
    pub(crate) fn open(selection: &Selection, context: &Context) -> Result<Project, Failure> {
        let mut command = MetadataCommand::new();
        // Models depend on no other package, so cargo need not resolve any.
        command.no_deps();
        if let Some(cargo) = context.environment.variable("CARGO") {
            command.cargo_path(cargo);
        }
        if let Some(path) = &selection.manifest_path {
            if !path.is_file() {
                let message = format!("manifest path `{}` does not exist", path.display());
                return Err(Failure::Usage(message));
            }
            command.manifest_path(path);
        }
        let flags = [
            (selection.locked, "--locked"),
            (selection.offline, "--offline"),
            (selection.frozen, "--frozen"),
        ];
        let flags = flags.iter().filter(|(given, _)| *given).map(|(_, flag)| (*flag).to_owned());
        command.other_options(flags.collect::<Vec<_>>());
        let metadata = command.exec().map_err(|error| {
            if let cargo_metadata::Error::CargoMetadata { stderr } = &error {
                return Failure::User(stderr.trim_start_matches("error: ").trim_end().to_owned());
            }
            Failure::Machine(format!("cannot ask cargo about the project: {error}"))
        })?;
        let target_directory = match &selection.target_dir {
            Some(folder) => context.environment.directory().join(folder),
            None => metadata.target_directory.clone().into_std_path_buf(),
        };
        Ok(Project { metadata, target_directory })
    }

    /// Whether a command is given in a project at all, or names one.
    pub(crate) fn is_there(selection: &Selection, context: &Context) -> bool {
        let mut folders = context.environment.directory().ancestors();
        selection.manifest_path.is_some() || folders.any(|folder| folder.join("Cargo.toml").is_file())
    }

    /// The packages that the flags select.
    pub(crate) fn packages(
        &self,
        selection: &Selection,
        context: &Context,
    ) -> Result<Vec<&Package>, Failure> {
        let all = self.metadata.workspace_packages();
        let named = |name: &String| {
            let found = all.iter().copied().find(|package| package.name.as_str() == name);
            found.ok_or_else(|| {
                let near = suggest(name, all.iter().map(|package| package.name.as_str()));
                let help = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                Failure::Usage(format!("there is no package `{name}` in the workspace{help}"))
            })
        };
        if !selection.package.is_empty() {
            return selection.package.iter().map(named).collect();
        }
        if selection.workspace {
            let excluded = selection.exclude.iter().map(named).collect::<Result<Vec<_>, _>>()?;
            return Ok(all
                .into_iter()
                .filter(|package| !excluded.iter().any(|other| other.id == package.id))
                .collect());
        }
        let here = self.manifest_here(selection, context);
        let here = here.and_then(|here| all.iter().copied().find(|package| package.manifest_path == here));
        Ok(here.map_or_else(|| self.metadata.workspace_default_packages(), |package| vec![package]))
    }

    /// What a package says about its models.
    pub(crate) fn manifest(&self, package: &Package) -> Result<Manifest, Problems> {
        let workspace = self.metadata.workspace_root.join("Cargo.toml");
        Manifest::of_metadata(
            package.manifest_path.as_std_path(),
            &package.metadata,
            workspace.as_std_path(),
            &self.metadata.workspace_metadata,
        )
    }

    /// What a package says it is built for, and with what.
    pub(crate) fn wishes(&self, package: &Package) -> Result<Wishes, Problems> {
        let workspace = self.metadata.workspace_root.join("Cargo.toml");
        Wishes::of_metadata(
            package.manifest_path.as_std_path(),
            &package.metadata,
            workspace.as_std_path(),
            &self.metadata.workspace_metadata,
        )
    }

    fn manifest_here(&self, selection: &Selection, context: &Context) -> Option<PathBuf> {
        let directory = context.environment.directory();
        let path = match &selection.manifest_path {
            Some(path) => directory.join(path),
            None => {
                let manifests = directory.ancestors().map(|folder| folder.join("Cargo.toml"));
                manifests.into_iter().find(|path| path.is_file())?
            }
        };
        Some(fs_err::canonicalize(&path).unwrap_or(path))
    }
}

/// The profile's folder, as cargo names it.
pub(crate) fn profile_folder(profile: &str) -> &str {
    match profile {
        "dev" | "test" => "debug",
        "bench" => "release",
        other => other,
    }
}

/// A path for people: relative to where they are, if it is below.
pub(crate) fn shown(path: &Path, context: &Context) -> String {
    path.strip_prefix(context.environment.directory()).unwrap_or(path).display().to_string()
}
