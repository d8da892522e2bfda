//! The archive: tar without times, users or chance, compressed with Zstandard.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use aoti_toolchain::FileAside;
use ruzstd::encoding::{CompressionLevel, compress};
use tar::{Builder, EntryType, Header};

use super::entry::{Content, File};
use crate::failure::Failure;

pub(super) struct Archive;

impl Archive {
    /// Writes files below a folder of this name, by way of a file at `raw`; gives the archive's length.
    pub(super) fn write(folder: &str, files: &[File], raw: &Path, path: &Path) -> Result<u64, Failure> {
        tar(folder, files, raw).map_err(Failure::machine("write", raw))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let compressed = || -> io::Result<u64> {
            fs_err::create_dir_all(parent)?;
            let mut aside = FileAside::new_in(parent)?;
            let source = BufReader::new(fs_err::File::open(raw)?);
            let mut target = BufWriter::new(aside.file());
            compress(source, &mut target, CompressionLevel::Fastest);
            target.flush()?;
            drop(target);
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                aside.file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
            }
            aside.persist(path)?;
            Ok(fs_err::metadata(path)?.len())
        };
        compressed().map_err(Failure::machine("write", path))
    }
}

fn tar(folder: &str, files: &[File], path: &Path) -> io::Result<()> {
    let mut builder = Builder::new(BufWriter::new(fs_err::File::create(path)?));
    for file in files {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(file.bytes);
        let content: Box<dyn Read> = match &file.content {
            Content::Text(text) => Box::new(text.as_bytes()),
            Content::Path(path) => Box::new(fs_err::File::open(path)?),
        };
        builder.append_data(&mut header, format!("{folder}/{}", file.name), content)?;
    }
    builder.into_inner()?.flush()
}
