//! Gives the compiler's sources a digest, so that artefacts of another compiler are never taken for up to date, not
//! even while the compiler is being worked on. Published crates never change under one version, which is part of it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Without the compiler there is nothing that artefacts could be of.
    #[cfg(feature = "compiler")]
    sources::digest();
}

#[cfg(feature = "compiler")]
mod sources {
    use std::path::{Path, PathBuf};

    pub(crate) fn digest() {
        let mut hasher = blake3::Hasher::new();
        hasher.update(std::env::var("CARGO_PKG_VERSION").unwrap_or_default().as_bytes());
        for folder in ["src", "../aoti-compiler/src", "../aoti-compiler/include", "../aoti-compiler/harness"]
        {
            if Path::new(folder).is_dir() {
                println!("cargo::rerun-if-changed={folder}");
                add(&mut hasher, Path::new(folder));
            }
        }
        println!("cargo::rustc-env=AOTI_SOURCES={}", &hasher.finalize().to_hex()[..16]);
    }

    fn add(hasher: &mut blake3::Hasher, folder: &Path) {
        let Ok(listing) = std::fs::read_dir(folder) else { return };
        let mut paths: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                add(hasher, &path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                hasher.update(path.to_string_lossy().as_bytes()).update(&(bytes.len() as u64).to_le_bytes());
                hasher.update(&bytes);
            }
        }
    }
}
