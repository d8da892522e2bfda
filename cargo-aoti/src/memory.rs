//! Maps files that are only read.

use std::path::Path;

use aoti_build::Model;
use aoti_compiler::frontend::ModelFile;
use bytes::Bytes;

use crate::failure::Failure;

/// A model file of the user's, with the files beside it that a part of its data is in.
pub(crate) fn model_file(path: &Path) -> Result<ModelFile, Failure> {
    let refuse = |error: std::io::Error| Failure::User(format!("cannot read `{}`: {error}", path.display()));
    aoti_build::model_file(path).map_err(refuse)
}

/// A model of the user's, with what is said of its inputs.
pub(crate) fn model(model: &Model) -> Result<ModelFile, Failure> {
    Ok(ModelFile { shapes: model.shapes.clone(), ..model_file(&model.path)? })
}

/// The content of a file of the user's.
pub(crate) fn map(path: &Path) -> Result<Bytes, Failure> {
    Ok(aoti_tune::files::map(path)?)
}
