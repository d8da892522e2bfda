//! Weights made from tensors by their names in the program, as a checkpoint holds them: for libraries that were built to
//! take them (`weights = "external"`, or `named-weights = true`).
//!
//! Knows which tensors exist; how a library transforms them is up to the library.

use crate::{
    DType, Error, ErrorCode, Executor, ModelInfo, ThreadPool, Weights, ffi::prepare, tensor::MOST_DIMENSIONS,
};
use std::fmt;

/// A tensor that a program offers under some name: row-major, in the machine's byte order.
#[derive(Clone, Copy, Debug)]
pub struct NamedTensor<'a> {
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub sizes: &'a [usize],
    /// The bytes of all elements, at any address.
    pub bytes: &'a [u8],
}

/// How weights are prepared.
#[derive(Default)]
pub struct PrepareOptions<'a> {
    /// Threads to work on; [`ThreadPool::global`] where there are none.
    pub executor: Option<&'a dyn Executor>,
    /// Told, on the calling thread, how many bytes of how many are written.
    pub progress: Option<&'a mut dyn FnMut(u64, u64)>,
}

impl fmt::Debug for PrepareOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrepareOptions").finish_non_exhaustive()
    }
}

impl Weights {
    /// Makes the weights of a model from the tensors of a checkpoint by name, as [`ModelInfo::constants`] lists them.
    ///
    /// Everything that is missing, not of the model, or of another element type or other sizes is named, all at once.
    /// Tensors that no result depends on may be absent, and of tied weights all names but one.
    pub fn from_named<'a>(
        info: &ModelInfo,
        tensors: impl IntoIterator<Item = (&'a str, NamedTensor<'a>)>,
    ) -> Result<Weights, Error> {
        Weights::prepare(info, tensors, PrepareOptions::default())
    }

    /// [`Weights::from_named`] on threads of the caller's choice, with progress.
    pub fn prepare<'a>(
        info: &ModelInfo,
        tensors: impl IntoIterator<Item = (&'a str, NamedTensor<'a>)>,
        options: PrepareOptions<'_>,
    ) -> Result<Weights, Error> {
        let tensors: Vec<(&str, NamedTensor<'_>)> = tensors.into_iter().collect();
        let fault = |(name, tensor): &(&str, NamedTensor<'_>)| {
            let count = tensor.sizes.iter().try_fold(tensor.dtype.size(), |n, &size| n.checked_mul(size));
            let given = tensor.bytes.len();
            if name.contains('\0') {
                Some(format!("`{}` is not a weight of the model", name.escape_default()))
            } else if tensor.sizes.len() > MOST_DIMENSIONS {
                Some(format!("weight `{name}` has {} dimensions", tensor.sizes.len()))
            } else if count != Some(given) {
                let (dtype, sizes) = (tensor.dtype, tensor.sizes);
                Some(format!("weight `{name}` has {given} bytes, which {dtype} of {sizes:?} does not"))
            } else {
                None
            }
        };
        let faults: Vec<String> = tensors.iter().filter_map(fault).collect();
        if !faults.is_empty() {
            return Err(refuse(info, &faults));
        }
        let PrepareOptions { executor, progress } = options;
        let executor = executor.unwrap_or_else(|| ThreadPool::global());
        let weights = prepare::prepare(info, &tensors, executor, progress)?;
        #[cfg(feature = "digest")]
        let weights = weights.with_digest(digest(&tensors));
        Ok(weights)
    }

    /// Makes the weights of a model from a safetensors file, by [`Weights::from_named`].
    #[cfg(feature = "safetensors")]
    pub fn from_safetensors(path: impl AsRef<std::path::Path>, info: &ModelInfo) -> Result<Weights, Error> {
        Weights::from_safetensors_files([path], info, PrepareOptions::default())
    }

    /// The same from a checkpoint in several files, with progress. All are in memory until the weights are made.
    #[cfg(feature = "safetensors")]
    pub fn from_safetensors_files<P: AsRef<std::path::Path>>(
        paths: impl IntoIterator<Item = P>,
        info: &ModelInfo,
        options: PrepareOptions<'_>,
    ) -> Result<Weights, Error> {
        let open = |path: P| {
            let path = path.as_ref();
            Ok((path.display().to_string(), Weights::file(path)?))
        };
        let files = paths.into_iter().map(open).collect::<Result<Vec<_>, Error>>()?;
        let files = files.iter().map(|(path, file)| (path.as_str(), file.as_bytes().unwrap_or_default()));
        Weights::from_safetensors_bytes(files, info, options)
    }

    /// The same from files that are in memory already, or mapped ([`Weights::map`]), with what errors call them.
    #[cfg(feature = "safetensors")]
    pub fn from_safetensors_bytes<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        info: &ModelInfo,
        options: PrepareOptions<'_>,
    ) -> Result<Weights, Error> {
        let refused = |path: &str, what: String| Error::new(ErrorCode::Weights, format!("`{path}` {what}"));
        let mut parsed = Vec::new();
        for (path, bytes) in files {
            let tensors = safetensors::SafeTensors::deserialize(bytes)
                .map_err(|error| refused(path, format!("is not a safetensors file: {error}")))?;
            for (name, view) in tensors.tensors() {
                let Some(dtype) = dtype(view.dtype()) else {
                    let what = format!(
                        "stores `{name}` as {:?}, which is not a supported weight type",
                        view.dtype()
                    );
                    return Err(refused(path, what));
                };
                // To a model, complex weights are pairs.
                let (dtype, pair) = dtype.part().map_or((dtype, None), |part| (part, Some(2)));
                let sizes: Vec<usize> = view.shape().iter().copied().chain(pair).collect();
                parsed.push((name, dtype, sizes, view.data()));
            }
        }
        let tensors = parsed
            .iter()
            .map(|(name, dtype, sizes, bytes)| (name.as_str(), NamedTensor { dtype: *dtype, sizes, bytes }));
        Weights::prepare(info, tensors, options)
    }
}

/// One error for everything that is wrong with the tensors given.
pub(crate) fn refuse(info: &ModelInfo, faults: &[String]) -> Error {
    let message = match faults {
        [fault] => fault.clone(),
        faults => format!(
            "{} problems with the weights for `{}`:\n  {}",
            faults.len(),
            info.name,
            faults.join("\n  ")
        ),
    };
    Error::new(ErrorCode::Weights, message)
}

/// The digest of a set of tensors: names, types, sizes and elements, in the order of the names.
#[cfg(feature = "digest")]
fn digest(tensors: &[(&str, NamedTensor<'_>)]) -> String {
    let mut sorted: Vec<_> = tensors.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    let mut hasher = blake3::Hasher::new();
    let number = |hasher: &mut blake3::Hasher, number: usize| {
        hasher.update(&(number as u64).to_le_bytes());
    };
    for (name, tensor) in sorted {
        number(&mut hasher, name.len());
        hasher.update(name.as_bytes());
        number(&mut hasher, tensor.dtype as usize);
        number(&mut hasher, tensor.sizes.len());
        tensor.sizes.iter().for_each(|size| number(&mut hasher, *size));
        hasher.update(tensor.bytes);
    }
    hasher.finalize().to_hex().to_string()
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
