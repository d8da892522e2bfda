//! Weights put together from tensors by their names in the program: for `weights = "external"`.
//!
//! Knows the list of constants that a model gives, and nothing of how a model uses them.

use crate::{ConstantInfo, DType, Error, ErrorCode, ModelInfo, Weights, ffi::buffer::Buffer};

/// A tensor that a program offers under some name: row-major, in the machine's byte order.
#[derive(Clone, Copy, Debug)]
pub struct NamedTensor<'a> {
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub sizes: &'a [usize],
    /// The bytes of all elements.
    pub bytes: &'a [u8],
}

impl Weights {
    /// Lays out the weights of a model from tensors by name, as `find` gives them for the names in
    /// [`ModelInfo::constants`]. Each must be there with the constant's element type and sizes.
    ///
    /// Not for models whose build changed the layout of constants: for those, give the file that the build wrote.
    pub fn from_named<'a>(
        info: &ModelInfo,
        mut find: impl FnMut(&str) -> Option<NamedTensor<'a>>,
    ) -> Result<Weights, Error> {
        let whole = usize::try_from(info.weights_bytes).map_err(|_| Error::memory(usize::MAX))?;
        let mut buffer = Buffer::new();
        buffer.reserve(whole)?;
        let blob = buffer.elements_mut::<u8>(whole);
        for constant in &info.constants {
            let tensor = find(&constant.name);
            let tensor = tensor.ok_or_else(|| refuse(constant, "is not among the weights given"))?;
            let bytes = check(constant, &tensor)?;
            let end = constant.offset.checked_add(constant.bytes);
            let place =
                end.and_then(|end| blob.get_mut(constant.offset as usize..usize::try_from(end).ok()?));
            place.ok_or_else(|| refuse(constant, "lies outside the weights"))?.copy_from_slice(bytes);
        }
        Ok(Weights::from_buffer(buffer, whole))
    }

    /// Lays out the weights of a model from a safetensors file, by [`Weights::from_named`].
    #[cfg(feature = "safetensors")]
    pub fn from_safetensors(path: impl AsRef<std::path::Path>, info: &ModelInfo) -> Result<Weights, Error> {
        let path = path.as_ref();
        let file = Weights::file(path)?;
        let bytes = file.as_bytes().unwrap_or_default();
        let tensors = safetensors::SafeTensors::deserialize(bytes).map_err(|error| {
            Error::new(ErrorCode::Weights, format!("`{}` is not a safetensors file: {error}", path.display()))
        })?;
        let views: std::collections::BTreeMap<String, _> = tensors.tensors().into_iter().collect();
        Weights::from_named(info, |name| {
            let view = views.get(name)?;
            Some(NamedTensor { dtype: dtype(view.dtype())?, sizes: view.shape(), bytes: view.data() })
        })
    }
}

/// The tensor's bytes, if it is what the constant must be.
fn check<'a>(constant: &ConstantInfo, tensor: &NamedTensor<'a>) -> Result<&'a [u8], Error> {
    let same_sizes = constant.sizes.iter().copied().eq(tensor.sizes.iter().map(|&size| size as i64));
    if tensor.dtype != constant.dtype || !same_sizes {
        let (given, wanted) = ((tensor.dtype, tensor.sizes), (constant.dtype, &constant.sizes));
        let what =
            format!("is given as {} of sizes {:?}, not {} of {:?}", given.0, given.1, wanted.0, wanted.1);
        return Err(refuse(constant, &what));
    }
    let count = tensor.sizes.iter().try_fold(tensor.dtype.size(), |n, &size| n.checked_mul(size));
    if count != Some(tensor.bytes.len()) {
        return Err(refuse(constant, &format!("is given with {} bytes", tensor.bytes.len())));
    }
    if tensor.bytes.len() as u64 != constant.bytes {
        return Err(refuse(
            constant,
            "is stored in a layout of its own: give the weights file that the build wrote",
        ));
    }
    Ok(tensor.bytes)
}

fn refuse(constant: &ConstantInfo, what: &str) -> Error {
    Error::new(ErrorCode::Weights, format!("constant `{}` {what}", constant.name))
}

#[cfg(feature = "safetensors")]
fn dtype(dtype: safetensors::Dtype) -> Option<DType> {
    use safetensors::Dtype;
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other crate's list may grow: what is not ours is not there"
    )]
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
        _ => return None,
    })
}
