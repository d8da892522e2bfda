//! Tensors in safetensors files, under the keys "0", "1", … in order, or under names. The format knows complex numbers of
//! two `f32` alone: others are stored as pairs.

use std::path::Path;

use aoti_runtime::{DType, DynTensor};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::failure::Failure;
use crate::memory;
use crate::tensors::onnx;

/// The tensors of a file, in the order of their keys as numbers.
pub(crate) fn read(path: &Path) -> Result<Vec<DynTensor>, Failure> {
    if onnx::is_of_set(path) {
        return onnx::read(path);
    }
    let named = read_named(path)?;
    let wanted: Vec<String> = (0..named.len()).map(|index| index.to_string()).collect();
    order(named, &wanted).map_err(|missing| {
        let path = path.display();
        Failure::User(format!("`{path}` has no tensor `{missing}`: keys are \"0\", \"1\", … in order"))
    })
}

/// The tensors of a file for inputs of these names: by number if there is a "0", else by name.
pub(crate) fn read_for(path: &Path, names: &[String]) -> Result<Vec<DynTensor>, Failure> {
    if onnx::is_of_set(path) {
        return onnx::read(path);
    }
    let named = read_named(path)?;
    let by_number = named.is_empty() || named.iter().any(|(name, _)| name == "0");
    let numbers: Vec<String> = (0..names.len()).map(|index| index.to_string()).collect();
    order(named, if by_number { &numbers } else { names }).map_err(|missing| {
        let path = path.display();
        let known = names.join("`, `");
        Failure::User(format!(
            "`{path}` has no tensor `{missing}`; the model's inputs are `{known}`, or \"0\", \"1\", … in order"
        ))
    })
}

/// Writes tensors under the keys "0", "1", ….
pub(crate) fn write(path: &Path, tensors: &[DynTensor]) -> Result<(), Failure> {
    write_all(path, tensors.iter().enumerate().map(|(index, tensor)| (index.to_string(), tensor)))
}

/// Writes tensors under their names.
pub(crate) fn write_named(path: &Path, tensors: &[(String, DynTensor)]) -> Result<(), Failure> {
    write_all(path, tensors.iter().map(|(name, tensor)| (name.clone(), tensor)))
}

fn write_all<'t>(path: &Path, tensors: impl Iterator<Item = (String, &'t DynTensor)>) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Machine(format!("cannot store a tensor: {error}"));
    let mut views = Vec::new();
    for (name, tensor) in tensors {
        let (dtype, sizes) = match (stored(tensor.dtype()), tensor.dtype().part().and_then(stored)) {
            (Some(dtype), _) => (dtype, tensor.sizes().to_vec()),
            (None, Some(part)) => (part, tensor.sizes().iter().copied().chain([2]).collect()),
            (None, None) => return Err(failed(&format!("a file has no elements of {}", tensor.dtype()))),
        };
        let view = TensorView::new(dtype, sizes, tensor.bytes()).map_err(|error| failed(&error))?;
        views.push((name, view));
    }
    let bytes = safetensors::serialize(views, None)
        .map_err(|error| Failure::Machine(format!("cannot store tensors: {error}")))?;
    fs_err::write(path, bytes).map_err(Failure::machine("write", path))
}

pub(crate) fn read_named(path: &Path) -> Result<Vec<(String, DynTensor)>, Failure> {
    let bytes = memory::map(path)?;
    let refuse = |what: String| Failure::User(format!("`{}`: {what}", path.display()));
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|error| refuse(format!("not a safetensors file: {error}")))?;
    let mut tensors = Vec::new();
    for (name, view) in file.tensors() {
        let dtype = loaded(view.dtype()).ok_or_else(|| {
            refuse(format!("tensor `{name}` has the element type {:?}, which is not supported", view.dtype()))
        })?;
        let tensor = DynTensor::from_bytes(dtype, view.shape(), view.data())
            .map_err(|error| refuse(format!("tensor `{name}`: {error}")))?;
        tensors.push((name, tensor));
    }
    Ok(tensors)
}

/// Picks tensors by name; the error is the first name that is not there.
pub(crate) fn order(
    mut named: Vec<(String, DynTensor)>,
    wanted: &[String],
) -> Result<Vec<DynTensor>, String> {
    let mut found = Vec::new();
    for name in wanted {
        let at = named.iter().position(|(given, _)| given == name).ok_or_else(|| name.clone())?;
        found.push(named.swap_remove(at).1);
    }
    Ok(found)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other crate's list may grow")]
fn loaded(dtype: Dtype) -> Option<DType> {
    Some(match dtype {
        Dtype::BOOL => DType::Bool,
        Dtype::U8 => DType::U8,
        Dtype::I8 => DType::I8,
        Dtype::I16 => DType::I16,
        Dtype::I32 => DType::I32,
        Dtype::I64 => DType::I64,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::Bf16,
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        Dtype::U16 => DType::U16,
        Dtype::U32 => DType::U32,
        Dtype::U64 => DType::U64,
        Dtype::F8_E4M3 => DType::F8E4M3Fn,
        Dtype::F8_E5M2 => DType::F8E5M2,
        Dtype::F8_E4M3FNUZ => DType::F8E4M3Fnuz,
        Dtype::F8_E5M2FNUZ => DType::F8E5M2Fnuz,
        Dtype::F8_E8M0 => DType::F8E8M0Fnu,
        Dtype::C64 => DType::C64,
        _ => return None,
    })
}

/// `None` of what the format does not have.
fn stored(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::Bool => Dtype::BOOL,
        DType::U8 => Dtype::U8,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::F16 => Dtype::F16,
        DType::Bf16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::U64 => Dtype::U64,
        DType::F8E4M3Fn => Dtype::F8_E4M3,
        DType::F8E5M2 => Dtype::F8_E5M2,
        DType::F8E4M3Fnuz => Dtype::F8_E4M3FNUZ,
        DType::F8E5M2Fnuz => Dtype::F8_E5M2FNUZ,
        DType::F8E8M0Fnu => Dtype::F8_E8M0,
        DType::C64 => Dtype::C64,
        DType::C32 | DType::C128 => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_round_trip_and_keep_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.safetensors");
        let tensors: Vec<DynTensor> =
            (0..12).map(|n| DynTensor::from_bytes(DType::U8, &[1], &[n]).unwrap()).collect();
        write(&path, &tensors).unwrap();
        assert_eq!(read(&path).unwrap(), tensors);
    }

    #[test]
    fn damaged_files_are_the_users() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.safetensors");
        for bytes in [&b""[..], b"x", &[0xff; 64]] {
            fs_err::write(&path, bytes).unwrap();
            assert!(matches!(read(&path), Err(Failure::User(_))));
        }
    }
}
