//! Zip archives as one wants them, damaged ones too: names and sizes are written as given, true or not.

use serde_json::Value;
use std::io::{Cursor, Read};
use std::path::Path;

/// One stored entry.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its full name.
    pub name: String,
    /// Its bytes.
    pub data: Vec<u8>,
    /// How many bytes it claims to have, if not as many as it has.
    pub claimed: Option<u64>,
}

/// All entries of an archive, to be changed and written again.
#[derive(Clone, Debug)]
pub struct Archive {
    /// In order.
    pub entries: Vec<Entry>,
}

impl Archive {
    /// Reads a well-formed archive.
    pub fn read(path: &Path) -> Archive {
        Archive::parse(&std::fs::read(path).expect("the archive can be read"))
    }

    /// The same of a file in memory.
    pub fn parse(file: &[u8]) -> Archive {
        let mut zip = zip::ZipArchive::new(Cursor::new(file)).expect("the archive is well formed");
        let entries = (0..zip.len()).map(|index| {
            let mut entry = zip.by_index(index).expect("the entry is well formed");
            let mut data = Vec::new();
            entry.read_to_end(&mut data).expect("the entry can be read");
            Entry { name: entry.name().expect("names are UTF-8").into_owned(), data, claimed: None }
        });
        Archive { entries: entries.collect() }
    }

    /// The entry whose name ends so.
    pub fn entry(&mut self, end: &str) -> &mut Entry {
        self.entries.iter_mut().find(|entry| entry.name.ends_with(end)).expect("the archive has the entry")
    }

    /// Changes an entry of JSON.
    pub fn edit(&mut self, end: &str, change: impl FnOnce(&mut Value)) {
        let entry = self.entry(end);
        let mut value = serde_json::from_slice(&entry.data).expect("the entry is JSON");
        change(&mut value);
        entry.data = serde_json::to_vec(&value).expect("JSON can be written");
    }

    /// The file.
    pub fn write(&self) -> Vec<u8> {
        let (mut file, mut directory) = (Vec::new(), Vec::new());
        for entry in &self.entries {
            let (offset, size) = (file.len() as u64, entry.claimed.unwrap_or(entry.data.len() as u64));
            let header = Header { name: &entry.name, size, check: crc32(&entry.data) };
            file.extend(header.local());
            file.extend(&entry.data);
            directory.extend(header.central(offset));
        }
        let (count, start) = (self.entries.len() as u16, file.len() as u32);
        file.extend(&directory);
        file.extend(b"PK\x05\x06\0\0\0\0");
        file.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
        file.extend([(directory.len() as u32).to_le_bytes(), start.to_le_bytes()].concat());
        file.extend([0, 0]);
        file
    }
}

/// Where the data of an entry lies in a file.
pub fn data_start(file: &[u8], end: &str) -> usize {
    let mut zip = zip::ZipArchive::new(Cursor::new(file)).expect("the archive is well formed");
    let index = (0..zip.len()).find(|&index| {
        let entry = zip.by_index(index).expect("the entry is well formed");
        entry.name().is_ok_and(|name| name.ends_with(end))
    });
    let start =
        zip.by_index(index.expect("the archive has the entry")).expect("it was just read").data_start();
    start.and_then(|start| usize::try_from(start).ok()).expect("it lies in the file")
}

struct Header<'a> {
    name: &'a str,
    size: u64,
    check: u32,
}

impl Header<'_> {
    /// From the version needed to the lengths of name and extra field; sizes beyond 32 bits go into the latter.
    fn common(&self) -> (Vec<u8>, Vec<u8>) {
        let (short, extra) = match u32::try_from(self.size) {
            Ok(size) => (size, Vec::new()),
            Err(_) => {
                let sizes = [self.size.to_le_bytes(), self.size.to_le_bytes()].concat();
                (u32::MAX, [&[1, 0, 16, 0][..], &sizes].concat())
            }
        };
        let mut bytes = vec![45, 0, 0, 0, 0, 0, 0, 0, 33, 0];
        bytes.extend(self.check.to_le_bytes());
        bytes.extend([short.to_le_bytes(), short.to_le_bytes()].concat());
        bytes.extend((self.name.len() as u16).to_le_bytes());
        bytes.extend((extra.len() as u16).to_le_bytes());
        (bytes, extra)
    }

    fn local(&self) -> Vec<u8> {
        let (common, extra) = self.common();
        [b"PK\x03\x04", &common[..], self.name.as_bytes(), &extra].concat()
    }

    fn central(&self, offset: u64) -> Vec<u8> {
        let (common, extra) = self.common();
        let offset = (offset as u32).to_le_bytes();
        // No comment, the first disk, no attributes.
        [b"PK\x01\x02\x2d\0", &common[..], &[0; 10], &offset, self.name.as_bytes(), &extra].concat()
    }
}

fn crc32(data: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !data.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}
