//! Builds the hand-written model and loads it.

use aoti_runtime::{Error, Library};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Compiles `fake.c` with these definitions to a shared library and opens it.
pub(crate) fn library(definitions: &[&str]) -> Result<Library, Error> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // SAFETY: the library was just made, of a model by hand.
    unsafe { Library::open(compiled(definitions, folder.path()), "aoti_fake_api") }
}

/// Compiles `fake.c` with these definitions to a shared library in a folder.
pub(crate) fn compiled(definitions: &[&str], folder: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("fake.so");
    let status = Command::new("cc")
        .args([
            "-std=c11",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-shared",
            "-fPIC",
            "-DFAKE_API=aoti_fake_api",
        ])
        .args(definitions.iter().map(|definition| format!("-D{definition}")))
        .arg("-I")
        .arg(here.join("../aoti-compiler/include"))
        .arg(here.join("tests/fake.c"))
        .arg("-o")
        .arg(&path)
        .status()
        .expect("the tests need a C compiler named `cc`");
    assert!(status.success(), "fake.c does not compile");
    path
}
