//! Tensors as ONNX's test cases store them: a folder with a file for each (`input_0.pb`), beside the model's.

use std::path::{Path, PathBuf};

use aoti_compiler::frontend::onnx::{Kind, Stored, interface, stored_value};
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
    let is_input = prefix.ends_with("input_");
    let model = prefix.parent().and_then(Path::parent).unwrap_or(prefix).join("model.onnx");
    let (inputs, outputs) = interface(memory::map(&model)?).map_err(Failure::from)?;
    let kinds = if is_input { inputs } else { outputs };
    let mut tensors = Vec::new();
    for (number, kind) in kinds.into_iter().enumerate() {
        let mut path = prefix.as_os_str().to_owned();
        path.push(format!("{number}.pb"));
        tensors.extend(values(&PathBuf::from(path), kind)?);
    }
    Ok(tensors)
}

fn values(path: &Path, kind: Kind) -> Result<Vec<DynTensor>, Failure> {
    let refuse = |what: String| Failure::User(format!("`{}`: {what}", path.display()));
    let tensor = |constant: &Constant| {
        let dtype = DType::from_name(constant.dtype.name())
            .ok_or_else(|| refuse(format!("there is no {} at run time", constant.dtype)))?;
        let sizes: Vec<usize> =
            constant.sizes.iter().filter_map(|size| usize::try_from(*size).ok()).collect();
        DynTensor::from_bytes(dtype, &sizes, &constant.data).map_err(|error| refuse(error.to_string()))
    };
    match stored_value(memory::map(path)?, kind).map_err(refuse)? {
        Stored::Tensor(constant) => Ok(vec![tensor(&constant)?]),
        Stored::Sequence(all) => all.iter().map(tensor).collect(),
        Stored::Nothing => Ok(Vec::new()),
    }
}
