//! The models that versions are compared by: those in the tree, and a part of the conformance cases where they are.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Names the folder of conformance cases.
const CONFORMANCE: &str = "AOTI_CONFORMANCE";
/// Folders of models in the tree.
const FOLDERS: [&str; 3] = ["build-support/aoti-compiler/tests/device", "tests/models", "examples"];
/// Of the conformance cases of single operators, one in so many is taken.
const EVERY: usize = 32;
/// Programs that are taken of each family of stored cases.
const OF_A_FAMILY: usize = 1;

/// A model file.
pub(super) struct Model {
    /// For people: its path below where it was found.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) digest: String,
}

/// The corpus. Models inside of archives are unpacked to a folder.
pub(super) fn read(root: &Path, unpacked: &Path) -> Result<Vec<Model>> {
    let mut models = Vec::new();
    for folder in FOLDERS {
        for path in files(&root.join(folder))? {
            push(&mut models, root, path)?;
        }
    }
    for archive in files(&root.join("tests/cases"))?.iter().filter(|path| has_extension(path, "zip")) {
        for path in unpack(archive, unpacked).with_context(|| archive.display().to_string())? {
            push(&mut models, unpacked, path)?;
        }
    }
    // Read here, like the arguments: a task is an edge of its own.
    if let Some(folder) = std::env::var_os(CONFORMANCE).map(PathBuf::from) {
        for path in files(&folder.join("zoo"))? {
            push(&mut models, &folder, path)?;
        }
        let operators = files(&folder.join("aten"))?;
        for path in operators.into_iter().filter(|path| is_model(path)).step_by(EVERY) {
            push(&mut models, &folder, path)?;
        }
    }
    ensure!(!models.is_empty(), "there is no model to compare by");
    Ok(models)
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

fn is_model(path: &Path) -> bool {
    ["aoti", "onnx", "pt2"].iter().any(|extension| has_extension(path, extension))
}

/// Keeps a file if it is a model.
fn push(models: &mut Vec<Model>, below: &Path, path: PathBuf) -> Result<()> {
    if is_model(&path) {
        let digest = blake3::hash(&fs::read(&path)?).to_hex()[..16].to_owned();
        let name = path.strip_prefix(below)?.display().to_string();
        models.push(Model { name, path, digest });
    }
    Ok(())
}

/// The files below a folder, in the order of their names; none where there is no folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop().filter(|folder| folder.is_dir()) {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            match path.is_dir() {
                true if path.file_name().is_some_and(|name| name == "target") => {}
                true => open.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Unpacks the first programs of a family.
fn unpack(archive: &Path, to: &Path) -> Result<Vec<PathBuf>> {
    let family = archive.file_stem().context("an archive has a name")?;
    let mut zip = zip::ZipArchive::new(fs::File::open(archive)?)?;
    let mut found = Vec::new();
    for index in 0..zip.len() {
        let entry = zip.by_index_raw(index)?;
        let name = entry.name()?.into_owned();
        if !name.ends_with("/model.pt2") {
            continue;
        }
        let mut data = Vec::new();
        // The `zip` of this workspace knows no compression.
        flate2::read::DeflateDecoder::new(entry).read_to_end(&mut data)?;
        let path = to.join(family).join(&name);
        fs::create_dir_all(path.parent().context("an entry lies in a folder")?)?;
        fs::write(&path, data)?;
        found.push(path);
        if found.len() == OF_A_FAMILY {
            break;
        }
    }
    Ok(found)
}
