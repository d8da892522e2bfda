//! Tensors as ONNX's test cases store them: a folder with a file for each (`input_0.pb`), beside the model's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aoti_compiler::frontend::InputShape;
use aoti_compiler::frontend::onnx::{Declaration, Stored, interface, stored_value};
use aoti_compiler::graph::Constant;
use aoti_runtime::{DType, DynTensor};

use crate::failure::Failure;
use crate::memory;

/// Whether a path is what the names of such files begin with.
pub(crate) fn is_of_set(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    matches!(name, Some("input_" | "output_")) && path.parent().is_some_and(Path::is_dir)
}

/// The tensors of all files whose names begin so, in the order of their numbers. What of optional values is absent is left out, and
/// a sequence is its elements.
pub(crate) fn read(prefix: &Path) -> Result<Vec<DynTensor>, Failure> {
    let mut tensors = Vec::new();
    for (_, file, stored) in stored(prefix)? {
        let all = match stored {
            Stored::Tensor(constant) => vec![constant],
            Stored::Sequence(all) => all,
            Stored::Nothing => Vec::new(),
        };
        tensors.extend(all.iter().map(|one| tensor(&file, one)).collect::<Result<Vec<_>, _>>()?);
    }
    Ok(tensors)
}

/// The shapes of values of which the model does not say how many tensors they are, or how many axes they have.
pub(crate) fn shapes(prefix: &Path) -> Result<BTreeMap<String, InputShape>, Failure> {
    let sizes = |constant: &Constant| {
        let size = |size: &i64| InputShape::Size(u32::try_from(*size).unwrap_or(u32::MAX));
        InputShape::List(constant.sizes.iter().map(size).collect())
    };
    let mut shapes = BTreeMap::new();
    for (declared, _, stored) in stored(prefix)?.into_iter().filter(|(own, ..)| !own.has_shape) {
        let shape = match &stored {
            Stored::Tensor(constant) => sizes(constant),
            Stored::Sequence(all) => InputShape::List(all.iter().map(sizes).collect()),
            Stored::Nothing => InputShape::Absent,
        };
        shapes.insert(declared.name, shape);
    }
    Ok(shapes)
}

/// What is stored in the files, each with what the model says of it.
fn stored(prefix: &Path) -> Result<Vec<(Declaration, PathBuf, Stored)>, Failure> {
    let is_input = prefix.ends_with("input_");
    let model = prefix.parent().and_then(Path::parent).unwrap_or(prefix).join("model.onnx");
    let (inputs, outputs) = interface(memory::map(&model)?).map_err(Failure::from)?;
    let declared = if is_input { inputs } else { outputs };
    let value = |(number, declared): (usize, Declaration)| {
        let mut path = prefix.as_os_str().to_owned();
        path.push(format!("{number}.pb"));
        let path = PathBuf::from(path);
        let stored =
            stored_value(memory::map(&path)?, declared.kind).map_err(|what| refused(&path, &what))?;
        Ok((declared, path, stored))
    };
    declared.into_iter().enumerate().map(value).collect()
}

fn refused(path: &Path, what: &str) -> Failure {
    Failure::User(format!("`{}`: {what}", path.display()))
}

fn tensor(path: &Path, constant: &Constant) -> Result<DynTensor, Failure> {
    let dtype = DType::from_name(constant.dtype.name())
        .ok_or_else(|| refused(path, &format!("there is no {} at run time", constant.dtype)))?;
    let sizes: Vec<usize> = constant.sizes.iter().filter_map(|size| usize::try_from(*size).ok()).collect();
    DynTensor::from_bytes(dtype, &sizes, &constant.data).map_err(|error| refused(path, &error.to_string()))
}
