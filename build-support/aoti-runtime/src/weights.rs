//! Where a model's weights come from, and the checks that they are the right ones.
//!
//! Owns no knowledge of what the bytes mean: a blob has a length and perhaps a digest.

use crate::{Error, ErrorCode, ffi::buffer::Buffer};
use memmap2::Mmap;
use std::{
    fmt,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The weights of a model. Cheap to clone: clones share the bytes.
#[derive(Clone, Default)]
pub struct Weights {
    source: Source,
    /// Of the tensors that they were made from.
    #[cfg(feature = "digest")]
    digest: Option<Arc<str>>,
}

#[derive(Clone, Default)]
enum Source {
    #[default]
    Embedded,
    Mapped(Arc<Mmap>),
    Bytes(Arc<Buffer>, usize),
}

impl Weights {
    /// The weights inside the library.
    pub fn embedded() -> Weights {
        Weights::default()
    }

    /// A file, mapped read-only, so that processes share one copy. Its length is checked when a model is loaded.
    ///
    /// The file must not be changed or cut while a model uses it; replace it by renaming another over it.
    pub fn file(path: impl AsRef<Path>) -> Result<Weights, Error> {
        let path = path.as_ref();
        let failed = |error: std::io::Error| {
            Error::new(ErrorCode::File, format!("could not map weights `{}`: {error}", path.display()))
        };
        let file = File::open(path).map_err(failed)?;
        // SAFETY: the map is read-only and only ever read as bytes; the documentation asks callers, as every user of
        // mapped files must, not to change the file under it.
        #[expect(unsafe_code, reason = "mapping a file is unsafe by its nature")]
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        Ok(Weights::from_source(Source::Mapped(Arc::new(map))))
    }

    /// A content-addressed file looked for by name beside the running executable, then in `folders`. With the feature
    /// `digest`, its BLAKE3 digest is compared with `digest` (hexadecimal), reading the whole file once.
    pub fn sidecar(name: &str, digest: &str, folders: &[&str]) -> Result<Weights, Error> {
        let beside = std::env::current_exe().ok().and_then(|path| path.parent().map(Path::to_owned));
        let candidates = beside.into_iter().chain(folders.iter().map(Into::into));
        let candidates: Vec<PathBuf> = candidates.collect();
        let Some(path) = candidates.iter().map(|folder| folder.join(name)).find(|path| path.is_file()) else {
            let looked: Vec<String> =
                candidates.iter().map(|folder| format!("`{}`", folder.display())).collect();
            let message = format!("weights `{name}` are in none of the folders {}", looked.join(" and "));
            return Err(Error::new(ErrorCode::Weights, message));
        };
        let weights = Weights::file(path)?;
        weights.check_digest(name, digest)?;
        Ok(weights)
    }

    /// Bytes that are already in aligned memory.
    pub(crate) fn from_buffer(buffer: Buffer, len: usize) -> Weights {
        Weights::from_source(Source::Bytes(Arc::new(buffer), len))
    }

    fn from_source(source: Source) -> Weights {
        Weights {
            source,
            #[cfg(feature = "digest")]
            digest: None,
        }
    }

    #[cfg(feature = "digest")]
    pub(crate) fn with_digest(self, digest: String) -> Weights {
        Weights { digest: Some(digest.into()), ..self }
    }

    /// The BLAKE3 digest, hexadecimal, of what was loaded: of the tensors with their names, types and sizes where the
    /// weights were made from tensors by name, whatever file they came from; else of the bytes. `None` for weights
    /// inside the library.
    #[cfg(feature = "digest")]
    pub fn digest(&self) -> Option<String> {
        let of_tensors = self.digest.as_deref().map(str::to_owned);
        of_tensors.or_else(|| Some(blake3::hash(self.as_bytes()?).to_hex().to_string()))
    }

    /// A copy of these bytes, aligned as models need it.
    pub fn bytes(bytes: &[u8]) -> Result<Weights, Error> {
        let mut buffer = Buffer::new();
        buffer.reserve(bytes.len())?;
        buffer.elements_mut::<u8>(bytes.len()).copy_from_slice(bytes);
        Ok(Weights::from_buffer(buffer, bytes.len()))
    }

    /// The bytes, or `None` where they are inside the library.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match &self.source {
            Source::Embedded => None,
            Source::Mapped(map) => Some(map),
            Source::Bytes(buffer, len) => Some(buffer.elements(*len)),
        }
    }

    #[cfg(feature = "digest")]
    fn check_digest(&self, name: &str, digest: &str) -> Result<(), Error> {
        let found = blake3::hash(self.as_bytes().unwrap_or_default()).to_hex();
        if found.as_str().eq_ignore_ascii_case(digest) {
            return Ok(());
        }
        let message = format!("weights `{name}` have digest {found} instead of {digest}");
        Err(Error::new(ErrorCode::Weights, message))
    }

    #[cfg(not(feature = "digest"))]
    fn check_digest(&self, _name: &str, _digest: &str) -> Result<(), Error> {
        Ok(())
    }
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Embedded => f.write_str("Embedded"),
            Source::Mapped(map) => write!(f, "Mapped({} bytes)", map.len()),
            Source::Bytes(_, len) => write!(f, "Bytes({len} bytes)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_mapped_and_an_absent_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.bin");
        std::fs::write(&path, [7u8; 128]).unwrap();
        assert_eq!(Weights::file(&path).unwrap().as_bytes().unwrap(), [7u8; 128]);
        let error = Weights::file(folder.path().join("none.bin")).unwrap_err();
        assert_eq!(error.code(), ErrorCode::File);
        assert!(error.message().contains("none.bin"), "{error}");
    }

    #[test]
    fn a_sidecar_is_found_in_a_folder_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("w.bin"), [1u8; 64]).unwrap();
        let folders = [folder.path().to_str().unwrap()];
        let absent = Weights::sidecar("other.bin", "", &folders).unwrap_err();
        assert_eq!(absent.code(), ErrorCode::Weights);
        let beside = std::env::current_exe().unwrap().parent().unwrap().display().to_string();
        assert!(absent.message().contains(&beside) && absent.message().contains(folders[0]), "{absent}");
        let wrong = Weights::sidecar("w.bin", "00", &folders);
        assert_eq!(wrong.is_err(), cfg!(feature = "digest"));
        #[cfg(feature = "digest")]
        Weights::sidecar("w.bin", blake3::hash(&[1u8; 64]).to_hex().as_str(), &folders).unwrap();
    }
}
