//! Finds the metadata table and, where no table lists them, the models.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Table;
use crate::locate::Location;
use crate::model::Model;
use crate::problem::{Code, Problem, Problems, suggest};

const PACKAGE: &str = "package.metadata.aoti";
const WORKSPACE: &str = "workspace.metadata.aoti";
/// Of the tables for tools that cargo lets a manifest have, ours.
const OURS: &str = "aoti";
const EXTENSIONS: [&str; 3] = ["aoti", "onnx", "pt2"];

/// What was looked for.
pub(super) struct Found {
    pub(super) table: Option<Table>,
    /// Where there is none, tables that may have been meant.
    pub(super) notes: Vec<String>,
}

/// The table for the package in a folder, with the manifests that were read to find it.
pub(super) fn table(folder: &Path) -> Result<(Found, Vec<PathBuf>), Problems> {
    let file = folder.join("Cargo.toml");
    let manifest = read(&file)?;
    let mut files = vec![file.clone()];
    let metadata = |manifest: &Value, of: &str| manifest.pointer(of).cloned().unwrap_or_default();
    let package = metadata(&manifest, "/package/metadata");
    let (root, workspace) = match workspace_root(folder, &manifest) {
        Some((file, root)) => (file, metadata(&root, "/workspace/metadata")),
        None => (file.clone(), Value::Null),
    };
    let found = of_values(&file, &package, &root, &workspace);
    let is_packages = found.table.as_ref().is_some_and(|table| table.name == PACKAGE);
    if !is_packages && !files.contains(&root) {
        files.push(root);
    }
    Ok((found, files))
}

/// The same from values that cargo has read: what manifests have under `metadata`.
pub(super) fn of_values(
    package_manifest: &Path,
    package: &Value,
    workspace_manifest: &Path,
    workspace: &Value,
) -> Found {
    let table = |file: &Path, value: &Value, name| {
        let value = value.get(OURS)?.clone();
        Some(Table { value, file: file.to_owned(), name })
    };
    let table =
        table(package_manifest, package, PACKAGE).or_else(|| table(workspace_manifest, workspace, WORKSPACE));
    let notes = match table {
        Some(_) => Vec::new(),
        None => [(PACKAGE, package), (WORKSPACE, workspace)]
            .into_iter()
            .flat_map(|(ours, metadata)| nearly_ours(ours, metadata))
            .collect(),
    };
    Found { table, notes }
}

/// Tables whose names are one letter off. They may well be another tool's, so they are no mistake.
fn nearly_ours(ours: &str, metadata: &Value) -> Vec<String> {
    let names = metadata.as_object().into_iter().flat_map(|tables| tables.keys());
    let near = names.filter(|name| suggest(name, [OURS]).is_some());
    let parent = ours.trim_end_matches(OURS);
    near.map(|name| format!("`[{parent}{name}]` is not read; did you mean `[{ours}]`?")).collect()
}

/// The models in a folder, by name. A folder that is not there has none.
pub(super) fn models(folder: &Path) -> Vec<Model> {
    let Ok(listing) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let is_model = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        // A link to nothing is a mistake to tell of.
        extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
            && (path.is_file() || !path.exists())
    };
    paths.into_iter().filter(is_model).map(|path| Model::new(stem(&path), path)).collect()
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The workspace's manifest: what `package.workspace` names, else the first one upwards with a `[workspace]`.
fn workspace_root(folder: &Path, manifest: &Value) -> Option<(PathBuf, Value)> {
    if let Some(named) = manifest.pointer("/package/workspace").and_then(Value::as_str) {
        let file = folder.join(named).join("Cargo.toml");
        let root = read(&file).ok()?;
        return Some((file, root));
    }
    folder.ancestors().find_map(|folder| {
        let file = folder.join("Cargo.toml");
        // Manifests further up are not ours to complain about.
        let root = file.is_file().then(|| read(&file).ok()).flatten()?;
        root.get("workspace").is_some().then_some((file, root))
    })
}

fn read(file: &Path) -> Result<Value, Problems> {
    let problem = |message: String, location: Option<Location>| {
        let place = file.display().to_string();
        Problems(vec![Problem { code: Code::Unreadable, message, place, location, help: None }])
    };
    let text = std::fs::read_to_string(file).map_err(|error| problem(error.to_string(), None))?;
    toml::from_str(&text).map_err(|error| {
        let location = error.span().and_then(|span| Location::new(file, &text.as_str().into(), span));
        problem(error.message().to_owned(), location)
    })
}
