//! The zip archive, read in place: which entries it has and where their bytes are.
//!
//! Entries are slices of the file's bytes. Refuses what cannot be read so (compressed or encrypted entries) and what
//! no honest writer makes (names that leave the archive, entries outside the file or on top of each other). Knows
//! the folder layout of `.pt2`, not what the entries mean.

use crate::diagnostic::{Code, Diagnostic};
use bytes::Bytes;
use indexmap::IndexMap;
use rawzip::{CompressionMethod, ZipArchive, ZipFileHeaderRecord, ZipSliceArchive};

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
        let entries = entries(file, recognise_others)?;
        let archive = Archive { entries: below_root(entries)? };
        archive.check_kind()?;
        Ok(archive)
    }

    /// An entry by its path below the root folder.
    pub(super) fn get(&self, path: &str) -> Option<&Bytes> {
        self.entries.get(path)
    }

    /// Number of bytes of all entries.
    pub(super) fn bytes(&self) -> usize {
        self.entries.values().map(Bytes::len).sum()
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

/// The entries of an archive that `torch.save` wrote, below its root folder.
pub(super) fn saved(file: &Bytes) -> Result<IndexMap<String, Bytes>, Diagnostic> {
    below_root(entries(file, |_| Ok(()))?)
}

fn broken(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::Archive, message).help("export the model again with `torch.export.save`")
}

fn unreadable(error: &rawzip::Error) -> Diagnostic {
    broken(format!("the archive cannot be read: {error}"))
}

fn version(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::Version, message)
        .help("export the model again with `torch.export.save` of a current torch")
}

/// Every file entry by its full name.
fn entries(
    file: &Bytes,
    recognise: impl Fn(&[String]) -> Result<(), Diagnostic>,
) -> Result<IndexMap<String, Bytes>, Diagnostic> {
    let zip = ZipArchive::from_slice(file.as_ref()).map_err(|error| unreadable(&error))?;
    let records = records(&zip)?;
    // What other tools write is named as such, whatever else is unusual about it.
    let names: Vec<String> =
        records.iter().map(|record| String::from_utf8_lossy(raw_name(record)).into_owned()).collect();
    recognise(&names)?;
    let mut entries = IndexMap::new();
    let mut extents = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let name = std::str::from_utf8(raw_name(record))
            .map_err(|_| broken(format!("the name of entry {index} of the archive is not UTF-8")))?
            .to_owned();
        check_name(&name)?;
        let (start, end) = extent(file, &zip, record, &name)?;
        extents.push((record.local_header_offset(), end));
        if record.is_dir() {
            continue;
        }
        if record.flags().is_encrypted() || record.compression_method() != CompressionMethod::STORE {
            return Err(broken(format!("entry `{name}` of the archive is compressed or encrypted"))
                .note("`.pt2` archives store their entries, so that weights can be mapped from the file"));
        }
        let (size, stored) = (record.uncompressed_size_hint(), record.compressed_size_hint());
        if size != stored {
            return Err(broken(format!(
                "entry `{name}` of the archive states two sizes, {size} and {stored}"
            )));
        }
        if entries.insert(name, file.slice(start..end as usize)).is_some() {
            return Err(broken("the archive has two entries of one name"));
        }
    }
    extents.push((zip.directory_offset(), u64::MAX));
    check_extents(extents)?;
    records.iter().zip(&names).try_for_each(|(record, name)| check_header(file, record, name))?;
    Ok(entries)
}

/// The records of the archive's directory.
fn records<'a>(zip: &'a ZipSliceArchive<&[u8]>) -> Result<Vec<ZipFileHeaderRecord<'a>>, Diagnostic> {
    let mut records = Vec::new();
    for record in zip.entries() {
        records.push(record.map_err(|error| unreadable(&error))?);
        if records.len() > MAX_ENTRIES {
            return Err(broken(format!("the archive has more than {MAX_ENTRIES} entries")));
        }
    }
    if records.len() as u64 != zip.entries_hint() {
        return Err(broken(format!(
            "the archive states {} entries and lists {}",
            zip.entries_hint(),
            records.len()
        )));
    }
    // The end of a truncated archive is looked for backwards, and may be that of an archive inside it. The offsets stated
    // there count from the start of that one, which the reader makes good; so they do not begin at 0.
    if records.iter().map(ZipFileHeaderRecord::local_header_offset).min().is_some_and(|first| first != 0) {
        return Err(broken("the archive is truncated: its directory is missing"));
    }
    Ok(records)
}

fn raw_name<'a>(record: &'a ZipFileHeaderRecord<'_>) -> &'a [u8] {
    record.file_path().as_bytes()
}

/// Where the bytes of an entry lie in the file.
fn extent(
    file: &Bytes,
    zip: &ZipSliceArchive<&[u8]>,
    record: &ZipFileHeaderRecord<'_>,
    name: &str,
) -> Result<(usize, u64), Diagnostic> {
    let entry = zip.get_entry(record.wayfinder()).map_err(|_| {
        broken(format!(
            "entry `{name}` of the archive claims {} bytes, which do not lie inside the file of {} bytes",
            record.compressed_size_hint(),
            file.len()
        ))
    })?;
    let (start, end) = entry.compressed_data_range();
    // The reader has found both inside the file.
    Ok((start as usize, end))
}

/// What the header before an entry says of its size, unless it leaves that to what follows the entry or to zip64, must be what
/// the directory says: readers that go by the one would see another file than those that go by the other.
fn check_header(file: &Bytes, record: &ZipFileHeaderRecord<'_>, name: &str) -> Result<(), Diagnostic> {
    const DESCRIPTOR_FOLLOWS: u16 = 1 << 3;
    let start = record.local_header_offset() as usize;
    let header = start.checked_add(30).and_then(|end| file.get(start..end));
    let header = header.ok_or_else(|| broken(format!("entry `{name}` of the archive has no header")))?;
    let flags = u16::from_le_bytes([header[6], header[7]]);
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let directory = [record.compressed_size_hint(), record.uncompressed_size_hint()];
    for (stated, own) in [word(18), word(22)].into_iter().zip(directory) {
        if flags & DESCRIPTOR_FOLLOWS == 0 && stated != u32::MAX && u64::from(stated) != own {
            return Err(broken(format!(
                "entry `{name}` of the archive has {own} bytes by the directory and {stated} by its header"
            )));
        }
    }
    Ok(())
}

/// Entries, each with its header, must lie side by side.
fn check_extents(mut extents: Vec<(u64, u64)>) -> Result<(), Diagnostic> {
    extents.sort_unstable();
    if extents.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return Err(broken("entries of the archive overlap"));
    }
    Ok(())
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
mod tests;
