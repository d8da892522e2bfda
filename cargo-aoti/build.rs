//! Notes whether the sources of the whole workspace lie around this package, and where: until the crates are published,
//! the projects that `cargo aoti new` makes depend on them there.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let is_workspace = |root: &&Path| root.join("build-support/aoti-build/Cargo.toml").is_file();
    let root = here.parent().filter(is_workspace).map(|root| root.display().to_string());
    println!("cargo::rustc-env=AOTI_WORKSPACE={}", root.unwrap_or_default());
}
