//! The zip archive, read in place: which entries it has and where their bytes are.
//!
//! Entries are slices of the file's bytes. Refuses what cannot be read so (compressed or encrypted entries) and what
//! no honest writer makes (names that leave the archive, entries outside the file or on top of each other). Knows
//! the folder layout of `.pt2`, not what the entries mean.

use crate::diagnostic::{Code, Diagnostic};
use bytes::Bytes;
use indexmap::IndexMap;
use std::io::Cursor;
use zip::{CompressionMethod, ZipArchive};

/// Entries of an archive; an exporter writes a handful and one per weight.
const MAX_ENTRIES: usize = 1 << 20;

/// An opened `.pt2` archive.
#[derive(Debug)]
pub(super) struct Archive {
    /// By path below the archive's root folder.
    entries: IndexMap<String, Bytes>,
}

/// Whether the bytes begin as a zip archive does.
pub(super) fn is_zip(file: &[u8]) -> bool {
    file.starts_with(b"PK\x03\x04") || file.starts_with(b"PK\x05\x06")
}

impl Archive {
    /// Reads the directory and checks every entry and the archive's kind, version and byte order.
    pub(super) fn open(file: &Bytes) -> Result<Archive, Diagnostic> {
        if !is_zip(file) {
            return Err(foreign(file));
        }
        let entries = entries(file)?;
        let archive = Archive { entries: below_root(entries)? };
        archive.check_kind()?;
        Ok(archive)
    }

    /// An entry by its path below the root folder.
    pub(super) fn get(&self, path: &str) -> Option<&Bytes> {
        self.entries.get(path)
    }

    /// The name of the one model: `models/<name>.json`.
    pub(super) fn model_name(&self) -> Result<String, Diagnostic> {
        let names: Vec<&str> = self
            .entries
            .keys()
            .filter_map(|path| path.strip_prefix("models/")?.strip_suffix(".json"))
            .filter(|name| !name.contains('/'))
            .collect();
        match names.as_slice() {
            [name] => Ok((*name).to_owned()),
            [] => Err(broken("the archive holds no model: there is no `models/*.json`")),
            _ if names.contains(&"model") => Ok("model".to_owned()),
            _ => Err(Diagnostic::new(
                Code::Archive,
                format!("the archive holds several models: `{}`", names.join("`, `")),
            )
            .help("save each program to a file of its own")),
        }
    }

    fn text(&self, path: &str) -> Option<&str> {
        self.get(path).and_then(|bytes| std::str::from_utf8(bytes).ok()).map(str::trim)
    }

    fn check_kind(&self) -> Result<(), Diagnostic> {
        match self.text("archive_format") {
            Some("pt2") => {}
            Some(other) => return Err(version(format!("the archive format is `{other}`, not `pt2`"))),
            None => return Err(version("the archive does not say that it is a `pt2` archive")),
        }
        match self.text("archive_version") {
            Some("0" | "1") => {}
            other => {
                let other = other.unwrap_or("missing");
                return Err(version(format!("the archive version is `{other}`; `0` is supported")));
            }
        }
        match self.text("byteorder") {
            Some("little") | None => Ok(()),
            Some(other) => Err(version(format!("the byte order is `{other}`; only `little` is supported"))),
        }
    }
}

fn broken(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::Archive, message).help("export the model again with `torch.export.save`")
}

fn version(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::Version, message)
        .help("export the model again with `torch.export.save` of a current torch")
}

/// Every file entry by its full name.
fn entries(file: &Bytes) -> Result<IndexMap<String, Bytes>, Diagnostic> {
    let mut zip = ZipArchive::new(Cursor::new(file.as_ref()))
        .map_err(|error| broken(format!("the archive cannot be read: {error}")))?;
    // The end of a truncated archive is looked for backwards, and may be that of an archive inside it.
    if zip.offset() != 0 {
        return Err(broken("the archive is truncated: its directory is missing"));
    }
    if zip.has_duplicate_names() {
        return Err(broken("the archive has two entries of one name"));
    }
    if zip.len() > MAX_ENTRIES {
        return Err(broken(format!("the archive has {} entries; at most {MAX_ENTRIES} are read", zip.len())));
    }
    // What other tools write is named as such, whatever else is unusual about it.
    let names: Vec<String> =
        zip.file_names_raw().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    recognise_others(&names)?;
    let mut entries = IndexMap::new();
    for index in 0..zip.len() {
        let entry = zip
            .by_index_raw(index)
            .map_err(|error| broken(format!("entry {index} of the archive cannot be read: {error}")))?;
        let name = std::str::from_utf8(entry.name_raw())
            .map_err(|_| broken(format!("the name of entry {index} of the archive is not UTF-8")))?
            .to_owned();
        check_name(&name)?;
        if entry.is_dir() {
            continue;
        }
        if entry.encrypted() || entry.compression() != CompressionMethod::Stored {
            return Err(broken(format!("entry `{name}` of the archive is compressed or encrypted"))
                .note("`.pt2` archives store their entries, so that weights can be mapped from the file"));
        }
        let data = slice(file, entry.data_start(), entry.size(), entry.compressed_size(), &name)?;
        entries.insert(name, data);
    }
    if zip.has_overlapping_files().unwrap_or(true) {
        return Err(broken("entries of the archive overlap"));
    }
    Ok(entries)
}

fn slice(file: &Bytes, start: Option<u64>, size: u64, stored: u64, name: &str) -> Result<Bytes, Diagnostic> {
    let outside = || {
        broken(format!(
            "entry `{name}` of the archive claims {size} bytes, which do not lie inside the file of {} bytes",
            file.len()
        ))
    };
    if size != stored {
        return Err(broken(format!("entry `{name}` of the archive states two sizes, {size} and {stored}")));
    }
    let start = start.and_then(|start| usize::try_from(start).ok()).ok_or_else(outside)?;
    let end = usize::try_from(size).ok().and_then(|size| start.checked_add(size)).ok_or_else(outside)?;
    if end > file.len() {
        return Err(outside());
    }
    Ok(file.slice(start..end))
}

/// Names are relative paths that stay inside the archive.
fn check_name(name: &str) -> Result<(), Diagnostic> {
    let bad = name.is_empty()
        || name.len() > 4096
        || name.starts_with('/')
        || name.contains(['\\', '\0'])
        || name.as_bytes().get(1) == Some(&b':')
        || name.split('/').any(|part| part == "..");
    if bad {
        return Err(broken(format!(
            "entry `{}` of the archive has a name that leaves it",
            name.escape_debug()
        )));
    }
    Ok(())
}

/// Strips the root folder, the same for every entry.
fn below_root(entries: IndexMap<String, Bytes>) -> Result<IndexMap<String, Bytes>, Diagnostic> {
    let root = match entries.keys().next().and_then(|name| name.split_once('/')) {
        Some((root, _)) => format!("{root}/"),
        None => return Err(broken("the archive has no root folder")),
    };
    entries
        .into_iter()
        .map(|(name, data)| match name.strip_prefix(&root) {
            Some(path) => Ok((path.to_owned(), data)),
            None => Err(broken(format!("entry `{name}` lies outside the archive's root folder `{root}`"))),
        })
        .collect()
}

/// Names the other kinds of zip archives that PyTorch writes.
fn recognise_others(names: &[String]) -> Result<(), Diagnostic> {
    let ends_with = |suffix: &str| names.iter().any(|name| name.ends_with(suffix));
    let contains = |part: &str| names.iter().any(|name| name.contains(part));
    let in_models = names.iter().any(|name| name.contains("/models/") && name.ends_with(".json"));
    if in_models {
        return Ok(());
    }
    if contains("serialized_exported_program.json") {
        return Err(version(
            "the archive has the layout of torch 2.7 and older (`serialized_exported_program.json`)",
        ));
    }
    if contains("data/aotinductor/") {
        return Err(Diagnostic::new(
            Code::Version,
            "the archive is an AOTInductor package: compiled code, not a program",
        )
        .help("save the exported program itself with `torch.export.save`"));
    }
    if ends_with("/constants.pkl") && contains("/code/") {
        return Err(Diagnostic::new(Code::Version, "the archive is a TorchScript model")
            .help("export the module with `torch.export.export` and `torch.export.save`"));
    }
    if ends_with("/data.pkl") {
        return Err(Diagnostic::new(
            Code::Version,
            "the archive was written by `torch.save`: a pickle, not a program",
        )
        .help("export the module with `torch.export.export` and `torch.export.save`"));
    }
    Ok(())
}

/// Says what a file that is not a zip archive seems to be.
fn foreign(file: &[u8]) -> Diagnostic {
    let header = file.get(..8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    let is_safetensors =
        header.is_some_and(|length| length <= file.len() as u64) && file.get(8) == Some(&b'{');
    let export = "export the module with `torch.export.export` and `torch.export.save`";
    let (what, help) = if file.is_empty() {
        ("is empty", export)
    } else if is_safetensors {
        ("is a safetensors file: weights without a program", export)
    } else if file.len() > 1 && file[0] == 0x80 && (2..=5).contains(&file[1]) {
        ("is a Python pickle", export)
    } else if file.starts_with(b"version https://git-lfs") {
        ("is a Git LFS pointer", "fetch the file itself with `git lfs pull`")
    } else if file.get(4..8).is_some_and(|magic| magic.starts_with(b"ET")) {
        ("is an ExecuTorch program", export)
    } else if file.starts_with(b"PK") {
        ("begins as a zip archive but is damaged", export)
    } else {
        ("is neither a zip archive nor the text of a graph", export)
    };
    Diagnostic::new(Code::Archive, format!("the file {what}")).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use zip::{ZipWriter, write::SimpleFileOptions};

    fn archive(entries: &[(&str, &[u8])]) -> Bytes {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        for (name, data) in entries {
            zip.start_file(*name, options).unwrap();
            zip.write_all(data).unwrap();
        }
        Bytes::from(zip.finish().unwrap().into_inner())
    }

    #[test]
    fn entries_are_slices_of_the_file() {
        let file = archive(&[
            ("m/archive_format", b"pt2"),
            ("m/archive_version", b"0"),
            ("m/models/net.json", b"{}"),
        ]);
        let opened = Archive::open(&file).unwrap();
        let entry = opened.get("models/net.json").unwrap();
        assert!(file.as_ptr_range().contains(&entry.as_ptr()));
        assert_eq!(opened.model_name().unwrap(), "net");
    }

    #[test]
    fn other_kinds_are_named() {
        type Entry = (&'static str, &'static [u8]);
        let kinds: [(&[Entry], &str); 4] = [
            (&[("serialized_exported_program.json", b"{}")], "2.7"),
            (&[("m/data/aotinductor/model/x.so", b"")], "AOTInductor"),
            (&[("m/code/a.py", b""), ("m/constants.pkl", b"")], "TorchScript"),
            (&[("m/data.pkl", b"")], "torch.save"),
        ];
        for (entries, word) in kinds {
            let error = Archive::open(&archive(entries)).unwrap_err();
            assert_eq!(error.code, Code::Version);
            assert!(error.message.contains(word), "{}", error.message);
        }
        assert!(Archive::open(&Bytes::from_static(b"\x80\x02}q")).unwrap_err().message.contains("pickle"));
    }

    #[test]
    fn the_directory_of_an_archive_inside_is_not_taken_for_that_of_a_truncated_one() {
        let inner = archive(&[("x/data.pkl", b"x")]);
        let outer = archive(&[("m/archive_format", b"pt2"), ("m/sample.pt", &inner)]);
        for length in inner.len() + 100..outer.len() {
            let error = Archive::open(&outer.slice(..length)).unwrap_err();
            assert_eq!(error.code, Code::Archive, "{length}: {}", error.message);
        }
    }
}
