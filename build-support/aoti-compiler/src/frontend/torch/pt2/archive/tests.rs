//! Archives made here, as PyTorch, other tools and nobody honest would write them.

use super::*;
use std::io::{Cursor, Write};
use zip::{ZipWriter, write::SimpleFileOptions};

fn archive(entries: &[(&str, &[u8])]) -> Bytes {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, data) in entries {
        zip.start_file(*name, options).unwrap();
        zip.write_all(data).unwrap();
    }
    Bytes::from(zip.finish().unwrap().into_inner())
}

#[test]
fn entries_are_slices_of_the_file() {
    let file =
        archive(&[("m/archive_format", b"pt2"), ("m/archive_version", b"0"), ("m/models/net.json", b"{}")]);
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
    for inner in [archive(&[("x/data.pkl", b"x")]), as_pytorch(&[("x/data.pkl".to_owned(), b"x")])] {
        let outer = archive(&[("m/archive_format", b"pt2"), ("m/sample.pt", &inner)]);
        for length in inner.len() + 100..outer.len() {
            let error = Archive::open(&outer.slice(..length)).unwrap_err();
            assert_eq!(error.code, Code::Archive, "{length}: {}", error.message);
        }
    }
}

/// Writes an archive as PyTorch's writer does: every archive, however small, ends with the records of zip64 before the
/// usual one.
fn as_pytorch(entries: &[(String, &[u8])]) -> Bytes {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in entries {
        let offset = file.len() as u32;
        let mut shared = Vec::new();
        // Needs version 4.5 for nothing; no flags, stored, no time, no checksum.
        shared.extend_from_slice(&[45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        shared.extend_from_slice(&(data.len() as u32).to_le_bytes());
        shared.extend_from_slice(&(data.len() as u32).to_le_bytes());
        shared.extend_from_slice(&(name.len() as u16).to_le_bytes());
        shared.extend_from_slice(&[0, 0]);
        file.extend_from_slice(b"PK\x03\x04");
        file.extend_from_slice(&shared);
        file.extend_from_slice(name.as_bytes());
        file.extend_from_slice(data);
        directory.extend_from_slice(b"PK\x01\x02\0\0");
        directory.extend_from_slice(&shared);
        // No comment, first disk, no attributes.
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let (start, length, count) = (file.len() as u64, directory.len() as u64, entries.len() as u64);
    file.extend_from_slice(&directory);
    let ends = file.len() as u64;
    file.extend_from_slice(b"PK\x06\x06");
    file.extend_from_slice(&44u64.to_le_bytes());
    file.extend_from_slice(&[45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for number in [count, count, length, start] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    file.extend_from_slice(b"PK\x06\x07\0\0\0\0");
    file.extend_from_slice(&ends.to_le_bytes());
    file.extend_from_slice(&1u32.to_le_bytes());
    file.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    file.extend_from_slice(&(count as u16).to_le_bytes());
    file.extend_from_slice(&(count as u16).to_le_bytes());
    file.extend_from_slice(&(length as u32).to_le_bytes());
    file.extend_from_slice(&(start as u32).to_le_bytes());
    file.extend_from_slice(&[0, 0]);
    Bytes::from(file)
}

/// A name of 8 letters made the first directory record as long as the records of zip64 at the end, and a reader that
/// guesses where an archive begins took the second for the first.
#[test]
fn archives_saved_under_names_of_any_length_are_read() {
    for first in ["archive_format", "data/weights/weight_0", "data/weights/weight_10"] {
        for length in 1..=40 {
            let root = "n".repeat(length);
            let mut paths = vec![first, "archive_format", "archive_version", "models/model.json"];
            paths.dedup();
            let entries: Vec<(String, &[u8])> = paths
                .iter()
                .map(|path| {
                    (format!("{root}/{path}"), if path.ends_with("version") { b"0" } else { &b"pt2"[..] })
                })
                .collect();
            let file = as_pytorch(&entries);
            let opened = Archive::open(&file).unwrap_or_else(|error| panic!("{length}: {}", error.message));
            assert_eq!(opened.entries.len(), paths.len());
            assert_eq!(opened.get("models/model.json").unwrap(), &b"pt2"[..]);
            assert!(Archive::open(&file.slice(..file.len() - 1)).is_err());
        }
    }
}

#[test]
fn directories_that_state_other_counts_and_entries_on_top_of_each_other_are_refused() {
    let good = as_pytorch(&[("m/archive_format".to_owned(), b"pt2"), ("m/archive_version".to_owned(), b"0")]);
    assert!(Archive::open(&good).is_ok());
    let altered = |places: &[usize], byte: u8| {
        let mut file = good.to_vec();
        places.iter().for_each(|at| file[*at] = byte);
        Archive::open(&Bytes::from(file)).unwrap_err().message
    };
    let usual = good.len() - 22;
    let counts = [usual - 20 - 56 + 24, usual - 20 - 56 + 32, usual + 8, usual + 10];
    assert_eq!(altered(&counts, 3), "the archive states 3 entries and lists 2");
    let second = good.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    assert_eq!(altered(&[second + 42], 0), "entries of the archive overlap");
}
