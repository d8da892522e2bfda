//! The metadata table of a cargo project: which models there are and how they are built.
//!
//! Reads `[package.metadata.aoti]`, else `[workspace.metadata.aoti]`. Cargo says nothing about unknown keys there, so this
//! does. All problems are reported at once.

mod check;
mod find;
mod problem;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::model::{LinkKind, Model, Weights};
use check::Checker;

pub use problem::{Code, Problem, Problems, suggest};

/// A table with its place.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) value: Value,
    /// The manifest that it is in.
    pub(crate) file: PathBuf,
    /// `package.metadata.aoti` or `workspace.metadata.aoti`.
    pub(crate) name: &'static str,
}

/// What a project says about its models.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// The models, by name.
    pub models: Vec<Model>,
    /// Manifests that were read.
    pub files: Vec<PathBuf>,
    /// The folder that was searched for models, if it was and is there.
    pub searched: Option<PathBuf>,
}

/// A table as far as it makes sense.
#[derive(Debug, Default)]
struct RawTable {
    devices: Vec<String>,
    cpu: Vec<String>,
    models: Option<BTreeMap<String, RawModel>>,
}

#[derive(Debug)]
struct RawModel {
    path: Option<PathBuf>,
    weights: Weights,
    link: LinkKind,
}

impl Manifest {
    /// Reads the table of the package in this folder from its `Cargo.toml`, looking upwards for the workspace's.
    ///
    /// # Errors
    /// All [`Problems`] of the table.
    pub fn of_folder(folder: &Path) -> Result<Manifest, Problems> {
        let (table, files) = find::table(folder)?;
        Manifest::of_table(folder, table.as_ref(), files)
    }

    /// Takes the tables as `cargo metadata` gives them; null stands for an absent one.
    ///
    /// # Errors
    /// All [`Problems`] of the table.
    pub fn of_metadata(
        package_manifest: &Path,
        package: &Value,
        workspace_manifest: &Path,
        workspace: &Value,
    ) -> Result<Manifest, Problems> {
        let folder = package_manifest.parent().unwrap_or(Path::new("."));
        let table = find::of_values(package_manifest, package, workspace_manifest, workspace);
        Manifest::of_table(folder, table.as_ref(), vec![package_manifest.to_owned()])
    }

    fn of_table(folder: &Path, table: Option<&Table>, files: Vec<PathBuf>) -> Result<Manifest, Problems> {
        let mut checker = Checker::new(table);
        let raw = match table {
            Some(table) => checker.table(&table.value),
            None => RawTable::default(),
        };
        let mut searched = None;
        let mut models = match &raw.models {
            Some(models) => {
                let base = table.and_then(|table| table.file.parent()).unwrap_or(folder);
                models.iter().filter_map(|(name, model)| checker.model(name, model, base)).collect()
            }
            None => {
                let place = folder.join("models");
                let found = find::models(&place);
                searched = place.is_dir().then_some(place);
                found
            }
        };
        let levels = checker.levels(&raw.cpu);
        checker.devices(&raw.devices);
        for model in &mut models {
            model.levels.clone_from(&levels);
        }
        checker.duplicates(&models);
        checker.finish()?;
        Ok(Manifest { models, files, searched })
    }
}

#[cfg(test)]
mod tests;
