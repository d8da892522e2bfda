//! Builds the hand-written model and loads it.

use aoti_runtime::{Error, Library};
use std::{path::PathBuf, process::Command};

/// Compiles `fake.c` with these definitions to a shared library and opens it.
pub(crate) fn library(definitions: &[&str]) -> Result<Library, Error> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    // Tests of one process run at the same time: each combination gets a file of its own, put in place by renaming.
    let name = format!("fake{}-{}", definitions.concat().replace('=', "-"), std::process::id());
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let unique = format!("{name}-{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let path = out.join(format!("{unique}.so"));
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
        .arg(folder.join("../aoti-compiler/include"))
        .arg(folder.join("tests/fake.c"))
        .arg("-o")
        .arg(&path)
        .status()
        .expect("the tests need a C compiler named `cc`");
    assert!(status.success(), "fake.c does not compile");
    let library = Library::open(&path, "aoti_fake_api");
    std::fs::remove_file(&path).unwrap();
    library
}
