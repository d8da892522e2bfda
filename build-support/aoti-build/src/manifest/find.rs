//! Finds the metadata table and, where no table lists them, the models.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::locate::Location;
use super::{Code, Problem, Problems, Table};
use crate::model::Model;

const PACKAGE: &str = "package.metadata.aoti";
const WORKSPACE: &str = "workspace.metadata.aoti";
const EXTENSIONS: [&str; 3] = ["aoti", "onnx", "pt2"];

/// The table for the package in a folder, with the manifests that were read to find it.
pub(super) fn table(folder: &Path) -> Result<(Option<Table>, Vec<PathBuf>), Problems> {
    let file = folder.join("Cargo.toml");
    let manifest = read(&file)?;
    let mut files = vec![file.clone()];
    if let Some(value) = manifest.pointer("/package/metadata/aoti") {
        return Ok((Some(Table { value: value.clone(), file, name: PACKAGE }), files));
    }
    let Some((file, root)) = workspace_root(folder, &manifest) else { return Ok((None, files)) };
    let table = root.pointer("/workspace/metadata/aoti").cloned();
    let table = table.map(|value| Table { value, file: file.clone(), name: WORKSPACE });
    if !files.contains(&file) {
        files.push(file);
    }
    Ok((table, files))
}

/// The same choice from values that cargo has read.
pub(super) fn of_values(
    package_manifest: &Path,
    package: &Value,
    workspace_manifest: &Path,
    workspace: &Value,
) -> Option<Table> {
    let table = |file: &Path, value: &Value, name| {
        let value = value.get("aoti")?.clone();
        Some(Table { value, file: file.to_owned(), name })
    };
    table(package_manifest, package, PACKAGE).or_else(|| table(workspace_manifest, workspace, WORKSPACE))
}

/// The models in a folder, by name. A folder that is not there has none.
pub(super) fn models(folder: &Path) -> Vec<Model> {
    let Ok(listing) = fs_err::read_dir(folder) else { return Vec::new() };
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
    let text = fs_err::read_to_string(file).map_err(|error| problem(error.to_string(), None))?;
    toml::from_str(&text).map_err(|error| {
        let location = error.span().and_then(|span| Location::new(file, &text.as_str().into(), span));
        problem(error.message().to_owned(), location)
    })
}
