//! Where a model's weights come from, and the checks that they are the right ones.
//!
//! Owns no knowledge of what the bytes mean: a blob has a length and perhaps a digest.

use crate::{Error, ErrorCode, ffi::buffer::Buffer};
use memmap2::Mmap;
use std::{
    fmt,
    fs::File,
    io::{self, Read},
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

    /// A copy of a file. What becomes of the file afterwards does not matter. Its length is checked when a model is loaded.
    pub fn file(path: impl AsRef<Path>) -> Result<Weights, Error> {
        let path = path.as_ref();
        let failed = |error| cannot("read", path, &error);
        let (mut file, bytes) = open(path).map_err(failed)?;
        let mut buffer = Buffer::new();
        buffer.reserve(bytes)?;
        file.read_exact(buffer.elements_mut::<u8>(bytes)).map_err(|error| {
            let is_cut = error.kind() == io::ErrorKind::UnexpectedEof;
            failed(if is_cut { io::Error::other("it became shorter meanwhile") } else { error })
        })?;
        Ok(Weights::from_buffer(buffer, bytes))
    }

    /// A file, mapped: nothing is read before it is needed, and processes share one copy in memory.
    ///
    /// # Safety
    ///
    /// Nobody changes or cuts the file, in this process or another, until these weights, their clones and the models that were
    /// loaded with them are gone. One that is cut ends the program with SIGBUS; a run that reads what changes meanwhile has
    /// undefined behaviour. A file may be replaced: another is renamed over it.
    #[expect(unsafe_code, reason = "nothing keeps others from changing a file that is mapped")]
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Weights, Error> {
        let path = path.as_ref();
        let failed = |error| cannot("map", path, &error);
        let (file, _) = open(path).map_err(failed)?;
        // SAFETY: the caller vouches for the file.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        Ok(Weights::from_source(Source::Mapped(Arc::new(map))))
    }

    /// A copy of a content-addressed file, looked for by name beside the running executable, then in `folders`. With the feature
    /// `digest`, the BLAKE3 digest of the copy is compared with `digest` (hexadecimal): what was checked is what models use.
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

/// A regular file and its length: others may have no end, or wait for a writer before they open.
fn open(path: &Path) -> io::Result<(File, usize)> {
    let is_file = |metadata: &std::fs::Metadata| {
        if metadata.is_file() { Ok(()) } else { Err(io::Error::other("it is no regular file")) }
    };
    is_file(&std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    is_file(&metadata)?;
    let bytes = usize::try_from(metadata.len()).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    Ok((file, bytes))
}

fn cannot(act: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorCode::File, format!("could not {act} weights `{}`: {error}", path.display()))
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
    #[cfg_attr(target_family = "wasm", ignore = "there is no folder for temporary files")]
    fn a_file_that_changes_after_it_was_read_changes_no_weights() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.bin");
        std::fs::write(&path, [7u8; 9000]).unwrap();
        let folders = [folder.path().to_str().unwrap()];
        #[cfg(feature = "digest")]
        let digest = blake3::hash(&[7u8; 9000]).to_hex().to_string();
        #[cfg(not(feature = "digest"))]
        let digest = String::new();
        let all = [Weights::file(&path).unwrap(), Weights::sidecar("w.bin", &digest, &folders).unwrap()];
        std::fs::write(&path, [8u8; 9000]).unwrap();
        assert!(all.iter().all(|weights| weights.as_bytes() == Some(&[7u8; 9000])));
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert!(all.iter().all(|weights| weights.as_bytes() == Some(&[7u8; 9000])));
        assert_eq!(Weights::file(&path).unwrap().as_bytes(), Some(&[][..]));
    }

    #[test]
    #[cfg_attr(any(miri, target_family = "wasm"), ignore = "no files are mapped")]
    #[expect(unsafe_code, reason = "nobody else knows the file")]
    fn a_file_is_mapped_where_its_caller_vouches_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.bin");
        std::fs::write(&path, [7u8; 128]).unwrap();
        // SAFETY: nobody else knows the file.
        let weights = unsafe { Weights::map(&path) }.unwrap();
        std::fs::rename(&path, folder.path().join("other.bin")).unwrap();
        assert_eq!(weights.as_bytes().unwrap(), [7u8; 128]);
        // SAFETY: as above.
        let error = unsafe { Weights::map(&path) }.unwrap_err();
        assert!(error.message().starts_with("could not map weights `"), "{error}");
    }

    #[test]
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[cfg_attr(miri, ignore = "Miri maps no files")]
    #[expect(unsafe_code, reason = "nobody else knows the file")]
    fn files_of_more_than_two_gigabytes_are_mapped_to_their_end() {
        use std::os::unix::fs::FileExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.bin");
        let (len, last) = (2_500_000_064, [7u8; 64]);
        let file = File::create(&path).unwrap();
        // Of what is not written there is nothing on the disk.
        file.set_len(len).unwrap();
        file.write_all_at(&last, len - 64).unwrap();
        // SAFETY: nobody else knows the file.
        let weights = unsafe { Weights::map(&path) }.unwrap();
        let bytes = weights.as_bytes().unwrap();
        assert_eq!(bytes.len() as u64, len);
        assert_eq!((bytes[0], &bytes[bytes.len() - 64..]), (0, &last[..]));
    }

    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "there is no folder for temporary files")]
    fn what_is_no_regular_file_is_refused_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = vec![folder.path().join("none.bin"), folder.path().to_owned()];
        // One without an end, and one that nobody ever writes.
        paths.extend(["/dev/zero", "/dev/tty"].map(PathBuf::from).into_iter().filter(|path| path.exists()));
        for path in paths {
            let error = Weights::file(&path).unwrap_err();
            assert_eq!(error.code(), ErrorCode::File);
            assert!(error.message().contains(path.to_str().unwrap()), "{error}");
        }
    }

    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "there is no folder for temporary files")]
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
