//! Files of a package with their digests, and what its libraries need of the machine that they run on.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use aoti_toolchain::{Family, Toolchain};
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// Where the bytes of a file are.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Content {
    Text(String),
    Path(PathBuf),
}

/// One file of a package; they are in order of names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
    /// Bills of materials ask for it.
    pub(super) sha1: String,
    pub(super) content: Content,
}

impl File {
    pub(super) fn text(name: &str, text: &str) -> File {
        let content = Content::Text(text.to_owned());
        let [sha256, sha1] = [hex(&Sha256::digest(text)), hex(&Sha1::digest(text))];
        File { name: name.to_owned(), bytes: text.len() as u64, sha256, sha1, content }
    }

    /// A file that is there, under this name.
    pub(super) fn at(name: &str, path: &Path) -> Result<File, Failure> {
        let (mut sha256, mut sha1) = (Sha256::new(), Sha1::new());
        let read = || -> io::Result<u64> {
            let mut file = fs_err::File::open(path)?;
            let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
            loop {
                let count = file.read(&mut buffer)?;
                if count == 0 {
                    return Ok(bytes);
                }
                sha256.update(&buffer[..count]);
                sha1.update(&buffer[..count]);
                bytes += count as u64;
            }
        };
        let bytes = { read }().map_err(Failure::machine("read", path))?;
        let content = Content::Path(path.to_owned());
        let (sha256, sha1) = (hex(&sha256.finalize()), hex(&sha1.finalize()));
        Ok(File { name: name.to_owned(), bytes, sha256, sha1, content })
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The oldest glibc that has all of these versions of symbols; none where it is another C library.
pub(super) fn minimum_glibc(versions: &[(String, String)]) -> Option<String> {
    let number = |version: &str| -> Option<Vec<u32>> {
        let parts = version.strip_prefix("GLIBC_")?.split('.');
        parts.map(|part| part.parse().ok()).collect()
    };
    let newest = versions.iter().filter_map(|(_, version)| number(version)).max()?;
    Some(newest.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

/// The oldest drivers of NVIDIA's for Linux that run machine code of each major version of CUDA.
const NVIDIA_DRIVERS: [(u32, &str); 3] = [(11, "450.80.02"), (12, "525.60.13"), (13, "580.65.06")];

/// The driver that code of a device compiler needs.
pub(super) fn minimum_driver(toolchain: &Toolchain) -> Option<Value> {
    let (device, major) = (toolchain.definition.gpu()?.as_str(), toolchain.compiler.major);
    let drivers: &[(u32, &str)] = match toolchain.definition.kind {
        Family::Nvcc => &NVIDIA_DRIVERS,
        Family::Hipcc => &[],
        Family::Gcc | Family::Clang => return None,
    };
    let driver = drivers.iter().find(|(known, _)| *known == major).map(|(_, driver)| *driver);
    Some(json!({ "device": device, (device): major, "driver": driver }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let needs = |names: &[&str]| {
            let versions: Vec<_> =
                names.iter().map(|name| ("libc.so.6".to_owned(), (*name).to_owned())).collect();
            minimum_glibc(&versions)
        };
        assert_eq!(needs(&["GLIBC_2.2.5", "GLIBC_2.29", "GLIBC_2.4"]).as_deref(), Some("2.29"));
        assert_eq!(needs(&["GLIBC_2.2.5", "GCC_3.0"]).as_deref(), Some("2.2.5"));
        assert_eq!(needs(&[]), None);
    }

    #[test]
    fn digests_are_those_of_the_bytes() {
        let file = File::text("a", "abc");
        assert_eq!(file.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(file.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
