//! The cargo project that a command is about: asks cargo, selects packages, reads their tables.

use std::path::{Path, PathBuf};

use aoti_build::{BuildSettings, Manifest, Problems, suggest};
use cargo_metadata::{Metadata, MetadataCommand, Package};
use clap::Args;

use crate::commands::Context;
use crate::failure::Failure;

/// Cargo's own flags for what is built.
#[derive(Args, Clone, Debug)]
pub(crate) struct Selection {
    #[command(flatten, next_help_heading = "Package selection")]
    pub(crate) workspace: clap_cargo::Workspace,
    #[command(flatten, next_help_heading = "Feature selection")]
    pub(crate) features: clap_cargo::Features,
    #[command(flatten, next_help_heading = "Manifest options")]
    pub(crate) manifest: ManifestFlags,
}

/// Cargo's flags for where the project is, and what cargo may do to find out about it.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManifestFlags {
    #[command(flatten)]
    path: clap_cargo::Manifest,
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

impl ManifestFlags {
    /// The manifest that is named.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.manifest_path.as_deref()
    }

    /// The flags, as cargo takes them.
    pub(crate) fn flags(&self) -> Vec<String> {
        let flags = [(self.locked, "--locked"), (self.offline, "--offline"), (self.frozen, "--frozen")];
        flags.iter().filter(|(given, _)| *given).map(|(_, flag)| (*flag).to_owned()).collect()
    }
}

impl Selection {
    /// All packages of the workspace, as where a command has no flags of cargo's.
    pub(crate) fn whole_workspace() -> Selection {
        let mut workspace = clap_cargo::Workspace::default();
        workspace.workspace = true;
        let path = clap_cargo::Manifest::default();
        let manifest = ManifestFlags { path, target_dir: None, locked: false, offline: false, frozen: false };
        Selection { workspace, features: clap_cargo::Features::default(), manifest }
    }

    /// Whether locks must be as they are.
    pub(crate) fn is_locked(&self) -> bool {
        self.manifest.locked || self.manifest.frozen
    }

    /// The flags for features, as cargo takes them.
    pub(crate) fn feature_flags(&self) -> Vec<String> {
        let features = &self.features;
        let flags = [
            (features.all_features, "--all-features"),
            (features.no_default_features, "--no-default-features"),
        ];
        let mut flags: Vec<String> =
            flags.iter().filter(|(given, _)| *given).map(|(_, flag)| (*flag).to_owned()).collect();
        flags.extend(features.features.iter().flat_map(|name| ["--features".to_owned(), name.clone()]));
        flags
    }
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
        // Models depend on no other package, so cargo need not resolve any, but where it shall look at the lock file.
        let manifest = &selection.manifest;
        if !(manifest.locked || manifest.frozen) {
            command.no_deps();
        }
        if let Some(cargo) = context.environment.variable("CARGO") {
            command.cargo_path(cargo);
        }
        if let Some(path) = manifest.path() {
            check_manifest(path)?;
            command.manifest_path(path);
        }
        let overrides = context.overrides.iter().flat_map(|text| ["--config".to_owned(), text.clone()]);
        command.other_options([manifest.flags(), selection.feature_flags(), overrides.collect()].concat());
        let metadata = command.exec().map_err(|error| {
            if let cargo_metadata::Error::CargoMetadata { stderr } = &error {
                return Failure::User(stderr.trim_start_matches("error: ").trim_end().to_owned());
            }
            Failure::Machine(format!("cannot ask cargo about the project: {error}"))
        })?;
        let target_directory = match &manifest.target_dir {
            Some(folder) => context.environment.directory().join(folder),
            None => metadata.target_directory.clone().into_std_path_buf(),
        };
        Ok(Project { metadata, target_directory })
    }

    /// Whether a command is given in a project at all, or names one.
    pub(crate) fn is_there(selection: &Selection, context: &Context) -> bool {
        let mut folders = context.environment.directory().ancestors();
        selection.manifest.path().is_some() || folders.any(|folder| folder.join("Cargo.toml").is_file())
    }

    /// The packages that the flags select, which have the features that they name.
    pub(crate) fn packages(
        &self,
        selection: &Selection,
        context: &Context,
    ) -> Result<Vec<&Package>, Failure> {
        let packages = self.selected(selection, context)?;
        Self::check_features(selection, &packages)?;
        Ok(packages)
    }

    fn selected(&self, selection: &Selection, context: &Context) -> Result<Vec<&Package>, Failure> {
        let all = self.metadata.workspace_packages();
        let named = |name: &String| {
            let found = all.iter().copied().find(|package| package.name.as_str() == name);
            found.ok_or_else(|| {
                let near = suggest(name, all.iter().map(|package| package.name.as_str()));
                let help = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                Failure::Usage(format!("there is no package `{name}` in the workspace{help}"))
            })
        };
        let wanted = &selection.workspace;
        if !wanted.package.is_empty() {
            return wanted.package.iter().map(named).collect();
        }
        if !(wanted.exclude.is_empty() || wanted.workspace || wanted.all) {
            return Err(Failure::Usage(
                "`--exclude` can only be used together with `--workspace`".to_owned(),
            ));
        }
        if wanted.workspace || wanted.all {
            let excluded = wanted.exclude.iter().map(named).collect::<Result<Vec<_>, _>>()?;
            return Ok(all
                .into_iter()
                .filter(|package| !excluded.iter().any(|other| other.id == package.id))
                .collect());
        }
        let here = self.manifest_here(selection, context);
        let here = here.and_then(|here| all.iter().copied().find(|package| package.manifest_path == here));
        Ok(here.map_or_else(|| self.metadata.workspace_default_packages(), |package| vec![package]))
    }

    /// Refuses features that no selected package has, as cargo does where it resolves dependencies.
    fn check_features(selection: &Selection, packages: &[&Package]) -> Result<(), Failure> {
        let named = selection.features.features.iter().flat_map(|names| names.split([',', ' ']));
        for name in named.filter(|name| !name.is_empty()) {
            if packages.iter().any(|package| has_feature(package, name)) {
                continue;
            }
            let known = packages.iter().flat_map(|package| package.features.keys().map(String::as_str));
            let near = suggest(name, known);
            let help = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let of = match packages {
                [package] => format!("the package `{}` does not contain", package.name),
                _ => "none of the selected packages contains".to_owned(),
            };
            return Err(Failure::Usage(format!("{of} the feature `{name}`{help}")));
        }
        Ok(())
    }

    /// What a package says about its models.
    pub(crate) fn manifest(&self, package: &Package) -> Result<Manifest, Problems> {
        let workspace = self.metadata.workspace_root.join("Cargo.toml");
        let manifest = Manifest::of_metadata(
            package.manifest_path.as_std_path(),
            &package.metadata,
            workspace.as_std_path(),
            &self.metadata.workspace_metadata,
        )?;
        Ok(manifest.of_package(&package.name, &package.version.to_string()))
    }

    /// What a package says it is built for, and with what.
    pub(crate) fn settings(&self, package: &Package) -> Result<BuildSettings, Problems> {
        let workspace = self.metadata.workspace_root.join("Cargo.toml");
        BuildSettings::of_metadata(
            package.manifest_path.as_std_path(),
            &package.metadata,
            workspace.as_std_path(),
            &self.metadata.workspace_metadata,
        )
    }

    fn manifest_here(&self, selection: &Selection, context: &Context) -> Option<PathBuf> {
        let directory = context.environment.directory();
        let path = match selection.manifest.path() {
            Some(path) => directory.join(path),
            None => {
                let manifests = directory.ancestors().map(|folder| folder.join("Cargo.toml"));
                manifests.into_iter().find(|path| path.is_file())?
            }
        };
        Some(fs_err::canonicalize(&path).unwrap_or(path))
    }
}

/// Whether `-F` may name this of a package: a feature of its own, of it by name, or of one of its dependencies.
fn has_feature(package: &Package, name: &str) -> bool {
    let own = |name: &str| package.features.contains_key(name);
    let is_dependency = |name: &str| {
        let mut names = package
            .dependencies
            .iter()
            .map(|dependency| dependency.rename.as_ref().unwrap_or(&dependency.name));
        names.any(|dependency| dependency == name)
    };
    match name.split_once('/') {
        None => own(name),
        Some((of, feature)) => {
            (package.name.as_str() == of && own(feature)) || is_dependency(of.trim_end_matches('?'))
        }
    }
}

/// Refuses what is no manifest, with cargo's words.
fn check_manifest(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        let inside = path.join("Cargo.toml");
        let help = if inside.is_file() { format!("; `{}` exists", inside.display()) } else { String::new() };
        let path = path.display();
        return Err(Failure::Usage(format!(
            "manifest path `{path}` is a directory but expected a file{help}"
        )));
    }
    if !path.is_file() {
        return Err(Failure::Usage(format!("manifest path `{}` does not exist", path.display())));
    }
    Ok(())
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
    let shown = path.strip_prefix(context.environment.directory()).unwrap_or(path);
    if shown.as_os_str().is_empty() { ".".to_owned() } else { shown.display().to_string() }
}
