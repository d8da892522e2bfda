//! Reads files, and writes them atomically and only when their content changes. What is written into a folder of ours stays in
//! it, whatever its name is and whatever lies there.

use std::fs::Metadata;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use aoti_compiler::codegen::bundle::WeightsBlob;
use aoti_compiler::frontend::{self, ModelFile};
use aoti_compiler::json_fields;
use aoti_toolchain::{FileAside, is_plain_name, make_folder};
use bytes::Bytes;
use memmap2::Mmap;

use crate::error::Error;
use crate::system;

/// What can be known of a file without reading it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileStamp {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) modified_ns: u64,
}

json_fields!(FileStamp { path, bytes, modified_ns });

impl FileStamp {
    pub(crate) fn of(path: &Path) -> io::Result<FileStamp> {
        let metadata = std::fs::metadata(path)?;
        // Opening a pipe would wait for a writer.
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(FileStamp { path: path.to_owned(), bytes: metadata.len(), modified_ns: modified_ns(&metadata) })
    }

    /// Whether the file is still as it was, by its metadata.
    pub(crate) fn holds(&self) -> bool {
        FileStamp::of(&self.path).is_ok_and(|now| now == *self)
    }
}

fn modified_ns(metadata: &Metadata) -> u64 {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.and_then(|time| u64::try_from(time.as_nanos()).ok()).unwrap_or(0)
}

/// Maps a file, so that models of any size cost no memory.
pub(crate) fn map(path: &Path) -> io::Result<Bytes> {
    let file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the map is read-only and read as bytes only. A file that is cut while a build reads it can end the build,
    // as with every program that maps files; it cannot change what other programs see.
    let map = unsafe { Mmap::map(&file) }?;
    Ok(Bytes::from_owner(map))
}

/// A model's file, and those beside it that it says a part of its data is in, as far as they are there.
///
/// # Errors
/// A file that cannot be read.
pub fn model_file(path: &Path) -> io::Result<ModelFile> {
    let file = map(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut model = ModelFile::from(file);
    // What is wrong with the model is told where it is compiled.
    for name in frontend::files_beside(&model.file).unwrap_or_default() {
        match map(&folder.join(&name)) {
            Ok(content) => drop(model.beside.insert(name, content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(model)
}

/// The files beside a model's own that a part of its data is in, as far as they are there.
pub(crate) fn beside(path: &Path) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let names = map(path).ok().and_then(|file| frontend::files_beside(&file).ok()).unwrap_or_default();
    names.iter().map(|name| folder.join(name)).filter(|file| file.is_file()).collect()
}

/// Writes a file in one step, unless it already has this content. Gives whether it was written. A link is replaced, not
/// followed.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<bool, Error> {
    if has_length(path, content.len() as u64) && std::fs::read(path).is_ok_and(|old| old == content) {
        return Ok(false);
    }
    replace(path, |file| file.write_all(content))?;
    Ok(true)
}

/// Writes a file of this name below a folder, as [`write`] does, and gives its path. The name may come from a cache that
/// others write to: one that would leave the folder, by itself or through a link, is an error.
pub(crate) fn write_beneath(folder: &Path, name: &str, content: &[u8]) -> Result<PathBuf, Error> {
    let path = folder.join(name);
    if !is_plain_name(name) {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "its name is not a plain relative name");
        return Err(file_error("write", &path)(source));
    }
    if let Some((parents, _)) = name.rsplit_once('/') {
        make_folder(folder, parents).map_err(file_error("make the folder of", &path))?;
    }
    write(&path, content)?;
    Ok(path)
}

/// Whether a regular file, and no link to one, has this length.
fn has_length(path: &Path, length: u64) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == length)
}

/// Writes parts one after the other.
pub(crate) fn write_parts(path: &Path, parts: &mut dyn Iterator<Item = &[u8]>) -> io::Result<()> {
    let mut file = io::BufWriter::new(std::fs::File::create(path)?);
    for part in parts {
        file.write_all(part)?;
    }
    file.flush()
}

/// Writes weights of this digest in one step, unless the file already holds them.
pub(crate) fn write_weights(path: &Path, weights: &WeightsBlob, digest: &str) -> Result<(), Error> {
    if !has_length(path, weights.bytes) || digest_of(path).ok().as_deref() != Some(digest) {
        replace(path, |file| stream(weights, file))?;
    }
    Ok(())
}

/// The digest that the weights will have as a file.
pub(crate) fn weights_digest(weights: &WeightsBlob) -> String {
    let mut hasher = blake3::Hasher::new();
    stream(weights, &mut hasher).expect("a hasher takes everything and segments ascend");
    hasher.finalize().to_hex().to_string()
}

fn stream(weights: &WeightsBlob, target: &mut dyn Write) -> io::Result<()> {
    let mut at = 0;
    for (offset, content) in &weights.segments {
        zeros(offset.saturating_sub(at), target)?;
        target.write_all(content)?;
        at = offset + content.len() as u64;
    }
    zeros(weights.bytes.saturating_sub(at), target)
}

fn zeros(mut count: u64, target: &mut dyn Write) -> io::Result<()> {
    const ZEROS: [u8; 4096] = [0; 4096];
    while count > 0 {
        let part = count.min(ZEROS.len() as u64);
        target.write_all(&ZEROS[..part as usize])?;
        count -= part;
    }
    Ok(())
}

fn replace(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let aside = written_aside(path, fill)?;
    aside.persist(path).map_err(file_error("write", path))
}

/// Finds out whether a file could be replaced by one of this content now, and leaves it as it is.
pub(crate) fn check_replaceable(path: &Path, content: &[u8]) -> Result<(), Error> {
    written_aside(path, |file| file.write_all(content)).map(drop)
}

/// A file beside `path`, ready to take its place; it goes away where it does not.
fn written_aside(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<FileAside, Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(file_error("make", folder))?;
    let mut aside = FileAside::new_in(folder).map_err(file_error("write in", folder))?;
    let mut writer = io::BufWriter::new(aside.file());
    fill(&mut writer).and_then(|()| writer.flush()).map_err(file_error("write", path))?;
    drop(writer);
    system::make_readable(aside.file()).map_err(file_error("write", path))?;
    Ok(aside)
}

/// The digest of a file.
pub(crate) fn digest_of(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(std::fs::File::open(path)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}

pub(crate) fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::File { action, path, source }
}

/// Removes a file if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file_error("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_said_once() {
        let path = Path::new("/nowhere/at/all");
        let error = std::fs::read(path).map_err(file_error("read", path)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read `/nowhere/at/all`: No such file or directory (os error 2)"
        );
    }
}
